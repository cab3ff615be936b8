//! Reading one input: its pieces applied entry by entry, with the place kept after each.

use xxhash_rust::xxh3::Xxh3;

use super::archive::ArchiveCursor;
use super::begin::InputStart;
use super::unchanged::Stamp;
use super::{InputEnd, Run, kept};
use crate::batch::{Batch, Entry, What};
use crate::decode::Reason;
use crate::engine::{Resolver, Resolving, age};
use crate::formats::Format;
use crate::ingest::Note;
use crate::ingest::input::{Bad, note_use, warn};
use crate::ingest::spooling::{self, Spooling};
use crate::pipeline::{Next, Piece, over_the_limit};
use crate::source::{Compression, InputName, Restart, Summary};
use crate::store::{Place, Spooled};
use crate::{Error, Result};

/// Entries that the engine looks ahead at.
const AHEAD: usize = 64;

/// One input being read.
pub(super) struct Reading<'a> {
    /// The file before it was opened.
    pub(super) stamp: Option<Stamp>,
    pub(super) input: &'a InputName,
    pub(super) format: Format,
    pub(super) compression: Compression,
    /// It is being spooled, in the first pass: what is kept of it goes on with the place.
    pub(super) spooled: bool,
    pub(super) compressed_len: Option<u64>,
    /// Hash of the input up to so many bytes into the running chunk.
    pub(super) hash: Option<(Xxh3, usize)>,
    /// An over-long record that follows the last chunk, not counted yet.
    pub(super) oversize: u64,
    /// Where the last record that may be stopped at ended.
    pub(super) end: u64,
    /// Nothing was applied since.
    pub(super) whole: bool,
    /// Before the last record, if that was cut short, and from where on it is read again.
    pub(super) torn: Option<(Place, Option<Restart>)>,
    /// If it is an archive, and read.
    pub(super) archive: Option<ArchiveCursor>,
    /// Pages known before the first of its records that this run applies.
    pub(super) known: u64,
}

impl Reading<'_> {
    pub(super) fn is_archive(&self) -> bool {
        self.format == Format::Cza
    }
}

