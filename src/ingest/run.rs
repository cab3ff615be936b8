//! The run: inputs one after the other, pass after pass, with checkpoints and snapshots between.

mod ahead;
mod begin;
mod budget;
mod complete;
mod reading;
mod schedule;
mod stream;
mod swept;
mod unchanged;
mod until;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::input::is_unsound;
use super::pipe::with_stream;
use super::plan::{check_first, check_job, plan};
use super::planned::Plan;
use super::spooling::{self, Spooling};
use super::{Job, Note, Observer, Outcome, ProgressReport, Stream};
use crate::batch::Rules;
use crate::decode::Reason;
use crate::engine::{Counters, Engine, NameMap};
use crate::memory::Need;
use crate::pipeline::InputReader;
use crate::session::{Budget, rules_of};
use crate::snapshot::{self, Info};
use crate::source::{DamageKind, InputName, Restart};
use crate::store::{Disk, OpenStore, Place, Progress, Spooled, Store, Unverified, settings_of};
use crate::{Error, Result};
use ahead::Ahead;
use schedule::{RunPosition, SnapshotJob};
use stream::InputSigner;
use swept::check_passes;
use unchanged::Stamp;

/// Runs a job to its end, or to where something stops it. Whatever stops it, the store holds its
/// last checkpoint, and after bad input or a stop from outside a fresh one.
pub fn ingest(job: &Job, disk: Arc<dyn Disk>, observer: &mut dyn Observer) -> Result<Outcome> {
    let job = &*with_stream(job)?;
    check_job(job)?;
    if settings_of(&*disk, &job.store)?.is_none() {
        check_first(job)?;
    }
    let opened = Store::open(
        disk.clone(),
        &job.store,
        &job.settings,
        &job.limits,
        job.keep_rows,
        job.stream == Stream::Again,
    )?;
    if opened.new {
        observer.note(Note::Created { store: &job.store });
    }
    let OpenStore {
        mut engine,
        progress,
        ..
    } = opened;
    let was_finished = progress.finished;
    let found = spooling::found(&*disk, job)?;
    let plan = plan(job, progress.clone(), found, observer)?;
    check_passes(&plan, engine.storage())?;
    let spooling = Spooling::open(job, &disk, &plan, &progress, found)?;
    let Plan {
        progress,
        inputs,
        finished,
        unless_read_before,
    } = plan;
    let published_at = snapshot::latest_counters(&*disk, &job.store);
    snapshot::check_not_newer(&*disk, &job.store, engine.counters())?;
    if let Some(spooling) = &spooling {
        observer.note(Note::Spooling {
            from: spooling.acked(),
        });
    }
    let mut run = Run {
        budget: Budget::new(job.limits.memory, &mut engine),
        needed: None,
        before: (engine.counters().clone(), engine.ledger().totals().pages),
        cadence: Cadence::new(published_at, engine.counters().records),
        feed: Feed::new(
            job,
            inputs,
            rules_of(&engine, &job.limits, &job.settings.input),
        ),
        job,
        observer,
        progress,
        spooling,
        signer: None,
        begun: false,
        ungrouped: 0,
        engine,
        disk,
    };
    run.tell_passes();
    run.tell_memory();
    run.release_rows()?;
    let dropped = run.tell_rows();
    // The snapshot at the end of what was read before, if a kill came before it.
    if was_finished && run.owes_snapshot() {
        run.final_snapshot()?;
    }
    if let Some(refusal) = unless_read_before {
        return run.expect_read_before(refusal);
    }
    run.progress.finished |= run.is_between_passes() && run.is_near_enough()?;
    if (finished || run.progress.finished)
        && !run.owes_snapshot()
        && snapshot::latest_is_sound(&*run.disk, &job.store)
    {
        if dropped {
            run.checkpoint()?;
        }
        return Ok(run.outcome(true, false));
    }
    run.read_passes()
}

/// What a spooled input's spool must keep: all from `restart` on.
fn kept(restart: Restart) -> Spooled {
    Spooled {
        restart,
        total: None,
    }
}

/// A job under way. What it reads is the feed's, what is due when the cadence's.
struct Run<'a> {
    job: &'a Job,
    disk: Arc<dyn Disk>,
    observer: &'a mut dyn Observer,
    /// Before the engine, whose store holds the lock: a snapshot being published is waited for, whatever ends the run.
    cadence: Cadence,
    /// Before the engine too: it writes into the store.
    spooling: Option<Spooling>,
    /// Of the stream that is read or was read last, if it was from its first byte.
    signer: Option<InputSigner>,
    feed: Feed,
    engine: Engine<Store>,
    budget: Budget,
    /// What was needed, and the pages that would have fitted, once no more records are applied.
    needed: Option<(Need, u64)>,
    /// How far the inputs were read.
    progress: Progress,
    /// An input was begun: what is known is more than the last checkpoint.
    begun: bool,
    /// What was known when the run began: what was read, and pages.
    before: (Counters, u64),
    /// Lines of the running input that go back to an earlier source.
    ungrouped: u64,
}

