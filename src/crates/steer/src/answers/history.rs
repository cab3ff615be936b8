//! Ranks of pages or sites over the snapshots that a store keeps, and changes between two of them.

use std::path::Path;

use serde::Serialize;

use super::pages_of;
use crate::disk::Disk;
use crate::engine::PageId;
use crate::metrics::moved::{MoveOptions, MoveSummary, Mover};
use crate::model::{Time, rfc_3339};
use crate::snapshot::{LevelRanking, RankingName, Snapshot, moved, snapshots};
use crate::{Error, Result};

/// Ranks of one page or site over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct History {
    /// URL or name, as given.
    pub url: String,
    pub known: bool,
    /// Positions in the kept rankings, oldest first.
    pub history: Vec<Moment>,
}

/// Position of a page or site in one ranking.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Moment {
    /// Number of the snapshot: the records read until then.
    pub snapshot: u64,
    /// Latest fetch among these records, in seconds since 1970; RFC 3339 when serialized. Absent if no record has a
    /// time.
    #[serde(serialize_with = "rfc_3339")]
    pub time: Option<Time>,
    /// Number of ranked pages or sites.
    pub count: u64,
    /// 1 + the number of those of strictly greater importance; absent if it was not known yet.
    pub rank: Option<u64>,
    /// Importance, as a share of all, or the score by a measure. Absent if it was not known yet.
    pub importance: Option<f64>,
    /// Certified bound on the L1 error of all importances.
    pub bound_l1: Option<f64>,
}

impl Moment {
    /// Returns the importance as a multiple of the mean, which does not fall just because pages are added.
    pub fn ratio(&self) -> Option<f64> {
        self.importance
            .map(|importance| importance * self.count as f64)
    }
}

#[derive(Debug, Clone, Default)]
pub struct HistoryOptions {
    /// Level and measure; a measure must have been computed for some of the snapshots.
    pub ranking: RankingName,
    /// Maximum number of snapshots, the newest first; `None`: all.
    pub most: Option<usize>,
    /// Memory for finding the sites of a snapshot, in bytes; `None`: no limit.
    pub memory: Option<u64>,
}

/// Returns the ranks of pages or sites over the snapshots of a store, by URLs in any form or by names. Snapshots without
/// the measure are left out. An error of reading one is passed to `failed`, which may return `Ok` to continue without it.
/// Fails with [`Error::Missing`] if there is no store, no snapshot, or none with the measure.
pub fn history(
    disk: &dyn Disk,
    store: &Path,
    urls: &[String],
    options: &HistoryOptions,
    failed: &mut dyn FnMut(Error) -> Result<()>,
) -> Result<Vec<History>> {
    let kept = snapshots(disk, store)?;
    let newest = &kept[kept.len() - options.most.unwrap_or(kept.len()).min(kept.len())..];
    let mut histories: Vec<History> = urls
        .iter()
        .map(|url| History {
            url: url.clone(),
            ..History::default()
        })
        .collect();
    let mut found = None;
    let mut without = None;
    let mut looked_at = 0;
    // The newest snapshot comes first, as it knows all pages.
    for kept in newest.iter().rev() {
        if let (true, Err(Error::Damaged { path, what })) = (kept.current, &kept.info) {
            failed(Error::damaged(path, what.clone()))?;
            continue;
        }
        match moments(disk, &kept.path, urls, options, &mut found) {
            Ok(moments) => {
                looked_at += 1;
                for (history, mut moment) in histories.iter_mut().zip(moments) {
                    moment.snapshot = kept.number;
                    history.history.push(moment);
                }
            }
            // A writer removed the snapshot after it was listed.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(Error::Missing(why)) => without = without.or(Some(why)),
            Err(error) => failed(error)?,
        }
    }
    if looked_at == 0 {
        if let Some(why) = without {
            return Err(Error::Missing(why));
        }
        // Fails with the reason: the store or its snapshots are missing.
        Snapshot::latest(disk, store)?;
    }
    for history in &mut histories {
        history.history.reverse();
        history.known = history.history.iter().any(|moment| moment.rank.is_some());
    }
    Ok(histories)
}

