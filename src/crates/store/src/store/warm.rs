//! The warm start, `warm`: the final state of a settling, from which the next one starts.
//!
//! ```text
//! head         version u64 | store u64 | records u64
//!              | of the rows: file u64 | bytes u64 | bytes of their index u64 | rows u64 | links u64 | superseded u64
//!              | checksum of the block of the last row u64
//!              | pages u64 | damping u64 | sum of X i128 | T i128 | F u128
//!              | until f64 | flags u64 | sweeps u64 | links gone over u64 | links u64
//!              | where the rows end: file u64 | rows u64 | checksum of the block before u64 | XXH3-64 of these u64
//! chunk*       of up to 2^17 pages: X i64 each | D i64 each | cost u8 each
//!              | XXH3-64 of these, of the chunk's number u64 and of the XXH3-64 of the head up to `links` u64
//! ```
//!
//! It is a cache that no commit names. It is written to a temporary file, synced, and renamed once a ranking is
//! published. It fits if it is of this store and the row file begins with the rows that it names; otherwise it is
//! ignored until the next one replaces it. A compaction of the rows keeps the old row file, and updates the head with
//! the end of its rows in the new one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::TempFile;
use super::rows::{CommittedRows, KeptRows, Retention, RowFile, RowsDiff};
use crate::codec::frame::{self, BlockHead, HeadReader};
use crate::disk::log::LogLengths;
use crate::disk::{Disk, DiskFile};
use crate::engine::{CHUNK_PAGES, Effort, SettledPages, SettledPagesMut, SettledTotals};
use crate::{Error, Result};

/// Name of the file in a store.
pub const WARM: &str = "warm";
/// Temporary name of the file.
pub const WARM_ASIDE: &str = "warm.tmp";
const VERSION: u64 = 1;
/// Length of the head before the first chunk, in bytes.
pub(super) const FIXED: usize = 27 * 8;
/// Length of the part of the head that never changes, in bytes.
const LASTING: usize = 23 * 8;
/// Length of a page's entry, in bytes.
const PAGE: u64 = 17;
/// Flag of the head: the bound was reached.
const REACHED: u64 = 1;
/// Flag of the head: the settling started from an earlier state.
const RESUMED: u64 = 2;

/// Head of a warm start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmHead {
    /// Hash of the store's identity.
    pub store: u64,
    /// Number of records read at that time.
    pub records: u64,
    /// Rows that were settled.
    pub rows: CommittedRows,
    /// Checksum of the block that holds the last of them ([`RowFile::sum_before`]).
    pub last_block: u64,
    pub totals: SettledTotals,
    /// End of these rows in the current row file.
    pub place: RowPlace,
}

/// Position in a row file, after a number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    pub number: u64,
    pub rows: u64,
    /// Checksum of the block that holds the last of them.
    pub last_block: u64,
}

impl WarmHead {
    fn to_bytes(self) -> Vec<u8> {
        let WarmHead {
            rows,
            totals,
            place,
            ..
        } = self;
        let effort = totals.effort;
        let flag = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(REACHED, effort.reached) | flag(RESUMED, effort.resumed);
        let wide = [totals.sum, totals.virtual_page, totals.strayed as i128];
        let wide = wide.map(|value| [value as u64, (value >> 64) as u64]);
        BlockHead::default()
            .u64s([VERSION, self.store, self.records])
            .u64s([rows.number, rows.lengths.data, rows.lengths.index])
            .u64s([rows.rows, rows.links, rows.superseded, self.last_block])
            .u64s([totals.pages, totals.damping])
            .u64s(wide.concat())
            .u64s([effort.until.to_bits(), flags])
            .u64s([effort.sweeps, effort.links_touched, effort.links])
            .u64s([place.number, place.rows, place.last_block])
            .sealed()
    }

