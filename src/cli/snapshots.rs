//! `cashrank snapshots`: the rankings that a store keeps.

use std::io::Write;
use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank_store::memory::human;
use cashrank_store::shards::open_shards;
use cashrank_store::snapshot::{
    Info, KeepSnapshots, LevelRanking, Snapshot, SnapshotEntry, SnapshotSelector, pin, snapshots,
};
use cashrank_store::store::RealDisk;

use super::common::{
    Exit, MemoryArg, STORE, StoreArg, parsed, print, print_json, say, thousands, time, worst_of,
    written_at,
};
use super::inputs::first_given;
use super::json::object;
use super::levels::{LevelArgs, rounded_up};
use super::table::line;

const EXAMPLES: &str = "\
Examples:
  cashrank snapshots --store ranks
  cashrank snapshots --pin 50000 --store ranks
  cashrank top --snapshot 50000 --store ranks
  cashrank top --snapshot 2026-11-01 --store ranks

A snapshot's number is the number of records read until then. `ingest` keeps the newest 10, one of each of \
the last 30 days, one of each month (--keep-snapshots), and all that are pinned. Below a snapshot stand the rankings that `cashrank compute` made of it.";

/// List the rankings that a store keeps, oldest first, or pin one.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SnapshotsArgs {
    #[command(flatten)]
    store: StoreArg,
    /// Keep this snapshot until it is unpinned.
    #[arg(long, value_name = "N", conflicts_with = "unpin")]
    pin: Option<u64>,
    /// Remove the pin from this snapshot.
    #[arg(long, value_name = "N")]
    unpin: Option<u64>,
    /// Print one line of JSON per snapshot, for programs.
    #[arg(long, conflicts_with_all = ["pin", "unpin"])]
    json: bool,
}

#[derive(clap::Args)]
pub struct SnapshotArg {
    /// Use an older snapshot, by its number or by a time like 2026-11-24 [default: the current one].
    ///
    /// A time stands for the newest snapshot that has no record fetched later. `cashrank snapshots` lists them.
    #[arg(long, value_name = "N|TIME", value_parser = parsed::<SnapshotSelector>)]
    pub snapshot: Option<SnapshotSelector>,
}

impl SnapshotArg {
    pub fn open(&self, store: &Path) -> cashrank::Result<Snapshot> {
        Snapshot::of(&RealDisk, store, self.snapshot)
    }
}

/// The store option of commands that read the shards of a crawl as one store.
#[derive(clap::Args)]
pub struct StoresArg {
    /// The store's directory; repeated for all shards of a crawl [default: the environment variable CASHRANK_STORE].
    #[arg(long = "store", value_name = "DIR", env = STORE, hide_env = true, required = true)]
    pub all: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub struct RankingArgs {
    #[command(flatten)]
    pub stores: StoresArg,
    #[command(flatten)]
    snapshot: SnapshotArg,
    #[command(flatten)]
    pub level: LevelArgs,
}

impl RankingArgs {
    pub fn open(&self, memory: &MemoryArg) -> anyhow::Result<Vec<LevelRanking>> {
        let stores = &self.stores.all;
        check_one(stores, &self.level.given())?;
        let snapshots = open_shards(&RealDisk, stores, self.snapshot.snapshot)?.into_iter();
        let opened = snapshots.map(|snapshot| self.level.open(snapshot, memory));
        Ok(opened.collect::<cashrank::Result<_>>()?)
    }

    /// Returns the first store; it is the only one if [`check_one`] was called for the options in use.
    pub fn store(&self) -> &Path {
        &self.stores.all[0]
    }

