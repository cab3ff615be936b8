//! Records as the engine takes them: many at a time, in one arena, with every distinct name once.

use serde::{Deserialize, Serialize};

use super::{Digest, FetchTotals, Fingerprint, Reason, Time};

/// Text that ends a batch early: relative links can be far shorter than what they stand for.
pub(crate) const TEXT_BYTES: usize = 8 << 20;

/// How a record is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The page was fetched, and its links are known.
    Visit,
    /// The page is gone (404, 410): a visit without links.
    Gone,
    /// The page is unchanged (304, `revisit`): its links are unknown. A target is another page with the same content: the
    /// page's only link as long as no record had its own.
    Unchanged,
    /// The fetch failed (5xx, 403 and other statuses that tell nothing of the page).
    Failed,
    /// A page out of scope (`--scope`).
    OutOfScope,
    /// A page of another shard (`--shard`).
    OtherShard,
    /// The record cannot be used.
    Skipped(Reason),
    /// The bytes hold something other than a crawl record, as they may (a comment, a request ...).
    Other,
}

impl What {
    /// Returns whether it tells of a page.
    pub fn is_of_page(self) -> bool {
        !matches!(
            self,
            What::Skipped(_) | What::Other | What::OutOfScope | What::OtherShard
        )
    }
}

/// Counts of a record's links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Links as read.
    pub read: u32,
    /// To something that is no page: `mailto:`, `javascript:` and the like.
    pub scheme: u32,
    /// Not a URL.
    pub invalid: u32,
    /// Longer than `--limit-url`.
    pub too_long: u32,
    /// To the page itself, and dropped for it.
    pub own: u32,
    /// To a target that the record has named before.
    pub repeated: u32,
    /// To a page out of scope (`--scope`).
    pub out_of_scope: u32,
}

/// One record of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Offset in the chunk at which the record ends.
    pub end: u64,
    /// How it is applied.
    pub what: What,
    /// Name of the page. Without meaning for [`What::Skipped`] and [`What::Other`].
    pub source: u32,
    /// Names `..names_end` appear in the batch up to here.
    pub names_end: u32,
    /// Its distinct targets are `links[links_start..links_end]`.
    pub links_start: u32,
    /// See `links_start`.
    pub links_end: u32,
    /// Time of the fetch, if given.
    pub fetched_at: Option<Time>,
    /// Digest of the page's content, if its record had one.
    pub digest: Digest,
    /// Counts of its links.
    pub counts: LinkCounts,
}

/// Some records of one chunk, in stream order.
#[derive(Default)]
pub struct Batch {
    /// The records.
    pub entries: Vec<Entry>,
    /// Targets, as names.
    pub links: Vec<u32>,
    /// What each of `links` weighs; those behind the last weigh 1.
    pub weights: Vec<u64>,
    /// Distinct names in order of first appearance: their fingerprints,
    pub fingerprints: Vec<Fingerprint>,
    /// where each one's text ends in `text` (it starts where the one before ends),
    pub text_ends: Vec<u32>,
    /// and their text.
    pub text: Vec<u8>,
    /// For people: what was wrong, with the entry's number.
    pub complaints: Vec<(u32, String)>,
    /// For people: what an entry is that is no crawl record, with the entry's number.
    pub others: Vec<(u32, &'static str)>,
    /// Records whose times cannot be read, by the numbers of their entries.
    pub timeless: Vec<u32>,
    /// What records say of all fetches of their pages, by the numbers of their entries.
    pub totals: Vec<(u32, FetchTotals)>,
    /// For people: the HTTP status of a record that gives one, with the entry's number.
    pub statuses: Vec<(u32, i32)>,
    /// A line of JSON for each record of a page, as it was read, if that was asked for.
    pub lines: Vec<u8>,
    /// For people: the redirect and base of a record as they are written, with the entry's number, if they were asked for.
    pub written: Vec<(u32, Written)>,
}

impl Batch {
    /// Adds a name that is not there yet; returns its number.
    #[inline]
    pub fn push_name(&mut self, text: &[u8], fingerprint: Fingerprint) -> u32 {
        let name = self.fingerprints.len() as u32;
        self.text.extend_from_slice(text);
        self.text_ends.push(self.text.len() as u32);
        self.fingerprints.push(fingerprint);
        name
    }
}

/// Redirect and base of a record as they are written, truncated where they are long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Where it redirects to.
    pub redirect: Option<String>,
    /// The base of its links.
    pub base: Option<String>,
}

