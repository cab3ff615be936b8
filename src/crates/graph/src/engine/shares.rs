//! Links of a page, and the shares of its cash that it passes on over them.

use crate::graph::Links;
use crate::model::PageId;

/// Distinct link targets of a page with their weights.
pub type TargetLinks<'a> = Links<'a, u64, PageId>;

/// Returns `floor(units x d)`, with damping d in 1/2^32.
pub(super) fn damped(units: u64, damping: u64) -> u64 {
    ((u128::from(units) * u128::from(damping)) >> 32) as u64
}

/// Cash that a page passes on over its links: `floor(units x d x w / all weights)` over a link of weight w, with
/// damping d in 1/2^32. A page without links passes on nothing.
#[derive(Clone, Copy)]
pub struct Shares {
    damped: u64,
    weight: u64,
}

impl Shares {
    /// Splits `units` over `links`.
    pub fn of(units: u64, damping: u64, links: TargetLinks<'_>) -> Shares {
        Shares::over(units, damping, links.total())
    }

    /// Splits `units` over links whose weights sum to `weight`.
    pub fn over(units: u64, damping: u64, weight: u64) -> Shares {
        Shares {
            damped: damped(units, damping),
            weight,
        }
    }

    pub fn at(self, weight: u64) -> u64 {
        match (self.weight, weight) {
            (0, _) => 0,
            (all, 1) => self.damped / all,
            (all, weight) => {
                (u128::from(self.damped) * u128::from(weight) / u128::from(all)) as u64
            }
        }
    }
}
