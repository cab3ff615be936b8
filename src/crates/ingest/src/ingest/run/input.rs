//! One input of a run: it is opened, what was applied of it before is passed over, and its pieces are applied entry by
//! entry, with the position tracked after each.
//!
//! Passes after the first go over the kept rows: inputs are not read again and need not exist. A pass visits each page
//! that has a row, once, with the links of its last record, in the order of these records. A position in it is the
//! number of pages visited, `records` of the input's position, whose `offset` stays 0.
//!
//! If no rows are kept at the end of the first pass, all files are read again. Each must hold what it held in pass 1,
//! whose hash is kept, before anything of it is made durable: so checkpoints by time are made between files, and one
//! inside a file (by number of records, or because of a stop) reads the whole file once more first.

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::IngestRun;
use crate::batch::{Batch, BatchEntry, What};
use crate::batches::{
    note_use, report_end, report_format, report_record, report_remark, report_skipped,
};
use crate::decode::{Names, Reason};
use crate::engine::{PageId, TargetLinks, age};
use crate::formats::{Format, is_decided};
use crate::ingest::stream::plain;
use crate::ingest::{IngestEvent, InjectedFault};
use crate::model::{InputPosition, counted, thousands};
use crate::pipeline::{
    BatchVisitor, InputRecords, PATIENCE, Piece, Remark, pass_over, resumed_format,
};
use crate::rows::{Row, Stop};
use crate::session::Writer;
use crate::source::{Compression, HEAD_BYTES, InputName, InputSummary, Restart, Source};
use crate::store::{Input, InputProgress};
use crate::threads::spawn;
use crate::{Error, Result};

