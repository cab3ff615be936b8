//! Store as readers see it. Nothing here takes the store's lock, except for [`Store::settle`].

use std::path::{Path, PathBuf};

use super::{History, HistoryOptions, Resettling, history};
use crate::Result;
use crate::check::{Depth, check};
use crate::disk::RealDisk;
use crate::schedule::{Candidate, NextOptions, next};
use crate::snapshot::{self, KeepSnapshots, Snapshot, SnapshotEntry};
use crate::store::{identity_of, open_view_to_publish};

/// Store that answers questions, also while it is being written.
///
/// ```
/// # mod cashrank { pub use cashrank_base::model::*; pub use cashrank_store::session::*; pub use cashrank_steer::{answers::*, schedule::*}; }
/// use cashrank::{NextOptions, Options, Record, Store, Writer};
///
/// # fn main() -> cashrank::Result<()> {
/// # let home = std::env::temp_dir().join(format!("cashrank-store-{}", std::process::id()));
/// # std::fs::create_dir_all(&home).unwrap();
/// # let dir = home.join("store");
/// let mut writer = Writer::open(&dir, &Options::default())?;
/// writer.push(&Record::new("http://a.example/", ["/b", "/c"]))?;
/// writer.push(&Record::new("http://a.example/b", ["/c", "/d"]))?;
/// writer.publish()?;
///
/// let store = Store::open(&dir)?;
/// let ranking = store.snapshot()?;
/// assert_eq!(ranking.top(1)?[0].url, "http://a.example/c");
/// let urls = ["HTTP://A.example/d#part".into(), "http://e.example/".into()];
/// assert_eq!(ranking.ranks(&urls)?[0].visits, Some(0));
/// assert_eq!(store.snapshots()?.len(), 1);
/// assert_eq!(store.history(&urls)?[0].history[0].rank, ranking.ranks(&urls)?[0].rank);
/// // What to crawl next, by the parameters that the guide describes.
/// let asked = NextOptions::of(&[("strategy", "settled"), ("per-host", "1")])?;
/// assert_eq!(store.next(&asked)?[0].url, "http://a.example/c");
/// # drop(writer);
/// // A closer ranking takes the place of this one.
/// let ranking = store.settle(1e-9)?;
/// assert!(ranking.bound_l1().is_some_and(|bound| bound < 2e-9));
/// store.verify()?;
/// # std::fs::remove_dir_all(&home).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Opens the store in `dir`, which a [`Writer`](cashrank_store::session::Writer) created. Fails with
    /// [`Error::Missing`](crate::Error::Missing) if there is none.
    pub fn open(dir: impl AsRef<Path>) -> Result<Store> {
        let dir = dir.as_ref().to_path_buf();
        identity_of(&RealDisk, &dir)?;
        Ok(Store { dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the current snapshot: the ranking that was published last. Fails with
    /// [`Error::Missing`](crate::Error::Missing) if there is none.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::latest(&RealDisk, &self.dir)
    }

    /// Lists all snapshots, oldest first, including any that are unreadable.
    pub fn snapshots(&self) -> Result<Vec<SnapshotEntry>> {
        snapshot::snapshots(&RealDisk, &self.dir)
    }

    /// Returns the ranks of pages over all snapshots, by URLs in any form or opaque names. Fails with
    /// [`Error::Missing`](crate::Error::Missing) if no snapshot was published yet.
    pub fn history(&self, urls: &[String]) -> Result<Vec<History>> {
        let options = HistoryOptions::default();
        history(&RealDisk, &self.dir, urls, &options, &mut Err)
    }

    /// Returns the pages to crawl next, best first. Fails with [`Error::Missing`](crate::Error::Missing) if no snapshot
    /// was published yet and there are no seeds, or if the strategy needs links and none are kept.
    pub fn next(&self, options: &NextOptions) -> Result<Vec<Candidate>> {
        next(&RealDisk, &self.dir, options)
    }

    /// Settles the current ranking over the kept links until it is certified to be within `until` of PageRank in L1.
    /// Leaves out the links that the current ranking leaves out. The result is published only if it is more accurate
    /// than the current ranking. Fails with [`Error::Busy`](crate::Error::Busy) if the store has a writer, and with
    /// [`Error::Missing`](crate::Error::Missing) with the reason if it keeps no links.
    pub fn settle(&self, until: f64) -> Result<Snapshot> {
        let view = open_view_to_publish(&RealDisk, &self.dir)?;
        view.manifest.progress.check_verified(&self.dir)?;
        let again = Resettling::of(&view, None)?;
        if again.done(until).is_none() {
            let settle = again.settle(until);
            snapshot::publish(&RealDisk, &view, KeepSnapshots::ALL, Some(&settle))?;
        }
        self.snapshot()
    }

    /// Checks every file of the store. Returns the first damage found as [`crate::Error::Damaged`], or
    /// [`crate::Error::Io`] if a file cannot be read.
    pub fn verify(&self) -> Result<()> {
        let found = check(&RealDisk, self.dir(), Depth::Deep, None)?;
        found.damage.into_iter().next().map_or(Ok(()), Err)
    }
}
