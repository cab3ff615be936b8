//! Checkpoints and rankings of a run: when each is due, by number of records or by time, and the rankings in progress
//! while the ingest continues. A ranking that wrote the warm start has settled: the next one begins while its columns
//! are written, where memory suffices for both. Otherwise the next one waits for its end. Rankings are published one
//! after the other, each after the results of the previous one were recorded.
//!
//! Rankings by other measures (`also`) are computed on the same thread after the snapshot. They equal those of
//! `cashrank compute`, to the byte. One that cannot be computed is reported as missing, and the snapshot stays.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::IngestRun;
use crate::engine::Counters;
use crate::ingest::{Checkpoints, Every, IngestEvent};
use crate::memory::{KNOWN_PAGES, UNPACKED_ROWS};
use crate::model::{counted, human};
use crate::rank::Goal;
use crate::rank::computing::Computing;
use crate::rank::settle::SettlingProgress;
use crate::snapshot::{
    self, ComputedInfo, ComputedName, FactsCache, Info, PublishedSnapshot, SettleSettings,
    SnapshotTurn, StartFrom, Watcher, publish_computed, settling_needs,
};
use crate::store::rows::UnpackedRows;
use crate::threads::{lock, spawn};
use crate::{Error, Result};

/// Pause between snapshots by time, as a multiple of the time that the last one took.
const SNAPSHOT_RESTS: u32 = 3;
/// Interval at which the progress of an awaited snapshot is shown.
const WATCH: Duration = Duration::from_millis(100);

fn is_multiple(every: Every, records: u64) -> bool {
    matches!(every, Every::Records(n) if records.is_multiple_of(n.max(1)))
}

fn is_over(every: Every, since: Instant) -> bool {
    matches!(every, Every::Time(time) if since.elapsed() >= time)
}

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

/// Ranking in progress of the commit `generation`.
struct RankingJob {
    generation: u64,
    thread: JoinHandle<Result<RankedCommit>>,
    /// Channel that is disconnected once checkpoints do not disturb the ranking.
    apart: Receiver<()>,
    /// Receives, once the ranking has settled, whether it wrote the next warm start, from which another may begin. The
    /// channel is disconnected when the thread ends.
    settled: Receiver<bool>,
    /// True once that was received.
    is_handed_on: bool,
    /// Sender that is dropped after the results were recorded.
    records: Sender<()>,
    /// Receiver that is disconnected once the results are recorded.
    recorded: Receiver<()>,
    /// Settings of settling, with its watcher.
    settle: Option<SettleSettings>,
    /// Counters at this snapshot, and at the previous one.
    counters: Counters,
    before: Option<Counters>,
}

/// Ranking by another measure: its file, or why there is none.
type OtherRanking = (ComputedName, Result<(PathBuf, ComputedInfo), String>);

/// Snapshot, unless it was stopped, and the rankings by other measures beside it.
struct RankedCommit {
    published: Option<PublishedSnapshot>,
    also: Vec<OtherRanking>,
}

pub(super) struct Publisher {
    pub checkpoints: Checkpoints,
    checkpointed: Instant,
    snapshotted: Instant,
    /// Time from which a snapshot by time may begin; `None` while one is in progress.
    next_snapshot: Arc<Mutex<Option<Instant>>>,
    /// Rankings in progress, at most two, in order.
    rankings: VecDeque<RankingJob>,
    pub published: Option<(PathBuf, Info)>,
    /// Rows cached from one snapshot to the next.
    rows: Arc<UnpackedRows>,
    /// Facts about pages cached from one snapshot to the next.
    known: Arc<Mutex<FactsCache>>,
    /// Counters at the last snapshot.
    published_at: Option<Counters>,
    /// Counters at the last snapshot that the stream determined.
    ranked_at: Option<Counters>,
    /// Number of records when a checkpoint or snapshot was last due by number.
    due_at: u64,
}

