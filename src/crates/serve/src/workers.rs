//! Work that takes time, away from the thread that serves all clients: so much of it at once, so much waiting, and
//! the rest is refused. And how many requests a second are taken at all.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::backend::{Problem, Result};
use crate::limits::ServiceLimits;
use crate::pool::{Pool, PoolEnd};

/// A bounded number of jobs, each on a thread that may wait.
#[derive(Clone)]
pub struct Workers {
    /// Jobs that run or wait.
    admitted: Arc<Semaphore>,
    /// Jobs that run.
    running: Arc<Semaphore>,
    pool: Arc<Pool>,
    time: Duration,
}

impl Workers {
    /// As many at once, and as many waiting, as the limits say.
    ///
    /// # Errors
    /// There is no thread for any.
    pub fn new(limits: &ServiceLimits) -> io::Result<Workers> {
        Ok(Workers {
            admitted: Arc::new(Semaphore::new(limits.workers + limits.waiting)),
            running: Arc::new(Semaphore::new(limits.workers)),
            pool: Arc::new(Pool::new(limits.workers)?),
            time: limits.times.answer,
        })
    }

    /// To wait for the end of all jobs.
    pub fn ending(&self) -> PoolEnd {
        self.pool.ending()
    }

    /// Runs a job. One whose time is up goes on, in its place, but nobody waits for it.
    ///
    /// # Errors
    /// Those of the job; too many wait; time is up ([`Problem::Later`]).
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
            let place = running.acquire_owned().await;
            let (sender, receiver) = oneshot::channel();
            self.pool.run(move || {
                // The places are freed when the job ends, however it ends.
                let places = (place, admitted);
                if sender.is_closed() {
                    // Nobody waits for it any more.
                    return;
                }
                let done = job();
                drop(places);
                let _ = sender.send(done);
            });
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

/// So many requests a second: what was not used lasts for one second.
pub(crate) struct Pace {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Pace {
    pub(crate) fn new(per_second: u32, now: Instant) -> Pace {
        Pace {
            per_second: f64::from(per_second),
            state: Mutex::new((f64::from(per_second), now)),
        }
    }

    /// Returns whether one more may be taken at this time.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *state;
        let grown = now.saturating_duration_since(at).as_secs_f64() * self.per_second;
        let left = (left + grown).min(self.per_second);
        let taken = left >= 1.0;
        *state = (if taken { left - 1.0 } else { left }, now.max(at));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept() {
        let start = Instant::now();
        let pace = Pace::new(10, start);
        let taken = |at: Instant| (0..100).filter(|_| pace.take(at)).count();
        assert_eq!(taken(start), 10);
        assert_eq!(taken(start + Duration::from_millis(450)), 4);
        // However long nobody asked, a second's worth is there.
        assert_eq!(taken(start + Duration::from_secs(60)), 10);
        // Time that goes back gives nothing.
        assert_eq!(taken(start), 0);
    }
}
