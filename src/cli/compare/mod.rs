//! `cashrank compare`: the distance of two rankings, or what moved between them.

mod side;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use cashrank::{Error, Mover, PageState};
use cashrank_graph::metrics::moved::{By, MoveOptions, Moves, margin, moved_by_name};
use cashrank_graph::metrics::{NameHash, compare};
use cashrank_store::snapshot::{Snapshot, moved};

use super::common::{Exit, MemoryArg, STORE, positive, print, print_json, say, shown, words};
use super::json::{joined, object};
use super::levels::{LevelArgs, note_parameters, rounded_up};
use super::snapshots::SnapshotArg;
use super::table::{Columns, write_table};
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
both may be rankings of the same links. A file of scores counts as exact there.

With one side, a store or a snapshot is compared with the ranking before it, and a file with the store that CASHRANK_STORE \
names. With --snapshot, LEFT is a store, and its older snapshot is compared with RIGHT, or with its current snapshot.

A move is certain if the errors that both rankings may have cannot explain it. Where pages were added, the importance of the \
others falls, for all sums to 1: diluted_pages counts the pages whose change is that of the mean page.

Two snapshots of one store are read side by side. Anything else is joined by name, which takes about 64 bytes of memory \
per page.")]
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
    /// Order by change of importance, by that relative to the importance before, or by rank.
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
            return show_moved(&left, &right, wanted, &self.memory, self.json);
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
        let is_known = unbounded.len() < 2 && unbounded.iter().all(|side| side.ranking.is_none());
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

struct MovesReport<'a> {
    agreement: Agreement,
    sides: [&'a CompareSide; 2],
    /// Days between the latest fetches; negative if the right side is earlier.
    days: Option<f64>,
    found: Moves,
}

/// Shows what moved, by page number if both sides number pages alike, else by name.
fn show_moved(
    left: &CompareSide,
    right: &CompareSide,
    wanted: MoveOptions,
    memory: &MemoryArg,
    is_json: bool,
) -> anyhow::Result<Exit> {
    note_settings(left, right);
    if wanted.certain_only && margin(left.bound_l1(), right.bound_l1()).is_none() {
        say!(
            "note: a ranking has no bound, so no change is certain, and none is listed with --certain-only"
        );
    }
    let store = |side: &Snapshot| side.store().canonicalize().ok();
    let found = match left.snapshot().zip(right.snapshot()) {
        Some((l, r)) if store(l).is_some() && store(l) == store(r) => moved(l, r, wanted)?,
        _ => by_name(left, right, wanted, memory)?,
    };
    let time = |side: &CompareSide| side.info().and_then(|info| info.time);
    let days = time(left)
        .zip(time(right))
        .map(|(l, r)| (r as f64 - l as f64) / 86_400.0);
    let report = MovesReport {
        agreement: Agreement::of([left, right], found.summary.l1),
        sides: [left, right],
        days: days.filter(|days| *days != 0.0),
        found,
    };
    if is_json {
        return print_json(&report.json());
    }
    print(|out| report.write(out))
}

/// Prints notes about settings that make importances differ although no link does.
fn note_settings(left: &CompareSide, right: &CompareSide) {
    let Some((left, right)) = left.ranking.as_ref().zip(right.ranking.as_ref()) else {
        return;
    };
    note_parameters(left, right);
    let [l, r] = [left, right].map(|side| &side.snapshot().info().settings.config);
    if (l.damping(), l.self_links) != (r.damping(), r.self_links) {
        say!(
            "note: the two stores differ in damping or self-links, so their importance is not comparable"
        );
    }
}

/// Joins the sides by name, and reads them once more to find the names that belong to the hashes.
fn by_name(
    left: &CompareSide,
    right: &CompareSide,
    wanted: MoveOptions,
    memory: &MemoryArg,
) -> anyhow::Result<Moves> {
    for side in [left, right] {
        side.check_lasts()?;
    }
    let bounds = [left.bound_l1(), right.bound_l1()];
    let (left_scores, right_scores) = scores(left, right, memory)?;
    let mut found = moved_by_name(left_scores, right_scores, bounds, wanted)?;
    let known = found.rose.iter_mut().chain(&mut found.fell);
    let known: Vec<&mut Mover> = known.chain(&mut found.new).collect();
    for (side, pages) in [(right, known), (left, found.missing.iter_mut().collect())] {
        let mut unnamed: HashMap<u128, &mut Mover> =
            pages.into_iter().map(|page| (page.key, page)).collect();
        if unnamed.is_empty() {
            continue;
        }
        side.each(|name, _| {
            if let Some(page) = unnamed.remove(&NameHash::of(name).into()) {
                page.url = String::from_utf8_lossy(name).into_owned();
            }
            Ok(())
        })?;
        if !unnamed.is_empty() {
            anyhow::bail!(Error::InputChanged(format!(
                "{side}: changed while it was read; run the command again"
            )));
        }
    }
    Ok(found)
}

