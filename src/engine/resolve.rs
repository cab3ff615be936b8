//! From the names of a batch to pages: names of the batch's own, or of the archive that it is a part of.
//!
//! For each batch [`Engine::begin`] comes first; names are admitted entry by entry, in the order of their first
//! appearance, so that pages have the same numbers wherever batches end.

use super::{Admission, Engine, NameMap, PageId, Storage, TOUCHED};
use crate::model::{Batch, Entry, Fingerprint};
use crate::{Error, Result};

impl<S: Storage> Engine<S> {
    /// Begins a batch: names of an earlier one are forgotten.
    pub fn begin(&mut self) {
        self.ids.clear();
        self.ahead.clear();
    }

    /// Asks for the memory that the next entries of an archive need, as far as their names' pages are known: many at a
    /// time, so that none is waited for alone.
    pub fn look_ahead(&mut self, batch: &Batch, entries: &[Entry]) {
        self.ahead.clear();
        if batch.part.is_none() {
            return;
        }
        let known = self.names.len();
        let is_known = |entry: &Entry| u64::from(entry.names_end) <= known;
        let entries = &entries[..entries.partition_point(is_known)];
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return;
        };
        let names = &batch.links[first.links_start as usize..last.links_end as usize];
        self.ahead_from = first.links_start;
        let mut ahead = std::mem::take(&mut self.ahead);
        self.pages_of(batch, names, &mut ahead);
        self.ahead = ahead;
        let of_pages = entries.iter().filter(|entry| entry.what.is_of_page());
        let visited = of_pages.map(|entry| self.page_of(batch, entry.source));
        self.prefetch(visited, &self.ahead);
    }

    /// The pages of the names of the archive being read; leaves none. To be given back with
    /// [`Engine::set_names`] before the next part of that archive.
    pub fn take_names(&mut self) -> NameMap {
        std::mem::take(&mut self.names)
    }

    /// Begins or goes on with an archive, the pages of whose first names are known.
    pub fn set_names(&mut self, names: NameMap) {
        self.names = names;
    }

    /// Looks up the names of an archive's part, up to `names_end`, which an earlier run applied.
    ///
    /// # Errors
    /// [`Error::InputChanged`] if one has no page: it was another archive.
    pub fn recall(&mut self, batch: &Batch, names_end: u32) -> Result<()> {
        let names = names_end.saturating_sub(batch.first_name()) as usize;
        for fingerprint in batch.fingerprints.iter().take(names) {
            let page = self.index.get(*fingerprint).ok_or_else(|| {
                Error::InputChanged(
                    "the archive has names that were not in what was read before".into(),
                )
            })?;
            self.names.push(page);
        }
        Ok(())
    }

    /// Checks that with the pages an entry brings, and those of entries before it that were not applied
    /// yet, there are no more than `limit`.
    #[inline]
    pub(crate) fn check_room(&self, batch: &Batch, entry: &Entry, limit: u64) -> Result<()> {
        let known = self.known(batch, entry.names_end);
        if known >= entry.names_end {
            return Ok(());
        }
        let room = limit.saturating_sub(self.ledger.totals().pages);
        let first = batch.first_name();
        let names =
            (known.max(first) - first) as usize..(entry.names_end.max(first) - first) as usize;
        if names.len() as u64 <= room {
            return Ok(());
        }
        let is_new = |&&name: &&Fingerprint| self.index.get(name).is_none();
        let new = batch.fingerprints[names].iter().filter(is_new).count();
        match new as u64 <= room {
            true => Ok(()),
            false => Err(Error::TooManyPages { limit }),
        }
    }

    /// The entry's targets: of those `ahead`, or put into `targets`.
    pub(super) fn targets<'a>(
        &self,
        batch: &Batch,
        entry: &Entry,
        ahead: &'a [PageId],
        targets: &'a mut Vec<PageId>,
    ) -> &'a [PageId] {
        let names = batch.targets(entry);
        let from = entry.links_start.wrapping_sub(self.ahead_from) as usize;
        if let Some(ahead) = ahead.get(from..from + names.len()) {
            return ahead;
        }
        targets.clear();
        self.pages_of(batch, names, targets);
        targets
    }

    /// Appends the pages of names of the running batch, of entries that are applied or looked ahead at.
    #[inline]
    pub(super) fn pages_of(&self, batch: &Batch, names: &[u32], into: &mut Vec<PageId>) {
        match batch.part {
            None => into.extend(names.iter().map(|&name| self.page_of(batch, name))),
            Some(_) => self.names.pages(names, into),
        }
    }

    /// The page of a name of the running batch, of an entry that was applied.
    #[inline]
    pub fn page_of(&self, batch: &Batch, name: u32) -> PageId {
        match batch.part {
            None => self.ids[name as usize],
            Some(_) => self.names.page(name),
        }
    }

    /// Names of those up to `names_end` whose pages are known, at most so many.
    pub(super) fn known(&self, batch: &Batch, names_end: u32) -> u32 {
        match batch.part {
            None => self.ids.len() as u32,
            Some(_) => self.names.len().min(u64::from(names_end)) as u32,
        }
    }

    pub(super) fn admit_names(&mut self, batch: &Batch, names_end: u32) -> Result<()> {
        let known = self.known(batch, names_end);
        if known >= names_end {
            return Ok(());
        }
        let before = *self.ledger.totals();
        let first = batch.first_name();
        for name in known..names_end {
            let at = (name - first) as usize;
            if at.is_multiple_of(TOUCHED) {
                let ahead = batch.fingerprints.len().min(at + TOUCHED);
                self.index.touch(&batch.fingerprints[at..ahead]);
            }
            let fingerprint = batch.fingerprints[at];
            let (page, new) = self.index.admit(fingerprint)?;
            if new {
                self.ledger.admit()?;
                self.storage.page(fingerprint, batch.name(at as u32))?;
            }
            match batch.part {
                None => self.ids.push(page),
                Some(_) => self.names.push(page),
            }
        }
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
