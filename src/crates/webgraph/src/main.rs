//! `cashrank-webgraph`: the graph that a store keeps as a BV graph, which the tools of WebGraph read; and BV graphs as inputs of
//! `cashrank ingest`.
//!
//! The format is that of P. Boldi and S. Vigna, "The WebGraph framework I: compression techniques", WWW 2004, as Java's
//! WebGraph reads and writes it. The crate `webgraph` codes it.
//!
//! | module | |
//! |---|---|
//! | `export` | a store's links into `.graph`, `.offsets`, `.properties`, `.ef` and `.urls` |
//! | `import` | a BV graph and its list of URLs into a folder that `cashrank ingest` takes |
//! | `files` | the files of a graph, and what its `.properties` say |
//! | `check` | a check of a `.graph` before it is read |
//! | `codes` | the codes in it, read so that no damage does harm |

mod check;
mod codes;
mod export;
mod files;
mod import;

use std::io::{self, Write};
use std::process::ExitCode;

use cashrank_base::model::{Exit, name_settings};
use cashrank_store::memory::{available, bytes};
use clap::{Parser, Subcommand};

/// Write the graph that a cashrank store keeps as a BV graph (WebGraph), and make BV graphs inputs of cashrank.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Export(export::Args),
    Import(import::Args),
}

/// The budget of what is held in memory.
#[derive(clap::Args)]
struct MemoryArg {
    /// Use at most this much memory, like 20G, and refuse work that needs more [default: 15/16 of the available memory,
    /// within the limits of the container].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
}

impl MemoryArg {
    /// Returns the budget in bytes; `None` if the machine's memory is unknown.
    fn budget(&self) -> Option<u64> {
        self.memory.or_else(available)
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Export(args) => args.run(),
        Command::Import(args) => args.run(),
    };
    match done {
        Ok(summary) => {
            say(&summary);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("cashrank-webgraph: {error}"));
            Exit::from(&error).into()
        }
    }
}

/// Prints a message on standard error; failure is ignored.
fn say(what: &str) {
    let line = name_settings(what, |name| format!("--{}", name.replace('_', "-")));
    let _ = writeln!(io::stderr(), "{line}");
}
