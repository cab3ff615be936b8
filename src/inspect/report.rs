//! The report on an input.

use std::collections::BTreeMap;

use crate::Error;
use crate::decode::{Missing, Reason, Time};
use crate::engine::Counters;
use crate::formats::Format;
use crate::source::Compression;

/// The report on an input, from its start to its end, to damage, or as far as asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Its compression; `None`: unknown, since it is damaged and was to be verified first, or is a table without its end.
    pub compression: Option<Compression>,
    /// Compressed bytes read.
    pub compressed: u64,
    /// Decompressed bytes read.
    pub bytes: u64,
    /// gzip members or zstd frames that ended well; `None`: it was not read to the end.
    pub members: Option<u64>,
    /// Those of them without a checksum.
    pub unchecked: Option<u64>,
    /// The format it was read as; `None`: it is empty.
    pub format: Option<Format>,
    /// How the format was recognised, for people.
    pub recognised_by: String,
    /// It was read to a sound end.
    pub whole: bool,
    /// The damage that ended the reading, if any.
    pub damage: Option<Damage>,
    /// Records of whatever kind: the sum of those below.
    pub records: u64,
    /// Counts of them and of their links, as an ingest counts, pages visited aside.
    pub counters: Counters,
    /// Of those that are counted as unchanged: a table only says that there are these pages, which nobody fetched.
    pub known_only: u64,
    /// Distinct targets of a record, summed over records: what is ranked by.
    pub followed: u64,
    /// The most distinct targets that one record has.
    pub followed_most: u64,
    /// Records that cannot be used, by reason.
    pub skipped: BTreeMap<Reason, Odd>,
    /// Pieces that rightly are no crawl records, by kind.
    pub other: BTreeMap<&'static str, u64>,
    /// HTTP statuses of crawl records, from -999 to 999 (negative: the crawler's own codes).
    pub statuses: BTreeMap<i32, u64>,
    /// Statuses out of that range.
    pub odd_statuses: u64,
    /// Crawl records without a status.
    pub no_status: u64,
    /// Distinct pages: those fetched, and those linked to.
    pub pages: Distinct,
    /// Distinct pages that the crawl records are of.
    pub fetched: Distinct,
    /// Crawl records of a page that had one before, as far as distinct pages are counted.
    pub again: u64,
    /// Distinct hosts of pages; `None`: names are no URLs.
    pub hosts: Option<Distinct>,
    /// Times of fetches.
    pub times: Times,
    /// Fields that the first records lack, if another field may have them.
    pub missing: Option<Missing>,
    /// A caveat about every ranking made of it.
    pub caveat: Option<&'static str>,
    /// The first crawl records, as they are read.
    pub first: Vec<First>,
}

/// A record's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPosition {
    /// Its number, from 1.
    pub record: u64,
    /// Offset of its first byte in the decompressed input.
    pub byte: u64,
    /// What is wrong there, for people; `None`: not kept.
    pub detail: Option<String>,
}

/// Something odd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Odd {
    /// How often.
    pub count: u64,
    /// The first places, at most [`Odd::PLACES`].
    pub first: Vec<RecordPosition>,
}

impl Odd {
    /// Places kept.
    pub const PLACES: usize = 3;

    pub(super) fn add(&mut self, place: RecordPosition) {
        self.count += 1;
        if self.first.len() < Odd::PLACES {
            self.first.push(place);
        }
    }
}

/// Damage that ended the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong and where, and how much of it was used.
    pub what: String,
    /// Records read before it.
    pub records: u64,
    /// The gzip member or zstd frame that is damaged: its offset in the compressed input.
    pub member: Option<u64>,
    /// Offset in the decompressed input: all before it was verified.
    pub verified: u64,
}

impl Damage {
    pub(super) fn of(error: &Error, records: u64) -> Damage {
        match error {
            Error::Corrupt { damage, .. } => Damage {
                what: damage.to_string(),
                records,
                member: damage.member.map(|member| member.compressed),
                verified: damage.unverified_from,
            },
            error => Damage {
                what: error.to_string(),
                records,
                member: None,
                verified: 0,
            },
        }
    }
}

/// A count of distinct things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Distinct {
    /// How many.
    pub count: u64,
    /// There are more: the limit was reached.
    pub at_least: bool,
}

/// Times of fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// The first.
    pub earliest: Option<Time>,
    /// The last.
    pub latest: Option<Time>,
    /// Crawl records without one.
    pub none: u64,
    /// Records whose time is before that of the last record that has one.
    pub back: Odd,
    /// Records whose time cannot be read: they are used without.
    pub unread: Odd,
}

/// One of the first crawl records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    /// Where it is.
    pub place: RecordPosition,
    /// The page: its canonical URL, or opaque name.
    pub url: String,
    /// `visit`, `gone`, `unchanged`, `failed`, or `known` ([`Report::known_only`]).
    pub what: &'static str,
    /// HTTP status.
    pub status: Option<i32>,
    /// Time of the fetch.
    pub time: Option<Time>,
    /// Where it redirects to, as written; it is then the record's only link.
    pub redirect: Option<String>,
    /// The base of its links, as written, if that is not the page.
    pub base: Option<String>,
    /// Links as read.
    pub read: u64,
    /// Its distinct targets, in canonical form; the first [`First::LINKS`].
    pub links: Vec<String>,
    /// How many targets there are.
    pub followed: u64,
}

impl First {
    /// Targets kept.
    pub const LINKS: usize = 5;
}

impl Report {
    /// Pages fetched, with their links.
    pub fn visits(&self) -> u64 {
        let counters = &self.counters;
        counters.records - counters.gone - counters.unchanged - counters.failed
    }
}
