//! Counts of a campaign, and their output.

use std::ops::AddAssign;
use std::time::Duration;

/// Counts of one part.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of power cuts and kills.
    pub cuts: u64,
    /// Number of these during or after a recovery from another one.
    pub cuts_again: u64,
    /// Number of failed operations, flipped bits, full disks.
    pub faults: u64,
    /// Number of runs that continued and ended like an undisturbed run.
    pub survivors: u64,
    /// Number of distinct disks from which they continued, where counted.
    pub disks: u64,
    /// Longest time from a start until the work continued.
    pub slowest: Duration,
    /// Failures, with instructions to reproduce them.
    pub failures: Vec<String>,
}

impl Tally {
    /// Returns the tally of a part that could not even begin.
    pub fn of_failure(what: String) -> Tally {
        Tally {
            failures: vec![what],
            ..Tally::default()
        }
    }

    pub fn survived(&mut self, recovery: Duration) {
        self.survivors += 1;
        self.slowest = self.slowest.max(recovery);
    }

    /// Counts a success, or notes the failure with its story.
    pub fn judge(&mut self, result: Result<(), String>, story: impl FnOnce() -> String) -> bool {
        match result {
            Ok(()) => true,
            Err(what) => {
                self.failures.push(format!("{}: {what}", story()));
                false
            }
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.cuts += other.cuts;
        self.cuts_again += other.cuts_again;
        self.faults += other.faults;
        self.survivors += other.survivors;
        self.disks += other.disks;
        self.slowest = self.slowest.max(other.slowest);
        self.failures.extend(other.failures);
    }
}

/// Runs `work` for 0..n, spread over all processors, two at a time on each, since a run's own threads wait for one
/// another. Returns the sum.
pub fn spread(n: u64, work: impl Fn(u64) -> Tally + Sync) -> Tally {
    let next = std::sync::atomic::AtomicU64::new(0);
    let threads = 2 * std::thread::available_parallelism().map_or(1, |n| n.get());
    let part = || {
        let mut sum = Tally::default();
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if at >= n || sum.failures.len() > 20 {
                return sum;
            }
            sum += work(at);
        }
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|_| scope.spawn(part)).collect();
        let mut sum = Tally::default();
        for part in parts {
            match part.join() {
                Ok(part) => sum += part,
                Err(_) => sum.failures.push("a thread of the campaign failed".into()),
            }
        }
        sum
    })
}

/// Formats an error.
pub fn as_text(error: impl ToString) -> String {
    error.to_string()
}
