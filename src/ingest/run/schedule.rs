//! When checkpoints and snapshots are made, by number of records or by time, and the snapshot that
//! is made in the background meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::Run;
use crate::engine::Counters;
use crate::ingest::{Every, Note};
use crate::settle::Progress;
use crate::snapshot::{self, Published, Settle, SnapshotOptions, Watcher};
use crate::store::{Place, checkpoint};
use crate::threads::spawn;
use crate::{Error, Result};

/// How often people are told how far a snapshot is that is waited for.
const WATCH: Duration = Duration::from_millis(100);

/// How long no snapshot is begun by time, in times that the last one took.
const SNAPSHOT_RESTS: u32 = 3;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far the inputs were read: pass, input, place, and the page that a completion has reached.
pub(super) type RunPosition = (u32, u64, Place, Option<u64>);

/// A snapshot being made in the background, from the commit of `generation`.
pub(super) struct SnapshotJob {
    generation: u64,
    /// Absent once it was waited for.
    thread: Option<JoinHandle<Result<Published>>>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
    /// Disconnected when checkpoints do not disturb it any more.
    apart: Receiver<()>,
    /// What settling may take, and who watches it.
    settle: Option<Settle>,
    /// What was published before.
    before: Option<Counters>,
}

impl SnapshotJob {
    fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn wait(&mut self) -> Option<std::thread::Result<Result<Published>>> {
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        self.wait();
    }
}

