//! `compare --moved`: finds what moved, names it, and writes it as a table or as JSON.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::Write;

use cashrank::{Error, PageState};
use cashrank_graph::engine::PageId;
use cashrank_graph::metrics::NameHash;
use cashrank_graph::metrics::moved::{
    By, Move, MoveOptions, MoveSummary, Moves, Standing, margin, moved_by_name,
};
use cashrank_store::snapshot::{Elapsed, Snapshot, elapsed, moved, same_numbers};

use super::agreement::Agreement;
use super::side::{CompareSide, scores};
use crate::cli::common::{MemoryArg, say, shown};
use crate::cli::json::{Joined, object};
use crate::cli::levels::note_parameters;
use crate::cli::table::TextTable;

/// Report of all moves between two sides.
pub struct MovesReport<'a> {
    agreement: Agreement,
    sides: [&'a CompareSide; 2],
    elapsed: Elapsed,
    by: By,
    summary: MoveSummary,
    rose: Vec<NamedPage<Move<()>>>,
    fell: Vec<NamedPage<Move<()>>>,
    new: Vec<NamedPage<Standing>>,
    missing: Vec<NamedPage<Standing>>,
}

/// Position of a page, or its move, with its name.
struct NamedPage<T> {
    of: T,
    /// Result of the page's fetches, on the right side; `None` across stores and for files of scores.
    state: Option<PageState>,
    url: String,
}

/// Names of the listed pages; also their states, if both sides number pages alike.
type MovedNames<P> = HashMap<P, (String, Option<PageState>)>;

