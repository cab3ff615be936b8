//! Names of batches as pages. Names are admitted entry by entry, in the order of their first appearance, so page numbers
//! do not depend on where batches end.

use super::{Admission, Engine, PageId, Storage, TargetLinks};
use crate::model::{Batch, Fingerprint, What};
use crate::{Error, Result};

impl<S: Storage> Engine<S> {
    /// Begins a batch, to which all calls refer until the next one begins.
    pub fn begin_batch(&mut self) {
        self.batch_pages.clear();
    }

    /// Returns the pages of the batch's names, as far as they were admitted.
    pub fn batch_pages(&self) -> &[PageId] {
        &self.batch_pages
    }

    /// Returns [`Error::TooManyPages`] if admitting the batch's names up to `names_end` would exceed `limit` pages.
    #[inline]
    pub fn check_room(&self, batch: &Batch, names_end: u32, limit: u64) -> Result<()> {
        let known = self.batch_pages.len();
        let new = known..known.max(names_end as usize);
        let room = limit.saturating_sub(self.ledger.totals().pages);
        if new.len() as u64 <= room {
            return Ok(());
        }
        let is_new = |&&name: &&Fingerprint| self.index.get(name).is_none();
        let new = batch.fingerprints[new].iter().filter(is_new).count();
        if new as u64 <= room {
            return Ok(());
        }
        Err(Error::TooManyPages {
            limit,
            keeps_links: limit == self.storage.page_limit(),
        })
    }

    /// Applies the entry number `at`. Entries must come in order, without gaps. On [`Error::TooManyPages`], nothing of
    /// the entry was applied.
    pub fn apply_entry(&mut self, batch: &Batch, at: usize) -> Result<()> {
        let entry = &batch.entries[at];
        if !entry.what.is_of_page() {
            self.count(entry);
            return Ok(());
        }
        self.check_room(batch, entry.names_end, self.page_limit())?;
        self.admit(batch, entry.names_end)?;
        let page = self.batch_pages[entry.source as usize];
        let (mut targets, mut weights) = std::mem::take(&mut self.links);
        targets.clear();
        weights.clear();
        if matches!(entry.what, What::Visit | What::Unchanged) {
            batch.weigh(entry, &mut weights);
            let names = batch.targets(entry).iter();
            targets.extend(names.map(|&name| self.batch_pages[name as usize]));
        }
        let links = TargetLinks {
            targets: &targets,
            weights: &weights,
        };
        let applied = self.apply(entry, page, links, batch.totals(at));
        self.links = (targets, weights);
        applied
    }

    /// Admits the batch's names up to `names_end`, for which there must be room.
    pub fn admit(&mut self, batch: &Batch, names_end: u32) -> Result<()> {
        let known = self.batch_pages.len();
        if known >= names_end as usize {
            return Ok(());
        }
        let before = *self.ledger.totals();
        let (ledger, storage, pages) = (&mut self.ledger, &mut self.storage, &mut self.batch_pages);
        let (shard, remote_pages) = (self.shard, &mut self.state.counters.shard.remote_pages);
        let new = known..names_end as usize;
        self.index
            .admit_all(&batch.fingerprints, new, |at, page, is_new| {
                if is_new {
                    let name = batch.name(at as u32);
                    ledger.admit()?;
                    storage.page(batch.fingerprints[at], name)?;
                    *remote_pages += u64::from(shard.is_some_and(|shard| !shard.has(name)));
                }
                pages.push(page);
                Ok(())
            })?;
        if self.ledger.totals().pages > before.pages {
            self.storage.admission(Admission {
                first: before.pages,
                paid: before.paid,
                clock: if self.log.is_timed() { before.clock } else { 0 },
            })?;
        }
        Ok(())
    }
}
