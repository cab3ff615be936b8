//! The settled base: what a settling came to, `base/NUMBER`, from which the next one starts.
//!
//! ```text
//! head         version u64 | store u64 | number u64 | pages u64 | records u64 | damping u64
//!              | sum of X i128 | T i128 | F u128 | until f64 | flags u64 | sweeps u64 | links gone over u64 | links u64
//!              | XXH3-64 of these u64
//! chunk*       of up to 2^17 pages: X i64 each | D i64 each | cost u8 each
//!              | XXH3-64 of these and of the chunk's number u64
//! ```
//! The manifest has its length and a hash of all its checksums, and the rows that it was settled over
//! ([`CommittedBase`]). It is written aside, under a number of its own, and synced before the commit that names it; the
//! one before goes after that commit. So a cut leaves the one or the other, and rows since whose they are.
//!
//! It is an addition: without it, or if it is damaged, settling begins with nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::folder::make_dir;
use super::rows::CommittedRows;
use crate::codec::frame::{self, Fields, Head};
use crate::disk::{Disk, DiskFile, recreate};
use crate::engine::{CHUNK_PAGES, Effort, SettledPages, SettledPagesMut, SettledTotals};
use crate::{Error, Result};

/// The folder of a store's base.
pub(crate) const BASE: &str = "base";
/// The base of a snapshot by time, which no commit names.
pub(crate) const BESIDE: &str = "beside.tmp";
const VERSION: u64 = 1;
/// Bytes before the first chunk.
pub(super) const FIXED: usize = 18 * 8;
/// Bytes of a page.
const PAGE: u64 = 17;
/// The flags of a head: the bound was reached,
const REACHED: u64 = 1;
/// and all began with nothing. Version 0.2 does not say, so its bases may have gone on from earlier ones.
const FROM_NOTHING: u64 = 2;

/// The base that a commit names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommittedBase {
    /// Which file: the number of the commit that was settled.
    pub number: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The hash of its checksums.
    pub sum: u64,
    /// The rows that it was settled over.
    pub rows: CommittedRows,
    /// Where they end in the row file that there is now: its number, and rows. Compaction moves it.
    pub place: (u64, u64),
}

/// A base that is being made, of the rows of this commit or an earlier one. If a kill comes before it is named, whoever goes
/// on makes it first: all that it takes is kept until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwedBase {
    /// The number of the commit.
    pub number: u64,
    /// Pages known, and records read then.
    pub pages: u64,
    pub records: u64,
    /// Its rows, and where they end in the row file that there is now.
    pub rows: CommittedRows,
    pub place: (u64, u64),
    /// Where the rows of the base before end in the file of `rows`.
    pub from: Option<(u64, u64)>,
}

/// How near what is owed is to be settled, as [`crate::rank::Goal`] has it: whoever makes it may be asked for another ranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwedGoal {
    pub until: f64,
    pub spare: u64,
}

/// What a commit says of bases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseState {
    pub owed: Option<OwedBase>,
    pub base: Option<CommittedBase>,
}

impl BaseState {
    /// Where rows end that bases are of: compaction moves these places.
    pub fn places(&mut self) -> impl Iterator<Item = &mut (u64, u64)> {
        let owed = self.owed.as_mut().map(|owed| &mut owed.place);
        owed.into_iter()
            .chain(self.base.as_mut().map(|base| &mut base.place))
    }

    /// Row files that bases are of.
    pub fn row_files(&self) -> impl Iterator<Item = u64> {
        let owed = self.owed.map(|owed| owed.rows.number);
        owed.into_iter()
            .chain(self.base.map(|base| base.rows.number))
    }
}

/// What a base says of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BaseHead {
    pub number: u64,
    /// Records read then.
    pub records: u64,
    pub totals: SettledTotals,
}

fn path_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(BASE).join(name)
}

fn file_name(number: u64, beside: bool) -> String {
    if beside {
        BESIDE.into()
    } else {
        number.to_string()
    }
}

impl BaseHead {
    fn to_bytes(self, store: u64) -> Vec<u8> {
        let totals = &self.totals;
        let wide = |value: i128| [value as u64, (value >> 64) as u64];
        let effort = &totals.effort;
        let from_nothing = if effort.resumed { 0 } else { FROM_NOTHING };
        let flags = u64::from(effort.reached) | from_nothing;
        Head::default()
            .u64s([VERSION, store, self.number, totals.pages, self.records])
            .u64(totals.damping)
            .u64s(wide(totals.sum))
            .u64s(wide(totals.virtual_page))
            .u64s(wide(totals.strayed as i128))
            .u64s([effort.until.to_bits(), flags])
            .u64s([effort.sweeps, effort.links_touched, effort.links])
            .sealed()
    }

