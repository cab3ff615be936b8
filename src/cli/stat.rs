//! `cashrank stat`: the contents of a store, or of all shards of a crawl.

mod checkpoint;
mod shards;

use std::io::Write;
use std::path::Path;

use cashrank::Error;
use cashrank_graph::engine::{Effort, Estimator, ShardCounts};
use cashrank_graph::rank::measures::Accuracy;
use cashrank_graph::rows::Rows;
use cashrank_graph::sites::Level;
use cashrank_store::memory::human;
use cashrank_store::shards::open_shards;
use cashrank_store::snapshot::{
    ClusterRanking, ComputedName, Expired, LevelRanking, RankingName, Snapshot, snapshots,
};
use cashrank_store::store::rows::Retention;
use cashrank_store::store::{RealDisk, SpoolState, settings_of, spool_state};

use super::common::{
    Basis, Exit, accuracy, as_options, certain_pages, counted, left_out, pages, print, print_json,
    thousands, time,
};
use super::levels::{certain_of, sureness};
use super::record::RankingOrigin;
use super::stores::StoresArg;
use crate::cli::common::say;
use shards::{AllStat, write_all};

/// Show what a store holds: counts, accuracy of the ranking, disk and memory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank stat --store ranks --json
  cashrank stat --store ranks --record > ranking.json
  cashrank stat --store ranks-0 --store ranks-1

Counts are those of the current snapshot, so the command works while an ingest is running. Before the first snapshot they are \
those of the last checkpoint, and while an ingest is running unknown.")]
pub struct StatArgs {
    #[command(flatten)]
    stores: StoresArg,
    /// Also show how the ranking was made, and disk and memory by their parts.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
    /// Print what the ranking was made of, to cite it and to make it again, as one JSON object.
    ///
    /// Inputs with their hashes, version, options, the snapshot's hash. Not while an ingest runs.
    #[arg(long, conflicts_with_all = ["json", "verbose"])]
    record: bool,
}

#[derive(serde::Serialize)]
struct Stat {
    /// Part of the crawl that the store takes; absent if it takes all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<ShardStat>,
    /// Ranking over all shards that the current one is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterRanking>,
    records: u64,
    gone: u64,
    unchanged: u64,
    failed: u64,
    skipped: u64,
    other: u64,
    links: u64,
    pages: u64,
    visited: u64,
    visits: u64,
    rounds: u64,
    turnovers: f64,
    clock: String,
    last_fetch: Option<String>,
    window: String,
    window_mark: u64,
    /// True if importance was read from the ledger that version 0.1 had for `--correction`.
    correction: bool,
    /// Effort of settling, if importance was settled over the kept links.
    settled: Option<Effort>,
    /// Links that were left out because they expired.
    expired: Option<Expired>,
    /// Length of the window; absent if each page has its own.
    window_turnovers: Option<f64>,
    estimator: Estimator,
    /// Number of entries of the history that the window reads.
    history: u64,
    bound_l1: Option<f64>,
    /// Number of the first positions that are certain.
    certain_top: Option<u64>,
    #[serde(skip)]
    basis: Basis,
    damping: f64,
    /// Multiple of 2^-32 used for the damping; `bound_l1` includes the error of this rounding.
    damping_used: f64,
    snapshot: String,
    /// Rankings computed beside the snapshot.
    computed: Vec<RankingStat>,
    /// Kept links of pages; if absent, `no_rows` says why.
    rows: Option<RowsStat>,
    no_rows: Option<String>,
    /// Current state of the spooled stream.
    spool: Option<SpoolState>,
    disk_bytes: Disk,
    /// Memory that a continued ingest needs, by part.
    memory_bytes: serde_json::Value,
}

/// Shard, with its knowledge of other shards.
#[derive(serde::Serialize)]
struct ShardStat {
    /// Number of the shard, from 0; the number of shards follows.
    number: u32,
    count: u32,
    #[serde(flatten)]
    counts: ShardCounts,
}

/// Ranking computed beside the snapshot.
#[derive(serde::Serialize)]
struct RankingStat {
    level: Level,
    measure: String,
    accuracy: Accuracy,
    /// Number of the first positions that are certain.
    certain_top: Option<u64>,
    #[serde(skip)]
    text: String,
}

/// Reads the rankings beside the current snapshot. An unreadable one is reported as such, and determines the exit code.
fn rankings(store: &Path) -> cashrank::Result<(Vec<RankingStat>, Exit)> {
    let kept = snapshots(&RealDisk, store)?;
    let current = kept.into_iter().filter(|kept| kept.current);
    let names = current.flat_map(|kept| kept.computed);
    let (mut found, mut exit) = (Vec::new(), Exit::Done);
    for name in names {
        match ranking(store, name) {
            Ok(ranking) => found.extend(ranking),
            Err(error) => {
                say!("cashrank: {error}");
                exit = Exit::from(&error);
            }
        }
    }
    Ok((found, exit))
}

