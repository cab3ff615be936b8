//! A store with partitions settled by several processes, each its share of them.
//!
//! Process 0 has the store's lock and its whole ([`super::Settle`]); it says what comes next ([`Order`]), and publishes what all
//! have settled. Each of the others has the partitions of its share ([`Share`]), does the same for these, and writes nothing but
//! their settled bases.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::base::{self, BaseWarning, BlockHome, Starting};
use super::settling::{Settle, Watcher, Watching};
use super::turns::{Plan, Residency, keep_rows, least};
use crate::disk::Disk;
use crate::engine::{Certificate, Effort, Scores};
use crate::rank::Options;
use crate::rank::settle::{Gathered, Peers, Settled, Turns, Workers};
use crate::rows::{Ghost, Ghosts, Rows};
use crate::store::addresses::Addresses;
use crate::store::base::{CommittedBase, OwedBase};
use crate::store::{
    Asked, Partitions, RowBlock, SettledBase, SomeParts, View, ViewBlocks, open_some_parts,
};
use crate::{Error, Result};

/// What process 0 tells the others to do with it.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Settle.
    Settle(Task),
    /// Keep what was settled last as bases of what these are for, one for each block: `beside` the run, or the store's.
    Base { of: Vec<OwedBase>, beside: bool },
    /// The store's commit names the bases that were kept last.
    Named,
}

/// What is settled, and how near to come.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    /// The bits of it.
    until: u64,
    spare: u64,
    /// Records that were read.
    records: u64,
    /// Not the latest state is settled, but what these were owed of, one for each block.
    owed: Option<Vec<OwedBase>>,
    /// How many partitions process 0 has in memory at a time, where they take turns.
    resident: Option<NonZeroUsize>,
    /// The bases of all blocks that are beside the run, and those that the store names.
    beside: Option<Vec<CommittedBase>>,
    stored: Option<Vec<CommittedBase>>,
}

impl Order {
    /// Tells the others, where there are some.
    fn announce(&self, peers: &Peers) -> Result<()> {
        if peers.processes() == 1 {
            return Ok(());
        }
        let said = serde_json::to_vec(self).map_err(|error| Error::internal(error.to_string()))?;
        peers.hear(said).map(drop)
    }

    /// What process 0 tells this one; `None`: there is nothing more to do.
    fn hear(peers: &Peers) -> Result<Option<Order>> {
        let said = peers.hear(Vec::new())?;
        if said.is_empty() {
            return Ok(None);
        }
        Order::of(&said).map(Some)
    }

    /// What a message says.
    pub(crate) fn of(said: &[u8]) -> Result<Order> {
        let unknown = |error| Error::internal(format!("process 0 said something unknown: {error}"));
        serde_json::from_slice(said).map_err(unknown)
    }
}

/// Tells the other processes that there is nothing more to do.
///
/// # Errors
/// Those of [`crate::rank::settle::Exchange`].
pub fn dismiss(peers: &Peers) -> Result<()> {
    peers.hear(Vec::new()).map(drop)
}

/// Tells the others to keep what was settled.
pub(super) fn announce_base(workers: &Workers, of: &[OwedBase], beside: bool) -> Result<()> {
    let of = of.to_vec();
    Order::Base { of, beside }.announce(&workers.peers)
}

/// Tells them that the store's commit names what they kept.
pub(super) fn announce_named(workers: &Workers) -> Result<()> {
    Order::Named.announce(&workers.peers)
}

