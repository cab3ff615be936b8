//! The writer of a store, which threads of Python use by turns.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cashrank::{Error, Options, Result, Writer};
use cashrank_store::store::{RealDisk, open_view};
use pyo3::prelude::*;

use crate::errors::{Raise, closed};
use crate::work::{OnSignal, SIGNALS_EVERY, Stop, run};

enum Slot {
    Free(Box<Writer>),
    /// The store was let go of; it is opened again when the writer is next used.
    Released,
    Taken,
    Closed,
}

/// A writer, or that somebody is at it.
pub struct Shared {
    path: PathBuf,
    options: Options,
    slot: Mutex<Slot>,
    freed: Condvar,
    /// The process that opened it: what a fork has of it is of no use.
    process: u32,
}

impl Shared {
    /// Opens the writer of a store. Where an ingest did not end, only that can go on.
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
        // It is held for moments, and what is in it is whole.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, slot: Slot) {
        *self.slot() = slot;
        self.freed.notify_one();
    }

    /// Takes the writer out, as soon as nobody else is at it.
    ///
    /// # Errors
    /// It was closed; what handlers of signals raise.
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

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        matches!(*self.slot(), Slot::Closed)
    }
}

/// Returns whether an ingest into a store did not come to its end.
fn is_unfinished(path: &Path) -> bool {
    open_view(&RealDisk, path).is_ok_and(|view| {
        let progress = &view.manifest.progress;
        !progress.inputs.is_empty() && !progress.finished
    })
}

/// Somebody's turn with the writer. When it ends the writer is put back, unless it was closed or is in an unknown state.
pub struct Turn {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Turn {
    /// Does what takes no longer than a few records, without the interpreter's lock.
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

    /// Does what may take long.
    ///
    /// # Errors
    /// Those of the work, and what handlers of signals raise.
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

    /// Does what opens the store by itself, after all that was added was made durable.
    ///
    /// # Errors
    /// Those of the checkpoint, those of the work, and what handlers of signals raise.
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

    /// Makes all that was added durable, and lets go of the store, whether that succeeds or not.
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
