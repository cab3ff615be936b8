//! `cashrank stat`: the contents of a store, or of all shards of a crawl.

use std::fs::Metadata;
use std::io::{self, Write};
use std::path::Path;

use cashrank::{Error, Shard, Time};
use cashrank_graph::rows::Rows;
use cashrank_steer::answers::Rankings;
use cashrank_store::memory::{Need, human};
use cashrank_store::shards::open_shards;
use cashrank_store::snapshot::{
    ComputedInfo, ComputedName, Info, LevelRanking, RankingName, Snapshot, snapshots,
};
use cashrank_store::store::rows::Retention;
use cashrank_store::store::{RealDisk, SpoolState, open_view, settings_of, spool_state};

use super::common::{
    Exit, as_options, counted, pages, print, print_json, records, say, thousands, time,
};
use super::json::{joined, object};
use super::levels::{Basis, accuracy, certain_of, certain_pages, left_out, sureness};
use super::record::origin_of;
use super::snapshots::{StoresArg, check_one};
use super::summary::memory;
use super::table::FactList;

/// Show what a store holds: counts, accuracy of the ranking, disk and memory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank stat --store ranks --json
  cashrank stat --store ranks --record > ranking.json
  cashrank stat --store ranks-0 --store ranks-1

Counts are those of the current snapshot, or before the first one those of the last checkpoint.")]
pub struct StatArgs {
    #[command(flatten)]
    stores: StoresArg,
    /// Print one JSON object, for programs; it has more than the text.
    #[arg(long)]
    json: bool,
    /// Print what the ranking was made of, to cite it and to make it again, as one JSON object.
    ///
    /// Inputs with their hashes, version, options, the snapshot's hash. Not while an ingest runs.
    #[arg(long, conflicts_with = "json")]
    record: bool,
}

const WIDTH: usize = 14;

pub(super) struct Stat<'a> {
    snapshot: &'a Snapshot,
    certain_top: Option<u64>,
    computed: Vec<RankingStat>,
    rows: Option<RowsStat>,
    spool: Option<SpoolState>,
    disk: DiskUsage,
    memory: Need,
}

struct RankingStat {
    info: ComputedInfo,
    certain_top: Option<u64>,
    text: String,
}

/// Reads the rankings beside the current snapshot. An unreadable one is reported, and determines the exit code.
fn rankings(store: &Path) -> cashrank::Result<(Vec<RankingStat>, Exit)> {
    let kept = snapshots(&RealDisk, store)?.into_iter();
    let computed = kept
        .filter(|kept| kept.current)
        .flat_map(|kept| kept.computed);
    let (mut found, mut exit) = (Vec::new(), Exit::Done);
    for of in computed {
        match ranking(store, of) {
            Ok(ranking) => found.extend(ranking),
            Err(error) => {
                say!("cashrank: {error}");
                exit = Exit::from(&error);
            }
        }
    }
    Ok((found, exit))
}

fn ranking(store: &Path, of: ComputedName) -> cashrank::Result<Option<RankingStat>> {
    let name = RankingName {
        level: of.level,
        measure: Some(of.measure),
    };
    let ranking = LevelRanking::open(&RealDisk, Snapshot::latest(&RealDisk, store)?, &name, None)?;
    let certain_top = ranking.certain_top()?;
    let certain = certain_of(&ranking, certain_top).map(|certain| format!("; {certain}"));
    Ok(ranking.computed().cloned().map(|info| RankingStat {
        text: format!(
            "{} by {}{}",
            info.level.plural(),
            sureness(&info),
            certain.unwrap_or_default()
        ),
        certain_top,
        info,
    }))
}

#[derive(serde::Serialize)]
struct RowsStat {
    bytes: u64,
    pages: u64,
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

const PARTS: [(&str, &[&str]); 11] = [
    ("cash", &["cash"]),
    ("urls", &["urls", "urls.index"]),
    ("fingerprints", &["fingerprints", "fingerprints.index"]),
    ("index", &["index"]),
    ("remote", &["remote"]),
    ("database", &["store.redb"]),
    ("rows", &["rows"]),
    ("warm", &["warm"]),
    ("marks", &["marks"]),
    ("snapshots", &["snapshots"]),
    ("spool", &["spool"]),
];

/// Bytes of the parts of a store, and in the end their total.
struct DiskUsage(Vec<(&'static str, u64)>);

impl serde::Serialize for DiskUsage {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().copied())
    }
}

impl DiskUsage {
    fn of(store: &Path) -> io::Result<DiskUsage> {
        let (mut all, mut total) = (Vec::new(), 0);
        for (part, files) in PARTS {
            let bytes = files.iter().map(|file| bytes_of(&store.join(file)));
            let bytes = bytes.sum::<io::Result<u64>>()?;
            total += bytes;
            all.push((part, bytes));
        }
        all.push(("total", total));
        Ok(DiskUsage(all))
    }