/// Settles blocks of a state, with those who have the others.
pub(super) fn settle(
    disk: &dyn Disk,
    view: &View,
    own: &ViewBlocks,
    settle: &Settle,
    (options, workers): (&Options, &Workers),
    watch: &mut Watching<'_>,
) -> Result<(Option<InOrder>, Option<BaseWarning>)> {
    let peers = &workers.peers;
    let beside = settle.base.beside.as_ref();
    Order::Settle(Task {
        until: options.until.to_bits(),
        spare: options.spare,
        records: view.counters().records,
        owed: None,
        resident: workers.turns.as_ref().and_then(Turns::resident),
        beside: beside.cloned(),
        stored: view.named_bases(),
    })
    .announce(peers)?;
    let has = |block| peers.has(block);
    let starting = Starting {
        beside: beside.map(|named| view.bases_beside(disk, named, &has)),
        stored: view.some_bases(&has),
        places: None,
        records: view.counters().records,
    };
    let pages = view.block_pages().into_iter();
    let pages: Vec<usize> = pages
        .map(|(all, ghosts)| all.saturating_sub(ghosts) as usize)
        .collect();
    let state = (view.dir(), starting, &own.blocks[..]);
    let (settled, warning) = settle_blocks(state, &pages, options, workers, watch)?;
    let in_order = settled.map(|(settled, gathered)| InOrder {
        settled,
        gathered,
        order: own.order.clone(),
        reached: Mutex::default(),
    });
    Ok((in_order, warning))
}

/// What an earlier commit owed a base of, settled by all who have blocks of it: not brought together.
pub(super) fn settle_owed(
    disk: &dyn Disk,
    view: &View,
    owed: &[OwedBase],
    (options, workers): (&Options, &Workers),
    watch: &mut Watching<'_>,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let has = |block| workers.peers.has(block);
    Order::Settle(Task {
        until: options.until.to_bits(),
        spare: options.spare,
        records: records_of(owed),
        owed: Some(owed.to_vec()),
        resident: workers.turns.as_ref().and_then(Turns::resident),
        beside: None,
        stored: view.named_bases(),
    })
    .announce(&workers.peers)?;
    let blocks = view.blocks_of(disk, owed, &has)?;
    let starting = owed_start(owed, view.some_bases(&has), workers);
    base::settle(view.dir(), starting, &blocks, options, workers, watch)
}

fn records_of(owed: &[OwedBase]) -> u64 {
    owed.first().map_or(0, |owed| owed.records)
}

/// What a base that is owed is settled from.
fn owed_start<'v>(
    owed: &[OwedBase],
    stored: Result<Option<Vec<&'v SettledBase>>>,
    workers: &Workers,
) -> Starting<'v> {
    // One may have come for all, or for none.
    let places: Option<Vec<(u64, u64)>> = owed.iter().map(|owed| owed.from).collect();
    Starting {
        beside: None,
        stored: match &places {
            Some(_) => stored,
            None => Ok(None),
        },
        places: places.map(|places| base::own_of(&places, workers)),
        records: records_of(owed),
    }
}

type Whole = Option<(Settled, Gathered)>;

fn settle_blocks(
    (dir, starting, blocks): (&Path, Starting<'_>, &[RowBlock]),
    own: &[usize],
    options: &Options,
    workers: &Workers,
    watch: &mut Watching<'_>,
) -> Result<(Whole, Option<BaseWarning>)> {
    let (settled, warning) = base::settle(dir, starting, blocks, options, workers, watch)?;
    if watch.is_one_stopped(&workers.peers)? {
        return Ok((None, warning));
    }
    let gathered = settled.map(|settled| Ok((settled.gather(own)?, settled)));
    let both = gathered.transpose()?;
    Ok((both.map(|(gathered, settled)| (settled, gathered)), warning))
}

/// The partitions of a process that is not the first.
pub struct Share<'d> {
    disk: &'d dyn Disk,
    dir: PathBuf,
    parts: SomeParts,
    /// What of them is in memory at a time. Where nothing is said of it, process 0 says that.
    within: Residency,
    /// What was settled last, and kept of it: the bases of all blocks.
    settled: Option<Settled>,
    kept: Option<Vec<CommittedBase>>,
}