impl Batch {
    /// The text of a name.
    pub fn name(&self, name: u32) -> &[u8] {
        let at = name as usize;
        let start = at.checked_sub(1).map_or(0, |b| self.text_ends[b] as usize);
        &self.text[start..self.text_ends[at] as usize]
    }

    /// An entry's targets.
    pub fn targets(&self, entry: &Entry) -> &[u32] {
        &self.links[entry.links_start as usize..entry.links_end as usize]
    }

    /// Puts what an entry's targets weigh into `weights`; nothing if all weigh 1.
    pub(crate) fn weigh(&self, entry: &Entry, weights: &mut Vec<u64>) {
        weights.clear();
        let (start, end) = (entry.links_start as usize, entry.links_end as usize);
        let own = self.weights.iter().take(end).skip(start);
        weights.extend(own);
        if weights.iter().all(|&weight| weight == 1) {
            weights.clear();
        } else {
            weights.resize(end - start, 1);
        }
    }

    /// Returns whether the entry of this number is of a record whose time cannot be read.
    pub(crate) fn is_timeless(&self, entry: usize) -> bool {
        !self.timeless.is_empty() && self.timeless.binary_search(&(entry as u32)).is_ok()
    }

    /// The complaint about the entry with this number, if one was kept.
    pub(crate) fn complaint(&self, entry: usize) -> Option<&str> {
        of_entry(&self.complaints, entry).map(String::as_str)
    }

    /// The kind of the entry with this number, if it is no crawl record.
    pub(crate) fn other(&self, entry: usize) -> Option<&'static str> {
        of_entry(&self.others, entry).copied()
    }

    /// What the record of this number says of all fetches of its page.
    pub(crate) fn totals(&self, entry: usize) -> Option<FetchTotals> {
        of_entry(&self.totals, entry).copied()
    }

    /// The HTTP status of the entry of this number.
    pub(crate) fn status(&self, entry: usize) -> Option<i32> {
        of_entry(&self.statuses, entry).copied()
    }

    /// Redirect and base of the record with this number.
    pub(crate) fn written(&self, entry: usize) -> Option<&Written> {
        of_entry(&self.written, entry)
    }

    /// Returns whether its memory is worth keeping: one huge record must not make all
    /// batches huge.
    pub(crate) fn is_ordinary(&self) -> bool {
        let bytes = self.text.capacity()
            + size_of::<Entry>() * self.entries.capacity()
            + size_of::<u32>() * (self.links.capacity() + self.text_ends.capacity())
            + size_of::<u64>() * self.weights.capacity()
            + self.lines.capacity()
            + size_of::<Fingerprint>() * self.fingerprints.capacity();
        bytes <= 4 * TEXT_BYTES
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.links.clear();
        self.weights.clear();
        self.fingerprints.clear();
        self.text_ends.clear();
        self.text.clear();
        self.complaints.clear();
        self.others.clear();
        self.timeless.clear();
        self.statuses.clear();
        self.totals.clear();
        self.written.clear();
        self.lines.clear();
    }
}

/// Finds an entry's item in a list sorted by the numbers of entries.
fn of_entry<T>(list: &[(u32, T)], entry: usize) -> Option<&T> {
    let at = list.binary_search_by_key(&(entry as u32), |(of, _)| *of);
    at.ok().map(|at| &list[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_batches_are_not_kept() {
        let much = 4 * TEXT_BYTES;
        let mut batch = Batch::default();
        assert!(batch.is_ordinary());
        batch.links.reserve_exact(much / 8);
        batch.text.reserve_exact(much / 2);
        assert!(batch.is_ordinary());
        batch.entries.reserve_exact(1);
        assert!(!batch.is_ordinary());
        let mut batch = Batch::default();
        batch.links.reserve_exact(much / 4 + 1);
        assert!(!batch.is_ordinary());
    }
}
