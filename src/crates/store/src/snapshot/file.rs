//! File of a snapshot: columns by block, each checked against its checksum when it is read.

use std::path::Path;

use super::blocks::{BlockFile, FileInfo, Magic, flat};
use super::{COLUMNS, Info, MAGIC, SnapshotColumn, SnapshotPage};
use crate::Result;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, NO_TIME, PageId};
use crate::model::Fetches;

pub type SnapshotColumns = BlockFile<Info>;

impl FileInfo for Info {
    type Column = SnapshotColumn;
    const NAME: &'static str = "snapshot";
    const MAGIC: Magic = *MAGIC;
    const COLUMNS: Option<usize> = Some(COLUMNS);
    const REMEDY: &'static str = "rank again: `cashrank settle` or the same `cashrank ingest` replaces the current one; an older one can be deleted";

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
            for which in SnapshotColumn::ALL {
                self.packed(block, which)?;
            }
        }
        Ok(())
    }

    /// Reads columns of a block. Returns a function of the row in the block; facts outside of `wanted` are 0 or unknown.
    pub(super) fn pages_with(
        &self,
        block: u64,
        wanted: &[SnapshotColumn],
    ) -> Result<impl Fn(usize) -> SnapshotPage + use<>> {
        let mut columns: [Option<Vec<u64>>; COLUMNS] = Default::default();
        for &which in wanted {
            if which != SnapshotColumn::Gone || self.info.counters.gone > 0 {
                columns[which as usize] = Some(self.column(block, which)?);
            }
        }
        Ok(move |at: usize| {
            let some = |which: SnapshotColumn| Some(columns[which as usize].as_ref()?[at]);
            let number = |which| some(which).unwrap_or(0);
            let real = |which| f64::from_bits(number(which));
            let time = |which| {
                let time = some(which).map(|time| time as i64);
                time.filter(|&time| time != NO_TIME)
            };
            SnapshotPage {
                page: PageId(block * CHUNK_PAGES + at as u64),
                importance: real(SnapshotColumn::Importance),
                distributed: real(SnapshotColumn::Distributed),
                rank: number(SnapshotColumn::Rank),
                cash: number(SnapshotColumn::Cash),
                fetches: Fetches {
                    visits: number(SnapshotColumn::Visits),
                    last: time(SnapshotColumn::LastFetch),
                    failed: number(SnapshotColumn::Failed),
                    last_failed: time(SnapshotColumn::LastFailed),
                    compared: number(SnapshotColumn::Compared),
                    changed: number(SnapshotColumn::Changed),
                    watched_s: number(SnapshotColumn::Watched),
                    gone: number(SnapshotColumn::Gone) != 0,
                    recycled: number(SnapshotColumn::Recycled),
                },
            }
        })
    }

    /// Iterates over the pages of a block, like [`SnapshotColumns::pages_with`].
    pub(super) fn block_with(
        &self,
        block: u64,
        wanted: &[SnapshotColumn],
    ) -> Result<impl Iterator<Item = SnapshotPage> + use<>> {
        Ok((0..self.rows_of(block)).map(self.pages_with(block, wanted)?))
    }

    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        self.all_with(&SnapshotColumn::ALL)
    }

    /// Iterates over all pages, with the facts in these columns alone.
    pub(super) fn all_with<'a>(
        &'a self,
        wanted: &'a [SnapshotColumn],
    ) -> impl Iterator<Item = Result<SnapshotPage>> + 'a {
        let blocks = 0..self.blocks();
        flat(blocks.map(move |block| self.block_with(block, wanted)))
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
