//! Processor time used, which limits background work to its share even if other programs delay it. Known on Linux only.

use std::time::Duration;

/// Returns the processor time of this thread; `None` if unknown.
pub fn by_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Returns the processor time of all threads of this process, including those that have ended; `None` if unknown.
pub fn by_process() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may contain brackets; the last one ends it.
    let (_, fields) = text.rsplit_once(')')?;
    let mut ticks = fields.split_ascii_whitespace().skip(11);
    let mut tick = || ticks.next()?.parse::<u64>().ok();
    // Linux counts in hundredths of a second, whatever the frequency of its timer.
    Some(Duration::from_millis(10 * (tick()? + tick()?)))
}

/// Returns the processor time of the current threads of this process, plus the time that they waited for a processor;
/// `None` if unknown.
pub fn wanted_by_process() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let mut times = text.split_ascii_whitespace();
        let mut time = || times.next()?.parse::<u64>().ok();
        Some(time()? + time()?)
    };
    // A thread may end in the meantime.
    let times = threads.filter_map(|thread| of_thread(thread.ok()?));
    Some(Duration::from_nanos(times.sum()))
}

/// Returns the processor time of this thread since `before`; if unknown, the elapsed time.
pub fn since(before: Option<Duration>, elapsed: Duration) -> Duration {
    let spent = before.zip(by_thread());
    spent.map_or(elapsed, |(before, now)| now.saturating_sub(before))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Work counts, waiting does not.
    #[test]
    fn a_thread_spends_what_it_works() {
        let before = by_thread().unwrap();
        let of_all = by_process().unwrap();
        let mut sum = 0u64;
        while by_thread().unwrap() < before + Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(by_process().unwrap() >= of_all + Duration::from_millis(20));
        assert!(wanted_by_process().unwrap() >= Duration::from_millis(50));
        let worked = by_thread();
        std::thread::sleep(Duration::from_millis(200));
        let waited = since(worked, Duration::from_secs(1));
        assert!(waited < Duration::from_millis(150), "{waited:?}");
        assert_eq!(since(None, Duration::from_secs(1)), Duration::from_secs(1));
    }
}
