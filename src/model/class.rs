//! How links from a page to itself are treated.

use serde::{Deserialize, Serialize};

/// How links from a page to itself are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfLinks {
    /// They are dropped: a page cannot vote for itself.
    #[default]
    Drop,
    /// They count as other links do.
    Keep,
}
