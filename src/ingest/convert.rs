//! `convert`: inputs of any format -> one crawl archive.
//!
//! Inputs are read as [`ingest`](super::ingest) reads them, and what it would skip and count is
//! skipped and counted here, and kept as such in the archive.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::input::{InputRecord, is_unsound, remark, report_format, report_unchecked, warn};
use super::{Note, Observer, ProgressReport};
use crate::archive::{Options, Writer, Written};
use crate::batch::{Batch, HashKey, Rules};
use crate::engine::{Counters, SelfLinks};
use crate::formats::Format;
use crate::memory::{BUFFERS, check_room};
use crate::model::Limits;
use crate::pipeline::{InputReader, Next, Piece, Start};
use crate::rules::InputRules;
use crate::source::{InputName, SourceOptions};
use crate::store::{Place, Unverified};
use crate::{Error, Result};

/// The most memory that a packing thread takes: its blocks, and zstd.
const PACKING: u64 = 112 << 20;
/// Buffers and packing rarely take what they may: of a budget, this share is kept for them at the most.
const BUFFERS_SHARE: u64 = 2;

/// The inputs, and how to read them.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The inputs, in order.
    pub inputs: Vec<InputName>,
    /// Their format; `None`: guessed for each.
    pub format: Option<Format>,
    /// Stop at the first record that cannot be used.
    pub strict: bool,
    /// Threads that decode, and as many that pack. At least 1.
    pub threads: usize,
    /// See [`Options::level`].
    pub level: i32,
    /// See [`Options::block_records`].
    pub block_records: usize,
    /// Limits on input.
    pub limits: Limits,
    /// Rules for what is read from inputs.
    pub input: InputRules,
    /// How inputs are read.
    pub source: SourceOptions,
    /// Set from outside to stop.
    pub stop: Arc<AtomicBool>,
}

/// The outcome of a conversion.
#[derive(Debug)]
pub struct ConversionReport {
    /// Counts of what was written. The archive is complete, unless it was stopped or something is unverified: then
    /// it has no end, and is of no use.
    pub written: Written,
    /// Counts of what was read. Pages visited are not counted.
    pub counters: Counters,
    /// Stopped from outside: the archive lacks the rest.
    pub stopped: bool,
    /// Bad input that ended the reading; what came before it was written.
    pub bad_end: Option<Error>,
    /// Some of it could not be verified.
    pub unverified: Option<Unverified>,
}