impl IngestRun<'_> {
    /// Reads the current input to its end. Returns false if that was stopped, or if the stream was read before.
    pub(super) fn read_input(&mut self) -> Result<bool> {
        let input = self.inputs[self.progress.input as usize].clone();
        let Some(mut records) = self.begin_input(&input)? else {
            return Ok(false);
        };
        self.begun = true;
        if let Some(caveat) = records.format.caveat() {
            report_remark(&input, &Remark::Caveat(caveat), self.observer);
        }
        self.from = self.progress.place.offset;
        self.start = self.from;
        self.known = self.writer.pages();
        (self.is_whole, self.is_torn, self.ungrouped) = (true, false, 0);
        let Some(summary) = records.visit(self)? else {
            return Ok(false);
        };
        self.end_input(&records, &summary)?;
        Ok(true)
    }

    /// Opens an input and starts its threads at the current position. `None` as in [`IngestRun::read_input`].
    fn begin_input(&mut self, name: &InputName) -> Result<Option<InputRecords>> {
        let opened = if *name == InputName::Stdin {
            self.open_stream()?
        } else {
            let (name, reader, to_head) = (name.clone(), self.reader.clone(), self.to_head());
            let open = move || reader.open(&name).and_then(to_head);
            self.patiently(open)?.map(|source| (source, false))
        };
        let Some((mut source, is_longer)) = opened else {
            return Ok(None);
        };
        let format = if is_longer {
            let before = self.pass_over_last()?;
            match self.job.format {
                Some(asked) => asked,
                None => resumed_format(&mut source, before, self.progress.place.offset)?,
            }
        } else {
            self.format(&mut source)?
        };
        let place = self.progress.place;
        if place.offset > 0 {
            // What was compared with the stream before is known to be the same, and a spool holds what was read.
            let trusted = is_longer || self.restart().is_some();
            self.observer.say(format!(
                "{name}: continuing after record {} (byte {}) of pass {}",
                thousands(place.records),
                place.offset,
                self.progress.pass
            ));
            let passed = self.patiently(move || pass_over(source, format, place, trusted))?;
            let Some(passed) = passed else {
                return Ok(None);
            };
            source = passed;
        }
        if let Some(begun) = self.current_mut() {
            begun.format = format.name().into();
        } else {
            let restart = Restart {
                compression: source.compression(),
                ..plain(0)
            };
            self.progress.inputs.push(Input {
                name: name.to_string(),
                format: format.name().into(),
                end: None,
                spooled: self.is_spooling().then_some((restart, None)),
            });
        }
        let mut records = self.reader.read(source, format)?;
        records.read = place.records;
        Ok(Some(records))
    }

    pub fn to_head(&self) -> impl FnOnce(Source) -> Result<Source> + Send + use<> {
        let known = self.job.format.is_some()
            || self.current().is_some() && self.progress.place.offset > HEAD_BYTES as u64;
        move |mut source| {
            if !known {
                source.head_until(is_decided)?;
            }
            Ok(source)
        }
    }

    /// Runs work that may wait for an input on another thread, so that a stop is noticed meanwhile, which returns `None`.
    pub fn patiently<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (give, take) = bounded(1);
        spawn("open", move || drop(give.send(work())))?;
        loop {
            match take.recv_timeout(PATIENCE) {
                Ok(done) => return done.map(Some),
                Err(RecvTimeoutError::Timeout) if self.is_stop_requested() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.check_spool()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a reading thread failed"));
                }
            }
        }
    }

    fn format(&mut self, source: &mut Source) -> Result<Format> {
        let is_stream = source.name == InputName::Stdin;
        let Some(begun) = self.current() else {
            // A stream's first bytes may be long in coming.
            if let Some(format) = self.job.format.filter(|_| is_stream) {
                return Ok(format);
            }
            let before = self.names_before()?;
            let found = report_format(source, self.job.format, before, self.observer)?;
            return Ok(found.or(self.job.format).unwrap_or(Format::Records));
        };
        let format = self.format_read(begun)?;
        let read = self.progress.place.offset;
        match self.job.format {
            None if is_stream => resumed_format(source, format, read),
            None => Ok(format),
            // What nothing was read of may be anything.
            Some(asked) if asked != format && (read > 0 || self.is_repeating()) => {
                Err(Error::Conflict(format!(
                    "{}: was read as {}, not {}; leave `format` out or give it as before",
                    source.name,
                    format.name(),
                    asked.name()
                )))
            }
            Some(asked) => Ok(asked),
        }
    }

    /// Returns the format that an input was read as; [`Error::Conflict`] if this version has no such format.
    pub fn format_read(&self, input: &Input) -> Result<Format> {
        let advice = match &*input.name {
            "-" => "send a new stream with `new_stream`",
            _ if self.is_repeating() => "use another store",
            _ => "leave out its rest with `leave_unfinished`, without naming it",
        };
        input.format.parse().map_err(|_| {
            Error::Conflict(format!(
                "{}: was read as {} by an earlier version, which this one cannot continue: {advice}",
                input.name, input.format
            ))
        })
    }

    /// Returns the kind of names in the store, if any. In a store that was written record by record the first page tells.
    fn names_before(&self) -> Result<Option<Names>> {
        let holds_some = |input: &&Input| input.end.is_none_or(|end| end.records > 0);
        let mut inputs = self.progress.inputs.iter().filter(holds_some).peekable();
        if inputs.peek().is_some() || self.writer.pages() == 0 {
            // A crawl archive, which older versions read, held names of either kind.
            return Ok(inputs.find_map(|input| match &*input.format {
                // Of version 0.2.
                "json" => Some(Names::Url),
                format => Some(format.parse::<Format>().ok()?.decoder().names()),
            }));
        }
        let view = self.writer.view()?;
        let first = view.names.names().next().transpose()?;
        Ok(first.map(|name| match name.split_once("://") {
            Some(("http" | "https", _)) => Names::Url,
            _ => Names::Opaque,
        }))
    }
}

impl BatchVisitor for IngestRun<'_> {
    fn remark(&mut self, input: &InputName, remark: Remark) {
        if !self.is_repeating() {
            report_remark(input, &remark, self.observer);
        }
    }

    fn piece(&mut self, records: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let lacks_request =
            piece.chunk.may_lack_request && self.progress.requests == Some(self.progress.input);
        if piece.chunk.cut || lacks_request {
            self.report_torn(&records.input, lacks_request)?;
            return Ok(!self.is_stop_requested());
        }
        self.start = self.start.min(piece.chunk.offset);
        self.writer.begin_batch();
        self.look_at_budget();
        let applied = self.apply_entries(records, piece);
        // After bad input too, the next checkpoint needs the hash at the position.
        self.note_place(records, piece);
        applied?;
        let done = piece.chunk.compressed;
        self.report_progress(Some(&records.input), done, records.compressed_len);
        Ok(!self.is_stop_requested())
    }

    fn tick(&mut self) -> Result<bool> {
        if self.is_stop_requested() {
            return Ok(false);
        }
        self.on_time()?;
        Ok(true)
    }
}

