//! The partitions of a store that is open for writing. Records are queued as they come, and applied some at a time: each
//! partition takes those of its own pages, on as many threads as there are to be, and in as many processes (`own`, `follow`).
//!
//! What comes of it is the same as if one record was applied after the other: see [`crate::batch::split`]. The pages that
//! are new in the stream are then put in its order, and every new ghost gets the number that its owner has for it.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Holder;
use super::again::Pace;
use super::follow::{APPLY, Say, announce, ask};
use super::numbers::Numbers;
use super::own::{Applied, New, Opening, Order, OwnParts, PartState, Spoiled};
use super::turns::{Grows, worth_a_turn};
use super::wire;
use crate::batch::split::{PartBatch, Slots, Split};
use crate::disk::Disk;
use crate::engine::{Config, Engine, check_funds};
use crate::memory::{self, CASH, Crossing, Need, PartsInMemory, most_resident, residing};
use crate::model::{Batch, Entry, Fingerprint, Limits, Time};
use crate::rank::settle::{Peers, Workers};
use crate::rows::{Ghost, PAGES_MAX};
use crate::snapshot::{Residency, check_processes};
use crate::store::base::{BaseState, CommittedBase, OwedBase};
use crate::store::rows::KeepRows;
use crate::store::{Ask, Progress, Settings, Store, View, checkpoint, make_partitions};
use crate::threads::dealt;
use crate::{Error, Result};

/// See the head of the file.
pub(crate) struct Parts {
    own: OwnParts,
    /// How those of all processes are.
    pub(super) states: Vec<PartState>,
    /// How visits without records go from partition to partition, while there are such.
    pub(super) pace: Pace,
    /// How processes speak of the names of the batch that records are queued of.
    numbers: Numbers,
    /// Nothing of that batch was applied yet.
    is_new_batch: bool,
    /// Of the names of the batch so many were given with records that are applied, or wait for turns.
    named: u32,
    /// Which names of the batch may be of new pages, once that was asked.
    unknown: Option<Unknown>,
    /// What waits for turns.
    waiting: Waiting,
    /// It is noted which pages of the input come back.
    grouped: bool,
    /// Bytes of memory that there are.
    memory: Option<u64>,
    /// The first record that is queued, and the latest time of each, as far as known then.
    first: usize,
    times: Vec<Option<Time>>,
    /// Records of an epoch, if cash crosses.
    epoch: Option<u64>,
    /// Why indexes on disk were not used when partitions were opened.
    unused_indexes: Vec<String>,
    /// Bytes that rows may take, all together.
    rows_most: u64,
    config: Config,
    /// Most pages that there may be.
    page_limit: u64,
    spare: Mutex<Vec<Spare>>,
}