    /// Decodes the head, or describes what is wrong.
    fn of(bytes: &[u8]) -> std::result::Result<WarmHead, &'static str> {
        if !frame::is_sealed(bytes) {
            return Err("the checksum of its head does not match");
        }
        let mut fields = HeadReader(bytes);
        let [version, store, records] = fields.u64s();
        if version != VERSION {
            return Err("it is of another version");
        }
        let [number, data, index, rows, links, superseded] = fields.u64s();
        let [last_block, pages, damping] = fields.u64s();
        let [sum, virtual_page, strayed] = [(); 3].map(|()| {
            let [low, high] = fields.u64s();
            i128::from(low) | i128::from(high) << 64
        });
        let [until, flags, sweeps, links_touched, settled_links] = fields.u64s();
        let place = fields.u64s();
        Ok(WarmHead {
            store,
            records,
            rows: CommittedRows {
                number,
                lengths: LogLengths { data, index },
                rows,
                links,
                superseded,
                look_at: 0,
            },
            last_block,
            totals: SettledTotals {
                pages,
                damping,
                sum,
                virtual_page,
                strayed: strayed as u128,
                effort: Effort {
                    until: f64::from_bits(until),
                    reached: flags & REACHED != 0,
                    sweeps,
                    links_touched,
                    links: settled_links,
                    resumed: flags & RESUMED != 0,
                },
            },
            place: {
                let [number, rows, last_block] = place;
                RowPlace {
                    number,
                    rows,
                    last_block,
                }
            },
        })
    }
}

/// Returns the length of the file for this many pages, in bytes; `None` on overflow.
fn length_of(pages: u64) -> Option<u64> {
    let chunks = pages.div_ceil(CHUNK_PAGES).checked_mul(8)?;
    pages
        .checked_mul(PAGE)?
        .checked_add(chunks)?
        .checked_add(FIXED as u64)
}

/// Writes the warm start of a store, replacing the previous one, which is left if that fails.
pub fn write(disk: &dyn Disk, dir: &Path, head: WarmHead, pages: SettledPages<'_>) -> Result<()> {
    let temporary = TempFile::of(disk, dir.join(WARM));
    let path = &temporary.path;
    let file = temporary.create()?;
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        let written = file.write_at(bytes, at);
        at += bytes.len() as u64;
        written.map_err(Error::io(path, "write"))
    };
    let fixed = head.to_bytes();
    put(&fixed)?;
    let seal = xxh3_64(&fixed[..LASTING]);
    let chunk = CHUNK_PAGES as usize;
    let chunks = pages.own.chunks(chunk).zip(pages.accounts.chunks(chunk));
    for (at, ((own, accounts), costs)) in (0..).zip(chunks.zip(pages.costs.chunks(chunk))) {
        let sum = sum_of(seal, at, own, accounts, costs).to_le_bytes();
        let [own, accounts] = [own, accounts].map(bytemuck::cast_slice);
        for bytes in [own, accounts, costs, &sum] {
            put(bytes)?;
        }
    }
    file.sync().map_err(Error::io(path, "sync"))?;
    drop(file);
    temporary.put_in_place().map(drop)
}

/// Returns the checksum of a chunk, in a file whose head's constant part has the checksum `seal`.
fn sum_of(seal: u64, chunk: u64, own: &[i64], accounts: &[i64], costs: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    for numbers in [own, accounts] {
        hash.update(bytemuck::cast_slice(numbers));
    }
    hash.update(costs);
    hash.update(&chunk.to_le_bytes());
    hash.update(&seal.to_le_bytes());
    hash.digest()
}

/// Updates the head after a compaction with the end of the rows. On an error it no longer fits.
pub(super) fn note_place(
    disk: &dyn Disk,
    dir: &Path,
    head: WarmHead,
    place: RowPlace,
) -> Result<()> {
    let path = dir.join(WARM);
    let file = disk.open(&path, false).map_err(Error::opening(&path))?;
    let head = WarmHead { place, ..head };
    file.write_at(&head.to_bytes(), 0)
        .map_err(Error::io(&path, "write"))
}