impl Run<'_> {
    /// Reads one input from the current place on.
    pub(super) fn read_input(&mut self, name: &InputName) -> Result<InputEnd> {
        let begun = match self.take_ahead() {
            Some(begun) => InputStart::Ready(Box::new(begun)),
            None => self.begin_here(name)?,
        };
        let mut begun = match begun {
            InputStart::Ready(begun) => begun,
            InputStart::Stopped => return Ok(InputEnd::Stopped),
            InputStart::ReadBefore => return Ok(InputEnd::ReadBefore),
        };
        self.begun = true;
        warn(name, begun.format, self.observer);
        let place = self.progress.place;
        let at = self.progress.input;
        let (archive, mut resolver) = match begun.format {
            Format::Cza => {
                let (cursor, resolver) = self.follow_archive(place);
                (Some(cursor), resolver)
            }
            _ => (None, Resolver::default()),
        };
        let mut reading = Reading {
            stamp: begun.stamp,
            input: name,
            format: begun.format,
            compression: begun.compression,
            spooled: self.progress.pass == 1 && self.is_spooling(at),
            compressed_len: begun.compressed_len,
            hash: None,
            oversize: 0,
            end: place.offset,
            whole: true,
            torn: None,
            archive,
            known: self.engine.ledger().totals().pages,
        };
        let pipeline = &mut begun.pipeline;
        loop {
            let next = pipeline.next();
            match next.map_err(|error| error.after_record(self.progress.place.records))? {
                Next::Piece(piece) => {
                    let stopped = self.apply_piece(&mut reading, &mut resolver, &piece)?;
                    if stopped {
                        return Ok(InputEnd::Stopped);
                    }
                    self.look_further(pipeline, &piece, &reading);
                    pipeline.recycle(piece);
                }
                Next::Idle => {
                    if self.stop_asked() {
                        return Ok(InputEnd::Stopped);
                    }
                }
                Next::End(summary) => {
                    return self.end_input(&mut reading, resolver, &summary);
                }
            }
            self.on_time()?;
        }
    }

    /// Applies a batch. True: stopped from outside.
    fn apply_piece(
        &mut self,
        reading: &mut Reading<'_>,
        resolver: &mut Resolver,
        piece: &Piece,
    ) -> Result<bool> {
        self.skip_oversize_before(reading, piece)?;
        reading
            .hash
            .get_or_insert_with(|| (piece.chunk.prefix.clone(), 0));
        self.look_at_budget(reading, resolver, &piece.batch)?;
        let mut names = resolver.begin(&piece.batch);
        let Some(first) = self.follow(reading, &mut names, piece)? else {
            return Ok(self.stop_asked());
        };
        let chunk = &*piece.chunk;
        let applied = self.apply_entries(reading, &mut names, piece, first);
        // Whatever ended it: the next checkpoint, after bad input too, needs the place's hash.
        let noted = self.note_place(reading, piece);
        applied?;
        noted?;
        if piece.last {
            reading.hash = None;
            reading.oversize = chunk.oversize;
        }
        let done = chunk.compressed;
        self.tell_progress(Some(reading.input), done, reading.compressed_len);
        Ok(self.stop_asked())
    }

    /// Applies the entries from `first` on.
    fn apply_entries(
        &mut self,
        reading: &mut Reading<'_>,
        names: &mut Resolving<'_>,
        piece: &Piece,
        first: usize,
    ) -> Result<()> {
        let chunk = &*piece.chunk;
        let mut complaints = piece.batch.complaints.iter().peekable();
        for (at, entry) in piece.batch.entries.iter().enumerate().skip(first) {
            if at.is_multiple_of(AHEAD) {
                let ahead = &piece.batch.entries[at..];
                names.look_ahead(&self.engine, &ahead[..ahead.len().min(AHEAD)]);
            }
            if reading.whole {
                self.check_next(reading, names, piece, at)?;
            }
            let complaint = complaints.next_if(|(of, _)| *of as usize == at);
            let complaint = complaint.map(|(_, text)| text.as_str());
            if piece.batch.is_timeless(at) {
                self.without_time(reading, complaint);
            }
            reading.torn = None;
            let streams = *reading.input == InputName::Stdin && reading.archive.is_none();
            if entry.what == What::Skipped(Reason::CutShort) && streams {
                self.note_place(reading, piece)?;
                reading.torn = Some((self.progress.place, self.restart()));
            }
            self.apply_entry(reading, names, piece, entry, complaint)?;
            let end = chunk.offset + entry.end;
            // Else a line inside the record that comes next: no place to stop at. In an archive the
            // record's number is the place.
            reading.whole = end > reading.end || reading.is_archive();
            if reading.whole {
                reading.end = end;
                self.progress.place.offset = end;
            }
            if reading.whole && self.is_due() {
                self.note_place(reading, piece)?;
                self.on_records()?;
            }
        }
        Ok(())
    }

    /// Hashes the chunk up to the place reached; of a spooled stream notes from where on it is
    /// needed again.
    pub(super) fn note_place(&mut self, reading: &mut Reading<'_>, piece: &Piece) -> Result<()> {
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
    fn check_next(
        &self,
        reading: &Reading<'_>,
        names: &Resolving<'_>,
        piece: &Piece,
        at: usize,
    ) -> Result<()> {
        let mut next = piece.batch.entries[at..].iter();
        let begins = |entry: &&Entry| piece.chunk.offset + entry.end > reading.end;
        let record = next.find(|entry| reading.is_archive() || begins(entry));
        let limit = self.budget.page_limit(&self.engine);
        record.map_or(Ok(()), |record| {
            let room = names.check_room(&self.engine, record, limit);
            room.map_err(|error| self.budget.blamed(&self.engine, error))
        })
    }

    fn apply_entry(
        &mut self,
        reading: &Reading<'_>,
        names: &mut Resolving<'_>,
        piece: &Piece,
        entry: &Entry,
        complaint: Option<&str>,
    ) -> Result<()> {
        if let What::Skipped(reason) = entry.what {
            self.skip(reading, reason, complaint)?;
        }
        let record = self.progress.place.records + 1;
        let unverified = &mut self.progress.unverified;
        note_use(unverified, piece.chunk.verified, reading.input, record);
        if reading.format.is_grouped() && self.comes_back(reading, &piece.batch, entry) {
            self.ungrouped += 1;
        }
        names.apply(&mut self.engine, entry)?;
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

    /// The next record has a time that cannot be read: told once.
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

    fn skip(&mut self, reading: &Reading<'_>, reason: Reason, detail: Option<&str>) -> Result<()> {
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
    fn skip_oversize_before(&mut self, reading: &mut Reading<'_>, piece: &Piece) -> Result<()> {
        if reading.hash.is_none() && reading.oversize > 0 && !reading.is_archive() {
            self.skip_oversize(reading, piece.chunk.offset, piece.prefix())?;
        }
        Ok(())
    }

    fn skip_oversize(&mut self, reading: &mut Reading<'_>, end: u64, prefix: u128) -> Result<()> {
        let place = self.progress.place;
        let detail = over_the_limit(reading.oversize, self.job.limits.line_bytes);
        self.skip(reading, Reason::TooLong, Some(&detail))?;
        self.engine.count(&Entry::skipped(Reason::TooLong));
        reading.oversize = 0;
        reading.end = end;
        self.progress.place = Place {
            offset: end,
            prefix,
            records: place.records + 1,
        };
        Ok(())
    }

    fn end_input(
        &mut self,
        reading: &mut Reading<'_>,
        resolver: Resolver,
        summary: &Summary,
    ) -> Result<InputEnd> {
        if reading.oversize > 0 && !reading.is_archive() {
            self.skip_oversize(reading, summary.bytes, summary.prefix)?;
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
        self.end_archive(reading, resolver.into_names(), summary)?;
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
        let unchanged = reading
            .stamp
            .filter(|stamp| stamp.still_holds(reading.input));
        self.feed.stamps[self.progress.input as usize] = unchanged;
        self.progress.unverified = None;
        self.progress.input += 1;
        self.progress.place = Place::start();
        Ok(InputEnd::Whole)
    }
}
