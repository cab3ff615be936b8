//! The fetches of a page.

use serde::{Serialize, Serializer};

use super::Time;

/// Visits, failures and changes of a page. Snapshots hold them for each page, and crawl orders use them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetches {
    /// Visits: records that gave the page's links.
    pub visits: u64,
    /// The last fetch, in seconds since 1970.
    pub last: Option<Time>,
    /// Fetches that failed since the page was last reached.
    pub failed: u64,
    /// When the last of them was, in seconds since 1970.
    pub last_failed: Option<Time>,
    /// How often two fetches, one after the other, showed whether the page had changed between them.
    pub compared: u64,
    /// How often it had.
    pub changed: u64,
    /// Seconds over which that was, from the first such fetch to the last.
    pub watched_s: u64,
    /// Whether the page was gone (404, 410) when it was last visited; `None`: an older snapshot, which does not say.
    pub gone: Option<bool>,
    /// Units of cash that were recycled from the page since its last visit.
    pub recycled: u64,
}

impl Fetches {
    /// What the fetches came to; `None` of a visited page where the snapshot does not say whether it is gone.
    pub fn state(&self) -> Option<PageState> {
        match (self.visits, self.gone?) {
            (0, _) if self.failed > 0 => Some(PageState::Failed),
            (0, _) => Some(PageState::NotCrawled),
            (_, true) => Some(PageState::Gone),
            (_, false) => Some(PageState::Crawled),
        }
    }
}

/// What a record says of all fetches of its page so far, in place of one fetch: so a store is dumped, and loaded again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchTotals {
    /// Visits; 0: the page was never visited.
    pub visits: u32,
    /// Fetches that failed since the page was last reached.
    pub failed: u32,
    /// When the last of them was.
    pub last_failed: Option<Time>,
    /// How often two fetches, one after the other, showed whether the page had changed between them.
    pub compared: u32,
    /// How often it had; at most `compared`.
    pub changed: u32,
    /// Seconds from the first such fetch to the last.
    pub watched_s: u32,
}

/// What the fetches of a page came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// It was visited, and was there the last time that a fetch reached it.
    Crawled,
    /// It is known from links only.
    NotCrawled,
    /// It was never visited, and its last fetch failed.
    Failed,
    /// It answered 404 or 410 when it was last visited. It stays in the ranking.
    Gone,
}

impl PageState {
    pub(crate) const ALL: [PageState; 4] = [
        PageState::Crawled,
        PageState::NotCrawled,
        PageState::Failed,
        PageState::Gone,
    ];

    /// In words, as tables and JSON have it.
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
