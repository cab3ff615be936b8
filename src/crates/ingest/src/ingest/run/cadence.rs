//! Schedule of checkpoints and snapshots, by number of records or by time, and the ranking in progress while the ingest
//! continues (`making.rs`), with those by other measures (`beside.rs`). There is one at a time: the next waits for it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::bounded;

use super::IngestRun;
use super::beside::{ExtraRankings, SnapshotWithRankings};
use super::cursor::RunPosition;
use super::making::{SnapshotJob, note_unsettled};
use crate::engine::Counters;
use crate::ingest::{Checkpoints, Every, IngestEvent, IngestJob, Observer};
use crate::rank::Goal;
use crate::snapshot::{
    self, HeldKnown, Info, KeepSnapshots, SettleSettings, SnapshotOptions, StartFrom, Watcher,
};
use crate::store::rows::HeldRows;
use crate::store::{Disk, View};
use crate::threads::spawn;
use crate::{Error, Result};

/// Pause between snapshots by time, as a multiple of the time that the last one took.
const SNAPSHOT_RESTS: u32 = 3;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason for a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The stream of records determines it, and its state is the next warm start.
    Stream,
    /// The stream of records determines it, but its state is not the next warm start: it is of a pass after the first,
    /// which changes no rows, or reading stopped early.
    Partial,
    /// The clock determines it.
    Clock,
}

/// Times of the last checkpoints and snapshots, and what was published.
pub(super) struct Cadence<'a> {
    job: &'a IngestJob,
    /// Number of checkpoints, and the time they took.
    pub checkpoints: Checkpoints,
    checkpointed: Instant,
    /// Position of the last checkpoint: an idle stream needs no other.
    checkpointed_at: Option<RunPosition>,
    snapshotted: Instant,
    /// Time from which a snapshot by time may begin; `None` while one is in progress.
    next_snapshot: Arc<Mutex<Option<Instant>>>,
    publishing: Option<SnapshotJob>,
    pub published: Option<(PathBuf, Info)>,
    /// Rows cached from one snapshot to the next.
    rows: Arc<HeldRows>,
    /// Facts about pages cached from one snapshot to the next.
    known: Arc<HeldKnown>,
    /// Counters at the last snapshot.
    published_at: Option<Counters>,
    /// Counters at the last snapshot that the stream determined.
    ranked_at: Option<Counters>,
    /// Number of records when a checkpoint or snapshot was last due by number.
    due_at: u64,
}