impl MovesReport<'_> {
    fn json(&self) -> impl serde::Serialize {
        let moving = |rows: &[Mover]| {
            let row = |row: &Mover| {
                object! {
                    "left_rank": row.rank_before,
                    "right_rank": row.rank,
                    "rank_change": row.rank_change(),
                    "left_importance": row.importance_before,
                    "right_importance": row.importance,
                    "change": row.change(),
                    "relative": row.relative(),
                    "certain": row.certain,
                    "state": row.state,
                    "url": row.url.clone(),
                }
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let single = |rows: &[Mover]| {
            let row = |row: &Mover| {
                object! {
                    "rank": row.rank.or(row.rank_before),
                    "importance": row.importance.or(row.importance_before),
                    "state": row.state,
                    "url": row.url.clone(),
                }
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let [left, right] = self.sides;
        let head = object! {
            "left": left.json(),
            "right": right.json(),
            "days": self.days,
        };
        let lists = object! {
            "rose": moving(&self.found.rose),
            "fell": moving(&self.found.fell),
            "new": single(&self.found.new),
            "missing": single(&self.found.missing),
        };
        let head = joined(&self.agreement, head);
        joined(head, joined(&self.found.summary, lists))
    }

    /// Writes the totals as `key<TAB>value` lines, then a table for each list.
    fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let sums = &self.found.summary;
        writeln!(out, "{}", self.agreement.line)?;
        let [left, right] = self.sides;
        left.write(out, "left", sums.left_pages)?;
        right.write(out, "right", sums.right_pages)?;
        let some = |value: Option<String>| value.unwrap_or("unknown".into());
        for (key, value) in [
            ("days", some(self.days.map(span))),
            ("common_pages", sums.common_pages.to_string()),
            ("new_pages", sums.new_pages.to_string()),
            ("missing_pages", sums.missing_pages.to_string()),
            ("rose_pages", sums.rose_pages.to_string()),
            ("fell_pages", sums.fell_pages.to_string()),
            ("unchanged_pages", sums.unchanged_pages.to_string()),
            ("diluted_pages", sums.diluted_pages.to_string()),
            ("same_rank_pages", sums.same_rank_pages.to_string()),
            (
                "margin",
                some(sums.margin.map(|margin| format!("{margin:.4e}"))),
            ),
            ("l1", format!("{:?}", sums.l1)),
            ("dilution_l1", format!("{:?}", sums.dilution_l1)),
            ("l2", format!("{:?}", sums.l2)),
            ("linf", format!("{:?}", sums.linf)),
        ] {
            writeln!(out, "{key}\t{value}")?;
        }
        for (name, rows) in [("rose", &self.found.rose), ("fell", &self.found.fell)] {
            write_list(out, name, MOVING, rows, |row| {
                let relative = row.relative().map(|of| format!("{:+.2}%", 100.0 * of));
                [
                    rank(row.rank),
                    rank(row.rank_before),
                    share(row.importance),
                    share(row.importance_before),
                    format!("{:+.3e}", row.change()),
                    relative.unwrap_or("-".into()),
                    sure(row.certain).into(),
                    name_of(row),
                ]
            })?;
        }
        let found = &self.found;
        for (name, rows) in [("new", &found.new), ("missing", &found.missing)] {
            write_list(out, name, SINGLE, rows, |row| {
                let importance = row.importance.or(row.importance_before);
                [
                    rank(row.rank.or(row.rank_before)),
                    share(importance),
                    name_of(row),
                ]
            })?;
        }
        Ok(())
    }
}

const MOVING: Columns<'_, 8> = [
    ("rank", 9),
    ("was", 9),
    ("importance", 11),
    ("was", 11),
    ("change", 11),
    ("relative", 10),
    ("certain", 7),
    (" url", 0),
];
const SINGLE: Columns<'_, 3> = [("rank", 9), ("importance", 11), (" url", 0)];

fn write_list<const N: usize>(
    out: &mut dyn Write,
    name: &str,
    columns: Columns<'_, N>,
    rows: &[Mover],
    cells: impl Fn(&Mover) -> [String; N],
) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{name}")?;
    Ok(write_table(out, " ", columns, rows.iter().map(cells))?)
}

fn rank(rank: Option<u64>) -> String {
    rank.unwrap_or(0).to_string()
}

fn name_of(row: &Mover) -> String {
    let is_gone = row.state == Some(PageState::Gone);
    format!(
        " {}{}",
        shown(&row.url),
        if is_gone { ", gone" } else { "" }
    )
}

fn share(importance: Option<f64>) -> String {
    format!("{:.4e}", importance.unwrap_or(0.0))
}

fn sure(certain: Option<bool>) -> &'static str {
    match certain {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

fn span(length: f64) -> String {
    if length.abs() < 0.01 {
        format!("{length:.3e}")
    } else {
        format!("{length:.3}")
    }
}
