//! `cashrank convert`: crawl records of any format in, one file of crawl records out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cashrank::Limits;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_ingest::ReadOptions;
use cashrank_ingest::ingest::{Conversion, ConversionReport, convert};
use cashrank_ingest::records::{RecordFormat, SortRoom};

use super::common::{
    self, Exit, MemoryArg, OrNone, formats, note_keyboard, positive, print_json, say,
    stop_on_signal, threads, words,
};
use super::export::scratch;
use super::inputs::{ChecksumArgs, LimitArgs, RulesArgs};
use super::log::Verbosity;
use super::output::{Keep, OutputTarget};
use super::remarks::nothing_read;
use super::reporter::Reporter;
use super::summary::{read_json, report_counts};

const EXAMPLES: &str = "\
Examples:
  cashrank convert crawl-*.warc.gz -o crawl.jsonl.zst
  cashrank convert CC-MAIN-*.warc.wat.gz -o crawl.parquet
  cashrank convert --sort time crawl-*.warc.gz -o - | cashrank ingest - --store ranks

Ingesting the file gives the same pages, links and ranking as ingesting the inputs, with the same options. URLs and links are \
written as they were read; formats/convert.md says what else is.";

/// Write crawl records of any format as JSON lines or as a Parquet table.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    /// Files, or `-` for standard input; plain, gzip or zstd. Archives and Parquet tables, too.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// The file, whose name ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet; `-`: JSON lines on standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: OrNone<Format>,
    /// Sort the records by time of fetch, oldest first.
    ///
    /// A record without a time follows the one before it. Uses a temporary file beside the output, or for standard output in TMPDIR.
    #[arg(long, value_name = "ORDER", value_parser = words::<String>([("time", "")]))]
    sort: Option<String>,
    /// Threads for decoding [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    verify: ChecksumArgs,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: Verbosity,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl ConvertArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let output = OutputTarget::open(Some(&self.output), self.force)?;
        let job = self.job(&output)?;
        output.must_spare(&self.inputs)?;
        self.check(&job, &output)?;
        stop_on_signal(&job.stop)?;
        note_keyboard(&job.inputs, "convert -");
        let mut reporter = Reporter::new(&job.inputs, 1, self.log);
        // Only a complete and verified result is kept, durably.
        let done = output.write(|out| {
            let converted = convert(&job, Box::new(out), &self.output, &mut reporter)?;
            let keep = if is_sound(&converted) {
                Keep::Durably
            } else {
                Keep::No
            };
            Ok((converted, keep))
        });
        let seconds = reporter.end();
        let done = done?;
        if self.json {
            let mut summary = read_json(&done.counters, &reporter, done.stopped, seconds);
            summary["written"] = is_sound(&done).into();
            print_json(&summary)?;
        } else {
            report_counts(&done.counters, None, seconds, &reporter);
            let written = common::records(done.written);
            reporter.log.info(&format!("{written} written"));
        }
        if done.stopped {
            say!("stopped: no file was written");
            return Ok(Exit::Stopped);
        }
        if let Some(unverified) = &done.unverified {
            say!(
                "no file was written: {} could not be verified from record {} on; --accept-unverified writes one anyway",
                unverified.input,
                unverified.from_record
            );
        }
        match done.bad_end {
            Some(error) => Err(error.into()),
            None if done.counters.skipped_total() > 0 => Ok(Exit::Skipped),
            None if done.counters.records == 0 => {
                let (inputs, read) = (&job.inputs, &job.read);
                let (format, rules) = (read.format, &read.input);
                let why = nothing_read(&reporter, &done.counters, inputs, format, rules);
                reporter.log.warn(&why);
                Ok(Exit::Skipped)
            }
            None => Ok(Exit::Done),
        }
    }

    fn job(&self, output: &OutputTarget) -> anyhow::Result<Conversion> {
        let sort = match &self.sort {
            None => None,
            Some(_) => Some(SortRoom {
                memory: self.memory.to_sort(
                    0,
                    || "sorting by time".to_owned(),
                    "convert without --sort",
                )?,
                folder: scratch(output),
            }),
        };
        Ok(Conversion {
            inputs: self.inputs.iter().map(|i| InputName::parse(i)).collect(),
            read: ReadOptions {
                format: self.format,
                threads: threads(self.threads),
                limits: self.limits.over(Limits::default()),
                input: self.rules.resolve(None)?,
                source: self.verify.options(),
            },
            to: RecordFormat::of_name(&self.output)?,
            sort,
            strict: self.strict,
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    fn check(&self, job: &Conversion, output: &OutputTarget) -> anyhow::Result<()> {
        let streams = job.inputs.iter().filter(|i| **i == InputName::Stdin);
        if streams.count() > 1 {
            anyhow::bail!("`-` is given twice; standard input can be read once");
        }
        if job.read.input.drop_params != Default::default() {
            anyhow::bail!(
                "--drop-params: URLs are written as they were read; give it to `cashrank ingest`"
            );
        }
        if self.sort.is_none() && self.memory.is_given() {
            anyhow::bail!(
                "--memory: it is for --sort; records that are not sorted are written as they come"
            );
        }
        if *output == OutputTarget::Standard && self.json {
            anyhow::bail!(
                "--json and the records would both go to standard output: name a file with -o"
            );
        }
        Ok(())
    }
}

fn is_sound(converted: &ConversionReport) -> bool {
    !converted.stopped && converted.unverified.is_none()
}