/// Writes the inputs' records to `out` as an archive; `path` is for messages. Returns `out`,
/// flushed.
///
/// # Errors
/// Those of opening and guessing; [`Error::Io`]; [`Error::TooLarge`] if there are more names than
/// `limits.memory` has room for. Bad input is no error here: see [`ConversionReport::bad_end`].
pub fn convert<W: Write>(
    job: &Conversion,
    out: W,
    path: PathBuf,
    observer: &mut dyn Observer,
) -> Result<(W, ConversionReport)> {
    job.limits.check()?;
    if !(1..=Options::LEVEL_MAX).contains(&job.level) {
        return Err(Error::Usage(format!(
            "`level` is from 1 to {}",
            Options::LEVEL_MAX
        )));
    }
    let options = Options {
        level: job.level,
        threads: job.threads,
        block_records: job.block_records,
        limits: job.limits.clone(),
        input: job.input.clone(),
    };
    let rules = Rules {
        limits: job.limits.clone(),
        self_links: SelfLinks::Drop,
        key: HashKey::random()?,
        input: job.input.clone(),
        classes: true,
        follow: Default::default(),
    };
    let mut run = Run {
        reader: InputReader::new(rules, &job.source, job.threads),
        writer: Writer::new(out, path, &options)?,
        job,
        observer,
        counters: Counters::default(),
        unverified: None,
    };
    let mut bad_end = None;
    for (at, input) in job.inputs.iter().enumerate() {
        match run.input(at, input) {
            Ok(()) if job.stop.load(Ordering::Relaxed) => break,
            Ok(()) => {}
            Err(error @ (Error::Corrupt { .. } | Error::BadRecord { .. })) => {
                run.bad_end(&error);
                bad_end = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let stopped = job.stop.load(Ordering::Relaxed);
    let (out, written) = match (&run.unverified, stopped) {
        (None, false) => run.writer.finish()?,
        // Without an end, nobody takes it for whole.
        _ => run.writer.give_up(),
    };
    let converted = ConversionReport {
        written,
        counters: run.counters,
        stopped,
        bad_end,
        unverified: run.unverified,
    };
    Ok((out, converted))
}

struct Run<'a, W: Write> {
    job: &'a Conversion,
    reader: InputReader,
    observer: &'a mut dyn Observer,
    writer: Writer<W>,
    counters: Counters,
    unverified: Option<Unverified>,
}

impl<W: Write> Run<'_, W> {
    fn input(&mut self, at: usize, input: &InputName) -> Result<()> {
        let mut source = self.reader.open(input)?;
        let Some(format) = report_format(&mut source, self.job.format, None, self.observer)? else {
            self.observer.note(Note::Empty { input });
            return Ok(());
        };
        warn(input, format, self.observer);
        self.writer.begin_input(format.decoder().names())?;
        let mut records = self.reader.read(source, format, Start::default())?;
        let mut place = Place::start();
        while !self.job.stop.load(Ordering::Relaxed) {
            let next = records.next()?;
            remark(&mut records, self.observer);
            match next {
                Next::Idle => {}
                Next::Piece(piece) => {
                    self.piece(input, &mut place, &piece)?;
                    self.observer.progress(&ProgressReport {
                        input: Some(input),
                        done: piece.chunk.compressed,
                        length: records.compressed_len,
                        input_index: at,
                        inputs: self.job.inputs.len(),
                        pass: 1,
                        repeat: 1,
                        counters: &self.counters,
                        pages: self.writer.names(),
                    });
                    records.recycle(piece);
                }
                Next::End(summary) => {
                    report_unchecked(input, &summary, self.observer);
                    self.unverified = None;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn piece(&mut self, input: &InputName, place: &mut Place, piece: &Piece) -> Result<()> {
        self.check_room(&piece.batch)?;
        let batch = &piece.batch;
        if !batch.weights.is_empty() {
            return Err(Error::Unsupported(format!(
                "{input}: its links have weights, which crawl archives do not hold: ingest it as it is"
            )));
        }
        self.writer.begin(batch)?;
        for (at, entry) in batch.entries.iter().enumerate() {
            let record = InputRecord {
                input,
                place: *place,
                batch,
                at,
            };
            record.report(self.job.strict, true, self.observer)?;
            record.note_use(piece.chunk.verified, &mut self.unverified);
            self.writer.add(batch, entry)?;
            self.counters.take(entry.what, &entry.counts);
            place.records += 1;
            place.offset = piece.chunk.offset + entry.end;
        }
        Ok(())
    }

    /// Refuses a batch whose names may take more memory than there is.
    fn check_room(&self, batch: &Batch) -> Result<()> {
        let Some(budget) = self.job.limits.memory else {
            return Ok(());
        };
        let names = self.writer.names();
        let names_bytes = self.writer.bytes_with(batch.text_ends.len() as u64);
        let buffers = BUFFERS + PACKING * self.job.threads as u64;
        let need = names_bytes + buffers.min(budget / BUFFERS_SHARE);
        check_room(
            Some(budget),
            need,
            || format!("an archive of more than {names} names"),
            "take fewer `threads`, or convert the inputs in parts and ingest the archives one after the other",
        )
    }

    /// What is unverified only because the input was cut short may be used, as by an ingest.
    fn bad_end(&mut self, error: &Error) {
        if let Error::Corrupt { damage, .. } = error
            && !is_unsound(damage, &self.job.source)
        {
            self.unverified = None;
        }
    }
}
