//! The warm start, `warm`: the final state of a settling, from which the next one starts.
//!
//! It is a file of blocks (`snapshot/blocks.rs`) with three columns: X and D of each page as `i64`, and the cost of a
//! visit in a byte. The head is its info.
//!
//! It is a cache that no commit names. It is written to a temporary file, synced, and renamed, before its ranking is
//! published if the next ranking waits for it, otherwise after that. It fits if it is of this store and the row file
//! begins with the rows that it names; otherwise it is ignored until the next one replaces it. A compaction of the rows
//! keeps the old row file, and writes the warm start with the end of its rows in the new one.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TempFile;
use super::rows::{CommittedRows, KeptRows, Retention, RowFile, RowsDiff};
use crate::Result;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, SettledPages, SettledPagesMut, SettledTotals};
use crate::snapshot::blocks::{BlockFile, BlockWriter, FileInfo, FileVersion};

pub const WARM: &str = "warm";
const VERSION: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmHead {
    version: u32,
    /// Hash of the store's identity.
    pub store: u64,
    /// Number of records read when the rows were settled.
    pub records: u64,
    /// Rows that were settled.
    pub rows: CommittedRows,
    /// Checksum of the block that holds the last settled row ([`RowFile::sum_before`]).
    pub last_block: u64,
    pub totals: SettledTotals,
    /// End of the settled rows in the current row file.
    pub place: RowPlace,
}

/// Position in a row file, after a number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowPlace {
    pub number: u64,
    pub rows: u64,
    /// Checksum of the block that holds the last row before the position.
    pub last_block: u64,
}

