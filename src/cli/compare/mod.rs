//! `cashrank compare`: the distance of two rankings, or what moved between them.

mod moved;
mod side;

use std::path::{Path, PathBuf};

use cashrank_graph::metrics::compare;
use cashrank_graph::metrics::moved::{By, MoveOptions};

use super::common::{Exit, MemoryArg, STORE, positive, print, print_json, rounded_up, say, words};
use super::json::joined;
use super::levels::LevelArgs;
use super::snapshots::SnapshotArg;
use side::{CompareSide, is_scores, scores};

/// Compare two rankings; the second is the reference, or the later one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank compare ranks
  cashrank compare ranks exact.tsv.gz
  cashrank compare ranks --snapshot 50000 --json
  cashrank compare ranks --snapshot 2026-11-01 --moved 20 --certain-only
  cashrank compare ranks --snapshot 2026-11-01 --level host --moved 20

The first line says whether the two agree: whether they are no farther apart than the sum of their bounds allows, so that \
both may be rankings of the same links. A file of scores has no bound, and counts as exact there.

With one side, a store or a snapshot is compared with the ranking before it, and a file with the store that CASHRANK_STORE \
names. Without sides it is that store.

With --snapshot, LEFT is a store, and its older snapshot is compared with RIGHT, or with its current snapshot.

With --level and --measure, the rankings of sites or by a measure beside both snapshots are compared, scores as shares of \
their sum; what is said of pages is then of sites.

With --moved, pages that rose come with the largest gain first, pages that fell with the largest loss first, relative to \
their importance before unless --by says otherwise, and only pages among the first --top. Ties go to the larger change of importance, then to the better rank now, then to the page that appeared first (for files \
and two stores: by a hash of the name). New and missing pages, which one side lacks, are ordered by rank.

A change is certain if the errors that both rankings may have (their accuracy) cannot explain it: then PageRank itself changed, for \
the links that each snapshot knows. Every other page of both sides counts as unchanged. The accuracy of files is unknown, so \
any change counts.

Where pages were added, the importance of the others falls, for all sums to 1. diluted_pages counts those of the \
pages that rose or fell whose change is that of the mean page, and dilution_l1 says how much of l1 is such change.

