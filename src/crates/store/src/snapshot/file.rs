//! File of a snapshot: columns by block, each checked against its checksum when it is read.

use std::path::{Path, PathBuf};

use super::blocks::{BlockFile, Described, FileKind};
use super::{COLUMNS_OF, Info, MAGIC, SnapshotColumn, SnapshotPage};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::model::Fetches;
use crate::store::Disk;
use crate::threads::join;
use crate::{Error, Result};

const KIND: FileKind = FileKind {
    name: "snapshot",
    magics: &[*MAGIC, *b"CRSNAP02", *b"CRSNAP01"],
    other_version,
};

/// File of a snapshot, which has no names.
pub struct SnapshotColumns {
    pub(super) file: BlockFile,
    pub(super) info: Info,
}

/// Columns of a block about the last fetch and the failures of its pages.
pub(super) struct FailureColumns {
    last: Vec<u64>,
    /// Number of failed fetches and time of the last one, if the version has these.
    failed: Option<(Vec<u64>, Vec<u64>)>,
}

impl FailureColumns {
    /// Reads the columns by `column`; all versions have the last fetch.
    fn of(column: impl Fn(SnapshotColumn) -> Result<Option<Vec<u64>>>) -> Result<FailureColumns> {
        Ok(FailureColumns {
            last: column(SnapshotColumn::LastFetch)?.unwrap_or_default(),
            failed: column(SnapshotColumn::Failed)?.zip(column(SnapshotColumn::LastFailed)?),
        })
    }

    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Returns the last fetch and failures of one page; other facts about its fetches are not set.
    pub fn at(&self, at: usize) -> Fetches {
        let time = |value: u64| Some(value as i64).filter(|&time| time != i64::MIN);
        Fetches {
            last: time(self.last[at]),
            failed: self.failed.as_ref().map_or(0, |(failed, _)| failed[at]),
            last_failed: self.failed.as_ref().and_then(|(_, last)| time(last[at])),
            ..Fetches::default()
        }
    }
}

impl SnapshotColumns {
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<SnapshotColumns> {
        let columns = |version: usize| Some(COLUMNS_OF[version].1);
        let (file, described) = BlockFile::open(disk, path, &KIND, columns)?;
        let info = parse_info(&described, file.count, path)?;
        Ok(SnapshotColumns { file, info })
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.file.path
    }

    /// Returns the counters and settings of the run.
    pub fn info(&self) -> &Info {
        &self.info
    }

    pub(super) fn blocks(&self) -> u64 {
        self.file.blocks()
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        self.file.damaged(what)
    }

    pub(super) fn column(&self, block: u64, which: SnapshotColumn) -> Result<Vec<u64>> {
        self.file
            .numbers(block, which as usize, &format!("{which:?}"))
    }

