//! Store as readers see it. Nothing here takes the store's lock, except for [`Store::settle`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{History, HistoryOptions, history};
use crate::check::{Depth, check};
use crate::disk::RealDisk;
use crate::engine::HistoryView;
use crate::model::Time;
use crate::schedule::{Candidate, NextOptions, next};
use crate::snapshot::{self, Info, KeepSnapshots, SettleSettings, Snapshot, SnapshotEntry};
use crate::store::{View, identity_of, open_view_to_publish};
use crate::{Error, Result};

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
/// let options = NextOptions::of(&[("strategy", "settled"), ("per-host", "1")])?;
/// assert_eq!(store.next(&options)?[0].url, "http://a.example/c");
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
    /// Opens the store in `dir`. Fails with [`Error::Missing`] if there is none.
    pub fn open(dir: impl AsRef<Path>) -> Result<Store> {
        let dir = dir.as_ref().to_path_buf();
        identity_of(&RealDisk, &dir)?;
        Ok(Store { dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the ranking that was published last. Fails with [`Error::Missing`] if there is none.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::latest(&RealDisk, &self.dir)
    }

    /// Lists all snapshots, oldest first, including any that are unreadable.
    pub fn snapshots(&self) -> Result<Vec<SnapshotEntry>> {
        snapshot::snapshots(&RealDisk, &self.dir)
    }

    /// Returns the ranks of pages over all snapshots, by URLs in any form or opaque names. Fails with [`Error::Missing`]
    /// if no snapshot was published yet.
    pub fn history(&self, urls: &[String]) -> Result<Vec<History>> {
        let options = HistoryOptions::default();
        history(&RealDisk, &self.dir, urls, &options, &mut Err)
    }

    /// Returns the pages to crawl next, best first. Fails with [`Error::Missing`] if no snapshot was published yet and
    /// there are no seeds, or if the strategy needs links and none are kept.
    pub fn next(&self, options: &NextOptions) -> Result<Vec<Candidate>> {
        next(&RealDisk, &self.dir, options)
    }

    /// Settles the current ranking over the kept links until it is certified to be within `until` of PageRank in L1.
    /// Leaves out the links that the current ranking leaves out. The result is published only if it is more accurate.
    /// Fails with [`Error::Busy`] if the store has a writer, and with [`Error::Missing`] if it keeps no links.
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

    /// Checks every file. Fails with [`Error::Damaged`] at the first damage, or [`Error::Io`] if a file cannot be read.
    pub fn verify(&self) -> Result<()> {
        let found = check(&RealDisk, self.dir(), Depth::Deep, None)?;
        found.damage.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Plan for settling a store, and the ranking that is already published.
#[derive(Debug)]
pub struct Resettling {
    /// Age in seconds, counted back from the latest record; links of pages that were last reached earlier are left out.
    pub expire: Option<Time>,
    /// Path and header of the current snapshot, if it ranks exactly the same records and leaves out the same links.
    pub published: Option<(PathBuf, Info)>,
}

impl Resettling {
    /// Plans for a store that keeps rows. `expire` of `None` takes the age from the current ranking. Fails with
    /// [`Error::Missing`] with the reason if no rows are kept.
    pub fn of(view: &View, expire: Option<Option<Time>>) -> Result<Resettling> {
        view.rows()?;
        if HistoryView::totals(view).pages == 0 {
            return Err(Error::Usage("nothing to settle: there are no pages".into()));
        }
        let latest = match Snapshot::latest(&RealDisk, &view.dir) {
            Ok(latest) => Some((latest.path().to_path_buf(), latest.info().clone())),
            // A ranking that exists but cannot be read at the moment may be more accurate than the new one, or leave
            // out more links.
            Err(error) if matches!(&error, Error::Io { source, .. } if source.kind() != ErrorKind::NotFound) =>
            {
                return Err(error);
            }
            // An absent or damaged ranking is replaced.
            Err(_) => None,
        };
        let expire = expire.unwrap_or_else(|| latest.as_ref().and_then(|(_, info)| info.expire()));
        if expire.is_some() && view.state().time.is_none() {
            return Err(Error::Usage(
                "`expire`: no record says when it was fetched, so no page is known to be old; leave `expire` out, or \
                 name the records' time with `field`"
                    .into(),
            ));
        }
        // A ranking of several shards covers other links.
        let is_same = |info: &Info| {
            info.counters == view.manifest.engine.counters
                && info.expire() == expire
                && info.cluster.is_none()
        };
        Ok(Resettling {
            expire,
            published: latest.filter(|(_, info)| is_same(info)),
        })
    }

    pub fn bound_l1(&self) -> Option<f64> {
        self.published
            .as_ref()
            .and_then(|(_, info)| info.bound_l1())
    }

    /// Returns the published ranking if nothing needs to be done: it is certified to be within `until` of PageRank.
    pub fn done(&self, until: f64) -> Option<(&Path, &Info)> {
        let is_done = self.bound_l1().is_some_and(|bound| bound <= until);
        let (path, info) = self.published.as_ref().filter(|_| is_done)?;
        Some((path, info))
    }

    /// Returns the settings for settling to `until` a store without a writer. The result is published only if it is
    /// more accurate than the published ranking, and is the next warm start.
    pub fn settle(&self, until: f64) -> SettleSettings {
        SettleSettings {
            expire: self.expire,
            below: self.bound_l1(),
            or_nothing: true,
            writes_warm: true,
            ..SettleSettings::until(until)
        }
    }
}
