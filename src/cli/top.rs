//! `cashrank top`: the most important pages.

use std::path::Path;

use cashrank::engine::PageId;
use cashrank::snapshot::{Ranked, Snapshot};
use cashrank::store::RealDisk;

use super::common::{Exit, StoreArg, accuracy, print, print_json, thousands, time};

/// Show the most important pages of the current snapshot.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cashrank top -n 10 --store ranks")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// How many.
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    n: usize,
    /// One JSON object, for programs.
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
        if !self.json {
            return show(&self.store.store, self.n);
        }
        let snapshot = Snapshot::latest(&RealDisk, &self.store.store)?;
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
    let page = |(page, url): (Ranked, String)| Page {
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
    let snapshot = Snapshot::latest(&RealDisk, store)?;
    let info = snapshot.info();
    let pages = pages(&snapshot, n)?;
    print(|out| {
        writeln!(
            out,
            "{:>6}  {:>11}  {:>6}  url",
            "rank", "importance", "visits"
        )?;
        for page in &pages {
            writeln!(
                out,
                "{:>6}  {:>11.4e}  {:>6}  {}",
                page.rank, page.importance, page.visits, page.url
            )?;
        }
        writeln!(
            out,
            "{} pages, {} records; {}",
            thousands(info.pages),
            thousands(info.counters.records),
            accuracy(info.bound_l1())
        )?;
        Ok(())
    })
}
