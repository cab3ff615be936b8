//! File of a snapshot: columns by block, each checked against its checksum when it is read.

use std::path::Path;

use super::blocks::{BlockFile, FileInfo, FileVersion, flat};
use super::{COLUMNS, Info, MAGIC, SnapshotColumn, SnapshotPage, VERSION};
use crate::Result;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, NO_TIME, PageId};
use crate::model::Fetches;

/// File of a snapshot, which has no names.
pub type SnapshotColumns = BlockFile<Info>;

impl FileInfo for Info {
    type Column = SnapshotColumn;
    const NAME: &'static str = "snapshot";
    // Each version has the first columns of the newest.
    const VERSIONS: &'static [FileVersion] = &[
        FileVersion(*MAGIC, VERSION, Some(COLUMNS)),
        FileVersion(*b"CRSNAP02", 2, Some(11)),
        FileVersion(*b"CRSNAP01", 1, Some(6)),
    ];
    const REMEDY: &'static str = "ingest the inputs into a new store";

    fn fits(&self, rows: u64, _: usize) -> bool {
        self.pages == rows
    }
}

impl From<SnapshotColumn> for usize {
    fn from(column: SnapshotColumn) -> usize {
        column as usize
    }
}

impl SnapshotColumns {
    /// Opens a snapshot. If its name is a number, as in a store, it must have that number of records.
    pub fn of(disk: &dyn Disk, path: &Path) -> Result<SnapshotColumns> {
        let columns = SnapshotColumns::open(disk, path)?;
        let number = path.file_stem().and_then(|stem| stem.to_str());
        let number = number.and_then(|number| number.parse::<u64>().ok());
        let records = columns.info.counters.records;
        if number.is_some_and(|number| number != records) {
            let what = format!("it is of {records} records: another file was put in its place");
            return Err(columns.damaged(what));
        }
        Ok(columns)
    }

    /// Checks every column's checksum: that it is as written, not that it is consistent.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for &which in &SnapshotColumn::ALL[..self.columns] {
                self.packed(block, which)?;
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, which: SnapshotColumn) -> bool {
        (which as usize) < self.columns
    }

    /// Reads pages of a block, at these places or all. Facts outside of `wanted` or of the file are 0 or unknown.
    pub(super) fn pages_with(
        &self,
        block: u64,
        places: Option<&[usize]>,
        wanted: &[SnapshotColumn],
    ) -> Result<Vec<SnapshotPage>> {
        let count = places.map_or(self.rows_of(block), <[usize]>::len);
        let mut columns: [Option<Vec<u64>>; COLUMNS] = Default::default();
        for &which in wanted {
            let column = if which == SnapshotColumn::Gone && self.info.counters.gone == 0 {
                Some(vec![0; count])
            } else if self.has(which) {
                let column = self.column(block, which)?;
                Some(match places {
                    Some(places) => places.iter().map(|&at| column[at]).collect(),
                    None => column,
                })
            } else {
                None
            };
            columns[which as usize] = column;
        }
        let some = |which: SnapshotColumn, at: usize| Some(columns[which as usize].as_ref()?[at]);
        let number = |which, at| some(which, at).unwrap_or(0);
        let real = |which, at| f64::from_bits(number(which, at));
        let time = |which, at| {
            let time = some(which, at).map(|time| time as i64);
            time.filter(|&time| time != NO_TIME)
        };
        let page = |at: usize| SnapshotPage {
            page: PageId(block * CHUNK_PAGES + places.map_or(at, |places| places[at]) as u64),
            importance: real(SnapshotColumn::Importance, at),
            distributed: real(SnapshotColumn::Distributed, at),
            rank: number(SnapshotColumn::Rank, at),
            cash: number(SnapshotColumn::Cash, at),
            fetches: Fetches {
                visits: number(SnapshotColumn::Visits, at),
                last: time(SnapshotColumn::LastFetch, at),
                failed: number(SnapshotColumn::Failed, at),
                last_failed: time(SnapshotColumn::LastFailed, at),
                compared: number(SnapshotColumn::Compared, at),
                changed: number(SnapshotColumn::Changed, at),
                watched_s: number(SnapshotColumn::Watched, at),
                gone: some(SnapshotColumn::Gone, at).map(|gone| gone != 0),
                recycled: number(SnapshotColumn::Recycled, at),
            },
        };
        Ok((0..count).map(page).collect())
    }

    /// Iterates over all pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        self.all_with(&SnapshotColumn::ALL)
    }

    /// Iterates over all pages, with the facts in these columns alone.
    pub(super) fn all_with<'a>(
        &'a self,
        wanted: &'a [SnapshotColumn],
    ) -> impl Iterator<Item = Result<SnapshotPage>> + 'a {
        let blocks = 0..self.blocks();
        flat(blocks.map(move |block| self.pages_with(block, None, wanted)))
    }

    /// Checks every column, and that the importances sum to 1, or to at most 1 in a shard that was ranked with others.
    pub fn verify(&self) -> Result<()> {
        let mut sum = 0.0;
        for page in self.pages() {
            sum += page?.importance;
        }
        // Each value is within 2^-53 of its share, and so is each of the additions.
        let slack = 1e-15 * (self.info.pages as f64 + 10.0);
        let excess: f64 = sum - 1.0;
        let (excess, right) = match self.info.cluster {
            Some(_) => (excess, "at most 1"),
            None => (excess.abs(), "1"),
        };
        // A NaN is within no bounds.
        let is_sound = excess <= slack.max(1e-9);
        if self.info.pages > 0 && !is_sound {
            return Err(self.damaged(format!("its importances sum to {sum}, not {right}")));
        }
        Ok(())
    }
}
