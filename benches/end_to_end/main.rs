//! The program as a whole, timed beside its peers. One command:
//!
//! ```text
//! cargo bench --bench end_to_end                              all parts but the long `scale`
//! cargo bench --bench end_to_end -- records wat --runs 5      some parts
//! cargo bench --bench end_to_end -- --name idle --note "otherwise idle"
//!                                    and benches/runs/DATE-idle.txt is written
//! cargo bench --bench end_to_end -- scale --size 1M:4M:400K --size 1G:4G:400M --name scale
//! ```
//!
//! | part | what | beside |
//! |---|---|---|
//! | `records` | ingest of JSON lines in zstd, to a published snapshot | `zstd -dc FILE >/dev/null` |
//! | `wat` | ingest of WAT records in gzip | `gzip -dc`, and zlib-rs in this process |
//! | `formats` | ingest of every format, from plain files | - |
//! | `accuracy` | time to a ranking within an L1 distance of 0.01 of exact PageRank, from a list of edges | WebGraph's tools, if `webgraph` and `webgraph-rank` are on the PATH |
//! | `reference` | ingest of JSON lines; both rankings must be the same bytes | the plain engine of `plain.rs` |
//! | `scale` | one pass from the generator's pipe, at sizes given: speed, memory, disk, restart | the generator alone |
//!
//! Runs of ours and of a peer alternate, because machines are noisy: read the ratios. Counts stand
//! beside the times, and known ones are checked: a wrong answer ends with exit code 1. Inputs are
//! made once by the generator (`cashrank-lab generate`). All large files go to a folder of their own in
//! `--dir`, which is removed at the end unless `--keep`. Real crawls are read from `../shared/data`;
//! what needs them prints SKIPPED where they are absent.
//!
//! Peak memory is the most that `/proc/PID/status` showed (VmHWM, every 20 ms), processor time the
//! last that `/proc/PID/stat` did.

mod accuracy;
mod bench;
mod formats;
mod input;
mod measure;
mod plain;
mod records;
mod reference;
mod report;
mod scale;
mod wat;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use bench::Bench;
use scale::Size;

/// Time the program as a whole, beside its peers.
#[derive(Parser)]
struct Options {
    /// What to run [default: all but scale].
    parts: Vec<Part>,
    /// Pages of generated inputs.
    #[arg(long, default_value_t = 1_000_000)]
    pages: u64,
    /// Links of generated inputs.
    #[arg(long, default_value_t = 20_000_000)]
    links: u64,
    /// Runs of each case, ours and the peer's in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// scale: PAGES:LINKS:CRAWLED, with K, M and G; the last two may be left out (20 links a page,
    /// all crawled). May be given several times [default: 1M and 10M].
    #[arg(long = "size", value_name = "SIZE")]
    sizes: Vec<Size>,
    /// scale: further options of `cashrank ingest`, like "--checkpoint-every 5m".
    #[arg(long, default_value = "--marks 0", allow_hyphen_values = true)]
    ingest: String,
    /// wat: least decompressed bytes, in MiB.
    #[arg(long, default_value_t = 1024)]
    wat_mib: u64,
    /// formats: least bytes of an input, in MiB.
    #[arg(long, default_value_t = 256)]
    format_mib: u64,
    /// Write what is printed to benches/runs/DATE-NAME.txt, too.
    #[arg(long)]
    name: Option<String>,
    /// The circumstances, for the head: what else the machine did.
    #[arg(long, default_value = "not said what else ran")]
    note: String,
    /// Where large files go [default: the target directory].
    #[arg(long, default_value = env!("CARGO_TARGET_TMPDIR"))]
    dir: PathBuf,
    /// Leave inputs in --dir for the next time, and the last store to look at.
    #[arg(long)]
    keep: bool,
    /// Cargo gives it to benchmarks.
    #[arg(long, hide = true)]
    bench: bool,
    /// Be the plain engine: read FILE this many times and write the ranking.
    #[arg(long, hide = true, num_args = 3, value_names = ["FILE", "PASSES", "OUT"])]
    plain_engine: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    Records,
    Wat,
    Formats,
    Accuracy,
    Reference,
    Scale,
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    if let Some(arguments) = &options.plain_engine {
        return plain::main(arguments);
    }
    // `cargo test --benches` gives no --bench: nothing was asked for.
    if !options.bench {
        return ExitCode::SUCCESS;
    }
    if options.parts.is_empty() {
        use Part::*;
        options.parts = vec![Records, Wat, Formats, Accuracy, Reference];
    }
    if options.sizes.is_empty() {
        options.sizes = ["1M", "10M"]
            .map(|size| size.parse().expect("is one"))
            .into();
    }
    let mut bench = Bench::new(options);
    for part in bench.options.parts.clone() {
        match part {
            Part::Records => records::run(&mut bench),
            Part::Wat => wat::run(&mut bench),
            Part::Formats => formats::run(&mut bench),
            Part::Accuracy => accuracy::run(&mut bench),
            Part::Reference => reference::run(&mut bench),
            Part::Scale => scale::run(&mut bench),
        }
    }
    bench.end()
}
