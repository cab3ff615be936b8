//! A store that is open for writing, and what all who write into it do alike: keep to the memory budget, make the state
//! durable, rank it.

use std::path::Path;
use std::sync::Arc;

use super::Budget;
use crate::batch::Rules;
use crate::disk::Disk;
use crate::engine::{Counters, Engine, Resolving};
use crate::model::{Entry, Limits};
use crate::rank::Goal;
use crate::snapshot::{self, Settle, Watcher};
use crate::store::base::{CommittedBase, OwedBase};
use crate::store::rows::{KeepRows, Reason};
use crate::store::{Home, OpenStore, Progress, Settings, Store, View, checkpoint};
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
        let config = engine.config();
        let rules = Rules {
            limits: limits.clone(),
            self_links: config.self_links,
            key: engine.storage().key(),
            input: settings.input.clone(),
            classes: !config.follow.is_default(),
        };
        let session = Session {
            budget: Budget::new(limits, &mut engine),
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

    /// Number of the last commit.
    pub fn generation(&self) -> u64 {
        self.engine.storage().generation()
    }

    /// Returns whether links are kept.
    pub fn keeps_rows(&self) -> bool {
        self.engine.storage().keeps_rows()
    }

    /// Checks that the pages fit that the next entry of a batch brings, and those before it that were not applied yet.
    ///
    /// # Errors
    /// [`Error::TooManyPages`](crate::Error::TooManyPages) and [`Error::OverBudget`](crate::Error::OverBudget).
    pub fn check_room(&self, names: &Resolving<'_>, entry: &Entry) -> Result<()> {
        let limit = self.budget.page_limit(&self.engine);
        let room = names.check_room(&self.engine, entry, limit);
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

    /// Why rows were given up since this was last asked, if they were.
    pub fn rows_given_up(&mut self) -> Option<Reason> {
        self.engine.storage_mut().rows_given_up()
    }

    /// The damage of the directory of rows, if it was rebuilt since the last call.
    pub fn renewed_places(&mut self) -> Option<Error> {
        self.engine.storage_mut().renewed_places()
    }

    /// A base is to be made of the checkpoint that comes, or of none.
    pub fn owe_base(&mut self, owed: bool) {
        self.engine.storage_mut().owe_base(owed);
    }

    /// The base that the last checkpoint owes.
    pub fn owed_base(&self) -> Option<OwedBase> {
        self.engine.storage().owed_base()
    }

    /// What the next commit says of the base: for the campaign of faults.
    pub fn base_mut(&mut self) -> Option<&mut CommittedBase> {
        self.engine.storage_mut().base_mut()
    }

    /// The base that was owed is this, or there is none. The next checkpoint says so, or, where none comes, one that is made
    /// `now`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which the store takes no more.
    pub fn name_base(&mut self, base: Option<CommittedBase>, now: bool) -> Result<()> {
        let store = self.engine.storage_mut();
        store.name_base(base);
        if now { store.commit_base() } else { Ok(()) }
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
