//! `compare --moved`: finds what moved, names it, and writes it as a table or as JSON.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use cashrank::{Error, PageState};
use cashrank_graph::engine::{Estimator, PageId};
use cashrank_graph::metrics::NameHash;
use cashrank_graph::metrics::moved::{
    By, Move, MoveOptions, MoveSummary, Moves, Standing, margin, moved_by_name,
};
use cashrank_graph::sites::Level;
use cashrank_store::snapshot::{Elapsed, LevelRanking, Snapshot, elapsed, moved, same_numbers};

use super::agreement::Agreement;
use super::side::{CompareSide, scores};
use crate::cli::common::{self, Basis, MemoryArg, say, shown, time};
use crate::cli::levels::{counted_of, note_parameters, sureness_of};

/// Report of all moves, as JSON shows it.
#[derive(serde::Serialize)]
pub struct MovesReport {
    #[serde(flatten)]
    agreement: Agreement,
    left: About,
    right: About,
    /// Days of fetch time from left to right.
    days: Option<f64>,
    /// Turnovers from left to right.
    turnovers: Option<f64>,
    #[serde(flatten)]
    summary: MoveSummary,
    rose: Vec<MoveRow>,
    fell: Vec<MoveRow>,
    new: Vec<Single>,
    missing: Vec<Single>,
    #[serde(skip)]
    by: By,
}

/// Description of a side; of a file of scores only the path is known.
#[derive(serde::Serialize)]
pub(super) struct About {
    path: String,
    level: Level,
    measure: Option<String>,
    records: Option<u64>,
    last_fetch: Option<String>,
    turnovers: Option<f64>,
    window: Option<String>,
    window_turnovers: Option<f64>,
    estimator: Option<Estimator>,
    bound_l1: Option<f64>,
    #[serde(skip)]
    basis: Basis,
    #[serde(skip)]
    sureness: String,
}

/// Page that is on both sides.
#[derive(serde::Serialize)]
struct MoveRow {
    left_rank: u64,
    right_rank: u64,
    /// Smallest and largest rank that the bounds allow.
    left_ranks: Option<[u64; 2]>,
    right_ranks: Option<[u64; 2]>,
    rank_change: i64,
    left_importance: f64,
    right_importance: f64,
    change: f64,
    relative: Option<f64>,
    /// Change per day, if the sides are at least a day apart. For a shorter time only `per_hour` is given, since a
    /// trend of minutes does not last for a day.
    per_day: Option<f64>,
    per_hour: Option<f64>,
    per_turnover: Option<f64>,
    certain: Option<bool>,
    /// True if the ranges of possible ranks do not overlap.
    rank_certain: Option<bool>,
    /// Result of the page's fetches, on the right side; `None` across stores and for files of scores.
    state: Option<PageState>,
    url: String,
}

/// Page that is on one side only.
#[derive(serde::Serialize)]
struct Single {
    rank: u64,
    importance: f64,
    state: Option<PageState>,
    url: String,
}

/// Compares by page number if both sides number pages alike, else by name. Computes the margin from the bounds.
pub fn report(
    left: &CompareSide,
    right: &CompareSide,
    wanted: MoveOptions,
    memory: &MemoryArg,
) -> anyhow::Result<MovesReport> {
    let wanted = MoveOptions {
        margin: margin(left.bound_l1(), right.bound_l1()),
        ..wanted
    };
    note_settings(left, right);
    if wanted.certain_only && wanted.margin.is_none() {
        say!(
            "note: a ranking has no bound, so no change is certain, and none is listed with --certain-only"
        );
    }
    if let Some((l, r)) = left.snapshot().zip(right.snapshot())
        && one_store(l, r)?
    {
        let found = moved(l, r, wanted)?;
        let elapsed = elapsed(l.info(), r.info(), true)?;
        return Ok(by_number(&found, l, r)?.report([left, right], elapsed, &found, wanted.by));
    }
    for side in [left, right] {
        side.check_lasts("--moved")?;
    }
    let elapsed = match left.ranking().zip(right.ranking()) {
        Some((l, r)) => {
            let (l, r) = (l.snapshot(), r.snapshot());
            elapsed(l.info(), r.info(), l.store() == r.store())?
        }
        None => Elapsed::default(),
    };
    let (left_scores, right_scores) = scores(left, right, memory)?;
    let bounds = [left.bound_l1(), right.bound_l1()];
    let found = moved_by_name(left_scores, right_scores, bounds, wanted)?;
    Ok(by_name(&found, left, right)?.report([left, right], elapsed, &found, wanted.by))
}

