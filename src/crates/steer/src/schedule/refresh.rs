//! Chooses pages to fetch again: those that matter and have probably changed.
//!
//! **Change rate.** For a page that was visited n times at intervals of I and had changed at X of them, Cho and
//! Garcia-Molina (Estimating frequency of change, 2003, section 4.2) estimate the rate of changes as `-ln((n - X + 0.5)
//! / (n + 0.5)) / I`: unlike X / (n I) it accounts for several changes between two visits, and it is finite if every
//! visit found one.
//!
//! **Allocation.** A page that changes at rate r and is read f times per unit of time is fresh for a share `F(r, f) =
//! f/r (1 - exp(-r/f))` of the time. Under a budget of reads, the sum of w F(r, f) is greatest if the gain of one more
//! read, `w dF/df = w/r (1 - (1 + r/f) exp(-r/f))`, is equal for all pages read, and smaller for the others (Cho and
//! Garcia-Molina, Effective page refresh policies for web crawlers, 2003, section 4.4): pages that change too often are
//! left alone.
//!
//! **Order at a moment.** The gain of reading a page now whose last read was at age t is given by the same formula with
//! r/f = r t: `gain = w/r (1 - (1 + r t) exp(-r t))`. Repeatedly offering the greatest gains first is the optimal
//! allocation.

use crate::model::{Fetches, Time};

/// Returns the estimated rate of changes, per unit of `interval`.
fn change_rate(visits: u64, changes: u64, interval: f64) -> f64 {
    let (n, x) = (visits as f64, changes.min(visits) as f64);
    -libm::log((n - x + 0.5) / (n + 0.5)) / interval
}

/// Returns the gain of one more fetch of a page of this weight that changes at `rate` and is fetched every `age`.
fn gain(weight: f64, rate: f64, age: f64) -> f64 {
    let missed = rate * age;
    if missed <= 0.0 {
        return 0.0;
    }
    // 1 - (1 + m) exp(-m), without cancellation for small m.
    let lost = if missed < 1e-3 {
        missed * missed * (0.5 - missed / 3.0)
    } else {
        -libm::expm1(-missed) - missed * libm::exp(-missed)
    };
    weight / rate * lost
}

/// Observations of changes: comparisons of successive fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Looks {
    /// Number of comparisons of successive fetches.
    pub compared: u64,
    pub changed: u64,
    /// Days that the comparisons span.
    pub days: f64,
}

impl Looks {
    pub(super) fn of(fetches: &Fetches) -> Looks {
        Looks {
            compared: fetches.compared,
            changed: fetches.changed,
            days: fetches.watched_s as f64 / DAY,
        }
    }

    /// Returns the mean number of days between fetches; `None` if unknown.
    fn interval(&self) -> Option<f64> {
        (self.compared > 0 && self.days > 0.0).then(|| self.days / self.compared as f64)
    }

    /// Adds the observations of another page, if they have an interval.
    pub(super) fn add(&mut self, other: Looks) {
        if other.interval().is_some() {
            self.compared += other.compared;
            self.changed += other.changed;
            self.days += other.days;
        }
    }

    /// Returns the joint rate of changes per day of these pages, which is assumed for a page without observations.
    /// Without any observation: one change in sixty days.
    pub fn usual_rate(&self) -> f64 {
        let none = 1.0 / UNKNOWN_DAYS;
        match self.interval() {
            // Never zero: such a page would never be read again.
            Some(interval) => change_rate(self.compared, self.changed, interval).max(none / 100.0),
            None => none,
        }
    }

    /// Returns the page's rate of changes per day: [`change_rate`] with one added observation, which found a change
    /// with the probability at the `usual` rate. So a page that was never found changed is still read again.
    pub fn rate(&self, usual: f64) -> f64 {
        let Some(interval) = self.interval() else {
            return usual;
        };
        let (n, x) = (self.compared as f64, self.changed.min(self.compared) as f64);
        let assumed = -libm::expm1(-usual * interval);
        -libm::log((n + 1.0 - x - assumed + 0.5) / (n + 1.5)) / interval
    }
}

