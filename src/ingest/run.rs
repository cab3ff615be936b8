//! The run: inputs one after the other, pass after pass, with checkpoints and snapshots between.

mod ahead;
mod begin;
mod beside;
mod budget;
mod cadence;
mod complete;
mod cursor;
mod feed;
mod making;
mod opened;
mod reading;
mod stamp;
mod stream;
mod swept;
mod unchanged;
mod until;

use std::sync::Arc;

use super::input::is_unsound;
use super::pipe::with_stream;
use super::plan::{check_first, check_job, plan};
use super::planned::Plan;
use super::spooling::{self, Spooling};
use super::{Job, Note, Observer, Outcome, ProgressReport, Stream};
use crate::decode::{Names, Reason};
use crate::engine::Counters;
use crate::ingest::OldFault;
use crate::session::{Opened, Session};
use crate::snapshot;
use crate::source::{DamageKind, InputName, Restart};
use crate::store::rows::Reason as GivenUp;
use crate::store::{Disk, Progress, Spooled, Unverified, settings_of, trust_index};
use crate::{Error, Result};
use cadence::{Cadence, Due};
use cursor::{Cursor, Phase};
use feed::Feed;
use swept::check_passes;

/// Runs a job to its end, or to where something stops it. Whatever stops it, the store holds its
/// last checkpoint, and after bad input or a stop from outside a fresh one.
pub fn ingest(job: &Job, disk: Arc<dyn Disk>, observer: &mut dyn Observer) -> Result<Outcome> {
    let job = &*with_stream(job)?;
    check_job(job)?;
    if settings_of(&*disk, &job.store)?.is_none() {
        check_first(job)?;
    }
    let Opened {
        session,
        progress,
        new,
    } = Session::open(
        disk.clone(),
        &job.store,
        &job.settings,
        &job.limits,
        job.keep_rows,
        job.stream == Stream::Again,
    )?;
    if new {
        observer.note(Note::Created { store: &job.store });
    }
    let home = session.home();
    run(job, disk, session, progress, observer).map_err(|error| home.blamed(error))
}

