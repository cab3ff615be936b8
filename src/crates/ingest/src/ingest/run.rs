//! Run of an ingest: inputs one after the other, pass after pass, with checkpoints and snapshots in between.

mod beside;
mod budget;
mod cadence;
mod cursor;
mod feed;
mod making;
mod passes;
mod reading;
mod stream;

use std::sync::Arc;

use super::input::is_unsound;
use super::plan::{Plan, check_first, check_job, plan};
use super::spooling::{self, Spooling};
use super::{IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, Stream};
use crate::decode::{Names, Reason};
use crate::engine::Counters;
use crate::ingest::OldFault;
use crate::session::{Opened, Session};
use crate::snapshot;
use crate::source::{DamageKind, InputName, Restart};
use crate::store::rows::GiveUpReason;
use crate::store::{Disk, InputProgress, Spooled, Unverified, settings_of, trust_index};
use crate::{Error, Result};
use cadence::{Cadence, Due};
use cursor::{Cursor, Phase};
use feed::Feed;
use passes::check_passes;
use stream::with_stream;

/// Runs a job to its end, or until something stops it. In any case the store is left at its last checkpoint; after bad
/// input or a stop from outside a new checkpoint is made.
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
    let Opened {
        session,
        progress,
        new,
    } = Session::open(
        disk.clone(),
        &job.store,
        &job.settings,
        &job.limits,
        job.keep_links,
        job.stream == Stream::Again,
    )?;
    if new {
        observer.note(IngestEvent::Created { store: &job.store });
    }
    let home = session.home();
    run(job, disk, session, progress, observer).map_err(|error| home.blamed(error))
}

/// Runs a job in its open store.
fn run(
    job: &IngestJob,
    disk: Arc<dyn Disk>,
    session: Session,
    progress: InputProgress,
    observer: &mut dyn Observer,
) -> Result<IngestOutcome> {
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
    // A ranking with other links left out does not count as published.
    let published = snapshot::latest_info(&*disk, &job.store);
    let published = published.filter(|info| info.expire() == job.expire);
    let published_at = published.map(|info| info.counters);
    snapshot::check_not_newer(&*disk, &job.store, session.counters())?;
    if let Some(spooling) = &spooling {
        observer.note(IngestEvent::Spooling {
            from: spooling.acked(),
        });
    }
    let mut run = IngestRun {
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
        run.observer.note(IngestEvent::IndexNotUsed { damage });
    }
    run.session.release_rows()?;
    let dropped = run.report_rows();
    // The snapshot at the end, if a crash prevented it.
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

/// Returns the part that a spooled input's spool must keep: all from `restart` on.
fn kept(restart: Restart) -> Spooled {
    Spooled {
        restart,
        total: None,
    }
}

/// Job in progress.
struct IngestRun<'a> {
    job: &'a IngestJob,
    observer: &'a mut dyn Observer,
    /// Dropped before the session, whose store holds the lock: waits for a snapshot in progress, however the run ends.
    cadence: Cadence<'a>,
    /// Dropped before the session too, as its spool writes into the store.
    feed: Feed<'a>,
    cursor: Cursor,
    session: Session,
    /// Counters and pages at the start of the run.
    before: (Counters, u64),
}

/// Reason why reading an input ended.
#[derive(PartialEq, Eq)]
enum InputEnd {
    Whole,
    Stopped,
    /// The whole input was read before; nothing is left to do.
    ReadBefore,
}

