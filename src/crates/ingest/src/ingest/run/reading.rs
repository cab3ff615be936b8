//! Reading of one input: its pieces are applied entry by entry, and the position is tracked after each.

use super::feed::InputStart;
use super::{IngestRun, InputEnd, kept};
use crate::batch::{Batch, BatchEntry, What};
use crate::decode::Reason;
use crate::engine::{Resolver, Resolving, age};
use crate::ingest::IngestEvent;
use crate::ingest::input::{RecordAt, remark, report_unchecked, warn};
use crate::ingest::spooling::{self, Spooling};
use crate::model::InputPosition;
use crate::pipeline::{InputRecords, Piece, PipelineItem};
use crate::source::{Compression, InputName, InputSummary, Restart};
use crate::store::Spooled;
use crate::{Error, Result};

/// Input that is being read.
pub(super) struct InputInProgress<'a> {
    input: &'a InputName,
    records: InputRecords,
    /// True if it is being spooled, in the first pass: what is kept of it moves with the position.
    spooled: bool,
    /// Offset at which reading resumed. A record that ended there is read again, to see whether it has grown.
    from: u64,
    /// Offset of the start of the last visit at which reading may stop.
    start: u64,
    /// Offset of the end of the last record at which reading may stop.
    end: u64,
    /// True if nothing was applied since.
    whole: bool,
    /// True if the stream was cut inside its last record, which is neither counted nor part of the position: if the
    /// stream is sent again, the record may be whole.
    torn: bool,
    /// Number of pages known before the first of its records that this run applies.
    known: u64,
    /// Number of lines that return to an earlier source.
    ungrouped: u64,
}

impl InputInProgress<'_> {
    /// Returns the offset from which a plain stream is needed to continue at `place`. In text formats without end marks
    /// the last record may have more lines then.
    fn restart_at(&self, place: InputPosition) -> u64 {
        if self.records.format.ends_lines() {
            self.start.min(place.offset)
        } else {
            place.offset
        }
    }
}

