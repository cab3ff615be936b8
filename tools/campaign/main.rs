//! The fault campaign: does the store keep its promises, whatever happens?
//!
//! ```text
//! cargo run --release --example campaign -- --short --seed 1    # the parts that .ci/run has, about a minute
//! cargo run --release --example campaign -- --seed 1            # all parts, some minutes
//! cargo run --release --example campaign -- --full --seed 1     # before a release
//! cargo run --release --example campaign -- cuts mutants        # some parts
//! ```
//!
//! | part | what |
//! |---|---|
//! | `exhaustive` | a power cut at every operation of a small run, and a second one at every operation of each recovery |
//! | `cuts` | power cuts at random operations of random runs, up to four in a row |
//! | `threads` | the same while packed files are read again by several threads, each made fast or slow at random |
//! | `ends` | the same while the last snapshot of a stream is made, which is then sent again |
//! | `changes` | the same while pages change, and each ranking starts from the one before: rankings agree within their bounds |
//! | `index` | the same while the ranking of pages is made that have an index on disk; and stores with the index of a copy |
//! | `wide` | the same with more pages than a chunk of the cash file holds |
//! | `errors` | every operation fails in every way, once and from then on; with `--short`, one of the two |
//! | `reading` | every operation of commands that only read fails |
//! | `together` | several commands at once on one store |
//! | `flips` | rot: flipped bits, cut, lost, old and foreign files, in all files of a store |
//! | `mutants` | programs that leave out a sync, or sync too late: the cuts must find them out |
//! | `outputs` | names that are taken, and results that several commands write at once, with the real program |
//! | `clocks` | clocks that are set while the real program reads a stream |
//! | `kills` | kill -9 of the real program at random moments, up to eight times in a row |
//! | `full-disk` | the real program on a small file system without room (as root) |
//!
//! All but the last four run the production code on a disk in memory (see `disk/`), and the same seed draws
//! the same faults. The last four run the program itself, which they build, on real disks; when it is
//! killed is a matter of the clock too.
//! Prints one line a part; the exit code is 1 if anything failed.

mod binary;
mod clocks;
mod copies;
#[path = "../../tests/common/crawl.rs"]
mod crawl;
mod cuts;
mod disk;
mod errors;
mod flips;
mod full_disk;
mod kills;
mod mutants;
mod outputs;
#[path = "../../tests/common/pack.rs"]
mod pack;
mod producer;
mod readers;
mod reading;
mod scenario;
mod tally;
#[cfg(test)]
mod tests;
mod together;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use binary::Binary;
use clap::{Parser, ValueEnum};
use cuts::Broken;
use scenario::{Kind, Scenario};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tally::Tally;

/// Test what the store promises under faults.
#[derive(Parser)]
struct Options {
    /// Parts to run [default: all].
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Another seed, other faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The short campaign: what loses syncs or fails on the simulated disk, and every mutant [parts: exhaustive, cuts, errors,
    /// mutants].
    #[arg(long)]
    short: bool,
    /// The long campaign.
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// The program to kill, instead of building it.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Exhaustive,
    Cuts,
    Threads,
    Ends,
    Changes,
    Index,
    Wide,
    Errors,
    Reading,
    Together,
    Flips,
    Mutants,
    Outputs,
    Clocks,
    Kills,
    FullDisk,
}

/// Parts of the short campaign.
const SHORT: &[Part] = &[Part::Exhaustive, Part::Cuts, Part::Errors, Part::Mutants];

fn main() -> ExitCode {
    let options = Options::parse();
    // Panics are caught, and reported with their scenario.
    std::panic::set_hook(Box::new(|_| {}));
    // Nothing may stay mounted.
    match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Err(error) => eprintln!("campaign: {error}"),
        Ok(mut signals) => {
            std::thread::spawn(move || {
                if signals.forever().next().is_some() {
                    full_disk::clean_up();
                    std::process::exit(130);
                }
            });
        }
    }
    match campaign(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("campaign: {what}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(options: &Options) -> Result<bool, String> {
    let lab = tempfile::tempdir().map_err(|error| error.to_string())?;
    let parts = match &options.parts[..] {
        [] if options.short => SHORT,
        [] => Part::value_variants(),
        parts => parts,
    };
    println!("seed {}", options.seed);
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>10} {:>8}",
        "part", "cuts", "2nd+", "faults", "survivors", "disks", "failures", "slowest ms", "seconds"
    );
    let mut sum = Tally::default();
    for part in parts {
        let started = Instant::now();
        let tally = run(*part, options, lab.path())?;
        let name = part.to_possible_value();
        line(
            name.as_ref().map_or("", |name| name.get_name()),
            &tally,
            started,
        );
        sum += tally;
    }
    for failure in &sum.failures {
        println!("FAILED: {failure}");
    }
    Ok(sum.failures.is_empty())
}

