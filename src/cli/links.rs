//! `cashrank links`: the links of a page, and who links to it.

use cashrank::Error;
use cashrank::engine::PageId;
use cashrank::rows::Rows;
use cashrank::snapshot::{Snapshot, SnapshotPage};
use cashrank::store::RealDisk;

use super::common::{Exit, StoreArg, print, shown, thousands};
use super::rank::find;
use crate::cli::common::say;

/// Show what a page links to, or with --in what links to it, best rank first.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank links https://example.org/ --store ranks
  cashrank links https://example.org/ --in -n 20 --store ranks
  cashrank links https://example.org/ --in --json --store ranks

The links are those that the last visit of each page found, as of the current snapshot. They come from the store \
(`ingest --keep-rows`); no input is read. --in reads all kept links once. Both work while an ingest is running.")]
pub struct Args {
    /// A URL in any form, or the name of a node.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    store: StoreArg,
    /// Show the pages that link to it.
    #[arg(long = "in")]
    incoming: bool,
    /// Show only the first N.
    #[arg(short, long = "count", alias = "n", value_name = "N")]
    n: Option<usize>,
    /// Print one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Link<'a> {
    url: &'a str,
    rank: u64,
    importance: f64,
    /// The weight of the link among those of its page; absent where all weigh the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<u64>,
}

/// Rank and links of the page asked for.
#[derive(Clone, Copy, PartialEq)]
enum FetchState {
    Never,
    Gone,
    Yes,
}

/// Pages linked from it or to it, each with its link's weight.
type Ends = Vec<(u32, Option<u64>)>;

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = Snapshot::latest(&RealDisk, &self.store.store)?;
        let Some(page) = find(&snapshot, &self.url)? else {
            say!("{}: not known", shown(&self.url));
            return Ok(Exit::Unknown);
        };
        let (fetched, ends) = if self.incoming {
            (FetchState::Yes, incoming(&snapshot.rows()?, page)?)
        } else {
            outgoing(&snapshot, page)?
        };
        let all = ends.len() as u64;
        let mut ranked = ranked(&snapshot, ends)?;
        ranked.truncate(self.n.unwrap_or(usize::MAX));
        let ids: Vec<PageId> = ranked.iter().map(|(page, _)| page.page).collect();
        let names = snapshot.names_of(&ids)?;
        print(|out| {
            for ((page, weight), url) in ranked.iter().zip(&names) {
                if self.json {
                    let link = Link {
                        url,
                        rank: page.rank,
                        importance: page.importance,
                        weight: *weight,
                    };
                    serde_json::to_writer(&mut *out, &link)?;
                    out.write_all(b"\n")?;
                } else {
                    writeln!(out, "{}", shown(url))?;
                }
            }
            Ok(())
        })?;
        let what = if self.incoming {
            "pages link to it"
        } else {
            "links"
        };
        say!("{} {what}{}", thousands(all), note(fetched));
        Ok(Exit::Done)
    }
}

fn note(fetched: FetchState) -> &'static str {
    match fetched {
        FetchState::Yes => "",
        FetchState::Gone => ": the page is gone",
        FetchState::Never => ": the page was not fetched yet",
    }
}

/// All pages that link to `page`.
fn incoming(rows: &dyn Rows, page: u32) -> Result<Ends, Error> {
    let mut ends = Ends::new();
    rows.sweep(&mut |row| {
        if let Some(at) = row.targets.iter().position(|target| *target == page) {
            let weight = row.weights.get(at).copied();
            if weight != Some(0) {
                ends.push((row.page, weight));
            }
        }
        Ok(())
    })?;
    Ok(ends)
}

/// All pages that `page` links to.
fn outgoing(snapshot: &Snapshot, page: u32) -> Result<(FetchState, Ends), Error> {
    let mut found = (FetchState::Never, Ends::new());
    snapshot.row(page, &mut |row| {
        found.0 = if row.gone {
            FetchState::Gone
        } else {
            FetchState::Yes
        };
        let weight = |at| row.weights.get(at).copied();
        let ends = row.targets.iter().enumerate();
        let ends = ends.map(|(at, target)| (*target, weight(at)));
        found.1.extend(ends.filter(|end| end.1 != Some(0)));
    })?;
    Ok(found)
}

/// These pages in the snapshot, best rank first.
fn ranked(snapshot: &Snapshot, ends: Ends) -> Result<Vec<(SnapshotPage, Option<u64>)>, Error> {
    let pages: Vec<PageId> = ends.iter().map(|end| PageId(end.0.into())).collect();
    let weights = ends.into_iter().map(|end| end.1);
    let mut found: Vec<_> = snapshot
        .pages_of(&pages)?
        .into_iter()
        .zip(weights)
        .collect();
    found.sort_by_key(|(page, _)| (page.rank, page.page));
    Ok(found)
}
