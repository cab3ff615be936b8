//! `cashrank stat` of a store without a snapshot: the state of its last checkpoint.

use std::path::Path;

use cashrank::Error;
use cashrank_store::memory::{Need, human};
use cashrank_store::store::{RealDisk, open_view};

use super::{DiskUsage, WIDTH, fetch_text, memory_text, pages_text};
use crate::cli::common::{Exit, print, print_json, thousands, time};
use crate::cli::json::object;
use crate::cli::summary::memory;
use crate::cli::table::FactList;

/// Prints the totals read until the last checkpoint. While an ingest is running, only that process knows them.
pub(super) fn show(store: &Path, is_json: bool) -> anyhow::Result<Exit> {
    let view = match open_view(&RealDisk, store) {
        Err(Error::Busy { .. }) => None,
        view => Some(view?),
    };
    let disk = DiskUsage::of(store)?;
    let known = view.as_ref().map(|view| {
        let (pages, config) = (view.state().totals.pages, &view.settings().config);
        let memory = memory(&Need::to_resume(config, pages, None));
        (pages, view.counters(), view.state().time, memory)
    });
    if is_json {
        let of = known.as_ref();
        return print_json(&object! {
            "pages"?: of.map(|of| of.0),
            "visited"?: of.map(|of| of.1.visited),
            "records"?: of.map(|of| of.1.records),
            "links"?: of.map(|of| of.1.links),
            "last_fetch"?: of.map(|of| of.2.map(|at| time(Some(at)))),
            "memory_bytes"?: of.map(|of| &of.3),
            "busy": of.is_none(),
            "snapshot": None::<String>,
            "disk_bytes": &disk,
        });
    }
    print(|out| {
        let of = known.as_ref();
        let busy = || "known to the ingest that is running".into();
        let pages = of.map_or_else(busy, |of| pages_text(of.0, of.1.visited));
        let accuracy =
            "no ranking yet: an ingest publishes one at its end, and with --snapshot-every before";
        let mut facts = FactList::new(out, "", WIDTH);
        facts.add("pages", pages)?;
        facts.add("accuracy", accuracy.to_owned())?;
        facts.add("latest fetch", of.map(|of| fetch_text(of.2)))?;
        facts.add("disk", human(disk.total))?;
        facts.add("memory", of.map(|of| memory_text(&of.3)))?;
        facts.add("records", of.map(|of| thousands(of.1.records)))?;
        Ok(facts.add("links", of.map(|of| thousands(of.1.links)))?)
    })
}
