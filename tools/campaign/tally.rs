//! What a campaign counts, and how it is printed.

use std::ops::AddAssign;
use std::time::Duration;

/// Counts of one part.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Power cuts and kills.
    pub cuts: u64,
    /// Of those: during or after a recovery from another one.
    pub cuts_again: u64,
    /// Failed operations, flipped bits, full disks.
    pub faults: u64,
    /// Runs that went on afterwards and ended as if nothing had happened.
    pub survivors: u64,
    /// Distinct disks that they went on from, where they were counted.
    pub disks: u64,
    /// Longest time from a start until the work went on.
    pub slowest: Duration,
    /// What went wrong, and how to see it again.
    pub failures: Vec<String>,
}

impl Tally {
    /// Of a part that could not even begin.
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

/// Does `work` for 0..n, spread over all processors, two at a time on each: a run's own threads wait
/// for one another. The sum.
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

/// An error as text.
pub fn as_text(error: impl ToString) -> String {
    error.to_string()
}
