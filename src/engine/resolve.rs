//! From the names of batches to pages. The engine itself knows page numbers only.
//!
//! Names are admitted entry by entry, in the order of their first appearance, so that pages have the same numbers
//! wherever batches end.

use std::ops::Range;

use super::{Admission, Engine, Links, PageEntry, PageId, Storage};
use crate::model::{Batch, Entry, Fingerprint, What};
use crate::{Error, Result};

/// Who gives names their pages.
pub trait Admit {
    /// Admits names of a batch that are new, in the order of their first appearance, and hands the page of each to `put`.
    ///
    /// # Errors
    /// There are too many pages; those of keeping them.
    fn admit(&mut self, batch: &Batch, names: Range<usize>, put: impl FnMut(PageId)) -> Result<()>;
}

/// Resolves names of batches, one batch after the other.
#[derive(Default)]
pub struct Resolver {
    /// The page of each of the running batch's names, as far as they were admitted.
    pages: Vec<PageId>,
    targets: Vec<PageId>,
    weights: Vec<u64>,
}

impl Resolver {
    /// Begins a batch.
    pub fn begin<'r>(&'r mut self, batch: &'r Batch) -> Resolving<'r> {
        self.pages.clear();
        Resolving { names: self, batch }
    }

    /// Has all names of a batch admitted.
    pub(crate) fn admit(&mut self, pages: &mut impl Admit, batch: &Batch) -> Result<()> {
        let end = batch.fingerprints.len() as u32;
        self.begin(batch).admit(pages, end)
    }

    /// The page of a name of the batch that was begun last, which was admitted.
    #[inline]
    pub(crate) fn page(&self, name: u32) -> PageId {
        self.pages[name as usize]
    }

    /// The same as a node of a graph in memory.
    pub(crate) fn node(&self, name: u32) -> u32 {
        self.page(name).0 as u32
    }

    /// The pages of the batch's names, as far as they were admitted.
    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Applies all entries of a batch.
    ///
    /// # Errors
    /// Those of [`Resolving::apply`].
    pub fn apply<S: Storage>(&mut self, engine: &mut Engine<S>, batch: &Batch) -> Result<()> {
        let mut resolving = self.begin(batch);
        (0..batch.entries.len()).try_for_each(|at| resolving.apply(engine, at))
    }
}

/// A batch whose names are resolved, entry by entry.
pub struct Resolving<'r> {
    names: &'r mut Resolver,
    batch: &'r Batch,
}

impl Resolving<'_> {
    /// Checks that with the pages of the batch's names up to `names_end` that were not admitted yet, there are no more than
    /// `limit`.
    ///
    /// # Errors
    /// [`Error::TooManyPages`].
    #[inline]
    pub fn check_room<S: Storage>(
        &self,
        engine: &Engine<S>,
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
        let is_new = |&&name: &&Fingerprint| engine.page(name).is_none();
        let new = self.batch.fingerprints[new].iter().filter(is_new).count();
        if new as u64 <= room {
            Ok(())
        } else {
            Err(Error::TooManyPages {
                limit,
                keeps_links: limit == engine.storage().page_limit(),
            })
        }
    }

    /// Applies the entry of this number. Entries come in order, without gaps.
    ///
    /// # Errors
    /// Those of [`Engine::apply`]; [`Error::TooManyPages`], and then nothing was applied of the entry.
    pub fn apply<S: Storage>(&mut self, engine: &mut Engine<S>, at: usize) -> Result<()> {
        let entry = &self.batch.entries[at];
        if entry.what.is_of_page() {
            self.check_room(engine, entry.names_end, engine.page_limit())?;
        }
        self.apply_in_room(engine, at)
    }

    /// As [`Resolving::apply`], where [`Resolving::check_room`] found room for the entry, or for one after it.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub(crate) fn apply_in_room<S: Storage>(
        &mut self,
        engine: &mut Engine<S>,
        at: usize,
    ) -> Result<()> {
        let batch = self.batch;
        let entry = &batch.entries[at];
        if !entry.what.is_of_page() {
            engine.count(entry);
            return Ok(());
        }
        self.admit(engine, entry.names_end)?;
        let page = self.names.page(entry.source);
        let links = match entry.what {
            What::Visit | What::Unchanged => self.links(entry),
            _ => Links::NONE,
        };
        engine.apply(&PageEntry {
            what: entry.what,
            page,
            links,
            fetched_at: entry.fetched_at,
            digest: entry.digest,
            counts: entry.counts,
            totals: batch.totals(at),
        })
    }

    /// Of the batch's names, those up to `names_end` whose pages are not known.
    fn unknown(&self, names_end: u32) -> Range<usize> {
        let known = self.names.pages.len();
        known..known.max(names_end as usize)
    }

    /// Admits the batch's names up to `names_end`, for which [`Resolving::check_room`] found room.
    ///
    /// # Errors
    /// Those of [`Admit::admit`].
    pub(crate) fn admit(&mut self, pages: &mut impl Admit, names_end: u32) -> Result<()> {
        let new = self.unknown(names_end);
        if new.is_empty() {
            return Ok(());
        }
        let known = &mut self.names.pages;
        pages.admit(self.batch, new, |page| known.push(page))
    }

    /// The entry's links.
    #[inline]
    fn links(&mut self, entry: &Entry) -> Links<'_> {
        let Resolver {
            pages,
            targets,
            weights,
        } = &mut *self.names;
        self.batch.weigh(entry, weights);
        targets.clear();
        let links = self.batch.targets(entry).iter();
        targets.extend(links.map(|&name| pages[name as usize]));
        Links { targets, weights }
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
        let (shard, remote_pages) = (self.shard, &mut self.counters.shard.remote_pages);
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
