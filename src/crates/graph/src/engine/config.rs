//! Settings that change results: fixed when a store is created and checked whenever it is opened.

use serde::{Deserialize, Serialize};

use super::ledger::{USUAL_DAMPING, checked_damping};
use super::row::RowPolicy;
use super::scores::Estimator;
use super::window::{Span, WindowPolicy};
use crate::model::SelfLinks;
use crate::rules::Follow;
use crate::{Error, Result};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Share of a page's cash that its links pass on, in 1/2^32; the rest goes to the virtual page.
    damping: u64,
    /// Window of the history from which importance is computed.
    pub window: WindowPolicy,
    /// Estimator of importance; `None` selects the window's default ([`WindowPolicy::estimator`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimator: Option<Estimator>,
    /// Treatment of links from a page to itself.
    pub self_links: SelfLinks,
    /// Weights of links by their kind.
    #[serde(default, skip_serializing_if = "Follow::is_default")]
    pub follow: Follow,
    /// Number of marks kept besides the start of the stream, 0 to 64.
    pub marks: u8,
    /// Number of rounds without a visit, 1 to 12, after which a page's cash is recycled; pages never visited or gone
    /// are recycled at the end of every round. With 0 nothing is recycled and the ledger is the paper's. With fewer
    /// than 8, pages of a growing crawl are recycled before the first pass over them ends.
    pub recycle_after: u8,
    /// With [`WindowPolicy::Auto`]: the earliest start of a window, as an age; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            damping: USUAL_DAMPING,
            window: WindowPolicy::Auto,
            estimator: None,
            self_links: SelfLinks::Drop,
            follow: Follow::default(),
            marks: 6,
            recycle_after: 8,
            max_age: None,
        }
    }
}

/// Resolution of the requested damping: 1/1e8, that is eight decimals.
const DECIMALS: f64 = 1e8;

impl Config {
    /// Sets damping, 0 <= damping < 1. The value used is the nearest multiple of 2^-32; for 0.85, the multiple below.
    /// [`Config::damping_bound`] bounds the effect of the rounding for values of at most eight decimals.
    pub fn set_damping(&mut self, damping: f64) -> Result<()> {
        self.damping = checked_damping(damping)?;
        Ok(())
    }

    /// Returns the damping in 1/2^32, as the ledger uses it.
    pub fn damping_units(&self) -> u64 {
        self.damping
    }

    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }

    /// Returns the damping that was requested. Eight decimals are coarser than 2^-32, so the value used determines it,
    /// also in stores that took the multiple below.
    pub fn damping_asked(&self) -> f64 {
        (self.damping() * DECIMALS).round() / DECIMALS
    }

    /// Returns a bound on the L1 distance between PageRank at the damping used and at that requested.
    ///
    /// With PageRank p = d M p + (1 - d) v and q = e M q + (1 - e) v, p - q = e M (p - q) + (d - e) (M p - v), and M does
    /// not increase norms: |p - q| <= e |p - q| + 2 |d - e|, so |p - q| <= 2 |d - e| / (1 - e).
    pub fn damping_bound(&self) -> f64 {
        // Both are multiples of 2^-32 x 10^-8, so their difference is exact.
        let used = u128::from(self.damping) * DECIMALS as u128;
        let asked = ((self.damping() * DECIMALS).round() as u128) << 32;
        let apart = used.abs_diff(asked) as f64 / (DECIMALS * 2f64.powi(32));
        // Rounds up by more than the few operations may round down.
        2.0 * apart / (1.0 - self.damping()) * (1.0 + 1e-12)
    }

    /// Returns the bound at the damping used for which `until` holds at that requested; `None` if
    /// [`Config::damping_bound`] alone is as large.
    pub fn bound_for(&self, until: f64) -> Option<f64> {
        Some(until - self.damping_bound()).filter(|left| *left > 0.0)
    }

    /// Sets the estimator. The window must be set first.
    pub fn set_estimator(&mut self, estimator: Estimator) {
        self.estimator = (estimator != self.window.estimator()).then_some(estimator);
    }

    pub fn estimator(&self) -> Estimator {
        self.estimator.unwrap_or(self.window.estimator())
    }

    pub fn span(&self) -> Option<Span> {
        self.window.span().or(self.max_age)
    }

    pub fn policy(&self) -> RowPolicy {
        self.window.rows(self.estimator())
    }

    /// Returns true if importance is settled over the kept links, because no period was requested.
    pub fn is_settled(&self) -> bool {
        self.window == WindowPolicy::Auto && self.max_age.is_none()
    }

    pub fn makes_marks(&self) -> bool {
        self.marks > 0 && self.window.uses_marks(self.estimator())
    }

    /// Checks the limits and combinations that the types do not enforce.
    pub fn check(&self) -> Result<()> {
        let (window, estimator) = (self.window, self.estimator());
        let chooses = window == WindowPolicy::Auto;
        let wrong = if !window.allows(estimator) {
            format!(
                "`window` {window} keeps what pages distributed, not what they received: use `estimator` \
                 distributed"
            )
        } else if window.uses_marks(estimator) && !chooses && self.marks == 0 {
            format!(
                "`window` {window} begins at a mark, and `marks` 0 keeps none: keep some, or use `estimator` \
                 distributed"
            )
        } else if self.max_age.is_some() && !chooses {
            format!(
                "`max_age` limits how far back `window` auto may reach, and has no meaning with `window` {window}: \
                 leave one of them out"
            )
        } else if self.recycle_after > 12 {
            format!("`recycle_after` {}: at most 12 rounds", self.recycle_after)
        } else if self.marks > 64 {
            format!("`marks` {}: at most 64", self.marks)
        } else {
            return Ok(());
        };
        Err(Error::Usage(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(damping: f64) -> Config {
        let mut config = Config::default();
        config.set_damping(damping).unwrap();
        config
    }

    /// Two pages, one link from the second to the first: with PageRank p of the second page, p = d (1 - p) / 2 + (1 -
    /// d) / 2, so p = 1 / (2 + d).
    #[test]
    fn the_bound_covers_what_rounding_costs() {
        let second = |damping: f64| 1.0 / (2.0 + damping);
        for damping in [0.1, 0.85, 0.3, 0.99, 0.123_456_78, 0.999_999_99] {
            let config = config(damping);
            assert_eq!(config.damping_asked(), damping);
            let apart = (config.damping() - damping).abs();
            let most = if damping == 0.85 { -32 } else { -33 };
            assert!(apart <= 2f64.powi(most), "{damping}: {apart}");
            let l1 = 2.0 * (second(config.damping()) - second(damping)).abs();
            assert!(l1 <= config.damping_bound() + 1e-16, "{damping}");
            let formula = 2.0 * apart / (1.0 - config.damping());
            // Near 1 the difference of two floats is accurate to about 1e-16 only.
            let known = 4e-16 / (1.0 - config.damping());
            assert!((config.damping_bound() - formula).abs() <= 1e-6 * formula + known);
        }
        for exact in [0.0, 0.5, 0.75] {
            assert_eq!(config(exact).damping(), exact);
            assert_eq!(config(exact).damping_bound(), 0.0);
        }
        // The default keeps the value of earlier versions.
        let usual = Config::default();
        assert_eq!(
            (usual.damping_units(), usual.damping_asked()),
            (USUAL_DAMPING, 0.85)
        );
        assert!((usual.damping_bound() - 2.0 * 0.6 / 2f64.powi(32) / 0.15).abs() < 1e-12);
    }
}
