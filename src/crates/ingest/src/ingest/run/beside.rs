//! Rankings by other measures, which are computed with every snapshot (`also`), on the snapshot's own thread.
//!
//! They equal those of `cashrank compute`, to the byte. One that cannot be computed is reported as missing, and the
//! snapshot stays.

use std::path::PathBuf;

use crate::Result;
use crate::ingest::{IngestEvent, IngestJob};
use crate::rank::computing::Computing;
use crate::session::Session;
use crate::snapshot::{self, ComputedInfo, ComputedName, Watcher, publish_computed};
use crate::store::{Disk, View};

/// Rankings to be computed beside a snapshot.
pub(super) struct ExtraRankings {
    also: Vec<Computing>,
    watcher: Watcher,
}

/// Snapshot, unless it was stopped, and the rankings beside it.
pub(super) struct SnapshotWithRankings {
    pub published: Option<snapshot::PublishedSnapshot>,
    pub beside: Vec<RankingBeside>,
}

/// Result of computing a ranking; `None` if it was stopped.
pub(super) struct RankingBeside {
    name: ComputedName,
    done: Result<Option<(PathBuf, ComputedInfo)>>,
}

impl ExtraRankings {
    /// Prepares computations in the memory that is left.
    pub fn new(job: &IngestJob, session: &Session, watcher: Watcher) -> ExtraRankings {
        let mut also = job.also.clone();
        for computing in &mut also {
            let options = &mut computing.options;
            options.damping = job.settings.config.damping_asked();
            options.threads = job.threads;
            options.memory = session.memory_left();
        }
        ExtraRankings { also, watcher }
    }

    /// Computes the rankings, if there is a snapshot.
    pub fn make(
        &self,
        disk: &dyn Disk,
        view: &View,
        published: Option<snapshot::PublishedSnapshot>,
    ) -> SnapshotWithRankings {
        let also = self.also.iter().filter(|_| published.is_some());
        let beside = also.map(|computing| RankingBeside {
            name: ComputedName::of(computing),
            done: publish_computed(disk, view, computing, &self.watcher),
        });
        SnapshotWithRankings {
            beside: beside.collect(),
            published,
        }
    }
}

impl RankingBeside {
    /// Returns the event that reports the result.
    pub fn note(&self) -> IngestEvent<'_> {
        let name = &self.name;
        match &self.done {
            Ok(Some((path, info))) => IngestEvent::Computed { path, info },
            other => IngestEvent::NotComputed {
                name,
                error: other.as_ref().err(),
            },
        }
    }
}