Two snapshots of one store are read side by side, and only the lists take memory. Anything else is joined by name, \
which takes about 64 bytes per page, and files are read twice.")]
pub struct CompareArgs {
    /// A store (its current snapshot), a snapshot, or `name<TAB>score` lines (plain, gzip or zstd). With one bare
    /// number a line, names are line numbers from 0 [default: the environment variable CASHRANK_STORE].
    left: Option<PathBuf>,
    /// The same, for the reference [default: LEFT, and the ranking before it takes its place].
    right: Option<PathBuf>,
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true, hide = true)]
    store: Option<PathBuf>,
    #[command(flatten)]
    snapshot: SnapshotArg,
    #[command(flatten)]
    level: LevelArgs,
    /// Show what moved instead: the N pages that rose most, the N that fell most, and the first N new and missing ones.
    ///
    /// 0: only sums.
    #[arg(long, value_name = "N")]
    moved: Option<usize>,
    /// Compare moves by change of importance, by change relative to the importance before, or by rank.
    ///
    /// By rank, only pages are listed whose importance changed in the same direction.
    #[arg(long, value_name = "KEY", default_value = "relative", value_parser = words::<By>(By::ALL.map(|by| (by.name(), ""))), requires = "moved")]
    by: By,
    /// List only pages that are among the first K on either side.
    #[arg(long, value_name = "K", value_parser = positive, default_value_t = MoveOptions::TOP, requires = "moved")]
    top: u64,
    /// Of the pages that rose and fell, list only those whose change of importance is certain.
    #[arg(long, requires = "moved")]
    certain_only: bool,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl CompareArgs {
    /// Returns the paths of both sides. Without a second side, the first is compared with the ranking before it.
    fn paths(&self) -> anyhow::Result<(&Path, Option<&Path>)> {
        let store = self.store.as_deref();
        match (self.left.as_deref(), self.right.as_deref(), store) {
            (Some(file), None, Some(store)) if is_scores(file) => Ok((store, Some(file))),
            (Some(file), None, None) if is_scores(file) => anyhow::bail!(
                "{}: nothing to compare it with: name a second ranking, or a store by {STORE} in the environment",
                file.display()
            ),
            (Some(left), right, _) => Ok((left, right)),
            (None, _, Some(store)) => Ok((store, None)),
            (None, _, None) => anyhow::bail!(
                "nothing to compare: name one or two rankings, or a store by {STORE} in the environment"
            ),
        }
    }

    fn sides(&self) -> anyhow::Result<(CompareSide, CompareSide)> {
        let (which, memory) = (&self.level, &self.memory);
        let (path, reference) = self.paths()?;
        let right = CompareSide::open(reference.unwrap_or(path), which, memory)?;
        let left = match (self.snapshot.snapshot, reference) {
            (Some(_), _) => CompareSide::of(self.snapshot.open(path)?, which, memory)?,
            (None, Some(_)) => CompareSide::open(path, which, memory)?,
            (None, None) => right.before(which, memory)?,
        };
        if self.right.is_none() {
            say!("comparing {left} with {right}");
        }
        Ok((left, right))
    }

    pub fn run(self) -> anyhow::Result<Exit> {
        let (left, right) = self.sides()?;
        if let Some(count) = self.moved {
            let wanted = MoveOptions {
                count,
                by: self.by,
                top: self.top,
                certain_only: self.certain_only,
            };
            return moved::show(&left, &right, wanted, &self.memory, self.json);
        }
        let (left_scores, right_scores) = scores(&left, &right, &self.memory)?;
        let comparison = compare(left_scores, right_scores)?;
        let agreement = Agreement::of([&left, &right], comparison.l1);
        if self.json {
            return print_json(&joined(agreement, comparison));
        }
        print(|out| Ok(write!(out, "{}\n{comparison}", agreement.line)?))
    }
}

/// Distance of two rankings and what their bounds allow. A file of scores is exact if the other side has a bound.
#[derive(serde::Serialize)]
struct Agreement {
    /// True if the distance is within the bounds, so that both may be of the same links; `None` without bounds.
    agree: Option<bool>,
    allowed_l1: Option<f64>,
    /// First line of the output for people.
    #[serde(skip)]
    line: String,
}

impl Agreement {
    fn of(sides: [&CompareSide; 2], l1: f64) -> Agreement {
        let unbounded = sides.into_iter().filter(|side| side.bound_l1().is_none());
        let unbounded: Vec<&CompareSide> = unbounded.collect();
        let is_known = unbounded.len() < 2 && unbounded.iter().all(|side| side.ranking().is_none());
        let allowed = is_known.then(|| sides.into_iter().filter_map(CompareSide::bound_l1).sum());
        let names: Vec<String> = unbounded.iter().map(|side| side.to_string()).collect();
        let names = names.join(" and ");
        let apart = match l1 {
            0.0 => "they are the same".into(),
            l1 => format!("{l1:.1e} apart (L1)"),
        };
        let line = match allowed {
            None => format!("unknown: {apart}; no bound of {names}"),
            Some(allowed) => {
                let answer = if l1 <= allowed { "yes" } else { "no" };
                let provided = match &*names {
                    "" => String::new(),
                    file => format!(", if {file} is exact"),
                };
                let allowed = rounded_up(allowed);
                format!("{answer}{provided}: {apart}, and the bounds allow {allowed}")
            }
        };
        Agreement {
            agree: allowed.map(|allowed| l1 <= allowed),
            allowed_l1: allowed,
            line: format!("agree\t{line}"),
        }
    }
}