impl<'a> Cadence<'a> {
    pub fn new(job: &'a IngestJob, published_at: Option<Counters>, records: u64) -> Cadence<'a> {
        Cadence {
            job,
            checkpoints: Checkpoints::default(),
            checkpointed: Instant::now(),
            checkpointed_at: None,
            snapshotted: Instant::now(),
            next_snapshot: Arc::new(Mutex::new(Some(Instant::now()))),
            publishing: None,
            published: None,
            rows: Arc::default(),
            known: Arc::default(),
            published_at,
            ranked_at: None,
            due_at: records,
        }
    }

    /// Returns true if a checkpoint or a snapshot is due at this number of records, once for each number.
    fn is_due(&self, records: u64) -> bool {
        let due = |every| is_multiple(every, records);
        records > self.due_at && (due(self.job.checkpoint_every) || due(self.job.snapshot_every))
    }

    /// Returns true if a checkpoint is due by time, at this position.
    fn is_checkpoint_late(&self, reached: RunPosition) -> bool {
        is_over(self.job.checkpoint_every, self.checkpointed) && !self.is_durable(reached)
    }

    /// Returns true if a snapshot is due by time. The previous one must have ended, long enough ago: reading never
    /// waits for a snapshot by time, and those take at most a quarter of the time.
    fn is_snapshot_late(&self, records: u64) -> bool {
        let has_rested = || {
            let from = *lock(&self.next_snapshot);
            from.is_some_and(|from| Instant::now() >= from)
        };
        is_over(self.job.snapshot_every, self.snapshotted)
            && has_rested()
            && records > self.published_at.as_ref().map_or(0, |c| c.records)
    }

    /// Returns true if the last checkpoint was made at this position.
    pub fn is_durable(&self, reached: RunPosition) -> bool {
        self.checkpointed_at == Some(reached)
    }

    /// Returns true if something was read since the last ranking that the stream determined.
    pub fn is_after_ranking(&self, counters: &Counters) -> bool {
        self.ranked_at.as_ref() != Some(counters)
    }

    /// Returns true if something was read since the last snapshot.
    fn owes_snapshot(&self, counters: &Counters) -> bool {
        self.published_at.as_ref() != Some(counters)
    }

    /// Must be called before a checkpoint, because the slots of the commit from which a snapshot is made are
    /// overwritten two commits later. Returns true if the snapshot in progress has ended.
    fn wait_for_slots(&self, generation: u64) -> bool {
        let Some(publishing) = &self.publishing else {
            return false;
        };
        if publishing.generation < generation {
            let _ = publishing.apart.recv();
        }
        publishing.is_finished()
    }

    /// Starts to make a snapshot of `view` with these counters, on which work began at `started`. With `is_last`
    /// nothing else runs meanwhile.
    fn publish(
        &mut self,
        disk: Arc<dyn Disk>,
        mut view: View,
        counters: Counters,
        (mut making, beside): (SnapshotOptions, ExtraRankings),
        is_last: bool,
        started: Instant,
    ) -> Result<()> {
        let (ends, ended) = bounded::<()>(0);
        let (departs, apart) = bounded::<()>(0);
        let settle = making.settle.clone();
        if let Some(settle) = &mut making.settle {
            self.hand_over(settle, is_last);
        }
        *lock(&self.next_snapshot) = None;
        let next = self.next_snapshot.clone();
        let generation = view.generation();
        let publish = move || {
            let _ends = ends;
            let settles = making.settle.as_ref();
            let published = if !is_last && settles.is_some_and(|s| s.is_possible(&view)) {
                snapshot::publish_apart(&*disk, &mut view, &making, departs)
            } else {
                let _departs = departs;
                snapshot::publish_keeping(&*disk, &view, &making)
            };
            let made = published.map(|published| beside.make(&*disk, &view, published));
            *lock(&next) = Some(Instant::now() + started.elapsed() * SNAPSHOT_RESTS);
            made
        };
        self.publishing = Some(SnapshotJob {
            generation,
            thread: Some(spawn("snapshot", publish)?),
            ended,
            apart,
            settle,
            before: self.published_at.replace(counters),
        });
        Ok(())
    }

    /// Passes on the memory that the previous ranking left, and prepares what this one leaves.
    fn hand_over(&mut self, settle: &mut SettleSettings, is_last: bool) {
        let handover = &mut settle.handover;
        handover.known = self.known.clone();
        // Rankings by other measures use all the memory that is left.
        let goes_on = !is_last && self.job.also.is_empty();
        handover.leaves_known = goes_on;
        if settle.writes_warm && (is_last || goes_on) {
            handover.rows = Some(if is_last {
                std::mem::take(&mut self.rows)
            } else {
                self.rows.clone()
            });
        }
    }

    /// Waits for the ranking in progress and records its result. Returns whether it wrote the next warm start; `None`
    /// if there was none.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<Option<bool>> {
        let Some(mut publishing) = self.publishing.take() else {
            return Ok(None);
        };
        publishing.watch(observer);
        let Some(done) = publishing.wait() else {
            return Ok(None);
        };
        let done = done.map_err(|_| Error::internal("the snapshot thread failed"));
        let SnapshotWithRankings { published, beside } = match done? {
            Ok(made) => made,
            Err(error) => {
                // The snapshot is still due.
                self.published_at = publishing.before.take();
                return Err(error);
            }
        };
        if let Some(settle) = &publishing.settle {
            note_unsettled(settle, observer);
        }
        let Some(made) = published else {
            self.published_at = publishing.before.take();
            return Ok(Some(false));
        };
        for warning in &made.warnings {
            observer.note(IngestEvent::Warm { warning });
        }
        observer.note(IngestEvent::Published {
            path: &made.path,
            info: &made.info,
        });
        beside
            .iter()
            .for_each(|ranking| observer.note(ranking.note()));
        self.published = Some((made.path, made.info));
        if publishing.writes_warm() {
            self.ranked_at = self.published_at.clone();
        }
        Ok(Some(made.wrote_warm))
    }
}

/// Returns true if a task is due at this number of records.
fn is_multiple(every: Every, records: u64) -> bool {
    matches!(every, Every::Records(n) if records.is_multiple_of(n.max(1)))
}

/// Returns true if a task is due by the time since then.
fn is_over(every: Every, since: Instant) -> bool {
    matches!(every, Every::Time(time) if since.elapsed() >= time)
}

