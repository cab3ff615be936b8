//! The partitions that a process has, open for writing. What is done with those of all processes, each does with its own, in the
//! same order.

mod again;
mod epoch;

pub(crate) use again::Again;
pub(crate) use epoch::Spoiled;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use again::Visits;

use super::aside::Aside;
use super::turns::{Grows, OpenedInMemory};
use crate::batch::split::PartBatch;
use crate::codec::planes;
use crate::disk::Disk;
use crate::engine::{Config, Engine, Resolver, age};
use crate::memory::{self, Crossing, Need, PartsInMemory, log_rows, most_resident};
use crate::model::{Fingerprint, Fingerprints, HashKey, Limits, Time, What};
use crate::rank::settle::Workers;
use crate::rows::{Ghost, PAGES_MAX};
use crate::snapshot::Residency;
use crate::store::base::{BaseState, CommittedBase};
use crate::store::rows::KeepRows;
use crate::store::{
    PartOf, Progress, Settings, Store, View, checkpoint, keep_index, packed, partition_dir,
    unpacked,
};
use crate::threads::dealt;
use crate::{Error, Result};

/// What partitions are opened by: what their store says.
#[derive(Serialize, Deserialize)]
pub(super) struct Opening {
    /// The store's settings, as JSON: for processes that have only partitions.
    pub settings: String,
    pub key: [u64; 2],
    /// For each partition, its commit that belongs to the store's last one, the sum of that, and what is said of its base.
    pub generations: Vec<u64>,
    pub sums: Vec<u128>,
    pub bases: Vec<BaseState>,
    /// Most pages of a partition.
    pub pages: u64,
}

/// What all processes do with their partitions, as process 0 says.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Commit what changed. The store's commit will have this number, after so many records.
    Checkpoint { number: u64, records: u64 },
    /// The store has committed what they did.
    Confirm,
    /// A base is to be made of the next commit, or of none.
    OweBase(bool),
    /// The bases that were owed are these, one for each partition, or there is none.
    NameBase(Option<Vec<CommittedBase>>),
    /// Remove row files that were compacted, but for these of each partition.
    Release(Vec<Option<u64>>),
    /// Leave the index on disk, as of the last commit.
    KeepIndex,
    /// Give up what only more records would need.
    Rest,
    /// An input begins; whether it is noted which pages come back that it visited before.
    BeginInput(bool),
    /// Have no more than so many in memory at a time.
    Reside(usize),
    /// Visits without records begin.
    BeginAgain(Again),
    /// Make these of them, by partition; the latest time of a record.
    VisitAgain {
        visits: Vec<Range<u64>>,
        time: Option<Time>,
    },
}

/// How a partition is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PartState {
    /// Its last commit, and the sum of that.
    pub generation: u64,
    pub sum: u128,
    /// Pages that it knows, and those of them that are others'.
    pub pages: u64,
    pub ghosts: u64,
    pub visited: u64,
    /// Where cash crosses from partition to partition: what it was given of it, less what it gave.
    pub funds: u128,
    /// Visits of pages that the input had visited before, and that were new with it.
    pub came_back: u64,
    /// Bytes of its index, and of its rows as committed.
    pub index: u64,
    pub rows: u64,
    pub base: BaseState,
    /// Why its index on disk was not used.
    pub unused_index: Option<String>,
    /// Those of its process take turns in memory.
    pub takes_turns: bool,
    /// Visits without records that it has in all, if such have begun.
    pub again: u64,
    /// Records and visits of gone pages that it has counted, and links.
    pub gone: u64,
    pub links: u64,
}

impl PartState {
    /// Pages of its own.
    pub fn own(&self) -> u64 {
        self.pages - self.ghosts
    }
}

