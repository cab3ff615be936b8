//! Settling a store once more: a more accurate ranking of the same records.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::engine::HistoryView;
use crate::model::Time;
use crate::snapshot::{Info, SettleSettings, Snapshot};
use crate::store::{RealDisk, View};
use crate::{Error, Result};

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

    /// Returns the settings for settling a store at rest to `until`. The result is published only if it is more
    /// accurate than the published ranking, and is the next warm start.
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
