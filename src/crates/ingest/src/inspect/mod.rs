//! Report of what an ingest would read in an input, and what it would not: shows why an archive looks empty.
//!
//! Memory is bounded: distinct names are counted up to a limit, and the first positions of each oddity are kept.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Range, RangeInclusive};

use crate::batch::{Batch, BatchEntry, Fingerprints, What};
use crate::batches::ReadOptions;
use crate::decode::{Missing, Names, Reason, Time};
use crate::engine::{Counters, Fingerprint};
use crate::formats::Format;
use crate::pipeline::{BatchVisitor, InputRecords, Piece, Remark, format_of};
use crate::source::{Compression, Damage, InputName, InputSummary};
use crate::url;
use crate::{Error, Result};

const STATUSES: RangeInclusive<i32> = -999..=999;

#[derive(Debug, Clone)]
pub struct Inspection {
    pub read: ReadOptions,
    /// Number of records, of whatever kind, after which to stop; `None`: at the end.
    pub records: Option<u64>,
    pub first: usize,
}

impl Default for Inspection {
    /// Reads all of the input and shows three records.
    fn default() -> Inspection {
        Inspection {
            read: ReadOptions::default(),
            records: None,
            first: 3,
        }
    }
}

/// Inspects one input. Damage is no error: see [`InspectReport::damage`].
pub fn inspect(input: &InputName, how: &Inspection) -> Result<InspectReport> {
    let reader = how.read.reader()?;
    let mut report = InspectReport::default();
    let mut source = match reader.open(input) {
        Ok(source) => source,
        Err(Error::Corrupt { damage, .. }) => {
            report.damage = Some(damage);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    report.compression = Some(source.compression());
    // An empty input may still be damaged, which shows in any format.
    let mut read_as = Format::Records;
    if let Some((format, why)) = format_of(&mut source, how.read.format)? {
        read_as = format;
        (report.format, report.recognised_by) = (Some(format), why);
    }
    let mut records = reader.read(source, read_as)?;
    let mut reading = InspectionRun {
        report,
        fingerprints: reader.rules.key.fingerprints(),
        pages: DistinctNames::default(),
        fetched: DistinctNames::default(),
        hosts: DistinctNames::default(),
        returns: GroupReturns::new(read_as),
        urls: read_as.decoder().names() == Names::Url,
        offset: 0,
        last_time: None,
        how,
    };
    let summary = match how.records {
        Some(0) => None,
        _ => match records.visit(&mut reading) {
            Err(Error::Corrupt { damage, .. }) => {
                reading.report.damage = Some(damage);
                records.end().ok()
            }
            visited => visited?,
        },
    };
    Ok(reading.finish(summary.as_ref()))
}

struct InspectionRun<'a> {
    how: &'a Inspection,
    report: InspectReport,
    fingerprints: Fingerprints,
    pages: DistinctNames,
    fetched: DistinctNames,
    hosts: DistinctNames,
    returns: GroupReturns,
    urls: bool,
    offset: u64,
    last_time: Option<Time>,
}

impl BatchVisitor for InspectionRun<'_> {
    fn remark(&mut self, _: &InputName, remark: Remark) {
        match remark {
            Remark::Missing(missing) => self.report.missing = Some(missing),
            Remark::Caveat(caveat) => self.report.caveat = Some(caveat),
        }
    }

    fn piece(&mut self, _: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let (chunk, batch) = (&*piece.chunk, &piece.batch);
        self.report.compressed = chunk.compressed;
        let (mut names, mut is_done) = (0, false);
        for (at, entry) in batch.entries.iter().enumerate() {
            let end = entry.names_end as usize;
            self.names(batch, names..end);
            names = end;
            self.report.counters.take(entry.what, &entry.counts);
            if entry.is_timeless {
                let place = self.place(batch.complaint(at));
                self.report.times.unread.add(place);
            }
            match entry.what {
                What::Skipped(reason) => {
                    let place = self.place(batch.complaint(at));
                    self.report.skipped.entry(reason).or_default().add(place);
                }
                What::OutOfScope | What::OtherShard => {}
                What::Other => {
                    let kind = entry.kind.unwrap_or("no crawl record");
                    *self.report.other.entry(kind).or_default() += 1;
                }
                _ => self.record(batch, at),
            }
            self.report.records += 1;
            self.offset = chunk.offset + entry.end;
            is_done = self.how.records == Some(self.report.records);
            if is_done {
                break;
            }
        }
        Ok(!is_done)
    }
}

