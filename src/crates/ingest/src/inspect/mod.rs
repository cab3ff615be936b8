//! Report of what an ingest would read in an input, and what it would not: shows why an archive looks empty.
//!
//! The input is read as an ingest reads it, to its end or as far as requested, and counted; nothing is written. Memory
//! is bounded: distinct pages and hosts are counted exactly up to a limit, and only the first positions of each oddity
//! are kept.

pub(crate) mod distinct;
mod report;

use std::ops::{Range, RangeInclusive};

use crate::batch::{Batch, Fingerprints, What};
use crate::batches::{BatchVisitor, ReadOptions, visit_batches};
use crate::decode::{Names, Time, is_redirect};
use crate::formats::Format;
use crate::memory::check_room;
use crate::pipeline::{InputRecords, Piece, ReadStart, Remark, format_of};
use crate::source::{Compression, InputName, InputSummary};
use crate::url;
use crate::{Error, Result};
use distinct::{DistinctNames, GroupReturns};

pub use report::{
    DamageReport, DistinctCount, FetchTimeStats, InspectReport, Odd, RecordPosition, SampleRecord,
};

/// Statuses that are counted individually.
const STATUSES: RangeInclusive<i32> = -999..=999;

/// Options of an inspection.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub read: ReadOptions,
    /// Number of records, of whatever kind, after which to stop; `None`: at the end.
    pub records: Option<u64>,
    /// Number of the first crawl records to show.
    pub first: usize,
    /// Number of distinct pages, and of hosts, that are counted exactly.
    pub distinct: usize,
}

impl Default for Inspection {
    /// Reads all of the input, shows three records, and counts up to a million distinct pages and hosts.
    fn default() -> Inspection {
        Inspection {
            read: ReadOptions::default(),
            records: None,
            first: 3,
            distinct: 1_000_000,
        }
    }
}

/// Inspects one input. Fails with [`Error::Unsupported`] if the format cannot be guessed or a limit is out of range,
/// and with [`Error::TooLarge`] if distinct names exceed the memory limit. Damage is not an error here: see
/// [`InspectReport::damage`].
pub fn inspect(input: &InputName, how: &Inspection) -> Result<InspectReport> {
    let mut reader = how.read.reader()?;
    reader.keeps_written = how.first > 0;
    let mut report = InspectReport::default();
    let mut source = match reader.open(input) {
        Ok(source) => source,
        Err(error @ Error::Corrupt { .. }) => {
            report.damage = Some(DamageReport::of(&error, 0));
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
    let mut records = reader.read(source, read_as, ReadStart::default())?;
    let mut reading = InspectionRun {
        report,
        fingerprints: reader.rules.key.fingerprints(),
        pages: DistinctNames::new(how.distinct),
        fetched: DistinctNames::new(how.distinct),
        hosts: DistinctNames::new(how.distinct),
        returns: GroupReturns::new(read_as, how.distinct),
        urls: read_as.decoder().names() == Names::Url,
        offset: 0,
        last_time: None,
        how,
    };
    let summary = match how.records {
        Some(0) => None,
        _ => match visit_batches(&mut records, &mut reading) {
            Ok(summary) => summary,
            Err(error) => {
                reading.damaged(error)?;
                records.summary()
            }
        },
    };
    Ok(reading.finish(summary.as_ref()))
}

/// Input being read, with its counts so far.
struct InspectionRun<'a> {
    how: &'a Inspection,
    report: InspectReport,
    fingerprints: Fingerprints,
    pages: DistinctNames,
    fetched: DistinctNames,
    hosts: DistinctNames,
    returns: GroupReturns,
    /// True if names are URLs.
    urls: bool,
    /// Offset of the last record's end.
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
        self.check_room()?;
        Ok(!is_done)
    }
}

impl InspectionRun<'_> {
    /// Fails if the distinct names exceed the memory.
    fn check_room(&self) -> Result<()> {
        let distinct = self.pages.bytes() + self.fetched.bytes() + self.hosts.bytes();
        let need = distinct + self.returns.bytes();
        let work = || {
            let pages = self.pages.count().count;
            format!("counting more than {pages} distinct pages")
        };
        let instead = "lower `limit_distinct`";
        check_room(self.how.read.limits.memory, need, work, instead)
    }

    /// Counts names of a batch.
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
        self.report.known_only += u64::from(self.is_known_only(batch, at));
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

    /// Returns whether a record only makes a page known: tables and dumps have such records of pages that were never
    /// fetched.
    fn is_known_only(&self, batch: &Batch, at: usize) -> bool {
        let entry = &batch.entries[at];
        let is_table = self.report.compression == Some(Compression::Table);
        let is_known = is_table || batch.totals(at).is_some_and(|totals| totals.visits == 0);
        is_known && entry.what == What::Unchanged && entry.fetched_at.is_none()
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
        let status = entry.status;
        let written = batch.written(at).cloned().unwrap_or_default();
        let name = |number: u32| String::from_utf8_lossy(batch.name(number)).into_owned();
        let targets = batch.targets(entry);
        let is_redirect = status.is_some_and(is_redirect);
        self.report.first.push(SampleRecord {
            place: self.place(None),
            url: name(entry.source),
            what: match entry.what {
                What::Gone => "gone",
                What::Unchanged if self.is_known_only(batch, at) => "known",
                What::Unchanged => "unchanged",
                What::Failed => "failed",
                _ => "crawled",
            },
            status,
            time: entry.fetched_at,
            redirect: written.redirect.filter(|_| is_redirect),
            base: written.base,
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

    /// Notes that damage ended the reading; returns other errors.
    fn damaged(&mut self, error: Error) -> Result<()> {
        if !matches!(error, Error::Corrupt { .. }) {
            return Err(error);
        }
        self.report.damage = Some(DamageReport::of(&error, self.report.records));
        Ok(())
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
