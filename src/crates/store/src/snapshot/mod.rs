//! Ranking snapshots: immutable files with an estimate of every page. See `formats/snapshot.md`.
//!
//! Nothing in a snapshot depends on the hash key, on checkpoints, threads or wall time: the same records give the same
//! bytes. Names are not in it; they are in the store's logs, which only grow.

pub(crate) mod blocks;
pub mod column;
mod common_crawl;
mod compare;
mod computed;
pub mod export;
mod file;
mod find;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod kept;
mod known;
mod levels;
pub mod links;
mod publish;
mod ranks;
mod read;
mod search;
mod settling;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::recreate;
use crate::engine::{Counters, Window, with_shard};
use crate::model::Time;
use crate::store::rows::Retention;
use crate::store::{
    Disk, NameLengths, SNAPSHOTS, Settings, from_text, is_busy, read_whole, settings_of, to_text,
    write_whole,
};
use crate::{Error, Result};

pub use common_crawl::write_ranks;
pub use compare::{Elapsed, elapsed, moved, same_numbers};
#[cfg(any(test, feature = "testing"))]
pub use computed::fuzz::ranking as ranking_fuzz;
pub use computed::{ComputedInfo, ComputedName, ComputedRanking, publish_computed};
pub use computed::{RANKING, computed};
pub use file::SnapshotColumns;
pub use find::{Rank, canonical, find_lines, pages_of};
pub use kept::{KeepSnapshots, PINNED, thin};
pub use kept::{SnapshotEntry, SnapshotSelector, pin, snapshots};
pub use known::FactsCache;
pub use levels::{LevelRanking, RankingName};
pub use publish::{ClusterRanking, Prepared, prepare};
pub use publish::{PublishedSnapshot, SnapshotTurn, publish, publish_meanwhile};
pub use ranks::{descending_key, importance_of, sorted_positions, splits};
pub use read::{Selection, Snapshot, SnapshotPage};
pub use search::{Failing, FailingHost, SearchOptions, SearchResult, WITHIN};
pub use settling::settling_needs;
pub use settling::{Expired, SettleSettings, StartFrom, Watcher, Watching};

/// Version of the format.
pub const VERSION: u32 = 3;
/// First and last bytes of a snapshot: six letters, and the version in two digits.
const MAGIC: &[u8; 8] = b"CRSNAP03";
const _: () = assert!(VERSION == ((MAGIC[6] - b'0') * 10 + MAGIC[7] - b'0') as u32);
cashrank_base::words! {
    /// Columns in the order of the directory.
    SnapshotColumn {
        /// Importance, by the window's estimator: f64.
        Importance = "importance",
        /// Distributed estimate: f64.
        Distributed = "distributed",
        /// Rank, 1 + the number of pages of strictly greater importance: u64.
        Rank = "rank",
        /// Number of visits: u64.
        Visits = "visits",
        /// Last fetch in seconds since 1970: i64; i64::MIN: unknown.
        LastFetch = "last_fetch",
        /// Cash in units: u64.
        Cash = "cash",
        /// Number of failed fetches since the page was last reached: u64.
        Failed = "failed",
        /// Time of the last failed fetch, as [`SnapshotColumn::LastFetch`].
        LastFailed = "last_failed",
        /// Number of comparisons between observations: u64.
        Compared = "compared",
        /// Number of comparisons that showed a change: u64.
        Changed = "changed",
        /// Seconds from the first observation to the last fetch, if there are comparisons: u64.
        Watched = "watched",
        /// 1 if the page was gone at its last visit, else 0: u64.
        Gone = "gone",
        /// Units of cash recycled from the page since its last visit: u64.
        Recycled = "recycled",
    }
}

pub const COLUMNS: usize = SnapshotColumn::ALL.len();

