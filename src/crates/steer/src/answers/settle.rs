//! Settling what a store holds again: a closer ranking of the same records.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::engine::HistoryView;
use crate::model::Time;
use crate::snapshot::{Info, SettleSettings, Snapshot};
use crate::store::{RealDisk, View};
use crate::{Error, Result};

/// How a store is settled again, and the ranking that there is already.
#[derive(Debug)]
pub struct Resettling {
    /// Leave out the links of pages that were last reached more than so many seconds before the latest record.
    pub expire: Option<Time>,
    /// Path and info of the current snapshot, if it is a ranking of the same records alone that leaves out as much.
    pub published: Option<(PathBuf, Info)>,
}

impl Resettling {
    /// Of a store that keeps rows. `expire`: `None` stands for that of the current ranking.
    ///
    /// # Errors
    /// [`Error::Missing`]: no rows are kept, which says why; [`Error::Usage`]: there are no pages, or `expire`, and no record has a time;
    /// [`Error::Io`]: the current ranking cannot be read.
    pub fn of(view: &View, expire: Option<Option<Time>>) -> Result<Resettling> {
        view.rows()?;
        if HistoryView::totals(view).pages == 0 {
            return Err(Error::Usage("nothing to settle: there are no pages".into()));
        }
        let latest = match Snapshot::latest(&RealDisk, view.dir()) {
            Ok(latest) => Some((latest.path().to_path_buf(), latest.info().clone())),
            // There is none, or it is damaged, and is replaced.
            Err(error) if !is_unreadable(&error) => None,
            // It may be closer than what is settled, and leave out more.
            Err(error) => return Err(error),
        };
        let expire = expire.unwrap_or_else(|| latest.as_ref().and_then(|(_, info)| info.expire()));
        if expire.is_some() && view.state().time.is_none() {
            return Err(Error::Usage(
                "`expire`: no record says when it was fetched, so no page is known to be old; leave `expire` out, or \
                 name the records' time with `field`"
                    .into(),
            ));
        }
        // A ranking of several shards is one of other links.
        let is_same = |info: &Info| {
            info.counters == *view.counters() && info.expire() == expire && info.cluster.is_none()
        };
        Ok(Resettling {
            expire,
            published: latest.filter(|(_, info)| is_same(info)),
        })
    }

    /// The bound of the ranking that there is already.
    pub fn bound_l1(&self) -> Option<f64> {
        self.published
            .as_ref()
            .and_then(|(_, info)| info.bound_l1())
    }

    /// That ranking, if there is nothing to do: it is certified to be within `until` of PageRank.
    pub fn done(&self, until: f64) -> Option<(&Path, &Info)> {
        let is_done = self.bound_l1().is_some_and(|bound| bound <= until);
        let (path, info) = self.published.as_ref().filter(|_| is_done)?;
        Some((path, info))
    }

    /// Settling to `until`, to be published only if it is closer than the ranking that there is already.
    pub fn settle(&self, until: f64) -> SettleSettings {
        SettleSettings {
            expire: self.expire,
            below: self.bound_l1(),
            or_nothing: true,
            ..SettleSettings::until(until)
        }
    }
}

/// Whether a file is there that cannot be read just now.
fn is_unreadable(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() != ErrorKind::NotFound)
}
