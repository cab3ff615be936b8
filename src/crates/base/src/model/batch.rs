//! Batches of records as the engine takes them: in one arena, with every distinct name once.

use serde::{Deserialize, Serialize};

use super::{Digest, FetchTotals, Fingerprint, Reason, Time};

/// Bytes of text at which a batch ends early: relative links can be far shorter than their absolute form.
pub const TEXT_BYTES: usize = 8 << 20;

/// Effect of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The page was fetched, and its links are known.
    Visit,
    /// The page is gone (404, 410): a visit without links.
    Gone,
    /// The page is unchanged (304, `revisit`): its links are unknown. A target is another page with the same content:
    /// the page's only link until a record has its own.
    Unchanged,
    /// The fetch failed (5xx, 403 and other statuses that say nothing about the page).
    Failed,
    /// The page is out of scope (`--scope`).
    OutOfScope,
    /// The page belongs to another shard (`--shard`).
    OtherShard,
    /// The record cannot be used.
    Skipped(Reason),
    /// Valid bytes other than a crawl record (a comment, a request ...).
    Other,
}

impl What {
    /// Returns whether the record is about a page that counts here.
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
    /// Number of links as read.
    pub read: u32,
    /// Number of links to something other than a page: `mailto:`, `javascript:` and the like.
    pub scheme: u32,
    /// Number of links that are not URLs.
    pub invalid: u32,
    /// Number of links longer than `--limit-url`.
    pub too_long: u32,
    /// Number of links to the page itself that were dropped.
    pub own: u32,
    /// Number of links to a target that the record has named before.
    pub repeated: u32,
    /// Number of links to pages out of scope (`--scope`).
    pub out_of_scope: u32,
}

/// Record of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchEntry {
    /// Offset in the chunk at which the record ends.
    pub end: u64,
    /// Effect of the record.
    pub what: What,
    /// Name of the page; meaningless for [`What::Skipped`] and [`What::Other`].
    pub source: u32,
    /// Number of names that appear in the batch up to here.
    pub names_end: u32,
    /// Start of its distinct targets, `links[links_start..links_end]`.
    pub links_start: u32,
    /// End of its distinct targets.
    pub links_end: u32,
    /// Time of the fetch, if given.
    pub fetched_at: Option<Time>,
    /// Digest of the page's content, if its record had one.
    pub digest: Digest,
    /// Counts of the record's links, by what became of them.
    pub counts: LinkCounts,
    /// HTTP status, if the record has one.
    pub status: Option<i32>,
    /// True if the record has an invalid time.
    pub is_timeless: bool,
    /// Name of what it is, of [`What::Other`].
    pub kind: Option<&'static str>,
}

/// Some records of one chunk, in stream order.
#[derive(Default)]
pub struct Batch {
    /// Entries of the batch, in stream order.
    pub entries: Vec<BatchEntry>,
    /// Targets of all entries, as names.
    pub links: Vec<u32>,
    /// Weights of `links`; links beyond its end weigh 1.
    pub weights: Vec<u64>,
    /// Fingerprints of the distinct names, in order of first appearance.
    pub fingerprints: Vec<Fingerprint>,
    /// Offsets in `text` at which each name ends (it starts where the one before ends).
    pub text_ends: Vec<u32>,
    /// Text of all names.
    pub text: Vec<u8>,
    /// Messages about what was wrong, with the number of the entry.
    pub complaints: Vec<(u32, String)>,
    /// Totals over all fetches of entries' pages, with the number of the entry.
    pub totals: Vec<(u32, FetchTotals)>,
    /// Records of pages as lines of JSON, if requested.
    pub lines: Vec<u8>,
    /// Redirects and bases of records as written, with the number of the entry, if requested.
    pub written: Vec<(u32, RawRedirect)>,
}

impl Batch {
    /// Adds a new name; returns its number.
    #[inline]
    pub fn push_name(&mut self, text: &[u8], fingerprint: Fingerprint) -> u32 {
        let name = self.fingerprints.len() as u32;
        self.text.extend_from_slice(text);
        self.text_ends.push(self.text.len() as u32);
        self.fingerprints.push(fingerprint);
        name
    }
}

/// Redirect and base of a record as written, truncated if long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawRedirect {
    /// Target of the redirect.
    pub redirect: Option<String>,
    /// Base of the record's links.
    pub base: Option<String>,
}

impl Batch {
    /// Returns the text of a name.
    pub fn name(&self, name: u32) -> &[u8] {
        let at = name as usize;
        let start = at.checked_sub(1).map_or(0, |b| self.text_ends[b] as usize);
        &self.text[start..self.text_ends[at] as usize]
    }

    /// Returns an entry's targets.
    pub fn targets(&self, entry: &BatchEntry) -> &[u32] {
        &self.links[entry.links_start as usize..entry.links_end as usize]
    }

    /// Stores the weights of an entry's targets in `weights`; empty if all are 1.
    pub fn weigh(&self, entry: &BatchEntry, weights: &mut Vec<u64>) {
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

    /// Returns the message about this entry, if one was kept.
    pub fn complaint(&self, entry: usize) -> Option<&str> {
        of_entry(&self.complaints, entry).map(String::as_str)
    }

    /// Returns the totals over all fetches of this entry's page.
    pub fn totals(&self, entry: usize) -> Option<FetchTotals> {
        of_entry(&self.totals, entry).copied()
    }

    /// Returns redirect and base of this entry as written.
    pub fn written(&self, entry: usize) -> Option<&RawRedirect> {
        of_entry(&self.written, entry)
    }

    /// Returns whether its memory is worth keeping: one huge record must not make all batches huge.
    pub fn is_ordinary(&self) -> bool {
        let bytes = self.text.capacity()
            + size_of::<BatchEntry>() * self.entries.capacity()
            + size_of::<u32>() * (self.links.capacity() + self.text_ends.capacity())
            + size_of::<u64>() * self.weights.capacity()
            + self.lines.capacity()
            + size_of::<Fingerprint>() * self.fingerprints.capacity();
        bytes <= 4 * TEXT_BYTES
    }

    /// Clears the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.links.clear();
        self.weights.clear();
        self.fingerprints.clear();
        self.text_ends.clear();
        self.text.clear();
        self.complaints.clear();
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
