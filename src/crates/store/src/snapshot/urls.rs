//! Lookup of a snapshot's pages by URLs in any form.

use serde::Serialize;

use super::{Info, Snapshot, SnapshotPage};
use crate::Result;
use crate::model::{Page, PageId, PageState, utc};
use crate::rules::list::ListLine;
use crate::url::Reject;

/// Rank and other facts of one page or site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rank {
    /// URL or name, as given.
    pub url: String,
    /// True if the page is known; if not, all other fields are absent.
    pub known: bool,
    /// Importance, as a share of all.
    pub importance: Option<f64>,
    /// 1 + the number of pages of strictly greater importance.
    pub rank: Option<u64>,
    /// Share of pages, in percent, that do not rank higher.
    pub percentile: Option<f64>,
    /// Number of the site's pages; absent for a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Cash as a share of all: C of the OPIC paper; absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<f64>,
    /// Cash distributed in the ranking's window, as a share of all: H of the OPIC paper. In a settled ranking, what the
    /// page would distribute in the long run. Absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distributed: Option<f64>,
    /// Number of visits.
    pub visits: Option<u64>,
    /// Last fetch, in RFC 3339.
    pub last_fetch: Option<String>,
    /// Result of the page's fetches: crawled, not crawled, failed or gone. Absent for a site, and in older snapshots
    /// that do not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Number of fetches that failed since it was last reached.
    pub failed: Option<u64>,
    /// Number of times that two fetches showed whether the page had changed.
    pub compared: Option<u64>,
    /// Number of times that the page had changed.
    pub changed: Option<u64>,
}

impl Rank {
    /// Creates the answer for a page of a snapshot; `None`: the name is unknown.
    pub fn of(url: &str, page: Option<&SnapshotPage>, info: &Info) -> Rank {
        let row = page.map(|page| page.named(url, info.pages));
        let rank = Rank::of_row(url, row.as_ref(), info.ranked_pages());
        Rank {
            failed: page.map(|page| page.fetches.failed),
            compared: page.map(|page| page.fetches.compared),
            changed: page.map(|page| page.fetches.changed),
            ..rank
        }
    }

    /// Creates the answer for a row of a ranking of `count` pages or sites; `None`: the name is unknown.
    pub fn of_row(url: &str, row: Option<&Page<'_>>, count: u64) -> Rank {
        let url = url.to_owned();
        let Some(row) = row else {
            return Rank {
                url,
                ..Rank::default()
            };
        };
        Rank {
            url,
            known: true,
            importance: Some(row.importance),
            rank: Some(row.rank),
            percentile: Some(percentile(row.rank, count)),
            pages: row.site.as_ref().map(|site| site.pages),
            cash: row.cash,
            distributed: row.distributed,
            state: row.state,
            visits: Some(row.visits),
            last_fetch: row.last_fetch.and_then(utc),
            ..Rank::default()
        }
    }
}

/// Returns the share of all, in percent, that do not rank higher.
fn percentile(rank: u64, of: u64) -> f64 {
    100.0 * (1.0 - (rank - 1) as f64 / of as f64)
}

impl Snapshot {
    /// Returns rank and fetches of pages, by URLs in any form or opaque names.
    pub fn ranks(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let found = pages_of(urls, |names| self.find(names))?;
        page_ranks(self, urls, &found)
    }
}

/// Returns the ranks of the pages that the snapshot has, with the URLs that they were found by.
pub fn page_ranks(
    snapshot: &Snapshot,
    urls: &[String],
    found: &[Option<PageId>],
) -> Result<Vec<Rank>> {
    let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
    let mut pages = snapshot.pages_of(&numbers)?.into_iter();
    let pages = found.iter().map(|page| page.and_then(|_| pages.next()));
    let ranks = urls.iter().zip(pages);
    Ok(ranks
        .map(|(url, page)| Rank::of(url, page.as_ref(), snapshot.info()))
        .collect())
}

/// Returns the canonical form of a URL; an opaque name stays as it is.
pub fn canonical(url: &str) -> Vec<u8> {
    ListLine::of(url.as_bytes(), 0).name
}

/// Looks up pages by name with `find`. A name is a URL in any form, or an opaque name that looks like one, for which
/// `find` is called a second time.
pub fn pages_of<P: Copy, E>(
    urls: &[String],
    find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<Option<P>>, E> {
    let lines = (0..).zip(urls);
    let lines = lines.map(|(number, url)| ListLine::of(url.as_bytes(), number));
    let found = find_lines(lines.collect(), find)?;
    Ok(found.into_iter().map(|of| of.page).collect())
}

/// Page that a list names.
pub struct ListedPage<P = PageId> {
    /// Canonical URL, or opaque name.
    pub name: Vec<u8>,
    /// Page number; `None` if it is unknown.
    pub page: Option<P>,
    /// Number of the line, from 0.
    pub line: u64,
    /// Why the line is not a URL.
    pub why: Option<Reject>,
}

/// Looks up the pages of a chunk of lines. An opaque name that looks like a URL is also looked up as typed.
pub fn find_lines<P: Copy, E>(
    piece: Vec<ListLine>,
    mut find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<ListedPage<P>>, E> {
    let names: Vec<&[u8]> = piece.iter().map(|line| &*line.name).collect();
    let pages = find(&names)?;
    let typed = piece.iter().zip(&pages).filter(|(_, page)| page.is_none());
    let typed: Vec<&[u8]> = typed
        .filter_map(|(line, _)| line.typed.as_deref())
        .collect();
    let mut as_typed = if typed.is_empty() {
        Vec::new().into_iter()
    } else {
        find(&typed)?.into_iter()
    };
    let listed = piece.into_iter().zip(pages).map(|(line, page)| {
        let typed = line.typed.filter(|_| page.is_none());
        let found = typed.as_ref().and_then(|_| as_typed.next()).flatten();
        ListedPage {
            name: typed.filter(|_| found.is_some()).unwrap_or(line.name),
            page: page.or(found),
            line: line.number,
            why: line.why,
        }
    });
    Ok(listed.collect())
}