/// Prints notes about settings that make importances differ although no link does.
pub(super) fn note_settings(left: &CompareSide, right: &CompareSide) {
    let Some((left, right)) = left.ranking().zip(right.ranking()) else {
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

fn one_store(left: &Snapshot, right: &Snapshot) -> Result<bool, Error> {
    let whole = |snapshot: &Snapshot| snapshot.store().canonicalize().ok();
    let same = whole(left).is_some_and(|path| Some(path) == whole(right));
    Ok(same || same_numbers(left, right)?)
}

/// Names of the listed pages; also their states, if both sides number pages alike.
struct MovedNames<P>(HashMap<P, (String, Option<PageState>)>);

fn by_number(
    found: &Moves<PageId>,
    left: &Snapshot,
    right: &Snapshot,
) -> Result<MovedNames<PageId>, Error> {
    // If two stores share one numbering, either can name a common page.
    let on_left: Vec<PageId> = found.missing.iter().map(|(page, _)| *page).collect();
    let moves = found.rose.iter().chain(&found.fell).map(|page| page.page);
    let on_right: Vec<PageId> = moves
        .chain(found.new.iter().map(|(page, _)| *page))
        .collect();
    let mut names = HashMap::new();
    for (side, pages) in [(left, on_left), (right, on_right)] {
        let known = side.names_of(&pages)?.into_iter();
        let known = known.zip(side.states_of(&pages)?);
        names.extend(pages.into_iter().zip(known));
    }
    Ok(MovedNames(names))
}

fn by_name(
    found: &Moves<NameHash>,
    left: &CompareSide,
    right: &CompareSide,
) -> Result<MovedNames<NameHash>, Error> {
    let moves = found.rose.iter().chain(&found.fell).map(|page| page.page);
    let on_right = moves.chain(found.new.iter().map(|(page, _)| *page));
    let mut names = HashMap::new();
    look_up(right, on_right.collect(), &mut names)?;
    let on_left = found.missing.iter().map(|(page, _)| *page);
    look_up(left, on_left.collect(), &mut names)?;
    Ok(MovedNames(names))
}

/// Reads a side once more to find the names that belong to the hashes.
fn look_up(
    side: &CompareSide,
    mut wanted: HashSet<NameHash>,
    names: &mut HashMap<NameHash, (String, Option<PageState>)>,
) -> Result<(), Error> {
    if wanted.is_empty() {
        return Ok(());
    }
    side.each(|name, _| {
        let hash = NameHash::of(name);
        if wanted.remove(&hash) {
            let name = String::from_utf8_lossy(name).into_owned();
            names.insert(hash, (name, None));
        }
        Ok(())
    })?;
    if wanted.is_empty() {
        return Ok(());
    }
    Err(Error::InputChanged(format!(
        "{side}: changed while it was read; run the command again"
    )))
}

impl<P: Copy + Eq + std::hash::Hash> MovedNames<P> {
    fn report(
        mut self,
        [left, right]: [&CompareSide; 2],
        elapsed: Elapsed,
        found: &Moves<P>,
        by: By,
    ) -> MovesReport {
        let margin = found.summary.margin;
        let mut moving = |pages: &[Move<P>]| -> Vec<MoveRow> {
            let row = |page: &Move<P>| {
                let (url, state) = self.take(&page.page);
                MoveRow {
                    left_rank: page.left.rank,
                    right_rank: page.right.rank,
                    left_ranks: page.left.ranks,
                    right_ranks: page.right.ranks,
                    rank_change: page.rank_change(),
                    left_importance: page.left.importance,
                    right_importance: page.right.importance,
                    change: page.change(),
                    relative: page.relative(),
                    per_day: days(elapsed).map(|days| page.change() / days),
                    per_hour: hours(elapsed).map(|hours| page.change() / hours),
                    per_turnover: elapsed.turnovers.map(|turnovers| page.change() / turnovers),
                    certain: page.is_certain(margin),
                    rank_certain: page.is_rank_certain(),
                    state,
                    url,
                }
            };
            pages.iter().map(row).collect()
        };
        let (rose, fell) = (moving(&found.rose), moving(&found.fell));
        let mut single = |pages: &[(P, Standing)]| -> Vec<Single> {
            let row = |(page, standing): &(P, Standing)| {
                let (url, state) = self.take(page);
                Single {
                    rank: standing.rank,
                    importance: standing.importance,
                    state,
                    url,
                }
            };
            pages.iter().map(row).collect()
        };
        let (new, missing) = (single(&found.new), single(&found.missing));
        MovesReport {
            agreement: Agreement::of([left, right], found.summary.l1),
            left: About::of(left),
            right: About::of(right),
            days: elapsed.days,
            turnovers: elapsed.turnovers,
            summary: found.summary.clone(),
            rose,
            fell,
            new,
            missing,
            by,
        }
    }

    /// Takes a page's name and state out of the map: each page is in one list, once.
    fn take(&mut self, page: &P) -> (String, Option<PageState>) {
        self.0.remove(page).unwrap_or_default()
    }
}

impl About {
    pub(super) fn of(side: &CompareSide) -> About {
        let ranking = side.ranking();
        let info = side.info();
        let measure = ranking.and_then(LevelRanking::computed);
        About {
            path: side.to_string(),
            level: ranking.map_or(Level::Page, LevelRanking::level),
            measure: measure.map(|info| info.measure.clone()),
            records: info.map(|info| info.counters.records),
            last_fetch: info.and_then(|info| info.time).map(|at| time(Some(at))),
            turnovers: info.map(|info| info.turnovers),
            window: info.map(|info| info.window.policy.to_string()),
            window_turnovers: info.and_then(|info| info.window.turnovers),
            estimator: info.map(|info| info.window.estimator),
            bound_l1: side.bound_l1(),
            basis: info.map_or(Basis::Latest, Basis::of),
            sureness: match ranking {
                Some(ranking) => sureness_of(ranking),
                None => "accuracy: unknown for a file of scores".into(),
            },
        }
    }

    pub(super) fn bound(&self) -> (Option<f64>, Basis) {
        (self.bound_l1, self.basis)
    }

    pub(super) fn write(&self, out: &mut dyn Write, name: &str, pages: u64) -> std::io::Result<()> {
        write!(
            out,
            "{name}\t{}: {}",
            self.path,
            counted_of(self.level, pages)
        )?;
        if let Some(records) = self.records {
            write!(out, ", {}", common::records(records))?;
        }
        if let Some(at) = &self.last_fetch {
            write!(out, ", until {at}")?;
        }
        if let Some(window) = &self.window {
            write!(out, ", window {window}")?;
        }
        if let Some(turnovers) = self.window_turnovers {
            write!(out, " ({turnovers:.3} turnovers)")?;
        }
        writeln!(out, "; {}", self.sureness)
    }
}

impl MovesReport {
    /// Writes the totals as `key<TAB>value` lines, then a table for each list.
    pub fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let sums = &self.summary;
        writeln!(out, "{}", self.agreement.line)?;
        self.left.write(out, "left", sums.left_pages)?;
        self.right.write(out, "right", sums.right_pages)?;
        let some = |value: Option<String>| value.unwrap_or("unknown".into());
        let mut line = |key: &str, value: String| writeln!(out, "{key}\t{value}");
        line("days", some(self.days.map(span)))?;
        line("turnovers", some(self.turnovers.map(span)))?;
        line("common_pages", sums.common_pages.to_string())?;
        line("new_pages", sums.new_pages.to_string())?;
        line("missing_pages", sums.missing_pages.to_string())?;
        line("rose_pages", sums.rose_pages.to_string())?;
        line("fell_pages", sums.fell_pages.to_string())?;
        line("unchanged_pages", sums.unchanged_pages.to_string())?;
        line("diluted_pages", sums.diluted_pages.to_string())?;
        line("same_rank_pages", sums.same_rank_pages.to_string())?;
        line(
            "margin",
            some(sums.margin.map(|margin| format!("{margin:.4e}"))),
        )?;
        line("l1", format!("{:?}", sums.l1))?;
        line("dilution_l1", format!("{:?}", sums.dilution_l1))?;
        line("l2", format!("{:?}", sums.l2))?;
        line("linf", format!("{:?}", sums.linf))?;
        for top in &sums.top {
            let (k, stayed, entered, left) = (top.k, top.stayed, top.entered, top.left);
            line(
                "top",
                format!("{k}\t{stayed} stayed\t{entered} entered\t{left} left"),
            )?;
        }
        self.write_moving(out, "rose", &self.rose)?;
        self.write_moving(out, "fell", &self.fell)?;
        write_single(out, "new", &self.new)?;
        write_single(out, "missing", &self.missing)
    }

    fn write_moving(
        &self,
        out: &mut dyn Write,
        name: &str,
        rows: &[MoveRow],
    ) -> anyhow::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let ranks = rows.iter().flat_map(|row| [row.ranks().0, row.ranks().1]);
        let wide = ranks.map(|ranks| ranks.len()).fold(9, usize::max);
        write!(
            out,
            "\n{name}\n{:>wide$} {:>wide$} {:>11} {:>11}",
            "rank", "was", "importance", "was"
        )?;
        write!(out, " {:>11} {:>10}", "change", "relative")?;
        let first = rows.first();
        let unit = first.and_then(|row| row.per_time()).map(|(unit, _)| unit);
        if let Some(unit) = unit {
            write!(out, " {unit:>11}")?;
        }
        if self.turnovers.is_some() {
            write!(out, " {:>12}", "per turnover")?;
        }
        writeln!(out, " {:>7}  url", "certain")?;
        for row in rows {
            let (now, was) = row.ranks();
            write!(out, "{now:>wide$} {was:>wide$}")?;
            write!(
                out,
                " {:>11.4e} {:>11.4e}",
                row.right_importance, row.left_importance
            )?;
            let relative = row
                .relative
                .map(|relative| format!("{:+.2}%", 100.0 * relative));
            write!(
                out,
                " {:>+11.3e} {:>10}",
                row.change,
                relative.unwrap_or("-".into())
            )?;
            if let Some((_, rate)) = row.per_time() {
                write!(out, " {rate:>+11.3e}")?;
            }
            if let Some(rate) = row.per_turnover {
                write!(out, " {rate:>+12.3e}")?;
            }
            let certain = match self.by {
                By::Rank => row.rank_certain,
                By::Change | By::Relative => row.certain,
            };
            let certain = sure(certain);
            writeln!(out, " {certain:>7}  {}{}", shown(&row.url), gone(row.state))?;
        }
        Ok(())
    }
}

