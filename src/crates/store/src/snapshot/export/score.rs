//! Score of a page in exports of scores.
//!
//! With x the importance of a page, and n the number of pages, so that 1/n is the mean:
//!
//! | score | value |
//! |---|---|
//! | `importance` | x; all pages sum to 1 |
//! | `ratio` | n x: how often the mean page's; it keeps its scale while a store grows |
//! | `log` | log2(1 + n x): 1 for the mean page, and one more for each doubling far above it |
//!
//! All are 0 or more and increase with importance. Logarithms are computed by `libm`, with the same bits on every
//! machine.

use std::f64::consts::LN_2;

use super::{Page, Setup, importance};
use crate::Result;
use crate::model::registry;

registry! {
    /// Kind of score.
    Score of ScoreSpec, called "score";
    /// Importance itself.
    Importance is IMPORTANCE;
    /// Importance in units of the mean.
    Ratio is RATIO;
    /// Logarithm of 1 + that ratio.
    Log is LOG;
}

struct ScoreSpec {
    name: &'static str,
    about: &'static str,
    /// Function of the importance and the number of pages.
    of: fn(f64, f64) -> f64,
}

const IMPORTANCE: ScoreSpec = ScoreSpec {
    name: "importance",
    about: "the importance; all pages sum to 1",
    of: |importance, _| importance,
};

const RATIO: ScoreSpec = ScoreSpec {
    name: "ratio",
    about: "importance in units of the mean page's",
    of: |importance, pages| importance * pages,
};

const LOG: ScoreSpec = ScoreSpec {
    name: "log",
    about: "log2(1 + ratio): 1 for a page of mean importance",
    of: |importance, pages| libm::log1p(importance * pages) / LN_2,
};

impl Score {
    /// Returns the factor by which importance is multiplied first, among this many pages.
    pub fn scale(self, pages: u64) -> f64 {
        match self {
            Score::Importance => 1.0,
            Score::Ratio | Score::Log => pages as f64,
        }
    }
}

/// Score of each page, and where search engines store it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scoring {
    /// Kind of score.
    pub score: Score,
    /// Name of the document field that gets the score.
    pub field: String,
    /// Container of the documents: Elasticsearch's index, which may be omitted, or Vespa's `NAMESPACE:TYPE`.
    pub into: Option<String>,
}

impl Default for Scoring {
    fn default() -> Scoring {
        Scoring {
            score: Score::Importance,
            field: "importance".into(),
            into: None,
        }
    }
}

/// Computes scores.
pub(super) struct Scorer {
    of: fn(f64, f64) -> f64,
    pages: f64,
}

impl Scorer {
    pub fn new(setup: &Setup) -> Scorer {
        Scorer {
            of: setup.scoring.score.spec().of,
            pages: setup.pages as f64,
        }
    }

    pub fn of(&self, page: &Page<'_>) -> Result<f64> {
        Ok((self.of)(importance(page)?, self.pages))
    }

    /// Returns the score for consumers of positive normal 32-bit numbers: at least 1.17549435e-38.
    pub fn positive(&self, page: &Page<'_>) -> Result<f32> {
        Ok((self.of(page)? as f32).max(f32::MIN_POSITIVE))
    }
}
