//! Treatment of links from a page to itself.

use serde::{Deserialize, Serialize};

/// Treatment of links from a page to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfLinks {
    /// Self-links are dropped: a page cannot vote for itself.
    #[default]
    Drop,
    /// Self-links count like other links.
    Keep,
}
