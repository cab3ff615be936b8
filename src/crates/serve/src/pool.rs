//! The threads that jobs run on: one from the beginning and, while jobs wait, more, up to a limit. Where no more can be
//! started, those that there are do the work; those that have none leave their place to other work of the process.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Starts a thread that the service cannot do without.
///
/// # Errors
/// `WouldBlock`: none can be started; and what to do.
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

/// How long a thread beside the first waits for a job.
const IDLE: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// Threads, which end when this is dropped, after all jobs.
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
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

impl Pool {
    /// Of so many threads at most.
    ///
    /// # Errors
    /// As of [`start`]: there is not even one.
    pub(crate) fn new(most: usize) -> io::Result<Pool> {
        let shared = Arc::<PoolShared>::default();
        shared.add(&mut shared.state())?;
        Ok(Pool { shared, most })
    }

    /// Does a job as soon as there is a thread for it. A panic is printed, and that is all.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state();
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() > state.idle && state.threads < self.most {
            // Else it waits for one of those that there are.
            let _ = self.shared.add(&mut state);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// To wait for its end.
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

    /// Starts one more.
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
                // Whoever waits for the result sees that there will be none.
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

/// The end of a pool's threads.
pub struct PoolEnd(Arc<PoolShared>);

impl PoolEnd {
    /// Waits for it, but not beyond that time.
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

    /// How long anything here may take.
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
        // Each waits to be let go on; the others wait for a thread, in their order.
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

    /// They kept the places that other work of the process waited for.
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
        // The first still takes jobs.
        let (started, starts) = channel();
        pool.run(move || started.send(()).unwrap());
        starts.recv_timeout(PATIENCE).unwrap();
        assert_eq!(pool.shared.state().threads, 1);
    }
}