impl IngestRun<'_> {
    /// Reads one input from the current position on.
    pub(super) fn read_input(&mut self, input: &InputName) -> Result<InputEnd> {
        let counted = self.session.pages() > 0;
        let begun = self
            .feed
            .begin(input, &mut self.cursor, counted, self.observer)?;
        let records = match begun {
            InputStart::Ready(records) => *records,
            InputStart::Stopped => return Ok(InputEnd::Stopped),
            InputStart::ReadBefore => return Ok(InputEnd::ReadBefore),
        };
        self.cursor.begun = true;
        warn(input, records.format, self.observer);
        let at = self.cursor.progress.input;
        let mut resolver = Resolver::default();
        let mut reading = InputInProgress {
            input,
            records,
            spooled: !self.cursor.is_repeating() && self.feed.is_spooling(at),
            from: self.cursor.progress.place.offset,
            start: self.cursor.progress.place.offset,
            end: self.cursor.progress.place.offset,
            whole: true,
            torn: false,
            known: self.session.pages(),
            ungrouped: 0,
        };
        loop {
            let next = reading.records.next_piece()?;
            if !self.cursor.is_repeating() {
                remark(&mut reading.records, self.observer);
            }
            match next {
                PipelineItem::Piece(piece) => {
                    self.apply_piece(&mut reading, &mut resolver, &piece)?;
                    if self.feed.stop_asked() {
                        return Ok(InputEnd::Stopped);
                    }
                    reading.records.recycle(piece);
                }
                PipelineItem::Idle if self.feed.stop_asked() => return Ok(InputEnd::Stopped),
                PipelineItem::Idle => {}
                PipelineItem::End(summary) => return self.end_input(&reading, &summary),
            }
            self.on_time()?;
        }
    }

    /// Applies a batch.
    fn apply_piece(
        &mut self,
        reading: &mut InputInProgress<'_>,
        resolver: &mut Resolver,
        piece: &Piece,
    ) -> Result<()> {
        let lacks_request = piece.chunk.may_lack_request && self.cursor.has_requests();
        if piece.chunk.cut || lacks_request {
            return self.report_torn(reading, lacks_request);
        }
        reading.start = reading.start.min(piece.chunk.offset);
        self.look_at_budget();
        let mut names = resolver.begin(&piece.batch);
        let applied = self.apply_entries(reading, &mut names, piece);
        // In any case the next checkpoint needs the hash at the position, after bad input too.
        self.note_place(reading, piece);
        applied?;
        let done = piece.chunk.compressed;
        self.report_progress(Some(reading.input), done, reading.records.compressed_len);
        Ok(())
    }

    /// Applies the entries of a batch.
    fn apply_entries(
        &mut self,
        reading: &mut InputInProgress<'_>,
        names: &mut Resolving<'_>,
        piece: &Piece,
    ) -> Result<()> {
        for (at, entry) in piece.batch.entries.iter().enumerate() {
            if reading.records.again > 0 {
                reading.records.again -= 1;
                // The last of them is a different record if it has grown.
                if reading.records.again > 0 || piece.chunk.offset + entry.end == reading.from {
                    continue;
                }
            }
            if reading.whole {
                self.check_next(reading, names, piece, at)?;
            }
            self.apply_entry(reading, names, piece, at)?;
            if piece.batch.other(at) == Some("request") && *reading.input == InputName::Stdin {
                self.cursor.note_request();
            }
            let end = piece.chunk.offset + entry.end;
            // Otherwise this is a line inside the next record, where reading cannot stop.
            reading.whole = end > reading.end;
            if reading.whole {
                if entry.what == What::Visit && reading.end > reading.from {
                    reading.start = reading.end;
                }
                reading.end = end;
                self.cursor.progress.place.offset = end;
            }
            if reading.whole && self.is_due() {
                self.note_place(reading, piece);
                self.on_records()?;
            }
        }
        Ok(())
    }

    /// Hashes the chunk up to the current position; for a spooled stream records from where it is needed again.
    fn note_place(&mut self, reading: &mut InputInProgress<'_>, piece: &Piece) {
        let chunk = &*piece.chunk;
        if reading.spooled {
            let restart = chunk.member.map_or(
                spooling::plain(reading.restart_at(self.cursor.progress.place)),
                |member| Restart {
                    raw: member.compressed,
                    offset: member.decompressed,
                    compression: reading.records.compression,
                },
            );
            if let Some(input) = self.cursor.input_mut() {
                input.spooled = Some(kept(restart));
            }
        }
        let is_spooling = self.feed.is_spooling(self.cursor.progress.input);
        let place = &mut self.cursor.progress.place;
        if is_spooling {
            place.prefix = 0;
        } else if let Some(prefix) = reading.records.prefix_at(chunk, place.offset) {
            place.prefix = prefix;
        }
    }

    /// Refuses the next record and the lines inside it before anything of it is applied, so that a checkpoint can be
    /// made.
    fn check_next(
        &mut self,
        reading: &InputInProgress<'_>,
        names: &Resolving<'_>,
        piece: &Piece,
        at: usize,
    ) -> Result<()> {
        let mut next = piece.batch.entries[at..].iter();
        let begins = |entry: &&BatchEntry| piece.chunk.offset + entry.end > reading.end;
        let record = next.find(begins);
        match record {
            Some(record) => self.session.check_room(names, record.names_end),
            None => Ok(()),
        }
    }

    fn apply_entry(
        &mut self,
        reading: &mut InputInProgress<'_>,
        names: &mut Resolving<'_>,
        piece: &Piece,
        at: usize,
    ) -> Result<()> {
        let batch = &piece.batch;
        let entry = &batch.entries[at];
        let record = self.report_record(reading, piece, at)?;
        record.note_use(piece.chunk.verified, &mut self.cursor.progress.unverified);
        if reading.records.format.is_grouped() && self.comes_back(reading, batch, entry) {
            reading.ungrouped += 1;
        }
        self.session.apply(names, at)?;
        self.cursor.progress.place.records += 1;
        Ok(())
    }

    /// Reports what is wrong with the next record, if anything is.
    fn report_record<'r>(
        &mut self,
        reading: &InputInProgress<'r>,
        piece: &'r Piece,
        at: usize,
    ) -> Result<RecordAt<'r>> {
        let record = RecordAt {
            input: reading.input,
            place: self.cursor.progress.place,
            batch: &piece.batch,
            at,
        };
        let first_pass = !self.cursor.is_repeating();
        record.report(self.job.strict, first_pass, self.observer)?;
        Ok(record)
    }

    /// Reports that the stream was cut inside its last record, or behind it and before its request.
    fn report_torn(
        &mut self,
        reading: &mut InputInProgress<'_>,
        lacks_request: bool,
    ) -> Result<()> {
        if std::mem::replace(&mut reading.torn, true) {
            return Ok(());
        }
        let place = self.cursor.progress.place;
        let reason = Reason::CutShort;
        let detail = if lacks_request {
            "the stream ends before a request that may belong to it: it counts once that, or another record, has arrived"
        } else {
            "the stream ends inside it: it counts when it is sent whole"
        };
        if self.job.strict {
            return Err(Error::BadRecord {
                input: reading.input.to_string(),
                record: place.records + 1,
                offset: place.offset,
                reason: reason.name(),
                detail: detail.into(),
            });
        }
        self.observer.note(IngestEvent::Skipped {
            input: reading.input,
            record: place.records + 1,
            offset: place.offset,
            reason,
            detail,
        });
        Ok(())
    }

    /// Returns true if an edge list's source was visited before, in the first pass over the list. Pages known from
    /// other inputs cannot be judged.
    fn comes_back(&self, reading: &InputInProgress<'_>, batch: &Batch, entry: &BatchEntry) -> bool {
        if entry.what != What::Visit || self.cursor.is_repeating() {
            return false;
        }
        let page = self
            .session
            .engine
            .page(batch.fingerprints[entry.source as usize]);
        page.is_some_and(|page| {
            page.0 >= reading.known && self.session.engine.ledger().age(page) != age::NEVER
        })
    }

    fn end_input(
        &mut self,
        reading: &InputInProgress<'_>,
        summary: &InputSummary,
    ) -> Result<InputEnd> {
        report_unchecked(reading.input, summary, self.observer);
        if reading.ungrouped > 0 {
            self.observer.note(IngestEvent::Ungrouped {
                input: reading.input,
                sources: reading.ungrouped,
            });
        }
        let at = self.cursor.progress.input;
        let mut end = self.cursor.progress.place;
        if reading.torn {
            self.feed.torn += 1;
        } else {
            end.offset = summary.bytes;
            end.prefix = summary.prefix;
        }
        let mut restart = self.cursor.restart();
        let taken = self.feed.spooling.as_ref().map(Spooling::taken);
        if *reading.input == InputName::Stdin {
            self.feed.end_signature(&mut self.cursor.progress, taken);
        }
        if self.feed.is_spooling(at) {
            end.prefix = 0;
        }
        if reading.spooled
            && let Some(input) = self.cursor.input_mut()
        {
            if reading.records.compression == Compression::Plain {
                restart = Some(spooling::plain(reading.restart_at(end)));
            }
            input.spooled = restart.map(|restart| Spooled {
                restart,
                total: taken,
            });
        }
        self.cursor.end_input(reading.input, end)?;
        let is_empty = end.records == 0 && !reading.torn;
        if is_empty && !self.cursor.is_repeating() {
            self.observer.note(IngestEvent::Empty {
                input: reading.input,
            });
        }
        if summary.bytes == 0 && !self.cursor.is_repeating() {
            // An empty stream is dropped if no later run counts inputs: the one before it is still the last.
            if self.feed.job.inputs == [InputName::Stdin] {
                self.cursor.forget_input();
            }
        }
        if self.cursor.is_repeating() {
            self.on_time()?;
        }
        Ok(InputEnd::Whole)
    }
}
