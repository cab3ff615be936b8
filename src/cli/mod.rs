//! The command line: one file per subcommand. Data goes to standard output, messages to standard error.

mod common;
mod compare;
mod compute;
mod convert;
mod coverage;
mod export;
mod help;
mod history;
mod ingest;
mod inputs;
mod inspect;
mod json;
mod levels;
mod links;
mod local;
#[cfg(feature = "man")]
mod man;
mod next;
mod output;
mod rank;
mod record;
mod reporter;
#[cfg(feature = "serve")]
mod serve;
mod settle;
mod snapshots;
mod stat;
mod summary;
mod table;
mod top;
mod verify;

use std::panic::{set_hook, take_hook};
use std::process::ExitCode;

use cashrank_store::store::{PanicFate, fenced};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use common::{Exit, say};

const HELP: &str = "\
Options of many commands:
      --memory SIZE  Use at most this much memory, like 20G, and refuse work that needs more
                     [default: 15/16 of the available memory, within the container's limits]
      --threads N    Use at most N threads [default: the number of processors]
      --json         Print JSON, for programs
  -q, --quiet        Print only problems
      --force        Replace the file that -o names, if it exists and is not read

Examples:
  cashrank ingest crawl.warc.gz --store ranks       read a crawl, and rank its pages
  cashrank top -n 20 --store ranks                  show the most important pages
  cashrank next -n 1000 --store ranks               list the pages to crawl next
  cashrank ingest -h                                the options that most people need
  cashrank ingest --help                            all options

Exit codes:
  0    done
  1    rank, history, links: a URL is not known
  2    wrong usage, or a request that does not fit the store; the message says what to do
  3    done, but not all of the input could be used: the output says how many records were
       skipped and why, or that nothing was read
  4    an input is corrupt, or --strict met a bad record; what came before it was applied
  5    a file of the store is damaged
  6    the store is in use by another process
  7    reading or writing a file failed
  8    the memory budget (--memory) is used up: an ingest stopped at a checkpoint (with
       more memory the same command continues); other commands wrote nothing
  9    a bug in cashrank; the message says what to keep
  130  stopped by a signal, at a checkpoint; the same command resumes";

/// Rank web pages by importance while they are crawled, and choose what to crawl next.
#[derive(Parser)]
#[command(name = "cashrank", version, after_help = HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Ingest(Box<ingest::IngestArgs>),
    Convert(convert::ConvertArgs),
    Inspect(inspect::InspectArgs),
    Next(Box<next::NextArgs>),
    Settle(settle::SettleArgs),
    Compute(Box<compute::ComputeArgs>),
    Top(top::TopArgs),
    Rank(rank::RankArgs),
    History(history::HistoryArgs),
    Links(links::LinksArgs),
    Coverage(coverage::CoverageArgs),
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    /// Answer questions about a store over HTTP (this build has none: cargo install --features serve).
    #[cfg(not(feature = "serve"))]
    Serve(Absent),
    Export(export::ExportArgs),
    Compare(compare::CompareArgs),
    Local(Box<local::LocalArgs>),
    Snapshots(snapshots::SnapshotsArgs),
    Stat(stat::StatArgs),
    Verify(verify::VerifyArgs),
    Completions(Completions),
    #[cfg(feature = "man")]
    Man(man::ManArgs),
    /// Write man pages to a folder (this build has none: cargo install --features man).
    #[cfg(not(feature = "man"))]
    Man(Absent),
}

/// Arguments of a command that this build lacks: it accepts any, and refuses to run.
#[cfg(not(all(feature = "man", feature = "serve")))]
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct Absent {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<std::ffi::OsString>,
}

#[cfg(not(all(feature = "man", feature = "serve")))]
impl Absent {
    fn run(self, feature: &str) -> anyhow::Result<Exit> {
        let found = cashrank_base::model::require_feature(feature);
        found.map_err(|why| anyhow::anyhow!("{feature}: {why}"))?;
        Ok(Exit::Done)
    }
}

/// Print the completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank completions bash > ~/.local/share/bash-completion/completions/cashrank
  cashrank completions zsh > ~/.zfunc/_cashrank
  cashrank completions fish > ~/.config/fish/completions/cashrank.fish")]
struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

pub fn main() -> ExitCode {
    report_panics();
    common::survive_file_size_limit();
    let found = help::in_two_steps(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&found).unwrap_or_else(|error| error.exit());
    match cli.command.run() {
        Ok(exit) => exit.into(),
        Err(error) if common::is_closed_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // The error's text includes its cause: the chain (`{:#}`) would print it twice.
            say!("cashrank: {error}");
            common::exit_of(&error).into()
        }
    }
}

/// Installs a panic hook that is silent about redb's panics on damaged pages, which are returned as errors. If one of
/// these panics cannot be caught, the process exits as for any damaged file. All other panics are reported as usual.
fn report_panics() {
    let usual = take_hook();
    set_hook(Box::new(move |panic| match fenced(panic) {
        PanicFate::Outside => usual(panic),
        PanicFate::Caught => {}
        PanicFate::Final => {
            say!(
                "cashrank: redb cannot use its pages: the store, or the frontier's file, is damaged, and cannot be \
                 used any more; `verify --deep` checks a store"
            );
            std::process::exit(Exit::Damaged as i32);
        }
    }));
}

impl Command {
    fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Ingest(args) => args.run(),
            Command::Convert(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Next(args) => args.run(),
            Command::Settle(args) => args.run(),
            Command::Compute(args) => args.run(),
            Command::Top(args) => args.run(),
            Command::Rank(args) => args.run(),
            Command::History(args) => args.run(),
            Command::Links(args) => args.run(),
            Command::Coverage(args) => args.run(),
            #[cfg(feature = "serve")]
            Command::Serve(args) => args.run(),
            #[cfg(not(feature = "serve"))]
            Command::Serve(args) => args.run("serve"),
            Command::Export(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Local(args) => args.run(),
            Command::Snapshots(args) => args.run(),
            Command::Stat(args) => args.run(),
            Command::Verify(args) => args.run(),
            #[cfg(feature = "man")]
            Command::Man(args) => args.run(Cli::command()),
            #[cfg(not(feature = "man"))]
            Command::Man(args) => args.run("man"),
            Command::Completions(args) => {
                let mut script = Vec::new();
                clap_complete::generate(args.shell, &mut Cli::command(), "cashrank", &mut script);
                common::print(|out| Ok(out.write_all(&script)?))
            }
        }
    }
}