/// What came of records in a partition. Names are given by their numbers ([`super::numbers`]).
#[derive(Default, Serialize, Deserialize)]
pub(super) struct New {
    /// New pages of its own: the name, and the page.
    own: Vec<(u32, u32)>,
    /// New ghosts, likewise, and whose they are.
    ghosts: Vec<(u32, u32, u32)>,
    /// All pages of its own that were named, which others may ask for.
    named: Vec<(u32, u32)>,
}

/// What process 0 gets of a partition after records were applied.
pub(super) struct Applied {
    /// Its new pages.
    pub own: Vec<(u32, u32)>,
    pub state: PartState,
}

/// The same on its way.
#[derive(Serialize, Deserialize)]
struct SentApplied {
    names: Vec<u8>,
    pages: Vec<u8>,
    state: PartState,
}

impl SentApplied {
    fn of(Applied { own, state }: Applied) -> Result<SentApplied> {
        let (names, pages): (Vec<u32>, Vec<u32>) = own.into_iter().unzip();
        Ok(SentApplied {
            names: put_numbers(&names)?,
            pages: put_numbers(&pages)?,
            state,
        })
    }

    fn taken(self) -> Result<Applied> {
        let names = take_numbers(&self.names)?.into_iter();
        Ok(Applied {
            own: names.zip(take_numbers(&self.pages)?).collect(),
            state: self.state,
        })
    }
}

fn put_numbers(numbers: &[u32]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    planes::put_near(&mut bytes, numbers)?;
    Ok(bytes)
}

fn take_numbers(bytes: &[u8]) -> Result<Vec<u32>> {
    let numbers = planes::all_near(bytes);
    numbers.ok_or_else(|| Error::internal("numbers of a message cannot be read"))
}

/// See the head of the file.
pub(super) struct OwnParts {
    pub(super) parts: Vec<Part>,
    pub workers: Workers,
    config: Config,
    /// Partitions of all processes.
    count: usize,
    /// Cash crosses between them,
    crosses: bool,
    /// and is to be lost or made on the way.
    pub(super) spoiled: Option<Spoiled>,
    /// Most pages of each.
    pub(super) page_limit: u64,
    pub(super) prints: Fingerprints,
    /// By the number of a name: its page in its partition, as far as known.
    named: Vec<Option<u32>>,
    /// How many are in memory at a time.
    pub(super) resident: usize,
    /// Records that wait for the turns of their partitions: of each piece, whether numbering of names restarts with it.
    pub(super) pieces: Vec<bool>,
}

pub(super) struct Part {
    pub(super) number: u32,
    pub(super) engine: Engine<Store>,
    /// What of it lies on disk, once it has waited for its turn.
    pub(super) aside: Option<Aside>,
    resolver: Resolver,
    /// Its ghosts, where cash crosses to their owners.
    ghosts: Vec<Ghost>,
    /// Something was applied since the last commit that the store has confirmed.
    is_changed: bool,
    /// Pages before the input that is read, if it is to be known which come back, and visits of those that did.
    known: Option<u64>,
    came_back: u64,
    /// Visits without records that are to be made.
    again: Option<Visits>,
}

