//! From the names of batches to pages: names of a batch's own, or of the archive that it is a part of
//! ([`Numbering`]). The engine itself knows page numbers only.
//!
//! Names are admitted entry by entry, in the order of their first appearance, so that pages have the same numbers
//! wherever batches end.

use std::ops::Range;

use super::{Admission, Engine, Links, NameMap, PageEntry, PageId, Storage};
use crate::model::{Batch, Entry, Fingerprint, Numbering, What};
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
    /// The page of each of the running batch's own names, as far as they were admitted.
    own: Vec<PageId>,
    /// The page of each name of the archive that is read, as far as they are known.
    archive: NameMap,
    targets: Vec<PageId>,
    weights: Vec<u64>,
    /// The targets of the entries looked ahead at, of the batch's links from `ahead_from` on.
    ahead: Vec<PageId>,
    ahead_from: u32,
}

impl Resolver {
    /// Goes on with an archive, the pages of whose first names are known.
    pub fn of_archive(names: NameMap) -> Resolver {
        Resolver {
            archive: names,
            ..Resolver::default()
        }
    }

    /// The pages of the archive's names.
    pub fn into_names(self) -> NameMap {
        self.archive
    }

    /// Bytes of memory in use for the names of an archive.
    pub fn names_bytes(&self) -> u64 {
        self.archive.bytes()
    }

    /// Begins a batch.
    pub fn begin<'r>(&'r mut self, batch: &'r Batch) -> Resolving<'r> {
        self.own.clear();
        self.ahead.clear();
        Resolving { names: self, batch }
    }

    /// Has all names of a batch admitted.
    pub(crate) fn admit(&mut self, pages: &mut impl Admit, batch: &Batch) -> Result<()> {
        let end = batch.first_name() + batch.fingerprints.len() as u32;
        self.begin(batch).admit(pages, end)
    }

    /// The page of a name of the batch that was begun last, which was admitted.
    #[inline]
    pub(crate) fn page(&self, batch: &Batch, name: u32) -> PageId {
        match batch.numbering {
            Numbering::Own => self.own[name as usize],
            Numbering::Archive(_) => self.archive.page(name),
        }
    }

    /// The same as a node of a graph in memory.
    pub(crate) fn node(&self, batch: &Batch, name: u32) -> u32 {
        self.page(batch, name).0 as u32
    }

    /// The pages of the batch's own names, as far as they were admitted.
    pub(crate) fn own(&self) -> &[PageId] {
        &self.own
    }

    /// Applies all entries of a batch.
    ///
    /// # Errors
    /// Those of [`Resolving::apply`].
    pub fn apply<S: Storage>(&mut self, engine: &mut Engine<S>, batch: &Batch) -> Result<()> {
        let mut resolving = self.begin(batch);
        let mut entries = batch.entries.iter();
        entries.try_for_each(|entry| resolving.apply(engine, entry))
    }
}

/// A batch whose names are resolved, entry by entry.
pub struct Resolving<'r> {
    names: &'r mut Resolver,
    batch: &'r Batch,
}

