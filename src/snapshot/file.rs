//! A snapshot's file: its columns by block, each checked against its checksum when it is read.

use std::path::{Path, PathBuf};

use super::blocks::{BlockFile, Described, Kind};
use super::{BEFORE, COLUMNS, COLUMNS_BEFORE, Column, Info, MAGIC, MAGIC_BEFORE, SnapshotPage};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::model::Fetches;
use crate::store::Disk;
use crate::threads::in_two;
use crate::{Error, Result};

const KIND: Kind = Kind {
    name: "snapshot",
    magics: &[*MAGIC, *MAGIC_BEFORE],
    other_version,
};

/// A snapshot's file: all but the names.
pub(crate) struct Columns {
    pub(super) file: BlockFile,
    pub(super) info: Info,
}

/// What columns of a block hold of the last fetch and the failures of its pages.
pub(super) struct Failures {
    last: Vec<u64>,
    /// How many there were, and when the last one was.
    failed: Option<(Vec<u64>, Vec<u64>)>,
}

impl Failures {
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Those of one page; what else is known of its fetches is left out.
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

impl Columns {
    /// Opens a snapshot's file.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Columns> {
        let columns = |version: usize| Some([COLUMNS, COLUMNS_BEFORE][version]);
        let (file, described) = BlockFile::open(disk, path, &KIND, columns)?;
        let info = parse_info(&described, file.count, path)?;
        Ok(Columns { file, info })
    }

    /// Its file.
    pub(super) fn path(&self) -> &PathBuf {
        &self.file.path
    }

    /// Counters and settings of the run.
    pub fn info(&self) -> &Info {
        &self.info
    }

    pub(super) fn blocks(&self) -> u64 {
        self.file.blocks()
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        self.file.damaged(what)
    }

    pub(super) fn column(&self, block: u64, which: Column) -> Result<Vec<u64>> {
        self.file
            .numbers(block, which as usize, &format!("{which:?}"))
    }

    /// Checks every column's checksum: that it is as it was written, not that it makes sense.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for &which in &Column::ALL[..self.file.columns] {
                self.file
                    .packed(block, which as usize, &format!("{which:?}"))?;
            }
        }
        Ok(())
    }

    /// All pages of a block.
    pub(super) fn block(&self, block: u64) -> Result<Vec<SnapshotPage>> {
        let first = block * CHUNK_PAGES;
        let numbers = first..first + self.file.rows_of(block) as u64;
        self.picked(block, numbers, |column| column)
    }

    /// Those at these places of a block, of which one column is in memory at a time.
    pub(super) fn pages_at(&self, block: u64, places: &[usize]) -> Result<Vec<SnapshotPage>> {
        let numbers = places.iter().map(|&at| block * CHUNK_PAGES + at as u64);
        self.picked(block, numbers, |column| pick(&column, places))
    }

    /// The values at these places of a column.
    pub(super) fn column_at(
        &self,
        block: u64,
        which: Column,
        places: &[usize],
    ) -> Result<Vec<u64>> {
        Ok(pick(&self.column(block, which)?, places))
    }

    /// The pages with these numbers, for which `pick` keeps the values of columns.
    fn picked(
        &self,
        block: u64,
        numbers: impl Iterator<Item = u64>,
        pick: impl Fn(Vec<u64>) -> Vec<u64>,
    ) -> Result<Vec<SnapshotPage>> {
        let column = |which| self.column(block, which).map(&pick);
        let importance = column(Column::Importance)?;
        let distributed = column(Column::Distributed)?;
        let rank = column(Column::Rank)?;
        let visits = column(Column::Visits)?;
        let cash = column(Column::Cash)?;
        let failures = self.failures_in(column)?;
        let changes = match self.file.columns {
            COLUMNS => Some([
                column(Column::Compared)?,
                column(Column::Changed)?,
                column(Column::Watched)?,
            ]),
            _ => None,
        };
        let change = |which: usize, at: usize| changes.as_ref().map_or(0, |of| of[which][at]);
        let page = |(at, number): (usize, u64)| SnapshotPage {
            page: PageId(number),
            importance: f64::from_bits(importance[at]),
            distributed: f64::from_bits(distributed[at]),
            rank: rank[at],
            cash: cash[at],
            fetches: Fetches {
                visits: visits[at],
                compared: change(0, at),
                changed: change(1, at),
                watched_s: change(2, at),
                ..failures.at(at)
            },
        };
        Ok(numbers.enumerate().map(page).collect())
    }

    /// The last fetch and the failures of the pages of a block.
    pub(super) fn failures(&self, block: u64) -> Result<Failures> {
        self.failures_in(|which| self.column(block, which))
    }

    fn failures_in(&self, column: impl Fn(Column) -> Result<Vec<u64>>) -> Result<Failures> {
        Ok(Failures {
            last: column(Column::LastFetch)?,
            failed: match self.file.columns {
                COLUMNS => Some((column(Column::Failed)?, column(Column::LastFailed)?)),
                _ => None,
            },
        })
    }

    /// Calls `visit` with what `read` makes of each block and the block's first page, in order; two blocks are read at a time.
    pub(super) fn in_twos<T: Send>(
        &self,
        read: impl Fn(u64) -> Result<T> + Sync,
        mut visit: impl FnMut(u64, T),
    ) -> Result<()> {
        for block in (0..self.blocks()).step_by(2) {
            let has_next = block + 1 < self.blocks();
            let next = || has_next.then(|| read(block + 1)).transpose();
            let (next, this) = in_two(has_next, next, || read(block));
            visit(block * CHUNK_PAGES, this?);
            if let Some(next) = next? {
                visit((block + 1) * CHUNK_PAGES, next);
            }
        }
        Ok(())
    }

    /// All pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        (0..self.blocks()).flat_map(|block| {
            let (pages, error) = match self.block(block) {
                Ok(pages) => (pages, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            pages.into_iter().map(Ok).chain(error)
        })
    }

    /// Checks every column, and that the importances sum to 1.
    pub fn verify(&self) -> Result<()> {
        let mut sum = 0.0;
        for page in self.pages() {
            sum += page?.importance;
        }
        // Each value is within 2^-53 of its share, and so is each of the additions.
        let slack = 1e-15 * (self.info.pages as f64 + 10.0);
        let sound = (sum - 1.0f64).abs() <= slack.max(1e-9);
        if self.info.pages > 0 && !sound {
            return Err(self.damaged(format!("its importances sum to {sum}, not 1")));
        }
        Ok(())
    }
}

fn other_version(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a snapshot of version {found}; this cashrank reads versions {BEFORE} and {}: use the cashrank that \
         made it, or ingest the inputs into a new store",
        path.display(),
        super::VERSION
    ))
}

/// Parses the info. Its version is looked at first: another version may have other fields.
fn parse_info(described: &Described, pages: u64, path: &Path) -> Result<Info> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let text = &described.info;
    let damaged = |error: serde_json::Error| Error::damaged(path, format!("its info: {error}"));
    let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
    if version != [super::VERSION, BEFORE][described.version] {
        return Err(other_version(path, &version.to_string()));
    }
    let info: Info = serde_json::from_slice(text).map_err(damaged)?;
    if info.pages != pages {
        return Err(Error::damaged(path, "its info does not fit its trailer"));
    }
    Ok(info)
}

/// The values at these places.
fn pick(column: &[u64], places: &[usize]) -> Vec<u64> {
    places.iter().map(|&at| column[at]).collect()
}
