//! Ranking snapshots: immutable files with an estimate of every page. See `formats/snapshot.md`.
//!
//! Nothing in a snapshot depends on the hash key, on checkpoints, threads or wall time: the same records give the same
//! bytes. Names are not in it; they are in the store's logs, which only grow.

pub(crate) mod blocks;
pub mod column;
mod compare;
mod computed;
pub mod export;
mod find;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod kept;
mod known;
mod levels;
pub mod links;
mod ranks;
mod read;
mod settling;
mod write;

use std::path::Path;

use crate::engine::Counters;
use crate::store::rows::Retention;
use crate::store::{Disk, SNAPSHOTS};
use crate::{Error, Result};

pub use compare::moved;
#[cfg(any(test, feature = "testing"))]
pub use computed::fuzz::ranking as ranking_fuzz;
pub use computed::{ComputedInfo, ComputedName, ComputedRanking, publish_computed};
pub use computed::{RANKING, computed};
pub use find::{Failing, FailingHost, SearchOptions, SearchResult, WITHIN};
pub use find::{Rank, canonical, find_lines, pages_of};
pub use kept::{KeepSnapshots, PINNED, thin};
pub use kept::{SnapshotEntry, SnapshotSelector, pin, snapshots};
pub use known::FactsCache;
pub use levels::{LevelRanking, RankingName};
pub use ranks::{descending_key, importance_of, sorted_positions, splits};
pub use read::{Selection, Snapshot, SnapshotColumns, SnapshotPage};
pub use settling::settling_needs;
pub use settling::{Expired, SettleSettings, Watcher, Watching};
pub use settling::{publish, publish_in_turn, put_in_place};
pub use write::{ClusterRanking, Info, Latest, prepare};

/// First and last bytes of a snapshot: six letters, and the version in two digits.
const MAGIC: &[u8; 8] = b"CRSNAP03";
pub const VERSION: u32 = blocks::version_of(MAGIC);
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

/// Returns the info of the current snapshot of the store in `dir`, if it has a readable one.
pub fn latest_info(disk: &dyn Disk, dir: &Path) -> Option<Info> {
    let snapshot = Snapshot::latest(disk, dir).ok()?;
    Some(snapshot.info().clone())
}

/// Returns the number of the row file that the current snapshot names, unless the store keeps no rows any more.
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

/// Returns the names of the snapshots in the store in `dir`, up to the current one, oldest first.
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

pub fn latest_is_sound(disk: &dyn Disk, dir: &Path) -> bool {
    Snapshot::latest(disk, dir).is_ok_and(|snapshot| snapshot.check_sums().is_ok())
}