/// When checkpoints and snapshots were made, and what was published.
struct Cadence {
    /// How many were made, and the time they took.
    checkpoints: (u64, Duration),
    checkpointed: Instant,
    /// How far the last checkpoint was: an idle stream needs no other.
    checkpointed_at: Option<RunPosition>,
    snapshotted: Instant,
    /// From when on a snapshot may be begun by time; `None`: one is being made.
    next_snapshot: Arc<Mutex<Option<Instant>>>,
    publishing: Option<SnapshotJob>,
    published: Option<(PathBuf, Info)>,
    /// What had been read at the last snapshot.
    published_at: Option<Counters>,
    /// Records when a checkpoint or snapshot was last due by their number.
    due_at: u64,
}

impl Cadence {
    fn new(published_at: Option<Counters>, records: u64) -> Cadence {
        Cadence {
            checkpoints: (0, Duration::ZERO),
            checkpointed: Instant::now(),
            checkpointed_at: None,
            snapshotted: Instant::now(),
            next_snapshot: Arc::new(Mutex::new(Some(Instant::now()))),
            publishing: None,
            published: None,
            published_at,
            due_at: records,
        }
    }
}

/// What is read, and what is kept of it from input to input and pass to pass.
struct Feed {
    inputs: Vec<InputName>,
    /// The next input, if it was begun.
    ahead: Option<Ahead>,
    reader: InputReader,
    /// By input: of an archive read in this run, the pages of its names.
    names: Vec<NameMap>,
    /// Records at the ends of streams that were cut short. The store does not count them.
    torn: u64,
    /// Of each input: the file as it was when it was known to hold what pass 1 read.
    stamps: Vec<Option<Stamp>>,
}

impl Feed {
    fn new(job: &Job, inputs: Vec<InputName>, rules: Rules) -> Feed {
        let mut reader = InputReader::new(rules, &job.source, job.threads);
        reader.delays = job.delays;
        Feed {
            ahead: None,
            reader,
            names: Vec::new(),
            torn: 0,
            stamps: vec![None; inputs.len()],
            inputs,
        }
    }

    /// Names of an input, if it is an archive, whose pages are known from an earlier pass: all or none.
    fn known_names(&self, input: u64) -> u64 {
        let names = self.names.get(input as usize);
        names.map_or(0, NameMap::len)
    }

    /// Takes the pages of these names.
    fn take_names(&mut self, input: u64) -> NameMap {
        let names = self.names.get_mut(input as usize);
        names.map(std::mem::take).unwrap_or_default()
    }

    /// Keeps the pages of an input's names for the next pass.
    fn keep_names(&mut self, input: u64, names: NameMap) {
        self.names.resize_with(self.inputs.len(), NameMap::default);
        self.names[input as usize] = names;
    }

    /// Bytes of memory that names take which are kept.
    fn names_bytes(&self) -> u64 {
        self.names.iter().map(NameMap::bytes).sum()
    }
}

/// Why reading an input ended.
#[derive(PartialEq, Eq)]
enum InputEnd {
    Whole,
    Stopped,
    /// It was read before, all of it, and nothing is to do.
    ReadBefore,
}

