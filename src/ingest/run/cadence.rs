//! When checkpoints and snapshots are made, by number of records or by time, and the snapshots that
//! are made in the background meanwhile (`making.rs`), with the rankings that are computed beside them (`beside.rs`): the newest
//! is settled, and the one before, once it has left the base that the newest starts from, is written.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::{Sender, bounded};

use super::Run;
use super::beside::{Beside, Made};
use super::cursor::RunPosition;
use super::making::{OwedBase, SnapshotJob, note_unsettled};
use crate::engine::Counters;
use crate::ingest::{Checkpoints, Every, Job, Note, Observer};
use crate::rank::Goal;
use crate::snapshot::{
    self, BaseWarning, HeldKnown, Info, Keep, KeepSnapshots, Settle, SnapshotOptions, Watcher,
};
use crate::store::base::CommittedBase;
use crate::store::rows::HeldRows;
use crate::store::{Disk, View};
use crate::threads::Task;
use crate::{Error, Result};

/// How long no snapshot is begun by time, in times that the last one took.
const SNAPSHOT_RESTS: u32 = 3;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When checkpoints and snapshots were made, and what was published.
pub(super) struct Cadence<'a> {
    job: &'a Job,
    /// How many were made, and the time they took.
    pub checkpoints: Checkpoints,
    checkpointed: Instant,
    /// How far the last checkpoint was: an idle stream needs no other.
    checkpointed_at: Option<RunPosition>,
    snapshotted: Instant,
    /// From when on a snapshot may be begun by time; `None`: one is being made.
    next_snapshot: Arc<Mutex<Option<Instant>>>,
    publishing: Option<SnapshotJob>,
    /// The one before, which has left its base and is not published yet.
    leaving: Option<SnapshotJob>,
    pub published: Option<(PathBuf, Info)>,
    /// Rows in memory, on their way from one snapshot to the next.
    rows: Arc<HeldRows>,
    /// What is known of pages, likewise.
    known: Arc<HeldKnown>,
    /// What the last snapshot by time was settled to.
    beside: Option<CommittedBase>,
    /// Counters at the last snapshot.
    published_at: Option<Counters>,
    /// The same where the last base was made.
    based_at: Option<Counters>,
    /// Records when a checkpoint or snapshot was last due by their number.
    due_at: u64,
}

