//! `cashrank top`: the most important pages or sites.

use std::cell::{Cell, RefCell};
use std::path::Path;

use cashrank::{Error, PageState};
use cashrank_graph::sites::RollUpBy;
use cashrank_steer::answers::{Rankings, Top};
use cashrank_store::memory::{check_room, to_read};
use cashrank_store::snapshot::export::Page;
use cashrank_store::snapshot::{LISTED, LevelRanking, RankedList, Selection, Snapshot};
use cashrank_store::store::RealDisk;
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use super::common::{self, Exit, MemoryArg, positive, print, print_json, records, thousands};
use super::levels::{GoneArg, LevelArgs, ScopeArg, certain_of, counted_of, sureness_of};
use super::log::{Paint, cut, width};
use super::snapshots::SnapshotArg;
use super::stores::StoresArg;
use super::table::TextTable;

/// Maximum memory for sorting a long list, in bytes.
const SORTING: u64 = 32 << 20;
/// Memory for a site of a list with its best pages, in bytes; `PAGE_BYTES` is that for each of these pages. Names may
/// have a few hundred bytes.
const SITE_BYTES: u64 = 1 << 10;
const PAGE_BYTES: u64 = 1 << 8;

/// Show the most important pages or sites.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank top -n 10 --store ranks
  cashrank top --level host --store ranks
  cashrank top --level domain --best 3 --store ranks
  cashrank top --measure harmonic --level host --store ranks
  cashrank top --scope host:example.org --store ranks
  cashrank top --snapshot 2026-11-01 --store ranks --json
  cashrank top --store ranks-0 --store ranks-1

Importance is a share: all pages sum to 1. Long URLs are truncated on a terminal, and complete elsewhere.")]
pub struct TopArgs {
    #[command(flatten)]
    stores: StoresArg,
    #[command(flatten)]
    snapshot: SnapshotArg,
    #[command(flatten)]
    level: LevelArgs,
    /// Show N of them.
    #[arg(
        short,
        long = "count",
        alias = "n",
        value_name = "N",
        default_value_t = 20
    )]
    n: usize,
    #[command(flatten)]
    scope: ScopeArg,
    #[command(flatten)]
    gone: GoneArg,
    /// Of sites: also show the N most important pages of each.
    #[arg(long, value_name = "N", value_parser = positive)]
    best: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl TopArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        self.stores.check_one(&self.level.given())?;
        let snapshots = self.stores.open(&self.snapshot)?;
        let rankings = self.level.open_all(snapshots, &self.memory)?;
        let rankings = Rankings::of(&rankings)?;
        let top = Top::with(rankings, self.listed(rankings)?)?;
        if self.json {
            return print_listed(top);
        }
        show_of(rankings, top)
    }

    /// Returns the rows; those of a long list are read while they are printed.
    fn listed<'r>(&self, rankings: Rankings<'r>) -> anyhow::Result<RankedList<'r>> {
        let ranking = rankings.first();
        let selection = Selection {
            scope: self.scope.rules(),
            without_gone: self.gone.without_gone,
        };
        let count = self.n.min(rankings.len() as usize);
        let work = || format!("listing {count} of {}", ranking.level().plural());
        if let Some(best) = self.best {
            // The best pages are read for all sites at once.
            let pages = (count as u64).saturating_mul(best);
            let pages = pages.min(ranking.snapshot().len());
            let need = count as u64 * SITE_BYTES + pages * PAGE_BYTES;
            let budget = self.memory.budget(1)?;
            check_room(budget, need, work, "list fewer, or leave --best out")?;
            let mut top = Top::of(ranking, self.n, &selection)?;
            top.add_pages(ranking, best as usize, budget)?;
            return Ok(RankedList::of(top.top));
        }
        let memory = if count > LISTED {
            let read = rankings
                .snapshots()
                .map(|of| to_read(of.len()))
                .sum::<u64>();
            let beside = read + rankings.held_bytes();
            let memory = self.memory.to_sort(beside, work, "list fewer")?;
            memory.min(SORTING)
        } else {
            0
        };
        Ok(rankings.listed(count, &selection, memory, &std::env::temp_dir())?)
    }
}

/// Rows, serialised as a JSON list.
struct PageSequence<'r> {
    rows: RefCell<Box<dyn Iterator<Item = cashrank::Result<Page<'static>>> + 'r>>,
    failed: &'r Cell<Option<Error>>,
}

impl Serialize for PageSequence<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(None)?;
        for row in &mut *self.rows.borrow_mut() {
            let row = row.map_err(|error| {
                let text = error.to_string();
                self.failed.set(Some(error));
                S::Error::custom(text)
            })?;
            list.serialize_element(&row)?;
        }
        list.end()
    }
}