/// Removes the warm start and its temporary file. Anything that is not a file stays.
pub(super) fn remove(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for name in [WARM, WARM_ASIDE] {
        remove_file(disk, &dir.join(name))?;
    }
    Ok(())
}

/// Removes the temporary file of a killed process.
pub(super) fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> Result<()> {
    remove_file(disk, &dir.join(WARM_ASIDE))
}

/// Removes the settled states of earlier versions: `base/`, except for files of other names.
pub(super) fn remove_base(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let folder = dir.join("base");
    let Ok(names) = disk.list(&folder) else {
        return Ok(());
    };
    let is_base = |name: &str| name == "beside.tmp" || name.parse::<u64>().is_ok();
    for name in names.iter().filter(|name| is_base(name)) {
        remove_file(disk, &folder.join(name))?;
    }
    // Stays if it is not empty.
    let _ = disk.remove_dir(&folder);
    Ok(())
}

fn remove_file(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
            Ok(())
        }
        removed => removed.map_err(Error::io(path, "remove")),
    }
}

/// Warm start open for reading; it stays readable when it is replaced.
pub struct WarmFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    pub head: WarmHead,
    /// Checksum of the constant part of the head.
    seal: u64,
    /// Number of the row file to which the position in the head refers.
    pub noted: AtomicU64,
}

impl WarmFile {
    /// Opens the warm start in `dir`; `None` if there is none.
    pub fn open(disk: &dyn Disk, dir: &Path) -> Result<Option<WarmFile>> {
        let path = dir.join(WARM);
        let damaged = |what: &str| Error::damaged(&path, what);
        let file = match disk.read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::opening(&path))?,
        };
        let mut fixed = [0; FIXED];
        file.read_at(&mut fixed, 0).map_err(Error::reading(&path))?;
        let head = WarmHead::of(&fixed).map_err(damaged)?;
        let size = file.size().map_err(Error::reading(&path))?;
        if length_of(head.totals.pages) != Some(size) {
            return Err(damaged("its length is wrong"));
        }
        Ok(Some(WarmFile {
            seal: xxh3_64(&fixed[..LASTING]),
            noted: AtomicU64::new(head.place.number),
            file,
            head,
            path,
        }))
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// Reads and checks the numbers of its pages into `pages`.
    pub fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        let chunk = CHUNK_PAGES as usize;
        let numbers = pages.own.chunks_mut(chunk);
        let numbers = numbers.zip(pages.accounts.chunks_mut(chunk));
        for (number, ((own, accounts), costs)) in
            (0..).zip(numbers.zip(pages.costs.chunks_mut(chunk)))
        {
            self.load_chunk(number, own, accounts, costs)?;
        }
        Ok(())
    }

    /// Reads and checks all chunks.
    pub fn verify(&self) -> Result<()> {
        let pages = self.head.totals.pages;
        let chunk = CHUNK_PAGES.min(pages) as usize;
        let (mut own, mut accounts, mut costs) = (vec![0; chunk], vec![0; chunk], vec![0; chunk]);
        for number in 0..pages.div_ceil(CHUNK_PAGES) {
            let len = (pages - number * CHUNK_PAGES).min(CHUNK_PAGES) as usize;
            let (own, accounts) = (&mut own[..len], &mut accounts[..len]);
            self.load_chunk(number, own, accounts, &mut costs[..len])?;
        }
        Ok(())
    }

    fn load_chunk(
        &self,
        chunk: u64,
        own: &mut [i64],
        accounts: &mut [i64],
        costs: &mut [u8],
    ) -> Result<()> {
        let mut sum = [0; 8];
        let mut at = FIXED as u64 + chunk * (CHUNK_PAGES * PAGE + 8);
        let [own_bytes, account_bytes] = [&mut *own, &mut *accounts].map(bytemuck::cast_slice_mut);
        for bytes in [own_bytes, account_bytes, &mut *costs, &mut sum] {
            let read = self.file.read_at(bytes, at);
            read.map_err(Error::reading(&self.path))?;
            at += bytes.len() as u64;
        }
        if u64::from_le_bytes(sum) == sum_of(self.seal, chunk, own, accounts, costs) {
            Ok(())
        } else {
            Err(self.damaged(format!("the checksum of chunk {chunk} does not match")))
        }
    }
}

