//! `cashrank convert`: crawl records in, one crawl archive out.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cashrank::Error;
use cashrank::cza::{Options, Written};
use cashrank::engine::Counters;
use cashrank::ingest::{Conversion, Converted, convert};
use cashrank::source::{InputName, SourceOptions};

use super::common::{Exit, positive, print_json, thousands};
use super::ingest::{FormatArg, LimitArgs, Talk, format, skipped_list, tell_counts};

const EXAMPLES: &str = "\
Examples:
  cashrank convert crawl-*.jsonl.zst -o crawl.cza
  cashrank convert CC-MAIN-*.warc.wat.gz -o crawl.cza --level 19
  cashrank convert graph.tsv.zst -o - | cashrank ingest - --store ranks
An ingest of the archive gives the ranking that an ingest of the inputs gives, to the byte. What is kept
of a record: the page, the time, what it means, its distinct links, and how many were left out, by
reason.";

/// Write crawl records into one compact archive, to keep and to replay.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, or `-` for standard input; plain, gzip or zstd, told by their content. Archives, too.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// The archive; `-`: standard output. Written aside, and renamed when it is whole.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the archive if it is there.
    #[arg(long)]
    force: bool,
    /// auto, records, wat, adjacency, edges or cza (see formats/).
    #[arg(long, default_value = "auto", value_parser = format)]
    format: FormatArg,
    /// How hard to compress, 1 to 22: what zstd calls its level.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// Most records of a block: smaller ones lose less to damage, and are packed less well.
    #[arg(long, value_name = "N", default_value_t = Options::BLOCK_RECORDS as u64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    block_records: u64,
    /// Threads that decode, and as many that pack [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    /// Use what could not be verified: whole records before damage.
    #[arg(long)]
    accept_unverified: bool,
    /// Read files twice: verify all of a file before its first record is used.
    #[arg(long, conflicts_with = "accept_unverified")]
    preverify: bool,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let job = self.job();
        self.check(&job)?;
        let stop = job.stop.clone();
        ctrlc::set_handler(move || {
            // The second time there is no more waiting.
            if stop.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Stopped as i32);
            }
        })?;
        let mut talk = Talk::new(&job.inputs, 1);
        let done = match Output::of(&self.output) {
            Output::Stdout => {
                let done = convert(&job, io::stdout(), "-".into(), &mut talk);
                done.map(|(_, converted)| converted)
            }
            Output::File { path, aside } => to_file(&job, path, &aside, &mut talk),
        };
        talk.clear();
        talk.tell_hidden();
        let done = done?;
        let seconds = talk.started.elapsed().as_secs_f64();
        if self.json {
            print_json(&summary_json(&done, seconds))?;
        } else {
            summary(&done, seconds);
        }
        if done.stopped {
            eprintln!("stopped: no archive was written");
            return Ok(Exit::Stopped);
        }
        if let Some(unverified) = &done.unverified {
            eprintln!(
                "no archive was written: {} could not be verified from record {} on; --accept-unverified \
                 writes one all the same",
                unverified.input, unverified.from_record
            );
        }
        match done.bad_end {
            Some(error) => Err(error.into()),
            None if done.counters.skipped_total() > 0 => Ok(Exit::Skipped),
            None => Ok(Exit::Done),
        }
    }

    fn job(&self) -> Conversion {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        Conversion {
            inputs: self.inputs.iter().map(|i| InputName::parse(i)).collect(),
            format: self.format.0,
            strict: self.strict,
            threads: self.threads.map_or(processors, |n| n.min(1024) as usize),
            level: self.level,
            block_records: self.block_records as usize,
            limits: self.limits.resolve(None),
            source: SourceOptions {
                accept_unverified: self.accept_unverified,
                preverify: self.preverify,
                ..SourceOptions::default()
            },
            stop: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Refuses what can be refused before anything is read.
    fn check(&self, job: &Conversion) -> anyhow::Result<()> {
        let streams = job.inputs.iter().filter(|i| **i == InputName::Stdin);
        if streams.count() > 1 {
            anyhow::bail!("`-` is given twice; standard input can be read once");
        }
        match Output::of(&self.output) {
            Output::Stdout if io::stdout().is_terminal() => {
                anyhow::bail!("an archive is not for a terminal: name a file with -o")
            }
            Output::Stdout if self.json => {
                anyhow::bail!("--json and an archive on standard output: name a file with -o")
            }
            Output::File { path, .. } if path.exists() && !self.force => {
                anyhow::bail!("{}: is there already; --force replaces it", path.display())
            }
            _ => Ok(()),
        }
    }
}

/// Where the archive goes.
enum Output<'a> {
    Stdout,
    File { path: &'a Path, aside: PathBuf },
}

impl Output<'_> {
    fn of(path: &Path) -> Output<'_> {
        if path.as_os_str() == "-" {
            return Output::Stdout;
        }
        let mut aside = path.as_os_str().to_owned();
        aside.push(".unfinished");
        Output::File {
            path,
            aside: aside.into(),
        }
    }
}

/// Writes aside; renames what is whole and sound, and removes anything else.
fn to_file(
    job: &Conversion,
    path: &Path,
    aside: &Path,
    talk: &mut Talk,
) -> cashrank::Result<Converted> {
    let failed = |action| {
        let path = path.to_owned();
        move |source| Error::Io {
            path,
            action,
            source,
        }
    };
    let mut open = OpenOptions::new();
    let file = open.write(true).create(true).truncate(true).open(aside);
    let out = BufWriter::new(file.map_err(failed("create"))?);
    let done = convert(job, out, path.to_owned(), talk).and_then(|(out, converted)| {
        if converted.stopped || converted.unverified.is_some() {
            std::fs::remove_file(aside).map_err(failed("remove"))?;
            return Ok(converted);
        }
        let file: File = out
            .into_inner()
            .map_err(|e| failed("write")(e.into_error()))?;
        file.sync_all().map_err(failed("sync"))?;
        std::fs::rename(aside, path).map_err(failed("rename"))?;
        sync_dir_of(path).map_err(failed("sync the directory of"))?;
        Ok(converted)
    });
    if done.is_err() {
        let _ = std::fs::remove_file(aside);
    }
    done
}

/// Makes the new name durable.
fn sync_dir_of(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

fn summary(done: &Converted, seconds: f64) {
    let Written {
        names,
        links,
        blocks,
        bytes,
        names_bytes,
        records_bytes,
        ..
    } = done.written;
    tell_counts(&done.counters, &Counters::default(), names, seconds);
    eprintln!(
        "{} bytes in {} blocks: {:.3} a link as read ({} of names, {} of records and links)",
        thousands(bytes),
        thousands(blocks),
        bytes as f64 / (links as f64).max(1.0),
        thousands(names_bytes),
        thousands(records_bytes),
    );
}

fn summary_json(done: &Converted, seconds: f64) -> serde_json::Value {
    let skipped: serde_json::Map<String, serde_json::Value> =
        skipped_list(&done.counters, &Counters::default())
            .into_iter()
            .map(|(reason, count)| (reason.to_owned(), count.into()))
            .collect();
    serde_json::json!({
        "stopped": done.stopped,
        "written": !done.stopped && done.unverified.is_none(),
        "records": done.counters.records,
        "links": done.counters.links,
        "names": done.written.names,
        "skipped": skipped,
        "other": done.counters.other,
        "blocks": done.written.blocks,
        "bytes": done.written.bytes,
        "names_bytes": done.written.names_bytes,
        "records_bytes": done.written.records_bytes,
        "seconds": seconds,
    })
}
