//! What a frontier is asked to be, also where this build has none.

use std::path::PathBuf;

/// A frontier's file, and how it orders what it hands out.
#[derive(Debug, Clone)]
pub struct FrontierOptions {
    /// The file; made if there is none.
    pub path: PathBuf,
    /// Options of [`NextQuery`]: the strategy, and all else but how many.
    pub next: Vec<(String, String)>,
    /// Its limits.
    pub limits: FrontierLimits,
}

/// The limits of a frontier.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierLimits {
    /// URLs; further ones are answered by FAIL.
    pub urls: u64,
    /// Queues; URLs of further ones are answered by FAIL.
    pub queues: u64,
    /// Bytes of a URL; a longer one is answered by SKIPPED.
    pub url_bytes: usize,
    /// Bytes of a queue's key and of a crawl's name; URLs of longer ones are answered by SKIPPED.
    pub name_bytes: usize,
    /// Bytes of a URL's metadata; a URL with more is answered by SKIPPED.
    pub metadata_bytes: usize,
    /// URLs that a call hands out or lists.
    pub urls_a_call: usize,
    /// Bytes of URLs and metadata after which a call hands out, or lists, no more.
    pub bytes_a_call: usize,
    /// Pages that a strategy is asked for.
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
