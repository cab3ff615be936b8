//! Settling before a snapshot: whether it is done, who watches it, and what it may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::expiry::{Expired, Expiry};
use crate::Result;
use crate::model::Time;
use crate::rank::settle::{BYTES, Options, Progress, Settled, Watch, settle};
use crate::rows::PAGES_MAX;
use crate::store::View;

/// The usual bound to settle to.
pub const SETTLE_UNTIL: f64 = 0.01;

/// How a snapshot is made.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// Of the older snapshots only the newest `keep - 1` stay; 0: all.
    pub keep: usize,
    /// Memory for the ranks, in bytes; pages that do not fit are ranked through temporary files.
    pub rank_bytes: u64,
    /// `None`: importance is that of the store's window.
    pub settle: Option<Settle>,
}

/// How importance is settled over the links that the store keeps.
#[derive(Debug, Clone)]
pub struct Settle {
    /// The bound on the L1 error to end at.
    pub until: f64,
    /// End after so long with the bound that there is then.
    pub time: Option<Duration>,
    /// Bytes of memory that it may take; `None`: any.
    pub memory: Option<u64>,
    /// Leave out the links of pages that were last reached more than so many seconds before the latest record; `None`: none.
    pub expire: Option<Time>,
    /// Publish only what has a lower bound on the L1 error than this.
    pub below: Option<f64>,
    /// Who watches.
    pub watcher: Arc<Watcher>,
}

impl Settle {
    /// To this bound, with nobody to watch and whatever memory it takes.
    pub fn until(until: f64) -> Settle {
        Settle {
            until,
            time: None,
            memory: None,
            expire: None,
            below: None,
            watcher: Arc::default(),
        }
    }
}

/// Watches a settling from another thread, and may stop it.
#[derive(Debug, Default)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
    progress: Mutex<Progress>,
    /// Bytes that it would have taken, if these were too many.
    too_large: Mutex<Option<u64>>,
}

impl Watcher {
    /// One that stops when `stop` is set: then there is no snapshot.
    pub fn new(stop: Arc<AtomicBool>) -> Watcher {
        Watcher {
            stop,
            ..Watcher::default()
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that settling would have taken, if it was left out because these were too many.
    pub fn too_large(&self) -> Option<u64> {
        *self
            .too_large
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a settling.
pub(super) enum Outcome {
    /// It was stopped from outside.
    Stopped,
    /// There are no rows, or there was no memory or time: importance is the window's.
    NotDone,
    Done(Box<Settled>, Option<Expired>),
}

impl Settle {
    /// Whether there are rows, and the memory to settle over them.
    pub(crate) fn is_possible(&self, view: &View) -> bool {
        let pages = view.state().totals.pages;
        if view.rows_retention().kept().is_none() || pages > PAGES_MAX {
            return false;
        }
        let bytes = pages * BYTES;
        let fits = self.memory.is_none_or(|memory| bytes <= memory);
        if !fits {
            let too_large = self.watcher.too_large.lock();
            *too_large.unwrap_or_else(PoisonError::into_inner) = Some(bytes);
        }
        fits
    }

    /// Settles over the rows of a commit, to the bound asked for or that of the `window`, whichever is lower: so what a crawl
    /// that was read many times has gained is not given away.
    pub(super) fn run(&self, view: &View, window: Option<f64>) -> Result<Outcome> {
        if !self.is_possible(view) {
            return Ok(Outcome::NotDone);
        }
        let options = Options {
            damping: view.settings().config.damping_units(),
            until: window.map_or(self.until, |bound| bound.min(self.until)),
        };
        let mut watching = Watching {
            watcher: &self.watcher,
            // A time beyond what the clock can tell is no limit.
            end: self.time.and_then(|time| Instant::now().checked_add(time)),
        };
        let rows = view.rows()?;
        let settled = match self.expire {
            None => settle(&rows, &options, &mut watching)?.map(|settled| (settled, None)),
            Some(after) => {
                let expiry = Expiry::of(view, after)?;
                let rows = expiry.over(&rows)?;
                let settled = settle(&rows, &options, &mut watching)?;
                settled.map(|settled| (settled, Some(expiry.found(&rows))))
            }
        };
        Ok(match settled {
            _ if self.watcher.stop.load(Ordering::Relaxed) => Outcome::Stopped,
            None => Outcome::NotDone,
            Some((settled, expired)) => Outcome::Done(Box::new(settled), expired),
        })
    }
}

struct Watching<'w> {
    watcher: &'w Watcher,
    end: Option<Instant>,
}

impl Watch for Watching<'_> {
    fn swept(&mut self, progress: &Progress) {
        let known = self.watcher.progress.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = *progress;
    }

    fn is_over(&mut self) -> bool {
        let late = self.end.is_some_and(|end| Instant::now() >= end);
        late || self.watcher.stop.load(Ordering::Relaxed)
    }
}
