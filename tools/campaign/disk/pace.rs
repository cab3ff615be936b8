//! Random durations of operations, so that concurrent commands interleave differently each time.

use std::time::Duration;

use crate::crawl::Dice;

/// Source of durations.
pub(super) struct Pace(pub Dice);

impl Pace {
    /// Returns the next duration: mostly next to nothing, sometimes long enough for several operations of another
    /// thread.
    pub fn next(&mut self) -> Duration {
        match self.0.roll(16) {
            0 => Duration::from_micros(self.0.roll(400)),
            1..4 => Duration::from_micros(1),
            _ => Duration::ZERO,
        }
    }

    pub fn wait(time: Duration) {
        if !time.is_zero() {
            std::thread::sleep(time);
        }
    }
}
