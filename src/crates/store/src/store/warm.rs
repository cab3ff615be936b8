//! The warm start, `warm`: the final state of a settling, from which the next one starts, and the rows that changed since.
//!
//! It is a file of blocks (`snapshot/blocks.rs`) with three columns: X and D of each page as `i64`, and the cost of a
//! visit in a byte. It is a cache that no commit names. It fits if it is of this store and the row file begins with the
//! rows that it names; otherwise it is ignored until the next one replaces it. A compaction of the rows keeps the old row
//! file, and writes the warm start with the end of its rows in the new one.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::checkpoint::StoreWriter;
use super::rows::{CommittedRows, KeptRows, Retention, RowFile};
use crate::disk::{Disk, TempFile};
use crate::engine::{CHUNK_PAGES, Cells, Effort};
use crate::engine::{SettledPages, SettledPagesMut, SettledTotals};
use crate::rank::settle::StartState;
use crate::rows::{Bits, Row, RowVisitor, Stop};
use crate::snapshot::blocks::{BlockFile, BlockWriter, FileInfo, Magic, version_of};
use crate::{Error, Result};

pub const WARM: &str = "warm";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmHead {
    version: u32,
    pub store: u64,
    /// Number of records read when the rows were settled.
    pub records: u64,
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
            version: version_of(&WarmHead::MAGIC),
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

/// Length of a number in each column: X, what a page has passed on; D, its account; and the cost of a visit.
const WIDTHS: [usize; 3] = [size_of::<i64>(), size_of::<i64>(), 1];

impl FileInfo for WarmHead {
    type Column = usize;
    const NAME: &'static str = "warm start";
    const MAGIC: Magic = *b"CRWARM02";
    const COLUMNS: Option<usize> = Some(WIDTHS.len());
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
        let numbers = [pages.own, pages.accounts].map(|all| &all[range.clone()]);
        let [own, accounts] = numbers.map(bytemuck::cast_slice);
        Ok([own, accounts, &pages.costs[range.clone()]][column])
    })
}