impl OwnParts {
    /// Opens them in the folder `dir` of a store of these settings, or makes them. Whether there is memory for them, is yet to be
    /// [asked](OwnParts::check): process 0 knows what all of a machine need.
    pub fn open(
        disk: &Arc<dyn Disk>,
        (dir, settings): (&Path, &Settings),
        opening: &Opening,
        workers: &Workers,
        within: Residency,
    ) -> Result<OwnParts> {
        let memory = within.memory;
        let count = settings.partitions.count;
        let limits = &Limits {
            pages: opening.pages,
            memory,
            ..settings.limits()
        };
        let none = BaseState::default();
        let loaded = OpenedInMemory::default();
        let open = |_, &mut number: &mut u32| {
            let at = number as usize;
            let part = PartOf {
                key: HashKey(opening.key),
                generation: opening.generations.get(at).copied().unwrap_or(0),
                sum: opening.sums.get(at).copied(),
                base: opening.bases.get(at).unwrap_or(&none),
            };
            let dir = partition_dir(dir, number);
            let settings = settings.of_partition(number);
            let keep = KeepRows::Usual(u64::MAX);
            let opened = Store::open_part(disk.clone(), &dir, &settings, limits, keep, part)?;
            let mut engine = opened.engine;
            if engine.storage().key() != part.key {
                return Err(Error::Conflict(format!(
                    "{}: it is a partition of another store",
                    dir.display()
                )));
            }
            let rows = log_rows(engine.config(), limits.memory) / count as usize;
            engine.cut_log_at(rows.max(1));
            let ghosts = match settings.partitions.epoch {
                Some(_) => engine.storage().ghosts()?,
                None => Vec::new(),
            };
            let mut part = Part {
                number,
                engine,
                aside: None,
                resolver: Resolver::default(),
                ghosts,
                // Its first commit says that it keeps rows, also if no record is for it.
                is_changed: part.generation == 0,
                known: None,
                came_back: 0,
                again: None,
            };
            // How many there is room for, is known once all were opened.
            if !loaded.has_room(within, part.bytes()) {
                part.leave()?;
            }
            Ok(part)
        };
        let mut numbers: Vec<u32> = (0..count)
            .filter(|&number| workers.peers.has(number as usize))
            .collect();
        let resident = within.partitions.map_or(numbers.len(), NonZeroUsize::get);
        let mut own = OwnParts {
            parts: dealt(workers.threads.min(resident), &mut numbers, open)?,
            workers: workers.clone(),
            config: settings.config.clone(),
            count: count as usize,
            crosses: settings.partitions.epoch.is_some(),
            spoiled: None,
            page_limit: opening.pages.min(PAGES_MAX),
            prints: HashKey(opening.key).fingerprints(),
            named: Vec::new(),
            resident: numbers.len(),
            pieces: Vec::new(),
        };
        own.reside(resident)?;
        own.make_room(within.memory, Grows::AtOnce)?;
        Ok(own)
    }

    /// The states of all processes' partitions, which all give at the same time.
    pub fn share_states(&mut self) -> Result<Vec<PartState>> {
        let states = self.states()?;
        self.workers.peers.all(states)
    }

    fn states(&mut self) -> Result<Vec<PartState>> {
        let takes_turns = self.take_turns();
        let parts = self.parts.iter_mut();
        parts.map(|part| part.state(takes_turns)).collect()
    }

    /// Does what process 0 says, as all do at the same time. How all partitions are then; the inner error is one after which
    /// they can go on.
    pub fn obey(&mut self, order: &Order) -> Result<Result<Vec<PartState>>> {
        if let Order::Reside(most) = order {
            self.reside(*most)?;
        }
        let (_, threads) = self.at_a_time();
        let takes_turns = self.take_turns();
        let done = dealt(threads, &mut self.parts, |_, part| {
            part.obey(order)?;
            part.state(takes_turns)
        });
        let is_soft = |_: &Error| matches!(order, Order::KeepIndex);
        self.workers.peers.share(done, is_soft)
    }

    /// Has `apply` apply to each partition what there is for it, up to so many pages; all are in memory.
    pub fn apply(
        &mut self,
        apply: impl Fn(&mut Part, u64) -> Result<New> + Sync,
    ) -> Result<Vec<New>> {
        let limit = self.page_limit;
        let work = |_, part: &mut Part| apply(part, limit);
        dealt(self.workers.threads, &mut self.parts, work)
    }

    /// Numbering of names restarts.
    pub fn forget_names(&mut self) {
        self.named.clear();
    }

    /// The page of a name, if it is known.
    fn find_named(&self, name: u32) -> Option<u32> {
        self.named.get(name as usize).copied().flatten()
    }

    /// That of one which is of a partition of this process, or was answered.
    fn page_named(&self, name: u32) -> Result<u32> {
        let page = self.find_named(name);
        page.ok_or_else(|| Error::internal("a ghost has no page"))
    }

