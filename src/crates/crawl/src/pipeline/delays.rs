//! Delays at the hand-overs between threads, drawn from a seed
//! ([`IngestJob::delays`](crate::ingest::IngestJob::delays)).
//!
//! Results must not depend on which thread is faster. Delays expose races that a fast machine hides for years: every
//! thread of a pipeline is fast or slow as a whole, and pauses before it hands something on. Without a seed nothing
//! waits.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum pause in microseconds; each thread gets one of these.
const LONGEST: [u64; 3] = [0, 100, 1_000];

/// Pauses of a thread.
#[derive(Debug)]
pub struct Pauses {
    state: u64,
    /// Maximum in microseconds; 0: none.
    longest: u64,
}

impl Pauses {
    /// Returns the pauses of a thread of the `turn`th pipeline.
    pub fn of_thread(seed: Option<u64>, turn: u64, thread: u64) -> Pauses {
        let state = seed.map(|seed| {
            let seed = xxh3_64_with_seed(&turn.to_le_bytes(), seed);
            xxh3_64_with_seed(&thread.to_le_bytes(), seed ^ 1)
        });
        Pauses {
            state: state.unwrap_or(0),
            longest: state.map_or(0, |state| LONGEST[(state % LONGEST.len() as u64) as usize]),
        }
    }

    /// Pauses; called before a hand-over.
    #[inline]
    pub fn pause(&mut self) {
        if self.longest > 0 {
            self.state = xxh3_64_with_seed(&[], self.state);
            std::thread::sleep(Duration::from_micros(self.state % self.longest));
        }
    }
}
