//! The one number that a page gets in files of scores.
//!
//! With x the importance of a page, and n the number of pages, so that 1/n is the mean:
//!
//! | score | value |
//! |---|---|
//! | `importance` | x; all pages sum to 1 |
//! | `ratio` | n x: how often the mean page's; it keeps its scale while a store grows |
//! | `log` | log2(1 + n x): 1 for the mean page, and one more for each doubling far above it |
//!
//! All are 0 or more, and increase with importance. Logarithms are `libm`'s, the same bits on every machine.

use std::f64::consts::LN_2;

use super::{Page, Setup, importance};
use crate::Result;
use crate::model::registry;

registry! {
    /// Which number.
    Score of ExportSpec, called "score";
    /// The importance itself.
    Importance is IMPORTANCE;
    /// In units of the mean.
    Ratio is RATIO;
    /// The logarithm of 1 + that.
    Log is LOG;
}

struct ExportSpec {
    name: &'static str,
    about: &'static str,
    /// Of the importance and the number of pages.
    of: fn(f64, f64) -> f64,
}

const IMPORTANCE: ExportSpec = ExportSpec {
    name: "importance",
    about: "the importance; all pages sum to 1",
    of: |importance, _| importance,
};

const RATIO: ExportSpec = ExportSpec {
    name: "ratio",
    about: "importance in units of the mean page's",
    of: |importance, pages| importance * pages,
};

const LOG: ExportSpec = ExportSpec {
    name: "log",
    about: "log2(1 + ratio): 1 for a page of mean importance",
    of: |importance, pages| libm::log1p(importance * pages) / LN_2,
};

impl Score {
    /// What importance is multiplied by before anything else is done, among so many pages.
    pub fn scale(self, pages: u64) -> f64 {
        match self {
            Score::Importance => 1.0,
            Score::Ratio | Score::Log => pages as f64,
        }
    }
}

/// A score for each page, and where search engines put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scoring {
    /// Which number.
    pub score: Score,
    /// The field of the document that it goes to.
    pub field: String,
    /// What holds the documents: Elasticsearch's index, which may be left out, or Vespa's `NAMESPACE:TYPE`.
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

/// Makes scores.
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

    /// For takers of 32-bit numbers that must be normal and above 0: at least 1.17549435e-38.
    pub fn positive(&self, page: &Page<'_>) -> Result<f32> {
        Ok((self.of(page)? as f32).max(f32::MIN_POSITIVE))
    }
}
