//! `--processes` and `--hosts`: how processes meet, and those that settle.

use std::num::NonZeroUsize;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use cashrank::memory::check_room;
use cashrank::rank::settle::{Exchange, Peers, Workers};
use cashrank::snapshot::{Residency, Share, Watcher, check_processes, dismiss, settling_needs};
use cashrank::store::{Partitions, RealDisk, View};
use cashrank::{Error, Result};
use cashrank_cluster::{Address, Cluster, Joining, PROCESSES_MAX, Plan, Secret, addresses, join};

use super::children::Children;
use super::{AllWorkers, Needs};
use crate::cli::common::{Exit, MemoryArg, say, stop_on_signal, thousands, threads};
use crate::cli::values::time;

/// Which processes work together.
#[derive(clap::Args)]
pub struct JoinArgs {
    /// Let this many processes of this machine share the partitions of the store (`ingest --partitions`). The result is the same
    /// as by one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PROCESSES_MAX as u64),
          conflicts_with_all = ["hosts", "process", "secret"])]
    pub(super) processes: Option<u64>,
    /// Share the partitions with the processes in this file, an address a line: HOST:PORT, or the path of a socket. Each is
    /// started by the same command with its own --process. See formats/guide/partitions.md.
    #[arg(long, value_name = "FILE", requires_all = ["process", "secret"])]
    hosts: Option<PathBuf>,
    /// Which line of --hosts this process is, from 0. Process 0 reads inputs and publishes rankings, and the options for that are
    /// its.
    #[arg(long, value_name = "I", requires = "hosts")]
    process: Option<u64>,
    /// A file with a secret that all processes know, at least 16 bytes. Others may not read it.
    #[arg(long, value_name = "FILE", requires = "hosts")]
    secret: Option<PathBuf>,
    /// The process that started this one, which has no use without it.
    #[arg(long, hide = true, value_name = "PID", requires = "hosts")]
    pub(super) parent: Option<u32>,
    /// Wait this long for the other processes at the start.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    wait: Duration,
    /// Give up when another process says nothing for this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    silence: Duration,
}

/// Settling by several processes.
#[derive(clap::Args)]
pub struct TogetherArgs {
    #[command(flatten)]
    join: JoinArgs,
    /// Settle this many partitions at a time [default: one for each processor; with --processes, divided among them].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    threads: Option<u64>,
}

impl Needs {
    /// The part of a budget, which has room for all, that each process but the first may take.
    fn parts(&self, budget: u64) -> impl Iterator<Item = u64> {
        let more = self.more(budget);
        self.bytes[1..].iter().map(move |need| need + more)
    }

    /// That of the first.
    fn own(&self, budget: u64) -> Option<u64> {
        self.bytes.first().map(|need| need + self.more(budget))
    }

    /// What there is for each beyond its need.
    fn more(&self, budget: u64) -> u64 {
        let left = budget.saturating_sub(self.bytes.iter().sum());
        left / self.bytes.len().max(1) as u64
    }
}

/// This process's part among others, if there are any.
pub struct Together {
    pub(super) threads: usize,
    /// `None`: nobody asked for several.
    pub(super) peers: Option<Peers>,
    pub(super) within: Residency,
    pub(super) link: Link,
    pub(super) children: Option<Children>,
}

/// The way to other processes.
#[derive(Clone, Default)]
pub(super) struct Link(Arc<Mutex<Option<Cluster>>>);

impl Link {
    fn cluster(&self) -> MutexGuard<'_, Option<Cluster>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After the last message of all.
    pub fn finish(&self) -> Result<()> {
        let cluster = self.cluster().take();
        cluster.map_or(Ok(()), |cluster| cluster.finish().map_err(lost))
    }

    /// Tells the others that this process ends before the end.
    pub fn abandon(&self, why: &str) {
        if let Some(cluster) = &mut *self.cluster() {
            cluster.abandon(why);
        }
    }
}

impl Exchange for Link {
    fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        match &mut *self.cluster() {
            Some(cluster) => cluster.exchange(messages).map_err(lost),
            None => Ok(messages),
        }
    }

    fn check(&mut self) -> Result<()> {
        match &mut *self.cluster() {
            Some(cluster) => cluster.check().map_err(lost),
            None => Ok(()),
        }
    }
}

