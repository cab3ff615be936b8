//! The partitions of a store that is open for writing. Records are queued as they come, and applied some at a time: each
//! partition takes those of its own pages, on as many threads as there are to be.
//!
//! What comes of it is the same as if one record was applied after the other: see [`crate::batch::split`]. The pages that
//! are new in the stream are then put in its order, and every new ghost gets the number that its owner has for it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Holder;
use crate::batch::split::{PartBatch, Slots, Split, partition_of};
use crate::disk::Disk;
use crate::engine::{Config, Engine, Resolver, age};
use crate::memory::{Need, log_rows};
use crate::model::{Batch, Entry, Limits, PageId, Time, What};
use crate::rows::{Ghost, PAGES_MAX};
use crate::store::base::BaseState;
use crate::store::rows::KeepRows;
use crate::store::{
    PartOf, Progress, Settings, Store, View, checkpoint, keep_index, make_partitions,
};
use crate::threads::dealt;
use crate::{Error, Result};

/// See the head of the file.
pub(crate) struct Parts {
    parts: Vec<Part>,
    /// Partitions that are worked on at a time.
    threads: usize,
    /// The partition of each name of the batch that records are queued of.
    owners: Vec<u32>,
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

struct Part {
    engine: Engine<Store>,
    resolver: Resolver,
    /// Something was applied since the last commit that the store has confirmed.
    is_changed: bool,
    /// Pages before the input that is read, if it is to be known which come back, and visits of those that did.
    known: Option<u64>,
    came_back: u64,
}

/// New numbers of a partition.
#[derive(Default)]
struct New {
    /// Its own pages: the name in the whole batch, and the number.
    own: Vec<(u32, u32)>,
    /// Ghosts, likewise.
    ghosts: Vec<(u32, u32)>,
}

impl Parts {
    /// Opens the partitions of a store that is open, or makes them. `None`: it has none.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        (keep_rows, threads): (KeepRows, usize),
        whole: &mut Engine<Store>,
    ) -> Result<Option<Parts>> {
        let Some(count) = settings.partitions.split() else {
            return Ok(None);
        };
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
        let key = whole.storage().key();
        let generations = whole.storage().generations();
        let sums = whole.storage().sums();
        let bases = whole.storage().bases();
        let none = BaseState::default();
        let mut numbers: Vec<(u32, PartOf<'_>)> = (0..count)
            .map(|number| {
                let at = number as usize;
                let part = PartOf {
                    key,
                    generation: generations.get(at).copied().unwrap_or(0),
                    sum: sums.get(at).copied(),
                    base: bases.get(at).unwrap_or(&none),
                };
                (number, part)
            })
            .collect();
        let limits = &Limits {
            pages: limits.pages.min(PAGES_MAX),
            ..limits.clone()
        };
        let open = |_, &mut (number, part): &mut (u32, PartOf<'_>)| {
            let dir = crate::store::partition_dir(dir, number);
            let settings = settings.of_partition(number);
            let keep = KeepRows::Usual(u64::MAX);
            let opened = Store::open_part(disk.clone(), &dir, &settings, limits, keep, part)?;
            let mut engine = opened.engine;
            let rows = log_rows(engine.config(), limits.memory) / count as usize;
            engine.cut_log_at(rows.max(1));
            Ok(Part {
                engine,
                resolver: Resolver::default(),
                // Its first commit says that it keeps rows, also if no record is for it.
                is_changed: part.generation == 0,
                known: None,
                came_back: 0,
            })
        };
        let parts = dealt(threads, &mut numbers, open).into_iter();
        let parts = Parts {
            parts: parts.collect::<Result<_>>()?,
            threads,
            owners: Vec::new(),
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

    /// Partitions that are worked on at a time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Records of this batch come next.
    pub fn begin(&mut self, batch: &Batch) {
        debug_assert!(self.times.is_empty());
        self.named = 0;
        let count = self.parts.len() as u32;
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
        let is_new = |&name: &u32| self.page(batch, name).is_none();
        let new = (self.named..entry.names_end).filter(is_new).count();
        if new as u64 <= room {
            Ok(())
        } else {
            Err(Error::TooManyPages { limit })
        }
    }

    /// The page of a name of the batch, in its partition.
    fn page(&self, batch: &Batch, name: u32) -> Option<PageId> {
        let owner = &self.parts[self.owners[name as usize] as usize];
        owner.engine.page(batch.fingerprints[name as usize])
    }

    fn apply(&mut self, whole: &mut Engine<Store>, batch: &Batch) -> Result<()> {
        let count = self.parts.len() as u32;
        let named = self.named;
        let split = Split::new(batch, &self.owners, (self.first, named), &self.times, count);
        self.named = split.names_end;
        let (slots, limit) = (&self.slots, self.page_limit);
        let work = |number: usize, part: &mut Part| {
            let spare = || slots.lock().unwrap_or_else(PoisonError::into_inner);
            let mut used = spare().pop().unwrap_or_default();
            let made = split.part(number as u32, &mut used);
            spare().push(used);
            let names = made.batch.fingerprints.len() as u64;
            part.engine.make_room(names, limit)?;
            part.apply(&made, number as u32, &self.owners)
        };
        let new = dealt(self.threads, &mut self.parts, work);
        let new = new.into_iter().collect::<Result<Vec<New>>>()?;
        let mut pages: Vec<(u32, u32)> = new.iter().flat_map(|new| &new.own).copied().collect();
        pages.sort_unstable();
        for (name, at) in pages {
            let owner = self.owners[name as usize];
            let page = whole.storage().addresses() as u32;
            whole.storage_mut().add_address(Ghost { page, owner, at })?;
        }
        for (number, new) in new.iter().enumerate() {
            for &(name, page) in &new.ghosts {
                let owner = self.owners[name as usize];
                let at = self.page(batch, name);
                let at = at.ok_or_else(|| Error::internal("a ghost has no page"))?.0 as u32;
                let store = self.parts[number].engine.storage_mut();
                store.add_address(Ghost { page, owner, at })?;
            }
        }
        self.note_visited(whole);
        Ok(())
    }

    /// Takes the count of pages that were visited from the partitions.
    fn note_visited(&self, whole: &mut Engine<Store>) {
        let parts = self.parts.iter();
        whole.set_visited(parts.map(|part| part.engine.counters().visited).sum());
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
        let committed = dealt(self.threads, &mut self.parts, |_, part| part.checkpoint());
        let commits = committed.into_iter().collect::<Result<Vec<_>>>()?;
        self.check_rows(whole)?;
        let (number, records) = (whole.storage().generation() + 1, whole.counters().records);
        for store in self.stores_mut() {
            store.note_owed(number, records);
        }
        whole.storage_mut().set_parts(commits);
        whole.storage_mut().set_bases(self.bases());
        checkpoint(whole, progress)?;
        self.confirm()
    }

    /// The store has committed what they did.
    fn confirm(&mut self) -> Result<()> {
        let confirmed = dealt(self.threads, &mut self.parts, |_, part| part.confirm());
        confirmed.into_iter().collect()
    }

    /// What there is of each one's base, as the store's next commit is to say it.
    fn bases(&self) -> Vec<BaseState> {
        self.stores().map(Store::base_state).collect()
    }

    /// Commits what is said of their bases: see [`Store::commit_base`].
    ///
    /// # Errors
    /// Those of writing, after which nothing more is written.
    pub fn commit_bases(&mut self, whole: &mut Engine<Store>) -> Result<()> {
        whole.storage_mut().set_bases(self.bases());
        let done = whole.storage_mut().commit_base();
        let done = done.and_then(|()| self.confirm());
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    /// The stores of the partitions.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.parts.iter().map(|part| part.engine.storage())
    }

    /// The same.
    pub fn stores_mut(&mut self) -> impl Iterator<Item = &mut Store> {
        self.parts.iter_mut().map(|part| part.engine.storage_mut())
    }

    fn check_rows(&self, whole: &Engine<Store>) -> Result<()> {
        let kept = self.parts.iter().filter_map(|part| {
            let kept = part.engine.storage().rows_retention().kept()?;
            Some(kept.lengths.data)
        });
        let bytes: u64 = kept.sum();
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

    /// The last committed states.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn views(&self) -> Result<Vec<View>> {
        self.stores().map(Store::view).collect()
    }

    /// Removes row files that were compacted, but for those that readers of the current snapshot use.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn release_rows(&mut self, named: &[Option<u64>]) -> Result<()> {
        let named = named.iter().copied().chain(std::iter::repeat(None));
        let mut stores = self.stores_mut().zip(named);
        stores.try_for_each(|(store, named)| store.release_rows(named))
    }

    /// Leaves the index of each on disk, as of the last commit.
    ///
    /// # Errors
    /// [`Error::Io`]: some have none, or the one before.
    pub fn keep_index(&mut self) -> Result<()> {
        let kept = dealt(self.threads, &mut self.parts, |_, part| {
            keep_index(&mut part.engine)
        });
        kept.into_iter().collect()
    }

    /// Why an index on disk was not used, since this was last asked.
    pub fn unused_index(&mut self) -> Option<Error> {
        let mut parts = self.parts.iter_mut();
        parts.find_map(|part| part.engine.storage_mut().unused_index())
    }

    /// An input begins. `grouped`: it is noted which pages come back that it visited before.
    pub fn begin_input(&mut self, grouped: bool) {
        for part in &mut self.parts {
            let pages = part.engine.ledger().totals().pages;
            part.known = grouped.then_some(pages);
            part.came_back = 0;
        }
    }

    /// Visits of pages that this input had visited before, and that were new with it.
    pub fn came_back(&self) -> u64 {
        self.parts.iter().map(|part| part.came_back).sum()
    }
}

impl Holder for Parts {
    fn pages(&self) -> u64 {
        self.parts.iter().map(Part::own).sum()
    }

    fn page_limit(&self) -> u64 {
        self.page_limit
    }

    fn need(&self, pages: u64, _names: u64, budget: Option<u64>) -> Need {
        let engines = self.parts.iter().map(|part| &part.engine);
        Need::of_parts(&self.config, engines, (self.pages(), pages), budget)
    }

    fn rest(&mut self) -> Result<()> {
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.engine.rest())
    }
}

impl Part {
    /// Pages of its own.
    fn own(&self) -> u64 {
        self.engine.ledger().totals().pages - self.engine.storage().addresses()
    }

    /// Applies its batch. The numbers that are new.
    fn apply(&mut self, made: &PartBatch, number: u32, owners: &[u32]) -> Result<New> {
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
        let (mut new, mut next) = (New::default(), first);
        // Names are admitted in their order, and so the pages of new ones follow on.
        for (page, &name) in self.resolver.own().iter().zip(&made.names) {
            if page.0 != next {
                continue;
            }
            next += 1;
            if owners[name as usize] == number {
                new.own.push((name, page.0 as u32));
            } else {
                new.ghosts.push((name, page.0 as u32));
            }
        }
        let pages = self.engine.ledger().totals().pages;
        self.is_changed |= !made.batch.entries.is_empty() || pages > first;
        Ok(new)
    }

    /// Commits what changed. The number of its last commit, and its sum.
    fn checkpoint(&mut self) -> Result<(u64, u128)> {
        if self.is_changed {
            checkpoint(&mut self.engine, &Progress::default())?;
        }
        let store = self.engine.storage();
        Ok((store.generation(), store.sum()?))
    }

    /// The store has committed what this one did.
    fn confirm(&mut self) -> Result<()> {
        let is_changed = std::mem::take(&mut self.is_changed);
        self.engine.storage_mut().confirm(is_changed)
    }
}
