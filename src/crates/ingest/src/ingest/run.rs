//! Run of an ingest: inputs one after the other, pass after pass, with checkpoints and snapshots in between.

mod input;
mod publish;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};

use super::plan::{check_first, check_job, plan};
use super::stream::{self, Spooling, with_stream};
use super::stream_match::SharedSigner;
use super::{
    Checkpoints, IngestEvent, IngestJob, IngestOutcome, InjectedFault, Observer, ProgressReport,
    Stream,
};
use crate::batches::is_unsound;
use crate::decode::Reason;
use crate::engine::Counters;
use crate::formats::Format;
use crate::model::InputPosition;
use crate::pipeline::InputReader;
use crate::session::{Options, Writer};
use crate::snapshot::{self, FactsCache, Info, SettleSettings};
use crate::source::{DamageKind, InputName, Restart};
use crate::store::rows::{GiveUpReason, UnpackedRows};
use crate::store::{
    Disk, Input, InputProgress, Unverified, blame_move, remove_spool, settings_of, trust_index,
};
use crate::{Error, Result};
use input::check_passes;

/// Runs a job to its end, or until something stops it; the store is left at its last checkpoint.
pub fn ingest(
    job: &IngestJob,
    disk: Arc<dyn Disk>,
    observer: &mut dyn Observer,
) -> Result<IngestOutcome> {
    let job = &*with_stream(job)?;
    check_job(job)?;
    if settings_of(&*disk, &job.store)?.is_none() {
        check_first(job)?;
    }
    let options = Options {
        limits: job.limits.clone(),
        keep_links: job.keep_links,
        ..Options::default()
    };
    let resumes = job.stream == Stream::Again;
    let settings = &job.settings;
    let writer = Writer::open_for_inputs(disk.clone(), &job.store, settings, options, resumes)?;
    if writer.storage().is_new {
        observer.say(format!("new store {}", job.store.display()));
    }
    let identity = writer.storage().identity.hash;
    let done = run(job, disk.clone(), writer, observer);
    done.map_err(|error| blame_move(&*disk, &job.store, identity, error))
}

fn run(
    job: &IngestJob,
    disk: Arc<dyn Disk>,
    writer: Writer,
    observer: &mut dyn Observer,
) -> Result<IngestOutcome> {
    let committed = writer.storage().manifest.progress.clone();
    let found = stream::found(&*disk, job)?;
    let plan = plan(job, committed.clone(), found, observer)?;
    check_passes(&plan.progress, &writer)?;
    let spooling = Spooling::open(job, &disk, &plan, &committed, found)?;
    // A ranking with other links left out does not count as published.
    let published = snapshot::latest_info(&*disk, &job.store);
    let published = published.filter(|info| info.expire() == job.expire);
    let published_at = published.map(|info| info.counters);
    snapshot::check_not_newer(&*disk, &job.store, writer.counters())?;
    if let Some(spooling) = &spooling {
        observer.note(IngestEvent::Spooling {
            from: spooling.spool.acked(),
        });
    }
    let mut reader = InputReader::new(writer.rules(), &job.source, job.threads);
    reader.delays = job.delays;
    let now = Instant::now();
    let mut run = IngestRun {
        before: (writer.counters().clone(), writer.pages()),
        rankings: VecDeque::new(),
        spooling,
        progress: plan.progress,
        inputs: plan.inputs,
        reader,
        signer: None,
        begun: false,
        was_read_before: false,
        torn: 0,
        from: 0,
        start: 0,
        is_whole: true,
        is_torn: false,
        known: 0,
        ungrouped: 0,
        checkpoints: Checkpoints::default(),
        checkpointed: now,
        snapshotted: now,
        next_snapshot: now,
        published: None,
        unpacked: Arc::default(),
        facts: Arc::default(),
        published_at,
        ranked_at: None,
        due_at: writer.counters().records,
        tell_at: REPORTED_FROM.max(writer.pages().saturating_mul(2)),
        job,
        observer,
        writer,
    };
    run.report_passes();
    run.report_memory();
    if job.fault == Some(InjectedFault::IndexUnchecked) {
        trust_index(&mut run.writer.engine)?;
    }
    run.report_rebuilt();
    run.writer.release_rows()?;
    let reason = run.writer.storage_mut().rows_given_up.take();
    let dropped = run.report_rows_given_up(reason);
    // The snapshot at the end, if a crash prevented it.
    if committed.finished && run.owes_snapshot() {
        run.final_snapshot(true)?;
        if run.is_stop_requested() && run.owes_snapshot() {
            return Ok(run.outcome(false, true));
        }
    }
    if run.progress.finished
        && !run.owes_snapshot()
        && snapshot::latest_is_sound(&*disk, &job.store)
    {
        if dropped {
            run.checkpoint()?;
        }
        return Ok(run.outcome(true, false));
    }
    run.read_passes()
}

