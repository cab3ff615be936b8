//! `cashrank convert`: crawl records of any format in, one file of crawl records out.

use std::path::PathBuf;

use cashrank_ingest::ingest::{Conversion, ConversionReport, convert};
use cashrank_ingest::records::{RecordFormat, SortRoom};

use super::common::{self, Exit, MemoryArg, print_json, say, stop_on_signal, words};
use super::export::scratch;
use super::inputs::ReadArgs;
use super::output::{Keep, OutputTarget};
use super::reporter::{Reporter, Verbosity};
use super::summary::{nothing_read, read_json, report_counts};

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
    /// The file, whose name ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet; `-`: JSON lines on standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Sort the records by time of fetch, oldest first.
    ///
    /// A record without a time follows the one before it. Uses a temporary file beside the output, or for standard output in TMPDIR.
    #[arg(long, value_name = "ORDER", value_parser = words::<String>([("time", "")]))]
    sort: Option<String>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: Verbosity,
    #[command(flatten)]
    read: ReadArgs,
}

impl ConvertArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let output = OutputTarget::open(Some(&self.output), self.force)?;
        let job = self.job(&output)?;
        output.must_spare(&self.read.inputs)?;
        self.check(&job, &output)?;
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
        let read = self.read.options()?;
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
            inputs: self.read.names()?,
            read,
            to: RecordFormat::of_name(&self.output)?,
            sort,
            strict: self.strict,
            stop: stop_on_signal()?,
        })
    }

    fn check(&self, job: &Conversion, output: &OutputTarget) -> anyhow::Result<()> {
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