    pub fn snapshot(&self) -> cashrank::Result<Snapshot> {
        self.snapshot.open(self.store())
    }
}

/// Refuses options for a single store if there are several. `given` pairs each option with whether it is given.
pub fn check_one(stores: &[PathBuf], given: &[(bool, &str)]) -> anyhow::Result<()> {
    match first_given(given) {
        Some(option) if stores.len() > 1 => {
            anyhow::bail!("{option} is for one store: leave it out, or give one --store")
        }
        _ => Ok(()),
    }
}

#[derive(clap::Args)]
pub struct KeepArg {
    /// How many snapshots to keep, or by which rule; 0: all.
    ///
    /// recent=10,hourly=24,daily=30,monthly=all keeps the newest 10, and the newest of each of 24 hours, 30 days and all months.
    /// Those pinned by `cashrank snapshots --pin` stay, too.
    #[arg(long, value_name = "N|RULE", default_value_t = KeepSnapshots::USUAL)]
    pub keep_snapshots: KeepSnapshots,
}

impl SnapshotsArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let store = &self.store.store;
        if let Some(number) = self.pin.or(self.unpin) {
            let is_pinned = self.pin.is_some();
            let changed = pin(&RealDisk, store, number, is_pinned)?;
            let state = if is_pinned { "pinned" } else { "not pinned" };
            let before = if changed { "" } else { ", as before" };
            say!("snapshot {number}: {state}{before}");
            return Ok(Exit::Done);
        }
        let kept = snapshots(&RealDisk, store)?;
        for kept in &kept {
            if let Err(error) = &kept.info {
                say!("cashrank: {error}");
            }
        }
        if self.json {
            kept.iter()
                .try_for_each(|kept| print_json(&listed(kept)).map(drop))?
        } else {
            print(|out| write_plain(out, &kept)).map(drop)?
        }
        let errors = kept.iter().filter_map(|kept| kept.info.as_ref().err());
        Ok(worst_of(errors))
    }
}

fn listed(kept: &SnapshotEntry) -> impl serde::Serialize {
    let info = kept.info.as_ref().ok();
    let computed = kept
        .computed
        .iter()
        .map(|of| object! { "level": of.level.to_string(), "measure": &of.measure });
    object! {
        "number": kept.number,
        "current": kept.current,
        "pinned": kept.pinned,
        "pages": info.map(|info| info.pages),
        "last_fetch": info.and_then(|info| info.time).map(|at| time(Some(at))),
        "published": written_at(&kept.path),
        "bound_l1": info.and_then(Info::bound_l1),
        "bytes": kept.bytes,
        "file": kept.path.display().to_string(),
        "damage": kept.info.is_err().then_some("it cannot be read"),
        "computed": computed.collect::<Vec<_>>(),
    }
}

fn write_plain(out: &mut dyn Write, kept: &[SnapshotEntry]) -> anyhow::Result<()> {
    let columns = [
        ("number", 15),
        ("pages", 15),
        ("crawled until", -20),
        ("published", -20),
        ("error up to", 11),
        ("size", 10),
        ("", 0),
    ];
    let heads = columns.map(|(head, _)| head.to_owned());
    writeln!(out, "{}", line("  ", columns, &heads))?;
    let unknown = || "unknown".to_owned();
    for kept in kept {
        let info = kept.info.as_ref().ok();
        let bound = info.and_then(Info::bound_l1).filter(|bound| *bound < 2.0);
        let at = info.and_then(|info| info.time);
        let marks = [(kept.current, "current"), (kept.pinned, "pinned")];
        let marks = marks.into_iter().filter(|(is_set, _)| *is_set);
        let cells = [
            kept.number.to_string(),
            match &kept.info {
                Ok(info) => thousands(info.pages),
                Err(Error::Damaged { .. }) => "damaged".into(),
                Err(_) => "unreadable".into(),
            },
            at.map_or_else(unknown, |at| time(Some(at))),
            written_at(&kept.path).unwrap_or_else(unknown),
            bound.map_or("-".into(), rounded_up),
            kept.bytes.map_or_else(unknown, human),
            marks.map(|(_, mark)| mark).collect::<Vec<_>>().join(", "),
        ];
        writeln!(out, "{}", line("  ", columns, &cells))?;
        for of in &kept.computed {
            writeln!(out, "{:>15}  {} by {}", "", of.level, of.measure)?;
        }
    }
    Ok(())
}
