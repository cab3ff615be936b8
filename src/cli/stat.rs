//! `cashrank stat`: what a store holds.

use std::io::Write;
use std::path::Path;

use cashrank::engine::Estimator;
use cashrank::memory::Need;
use cashrank::rows::Rows;
use cashrank::snapshot::Snapshot;
use cashrank::store::rows::Standing;
use cashrank::store::{RealDisk, SpoolStanding, spool_standing};

use super::common::{Exit, StoreArg, bound, print, print_json, thousands, time};

/// Show what a store holds: counts, the clock, the bound, disk space.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cashrank stat --store ranks --json
Counts are those of the current snapshot, so the command works while an ingest is running.")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Stat {
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
    /// Importance is read from the correction ledger.
    correction: bool,
    /// Absent where each page has its own.
    window_turnovers: Option<f64>,
    estimator: Estimator,
    /// Measures that the window reads.
    measures: u64,
    bound_l1: Option<f64>,
    damping: f64,
    snapshot: String,
    /// The links of pages that are kept; absent: none, and `no_rows` says why.
    rows: Option<RowsStat>,
    no_rows: Option<String>,
    /// The stream in the spool, as it is now.
    spool: Option<SpoolStanding>,
    disk_bytes: Disk,
    /// What an ingest that goes on needs, by part.
    memory_bytes: serde_json::Value,
}

/// The links of pages, as of the snapshot.
#[derive(serde::Serialize)]
struct RowsStat {
    /// Bytes of the file.
    bytes: u64,
    /// Pages whose links are known.
    pages: u64,
    /// Their links.
    links: u64,
    /// Rows in the file that later ones of the same pages have superseded.
    superseded: u64,
    bytes_a_link: f64,
}

fn rows(snapshot: &Snapshot) -> anyhow::Result<Option<RowsStat>> {
    let standing = snapshot.rows_standing();
    let Some(kept) = standing.and_then(Standing::kept) else {
        return Ok(None);
    };
    let rows = snapshot.rows()?;
    Ok(Some(RowsStat {
        bytes: kept.lengths.data + kept.lengths.index,
        pages: rows.rows(),
        links: rows.links(),
        superseded: kept.superseded,
        // Of all rows in the file.
        bytes_a_link: kept.lengths.data as f64 / (kept.links as f64).max(1.0),
    }))
}

/// Bytes on disk, by part.
#[derive(serde::Serialize)]
struct Disk {
    cash: u64,
    correction: u64,
    urls: u64,
    fingerprints: u64,
    database: u64,
    rows: u64,
    marks: u64,
    snapshots: u64,
    spool: u64,
    replay: u64,
    total: u64,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = Snapshot::latest(&RealDisk, &self.store.store)?;
        let spool = spool_standing(&RealDisk, &self.store.store)?;
        let rows = rows(&snapshot)?;
        let stat = stat(&snapshot, rows, spool, disk(&self.store.store)?);
        if self.json {
            return print_json(&stat);
        }
        print(|out| write_plain(out, &stat))
    }
}

fn stat(
    snapshot: &Snapshot,
    rows: Option<RowsStat>,
    spool: Option<SpoolStanding>,
    disk_bytes: Disk,
) -> Stat {
    let info = snapshot.info();
    let counters = &info.counters;
    Stat {
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
        window_turnovers: info.window.turnovers,
        estimator: info.window.estimator,
        measures: info.measures,
        bound_l1: info.bound_l1(),
        // It is kept in 1/2^32: more than eight decimals would say nothing.
        damping: (info.settings.config.damping() * 1e8).round() / 1e8,
        snapshot: snapshot.path().display().to_string(),
        no_rows: match (&rows, snapshot.rows_standing()) {
            (None, Some(standing)) => Some(standing.why_not()),
            _ => None,
        },
        rows,
        spool,
        disk_bytes,
        memory_bytes: super::ingest::memory(&Need::to_resume(
            &info.settings.config,
            info.pages,
            None,
        )),
    }
}