impl Run<'_> {
    /// Whether the number of records asks for a checkpoint or a snapshot. Once for each number:
    /// input that is no record does not ask again.
    pub(super) fn is_due(&self) -> bool {
        self.engine.counters().records > self.cadence.due_at
            && (self.due(self.job.checkpoint_every) || self.due(self.job.snapshot_every))
    }

    fn due(&self, every: Every) -> bool {
        match every {
            Every::Records(n) => self.engine.counters().records.is_multiple_of(n.max(1)),
            Every::Time(_) | Every::Never => false,
        }
    }

    /// Does what the number of records asks for.
    pub(super) fn on_records(&mut self) -> Result<()> {
        self.cadence.due_at = self.engine.counters().records;
        self.checkpoint()?;
        if self.due(self.job.snapshot_every) {
            self.begin_snapshot(Instant::now())?;
        }
        Ok(())
    }

    /// Does what is due by time.
    pub(super) fn on_time(&mut self) -> Result<()> {
        self.check_spool()?;
        let over = |every, since: Instant| matches!(every, Every::Time(t) if since.elapsed() >= t);
        let snapshot = over(self.job.snapshot_every, self.cadence.snapshotted)
            && self.has_rested()
            && self.engine.counters().records
                > self.cadence.published_at.as_ref().map_or(0, |c| c.records);
        let checkpoint = over(self.job.checkpoint_every, self.cadence.checkpointed)
            && self.cadence.checkpointed_at != Some(self.reached());
        let started = Instant::now();
        if snapshot || checkpoint {
            self.checkpoint()?;
        }
        if snapshot {
            self.begin_snapshot(started)?;
        }
        Ok(())
    }

    /// Whether the last snapshot was made, and long enough ago: reading never waits for a snapshot that time asks for, and
    /// those take a quarter of the time at most.
    fn has_rested(&self) -> bool {
        let from = *lock(&self.cadence.next_snapshot);
        from.is_some_and(|from| Instant::now() >= from)
    }

    /// Makes the state durable; not if a stop keeps it from being sure that a file read again is
    /// unchanged.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        if !self.is_as_in_pass_1()? {
            return Ok(());
        }
        // The slots of the commit that a snapshot is made from are written over two commits later.
        let generation = self.engine.storage().generation();
        if let Some(publishing) = &self.cadence.publishing {
            if publishing.generation < generation {
                let _ = publishing.apart.recv();
            }
            if publishing.is_finished() {
                self.finish_publishing()?;
            }
        }
        if let Some(spooling) = &self.spooling {
            spooling.before_checkpoint()?;
        }
        self.note_signature();
        let started = Instant::now();
        checkpoint(&mut self.engine, &self.progress)?;
        self.cadence.checkpoints.0 += 1;
        self.cadence.checkpoints.1 += started.elapsed();
        if self.tell_rows() {
            // The current snapshot must not name a file that is not there.
            self.finish_publishing()?;
            self.release_rows()?;
        }
        self.observer.note(Note::Checkpoint {
            generation: self.engine.storage().generation(),
            records: self.engine.counters().records,
        });
        if let Some(spooling) = &self.spooling {
            let over = self.progress.is_past_first() && self.is_over_rows();
            spooling.after_checkpoint(&self.progress, over)?;
        }
        self.cadence.checkpointed = Instant::now();
        self.cadence.checkpointed_at = Some(self.reached());
        Ok(())
    }

    pub(super) fn reached(&self) -> RunPosition {
        let progress = &self.progress;
        (
            progress.pass,
            progress.input,
            progress.place,
            progress.completing,
        )
    }

    /// Starts making a snapshot of the last commit, for which something was done since `started`.
    fn begin_snapshot(&mut self, started: Instant) -> Result<()> {
        self.finish_publishing()?;
        self.cadence.snapshotted = Instant::now();
        if !self.owes_snapshot() {
            return Ok(());
        }
        let mut view = self.engine.storage().view()?;
        let disk = self.disk.clone();
        let settle = self.settling();
        let is_last = self.progress.finished;
        let making = SnapshotOptions {
            keep: 0,
            rank_bytes: self.job.rank_bytes,
            settle: settle.clone(),
        };
        let (ends, ended) = bounded::<()>(0);
        let (parts, apart) = bounded::<()>(0);
        *lock(&self.cadence.next_snapshot) = None;
        let next = self.cadence.next_snapshot.clone();
        let publish = move || {
            let _ends = ends;
            let settles = making.settle.as_ref();
            let published = if !is_last && settles.is_some_and(|s| s.is_possible(&view)) {
                snapshot::publish_apart(&*disk, &mut view, &making, parts)
            } else {
                let _parts = parts;
                snapshot::publish(&*disk, &view, &making)
            };
            *lock(&next) = Some(Instant::now() + started.elapsed() * SNAPSHOT_RESTS);
            published
        };
        let thread = spawn("snapshot", publish)?;
        let now = self.engine.counters().clone();
        self.cadence.publishing = Some(SnapshotJob {
            generation: self.engine.storage().generation(),
            thread: Some(thread),
            ended,
            apart,
            settle,
            before: self.cadence.published_at.replace(now),
        });
        Ok(())
    }

    /// How importance is settled before a snapshot, if it is: in the memory that is left.
    fn settling(&self) -> Option<Settle> {
        let until = self.job.settle?;
        if !self.job.settings.config.is_settled() {
            return None;
        }
        let need = match self.needed {
            Some((need, _)) => need.at_rest(),
            None => self.memory().0,
        }
        .total();
        Some(Settle {
            // Who asks for a lower bound wants it.
            until: self.job.until.map_or(until, |least| least.min(until)),
            time: self.job.settle_time,
            memory: self.budget.bytes.map(|bytes| bytes.saturating_sub(need)),
            below: None,
            watcher: Arc::new(Watcher::new(if self.progress.finished {
                self.job.stop.clone()
            } else {
                Arc::default()
            })),
        })
    }

    /// Tells how far the snapshot in the making is, until it is made.
    fn watch_publishing(&mut self) {
        let mut told = Progress::default();
        while let Some(publishing) = &self.cadence.publishing
            && let Some(settle) = &publishing.settle
            && !publishing.is_finished()
        {
            let progress = settle.watcher.progress();
            if progress != told {
                told = progress;
                self.observer.note(Note::Settling {
                    progress: &progress,
                });
            }
            if publishing.ended.recv_timeout(WATCH) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
    }

    /// Waits for the snapshot in the making, if there is one.
    pub(super) fn finish_publishing(&mut self) -> Result<()> {
        self.watch_publishing();
        let Some(mut publishing) = self.cadence.publishing.take() else {
            return Ok(());
        };
        let Some(done) = publishing.wait() else {
            return Ok(());
        };
        let done = done.map_err(|_| Error::internal("the snapshot thread failed"));
        let Some((path, info)) = done?? else {
            // It was stopped: it is still owed.
            self.cadence.published_at = publishing.before.take();
            return Ok(());
        };
        if let Some(settle) = &publishing.settle
            && let Some(need) = settle.watcher.too_large()
        {
            self.observer.note(Note::NotSettled {
                need,
                room: settle.memory.unwrap_or(u64::MAX),
            });
        }
        self.observer.note(Note::Published {
            path: &path,
            info: &info,
        });
        self.cadence.published = Some((path, info));
        self.thin_snapshots()?;
        self.release_rows()
    }

    /// Removes the older snapshots that are not to be kept.
    fn thin_snapshots(&mut self) -> Result<()> {
        let keep = self.job.keep_snapshots;
        let removed = snapshot::thin(&*self.disk, &self.job.store, keep)?;
        if removed > 0 {
            self.observer.note(Note::Removed {
                snapshots: (removed, keep as u64),
            });
        }
        Ok(())
    }

    /// The snapshot at the end, unless something unverified forbids it.
    pub(super) fn final_snapshot(&mut self) -> Result<()> {
        if self.progress.unverified.is_none() {
            // The one that an earlier run published may have been damaged since.
            if self.cadence.published.is_none()
                && !snapshot::latest_is_sound(&*self.disk, &self.job.store)
            {
                self.cadence.published_at = None;
            }
            self.begin_snapshot(Instant::now())?;
        }
        self.finish_publishing()
    }

    /// Whether something was read since the last snapshot.
    pub(super) fn owes_snapshot(&self) -> bool {
        self.cadence.published_at.as_ref() != Some(self.engine.counters())
    }
}
