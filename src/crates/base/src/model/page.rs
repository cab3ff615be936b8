//! Pages: their numbers, their fetches, and the facts about a ranked one.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Time, utc};
use crate::words;

/// Number of a page: 0 for the first page that appears in the stream, and so on without gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl PageId {
    /// Maximum number of pages in a ledger: with 2^30 units each, no cell overflows 64 bits.
    pub const LIMIT: u64 = (1 << 34) - 1;

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Page of a ranking, with its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Page<'a> {
    /// Number of the page, in order of first appearance.
    #[serde(skip)]
    pub page: PageId,
    /// 1 + number of pages of strictly greater importance.
    pub rank: u64,
    /// Importance; that of all pages sums to 1.
    pub importance: f64,
    /// Number of visits to the page.
    pub visits: u64,
    /// Time of the last fetch, in seconds since 1970.
    #[serde(serialize_with = "rfc_3339")]
    pub last_fetch: Option<Time>,
    /// Number of failed fetches since it was last reached, in a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// State by its fetches; `None` for a site, or if an older snapshot does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// URL in canonical form, or opaque name.
    pub url: Cow<'a, str>,
    /// Cash, as a share of all: C of the OPIC paper. `None` for a site.
    #[serde(skip)]
    pub cash: Option<f64>,
    /// Distributed cash in the ranking's window, as a share of all: H of the paper; in a settled ranking what it would
    /// distribute in the long run. `None` for a site.
    #[serde(skip)]
    pub distributed: Option<f64>,
    /// Further numbers of a table, such as scores by other measures, if requested.
    #[serde(skip)]
    pub more: Vec<Option<f64>>,
    /// Difference from an older ranking, if requested.
    #[serde(skip)]
    pub change: Option<Change>,
    /// Facts about the pages of a site, if sites are ranked.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteFacts>,
}

words! {
    /// Kind of change of a page or site since an older ranking.
    Change {
        /// Not in the older ranking.
        New = "new",
        /// Score changed other than by dilution.
        Changed = "changed",
        /// Score changed in proportion to that of the mean page, because new pages took a share.
        Diluted = "diluted",
        /// Found gone (404, 410) since the older ranking; it stays in the ranking.
        Gone = "gone",
    }
}

/// Facts about the pages of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SiteFacts {
    /// Number of pages of the site.
    pub pages: u64,
    /// Greatest importance of a page, if importance of pages is added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<f64>,
    /// Name of the page with the greatest importance that is not gone, unless all are, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// State of that page; absent if the snapshot does not say which pages are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_state: Option<PageState>,
}

/// Serializes a time as RFC 3339, in UTC.
pub fn rfc_3339<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    time.and_then(utc).serialize(to)
}

/// Visits, failures and changes of a page. Snapshots hold them for each page, and crawl orders use them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetches {
    /// Number of visits: records with the page's links.
    pub visits: u64,
    /// Time of the last fetch, in seconds since 1970.
    pub last: Option<Time>,
    /// Number of failed fetches since the page was last reached.
    pub failed: u64,
    /// Time of the last failure, in seconds since 1970.
    pub last_failed: Option<Time>,
    /// Number of comparisons of two successive fetches that could show a change of the page.
    pub compared: u64,
    /// Number of comparisons that found a change.
    pub changed: u64,
    /// Seconds from the first compared fetch to the last.
    pub watched_s: u64,
    /// True if the page was gone (404, 410) at its last visit.
    pub gone: bool,
    /// Units of cash that were recycled from the page since its last visit.
    pub recycled: u64,
}

impl Fetches {
    pub fn state(&self) -> PageState {
        match (self.visits, self.gone) {
            (0, _) if self.failed > 0 => PageState::Failed,
            (0, _) => PageState::NotCrawled,
            (_, true) => PageState::Gone,
            (_, false) => PageState::Crawled,
        }
    }
}

/// Totals over all fetches of a page (see [`Fetches`]), in place of one fetch, in a record of a store's dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchTotals {
    /// Number of visits; 0: the page was never visited.
    pub visits: u32,
    pub failed: u32,
    pub last_failed: Option<Time>,
    pub compared: u32,
    pub changed: u32,
    pub watched_s: u32,
}

words! {
    /// State of a page, by its fetches.
    PageState {
        /// Visited, and present the last time that a fetch reached it.
        Crawled = "crawled",
        /// Known only from links.
        NotCrawled = "not crawled",
        /// Never visited, and its last fetch failed.
        Failed = "failed",
        /// Answered 404 or 410 at its last visit. It stays in the ranking.
        Gone = "gone",
    }
}