/// Returns the positions in one snapshot. `found` holds page numbers, which are the same in all snapshots of a store.
fn moments(
    disk: &dyn Disk,
    path: &Path,
    urls: &[String],
    options: &HistoryOptions,
    found: &mut Option<Vec<Option<PageId>>>,
) -> Result<Vec<Moment>> {
    let snapshot = Snapshot::open(disk, path)?;
    let ranking = LevelRanking::open(disk, snapshot, &options.ranking, options.memory)?;
    let numbers = match found.take() {
        Some(numbers) if options.ranking.level.is_page() => numbers,
        _ => pages_of(urls, |names| ranking.find(names))?,
    };
    let is_ranked = |number: &Option<PageId>| number.filter(|number| number.0 < ranking.len());
    let ranked: Vec<PageId> = numbers.iter().filter_map(is_ranked).collect();
    let mut rows = ranking.at(&ranked)?.into_iter();
    let moments = numbers.iter().map(|number| {
        let row = is_ranked(number).and_then(|_| rows.next());
        Moment {
            snapshot: 0,
            time: ranking.snapshot().info().time,
            count: ranking.ranked(),
            rank: row.as_ref().map(|row| row.rank),
            importance: row.as_ref().map(|row| row.importance),
            bound_l1: ranking.bound_l1(),
        }
    });
    let moments = moments.collect();
    *found = Some(numbers);
    Ok(moments)
}

/// Pages that moved between two snapshots of a store.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotMovers {
    /// File name of the older snapshot; absent if there is only one.
    pub from: Option<String>,
    pub to: String,
    /// Counts and sums over all pages; absent if there is only one snapshot.
    #[serde(flatten)]
    pub summary: Option<MoveSummary>,
    /// Pages in both snapshots that moved most, up or down.
    pub movers: Vec<Mover>,
    /// New pages of best rank.
    pub new: Vec<Mover>,
}

/// Returns the `n` pages whose importance changed most from `older` to `newer`, two snapshots of one store: up or down,
/// relative to the older importance, among pages that both have and either ranks in its first 1,000. Ties are ordered by
/// the change of importance, then by rank.
///
/// ```
/// # mod cashrank { pub use cashrank_base::model::*; pub use cashrank_store::session::*; pub use cashrank_steer::{answers::*, schedule::*}; }
/// # use cashrank::{Options, Record, Writer, movers};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
/// writer.push(&Record::new("http://a.example/", ["/b", "/c"]))?;
/// let older = writer.publish()?;
/// writer.push(&Record::new("http://a.example/b", ["/c", "/d"]))?;
/// let newer = writer.publish()?;
/// let moved = movers(&older, &newer, 10)?;
/// let fell = moved.iter().find(|page| page.rank > page.rank_before);
/// assert_eq!(fell.map(|page| &*page.url), Some("http://a.example/b"));
/// # Ok(())
/// # }
/// ```
pub fn movers(older: &Snapshot, newer: &Snapshot, n: usize) -> Result<Vec<Mover>> {
    let wanted = MoveOptions {
        count: n,
        ..MoveOptions::default()
    };
    Ok(SnapshotMovers::between(older, newer, wanted)?.movers)
}

impl SnapshotMovers {
    /// Compares `older` and `newer`, two snapshots of one store; each list has at most `wanted.count` pages. Pages that
    /// moved are ordered by the criterion in `wanted`, ties by the change of importance, then by rank.
    pub fn between(
        older: &Snapshot,
        newer: &Snapshot,
        wanted: MoveOptions,
    ) -> Result<SnapshotMovers> {
        let found = moved(older, newer, wanted)?;
        let mut movers: Vec<Mover> = found.rose.into_iter().chain(found.fell).collect();
        movers.sort_by(|a, b| Mover::by_size(wanted.by, a, b));
        movers.truncate(wanted.count);
        let name = |snapshot: &Snapshot| {
            let name = snapshot.path().file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        Ok(SnapshotMovers {
            from: Some(name(older)),
            to: name(newer),
            movers,
            new: found.new,
            summary: Some(found.summary),
        })
    }
}
