//! `cashrank top`: the most important pages.

use std::path::Path;

use cashrank::engine::PageId;
use cashrank::snapshot::{Snapshot, SnapshotPage};
use cashrank::store::RealDisk;

use super::common::{
    self, Exit, StoreArg, accuracy_of, print, print_json, records, thousands, time,
};
use super::log::{Paint, cut, width};
use super::snapshots::SnapshotArg;

/// Show the most important pages.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank top -n 10 --store ranks
  cashrank top --snapshot 2026-11-01 --store ranks --json

Importance is a share: all pages together have 1. On a terminal long URLs are cut; elsewhere they are whole.")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    snapshot: SnapshotArg,
    /// Show N pages.
    #[arg(
        short,
        long = "count",
        alias = "n",
        value_name = "N",
        default_value_t = 20
    )]
    n: usize,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Page {
    rank: u64,
    importance: f64,
    visits: u64,
    last_fetch: Option<String>,
    url: String,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = self.snapshot.open(&self.store.store)?;
        if !self.json {
            return show_of(&snapshot, self.n);
        }
        let info = snapshot.info();
        print_json(&serde_json::json!({
            "records": info.counters.records,
            "pages": info.pages,
            "bound_l1": info.bound_l1(),
            "top": pages(&snapshot, self.n)?,
        }))
    }
}

fn pages(snapshot: &Snapshot, n: usize) -> anyhow::Result<Vec<Page>> {
    let top = snapshot.top(n)?;
    let ids: Vec<PageId> = top.iter().map(|page| page.page).collect();
    let named = top.into_iter().zip(snapshot.names_of(&ids)?);
    let page = |(page, url): (SnapshotPage, String)| Page {
        rank: page.rank,
        importance: page.importance,
        visits: page.visits,
        last_fetch: page.last_fetch.map(|at| time(Some(at))),
        url,
    };
    Ok(named.map(page).collect())
}

/// Prints the `n` most important pages of a store's current snapshot, and the bound.
pub fn show(store: &Path, n: usize) -> anyhow::Result<Exit> {
    show_of(&Snapshot::latest(&RealDisk, store)?, n)
}

fn show_of(snapshot: &Snapshot, n: usize) -> anyhow::Result<Exit> {
    let info = snapshot.info();
    let pages = pages(snapshot, n)?;
    let last = pages.last().map_or(0, |page| page.rank);
    let ranks = thousands(last).len().max("rank".len());
    // Before the URL: two columns, and the spaces between.
    let left = width().map(|width| width.saturating_sub(ranks + 27).max(20));
    print(|out| {
        let head = format!(
            "{:>ranks$}  {:>11}  {:>9}  url",
            "rank", "importance", "crawled"
        );
        writeln!(out, "{}", Paint::stdout().bold(&head))?;
        for page in &pages {
            let url = common::shown(&page.url);
            let url = left.map_or(url.to_string(), |left| cut(&url, left));
            writeln!(
                out,
                "{:>ranks$}  {:>11.4e}  {:>9}  {}",
                thousands(page.rank),
                page.importance,
                times(page.visits),
                url
            )?;
        }
        writeln!(
            out,
            "{}, {}; {}",
            common::pages(info.pages),
            records(info.counters.records),
            accuracy_of(info)
        )?;
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