fn ranking(store: &Path, name: ComputedName) -> cashrank::Result<Option<RankingStat>> {
    let name = RankingName {
        level: name.level,
        measure: Some(name.measure),
        ..RankingName::default()
    };
    let ranking = LevelRanking::open(&RealDisk, Snapshot::latest(&RealDisk, store)?, &name, None)?;
    let certain_top = ranking.certain_top()?;
    let certain = certain_of(&ranking, certain_top);
    let certain = certain.map_or(String::new(), |certain| format!("; {certain}"));
    Ok(ranking.computed().map(|info| RankingStat {
        level: info.level,
        measure: info.measure.clone(),
        accuracy: info.attained.accuracy,
        certain_top,
        text: format!("{} by {}{certain}", info.level.plural(), sureness(info)),
    }))
}

/// Kept links of pages, as of the snapshot.
#[derive(serde::Serialize)]
struct RowsStat {
    /// Length of the file, in bytes.
    bytes: u64,
    /// Number of pages whose links are known.
    pages: u64,
    /// Number of links of these pages.
    links: u64,
    /// Number of rows in the file that a later row of the page superseded.
    superseded: u64,
    bytes_a_link: f64,
}

fn rows(snapshot: &Snapshot) -> anyhow::Result<Option<RowsStat>> {
    let retention = snapshot.rows_retention();
    let Some(kept) = retention.and_then(Retention::kept) else {
        return Ok(None);
    };
    let rows = snapshot.rows()?;
    Ok(Some(RowsStat {
        bytes: kept.lengths.data + kept.lengths.index,
        pages: rows.kept().rows - rows.kept().superseded,
        links: rows.links(),
        superseded: kept.superseded,
        // The length covers all rows in the file, so the links do as well.
        bytes_a_link: kept.lengths.data as f64 / (kept.links as f64).max(1.0),
    }))
}

/// Disk usage by part, in bytes.
#[derive(Default, serde::Serialize)]
pub(super) struct Disk {
    cash: u64,
    urls: u64,
    fingerprints: u64,
    /// Index from fingerprints to pages.
    index: u64,
    /// Numbers of remote pages in their owners' stores.
    remote: u64,
    database: u64,
    rows: u64,
    /// Warm start of the next settling.
    warm: u64,
    marks: u64,
    snapshots: u64,
    spool: u64,
    pub(super) total: u64,
}

impl StatArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        self.stores.check_one(&[(self.record, "--record")])?;
        if self.record {
            return print_json(&RankingOrigin::of(self.stores.first())?);
        }
        let snapshots = match (
            open_shards(&RealDisk, self.stores.all(), None),
            self.stores.all(),
        ) {
            (Err(Error::Missing(_)), [store]) if settings_of(&RealDisk, store)?.is_some() => {
                return checkpoint::show(store, self.json);
            }
            (opened, _) => opened?,
        };
        let (mut stats, mut exit) = (Vec::new(), Exit::Done);
        for snapshot in &snapshots {
            let (stat, of_store) = stat_of(snapshot)?;
            if !matches!(of_store, Exit::Done) {
                exit = of_store;
            }
            stats.push(stat);
        }
        match (&stats[..], self.json) {
            ([stat], true) => print_json(stat)?,
            ([stat], false) => print(|out| write_plain(out, stat, self.verbose))?,
            (_, is_json) => {
                let all = AllStat::of(snapshots, stats)?;
                if is_json {
                    print_json(&all)?
                } else {
                    print(|out| write_all(out, &all))?
                }
            }
        };
        Ok(exit)
    }
}

/// Collects the contents of a store. An unreadable ranking determines the exit code.
fn stat_of(snapshot: &Snapshot) -> anyhow::Result<(Stat, Exit)> {
    let store = snapshot.store();
    let spool = spool_state(&RealDisk, store)?;
    let rows = rows(snapshot)?;
    let (computed, exit) = rankings(store)?;
    Ok((stat(snapshot, computed, rows, spool, disk(store)?)?, exit))
}