/// Number of pages from which each doubling is reported.
const REPORTED_FROM: u64 = 1 << 20;

pub(super) struct IngestRun<'a> {
    pub job: &'a IngestJob,
    pub observer: &'a mut dyn Observer,
    /// Rankings in progress, at most two, in order.
    rankings: VecDeque<RankingJob>,
    /// Dropped before the writer, as the spool writes into the store.
    pub spooling: Option<Spooling>,
    pub reader: InputReader,
    inputs: Vec<InputName>,
    pub progress: InputProgress,
    /// Signer of the current or last stream, if it was read from its first byte, and the number of that input.
    pub signer: Option<(u64, SharedSigner)>,
    /// True if an input was begun, so that more is known than the last checkpoint has.
    begun: bool,
    /// True if standard input is the stream that was read before, which ends the run: nothing is left to do.
    pub was_read_before: bool,
    /// Number of records at the ends of streams that were cut short; the store does not count them.
    torn: u64,

    /// Offset at which reading of the current input resumed. A record that ended there is read again: it may have grown.
    from: u64,
    /// Offset of the start of the last visit at which reading may stop.
    start: u64,
    /// True if nothing was applied after the position, the end of the last record at which reading may stop.
    is_whole: bool,
    /// True if the current stream was cut inside its last record, which is neither counted nor part of the position.
    is_torn: bool,
    /// Number of pages known before this run applied a record of the current input.
    known: u64,
    /// Number of lines of the current input that return to an earlier source.
    ungrouped: u64,

    checkpoints: Checkpoints,
    checkpointed: Instant,
    snapshotted: Instant,
    next_snapshot: Instant,
    published: Option<(PathBuf, Info)>,
    /// Rows cached from one snapshot to the next.
    unpacked: Arc<UnpackedRows>,
    /// Facts about pages cached from one snapshot to the next.
    facts: Arc<Mutex<FactsCache>>,
    published_at: Option<Counters>,
    /// Counters at the last snapshot that the stream determined.
    ranked_at: Option<Counters>,
    /// Number of records when a checkpoint or snapshot was last due by number.
    due_at: u64,
    /// Number of pages at which the use of memory is reported next.
    tell_at: u64,

    pub writer: Writer,
    before: (Counters, u64),
}

/// Ranking in progress of the commit `generation`.
struct RankingJob {
    generation: u64,
    started: Instant,
    /// Returns the snapshot; `None` if it was stopped.
    thread: JoinHandle<Result<Option<(PathBuf, Info)>>>,
    /// True if checkpoints do not disturb the ranking.
    is_apart: bool,
    /// Channel with a message once another ranking may begin; disconnected when the thread ends.
    settled: Receiver<()>,
    is_handed_on: bool,
    /// Dropped after the results were recorded, which disconnects the receiver.
    _records: Sender<()>,
    recorded: Receiver<()>,
    settle: Option<SettleSettings>,
    /// Counters at this snapshot, and at the previous one.
    counters: Counters,
    before: Option<Counters>,
}

impl RankingJob {
    fn wrote_warm(&self) -> bool {
        let settle = self.settle.as_ref();
        settle.is_some_and(|settle| settle.watcher.wrote_warm())
    }
}

impl Drop for IngestRun<'_> {
    /// Waits for the rankings in progress, which read the store.
    fn drop(&mut self) {
        for ranking in self.rankings.drain(..) {
            let _ = ranking.thread.join();
        }
    }
}

