//! Scores of all pages that were computed from their links, and what it took.

use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use crate::Result;

/// Work done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The bound on the L1 error that was asked for.
    pub until: f64,
    /// Whether it was reached; if not, time was up, or numbers of 64 bits resolve no more.
    pub reached: bool,
    /// Sweeps over the kept rows.
    pub sweeps: u64,
    /// Links over which something was handed on.
    pub links_touched: u64,
    /// Links that the rows hold.
    pub links: u64,
    /// Whether it went on from what was settled before, so that what came to it are not these rows alone. Not told before version 3 of
    /// snapshots.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resumed: bool,
}

/// For serde: says nothing of what is usual.
fn is_false(resumed: &bool) -> bool {
    !resumed
}

/// Scores of all pages.
pub trait Scores {
    /// How near they are to what they approximate; `None`: nothing is known of it.
    fn certificate(&self) -> Option<Certificate>;
    /// Work done.
    fn effort(&self) -> Effort;
    /// (received, distributed) of `len` pages from `first` on.
    ///
    /// # Errors
    /// Those of reading what does not lie in memory.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()>;
}
