//! The partitions of a store that is open for writing. Records are queued as they come, and applied some at a time: each
//! partition takes those of its own pages, on as many threads as there are to be, and in as many processes (`own`, `follow`).
//!
//! What comes of it is the same as if one record was applied after the other: see [`crate::batch::split`]. The pages that
//! are new in the stream are then put in its order, and every new ghost gets the number that its owner has for it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Holder;
use super::follow::{APPLY, Say, announce, ask_history};
use super::own::{Applied, Opening, Order, OwnParts, PartState};
use super::wire;
use crate::batch::split::{PartBatch, Slots, Split, partition_of};
use crate::disk::Disk;
use crate::engine::{Config, Engine};
use crate::memory::Need;
use crate::model::{Batch, Entry, Fingerprint, Limits, Time};
use crate::rank::settle::{Peers, Workers};
use crate::rows::{Ghost, PAGES_MAX};
use crate::snapshot::check_processes;
use crate::store::base::{BaseState, CommittedBase, OwedBase};
use crate::store::rows::KeepRows;
use crate::store::{AskHistory, Progress, Settings, Store, View, checkpoint, make_partitions};
use crate::threads::dealt;
use crate::{Error, Result};

/// See the head of the file.
pub(crate) struct Parts {
    own: OwnParts,
    /// How those of all processes are.
    states: Vec<PartState>,
    /// The partition of each name of the batch that records are queued of.
    owners: Vec<u32>,
    /// Nothing of that batch was applied yet.
    is_new_batch: bool,
    /// Of the names of the batch so many were given with records that are applied.
    named: u32,
    /// The first record that is queued, and the latest time of each, as far as known then.
    first: usize,
    times: Vec<Option<Time>>,
    /// Bytes that rows may take, all together.
    rows_most: u64,
    config: Config,
    /// Most pages that there may be.
    page_limit: u64,
    slots: Mutex<Vec<Slots>>,
}