/// Mean days between changes of a page without observations.
const UNKNOWN_DAYS: f64 = 60.0;
const DAY: f64 = 86_400.0;

/// Returns the gain from reading a page again at time `now`, in days; `usual` is the rate of pages without observations.
/// The age of pages without times is assumed to be 30 days divided by the number of visits.
pub(super) fn gain_now(importance: f64, fetches: &Fetches, now: Option<Time>, usual: f64) -> f64 {
    let age = match (now, fetches.last) {
        (Some(now), Some(then)) => (now.saturating_sub(then).max(0) as f64 / DAY).max(1e-3),
        _ => 30.0 / fetches.visits.max(1) as f64,
    };
    gain(importance, Looks::of(fetches).rate(usual), age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::BestItems;
    use crate::schedule::ScoredPage;

    /// Returns the share of time that a page is fresh, if it changes at `rate` and is read `reads` times, both per unit
    /// of time.
    fn freshness(rate: f64, reads: f64) -> f64 {
        match (rate > 0.0, reads > 0.0) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => reads / rate * -libm::expm1(-rate / reads),
        }
    }

    /// Returns the reads of each page that keep the most weight fresh, `budget` of them in all: pages are (weight,
    /// rate).
    fn allocate(pages: &[(f64, f64)], budget: f64) -> Vec<f64> {
        let reads = |least: f64| -> Vec<f64> {
            let each = pages
                .iter()
                .map(|&(weight, rate)| reads_at(weight, rate, least));
            each.collect()
        };
        // The gain of the last read, equal for all: a smaller budget demands more.
        let most = pages.iter().filter(|page| page.1 > 0.0);
        let mut high = most.map(|(weight, rate)| weight / rate).fold(0.0, f64::max);
        let mut low = 0.0;
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if reads(middle).iter().sum::<f64>() > budget {
                low = middle
            } else {
                high = middle
            }
        }
        reads(high)
    }

    /// Returns how often a page must be read so that one more read gains `least`.
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
            if gain(weight, rate, middle) < least {
                short = middle
            } else {
                long = middle
            }
        }
        1.0 / long
    }

    /// The gain of one more read is the derivative of freshness, and equal for all pages read.
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

    /// A rate that differs from the usual one is found with many observations; a few leave the usual one in place.
    #[test]
    fn a_page_is_like_others_until_its_looks_say_more() {
        let looks = |compared, changed| Looks {
            compared,
            changed,
            days: compared as f64,
        };
        assert_eq!(Looks::default().rate(0.25), 0.25);
        for (compared, changed) in [(1, 0), (5, 0), (1, 1), (5, 5)] {
            let rate = looks(compared, changed).rate(0.25);
            assert!(rate > 0.0 && rate.is_finite());
            assert_eq!(rate < 0.25, changed == 0, "{compared} {changed}: {rate}");
        }
        // The more observations, the closer to the estimate from them alone.
        let alone = change_rate(2000, 400, 1.0);
        assert!((looks(2000, 400).rate(0.01) - alone).abs() < 1e-3);
        let mut all = Looks::default();
        all.add(looks(1000, 0));
        all.add(looks(1000, 300));
        assert!((all.usual_rate() - change_rate(2000, 300, 1.0)).abs() < 1e-12);
        assert_eq!(Looks::default().usual_rate(), 1.0 / 60.0);
    }

    /// Simulates pages that change at random at hidden rates, some of which are read every day: returns the share of
    /// weight that is fresh over the second half of the time.
    fn simulated(pages: &[(f64, f64)], budget: usize, order: &mut Order<'_>) -> f64 {
        let mut random = 12_345u64;
        let mut uniform = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        let days = 4_000;
        let mut fresh = vec![true; pages.len()];
        let mut seen = vec![(0i64, Looks::default()); pages.len()];
        let (mut sum, weight) = (0.0, pages.iter().map(|page| page.0).sum::<f64>());
        for day in 1..days {
            for (page, &(_, rate)) in pages.iter().enumerate() {
                fresh[page] &= uniform() >= -(-rate).exp_m1();
            }
            for page in order(day, &seen, budget) {
                let (last, looks) = &mut seen[page as usize];
                looks.compared += 1;
                looks.changed += u64::from(!fresh[page as usize]);
                looks.days += (day - *last) as f64;
                (*last, fresh[page as usize]) = (day, true);
            }
            if day > days / 2 {
                let each = pages.iter().zip(&fresh).filter(|(_, fresh)| **fresh);
                sum += each.map(|(page, _)| page.0).sum::<f64>();
            }
        }
        sum / (days - 1 - days / 2) as f64 / weight
    }

    type Order<'a> = dyn FnMut(i64, &[(i64, Looks)], usize) -> Vec<u32> + 'a;

    /// The order keeps as much weight fresh as the best allocation with known rates, and so more than reading all pages
    /// equally often, or each as often as it changes.
    #[test]
    fn more_is_fresh_than_by_uniform_refetching() {
        // Rates from 0.002 to 2 per day, weights independent of them.
        let pages: Vec<(f64, f64)> = (0..200)
            .map(|n| {
                let rate = 0.002 * 1000f64.powf(f64::from(n) / 199.0);
                (1.0 / f64::from(1 + n * 77 % 200), rate)
            })
            .collect();
        let budget = 10;
        let weight: f64 = pages.iter().map(|page| page.0).sum();
        // Pages change and are read once a day here, so a page read every k days is fresh for the mean of q^1 .. q^(k -
        // 1) and 1, with q = exp(-rate).
        let fresh = |rate: f64, reads: f64| {
            if reads > 0.0 {
                (1.0 - (-rate / reads).exp()) * reads / (1.0 - (-rate).exp())
            } else {
                0.0
            }
        };
        let share = |reads: &[f64]| {
            let each = pages.iter().zip(reads);
            let fresh = each.map(|(&(weight, rate), &reads)| weight * fresh(rate, reads.min(1.0)));
            fresh.sum::<f64>() / weight
        };
        let best = share(&allocate(&pages, budget as f64));
        let uniform = share(&[budget as f64 / 200.0; 200]);
        let rates: f64 = pages.iter().map(|page| page.1).sum();
        let proportional: Vec<f64> = pages
            .iter()
            .map(|page| budget as f64 * page.1 / rates)
            .collect();
        let proportional = share(&proportional);
        let found = simulated(&pages, budget, &mut |day, seen, count| {
            let mut all = Looks::default();
            seen.iter().for_each(|(_, looks)| all.add(*looks));
            let reads = seen.iter().zip(&pages).zip(0..);
            let reads = reads.map(|(((last, looks), page), number)| {
                let fetches = Fetches {
                    visits: 1 + looks.compared,
                    last: Some(last * 86_400),
                    compared: looks.compared,
                    changed: looks.changed,
                    watched_s: looks.days as u64 * 86_400,
                    ..Fetches::default()
                };
                let gain = gain_now(page.0, &fetches, Some(day * 86_400), all.usual_rate());
                (number, gain)
            });
            let mut best = BestItems::new(count);
            reads.for_each(|(page, gain)| {
                best.add(ScoredPage::new(page, gain), ScoredPage::best_first);
            });
            let best = best.finish(ScoredPage::best_first).into_iter();
            best.map(|scored| scored.page).collect()
        });
        let alike = simulated(&pages, budget, &mut |day, _, count| {
            let first = day as u32 * count as u32;
            (first..first + count as u32)
                .map(|page| page % 200)
                .collect()
        });
        assert!((alike - uniform).abs() < 0.03, "{alike} {uniform}");
        assert!(found > best - 0.05, "{found} of {best}");
        assert!(
            found > uniform + 0.05 && found > proportional + 0.5,
            "{found} {uniform} {proportional}"
        );
    }

    /// 1,000 visits, a day apart, to a page that changes at 0.3 per day find a change at 1 - exp(-0.3) of them.
    #[test]
    fn the_rate_of_change_is_recovered() {
        let found = (1000.0 * (1.0 - (-0.3f64).exp())).round() as u64;
        assert!((change_rate(1000, found, 1.0) - 0.3).abs() < 2e-3);
        assert!(change_rate(5, 5, 1.0).is_finite());
        assert_eq!(change_rate(5, 0, 1.0), 0.0);
    }
}
