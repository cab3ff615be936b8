//! Reading of kept rows: sweeps, lookup of the last row of a page, and the cache of unpacked blocks.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crossbeam_channel::bounded;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{BlockRows, FIXED, RowHead, heads_end, unpack, unpack_heads};
use super::{CommittedRows, Retention, none, path_of};
use crate::disk::log::{BlockLog, LogBlock};
use crate::disk::{Access, Disk};
use crate::rows::{Bits, Row, Rows, RowsVisitor, Stop};
use crate::threads::{lock, spawn_in};
use crate::{Error, Result};

/// Number of blocks that are read ahead of the one being visited.
const AHEAD: usize = 4;
/// Ratio of wanted pages below which only the blocks with their rows are read, without read-ahead: 1/64.
const FEW: u64 = 64;

/// Committed state of the row file, open; the file stays readable after a compaction removes it.
#[derive(Clone)]
pub struct RowFile {
    pub(in crate::store) log: Arc<BlockLog>,
    pub(in crate::store) kept: CommittedRows,
    /// Number of pages of the commit, an exclusive bound on page numbers in the rows.
    pub(in crate::store) pages: u64,
    unpacked: Arc<UnpackedRows>,
    last_rows: Arc<LastRows>,
}

/// Stretch of rows with the last row of each page: 2 bytes per page, from the second lookup on.
#[derive(Default)]
struct LastRows {
    asked: AtomicU64,
    known: OnceLock<Vec<u16>>,
}

/// Stands for a page without a row.
const NO_STRETCH: u16 = u16::MAX;

impl RowFile {
    /// Opens the rows of a commit of `pages` pages; [`Error::Missing`] with the reason if none are kept.
    pub fn of(disk: &dyn Disk, dir: &Path, retention: &Retention, pages: u64) -> Result<RowFile> {
        match retention.kept() {
            Some(kept) => RowFile::open(disk, dir, *kept, pages),
            None => Err(none(dir, retention, pages)),
        }
    }

    pub fn open(disk: &dyn Disk, dir: &Path, kept: CommittedRows, pages: u64) -> Result<RowFile> {
        let path = path_of(dir, kept.number);
        let log = Arc::new(BlockLog::open(disk, &path, Access::Look, kept.lengths)?);
        // A row takes at least two bytes, so the memory per row is bounded by the file.
        if kept.rows > kept.lengths.data / 2 {
            let what = format!("{} bytes for {} rows", kept.lengths.data, kept.rows);
            return Err(log.damaged(what));
        }
        Ok(RowFile {
            unpacked: Arc::default(),
            last_rows: Arc::default(),
            log,
            kept,
            pages,
        })
    }

    /// Sets the bit in `live` of the last row of each `wanted` page. Returns the number of these rows and of their
    /// links. Goes from the last row to the first, so that later rows are seen first; reads heads only.
    pub(in crate::store) fn mark_last(
        &self,
        wanted: impl Fn(u64) -> bool,
        live: &mut Bits,
    ) -> Result<(u64, u64)> {
        let (mut rows, mut links) = (0, 0);
        self.each_last(|row, head| {
            if wanted(head.page.into()) {
                live.set(row);
                rows += 1;
                links += u64::from(head.links);
            }
        })?;
        Ok((rows, links))
    }

