//! Resolves the names of batches to pages. Names are admitted entry by entry, in the order of their first appearance,
//! so page numbers do not depend on where batches end.

use std::ops::Range;

use super::{Admission, Engine, PageId, Storage, TargetLinks};
use crate::model::{Batch, BatchEntry, Fingerprint, What};
use crate::{Error, Result};

/// Source of page numbers for names.
pub trait Admit {
    /// Admits the new names of a batch in the order of first appearance, and passes the page of each name to `put`.
    fn admit(&mut self, batch: &Batch, names: Range<usize>, put: impl FnMut(PageId)) -> Result<()>;
}

/// Resolves names, one batch after the other and entry by entry.
#[derive(Default)]
pub struct Resolver {
    /// Page of each name of the current batch, as far as they were admitted.
    pages: Vec<PageId>,
    targets: Vec<PageId>,
    weights: Vec<u64>,
}

impl Resolver {
    /// Begins a batch, to which all calls refer until the next `begin`.
    pub fn begin(&mut self) {
        self.pages.clear();
    }

    #[inline]
    pub fn page(&self, name: u32) -> PageId {
        self.pages[name as usize]
    }

    /// Returns the page of an admitted name as a node number of a graph in memory.
    pub fn node(&self, name: u32) -> u32 {
        self.page(name).0 as u32
    }

    /// Returns the pages of the batch's names, as far as they were admitted.
    pub fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Returns [`Error::TooManyPages`] if admitting the batch's names up to `names_end` would exceed `limit` pages.
    #[inline]
    pub fn check_room<S: Storage>(
        &self,
        engine: &Engine<S>,
        batch: &Batch,
        names_end: u32,
        limit: u64,
    ) -> Result<()> {
        let new = self.unknown(names_end);
        if new.is_empty() {
            return Ok(());
        }
        let room = limit.saturating_sub(engine.ledger().totals().pages);
        if new.len() as u64 <= room {
            return Ok(());
        }
        let is_new = |&&name: &&Fingerprint| engine.index().get(name).is_none();
        let new = batch.fingerprints[new].iter().filter(is_new).count();
        if new as u64 <= room {
            Ok(())
        } else {
            Err(Error::TooManyPages {
                limit,
                keeps_links: limit == engine.storage().page_limit(),
            })
        }
    }

    /// Applies the entry number `at`. Entries must come in order, without gaps. On [`Error::TooManyPages`], nothing of
    /// the entry was applied.
    pub fn apply<S: Storage>(
        &mut self,
        engine: &mut Engine<S>,
        batch: &Batch,
        at: usize,
    ) -> Result<()> {
        let entry = &batch.entries[at];
        if !entry.what.is_of_page() {
            engine.count(entry);
            return Ok(());
        }
        self.check_room(engine, batch, entry.names_end, engine.page_limit())?;
        self.admit(engine, batch, entry.names_end)?;
        let page = self.page(entry.source);
        let links = match entry.what {
            What::Visit | What::Unchanged => self.links(batch, entry),
            _ => TargetLinks::NONE,
        };
        engine.apply(entry, page, links, batch.totals(at))
    }

    /// Returns the names up to `names_end` whose pages are not known yet.
    fn unknown(&self, names_end: u32) -> Range<usize> {
        let known = self.pages.len();
        known..known.max(names_end as usize)
    }

    /// Admits the batch's names up to `names_end`, for which there must be room.
    pub fn admit(&mut self, to: &mut impl Admit, batch: &Batch, names_end: u32) -> Result<()> {
        let new = self.unknown(names_end);
        if new.is_empty() {
            return Ok(());
        }
        to.admit(batch, new, |page| self.pages.push(page))
    }

    #[inline]
    fn links(&mut self, batch: &Batch, entry: &BatchEntry) -> TargetLinks<'_> {
        let (pages, targets) = (&self.pages, &mut self.targets);
        batch.weigh(entry, &mut self.weights);
        targets.clear();
        let links = batch.targets(entry).iter();
        targets.extend(links.map(|&name| pages[name as usize]));
        TargetLinks {
            targets,
            weights: &self.weights,
        }
    }
}

impl<S: Storage> Admit for Engine<S> {
    fn admit(
        &mut self,
        batch: &Batch,
        names: Range<usize>,
        mut put: impl FnMut(PageId),
    ) -> Result<()> {
        let before = *self.ledger.totals();
        let (ledger, storage) = (&mut self.ledger, &mut self.storage);
        let (shard, remote_pages) = (self.shard, &mut self.state.counters.shard.remote_pages);
        self.index
            .admit_all(&batch.fingerprints, names, |at, page, is_new| {
                if is_new {
                    let name = batch.name(at as u32);
                    ledger.admit()?;
                    storage.page(batch.fingerprints[at], name)?;
                    *remote_pages += u64::from(shard.is_some_and(|shard| !shard.has(name)));
                }
                put(page);
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