/// As an error of the library.
fn lost(error: cashrank_cluster::Error) -> Error {
    use cashrank_cluster::Error as Of;
    match error {
        Of::Usage(what) | Of::Differs(what) => Error::Usage(what),
        other => Error::Io {
            path: "processes".into(),
            action: "work together",
            source: std::io::Error::other(other.to_string()),
        },
    }
}

/// The processes of a run.
#[derive(Clone)]
pub(super) struct Hosts {
    pub addresses: Vec<Address>,
    pub process: usize,
    secret: Secret,
}

impl Hosts {
    pub fn read(file: &Path, process: u64, secret: &Path) -> anyhow::Result<Hosts> {
        let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
            path: file.into(),
            action: "read",
            source,
        })?;
        let addresses = addresses(&text, file).map_err(lost)?;
        let process = process as usize;
        anyhow::ensure!(
            process < addresses.len(),
            "--process {process}: {} has {} processes, which count from 0",
            file.display(),
            addresses.len()
        );
        Ok(Hosts {
            addresses,
            process,
            secret: Secret::read(secret).map_err(lost)?,
        })
    }
}

impl TogetherArgs {
    /// Reads the files that the options name.
    pub fn read(&self) -> anyhow::Result<Asked<'_>> {
        self.join.read(self.threads)
    }
}

impl JoinArgs {
    /// Reads the files that the options name. So many threads are asked for.
    pub fn read(&self, threads: Option<u64>) -> anyhow::Result<Asked<'_>> {
        let hosts = match (&self.hosts, self.process, &self.secret) {
            (Some(hosts), Some(process), Some(secret)) => {
                Some(Hosts::read(hosts, process, secret)?)
            }
            _ => None,
        };
        Ok(Asked {
            args: self,
            threads,
            hosts,
        })
    }
}

/// The options, and what is in the files that they name.
pub struct Asked<'a> {
    pub(super) args: &'a JoinArgs,
    threads: Option<u64>,
    pub(super) hosts: Option<Hosts>,
}

