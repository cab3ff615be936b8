//! Options of a frontier; builds without the frontier have them as well.

use std::path::PathBuf;

/// File of a frontier, with its order and limits.
#[derive(Debug, Clone)]
pub struct FrontierOptions {
    /// Path of the file; created if it does not exist.
    pub path: PathBuf,
    /// Options of `/next`: the strategy, and everything except for the number.
    pub next: Vec<(String, String)>,
    /// Limits of the frontier.
    pub limits: FrontierLimits,
}

/// Limits of a frontier.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierLimits {
    /// Maximum number of URLs; further ones are answered by FAIL.
    pub urls: u64,
    /// Maximum number of queues; URLs of further ones are answered by FAIL.
    pub queues: u64,
    /// Maximum length of a URL, in bytes; a longer one is answered by SKIPPED.
    pub url_bytes: usize,
    /// Maximum length of a queue's key and of a crawl's name, in bytes; URLs of longer ones are answered by SKIPPED.
    pub name_bytes: usize,
    /// Maximum length of a URL's metadata, in bytes; a URL with more is answered by SKIPPED.
    pub metadata_bytes: usize,
    /// Maximum number of URLs that a call hands out or lists.
    pub urls_a_call: usize,
    /// Length of URLs and metadata, in bytes, after which a call hands out or lists no more.
    pub bytes_a_call: usize,
    /// Number of pages requested from a strategy.
    pub scored: usize,
    /// Memory for the file, in bytes.
    pub cache_bytes: usize,
}

impl Default for FrontierLimits {
    fn default() -> FrontierLimits {
        FrontierLimits {
            urls: 50_000_000,
            queues: 1_000_000,
            url_bytes: 8 << 10,
            name_bytes: 255,
            metadata_bytes: 64 << 10,
            urls_a_call: 10_000,
            bytes_a_call: 16 << 20,
            scored: 100_000,
            cache_bytes: 64 << 20,
        }
    }
}
