//! Processor time that was spent: by it background work is held to its share, also where other programs keep it waiting.
//! Only Linux tells.

use std::time::Duration;

/// By this thread; `None`: not known.
pub fn by_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// By all threads of this process, those that ended too; `None`: not known.
pub fn by_process() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have anything in it; its bracket is the last one.
    let (_, fields) = text.rsplit_once(')')?;
    let mut ticks = fields.split_ascii_whitespace().skip(11);
    let mut tick = || ticks.next()?.parse::<u64>().ok();
    // Linux counts these in hundredths of a second, whatever its clock does.
    Some(Duration::from_millis(10 * (tick()? + tick()?)))
}

/// By the threads of this process that there are now, with the time that they waited for a processor; `None`: not known.
pub fn wanted_by_process() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let mut times = text.split_ascii_whitespace();
        let mut time = || times.next()?.parse::<u64>().ok();
        Some(time()? + time()?)
    };
    // A thread may end meanwhile.
    let times = threads.filter_map(|thread| of_thread(thread.ok()?));
    Some(Duration::from_nanos(times.sum()))
}

/// By this thread since `before`, or the time that passed, `elapsed`, where that is not known.
pub fn since(before: Option<Duration>, elapsed: Duration) -> Duration {
    let spent = before.zip(by_thread());
    spent.map_or(elapsed, |(before, now)| now.saturating_sub(before))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Work is counted, waiting is not.
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