impl Publisher {
    pub fn new(published_at: Option<Counters>, records: u64) -> Publisher {
        Publisher {
            checkpoints: Checkpoints::default(),
            checkpointed: Instant::now(),
            snapshotted: Instant::now(),
            next_snapshot: Arc::new(Mutex::new(Some(Instant::now()))),
            rankings: VecDeque::new(),
            published: None,
            rows: Arc::default(),
            known: Arc::default(),
            published_at,
            ranked_at: None,
            due_at: records,
        }
    }
}

impl Drop for Publisher {
    /// Waits for the rankings in progress, which read the store.
    fn drop(&mut self) {
        for ranking in self.rankings.drain(..) {
            let _ = ranking.thread.join();
        }
    }
}

impl IngestRun<'_> {
    /// Releases what rankings cache for the next one, if the memory that is left could not hold it.
    pub(super) fn release_caches(&mut self) {
        let room = UNPACKED_ROWS + KNOWN_PAGES;
        if self.writer.memory_left().is_some_and(|left| left < room) {
            (self.publisher.rows, self.publisher.known) = (Arc::default(), Arc::default());
        }
    }

    /// Returns true if the number of records makes a checkpoint or a snapshot due, once for each number.
    pub(super) fn is_due(&self) -> bool {
        let records = self.writer.counters().records;
        let due = |every| is_multiple(every, records);
        records > self.publisher.due_at
            && (due(self.job.checkpoint_every) || due(self.job.snapshot_every))
    }

    pub(super) fn on_records(&mut self) -> Result<()> {
        let records = self.writer.counters().records;
        self.publisher.due_at = records;
        self.checkpoint()?;
        if !is_multiple(self.job.snapshot_every, records) {
            return Ok(());
        }
        let due = if self.progress.is_past_first() {
            Due::Partial
        } else {
            Due::Stream
        };
        self.begin_snapshot(Instant::now(), due)
    }

    /// Does what is due by time, unless inside a file read again: nothing of it may be durable until it is verified.
    pub(super) fn on_time(&mut self) -> Result<()> {
        self.check_spool()?;
        self.finish_ended()?;
        if self.is_rereading() {
            return Ok(());
        }
        let started = Instant::now();
        let snapshot = self.is_snapshot_late();
        let is_late = is_over(self.job.checkpoint_every, self.publisher.checkpointed);
        if snapshot || is_late && !self.is_durable() {
            self.checkpoint()?;
        }
        if snapshot {
            self.begin_snapshot(started, Due::Clock)?;
        }
        Ok(())
    }

    /// Returns true if a snapshot is due by time. The previous one must have ended, long enough ago: reading never
    /// waits for a snapshot by time, and those take at most a quarter of the time.
    fn is_snapshot_late(&self) -> bool {
        let publisher = &self.publisher;
        let records = self.writer.counters().records;
        is_over(self.job.snapshot_every, publisher.snapshotted)
            && lock(&publisher.next_snapshot).is_some_and(|from| Instant::now() >= from)
            && records > publisher.published_at.as_ref().map_or(0, |c| c.records)
    }

    /// Returns true if the last checkpoint was made at the current position: an idle stream needs no other.
    pub(super) fn is_durable(&self) -> bool {
        *self.writer.storage().progress() == self.progress
    }

    /// Returns true if something was read since the last snapshot.
    pub(super) fn owes_snapshot(&self) -> bool {
        self.publisher.published_at.as_ref() != Some(self.writer.counters())
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.check_as_in_pass_1()?;
        // The slots of the commit from which a snapshot is made are overwritten two commits later.
        let generation = self.writer.generation();
        let is_older = |ranking: &RankingJob| ranking.generation < generation;
        if self.publisher.rankings.back().is_some_and(is_older) {
            // It may wait for the results of the one before it to be recorded.
            self.finish_others()?;
            if let Some(ranking) = self.publisher.rankings.back() {
                let _ = ranking.apart.recv();
            }
        }
        self.finish_ended()?;
        if let Some(spooling) = &self.spooling {
            // The position of the checkpoint must not exceed what is durable of the stream.
            spooling.spool.sync()?;
        }
        self.note_signature();
        let started = Instant::now();
        let given_up = self.writer.commit(&self.progress)?;
        self.publisher.checkpoints.count += 1;
        self.publisher.checkpoints.time += started.elapsed();
        if self.report_rows_given_up(given_up) {
            // The current snapshot must not name a missing file.
            self.finish_publishing()?;
            self.publisher.rows = Arc::default();
            self.writer.release_rows()?;
        }
        self.report_rebuilt();
        self.observer.note(IngestEvent::Checkpoint {
            generation: self.writer.generation(),
            records: self.writer.counters().records,
        });
        if let Some(spooling) = &self.spooling {
            let over = self.progress.is_past_first() && self.is_over_rows();
            spooling.after_checkpoint(&self.progress, over)?;
        }
        self.publisher.checkpointed = Instant::now();
        Ok(())
    }

    /// Starts to make a snapshot of the last commit, on which work began at `started`.
    fn begin_snapshot(&mut self, started: Instant, due: Due) -> Result<()> {
        self.finish_settling()?;
        self.publisher.snapshotted = Instant::now();
        let is_end = self.progress.finished;
        let is_last = is_end || self.writer.has_released_memory();
        // A stop does not stop the ranking that it causes.
        let stop = if is_end || is_last && !self.stop_asked() {
            self.job.stop.clone()
        } else {
            Arc::default()
        };
        let mut settle = self.settling(stop.clone());
        let writes_warm = due == Due::Stream
            && self.writer.keeps_rows()
            && settle.as_ref().is_some_and(SettleSettings::may_be_warm);
        // A snapshot by the clock does not replace one that the stream determines.
        let is_ranked = self.publisher.ranked_at.as_ref() == Some(self.writer.counters());
        if !self.owes_snapshot() && (!writes_warm || is_ranked) {
            return Ok(());
        }
        let mut view = self.writer.view()?;
        if let Some(settle) = &mut settle {
            settle.writes_warm = writes_warm;
            settle.start = match due {
                _ if self.job.cold => StartFrom::Nothing,
                Due::Clock => StartFrom::Published,
                Due::Stream | Due::Partial => StartFrom::Warm,
            };
        }
        if writes_warm {
            self.writer.storage_mut().begin_warm_start()?;
        }
        let also = self.extra_rankings();
        let mut settling = settle.clone();
        if let Some(settle) = &mut settling {
            settle.known = self.publisher.known.clone();
            // Rankings by other measures use all the memory that is left.
            settle.leaves_known = !is_last && also.is_empty();
            settle.rows = if settle.leaves_known {
                self.publisher.rows.clone()
            } else {
                std::mem::take(&mut self.publisher.rows)
            };
        }
        let (departs, apart) = bounded::<()>(0);
        let (settles, settled) = bounded(1);
        let (records, recorded) = bounded(0);
        let hands_on = also.is_empty() && self.has_room_for_two();
        let (disk, watcher) = (self.writer.disk().clone(), Watcher::new(stop));
        *lock(&self.publisher.next_snapshot) = None;
        let next = self.publisher.next_snapshot.clone();
        let generation = view.generation();
        let previous = self.publisher.rankings.back();
        let previous = previous.map(|ranking| ranking.recorded.clone());
        let rank = move || {
            let settle = settling.as_ref();
            let is_apart = !is_last && settle.is_some_and(|settle| settle.is_possible(&view));
            let turn = SnapshotTurn {
                apart: is_apart.then(|| departs.clone()),
                settled: (is_apart && hands_on).then(|| settles.clone()),
                previous,
            };
            let _departs = (!is_apart).then_some(departs);
            let published = snapshot::publish_meanwhile(&*disk, &mut view, settle, turn);
            // Its caches give way to the rankings by other measures.
            drop(settling);
            let ranked = published.map(|published| {
                let also = also.iter().filter(|_| published.is_some());
                let also = also.map(|computing| {
                    let done = publish_computed(&*disk, &view, computing, &watcher);
                    let done = done.map_err(|error| error.to_string());
                    let done = done.and_then(|done| done.ok_or_else(|| "stopped".into()));
                    (ComputedName::of(computing), done)
                });
                RankedCommit {
                    also: also.collect(),
                    published,
                }
            });
            *lock(&next) = Some(Instant::now() + started.elapsed() * SNAPSHOT_RESTS);
            drop(settles);
            ranked
        };
        let counters = self.writer.counters().clone();
        let thread = match spawn("snapshot", rank) {
            Ok(thread) => thread,
            Err(error) => {
                self.finish_publishing()?;
                return Err(error);
            }
        };
        self.publisher.rankings.push_back(RankingJob {
            generation,
            thread,
            apart,
            settled,
            is_handed_on: false,
            records,
            recorded,
            settle,
            before: self.publisher.published_at.replace(counters.clone()),
            counters,
        });
        Ok(())
    }

    /// Returns the rankings by other measures, to be computed in the memory that is left.
    fn extra_rankings(&self) -> Vec<Computing> {
        let mut also = self.job.also.clone();
        for computing in &mut also {
            let options = &mut computing.options;
            options.damping = self.job.settings.config.damping_asked();
            options.threads = self.job.threads;
            options.memory = self.writer.memory_left();
        }
        also
    }

    /// Returns the settings for settling before a snapshot in the memory that is left, if it is settled.
    fn settling(&self, stop: Arc<AtomicBool>) -> Option<SettleSettings> {
        // A lower bound that is requested takes precedence.
        let until = |goal: Goal| self.job.until.unwrap_or(goal.until).min(goal.until);
        let goal = self.job.settle.map(|goal| Goal {
            until: until(goal),
            ..goal
        });
        let settle = self.writer.settling(goal, Watcher::new(stop))?;
        let others = self.publisher.rankings.len() as u64;
        let held = others * settling_needs(self.writer.pages());
        Some(SettleSettings {
            memory: settle.memory.map(|memory| memory.saturating_sub(held)),
            time: self.job.settle_time,
            expire: self.job.expire,
            ..settle
        })
    }

    /// Returns true if memory suffices for a ranking beside one that has settled.
    fn has_room_for_two(&self) -> bool {
        let needs = 2 * settling_needs(self.writer.pages());
        self.writer.memory_left().is_none_or(|left| left >= needs)
    }

    /// Waits until the ranking in progress, if there is one, has written the warm start, or has ended.
    fn finish_settling(&mut self) -> Result<()> {
        self.finish_others()?;
        if !self.has_room_for_two() {
            return self.finish_publishing();
        }
        let Some(mut ranking) = self.publisher.rankings.pop_front() else {
            return Ok(());
        };
        let settled = self.watch(&ranking);
        if let Some(wrote_warm) = settled {
            self.writer.storage_mut().end_warm_start(wrote_warm);
            ranking.is_handed_on = true;
        }
        self.publisher.rankings.push_front(ranking);
        match settled {
            Some(_) => Ok(()),
            None => self.finish_publishing(),
        }
    }

    /// Waits for all rankings in progress but the last, and records their results.
    fn finish_others(&mut self) -> Result<()> {
        while self.publisher.rankings.len() > 1 {
            self.finish_first()?;
        }
        Ok(())
    }

    pub(super) fn finish_publishing(&mut self) -> Result<()> {
        while !self.publisher.rankings.is_empty() {
            self.finish_first()?;
        }
        Ok(())
    }

    /// Records the results of rankings that have ended.
    fn finish_ended(&mut self) -> Result<()> {
        while let Some(ranking) = self.publisher.rankings.front()
            && ranking.thread.is_finished()
        {
            self.finish_first()?;
        }
        Ok(())
    }

    /// Waits for the first ranking in progress, and records its result.
    fn finish_first(&mut self) -> Result<()> {
        let Some(ranking) = self.publisher.rankings.pop_front() else {
            return Ok(());
        };
        while self.watch(&ranking).is_some() {}
        let joined = ranking.thread.join();
        let ranked = joined.map_err(|_| Error::internal("the snapshot thread failed"))?;
        let is_published = matches!(&ranked, Ok(ranked) if ranked.published.is_some());
        if !is_published && self.publisher.rankings.is_empty() {
            // The snapshot is still due.
            self.publisher.published_at = ranking.before;
        }
        let RankedCommit { published, also } = ranked?;
        let settle = ranking.settle.as_ref();
        if let Some((settle, need)) = settle.and_then(|s| Some((s, s.watcher.too_large()?))) {
            let room = settle.memory.unwrap_or(u64::MAX);
            self.observer.say(format!(
                "the snapshot is not settled: that needs {} of memory, and only {} is left; after the ingest, \
                 `cashrank settle` can do it",
                human(need),
                human(room)
            ));
        }
        let mut wrote_warm = false;
        if let Some(made) = published {
            for warning in &made.warnings {
                self.observer.note(IngestEvent::Warm { warning });
            }
            self.observer.note(IngestEvent::Published {
                path: &made.path,
                info: &made.info,
            });
            for (ComputedName { level, measure }, done) in &also {
                match done {
                    Ok((path, info)) => self.observer.note(IngestEvent::Computed { path, info }),
                    Err(why) => self.observer.say(format!(
                        "warning: no ranking of {} by {measure} beside this snapshot: {why}; `cashrank compute` with \
                         `measure` {measure} and `level` {level} makes it",
                        level.plural()
                    )),
                }
            }
            self.publisher.published = Some((made.path, made.info));
            if settle.is_some_and(|settle| settle.writes_warm) {
                self.publisher.ranked_at = Some(ranking.counters);
            }
            wrote_warm = made.wrote_warm;
        }
        if !ranking.is_handed_on {
            self.writer.storage_mut().end_warm_start(wrote_warm);
        }
        self.thin_snapshots()?;
        self.writer.release_rows()?;
        drop(ranking.records);
        Ok(())
    }

    /// Reports the progress of a ranking until it has settled, and returns whether it wrote the warm start; `None` if
    /// it ended.
    fn watch(&mut self, ranking: &RankingJob) -> Option<bool> {
        let mut reported = SettlingProgress::default();
        while let Some(settle) = &ranking.settle {
            match ranking.settled.recv_timeout(WATCH) {
                Err(RecvTimeoutError::Timeout) => {}
                received => return received.ok(),
            }
            let progress = settle.watcher.progress();
            if progress != reported {
                reported = progress;
                self.observer.note(IngestEvent::Settling {
                    progress: &progress,
                });
            }
        }
        ranking.settled.recv().ok()
    }

    fn thin_snapshots(&mut self) -> Result<()> {
        let keep = self.job.keep_snapshots;
        let removed = snapshot::thin(&**self.writer.disk(), &self.job.store, keep)?;
        if removed > 0 {
            let snapshots = counted(removed, "older snapshot", "older snapshots");
            let text = format!(
                "{snapshots} removed (`keep_snapshots` {keep}); those pinned by `cashrank snapshots` stay"
            );
            // Each new snapshot replaces one: only more are a loss.
            if removed > 1 {
                self.observer.warn(text);
            } else {
                self.observer.say(text);
            }
        }
        Ok(())
    }

    /// Makes the snapshot at the end, unless something is unverified.
    pub(super) fn final_snapshot(&mut self, due: Due) -> Result<()> {
        if self.progress.unverified.is_none() {
            // The one that an earlier run published may have been damaged since.
            if self.publisher.published.is_none()
                && !snapshot::latest_is_sound(&**self.writer.disk(), &self.job.store)
            {
                self.publisher.published_at = None;
            }
            self.begin_snapshot(Instant::now(), due)?;
        }
        self.finish_publishing()
    }
}