impl<'a> Cadence<'a> {
    pub fn new(job: &'a Job, published_at: Option<Counters>, records: u64) -> Cadence<'a> {
        Cadence {
            job,
            checkpoints: Checkpoints::default(),
            checkpointed: Instant::now(),
            checkpointed_at: None,
            snapshotted: Instant::now(),
            next_snapshot: Arc::new(Mutex::new(Some(Instant::now()))),
            publishing: None,
            leaving: None,
            published: None,
            rows: Arc::default(),
            known: Arc::default(),
            beside: None,
            published_at,
            based_at: None,
            due_at: records,
        }
    }

    /// Returns whether so many records ask for a checkpoint or a snapshot. Once for each number:
    /// input that is no record does not ask again.
    fn is_due(&self, records: u64) -> bool {
        let due = |every| is_multiple(every, records);
        records > self.due_at && (due(self.job.checkpoint_every) || due(self.job.snapshot_every))
    }

    /// Returns whether a checkpoint is due by time, at this place.
    fn is_checkpoint_late(&self, reached: RunPosition) -> bool {
        is_over(self.job.checkpoint_every, self.checkpointed) && !self.is_durable(reached)
    }

    /// Returns whether a snapshot is due by time. The last one must have been made, and long enough ago: reading never
    /// waits for a snapshot that time asks for, and those take a quarter of the time at most.
    fn is_snapshot_late(&self, records: u64) -> bool {
        let has_rested = || {
            let from = *lock(&self.next_snapshot);
            from.is_some_and(|from| Instant::now() >= from)
        };
        is_over(self.job.snapshot_every, self.snapshotted)
            && has_rested()
            && records > self.published_at.as_ref().map_or(0, |c| c.records)
    }

    /// Returns whether the last checkpoint was made at this place.
    pub fn is_durable(&self, reached: RunPosition) -> bool {
        self.checkpointed_at == Some(reached)
    }

    /// Returns whether something was read since the store's base was made.
    pub fn is_after_base(&self, counters: &Counters) -> bool {
        self.based_at.as_ref() != Some(counters)
    }

    /// Returns whether something was read since the last snapshot.
    fn owes_snapshot(&self, counters: &Counters) -> bool {
        self.published_at.as_ref() != Some(counters)
    }

    /// To be called before a checkpoint: the slots of the commit that a snapshot is made from are written over two commits
    /// later. Whether the snapshot that was being made is made.
    fn wait_for_slots(&self, generation: u64) -> bool {
        let Some(publishing) = &self.publishing else {
            return false;
        };
        if publishing.generation < generation {
            let _ = publishing.apart.recv();
        }
        publishing.is_finished()
    }

    /// Starts making a snapshot of `view`, when so much was read, for which something was done since `started`. `is_last`:
    /// nothing goes on beside it.
    fn publish(
        &mut self,
        disk: Arc<dyn Disk>,
        mut view: View,
        counters: Counters,
        (mut making, beside): (SnapshotOptions, Beside),
        is_last: bool,
        started: Instant,
    ) {
        let (ends, ended) = bounded::<()>(0);
        let (departs, apart) = bounded::<()>(0);
        let (ahead, base) = bounded(1);
        let settle = making.settle.clone();
        if let Some(settle) = &mut making.settle {
            self.plan_ahead(settle, ahead, is_last);
        }
        *lock(&self.next_snapshot) = None;
        let next = self.next_snapshot.clone();
        let generation = view.generation();
        let bytes = settle.as_ref().map_or(0, |settle| settle.bytes(&view));
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
            thread: Some(Task::start("snapshot", publish)),
            ended,
            apart,
            base,
            has_left_base: false,
            bytes,
            settle,
            before: self.published_at.replace(counters),
        });
    }

    /// Has a snapshot leave its base before it is published, where another may be begun then, and follow the one before.
    fn plan_ahead(&mut self, settle: &mut Settle, ahead: Sender<CommittedBase>, is_last: bool) {
        settle.base.after = self.leaving.as_ref().map(|before| before.ended.clone());
        settle.base.known = self.known.clone();
        settle.base.leaves_known = !is_last && self.job.also.is_empty();
        if settle.base.keep != Keep::InStore {
            return;
        }
        if is_last {
            settle.base.rows = Some(std::mem::take(&mut self.rows));
        } else if self.job.also.is_empty() {
            // What is computed beside a snapshot has all the memory that is left.
            settle.base.rows = Some(self.rows.clone());
            settle.base.ahead = Some(ahead);
        }
    }

    /// Waits until the snapshot in the making has left its base, if it does before it is published. Then that continues beside
    /// the next one.
    fn await_base(&mut self, observer: &mut dyn Observer) -> Option<OwedBase> {
        let publishing = self.publishing.as_ref()?;
        let base = publishing.watch(&publishing.base, observer)?;
        let mut job = self.publishing.take()?;
        job.has_left_base = true;
        self.leaving = Some(job);
        self.based_at = self.published_at.clone();
        Some(OwedBase::Made(Some(base)))
    }

    /// Waits for the snapshot in the making, if there is one, and has no other after it. Whether one was made, and the base
    /// that it was to leave.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<Option<OwedBase>> {
        let Some(mut publishing) = self.publishing.take() else {
            return Ok(None);
        };
        publishing.watch(&publishing.ended, observer);
        self.end(&mut publishing, observer)
    }

    /// Returns whether the one before that is made.
    fn has_left(&self) -> bool {
        self.leaving.as_ref().is_some_and(SnapshotJob::is_finished)
    }

    /// Waits for the one before that, likewise. Whether there was one.
    fn finish_leaving(&mut self, observer: &mut dyn Observer) -> Result<bool> {
        let Some(mut leaving) = self.leaving.take() else {
            return Ok(false);
        };
        self.end(&mut leaving, observer)?;
        Ok(true)
    }

    /// Takes note of what a snapshot came to.
    fn end(
        &mut self,
        publishing: &mut SnapshotJob,
        observer: &mut dyn Observer,
    ) -> Result<Option<OwedBase>> {
        let Some(done) = publishing.wait() else {
            return Ok(None);
        };
        let done = done.map_err(|_| Error::internal("the snapshot thread failed"));
        let Made { published, beside } = match done? {
            Ok(made) => made,
            Err(error) => {
                // It is still owed.
                self.published_at = publishing.before.take();
                return Err(error);
            }
        };
        if let Some(settle) = &publishing.settle {
            note_unsettled(settle, observer);
        }
        let Some(snapshot::Made {
            path,
            info,
            warnings,
            base,
        }) = published
        else {
            self.published_at = publishing.before.take();
            // One that was stopped is still owed; where it could not be settled, there is no base either.
            let settle = publishing.settle.as_ref();
            let is_stopped = settle.is_some_and(|settle| settle.watcher.is_stopped());
            let is_over = publishing.makes_base() && !is_stopped;
            return Ok(is_over.then_some(OwedBase::Made(None)));
        };
        for warning in &warnings {
            observer.note(Note::Base { warning });
        }
        observer.note(Note::Published {
            path: &path,
            info: &info,
        });
        beside
            .iter()
            .for_each(|ranking| observer.note(ranking.note()));
        self.published = Some((path, info));
        if publishing.has_left_base {
            return Ok(Some(OwedBase::None));
        }
        // What there was no room for is made later.
        if publishing.makes_base() && !warnings.iter().any(BaseWarning::is_of_room) {
            self.based_at = self.published_at.clone();
            return Ok(Some(OwedBase::Made(base)));
        }
        if !publishing.makes_base() {
            self.beside = base.or(self.beside.take());
        }
        Ok(Some(OwedBase::None))
    }
}