fn stat(
    snapshot: &Snapshot,
    computed: Vec<RankingStat>,
    rows: Option<RowsStat>,
    spool: Option<SpoolState>,
    disk_bytes: Disk,
) -> cashrank::Result<Stat> {
    let info = snapshot.info();
    let counters = &info.counters;
    let shard = info.settings.input.shard.map(|shard| ShardStat {
        number: shard.number(),
        count: shard.count(),
        counts: counters.shard,
    });
    Ok(Stat {
        shard,
        cluster: info.cluster,
        records: counters.records,
        gone: counters.gone,
        unchanged: counters.unchanged,
        failed: counters.failed,
        skipped: counters.skipped_total(),
        other: counters.other,
        links: counters.links,
        pages: info.pages,
        visited: counters.visited,
        visits: info.visits,
        rounds: info.rounds,
        turnovers: info.turnovers,
        clock: info.clock.clone(),
        last_fetch: info.time.map(|at| time(Some(at))),
        window: info.window.policy.to_string(),
        window_mark: info.window.mark,
        correction: info.window.correction,
        settled: info.window.settled,
        expired: info.expired,
        window_turnovers: info.window.turnovers,
        estimator: info.window.estimator,
        history: info.measures,
        bound_l1: info.bound_l1(),
        certain_top: snapshot.certain_top()?,
        basis: Basis::of(info),
        // Damping is a multiple of 1/2^32: more than eight decimals would be meaningless.
        damping: info.settings.config.damping_asked(),
        damping_used: info.settings.config.damping(),
        snapshot: snapshot.path().display().to_string(),
        computed,
        no_rows: match (&rows, snapshot.rows_retention()) {
            (None, Some(retention)) => Some(as_options(&retention.why_not())),
            _ => None,
        },
        rows,
        spool,
        disk_bytes,
        memory_bytes: super::summary::memory(&snapshot.memory_to_resume()),
    })
}

/// Returns the disk usage of a store.
pub(super) fn disk(store: &Path) -> anyhow::Result<Disk> {
    let file = |name: &str| std::fs::metadata(store.join(name)).map_or(0, |found| found.len());
    let folder = |name: &str| -> anyhow::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(store.join(name))? {
            // A file may be removed in the meantime.
            sum += entry?.metadata().map_or(0, |found| found.len());
        }
        Ok(sum)
    };
    let optional = |name: &str| {
        if store.join(name).exists() {
            folder(name)
        } else {
            Ok(0)
        }
    };
    let log = |name: &str| file(name) + file(&format!("{name}.index"));
    let mut sum = Disk {
        cash: file("cash"),
        urls: log("urls"),
        fingerprints: log("fingerprints"),
        index: file("index"),
        remote: file("remote"),
        database: file("store.redb"),
        marks: optional("marks")?,
        snapshots: optional("snapshots")?,
        rows: optional("rows")?,
        warm: file("warm"),
        spool: optional("spool")?,
        total: 0,
    };
    sum.total = sum.cash
        + sum.urls
        + sum.fingerprints
        + sum.index
        + sum.remote
        + sum.database
        + sum.rows
        + sum.warm
        + sum.marks
        + sum.snapshots
        + sum.spool;
    Ok(sum)
}

fn write_plain(out: &mut dyn Write, stat: &Stat, verbose: bool) -> anyhow::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<14} {value}");
    line("pages", pages_text(stat.pages, stat.visited))?;
    line("accuracy", how_accurate(stat.bound_l1, stat.basis))?;
    if let Some(expired) = stat.expired.filter(|expired| expired.pages > 0) {
        line("", left_out(expired))?;
    }
    if let Some(certain) = certain_pages(stat.certain_top) {
        line("", certain)?;
    }
    line(
        "latest fetch",
        stat.last_fetch.clone().unwrap_or("unknown".into()),
    )?;
    line("disk", human(stat.disk_bytes.total))?;
    line("memory", memory_text(&stat.memory_bytes))?;
    if let Some(shard) = &stat.shard {
        line(
            "shard",
            format!(
                "{}/{}: {} of other shards, known from links; {} of theirs passed over",
                shard.number,
                shard.count,
                pages(shard.counts.remote_pages),
                counted(shard.counts.other_records, "record", "records")
            ),
        )?;
    }
    if let Some(cluster) = &stat.cluster {
        line(
            "ranked among",
            format!(
                "{} of {}",
                pages(cluster.pages),
                counted(cluster.shards.into(), "shard", "shards")
            ),
        )?;
    }
    line("records", thousands(stat.records))?;
    for (name, count, what) in [
        ("  gone", stat.gone, "pages were no longer there"),
        ("  unchanged", stat.unchanged, "pages had not changed"),
        ("  failed", stat.failed, "fetches failed"),
        ("skipped", stat.skipped, "records that could not be used"),
        (
            "not pages",
            stat.other,
            "requests, metadata, comments and the like",
        ),
    ] {
        if count > 0 {
            line(name, format!("{}: {what}", thousands(count)))?;
        }
    }
    line("links", thousands(stat.links))?;
    line(
        "links kept",
        match (&stat.rows, &stat.no_rows) {
            (Some(rows), _) => format!("{} of {}", thousands(rows.links), pages(rows.pages)),
            (None, why) => format!("none: {}", why.as_deref().unwrap_or("")),
        },
    )?;
    line("snapshot", stat.snapshot.clone())?;
    for ranking in &stat.computed {
        line("ranking", ranking.text.clone())?;
    }
    if let Some(spool) = &stat.spool {
        line(
            "spool",
            format!(
                "input {}, durable to byte {}",
                spool.input + 1,
                thousands(spool.acked)
            ),
        )?;
    }
    if verbose {
        writeln!(out)?;
        write_method(out, stat)?;
        write_parts(out, stat)?;
    }
    Ok(())
}

