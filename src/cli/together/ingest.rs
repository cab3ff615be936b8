//! `ingest --processes` and `ingest --hosts`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cashrank::ingest::follow;
use cashrank::memory::available;
use cashrank::rank::settle::{Peers, Workers};
use cashrank::snapshot::{Residency, Watcher, check_processes};
use cashrank::store::{Disk, RealDisk};
use cashrank_cluster::Plan;

use super::children::Children;
use super::cluster::{Asked, Hosts, Link, Together, is_stopped};
use crate::cli::common::{Exit, stop_on_signal, threads};

/// In the place of a checkpoint's digest: process 0 has it, and says what it is.
const INGEST: u128 = u128::from_le_bytes(*b"cashrank: ingest");

fn plan() -> Plan {
    Plan {
        program: env!("CARGO_PKG_VERSION").into(),
        partitions: 0,
        digest: INGEST,
    }
}

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
        let (process, processes) = (hosts.process, hosts.addresses.len());
        let stop = Arc::new(AtomicBool::new(false));
        stop_on_signal(&stop)?;
        let orphaned = || self.orphaned();
        let Some(link) = self.join(hosts.clone(), plan(), &stop, orphaned)? else {
            return Ok(Exit::Stopped);
        };
        let workers = Workers {
            peers: Peers::new(process, processes, link.clone())?,
            ..Workers::threads(self.threads(1))
        };
        // One that the first started shares its budget, which that keeps to.
        let own = || available(threads(None)).filter(|_| self.args.parent.is_none());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        // The first says when to stop: it hears of a signal to all, and makes a checkpoint.
        let watcher = Watcher::default();
        let within = Residency {
            partitions: resident,
            memory: memory.or_else(own),
        };
        let followed = follow(&disk, store, &workers, within, &watcher);
        if let Err(error) = followed.and_then(|()| link.finish()) {
            link.abandon(&error.to_string());
            return Err(error.into());
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
        partitions: u32,
        resident: Option<NonZeroUsize>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Together>> {
        let mut children = None;
        let partitions = if partitions > 1 {
            partitions as usize
        } else {
            0
        };
        let hosts = match (self.hosts.clone(), self.args.processes) {
            (Some(hosts), _) => hosts,
            (None, Some(processes @ 2..)) => {
                let processes = processes as usize;
                check_processes(partitions, processes)?;
                let options = vec![self.common_options(processes, resident); processes - 1];
                let begun = Children::start("ingest", store, options)?;
                let (file, secret) = begun.files();
                let hosts = Hosts::read(&file, 0, &secret)?;
                children = Some(begun);
                hosts
            }
            (None, _) => {
                return Ok(Some(Together {
                    threads: self.threads(1),
                    peers: None,
                    within: Residency::default(),
                    link: Link::default(),
                    children,
                }));
            }
        };
        let processes = hosts.addresses.len();
        check_processes(partitions, processes)?;
        let ended = || children.as_ref().and_then(Children::ended);
        let Some(link) = self.join(hosts, plan(), stop, ended)? else {
            return Ok(None);
        };
        let mut peers = Peers::new(0, processes, link.clone())?;
        if children.is_some() {
            peers = peers.on_one_machine();
        }
        Ok(Some(Together {
            threads: self.threads(processes),
            peers: Some(peers),
            within: Residency::default(),
            link,
            children,
        }))
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
