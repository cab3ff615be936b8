//! Report of an inspection.

use std::collections::BTreeMap;

use crate::decode::{Missing, Reason, Time};
use crate::engine::Counters;
use crate::formats::Format;
use crate::source::{Compression, Damage};

/// Report on an input, from its start to its end, to damage, or as far as requested.
#[derive(Debug, Default)]
pub struct InspectReport {
    /// Compression; `None` if unknown: the input was damaged before it was verified, or is a table without its end.
    pub compression: Option<Compression>,
    /// Numbers of bytes read, compressed and decompressed.
    pub compressed: u64,
    pub bytes: u64,
    /// Numbers of sound gzip members or zstd frames, and of those without a checksum; `None` if not read to the end.
    pub members: Option<u64>,
    pub unchecked: Option<u64>,
    /// Format that the input was read as, with the evidence for it, for messages; `None` if the input is empty.
    pub format: Option<Format>,
    pub recognised_by: String,
    pub whole: bool,
    /// Damage that ended the reading, if any. The records below come before it.
    pub damage: Option<Box<Damage>>,
    /// Number of records of whatever kind: the sum of those below.
    pub records: u64,
    /// Counts of records and links as in an ingest, except the pages visited.
    pub counters: Counters,
    pub known_only: u64,
    /// Number of distinct targets of a record, summed over records: the links that are ranked by. The maximum follows.
    pub followed: u64,
    pub followed_most: u64,
    pub skipped: BTreeMap<Reason, Odd>,
    /// Number of valid pieces that are not crawl records, by kind.
    pub other: BTreeMap<&'static str, u64>,
    /// HTTP statuses of crawl records, from -999 to 999; then the numbers of those outside, and of records without one.
    pub statuses: BTreeMap<i32, u64>,
    pub odd_statuses: u64,
    pub no_status: u64,
    /// Distinct pages: those fetched, and those linked to.
    pub pages: DistinctCount,
    pub fetched: DistinctCount,
    /// Number of crawl records of a page that had one before, as far as distinct pages are counted.
    pub again: u64,
    /// Number of groups, in formats with a link per line, whose source had a group before, as far as pages are counted.
    pub ungrouped: u64,
    /// Distinct hosts of pages; `None` if names are not URLs.
    pub hosts: Option<DistinctCount>,
    pub times: FetchTimeStats,
    /// Fields that the first records lack, if another field may hold them.
    pub missing: Option<Missing>,
    /// Caveat about every ranking made from the input.
    pub caveat: Option<&'static str>,
    pub first: Vec<SampleRecord>,
}

impl InspectReport {
    /// Returns the number of pages fetched with their links.
    pub fn visits(&self) -> u64 {
        let counters = &self.counters;
        counters.records - counters.gone - counters.unchanged - counters.failed
    }
}

/// Position of a record, with a message about what is wrong there, if it was kept.
#[derive(Debug)]
pub struct RecordPosition {
    pub record: u64,
    /// Offset of the record's first byte in the decompressed input.
    pub byte: u64,
    pub detail: Option<String>,
}

#[derive(Debug, Default)]
pub struct Odd {
    pub count: u64,
    pub first: Vec<RecordPosition>,
}

impl Odd {
    const PLACES: usize = 3;

    pub(super) fn add(&mut self, place: RecordPosition) {
        self.count += 1;
        if self.first.len() < Odd::PLACES {
            self.first.push(place);
        }
    }
}

/// Count of distinct names; if the limit was reached, there are more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DistinctCount {
    pub count: u64,
    pub at_least: bool,
}

#[derive(Debug, Default)]
pub struct FetchTimeStats {
    pub earliest: Option<Time>,
    pub latest: Option<Time>,
    pub none: u64,
    /// Records whose time is before that of the last record that has one.
    pub back: Odd,
    /// Records with an invalid time, which are used without it.
    pub unread: Odd,
}

#[derive(Debug)]
pub struct SampleRecord {
    pub place: RecordPosition,
    /// Page: its canonical URL, or opaque name.
    pub url: String,
    /// Meaning of the record: `crawled`, `gone`, `unchanged`, `failed`, or `known`: it only makes a page known.
    pub what: &'static str,
    pub status: Option<i32>,
    pub time: Option<Time>,
    pub read: u64,
    /// The first distinct targets, in canonical form; their total number follows.
    pub links: Vec<String>,
    pub followed: u64,
}

impl SampleRecord {
    pub(super) const LINKS: usize = 5;
}
