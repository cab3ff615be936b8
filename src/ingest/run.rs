//! The run: inputs one after the other, pass after pass, with checkpoints and snapshots between.

mod ahead;
mod archive;
mod begin;
mod budget;
mod complete;
mod replayed;
mod schedule;
mod stream;
mod unchanged;
mod until;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::Xxh3;

use super::input::{Bad, is_unsound, note_use, warn};
use super::plan::{Plan, check_first, check_job, plan};
use super::spooling::{self, Spooling};
use super::{Job, Note, Observer, Outcome, Standing};
use crate::batch::{Batch, Entry, What};
use crate::decode::Reason;
use crate::engine::{Counters, Engine, NameMap, age};
use crate::formats::Format;
use crate::memory::Need;
use crate::pipeline::replay::Replay;
use crate::pipeline::{BufferPool, Next, Piece, over_the_limit};
use crate::session::Budget;
use crate::snapshot::{self, Info};
use crate::source::{Compression, DamageKind, InputName, Restart, Summary};
use crate::store::{Disk, Opened, Place, Progress, Spooled, Store, Unverified, settings_of};
use crate::{Error, Result};
use ahead::Ahead;
use archive::Following;
use begin::Beginning;
use schedule::{Publishing, Reached};
use stream::SigningInput;
use unchanged::Stamp;

/// Entries that the engine looks ahead at.
const AHEAD: usize = 64;

/// Runs a job to its end, or to where something stops it. Whatever stops it, the store holds its
/// last checkpoint, and after bad input or a stop from outside a fresh one.
pub fn ingest(job: &Job, disk: Arc<dyn Disk>, observer: &mut dyn Observer) -> Result<Outcome> {
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
    )?;
    if opened.new {
        observer.note(Note::Created { store: &job.store });
    }
    let Opened {
        mut engine,
        progress,
        ..
    } = opened;
    let was_finished = progress.finished;
    let found = spooling::found(&*disk, job)?;
    let plan = plan(job, progress.clone(), found, observer)?;
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
            ended: progress.pass > 1,
        });
    }
    let mut run = Run {
        budget: Budget::new(job.limits.memory, &mut engine),
        needed: None,
        before: (engine.counters().clone(), engine.ledger().totals().pages),
        job,
        observer,
        progress,
        checkpoints: (0, Duration::ZERO),
        checkpointed: Instant::now(),
        checkpointed_at: None,
        snapshotted: Instant::now(),
        next_snapshot: Arc::new(Mutex::new(Some(Instant::now()))),
        publishing: None,
        published: None,
        spooling,
        signing: None,
        begun: false,
        published_at,
        due_at: engine.counters().records,
        ungrouped: 0,
        names: Vec::new(),
        ahead: None,
        replay: Replay::new(disk.clone(), &job.store, job.replay_bytes),
        stamps: vec![None; inputs.len()],
        inputs,
        spent: BufferPool::new(job.threads),
        engine,
        disk,
    };
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
    run.go()
}

/// What a spooled input's spool must keep: all from `restart` on.
fn kept(restart: Restart) -> Spooled {
    Spooled {
        restart,
        total: None,
    }
}

struct Run<'a> {
    job: &'a Job,
    disk: Arc<dyn Disk>,
    observer: &'a mut dyn Observer,
    /// Before the engine, whose store holds the lock: it is waited for, whatever ends the run.
    /// From when on a snapshot may be begun by time; `None`: one is being made.
    next_snapshot: Arc<Mutex<Option<Instant>>>,
    publishing: Option<Publishing>,
    /// Before the engine too: it writes into the store.
    spooling: Option<Spooling>,
    /// Of the stream that is read or was read last, if it was from its first byte.
    signing: Option<SigningInput>,
    /// An input was begun: what is known is more than the last checkpoint.
    begun: bool,
    /// What passes before read; before the engine as well.
    replay: Replay,
    engine: Engine<Store>,
    budget: Budget,
    /// What was needed, and the pages that would have fitted, once no more records are applied.
    needed: Option<(Need, u64)>,
    inputs: Vec<InputName>,
    /// Memory that goes from one input's pipeline to the next one's.
    spent: BufferPool,
    progress: Progress,
    before: (Counters, u64),
    /// How many were made, and the time they took.
    checkpoints: (u64, Duration),
    checkpointed: Instant,
    /// How far the last checkpoint was: an idle stream needs no other.
    checkpointed_at: Option<Reached>,
    snapshotted: Instant,
    published: Option<(PathBuf, Info)>,
    /// What had been read at the last snapshot.
    published_at: Option<Counters>,
    /// Records when a checkpoint or snapshot was last due by their number.
    due_at: u64,
    ungrouped: u64,
    /// By input: of an archive read in this run, the pages of its names.
    names: Vec<NameMap>,
    /// The next input, if it was begun.
    ahead: Option<Ahead>,
    /// Of each input: the file as it was when it was known to hold what pass 1 read.
    stamps: Vec<Option<Stamp>>,
}