/// Returns whether so many records ask for it.
fn is_multiple(every: Every, records: u64) -> bool {
    matches!(every, Every::Records(n) if records.is_multiple_of(n.max(1)))
}

/// Returns whether the time since then asks for it.
fn is_over(every: Every, since: Instant) -> bool {
    matches!(every, Every::Time(time) if since.elapsed() >= time)
}

impl Run<'_> {
    /// Returns whether the number of records asks for a checkpoint or a snapshot.
    pub(super) fn is_due(&self) -> bool {
        self.cadence.is_due(self.session.counters().records)
    }

    /// Does what the number of records asks for.
    pub(super) fn on_records(&mut self) -> Result<()> {
        let records = self.session.counters().records;
        self.cadence.due_at = records;
        if is_multiple(self.job.snapshot_every, records) {
            self.take_base()?;
            self.make_owed_base(false)?;
            // Later passes change no rows.
            let is_past_first = self.cursor.progress.is_past_first();
            self.session
                .owe_base(self.base_goal().filter(|_| !is_past_first));
            self.checkpoint()?;
            return self.begin_snapshot(Instant::now(), Keep::InStore);
        }
        self.checkpoint()
    }

    /// Does what is due by time.
    pub(super) fn on_time(&mut self) -> Result<()> {
        self.feed.check_beside()?;
        let snapshot = self
            .cadence
            .is_snapshot_late(self.session.counters().records);
        let started = Instant::now();
        if snapshot || self.cadence.is_checkpoint_late(self.cursor.reached()) {
            self.checkpoint()?;
        }
        if snapshot {
            self.begin_snapshot(started, Keep::Beside)?;
        }
        Ok(())
    }

    /// Makes the state durable; not if a stop keeps it from being sure that a file read again is
    /// unchanged.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        if !self.feed.is_as_in_pass_1(&self.cursor)? {
            return Ok(());
        }
        let generation = self.session.generation();
        if self.cadence.wait_for_slots(generation) {
            self.finish_publishing()?;
        } else if self.cadence.has_left() {
            self.finish_leaving()?;
        }
        if self.owes_base_of_passes()? {
            self.make_owed_base(false)?;
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
            // The current snapshot must not name a file that is not there.
            self.finish_publishing()?;
            self.session.release_rows()?;
        }
        if let Some(damage) = self.session.renewed_places() {
            self.observer.note(Note::PlacesRenewed { damage: &damage });
        }
        self.observer.note(Note::Checkpoint {
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

    /// Returns whether the last commit owes a base that nobody makes, and that only this commit tells how to make: how near the
    /// window was after several passes.
    fn owes_base_of_passes(&self) -> Result<bool> {
        let is_owed = self.cadence.publishing.is_none() && self.session.owed_base().is_some();
        Ok(is_owed && self.session.view()?.progress().is_past_first())
    }

    /// Starts making a snapshot of the last commit, for which something was done since `started`. What is settled for it is
    /// kept like this.
    pub(super) fn begin_snapshot(&mut self, started: Instant, keep: Keep) -> Result<()> {
        if self.cadence.publishing.is_some() {
            self.finish_publishing()?;
        }
        self.cadence.snapshotted = Instant::now();
        let owes_base = keep == Keep::InStore && self.session.owed_base().is_some();
        if !self.owes_snapshot() && !owes_base {
            return Ok(());
        }
        let view = self.session.view()?;
        let is_end = self.cursor.progress.finished;
        let is_last = is_end || self.session.budget.is_at_rest();
        // What is ranked because of a stop is not stopped by it.
        let stop = if is_end || is_last && !self.feed.stop_asked() {
            self.job.stop.clone()
        } else {
            Arc::default()
        };
        let mut settle = self.settling(stop.clone());
        if let (Some(settle), Some(leaving)) = (&mut settle, &self.cadence.leaving) {
            // Both are in memory for a while.
            let left = (settle.memory).map(|memory| memory.saturating_sub(leaving.bytes));
            if left.is_some_and(|left| left < settle.bytes(&view)) {
                self.finish_leaving()?;
            } else {
                settle.memory = left;
            }
        }
        if let Some(settle) = &mut settle {
            match keep {
                Keep::InStore if !owes_base => {}
                keep => settle.base.keep = keep,
            }
            if keep == Keep::Beside {
                settle.base.beside = self.cadence.beside;
            }
        }
        let making = SnapshotOptions {
            keep: KeepSnapshots::ALL,
            rank_bytes: self.job.rank_bytes,
            settle,
        };
        let beside = Beside::new(self.job, &self.session, Watcher::new(stop));
        let disk = self.session.disk().clone();
        let counters = self.session.counters().clone();
        self.cadence
            .publish(disk, view, counters, (making, beside), is_last, started);
        Ok(())
    }

    /// How importance is settled before a snapshot, if it is: in the memory that is left.
    pub(super) fn settling(&self, stop: Arc<AtomicBool>) -> Option<Settle> {
        // Who asks for a lower bound wants it.
        let goal = self.job.settle.map(|goal| Goal {
            until: self
                .job
                .until
                .map_or(goal.until, |least| least.min(goal.until)),
            ..goal
        });
        let settle = self.session.settling(goal, Watcher::new(stop))?;
        Some(Settle {
            time: self.job.settle_time,
            expire: self.job.expire,
            ..settle
        })
    }

    /// Waits for the snapshots in the making, if there are any.
    pub(super) fn finish_publishing(&mut self) -> Result<()> {
        self.finish_leaving()?;
        let Some(left) = self.cadence.finish(self.observer)? else {
            return Ok(());
        };
        self.name_left_base(left)?;
        self.after_publishing()
    }

    /// Waits until the next snapshot can be begun: the one in the making has left its base, or is published.
    fn take_base(&mut self) -> Result<()> {
        self.finish_leaving()?;
        match self.cadence.await_base(self.observer) {
            Some(left) => self.name_left_base(left),
            None => self.finish_publishing(),
        }
    }

    /// Waits for a snapshot that has left its base, if there is one.
    fn finish_leaving(&mut self) -> Result<()> {
        if self.cadence.finish_leaving(self.observer)? {
            self.after_publishing()?;
        }
        Ok(())
    }

    /// What a snapshot left is the store's base.
    fn name_left_base(&mut self, left: OwedBase) -> Result<()> {
        if let OwedBase::Made(base) = left {
            // Where nothing was applied since the last checkpoint, none may come.
            let now = !self.cursor.begun || self.cadence.is_durable(self.cursor.reached());
            self.session.name_base(base, now)?;
        }
        Ok(())
    }

    fn after_publishing(&mut self) -> Result<()> {
        self.thin_snapshots()?;
        self.session.release_rows()
    }

    /// Removes the older snapshots that are not to be kept.
    fn thin_snapshots(&mut self) -> Result<()> {
        let keep = self.job.keep_snapshots;
        let removed = snapshot::thin(&**self.session.disk(), &self.job.store, keep)?;
        if removed > 0 {
            self.observer.note(Note::Removed {
                snapshots: (removed, keep),
            });
        }
        Ok(())
    }

    /// The snapshot at the end, unless something unverified forbids it. What is settled for it is kept like this.
    pub(super) fn final_snapshot(&mut self, keep: Keep) -> Result<()> {
        if self.cursor.progress.unverified.is_none() {
            // The one that an earlier run published may have been damaged since.
            if self.cadence.published.is_none()
                && !snapshot::latest_is_sound(&**self.session.disk(), &self.job.store)
            {
                self.cadence.published_at = None;
            }
            self.begin_snapshot(Instant::now(), keep)?;
        }
        self.finish_publishing()
    }

    /// How near a ranking is settled, if that may be the base of the next one.
    pub(super) fn base_goal(&self) -> Option<Goal> {
        let settle = self.settling(Arc::default())?;
        (settle.may_have_base() && self.session.keeps_rows()).then_some(settle.goal)
    }

    /// Returns whether something was read since the last snapshot.
    pub(super) fn owes_snapshot(&self) -> bool {
        self.cadence.owes_snapshot(self.session.counters())
    }
}
