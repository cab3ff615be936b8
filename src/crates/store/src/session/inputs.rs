//! What an ingest of inputs needs of a [`Writer`]: its storage, checkpoints of its own progress, and rankings that it
//! makes in the background.

use std::path::Path;
use std::sync::Arc;

use super::Writer;
use crate::disk::Disk;
use crate::engine::Storage;
use crate::rank::Goal;
use crate::snapshot::{self, SettleSettings, Watcher};
use crate::store::rows::GiveUpReason;
use crate::store::{InputProgress, StoreWriter, View, checkpoint, keep_index};
use crate::{Error, Result};

#[doc(hidden)]
impl Writer {
    pub fn storage(&self) -> &StoreWriter {
        self.engine.storage()
    }

    pub fn storage_mut(&mut self) -> &mut StoreWriter {
        self.engine.storage_mut()
    }

    pub fn dir(&self) -> &Path {
        self.storage().dir()
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.storage().disk()
    }

    pub fn pages(&self) -> u64 {
        self.engine.ledger().totals().pages
    }

    /// Returns the number of the last commit.
    pub fn generation(&self) -> u64 {
        self.storage().generation()
    }

    /// Returns true if links are kept.
    pub fn keeps_rows(&self) -> bool {
        self.storage().keeps_rows()
    }

    /// Makes the state durable, with the progress in the inputs. Returns why rows were given up, if they were;
    /// [`Writer::release_rows`] should then release what readers of the current snapshot do not need.
    ///
    /// # Errors
    /// After an error the store accepts no more records.
    pub fn commit(&mut self, progress: &InputProgress) -> Result<Option<GiveUpReason>> {
        checkpoint(&mut self.engine, progress)?;
        Ok(self.storage_mut().rows_given_up())
    }

    /// Returns the limit on page numbers of kept links when less than a sixteenth is left, once.
    pub fn nears_page_limit(&mut self) -> Option<u64> {
        let limit = Storage::page_limit(self.storage());
        let is_near = limit < u64::MAX && self.pages() >= limit - limit / 16;
        (is_near && !std::mem::replace(&mut self.budget.told_limit, true)).then_some(limit)
    }

    /// Writes the index of the last checkpoint to disk, unless the present one suffices. On an error the store can
    /// still be written.
    pub fn keep_index(&mut self) -> Result<()> {
        keep_index(&mut self.engine)
    }

    /// Removes the index, which is a cache, if an error was caused by a full disk. Returns whether there was one.
    pub fn makes_room(&mut self, error: &Error) -> Result<bool> {
        if error.is_full() {
            self.storage_mut().drop_index()
        } else {
            Ok(false)
        }
    }

    /// Removes row files that were compacted, except for the one that readers of the current snapshot use.
    pub fn release_rows(&mut self) -> Result<()> {
        let retention = *self.storage().rows_retention();
        let named = snapshot::rows_named(&**self.disk(), self.dir(), &retention)?;
        self.storage_mut().release_rows(named)
    }

    /// Returns the last committed state.
    pub fn view(&self) -> Result<View> {
        self.storage().view()
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