impl IngestRun<'_> {
    fn apply_entries(&mut self, records: &mut InputRecords, piece: &Piece) -> Result<()> {
        for (at, entry) in piece.batch.entries.iter().enumerate() {
            let end = piece.chunk.offset + entry.end;
            if records.again > 0 {
                records.again -= 1;
                // The last record read again is a different one if it has grown.
                if records.again > 0 || end == self.from {
                    continue;
                }
            }
            if self.is_whole {
                self.check_next(piece, at)?;
            }
            self.apply_entry(records, piece, at)?;
            if entry.kind == Some("request") && records.input == InputName::Stdin {
                self.progress.requests = Some(self.progress.input);
            }
            let before = self.progress.place.offset;
            // Otherwise this is a line inside the next record, where reading cannot stop.
            self.is_whole = end > before;
            if self.is_whole {
                if entry.what == What::Visit && before > self.from {
                    self.start = before;
                }
                self.progress.place.offset = end;
                if self.is_due() {
                    self.note_place(records, piece);
                    self.on_records()?;
                }
            }
        }
        Ok(())
    }

    /// Refuses the next record, with lines inside it, before anything is applied, so that a checkpoint can be made.
    fn check_next(&self, piece: &Piece, at: usize) -> Result<()> {
        let (batch, offset) = (&piece.batch, self.progress.place.offset);
        let mut next = batch.entries[at..].iter();
        match next.find(|entry| piece.chunk.offset + entry.end > offset) {
            Some(record) => self.writer.check_room(batch, record.names_end),
            None => Ok(()),
        }
    }

    fn apply_entry(&mut self, records: &InputRecords, piece: &Piece, at: usize) -> Result<()> {
        let is_first_pass = !self.is_repeating();
        let (input, place, strict) = (&records.input, self.progress.place, self.job.strict);
        let record = (&piece.batch, at);
        report_record(input, place, record, strict, is_first_pass, self.observer)?;
        note_use(
            piece.chunk.verified,
            input,
            place,
            &mut self.progress.unverified,
        );
        if records.format.is_grouped() && is_first_pass {
            self.ungrouped += u64::from(self.comes_back(&piece.batch, &piece.batch.entries[at]));
        }
        self.writer.engine.apply_entry(&piece.batch, at)?;
        self.progress.place.records += 1;
        Ok(())
    }

    /// Returns true if the source of `entry` was visited before in this input. Pages known earlier are not judged.
    fn comes_back(&self, batch: &Batch, entry: &BatchEntry) -> bool {
        let engine = &self.writer.engine;
        entry.what == What::Visit
            && engine
                .index
                .get(batch.fingerprints[entry.source as usize])
                .is_some_and(|page| page.0 >= self.known && engine.ledger().age(page) != age::NEVER)
    }

    /// Hashes the chunk up to the current position; of a spooled stream, records from where that is read again.
    fn note_place(&mut self, records: &InputRecords, piece: &Piece) {
        let chunk = &*piece.chunk;
        let place = self.progress.place;
        if self.is_spooling() {
            // What the spool keeps of the input moves with the position.
            let restart = match chunk.member {
                Some(member) => Restart {
                    raw: member.compressed,
                    offset: member.decompressed,
                    compression: records.compression,
                },
                None => plain(self.restart_at(records.format, place)),
            };
            if let Some(input) = self.current_mut() {
                input.spooled = Some((restart, None));
            }
            self.progress.place.prefix = 0;
        } else if let Some(prefix) = chunk.prefix_at(place.offset) {
            self.progress.place.prefix = prefix;
        }
    }

    /// Returns the offset from which a plain stream is needed to continue at `place`, where the last record may grow.
    fn restart_at(&self, format: Format, place: InputPosition) -> u64 {
        if format.ends_lines() {
            self.start.min(place.offset)
        } else {
            place.offset
        }
    }

    fn report_torn(&mut self, input: &InputName, lacks_request: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_torn, true) {
            return Ok(());
        }
        let detail = if lacks_request {
            "the stream ends before a request that may belong to it: it counts once that, or another record, has arrived"
        } else {
            "the stream ends inside it: it counts when it is sent whole"
        };
        let (place, strict) = (self.progress.place, self.job.strict);
        let (reason, detail) = (Reason::CutShort, Some(detail));
        report_skipped(input, place, reason, detail, strict, self.observer)
    }

    fn end_input(&mut self, records: &InputRecords, summary: &InputSummary) -> Result<()> {
        let (input, is_first_pass) = (&records.input, !self.is_repeating());
        report_end(input, summary, self.ungrouped, self.observer);
        let mut end = self.progress.place;
        if self.is_torn {
            self.torn += 1;
        } else {
            end.offset = summary.bytes;
            end.prefix = summary.prefix;
        }
        let mut restart = self.restart();
        let spooling = self.spooling.as_ref();
        let total = spooling.map(|spooling| spooling.spool.end());
        if *input == InputName::Stdin {
            self.end_signature(total);
        }
        if self.is_spooling() {
            end.prefix = 0;
            if records.compression == Compression::Plain {
                let from = self.restart_at(records.format, end);
                restart = Some(plain(from));
            }
            if let Some(begun) = self.current_mut() {
                begun.spooled = restart.map(|restart| (restart, total));
            }
        }
        self.end_current(input, end)?;
        if is_first_pass {
            if end.records == 0 && !self.is_torn {
                self.observer.note(IngestEvent::Empty { input });
            }
            // An empty stream is dropped if no later run counts inputs: the one before it is still the last.
            if summary.bytes == 0 && self.job.inputs == [InputName::Stdin] {
                self.forget_last();
            }
            return Ok(());
        }
        self.on_time()
    }
}

