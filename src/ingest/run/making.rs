//! A ranking in progress, beside the ingest.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::beside::Made;
use crate::Result;
use crate::engine::Counters;
use crate::ingest::{Note, Observer};
use crate::rank::settle::Progress;
use crate::snapshot::Settle;
use crate::threads::Task;

/// How often the progress of a snapshot that is waited for is shown.
const WATCH: Duration = Duration::from_millis(100);

/// A ranking in progress, of the commit of `generation`.
pub(super) struct SnapshotJob {
    pub generation: u64,
    /// Absent once it was waited for.
    pub thread: Option<Task<Result<Made>>>,
    /// Disconnected when the thread ends.
    pub ended: Receiver<()>,
    /// Disconnected when checkpoints do not disturb it any more.
    pub apart: Receiver<()>,
    /// Limits of settling, and its watcher.
    pub settle: Option<Settle>,
    /// The snapshot published before.
    pub before: Option<Counters>,
}

impl SnapshotJob {
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(Task::is_finished)
    }

    /// Returns whether its state becomes the next warm start.
    pub fn writes_warm(&self) -> bool {
        self.settle
            .as_ref()
            .is_some_and(|settle| settle.writes_warm)
    }

    /// Tells how far it is, until it ends.
    pub fn watch(&self, observer: &mut dyn Observer) {
        let mut reported = Progress::default();
        while let Some(settle) = &self.settle
            && !self.is_finished()
        {
            let progress = settle.watcher.progress();
            if progress != reported {
                reported = progress;
                observer.note(Note::Settling {
                    progress: &progress,
                });
            }
            if self.ended.recv_timeout(WATCH) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    }

    pub fn wait(&mut self) -> Option<std::thread::Result<Result<Made>>> {
        self.thread.take().map(Task::join)
    }
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Says why a snapshot was not settled, if it was not.
pub(super) fn note_unsettled(settle: &Settle, observer: &mut dyn Observer) {
    if let Some(need) = settle.watcher.too_large() {
        observer.note(Note::NotSettled {
            need,
            room: settle.memory.unwrap_or(u64::MAX),
        });
    }
}