/// Why reading an input ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Whole,
    Stopped,
    /// It was read before, all of it, and nothing is to do.
    ReadBefore,
}

impl Run<'_> {
    fn go(mut self) -> Result<Outcome> {
        while self.progress.pass <= self.progress.repeat && !self.progress.finished {
            let first = self.progress.pass == 1;
            self.engine.archive_mut().append_rows(first);
            let keeps = self.engine.archive().keeps_fetches();
            self.engine.take_news(first && keeps);
            if self.progress.pass > 1 && self.progress.input == 0 && self.progress.place.offset == 0
            {
                self.engine.begin_pass()?;
            }
            while self.progress.completing.is_none()
                && (self.progress.input as usize) < self.inputs.len()
            {
                let input = self.inputs[self.progress.input as usize].clone();
                match self.input(&input) {
                    Ok(Ended::Whole) => {}
                    Ok(Ended::Stopped) => return self.stop(),
                    Ok(Ended::ReadBefore) => return self.read_before(),
                    Err(error) => return Err(self.bad_end(error)),
                }
            }
            if self.progress.complete && self.complete()? == Ended::Stopped {
                return self.stop();
            }
            self.progress.pass += 1;
            self.progress.input = 0;
            self.progress.place = Place::start();
            if self.job.until.is_some() && self.is_between_passes() {
                self.checkpoint()?;
                let durable = self.checkpointed_at == Some(self.reached());
                self.progress.finished = durable && self.is_near_enough()?;
            }
        }
        self.progress.finished = true;
        // The last checkpoint and snapshot take most of the disk.
        self.replay.remove();
        self.checkpoint()?;
        self.rest()?;
        self.final_snapshot()?;
        let stopped = self.progress.unverified.is_none() && self.owes_snapshot();
        Ok(self.outcome(false, stopped))
    }

    fn stop(mut self) -> Result<Outcome> {
        match &self.spooling {
            _ if self.begun => self.checkpoint()?,
            Some(spooling) => spooling.before_checkpoint()?,
            None => {}
        }
        // A crawler that is gone does not send again: what was read of a stream is ranked.
        let input = self.inputs.get(self.progress.input as usize);
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
        Outcome {
            need,
            fits,
            durable: self.end_spooling(),
            nothing_to_do,
            stopped,
            before: self.before.0.clone(),
            counters: self.engine.counters().clone(),
            pages: self.engine.ledger().totals().pages,
            pages_before: self.before.1,
            checkpoints: self.checkpoints.0,
            checkpoint_time: self.checkpoints.1,
            snapshot: self.published.clone(),
            unverified: self.progress.unverified.clone(),
        }
    }

    /// Reads one input from the current place on.
    fn input(&mut self, name: &InputName) -> Result<Ended> {
        let begun = match self.take_ahead() {
            Some(begun) => Beginning::Begun(Box::new(begun)),
            None => self.begin_here(name)?,
        };
        let mut begun = match begun {
            Beginning::Begun(begun) => begun,
            Beginning::Stopped => return Ok(Ended::Stopped),
            Beginning::ReadBefore => return Ok(Ended::ReadBefore),
        };
        self.begun = true;
        warn(name, begun.format, self.observer);
        if !begun.replayed {
            self.begin_keeping(name, begun.compressed_len);
        }
        let place = self.progress.place;
        let at = self.progress.input;
        let mut reading = Reading {
            stamp: begun.stamp,
            replayed: begun.replayed,
            input: name,
            format: begun.format,
            compression: begun.compression,
            spooled: self.progress.pass == 1 && self.is_spooling(at),
            compressed_len: begun.compressed_len,
            hash: None,
            each: self.keeps_each(begun.format).then(Vec::new),
            oversize: 0,
            end: place.offset,
            whole: true,
            torn: None,
            archive: (begun.format == Format::Cza && !begun.replayed)
                .then(|| self.follow_archive(place)),
            known: self.engine.ledger().totals().pages,
        };
        let pipeline = &mut begun.pipeline;
        loop {
            let next = match pipeline.next() {
                Err(error) if reading.replayed => {
                    self.end_replay(name, &error);
                    drop(begun);
                    return self.input(name);
                }
                next => next.map_err(|error| error.after_record(self.progress.place.records))?,
            };
            match next {
                Next::Piece(mut piece) => {
                    let stopped = self.piece(&mut reading, &mut piece)?;
                    if stopped {
                        return Ok(Ended::Stopped);
                    }
                    self.keep(&mut reading, &piece);
                    self.look_further(pipeline, &piece, &reading);
                    pipeline.recycle(piece);
                }
                Next::Idle => {
                    if self.stop_asked() {
                        return Ok(Ended::Stopped);
                    }
                }
                Next::End(summary) => {
                    return self.end_input(&mut reading, &summary);
                }
            }
            self.on_time()?;
        }
    }

    /// Applies a batch. True: stopped from outside.
    fn piece(&mut self, reading: &mut Reading<'_>, piece: &mut Piece) -> Result<bool> {
        self.oversize_before(reading, piece)?;
        reading
            .hash
            .get_or_insert_with(|| (piece.chunk.prefix.clone(), 0));
        self.engine.begin();
        self.look_at_budget(reading, &piece.batch)?;
        let Some(first) = self.follow(reading, piece)? else {
            return Ok(self.stop_asked());
        };
        let chunk = &*piece.chunk;
        let applied = self.entries(reading, piece, first);
        // Whatever ended it: the next checkpoint, after bad input too, needs the place's hash.
        let settled = self.settle(reading, piece);
        applied?;
        settled?;
        if piece.last {
            reading.hash = None;
            reading.oversize = chunk.oversize;
        }
        self.observer.progress(&Standing {
            input: reading.input,
            compressed: chunk.compressed,
            compressed_len: reading.compressed_len,
            input_index: self.progress.input as usize,
            inputs: self.inputs.len(),
            pass: self.progress.pass,
            repeat: self.progress.repeat,
            counters: self.engine.counters(),
            pages: self.engine.ledger().totals().pages,
        });
        Ok(self.stop_asked())
    }

    /// Applies the entries from `first` on.
    fn entries(&mut self, reading: &mut Reading<'_>, piece: &Piece, first: usize) -> Result<()> {
        let chunk = &*piece.chunk;
        let mut complaints = piece.batch.complaints.iter().peekable();
        for (at, entry) in piece.batch.entries.iter().enumerate().skip(first) {
            if at.is_multiple_of(AHEAD) {
                let ahead = &piece.batch.entries[at..];
                self.engine
                    .look_ahead(&piece.batch, &ahead[..ahead.len().min(AHEAD)]);
            }
            if reading.whole {
                self.check_next(reading, piece, at)?;
            }
            let complaint = complaints.next_if(|(of, _)| *of as usize == at);
            let complaint = complaint.map(|(_, text)| text.as_str());
            if piece.batch.is_timeless(at) {
                self.without_time(reading, complaint);
            }
            reading.torn = None;
            let streams = *reading.input == InputName::Stdin && reading.archive.is_none();
            if entry.what == What::Skipped(Reason::CutShort) && streams {
                self.settle(reading, piece)?;
                reading.torn = Some((self.progress.place, self.restart()));
            }
            self.entry(reading, piece, entry, complaint)?;
            let end = chunk.offset + entry.end;
            // Else a line inside the record that comes next: no place to stop at. In an archive the
            // record's number is the place.
            reading.whole = end > reading.end || reading.is_archive();
            if reading.whole {
                reading.end = end;
                self.progress.place.offset = end;
            }
            self.note_hash(reading, piece, entry)?;
            if reading.whole && self.is_due() {
                self.settle(reading, piece)?;
                self.on_records()?;
            }
        }
        Ok(())
    }

    /// Hashes the chunk up to the place reached; of a spooled stream notes from where on it is
    /// needed again.
    fn settle(&mut self, reading: &mut Reading<'_>, piece: &Piece) -> Result<()> {
        let chunk = &*piece.chunk;
        // An archive is needed from its start.
        if reading.spooled && reading.archive.is_none() {
            let restart = chunk
                .member
                .map_or(spooling::plain(self.progress.place), |member| Restart {
                    raw: member.compressed,
                    offset: member.decompressed,
                    compression: reading.compression,
                });
            if let Some(input) = self.progress.inputs.get_mut(self.progress.input as usize) {
                input.spooled = Some(kept(restart));
            }
        }
        if self.is_spooling(self.progress.input) {
            self.progress.place.prefix = 0;
            return Ok(());
        }
        if let Some(hashes) = &piece.hashes {
            return self.settle_replayed(piece, hashes);
        }
        let Some((hash, hashed)) = &mut reading.hash else {
            return Ok(());
        };
        // An archive's header and end hold no records: the place stays before them.
        let Some(upto) = self.progress.place.offset.checked_sub(chunk.offset) else {
            return Ok(());
        };
        let upto = upto as usize;
        if upto == chunk.bytes.len() {
            // The reader has hashed it already.
            self.progress.place.prefix = chunk.prefix_after;
            return Ok(());
        }
        if upto > *hashed {
            hash.update(&chunk.bytes[*hashed..upto]);
            *hashed = upto;
        }
        self.progress.place.prefix = hash.digest128();
        Ok(())
    }

    /// Refuses the next record, and the lines inside it, before any of that is applied: a
    /// checkpoint can then be made.
    fn check_next(&self, reading: &Reading<'_>, piece: &Piece, at: usize) -> Result<()> {
        let mut next = piece.batch.entries[at..].iter();
        let begins = |entry: &&Entry| piece.chunk.offset + entry.end > reading.end;
        let record = next.find(|entry| reading.is_archive() || begins(entry));
        let limit = self.budget.page_limit(&self.engine);
        record.map_or(Ok(()), |record| {
            let room = self.engine.check_room(&piece.batch, record, limit);
            room.map_err(|error| self.budget.blamed(&self.engine, error))
        })
    }

    fn entry(
        &mut self,
        reading: &Reading<'_>,
        piece: &Piece,
        entry: &Entry,
        complaint: Option<&str>,
    ) -> Result<()> {
        if let What::Skipped(reason) = entry.what {
            self.skipped(reading, reason, complaint)?;
        }
        let record = self.progress.place.records + 1;
        let unverified = &mut self.progress.unverified;
        note_use(unverified, piece.chunk.verified, reading.input, record);
        if reading.format.is_grouped() && self.comes_back(reading, &piece.batch, entry) {
            self.ungrouped += 1;
        }
        self.engine.apply(&piece.batch, entry)?;
        self.progress.place.records += 1;
        Ok(())
    }

    /// Whether an edge list's source was visited before in the first pass over the list. Pages known
    /// from other inputs cannot be judged.
    fn comes_back(&self, reading: &Reading<'_>, batch: &Batch, entry: &Entry) -> bool {
        if entry.what != What::Visit || self.progress.pass > 1 {
            return false;
        }
        let page = self.engine.page(batch.fingerprints[entry.source as usize]);
        page.is_some_and(|page| {
            page.0 >= reading.known && self.engine.ledger().age(page) != age::NEVER
        })
    }

    /// The next record has a time that cannot be read. Later passes may be replays, which don't know.
    fn without_time(&mut self, reading: &Reading<'_>, detail: Option<&str>) {
        if self.progress.pass > 1 {
            return;
        }
        let place = self.progress.place;
        self.observer.note(Note::BadTime {
            input: reading.input,
            record: place.records + 1,
            offset: place.offset,
            detail,
        });
    }

    fn skipped(
        &mut self,
        reading: &Reading<'_>,
        reason: Reason,
        detail: Option<&str>,
    ) -> Result<()> {
        let place = self.progress.place;
        let bad = Bad {
            input: reading.input,
            record: place.records + 1,
            offset: place.offset,
            reason,
        };
        bad.pass_over(detail, self.job.strict, self.observer)
    }

    /// Counts an over-long record that was dropped before `chunk`: only now its end is known.
    fn oversize_before(&mut self, reading: &mut Reading<'_>, piece: &Piece) -> Result<()> {
        if reading.hash.is_none() && reading.oversize > 0 && !reading.is_archive() {
            self.oversize(reading, piece.chunk.offset, piece.prefix())?;
        }
        Ok(())
    }

    fn oversize(&mut self, reading: &mut Reading<'_>, end: u64, prefix: u128) -> Result<()> {
        let place = self.progress.place;
        let detail = over_the_limit(reading.oversize, self.job.limits.line_bytes);
        self.skipped(reading, Reason::TooLong, Some(&detail))?;
        let entry = Entry::skipped(Reason::TooLong);
        self.engine.apply(&Batch::default(), &entry)?;
        reading.oversize = 0;
        reading.end = end;
        self.progress.place = Place {
            offset: end,
            prefix,
            records: place.records + 1,
        };
        Ok(())
    }

    fn end_input(&mut self, reading: &mut Reading<'_>, summary: &Summary) -> Result<Ended> {
        if reading.oversize > 0 && !reading.is_archive() {
            self.oversize(reading, summary.bytes, summary.prefix)?;
        }
        if summary.unchecked > 0 {
            self.observer.note(Note::Unchecked {
                input: reading.input,
                members: summary.unchecked,
            });
        }
        let sources = std::mem::take(&mut self.ungrouped);
        if sources > 0 {
            self.observer.note(Note::Ungrouped {
                input: reading.input,
                sources,
            });
        }
        self.end_archive(reading, summary)?;
        let whole = Place {
            offset: summary.bytes,
            prefix: summary.prefix,
            records: self.progress.place.records,
        };
        // A stream may be sent again, and then its torn record will be whole.
        let torn = reading.torn.filter(|_| *reading.input == InputName::Stdin);
        let (mut end, mut restart) = torn.unwrap_or((whole, self.restart()));
        let taken = self.spooling.as_ref().map(Spooling::taken);
        if *reading.input == InputName::Stdin {
            self.end_signature(taken);
        }
        let spooling = self.is_spooling(self.progress.input);
        let input = &mut self.progress.inputs[self.progress.input as usize];
        if spooling {
            end.prefix = 0;
        }
        if reading.spooled {
            if reading.compression == Compression::Plain {
                restart = Some(spooling::plain(end));
            }
            input.spooled = restart.map(|restart| Spooled {
                restart,
                total: taken,
            });
        }
        match input.end {
            None => input.end = Some(end),
            Some(before) if before == end => {}
            Some(before) => {
                return Err(Error::InputChanged(format!(
                    "{}: has changed since pass 1: {} bytes in {} records then, {} bytes in {} now; \
                     put it back, or use another store",
                    reading.input, before.offset, before.records, end.offset, end.records
                )));
            }
        }
        if reading.replayed {
            if !self.still_holds(end)? {
                return Ok(Ended::Stopped);
            }
        } else {
            let unchanged = reading
                .stamp
                .filter(|stamp| stamp.still_holds(reading.input));
            self.stamps[self.progress.input as usize] = unchanged;
            self.end_keeping(reading, summary);
        }
        self.progress.unverified = None;
        self.progress.input += 1;
        self.progress.place = Place::start();
        Ok(Ended::Whole)
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
        let reason = self.engine.archive_mut().rows_given_up();
        if let Some(reason) = reason {
            self.observer.note(Note::RowsGivenUp { reason });
        }
        reason.is_some()
    }

    /// Drops row files that were compacted, but for the one that readers of the current snapshot use.
    fn release_rows(&mut self) -> Result<()> {
        let standing = *self.engine.archive().rows_standing();
        let named = snapshot::rows_named(&*self.disk, &self.job.store, &standing)?;
        self.engine.archive_mut().release_rows(named)
    }

    fn stop_asked(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }
}