impl Parts {
    /// Opens the partitions of a store that is open, or makes them. `None`: it has none.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        (keep_rows, workers, resident): (KeepRows, &Workers, Option<NonZeroUsize>),
        whole: &mut Engine<Store>,
    ) -> Result<Option<Parts>> {
        let processes = workers.peers.processes();
        if settings.partitions.split().is_none() {
            if processes > 1 {
                check_processes(settings.partitions, processes)?;
            }
            return Ok(None);
        }
        check_processes(settings.partitions, processes)?;
        if keep_rows == KeepRows::None {
            return Err(Error::Usage(
                "`keep_rows` none: a store with `partitions` keeps the links of all pages".into(),
            ));
        }
        let known = whole.storage().addresses();
        if known > limits.pages {
            return Err(Error::Conflict(format!(
                "{}: knows {known} pages, more than `limit_pages` {}; raise it",
                dir.display(),
                limits.pages
            )));
        }
        make_partitions(&**disk, dir)?;
        let store = whole.storage();
        let settings_text = serde_json::to_string(settings);
        let opening = Opening {
            settings: settings_text.map_err(|error| Error::internal(error.to_string()))?,
            key: store.key().0,
            generations: store.generations().to_vec(),
            sums: store.sums().to_vec(),
            bases: store.bases().to_vec(),
            pages: limits.pages.min(PAGES_MAX),
        };
        announce(&workers.peers, &Say::Open(&opening))?;
        let within = Residency {
            partitions: resident,
            memory: limits.memory,
            alone: false,
        };
        let mut own = OwnParts::open(disk, (dir, settings), &opening, workers, within)?;
        let mut states = own.share_states()?;
        let held = states.iter().map(|state| state.rows).sum();
        let rows_most = whole.storage().rows_most(keep_rows, held).unwrap_or(held);
        whole.storage_mut().remember_most(keep_rows);
        let unused = states.iter_mut().rev();
        let mut parts = Parts {
            unused_indexes: unused
                .filter_map(|state| state.unused_index.take())
                .collect(),
            states,
            pace: Pace::default(),
            own,
            numbers: Numbers::default(),
            is_new_batch: true,
            named: 0,
            unknown: None,
            waiting: Waiting::default(),
            grouped: false,
            memory: limits.memory,
            first: 0,
            times: Vec::new(),
            config: settings.config.clone(),
            epoch: settings.partitions.epoch,
            page_limit: limits.pages,
            rows_most,
            spare: Mutex::default(),
        };
        if parts.pages() != known {
            let path = dir.join(crate::store::addresses::ADDRESSES);
            let own = parts.pages();
            let what = format!("{known} pages, where the partitions have {own}");
            return Err(Error::damaged(path, what));
        }
        memory::check(known, limits.memory, |budget| {
            parts.need(known, 0, Some(budget)).total()
        })?;
        let law = parts.check_law(whole);
        law.map_err(|what| Error::damaged(dir.join("store.redb"), what))?;
        parts.fit()?;
        parts.note_visited(whole);
        Ok(Some(parts))
    }

    /// Who works on them.
    pub fn workers(&self) -> &Workers {
        &self.own.workers
    }

    fn peers(&self) -> &Peers {
        &self.own.workers.peers
    }

    /// Has all processes do something with their partitions. The inner error is one after which they can go on.
    pub(super) fn order(&mut self, order: Order) -> Result<Result<()>> {
        announce(self.peers(), &Say::Order(&order))?;
        let done = self.own.obey(&order)?;
        Ok(done.map(|states| self.states = states))
    }

    /// Records of this batch come next.
    pub fn begin(&mut self, batch: &Batch) {
        debug_assert!(self.times.is_empty());
        debug_assert_eq!(batch.owners.len(), batch.fingerprints.len());
        self.named = 0;
        self.unknown = None;
        self.is_new_batch = true;
    }

    /// Queues the next record of the batch.
    pub fn queue(&mut self, at: usize, time: Option<Time>) {
        if self.times.is_empty() {
            self.first = at;
        }
        self.times.push(time);
    }

    /// Applies the records that are queued.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn flush(&mut self, whole: &mut Engine<Store>, batch: &Batch) -> Result<()> {
        if self.times.is_empty() {
            return Ok(());
        }
        let applied = self.apply(whole, batch);
        self.times.clear();
        applied.inspect_err(|_| whole.storage_mut().fail())
    }

    /// Checks that with the pages that an entry brings, and those before it that were not applied yet, there are no more
    /// than `limit`. Where it may be that there are, the records before it are applied first.
    ///
    /// # Errors
    /// [`Error::TooManyPages`], and those of [`Parts::flush`].
    pub fn check_room(
        &mut self,
        whole: &mut Engine<Store>,
        batch: &Batch,
        entry: &Entry,
        limit: u64,
    ) -> Result<()> {
        let end = entry.names_end;
        if self.may_be(whole, end) <= limit {
            return Ok(());
        }
        if self.unknown.is_none() {
            self.find_unknown(batch)?;
        }
        if self.may_be(whole, end) > limit {
            self.flush(whole, batch)?;
            self.catch_up(whole)?;
            self.find_unknown(batch)?;
        }
        if self.may_be(whole, end) <= limit {
            Ok(())
        } else {
            Err(Error::TooManyPages {
                limit,
                keeps_links: limit == PAGES_MAX,
            })
        }
    }

    /// Most pages that there may be with those of the batch's names up to here.
    fn may_be(&self, whole: &Engine<Store>, end: u32) -> u64 {
        whole.storage().addresses() + self.waiting.new + self.may_be_new(end)
    }

    /// Of the names of the batch, from those on that were given, up to here: how many may be of new pages.
    fn may_be_new(&self, end: u32) -> u64 {
        match &self.unknown {
            None => end.saturating_sub(self.named).into(),
            Some(unknown) => unknown.between(self.named, end),
        }
    }

    /// Finds which names of the batch, from those on that were given, are not known.
    fn find_unknown(&mut self, batch: &Batch) -> Result<()> {
        let first = self.named as usize;
        let owners = batch.owners.iter().copied();
        let names = owners.zip(batch.fingerprints.iter().copied());
        let names: Vec<(u32, Fingerprint)> = names.skip(first).collect();
        announce(self.peers(), &Say::Unknown(&names))?;
        let mut places = self.own.unknown(&names)?;
        places.sort_unstable();
        let first = self.named;
        let names = places.into_iter().map(|place| first + place).collect();
        self.unknown = Some(Unknown { names });
        Ok(())
    }

    /// Whether partitions of this process or of another take turns in memory. Then all records wait, until it is worth a turn
    /// of each.
    pub(super) fn take_turns(&self) -> bool {
        self.own.take_turns() || self.states.iter().any(|state| state.takes_turns)
    }

    fn apply(&mut self, whole: &mut Engine<Store>, batch: &Batch) -> Result<()> {
        let workers = self.own.workers.clone();
        let begins =
            std::mem::take(&mut self.is_new_batch) && self.numbers.begin(batch, &workers.peers)?;
        let (count, named) = (self.states.len() as u32, self.named);
        let split = Split::new(batch, (self.first, named), &self.times, count);
        let names_end = split.names_end;
        let wait = self.take_turns();
        let dealing = Dealing {
            batch,
            split,
            spare: &self.spare,
        };
        let sent = dealing.send(&mut self.numbers, (&workers, count), (begins, wait))?;
        let numbers = &self.numbers;
        let pack = |number: u32| {
            dealing.part(
                number,
                numbers,
                |_| false,
                |names, made| Ok((wire::pack(number, made, true)?, names.len())),
            )
        };
        if wait {
            let own = self.own.wait(begins, pack)?;
            self.waiting.bytes += own + sent;
            self.waiting.new += self.may_be_new(names_end);
            self.named = names_end;
            return if self.waiting.bytes >= self.worth_a_turn() {
                self.catch_up(whole)
            } else {
                Ok(())
            };
        }
        self.named = names_end;
        if begins {
            self.own.forget_names();
        }
        let new = self.own.apply(|part, limit| {
            dealing.part(
                part.number,
                numbers,
                |_| false,
                |_, made| part.apply(made, limit),
            )
        })?;
        self.meet(whole, new)?;
        self.fit()?;
        self.note_visited(whole);
        Ok(())
    }

    /// Bytes of records that are worth a turn.
    fn worth_a_turn(&self) -> u64 {
        let state = |state: &PartState| state.pages * CASH + state.index;
        worth_a_turn(self.states.iter().map(state).sum())
    }

    /// Applies the records that wait for turns.
    ///
    /// # Errors
    /// Those of reading and writing, which are final.
    pub fn catch_up(&mut self, whole: &mut Engine<Store>) -> Result<()> {
        if self.waiting.bytes == 0 {
            return Ok(());
        }
        let done = self.take_a_turn(whole);
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    fn take_a_turn(&mut self, whole: &mut Engine<Store>) -> Result<()> {
        announce(self.peers(), &Say::TakeATurn)?;
        for piece in 0..self.own.take_a_turn()? {
            let new = self.own.result(piece)?;
            self.meet(whole, new)?;
        }
        self.own.end_turn()?;
        self.waiting = Waiting::default();
        self.fit()?;
        self.note_visited(whole);
        Ok(())
    }

    /// Puts new pages in the order of the stream.
    fn meet(&mut self, whole: &mut Engine<Store>, new: Vec<New>) -> Result<()> {
        let applied = self.own.meet(new)?;
        let mut pages: Vec<(u32, u32, u32)> = Vec::new();
        for (owner, Applied { own, .. }) in (0..).zip(&applied) {
            pages.extend(own.iter().map(|&(name, at)| (name, owner, at)));
        }
        pages.sort_unstable();
        if self.epoch.is_some() && !pages.is_empty() {
            whole.note_admission(whole.storage().addresses())?;
        }
        for (_, owner, at) in pages {
            let page = whole.storage().addresses() as u32;
            whole.storage_mut().add_address(Ghost { page, owner, at })?;
        }
        self.states = applied.into_iter().map(|part| part.state).collect();
        Ok(())
    }

    /// Has fewer partitions in memory at a time, where there is no room for more.
    fn fit(&mut self) -> Result<()> {
        let Some(budget) = self.memory else {
            return Ok(());
        };
        let grows = if self.take_turns() {
            Grows::InTurns
        } else {
            Grows::AtOnce
        };
        let pages = grows.of(self.pages());
        let within = (budget, self.crossing(pages).total());
        let most = most_resident(&self.config, &self.in_memory(), pages, within);
        if most >= self.own.resident {
            Ok(())
        } else if self.peers().is_one_machine() {
            self.order(Order::Reside(most))?
        } else {
            self.own.reside(most)
        }
    }

    /// What it takes with `pages` pages, of which the partitions know `known`, that cash crosses.
    fn crossing(&self, pages: (u64, u64)) -> Crossing {
        if self.epoch.is_none() {
            return Crossing::default();
        }
        let (peers, here) = (self.peers(), self.processes_here());
        let states = self.states.iter().enumerate();
        let own = states.filter(|(number, _)| here.contains(&peers.process_of(*number)));
        let own = own.map(|(_, state)| state.ghosts).sum();
        let all = self.states.iter().map(|state| state.ghosts).sum();
        let parts = self.states.len() as u64;
        Crossing::new(pages, own).with_snapshots(&self.config, parts, pages, all)
    }

    /// The processes on this machine.
    fn processes_here(&self) -> Range<usize> {
        let peers = self.peers();
        if peers.is_one_machine() {
            0..peers.processes()
        } else {
            peers.process()..peers.process() + 1
        }
    }

    /// The partitions of processes on this machine.
    fn in_memory(&self) -> Vec<PartsInMemory> {
        let (peers, here) = (self.peers(), self.processes_here());
        let share = |process: usize| {
            let states = self.states.iter().enumerate();
            let its = states.filter(|(number, _)| peers.process_of(*number) == process);
            PartsInMemory {
                parts: its.map(|(_, state)| (state.pages, state.index)).collect(),
                resident: self.own.resident,
                threads: self.own.workers.threads,
            }
        };
        here.map(share).collect()
    }

    /// How many partitions of a process are in memory at a time, and how many it has, if they take turns.
    pub fn turns(&self) -> Option<(usize, usize)> {
        let own = &self.own;
        own.take_turns().then_some((own.resident, own.parts.len()))
    }

    /// Returns whether an epoch ends with so many records.
    pub fn ends_epoch(&self, records: u64) -> bool {
        self.epoch
            .is_some_and(|epoch| records.is_multiple_of(epoch))
    }

    /// How many records are left of the epoch that is running after so many.
    pub(super) fn left_of_epoch(&self, records: u64) -> u64 {
        self.epoch.map_or(u64::MAX, |epoch| epoch - records % epoch)
    }

    /// An epoch is over: all its records were applied. The round ends with it if it is full, or it `ends_round` anyhow.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn end_epoch(&mut self, whole: &mut Engine<Store>, ends_round: bool) -> Result<()> {
        let Some(records) = self.epoch else {
            return Ok(());
        };
        self.catch_up(whole)?;
        let ended = self.try_end_epoch(whole, (records, ends_round));
        ended.inspect_err(|_| whole.storage_mut().fail())
    }

    fn try_end_epoch(
        &mut self,
        whole: &mut Engine<Store>,
        (records, ends_round): (u64, bool),
    ) -> Result<()> {
        let pages = whole.storage().addresses();
        let ends_round = whole.fills_round(records) || ends_round;
        announce(self.peers(), &Say::EndEpoch(ends_round))?;
        self.own.end_epoch(whole, pages, ends_round)
    }

    /// See [`Spoiled`].
    pub fn spoil_epochs(&mut self, how: Spoiled) {
        self.own.spoiled = Some(how);
    }

    /// Where cash crosses, none was lost or made on the way.
    fn check_law(&self, whole: &Engine<Store>) -> Result<(), String> {
        let Some(joint) = whole.ledger().joint() else {
            return Ok(());
        };
        let funds = self.states.iter().map(|state| state.funds);
        check_funds(funds.chain([joint.funds]), whole.storage().addresses())
    }

    /// Takes the count of pages that were visited from the partitions.
    pub(super) fn note_visited(&self, whole: &mut Engine<Store>) {
        whole.set_visited(self.states.iter().map(|state| state.visited).sum());
    }

    /// Makes all durable: the partitions first, then the store.
    ///
    /// # Errors
    /// Those of writing, after which nothing more is written; [`Error::Conflict`]: rows take more than they may.
    pub fn checkpoint(&mut self, whole: &mut Engine<Store>, progress: &Progress) -> Result<()> {
        whole.storage().check_writes()?;
        whole.check_times()?;
        let done = self.try_checkpoint(whole, progress);
        // Partitions can go back by one commit, and not by two.
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    fn try_checkpoint(&mut self, whole: &mut Engine<Store>, progress: &Progress) -> Result<()> {
        self.catch_up(whole)?;
        let (number, records) = (whole.storage().generation() + 1, whole.counters().records);
        self.order(Order::Checkpoint { number, records })??;
        self.check_law(whole).map_err(Error::internal)?;
        self.check_rows(whole)?;
        let commits = self.states.iter();
        let commits = commits.map(|state| (state.generation, state.sum));
        whole.storage_mut().set_parts(commits.collect());
        whole.storage_mut().set_bases(self.bases());
        checkpoint(whole, progress)?;
        self.order(Order::Confirm)?
    }

    /// What there is of each one's base, as the store's next commit is to say it.
    fn bases(&self) -> Vec<BaseState> {
        self.states.iter().map(|state| state.base).collect()
    }

    /// A base is to be made of the checkpoint that comes, or of none.
    ///
    /// # Errors
    /// A process is lost.
    pub fn owe_base(&mut self, owed: bool) -> Result<()> {
        self.order(Order::OweBase(owed))?
    }

    /// The base that the last checkpoint owes, of each.
    pub fn owed_base(&self) -> Option<Vec<OwedBase>> {
        self.states.iter().map(|state| state.base.owed).collect()
    }

    /// The base that was owed is this, or there is none. The next checkpoint says so, or, where none comes, a commit `now`.
    ///
    /// # Errors
    /// Those of writing, after which nothing more is written.
    pub fn name_base(
        &mut self,
        whole: &mut Engine<Store>,
        made: Option<Vec<CommittedBase>>,
        now: bool,
    ) -> Result<()> {
        self.order(Order::NameBase(made))??;
        if !now {
            return Ok(());
        }
        whole.storage_mut().set_bases(self.bases());
        let done = whole.storage_mut().commit_base();
        let done = done.and_then(|()| self.order(Order::Confirm)?);
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    /// The stores of this process's.
    pub fn stores_mut(&mut self) -> impl Iterator<Item = &mut Store> {
        self.own.stores_mut()
    }

    fn check_rows(&self, whole: &Engine<Store>) -> Result<()> {
        let bytes: u64 = self.states.iter().map(|state| state.rows).sum();
        if bytes <= self.rows_most {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{}: links take {}, more than `keep_rows` {}, and a store with partitions cannot go on without them; give \
             more, and the same command goes on from the last checkpoint",
            whole.storage().dir().display(),
            crate::model::human(bytes),
            self.rows_most
        )))
    }

    /// The last committed state of the store, with those of its partitions.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn view(&self, disk: &dyn Disk, whole: View) -> Result<View> {
        let peers = self.peers();
        announce(peers, &Say::View)?;
        let (here, views) = self.own.views()?;
        let seen = peers.all(views.iter().map(View::seen).collect())?;
        let ask: Option<Ask> = (peers.processes() > 1).then(|| ask(peers));
        whole.with_some_parts(disk, (here, views), seen, ask)
    }

    /// Removes row files that were compacted, but for those that readers of the current snapshot use.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn release_rows(&mut self, named: &[Option<u64>]) -> Result<()> {
        self.order(Order::Release(named.to_vec()))?
    }

    /// Leaves the index of each on disk, as of the last commit.
    ///
    /// # Errors
    /// [`Error::Io`]: some have none, or the one before.
    pub fn keep_index(&mut self) -> Result<()> {
        self.order(Order::KeepIndex)?
    }

    /// Why an index on disk was not used, since this was last asked.
    pub fn unused_index(&mut self) -> Option<Error> {
        self.unused_indexes.pop().map(Error::Conflict)
    }

    /// An input begins. `grouped`: it is noted which pages come back that it visited before.
    ///
    /// # Errors
    /// A process is lost.
    pub fn begin_input(&mut self, whole: &mut Engine<Store>, grouped: bool) -> Result<()> {
        if grouped || self.grouped {
            self.catch_up(whole)?;
        }
        self.grouped = grouped;
        self.order(Order::BeginInput(grouped))?
    }

    /// Visits of pages that this input had visited before, and that were new with it.
    ///
    /// # Errors
    /// Those of applying what waits.
    pub fn came_back(&mut self, whole: &mut Engine<Store>) -> Result<u64> {
        if self.grouped {
            self.catch_up(whole)?;
        }
        Ok(self.states.iter().map(|state| state.came_back).sum())
    }
}

