//! Thread pool, whose threads all exist from the start.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Starts a thread that the service needs. Fails with `WouldBlock`, and with advice, if it cannot be started.
pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let started = Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| {
        let what = format!(
            "{error}; the service takes 3 threads beside those of the command, and 3 more with a frontier: raise the limit of processes \
             (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
        );
        io::Error::new(io::ErrorKind::WouldBlock, what)
    })
}

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Starts threads that run jobs as they come; a job's panic is printed and otherwise ignored. The threads end after all
/// jobs, once every sender is dropped. Fails like [`start`] if one of the threads cannot be started.
pub(crate) fn pool(threads: usize) -> io::Result<(Sender<Job>, PoolEnd)> {
    let (jobs, waiting) = unbounded::<Job>();
    let (alive, end) = unbounded();
    for _ in 0..threads {
        let (waiting, alive) = (waiting.clone(), alive.clone());
        start("answer", move || {
            for job in waiting {
                // A panic drops the job's sender, so the receiver of the result notices.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
            drop(alive);
        })?;
    }
    Ok((jobs, PoolEnd(end)))
}

/// Handle for waiting until a pool's threads have ended: then its channel is disconnected. Nothing is ever sent on it.
#[derive(Clone)]
pub struct PoolEnd(Receiver<()>);

impl PoolEnd {
    /// Waits for the end, but not after `latest`.
    pub(crate) fn wait_until(&self, latest: Instant) {
        let _ = self.0.recv_deadline(latest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    /// Maximum duration of any step in these tests.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn so_many_jobs_run_at_once() {
        let (jobs, ending) = pool(3).unwrap();
        let (started, starts) = channel();
        let (go_on, gone_on) = channel();
        let gone_on = Arc::new(Mutex::new(gone_on));
        for number in 0..5 {
            let (started, gone_on) = (started.clone(), gone_on.clone());
            let job = move || {
                started.send(number).unwrap();
                gone_on.lock().unwrap().recv().unwrap();
                assert!(number != 1, "as it should be: a job that panics");
            };
            jobs.send(Box::new(job)).unwrap();
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
        drop(jobs);
        let begun = Instant::now();
        ending.wait_until(begun + Duration::from_millis(50));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        (0..3).for_each(|_| go_on.send(()).unwrap());
        ending.wait_until(begun + PATIENCE);
        assert!(begun.elapsed() < PATIENCE);
    }
}