/// Whether an input is damaged, and not only cut short.
fn is_final_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { damage, .. } if damage.kind != DamageKind::Truncated)
}

/// One input being read.
struct Reading<'a> {
    /// The file before it was opened.
    stamp: Option<Stamp>,
    /// What a pass before read of it is applied again.
    replayed: bool,
    input: &'a InputName,
    format: Format,
    compression: Compression,
    /// It is being spooled, in the first pass: what is kept of it goes on with the place.
    spooled: bool,
    compressed_len: Option<u64>,
    /// Hash of the input up to so many bytes into the running chunk.
    hash: Option<(Xxh3, usize)>,
    /// The same at the end of each entry of the running piece, if they are kept for a replay.
    each: Option<Vec<u128>>,
    /// An over-long record that follows the last chunk, not counted yet.
    oversize: u64,
    /// Where the last record that may be stopped at ended.
    end: u64,
    /// Nothing was applied since.
    whole: bool,
    /// Before the last record, if that was cut short, and from where on it is read again.
    torn: Option<(Place, Option<Restart>)>,
    /// If it is an archive, and read.
    archive: Option<Following>,
    /// Pages known before the first of its records that this run applies.
    known: u64,
}

impl Reading<'_> {
    fn is_archive(&self) -> bool {
        self.format == Format::Cza
    }
}