fn disk(store: &Path) -> anyhow::Result<Disk> {
    let file = |name: &str| std::fs::metadata(store.join(name)).map_or(0, |found| found.len());
    let folder = |name: &str| -> anyhow::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(store.join(name))? {
            // A file may go while we look.
            sum += entry?.metadata().map_or(0, |found| found.len());
        }
        Ok(sum)
    };
    let mut disk = Disk {
        cash: file("cash"),
        correction: file("correction"),
        urls: file("urls") + file("urls.index"),
        fingerprints: file("fingerprints") + file("fingerprints.index"),
        database: file("store.redb"),
        rows: if store.join("rows").exists() {
            folder("rows")?
        } else {
            0
        },
        marks: folder("marks")?,
        snapshots: folder("snapshots")?,
        spool: if store.join("spool").exists() {
            folder("spool")?
        } else {
            0
        },
        replay: file("replay"),
        total: 0,
    };
    disk.total = disk.cash
        + disk.correction
        + disk.urls
        + disk.fingerprints
        + disk.database
        + disk.rows
        + disk.marks
        + disk.snapshots
        + disk.spool
        + disk.replay;
    Ok(disk)
}

fn write_plain(out: &mut dyn Write, stat: &Stat) -> anyhow::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<14} {value}");
    line("records", thousands(stat.records))?;
    line(
        "  of these",
        format!(
            "{} gone, {} unchanged, {} failed",
            thousands(stat.gone),
            thousands(stat.unchanged),
            thousands(stat.failed)
        ),
    )?;
    line("skipped", thousands(stat.skipped))?;
    line("no records", thousands(stat.other))?;
    line("links", thousands(stat.links))?;
    line("pages", thousands(stat.pages))?;
    line("visited", thousands(stat.visited))?;
    line("visits", thousands(stat.visits))?;
    line("rounds", thousands(stat.rounds))?;
    line("turnovers", format!("{:.3}", stat.turnovers))?;
    line(
        "last fetch",
        stat.last_fetch.clone().unwrap_or("unknown".into()),
    )?;
    line("window", window(stat))?;
    line(
        "measures",
        format!(
            "{} ({:.2} a page)",
            thousands(stat.measures),
            stat.measures as f64 / stat.pages.max(1) as f64
        ),
    )?;
    line("bound_l1", bound(stat.bound_l1))?;
    line("damping", format!("{:.6}", stat.damping))?;
    line("snapshot", stat.snapshot.clone())?;
    match (&stat.rows, &stat.no_rows) {
        (Some(rows), _) => line(
            "links kept",
            format!(
                "{} of {} pages ({} bytes, {:.2} a link; {} superseded rows)",
                thousands(rows.links),
                thousands(rows.pages),
                thousands(rows.bytes),
                rows.bytes_a_link,
                thousands(rows.superseded)
            ),
        )?,
        (None, why) => line(
            "links kept",
            format!("none: {}", why.as_deref().unwrap_or("")),
        )?,
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
    let disk = &stat.disk_bytes;
    line(
        "disk bytes",
        format!(
            "{} (cash {}, correction {}, urls {}, fingerprints {}, database {}, rows {}, marks {}, \
             snapshots {}, spool {}, replay {})",
            thousands(disk.total),
            thousands(disk.cash),
            thousands(disk.correction),
            thousands(disk.urls),
            thousands(disk.fingerprints),
            thousands(disk.database),
            thousands(disk.rows),
            thousands(disk.marks),
            thousands(disk.snapshots),
            thousands(disk.spool),
            thousands(disk.replay)
        ),
    )?;
    let memory = &stat.memory_bytes;
    let part = |name: &str| thousands(memory[name].as_u64().unwrap_or(0));
    line(
        "memory bytes",
        format!(
            "at most {} to go on (cash {}, correction {}, index {})",
            part("total"),
            part("cash"),
            part("correction"),
            part("index")
        ),
    )?;
    Ok(())
}

/// The window, and what is read from it.
fn window(stat: &Stat) -> String {
    let from = match stat.window_mark {
        0 if stat.correction => ", from the correction ledger".into(),
        0 => String::new(),
        mark => format!(", from mark {mark}"),
    };
    let turnovers = match stat.window_turnovers {
        None => String::new(),
        Some(turnovers) => format!(", {turnovers:.3} turnovers"),
    };
    format!("{} ({}{turnovers}{from})", stat.window, stat.estimator)
}