    fn note_named(&mut self, names: impl Iterator<Item = (u32, u32)>) {
        for (name, page) in names {
            let at = name as usize;
            self.named.resize(self.named.len().max(at + 1), None);
            self.named[at] = Some(page);
        }
    }

    /// Sends process 0 what is new, and gives each new ghost the number that its owner has for it; all do this at the same time.
    /// What process 0 gets, of all partitions.
    pub fn meet(&mut self, mut new: Vec<New>) -> Result<Vec<Applied>> {
        self.note_named(new.iter_mut().flat_map(|new| new.named.drain(..)));
        let takes_turns = self.take_turns();
        let parts = self.parts.iter_mut().zip(&new);
        let applied = parts.map(|(part, new)| part.applied(new, takes_turns));
        let applied = applied.collect::<Result<Vec<Applied>>>()?;
        let applied = if self.workers.peers.processes() == 1 {
            applied
        } else {
            self.ask(applied, &new)?
        };
        for (at, new) in new.into_iter().enumerate() {
            for (name, page, owner) in new.ghosts {
                let at_owner = self.page_named(name)?;
                let ghost = Ghost {
                    page,
                    owner,
                    at: at_owner,
                };
                let part = &mut self.parts[at];
                part.engine.storage_mut().add_address(ghost)?;
                if part.engine.ledger().joint().is_some() {
                    part.ghosts.push(ghost);
                }
            }
        }
        Ok(applied)
    }

    /// Asks other processes which pages new ghosts are that are not known, and sends process 0 what was applied. What it gets.
    fn ask(&mut self, applied: Vec<Applied>, new: &[New]) -> Result<Vec<Applied>> {
        let peers = self.workers.peers.clone();
        let mut asked = vec![Vec::new(); peers.processes()];
        for &(name, _, owner) in new.iter().flat_map(|new| &new.ghosts) {
            if self.find_named(name).is_none() {
                asked[peers.process_of(owner as usize)].push(name);
            }
        }
        let applied: Vec<SentApplied> = applied
            .into_iter()
            .map(SentApplied::of)
            .collect::<Result<_>>()?;
        let (mut own, mut messages) = (Some(packed(&applied)?), Vec::new());
        for asked in &mut asked {
            asked.sort_unstable();
            asked.dedup();
            // Only process 0 needs what was applied.
            let applied = own.take().unwrap_or_else(|| vec![0]);
            messages.push(packed(&(applied, put_numbers(asked)?))?);
        }
        let (mut heard, mut answers) = (Vec::new(), Vec::new());
        for message in peers.exchange(messages)? {
            let (applied, asked): (Vec<u8>, Vec<u8>) = unpacked(&message)?;
            heard.push(applied);
            let pages = take_numbers(&asked)?.into_iter();
            let pages = pages.map(|name| self.page_named(name));
            answers.push(put_numbers(&pages.collect::<Result<Vec<u32>>>()?)?);
        }
        for (asked, answers) in asked.into_iter().zip(peers.exchange(answers)?) {
            let pages = take_numbers(&answers)?;
            if pages.len() != asked.len() {
                return Err(Error::internal("a ghost was not answered"));
            }
            self.note_named(asked.into_iter().zip(pages));
        }
        let applied: Vec<SentApplied> = peers.in_order(&heard)?;
        applied.into_iter().map(SentApplied::taken).collect()
    }

    /// Which of these names, with the partitions that they are of, are not known in those of all processes, which all ask at
    /// the same time; of records that wait nothing is known. By their places.
    pub fn unknown(&self, names: &[(u32, Fingerprint)]) -> Result<Vec<u32>> {
        let peers = &self.workers.peers;
        let mut unknown = Vec::new();
        for (place, &(owner, print)) in (0u32..).zip(names) {
            if !peers.has(owner as usize) {
                continue;
            }
            let part = self.parts.get(peers.place(owner as usize));
            let page = part.map(|part| part.find(print)).transpose()?;
            if page.flatten().is_none() {
                unknown.push(place);
            }
        }
        let mut all = Vec::new();
        for heard in peers.exchange(vec![packed(&unknown)?; peers.processes()])? {
            all.extend(unpacked::<Vec<u32>>(&heard)?);
        }
        Ok(all)
    }