impl Asked<'_> {
    pub(super) fn threads(&self, processes: usize) -> usize {
        let divided = || (threads(None) / processes).max(1);
        self.threads
            .map_or_else(divided, |asked| threads(Some(asked)))
    }

    /// The number of processes; 1 is this one alone.
    fn count(&self) -> usize {
        match &self.hosts {
            Some(hosts) => hosts.addresses.len(),
            None => self.args.processes.unwrap_or(1) as usize,
        }
    }

    /// On how many machines processes are, as far as this one knows.
    pub fn machines(&self) -> usize {
        let hosts = self.hosts.as_ref();
        hosts.map_or(1, |hosts| hosts.addresses.len())
    }

    /// Does the work of a process that is not the first; `None`: this is the first.
    pub fn share(
        &self,
        store: &Path,
        memory: &MemoryArg,
        resident: Option<NonZeroUsize>,
    ) -> Option<anyhow::Result<Exit>> {
        let hosts = self.hosts.as_ref().filter(|hosts| hosts.process > 0)?;
        Some(self.settle_share(hosts, store, memory, resident))
    }

    fn settle_share(
        &self,
        hosts: &Hosts,
        store: &Path,
        memory: &MemoryArg,
        resident: Option<NonZeroUsize>,
    ) -> anyhow::Result<Exit> {
        let (process, processes) = (hosts.process, hosts.addresses.len());
        let share = Share::open(&RealDisk, store, process, processes)?;
        let pages = share.pages();
        let work = || format!("settling {} pages of process {process}", thousands(pages));
        let instead = "settle by more processes, on more machines";
        let within = Residency {
            partitions: resident,
            memory: memory.budget(3)?,
            alone: true,
        };
        let need = share.needs(resident, self.threads(1));
        check_room(within.memory, need, work, instead)?;
        let stop = Arc::new(AtomicBool::new(false));
        stop_on_signal(&stop)?;
        let plan = plan(share.partitions(), share.digest());
        let watcher = Watcher::new(stop.clone());
        let work = |workers: &Workers| share.work(workers, within, &watcher);
        if !self.work_for_first(hosts, plan, &stop, work)? {
            return Ok(Exit::Stopped);
        }
        let Some(stopped) = watcher.stopped_process() else {
            return Ok(Exit::Done);
        };
        // Who was stopped here knows: Ctrl-C goes to all processes of a terminal.
        if is_stopped(&stop).is_none() {
            say!("process {stopped} was stopped: nothing is published");
        }
        Ok(Exit::Stopped)
    }

    /// Joins the others, and does what the first one asks for. Returns whether it was not stopped before all were there.
    pub(super) fn work_for_first(
        &self,
        hosts: &Hosts,
        plan: Plan,
        stop: &AtomicBool,
        work: impl FnOnce(&Workers) -> Result<()>,
    ) -> anyhow::Result<bool> {
        let Some(link) = self.join(hosts.clone(), plan, stop, || self.orphaned())? else {
            return Ok(false);
        };
        let workers = Workers {
            peers: Peers::new(hosts.process, hosts.addresses.len(), link.clone())?,
            ..Workers::threads(self.threads(1))
        };
        if let Err(error) = work(&workers).and_then(|()| link.finish()) {
            link.abandon(&error.to_string());
            return Err(error.into());
        }
        Ok(true)
    }

    /// Why this process has no use any more, if another one had started it.
    fn orphaned(&self) -> Option<String> {
        let parent = self.args.parent?;
        (parent_id() != parent).then(|| "the process that started this one is gone".into())
    }

    /// Options of processes that this one starts, for so many in all.
    pub(super) fn common_options(
        &self,
        processes: usize,
        resident: Option<NonZeroUsize>,
    ) -> Vec<String> {
        let timing = [("--wait", self.args.wait), ("--silence", self.args.silence)];
        let timing = timing.map(|(name, time)| format!("{name}={}ms", time.as_millis()));
        let threads = format!("--threads={}", self.threads(processes));
        let resident = resident.map(|resident| format!("--resident={resident}"));
        let options = timing.into_iter().chain([threads]);
        options.chain(resident).collect()
    }

    /// What the processes of this machine take.
    pub fn needs(&self, view: &View, resident: Option<NonZeroUsize>) -> Needs {
        let count = self.count();
        let here = match self.args.processes {
            Some(_) => count,
            None => 1,
        };
        let threads = self.threads(here);
        let need = |process| settling_needs(view, (process, count), resident, threads);
        Needs {
            bytes: (0..here).map(need).collect(),
            pages: view.settled_pages(),
        }
    }

    /// Brings the processes together, of which this is the first. Those that it starts share a budget of memory with it.
    /// `None`: it was stopped before all were there.
    pub fn begin(
        &self,
        view: &View,
        stop: &Arc<AtomicBool>,
        within: Residency,
    ) -> anyhow::Result<Option<Together>> {
        let mut own = within;
        let options = |processes: usize| {
            let common = self.common_options(processes, within.partitions);
            let mut options = vec![common; processes - 1];
            if let Some(budget) = within.memory {
                let parts = self.needs(view, within.partitions);
                for (options, bytes) in options.iter_mut().zip(parts.parts(budget)) {
                    options.push(format!("--memory={bytes}"));
                }
                own.memory = parts.own(budget);
            }
            options
        };
        let partitions = view.settings().partitions;
        let store = ("settle", view.dir(), partitions);
        let others = self.others(store, options)?;
        let plan = plan(view.partitions(), view.digest()?);
        let mut together = self.meet(others, plan, stop)?;
        if let Some(together) = &mut together {
            together.within = own;
            if self.args.processes == Some(1) {
                check_processes(partitions, 1)?;
                together.peers = Some(Peers::new(0, 1, together.link.clone())?);
            }
        }
        Ok(together)
    }

    /// The other processes, if there are any: those of the file, or those that this one starts with these options, for this
    /// command and a store with so many partitions.
    pub(super) fn others(
        &self,
        (command, store, partitions): (&str, &Path, Partitions),
        options: impl FnOnce(usize) -> Vec<Vec<String>>,
    ) -> anyhow::Result<Option<(Hosts, Option<Children>)>> {
        if let Some(hosts) = &self.hosts {
            check_processes(partitions, hosts.addresses.len())?;
            return Ok(Some((hosts.clone(), None)));
        }
        let Some(processes @ 2..) = self.args.processes else {
            return Ok(None);
        };
        let processes = processes as usize;
        check_processes(partitions, processes)?;
        let children = Children::start(command, store, options(processes))?;
        let (file, secret) = children.files();
        Ok(Some((Hosts::read(&file, 0, &secret)?, Some(children))))
    }

    /// Waits for the others, if there are any, of which this is the first. `None`: it was stopped before all were there.
    pub(super) fn meet(
        &self,
        others: Option<(Hosts, Option<Children>)>,
        plan: Plan,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<Together>> {
        let mut alone = Together {
            threads: self.threads(1),
            peers: None,
            within: Residency::default(),
            link: Link::default(),
            children: None,
        };
        let Some((hosts, children)) = others else {
            return Ok(Some(alone));
        };
        let processes = hosts.addresses.len();
        let ended = || children.as_ref().and_then(Children::ended);
        let Some(link) = self.join(hosts, plan, stop, ended)? else {
            return Ok(None);
        };
        let mut peers = Peers::new(0, processes, link.clone())?;
        if children.is_some() {
            alone.threads = self.threads(processes);
            peers = peers.on_one_machine();
        }
        (alone.peers, alone.link, alone.children) = (Some(peers), link, children);
        Ok(Some(alone))
    }

    /// Tells the others that there is nothing to do.
    pub fn nothing_to_do(&self, view: &View) -> anyhow::Result<()> {
        if self.hosts.is_some() {
            let Some(together) = self.begin(view, &Arc::default(), Residency::default())? else {
                return Ok(());
            };
            together.end();
        }
        Ok(())
    }

    /// Waits for the others, unless it is `hopeless`, which says why. `None`: it was stopped.
    pub(super) fn join(
        &self,
        hosts: Hosts,
        plan: Plan,
        stop: &AtomicBool,
        hopeless: impl Fn() -> Option<String>,
    ) -> anyhow::Result<Option<Link>> {
        let joining = Joining {
            plan,
            wait: self.args.wait,
            silence: self.args.silence,
            tell: Arc::new(|what| say!("{what}")),
            ..Joining::new(hosts.addresses, hosts.process, hosts.secret)
        };
        match join(joining, &|| is_stopped(stop).or_else(&hopeless)) {
            Err(_) if is_stopped(stop).is_some() => Ok(None),
            cluster => Ok(Some(Link(Arc::new(Mutex::new(Some(
                cluster.map_err(lost)?,
            )))))),
        }
    }
}

pub(super) fn plan(partitions: usize, digest: u128) -> Plan {
    Plan {
        program: env!("CARGO_PKG_VERSION").into(),
        partitions: partitions as u64,
        digest,
    }
}

pub(super) fn is_stopped(stop: &AtomicBool) -> Option<String> {
    stop.load(Ordering::Relaxed)
        .then(|| "it was stopped".into())
}

impl Together {
    pub fn workers(&self) -> AllWorkers {
        AllWorkers {
            threads: self.threads,
            peers: self.peers.clone(),
            within: self.within,
        }
    }

    /// The ranking is published, or there is none: all end. What goes wrong now changes nothing of it.
    pub fn end(mut self) {
        if let Some(peers) = self.peers.take() {
            let ended = dismiss(&peers).and_then(|()| self.link.finish());
            if let Err(error) = ended {
                say!("warning: what was to be published is, but: {error}");
            }
        }
        if let Some(children) = self.children.take()
            && let Err(error) = children.end().context("a process that was started")
        {
            say!("warning: {error:#}");
        }
    }
}

/// Not the end: something failed here.
impl Drop for Together {
    fn drop(&mut self) {
        self.link.abandon("process 0 could not go on");
    }
}