/// Runs a job in its open store.
fn run(
    job: &Job,
    disk: Arc<dyn Disk>,
    session: Session,
    progress: Progress,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let was_finished = progress.finished;
    let found = spooling::found(&*disk, job)?;
    let plan = plan(job, progress.clone(), found, observer)?;
    check_passes(&plan, &session)?;
    let spooling = Spooling::open(job, &disk, &plan, &progress, found)?;
    let Plan {
        progress,
        inputs,
        finished,
        unless_read_before,
    } = plan;
    // One that leaves out other links is another ranking.
    let published = snapshot::latest_info(&*disk, &job.store);
    let published = published.filter(|info| info.expire() == job.expire);
    let published_at = published.map(|info| info.counters);
    snapshot::check_not_newer(&*disk, &job.store, session.counters())?;
    if let Some(spooling) = &spooling {
        observer.note(Note::Spooling {
            from: spooling.acked(),
        });
    }
    let mut run = Run {
        before: (session.counters().clone(), session.pages()),
        cadence: Cadence::new(job, published_at, session.counters().records),
        cursor: Cursor::new(progress, inputs.len()),
        feed: Feed::new(job, inputs, spooling, session.rules.clone()),
        job,
        observer,
        session,
    };
    run.feed.kind = run.names_of_writer()?;
    run.report_passes();
    run.report_memory();
    run.spoil()?;
    if let Some(damage) = &run.session.unused_index() {
        run.observer.note(Note::IndexNotUsed { damage });
    }
    run.session.release_rows()?;
    let dropped = run.report_rows();
    // What a kill came before: the snapshot at the end of what was read.
    if was_finished && run.owes_snapshot() {
        run.final_snapshot(Due::Stream)?;
        if run.feed.stop_asked() && run.owes_snapshot() {
            return Ok(run.outcome(false, true));
        }
    }
    if let Some(refusal) = unless_read_before
        && !run.expect_read_before(refusal)?
    {
        return Ok(run.outcome(true, true));
    }
    run.cursor.progress.finished |= run.cursor.is_between_passes() && run.is_near_enough()?;
    if (finished || run.cursor.progress.finished)
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

/// The part that a spooled input's spool must keep: all from `restart` on.
fn kept(restart: Restart) -> Spooled {
    Spooled {
        restart,
        total: None,
    }
}

/// A job under way.
struct Run<'a> {
    job: &'a Job,
    observer: &'a mut dyn Observer,
    /// Before the session, whose store holds the lock: a snapshot being published is waited for, whatever ends the run.
    cadence: Cadence<'a>,
    /// Before the session too: its spool writes into the store.
    feed: Feed<'a>,
    cursor: Cursor,
    session: Session,
    /// Counters and pages when the run began.
    before: (Counters, u64),
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
        while !self.cursor.is_finished() {
            if self.cursor.is_repeating()
                && let Some(refusal) = self.cannot_repeat()
            {
                return Err(self.leave_out_passes(refusal));
            }
            self.session.engine.set_replay(self.cursor.is_repeating());
            if self.cursor.is_between_passes() {
                self.session.engine.begin_pass()?;
            }
            while let Phase::Reading = self.cursor.phase() {
                match self.read() {
                    Ok(InputEnd::Whole) => {}
                    Ok(InputEnd::Stopped) => return self.stop(),
                    Ok(InputEnd::ReadBefore) => return self.read_before(),
                    Err(error) => return Err(self.bad_end(error)),
                }
            }
            if let Phase::Completing(from) = self.cursor.phase()
                && self.complete(from)? == InputEnd::Stopped
            {
                return self.stop();
            }
            self.end_pass()?;
        }
        self.finish()?;
        let stopped = self.cursor.progress.unverified.is_none() && self.owes_snapshot();
        Ok(self.outcome(false, stopped))
    }

    /// The kind of names of a store that was written record by record, by its first page.
    fn names_of_writer(&self) -> Result<Option<Names>> {
        if self.session.pages() == 0 || !self.cursor.progress.inputs.is_empty() {
            return Ok(None);
        }
        let first = self.session.first_name()?;
        Ok(first.map(|name| match name.split_once("://") {
            Some(("http" | "https", _)) => Names::Url,
            _ => Names::Opaque,
        }))
    }

    /// Does what the campaign of faults must find out.
    fn spoil(&mut self) -> Result<()> {
        if self.job.fault == Some(OldFault::IndexUnchecked) {
            trust_index(&mut self.session.engine)?;
        }
        Ok(())
    }

    /// Reads the input that comes, or all that was kept.
    fn read(&mut self) -> Result<InputEnd> {
        if self.is_over_rows() {
            return self.sweep_rows();
        }
        let input = self.feed.inputs[self.cursor.progress.input as usize].clone();
        self.read_input(&input)
    }

    /// The last checkpoint and snapshot.
    fn finish(&mut self) -> Result<()> {
        self.cursor.progress.finished = true;
        self.finish_publishing()?;
        self.checkpoint()?;
        self.keep_index();
        self.rest()?;
        // A stream that was cut in a record has not ended.
        self.rank_at_last(if self.feed.torn == 0 {
            Due::Stream
        } else {
            Due::Partial
        })
    }

    /// The last snapshot. Where the disk has no room for it, the index gives up its own: it can be made again.
    fn rank_at_last(&mut self, due: Due) -> Result<()> {
        match self.final_snapshot(due) {
            Err(error) if self.session.makes_room(&error)? => {
                self.observer.note(Note::IndexNotKept { error: &error });
                self.final_snapshot(due)
            }
            done => done,
        }
    }

    /// Leaves the index on disk, so that the next run starts sooner.
    fn keep_index(&mut self) {
        if let Err(error) = &self.session.keep_index() {
            self.observer.note(Note::IndexNotKept { error });
        }
    }

    /// Before another pass all before it is made durable where that decides: after the first pass whether links were
    /// kept, and always how near the ranking is.
    fn end_pass(&mut self) -> Result<()> {
        let is_first = !self.cursor.is_repeating();
        self.cursor.end_pass();
        if !self.cursor.is_between_passes() || !is_first && self.job.until.is_none() {
            return Ok(());
        }
        self.checkpoint()?;
        let durable = self.cadence.is_durable(self.cursor.reached());
        self.cursor.progress.finished = durable && self.is_near_enough()?;
        Ok(())
    }

    /// What was read is ranked; the passes to come cannot be made.
    fn leave_out_passes(mut self, refusal: Error) -> Error {
        self.cursor.leave_out_passes();
        let finished = self.finish();
        self.end_spooling();
        finished.err().unwrap_or(refusal)
    }

    fn stop(mut self) -> Result<Outcome> {
        match &self.feed.spooling {
            _ if self.cursor.begun => self.checkpoint()?,
            Some(spooling) => spooling.before_checkpoint()?,
            None => {}
        }
        self.keep_index();
        // A crawler that is gone does not send again: what was read of a stream is ranked.
        let input = self.feed.inputs.get(self.cursor.progress.input as usize);
        if self.cursor.begun && !self.cursor.is_repeating() && input == Some(&InputName::Stdin) {
            self.observer.note(Note::Stopping);
            self.rest()?;
            self.rank_at_last(Due::Partial)?;
        }
        self.finish_publishing()?;
        Ok(self.outcome(false, true))
    }

    /// After bad input: keeps what was applied before it, and publishes if that was sound.
    fn bad_end(mut self, error: Error) -> Error {
        let keep = match &error {
            Error::Corrupt { damage, input, .. } => {
                if is_unsound(damage, &self.job.source) {
                    self.cursor.progress.unverified.get_or_insert(Unverified {
                        input: input.clone(),
                        from_record: 0,
                    });
                } else {
                    self.cursor.progress.unverified = None;
                }
                true
            }
            Error::BadRecord { .. } | Error::TooManyPages { .. } | Error::OverBudget { .. } => true,
            _ => false,
        };
        if !keep || !matches!(self.feed.is_as_in_pass_1(&self.cursor), Ok(true)) {
            return error;
        }
        let kept = self
            .checkpoint()
            .and_then(|()| self.rest())
            .and_then(|()| self.final_snapshot(Due::Partial));
        self.end_spooling();
        if self.cursor.is_spooled() && is_final_damage(&error) {
            self.observer.note(Note::SpooledDamage);
        }
        if let Some(unverified) = &self.cursor.progress.unverified {
            self.observer.note(Note::Withheld { unverified });
        }
        kept.err().unwrap_or(error)
    }

    /// Closes the spool, and says how far the stream is durable.
    fn end_spooling(&mut self) -> Option<u64> {
        let to = self.feed.spooling.take()?.end();
        self.observer.note(Note::Spooled { to });
        Some(to)
    }

    fn outcome(mut self, nothing_to_do: bool, stopped: bool) -> Outcome {
        let (need, fits) = self.memory();
        let mut counters = self.session.counters().clone();
        counters.skipped[Reason::CutShort as usize] += self.feed.torn;
        Outcome {
            need,
            fits,
            durable: self.end_spooling(),
            nothing_to_do,
            stopped,
            before: self.before.0.clone(),
            counters,
            pages: self.session.pages(),
            pages_before: self.before.1,
            checkpoints: self.cadence.checkpoints,
            snapshot: self.cadence.published.clone(),
            unverified: self.cursor.progress.unverified.clone(),
        }
    }

    /// Says if rows were given up since this was last asked.
    fn report_rows(&mut self) -> bool {
        if let Some(limit) = self.session.nears_page_limit() {
            let pages = self.session.pages();
            self.observer.note(Note::NearPageLimit { pages, limit });
        }
        let reason = self.session.rows_given_up();
        self.report_rows_given_up(reason)
    }

    /// Says why rows were given up, if they were.
    fn report_rows_given_up(&mut self, reason: Option<GivenUp>) -> bool {
        if let Some(reason) = reason {
            self.observer.note(Note::RowsGivenUp { reason });
            self.report_passes();
        }
        reason.is_some()
    }

    /// Tells how far an input was read, or, without one, the rows.
    fn report_progress(&mut self, input: Option<&InputName>, done: u64, length: Option<u64>) {
        self.observer.progress(&ProgressReport {
            input,
            done,
            length,
            input_index: self.cursor.progress.input as usize,
            inputs: self.feed.inputs.len(),
            pass: self.cursor.progress.pass,
            repeat: self.cursor.progress.repeat,
            counters: self.session.counters(),
            pages: self.session.pages(),
        });
    }
}

/// Returns whether an input is damaged, and not only cut short.
fn is_final_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { damage, .. } if damage.kind != DamageKind::Truncated)
}