/// Prints the list as JSON while its rows are read.
fn print_listed(top: Top<RankedList<'_>>) -> anyhow::Result<Exit> {
    let failed = Cell::new(None);
    let rows = RefCell::new(top.top.rows);
    let failed = &failed;
    let printed = print_json(&Top {
        snapshot: top.snapshot,
        records: top.records,
        pages: top.pages,
        bound_l1: top.bound_l1,
        certain_top: top.certain_top,
        of: top.of,
        top: PageSequence { rows, failed },
    });
    // An error of reading is the cause of the error of writing: report that one.
    match failed.take() {
        Some(error) => Err(error.into()),
        None => printed,
    }
}

/// Prints the `n` most important pages of a store's current snapshot, and the bound.
pub fn show(store: &Path, n: usize) -> anyhow::Result<Exit> {
    let snapshot = Snapshot::latest(&RealDisk, store)?;
    let ranking = LevelRanking::of_pages(snapshot);
    let rows = RankedList::of(ranking.top(n, &Selection::default())?);
    show_of((&ranking).into(), Top::with(&ranking, rows)?)
}

fn show_of(rankings: Rankings<'_>, top: Top<RankedList<'_>>) -> anyhow::Result<Exit> {
    let ranking = rankings.first();
    let RankedList {
        rows,
        last_rank,
        longest_name: sites,
    } = top.top;
    let certain = certain_of(ranking, top.certain_top);
    let ranks = thousands(last_rank).len().max("rank".len());
    let level = ranking.level();
    let is_importance = ranking.computed().is_none() && ranking.roll_up() != Some(RollUpBy::Count);
    let (score, count, name) = (
        if is_importance { "importance" } else { "score" },
        if level.is_page() { "crawled" } else { "pages" },
        if level.is_page() {
            "url"
        } else {
            level.singular()
        },
    );
    // Columns before the URL: two numbers, and the spaces between.
    let left = width().map(|width| width.saturating_sub(ranks + 27).max(20));
    let shown = |name: &str, left: Option<usize>| {
        let name = common::shown(name);
        left.map_or(name.to_string(), |left| cut(&name, left))
    };
    let named = |row: &Page<'_>| {
        let site = row.site.as_ref().filter(|site| site.best_pages.is_empty());
        let Some((site, best)) = site.and_then(|site| Some((site, site.best.as_deref()?))) else {
            return shown(&row.url, left);
        };
        let mark = match site.best_state {
            Some(PageState::Gone) => "best (gone)",
            _ => "best",
        };
        let before = sites + mark.len() + 4;
        let best = shown(best, left.map(|left| left.saturating_sub(before).max(20)));
        format!("{:<sites$}  {mark}: {best}", shown(&row.url, left))
    };
    let table = TextTable::<Page<'_>>::new("  ")
        .number("rank", ranks, |row| thousands(row.rank))
        .number(score, 11, |row| format!("{:.4e}", row.importance))
        .number(count, 9, |row| match &row.site {
            None => crawled(row),
            Some(site) => thousands(site.pages),
        })
        .text(name, 0, named);
    print(|out| {
        writeln!(out, "{}", Paint::stdout().bold(&table.head()))?;
        for row in rows {
            let row = row?;
            table.write(out, &row)?;
            let best_pages = row.site.iter().flat_map(|site| &site.best_pages);
            for page in best_pages {
                writeln!(
                    out,
                    "{:>ranks$}  {:>11.4e}  {:>9}    {}",
                    "",
                    page.importance,
                    match page.state {
                        Some(PageState::Gone) => "gone",
                        _ => "",
                    },
                    shown(&page.url, left)
                )?;
            }
        }
        if !level.is_page() {
            write!(out, "{}; ", counted_of(level, ranking.len()))?;
        }
        writeln!(
            out,
            "{}, {}; {}",
            common::pages(top.pages),
            records(top.records),
            sureness_of(ranking)
        )?;
        if let Some(certain) = &certain {
            writeln!(out, "{certain}")?;
        }
        Ok(())
    })
}

/// Describes how often a page was crawled, or that it is gone or failed.
fn crawled(page: &Page<'_>) -> String {
    match page.state {
        Some(state @ (PageState::Gone | PageState::Failed)) => state.name().into(),
        _ => times(page.visits),
    }
}

/// Describes how often a page was crawled.
pub fn times(visits: u64) -> String {
    match visits {
        0 => "not".into(),
        1 => "once".into(),
        visits => thousands(visits),
    }
}
