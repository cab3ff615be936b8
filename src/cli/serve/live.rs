//! Counters that a running ingest shares with the service, updated with every report of progress.

use std::sync::Mutex;
use std::time::Duration;

use cashrank_base::threads::lock;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::ProgressReport;

const OVER_LINKS: &str = "kept links";
/// Maximum number of rates. When it is reached, every second sample is dropped and the interval doubles.
const RATES: usize = 240;
const RATE_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct LiveIngest {
    now: Mutex<Option<IngestState>>,
    rates: Mutex<Rates>,
}

#[derive(Clone, Default)]
pub struct IngestState {
    pub reading: IngestStatus,
    pub counters: Counters,
    pub pages: u64,
}

/// Progress of a running ingest as JSON. Inputs and passes count from 1, records and links from the ingest's start.
#[derive(Clone, Default, serde::Serialize)]
pub struct IngestStatus {
    input: String,
    input_number: usize,
    inputs: usize,
    pass: u32,
    passes: u32,
    /// Number of compressed bytes read of the input.
    read_bytes: u64,
    input_bytes: Option<u64>,
    seconds: f64,
    records: u64,
    links: u64,
    rates: Vec<Rate>,
}

/// Mean number of records per second over an interval, which ends `seconds` after the ingest began.
#[derive(Clone, serde::Serialize)]
struct Rate {
    seconds: f64,
    records_per_second: f64,
}

impl LiveIngest {
    /// Returns the latest state, with the rates so far; `None` before the first report.
    pub fn now(&self) -> Option<IngestState> {
        let mut now = lock(&self.now).clone()?;
        now.reading.rates = lock(&self.rates).rates();
        Some(now)
    }

    /// Takes a report of an ingest that has run for `elapsed` and has read these records and links.
    pub fn put(
        &self,
        report: &ProgressReport<'_>,
        elapsed: Duration,
        (records, links): (u64, u64),
    ) {
        let reading = IngestStatus {
            input: report
                .input
                .map_or_else(|| OVER_LINKS.into(), ToString::to_string),
            input_number: report.input_index + 1,
            inputs: report.inputs,
            pass: report.pass,
            passes: report.repeat,
            read_bytes: report.input.map_or(0, |_| report.done),
            input_bytes: report.input.and(report.length),
            seconds: elapsed.as_secs_f64(),
            records,
            links,
            rates: Vec::new(),
        };
        lock(&self.rates).add(elapsed, records);
        *lock(&self.now) = Some(IngestState {
            reading,
            counters: report.counters.clone(),
            pages: report.pages,
        });
    }
}

struct Rates {
    every: Duration,
    samples: Vec<(Duration, u64)>,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            every: RATE_EVERY,
            samples: vec![(Duration::ZERO, 0)],
        }
    }
}

impl Rates {
    /// Adds a sample: `records` were read by the time `at` since the start. Ignored if the last sample is too recent.
    fn add(&mut self, at: Duration, records: u64) {
        let is_due = |last: &(Duration, u64)| at >= last.0 + self.every;
        if !self.samples.last().is_some_and(is_due) {
            return;
        }
        if self.samples.len() == RATES {
            thin(&mut self.samples);
            self.every *= 2;
        }
        self.samples.push((at, records));
    }

    fn rates(&self) -> Vec<Rate> {
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

pub fn thin<T>(course: &mut Vec<T>) {
    let mut is_kept = false;
    course.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
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
            assert!(rates.samples.len() <= RATES);
        }
        let found = rates.rates();
        assert!(found.len() > RATES / 4, "{}", found.len());
        for rate in &found {
            assert!((rate.records_per_second - 70.0).abs() < 1e-9);
        }
        assert!(found.is_sorted_by(|a, b| a.seconds < b.seconds));
        let last = found.last().map(|rate| rate.seconds);
        assert!(last.is_some_and(|last| last > 1_980.0), "{last:?}");
    }
}
