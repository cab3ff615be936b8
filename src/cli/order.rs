//! `cashrank order`: the records of archives in the order of their fetches.

use std::path::{Path, PathBuf};

use cashrank::Limits;
use cashrank::order::{Order, Ordered};

use super::common::{Exit, MemoryArg, thousands};
use super::output::to_file;
use crate::cli::common::say;

/// Put the records of WARC files in the order of their fetches, by a CDXJ index of them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank order index.cdxj crawl-*.warc.gz | cashrank convert - -o crawl.cza
  cashrank order index.cdxj crawl-*.warc.gz -o ordered.warc.gz
The result is a WARC file, compressed as the files are (all the same way). It holds the captures of the
index, the oldest first; those of one second in the order of the index. Nothing else of the files is taken:
metadata records, which indexes leave out, are not.")]
pub struct Args {
    /// The index: a line for each capture, with `filename`, `offset` and `length`; plain, gzip or zstd.
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// The files that it speaks of, by their names without folders.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The ordered file; `-` or none: standard output. Written aside, and renamed when it is whole.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArg,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let limits = Limits {
            memory: self.memory.budget(),
            ..Limits::default()
        };
        let order = Order::read(&self.index, self.files, &limits)?;
        let path = self.output.as_deref().unwrap_or(Path::new("-"));
        let mut done = Ordered::default();
        to_file(self.output.as_deref(), |out| {
            done = order.write(out, path)?;
            Ok(())
        })?;
        say!(
            "{} captures, {} bytes",
            thousands(done.captures),
            thousands(done.bytes)
        );
        Ok(Exit::Done)
    }
}
