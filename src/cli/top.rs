//! `cashrank top`: the most important pages or sites.

use std::path::Path;

use cashrank::answers::Top;
use cashrank::rules::Scope;
use cashrank::sites::RollUpBy;
use cashrank::snapshot::{LevelRanking, Snapshot};
use cashrank::store::RealDisk;

use super::common::{
    self, Exit, MemoryArg, StoreArg, positive, print, print_json, records, thousands,
};
use super::levels::{LevelArgs, ScopeArg, certain_of, counted_of, sureness_of};
use super::log::{Paint, cut, width};
use super::snapshots::SnapshotArg;

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

Importance is a share: all pages sum to 1. Long URLs are truncated on a terminal, and complete elsewhere.")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
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
    /// Of sites: also show the N most important pages of each.
    #[arg(long, value_name = "N", value_parser = positive)]
    best: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = self.snapshot.open(&self.store.store)?;
        let ranking = self.level.open(snapshot, &self.memory)?;
        let scope = self.scope.rules();
        let mut top = Top::of(&ranking, self.n, &scope)?;
        if let Some(best) = self.best {
            top.add_pages(&ranking, best as usize, self.memory.budget(1)?)?;
        }
        if self.json {
            return print_json(&top);
        }
        show_of(&ranking, &top)
    }
}

/// Prints the `n` most important pages of a store's current snapshot, and the bound.
pub fn show(store: &Path, n: usize) -> anyhow::Result<Exit> {
    let snapshot = Snapshot::latest(&RealDisk, store)?;
    let ranking = LevelRanking::of_pages(snapshot);
    show_of(&ranking, &Top::of(&ranking, n, &Scope::default())?)
}

fn show_of(ranking: &LevelRanking, top: &Top) -> anyhow::Result<Exit> {
    let rows = &top.top;
    let certain = certain_of(ranking, top.certain_top);
    let info = ranking.snapshot().info();
    let last = rows.last().map_or(0, |row| row.rank);
    let ranks = thousands(last).len().max("rank".len());
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
    let sites = rows.iter().map(|row| row.url.len()).max().unwrap_or(0);
    // Before the URL: two columns, and the spaces between.
    let left = width().map(|width| width.saturating_sub(ranks + 27).max(20));
    let shown = |name: &str, left: Option<usize>| {
        let name = common::shown(name);
        left.map_or(name.to_string(), |left| cut(&name, left))
    };
    print(|out| {
        let head = format!("{:>ranks$}  {score:>11}  {count:>9}  {name}", "rank");
        writeln!(out, "{}", Paint::stdout().bold(&head))?;
        for row in rows {
            let counted = match &row.site {
                None => times(row.visits),
                Some(site) => thousands(site.pages),
            };
            write!(
                out,
                "{:>ranks$}  {:>11.4e}  {counted:>9}  ",
                thousands(row.rank),
                row.importance,
            )?;
            let best_pages = row.site.iter().flat_map(|site| &site.best_pages);
            let best = row.site.as_ref().filter(|site| site.best_pages.is_empty());
            match best.and_then(|site| site.best.as_deref()) {
                None => writeln!(out, "{}", shown(&row.url, left))?,
                Some(best) => {
                    let site = shown(&row.url, left);
                    let best = shown(
                        best,
                        left.map(|left| left.saturating_sub(sites + 8).max(20)),
                    );
                    writeln!(out, "{site:<sites$}  best: {best}")?
                }
            }
            for page in best_pages {
                writeln!(
                    out,
                    "{:>ranks$}  {:>11.4e}  {:>9}    {}",
                    "",
                    page.importance,
                    "",
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
            common::pages(info.pages),
            records(info.counters.records),
            sureness_of(ranking)
        )?;
        if let Some(certain) = &certain {
            writeln!(out, "{certain}")?;
        }
        Ok(())
    })
}

/// How often a page was crawled.
pub fn times(visits: u64) -> String {
    match visits {
        0 => "not".into(),
        1 => "once".into(),
        visits => thousands(visits),
    }
}