    /// Has so many in memory that they need no more than there is for them.
    ///
    /// # Errors
    /// [`Error::OverBudget`]: one at a time needs more; those of putting the others aside.
    pub fn fit(&mut self, budget: Option<u64>, grows: Grows) -> Result<()> {
        self.make_room(budget, grows)?;
        self.check(budget)
    }

    /// The same, as far as that is possible.
    fn make_room(&mut self, budget: Option<u64>, grows: Grows) -> Result<()> {
        let Some(budget) = budget else { return Ok(()) };
        let (pages, share) = self.share_of_memory();
        let grown = grows.of(pages);
        let beside = self.crossing(grown).total();
        let resident = most_resident(&self.config, &[share], grown, (budget, beside));
        if resident < self.resident {
            self.reside(resident)?;
        }
        Ok(())
    }

    /// Whether they have the memory that they need.
    ///
    /// # Errors
    /// [`Error::OverBudget`]: they have not.
    pub fn check(&self, budget: Option<u64>) -> Result<()> {
        let (pages, _) = self.share_of_memory();
        memory::check(pages, budget, |budget| self.need(budget).total())
    }

    /// Bytes of a budget that they leave.
    pub fn memory_left(&self, budget: Option<u64>) -> Option<u64> {
        budget.map(|budget| budget.saturating_sub(self.need(budget).total()))
    }

    /// What they need of a budget.
    fn need(&self, budget: u64) -> Need {
        let (pages, share) = self.share_of_memory();
        let pages = (pages, pages);
        Need::of_parts(&self.config, &[share], pages, Some(budget)).with(self.crossing(pages))
    }

    /// What it takes with `pages` pages, of which they know `known`, that cash crosses; what snapshots take of it, process 0
    /// counts.
    fn crossing(&self, pages: (u64, u64)) -> Crossing {
        if !self.crosses {
            return Crossing::default();
        }
        let ghosts = self.parts.iter().map(|part| part.ghosts.len() as u64);
        Crossing::new(pages, ghosts.sum())
    }

    /// Their pages, and what they are in memory.
    fn share_of_memory(&self) -> (u64, PartsInMemory) {
        let known = |part: &Part| part.engine.ledger().totals().pages;
        let own = |part: &Part| known(part) - part.engine.storage().addresses();
        let parts = self.parts.iter();
        let share = PartsInMemory {
            parts: parts
                .map(|part| (known(part), part.index_bytes()))
                .collect(),
            resident: self.resident,
            threads: self.workers.threads,
        };
        (self.parts.iter().map(own).sum(), share)
    }

    /// Their last committed states, with their numbers.
    pub fn views(&self) -> Result<(Vec<usize>, Vec<View>)> {
        let views = self.parts.iter().map(|part| part.engine.storage().view());
        let numbers = self.parts.iter().map(|part| part.number as usize);
        Ok((numbers.collect(), views.collect::<Result<_>>()?))
    }

    /// Their stores.
    pub fn stores_mut(&mut self) -> impl Iterator<Item = &mut Store> {
        self.parts.iter_mut().map(|part| part.engine.storage_mut())
    }
}