    fn total(&self) -> u64 {
        self.0.last().map_or(0, |(_, total)| *total)
    }
}

/// Returns the length of a file, or of all files in a folder; 0 if there is none.
fn bytes_of(path: &Path) -> io::Result<u64> {
    // A file may be removed in the meantime.
    let length = |found: io::Result<Metadata>| found.map_or(0, |found| found.len());
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let entries = std::fs::read_dir(path)?;
            entries.map(|entry| Ok(length(entry?.metadata()))).sum()
        }
        found => Ok(length(found)),
    }
}

#[cfg(feature = "serve")]
pub(super) fn disk_bytes(store: &Path) -> io::Result<u64> {
    Ok(DiskUsage::of(store)?.total())
}

impl StatArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let stores = &*self.stores.all;
        check_one(stores, &[(self.record, "--record")])?;
        if self.record {
            return print_json(&origin_of(&stores[0])?);
        }
        let snapshots = match (open_shards(&RealDisk, stores, None), stores) {
            (Err(Error::Missing(_)), [store]) if settings_of(&RealDisk, store)?.is_some() => {
                return show_checkpoint(store, self.json);
            }
            (opened, _) => opened?,
        };
        let (mut stats, mut exit) = (Vec::new(), Exit::Done);
        for snapshot in &snapshots {
            let (stat, of_store) = Stat::of(snapshot)?;
            if of_store != Exit::Done {
                exit = of_store;
            }
            stats.push(stat);
        }
        match (&stats[..], self.json) {
            ([stat], true) => print_json(&stat.json())?,
            ([stat], false) => print(|out| write_plain(out, stat))?,
            (all, is_json) => show_shards(all, is_json)?,
        };
        Ok(exit)
    }
}

impl<'a> Stat<'a> {
    fn of(snapshot: &'a Snapshot) -> anyhow::Result<(Stat<'a>, Exit)> {
        let store = snapshot.store();
        let (computed, exit) = rankings(store)?;
        let stat = Stat {
            spool: spool_state(&RealDisk, store)?,
            rows: rows(snapshot)?,
            computed,
            disk: DiskUsage::of(store)?,
            certain_top: snapshot.certain_top()?,
            memory: Need::to_resume(&snapshot.info().settings.config, snapshot.len(), None),
            snapshot,
        };
        Ok((stat, exit))
    }

    fn info(&self) -> &'a Info {
        self.snapshot.info()
    }

    fn shard(&self) -> Option<Shard> {
        self.info().settings.input.shard
    }

    fn no_rows(&self) -> Option<String> {
        let retention = self.snapshot.rows_retention();
        let retention = retention.filter(|_| self.rows.is_none());
        retention.map(|retention| as_options(&retention.why_not()))
    }

    fn json(&self) -> impl serde::Serialize {
        let (info, config) = (self.info(), &self.info().settings.config);
        let counters = &info.counters;
        let shard = self.shard().map(|shard| {
            object! {
                "number": shard.number(),
                "count": shard.count(),
                "other_records": counters.shard.other_records,
                "remote_pages": counters.shard.remote_pages,
            }
        });
        let computed = self.computed.iter().map(|of| {
            object! {
                "level": of.info.level,
                "measure": of.info.measure.clone(),
                "accuracy": of.info.accuracy,
                "certain_top": of.certain_top,
            }
        });
        let all = object! {
            "records": counters.records,
            "gone": counters.gone,
            "unchanged": counters.unchanged,
            "failed": counters.failed,
            "skipped": counters.skipped_total(),
            "other": counters.other,
            "links": counters.links,
            "pages": info.pages,
            "visited": counters.visited,
            "visits": info.visits,
            "rounds": info.rounds,
            "turnovers": info.turnovers,
            "clock": info.clock.clone(),
            "last_fetch": info.time.map(|at| time(Some(at))),
            "window": info.window.policy.to_string(),
            "window_mark": info.window.mark,
            "settled": info.window.settled,
            "expired": info.expired,
            "window_turnovers": info.window.turnovers,
            "estimator": info.window.estimator,
            "history": info.measures,
            "bound_l1": info.bound_l1(),
            "certain_top": self.certain_top,
            // Damping is a multiple of 1/2^32: more than eight decimals would be meaningless.
            "damping": config.damping_asked(),
            // The multiple itself; `bound_l1` includes the error of the rounding.
            "damping_used": config.damping(),
            "snapshot": self.snapshot.path().display().to_string(),
            "computed": computed.collect::<Vec<_>>(),
            "rows": self.rows.as_ref(),
            "no_rows": self.no_rows(),
            "spool": self.spool,
            "disk_bytes": &self.disk,
            "memory_bytes": memory(&self.memory),
        };
        let shard = shard.map(|shard| object! { "shard": shard });
        let cluster = info.cluster.as_ref();
        let cluster = cluster.map(|cluster| object! { "cluster": cluster });
        joined(shard, joined(cluster, all))
    }
}

