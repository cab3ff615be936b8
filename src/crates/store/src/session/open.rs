//! A store that is open for writing, with what all writers share: keeping to the memory budget, checkpoints, and
//! rankings.

use std::path::Path;
use std::sync::Arc;

use super::Budget;
use crate::batch::Rules;
use crate::disk::Disk;
use crate::engine::{Counters, Engine, Resolving, Storage};
use crate::memory::log_rows;
use crate::model::Limits;
use crate::rank::Goal;
use crate::snapshot::{self, SettleSettings, Watcher};
use crate::store::rows::{GiveUpReason, KeepRows};
use crate::store::{
    Home, InputProgress, OpenStore, Settings, StoreWriter, View, checkpoint, keep_index,
};
use crate::{Error, Result};

/// Store open for writing, with its memory budget.
pub struct Session {
    pub engine: Engine<StoreWriter>,
    pub budget: Budget,
    /// Rules for making batches for the store.
    pub rules: Rules,
}

/// Result of opening a store.
pub struct Opened {
    pub session: Session,
    pub progress: InputProgress,
    /// True if the store was just created.
    pub new: bool,
}

impl Session {
    /// Opens the store in `dir` at its last checkpoint, or creates it.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        keep_links: KeepRows,
        resumes: bool,
    ) -> Result<Opened> {
        let opened = StoreWriter::open(disk, dir, settings, limits, keep_links, resumes)?;
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

    /// Returns the directory from which the store was opened.
    pub fn home(&self) -> Home {
        self.engine.storage().home()
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.engine.storage().disk()
    }

    /// Returns counts of what was read and of what was left out.
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    pub fn pages(&self) -> u64 {
        self.engine.ledger().totals().pages
    }

    /// Returns the name of the first page of the last commit, if there is any.
    pub fn first_name(&self) -> Result<Option<String>> {
        self.engine.storage().first_name()
    }

    /// Releases memory that only further records would need, for settling.
    ///
    /// # Errors
    /// After an error the store accepts no more records.
    pub fn rest(&mut self) -> Result<()> {
        self.budget.rest(&mut self.engine)
    }

    /// Recomputes how many pages fit, if it is due.
    pub fn find_fits(&mut self) {
        self.budget.look(&self.engine);
    }

    /// Returns the number of the last commit.
    pub fn generation(&self) -> u64 {
        self.engine.storage().generation()
    }

    /// Returns true if links are kept.
    pub fn keeps_rows(&self) -> bool {
        self.engine.storage().keeps_rows()
    }

    /// Applies the entry number `at`.
    pub fn apply(&mut self, names: &mut Resolving<'_>, at: usize) -> Result<()> {
        names.apply_in_room(&mut self.engine, at)
    }

    /// Checks that the pages of a batch's names up to `names_end` fit.
    pub fn check_room(&self, names: &Resolving<'_>, names_end: u32) -> Result<()> {
        let limit = self.budget.page_limit(&self.engine);
        let room = names.check_room(&self.engine, names_end, limit);
        room.map_err(|error| self.budget.blamed(&self.engine, error))
    }

    /// Makes the state durable, with the progress in the inputs. Returns why rows were given up, if they were;
    /// [`Session::release_rows`] should then release what readers of the current snapshot do not need.
    ///
    /// # Errors
    /// After an error the store accepts no more records.
    pub fn checkpoint(&mut self, progress: &InputProgress) -> Result<Option<GiveUpReason>> {
        checkpoint(&mut self.engine, progress)?;
        Ok(self.rows_given_up())
    }

    /// Returns the limit on page numbers of kept links when less than a sixteenth is left, once.
    pub fn nears_page_limit(&mut self) -> Option<u64> {
        let limit = Storage::page_limit(self.engine.storage());
        let is_near = limit < u64::MAX && self.pages() >= limit - limit / 16;
        (is_near && !std::mem::replace(&mut self.budget.told_limit, true)).then_some(limit)
    }

    /// Returns why rows were given up, once.
    pub fn rows_given_up(&mut self) -> Option<GiveUpReason> {
        self.engine.storage_mut().rows_given_up()
    }

    /// Returns the damage of the row directory if it was rebuilt, once.
    pub fn renewed_places(&mut self) -> Option<Error> {
        self.engine.storage_mut().renewed_places()
    }

    /// Writes the index of the last checkpoint to disk, unless the present one suffices. On an error the store can
    /// still be written.
    pub fn keep_index(&mut self) -> Result<()> {
        keep_index(&mut self.engine)
    }

    /// Removes the index, which is a cache, if an error was caused by a full disk. Returns whether there was one.
    pub fn makes_room(&mut self, error: &Error) -> Result<bool> {
        if error.is_full() {
            self.engine.storage_mut().drop_index()
        } else {
            Ok(false)
        }
    }

    /// Returns why the index on disk was not used, once.
    pub fn unused_index(&mut self) -> Option<Error> {
        self.engine.storage_mut().unused_index()
    }

    /// Begins a ranking of the last commit whose result will be the next warm start.
    pub fn begin_warm_start(&mut self) -> Result<()> {
        self.engine.storage_mut().begin_warm_start()
    }

    /// Ends that ranking; `wrote` tells whether it wrote the next warm start.
    pub fn end_warm_start(&mut self, wrote: bool) {
        self.engine.storage_mut().end_warm_start(wrote);
    }

    /// Removes row files that were compacted, except for the one that readers of the current snapshot use.
    pub fn release_rows(&mut self) -> Result<()> {
        let retention = *self.engine.storage().rows_retention();
        let named = snapshot::rows_named(&**self.disk(), self.dir(), &retention)?;
        self.engine.storage_mut().release_rows(named)
    }

    /// Returns the last committed state.
    pub fn view(&self) -> Result<View> {
        self.engine.storage().view()
    }

    /// Returns the bytes of memory that are left.
    pub fn memory_left(&self) -> Option<u64> {
        self.budget.left(&self.engine)
    }

    /// Returns the settings for settling importance before a snapshot in the memory that is left; `None` if importance
    /// is read from a window.
    pub fn settling(&self, goal: Option<Goal>, watcher: Watcher) -> Option<SettleSettings> {
        let goal = goal.filter(|_| self.engine.config().is_settled())?;
        Some(SettleSettings {
            memory: self.memory_left(),
            watcher: Arc::new(watcher),
            ..SettleSettings::until(goal)
        })
    }
}
