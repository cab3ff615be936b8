//! What changes results: fixed when a store is made, and checked whenever it is opened.

use serde::{Deserialize, Serialize};

use super::ledger::damping_units;
use super::window::WindowPolicy;
use crate::{Error, Result};

/// What becomes of links from a page to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfLinks {
    /// They are dropped: a page cannot vote for itself.
    #[default]
    Drop,
    /// They count as other links do.
    Keep,
}

/// The engine's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Share of a page's cash that its links hand on, in 1/2^32; the rest goes to the virtual page.
    damping: u64,
    /// The window importance is read from.
    pub window: WindowPolicy,
    /// Links from a page to itself.
    pub self_links: SelfLinks,
    /// Marks kept besides the start of the stream, 0 to 64.
    pub marks: u8,
    /// Rounds without a visit after which a page's cash is recycled, 0 (never) to 12.
    pub recycle_after: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            damping: damping_units(0.85),
            window: WindowPolicy::Auto,
            self_links: SelfLinks::Drop,
            marks: 6,
            recycle_after: 4,
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

    /// Checks the ranges that the type does not.
    pub fn check(&self) -> Result<()> {
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