fn write_plain(out: &mut dyn Write, stat: &Stat<'_>) -> anyhow::Result<()> {
    let (info, counters) = (stat.info(), &stat.info().counters);
    let mut facts = FactList::new(out, "", WIDTH);
    facts.add("pages", pages_text(info.pages, counters.visited))?;
    facts.add("accuracy", how_accurate(info.bound_l1(), Basis::of(info)))?;
    let expired = info.expired.filter(|expired| expired.pages > 0);
    facts.add("", expired.map(left_out))?;
    facts.add("", certain_pages(stat.certain_top))?;
    facts.add("latest fetch", fetch_text(info.time))?;
    facts.add("disk", human(stat.disk.total()))?;
    facts.add("memory", memory_text(&stat.memory))?;
    let shard = stat.shard().map(|shard| {
        format!(
            "{}/{}: {} of other shards, known from links; {} of theirs passed over",
            shard.number(),
            shard.count(),
            pages(counters.shard.remote_pages),
            records(counters.shard.other_records)
        )
    });
    facts.add("shard", shard)?;
    let cluster = info.cluster.as_ref().map(|cluster| {
        let shards = counted(cluster.shards.into(), "shard", "shards");
        format!("{} of {shards}", pages(cluster.pages))
    });
    facts.add("ranked among", cluster)?;
    facts.add("records", thousands(counters.records))?;
    let skipped = counters.skipped_total();
    for (name, count, what) in [
        ("  gone", counters.gone, "pages were no longer there"),
        ("  unchanged", counters.unchanged, "pages had not changed"),
        ("  failed", counters.failed, "fetches failed"),
        ("skipped", skipped, "records that could not be used"),
        (
            "not pages",
            counters.other,
            "requests, metadata, comments and the like",
        ),
    ] {
        let text = format!("{}: {what}", thousands(count));
        facts.add(name, Some(text).filter(|_| count > 0))?;
    }
    facts.add("links", thousands(counters.links))?;
    let kept = match &stat.rows {
        Some(rows) => format!("{} of {}", thousands(rows.links), pages(rows.pages)),
        None => format!("none: {}", stat.no_rows().unwrap_or_default()),
    };
    facts.add("links kept", kept)?;
    facts.add("snapshot", stat.snapshot.path().display().to_string())?;
    for ranking in &stat.computed {
        facts.add("ranking", ranking.text.clone())?;
    }
    let spool = stat.spool.as_ref().map(|spool| {
        let acked = thousands(spool.acked);
        format!("input {}, durable to byte {acked}", spool.input + 1)
    });
    Ok(facts.add("spool", spool)?)
}

fn fetch_text(at: Option<Time>) -> String {
    at.map_or("unknown".into(), |at| time(Some(at)))
}

fn pages_text(pages: u64, crawled: u64) -> String {
    format!(
        "{}, of them {} crawled",
        thousands(pages),
        thousands(crawled)
    )
}

fn how_accurate(bound_l1: Option<f64>, basis: Basis) -> String {
    let text = accuracy(bound_l1, basis);
    let text = text.split_once(": ").map_or(&*text, |(_, text)| text);
    text.replace(" (L1, certified)", "")
}

fn memory_text(need: &Need) -> String {
    format!(
        "at most {} to continue, and {} while a ranking is made",
        human(need.total()),
        human(need.settling)
    )
}