impl Resolving<'_> {
    /// Asks for the memory that the next entries of an archive need, as far as their names' pages are known: many at a
    /// time, so that none is waited for alone.
    pub fn look_ahead<S: Storage>(&mut self, engine: &Engine<S>, entries: &[Entry]) {
        self.names.ahead.clear();
        if self.batch.numbering == Numbering::Own {
            return;
        }
        let known = self.names.archive.len();
        let is_known = |entry: &Entry| u64::from(entry.names_end) <= known;
        let entries = &entries[..entries.partition_point(is_known)];
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return;
        };
        let links = &self.batch.links[first.links_start as usize..last.links_end as usize];
        let Resolver { archive, ahead, .. } = &mut *self.names;
        archive.pages(links, ahead);
        self.names.ahead_from = first.links_start;
        let of_pages = entries.iter().filter(|entry| entry.what.is_of_page());
        let visited = of_pages.map(|entry| self.page(entry.source));
        engine.prefetch(visited, &self.names.ahead);
    }

    /// Looks up the names of an archive's part that its first `entries` brought, which an earlier run applied. False:
    /// one has no page, so it was another archive.
    pub fn recall<S: Storage>(&mut self, engine: &Engine<S>, entries: usize) -> bool {
        let Some(last) = entries.checked_sub(1) else {
            return true;
        };
        let end = self.batch.entries[last].names_end;
        let names = end.saturating_sub(self.batch.first_name()) as usize;
        self.batch.fingerprints.iter().take(names).all(|name| {
            let page = engine.page(*name);
            page.inspect(|page| self.names.archive.push(*page))
                .is_some()
        })
    }

    /// Checks that with the pages an entry brings, and those of entries before it that were not applied
    /// yet, there are no more than `limit`.
    ///
    /// # Errors
    /// [`Error::TooManyPages`].
    #[inline]
    pub fn check_room<S: Storage>(
        &self,
        engine: &Engine<S>,
        entry: &Entry,
        limit: u64,
    ) -> Result<()> {
        let new = self.unknown(entry.names_end);
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

    /// Applies an entry. Entries come in order, without gaps.
    ///
    /// # Errors
    /// Those of [`Engine::apply`]; [`Error::TooManyPages`], and then nothing was applied of the entry.
    pub fn apply<S: Storage>(&mut self, engine: &mut Engine<S>, entry: &Entry) -> Result<()> {
        if entry.what.is_of_page() {
            self.check_room(engine, entry, engine.page_limit())?;
        }
        self.apply_in_room(engine, entry)
    }

    /// As [`Resolving::apply`], where [`Resolving::check_room`] found room for the entry, or for one after it.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub(crate) fn apply_in_room<S: Storage>(
        &mut self,
        engine: &mut Engine<S>,
        entry: &Entry,
    ) -> Result<()> {
        if !entry.what.is_of_page() {
            engine.count(entry);
            return Ok(());
        }
        self.admit(engine, entry.names_end)?;
        let page = self.page(entry.source);
        let links = match entry.what {
            What::Visit | What::Unchanged => self.links(entry, engine.class_weights()),
            _ => Links::NONE,
        };
        engine.apply(&PageEntry {
            what: entry.what,
            page,
            links,
            fetched_at: entry.fetched_at,
            digest: entry.digest,
            counts: entry.counts,
        })
    }

    /// Of the names given here, those up to `names_end` whose pages are not known.
    fn unknown(&self, names_end: u32) -> Range<usize> {
        let known = match self.batch.numbering {
            Numbering::Own => self.names.own.len() as u32,
            Numbering::Archive(_) => self.names.archive.len().min(u64::from(names_end)) as u32,
        };
        if known >= names_end {
            return 0..0;
        }
        let first = self.batch.first_name();
        (known.max(first) - first) as usize..(names_end.max(first) - first) as usize
    }

    fn admit(&mut self, pages: &mut impl Admit, names_end: u32) -> Result<()> {
        let new = self.unknown(names_end);
        if new.is_empty() {
            return Ok(());
        }
        let Resolver { own, archive, .. } = &mut *self.names;
        match self.batch.numbering {
            Numbering::Own => pages.admit(self.batch, new, |page| own.push(page)),
            Numbering::Archive(_) => pages.admit(self.batch, new, |page| archive.push(page)),
        }
    }

    /// The page of a name of the batch, of an entry that was admitted.
    #[inline]
    fn page(&self, name: u32) -> PageId {
        self.names.page(self.batch, name)
    }

    /// Where the entry's targets are among those looked ahead at, if they are.
    fn ahead(&self, entry: &Entry) -> Option<&[PageId]> {
        let from = entry.links_start.wrapping_sub(self.names.ahead_from) as usize;
        let len = (entry.links_end - entry.links_start) as usize;
        self.names.ahead.get(from..from + len)
    }

    /// The entry's links.
    #[inline]
    fn links(&mut self, entry: &Entry, class_weights: &[u64]) -> Links<'_> {
        self.batch
            .weigh(entry, class_weights, &mut self.names.weights);
        if self.ahead(entry).is_none() {
            self.find_targets(entry);
        }
        Links {
            targets: self.ahead(entry).unwrap_or(&self.names.targets),
            weights: &self.names.weights,
        }
    }

    fn find_targets(&mut self, entry: &Entry) {
        let links = self.batch.targets(entry);
        let Resolver {
            own,
            archive,
            targets,
            ..
        } = &mut *self.names;
        targets.clear();
        match self.batch.numbering {
            Numbering::Own => targets.extend(links.iter().map(|&name| own[name as usize])),
            Numbering::Archive(_) => archive.pages(links, targets),
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
        self.index
            .admit_all(&batch.fingerprints, names, |at, page, is_new| {
                if is_new {
                    let name = batch.name(at as u32);
                    ledger.admit()?;
                    storage.page(batch.fingerprints[at], name)?;
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
