//! `cashrank top`: the most important pages.

use std::path::Path;

use cashrank::snapshot::Snapshot;
use cashrank::store::RealDisk;

use super::common::{
    self, Exit, StoreArg, accuracy_of, certain_text, print, print_json, records, thousands,
};
use super::log::{Paint, cut, width};
use super::snapshots::SnapshotArg;

/// Show the most important pages.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank top -n 10 --store ranks
  cashrank top --snapshot 2026-11-01 --store ranks --json

Importance is a share: all pages sum to 1. Long URLs are truncated on a terminal, and complete elsewhere.")]
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
            "certain_top": snapshot.certain_top()?,
            "top": snapshot.top(self.n)?,
        }))
    }
}

/// Prints the `n` most important pages of a store's current snapshot, and the bound.
pub fn show(store: &Path, n: usize) -> anyhow::Result<Exit> {
    show_of(&Snapshot::latest(&RealDisk, store)?, n)
}

fn show_of(snapshot: &Snapshot, n: usize) -> anyhow::Result<Exit> {
    let info = snapshot.info();
    let pages = snapshot.top(n)?;
    let certain = certain_text(snapshot.certain_top()?);
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
