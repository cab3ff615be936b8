//! Work that takes long: on a thread of its own, so that other threads of Python run meanwhile and Ctrl-C is heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use cashrank_graph::rank::settle::{SettlingProgress, Watch};
use pyo3::prelude::*;

use crate::errors::{Raise, internal};

/// How often Python's signals are looked at.
pub const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Set when the work is to end early.
#[derive(Clone, Default)]
pub struct Stop(pub Arc<AtomicBool>);

impl Stop {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends a ranking that is computed.
impl Watch for Stop {
    fn swept(&mut self, _: &SettlingProgress) {}

    fn is_over(&mut self) -> bool {
        self.is_set()
    }
}

/// What becomes of work when a signal comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// It only reads: the exception is raised at once, and the thread ends as soon as it looks at [`Stop`].
    Leave,
    /// It writes: the exception is raised when it has ended, which [`Stop`] hastens.
    Wait,
}

/// Threads for work that takes as many as there are processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does the work without the interpreter's lock.
///
/// # Errors
/// Those of the work, and what handlers of signals raise.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    on_signal: OnSignal,
    work: impl FnOnce(&Stop) -> cashrank::Result<T> + Send + 'static,
) -> PyResult<T> {
    let stop = Stop::default();
    let (done, mut waiting) = mpsc::sync_channel(1);
    let theirs = stop.clone();
    std::thread::Builder::new()
        .name("cashrank".into())
        .spawn(move || {
            // Nobody listens any more where the work was left.
            let _ = done.send(work(&theirs));
        })?;
    let mut raised = None;
    loop {
        let answer;
        (answer, waiting) = py.detach(move || wait(waiting));
        match answer {
            Ok(result) => return raised.map_or_else(|| result.raise(), Err),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(internal("a thread ended before its work was done"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            stop.0.store(true, Ordering::Relaxed);
            if on_signal == OnSignal::Leave {
                return Err(signal);
            }
            raised = Some(signal);
        }
    }
}

fn wait<T>(waiting: Receiver<T>) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    (waiting.recv_timeout(SIGNALS_EVERY), waiting)
}