/// Replaces the file by one with these columns, by block.
fn put<B: AsRef<[u8]>>(
    disk: &dyn Disk,
    dir: &Path,
    head: &WarmHead,
    read: impl Fn(usize, usize) -> Result<B>,
) -> Result<()> {
    let temporary = TempFile::of(disk, dir.join(WARM));
    let mut writer = BlockWriter::create(disk, &temporary.path, WIDTHS.len())?;
    let pages = head.totals.pages;
    for block in 0..pages.div_ceil(CHUNK_PAGES) as usize {
        for column in 0..WIDTHS.len() {
            writer.packed(block, column, read(block, column)?.as_ref())?;
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
            let [own, accounts] = [own, accounts].map(bytemuck::cast_slice_mut);
            for (column, out) in [own, accounts, costs].into_iter().enumerate() {
                out.copy_from_slice(&self.bytes_of(block, column)?);
            }
        }
        Ok(())
    }

    pub fn verify(&self) -> Result<()> {
        let blocks = 0..self.blocks();
        let mut columns = blocks.flat_map(|block| [0, 1, 2].map(|column| (block, column)));
        columns.try_for_each(|(block, column)| self.bytes_of(block, column).map(drop))
    }

    fn bytes_of(&self, block: u64, column: usize) -> Result<Vec<u8>> {
        let bytes = self.packed(block, column)?;
        if bytes.len() == self.rows_of(block) * WIDTHS[column] {
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
pub type WarmRows = (RowFile, (u64, u64));

#[derive(Clone)]
pub struct WarmStart {
    pub file: Arc<WarmFile>,
    pub rows: WarmRows,
}

impl WarmStart {
    /// Opens the warm start of the store in `dir`; `None` if there is none, or it does not belong to these rows.
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
        let head = file.info().clone();
        let (rows, place, pages) = (head.rows, head.place, head.totals.pages);
        let is_now = rows.number == now.number;
        let (lengths, before) = (&now.lengths, &rows.lengths);
        let is_longer = before.data > lengths.data || before.index > lengths.index;
        if head.store != store
            || place.number != now.number
            || place.rows > now.rows
            || is_now && is_longer
        {
            return Ok(None);
        }
        let settled = match RowFile::open(disk, dir, rows, pages) {
            // A compacted file may be gone.
            Err(_) if !is_now => return Ok(None),
            settled => settled?,
        };
        // Only checksums are read of it, so the number of pages does not matter.
        let latest = RowFile::open(disk, dir, *now, pages)?;
        let is_same = settled.sum_before(rows.rows)? == head.last_block
            && latest.sum_before(place.rows)? == place.last_block;
        Ok(is_same.then(|| WarmStart {
            file: Arc::new(file),
            rows: (settled, (place.number, place.rows)),
        }))
    }

    /// Finds what changed from the rows of the warm start to those of a commit, in 16 bytes of memory for each row.
    pub fn until<'r>(&'r self, rows: &'r KeptRows, records: u64) -> Result<WarmDiff<'r>> {
        let (old, (number, place)) = &self.rows;
        let (number, place) = (*number, *place);
        let (now, pages) = (&rows.file.kept, old.pages);
        if number != now.number || place > now.rows {
            let what = format!("it does not have the first {place} rows of file {number}");
            return Err(rows.file.log.damaged(what));
        }
        let mut changed = Bits::new(pages);
        let (mut new, mut links) = (0, 0);
        rows.file.back_over(place..now.rows, |_, head| {
            let page = u64::from(head.page);
            if page >= pages {
                new += 1;
            } else if changed.set(page) {
                new += 1;
                links += u64::from(head.links);
            }
            Ok(())
        })?;
        let mut diff = WarmDiff {
            start: self,
            now: rows,
            records,
            gone: Bits::new(old.kept.rows),
            same: Bits::new(pages),
            rows: new,
            links,
        };
        // If the file is the same, its count of superseded rows tells whether any was.
        if new > 0 && (number != old.kept.number || now.superseded != old.kept.superseded) {
            let (found, more) = old.mark_last(|page| changed.get(page), &mut diff.gone)?;
            diff.links += more;
            diff.leave_out_same(found as usize)?;
        }
        Ok(diff)
    }
}

impl StoreWriter {
    /// Begins a ranking of the last commit whose result will be the next warm start.
    pub fn begin_warm_start(&mut self) -> Result<()> {
        let kept = self.manifest.retention.kept();
        let pages = self.manifest.engine.totals.pages;
        let open = |kept: &CommittedRows| {
            let rows = RowFile::open(&*self.disk, &self.dir, *kept, pages)?;
            Ok::<_, Error>((rows, (kept.number, kept.rows)))
        };
        self.ranked = kept.map(open).transpose()?;
        Ok(())
    }

    /// Ends the ranking of `begin_warm_start`; if it `wrote` the warm start, this replaces the previous one.
    pub fn end_warm_start(&mut self, wrote: bool) {
        if let Some(rows) = self.ranked.take().filter(|_| wrote) {
            let file = open(&*self.disk, &self.dir).map(|file| file.map(Arc::new));
            self.warm = file.map(|file| file.map(|file| WarmStart { file, rows }));
        }
        self.note_warm_place();
    }

    /// Updates the place of the rows of the warm start after a compaction; on failure, later processes cannot use it.
    pub(super) fn note_warm_place(&mut self) {
        let Some(now) = self.manifest.retention.kept() else {
            return;
        };
        // During a ranking the next warm start may replace it at any moment.
        let (Ok(Some(warm)), None) = (&mut self.warm, &self.ranked) else {
            return;
        };
        let (_, (number, rows)) = warm.rows;
        if warm.file.info().place.number == number {
            return;
        }
        let (disk, dir) = (&*self.disk, &*self.dir);
        let pages = self.manifest.engine.totals.pages;
        let moved = RowFile::open(disk, dir, *now, pages).and_then(|file| {
            let place = RowPlace {
                number,
                rows,
                last_block: file.sum_before(rows)?,
            };
            warm.file.moved(disk, dir, place)
        });
        if let Ok(file) = moved {
            warm.file = Arc::new(file);
        }
    }
}

/// Warm start with the new rows of a commit and those that they superseded, unless they have the same links.
pub struct WarmDiff<'r> {
    start: &'r WarmStart,
    now: &'r KeptRows,
    records: u64,
    /// Bitmap of the old rows that were superseded since.
    gone: Bits,
    same: Bits,
    /// Number of new rows; number of links in those of old pages and in the rows that they superseded.
    rows: u64,
    links: u64,
}

impl WarmDiff<'_> {
    /// Leaves out rows equal to those that they superseded, which are `superseded` in number.
    fn leave_out_same(&mut self, superseded: usize) -> Result<()> {
        let mut before: Cells<[u32; 4]> = Cells::reserve(superseded)?;
        let mut places = before.iter_mut();
        Stop::is_whole(self.old_rows(&mut |row| {
            let place = places.next().ok_or(Stop::Enough)?;
            *place = known_by(&row);
            Ok(())
        }))?;
        before.sort_unstable();
        let (mut same, mut rows, mut links) = (Bits::new(self.start.rows.0.pages), 0, 0);
        Stop::is_whole(self.new_rows(&mut |row| {
            let is_same = before.binary_search(&known_by(&row)).is_ok();
            if is_same && u64::from(row.page) < self.start.rows.0.pages && same.set(row.page.into())
            {
                rows += 1;
                links += 2 * row.targets.len() as u64;
            }
            Ok(())
        }))?;
        self.same = same;
        self.rows = self.rows.saturating_sub(rows);
        self.links = self.links.saturating_sub(links);
        Ok(())
    }

    fn unless_same(&self, rows: &[Row<'_>], visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let mut others = rows.iter().filter(|row| !self.same.get(row.page.into()));
        others.try_for_each(|row| visit(*row))
    }
}

impl StartState for WarmDiff<'_> {
    fn totals(&self) -> &SettledTotals {
        &self.start.file.info().totals
    }

    fn own_effort(&self) -> Option<Effort> {
        let head = self.start.file.info();
        (head.records == self.records).then_some(head.totals.effort)
    }

    fn changed(&self) -> (u64, u64) {
        (self.rows, self.links)
    }

    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        self.start.file.load(pages)
    }

    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let mut visit = |rows: &[Row<'_>]| self.unless_same(rows, visit);
        self.start.rows.0.each_marked(&self.gone, &mut visit)
    }

    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let is_live = |at, _: &Row<'_>| self.now.counts(at);
        let visit = |rows: &[Row<'_>]| self.unless_same(rows, visit);
        let (_, (_, place)) = self.start.rows;
        self.now.each_from(place, is_live, visit)
    }
}

/// Returns a row's page and 96 bits of a hash of its links; equal values are taken as equal links.
fn known_by(row: &Row<'_>) -> [u32; 4] {
    let mut hash = Xxh3::new();
    hash.update(&row.targets.len().to_le_bytes());
    hash.update(bytemuck::cast_slice(row.targets));
    hash.update(bytemuck::cast_slice(row.weights));
    let hash = hash.digest128();
    let [first, second, third] = [0, 32, 64].map(|from| (hash >> from) as u32);
    [row.page, first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::log::LogLengths;
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
