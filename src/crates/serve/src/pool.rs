//! Thread pool: one thread from the start, and further ones up to a limit while jobs wait. If no more can be started,
//! the existing ones do the work. Idle threads end, so that other work of the process can have threads.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Starts a thread that the service needs.
///
/// # Errors
/// `WouldBlock` if none can be started, with advice.
pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let started = Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| {
        let what = format!(
            "{error}; the service takes 2 threads beside those of the command, and 2 more with a frontier: raise the limit of processes \
             (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
        );
        io::Error::new(io::ErrorKind::WouldBlock, what)
    })
}

/// Time for which a thread other than the first waits for a job before it ends.
const IDLE: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// Pool of threads. On drop the threads end after all jobs.
pub(crate) struct Pool {
    shared: Arc<PoolShared>,
    most: usize,
}

#[derive(Default)]
struct PoolShared {
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Number of threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

impl Pool {
    /// Creates a pool of at most `most` threads.
    ///
    /// # Errors
    /// Errors of [`start`] if there cannot be a single thread.
    pub(crate) fn new(most: usize) -> io::Result<Pool> {
        let shared = Arc::<PoolShared>::default();
        shared.add(&mut shared.state())?;
        Ok(Pool { shared, most })
    }

    /// Runs a job as soon as a thread is free. A panic is printed and otherwise ignored.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state();
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() > state.idle && state.threads < self.most {
            // If that fails, the job waits for one of the existing threads.
            let _ = self.shared.add(&mut state);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Returns a handle for waiting until the pool has ended.
    pub(crate) fn ending(&self) -> PoolEnd {
        PoolEnd(self.shared.clone())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl PoolShared {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts another thread.
    fn add(self: &Arc<PoolShared>, state: &mut PoolState) -> io::Result<()> {
        let shared = self.clone();
        start("answer", move || shared.work())?;
        state.threads += 1;
        Ok(())
    }

    fn work(&self) {
        let mut state = self.state();
        let mut is_late = false;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A panic drops the job's sender, so the receiver of the result notices.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.state();
                is_late = false;
            } else if state.is_closed || is_late && state.threads > 1 {
                break;
            } else {
                state.idle += 1;
                let most = if state.threads > 1 {
                    IDLE
                } else {
                    Duration::MAX
                };
                let waited = self.changed.wait_timeout(state, most);
                let waited = waited.unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                is_late = waited.1.timed_out();
                state.idle -= 1;
            }
        }
        state.threads -= 1;
        self.changed.notify_all();
    }
}

/// Handle for waiting until a pool's threads have ended.
pub struct PoolEnd(Arc<PoolShared>);

impl PoolEnd {
    /// Waits for the end, but not after `latest`.
    pub(crate) fn wait_until(&self, latest: Instant) {
        let left = latest.saturating_duration_since(Instant::now());
        let state = self.0.state();
        let still = |state: &mut PoolState| state.threads > 0;
        drop(self.0.changed.wait_timeout_while(state, left, still));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Maximum duration of any step in these tests.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn so_many_jobs_run_at_once() {
        let pool = Pool::new(3).unwrap();
        let ending = pool.ending();
        let (started, starts) = channel();
        let (go_on, gone_on) = channel();
        let gone_on = Arc::new(Mutex::new(gone_on));
        for number in 0..5 {
            let (started, gone_on) = (started.clone(), gone_on.clone());
            pool.run(move || {
                started.send(number).unwrap();
                gone_on.lock().unwrap().recv().unwrap();
                assert!(number != 1, "as it should be: a job that panics");
            });
        }
        // Each job waits for its signal; the others wait for a thread, in order.
        let mut begun: Vec<i32> = (0..3)
            .map(|_| starts.recv_timeout(PATIENCE).unwrap())
            .collect();
        begun.sort_unstable();
        assert_eq!(begun, [0, 1, 2]);
        assert!(starts.recv_timeout(Duration::from_millis(50)).is_err());
        for number in 3..5 {
            go_on.send(()).unwrap();
            assert_eq!(starts.recv_timeout(PATIENCE).unwrap(), number);
        }
        // Threads end after their jobs.
        drop(pool);
        let begun = Instant::now();
        ending.wait_until(begun + Duration::from_millis(50));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        (0..3).for_each(|_| go_on.send(()).unwrap());
        ending.wait_until(begun + PATIENCE);
        assert!(begun.elapsed() < PATIENCE);
    }

    /// Regression: idle threads were kept, so that other work of the process could not start any.
    #[test]
    fn threads_without_jobs_end_but_the_first() {
        let pool = Pool::new(3).unwrap();
        let (go_on, gone_on) = channel::<()>();
        let gone_on = Arc::new(Mutex::new(gone_on));
        for _ in 0..3 {
            let gone_on = gone_on.clone();
            pool.run(move || gone_on.lock().unwrap().recv().unwrap());
        }
        assert_eq!(pool.shared.state().threads, 3);
        (0..3).for_each(|_| go_on.send(()).unwrap());
        let begun = Instant::now();
        while pool.shared.state().threads > 1 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        // The first thread still takes jobs.
        let (started, starts) = channel();
        pool.run(move || started.send(()).unwrap());
        starts.recv_timeout(PATIENCE).unwrap();
        assert_eq!(pool.shared.state().threads, 1);
    }
}
