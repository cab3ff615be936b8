//! Settings that change results: fixed when a store is made, and checked whenever it is opened.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::estimator::Estimator;
use super::ledger::{USUAL_DAMPING, checked_damping};
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
    /// Weights of links.
    #[serde(default, skip_serializing_if = "Follow::is_default")]
    pub follow: Follow,
    /// Marks kept besides the start of the stream, 0 to 64.
    pub marks: u8,
    /// Rounds without a visit after which a page's cash is recycled, 1 to 12; so is that of pages never visited or gone, at
    /// every round's end. 0: no page's cash is ever recycled, and the ledger is the paper's. A round of a crawl
    /// that grows is much shorter than a pass over what it finds: with fewer than 8, pages are recycled
    /// before the first pass ends, and their rows count as partly empty.
    pub recycle_after: u8,
    /// With [`WindowPolicy::Auto`]: how far back a window may begin; `None`: as far as may be.
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

/// Damping is asked for in multiples of one part in so many.
const DECIMALS: f64 = 1e8;

impl Config {
    /// Sets damping, 0 <= damping < 1. Used is the multiple of 2^-32 that is nearest, of 0.85 the one below: [`Config::damping`]; what that
    /// costs is [`Config::damping_bound`], if it has at most eight decimals.
    pub fn set_damping(&mut self, damping: f64) -> Result<()> {
        self.damping = checked_damping(damping)?;
        Ok(())
    }

    /// Damping in 1/2^32, as the ledger uses it.
    pub fn damping_units(&self) -> u64 {
        self.damping
    }

    /// Damping as it is used.
    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }

    /// Damping as it was asked for: eight decimals are fewer than there are multiples of 2^-32, so the one used tells
    /// it, also of stores that took the multiple below.
    pub fn damping_asked(&self) -> f64 {
        (self.damping() * DECIMALS).round() / DECIMALS
    }

    /// A bound on the L1 distance between PageRank at the damping used and at that asked for.
    ///
    /// Let p and q be PageRank at d and e, so p = d M p + (1 - d) v and q = e M q + (1 - e) v, with M a column-stochastic
    /// matrix and v a distribution. Then p - q = e M (p - q) + (d - e) (M p - v). M does not make norms longer, and M p
    /// and v are distributions, so |p - q| <= e |p - q| + 2 |d - e|, which gives |p - q| <= 2 |d - e| / (1 - e); and the
    /// same with d for e.
    pub fn damping_bound(&self) -> f64 {
        // Both are multiples of 2^-32 x 10^-8, and so is the difference: it is exact.
        let used = u128::from(self.damping) * DECIMALS as u128;
        let asked = ((self.damping() * DECIMALS).round() as u128) << 32;
        let apart = used.abs_diff(asked) as f64 / (DECIMALS * 2f64.powi(32));
        // Rounded up by more than the few operations may round down.
        2.0 * apart / (1.0 - self.damping()) * (1.0 + 1e-12)
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

    /// Returns whether importance is settled where the links of pages are kept: nobody asked for importance over a
    /// period.
    pub fn is_settled(&self) -> bool {
        self.window.shape().chooses() && self.max_age.is_none()
    }

    /// Returns whether marks are made.
    pub fn makes_marks(&self) -> bool {
        self.marks > 0 && self.window.uses_marks(self.estimator())
    }

    /// Checks what the types don't.
    pub fn check(&self) -> Result<()> {
        let (window, estimator) = (self.window, self.estimator());
        if !window.allows(estimator) {
            return Err(Error::Usage(format!(
                "`window` {window} keeps what pages distributed, not what they received: use `estimator` \
                 distributed"
            )));
        }
        let chooses = window.shape().chooses();
        if window.uses_marks(estimator) && !chooses && self.marks == 0 {
            return Err(Error::Usage(format!(
                "`window` {window} begins at a mark, and `marks` 0 keeps none: keep some, or use `estimator` \
                 distributed"
            )));
        }
        if self.max_age.is_some() && !chooses {
            return Err(Error::Usage(format!(
                "`max_age` limits how far back `window` auto may reach, and has no meaning with `window` {window}: \
                 leave one of them out"
            )));
        }
        if self.recycle_after > 12 {
            return Err(Error::Usage(format!(
                "`recycle_after` {}: at most 12 rounds",
                self.recycle_after
            )));
        }
        if self.marks > 64 {
            return Err(Error::Usage(format!("`marks` {}: at most 64", self.marks)));
        }
        Ok(())
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

    /// Two pages, the first without links, and one link from the second to the first: PageRank in closed form. With
    /// p of the second page, 1 - p of the first: p = d (1 - p) / 2 + (1 - d) / 2, so p = 1 / (2 + d).
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
            // Near 1 the difference of two floats is known to some 1e-16 only.
            let known = 4e-16 / (1.0 - config.damping());
            assert!((config.damping_bound() - formula).abs() <= 1e-6 * formula + known);
        }
        for exact in [0.0, 0.5, 0.75] {
            assert_eq!(config(exact).damping(), exact);
            assert_eq!(config(exact).damping_bound(), 0.0);
        }
        // The usual one is kept as earlier versions took it.
        let usual = Config::default();
        assert_eq!(
            (usual.damping_units(), usual.damping_asked()),
            (USUAL_DAMPING, 0.85)
        );
        assert!((usual.damping_bound() - 2.0 * 0.6 / 2f64.powi(32) / 0.15).abs() < 1e-12);
    }
}
