//! Slow work, away from the thread that serves all clients: a bounded number of jobs run and wait, and further ones are
//! refused.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Semaphore, oneshot};

use crate::{Problem, Result, ServiceLimits};

/// Interval at which the end of jobs is looked for.
const END_PAUSE: Duration = Duration::from_millis(5);

/// Workers for a bounded number of jobs, each on a thread that may block.
#[derive(Clone)]
pub struct Workers {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    jobs: Sender<Job>,
    time: Duration,
    /// Number of jobs that may run or wait.
    most: usize,
}

impl Workers {
    /// Starts the threads. They end once these workers, and all copies of them, are dropped; a job's panic is printed and
    /// otherwise ignored. Fails like [`start_thread`].
    pub fn new(limits: &ServiceLimits) -> io::Result<Workers> {
        let (jobs, waiting) = unbounded::<Job>();
        for _ in 0..limits.workers {
            let waiting = waiting.clone();
            start_thread("answer", move || {
                for job in waiting {
                    // A panic drops the job's sender, so the receiver of the result notices.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            })?;
        }
        let most = limits.workers + limits.waiting;
        Ok(Workers {
            admitted: Arc::new(Semaphore::new(most)),
            running: Arc::new(Semaphore::new(limits.workers)),
            jobs,
            time: limits.answer_time,
            most,
        })
    }

    /// Waits until no job runs or waits, but not after `latest`.
    pub(crate) fn wait_until(&self, latest: Instant) {
        while self.admitted.available_permits() < self.most && Instant::now() < latest {
            sleep(END_PAUSE);
        }
    }

    /// Runs a job. After its time limit it continues and keeps its place, but nobody waits for it. Fails with the job's
    /// error, or with [`Problem::Later`] if too many jobs wait or the time is up.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Ok(admitted) = self.admitted.clone().try_acquire_owned() else {
            return Err(Problem::Later(
                "too many requests are waiting for an answer".into(),
            ));
        };
        let running = self.running.clone();
        let work = async move {
            // A job whose time is up while it waits gives its place to another one.
            let place = running.acquire_owned().await;
            let (sender, receiver) = oneshot::channel();
            let job = move || {
                // The caller may have stopped waiting.
                if !sender.is_closed() {
                    let done = job();
                    // If the job panics, these are dropped, too.
                    drop((place, admitted));
                    let _ = sender.send(done);
                }
            };
            // The threads receive as long as this sender exists, so sending cannot fail.
            let _ = self.jobs.send(Box::new(job));
            receiver
                .await
                .unwrap_or_else(|_| Err(Problem::Failed("looking for the answer failed".into())))
        };
        tokio::time::timeout(self.time, work)
            .await
            .unwrap_or_else(|_| {
                Err(Problem::Later(format!(
                    "no answer within {} s",
                    self.time.as_secs()
                )))
            })
    }
}

/// Returns the processor time of this thread, by which background work limits itself to its share.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Starts a thread that the service needs. Fails with `WouldBlock`, and with advice, if it cannot be started.
pub fn start_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let started = Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| {
        let what = format!(
            "{error}; the service takes 5 threads beside those of the command, and 3 more with a frontier: raise the limit of processes \
             (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
        );
        io::Error::new(io::ErrorKind::WouldBlock, what)
    })
}

type Job = Box<dyn FnOnce() + Send>;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// Regression: a job that nobody waited for any more kept its place until a thread was free.
    #[test]
    fn who_stops_waiting_gives_up_its_place() {
        let limits = ServiceLimits {
            workers: 1,
            waiting: 1,
            answer_time: Duration::from_millis(50),
            ..ServiceLimits::default()
        };
        let workers = Workers::new(&limits).unwrap();
        let (go_on, gone_on) = channel::<()>();
        let wait = move || {
            gone_on.recv().unwrap();
            Ok(())
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(async {
            let late = Err(Problem::Later("no answer within 0 s".into()));
            assert_eq!(workers.run(wait).await, late);
            for _ in 0..3 {
                assert_eq!(workers.run(|| Ok(())).await, late);
            }
        });
        go_on.send(()).unwrap();
    }

    /// Maximum duration of any step in these tests.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn so_many_jobs_run_at_once() {
        let limits = ServiceLimits {
            workers: 3,
            ..ServiceLimits::default()
        };
        let workers = Workers::new(&limits).unwrap();
        let (started, starts) = channel();
        let (go_on, gone_on) = channel();
        let gone_on = Arc::new(Mutex::new(gone_on));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        for number in 0..5 {
            let (started, gone_on) = (started.clone(), gone_on.clone());
            let workers = workers.clone();
            runtime.spawn(async move {
                let job = move || {
                    started.send(number).unwrap();
                    gone_on.lock().unwrap().recv().unwrap();
                    assert!(number != 1, "as it should be: a job that panics");
                    Ok(())
                };
                workers.run(job).await
            });
        }
        let serving = std::thread::spawn(move || {
            runtime.block_on(async {
                while Arc::strong_count(&gone_on) > 1 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
        });
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
        let begun = Instant::now();
        workers.wait_until(begun + Duration::from_millis(50));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        (0..3).for_each(|_| go_on.send(()).unwrap());
        workers.wait_until(begun + PATIENCE);
        assert!(begun.elapsed() < PATIENCE);
        serving.join().unwrap();
    }
}
