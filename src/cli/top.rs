//! `cashrank top`: the most important pages or sites.

use std::path::Path;

use cashrank::PageState;
use cashrank_steer::answers::{Rankings, Top};
use cashrank_store::memory::{check_room, to_read};
use cashrank_store::snapshot::export::Page;
use cashrank_store::snapshot::{LevelRanking, Selection, Snapshot};
use cashrank_store::store::RealDisk;

use super::common::{self, Exit, MemoryArg, print, print_json, records, shown, thousands};
use super::levels::{SelectionArgs, certain_of, counted_of, sureness_of};
use super::snapshots::RankingArgs;
use super::table::write_table;

/// Memory for a listed page, in bytes, with a name of some hundred bytes.
const PAGE_BYTES: u64 = 768;
/// Memory for a listed site with the name of its best page, in bytes.
const SITE_BYTES: u64 = 1 << 10;

/// Show the most important pages or sites.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank top -n 10 --store ranks
  cashrank top --level host --store ranks
  cashrank top --measure harmonic --level host --store ranks
  cashrank top --scope host:example.org --store ranks
  cashrank top --snapshot 2026-11-01 --store ranks --json
  cashrank top --store ranks-0 --store ranks-1

Importance is a share: all pages sum to 1.")]
pub struct TopArgs {
    #[command(flatten)]
    ranking: RankingArgs,
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
    pages: SelectionArgs,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl TopArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        // Measured before the sites are held, which count below.
        let budget = self.memory.budget();
        let opened = self.ranking.open(&self.memory)?;
        let rankings = Rankings(&opened);
        self.check_memory(rankings, budget)?;
        let top = Top::of(rankings, self.n, &self.pages.selection())?;
        if self.json {
            return print_json(&top);
        }
        show_of(rankings, &top)
    }

    fn check_memory(&self, rankings: Rankings<'_>, budget: Option<u64>) -> anyhow::Result<()> {
        let level = rankings.first().level();
        let count = (self.n as u64).min(rankings.len());
        // Each of several stores lists this number, of which the best are shown.
        let stores = rankings.each().count() as u64;
        let of_each = if level.is_page() {
            PAGE_BYTES
        } else {
            SITE_BYTES
        };
        let held = rankings.held_bytes() + to_read(rankings.len());
        let need = count * stores * of_each + held;
        let work = || format!("listing {count} of {}", level.plural());
        let instead = "list fewer, or use `cashrank export --sort rank`, which sorts on disk";
        Ok(check_room(budget, need, work, instead)?)
    }
}

pub fn show(store: &Path, n: usize) -> anyhow::Result<Exit> {
    let ranking = LevelRanking::of_pages(Snapshot::latest(&RealDisk, store)?);
    let top = Top::of(&ranking, n, &Selection::default())?;
    show_of((&ranking).into(), &top)
}

fn show_of(rankings: Rankings<'_>, top: &Top) -> anyhow::Result<Exit> {
    let ranking = rankings.first();
    let rows = &top.top;
    let last_rank = rows.last().map_or(0, |row| row.rank);
    let sites = rows.iter().map(|row| row.url.len()).max().unwrap_or(0);
    let certain = certain_of(ranking, top.certain_top);
    let ranks = thousands(last_rank).len().max("rank".len());
    let level = ranking.level();
    let is_importance = ranking.computed().is_none();
    let (score, count, name) = (
        if is_importance { "importance" } else { "score" },
        if level.is_page() { "crawled" } else { "pages" },
        if level.is_page() {
            "url"
        } else {
            level.singular()
        },
    );
    let named = |row: &Page<'_>| {
        let (name, site) = (shown(&row.url), row.site.as_ref());
        let Some((site, best)) = site.and_then(|site| Some((site, site.best.as_deref()?))) else {
            return name.into_owned();
        };
        let mark = match site.best_state {
            Some(PageState::Gone) => "best (gone)",
            _ => "best",
        };
        format!("{name:<sites$}  {mark}: {}", shown(best))
    };
    let columns = [("rank", ranks as isize), (score, 11), (count, 9), (name, 0)];
    let row = |row: &Page<'_>| {
        let site = row.site.as_ref();
        [
            thousands(row.rank),
            format!("{:.4e}", row.importance),
            site.map_or_else(|| crawled(row), |site| thousands(site.pages)),
            named(row),
        ]
    };
    print(|out| {
        write_table(out, "  ", columns, rows.iter().map(row))?;
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

fn crawled(page: &Page<'_>) -> String {
    match page.state {
        Some(state @ (PageState::Gone | PageState::Failed)) => state.name().into(),
        _ => match page.visits {
            0 => "not".into(),
            1 => "once".into(),
            visits => thousands(visits),
        },
    }
}
