//! Rankings by other measures, which are computed with every snapshot (`also`), on the snapshot's own thread.
//!
//! They equal those of `cashrank compute`, to the byte. One that cannot be computed is reported as missing, and the
//! snapshot stays.

use std::path::PathBuf;

use crate::Result;
use crate::ingest::{Job, Note};
use crate::rank::computing::Computing;
use crate::session::Session;
use crate::snapshot::{self, ComputedInfo, ComputedName, Watcher, publish_computed};
use crate::store::{Disk, View};

/// Rankings to be computed beside a snapshot.
pub(super) struct Beside {
    also: Vec<Computing>,
    watcher: Watcher,
}

/// Snapshot, unless it was stopped, and the rankings beside it.
pub(super) struct Made {
    pub published: Option<snapshot::Made>,
    pub beside: Vec<RankingBeside>,
}

/// Result of computing a ranking; `None` if it was stopped.
pub(super) struct RankingBeside {
    name: ComputedName,
    done: Result<Option<(PathBuf, ComputedInfo)>>,
}

impl Beside {
    /// Prepares computations in the memory that is left.
    pub fn new(job: &Job, session: &Session, watcher: Watcher) -> Beside {
        let mut also = job.also.clone();
        for computing in &mut also {
            let options = &mut computing.options;
            options.damping = job.settings.config.damping_asked();
            options.threads = job.threads;
            options.memory = session.memory_left();
        }
        Beside { also, watcher }
    }

    /// Computes the rankings, if there is a snapshot.
    pub fn make(&self, disk: &dyn Disk, view: &View, published: Option<snapshot::Made>) -> Made {
        let also = self.also.iter().filter(|_| published.is_some());
        let beside = also.map(|computing| RankingBeside {
            name: ComputedName::of(computing),
            done: publish_computed(disk, view, computing, &self.watcher),
        });
        Made {
            beside: beside.collect(),
            published,
        }
    }
}

impl RankingBeside {
    /// Returns the event that reports the result.
    pub fn note(&self) -> Note<'_> {
        let name = &self.name;
        match &self.done {
            Ok(Some((path, info))) => Note::Computed { path, info },
            other => Note::NotComputed {
                name,
                error: other.as_ref().err(),
            },
        }
    }
}
