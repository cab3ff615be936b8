//! A store that is open for writing, and what all who write into it do alike: keep to the memory budget, make the state
//! durable, rank it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use super::parts::Parts;
use super::{Again, Budget, Holder, Spoiled};
use crate::batch::{Batch, Rules};
use crate::disk::{Disk, allow_open_files};
use crate::engine::{Counters, Engine, Resolving, Storage};
use crate::memory::{RANKS_IN_TURNS, log_rows};
use crate::model::{Entry, Limits};
use crate::rank::Goal;
use crate::rank::settle::Workers;
use crate::snapshot::{self, BaseWarning, Residency, Settle, Watcher};
use crate::store::base::{CommittedBase, OwedBase, OwedGoal};
use crate::store::rows::{KeepRows, Reason};
use crate::store::{Home, OpenStore, Progress, Settings, Store, View, checkpoint, keep_index};
use crate::{Error, Result};

/// Files that are open at a time of a partition that is written: its own, and those of two states of it that are read.
pub(crate) const WRITTEN_FILES: u64 = 42;

/// See the head of the file.
pub(crate) struct Session {
    pub engine: Engine<Store>,
    pub budget: Budget,
    /// By which batches for the store are made.
    pub rules: Rules,
    /// Its partitions, if it has any: then it has no pages itself.
    pub parts: Option<Parts>,
}

/// An opened store.
pub(crate) struct Opened {
    pub session: Session,
    /// How far its inputs were read.
    pub progress: Progress,
    /// It was just made.
    pub new: bool,
}