impl Parts {
    /// Opens the partitions of a store that is open, or makes them. `None`: it has none.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        (keep_rows, workers): (KeepRows, &Workers),
        whole: &mut Engine<Store>,
    ) -> Result<Option<Parts>> {
        let processes = workers.peers.processes();
        let Some(count) = settings.partitions.split() else {
            if processes > 1 {
                check_processes(0, processes)?;
            }
            return Ok(None);
        };
        check_processes(count as usize, processes)?;
        let rows_most = match keep_rows {
            KeepRows::Usual(most) | KeepRows::AtMost(most) => most,
            KeepRows::None => {
                return Err(Error::Usage(
                    "`keep_rows` none: a store with `partitions` ranks by the links that it keeps"
                        .into(),
                ));
            }
        };
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
        let mut own = OwnParts::open(disk, (dir, settings), &opening, workers, limits.memory)?;
        let parts = Parts {
            states: own.share_states()?,
            own,
            owners: Vec::new(),
            is_new_batch: true,
            named: 0,
            first: 0,
            times: Vec::new(),
            config: settings.config.clone(),
            page_limit: limits.pages,
            rows_most,
            slots: Mutex::default(),
        };
        if parts.pages() != known {
            let path = dir.join(crate::store::addresses::ADDRESSES);
            let own = parts.pages();
            let what = format!("{known} pages, where the partitions have {own}");
            return Err(Error::damaged(path, what));
        }
        let need = parts.need(known, 0, limits.memory).total();
        if let Some(budget) = limits.memory.filter(|&budget| budget < need) {
            return Err(Error::OverBudget {
                pages: known,
                need,
                budget,
            });
        }
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
    fn order(&mut self, order: Order) -> Result<Result<()>> {
        announce(self.peers(), &Say::Order(&order))?;
        let done = self.own.obey(&order)?;
        Ok(done.map(|states| self.states = states))
    }

    /// Records of this batch come next.
    pub fn begin(&mut self, batch: &Batch) {
        debug_assert!(self.times.is_empty());
        self.named = 0;
        self.is_new_batch = true;
        let count = self.states.len() as u32;
        let names = 0..batch.fingerprints.len() as u32;
        self.owners.clear();
        self.owners
            .extend(names.map(|name| partition_of(batch.name(name), count)));
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
    /// than `limit`. Where it may be that there are, the queued records are applied first.
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
        let room = limit.saturating_sub(whole.storage().addresses());
        if u64::from(entry.names_end.saturating_sub(self.named)) <= room {
            return Ok(());
        }
        self.flush(whole, batch)?;
        let room = limit.saturating_sub(whole.storage().addresses());
        let names = self.named..entry.names_end;
        let names = names.map(|name| {
            (
                self.owners[name as usize],
                batch.fingerprints[name as usize],
            )
        });
        let names: Vec<(u32, Fingerprint)> = names.collect();
        announce(self.peers(), &Say::Unknown(&names))?;
        if self.own.unknown(&names)? <= room {
            Ok(())
        } else {
            Err(Error::TooManyPages { limit })
        }
    }

    fn apply(&mut self, whole: &mut Engine<Store>, batch: &Batch) -> Result<()> {
        let count = self.states.len() as u32;
        let named = self.named;
        let split = Split::new(batch, &self.owners, (self.first, named), &self.times, count);
        self.named = split.names_end;
        let slots = &self.slots;
        let make = |number: u32| {
            let spare = || slots.lock().unwrap_or_else(PoisonError::into_inner);
            let mut used = spare().pop().unwrap_or_default();
            let made = split.part(number, &mut used);
            spare().push(used);
            Ok::<PartBatch, Error>(made)
        };
        let workers = self.own.workers.clone();
        send(&workers, count, self.is_new_batch, &make)?;
        self.is_new_batch = false;
        let new = self.own.apply(make, false)?;
        let applied = self
            .own
            .meet(new, |name| batch.fingerprints.get(name as usize).copied())?;
        let mut pages: Vec<(u32, u32, u32)> = Vec::new();
        for (owner, Applied { own, .. }) in (0..).zip(&applied) {
            pages.extend(own.iter().map(|&(name, at)| (name, owner, at)));
        }
        pages.sort_unstable();
        for (_, owner, at) in pages {
            let page = whole.storage().addresses() as u32;
            whole.storage_mut().add_address(Ghost { page, owner, at })?;
        }
        self.states = applied.into_iter().map(|part| part.state).collect();
        self.note_visited(whole);
        Ok(())
    }

    /// Takes the count of pages that were visited from the partitions.
    fn note_visited(&self, whole: &mut Engine<Store>) {
        whole.set_visited(self.states.iter().map(|state| state.visited).sum());
    }

    /// Makes all durable: the partitions first, then the store.
    ///
    /// # Errors
    /// Those of writing, after which nothing more is written; [`Error::Conflict`]: rows take more than they may.
    pub fn checkpoint(&mut self, whole: &mut Engine<Store>, progress: &Progress) -> Result<()> {
        whole.storage().check_writes()?;
        let done = self.try_checkpoint(whole, progress);
        // Partitions can go back by one commit, and not by two.
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    fn try_checkpoint(&mut self, whole: &mut Engine<Store>, progress: &Progress) -> Result<()> {
        let (number, records) = (whole.storage().generation() + 1, whole.counters().records);
        self.order(Order::Checkpoint { number, records })??;
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
        let ask: Option<AskHistory> = (peers.processes() > 1).then(|| ask_history(peers));
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
        let mut states = self.states.iter_mut();
        states.find_map(|state| state.unused_index.take().map(Error::Conflict))
    }

    /// An input begins. `grouped`: it is noted which pages come back that it visited before.
    ///
    /// # Errors
    /// A process is lost.
    pub fn begin_input(&mut self, grouped: bool) -> Result<()> {
        self.order(Order::BeginInput(grouped))?
    }

    /// Visits of pages that this input had visited before, and that were new with it.
    pub fn came_back(&self) -> u64 {
        self.states.iter().map(|state| state.came_back).sum()
    }
}

/// Sends the other processes what there is for their partitions.
fn send(
    workers: &Workers,
    count: u32,
    is_new_batch: bool,
    make: &(impl Fn(u32) -> Result<PartBatch> + Sync),
) -> Result<()> {
    let peers = &workers.peers;
    if peers.processes() == 1 {
        return Ok(());
    }
    let others = (0..count).filter(|&number| !peers.has(number as usize));
    let mut others: Vec<u32> = others.collect();
    let sent = dealt(workers.threads, &mut others, |_, &mut number| {
        let mut message = Vec::new();
        wire::put(&mut message, number, &make(number)?)?;
        Ok(message)
    });
    let mut messages = vec![vec![APPLY, is_new_batch.into()]; peers.processes()];
    for (&number, sent) in others.iter().zip(sent) {
        messages[peers.process_of(number as usize)].extend(sent?);
    }
    peers.exchange(messages).map(drop)
}

impl Holder for Parts {
    fn pages(&self) -> u64 {
        self.states.iter().map(PartState::own).sum()
    }

    fn page_limit(&self) -> u64 {
        self.page_limit
    }

    fn need(&self, pages: u64, _names: u64, budget: Option<u64>) -> Need {
        let peers = self.peers();
        let states = self.states.iter().enumerate();
        // The budget is that of this machine.
        let here = states.filter(|(number, _)| peers.is_one_machine() || peers.has(*number));
        let parts = here.map(|(_, state)| (state.pages, state.index));
        Need::of_parts(&self.config, parts, (self.pages(), pages), budget)
    }

    fn rest(&mut self) -> Result<()> {
        self.order(Order::Rest)?
    }
}