impl WarmHead {
    /// Creates the head of a warm start for which `rows` of the current row file were settled.
    pub fn new(
        (store, records): (u64, u64),
        rows: CommittedRows,
        last_block: u64,
        totals: SettledTotals,
    ) -> WarmHead {
        WarmHead {
            version: VERSION,
            store,
            records,
            rows,
            last_block,
            totals,
            place: RowPlace {
                number: rows.number,
                rows: rows.rows,
                last_block,
            },
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum WarmColumn {
    /// X.
    Own,
    /// D.
    Account,
    Cost,
}

impl From<WarmColumn> for usize {
    fn from(column: WarmColumn) -> usize {
        column as usize
    }
}

const COLUMNS: [WarmColumn; 3] = [WarmColumn::Own, WarmColumn::Account, WarmColumn::Cost];

impl FileInfo for WarmHead {
    type Column = WarmColumn;
    const NAME: &'static str = "warm start";
    const VERSIONS: &'static [FileVersion] = &[FileVersion(*b"CRWARM02", VERSION, Some(3))];
    const REMEDY: &'static str = "delete it: the next ranking writes another";

    fn fits(&self, rows: u64, _: usize) -> bool {
        self.totals.pages == rows
    }
}

/// Writes the warm start of a store, replacing the previous one, which is left if that fails.
pub fn write(disk: &dyn Disk, dir: &Path, head: &WarmHead, pages: SettledPages<'_>) -> Result<()> {
    put(disk, dir, head, |block, column| {
        let first = block * CHUNK_PAGES as usize;
        let range = first..pages.costs.len().min(first + CHUNK_PAGES as usize);
        Ok(match column {
            WarmColumn::Own => bytemuck::cast_slice(&pages.own[range]),
            WarmColumn::Account => bytemuck::cast_slice(&pages.accounts[range]),
            WarmColumn::Cost => &pages.costs[range],
        })
    })
}

/// Replaces the file by one with these columns, by block.
fn put<B: AsRef<[u8]>>(
    disk: &dyn Disk,
    dir: &Path,
    head: &WarmHead,
    read: impl Fn(usize, WarmColumn) -> Result<B>,
) -> Result<()> {
    let temporary = TempFile::of(disk, dir.join(WARM));
    let mut writer = BlockWriter::create(disk, &temporary.path, COLUMNS.len())?;
    let pages = head.totals.pages;
    for block in 0..pages.div_ceil(CHUNK_PAGES) as usize {
        for column in COLUMNS {
            writer.packed(block, column, Ok(read(block, column)?))?;
        }
    }
    writer.finish(pages, head)?;
    temporary.put_in_place().map(drop)
}

/// Warm start open for reading; it stays readable when it is replaced.
pub type WarmFile = BlockFile<WarmHead>;

pub fn open(disk: &dyn Disk, dir: &Path) -> Result<Option<WarmFile>> {
    WarmFile::open_any(disk, &dir.join(WARM))
}

impl WarmFile {
    /// Reads and checks the numbers of all pages into `pages`.
    pub fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        let chunk = CHUNK_PAGES as usize;
        let numbers = pages.own.chunks_mut(chunk);
        let numbers = numbers.zip(pages.accounts.chunks_mut(chunk));
        for (block, ((own, accounts), costs)) in
            (0..).zip(numbers.zip(pages.costs.chunks_mut(chunk)))
        {
            let numbers = [own, accounts].map(bytemuck::cast_slice_mut);
            for (column, out) in COLUMNS.into_iter().zip(numbers.into_iter().chain([costs])) {
                out.copy_from_slice(&self.bytes_of(block, column)?);
            }
        }
        Ok(())
    }

    pub fn verify(&self) -> Result<()> {
        let blocks = 0..self.blocks();
        let mut columns = blocks.flat_map(|block| COLUMNS.map(|column| (block, column)));
        columns.try_for_each(|(block, column)| self.bytes_of(block, column).map(drop))
    }

    fn bytes_of(&self, block: u64, column: WarmColumn) -> Result<Vec<u8>> {
        let bytes = self.packed(block, column)?;
        let width = match column {
            WarmColumn::Own | WarmColumn::Account => size_of::<i64>(),
            WarmColumn::Cost => 1,
        };
        if bytes.len() == self.rows_of(block) * width {
            Ok(bytes)
        } else {
            Err(self.bad(block, column))
        }
    }

    /// Replaces the file after a compaction by one with the new end of its rows, which is returned.
    pub(super) fn moved(&self, disk: &dyn Disk, dir: &Path, place: RowPlace) -> Result<WarmFile> {
        let head = WarmHead {
            place,
            ..self.info().clone()
        };
        put(disk, dir, &head, |block, column| {
            self.packed(block as u64, column)
        })?;
        WarmFile::open(disk, &dir.join(WARM))
    }
}

/// Rows of a commit, open, and their end in the current row file: its number, and rows. Compaction moves it.
#[derive(Clone)]
pub struct WarmRows {
    pub file: RowFile,
    pub place: (u64, u64),
}

impl WarmRows {
    pub fn of(disk: &dyn Disk, dir: &Path, kept: CommittedRows, pages: u64) -> Result<WarmRows> {
        Ok(WarmRows {
            file: RowFile::open(disk, dir, kept, pages)?,
            place: (kept.number, kept.rows),
        })
    }
}

#[derive(Clone)]
pub struct WarmStart {
    pub file: Arc<WarmFile>,
    pub rows: WarmRows,
}

impl WarmStart {
    /// Opens the warm start of the store in `dir`, whose identity has the hash `store`. Returns `None` if there is
    /// none, or if it is of another store or of rows that this store does not have.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        store: u64,
        retention: &Retention,
    ) -> Result<Option<WarmStart>> {
        let Some(now) = retention.kept() else {
            return Ok(None);
        };
        let Some(file) = open(disk, dir)? else {
            return Ok(None);
        };
        let WarmHead {
            store: of,
            rows,
            last_block,
            totals,
            place,
            ..
        } = *file.info();
        if of != store || place.number != now.number || place.rows > now.rows {
            return Ok(None);
        }
        let is_now = rows.number == now.number;
        let (lengths, before) = (&now.lengths, &rows.lengths);
        if is_now && (before.data > lengths.data || before.index > lengths.index) {
            return Ok(None);
        }
        let pages = totals.pages;
        let rows = match WarmRows::of(disk, dir, rows, pages) {
            // A compacted file may be gone.
            Err(_) if !is_now => return Ok(None),
            rows => WarmRows {
                place: (place.number, place.rows),
                ..rows?
            },
        };
        // Only checksums are read of it, so the number of pages does not matter.
        let latest = RowFile::open(disk, dir, *now, pages)?;
        let is_same = rows.file.sum_before(rows.file.rows())? == last_block
            && latest.sum_before(place.rows)? == place.last_block;
        let file = Arc::new(file);
        Ok(is_same.then_some(WarmStart { file, rows }))
    }

    /// Returns what changed in the rows since the warm start.
    pub fn since(&self, rows: &KeptRows) -> Result<RowsDiff> {
        rows.since(self.rows.file.clone(), self.rows.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::log::LogLengths;
    use crate::engine::Effort;
    use crate::fuzz::memory::Memory;

    /// Wide numbers and bounds come back to the bit, and so do pages when the rows move.
    #[test]
    fn a_warm_start_comes_back() {
        let rows = CommittedRows {
            number: 2,
            lengths: LogLengths {
                data: 400,
                index: 24,
            },
            rows: 8,
            links: 70,
            superseded: 1,
            look_at: 0,
        };
        let totals = SettledTotals {
            pages: CHUNK_PAGES + 2,
            damping: 1 << 31,
            sum: (1 << 70) + 3,
            virtual_page: -(1 << 65) - 1,
            strayed: (1 << 127) + 1,
            effort: Effort {
                until: 0.1 + 0.2,
                reached: true,
                sweeps: 3,
                links_touched: 77,
                links: u64::MAX,
                resumed: true,
            },
        };
        let (disk, dir) = (Memory::default(), Path::new("s"));
        let own: Vec<i64> = (0..totals.pages as i64).map(|at| at << 40).collect();
        let accounts: Vec<i64> = own.iter().map(|own| !own).collect();
        let costs: Vec<u8> = own.iter().map(|own| (own >> 40) as u8).collect();
        let read = || {
            let file = open(&disk, dir).unwrap().unwrap();
            file.verify().unwrap();
            let len = own.len();
            let mut found = (vec![0; len], vec![0; len], vec![0; len]);
            file.load(SettledPagesMut {
                own: &mut found.0,
                accounts: &mut found.1,
                costs: &mut found.2,
            })
            .unwrap();
            assert!(found == (own.clone(), accounts.clone(), costs.clone()));
            file
        };
        let head = WarmHead::new((u64::MAX, 9), rows, 1 << 63, totals);
        let pages = SettledPages {
            own: &own,
            accounts: &accounts,
            costs: &costs,
        };
        write(&disk, dir, &head, pages).unwrap();
        let file = read();
        assert_eq!(*file.info(), head);
        let place = RowPlace {
            number: 3,
            rows: 7,
            last_block: 5,
        };
        file.moved(&disk, dir, place).unwrap();
        assert_eq!(*read().info(), WarmHead { place, ..head });
    }
}
