//! Thread pool: one thread from the start, and further ones up to a limit while jobs wait. If no more can be started,
//! the existing ones do the work. Idle threads end, so that other work of the process can have threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

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
    sender: Sender<Job>,
    jobs: Receiver<Job>,
    counts: Arc<PoolCounts>,
    most: usize,
    /// Each thread has a clone; nothing is ever sent.
    alive: Sender<()>,
    end: Receiver<()>,
}

#[derive(Default)]
struct PoolCounts {
    threads: AtomicUsize,
    /// Number of jobs that run or wait.
    jobs: AtomicUsize,
}

impl Pool {
    /// Creates a pool of at most `most` threads.
    ///
    /// # Errors
    /// Errors of [`start`] if there cannot be a single thread.
    pub(crate) fn new(most: usize) -> io::Result<Pool> {
        let (sender, jobs) = unbounded();
        let (alive, end) = unbounded();
        let pool = Pool {
            sender,
            jobs,
            counts: Arc::default(),
            most,
            alive,
            end,
        };
        pool.add(None)?;
        Ok(pool)
    }

    /// Runs a job as soon as a thread is free. A panic is printed and otherwise ignored.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let jobs = self.counts.jobs.fetch_add(1, Ordering::SeqCst) + 1;
        // The pool has a receiver, so sending cannot fail.
        let _ = self.sender.send(Box::new(job));
        let threads = self.counts.threads.load(Ordering::SeqCst);
        if jobs > threads && threads < self.most {
            // If that fails, the job waits for one of the existing threads.
            let _ = self.add(Some(IDLE));
        }
    }

    /// Returns a handle for waiting until the pool has ended.
    pub(crate) fn ending(&self) -> PoolEnd {
        PoolEnd(self.end.clone())
    }

    /// Starts a thread, which ends when it was idle for this time.
    fn add(&self, idle: Option<Duration>) -> io::Result<()> {
        let (jobs, counts, alive) = (self.jobs.clone(), self.counts.clone(), self.alive.clone());
        self.counts.threads.fetch_add(1, Ordering::SeqCst);
        let started = start("answer", move || {
            let next = || match idle {
                None => jobs.recv().ok(),
                Some(idle) => jobs.recv_timeout(idle).ok(),
            };
            loop {
                while let Some(job) = next() {
                    // A panic drops the job's sender, so the receiver of the result notices.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    counts.jobs.fetch_sub(1, Ordering::SeqCst);
                }
                counts.threads.fetch_sub(1, Ordering::SeqCst);
                // A job that was sent meanwhile may count on this thread.
                if jobs.is_empty() {
                    break;
                }
                counts.threads.fetch_add(1, Ordering::SeqCst);
            }
            drop(alive);
        });
        if started.is_err() {
            self.counts.threads.fetch_sub(1, Ordering::SeqCst);
        }
        started.map(drop)
    }
}

/// Handle for waiting until a pool's threads have ended.
pub struct PoolEnd(Receiver<()>);

impl PoolEnd {
    /// Waits for the end, but not after `latest`.
    pub(crate) fn wait_until(&self, latest: Instant) {
        let _ = self.0.recv_deadline(latest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
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
        let threads = || pool.counts.threads.load(Ordering::SeqCst);
        assert_eq!(threads(), 3);
        (0..3).for_each(|_| go_on.send(()).unwrap());
        let begun = Instant::now();
        while threads() > 1 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        // The first thread still takes jobs.
        let (started, starts) = channel();
        pool.run(move || started.send(()).unwrap());
        starts.recv_timeout(PATIENCE).unwrap();
        assert_eq!(threads(), 1);
    }
}
