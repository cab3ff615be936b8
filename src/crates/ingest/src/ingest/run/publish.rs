//! Checkpoints and rankings of a run: when each is due, and the rankings in progress while the ingest continues. Where
//! memory suffices for two, the next ranking begins once the one before it has settled and wrote the warm start,
//! otherwise after its end. They are published in order, each after the results of the previous one were recorded.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::{IngestRun, RankingJob};
use crate::ingest::{Every, IngestEvent};
use crate::memory::{KNOWN_PAGES, UNPACKED_ROWS};
use crate::model::{counted, human};
use crate::rank::settle::SettlingProgress;
use crate::snapshot::{self, KeepSnapshots, SettleSettings, Watcher, settling_needs};
use crate::threads::spawn;
use crate::{Error, Result};

/// Pause between snapshots by time, as a multiple of the time that the last one took.
const SNAPSHOT_RESTS: u32 = 3;
const WATCH: Duration = Duration::from_millis(100);

fn is_multiple(every: Every, records: u64) -> bool {
    matches!(every, Every::Records(n) if records.is_multiple_of(n.max(1)))
}

fn is_over(every: Every, since: Instant) -> bool {
    matches!(every, Every::Time(time) if since.elapsed() >= time)
}

impl IngestRun<'_> {
    /// Releases what rankings cache for the next one, if the memory that is left could not hold it.
    pub(super) fn release_caches(&mut self) {
        let room = UNPACKED_ROWS + KNOWN_PAGES;
        if self.writer.memory_left().is_some_and(|left| left < room) {
            (self.unpacked, self.facts) = (Arc::default(), Arc::default());
        }
    }

    /// Returns true if the number of records makes a checkpoint or a snapshot due, once for each number.
    pub(super) fn is_due(&self) -> bool {
        let records = self.writer.counters().records;
        let due = |every| is_multiple(every, records);
        records > self.due_at && (due(self.job.checkpoint_every) || due(self.job.snapshot_every))
    }

    pub(super) fn on_records(&mut self) -> Result<()> {
        let records = self.writer.counters().records;
        self.due_at = records;
        self.checkpoint()?;
        if !is_multiple(self.job.snapshot_every, records) {
            return Ok(());
        }
        // A pass after the first changes no rows.
        let writes_warm = !self.progress.is_past_first();
        self.begin_snapshot(Instant::now(), false, writes_warm)
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
        let is_late = is_over(self.job.checkpoint_every, self.checkpointed);
        if snapshot || is_late && !self.is_durable() {
            self.checkpoint()?;
        }
        if snapshot {
            self.begin_snapshot(started, true, false)?;
        }
        Ok(())
    }

    /// Returns true if a snapshot is due by time. They take at most a quarter of the time.
    fn is_snapshot_late(&self) -> bool {
        let records = self.writer.counters().records;
        is_over(self.job.snapshot_every, self.snapshotted)
            && self.rankings.is_empty()
            && Instant::now() >= self.next_snapshot
            && records > self.published_at.as_ref().map_or(0, |c| c.records)
    }

    pub(super) fn is_durable(&self) -> bool {
        self.writer.storage().manifest.progress == self.progress
    }

    /// Returns true if something was read since the last snapshot.
    pub(super) fn owes_snapshot(&self) -> bool {
        self.published_at.as_ref() != Some(self.writer.counters())
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.check_as_in_pass_1()?;
        // The slots of the commit from which a snapshot is made are overwritten two commits later.
        let generation = self.writer.storage().manifest.generation;
        let in_the_way =
            |ranking: &RankingJob| !ranking.is_apart && ranking.generation < generation;
        if self.rankings.back().is_some_and(in_the_way) {
            self.finish_publishing()?;
        }
        self.finish_ended()?;
        if let Some(spooling) = &self.spooling {
            // The position of the checkpoint must not exceed what is durable of the stream.
            spooling.spool.sync()?;
        }
        self.note_signature();
        let started = Instant::now();
        let given_up = self.writer.commit(&self.progress)?;
        self.checkpoints.count += 1;
        self.checkpoints.time += started.elapsed();
        if self.report_rows_given_up(given_up) {
            // The current snapshot must not name a missing file.
            self.finish_publishing()?;
            self.unpacked = Arc::default();
            self.writer.release_rows()?;
        }
        self.report_rebuilt();
        self.observer.note(IngestEvent::Checkpoint {
            generation: self.writer.storage().manifest.generation,
            records: self.writer.counters().records,
        });
        if let Some(spooling) = &self.spooling {
            spooling.after_checkpoint(&self.progress)?;
        }
        self.checkpointed = Instant::now();
        Ok(())
    }

    /// Starts to make a snapshot of the last commit. If records determine it, it may be the next warm start.
    fn begin_snapshot(
        &mut self,
        started: Instant,
        by_clock: bool,
        writes_warm: bool,
    ) -> Result<()> {
        self.finish_settling()?;
        self.snapshotted = Instant::now();
        let is_end = self.progress.finished;
        let is_last = is_end || self.writer.has_released_memory();
        // A stop does not stop the ranking that it causes.
        let stop = if is_end || is_last && !self.is_stop_requested() {
            self.job.stop.clone()
        } else {
            Arc::default()
        };
        let mut settle = self.settling(stop);
        let writes_warm = writes_warm
            && self.writer.storage().rows.is_some()
            && settle.as_ref().is_some_and(SettleSettings::may_be_warm);
        // A snapshot by the clock does not replace one that the stream determines.
        let is_ranked = self.ranked_at.as_ref() == Some(self.writer.counters());
        if !self.owes_snapshot() && (!writes_warm || is_ranked) {
            return Ok(());
        }
        let mut view = self.writer.view()?;
        if let Some(settle) = &mut settle {
            settle.writes_warm = writes_warm;
            settle.is_cold = self.job.cold;
            settle.may_start_from_published = by_clock;
        }
        if writes_warm {
            self.writer.storage_mut().begin_warm_start()?;
        }
        let mut settling = settle.clone();
        if let Some(settle) = &mut settling {
            settle.known = self.facts.clone();
            settle.leaves_known = !is_last;
            settle.rows = if settle.leaves_known {
                self.unpacked.clone()
            } else {
                std::mem::take(&mut self.unpacked)
            };
        }
        let (settles, settled) = bounded(1);
        let (records, recorded) = bounded(0);
        let hands_on = self.has_room_for_two();
        let disk = self.writer.storage().disk.clone();
        let generation = view.manifest.generation;
        let previous = self.rankings.back();
        let previous = previous.map(|ranking| ranking.recorded.clone());
        let settles_here = settling
            .as_ref()
            .is_some_and(|settle| settle.is_possible(&view));
        let is_apart = !is_last && settles_here;
        let cash = is_apart.then(|| view.copy_cash(&*disk)).transpose()?;
        let rank = move || {
            let published = snapshot::publish_in_turn(
                &*disk,
                &view,
                KeepSnapshots::ALL,
                settling.as_ref(),
                (is_apart && hands_on).then_some(&settles),
                previous.as_ref(),
            )?;
            if let Some(path) = cash {
                disk.remove(&path).map_err(Error::io(&path, "remove"))?;
            }
            Ok(published)
        };
        let counters = self.writer.counters().clone();
        let thread = match spawn("snapshot", rank) {
            Ok(thread) => thread,
            Err(error) => {
                self.finish_publishing()?;
                return Err(error);
            }
        };
        self.rankings.push_back(RankingJob {
            generation,
            started,
            thread,
            is_apart,
            settled,
            is_handed_on: false,
            _records: records,
            recorded,
            settle,
            before: self.published_at.replace(counters.clone()),
            counters,
        });
        Ok(())
    }

    /// Returns the settings for settling before a snapshot in the memory that is left, if it is settled.
    fn settling(&self, stop: Arc<AtomicBool>) -> Option<SettleSettings> {
        let settle = self.writer.settling(self.job.settle, Watcher::new(stop))?;
        let others = self.rankings.len() as u64;
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
        while self.rankings.len() > 1 {
            self.finish_first()?;
        }
        if !self.has_room_for_two() {
            return self.finish_publishing();
        }
        let Some(mut ranking) = self.rankings.pop_front() else {
            return Ok(());
        };
        ranking.is_handed_on = self.watch(&ranking);
        if ranking.is_handed_on {
            let wrote = ranking.wrote_warm();
            self.writer.storage_mut().end_warm_start(wrote);
        }
        let is_settled = ranking.is_handed_on;
        self.rankings.push_front(ranking);
        if is_settled {
            return Ok(());
        }
        self.finish_publishing()
    }

    /// Waits for all rankings in progress, and records their results.
    pub(super) fn finish_publishing(&mut self) -> Result<()> {
        while !self.rankings.is_empty() {
            self.finish_first()?;
        }
        Ok(())
    }

    fn finish_ended(&mut self) -> Result<()> {
        while let Some(ranking) = self.rankings.front()
            && ranking.thread.is_finished()
        {
            self.finish_first()?;
        }
        Ok(())
    }

    fn finish_first(&mut self) -> Result<()> {
        let Some(ranking) = self.rankings.pop_front() else {
            return Ok(());
        };
        while self.watch(&ranking) {}
        let joined = ranking.thread.join();
        self.next_snapshot = Instant::now() + ranking.started.elapsed() * SNAPSHOT_RESTS;
        let ranked = joined.map_err(|_| Error::internal("the snapshot thread failed"))?;
        let is_published = matches!(&ranked, Ok(Some(_)));
        if !is_published && self.rankings.is_empty() {
            // The snapshot is still due.
            self.published_at = ranking.before;
        }
        let published = ranked?;
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
        if let Some((path, info)) = published {
            for warning in settle.map_or_else(Vec::new, |settle| settle.watcher.take_warnings()) {
                self.observer.note(IngestEvent::Warm { warning: &warning });
            }
            self.observer.note(IngestEvent::Published {
                path: &path,
                info: &info,
            });
            self.published = Some((path, info));
            if settle.is_some_and(|settle| settle.writes_warm) {
                self.ranked_at = Some(ranking.counters);
            }
        }
        if !ranking.is_handed_on {
            let wrote = is_published && settle.is_some_and(|settle| settle.watcher.wrote_warm());
            self.writer.storage_mut().end_warm_start(wrote);
        }
        self.thin_snapshots()?;
        self.writer.release_rows()
    }

    /// Reports the progress of a ranking until another may begin, and returns true, or until it ended.
    fn watch(&mut self, ranking: &RankingJob) -> bool {
        let mut reported = SettlingProgress::default();
        while let Some(settle) = &ranking.settle {
            match ranking.settled.recv_timeout(WATCH) {
                Err(RecvTimeoutError::Timeout) => {}
                received => return received.is_ok(),
            }
            let progress = settle.watcher.progress();
            if progress != reported {
                reported = progress;
                self.observer.note(IngestEvent::Settling {
                    progress: &progress,
                });
            }
        }
        ranking.settled.recv().is_ok()
    }

    fn thin_snapshots(&mut self) -> Result<()> {
        let keep = self.job.keep_snapshots;
        let removed = snapshot::thin(&*self.writer.storage().disk, &self.job.store, keep)?;
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
    pub(super) fn final_snapshot(&mut self, writes_warm: bool) -> Result<()> {
        if self.progress.unverified.is_none() {
            // The one that an earlier run published may have been damaged since.
            if self.published.is_none()
                && !snapshot::latest_is_sound(&*self.writer.storage().disk, &self.job.store)
            {
                self.published_at = None;
            }
            self.begin_snapshot(Instant::now(), false, writes_warm)?;
        }
        self.finish_publishing()
    }
}
