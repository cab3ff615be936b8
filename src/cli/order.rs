//! `cashrank order`: the records of archives in the order of their fetches.

use std::path::PathBuf;

use cashrank::Limits;
use cashrank::cdxj::{Amount, Captures};

use super::common::{Exit, MemoryArg, counted, print_json, thousands};
use super::output::SummedOutputArgs;
use crate::cli::common::say;

/// Sort the records of WARC files by fetch time, using a CDXJ index.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank order index.cdxj crawl-*.warc.gz | cashrank convert - -o crawl.cza
  cashrank order index.cdxj crawl-*.warc.gz -o ordered.warc.gz

The result is a WARC file, compressed as the files are (all the same way). It holds the captures of the index, \
oldest first; captures of the same second are in the order of the index. Records that indexes leave out, such as \
metadata records, are left out here, too.")]
pub struct Args {
    /// The index: one line for each capture, with `filename`, `offset` and `length`; plain, gzip or zstd.
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// The files that the index names. Their folders do not matter.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: SummedOutputArgs,
    #[command(flatten)]
    memory: MemoryArg,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let output = self.output.open()?;
        output.must_spare([&self.index].into_iter().chain(&self.files))?;
        let limits = Limits {
            memory: self.memory.budget(1)?,
            ..Limits::default()
        };
        let read = Captures::read(&self.index, self.files, &limits)?;
        let mut done = Amount::default();
        output.put(|out| {
            done = read.write(out, self.output.file.name())?;
            Ok(())
        })?;
        if self.output.json {
            let Amount { captures, bytes } = done;
            return print_json(&serde_json::json!({"captures": captures, "bytes": bytes}));
        }
        say!(
            "{}, {} bytes",
            counted(done.captures, "capture", "captures"),
            thousands(done.bytes)
        );
        Ok(Exit::Done)
    }
}
