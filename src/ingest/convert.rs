//! `convert`: inputs of any format -> one crawl archive.
//!
//! Inputs are read as [`ingest`](super::ingest) reads them, and what it would skip and count is
//! skipped and counted here, and kept as such in the archive.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::input::{Bad, guessed, is_unsound, note_use, warn};
use super::{Note, Observer, ProgressReport};
use crate::archive::{Chain, Options, Writer, Written};
use crate::batch::{Batch, HashKey, Rules, What};
use crate::decode::Reason;
use crate::engine::{Counters, SelfLinks};
use crate::formats::{Format, is_decided};
use crate::memory::{BUFFERS, check_room};
use crate::model::Limits;
use crate::pipeline::{BufferPool, Delays, Next, Piece, Pipeline, over_the_limit};
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions, Summary};
use crate::store::Unverified;
use crate::{Error, Result};

/// What a packing thread takes at most: its blocks, and zstd.
const PACKING: u64 = 112 << 20;
/// Buffers and packing rarely take what they may: of a budget, this share is kept for them at the most.
const BUFFERS_SHARE: u64 = 2;

/// What to read, and how.
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
    /// What is taken from inputs.
    pub input: InputRules,
    /// How inputs are read.
    pub source: SourceOptions,
    /// Set from outside to stop.
    pub stop: Arc<AtomicBool>,
}

/// What became of a conversion.
#[derive(Debug)]
pub struct ConversionReport {
    /// What was written. The archive is whole, unless it was stopped or something is unverified: then
    /// it has no end, and is of no use.
    pub written: Written,
    /// What was read. Pages visited are not counted.
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
    let mut run = Run {
        rules: Rules {
            limits: job.limits.clone(),
            self_links: SelfLinks::Drop,
            key: HashKey::random()?,
            input: job.input.clone(),
            classes: true,
        },
        writer: Writer::new(out, path, &options)?,
        job,
        observer,
        counters: Counters::default(),
        unverified: None,
        spent: BufferPool::new(job.threads),
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
    rules: Rules,
    observer: &'a mut dyn Observer,
    writer: Writer<W>,
    counters: Counters,
    unverified: Option<Unverified>,
    /// Memory that goes from one input's pipeline to the next one's.
    spent: BufferPool,
}

/// One input being read.
struct Reading<'a> {
    input: &'a InputName,
    at: usize,
    compressed_len: Option<u64>,
    /// If it is an archive.
    chain: Option<Chain>,
    /// Entries so far.
    records: u64,
    /// Where the last one ended.
    offset: u64,
}

impl<W: Write> Run<'_, W> {
    fn input(&mut self, at: usize, input: &InputName) -> Result<()> {
        let mut source = Source::open(input, &self.job.limits, &self.job.source)?;
        let Some(format) = self.format(input, &mut source)? else {
            return Ok(());
        };
        warn(input, format, self.observer);
        self.writer.begin_input(format.decoder().names())?;
        let mut reading = Reading {
            input,
            at,
            compressed_len: source.compressed_len(),
            chain: (format == Format::Cza).then(Chain::default),
            records: 0,
            offset: 0,
        };
        let threads = self.job.threads;
        let mut pipeline = Pipeline::start(
            source,
            format,
            &self.rules,
            threads,
            0,
            &self.spent,
            Delays::NONE,
        )?;
        while !self.job.stop.load(Ordering::Relaxed) {
            let next = pipeline.next();
            match next.map_err(|error| error.after_record(reading.records))? {
                Next::Idle => {}
                Next::Piece(piece) => {
                    self.piece(&mut reading, &piece)?;
                    pipeline.recycle(piece);
                }
                Next::End(summary) => return self.end_input(&reading, &summary),
            }
        }
        Ok(())
    }

    /// `None`: the input is empty.
    fn format(&mut self, input: &InputName, source: &mut Source) -> Result<Option<Format>> {
        // An empty input is said to be so, whatever the format.
        if self.job.format.is_none() || source.head_until(is_decided)?.is_empty() {
            return guessed(input, source, self.observer);
        }
        Ok(self.job.format)
    }

    fn piece(&mut self, reading: &mut Reading<'_>, piece: &Piece) -> Result<()> {
        self.check_room(&piece.batch)?;
        let chunk = &*piece.chunk;
        if let Some(chain) = &mut reading.chain {
            chain.follow(chunk, &piece.batch, reading.input)?;
        }
        let batch = &piece.batch;
        self.writer.begin(batch)?;
        let mut complaints = batch.complaints.iter().peekable();
        for (at, entry) in batch.entries.iter().enumerate() {
            let complaint = complaints.next_if(|(of, _)| *of as usize == at);
            let complaint = complaint.map(|(_, text)| text.as_str());
            if let What::Skipped(reason) = entry.what {
                self.skipped(reading, reason, complaint)?;
            }
            let record = reading.records + 1;
            if batch.is_timeless(at) {
                self.observer.note(Note::BadTime {
                    input: reading.input,
                    record,
                    offset: reading.offset,
                    detail: complaint,
                });
            }
            note_use(&mut self.unverified, chunk.verified, reading.input, record);
            self.writer.add(batch, entry)?;
            self.counters.take(entry.what, &entry.counts);
            reading.records += 1;
            reading.offset = chunk.offset + entry.end;
        }
        if piece.last && chunk.oversize > 0 && reading.chain.is_none() {
            self.oversize(reading, chunk.oversize)?;
            reading.offset += chunk.oversize;
        }
        self.observer.progress(&ProgressReport {
            input: Some(reading.input),
            done: chunk.compressed,
            length: reading.compressed_len,
            input_index: reading.at,
            inputs: self.job.inputs.len(),
            pass: 1,
            repeat: 1,
            counters: &self.counters,
            pages: self.writer.names(),
        });
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

    /// A record that was dropped unread, since it is over the limit.
    fn oversize(&mut self, reading: &mut Reading<'_>, bytes: u64) -> Result<()> {
        let detail = over_the_limit(bytes, self.job.limits.line_bytes);
        self.skipped(reading, Reason::TooLong, Some(&detail))?;
        self.writer.skipped(Reason::TooLong)?;
        self.counters.skipped[Reason::TooLong as usize] += 1;
        reading.records += 1;
        Ok(())
    }

    fn skipped(
        &mut self,
        reading: &Reading<'_>,
        reason: Reason,
        detail: Option<&str>,
    ) -> Result<()> {
        let bad = Bad {
            input: reading.input,
            record: reading.records + 1,
            offset: reading.offset,
            reason,
        };
        bad.pass_over(detail, self.job.strict, self.observer)
    }

    fn end_input(&mut self, reading: &Reading<'_>, summary: &Summary) -> Result<()> {
        if let Some(chain) = &reading.chain {
            chain.finish(reading.input, summary.bytes)?;
        }
        if summary.unchecked > 0 {
            self.observer.note(Note::Unchecked {
                input: reading.input,
                members: summary.unchecked,
            });
        }
        self.unverified = None;
        Ok(())
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