/// Rows of a commit, open, and their end in the current row file: its number, and rows. Compaction moves it.
#[derive(Clone)]
pub struct WarmRows {
    pub file: RowFile,
    pub place: (u64, u64),
}

impl WarmRows {
    /// Opens the rows of a commit.
    pub fn of(disk: &dyn Disk, dir: &Path, kept: CommittedRows) -> Result<WarmRows> {
        Ok(WarmRows {
            file: RowFile::open(disk, dir, kept)?,
            place: (kept.number, kept.rows),
        })
    }
}

/// Warm start that fits, with its rows.
#[derive(Clone)]
pub struct WarmStart {
    pub file: Arc<WarmFile>,
    pub rows: WarmRows,
}

impl WarmStart {
    /// Opens the warm start of the store in `dir`, whose identity has the hash `store`. Returns `None` if there is
    /// none, or if it is of another store or of rows that this one no longer has.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        store: u64,
        retention: &Retention,
    ) -> Result<Option<WarmStart>> {
        let Some(now) = retention.kept() else {
            return Ok(None);
        };
        let Some(file) = WarmFile::open(disk, dir)? else {
            return Ok(None);
        };
        let WarmHead {
            store: of,
            rows,
            last_block,
            place,
            ..
        } = file.head;
        if of != store || place.number != now.number || place.rows > now.rows {
            return Ok(None);
        }
        let is_now = rows.number == now.number;
        let (lengths, before) = (&now.lengths, &rows.lengths);
        if is_now && (before.data > lengths.data || before.index > lengths.index) {
            return Ok(None);
        }
        let rows = match WarmRows::of(disk, dir, rows) {
            // A compacted file may be gone.
            Err(_) if !is_now => return Ok(None),
            rows => WarmRows {
                place: (place.number, place.rows),
                ..rows?
            },
        };
        let latest = RowFile::open(disk, dir, *now)?;
        let is_same = rows.file.sum_before(rows.file.rows())? == last_block
            && latest.sum_before(place.rows)? == place.last_block;
        let file = Arc::new(file);
        Ok(is_same.then_some(WarmStart { file, rows }))
    }

    /// Returns what changed in the rows since.
    pub fn since(&self, rows: &KeptRows) -> Result<RowsDiff> {
        let pages = self.file.head.totals.pages;
        rows.since(self.rows.file.clone(), pages, self.rows.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back() {
        let effort = Effort {
            until: 0.01,
            reached: true,
            sweeps: 3,
            links_touched: 77,
            links: 1 << 40,
            resumed: false,
        };
        let head = WarmHead {
            store: 42,
            records: 9,
            rows: CommittedRows {
                number: 2,
                lengths: LogLengths {
                    data: 400,
                    index: 24,
                },
                rows: 8,
                links: 70,
                superseded: 1,
                look_at: 0,
            },
            last_block: 1 << 63,
            place: RowPlace {
                number: 3,
                rows: 7,
                last_block: 5,
            },
            totals: SettledTotals {
                pages: 4,
                damping: 1 << 31,
                sum: (1 << 70) + 3,
                virtual_page: -(1 << 65) - 1,
                strayed: (1 << 127) + 1,
                effort,
            },
        };
        let bytes = head.to_bytes();
        assert_eq!(bytes.len(), FIXED);
        assert_eq!(WarmHead::of(&bytes), Ok(head));
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(WarmHead::of(&flipped).is_err(), "{bit}");
        }
    }
}
