//! A snapshot in the making, beside the ingest, and what it leaves.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::beside::Made;
use crate::Result;
use crate::engine::Counters;
use crate::ingest::{Note, Observer};
use crate::rank::settle::Progress;
use crate::snapshot::{Keep, Settle};
use crate::store::base::CommittedBase;
use crate::threads::Task;

/// How often the progress of a snapshot that is waited for is shown.
const WATCH: Duration = Duration::from_millis(100);

/// A snapshot in the making, from the commit of `generation`.
pub(super) struct SnapshotJob {
    pub generation: u64,
    /// Absent once it was waited for.
    pub thread: Option<Task<Result<Made>>>,
    /// Disconnected when the thread ends.
    pub ended: Receiver<()>,
    /// Disconnected when checkpoints do not disturb it any more.
    pub apart: Receiver<()>,
    /// Gives the base before the snapshot is published, if it is made so early; disconnected when it ends.
    pub base: Receiver<CommittedBase>,
    /// The base was taken: the next snapshot may be begun.
    pub has_left_base: bool,
    /// Bytes of memory that it takes.
    pub bytes: u64,
    /// Limits of settling, and its watcher.
    pub settle: Option<Settle>,
    /// The snapshot published before.
    pub before: Option<Counters>,
}

impl SnapshotJob {
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(Task::is_finished)
    }

    /// Whether what it settles is to be the store's base.
    pub fn makes_base(&self) -> bool {
        self.settle
            .as_ref()
            .is_some_and(|settle| settle.base.keep == Keep::InStore)
    }

    /// Tells how far it is, until it gives what is waited for, or ends.
    pub fn watch<T>(&self, until: &Receiver<T>, observer: &mut dyn Observer) -> Option<T> {
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
            match until.recv_timeout(WATCH) {
                Ok(given) => return Some(given),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        until.try_recv().ok()
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

/// What a snapshot that was made left.
pub(super) enum OwedBase {
    /// None was owed.
    None,
    /// The base that was owed, if one could be made.
    Made(Option<CommittedBase>),
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
