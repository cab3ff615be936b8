//! `ingest --processes` and `ingest --hosts`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cashrank::ingest::follow;
use cashrank::memory::available;
use cashrank::rank::settle::{Peers, Workers};
use cashrank::snapshot::{Residency, Watcher};
use cashrank::store::{Disk, Partitions, RealDisk};

use super::cluster::{Asked, Hosts, Together, is_stopped, plan};
use crate::cli::common::{Exit, stop_on_signal, threads};

/// In the place of a checkpoint's digest: process 0 has it, and says what it is.
const INGEST: u128 = u128::from_le_bytes(*b"cashrank: ingest");

impl Asked<'_> {
    /// Does the work of a process that is not the first; `None`: this is the first.
    pub fn follow(
        &self,
        store: &Path,
        memory: Option<u64>,
        resident: Option<NonZeroUsize>,
    ) -> Option<anyhow::Result<Exit>> {
        let hosts = self.hosts.as_ref().filter(|hosts| hosts.process > 0)?;
        Some(self.follow_first(hosts, store, memory, resident))
    }

    fn follow_first(
        &self,
        hosts: &Hosts,
        store: &Path,
        memory: Option<u64>,
        resident: Option<NonZeroUsize>,
    ) -> anyhow::Result<Exit> {
        let stop = Arc::new(AtomicBool::new(false));
        stop_on_signal(&stop)?;
        // One that the first started shares its budget, which that keeps to.
        let own = || available(threads(None)).filter(|_| self.args.parent.is_none());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        // The first says when to stop: it hears of a signal to all, and makes a checkpoint.
        let watcher = Watcher::default();
        let within = Residency {
            partitions: resident,
            memory: memory.or_else(own),
            alone: false,
        };
        let work = |workers: &Workers| follow(&disk, store, workers, within, &watcher);
        if !self.work_for_first(hosts, plan(0, INGEST), &stop, work)? {
            return Ok(Exit::Stopped);
        }
        Ok(match is_stopped(&stop) {
            Some(_) => Exit::Stopped,
            None => Exit::Done,
        })
    }

    /// Brings the processes of an ingest into so many partitions together, of which this is the first. `None`: it was stopped
    /// before all were there.
    pub fn begin_ingest(
        &self,
        store: &Path,
        partitions: Partitions,
        resident: Option<NonZeroUsize>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Together>> {
        let options =
            |processes: usize| vec![self.common_options(processes, resident); processes - 1];
        let others = self.others(("ingest", store, partitions), options)?;
        self.meet(others, plan(0, INGEST), stop)
    }
}

impl Together {
    /// The processes, if there are others.
    pub fn peers(&self) -> Option<Peers> {
        self.peers.clone()
    }

    /// Tells the others that this one ends, and why.
    pub fn fail(self, why: &str) {
        self.link.abandon(why);
    }
}