impl<'d> Share<'d> {
    /// Opens the partitions that process number `process` of so many settles.
    ///
    /// # Errors
    /// [`Error::Usage`]: the store has no partitions, or fewer than processes; those of reading it.
    pub fn open(
        disk: &'d dyn Disk,
        dir: &Path,
        process: usize,
        processes: usize,
    ) -> Result<Share<'d>> {
        let parts = open_some_parts(disk, dir, &|part| part % processes.max(1) == process)?;
        check_processes(parts.settings.partitions, processes)?;
        Ok(Share::of(disk, dir, parts, Residency::default()))
    }

    /// Of these partitions of the store in `dir`.
    pub(crate) fn of(
        disk: &'d dyn Disk,
        dir: &Path,
        parts: SomeParts,
        within: Residency,
    ) -> Share<'d> {
        Share {
            disk,
            dir: dir.into(),
            parts,
            within,
            settled: None,
            kept: None,
        }
    }

    /// See [`crate::store::View::digest`].
    pub fn digest(&self) -> u128 {
        self.parts.digest
    }

    /// How many partitions the store has in all.
    pub fn partitions(&self) -> usize {
        self.parts.count
    }

    /// Pages that it has to go over.
    pub fn pages(&self) -> u64 {
        self.pages_and_ghosts().iter().map(|(pages, _)| pages).sum()
    }

    /// Bytes of memory that settling takes: see [`settling_needs`](super::settling_needs).
    pub fn needs(&self, partitions: Option<NonZeroUsize>, threads: usize) -> u64 {
        least(&self.pages_and_ghosts(), 0, partitions, threads)
    }

    fn pages_and_ghosts(&self) -> Vec<(u64, u64)> {
        let blocks = self.parts.blocks.iter();
        let of = |block: &RowBlock| (block.rows.pages(), block.ghosts.count());
        blocks.map(of).collect()
    }

    /// What is asked of a partition, by its place among those of this process.
    ///
    /// # Errors
    /// There is no such partition; those of reading it.
    pub(crate) fn answer(&self, place: usize, asked: Asked) -> Result<Vec<u8>> {
        let part = self
            .parts
            .views
            .get(place)
            .zip(self.parts.blocks.get(place));
        let (view, block) = part.ok_or_else(|| Error::internal("a partition is not here"))?;
        view.answer(asked, &block.ghosts)
    }

    /// Does what process 0 says ([`super::Settle::peers`]), until there is nothing more to do. Where a process was stopped,
    /// `watcher` knows.
    ///
    /// # Errors
    /// Those of reading rows, of writing bases and what waits aside, and of [`crate::rank::settle::Exchange`].
    pub fn work(mut self, workers: &Workers, within: Residency, watcher: &Watcher) -> Result<()> {
        self.within = within;
        while let Some(order) = Order::hear(&workers.peers)? {
            self.obey(order, workers, watcher)?;
        }
        Ok(())
    }

    /// Does what process 0 says.
    ///
    /// # Errors
    /// Those of [`Share::work`].
    pub(crate) fn obey(
        &mut self,
        order: Order,
        workers: &Workers,
        watcher: &Watcher,
    ) -> Result<()> {
        match order {
            Order::Settle(task) => {
                self.settled = None;
                let workers = self.in_turns(task.resident, workers)?;
                self.settled = self.settle(&task, &workers, watcher)?;
            }
            Order::Base { of, beside } => {
                let settled = self.settled.as_ref();
                let settled = settled.ok_or_else(|| Error::internal("nothing is settled"))?;
                self.kept = self.keep(&of, settled, workers, beside)?;
            }
            Order::Named => {
                let kept = self.kept.take().unwrap_or_default();
                let own = base::own_of(&kept, workers);
                self.parts.keep_bases(self.disk, &own)?;
            }
        }
        Ok(())
    }

    /// Who settles, in turns if need be: then no rows stay in memory.
    fn in_turns(&self, resident: Option<NonZeroUsize>, workers: &Workers) -> Result<Workers> {
        let within = match self.within {
            Residency {
                partitions: None,
                memory: None,
                ..
            } => Residency {
                partitions: resident,
                ..Residency::default()
            },
            own => own,
        };
        let pages = self.pages_and_ghosts();
        let within = within.beside(&pages, 0, workers.threads);
        let plan = Plan::new(&pages, 0, workers.threads, within);
        keep_rows(&self.parts.blocks, plan.rows(within));
        Ok(Workers {
            turns: plan.turns(self.disk, &self.dir, workers.peers.process())?,
            ..workers.clone()
        })
    }

    fn settle(&self, task: &Task, workers: &Workers, watcher: &Watcher) -> Result<Option<Settled>> {
        let options = Options {
            spare: task.spare,
            ..Options::until(
                self.parts.settings.config.damping_units(),
                f64::from_bits(task.until),
            )
        };
        let open = |named: &Option<Vec<CommittedBase>>, beside| {
            let own = base::own_of(named.as_ref()?, workers);
            Some(self.parts.bases(self.disk, &own, beside))
        };
        let stored = open(&task.stored, false).transpose();
        let stored = match &stored {
            Ok(bases) => Ok(bases.as_ref().map(|bases| bases.iter().collect())),
            Err(error) => Err(error.again()),
        };
        // What is wrong with bases, process 0 says.
        if let Some(owed) = &task.owed {
            let own = base::own_of(owed, workers);
            let blocks = self.parts.blocks_of(self.disk, &own)?;
            let starting = owed_start(owed, stored, workers);
            let settled = base::settle(&self.dir, starting, &blocks, &options, workers, &mut ());
            return Ok(settled?.0);
        }
        let blocks = &self.parts.blocks;
        let starting = Starting {
            beside: open(&task.beside, true),
            stored,
            places: None,
            records: task.records,
        };
        let mut watching = Watching::new(watcher, None);
        let state = (&*self.dir, starting, &blocks[..]);
        let (settled, _) = settle_blocks(state, &[], &options, workers, &mut watching)?;
        Ok(settled.map(|(settled, _)| settled))
    }

    /// Writes what was settled as the bases of its partitions. What there is of all blocks.
    fn keep(
        &self,
        of: &[OwedBase],
        settled: &Settled,
        workers: &Workers,
        beside: bool,
    ) -> Result<Option<Vec<CommittedBase>>> {
        let homes = self.parts.views.iter().map(|view| BlockHome {
            dir: view.dir().into(),
            identity: view.identity(),
        });
        let homes: Vec<BlockHome> = homes.collect();
        let own = base::own_of(of, workers);
        let (made, _) = base::write(self.disk, &homes, &own, settled, workers, beside)?;
        Ok(made)
    }
}

