//! Fetches of a page.

use serde::{Serialize, Serializer};

use super::Time;

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
    /// True if the page was gone (404, 410) at its last visit; `None`: an older snapshot, which does not say.
    pub gone: Option<bool>,
    /// Units of cash that were recycled from the page since its last visit.
    pub recycled: u64,
}

impl Fetches {
    /// Returns the page's state; `None` for a visited page if the snapshot does not say whether it is gone.
    pub fn state(&self) -> Option<PageState> {
        match (self.visits, self.gone?) {
            (0, _) if self.failed > 0 => Some(PageState::Failed),
            (0, _) => Some(PageState::NotCrawled),
            (_, true) => Some(PageState::Gone),
            (_, false) => Some(PageState::Crawled),
        }
    }
}

/// Totals over all fetches of a page, in place of one fetch, in a record of a store's dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchTotals {
    /// Number of visits; 0: the page was never visited.
    pub visits: u32,
    /// Number of failed fetches since the page was last reached.
    pub failed: u32,
    /// Time of the last failure, in seconds since 1970.
    pub last_failed: Option<Time>,
    /// Number of comparisons of two successive fetches that could show a change of the page.
    pub compared: u32,
    /// Number of comparisons that found a change; at most `compared`.
    pub changed: u32,
    /// Seconds from the first compared fetch to the last.
    pub watched_s: u32,
}

/// State of a page, by its fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// Visited, and present the last time that a fetch reached it.
    Crawled,
    /// Known only from links.
    NotCrawled,
    /// Never visited, and its last fetch failed.
    Failed,
    /// Answered 404 or 410 at its last visit. It stays in the ranking.
    Gone,
}

impl PageState {
    pub const ALL: [PageState; 4] = [
        PageState::Crawled,
        PageState::NotCrawled,
        PageState::Failed,
        PageState::Gone,
    ];

    /// Returns the state in words, as in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            PageState::Crawled => "crawled",
            PageState::NotCrawled => "not crawled",
            PageState::Failed => "failed",
            PageState::Gone => "gone",
        }
    }
}

impl Serialize for PageState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
