//! The links of a page, and the pages that link to it, as of the current snapshot.

use serde::Serialize;

use crate::Result;
use crate::engine::PageId;
use crate::model::PageState;
use crate::rows::{Rows, Stop};
use crate::snapshot::Snapshot;

/// The links of a page, or to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkList {
    /// The page, as it was asked for.
    pub url: String,
    /// Whether its links are known: it was visited, and its links were kept.
    pub visited: bool,
    /// Whether that visit found it gone (404, 410).
    pub gone: bool,
    /// Links that are known, those not listed too.
    pub count: u64,
    /// What they lead to, or come from: as many as were asked for, best rank first.
    pub links: Vec<LinkTarget>,
    /// Of links to the page: those that were looked at, and all that are kept.
    #[serde(flatten)]
    pub swept: Option<LinkSweep>,
}

/// How far the links of all pages were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkSweep {
    /// Links that were looked at.
    pub links_read: u64,
    /// Links that are kept.
    pub links_kept: u64,
}

/// The other end of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkTarget {
    /// Its URL or name.
    pub url: String,
    /// 1 + pages of strictly greater importance.
    pub rank: u64,
    /// What its fetches came to; absent where the snapshot does not say which pages are gone.
    pub state: Option<PageState>,
}

/// What is known of the last visit of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FetchState {
    /// It was not fetched yet.
    #[default]
    Never,
    /// It was found gone.
    Gone,
    /// It has links, or none.
    Yes,
}

/// The other ends of a page's links, each with its link's weight where links of a page do not all weigh the same.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// The page whose links they are; not known of links to it.
    pub fetched: FetchState,
    /// Pages, and the weights of the links.
    pub ends: Vec<(u32, Option<u64>)>,
    /// Of links to the page: how many were looked at.
    pub swept: Option<LinkSweep>,
}

/// The other end of a link, as a snapshot ranks it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedEnd {
    /// The page.
    pub page: PageId,
    /// 1 + pages of strictly greater importance.
    pub rank: u64,
    /// Its importance.
    pub importance: f64,
    /// The weight of the link, if links of its page do not all weigh the same.
    pub weight: Option<u64>,
}

impl Ends {
    /// What a page links to.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there are no links, which says why; rows cannot be read.
    pub fn of(snapshot: &Snapshot, page: u32) -> Result<Ends> {
        let mut found = Ends::default();
        snapshot.row(page, &mut |row| {
            found.fetched = if row.gone {
                FetchState::Gone
            } else {
                FetchState::Yes
            };
            let weight = |at| row.weights.get(at).copied();
            let ends = row.targets.iter().enumerate();
            let ends = ends.map(|(at, target)| (*target, weight(at)));
            found.ends.extend(ends.filter(|end| end.1 != Some(0)));
        })?;
        Ok(found)
    }

    /// Sources of links to a page among the first `within` kept links, in the order of the rows.
    ///
    /// # Errors
    /// As of [`Rows::sweep`].
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
            fetched: FetchState::Yes,
            ends,
            swept: Some(LinkSweep {
                links_read,
                links_kept: rows.links(),
            }),
        })
    }

    /// Returns these pages in the snapshot, best rank first; of equal ranks the one that appeared first. Those that are newer than
    /// the snapshot are left out.
    ///
    /// # Errors
    /// The snapshot is damaged or cannot be read.
    pub fn ranked(&self, snapshot: &Snapshot) -> Result<Vec<RankedEnd>> {
        let known = |end: &&(u32, Option<u64>)| u64::from(end.0) < snapshot.len();
        let ends: Vec<(u32, Option<u64>)> = self.ends.iter().filter(known).copied().collect();
        let pages: Vec<PageId> = ends.iter().map(|end| PageId(end.0.into())).collect();
        let ranks = snapshot.ranks_of(&pages)?;
        let ends = pages.into_iter().zip(ends).zip(ranks);
        let mut found: Vec<RankedEnd> = ends
            .map(|((page, (_, weight)), (rank, importance))| RankedEnd {
                page,
                rank,
                importance,
                weight,
            })
            .collect();
        found.sort_by_key(|end| (end.rank, end.page));
        Ok(found)
    }
}
