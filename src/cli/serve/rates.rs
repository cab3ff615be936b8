//! Records per second over the time of an ingest, kept for whoever opens the status page later.
//!
//! At most [`MOST`] samples are kept. When this number is reached, every second one is dropped and the interval
//! doubles.

use std::time::Duration;

use cashrank_serve::Rate;

/// Maximum number of samples.
const MOST: usize = 240;
/// Initial interval between samples.
const EVERY: Duration = Duration::from_secs(1);

/// Samples of a count over time.
pub struct Rates {
    every: Duration,
    samples: Vec<(Duration, u64)>,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            every: EVERY,
            samples: vec![(Duration::ZERO, 0)],
        }
    }
}

impl Rates {
    /// Adds a sample: `records` were read by the time `at` since the start. Ignored if the last sample is too recent.
    pub fn add(&mut self, at: Duration, records: u64) {
        let is_due = |last: &(Duration, u64)| at >= last.0 + self.every;
        if !self.samples.last().is_some_and(is_due) {
            return;
        }
        if self.samples.len() == MOST {
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
        }
        self.samples.push((at, records));
    }

    /// Returns the mean rate between each two adjacent samples.
    pub fn rates(&self) -> Vec<Rate> {
        let rate = |two: &[(Duration, u64)]| {
            let [(from, before), (to, records)] = [two[0], two[1]];
            Rate {
                seconds: to.as_secs_f64(),
                records_per_second: (records - before) as f64 / (to - from).as_secs_f64(),
            }
        };
        self.samples.windows(2).map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a steady rate every mean is that rate, however often samples were thinned out.
    #[test]
    fn a_steady_rate_stays_so() {
        let mut rates = Rates::default();
        for tenth in 1..=20_000_u64 {
            rates.add(Duration::from_millis(100 * tenth), 7 * tenth);
            assert!(rates.samples.len() <= MOST);
        }
        let found = rates.rates();
        assert!(found.len() > MOST / 4, "{}", found.len());
        for rate in &found {
            assert!((rate.records_per_second - 70.0).abs() < 1e-9, "{rate:?}");
        }
        assert!(found.is_sorted_by(|a, b| a.seconds < b.seconds));
        let last = found.last().map(|rate| rate.seconds);
        assert!(last.is_some_and(|last| last > 1_980.0), "{last:?}");
    }
}