/// Counters, settings and accuracy of the run that made a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    pub version: u32,
    pub pages: u64,
    /// Number of visits, without recyclings.
    pub visits: u64,
    pub rounds: u64,
    /// G in units of a full supply: how often all cash has been distributed.
    pub turnovers: f64,
    /// G in units, in decimal digits.
    pub clock: String,
    /// Counts of what was read.
    #[serde(with = "with_shard")]
    pub counters: Counters,
    /// Latest accepted time of a record, in seconds since 1970: see `formats/snapshot.md`.
    pub time: Option<i64>,
    /// Number of measures that the window was read from; for a window of sums or an interpolation, one for each page
    /// that ever distributed cash.
    pub measures: u64,
    /// Window with its estimator and certificate.
    pub window: Window,
    /// Links that were left out because their pages were not reached for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<Expired>,
    /// Ranking over several shards, if the snapshot is part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRanking>,
    pub settings: Settings,
}

impl Info {
    /// Returns the number of the store's own pages, without the remote pages of a shard.
    pub fn local_pages(&self) -> u64 {
        self.pages.saturating_sub(self.counters.shard.remote_pages)
    }

    /// Returns the number of pages that ranks refer to; those of all shards for a ranking over several.
    pub fn ranked_pages(&self) -> u64 {
        self.cluster.map_or(self.pages, |of| of.pages)
    }

    /// Returns the certified bound on the L1 distance to PageRank at the requested damping: [`Window::bound_l1`] plus
    /// [`Config::damping_bound`](crate::engine::Config::damping_bound).
    pub fn bound_l1(&self) -> Option<f64> {
        let rounding = self.settings.config.damping_bound();
        self.window.bound_l1().map(|bound| bound + rounding)
    }

    /// Returns why the bound is not as low as requested; `None` if it is.
    pub fn unreached(&self, until: f64) -> Option<&'static str> {
        if self.bound_l1().is_some_and(|bound| bound <= until) {
            None
        } else if self.settings.config.bound_for(until).is_none() {
            Some("damping is stored as a multiple of 2^-32, and the bound includes the difference")
        } else {
            Some("time was up, or 64-bit numbers are not precise enough")
        }
    }

    /// Returns the age in seconds beyond which links were left out, if they were.
    pub fn expire(&self) -> Option<Time> {
        self.expired.map(|expired| expired.after)
    }
}

/// Contents of `snapshots/latest.json`: the current snapshot, and the lengths of the logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latest {
    pub snapshot: String,
    pub names: NameLengths,
    /// Rows of links as of the snapshot.
    #[serde(default, skip_serializing_if = "Retention::is_not_kept")]
    pub rows: Retention,
}

/// Returns the info of the current snapshot of the store in `dir`, if it has a readable one.
pub fn latest_info(disk: &dyn Disk, dir: &Path) -> Option<Info> {
    let snapshot = Snapshot::latest(disk, dir).ok()?;
    Some(snapshot.info().clone())
}

/// Returns the number of the row file that the current snapshot of the store in `dir` names. If `retention` says that
/// the store keeps no rows, updates the snapshot's entry first.
pub fn rows_named(disk: &dyn Disk, dir: &Path, retention: &Retention) -> Result<Option<u64>> {
    let Ok(Some(mut latest)) = Latest::read(disk, dir) else {
        return Ok(None);
    };
    if latest.rows.kept().is_some() && retention.kept().is_none() {
        latest.rows = *retention;
        latest.write(disk, dir)?;
    }
    Ok(latest.rows.kept().map(|kept| kept.number))
}

/// Returns an error if the store is older than its snapshot: it would publish older snapshots after newer ones.
pub fn check_not_newer(disk: &dyn Disk, dir: &Path, store: &Counters) -> Result<()> {
    match latest_info(disk, dir) {
        Some(published) if published.counters.records > store.records => Err(Error::damaged(
            dir.join("store.redb"),
            "it is older than the current snapshot",
        )),
        _ => Ok(()),
    }
}

/// Returns the name of the current snapshot of the store in `dir`; `None` if none is published yet.
pub fn current_name(disk: &dyn Disk, dir: &Path) -> Result<Option<String>> {
    Ok(Latest::published(disk, dir)?.map(|latest| latest.snapshot))
}

