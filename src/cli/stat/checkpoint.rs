//! `cashrank stat` of a store without a snapshot: the state of its last checkpoint.

use std::path::Path;

use cashrank::Error;
use cashrank_store::memory::{Need, human};
use cashrank_store::store::{RealDisk, open_view};

use super::{Disk, disk, memory_text, pages_text};
use crate::cli::common::{Exit, print, print_json, thousands, time};
use crate::cli::summary::memory;

/// Facts about a store before its first ranking.
#[derive(serde::Serialize)]
struct StoreStat {
    #[serde(flatten)]
    checkpoint: Option<Checkpoint>,
    /// True while an ingest is running; only that process knows the newest state.
    busy: bool,
    /// Always null: there is no snapshot.
    snapshot: Option<String>,
    disk_bytes: Disk,
}

/// Totals read until the last checkpoint.
#[derive(serde::Serialize)]
struct Checkpoint {
    pages: u64,
    visited: u64,
    records: u64,
    links: u64,
    last_fetch: Option<String>,
    memory_bytes: serde_json::Value,
}

/// Prints the state of the last checkpoint.
pub(super) fn show(store: &Path, is_json: bool) -> anyhow::Result<Exit> {
    let checkpoint = match open_view(&RealDisk, store) {
        Err(Error::Busy { .. }) => None,
        view => {
            let view = view?;
            let (state, counters) = (view.state(), view.counters());
            let pages = state.totals.pages;
            Some(Checkpoint {
                pages,
                visited: counters.visited,
                records: counters.records,
                links: counters.links,
                last_fetch: state.time.map(|at| time(Some(at))),
                memory_bytes: memory(&Need::to_resume(&view.settings().config, pages, None)),
            })
        }
    };
    let stat = StoreStat {
        busy: checkpoint.is_none(),
        checkpoint,
        snapshot: None,
        disk_bytes: disk(store)?,
    };
    if is_json {
        return print_json(&stat);
    }
    print(|out| {
        let mut line = |name: &str, value: String| writeln!(out, "{name:<14} {value}");
        let checkpoint = stat.checkpoint.as_ref();
        line(
            "pages",
            checkpoint.map_or("known to the ingest that is running".into(), |of| {
                pages_text(of.pages, of.visited)
            }),
        )?;
        line(
            "accuracy",
            "no ranking yet: an ingest publishes one at its end, and with --snapshot-every before"
                .into(),
        )?;
        if let Some(of) = checkpoint {
            let latest = of.last_fetch.clone();
            line("latest fetch", latest.unwrap_or("unknown".into()))?;
        }
        line("disk", human(stat.disk_bytes.total))?;
        if let Some(of) = checkpoint {
            line("memory", memory_text(&of.memory_bytes))?;
            line("records", thousands(of.records))?;
            line("links", thousands(of.links))?;
        }
        Ok(())
    })
}