    /// The head, and the store that it is of; or what is wrong.
    fn of(bytes: &[u8]) -> std::result::Result<(BaseHead, u64), &'static str> {
        if !frame::is_sealed(bytes) {
            return Err("the checksum of its head does not match");
        }
        let mut fields = Fields(bytes);
        if fields.u64() != VERSION {
            return Err("it is of another version");
        }
        let [store, number, pages, records, damping] = fields.u64s();
        let mut wide = || {
            let [low, high] = fields.u64s();
            i128::from(low) | i128::from(high) << 64
        };
        let (sum, virtual_page) = (wide(), wide());
        let strayed = wide() as u128;
        let until = f64::from_bits(fields.u64());
        let [flags, sweeps, links_touched, links] = fields.u64s();
        let effort = Effort {
            until,
            reached: flags & REACHED != 0,
            sweeps,
            links_touched,
            links,
            resumed: flags & FROM_NOTHING == 0,
        };
        let totals = SettledTotals {
            pages,
            damping,
            sum,
            virtual_page,
            strayed,
            effort,
        };
        let head = BaseHead {
            number,
            records,
            totals,
        };
        Ok((head, store))
    }
}

/// The length of a base of so many pages; `None`: there cannot be so many.
fn length_of(pages: u64) -> Option<u64> {
    let chunks = pages.div_ceil(CHUNK_PAGES).checked_mul(8)?;
    pages
        .checked_mul(PAGE)?
        .checked_add(chunks)?
        .checked_add(FIXED as u64)
}

/// Writes a base of the store with this identity and makes it durable, or `beside` the run, which need not be. What
/// there is of it after a failure is removed.
pub(crate) fn write(
    disk: &dyn Disk,
    dir: &Path,
    store: u64,
    head: BaseHead,
    pages: SettledPages<'_>,
    rows: CommittedRows,
    beside: bool,
) -> Result<CommittedBase> {
    let folder = dir.join(BASE);
    make_dir(disk, &folder)?;
    let path = folder.join(file_name(head.number, beside));
    let written = write_file(disk, &path, store, head, pages).and_then(|(file, length, sum)| {
        if !beside {
            file.sync().map_err(Error::io(&path, "sync"))?;
            for folder in [&*folder, dir] {
                disk.sync_dir(folder).map_err(Error::io(folder, "sync"))?;
            }
        }
        Ok(CommittedBase {
            number: head.number,
            length,
            sum,
            rows,
            place: (rows.number, rows.rows),
        })
    });
    if written.is_err() {
        // What a disk has no room for is not left there.
        let _ = disk.remove(&path);
    }
    written
}

fn write_file(
    disk: &dyn Disk,
    path: &Path,
    store: u64,
    head: BaseHead,
    pages: SettledPages<'_>,
) -> Result<(Box<dyn DiskFile>, u64, u64)> {
    let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        let written = file.write_at(bytes, at);
        at += bytes.len() as u64;
        written.map_err(Error::io(path, "write"))
    };
    let fixed = head.to_bytes(store);
    put(&fixed)?;
    let mut sums = Xxh3::new();
    sums.update(&fixed[FIXED - 8..]);
    let chunk = CHUNK_PAGES as usize;
    let chunks = pages.own.chunks(chunk).zip(pages.accounts.chunks(chunk));
    for (number, ((own, accounts), costs)) in (0..).zip(chunks.zip(pages.costs.chunks(chunk))) {
        let sum = sum_of(number, own, accounts, costs).to_le_bytes();
        let [own, accounts] = [own, accounts].map(bytemuck::cast_slice);
        for bytes in [own, accounts, costs, &sum] {
            put(bytes)?;
        }
        sums.update(&sum);
    }
    Ok((file, at, sums.digest()))
}

/// The checksum of a chunk.
fn sum_of(number: u64, own: &[i64], accounts: &[i64], costs: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    for numbers in [own, accounts] {
        hash.update(bytemuck::cast_slice(numbers));
    }
    hash.update(costs);
    hash.update(&number.to_le_bytes());
    hash.digest()
}

/// Removes a base that no commit names. A folder of that name is none.
pub(super) fn remove(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    remove_file(disk, &path_of(dir, &number.to_string()))
}

fn remove_file(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
            Ok(())
        }
        removed => removed.map_err(Error::io(path, "remove")),
    }
}

/// Removes all bases but the one that a commit names. What has another name than ours stays.
pub(super) fn remove_others(disk: &dyn Disk, dir: &Path, state: &BaseState) -> Result<()> {
    let folder = dir.join(BASE);
    let names = match disk.list(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => names.map_err(Error::opening(&folder))?,
    };
    let named = state.base.map(|base| base.number.to_string());
    let is_base = |name: &String| name == BESIDE || name.parse::<u64>().is_ok();
    for name in names.into_iter().filter(is_base) {
        if named.as_ref() != Some(&name) {
            remove_file(disk, &folder.join(name))?;
        }
    }
    Ok(())
}

