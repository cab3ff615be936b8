//! Writer of a store, shared by Python threads: one uses it at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cashrank::{Error, Options, Result, Writer};
use cashrank_store::store::{RealDisk, open_view};
use pyo3::prelude::*;

use crate::errors::{Raise, closed};
use crate::work::{OnSignal, SIGNALS_EVERY, Stop, run};

enum Slot {
    Free(Box<Writer>),
    /// Writer closed for the time being; its next use opens the store again.
    Released,
    Taken,
    Closed,
}

/// Slot for a writer, empty while a thread uses it.
pub struct Shared {
    path: PathBuf,
    options: Options,
    slot: Mutex<Slot>,
    freed: Condvar,
    /// Process that opened the store; a fork must not use the writer.
    process: u32,
}

impl Shared {
    /// Opens the writer of a store. After an unfinished ingest, that has to be completed before anything else is added.
    ///
    /// # Errors
    /// Those of [`Writer::open`].
    pub fn open(path: PathBuf, options: Options) -> Result<Arc<Shared>> {
        let slot = match Writer::open(&path, &options) {
            Ok(writer) => Slot::Free(Box::new(writer)),
            Err(Error::Conflict(_)) if is_unfinished(&path) => Slot::Released,
            Err(error) => return Err(error),
        };
        Ok(Arc::new(Shared {
            path,
            options,
            slot: Mutex::new(slot),
            freed: Condvar::new(),
            process: std::process::id(),
        }))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // A panic of another thread leaves the slot consistent.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, slot: Slot) {
        *self.slot() = slot;
        self.freed.notify_one();
    }

    /// Waits until no other thread uses the writer, and takes it.
    ///
    /// # Errors
    /// `Closed`, also in a fork of the process; and exceptions raised by signal handlers.
    pub fn take(self: &Arc<Shared>, py: Python<'_>) -> PyResult<Turn> {
        if self.process != std::process::id() {
            let text = "this process is a fork of the one that opened the store: open it here, after the other closed it";
            return Err(closed(text));
        }
        loop {
            if let Some(turn) = self.try_take()? {
                return Ok(turn);
            }
            py.detach(|| {
                let slot = self.slot();
                if matches!(*slot, Slot::Taken) {
                    drop(self.freed.wait_timeout(slot, SIGNALS_EVERY));
                }
            });
            py.check_signals()?;
        }
    }

    fn try_take(self: &Arc<Shared>) -> PyResult<Option<Turn>> {
        let mut slot = self.slot();
        match std::mem::replace(&mut *slot, Slot::Taken) {
            Slot::Taken => Ok(None),
            Slot::Closed => {
                *slot = Slot::Closed;
                Err(closed("the store is closed: open it again"))
            }
            taken => Ok(Some(Turn {
                shared: Arc::clone(self),
                slot: taken,
            })),
        }
    }

    /// Returns whether the writer was closed.
    pub fn is_closed(&self) -> bool {
        matches!(*self.slot(), Slot::Closed)
    }
}

/// Returns whether the last ingest into a store is unfinished.
fn is_unfinished(path: &Path) -> bool {
    open_view(&RealDisk, path).is_ok_and(|view| {
        let progress = &view.manifest.progress;
        !progress.inputs.is_empty() && !progress.finished
    })
}

/// Exclusive use of the writer. On drop the writer returns to its slot, unless it was closed or a panic unwinds.
pub struct Turn {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Turn {
    /// Runs short work, such as applying a few records, without the interpreter's lock.
    ///
    /// # Errors
    /// Those of the work.
    pub fn brief<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Writer) -> Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(move || self.work(work)).raise()
    }

    /// Runs long work on a thread of its own.
    ///
    /// # Errors
    /// Those of the work, and exceptions raised by signal handlers.
    pub fn long<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut Writer, &Stop) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        run(py, OnSignal::Wait, move |stop| {
            self.work(|writer| work(writer, stop))
        })
    }

    fn work<T>(mut self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        if let Slot::Released = self.slot {
            let writer = Writer::open(&self.shared.path, &self.shared.options)?;
            self.slot = Slot::Free(Box::new(writer));
        }
        match &mut self.slot {
            Slot::Free(writer) => work(writer),
            _ => Err(Error::Conflict("the store is closed".into())),
        }
    }

    /// Makes added records durable and closes the writer; then runs work that opens the store by itself.
    ///
    /// # Errors
    /// Those of the checkpoint and of the work, and exceptions raised by signal handlers.
    pub fn released<T: Send + 'static>(
        mut self,
        py: Python<'_>,
        work: impl FnOnce(&Path, &Options, &Stop) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        run(py, OnSignal::Wait, move |stop| {
            if let Slot::Free(mut writer) = std::mem::replace(&mut self.slot, Slot::Released) {
                writer.checkpoint()?;
            }
            work(&self.shared.path, &self.shared.options, stop)
        })
    }

    /// Makes added records durable and closes the writer, even if that fails.
    ///
    /// # Errors
    /// Those of the checkpoint.
    pub fn close(mut self, py: Python<'_>) -> PyResult<()> {
        let Slot::Free(mut writer) = std::mem::replace(&mut self.slot, Slot::Closed) else {
            return Ok(());
        };
        run(py, OnSignal::Wait, move |_| {
            let done = writer.checkpoint();
            drop(writer);
            drop(self);
            done.map(drop)
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let slot = std::mem::replace(&mut self.slot, Slot::Closed);
        self.shared.put(if std::thread::panicking() {
            Slot::Closed
        } else {
            slot
        });
    }
}