fn show_shards(shards: &[Stat<'_>], is_json: bool) -> anyhow::Result<Exit> {
    let opened = shards
        .iter()
        .map(|stat| Snapshot::open(&RealDisk, stat.snapshot.path()).map(LevelRanking::of_pages));
    let opened = opened.collect::<cashrank::Result<Vec<_>>>()?;
    let rankings = Rankings(&opened);
    let all = rankings.first();
    let sum = |count: fn(&Info) -> u64| shards.iter().map(|stat| count(stat.info())).sum::<u64>();
    let [records, links, visited, visits] = [
        sum(|info| info.counters.records),
        sum(|info| info.counters.links),
        sum(|info| info.counters.visited),
        sum(|info| info.visits),
    ];
    let latest = shards.iter().filter_map(|stat| stat.info().time).max();
    let disk_bytes = shards.iter().map(|stat| stat.disk.total()).sum::<u64>();
    let (bound_l1, certain_top) = (all.bound_l1(), rankings.certain_top()?);
    if is_json {
        return print_json(&object! {
            "cluster": all.snapshot().info().cluster,
            "records": records,
            "links": links,
            "pages": rankings.pages(),
            "visited": visited,
            "visits": visits,
            "last_fetch": latest.map(|at| time(Some(at))),
            "bound_l1": bound_l1,
            "certain_top": certain_top,
            "disk_bytes": disk_bytes,
            "shards": shards.iter().map(Stat::json).collect::<Vec<_>>(),
        });
    }
    print(|out| {
        let mut facts = FactList::new(out, "", WIDTH);
        let pages_text = format!(
            "{} in {} shards, of them {} crawled",
            thousands(rankings.pages()),
            shards.len(),
            thousands(visited)
        );
        facts.add("pages", pages_text)?;
        facts.add("accuracy", how_accurate(bound_l1, Basis::Latest))?;
        facts.add("", certain_pages(certain_top))?;
        facts.add("latest fetch", fetch_text(latest))?;
        facts.add("disk", human(disk_bytes))?;
        facts.add("records", thousands(records))?;
        facts.add("links", thousands(links))?;
        for stat in shards {
            let Some(shard) = stat.shard() else {
                continue;
            };
            let info = stat.info();
            let remote = info.counters.shard.remote_pages;
            let text = format!(
                "{}, of them {} crawled, and {} of other shards; {}",
                pages(info.pages.saturating_sub(remote)),
                thousands(info.counters.visited),
                thousands(remote),
                stat.snapshot.path().display()
            );
            let name = format!("shard {}/{}", shard.number(), shard.count());
            facts.add(&name, text)?;
        }
        Ok(())
    })
}

/// Prints the totals read until the last checkpoint. While an ingest is running, only that process knows them.
fn show_checkpoint(store: &Path, is_json: bool) -> anyhow::Result<Exit> {
    let view = match open_view(&RealDisk, store) {
        Err(Error::Busy { .. }) => None,
        view => Some(view?),
    };
    let disk = DiskUsage::of(store)?;
    let known = view.as_ref().map(|view| {
        let (engine, config) = (&view.manifest.engine, &view.identity.settings.config);
        let need = Need::to_resume(config, engine.totals.pages, None);
        (engine.totals.pages, &engine.counters, engine.time, need)
    });
    if is_json {
        let read = known.as_ref().map(|(pages, counters, at, need)| {
            object! {
                "pages": pages,
                "visited": counters.visited,
                "records": counters.records,
                "links": counters.links,
                "last_fetch": at.map(|at| time(Some(at))),
                "memory_bytes": memory(need),
            }
        });
        let rest = object! {
            "busy": known.is_none(),
            "snapshot": None::<String>,
            "disk_bytes": &disk,
        };
        return print_json(&joined(read, rest));
    }
    print(|out| {
        let of = known.as_ref();
        let pages = of.map_or("known to the ingest that is running".into(), |of| {
            pages_text(of.0, of.1.visited)
        });
        let accuracy =
            "no ranking yet: an ingest publishes one at its end, and with --snapshot-every before";
        let mut facts = FactList::new(out, "", WIDTH);
        facts.add("pages", pages)?;
        facts.add("accuracy", accuracy.to_owned())?;
        facts.add("latest fetch", of.map(|of| fetch_text(of.2)))?;
        facts.add("disk", human(disk.total()))?;
        facts.add("memory", of.map(|of| memory_text(&of.3)))?;
        facts.add("records", of.map(|of| thousands(of.1.records)))?;
        Ok(facts.add("links", of.map(|of| thousands(of.1.links)))?)
    })
}
