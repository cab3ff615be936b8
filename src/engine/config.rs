//! What changes results: fixed when a store is made, and checked whenever it is opened.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::estimate::Estimator;
use super::ledger::damping_units;
use super::window::{Policy, Span, WindowPolicy};
use crate::model::SelfLinks;
use crate::rules::Follow;
use crate::{Error, Result};

/// The engine's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Share of a page's cash that its links hand on, in 1/2^32; the rest goes to the virtual page.
    damping: u64,
    /// The window importance is read from.
    pub window: WindowPolicy,
    /// How importance is read from it; `None`: as the window suggests ([`WindowPolicy::estimator`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimator: Option<Estimator>,
    /// Links from a page to itself.
    pub self_links: SelfLinks,
    /// What links weigh.
    #[serde(default, skip_serializing_if = "Follow::is_default")]
    pub follow: Follow,
    /// Marks kept besides the start of the stream, 0 to 64.
    pub marks: u8,
    /// Rounds without a visit after which a page's cash is recycled, 0 (never) to 12. A round of a crawl
    /// that grows is much shorter than a pass over what it finds: with fewer than 8, pages are recycled
    /// before the first pass ends, and their rows count as partly empty.
    pub recycle_after: u8,
    /// With [`WindowPolicy::Auto`]: how far back a window may begin; `None`: as far as may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<Span>,
    /// Whether there is a correction ledger: 24 bytes a page more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub correction: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            damping: damping_units(0.85),
            window: WindowPolicy::Auto,
            estimator: None,
            self_links: SelfLinks::Drop,
            follow: Follow::default(),
            marks: 6,
            recycle_after: 8,
            max_age: None,
            correction: false,
        }
    }
}

impl Config {
    /// Sets damping, 0 <= damping < 1. Used as `floor(damping x 2^32) / 2^32`.
    pub fn set_damping(&mut self, damping: f64) -> Result<()> {
        if !(0.0..1.0).contains(&damping) {
            return Err(Error::Refused(format!(
                "damping {damping} is outside 0 <= damping < 1"
            )));
        }
        self.damping = damping_units(damping);
        Ok(())
    }

    /// Damping in 1/2^32, as the ledger uses it.
    pub fn damping_units(&self) -> u64 {
        self.damping
    }

    /// Damping as a number.
    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }

    /// Says how importance is to be read from the window set before.
    pub fn set_estimator(&mut self, estimator: Estimator) {
        self.estimator = (estimator != self.window.estimator()).then_some(estimator);
    }

    /// How importance is read.
    pub fn estimator(&self) -> Estimator {
        self.estimator.unwrap_or(self.window.estimator())
    }

    /// How far back windows reach, if that is given.
    pub(crate) fn span(&self) -> Option<Span> {
        self.window.span().or(self.max_age)
    }

    /// How the history's rows are kept.
    pub(crate) fn policy(&self) -> Arc<dyn Policy> {
        self.window.policy(self.estimator())
    }

    /// Whether marks are made.
    pub fn makes_marks(&self) -> bool {
        self.marks > 0 && self.window.uses_marks(self.estimator())
    }

    /// Checks what the types don't.
    pub fn check(&self) -> Result<()> {
        let (window, estimator) = (self.window, self.estimator());
        if !window.allows(estimator) {
            return Err(Error::Refused(format!(
                "--window {window} keeps what pages distributed, not what they received: use --estimator \
                 distributed"
            )));
        }
        if window.uses_marks(estimator) && window != WindowPolicy::Auto && self.marks == 0 {
            return Err(Error::Refused(format!(
                "--window {window} begins at a mark, and --marks 0 keeps none: keep some, or use --estimator \
                 distributed"
            )));
        }
        if self.max_age.is_some() && window != WindowPolicy::Auto {
            return Err(Error::Refused(format!(
                "--max-age says how far back --window auto may choose; --window {window} chooses nothing: \
                 leave one of them out"
            )));
        }
        if self.correction && window != WindowPolicy::Auto {
            return Err(Error::Refused(format!(
                "--correction chooses between windows and the correction ledger, and --window {window} is one \
                 window: leave one of them out"
            )));
        }
        if self.recycle_after > 12 {
            return Err(Error::Refused(format!(
                "--recycle-after {}: at most 12 rounds",
                self.recycle_after
            )));
        }
        if self.marks > 64 {
            return Err(Error::Refused(format!(
                "--marks {}: at most 64",
                self.marks
            )));
        }
        Ok(())
    }
}
