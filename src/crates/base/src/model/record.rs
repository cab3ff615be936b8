//! Records: as decoders read them, each borrowed from its chunk; and in batches as the engine takes them, in one arena,
//! with every distinct name once.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{Digest, FetchTotals, Fingerprint, LINKS_MAX};
use crate::words;

/// Time as seconds since 1970-01-01T00:00:00Z.
pub type Time = i64;

/// Times that [`utc`] can format: from -9999-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
pub const TIMES: RangeInclusive<Time> = -377_705_116_800..=253_402_300_799;

/// Formats a time as RFC 3339 in UTC, in whole seconds; `None` outside of [`TIMES`].
pub fn utc(time: Time) -> Option<String> {
    let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let at = epoch.checked_add(jiff::SignedDuration::from_secs(time));
    Some(format!("{}Z", at.ok()?))
}

/// Fetch of a page, as read: URLs are raw, links may be relative and may repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// URL of the page (or, for graphs, its opaque name), as written.
    pub url: Cow<'a, [u8]>,
    /// Base of relative links, itself relative to `url`; `None`: `url`.
    pub base: Option<Cow<'a, [u8]>>,
    /// Time of the fetch, if the record has it.
    pub fetched_at: Option<Time>,
    /// Message about an invalid time; the record is used without it.
    pub bad_time: Option<String>,
    /// HTTP status, if the record has it. Negative: the crawler's own code for a failure.
    pub status: Option<i32>,
    /// Digest of the page's content, if the record has one: two visits with digests show whether the page changed.
    pub digest: Digest,
    /// Target of a 3xx response. It is then the page's only link.
    pub redirect: Option<Cow<'a, [u8]>>,
    /// Links in document order; of more than 3 x 2^20, the first 3 x 2^20 + 1.
    pub links: Vec<Link<'a>>,
    /// True if the page was found unchanged (`revisit`, or status 304): its links are unknown, not none.
    pub revisit: bool,
    /// For a page that was found unchanged: another URL with the same content. It is the page's only link until a
    /// record has the page's own links.
    pub same_as: Option<Cow<'a, [u8]>>,
    /// Totals over the page's fetches so far, if the record describes these instead of one fetch.
    pub totals: Option<FetchTotals>,
}

/// Interpretation of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// URLs: brought to canonical form, with relative links joined.
    Url,
    /// Opaque node names, taken byte for byte.
    Opaque,
}

/// Number of links for which a cleared record keeps memory.
const LINKS_KEPT: usize = 1 << 15;

impl<'a> Record<'a> {
    /// Returns a record of a page with links and no other facts.
    pub fn new(url: &'a str, links: impl IntoIterator<Item = &'a str>) -> Record<'a> {
        let links = links.into_iter().map(|link| Link::to(link.as_bytes()));
        Record {
            url: Cow::Borrowed(url.as_bytes()),
            links: links.collect(),
            ..Record::default()
        }
    }

    /// Clears the record, keeping memory for links.
    pub fn clear(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        links.shrink_to(LINKS_KEPT);
        *self = Record {
            links,
            ..Record::default()
        };
    }

    /// Returns the record with all data owned.
    pub fn into_owned(self) -> Record<'static> {
        let owned = |text: Cow<'a, [u8]>| Cow::Owned(text.into_owned());
        Record {
            url: owned(self.url),
            base: self.base.map(owned),
            fetched_at: self.fetched_at,
            bad_time: self.bad_time,
            status: self.status,
            digest: self.digest,
            redirect: self.redirect.map(owned),
            links: self.links.into_iter().map(Link::into_owned).collect(),
            revisit: self.revisit,
            same_as: self.same_as.map(owned),
            totals: self.totals,
        }
    }
}

/// Appends a link, unless there are already more than any limit permits.
pub fn keep<'a>(links: &mut Vec<Link<'a>>, link: impl Into<Link<'a>>) {
    if links.len() <= LINKS_MAX {
        links.push(link.into());
    }
}

/// Returns whether a `Location` with this status is the target of a redirect. 304 means "unchanged".
pub fn is_redirect(status: i32) -> bool {
    (300..400).contains(&status) && status != 304
}

/// Returns whether a response of this status holds the whole page, or redirects.
pub fn has_page(status: i32) -> bool {
    matches!(status, 200..=203 | 207..=303 | 305..=399)
}

