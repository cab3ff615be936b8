//! Numbers of pages on either side, and on both.

use std::fmt;

use serde::Serialize;

use super::measure::{Measure, ScorePair};
use super::scores::ScoreRow;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageCounts {
    /// Number of pages on the left side.
    pub left_pages: u64,
    /// Number of pages on the right side, the reference.
    pub right_pages: u64,
    /// Number of pages on both sides.
    pub common_pages: u64,
    /// Number of pages on either side.
    pub union_pages: u64,
}

impl Measure for PageCounts {
    type Found = PageCounts;

    fn begin(left: &mut [ScoreRow], right: &mut [ScoreRow]) -> PageCounts {
        PageCounts {
            left_pages: left.len() as u64,
            right_pages: right.len() as u64,
            common_pages: 0,
            union_pages: 0,
        }
    }

    fn page(&mut self, pair: &ScorePair<'_>) {
        self.union_pages += 1;
        self.common_pages += u64::from(pair.left.is_some() && pair.right.is_some());
    }

    fn end(self) -> PageCounts {
        self
    }
}

impl fmt::Display for PageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "left_pages\t{}", self.left_pages)?;
        writeln!(f, "right_pages\t{}", self.right_pages)?;
        writeln!(f, "common_pages\t{}", self.common_pages)?;
        writeln!(f, "union_pages\t{}", self.union_pages)
    }
}