/// Returns the names of the snapshots in the store in `dir`, up to the current one, oldest first. A name keeps its
/// meaning as long as the snapshot exists.
pub fn names(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>> {
    let Some(current) = current_name(disk, dir)? else {
        return Ok(Vec::new());
    };
    let folder = dir.join(SNAPSHOTS);
    let mut names = disk.list(&folder).map_err(Error::io(&folder, "list"))?;
    // Names begin with the zero-padded number of records, so their order is that of time.
    names.retain(|name| name.ends_with(".snapshot") && *name <= current);
    names.sort_unstable();
    Ok(names)
}

/// Returns true if all checksums of the current snapshot are valid.
pub fn latest_is_sound(disk: &dyn Disk, dir: &Path) -> bool {
    Snapshot::latest(disk, dir).is_ok_and(|snapshot| snapshot.check_sums().is_ok())
}

impl Latest {
    fn path(dir: &Path) -> PathBuf {
        dir.join(SNAPSHOTS).join("latest.json")
    }

    /// Reads which snapshot of the store in `dir` is current; `None` if none is published yet.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Latest>> {
        let path = Self::path(dir);
        match read_whole(disk, &path) {
            Ok(text) => from_text(&text)
                .map(Some)
                .map_err(|what| Error::damaged(path, what)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::reading(path)(error)),
        }
    }

    /// Reads like [`Latest::read`], for readers, which must detect that the file is lost: every store has the folder,
    /// and if there are snapshots, one of them was current.
    fn published(disk: &dyn Disk, dir: &Path) -> Result<Option<Latest>> {
        let latest = Latest::read(disk, dir)?;
        if latest.is_some() {
            return Ok(latest);
        }
        let folder = dir.join(SNAPSHOTS);
        let names = match disk.list(&folder) {
            Err(_) if settings_of(disk, dir)?.is_none() => return Ok(None),
            names => names.map_err(Error::opening(&folder))?,
        };
        let count = names.iter().filter(|n| n.ends_with(".snapshot")).count();
        // A running or interrupted writer may be about to publish the first snapshot.
        let is_begun = || names.iter().any(|name| name == "latest.tmp") || is_busy(disk, dir);
        if count > 1 || count == 1 && !is_begun() {
            // A writer may have published its first ones since.
            let latest = Latest::read(disk, dir)?;
            return latest.map_or_else(|| Err(Latest::lost(dir, count)), |latest| Ok(Some(latest)));
        }
        Ok(None)
    }

    fn names_missing(path: PathBuf) -> Error {
        Error::damaged(path, "it is missing, though snapshots/latest.json names it")
    }

    /// Returns the error that the file is missing although there are this many snapshots.
    pub fn lost(dir: &Path, snapshots: usize) -> Error {
        let what = match snapshots {
            1 => "it is missing, and there is a snapshot".into(),
            _ => format!("it is missing, and there are {snapshots} snapshots"),
        };
        Error::damaged(Self::path(dir), what)
    }

    /// Reads like [`Latest::published`]; an error if no snapshot is published.
    fn current(disk: &dyn Disk, dir: &Path) -> Result<Latest> {
        Latest::published(disk, dir)?.ok_or_else(|| {
            Error::Missing(format!(
                "{}: no snapshot published yet (there is no snapshots/latest.json); `cashrank \
                 ingest` publishes one at its end and at every `snapshot_every`",
                dir.display()
            ))
        })
    }

    /// Announces the first snapshot, by `latest.tmp`: then a snapshot without `latest.json` is no sign of damage.
    fn begin(disk: &dyn Disk, dir: &Path) -> Result<()> {
        let aside = Self::path(dir).with_extension("tmp");
        recreate(disk, &aside)
            .and_then(|file| file.sync())
            .and_then(|()| disk.sync_dir(&dir.join(SNAPSHOTS)))
            .map_err(Error::io(&aside, "write"))
    }

    fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let path = Self::path(dir);
        let text = to_text(self).map_err(|error| Error::internal(error.to_string()))?;
        write_whole(disk, &path, &text).map_err(Error::io(&path, "write"))
    }
}