impl Part {
    fn state(&mut self, takes_turns: bool) -> Result<PartState> {
        let pages = self.engine.ledger().totals().pages;
        let index = self.index_bytes();
        let counters = self.engine.counters();
        let (visited, gone, links) = (counters.visited, counters.gone, counters.links);
        let joint = self.engine.ledger().joint();
        let store = self.engine.storage_mut();
        Ok(PartState {
            generation: store.generation(),
            sum: store.sum()?,
            pages,
            ghosts: store.addresses(),
            visited,
            funds: joint.map_or(0, |joint| joint.funds),
            came_back: self.came_back,
            index,
            rows: store
                .rows_retention()
                .kept()
                .map_or(0, |kept| kept.lengths.data),
            base: store.base_state(),
            unused_index: store.unused_index().map(|error| error.to_string()),
            takes_turns,
            again: self.again.as_ref().map_or(0, Visits::all),
            gone,
            links,
        })
    }

    fn applied(&mut self, new: &New, takes_turns: bool) -> Result<Applied> {
        let mut state = self.state(takes_turns)?;
        state.ghosts += new.ghosts.len() as u64;
        Ok(Applied {
            own: new.own.clone(),
            state,
        })
    }

    fn obey(&mut self, order: &Order) -> Result<()> {
        let store = self.engine.storage_mut();
        match order {
            Order::Checkpoint { number, records } => {
                if self.is_changed {
                    self.with_cash(|engine| checkpoint(engine, &Progress::default()))?;
                }
                self.engine.storage_mut().note_owed(*number, *records);
                Ok(())
            }
            Order::Confirm => {
                let is_changed = std::mem::take(&mut self.is_changed);
                store.confirm(is_changed)
            }
            Order::OweBase(owed) => {
                store.owe_base(*owed);
                Ok(())
            }
            Order::NameBase(made) => {
                let made = made.as_ref();
                store.name_base(made.and_then(|made| made.get(self.number as usize).copied()));
                Ok(())
            }
            Order::Release(named) => {
                store.release_rows(named.get(self.number as usize).copied().flatten())
            }
            Order::KeepIndex => self.with_index(keep_index),
            Order::Rest => {
                self.ghosts = Vec::new();
                self.rest()
            }
            Order::Reside(_) => Ok(()),
            Order::BeginAgain(again) => self.begin_again(*again),
            Order::VisitAgain { visits, time } => {
                let visits = visits.get(self.number as usize);
                visits.map_or(Ok(()), |visits| self.visit_again(visits, *time))
            }
            Order::BeginInput(grouped) => {
                let pages = self.engine.ledger().totals().pages;
                self.known = grouped.then_some(pages);
                self.came_back = 0;
                Ok(())
            }
        }
    }

    /// Applies its batch. What came of it.
    pub(super) fn apply(&mut self, made: &PartBatch, limit: u64) -> Result<New> {
        self.engine.make_room(made.names.len() as u64, limit)?;
        let first = self.engine.ledger().totals().pages;
        let mut names = self.resolver.begin(&made.batch);
        for entry in &made.batch.entries {
            if let Some(known) = self.known.filter(|_| entry.what == What::Visit) {
                let page = made.batch.fingerprints[entry.source as usize];
                let page = self.engine.page(page).filter(|page| page.0 >= known);
                let ages = self.engine.ledger();
                let comes_back = page.is_some_and(|page| ages.age(page) != age::NEVER);
                self.came_back += u64::from(comes_back);
            }
            names.apply_in_room(&mut self.engine, entry)?;
        }
        names.admit_rest(&mut self.engine)?;
        let pages = self.engine.ledger().totals().pages;
        let mut new = New {
            named: Vec::with_capacity(made.names.len()),
            ..New::default()
        };
        let mut next = first;
        // Names are admitted in their order, and so the pages of new ones follow on.
        let names = made.names.iter().zip(&made.batch.owners);
        for (page, (&name, &owner)) in self.resolver.own().iter().zip(names) {
            if owner == self.number {
                new.named.push((name, page.0 as u32));
            }
            if page.0 != next {
                continue;
            }
            next += 1;
            if owner == self.number {
                new.own.push((name, page.0 as u32));
            } else {
                new.ghosts.push((name, page.0 as u32, owner));
            }
        }
        self.is_changed |= !made.batch.entries.is_empty() || pages > first;
        Ok(new)
    }
}