impl IngestRun<'_> {
    fn read_passes(mut self) -> Result<IngestOutcome> {
        while !self.progress.finished && self.progress.pass <= self.progress.repeat {
            match self.read_pass() {
                Ok(true) => self.end_pass()?,
                Ok(false) if self.was_read_before => return self.read_before(),
                Ok(false) => return self.stop(),
                Err(error) => return Err(self.bad_end(error)),
            }
        }
        self.finish()?;
        let stopped = self.progress.unverified.is_none() && self.owes_snapshot();
        Ok(self.outcome(false, stopped))
    }

    /// Reads the inputs of a pass, or sweeps the kept rows. Returns false if it was stopped, or the stream was read before.
    fn read_pass(&mut self) -> Result<bool> {
        self.writer.engine.is_replay = self.is_repeating();
        if self.is_between_passes() {
            self.writer.engine.begin_pass()?;
        }
        if self.is_over_rows() {
            return self.sweep_rows();
        }
        while self.progress.input < self.inputs.len() as u64 {
            if self.is_repeating() && self.was_empty() {
                self.progress.go_to(self.progress.input + 1);
            } else if !self.read_input()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn end_pass(&mut self) -> Result<()> {
        self.progress.pass += 1;
        self.progress.go_to(0);
        if self.progress.pass == 2 && self.is_between_passes() {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.progress.finished = true;
        self.finish_publishing()?;
        self.checkpoint()?;
        self.keep_index();
        // A stream that was cut inside a record has not ended.
        self.rank_at_last(self.torn == 0)
    }

    /// Makes the last snapshot, after releasing the memory that only further records would need.
    fn rank_at_last(&mut self, writes_warm: bool) -> Result<()> {
        self.finish_publishing()?;
        self.writer.release_memory()?;
        self.final_snapshot(writes_warm)
    }

    fn keep_index(&mut self) {
        if let Err(error) = self.writer.keep_index() {
            let what = format!("warning: {error}; the next run takes longer to start");
            self.observer.warn(what);
        }
    }

    fn stop(mut self) -> Result<IngestOutcome> {
        match &self.spooling {
            _ if self.begun => self.checkpoint()?,
            Some(spooling) => spooling.spool.sync()?,
            None => {}
        }
        self.keep_index();
        // A crawler that has gone does not send again: what was read of a stream is ranked.
        let input = self.inputs.get(self.progress.input as usize);
        if self.begun && input == Some(&InputName::Stdin) {
            self.observer
                .say("stopping: ranking what was read; a second signal stops at once");
            self.rank_at_last(false)?;
        }
        self.finish_publishing()?;
        Ok(self.outcome(false, true))
    }

    /// Keeps what was applied before bad input, and publishes it if it was sound.
    fn bad_end(mut self, error: Error) -> Error {
        let keep = match &error {
            Error::Corrupt { damage, input, .. } => {
                if is_unsound(damage, &self.job.source) {
                    self.progress.unverified.get_or_insert(Unverified {
                        input: input.clone(),
                        from_record: 0,
                    });
                } else {
                    self.progress.unverified = None;
                }
                true
            }
            Error::BadRecord { .. } | Error::TooManyPages { .. } | Error::OverBudget { .. } => true,
            _ => false,
        };
        if !keep || self.check_as_in_pass_1().is_err() {
            return error;
        }
        let kept = self.checkpoint();
        let kept = kept.and_then(|()| self.rank_at_last(false));
        self.end_spooling();
        // Damage is final, unless the input was only cut short.
        let is_final =
            matches!(&error, Error::Corrupt { damage, .. } if damage.kind != DamageKind::Truncated);
        if is_final && self.restart().is_some() {
            self.observer.warn(
                "spool: it holds the damaged bytes as they were sent, so reading them again fails again; `new_stream` \
                 discards them",
            );
        }
        if let Some(unverified) = &self.progress.unverified {
            self.observer.note(IngestEvent::Withheld { unverified });
        }
        kept.err().unwrap_or(error)
    }

    fn read_before(mut self) -> Result<IngestOutcome> {
        if let Some(spooling) = self.spooling.take() {
            spooling.end();
            remove_spool(&*self.writer.storage().disk, &self.job.store)?;
        }
        Ok(self.outcome(true, false))
    }

    fn outcome(mut self, nothing_to_do: bool, stopped: bool) -> IngestOutcome {
        let (need, fits) = self.writer.memory();
        let mut counters = self.writer.counters().clone();
        counters.skipped[Reason::CutShort as usize] += self.torn;
        IngestOutcome {
            need,
            fits,
            durable: self.end_spooling(),
            nothing_to_do,
            stopped,
            before: self.before.0.clone(),
            counters,
            pages: self.writer.pages(),
            pages_before: self.before.1,
            checkpoints: self.checkpoints,
            snapshot: self.published.clone(),
            unverified: self.progress.unverified.clone(),
        }
    }

    fn report_passes(&mut self) {
        if self.progress.repeat > 1 && !self.progress.finished {
            let how = if self.writer.storage().rows.is_some() {
                "all but the first use the links kept in the store"
            } else {
                "each reads the inputs, as their links are not kept (`keep_links`)"
            };
            let repeat = self.progress.repeat;
            self.observer.say(format!("{repeat} passes: {how}"));
        }
    }

    fn report_rebuilt(&mut self) {
        if let Some(damage) = &self.writer.storage_mut().rebuilt.take() {
            self.observer.note(IngestEvent::Rebuilt { damage });
        }
    }

    /// Returns true if rows were given up for a `reason`, which is reported.
    fn report_rows_given_up(&mut self, reason: Option<GiveUpReason>) -> bool {
        if let Some(reason) = reason {
            self.observer.note(IngestEvent::RowsGivenUp { reason });
            self.report_passes();
        }
        reason.is_some()
    }

    /// Reports the progress in an input or, without one, in the rows.
    fn report_progress(&mut self, input: Option<&InputName>, done: u64, length: Option<u64>) {
        self.observer.progress(&ProgressReport {
            input,
            done,
            length,
            input_index: self.progress.input as usize,
            inputs: self.inputs.len(),
            pass: self.progress.pass,
            repeat: self.progress.repeat,
            counters: self.writer.counters(),
            pages: self.writer.pages(),
        });
    }

    fn report_memory(&mut self) {
        let (need, fits) = self.writer.memory();
        if let Some(budget) = self.writer.memory_limit() {
            self.observer
                .note(IngestEvent::Memory { need, budget, fits });
        }
    }

    fn look_at_budget(&mut self) {
        self.release_caches();
        let pages = self.writer.pages();
        if self.writer.memory_limit().is_some() && pages >= self.tell_at {
            self.tell_at = pages.saturating_mul(2);
            self.report_memory();
        }
    }

    pub fn is_stop_requested(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    pub fn is_repeating(&self) -> bool {
        self.progress.pass > 1
    }

    fn is_rereading(&self) -> bool {
        self.is_repeating() && self.progress.place.offset > 0
    }

    fn is_over_rows(&self) -> bool {
        self.is_repeating() && self.writer.storage().rows.is_some()
    }

    /// Returns true if a pass other than the first is about to begin.
    fn is_between_passes(&self) -> bool {
        let progress = &self.progress;
        let begun = progress.input > 0 || progress.place != InputPosition::start();
        self.is_repeating() && progress.pass <= progress.repeat && !begun
    }

    pub fn current(&self) -> Option<&Input> {
        self.progress.inputs.get(self.progress.input as usize)
    }

    /// Returns true if the current input was read and is empty. Later passes do not open it: it may have another name.
    fn was_empty(&self) -> bool {
        self.current().is_some_and(Input::is_empty)
    }

    fn current_mut(&mut self) -> Option<&mut Input> {
        self.progress.inputs.get_mut(self.progress.input as usize)
    }

    /// Returns the position from which the current input is needed, if it is spooled.
    fn restart(&self) -> Option<Restart> {
        Some(self.current()?.spooled?.0)
    }

    /// Moves to the end of the last stream that was read. Returns its format.
    fn pass_over_last(&mut self) -> Result<Format> {
        let stream = self.progress.stream.as_ref();
        let last = stream.map(|stream| stream.input);
        if last.is_some() && self.progress.requests == last {
            self.progress.requests = Some(self.progress.input);
        }
        let before = last.and_then(|last| self.progress.inputs.get(last as usize));
        let (end, format) = before
            .and_then(|before| Some((before.end?, self.format_read(before))))
            .ok_or_else(|| Error::Conflict("-: no stream was read before".into()))?;
        self.progress.place = end;
        format
    }

    /// Ends the current input at `end`, where pass 1 ended it (else [`Error::InputChanged`]).
    fn end_current(&mut self, name: &InputName, end: InputPosition) -> Result<()> {
        let Some(input) = self.current_mut() else {
            return Err(Error::internal("an input ended that was not begun"));
        };
        let before = *input.end.get_or_insert(end);
        if before != end {
            return Err(Error::InputChanged(format!(
                "{name}: has changed since pass 1: {} bytes in {} records then, {} bytes in {} now; \
                 put it back, or use another store",
                before.offset, before.records, end.offset, end.records
            )));
        }
        self.progress.unverified = None;
        self.progress.go_to(self.progress.input + 1);
        Ok(())
    }

    fn forget_last(&mut self) {
        self.progress.inputs.pop();
        self.progress.input = self.progress.inputs.len() as u64;
        self.inputs.truncate(self.progress.inputs.len());
    }
}
