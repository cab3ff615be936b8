//! Delays at the hand-overs between threads, drawn from a seed ([`Job::delays`](crate::ingest::Job::delays)).
//!
//! Results must not depend on which thread is faster. What a fast machine hides for years, and a busy one shows
//! once, these show at will: every thread of a pipeline is made fast or slow as a whole, and pauses before it hands
//! something on. Without a seed nothing waits.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longest pauses of a thread, in microseconds: one of them for each.
const LONGEST: [u64; 3] = [0, 100, 1_000];

/// The random source of a pipeline's delays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays(Option<u64>);

impl Delays {
    /// Those of the `turn`th pipeline.
    pub fn new(seed: Option<u64>, turn: u64) -> Delays {
        Delays(seed.map(|seed| xxh3_64_with_seed(&turn.to_le_bytes(), seed)))
    }

    /// Those of one of its threads.
    pub fn of_thread(self, thread: u64) -> Pauses {
        let state = self
            .0
            .map_or(0, |seed| xxh3_64_with_seed(&thread.to_le_bytes(), seed ^ 1));
        let longest = self
            .0
            .map_or(0, |_| LONGEST[(state % LONGEST.len() as u64) as usize]);
        Pauses { state, longest }
    }
}

/// The pauses of a thread.
#[derive(Debug)]
pub(crate) struct Pauses {
    state: u64,
    /// In microseconds; 0: none.
    longest: u64,
}

impl Pauses {
    /// To be called before a hand-over.
    #[inline]
    pub fn pause(&mut self) {
        if self.longest > 0 {
            self.state = xxh3_64_with_seed(&[], self.state);
            std::thread::sleep(Duration::from_micros(self.state % self.longest));
        }
    }
}
