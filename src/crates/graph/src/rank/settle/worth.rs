//! Selection of pages for a visit: those with much to pass on for the number of their links.
//!
//! The level of a page is |K_i|/(m_i + 1)^0.8 on a logarithmic scale, in eighths of an octave: piecewise linear, in
//! whole numbers. It only determines which pages a sweep visits, and so the speed of convergence.

use crate::engine::ratio_up;

/// Cost of a page's links: [`NO_ROW`], [`NO_LINKS`], or more.
pub type Cost = u8;
pub(super) const NO_ROW: Cost = 0;
pub(super) const NO_LINKS: Cost = 1;
/// Smallest cost of a page with links.
const LINKED: i32 = 2;
/// Cost of a remote page, whose account waits for its owner. No number of links has this cost.
pub(super) const REMOTE: Cost = Cost::MAX;
/// Share of the norm at the pages that a sweep visits, when it begins.
const SHARE: f64 = 0.65;
const STEPS: u32 = 8;
/// Number of levels: those of |K|, and costs below 0.
const LEVELS: usize = (64 * STEPS + 256) as usize;

/// Returns log2 in eighths, linear between powers of two; 0 for 0.
fn logarithm(value: u64) -> i32 {
    let value = value.max(1);
    let zeros = value.leading_zeros();
    // The bits after the leading one.
    let eighths = (value << zeros) >> 60 & 7;
    ((63 - zeros) * STEPS) as i32 + eighths as i32
}

pub(super) fn cost(links: u64) -> Cost {
    match links {
        0 => NO_LINKS,
        // 32 octaves of links at most: 2 + 0.8 x 256.
        _ => {
            (LINKED + logarithm(links.saturating_add(1)) * 4 / 5).min(i32::from(REMOTE) - 1) as Cost
        }
    }
}

/// Returns the level of a visit that passes on `units` at this cost.
pub(super) fn level(units: u64, cost: Cost) -> i32 {
    logarithm(units) + 256 - i32::from(cost)
}

/// Level from which pages are visited.
#[derive(Debug, Clone, Copy)]
pub(super) enum VisitLevel {
    /// Level of the first sweep, given the mean initial value of a page. A page with less than three tenths of that, for
    /// the mean number of links of the rows so far, waits until it has received more. The first row is always visited.
    Beginning(i64),
    From(i32),
}

impl VisitLevel {
    /// Returns the level after `linked` rows with links and `links` links in total.
    pub fn of(self, linked: u64, links: u64) -> i32 {
        match self {
            VisitLevel::From(level) => level,
            VisitLevel::Beginning(each) => {
                level(each.unsigned_abs() / 10 * 3, cost(links / linked.max(1)))
            }
        }
    }
}

/// ||K||_1, and its distribution over levels.
pub(super) struct LevelHistogram {
    /// Maximum loss by rounding T/n.
    pub rest: u64,
    /// Units at pages that are not visited, those without links and remote ones, then at the pages of each level.
    pub units: Vec<i128>,
}

impl Default for LevelHistogram {
    fn default() -> LevelHistogram {
        LevelHistogram {
            rest: 0,
            units: vec![0; 1 + LEVELS],
        }
    }
}

impl LevelHistogram {
    /// Adds a page with links, and |K| of `units`.
    pub fn add(&mut self, units: u64, cost: Cost) {
        self.units[1 + level(units, cost) as usize] += i128::from(units);
    }

    pub fn and(mut self, other: LevelHistogram) -> LevelHistogram {
        for (sum, units) in self.units.iter_mut().zip(&other.units) {
            *sum += units;
        }
        self
    }

    fn visitable(&self) -> u128 {
        self.units[1..].iter().sum::<i128>() as u128
    }

    /// Returns ||K||_1, rounded up.
    pub fn norm(&self) -> u128 {
        self.units.iter().sum::<i128>() as u128 + u128::from(self.rest)
    }

    pub fn is_none(&self) -> bool {
        self.visitable() == 0
    }

    /// Returns the level from which pages hold this share of what can be visited, and their share of the norm.
    pub fn level(&self, share: f64) -> (VisitLevel, f64) {
        let all = self.visitable();
        let wanted = (all as f64 * share) as u128;
        let mut above = 0;
        let mut from = 0;
        for (level, units) in self.units[1..].iter().enumerate().rev() {
            above += *units as u128;
            if *units > 0 {
                from = level as i32;
            }
            if above >= wanted.max(1) {
                break;
            }
        }
        (VisitLevel::From(from), ratio_up(above, self.norm()))
    }
}

/// Returns the share of the norm that a sweep should visit to leave `enough` of it; `gain` is the reduction by the last
/// sweep per unit visited.
pub(super) fn share(enough: f64, gain: Option<f64>) -> f64 {
    match gain {
        // A little more than needed: a sweep that just fails is followed by another.
        Some(gain) => ((1.0 - enough) / gain.clamp(0.02, 1.0) * 1.03).clamp(0.1, SHARE),
        None => SHARE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_grows_with_what_it_is_of() {
        for octave in 0..64 {
            assert_eq!(logarithm(1 << octave), 8 * octave);
        }
        let values: Vec<i32> = (1..1 << 12).map(logarithm).collect();
        assert!(values.is_sorted());
        assert_eq!(logarithm(u64::MAX), 64 * 8 - 1);
        assert_eq!(logarithm(12), 8 * 3 + 4);
    }

    #[test]
    fn every_page_has_a_level() {
        for units in [1, u64::MAX] {
            for links in [1, 2, 1000, u64::from(u32::MAX), u64::MAX] {
                assert!(cost(links) > NO_LINKS);
                assert!((0..LEVELS as i32).contains(&level(units, cost(links))));
            }
        }
    }

    #[test]
    fn pages_above_the_level_hold_the_share() {
        let mut worth = LevelHistogram::default();
        for units in 1..=1000 {
            worth.add(units, cost(3));
        }
        worth.units[0] = 100_000;
        let (VisitLevel::From(from), _) = worth.level(SHARE) else {
            panic!("no level");
        };
        let above: u64 = (1..=1000u64)
            .filter(|&units| level(units, cost(3)) >= from)
            .sum();
        let all = 500_500.0;
        assert!(above as f64 >= SHARE * all);
        // One level less holds at most an eighth of an octave less.
        assert!((above as f64) < SHARE * all + 0.13 * all);
        assert_eq!(worth.norm(), 600_500);
    }
}
