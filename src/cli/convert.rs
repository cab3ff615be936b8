//! `cashrank convert`: crawl records in, one crawl archive out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cashrank::Limits;
use cashrank::archive::{Options, Written};
use cashrank::engine::Counters;
use cashrank::ingest::{Conversion, ConversionReport, convert};
use cashrank::source::InputName;

use super::common::{
    Exit, MemoryArg, VerifyArgs, counted, note_keyboard, positive, print_json, stop_on_signal,
    thousands, threads,
};
use super::limits::LimitArgs;
use super::log::TalkArgs;
use super::output::{Keep, Output};
use super::remarks::Remarks;
use super::reporter::Reporter;
use super::rules::RulesArgs;
use super::summary::{report_counts, skipped_json};
use super::values::{FormatArg, formats};
use crate::cli::common::say;

const EXAMPLES: &str = "\
Examples:
  cashrank convert crawl-*.jsonl.zst -o crawl.cza
  cashrank convert CC-MAIN-*.warc.wat.gz -o crawl.cza --level 3
  cashrank convert graph.tsv.zst -o - | cashrank ingest - --store ranks

Ingesting the archive gives the same ranking as ingesting the inputs, byte for byte. For each record, an archive \
keeps the page, the time, its kind, its distinct links, and how many links were left out, by reason.";

/// Write crawl records into one compact archive, to keep or to replay.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, or `-` for standard input; plain, gzip or zstd. Archives and Parquet tables, too.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: FormatArg,
    #[command(flatten)]
    packing: PackingArgs,
    /// Threads for decoding, and as many for compressing [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    verify: VerifyArgs,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    talk: TalkArgs,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(clap::Args)]
struct ArchiveArgs {
    /// The archive; `-`: standard output. It appears under this name once it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the archive if it exists.
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
struct PackingArgs {
    /// How hard to compress, 1 to 9, as zstd's levels. Lower ones are faster.
    #[arg(long, value_name = "N", default_value_t = Options::LEVEL_MAX, value_parser = clap::value_parser!(i32).range(1..=Options::LEVEL_MAX.into()))]
    level: i32,
    /// The most records in a block. Smaller blocks lose less to damage, and compress less well.
    #[arg(long, value_name = "N", default_value_t = Options::BLOCK_RECORDS as u64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    block_records: u64,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let job = self.job()?;
        let output = Output::open(Some(&self.archive.output), self.archive.force)?;
        output.must_spare(&self.inputs)?;
        self.check(&job, &output)?;
        stop_on_signal(&job.stop)?;
        note_keyboard(&job.inputs, "convert -");
        let mut reporter = Reporter::new(&job.inputs, 1, self.talk.log());
        // What is whole and sound is kept, durably, and nothing else.
        let done = output.write(|out| {
            let (_, converted) = convert(&job, out, self.archive.output.clone(), &mut reporter)?;
            let keep = if is_sound(&converted) {
                Keep::Durably
            } else {
                Keep::No
            };
            Ok((converted, keep))
        });
        reporter.clear();
        reporter.report_hidden();
        let done = done?;
        let seconds = reporter.started.elapsed().as_secs_f64();
        if self.json {
            print_json(&summary_json(&done, &reporter.remarks, seconds))?;
        } else {
            summary(&done, seconds, &reporter);
        }
        if done.stopped {
            say!("stopped: no archive was written");
            return Ok(Exit::Stopped);
        }
        if let Some(unverified) = &done.unverified {
            say!(
                "no archive was written: {} could not be verified from record {} on; --accept-unverified writes one \
                 anyway",
                unverified.input,
                unverified.from_record
            );
        }
        match done.bad_end {
            Some(error) => Err(error.into()),
            None if done.counters.skipped_total() > 0 => Ok(Exit::Skipped),
            None if done.counters.records == 0 && reporter.empty.is_some() => {
                reporter.log.warn("nothing was read: all inputs are empty");
                Ok(Exit::Skipped)
            }
            None => Ok(Exit::Done),
        }
    }

    fn job(&self) -> anyhow::Result<Conversion> {
        Ok(Conversion {
            input: self.rules.resolve(None)?,
            inputs: self.inputs.iter().map(|i| InputName::parse(i)).collect(),
            format: self.format.0,
            strict: self.strict,
            threads: threads(self.threads),
            level: self.packing.level,
            block_records: self.packing.block_records as usize,
            limits: Limits {
                memory: self.memory.budget(threads(self.threads) + 3)?,
                ..self.limits.over(Limits::default())
            },
            source: self.verify.options(),
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Refuses what can be refused before anything is read.
    fn check(&self, job: &Conversion, output: &Output) -> anyhow::Result<()> {
        let streams = job.inputs.iter().filter(|i| **i == InputName::Stdin);
        if streams.count() > 1 {
            anyhow::bail!("`-` is given twice; standard input can be read once");
        }
        if output.is_terminal() {
            anyhow::bail!("archives are not written to a terminal: name a file with -o");
        }
        if *output == Output::Standard && self.json {
            anyhow::bail!(
                "--json and the archive would both go to standard output: name a file with -o"
            );
        }
        Ok(())
    }
}

fn is_sound(converted: &ConversionReport) -> bool {
    !converted.stopped && converted.unverified.is_none()
}

fn summary(done: &ConversionReport, seconds: f64, reporter: &Reporter) {
    let Written {
        names,
        links,
        blocks,
        bytes,
        names_bytes,
        records_bytes,
        ..
    } = done.written;
    report_counts(
        &done.counters,
        &Counters::default(),
        names,
        seconds,
        reporter.log,
        &reporter.formats,
        &reporter.remarks,
    );
    reporter.log.info(&format!(
        "{} bytes in {}: {:.3} bytes a link ({} of names, {} of records and links)",
        thousands(bytes),
        counted(blocks, "block", "blocks"),
        bytes as f64 / (links as f64).max(1.0),
        thousands(names_bytes),
        thousands(records_bytes),
    ));
}

fn summary_json(done: &ConversionReport, remarks: &Remarks, seconds: f64) -> serde_json::Value {
    serde_json::json!({
        "stopped": done.stopped,
        "written": is_sound(done),
        "records": done.counters.records,
        "links": done.counters.links,
        "names": done.written.names,
        "skipped": skipped_json(&done.counters, &Counters::default()),
        "remarks": remarks.as_json(),
        "other": done.counters.other,
        "blocks": done.written.blocks,
        "bytes": done.written.bytes,
        "names_bytes": done.written.names_bytes,
        "records_bytes": done.written.records_bytes,
        "seconds": seconds,
    })
}