impl IngestRun<'_> {
    /// Returns true if the number of records makes a checkpoint or a snapshot due.
    pub(super) fn is_due(&self) -> bool {
        self.cadence.is_due(self.session.counters().records)
    }

    /// Does what is due by the number of records.
    pub(super) fn on_records(&mut self) -> Result<()> {
        let records = self.session.counters().records;
        self.cadence.due_at = records;
        self.checkpoint()?;
        if !is_multiple(self.job.snapshot_every, records) {
            return Ok(());
        }
        let due = if self.cursor.progress.is_past_first() {
            Due::Partial
        } else {
            Due::Stream
        };
        self.begin_snapshot(Instant::now(), due)
    }

    /// Does what is due by time: not inside a file that is read again, of which nothing may be durable before it is known to
    /// be what it was.
    pub(super) fn on_time(&mut self) -> Result<()> {
        self.feed.check_beside()?;
        if self.cursor.is_rereading() {
            return Ok(());
        }
        let snapshot = self
            .cadence
            .is_snapshot_late(self.session.counters().records);
        let started = Instant::now();
        if snapshot || self.cadence.is_checkpoint_late(self.cursor.reached()) {
            self.checkpoint()?;
        }
        if snapshot {
            self.begin_snapshot(started, Due::Clock)?;
        }
        Ok(())
    }

    /// Makes the state durable.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.check_as_in_pass_1()?;
        let generation = self.session.generation();
        if self.cadence.wait_for_slots(generation) {
            self.finish_publishing()?;
        }
        if let Some(spooling) = &self.feed.spooling {
            spooling.before_checkpoint()?;
        }
        self.feed.note_signature(&mut self.cursor.progress);
        let started = Instant::now();
        let given_up = self.session.checkpoint(&self.cursor.progress)?;
        self.cadence.checkpoints.count += 1;
        self.cadence.checkpoints.time += started.elapsed();
        if self.report_rows_given_up(given_up) {
            // The current snapshot must not name a missing file.
            self.finish_publishing()?;
            self.session.release_rows()?;
        }
        if let Some(damage) = self.session.renewed_places() {
            self.observer
                .note(IngestEvent::PlacesRenewed { damage: &damage });
        }
        self.observer.note(IngestEvent::Checkpoint {
            generation: self.session.generation(),
            records: self.session.counters().records,
        });
        if let Some(spooling) = &self.feed.spooling {
            let over = self.cursor.progress.is_past_first() && self.is_over_rows();
            spooling.after_checkpoint(&self.cursor.progress, over)?;
        }
        self.cadence.checkpointed = Instant::now();
        self.cadence.checkpointed_at = Some(self.cursor.reached());
        Ok(())
    }

    /// Starts to make a snapshot of the last commit, on which work began at `started`.
    pub(super) fn begin_snapshot(&mut self, started: Instant, due: Due) -> Result<()> {
        self.finish_publishing()?;
        self.cadence.snapshotted = Instant::now();
        let is_end = self.cursor.progress.finished;
        let is_last = is_end || self.session.budget.is_at_rest();
        // A stop does not stop the ranking that it causes.
        let stop = if is_end || is_last && !self.feed.stop_asked() {
            self.job.stop.clone()
        } else {
            Arc::default()
        };
        let mut settle = self.settling(stop.clone());
        let writes_warm = due == Due::Stream
            && self.session.keeps_rows()
            && settle.as_ref().is_some_and(SettleSettings::may_be_warm);
        // A snapshot by the clock does not replace one that the stream determines.
        let is_owed = self.owes_snapshot()
            || writes_warm && self.cadence.is_after_ranking(self.session.counters());
        if !is_owed {
            return Ok(());
        }
        let view = self.session.view()?;
        if let Some(settle) = &mut settle {
            settle.writes_warm = writes_warm;
            settle.start = match due {
                _ if self.job.cold => StartFrom::Nothing,
                Due::Clock => StartFrom::Published,
                Due::Stream | Due::Partial => StartFrom::Warm,
            };
        }
        if writes_warm {
            self.session.begin_warm_start()?;
        }
        let making = SnapshotOptions {
            keep: KeepSnapshots::ALL,
            rank_bytes: self.job.rank_bytes,
            settle,
        };
        let beside = ExtraRankings::new(self.job, &self.session, Watcher::new(stop));
        let disk = self.session.disk().clone();
        let counters = self.session.counters().clone();
        self.cadence
            .publish(disk, view, counters, (making, beside), is_last, started)
    }

    /// Returns the settings for settling before a snapshot in the memory that is left, if it is settled.
    pub(super) fn settling(&self, stop: Arc<AtomicBool>) -> Option<SettleSettings> {
        // A lower bound that is requested takes precedence.
        let goal = self.job.settle.map(|goal| Goal {
            until: self
                .job
                .until
                .map_or(goal.until, |least| least.min(goal.until)),
            ..goal
        });
        let settle = self.session.settling(goal, Watcher::new(stop))?;
        Some(SettleSettings {
            time: self.job.settle_time,
            expire: self.job.expire,
            ..settle
        })
    }

    /// Waits for the ranking in progress, if there is one.
    pub(super) fn finish_publishing(&mut self) -> Result<()> {
        if let Some(wrote_warm) = self.cadence.finish(self.observer)? {
            self.session.end_warm_start(wrote_warm);
            self.thin_snapshots()?;
            self.session.release_rows()?;
        }
        Ok(())
    }

    /// Removes older snapshots by the retention rule.
    fn thin_snapshots(&mut self) -> Result<()> {
        let keep = self.job.keep_snapshots;
        let removed = snapshot::thin(&**self.session.disk(), &self.job.store, keep)?;
        if removed > 0 {
            self.observer.note(IngestEvent::Removed {
                snapshots: (removed, keep),
            });
        }
        Ok(())
    }

    /// Makes the snapshot at the end, unless something is unverified.
    pub(super) fn final_snapshot(&mut self, due: Due) -> Result<()> {
        if self.cursor.progress.unverified.is_none() {
            // The one that an earlier run published may have been damaged since.
            if self.cadence.published.is_none()
                && !snapshot::latest_is_sound(&**self.session.disk(), &self.job.store)
            {
                self.cadence.published_at = None;
            }
            self.begin_snapshot(Instant::now(), due)?;
        }
        self.finish_publishing()
    }

    /// Returns true if something was read since the last snapshot.
    pub(super) fn owes_snapshot(&self) -> bool {
        self.cadence.owes_snapshot(self.session.counters())
    }
}
