//! The fetches of a page.

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
}
