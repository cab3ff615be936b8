//! Ranking in progress while the ingest continues.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::beside::SnapshotWithRankings;
use crate::Result;
use crate::engine::Counters;
use crate::ingest::{IngestEvent, Observer};
use crate::rank::settle::SettlingProgress;
use crate::snapshot::SettleSettings;

/// Interval at which the progress of an awaited snapshot is shown.
const WATCH: Duration = Duration::from_millis(100);

/// Ranking in progress of the commit `generation`.
pub(super) struct SnapshotJob {
    pub generation: u64,
    /// Thread of the ranking; `None` once it was joined.
    pub thread: Option<JoinHandle<Result<SnapshotWithRankings>>>,
    /// Channel that is disconnected when the thread ends.
    pub ended: Receiver<()>,
    /// Channel that is disconnected when checkpoints no longer disturb the ranking.
    pub apart: Receiver<()>,
    /// Settings of settling, with its watcher.
    pub settle: Option<SettleSettings>,
    /// Counters at the previous snapshot.
    pub before: Option<Counters>,
}

impl SnapshotJob {
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns true if its state becomes the next warm start.
    pub fn writes_warm(&self) -> bool {
        self.settle
            .as_ref()
            .is_some_and(|settle| settle.writes_warm)
    }

    /// Reports the progress until it ends.
    pub fn watch(&self, observer: &mut dyn Observer) {
        let mut reported = SettlingProgress::default();
        while let Some(settle) = &self.settle
            && !self.is_finished()
        {
            let progress = settle.watcher.progress();
            if progress != reported {
                reported = progress;
                observer.note(IngestEvent::Settling {
                    progress: &progress,
                });
            }
            if self.ended.recv_timeout(WATCH) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    }

    pub fn wait(&mut self) -> Option<std::thread::Result<Result<SnapshotWithRankings>>> {
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Reports why a snapshot was not settled, if it was not.
pub(super) fn note_unsettled(settle: &SettleSettings, observer: &mut dyn Observer) {
    if let Some(need) = settle.watcher.too_large() {
        observer.note(IngestEvent::NotSettled {
            need,
            room: settle.memory.unwrap_or(u64::MAX),
        });
    }
}