/// Formats the number of pages, and of those crawled.
fn pages_text(pages: u64, crawled: u64) -> String {
    format!(
        "{}, of them {} crawled",
        thousands(pages),
        thousands(crawled)
    )
}

/// Describes the accuracy of a ranking in a few words.
fn how_accurate(bound_l1: Option<f64>, basis: Basis) -> String {
    let text = accuracy(bound_l1, basis);
    let text = text.split_once(": ").map_or(&*text, |(_, text)| text);
    text.replace(" (L1, certified)", "")
}

/// Formats the memory that an ingest needs.
fn memory_text(bytes: &serde_json::Value) -> String {
    let of = |part: &str| human(bytes[part].as_u64().unwrap_or(0));
    format!(
        "at most {} to continue, and {} while a ranking is made",
        of("total"),
        of("settling")
    )
}

/// Writes how the ranking was computed.
fn write_method(out: &mut dyn Write, stat: &Stat) -> anyhow::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<14} {value}");
    line(
        "damping",
        format!(
            "{}: the share of importance that links pass on (used: {:.12})",
            stat.damping, stat.damping_used
        ),
    )?;
    line("window", window(stat))?;
    line(
        "crawls",
        format!(
            "{}: how often pages were crawled in all",
            thousands(stat.visits)
        ),
    )?;
    line(
        "turnovers",
        format!("{:.3}: how often all cash was passed on", stat.turnovers),
    )?;
    line(
        "rounds",
        format!(
            "{}: how often the cash of pages that were not crawled was shared out",
            thousands(stat.rounds)
        ),
    )?;
    line(
        "history",
        format!(
            "{} ({:.2} a page): what the window is computed from",
            counted(stat.history, "entry", "entries"),
            stat.history as f64 / stat.pages.max(1) as f64
        ),
    )?;
    Ok(())
}

/// Writes disk usage and memory by part.
fn write_parts(out: &mut dyn Write, stat: &Stat) -> anyhow::Result<()> {
    if let Some(rows) = &stat.rows {
        writeln!(
            out,
            "{:<14} {}, {:.2} bytes a link; {} that newer ones replaced",
            "link file",
            human(rows.bytes),
            rows.bytes_a_link,
            counted(rows.superseded, "row", "rows")
        )?;
    }
    let disk = serde_json::to_value(&stat.disk_bytes)?;
    for (name, parts) in [("disk parts", &disk), ("memory parts", &stat.memory_bytes)] {
        let parts = parts.as_object().into_iter().flatten();
        let parts = parts.filter(|(part, _)| *part != "total");
        let parts = parts.filter_map(|(part, bytes)| Some((part, bytes.as_u64()?)));
        let parts = parts.filter(|(_, bytes)| *bytes > 0);
        let parts: Vec<String> = parts
            .map(|(part, bytes)| format!("{part} {}", human(bytes)))
            .collect();
        writeln!(out, "{name:<14} {}", parts.join(", "))?;
    }
    Ok(())
}

/// Describes the window, and how much of the history it reads.
fn window(stat: &Stat) -> String {
    if let Some(effort) = stat.settled {
        return format!(
            "none: settled over the kept links ({}, {} sweeps, {:.2} x all {} links)",
            stat.estimator,
            effort.sweeps,
            effort.links_touched as f64 / effort.links.max(1) as f64,
            thousands(effort.links)
        );
    }
    let from = match stat.window_mark {
        0 if stat.correction => ", from the correction ledger of version 0.1".into(),
        0 => String::new(),
        mark => format!(", from mark {mark}"),
    };
    let turnovers = match stat.window_turnovers {
        None => String::new(),
        Some(turnovers) => format!(", {turnovers:.3} turnovers"),
    };
    format!("{} ({}{turnovers}{from})", stat.window, stat.estimator)
}
