//! `cashrank compare`: how far two rankings are apart, or what moved from one to the other.

mod moved;
mod side;

use std::path::PathBuf;

use cashrank::metrics::compare;
use cashrank::metrics::moved::By;

use super::common::{Exit, MemoryArg, one_of, parsed, positive, print, print_json};
use super::snapshots::SnapshotArg;
use side::{Side, scores};

/// Compare two rankings; the second is the reference, or the later one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank compare ranks exact.tsv.gz
  cashrank compare ranks --snapshot 50000 --json
  cashrank compare ranks --snapshot 2026-11-01 --moved 20 --top 1000
With --snapshot, LEFT is a store, and its older snapshot is compared with RIGHT, or with its current one.
With --moved, pages that rose come largest gain first, pages that fell largest loss first; ties:
the larger change of importance, then the better rank now, then first appearance (files and two
stores: a hash of the name). New and gone pages come by rank. A change is certain if it is more
than half the sum of both bounds (the margin): then PageRank itself changed, of the links as each
snapshot's window read them. Files have no bounds: unknown. Rates are a day of fetch time, and a
turnover of the larger supply. Two snapshots of one store are read side by side, in memory for
the lists only; all else is joined by name, in some 64 bytes a page, and files are read twice.")]
pub struct Args {
    /// A store (its current snapshot), a snapshot, or `name<TAB>score` lines (plain, gzip or zstd;
    /// one bare number a line: names are line numbers from 0).
    left: PathBuf,
    /// The same; the reference. With --snapshot: the store's current snapshot, if left out.
    #[arg(required_unless_present = "snapshot")]
    right: Option<PathBuf>,
    #[command(flatten)]
    snapshot: SnapshotArg,
    /// Show what moved instead: the N pages that rose most, that fell most, and the first N new and
    /// gone ones. 0: sums only.
    #[arg(long, value_name = "N")]
    moved: Option<usize>,
    /// What rose or fell most: change (of importance), relative (to the importance before) or rank.
    #[arg(long, value_name = "KEY", default_value = "change", value_parser = one_of(["change", "relative", "rank"], parsed::<By>), requires = "moved")]
    by: By,
    /// List only pages that are among the first K on a side.
    #[arg(long, value_name = "K", value_parser = positive, requires = "moved")]
    top: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let left = match self.snapshot.snapshot {
            Some(_) => Side::of(self.snapshot.open(&self.left)?),
            None => Side::open(&self.left)?,
        };
        let right = Side::open(self.right.as_ref().unwrap_or(&self.left))?;
        if let Some(count) = self.moved {
            let top = self.top.unwrap_or(u64::MAX);
            let report = moved::report(&left, &right, count, self.by, top, &self.memory)?;
            if self.json {
                return print_json(&report);
            }
            return print(|out| report.write(out));
        }
        let (left, right) = scores(&left, &right, &self.memory)?;
        let comparison = compare(left, right)?;
        if self.json {
            return print_json(&comparison);
        }
        print(|out| Ok(write!(out, "{comparison}")?))
    }
}