/// Compares by page number if both sides number pages alike, else by name. Computes the margin from the bounds.
pub fn report<'a>(
    left: &'a CompareSide,
    right: &'a CompareSide,
    wanted: MoveOptions,
    memory: &MemoryArg,
) -> anyhow::Result<MovesReport<'a>> {
    let bounds = [left.bound_l1(), right.bound_l1()];
    let wanted = MoveOptions {
        margin: margin(bounds[0], bounds[1]),
        ..wanted
    };
    note_settings(left, right);
    if wanted.certain_only && wanted.margin.is_none() {
        say!(
            "note: a ranking has no bound, so no change is certain, and none is listed with --certain-only"
        );
    }
    let sides = [left, right];
    if let Some((l, r)) = left.snapshot().zip(right.snapshot())
        && one_store(l, r)?
    {
        let found = moved(l, r, wanted)?;
        let elapsed = elapsed(l.info(), r.info(), true)?;
        let names = by_number(&found, l, r)?;
        return Ok(MovesReport::of(sides, elapsed, wanted.by, found, names));
    }
    for side in sides {
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
    let found = moved_by_name(left_scores, right_scores, bounds, wanted)?;
    let names = by_name(&found, left, right)?;
    Ok(MovesReport::of(sides, elapsed, wanted.by, found, names))
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

/// Returns the pages to name on the left side, and those on the right side.
fn listed<P: Copy>(found: &Moves<P>) -> [Vec<P>; 2] {
    let moves = found.rose.iter().chain(&found.fell).map(|page| page.page);
    let on_right = moves.chain(found.new.iter().map(|(page, _)| *page));
    let on_left = found.missing.iter().map(|(page, _)| *page);
    [on_left.collect(), on_right.collect()]
}

fn by_number(
    found: &Moves<PageId>,
    left: &Snapshot,
    right: &Snapshot,
) -> Result<MovedNames<PageId>, Error> {
    let mut names = HashMap::new();
    // If two stores share one numbering, either can name a common page.
    for (side, pages) in [left, right].into_iter().zip(listed(found)) {
        let known = side.named_pages(&pages)?.into_iter();
        names.extend(known.map(|page| (page.page, (page.url.into_owned(), page.state))));
    }
    Ok(names)
}

/// Reads the sides once more to find the names that belong to the hashes.
fn by_name(
    found: &Moves<NameHash>,
    left: &CompareSide,
    right: &CompareSide,
) -> Result<MovedNames<NameHash>, Error> {
    let mut names = HashMap::new();
    let [on_left, on_right] = listed(found);
    for (side, pages) in [(right, on_right), (left, on_left)] {
        let mut wanted: HashSet<NameHash> = pages.into_iter().collect();
        if wanted.is_empty() {
            continue;
        }
        side.each(|name, _| {
            let hash = NameHash::of(name);
            if wanted.remove(&hash) {
                let name = String::from_utf8_lossy(name).into_owned();
                names.insert(hash, (name, None));
            }
            Ok(())
        })?;
        if !wanted.is_empty() {
            return Err(Error::InputChanged(format!(
                "{side}: changed while it was read; run the command again"
            )));
        }
    }
    Ok(names)
}

impl<'a> MovesReport<'a> {
    fn of<P: Copy + Eq + Hash>(
        sides: [&'a CompareSide; 2],
        elapsed: Elapsed,
        by: By,
        found: Moves<P>,
        mut names: MovedNames<P>,
    ) -> MovesReport<'a> {
        // Each page is in one list, once.
        let mut name = |page: &P| names.remove(page).unwrap_or_default();
        let mut moving = |pages: Vec<Move<P>>| -> Vec<_> {
            let row = |page: Move<P>| {
                let (url, state) = name(&page.page);
                let Move { left, right, .. } = page;
                let page = ();
                let of = Move { page, left, right };
                NamedPage { of, state, url }
            };
            pages.into_iter().map(row).collect()
        };
        let (rose, fell) = (moving(found.rose), moving(found.fell));
        let mut single = |pages: Vec<(P, Standing)>| -> Vec<_> {
            let row = |(page, of): (P, Standing)| {
                let (url, state) = name(&page);
                NamedPage { of, state, url }
            };
            pages.into_iter().map(row).collect()
        };
        MovesReport {
            agreement: Agreement::of(sides, found.summary.l1),
            new: single(found.new),
            missing: single(found.missing),
            sides,
            elapsed,
            by,
            summary: found.summary,
            rose,
            fell,
        }
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> impl serde::Serialize {
        let moving = |rows: &[NamedPage<Move<()>>]| {
            let row = |row: &NamedPage<Move<()>>| {
                let (page, change) = (&row.of, row.of.change());
                object! {
                    "left_rank": page.left.rank,
                    "right_rank": page.right.rank,
                    // Smallest and largest rank that the bounds allow.
                    "left_ranks": page.left.ranks,
                    "right_ranks": page.right.ranks,
                    "rank_change": page.rank_change(),
                    "left_importance": page.left.importance,
                    "right_importance": page.right.importance,
                    "change": change,
                    "relative": page.relative(),
                    "per_day": self.days().map(|days| change / days),
                    "per_hour": self.hours().map(|hours| change / hours),
                    "per_turnover": self.elapsed.turnovers.map(|turnovers| change / turnovers),
                    "certain": page.is_certain(self.summary.margin),
                    "rank_certain": page.is_rank_certain(),
                    "state": row.state,
                    "url": row.url.clone(),
                }
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let single = |rows: &[NamedPage<Standing>]| {
            let row = |row: &NamedPage<Standing>| {
                object! {
                    "rank": row.of.rank,
                    "importance": row.of.importance,
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
            "days": self.elapsed.days,
            "turnovers": self.elapsed.turnovers,
        };
        let lists = object! {
            "rose": moving(&self.rose),
            "fell": moving(&self.fell),
            "new": single(&self.new),
            "missing": single(&self.missing),
        };
        let agreement = Joined(&self.agreement, head);
        Joined(agreement, Joined(&self.summary, lists))
    }

    /// Returns the days between the sides, if at least one.
    fn days(&self) -> Option<f64> {
        self.elapsed.days.filter(|days| days.abs() >= 1.0)
    }

    /// Returns the hours between the sides, if at least one and less than a day: a trend of minutes does not last for a
    /// day.
    fn hours(&self) -> Option<f64> {
        let hours = self.elapsed.days.map(|days| days * 24.0);
        hours.filter(|hours| (1.0..24.0).contains(&hours.abs()))
    }

    /// Writes the totals as `key<TAB>value` lines, then a table for each list.
    pub fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let sums = &self.summary;
        writeln!(out, "{}", self.agreement.line)?;
        let [left, right] = self.sides;
        left.write(out, "left", sums.left_pages)?;
        right.write(out, "right", sums.right_pages)?;
        let some = |value: Option<String>| value.unwrap_or("unknown".into());
        for (key, value) in [
            ("days", some(self.elapsed.days.map(span))),
            ("turnovers", some(self.elapsed.turnovers.map(span))),
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
        for top in &sums.top {
            let (k, stayed, entered, left) = (top.k, top.stayed, top.entered, top.left);
            writeln!(
                out,
                "top\t{k}\t{stayed} stayed\t{entered} entered\t{left} left"
            )?;
        }
        for (name, rows) in [("rose", &self.rose), ("fell", &self.fell)] {
            write_list(out, name, &self.moves_table(rows), rows)?;
        }
        let singles = TextTable::<NamedPage<Standing>>::new(" ")
            .number("rank", 9, |row| row.of.rank.to_string())
            .number("importance", 11, |row| format!("{:.4e}", row.of.importance))
            .text(" url", 0, name_of);
        write_list(out, "new", &singles, &self.new)?;
        write_list(out, "missing", &singles, &self.missing)
    }

    /// Returns the table of pages that are on both sides.
    fn moves_table(&self, rows: &[NamedPage<Move<()>>]) -> TextTable<'_, NamedPage<Move<()>>> {
        type Row = NamedPage<Move<()>>;
        let ranks = rows.iter().flat_map(|row| [row.of.left, row.of.right]);
        let wide = ranks.map(|of| range(of).len()).fold(9, usize::max);
        let mut table = TextTable::<Row>::new(" ")
            .number("rank", wide, |row| range(row.of.right))
            .number("was", wide, |row| range(row.of.left))
            .number("importance", 11, |row| {
                format!("{:.4e}", row.of.right.importance)
            })
            .number("was", 11, |row| format!("{:.4e}", row.of.left.importance))
            .number("change", 11, |row| format!("{:+.3e}", row.of.change()))
            .number("relative", 10, |row| {
                let relative = row.of.relative();
                relative.map_or("-".into(), |of| format!("{:+.2}%", 100.0 * of))
            });
        let per_turnover = self
            .elapsed
            .turnovers
            .map(|span| ("per turnover", 12, span));
        let rates = [
            self.days().map(|days| ("per day", 11, days)),
            self.hours().map(|hours| ("per hour", 11, hours)),
            per_turnover,
        ];
        for (unit, width, span) in rates.into_iter().flatten() {
            table = table.number(unit, width, move |row| {
                format!("{:+.3e}", row.of.change() / span)
            });
        }
        table
            .number("certain", 7, |row| {
                sure(row.of.is_certain_by(self.by, self.summary.margin)).into()
            })
            .text(" url", 0, name_of)
    }
}

fn write_list<T>(
    out: &mut dyn Write,
    name: &str,
    table: &TextTable<'_, NamedPage<T>>,
    rows: &[NamedPage<T>],
) -> anyhow::Result<()> {
    if !rows.is_empty() {
        writeln!(out, "\n{name}\n{}", table.head())?;
    }
    for row in rows {
        table.write(out, row)?;
    }
    Ok(())
}

fn name_of<T>(row: &NamedPage<T>) -> String {
    format!(" {}{}", shown(&row.url), gone(row.state))
}

/// Formats a rank, or the range that the bounds allow.
fn range(standing: Standing) -> String {
    match standing.ranks {
        Some([least, greatest]) if least < greatest => format!("{least}-{greatest}"),
        _ => standing.rank.to_string(),
    }
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