/// Checks that each of so many processes has a partition.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_processes(partitions: Partitions, processes: usize) -> Result<()> {
    let Some(count) = partitions.split() else {
        let what = "the store has no `partitions` that processes could share";
        return Err(Error::Usage(what.into()));
    };
    if processes == 0 || processes > count as usize {
        return Err(Error::Usage(format!(
            "{processes} processes cannot share {count} `partitions`: there can be as many as partitions at most"
        )));
    }
    Ok(())
}

/// What was settled in blocks, in the order of all pages.
pub(super) struct InOrder {
    pub settled: Settled,
    /// What other processes settled.
    gathered: Gathered,
    /// The block of each page, and its number there; `None`: there is one block.
    order: Option<Arc<Addresses>>,
    /// How far it was read.
    reached: Mutex<Reached>,
}

/// The next page, and by block how many of its pages came before.
#[derive(Default)]
struct Reached {
    page: u64,
    before: Vec<u64>,
}

impl Scores for InOrder {
    fn certificate(&self) -> Option<Certificate> {
        Scores::certificate(&self.settled)
    }

    fn effort(&self) -> Effort {
        self.settled.effort()
    }

    /// From the first page to the last: only so is it known where what pages have lies.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        let Some(order) = &self.order else {
            return self.settled.read(first, len, out);
        };
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if first == 0 {
            *reached = Reached {
                page: 0,
                before: vec![0; self.settled.blocks()],
            };
        }
        if reached.page != first {
            return Err(Error::internal("scores are read in another order"));
        }
        let entries = order.entries(first)?.take(len);
        let place = |entry: Result<Ghost>| entry.map(|Ghost { owner, at, .. }| (owner, at));
        let places = entries.map(place).collect::<Result<Vec<_>>>()?;
        *out = self
            .settled
            .estimates_in(&self.gathered, &places, &mut reached.before)?;
        reached.page += out.len() as u64;
        Ok(())
    }
}