/// Link of a page, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// Target as written: absolute or relative, perhaps with a fragment.
    pub url: Cow<'a, [u8]>,
    /// Values of `rel` on the link.
    pub rel: Rel,
    /// Weight among the links of its page, 1 by default; 0: the target is a page, but not linked.
    pub weight: u32,
}

impl<'a> Link<'a> {
    /// Returns a link without attributes.
    pub fn to(url: impl Into<Cow<'a, [u8]>>) -> Link<'a> {
        Link {
            url: url.into(),
            rel: Rel::default(),
            weight: 1,
        }
    }

    /// Returns the link with its own copy of the URL.
    pub fn into_owned(self) -> Link<'static> {
        Link {
            url: Cow::Owned(self.url.into_owned()),
            rel: self.rel,
            weight: self.weight,
        }
    }
}

impl<'a> From<Cow<'a, [u8]>> for Link<'a> {
    fn from(url: Cow<'a, [u8]>) -> Link<'a> {
        Link::to(url)
    }
}

words! {
    /// Reason why a record was not applied. The summary counts and names each separately, in this order.
    #[non_exhaustive]
    Reason {
        /// Not what the format requires: broken JSON, a missing field, a wrong type.
        Malformed = "malformed",
        /// The bytes are not UTF-8 where the format requires it.
        InvalidUtf8 = "invalid-utf8",
        /// The record has no usable URL of its own.
        BadUrl = "bad-url",
        /// The time is invalid. Such records are used without a time, and reported; earlier versions skipped them.
        BadTime = "bad-time",
        /// The record is longer than `--limit-line`.
        TooLong = "too-long",
        /// The record's own URL is longer than `--limit-url`.
        UrlTooLong = "url-too-long",
        /// The record has more links than `--limit-links`.
        TooManyLinks = "too-many-links",
        /// The input ended inside the record.
        CutShort = "cut-short",
    }
}

#[derive(Debug)]
pub enum Parsed<'r, 'a> {
    /// Crawl record that can be applied.
    Record(&'r Record<'a>),
    Bad {
        reason: Reason,
        /// One-line message about what is wrong, without position.
        detail: String,
    },
    /// Valid bytes that are not a crawl record: a comment, a blank line, a WARC `request`.
    Other { kind: &'static str },
    /// Sign that the next record takes far more memory than its bytes: the records before should be processed first.
    Large,
}

/// Set of link types: `nofollow` of HTML (section 4.6.7), and its refinements by search engines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rel(u8);

impl Rel {
    /// The page does not vouch for the target.
    pub const NOFOLLOW: Rel = Rel(1);
    /// A visitor of the page set the link.
    pub const UGC: Rel = Rel(2);
    /// The link was paid for.
    pub const SPONSORED: Rel = Rel(4);

    const NAMED: [(&[u8], Rel); 3] = [
        (b"nofollow", Rel::NOFOLLOW),
        (b"ugc", Rel::UGC),
        (b"sponsored", Rel::SPONSORED),
    ];

    /// Parses a `rel` attribute: words between spaces, in any case. Other words are ignored.
    pub fn of(attribute: &[u8]) -> Rel {
        let words = attribute.split(u8::is_ascii_whitespace);
        words.fold(Rel::default(), |all, word| {
            let known = Rel::NAMED
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name));
            known.map_or(all, |(_, rel)| all.with(*rel))
        })
    }

    /// Returns the words of the attribute, separated by spaces; empty if there are none.
    pub fn words(self) -> String {
        let named = Rel::NAMED.iter().filter(|(_, rel)| self.has(*rel));
        let words: Vec<_> = named
            .map(|(name, _)| String::from_utf8_lossy(name))
            .collect();
        words.join(" ")
    }

    /// Returns the union of both sets.
    pub fn with(self, other: Rel) -> Rel {
        Rel(self.0 | other.0)
    }

    /// Returns whether the set contains all of `other`.
    pub fn has(self, other: Rel) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn all() -> impl Iterator<Item = Rel> {
        (0..8).map(Rel)
    }

    /// Returns one bit per type, from the lowest: nofollow, ugc, sponsored.
    pub fn bits(self) -> u8 {
        self.0
    }
}

words! {
    /// Treatment of links from a page to itself.
    #[derive(Default)]
    SelfLinks {
        /// Self-links are dropped: a page cannot vote for itself.
        #[default]
        Drop = "drop",
        /// Self-links count like other links.
        Keep = "keep",
    }
}

