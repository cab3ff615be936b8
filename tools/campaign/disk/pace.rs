//! A disk whose operations take random times, so that commands at once meet in another order each time.

use std::time::Duration;

use crate::crawl::Dice;

/// Draws how long each operation takes.
pub(super) struct Pace(pub Dice);

impl Pace {
    /// Most operations take next to no time; some long enough for another thread's next ones.
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
