//! Links of a page, and the shares of its cash that it passes on over them.

use crate::model::PageId;

/// Distinct link targets of a page with their weights; without weights, all links weigh the same.
#[derive(Debug, Clone, Copy)]
pub struct TargetLinks<'a> {
    /// Target pages, each at most once.
    pub targets: &'a [PageId],
    /// Weight of each target, or empty; the sum is below 2^63.
    pub weights: &'a [u64],
}

impl<'a> From<&'a [PageId]> for TargetLinks<'a> {
    fn from(targets: &'a [PageId]) -> TargetLinks<'a> {
        let weights = &[];
        TargetLinks { targets, weights }
    }
}

impl<'a> TargetLinks<'a> {
    /// Links of a page that has none.
    pub const NONE: TargetLinks<'static> = TargetLinks {
        targets: &[],
        weights: &[],
    };

    /// Iterates over the targets of nonzero weight, with their weights.
    pub(super) fn iter(self) -> impl Iterator<Item = (PageId, u64)> + 'a {
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let all = self.targets.iter().copied().zip(weights);
        all.filter(|&(_, weight)| weight > 0)
    }

    /// Returns the number of targets of nonzero weight.
    pub(super) fn len(self) -> usize {
        match self.weights {
            [] => self.targets.len(),
            weights => weights.iter().filter(|&&weight| weight > 0).count(),
        }
    }

    /// Returns the sum of all weights, by which `units` are divided.
    fn weight(self) -> u64 {
        match self.weights {
            [] => self.targets.len() as u64,
            weights => weights.iter().sum(),
        }
    }
}

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
        Shares::over(units, damping, links.weight())
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
