//! A store that is open for writing, and what all who write into it do alike: keep to the memory budget, make the state
//! durable, rank it.

use std::path::Path;
use std::sync::Arc;

use super::Budget;
use crate::batch::Rules;
use crate::disk::Disk;
use crate::engine::{Counters, Engine, Resolving, Storage};
use crate::memory::log_rows;
use crate::model::Limits;
use crate::rank::Goal;
use crate::snapshot::{self, Settle, Watcher};
use crate::store::rows::{KeepRows, Reason};
use crate::store::{Home, OpenStore, Progress, Settings, Store, View, checkpoint, keep_index};
use crate::{Error, Result};

/// See the head of the file.
pub(crate) struct Session {
    pub engine: Engine<Store>,
    pub budget: Budget,
    /// By which batches for the store are made.
    pub rules: Rules,
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
        resumes: bool,
    ) -> Result<Opened> {
        let opened = Store::open(disk, dir, settings, limits, keep_rows, resumes)?;
        let OpenStore {
            mut engine,
            progress,
            new,
        } = opened;
        engine.cut_log_at(log_rows(engine.config(), limits.memory));
        let config = engine.config();
        let rules = Rules {
            limits: limits.clone(),
            self_links: config.self_links,
            key: engine.storage().key(),
            input: settings.input.clone(),
            follow: config.follow.clone(),
        };
        let session = Session {
            budget: Budget::new(limits, &engine),
            rules,
            engine,
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
        self.engine.ledger().totals().pages
    }

    /// The name of the first page of the last commit, if there is any.
    ///
    /// # Errors
    /// Those of reading.
    pub fn first_name(&self) -> Result<Option<String>> {
        self.engine.storage().first_name()
    }

    /// Gives up what only more records would need: settling has its memory.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn rest(&mut self) -> Result<()> {
        self.budget.rest(&mut self.engine)
    }

    /// Finds again how many pages fit, if it is time to.
    pub fn find_fits(&mut self) {
        self.budget.look(&self.engine);
    }

    /// Number of the last commit.
    pub fn generation(&self) -> u64 {
        self.engine.storage().generation()
    }

    /// Returns whether links are kept.
    pub fn keeps_rows(&self) -> bool {
        self.engine.storage().keeps_rows()
    }

    /// Applies the entry of this number.
    ///
    /// # Errors
    /// Those of [`Resolving::apply_in_room`].
    pub fn apply(&mut self, names: &mut Resolving<'_>, at: usize) -> Result<()> {
        names.apply_in_room(&mut self.engine, at)
    }

    /// Checks that the pages fit that the names of a batch up to `names_end` bring.
    ///
    /// # Errors
    /// [`Error::TooManyPages`](crate::Error::TooManyPages) and [`Error::OverBudget`](crate::Error::OverBudget).
    pub fn check_room(&self, names: &Resolving<'_>, names_end: u32) -> Result<()> {
        let limit = self.budget.page_limit(&self.engine);
        let room = names.check_room(&self.engine, names_end, limit);
        room.map_err(|error| self.budget.blamed(&self.engine, error))
    }

    /// Makes the state durable, with how far inputs were read. Why rows were given up, if they were: what readers of the
    /// current snapshot do not need of them is to be released ([`Session::release_rows`]).
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn checkpoint(&mut self, progress: &Progress) -> Result<Option<Reason>> {
        checkpoint(&mut self.engine, progress)?;
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
        keep_index(&mut self.engine)
    }

    /// Where the disk was too full for something, removes the index: it can be made again. Whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn makes_room(&mut self, error: &Error) -> Result<bool> {
        if error.is_full() {
            self.engine.storage_mut().drop_index()
        } else {
            Ok(false)
        }
    }

    /// Why the index on disk was not used, since this was last asked.
    pub fn unused_index(&mut self) -> Option<Error> {
        self.engine.storage_mut().unused_index()
    }

    /// A ranking of the last commit begins that will be the next warm start.
    ///
    /// # Errors
    /// Those of opening its rows.
    pub fn begin_warm_start(&mut self) -> Result<()> {
        self.engine.storage_mut().begin_warm_start()
    }

    /// That ranking is over, and `wrote` the next warm start, or did not.
    pub fn end_warm_start(&mut self, wrote: bool) {
        self.engine.storage_mut().end_warm_start(wrote);
    }

    /// Drops row files that were compacted, but for the one that readers of the current snapshot use.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn release_rows(&mut self) -> Result<()> {
        let retention = *self.engine.storage().rows_retention();
        let named = snapshot::rows_named(&**self.disk(), self.dir(), &retention)?;
        self.engine.storage_mut().release_rows(named)
    }

    /// The last committed state.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn view(&self) -> Result<View> {
        self.engine.storage().view()
    }

    /// Bytes of memory that are left.
    pub fn memory_left(&self) -> Option<u64> {
        self.budget.left(&self.engine)
    }

    /// How importance is settled before a snapshot, in the memory that is left; `None`: it is read
    /// from a window.
    pub fn settling(&self, goal: Option<Goal>, watcher: Watcher) -> Option<Settle> {
        let goal = goal.filter(|_| self.engine.config().is_settled())?;
        Some(Settle {
            memory: self.memory_left(),
            watcher: Arc::new(watcher),
            ..Settle::until(goal)
        })
    }
}