    /// Checks every column's checksum: that it is as written, not that it is consistent.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for &which in &SnapshotColumn::ALL[..self.file.columns] {
                self.file
                    .packed(block, which as usize, &format!("{which:?}"))?;
            }
        }
        Ok(())
    }

    /// Reads all pages of a block.
    pub(super) fn block(&self, block: u64) -> Result<Vec<SnapshotPage>> {
        let first = block * CHUNK_PAGES;
        let numbers = first..first + self.file.rows_of(block) as u64;
        self.picked(block, numbers, |column| column)
    }

    /// Reads the pages at these positions of a block, holding one column in memory at a time.
    pub(super) fn pages_at(&self, block: u64, places: &[usize]) -> Result<Vec<SnapshotPage>> {
        let numbers = places.iter().map(|&at| block * CHUNK_PAGES + at as u64);
        self.picked(block, numbers, |column| pick(&column, places))
    }

    /// Reads the values of a column at these positions.
    pub(super) fn column_at(
        &self,
        block: u64,
        which: SnapshotColumn,
        places: &[usize],
    ) -> Result<Vec<u64>> {
        Ok(pick(&self.column(block, which)?, places))
    }

    /// Reads a column, or returns `None` if the file's version does not have it.
    fn column_if(&self, block: u64, which: SnapshotColumn) -> Result<Option<Vec<u64>>> {
        self.has(which)
            .then(|| self.column(block, which))
            .transpose()
    }

    /// Returns true if the file tells which pages are gone; files of older versions do only if none is.
    pub fn says_gone(&self) -> bool {
        self.info.counters.gone == 0 || self.has(SnapshotColumn::Gone)
    }

    /// Reads which pages of a block are gone (not 0); `None` if the file does not tell.
    pub(super) fn gone_if(&self, block: u64) -> Result<Option<Vec<u64>>> {
        match self.info.counters.gone {
            0 => Ok(Some(vec![0; self.file.rows_of(block)])),
            _ => self.column_if(block, SnapshotColumn::Gone),
        }
    }

    /// Reads which pages of a block are gone (not 0), or returns [`Error::Missing`] if the file does not tell.
    pub(super) fn gone(&self, block: u64) -> Result<Vec<u64>> {
        self.gone_if(block)?.ok_or_else(|| {
            Error::Missing(format!(
                "{}: made by an older cashrank, it does not say which pages are gone; the next snapshot does",
                self.file.path.display()
            ))
        })
    }

    /// Returns true if the file's version has this column.
    pub(super) fn has(&self, which: SnapshotColumn) -> bool {
        (which as usize) < self.file.columns
    }

    /// Returns the pages with these numbers; `pick` selects their values from a column.
    fn picked(
        &self,
        block: u64,
        numbers: impl Iterator<Item = u64>,
        pick: impl Fn(Vec<u64>) -> Vec<u64>,
    ) -> Result<Vec<SnapshotPage>> {
        let column = |which| self.column(block, which).map(&pick);
        let column_if = |which| Ok(self.column_if(block, which)?.map(&pick));
        let importance = column(SnapshotColumn::Importance)?;
        let distributed = column(SnapshotColumn::Distributed)?;
        let rank = column(SnapshotColumn::Rank)?;
        let visits = column(SnapshotColumn::Visits)?;
        let cash = column(SnapshotColumn::Cash)?;
        let failures = FailureColumns::of(column_if)?;
        let compared = column_if(SnapshotColumn::Compared)?;
        let changed = column_if(SnapshotColumn::Changed)?;
        let watched = column_if(SnapshotColumn::Watched)?;
        let gone = self.gone_if(block)?.map(&pick);
        let recycled = column_if(SnapshotColumn::Recycled)?;
        let value = |column: &Option<Vec<u64>>, at: usize| column.as_ref().map_or(0, |of| of[at]);
        let page = |(at, number): (usize, u64)| SnapshotPage {
            page: PageId(number),
            importance: f64::from_bits(importance[at]),
            distributed: f64::from_bits(distributed[at]),
            rank: rank[at],
            cash: cash[at],
            fetches: Fetches {
                visits: visits[at],
                compared: value(&compared, at),
                changed: value(&changed, at),
                watched_s: value(&watched, at),
                gone: gone.as_ref().map(|gone| gone[at] != 0),
                recycled: value(&recycled, at),
                ..failures.at(at)
            },
        };
        Ok(numbers.enumerate().map(page).collect())
    }

    /// Reads the last fetch and the failures of the pages of a block.
    pub(super) fn failures(&self, block: u64) -> Result<FailureColumns> {
        FailureColumns::of(|which| self.column_if(block, which))
    }

    /// Calls `visit` with the result of `read` for each block and the block's first page, in order; reads two blocks at
    /// a time.
    pub(super) fn in_twos<T: Send>(
        &self,
        read: impl Fn(u64) -> Result<T> + Sync,
        mut visit: impl FnMut(u64, T),
    ) -> Result<()> {
        for block in (0..self.blocks()).step_by(2) {
            let has_next = block + 1 < self.blocks();
            let next = || has_next.then(|| read(block + 1)).transpose();
            let (next, this) = join(has_next, next, || read(block));
            visit(block * CHUNK_PAGES, this?);
            if let Some(next) = next? {
                visit((block + 1) * CHUNK_PAGES, next);
            }
        }
        Ok(())
    }

    /// Iterates over all pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        (0..self.blocks()).flat_map(|block| {
            let (pages, error) = match self.block(block) {
                Ok(pages) => (pages, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            pages.into_iter().map(Ok).chain(error)
        })
    }

    /// Checks every column, and that the importances sum to 1, or to at most 1 in the snapshot of a shard that was
    /// ranked with others.
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

fn other_version(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a snapshot of version {found}; this cashrank reads versions 1 to {}: use the cashrank that \
         made it, or ingest the inputs into a new store",
        path.display(),
        super::VERSION
    ))
}

/// Parses the info, its version first: another version may have other fields.
fn parse_info(described: &Described, pages: u64, path: &Path) -> Result<Info> {
    #[derive(serde::Deserialize)]
    struct SnapshotVersion {
        version: u32,
    }
    let text = &described.info;
    let damaged = |error: serde_json::Error| Error::damaged(path, format!("its info: {error}"));
    let SnapshotVersion { version } = serde_json::from_slice(text).map_err(damaged)?;
    if version != COLUMNS_OF[described.version].0 {
        return Err(other_version(path, &version.to_string()));
    }
    let info: Info = serde_json::from_slice(text).map_err(damaged)?;
    if info.pages != pages {
        return Err(Error::damaged(path, "its info does not fit its trailer"));
    }
    Ok(info)
}

/// Returns the values at these positions.
fn pick(column: &[u64], places: &[usize]) -> Vec<u64> {
    places.iter().map(|&at| column[at]).collect()
}
