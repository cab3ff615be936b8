//! `convert`: writes inputs of any format to one file of crawl records.
//!
//! Inputs are read as by [`ingest`](super::ingest), and each record of a page is written as it was read: ingesting the
//! file gives the same store as ingesting the inputs. Specified in `formats/convert.md`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{IngestEvent, Observer, ProgressReport};
use crate::batches::{
    ReadOptions, is_unsound, note_use, report_end, report_format, report_record, report_remark,
};
use crate::decode::Names;
use crate::engine::{Counters, SelfLinks};
use crate::formats::Format;
use crate::inspect::GroupReturns;
use crate::model::InputPosition;
use crate::pipeline::{BatchVisitor, InputReader, InputRecords, Piece, Remark};
use crate::records::{RecordFile, RecordFormat, SortRoom, TimeOrder};
use crate::source::InputName;
use crate::store::Unverified;
use crate::{Error, Result};

#[derive(Debug, Clone)]
pub struct Conversion {
    pub inputs: Vec<InputName>,
    pub read: ReadOptions,
    pub to: RecordFormat,
    /// Sorts records by fetch time, if set.
    pub sort: Option<SortRoom>,
    /// True to stop at the first record that cannot be used.
    pub strict: bool,
    /// Flag that stops the conversion when it is set from outside.
    pub stop: Arc<AtomicBool>,
}

#[derive(Debug)]
pub struct ConversionReport {
    /// Number of records written. The file is complete, unless it was stopped or something is unverified.
    pub written: u64,
    /// Counts of what was read. Pages visited are not counted.
    pub counters: Counters,
    /// True if it was stopped from outside: the file lacks the rest.
    pub stopped: bool,
    /// Bad input that ended the reading; what came before it was written.
    pub bad_end: Option<Error>,
    /// First record that could not be verified, if any.
    pub unverified: Option<Unverified>,
}

/// Writes the inputs' records to `out`. Bad input is not an error here: see [`ConversionReport::bad_end`].
pub fn convert(
    job: &Conversion,
    out: Box<dyn Write + Send + '_>,
    path: &Path,
    observer: &mut dyn Observer,
) -> Result<ConversionReport> {
    let mut reader = job.read.reader()?;
    reader.rules.self_links = SelfLinks::Keep;
    reader.keeps_lines = true;
    let mut run = ConversionRun {
        reader,
        file: None,
        out: Some((out, path)),
        order: job.sort.as_ref().map(TimeOrder::new),
        written: 0,
        job,
        observer,
        counters: Counters::default(),
        unverified: None,
        number: 0,
        place: InputPosition::start(),
        returns: GroupReturns::new(Format::Records),
    };
    let mut bad_end = None;
    for (at, input) in job.inputs.iter().enumerate() {
        match run.input(at, input) {
            Ok(()) if job.stop.load(Ordering::Relaxed) => break,
            Ok(()) => {}
            Err(error @ (Error::Corrupt { .. } | Error::BadRecord { .. })) => {
                if let Error::Corrupt { damage, .. } = &error
                    && !is_unsound(damage, &job.read.source)
                {
                    run.unverified = None;
                }
                bad_end = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let stopped = job.stop.load(Ordering::Relaxed);
    if run.unverified.is_none() && !stopped {
        run.finish()?;
    }
    Ok(ConversionReport {
        written: run.written,
        counters: run.counters,
        stopped,
        bad_end,
        unverified: run.unverified,
    })
}

struct ConversionRun<'a> {
    job: &'a Conversion,
    reader: InputReader,
    observer: &'a mut dyn Observer,
    /// File that is written; `None` until the kind of names is known.
    file: Option<(Names, RecordFile<'a>)>,
    out: Option<(Box<dyn Write + Send + 'a>, &'a Path)>,
    order: Option<TimeOrder>,
    written: u64,
    counters: Counters,
    unverified: Option<Unverified>,
    number: usize,
    place: InputPosition,
    returns: GroupReturns,
}

impl BatchVisitor for ConversionRun<'_> {
    fn remark(&mut self, input: &InputName, remark: Remark) {
        report_remark(input, &remark, self.observer);
    }

    fn piece(&mut self, records: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let (input, batch) = (&records.input, &piece.batch);
        let mut lines = batch.lines.split_inclusive(|&byte| byte == b'\n');
        for (at, entry) in batch.entries.iter().enumerate() {
            let place = self.place;
            report_record(
                input,
                place,
                (batch, at),
                self.job.strict,
                true,
                self.observer,
            )?;
            note_use(piece.chunk.verified, input, place, &mut self.unverified);
            if entry.what.is_of_page() {
                let line = lines.next().unwrap_or_default();
                self.written += 1;
                match (&mut self.order, &mut self.file) {
                    (Some(order), _) => order.push(entry.fetched_at, line)?,
                    (None, Some((_, file))) => file.line(line)?,
                    (None, None) => return Err(Error::internal("a record before its input")),
                }
            }
            self.counters.take(entry.what, &entry.counts);
            self.returns.add(batch, entry);
            self.place.records += 1;
            self.place.offset = piece.chunk.offset + entry.end;
        }
        self.observer.progress(&ProgressReport {
            input: Some(input),
            done: piece.chunk.compressed,
            length: records.compressed_len,
            input_index: self.number,
            inputs: self.job.inputs.len(),
            pass: 1,
            repeat: 1,
            counters: &self.counters,
            pages: 0,
        });
        Ok(true)
    }

    fn tick(&mut self) -> Result<bool> {
        Ok(!self.job.stop.load(Ordering::Relaxed))
    }
}

impl ConversionRun<'_> {
    fn begin(&mut self, names: Names, input: &str) -> Result<()> {
        if let Some((out, path)) = self.out.take() {
            self.file = Some((names, RecordFile::new(self.job.to, names, out, path)?));
        }
        match &self.file {
            Some((before, _)) if *before != names => Err(Error::Unsupported(format!(
                "{input}: one file of records has either URLs or other names, and the inputs before it have the other kind: \
                 convert it by itself"
            ))),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        if self.file.is_none() {
            // All inputs are empty.
            self.begin(Names::Url, "")?;
        }
        let Some((_, mut file)) = self.file.take() else {
            return Ok(());
        };
        if let Some(order) = self.order.take() {
            order.each(|line| file.line(line))?;
        }
        file.finish()
    }

    fn input(&mut self, number: usize, input: &InputName) -> Result<()> {
        let mut source = self.reader.open(input)?;
        let Some(format) = report_format(&mut source, self.job.read.format, None, self.observer)?
        else {
            self.observer.note(IngestEvent::Empty { input });
            return Ok(());
        };
        if let Some(caveat) = format.caveat() {
            self.remark(input, Remark::Caveat(caveat));
        }
        let names = format.decoder().names();
        self.begin(names, &input.to_string())?;
        let mut records = self.reader.read(source, format)?;
        (self.number, self.place) = (number, InputPosition::start());
        self.returns = GroupReturns::new(format);
        if let Some(summary) = records.visit(self)? {
            report_end(input, &summary, self.returns.count, self.observer);
            if self.place.records == 0 {
                self.observer.note(IngestEvent::Empty { input });
            }
            self.unverified = None;
        }
        Ok(())
    }
}
