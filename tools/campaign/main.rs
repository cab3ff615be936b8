//! The fault campaign: does the store keep its promises, whatever happens?
//!
//! ```text
//! cargo run --release --example campaign -- --seed 1            # all parts, some minutes
//! cargo run --release --example campaign -- --full --seed 1     # before a release
//! cargo run --release --example campaign -- cuts mutants        # some parts
//! ```
//!
//! | part | what |
//! |---|---|
//! | `exhaustive` | a power cut at every operation of a small run, and a second one at every operation of each recovery |
//! | `cuts` | power cuts at random operations of random runs, up to four in a row |
//! | `wide` | the same with more pages than a chunk of the cash file holds |
//! | `errors` | every operation fails in every way, once and from then on |
//! | `mutants` | programs that leave out a sync, or sync too late: the cuts must find them out |
//!
//! The production code runs, on a disk in memory (see `disk/`). The same seed draws the same faults.
//! Prints one line a part; the exit code is 1 if anything failed.

#[path = "../../tests/common/crawl.rs"]
mod crawl;
mod cuts;
mod disk;
mod errors;
mod mutants;
mod producer;
mod scenario;
mod tally;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use scenario::Scenario;
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
    /// The long campaign.
    #[arg(long)]
    full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Exhaustive,
    Cuts,
    Wide,
    Errors,
    Mutants,
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Panics are caught, and told with their story.
    std::panic::set_hook(Box::new(|_| {}));
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
    let all: &[Part] = Part::value_variants();
    let parts = match options.parts.is_empty() {
        true => all,
        false => &options.parts,
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
        let name = format!("{part:?}").to_lowercase();
        line(&name, &tally, started);
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
    Ok(match part {
        Part::Exhaustive => cuts::exhaustive(&small()?, seed, options.full),
        Part::Cuts => cuts::random(lab, seed, if options.full { 400_000 } else { 40_000 }, None),
        Part::Wide => cuts::wide(lab, seed, if options.full { 2_000 } else { 100 }),
        Part::Errors => {
            let mut tally = errors::sweep(&small()?, seed);
            tally += errors::sweep(&Scenario::piped(&mut crawl::Dice(seed))?, seed);
            tally
        }
        Part::Mutants => mutants::catch(lab, seed),
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
