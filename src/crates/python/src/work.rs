//! Long work on a thread of its own, so that other Python threads run meanwhile and Ctrl-C interrupts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use cashrank_graph::rank::settle::{SettlingProgress, Watch};
use pyo3::prelude::*;

use crate::errors::{Raise, internal};

/// Interval between checks for Python's signals.
pub const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Flag that asks the work to end early.
#[derive(Clone, Default)]
pub struct Stop(pub Arc<AtomicBool>);

impl Stop {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends the settling of a ranking when the flag is set.
impl Watch for Stop {
    fn swept(&mut self, _: &SettlingProgress) {}

    fn is_over(&mut self) -> bool {
        self.is_set()
    }
}

/// Reaction of the work to a signal whose handler raises.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// Raises the exception at once, for work that only reads; the thread ends when it next checks [`Stop`].
    Leave,
    /// Raises the exception when the work has ended, for work that writes; [`Stop`] makes it end early.
    Wait,
}

/// Returns the number of threads for parallel work: that of the processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the work on a thread, and waits for it without the interpreter's lock.
///
/// # Errors
/// Those of the work, and exceptions raised by signal handlers.
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
            // If the work was abandoned, the receiver is gone.
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