    /// Calls `visit` with the number and the head of the last row of each page, backwards.
    fn each_last(&self, mut visit: impl FnMut(u64, &RowHead)) -> Result<()> {
        let mut seen = Bits::new(self.pages);
        self.back_over(0..self.kept.rows, |row, head| {
            if u64::from(head.page) >= self.pages {
                let what = format!("row {row} is of page {}", head.page);
                return Err(self.log.damaged(what).into());
            }
            if seen.set(head.page.into()) {
                visit(row, head);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Calls `visit` with the heads of these rows, backwards; reads no links. Returns true if it reached the first one.
    pub(in crate::store) fn back_over(
        &self,
        rows: Range<u64>,
        mut visit: impl FnMut(u64, &RowHead) -> Result<(), Stop>,
    ) -> Result<bool> {
        let mut end = self.kept.rows;
        let mut heads = Vec::new();
        for at in (0..self.log.entries()).rev() {
            if end <= rows.start {
                break;
            }
            // A damaged index leads to another end than that of the block.
            let unpacked = self.unpacked.find(end - 1);
            let (first, heads) = match &unpacked {
                Some((first, block)) if first + block.heads.len() as u64 == end => {
                    (*first, &block.heads)
                }
                _ => (self.heads(at, end, &mut heads)?, &heads),
            };
            for (head, row) in heads.iter().rev().zip((first..end).rev()) {
                if rows.contains(&row) && !Stop::is_whole(visit(row, head))? {
                    return Ok(false);
                }
            }
            end = first;
        }
        if end <= rows.start {
            Ok(true)
        } else {
            Err(self.log.damaged(format!("its first row is {end}")))
        }
    }

    /// Calls `read` with the last row of a page. Returns whether it has one.
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let LastRows { asked, known } = &*self.last_rows;
        if asked.fetch_add(1, Ordering::Relaxed) == 1
            && let Some(stretches) = self.stretches()
        {
            _ = known.set(stretches);
        }
        let found = match known.get().map(|known| known.get(page as usize)) {
            Some(None | Some(&NO_STRETCH)) => return Ok(false),
            Some(Some(&stretch)) => self.last_in(stretch, page)?,
            None => self.last_of(page)?,
        };
        let Some((block, at)) = found else {
            return Ok(false);
        };
        block.rows().nth(at).map(read);
        Ok(true)
    }

    /// Searches all rows for the last one of a page. Returns its block, and its place there.
    fn last_of(&self, page: u32) -> Result<Option<(Arc<BlockRows>, usize)>> {
        let mut found = None;
        self.back_over(0..self.kept.rows, |row, head| {
            if head.page != page {
                return Ok(());
            }
            found = Some(row);
            Err(Stop::Enough)
        })?;
        let place = |row| {
            let (first, block) = self.block_of(row)?;
            Ok((block, (row - first) as usize))
        };
        found.map(place).transpose()
    }

    /// Searches a stretch of rows like [`RowFile::last_of`].
    fn last_in(&self, stretch: u16, page: u32) -> Result<Option<(Arc<BlockRows>, usize)>> {
        let first = u64::from(stretch) * self.stretch_rows();
        let mut end = self.kept.rows.min(first + self.stretch_rows());
        while end > first {
            let (start, block) = self.block_of(end - 1)?;
            let mut heads = block.heads.iter().take((end - start) as usize);
            if let Some(at) = heads.rposition(|head| head.page == page) {
                return Ok(Some((block, at)));
            }
            end = start;
        }
        self.last_of(page)
    }

    fn stretch_rows(&self) -> u64 {
        self.kept.rows / u64::from(NO_STRETCH) + 1
    }

    /// Returns the stretch of each page's last row; `None` if they do not fit in memory or rows are damaged.
    fn stretches(&self) -> Option<Vec<u16>> {
        let (pages, rows) = (self.pages as usize, self.stretch_rows());
        let mut stretches = Vec::new();
        stretches.try_reserve_exact(pages).ok()?;
        stretches.resize(pages, NO_STRETCH);
        let read = self.each_last(|row, head| stretches[head.page as usize] = (row / rows) as u16);
        read.is_ok().then_some(stretches)
    }

    /// Returns the block that holds a row, and the number of its first row.
    fn block_of(&self, row: u64) -> Result<(u64, Arc<BlockRows>)> {
        match self.unpacked.find(row) {
            Some(found) => Ok(found),
            None => self.unpacked_block(&self.log.find(row)?),
        }
    }

    /// Returns a checksum that identifies the rows before `row`: that of the block that holds the last of them.
    pub fn sum_before(&self, row: u64) -> Result<u64> {
        match row.checked_sub(1) {
            Some(last) => Ok(xxh3_64(&self.log.find(last)?.payload)),
            None => Ok(0),
        }
    }

    /// Calls `visit` with the marked rows, one block at a time. Blocks without a marked row are not read.
    pub(in crate::store) fn each_marked(
        &self,
        marked: &Bits,
        visit: &mut RowsVisitor<'_>,
    ) -> Result<(), Stop> {
        let mut from = 0;
        while let Some(row) = marked.next(from).filter(|&row| row < self.kept.rows) {
            let (first, block) = self.block_of(row)?;
            let rows = (first..).zip(block.rows());
            let rows = rows.filter(|(row, _)| marked.get(*row));
            visit(&rows.map(|(_, row)| row).collect::<Vec<_>>())?;
            from = first + block.heads.len() as u64;
        }
        Ok(())
    }

    /// Reads the heads of the block whose last row is the one before `end`. Returns its first row.
    fn heads(&self, at: u64, end: u64, heads: &mut Vec<RowHead>) -> Result<u64> {
        let (front, first, rows) = self.log.front(at, FIXED, heads_end)?;
        let what = || format!("block {at} has no rows up to row {end}");
        let damaged = || self.log.damaged_at(at, what());
        if first.checked_add(rows.into()) != Some(end) {
            return Err(damaged());
        }
        unpack_heads(&front, rows as usize, heads).ok_or_else(damaged)?;
        Ok(first)
    }

    /// Unpacks a block of the log. Returns its first row and the rows.
    fn unpacked_block(&self, block: &LogBlock) -> Result<(u64, Arc<BlockRows>)> {
        let rows = unpack(&block.payload, block.pages as usize, self.pages);
        let what = || format!("the block of row {} holds invalid data", block.first);
        let rows = rows.ok_or_else(|| self.log.damaged(what()))?;
        Ok((block.first, Arc::new(rows)))
    }
}

/// Rows of a store as of a commit, an implementation of [`Rows`]. A sweep reads the file from start to end, with a
/// thread that reads, checks and unpacks ahead; it may run while a writer appends or compacts.
pub struct KeptRows {
    pub(in crate::store) file: RowFile,
    links: u64,
    rows: u64,
    /// Bitmap of the rows that are the last of their page; `None` if all are.
    live: Option<Bits>,
}

impl KeptRows {
    pub fn of(file: RowFile) -> Result<KeptRows> {
        let kept = file.kept;
        let mut found = (kept.rows, kept.links);
        let mut live = None;
        if kept.superseded > 0 {
            let mut bits = Bits::new(kept.rows);
            found = file.mark_last(|_| true, &mut bits)?;
            live = Some(bits);
        }
        if found.0 + kept.superseded != kept.rows {
            let what = format!(
                "{} rows of {} pages, of which {} should be superseded",
                kept.rows, found.0, kept.superseded
            );
            return Err(file.log.damaged(what));
        }
        Ok(KeptRows {
            file,
            rows: found.0,
            links: found.1,
            live,
        })
    }

    /// Sets the cache of unpacked blocks, which saves later sweeps from reading them again, and its size in bytes.
    /// Blocks of an earlier state of the file stay in it. One reader at a time may use a cache.
    pub fn stay_in(&mut self, cache: Arc<UnpackedRows>, bytes: u64) {
        let kept = &self.file.kept;
        cache.prepare(kept.number, kept.rows, bytes);
        self.file.unpacked = cache;
    }

    /// Leaves out the rows of some pages, as if these pages were only linked to. Returns their number.
    pub fn leave_out(&mut self, pages: &Bits) -> Result<u64> {
        let (rows, mut live) = (self.rows, Bits::new(self.file.kept.rows));
        let is_kept = |page| !pages.get(page);
        (self.rows, self.links) = self.file.mark_last(is_kept, &mut live)?;
        self.live = Some(live);
        Ok(rows - self.rows)
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns true if some rows have weights. Reads heads only.
    pub fn has_weights(&self) -> Result<bool> {
        let all = 0..self.file.kept.rows;
        let none = self.file.back_over(all, |row, head| {
            if head.weighted && self.counts(row) {
                return Err(Stop::Enough);
            }
            Ok(())
        })?;
        Ok(!none)
    }

    pub fn kept(&self) -> &CommittedRows {
        &self.file.kept
    }

    pub fn verify(&self) -> Result<()> {
        let mut found = (0, 0);
        self.each_block::<Error>(0, &mut |_, rows| {
            found.0 += rows.heads.len() as u64;
            found.1 += rows.targets.len() as u64;
            Ok(())
        })?;
        let kept = &self.file.kept;
        if found != (kept.rows, kept.links) {
            return Err(self.file.log.damaged(format!(
                "{} rows with {} links, not {} with {}",
                found.0, found.1, kept.rows, kept.links
            )));
        }
        // If none were superseded, the rows were not counted yet.
        let mut live = Bits::new(kept.rows);
        let (rows, _) = self.file.mark_last(|_| true, &mut live)?;
        if rows != self.rows {
            let what = "a page has two rows, and none is superseded";
            return Err(self.file.log.damaged(what));
        }
        self.file.log.verify_index()
    }

    /// Calls `visit` with each block from the one with row `from` on, and the number of its first row.
    fn each_block<E: From<Error>>(
        &self,
        from: u64,
        visit: &mut dyn FnMut(u64, &BlockRows) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut end = 0;
        let unpacked = lock(&self.file.unpacked.0).blocks.clone();
        for (first, rows) in unpacked {
            end = first + rows.heads.len() as u64;
            if end > from {
                visit(first, &rows)?;
            }
        }
        let from = from.max(end);
        if from >= self.file.kept.rows {
            return Ok(());
        }
        let blocks = self.file.log.blocks_from(from)?;
        let mut unpacked = blocks.map(|block| self.file.unpacked_block(&block?));
        let mut take = |block: Result<(u64, Arc<BlockRows>)>| {
            let (first, rows) = block?;
            visit(first, &rows)?;
            end = first + rows.heads.len() as u64;
            self.file.unpacked.keep(first, rows);
            Ok::<_, E>(())
        };
        std::thread::scope(|scope| {
            let (full, blocks) = bounded(AHEAD);
            spawn_in(scope, "rows", move || {
                // The receiver is gone if a visit failed.
                unpacked.all(|block| full.send(block).is_ok());
            })?;
            blocks.into_iter().try_for_each(&mut take)
        })?;
        if end == self.file.kept.rows {
            Ok(())
        } else {
            let what = format!("it ends after row {end} of {}", self.file.kept.rows);
            Err(self.file.log.damaged(what).into())
        }
    }

    /// Calls `visit` with the `wanted` rows from number `from` on, in order and several at a time.
    pub(in crate::store) fn each_from<E: From<Error>>(
        &self,
        from: u64,
        wanted: impl Fn(u64, &Row<'_>) -> bool,
        mut visit: impl FnMut(&[Row<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_block(from, &mut |first, block| {
            let mut rows = Vec::with_capacity(block.heads.len());
            let numbered = (first..).zip(block.rows());
            let numbered = numbered.filter(|(at, row)| *at >= from && wanted(*at, row));
            rows.extend(numbered.map(|(_, row)| row));
            visit(&rows)
        })
    }

    pub(in crate::store) fn live_before(&self, end: u64) -> u64 {
        match &self.live {
            None => end,
            Some(live) => (0..end).filter(|&row| live.get(row)).count() as u64,
        }
    }

    /// Calls `read` with the row of `page`. Returns whether it has one.
    #[cfg(any(test, feature = "testing"))]
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.file.row(page, read)
    }

    pub(in crate::store) fn counts(&self, row: u64) -> bool {
        self.live.as_ref().is_none_or(|live| live.get(row))
    }

    /// Calls `visit` with batches of live rows, from number `from` on. Returns as [`Rows::sweep`] does.
    pub fn sweep_from(
        &self,
        from: u64,
        visit: &mut dyn FnMut(&[Row<'_>]) -> Result<(), Stop>,
    ) -> Result<bool> {
        let mut passed = 0;
        Stop::is_whole(self.walk(&mut |rows| {
            let skipped = from.saturating_sub(passed).min(rows.len() as u64);
            passed += rows.len() as u64;
            visit(&rows[skipped as usize..])
        }))
    }
}

impl Rows for KeptRows {
    fn walk_some(&self, wanted: &Bits, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        let is_wanted = |at, page: u32| wanted.get(page.into()) && self.counts(at);
        if wanted.count() > self.file.pages / FEW {
            return self.each_from(0, |at, row| is_wanted(at, row.page), visit);
        }
        let mut marked = Bits::new(self.file.kept.rows);
        self.file.back_over(0..self.file.kept.rows, |row, head| {
            if is_wanted(row, head.page) {
                marked.set(row);
            }
            Ok(())
        })?;
        self.file.each_marked(&marked, visit)
    }

    fn pages(&self) -> u64 {
        self.file.pages
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.each_from(0, |at, _| self.counts(at), visit)
    }
}

/// Cache of the first blocks of a row file, unpacked, up to a number of bytes: sweeps repeat over the same rows. A reader
/// of a later state of the file, which begins with the same blocks, can use it after the reader of an earlier one.
#[derive(Debug, Default)]
pub struct UnpackedRows(Mutex<Prefix>);

#[derive(Debug, Default)]
struct Prefix {
    number: u64,
    blocks: Vec<(u64, Arc<BlockRows>)>,
    end: u64,
    /// Memory of the blocks in bytes, and its limit.
    bytes: u64,
    room: u64,
}

impl UnpackedRows {
    /// Prepares the cache for the first `rows` rows of file `number`, and sets its limit in bytes. Drops all blocks if
    /// they are of another file or do not fit.
    fn prepare(&self, number: u64, rows: u64, room: u64) {
        let mut prefix = lock(&self.0);
        if prefix.number != number || prefix.end > rows || prefix.bytes > room {
            *prefix = Prefix::default();
        }
        (prefix.number, prefix.room) = (number, room);
    }

    fn find(&self, row: u64) -> Option<(u64, Arc<BlockRows>)> {
        let prefix = lock(&self.0);
        if row >= prefix.end {
            return None;
        }
        let behind = prefix.blocks.partition_point(|(first, _)| *first <= row);
        prefix.blocks.get(behind.checked_sub(1)?).cloned()
    }

    fn keep(&self, first: u64, block: Arc<BlockRows>) {
        let bytes = block.heads.capacity() * size_of::<RowHead>()
            + block.targets.capacity() * size_of::<u32>()
            + block.weights.capacity() * size_of::<u64>();
        let mut prefix = lock(&self.0);
        if first == prefix.end && prefix.bytes + bytes as u64 <= prefix.room {
            prefix.bytes += bytes as u64;
            prefix.end = first + block.heads.len() as u64;
            prefix.blocks.push((first, block));
        }
    }
}

#[cfg(test)]
mod tests;