fn run(part: Part, options: &Options, lab: &Path) -> Result<Tally, String> {
    let seed = options.seed;
    let small = || Scenario::small(lab, seed);
    let random = |kind, chains| cuts::random(kind, lab, seed, chains, Broken::default());
    Ok(match part {
        Part::Exhaustive => cuts::exhaustive(&small()?, seed, options.full),
        Part::Cuts => {
            let chains = match options {
                Options { full: true, .. } => 200_000,
                Options { short: true, .. } => 2_000,
                _ => 40_000,
            };
            random(Kind::Any, chains)
        }
        Part::Threads => random(Kind::Threads, if options.full { 5_000 } else { 300 }),
        Part::Ends => random(Kind::Ends, if options.full { 20_000 } else { 2_000 }),
        Part::Changes => random(Kind::Changes, if options.full { 5_000 } else { 500 }),
        Part::Index => {
            let mut tally = random(Kind::Index, if options.full { 500 } else { 20 });
            let copies = if options.full { 100 } else { 4 };
            tally += copies::campaign(lab, seed, copies, None);
            tally
        }
        Part::Wide => random(Kind::Wide, if options.full { 2_000 } else { 100 }),
        Part::Errors => {
            let mut tally = errors::sweep(&small()?, seed, options.short);
            let piped = Scenario::piped(&mut crawl::Dice(seed))?;
            tally += errors::sweep(&piped, seed, options.short);
            tally
        }
        Part::Reading => {
            let scenario = Scenario::published_twice(lab, seed)?;
            reading::sweep(&scenario, seed, &reading::FAILING)?
        }
        Part::Together => {
            let runs = if options.full { 10_000 } else { 600 };
            together::campaign(lab, seed, runs, false)
        }
        Part::Flips => {
            let flips = if options.full { 10_000 } else { 1_000 };
            flips::rot(lab, seed, flips, |table| eprintln!("{table}"))
        }
        Part::Mutants => {
            let binary = Binary::find(options.binary.as_deref())?;
            mutants::catch(&binary, lab, seed)
        }
        Part::Outputs => {
            let binary = Binary::find(options.binary.as_deref())?;
            outputs::campaign(&binary, lab, seed, if options.full { 2_000 } else { 200 })?
        }
        Part::Clocks => {
            let binary = Binary::find(options.binary.as_deref())?;
            let runs = if options.full { 200 } else { 12 };
            clocks::campaign(&binary, lab, seed, runs, clocks::Set::Wall)?
        }
        Part::Kills => {
            let binary = Binary::find(options.binary.as_deref())?;
            kills::campaign(&binary, lab, seed, if options.full { 1_000 } else { 200 })?
        }
        Part::FullDisk => {
            let binary = Binary::find(options.binary.as_deref())?;
            full_disk::campaign(&binary, lab, seed, if options.full { 300 } else { 40 })?
        }
    })
}

fn line(name: &str, tally: &Tally, started: Instant) {
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>10.1} {:>8.1}",
        name,
        tally.cuts,
        tally.cuts_again,
        tally.faults,
        tally.survivors,
        tally.disks,
        tally.failures.len(),
        tally.slowest.as_secs_f64() * 1e3,
        started.elapsed().as_secs_f64()
    );
}