/// Formats a rank, or the range that the bounds allow.
fn range(rank: u64, ranks: Option<[u64; 2]>) -> String {
    match ranks {
        Some([least, greatest]) if least < greatest => format!("{least}-{greatest}"),
        _ => rank.to_string(),
    }
}

impl MoveRow {
    /// Formats the ranks now and before.
    fn ranks(&self) -> (String, String) {
        (
            range(self.right_rank, self.right_ranks),
            range(self.left_rank, self.left_ranks),
        )
    }

    /// Returns the change per unit of time, with the name of the unit.
    fn per_time(&self) -> Option<(&'static str, f64)> {
        let per_day = self.per_day.map(|rate| ("per day", rate));
        per_day.or(self.per_hour.map(|rate| ("per hour", rate)))
    }
}

/// Returns the days between two sides, if at least one.
fn days(elapsed: Elapsed) -> Option<f64> {
    elapsed.days.filter(|days| days.abs() >= 1.0)
}

/// Returns the hours between two sides, if at least one and less than a day.
fn hours(elapsed: Elapsed) -> Option<f64> {
    let hours = elapsed.days.map(|days| days * 24.0);
    hours.filter(|hours| (1.0..24.0).contains(&hours.abs()))
}

/// Returns a word for whether a change is certain.
pub(super) fn sure(certain: Option<bool>) -> &'static str {
    match certain {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

/// Formats a number of days or turnovers.
fn span(length: f64) -> String {
    if length.abs() < 0.01 {
        format!("{length:.3e}")
    } else {
        format!("{length:.3}")
    }
}

/// Returns the suffix for the name of a page that is gone.
pub(super) fn gone(state: Option<PageState>) -> &'static str {
    match state {
        Some(PageState::Gone) => ", gone",
        _ => "",
    }
}

fn write_single(out: &mut dyn Write, name: &str, rows: &[Single]) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{name}\n{:>9} {:>11}  url", "rank", "importance")?;
    for row in rows {
        writeln!(
            out,
            "{:>9} {:>11.4e}  {}{}",
            row.rank,
            row.importance,
            shown(&row.url),
            gone(row.state)
        )?;
    }
    Ok(())
}