impl IngestRun<'_> {
    fn read_passes(mut self) -> Result<IngestOutcome> {
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

    /// Returns the kind of names of a store that was written record by record, judged by its first page.
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

    /// Injects a fault for the campaign of faults.
    fn spoil(&mut self) -> Result<()> {
        if self.job.fault == Some(OldFault::IndexUnchecked) {
            trust_index(&mut self.session.engine)?;
        }
        Ok(())
    }

    /// Reads the next input, or visits pages by kept links.
    fn read(&mut self) -> Result<InputEnd> {
        if self.is_over_rows() {
            return self.sweep_rows();
        }
        let input = self.feed.inputs[self.cursor.progress.input as usize].clone();
        self.read_input(&input)
    }

    /// Makes the last checkpoint and snapshot.
    fn finish(&mut self) -> Result<()> {
        self.cursor.progress.finished = true;
        self.finish_publishing()?;
        self.checkpoint()?;
        self.keep_index();
        self.rest()?;
        // A stream that was cut inside a record has not ended.
        self.rank_at_last(if self.feed.torn == 0 {
            Due::Stream
        } else {
            Due::Partial
        })
    }

    /// Makes the last snapshot. If the disk has no room for it, removes the index, which is a cache.
    fn rank_at_last(&mut self, due: Due) -> Result<()> {
        match self.final_snapshot(due) {
            Err(error) if self.session.makes_room(&error)? => {
                self.observer
                    .note(IngestEvent::IndexNotKept { error: &error });
                self.final_snapshot(due)
            }
            done => done,
        }
    }

    /// Writes the index to disk, so that the next run starts faster.
    fn keep_index(&mut self) {
        if let Err(error) = &self.session.keep_index() {
            self.observer.note(IngestEvent::IndexNotKept { error });
        }
    }

    /// Prepares another pass: makes the state durable after the first pass, to know whether links were kept, and
    /// computes the bound.
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

    /// Ranks what was read when the remaining passes cannot be made.
    fn leave_out_passes(mut self, refusal: Error) -> Error {
        self.cursor.leave_out_passes();
        let finished = self.finish();
        self.end_spooling();
        finished.err().unwrap_or(refusal)
    }

    fn stop(mut self) -> Result<IngestOutcome> {
        match &self.feed.spooling {
            _ if self.cursor.begun => self.checkpoint()?,
            Some(spooling) => spooling.before_checkpoint()?,
            None => {}
        }
        self.keep_index();
        // A crawler that has gone does not send again: what was read of a stream is ranked.
        let input = self.feed.inputs.get(self.cursor.progress.input as usize);
        if self.cursor.begun && !self.cursor.is_repeating() && input == Some(&InputName::Stdin) {
            self.observer.note(IngestEvent::Stopping);
            self.rest()?;
            self.rank_at_last(Due::Partial)?;
        }
        self.finish_publishing()?;
        Ok(self.outcome(false, true))
    }

    /// Ends after bad input: keeps what was applied before it, and publishes if that was sound.
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
        if !keep || self.check_as_in_pass_1().is_err() {
            return error;
        }
        let kept = self
            .checkpoint()
            .and_then(|()| self.rest())
            .and_then(|()| self.final_snapshot(Due::Partial));
        self.end_spooling();
        if self.cursor.is_spooled() && is_final_damage(&error) {
            self.observer.note(IngestEvent::SpooledDamage);
        }
        if let Some(unverified) = &self.cursor.progress.unverified {
            self.observer.note(IngestEvent::Withheld { unverified });
        }
        kept.err().unwrap_or(error)
    }

    /// Closes the spool, and returns how far the stream is durable.
    fn end_spooling(&mut self) -> Option<u64> {
        let to = self.feed.spooling.take()?.end();
        self.observer.note(IngestEvent::Spooled { to });
        Some(to)
    }

    fn outcome(mut self, nothing_to_do: bool, stopped: bool) -> IngestOutcome {
        let (need, fits) = self.memory();
        let mut counters = self.session.counters().clone();
        counters.skipped[Reason::CutShort as usize] += self.feed.torn;
        IngestOutcome {
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

    /// Reports if rows were given up since the last call.
    fn report_rows(&mut self) -> bool {
        if let Some(limit) = self.session.nears_page_limit() {
            let pages = self.session.pages();
            self.observer
                .note(IngestEvent::NearPageLimit { pages, limit });
        }
        let reason = self.session.rows_given_up();
        self.report_rows_given_up(reason)
    }

    /// Reports why rows were given up, if they were.
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
            input_index: self.cursor.progress.input as usize,
            inputs: self.feed.inputs.len(),
            pass: self.cursor.progress.pass,
            repeat: self.cursor.progress.repeat,
            counters: self.session.counters(),
            pages: self.session.pages(),
        });
    }
}

/// Returns true if an input is damaged, not only cut short.
fn is_final_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { damage, .. } if damage.kind != DamageKind::Truncated)
}