/// Records that wait for turns.
#[derive(Default)]
struct Waiting {
    bytes: u64,
    /// Pages that they bring at most.
    new: u64,
}

/// The names of a batch that were not known when that was asked.
struct Unknown {
    names: Vec<u32>,
}

impl Unknown {
    /// How many there are of them, from one name to before another.
    fn between(&self, from: u32, to: u32) -> u64 {
        let before = |end: u32| self.names.partition_point(|&name| name < end);
        before(to).saturating_sub(before(from)) as u64
    }
}

/// Records of a batch on their way to partitions.
struct Dealing<'d> {
    batch: &'d Batch,
    split: Split<'d>,
    spare: &'d Mutex<Vec<Spare>>,
}

/// What partitions' batches are made in, one after the other.
#[derive(Default)]
struct Spare {
    slots: Slots,
    made: PartBatch,
    names: Vec<u32>,
}

impl Dealing<'_> {
    /// Does work on those of a partition, which `knows` names of its own: the names in the batch, and with numbers for these.
    fn part<T>(
        &self,
        number: u32,
        numbers: &Numbers,
        knows: impl Fn(u32) -> bool,
        work: impl FnOnce(&[u32], &PartBatch) -> Result<T>,
    ) -> Result<T> {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = spare().pop().unwrap_or_default();
        let Spare { slots, made, names } = &mut used;
        made.clear();
        self.split.part(number, (slots, made), knows);
        names.clear();
        names.extend(made.names.iter().map(|&name| numbers.of(name)));
        std::mem::swap(names, &mut made.names);
        let done = work(names, made);
        spare().push(used);
        done
    }

    /// Sends the other processes what there is for their partitions, of so many: whether numbering restarts with it, and whether
    /// it waits. How many bytes.
    fn send(
        &self,
        numbers: &mut Numbers,
        (workers, count): (&Workers, u32),
        (begins, wait): (bool, bool),
    ) -> Result<u64> {
        let peers = &workers.peers;
        if peers.processes() == 1 {
            return Ok(0);
        }
        let others = (0..count).filter(|&number| !peers.has(number as usize));
        let mut others: Vec<u32> = others.collect();
        let packed = dealt(workers.threads, &mut others, |_, &mut number| {
            let process = peers.process_of(number as usize);
            // What waits is applied when other names may be known.
            let knows = |name| !wait && numbers.is_known(process, name);
            self.part(number, numbers, knows, |names, made| {
                Ok((names.to_vec(), wire::pack(number, made, wait)?))
            })
        })?;
        let mut messages = vec![vec![APPLY, begins.into(), wait.into()]; peers.processes()];
        for (process, message) in messages.iter_mut().enumerate().filter(|_| !wait) {
            if process != peers.process() {
                let its = others.iter().zip(&packed);
                let its = its.filter(|(number, _)| peers.process_of(**number as usize) == process);
                let names = its.flat_map(|(_, (names, _))| names).copied();
                let new = numbers.introduce(self.batch, names, (peers, process))?;
                message.extend(new);
            }
        }
        for (&number, (names, records)) in others.iter().zip(&packed) {
            let message = &mut messages[peers.process_of(number as usize)];
            wire::put(message, number, names.len(), records);
        }
        peers.exchange(messages)?;
        Ok(packed.iter().map(|(_, records)| records.len() as u64).sum())
    }
}

impl Holder for Parts {
    fn pages(&self) -> u64 {
        self.states.iter().map(PartState::own).sum()
    }

    fn page_limit(&self) -> u64 {
        self.page_limit
    }

    fn need(&self, pages: u64, _names: u64, budget: Option<u64>) -> Need {
        let pages = (self.pages(), pages);
        let mut shares = self.in_memory();
        let crossing = self.crossing(pages);
        if let Some(budget) = budget {
            // With more pages, fewer partitions are in memory at a time.
            let within = (budget, crossing.total());
            shares = residing(&shares, most_resident(&self.config, &shares, pages, within));
        }
        Need::of_parts(&self.config, &shares, pages, budget).with(crossing)
    }

    fn rest(&mut self) -> Result<()> {
        self.order(Order::Rest)?
    }
}
