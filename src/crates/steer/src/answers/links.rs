//! Links of a page, and pages that link to it, as of the current snapshot.

use serde::Serialize;

use crate::engine::PageId;
use crate::model::PageState;
use crate::rows::{Rows, Stop};
use crate::snapshot::{Snapshot, pages_of};
use crate::{Error, Result};

/// Outgoing or incoming links of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkList {
    #[serde(skip)]
    pub page: PageId,
    pub url: String,
    /// True if the page's links are known: it was visited, and its links were kept.
    pub visited: bool,
    /// True if the last visit found the page gone (404, 410).
    pub gone: bool,
    /// Number of known links, including those not listed.
    pub count: u64,
    /// Other ends of the links, best rank first; at most the requested number.
    pub links: Vec<LinkTarget>,
    #[serde(flatten)]
    pub swept: Option<LinkSweep>,
}

impl LinkList {
    /// Lists the `n` links of a page with the best-ranked other ends; with `within`, the links to it, by a sweep over at
    /// most that number of links. `None` if the page is not known. Calls `check` with the number of links before memory is
    /// taken for them. Fails with [`Error::Missing`] with the reason if no links are kept.
    pub fn of(
        snapshot: &Snapshot,
        url: &str,
        n: usize,
        within: Option<u64>,
        check: impl FnOnce(usize) -> Result<()>,
    ) -> Result<Option<LinkList>> {
        let found = pages_of(&[url.to_owned()], |names| snapshot.find(names))?;
        let Some(page) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        let number = u32::try_from(page.0)
            .map_err(|_| Error::Missing(format!("page {}: no links are kept", page.0)))?;
        let own = Ends::of(snapshot, number)?;
        let (visited, gone) = (own.visited, own.gone);
        let found = match within {
            Some(most) => Ends::to(&snapshot.rows()?, number, most)?,
            None => own,
        };
        check(found.ends.len())?;
        let mut ranked = found.ranked(snapshot)?;
        let count = ranked.len() as u64;
        ranked.truncate(n);
        let pages: Vec<PageId> = ranked.iter().map(|(page, _)| *page).collect();
        let states = snapshot.states_of(&pages)?.into_iter();
        let named = snapshot.names_of(&pages)?.into_iter().zip(states);
        let links = named
            .zip(ranked)
            .map(|((url, state), (_, end))| LinkTarget {
                url,
                state: Some(state),
                ..end
            });
        Ok(Some(LinkList {
            page,
            url: url.to_owned(),
            visited,
            gone,
            count,
            links: links.collect(),
            swept: found.swept,
        }))
    }
}

/// Extent of a search over the links of all pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkSweep {
    pub links_read: u64,
    pub links_kept: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkTarget {
    pub url: String,
    /// 1 + the number of pages of strictly greater importance.
    pub rank: u64,
    pub importance: f64,
    pub state: Option<PageState>,
    /// Weight of the link; `None` if all links of its page weigh the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
}

/// Other ends of a page's links, each with the weight of the link unless all links of a page weigh the same.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// True if the page was visited; always for incoming links, for which it is not looked up.
    pub visited: bool,
    pub gone: bool,
    pub ends: Vec<(u32, Option<u64>)>,
    pub swept: Option<LinkSweep>,
}

impl Ends {
    /// Returns the pages that a page links to.
    pub fn of(snapshot: &Snapshot, page: u32) -> Result<Ends> {
        let mut found = Ends::default();
        snapshot.row(page, &mut |row| {
            (found.visited, found.gone) = (true, row.gone);
            let weight = |at| row.weights.get(at).copied();
            let ends = row.targets.iter().enumerate();
            let ends = ends.map(|(at, target)| (*target, weight(at)));
            found.ends.extend(ends.filter(|end| end.1 != Some(0)));
        })?;
        Ok(found)
    }

    /// Finds the sources of links to a page among the first `most` kept links, in the order of the rows.
    pub fn to(rows: &dyn Rows, page: u32, most: u64) -> Result<Ends> {
        let mut ends = Vec::new();
        let mut links_read = 0;
        rows.sweep(&mut |row| {
            links_read += row.targets.len() as u64;
            if let Some(at) = row.targets.iter().position(|target| *target == page) {
                let weight = row.weights.get(at).copied();
                if weight != Some(0) {
                    ends.push((row.page, weight));
                }
            }
            if links_read < most {
                Ok(())
            } else {
                Err(Stop::Enough)
            }
        })?;
        Ok(Ends {
            visited: true,
            gone: false,
            ends,
            swept: Some(LinkSweep {
                links_read,
                links_kept: rows.links(),
            }),
        })
    }

    /// Returns the ends that the snapshot knows, without URLs and states: best rank first, ties by page number.
    pub fn ranked(&self, snapshot: &Snapshot) -> Result<Vec<(PageId, LinkTarget)>> {
        let ends = self
            .ends
            .iter()
            .map(|(page, weight)| (PageId((*page).into()), *weight));
        let known: Vec<_> = ends.filter(|(page, _)| page.0 < snapshot.len()).collect();
        let pages: Vec<PageId> = known.iter().map(|(page, _)| *page).collect();
        let ranks = snapshot.ranks_of(&pages)?;
        let end = |((page, weight), (rank, importance))| {
            let end = LinkTarget {
                rank,
                importance,
                weight,
                ..LinkTarget::default()
            };
            (page, end)
        };
        let mut ranked: Vec<_> = known.into_iter().zip(ranks).map(end).collect();
        ranked.sort_by_key(|(page, end)| (end.rank, *page));
        Ok(ranked)
    }
}