/// A base, open for reading: it stays readable when another takes its place.
pub(crate) struct BaseFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    pub head: BaseHead,
    /// The hash of its checksums that there should be.
    sum: u64,
    /// That of its head.
    head_sum: [u8; 8],
}

impl BaseFile {
    /// Opens the base that a commit of the store with this identity names, or the one `beside` the run.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it is not there, or not the one that is named; [`Error::Io`].
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        store: u64,
        named: &CommittedBase,
        beside: bool,
    ) -> Result<BaseFile> {
        let path = path_of(dir, &file_name(named.number, beside));
        let damaged = |what: &str| Error::damaged(&path, what);
        let file = disk.read(&path).map_err(Error::opening(&path))?;
        let mut fixed = [0; FIXED];
        file.read_at(&mut fixed, 0).map_err(Error::reading(&path))?;
        let (head, of) = BaseHead::of(&fixed).map_err(damaged)?;
        if of != store || head.number != named.number {
            return Err(damaged("it is not the one that store.redb names"));
        }
        let size = file.size().map_err(Error::reading(&path))?;
        if size != named.length || length_of(head.totals.pages) != Some(size) {
            return Err(damaged("its length is wrong"));
        }
        Ok(BaseFile {
            file,
            head,
            sum: named.sum,
            head_sum: xxh3_64(&fixed[..FIXED - 8]).to_le_bytes(),
            path,
        })
    }

    /// What is wrong with it.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// Reads and checks what its pages have, as many as `pages` has room for.
    pub fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        let chunk = CHUNK_PAGES as usize;
        let mut sums = self.sums();
        let numbers = pages.own.chunks_mut(chunk);
        let numbers = numbers.zip(pages.accounts.chunks_mut(chunk));
        for (number, ((own, accounts), costs)) in
            (0..).zip(numbers.zip(pages.costs.chunks_mut(chunk)))
        {
            self.load_chunk(number, own, accounts, costs, &mut sums)?;
        }
        self.check_sums(&sums)
    }

    /// Reads all of it for its checksums, a chunk at a time.
    pub fn check(&self) -> Result<()> {
        let mut sums = self.sums();
        let mut left = self.head.totals.pages;
        let len = left.min(CHUNK_PAGES) as usize;
        let (mut own, mut accounts, mut costs) = (vec![0; len], vec![0; len], vec![0; len]);
        for number in 0.. {
            let len = left.min(CHUNK_PAGES) as usize;
            if len == 0 {
                break;
            }
            let (own, accounts) = (&mut own[..len], &mut accounts[..len]);
            self.load_chunk(number, own, accounts, &mut costs[..len], &mut sums)?;
            left -= len as u64;
        }
        self.check_sums(&sums)
    }

    /// The hash of its checksums so far: of the head's.
    fn sums(&self) -> Xxh3 {
        let mut sums = Xxh3::new();
        sums.update(&self.head_sum);
        sums
    }

    fn load_chunk(
        &self,
        number: u64,
        own: &mut [i64],
        accounts: &mut [i64],
        costs: &mut [u8],
        sums: &mut Xxh3,
    ) -> Result<()> {
        let mut sum = [0; 8];
        let mut at = FIXED as u64 + number * (CHUNK_PAGES * PAGE + 8);
        let [own_bytes, account_bytes] = [&mut *own, &mut *accounts].map(bytemuck::cast_slice_mut);
        for bytes in [own_bytes, account_bytes, &mut *costs, &mut sum] {
            let read = self.file.read_at(bytes, at);
            read.map_err(Error::reading(&self.path))?;
            at += bytes.len() as u64;
        }
        if u64::from_le_bytes(sum) != sum_of(number, own, accounts, costs) {
            return Err(self.damaged(format!("the checksum of chunk {number} does not match")));
        }
        sums.update(&sum);
        Ok(())
    }

    fn check_sums(&self, sums: &Xxh3) -> Result<()> {
        if sums.digest() == self.sum {
            Ok(())
        } else {
            Err(self.damaged("its checksums are not those that store.redb names"))
        }
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
        let head = BaseHead {
            number: 5,
            records: 9,
            totals: SettledTotals {
                pages: 4,
                damping: 1 << 31,
                sum: (1 << 70) + 3,
                virtual_page: -(1 << 65) - 1,
                strayed: (1 << 127) + 1,
                effort,
            },
        };
        let bytes = head.to_bytes(42);
        assert_eq!(bytes.len(), FIXED);
        assert_eq!(BaseHead::of(&bytes), Ok((head, 42)));
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(BaseHead::of(&flipped).is_err(), "{bit}");
        }
    }
}