impl Run<'_> {
    fn read_passes(mut self) -> Result<Outcome> {
        while self.progress.pass <= self.progress.repeat && !self.progress.finished {
            if self.progress.pass > 1
                && let Some(refusal) = self.cannot_repeat()
            {
                return Err(self.leave_out_passes(refusal));
            }
            self.engine.go_again(self.progress.pass > 1);
            if self.is_between_passes() {
                self.engine.begin_pass()?;
            }
            while self.progress.completing.is_none()
                && (self.progress.input as usize) < self.feed.inputs.len()
            {
                let input = self.feed.inputs[self.progress.input as usize].clone();
                let done = if self.is_over_rows() {
                    self.sweep_rows()
                } else {
                    self.read_input(&input)
                };
                match done {
                    Ok(InputEnd::Whole) => {}
                    Ok(InputEnd::Stopped) => return self.stop(),
                    Ok(InputEnd::ReadBefore) => return self.read_before(),
                    Err(error) => return Err(self.bad_end(error)),
                }
            }
            if self.progress.complete && self.complete()? == InputEnd::Stopped {
                return self.stop();
            }
            self.end_pass()?;
        }
        self.finish()?;
        let stopped = self.progress.unverified.is_none() && self.owes_snapshot();
        Ok(self.outcome(false, stopped))
    }

    /// The last checkpoint and snapshot.
    fn finish(&mut self) -> Result<()> {
        self.progress.finished = true;
        self.checkpoint()?;
        self.rest()?;
        self.final_snapshot()
    }

    /// Before another pass all before it is made durable where that decides: after the first pass whether links were
    /// kept, and always how near the ranking is.
    fn end_pass(&mut self) -> Result<()> {
        let is_first = self.progress.pass == 1;
        self.progress.pass += 1;
        self.progress.input = 0;
        self.progress.place = Place::start();
        if !self.is_between_passes() || !is_first && self.job.until.is_none() {
            return Ok(());
        }
        self.checkpoint()?;
        let durable = self.cadence.checkpointed_at == Some(self.reached());
        self.progress.finished = durable && self.is_near_enough()?;
        Ok(())
    }

    /// What was read is ranked; the passes to come cannot be made.
    fn leave_out_passes(mut self, refusal: Error) -> Error {
        self.progress.repeat = self.progress.pass - 1;
        self.progress.input = 0;
        self.progress.place = Place::start();
        let finished = self.finish();
        self.end_spooling();
        finished.err().unwrap_or(refusal)
    }

    fn stop(mut self) -> Result<Outcome> {
        match &self.spooling {
            _ if self.begun => self.checkpoint()?,
            Some(spooling) => spooling.before_checkpoint()?,
            None => {}
        }
        // A crawler that is gone does not send again: what was read of a stream is ranked.
        let input = self.feed.inputs.get(self.progress.input as usize);
        if self.begun && self.progress.pass == 1 && input == Some(&InputName::Stdin) {
            self.observer.note(Note::Stopping);
            self.final_snapshot()?;
        }
        self.finish_publishing()?;
        Ok(self.outcome(false, true))
    }

    /// After bad input: keeps what was applied before it, and publishes if that was sound.
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
        if !keep || !matches!(self.is_as_in_pass_1(), Ok(true)) {
            return error;
        }
        let kept = self.checkpoint().and_then(|()| self.final_snapshot());
        self.end_spooling();
        if self.spooled(self.progress.input) && is_final_damage(&error) {
            self.observer.note(Note::SpooledDamage);
        }
        if let Some(unverified) = &self.progress.unverified {
            self.observer.note(Note::Withheld { unverified });
        }
        kept.err().unwrap_or(error)
    }

    /// Closes the spool, and says how far the stream is durable.
    fn end_spooling(&mut self) -> Option<u64> {
        let to = self.spooling.take()?.end();
        self.observer.note(Note::Spooled { to });
        Some(to)
    }

    /// Whether the input is a spooled one.
    fn spooled(&self, input: u64) -> bool {
        let begun = self.progress.inputs.get(input as usize);
        begun.is_some_and(|input| input.spooled.is_some())
    }

    fn outcome(mut self, nothing_to_do: bool, stopped: bool) -> Outcome {
        let (need, fits) = self.memory();
        let mut counters = self.engine.counters().clone();
        counters.skipped[Reason::CutShort as usize] += self.feed.torn;
        Outcome {
            need,
            fits,
            durable: self.end_spooling(),
            nothing_to_do,
            stopped,
            before: self.before.0.clone(),
            counters,
            pages: self.engine.ledger().totals().pages,
            pages_before: self.before.1,
            checkpoints: self.cadence.checkpoints.0,
            checkpoint_time: self.cadence.checkpoints.1,
            snapshot: self.cadence.published.clone(),
            unverified: self.progress.unverified.clone(),
        }
    }

    /// Whether the input is the one that the spool is for.
    fn is_spooling(&self, input: u64) -> bool {
        let spooling = self.spooling.as_ref();
        spooling.is_some_and(|spooling| spooling.input == input)
    }

    /// From where on a spooled input that is being read is needed.
    fn restart(&self) -> Option<Restart> {
        let input = self.progress.inputs.get(self.progress.input as usize)?;
        Some(input.spooled?.restart)
    }

    pub(super) fn check_spool(&self) -> Result<()> {
        self.spooling.as_ref().map_or(Ok(()), Spooling::check)
    }

    /// Says if rows were given up since this was last asked.
    fn tell_rows(&mut self) -> bool {
        let reason = self.engine.storage_mut().rows_given_up();
        if let Some(reason) = reason {
            self.observer.note(Note::RowsGivenUp { reason });
            self.tell_passes();
        }
        reason.is_some()
    }

    /// Drops row files that were compacted, but for the one that readers of the current snapshot use.
    fn release_rows(&mut self) -> Result<()> {
        let retention = *self.engine.storage().rows_retention();
        let named = snapshot::rows_named(&*self.disk, &self.job.store, &retention)?;
        self.engine.storage_mut().release_rows(named)
    }

    fn stop_asked(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    /// Tells how far an input was read, or, without one, the rows.
    fn tell_progress(&mut self, input: Option<&InputName>, done: u64, length: Option<u64>) {
        self.observer.progress(&ProgressReport {
            input,
            done,
            length,
            input_index: self.progress.input as usize,
            inputs: self.feed.inputs.len(),
            pass: self.progress.pass,
            repeat: self.progress.repeat,
            counters: self.engine.counters(),
            pages: self.engine.ledger().totals().pages,
        });
    }
}

/// Whether an input is damaged, and not only cut short.
fn is_final_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { damage, .. } if damage.kind != DamageKind::Truncated)
}