impl Session {
    /// Opens the store in `dir`, or makes it, at its last checkpoint.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        keep_rows: KeepRows,
        (resumes, workers, resident): (bool, &Workers, Option<NonZeroUsize>),
    ) -> Result<Opened> {
        check_partitions(settings)?;
        if let Some(count) = settings.partitions.split() {
            allow_open_files(WRITTEN_FILES * u64::from(count), count)?;
        }
        let keep_own = match settings.partitions.split() {
            None => keep_rows,
            // They keep them.
            Some(_) => KeepRows::None,
        };
        let opened = Store::open(disk.clone(), dir, settings, limits, keep_own, resumes)?;
        let OpenStore {
            mut engine,
            progress,
            new,
        } = opened;
        let parts = Parts::open(
            &disk,
            dir,
            settings,
            limits,
            (keep_rows, workers, resident),
            &mut engine,
        )?;
        engine.cut_log_at(log_rows(engine.config(), limits.memory));
        let config = engine.config();
        let rules = Rules {
            limits: limits.clone(),
            self_links: config.self_links,
            key: engine.storage().key(),
            input: settings.input.clone(),
            classes: !config.follow.is_default(),
            follow: config.follow.clone(),
            partitions: settings.partitions.count,
        };
        let session = Session {
            budget: Budget::new(limits, holder(&engine, &parts)),
            rules,
            engine,
            parts,
        };
        Ok(Opened {
            session,
            progress,
            new,
        })
    }

    pub fn dir(&self) -> &Path {
        self.engine.storage().dir()
    }

    /// Where the store was opened.
    pub fn home(&self) -> Home {
        self.engine.storage().home()
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.engine.storage().disk()
    }

    /// Counts of what was read, and of what was left out.
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// Pages known.
    pub fn pages(&self) -> u64 {
        self.holder().pages()
    }

    /// The name of the first page of the last commit, if the store is one array and has any.
    ///
    /// # Errors
    /// Those of reading.
    pub fn first_name(&self) -> Result<Option<String>> {
        self.engine.storage().first_name()
    }

    /// What holds its pages.
    pub fn holder(&self) -> &dyn Holder {
        holder(&self.engine, &self.parts)
    }

    /// Gives up what only more records would need: settling has its memory.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn rest(&mut self) -> Result<()> {
        match &mut self.parts {
            None => self.budget.rest(&mut self.engine),
            Some(parts) => {
                self.engine.rest()?;
                self.budget.rest(parts)
            }
        }
    }

    /// Finds again how many pages fit: beside so many bytes of names, if it is said, or if it is time to.
    pub fn find_fits(&mut self, names: Option<u64>) {
        let holder = holder(&self.engine, &self.parts);
        match names {
            Some(names) => self.budget.find(holder, names),
            None => self.budget.look(holder),
        }
    }

    /// Number of the last commit.
    pub fn generation(&self) -> u64 {
        self.engine.storage().generation()
    }

    /// Returns whether links are kept.
    pub fn keeps_rows(&self) -> bool {
        self.parts.is_some() || self.engine.storage().keeps_rows()
    }

    /// An input begins. `grouped`: it is noted which pages come back that it visited before.
    ///
    /// # Errors
    /// A process is lost.
    pub fn begin_input(&mut self, grouped: bool) -> Result<()> {
        self.parts
            .as_mut()
            .map_or(Ok(()), |parts| parts.begin_input(&mut self.engine, grouped))
    }

    /// Whether other processes work with this one, which take one step after the other.
    pub fn is_in_step(&self) -> bool {
        let parts = self.parts.as_ref();
        parts.is_some_and(|parts| parts.workers().peers.processes() > 1)
    }

    /// Visits that were found to come back when partitions applied them.
    ///
    /// # Errors
    /// Those of [`Session::flush`].
    pub fn came_back(&mut self) -> Result<u64> {
        let parts = self.parts.as_mut();
        parts.map_or(Ok(0), |parts| parts.came_back(&mut self.engine))
    }

    /// How many partitions are in memory at a time, and how many there are, if they take turns.
    pub fn turns(&self) -> Option<(usize, usize)> {
        self.parts.as_ref()?.turns()
    }

    /// Records of this batch come next.
    pub fn begin(&mut self, batch: &Batch) {
        if let Some(parts) = &mut self.parts {
            parts.begin(batch);
        }
    }

    /// Applies an entry of the batch, or queues it until [`Session::flush`]. It is counted at once.
    ///
    /// # Errors
    /// Those of [`Resolving::apply_in_room`], of [`Session::flush`], and of an epoch's end.
    pub fn apply(&mut self, names: &mut Resolving<'_>, batch: &Batch, at: usize) -> Result<()> {
        let entry = &batch.entries[at];
        let Some(parts) = &mut self.parts else {
            return names.apply_in_room(&mut self.engine, entry);
        };
        let time = self.engine.count_elsewhere(entry);
        parts.queue(at, time);
        if entry.what.is_of_page() && parts.ends_epoch(self.engine.counters().records) {
            parts.flush(&mut self.engine, batch)?;
            parts.end_epoch(&mut self.engine, false)?;
        }
        Ok(())
    }

    /// Another pass over the same records begins: the running round ends, unless it is empty.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn begin_pass(&mut self) -> Result<()> {
        match &mut self.parts {
            None => self.engine.begin_pass(),
            Some(parts) => parts.begin_pass(&mut self.engine),
        }
    }

    /// Visits without records begin in the partitions. How many there are; `None`: there are no partitions.
    ///
    /// # Errors
    /// Those of applying what waits, and of reading.
    pub fn begin_again(&mut self, again: Again) -> Result<Option<u64>> {
        let parts = self.parts.as_mut();
        let begun = parts.map(|parts| parts.begin_again(&mut self.engine, again));
        begun.transpose()
    }

    /// Makes at most `most` of them, from number `from` on. Where it has come to.
    ///
    /// # Errors
    /// Those of reading and writing, which are final.
    pub fn visit_again(&mut self, from: u64, most: u64) -> Result<u64> {
        let parts = self.parts.as_mut();
        parts.map_or(Ok(from), |parts| {
            parts.visit_again(&mut self.engine, from, most)
        })
    }

    /// Applies the entries of the batch that are queued.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn flush(&mut self, batch: &Batch) -> Result<()> {
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        parts.flush(&mut self.engine, batch)
    }

    /// Checks that the pages fit that the next entry of a batch brings, and those before it that were not applied yet.
    ///
    /// # Errors
    /// [`Error::TooManyPages`](crate::Error::TooManyPages) and [`Error::OverBudget`](crate::Error::OverBudget); those of
    /// [`Session::flush`].
    pub fn check_room(
        &mut self,
        names: &Resolving<'_>,
        batch: &Batch,
        entry: &Entry,
    ) -> Result<()> {
        let limit = self.budget.page_limit(self.holder());
        let room = match &mut self.parts {
            None => names.check_room(&self.engine, entry, limit),
            Some(parts) => parts.check_room(&mut self.engine, batch, entry, limit),
        };
        room.map_err(|error| self.budget.blamed(self.holder(), error))
    }

    /// Makes the state durable, with how far inputs were read. Why rows were given up, if they were: what readers of the
    /// current snapshot do not need of them is to be released ([`Session::release_rows`]).
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn checkpoint(&mut self, progress: &Progress) -> Result<Option<Reason>> {
        match &mut self.parts {
            None => checkpoint(&mut self.engine, progress)?,
            Some(parts) => parts.checkpoint(&mut self.engine, progress)?,
        }
        Ok(self.rows_given_up())
    }

    /// The most pages that kept links have numbers for, once so many are known that less than a sixteenth is left; told
    /// once.
    pub fn nears_page_limit(&mut self) -> Option<u64> {
        let limit = Storage::page_limit(self.engine.storage());
        let is_near = limit < u64::MAX && self.pages() >= limit - limit / 16;
        (is_near && !std::mem::replace(&mut self.budget.told_limit, true)).then_some(limit)
    }

    /// Why rows were given up since this was last asked, if they were.
    pub fn rows_given_up(&mut self) -> Option<Reason> {
        self.engine.storage_mut().rows_given_up()
    }

    /// The damage of the directory of rows, if it was rebuilt since the last call.
    pub fn renewed_places(&mut self) -> Option<Error> {
        self.engine.storage_mut().renewed_places()
    }

    /// Leaves the index of the last checkpoint on disk, unless there is one that will do.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): there is none, or the one before. The store can be written as before.
    pub fn keep_index(&mut self) -> Result<()> {
        match &mut self.parts {
            None => keep_index(&mut self.engine),
            Some(parts) => parts.keep_index(),
        }
    }

    /// Where the disk was too full for something, removes the index: it can be made again. Whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn makes_room(&mut self, error: &Error) -> Result<bool> {
        if !error.is_full() {
            return Ok(false);
        }
        let mut stores = self.stores_here();
        stores.try_fold(false, |had, store| Ok(store.drop_index()? || had))
    }

    /// Why the index on disk was not used, or that of a partition, since this was last asked.
    pub fn unused_index(&mut self) -> Option<Error> {
        match &mut self.parts {
            None => self.engine.storage_mut().unused_index(),
            Some(parts) => parts.unused_index(),
        }
    }

    /// A base is to be made of the checkpoint that comes, settled to this, or of none.
    ///
    /// # Errors
    /// A process is lost.
    pub fn owe_base(&mut self, goal: Option<Goal>) -> Result<()> {
        let owed = goal.is_some();
        let store = self.engine.storage_mut();
        store.set_goal(goal.map(OwedGoal::from));
        match &mut self.parts {
            None => {
                store.owe_base(owed);
                Ok(())
            }
            Some(parts) => parts.owe_base(owed),
        }
    }

    /// The base that the last checkpoint owes, of each block that is settled.
    pub fn owed_base(&self) -> Option<Vec<OwedBase>> {
        match &self.parts {
            None => Some(vec![self.engine.storage().owed_base()?]),
            Some(parts) => parts.owed_base(),
        }
    }

    /// How near that is to be settled, if the checkpoint says so.
    pub fn owed_goal(&self) -> Option<Goal> {
        self.engine.storage().owed_goal().map(Goal::from)
    }

    /// Makes the base that is still owed, because of a kill or for lack of room, if one is, as `resident` partitions take turns,
    /// and says what was wrong with the one before. The next checkpoint names it, or, where nothing was applied since the last
    /// one, a commit that is made `now`. Where the checkpoint does not say how near it is to be, that is `goal`.
    ///
    /// # Errors
    /// There is no room for it; those of reading and writing.
    pub fn make_owed_base(
        &mut self,
        goal: Option<Goal>,
        resident: Option<NonZeroUsize>,
        now: bool,
    ) -> Result<Option<BaseWarning>> {
        let Some(owed) = self.owed_base() else {
            return Ok(None);
        };
        let goal = self.owed_goal().or(goal);
        let Some(mut settle) = self.settling(goal, Watcher::default()) else {
            self.name_base(None, now)?;
            return Ok(None);
        };
        settle.residency.partitions = resident;
        let made = snapshot::make_owed_base(&**self.disk(), &self.view()?, &owed, &settle)?;
        let (base, warning) = made;
        self.name_base(base, now)?;
        Ok(warning)
    }

    /// What the next commit says of the bases: for the campaign of faults.
    pub fn bases_mut(&mut self) -> impl Iterator<Item = &mut CommittedBase> {
        self.stores_here().filter_map(Store::base_mut)
    }

    /// Does at the ends of epochs what the campaign of faults must find out.
    pub fn spoil_epochs(&mut self, how: Spoiled) {
        if let Some(parts) = &mut self.parts {
            parts.spoil_epochs(how);
        }
    }

    /// The store, or those of its partitions that this process has.
    fn stores_here(&mut self) -> Box<dyn Iterator<Item = &mut Store> + '_> {
        match &mut self.parts {
            None => Box::new(std::iter::once(self.engine.storage_mut())),
            Some(parts) => Box::new(parts.stores_mut()),
        }
    }

    /// The base that was owed is this, one for each block, or there is none. The next checkpoint says so, or, where none
    /// comes, one that is made `now`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn name_base(&mut self, made: Option<Vec<CommittedBase>>, now: bool) -> Result<()> {
        if let Some(parts) = &mut self.parts {
            return parts.name_base(&mut self.engine, made, now);
        }
        let store = self.engine.storage_mut();
        store.name_base(made.and_then(|made| made.first().copied()));
        if now { store.commit_base() } else { Ok(()) }
    }

    /// Drops row files that were compacted, but for the one that readers of the current snapshot use.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn release_rows(&mut self) -> Result<()> {
        if let Some(parts) = &mut self.parts {
            let dir = self.engine.storage().dir();
            let disk = self.engine.storage().disk();
            return parts.release_rows(&snapshot::part_rows_named(&**disk, dir)?);
        }
        let retention = *self.engine.storage().rows_retention();
        let named = snapshot::rows_named(&**self.disk(), self.dir(), &retention)?;
        self.engine.storage_mut().release_rows(named)
    }

    /// The last committed state.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn view(&self) -> Result<View> {
        let view = self.engine.storage().view()?;
        match &self.parts {
            None => Ok(view),
            Some(parts) => parts.view(&**self.disk(), view),
        }
    }

    /// Bytes for the ranks of a snapshot, `most` at most: little where partitions take turns.
    pub fn rank_bytes(&self, most: u64) -> u64 {
        match &self.parts {
            Some(parts) if parts.take_turns() => most.min(RANKS_IN_TURNS),
            _ => most,
        }
    }

    /// Bytes of memory that are left.
    pub fn memory_left(&self) -> Option<u64> {
        self.budget.left(self.holder())
    }

    /// Those of them that this process has for settling: others on this machine have as many.
    fn memory_to_settle(&self) -> Option<u64> {
        let peers = self.parts.as_ref().map(|parts| &parts.workers().peers);
        let sharing = peers.filter(|peers| peers.is_one_machine());
        let sharing = sharing.map_or(1, |peers| peers.processes());
        Some(self.memory_left()? / sharing as u64)
    }

    /// How importance is settled before a snapshot, in the memory that is left; `None`: it is read
    /// from a window.
    pub fn settling(&self, goal: Option<Goal>, watcher: Watcher) -> Option<Settle> {
        let goal = goal.filter(|_| self.engine.config().is_settled())?;
        let workers = self.parts.as_ref().map(Parts::workers);
        Some(Settle {
            residency: Residency {
                memory: self.memory_to_settle(),
                ..Residency::default()
            },
            threads: workers.map_or(1, |workers| workers.threads),
            peers: workers.map(|workers| workers.peers.clone()),
            watcher: Arc::new(watcher),
            ..Settle::until(goal)
        })
    }
}

fn holder<'s>(engine: &'s Engine<Store>, parts: &'s Option<Parts>) -> &'s dyn Holder {
    match parts {
        None => engine,
        Some(parts) => parts,
    }
}

/// Refuses settings that need cash to go from page to page, where it does not go from partition to partition, and epochs
/// without partitions.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage).
fn check_partitions(settings: &Settings) -> Result<()> {
    let partitions = settings.partitions;
    match (partitions.split(), partitions.epoch) {
        (None, Some(records)) => partitions.with_epoch(records).map(drop),
        (Some(_), None) if !settings.config.is_settled() => Err(Error::Usage(
            "`window` and `max_age` read the cash that pages hand on, which stays inside each of the `partitions` unless \
             there are epochs: give `epoch` when the store is made, or leave the one or the other out"
                .into(),
        )),
        _ => Ok(()),
    }
}