impl InspectionRun<'_> {
    fn names(&mut self, batch: &Batch, names: Range<usize>) {
        for name in names {
            let Some(&fingerprint) = batch.fingerprints.get(name) else {
                return;
            };
            // The host of a page seen before was seen, too.
            if !self.pages.add(fingerprint) && self.urls {
                let host = url::host(batch.name(name as u32));
                self.hosts.add(self.fingerprints.of(host));
            }
        }
    }

    fn record(&mut self, batch: &Batch, at: usize) {
        let entry = &batch.entries[at];
        let status = entry.status;
        self.report.known_only += u64::from(is_known_only(batch, at));
        let report = &mut self.report;
        match status {
            Some(status) if STATUSES.contains(&status) => {
                *report.statuses.entry(status).or_default() += 1;
            }
            Some(_) => report.odd_statuses += 1,
            None => report.no_status += 1,
        }
        let followed = batch.targets(entry).len() as u64;
        report.followed += followed;
        report.followed_most = report.followed_most.max(followed);
        self.time(entry.fetched_at);
        let page = batch.fingerprints[entry.source as usize];
        self.report.again += u64::from(self.fetched.add(page));
        self.returns.add(batch, entry);
        if self.report.first.len() < self.how.first {
            self.first(batch, at);
        }
    }

    fn time(&mut self, time: Option<Time>) {
        let Some(time) = time else {
            self.report.times.none += 1;
            return;
        };
        if self.last_time.is_some_and(|last| time < last) {
            let place = self.place(None);
            self.report.times.back.add(place);
        }
        self.last_time = Some(time);
        let times = &mut self.report.times;
        times.earliest = Some(times.earliest.map_or(time, |earliest| earliest.min(time)));
        times.latest = times.latest.max(Some(time));
    }

    fn first(&mut self, batch: &Batch, at: usize) {
        let entry = &batch.entries[at];
        let name = |number: u32| String::from_utf8_lossy(batch.name(number)).into_owned();
        let targets = batch.targets(entry);
        self.report.first.push(SampleRecord {
            place: self.place(None),
            url: name(entry.source),
            what: match entry.what {
                What::Gone => "gone",
                What::Unchanged if is_known_only(batch, at) => "known",
                What::Unchanged => "unchanged",
                What::Failed => "failed",
                _ => "crawled",
            },
            status: entry.status,
            time: entry.fetched_at,
            read: u64::from(entry.counts.read),
            links: targets
                .iter()
                .take(SampleRecord::LINKS)
                .map(|&target| name(target))
                .collect(),
            followed: targets.len() as u64,
        });
    }

    fn place(&self, detail: Option<&str>) -> RecordPosition {
        RecordPosition {
            record: self.report.records + 1,
            byte: self.offset,
            detail: detail.map(str::to_owned),
        }
    }

    /// Returns the report; `summary` is that of the source, as far as it was read to its end or to damage.
    fn finish(self, summary: Option<&InputSummary>) -> InspectReport {
        let mut report = self.report;
        if let Some(summary) = summary {
            report.bytes = summary.bytes;
            report.compressed = summary.compressed;
            report.members = Some(summary.members);
            report.unchecked = Some(summary.unchecked);
            report.whole = summary.damage.is_none() && report.damage.is_none();
        }
        report.bytes = report.bytes.max(self.offset);
        report.ungrouped = self.returns.count;
        report.pages = self.pages.count();
        report.fetched = self.fetched.count();
        report.hosts = self.urls.then(|| self.hosts.count());
        report
    }
}

/// Returns whether a record only makes a page known: graphs and dumps have records of pages never fetched.
fn is_known_only(batch: &Batch, at: usize) -> bool {
    let entry = &batch.entries[at];
    let is_known = batch.totals(at).is_some_and(|totals| totals.visits == 0);
    is_known && entry.what == What::Unchanged && entry.fetched_at.is_none()
}

const DISTINCT: usize = 1_000_000;

/// Distinct names by their fingerprints, counted exactly up to [`DISTINCT`]; `full` says that there are more.
#[derive(Default)]
struct DistinctNames {
    known: HashSet<Fingerprint>,
    full: bool,
}

impl DistinctNames {
    fn add(&mut self, name: Fingerprint) -> bool {
        if self.known.len() < DISTINCT {
            return !self.known.insert(name);
        }
        let seen = self.known.contains(&name);
        self.full |= !seen;
        seen
    }

    fn count(&self) -> DistinctCount {
        DistinctCount {
            count: self.known.len() as u64,
            at_least: self.full,
        }
    }
}

/// Counts the groups of an input, in formats with a link per line, whose source had a group before.
pub(crate) struct GroupReturns {
    /// Sources so far; `None`: records of the format are no groups.
    sources: Option<DistinctNames>,
    /// Number of groups whose source came back, as far as sources are remembered.
    pub count: u64,
}

impl GroupReturns {
    pub fn new(format: Format) -> GroupReturns {
        let sources = format.is_grouped().then(DistinctNames::default);
        GroupReturns { sources, count: 0 }
    }

    pub fn add(&mut self, batch: &Batch, entry: &BatchEntry) {
        if let Some(sources) = &mut self.sources
            && entry.what == What::Visit
        {
            self.count += u64::from(sources.add(batch.fingerprints[entry.source as usize]));
        }
    }
}

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

    fn add(&mut self, place: RecordPosition) {
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
    const LINKS: usize = 5;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HashKey;

    #[test]
    fn exact_up_to_the_limit() {
        let fingerprints = HashKey([1, 2]).fingerprints();
        let mut names = DistinctNames::default();
        let mut add = |name: &str| (names.add(fingerprints.of(name.as_bytes())), names.count());
        let exactly = |count| DistinctCount {
            count,
            at_least: false,
        };
        assert_eq!(add("a"), (false, exactly(1)));
        assert_eq!(add("a"), (true, exactly(1)));
        for n in 2..=DISTINCT {
            assert_eq!(add(&n.to_string()), (false, exactly(n as u64)));
        }
        assert_eq!(add("a"), (true, exactly(DISTINCT as u64)));
        let more = DistinctCount {
            count: DISTINCT as u64,
            at_least: true,
        };
        assert_eq!(add("d"), (false, more));
        assert_eq!(add("a"), (true, more));
    }
}