/// Bytes of text at which a batch ends early: relative links can be far shorter than their absolute form.
pub const TEXT_BYTES: usize = 8 << 20;

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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
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

#[derive(Debug, Clone, Copy)]
pub struct BatchEntry {
    /// Offset in the chunk at which the record ends.
    pub end: u64,
    pub what: What,
    /// Name of the page; meaningless for [`What::Skipped`] and [`What::Other`].
    pub source: u32,
    /// Number of names that appear in the batch up to here.
    pub names_end: u32,
    /// Start of its distinct targets, `links[links_start..links_end]`.
    pub links_start: u32,
    pub links_end: u32,
    pub fetched_at: Option<Time>,
    pub digest: Digest,
    pub counts: LinkCounts,
    pub status: Option<i32>,
    /// True if the record has an invalid time.
    pub is_timeless: bool,
    /// Kind of item, for [`What::Other`].
    pub kind: Option<&'static str>,
}

/// Some records of one chunk, in stream order.
#[derive(Default)]
pub struct Batch {
    pub entries: Vec<BatchEntry>,
    /// Targets of all entries, as names.
    pub links: Vec<u32>,
    /// Weights of `links`; links beyond its end weigh 1.
    pub weights: Vec<u64>,
    /// Fingerprints of the distinct names, in order of first appearance.
    pub fingerprints: Vec<Fingerprint>,
    /// Offsets in `text` at which each name ends (it starts where the one before ends).
    pub text_ends: Vec<u32>,
    pub text: Vec<u8>,
    /// Messages about what was wrong, with the number of the entry.
    pub complaints: Vec<(u32, String)>,
    /// Totals over all fetches of pages, with the numbers of their entries.
    pub totals: Vec<(u32, FetchTotals)>,
    /// Records of pages as lines of JSON, if requested.
    pub lines: Vec<u8>,
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

    pub fn name(&self, name: u32) -> &[u8] {
        let at = name as usize;
        let start = at.checked_sub(1).map_or(0, |b| self.text_ends[b] as usize);
        &self.text[start..self.text_ends[at] as usize]
    }

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

    pub fn complaint(&self, entry: usize) -> Option<&str> {
        of_entry(&self.complaints, entry).map(String::as_str)
    }

    pub fn totals(&self, entry: usize) -> Option<FetchTotals> {
        of_entry(&self.totals, entry).copied()
    }

    /// Returns whether the batch's memory is worth keeping: one huge record must not make all batches huge.
    pub fn is_ordinary(&self) -> bool {
        let bytes = self.text.capacity()
            + size_of::<BatchEntry>() * self.entries.capacity()
            + size_of::<u32>() * (self.links.capacity() + self.text_ends.capacity())
            + size_of::<u64>() * self.weights.capacity()
            + self.lines.capacity()
            + size_of::<Fingerprint>() * self.fingerprints.capacity();
        bytes <= 4 * TEXT_BYTES
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.links.clear();
        self.weights.clear();
        self.fingerprints.clear();
        self.text_ends.clear();
        self.text.clear();
        self.complaints.clear();
        self.totals.clear();
        self.lines.clear();
    }
}

fn of_entry<T>(list: &[(u32, T)], entry: usize) -> Option<&T> {
    let at = list.binary_search_by_key(&(entry as u32), |(of, _)| *of);
    at.ok().map(|at| &list[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_rel() {
        let all = Rel::NOFOLLOW.with(Rel::UGC).with(Rel::SPONSORED);
        assert_eq!(Rel::of(b" NoFollow\tugc\nsponsored noopener"), all);
        assert_eq!(Rel::of(b"nofollows no-follow"), Rel::default());
        assert!(all.has(Rel::UGC) && !Rel::UGC.has(all));
        assert_eq!(all.bits(), 7);
        assert!(Rel::all().all(|rel| Rel::of(rel.words().as_bytes()) == rel));
    }

    #[test]
    fn times_are_those_with_four_digits_of_a_year() {
        let (first, last) = (*TIMES.start(), *TIMES.end());
        assert_eq!(utc(first).unwrap(), "-009999-01-01T00:00:00Z");
        assert_eq!(utc(last).unwrap(), "9999-12-31T23:59:59Z");
        assert_eq!((utc(first - 1), utc(last + 1)), (None, None));
    }

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