const AHEAD: usize = 64;

/// Returns an error if the passes of a plan cannot be continued as they were begun.
pub(super) fn check_passes(progress: &InputProgress, writer: &Writer) -> Result<()> {
    if progress.finished || progress.pass == 1 || writer.storage().rows_given_up.is_none() {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "`keep_links`: pass {} of {} uses the links kept in the store; leave `keep_links` out, or give at least as \
         much as they take",
        progress.pass, progress.repeat
    )))
}

impl IngestRun<'_> {
    /// Visits the pages of all rows, from where a checkpoint left off. Returns false if it was stopped.
    pub(super) fn sweep_rows(&mut self) -> Result<bool> {
        let from = match self.job.fault {
            Some(InjectedFault::PassFromStart) => 0,
            _ => self.progress.place.records,
        };
        if from > 0 {
            self.observer.say(format!(
                "pass {} over the links of the store: continuing after {}",
                self.progress.pass,
                counted(from, "page", "pages")
            ));
        }
        self.begun = true;
        let rows = self.writer.view()?.rows()?;
        let all = rows.rows();
        let mut targets = Vec::new();
        let whole = rows.sweep_from(from, &mut |rows| {
            for rows in rows.chunks(AHEAD) {
                self.visit_rows(rows, &mut targets)?;
                self.report_progress(None, self.progress.place.records, Some(all));
                if self.is_stop_requested() {
                    return Err(Stop::Enough);
                }
            }
            Ok(self.on_time()?)
        })?;
        if whole {
            self.progress.go_to(self.inputs.len() as u64);
        }
        Ok(whole)
    }

    fn visit_rows(&mut self, rows: &[Row<'_>], targets: &mut Vec<PageId>) -> Result<()> {
        let page = |page: u32| PageId(page.into());
        targets.clear();
        for row in rows {
            targets.extend(row.targets.iter().map(|&target| page(target)));
        }
        let pages = rows.iter().map(|row| page(row.page));
        self.writer.engine.ledger().prefetch(pages, targets);
        let mut rest = &targets[..];
        for row in rows {
            let links = TargetLinks {
                targets: rest.split_off(..row.targets.len()).unwrap_or_default(),
                weights: row.weights,
            };
            let engine = &mut self.writer.engine;
            engine.replay_visit(page(row.page), row.gone, links)?;
            self.progress.place.records += 1;
            if self.is_due() {
                self.on_records()?;
            }
        }
        Ok(())
    }

    /// Checks that what was applied of a file being read again is what pass 1 read; [`Error::InputChanged`] otherwise.
    pub(super) fn check_as_in_pass_1(&self) -> Result<()> {
        let place = self.progress.place;
        let input = self.inputs.get(self.progress.input as usize);
        let end = self.current().and_then(|input| input.end);
        let (true, Some(input @ InputName::File(_)), Some(end)) = (self.is_rereading(), input, end)
        else {
            return Ok(());
        };
        let mut source = self.reader.open(input)?;
        let same = source
            .pass_to(place.offset, Some(place.prefix))
            .and_then(|()| source.pass_to(end.offset, Some(end.prefix)))
            .and_then(|()| Ok(source.head()?.is_empty()));
        match same {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::InputChanged(_) | Error::Corrupt { .. }) => {
                Err(Error::InputChanged(format!(
                    "{input}: has changed since pass 1, and nothing of the change was kept; put the old file back and run \
                     the same command again, or use another store"
                )))
            }
            Err(error) => Err(error),
        }
    }
}
