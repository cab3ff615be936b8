//! What to read again: pages that matter and are likely to have changed.
//!
//! **Change rate.** Of a page that was visited n times at intervals of I and had changed at X of them, Cho
//! and Garcia-Molina (Estimating frequency of change, 2003, section 4.2) estimate the rate of changes as
//! `-ln((n - X + 0.5) / (n + 0.5)) / I`: unlike X / (n I) it does not miss changes between two visits, and it
//! is finite when every visit found one.
//!
//! **Allocation.** A page that changes at rate r and is read f times a unit of time is as it was read for a
//! share `F(r, f) = f/r (1 - exp(-r/f))` of the time. Under a budget of reads, the sum of w F(r, f) is
//! greatest where the gain of one more read, `w dF/df = w/r (1 - (1 + r/f) exp(-r/f))`, is the same for
//! all pages read, and smaller for those that are not (Cho and Garcia-Molina, Effective page refresh
//! policies for web crawlers, 2003, section 4.4): pages that change too often are left alone.
//!
//! **Order at a moment.** Reading a page now whose last read was at age t gives what the same formula says
//! with r/f = r t: `gain = w/r (1 - (1 + r t) exp(-r t))`. Offering the greatest gains first, again and
//! again, is the optimal allocation.

use std::collections::BinaryHeap;

use super::Scored;
use crate::Result;
use crate::decode::Time;

/// Rate of changes by what visits found; a unit of time is that of `interval`.
///
/// ```
/// use cashrank::schedule::change_rate;
///
/// // Three visits, ten days apart, of which one found a change.
/// let rate = change_rate(3, 1, 10.0);
/// assert!((rate - -(2.5f64 / 3.5).ln() / 10.0).abs() < 1e-15);
/// ```
pub fn change_rate(visits: u64, changes: u64, interval: f64) -> f64 {
    let (n, x) = (visits as f64, changes.min(visits) as f64);
    -libm::log((n - x + 0.5) / (n + 0.5)) / interval
}

/// Share of time at which a page is as it was read, if it changes at `rate` and is read `reads` times, both
/// in one unit of time.
pub fn freshness(rate: f64, reads: f64) -> f64 {
    match (rate > 0.0, reads > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => reads / rate * -libm::expm1(-rate / reads),
    }
}

/// What one more read gives of a page of this weight that changes at `rate` and is read every `age`.
pub fn gain(weight: f64, rate: f64, age: f64) -> f64 {
    let missed = rate * age;
    if missed <= 0.0 {
        return 0.0;
    }
    // 1 - (1 + m) exp(-m), without cancellation where m is small.
    let lost = match missed < 1e-3 {
        true => missed * missed * (0.5 - missed / 3.0),
        false => -libm::expm1(-missed) - missed * libm::exp(-missed),
    };
    weight / rate * lost
}

/// Reads of each page that keep most weight fresh, `budget` of them in all: pages are (weight, rate).
pub fn allocate(pages: &[(f64, f64)], budget: f64) -> Vec<f64> {
    let reads = |least: f64| -> Vec<f64> {
        let each = pages
            .iter()
            .map(|&(weight, rate)| reads_at(weight, rate, least));
        each.collect()
    };
    // The gain of the last read, the same for all: a budget that is smaller asks for more.
    let most = pages.iter().filter(|page| page.1 > 0.0);
    let mut high = most.map(|(weight, rate)| weight / rate).fold(0.0, f64::max);
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match reads(middle).iter().sum::<f64>() > budget {
            true => low = middle,
            false => high = middle,
        }
    }
    reads(high)
}

/// How often a page is to be read so that one more read gives `least`.
fn reads_at(weight: f64, rate: f64, least: f64) -> f64 {
    if rate <= 0.0 || weight / rate <= least {
        return 0.0;
    }
    // The gain grows with the time between reads.
    let (mut short, mut long) = (0.0, 1.0 / rate);
    while gain(weight, rate, long) < least && long < 1e300 {
        long *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (short + long);
        match gain(weight, rate, middle) < least {
            true => short = middle,
            false => long = middle,
        }
    }
    1.0 / long
}

/// A page that was read.
pub(super) struct Read {
    pub page: u32,
    pub importance: f64,
    pub visits: u64,
    pub last_fetch: Option<Time>,
}

const DAY: f64 = 86_400.0;

/// The `count` pages that it gives most to read again at time `now`, best first.
///
/// What visits found is not kept: all pages are taken to change as one that changed at half of its visits, a
/// month apart. Pages without times are as old as a month for each visit that they lack to the page visited most.
pub(super) fn best(
    pages: impl Iterator<Item = Result<Read>>,
    now: Option<Time>,
    count: usize,
) -> Result<Vec<Scored>> {
    let rate = change_rate(1, 0, 30.0).max(1.0 / 60.0);
    let mut best: BinaryHeap<std::cmp::Reverse<(Key, std::cmp::Reverse<u32>)>> = BinaryHeap::new();
    for page in pages {
        let page = page?;
        let age = match (now, page.last_fetch) {
            (Some(now), Some(then)) => (now.saturating_sub(then).max(0) as f64 / DAY).max(1e-3),
            _ => 30.0 / page.visits.max(1) as f64,
        };
        let entry = std::cmp::Reverse((
            Key(gain(page.importance, rate, age)),
            std::cmp::Reverse(page.page),
        ));
        best.push(entry);
        if best.len() > count {
            best.pop();
        }
    }
    let sorted = best.into_sorted_vec().into_iter();
    let scored = sorted
        .map(|std::cmp::Reverse((Key(score), std::cmp::Reverse(page)))| Scored { page, score });
    Ok(scored.collect())
}

/// Numbers in their order.
#[derive(Clone, Copy)]
struct Key(f64);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gain of one more read is the derivative of freshness, and the same for all pages read.
    #[test]
    fn the_allocation_is_optimal() {
        let pages = [(1.0, 0.5), (3.0, 1.0), (0.2, 4.0), (1.0, 0.0), (2.0, 0.1)];
        let reads = allocate(&pages, 3.0);
        assert!((reads.iter().sum::<f64>() - 3.0).abs() < 1e-6);
        assert_eq!(reads[3], 0.0, "a page that never changes");
        let total = |reads: &[f64]| -> f64 {
            let each = pages.iter().zip(reads).filter(|(page, _)| page.1 > 0.0);
            each.map(|((weight, rate), reads)| weight * freshness(*rate, *reads))
                .sum()
        };
        let best = total(&reads);
        for from in 0..5 {
            for to in 0..5 {
                let mut moved = reads.clone();
                let step = 1e-3f64.min(moved[from]);
                moved[from] -= step;
                moved[to] += step;
                assert!(total(&moved) <= best + 1e-9, "{from} {to}");
            }
        }
        for &(weight, rate) in pages.iter().filter(|page| page.1 > 0.0) {
            let slope = (freshness(rate, 0.7 + 1e-6) - freshness(rate, 0.7 - 1e-6)) / 2e-6;
            assert!((weight * slope - gain(weight, rate, 1.0 / 0.7)).abs() < 1e-6);
        }
    }

    /// Equal pages with equal budgets: 1,000 visits a day apart of a page that changes at 0.3 a day find a
    /// change at 1 - exp(-0.3) of them.
    #[test]
    fn the_rate_is_found_again() {
        let found = (1000.0 * (1.0 - (-0.3f64).exp())).round() as u64;
        assert!((change_rate(1000, found, 1.0) - 0.3).abs() < 2e-3);
        assert!(change_rate(5, 5, 1.0).is_finite());
        assert_eq!(change_rate(5, 0, 1.0), 0.0);
    }
}
