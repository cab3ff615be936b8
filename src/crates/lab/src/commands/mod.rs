//! The command line: one file per subcommand.

mod bfs_order;
mod crawl;
mod figures;
mod generate;
mod local;
mod plot;
mod simulate;
mod transfers;
mod web;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use cashrank::Error;
use cashrank_base::model::name_settings;
use clap::{Parser, Subcommand};

/// Experiments with cashrank: simulated crawls, the papers' figures, synthetic webs and crawls.
#[derive(Parser)]
#[command(
    name = "cashrank-lab",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes:
  0    done
  1    reading or writing a file failed
  2    anything else; the message says what to do"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Args),
    Figures(figures::Args),
    Crawl(crawl::Args),
    Local(local::Args),
    Generate(generate::Args),
    BfsOrder(bfs_order::Args),
    Plot(plot::Args),
    Transfers(transfers::Args),
}

pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Simulate(args) => args.run(),
        Command::Figures(args) => args.run(),
        Command::Crawl(args) => args.run(),
        Command::Local(args) => args.run(),
        Command::Generate(args) => args.run(),
        Command::BfsOrder(args) => args.run(),
        Command::Plot(args) => args.run(),
        Command::Transfers(args) => args.run(),
    };
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    match error.downcast_ref::<Error>() {
        // The reader went away.
        Some(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        known => {
            let option = |name: &str| format!("--{}", name.replace('_', "-"));
            progress(&name_settings(&format!("cashrank-lab: {error}"), option));
            ExitCode::from(match known {
                Some(Error::Io { .. }) => 1,
                _ => 2,
            })
        }
    }
}

/// Prints a message on standard error; failure is ignored.
fn progress(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes to standard output through a buffer.
fn print(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|error| match error.downcast::<io::Error>() {
        Ok(source) => Error::io("standard output", "write")(source).into(),
        Err(other) => other,
    })
}

/// Returns the requested number of threads, or that of processors.
fn threads(asked: Option<NonZero<usize>>) -> usize {
    asked.map_or_else(
        || available_parallelism().map_or(1, NonZero::get),
        NonZero::get,
    )
}
