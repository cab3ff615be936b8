//! Reading kept rows: sweeps, and which row of a page is the last.

use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use xxhash_rust::xxh3::xxh3_64;

use super::block::{FIXED, Head, Rows as Block, heads_end, unpack, unpack_heads};
use super::places::Places;
use super::unpacked::{HeldRows, Unpacked};
use super::{CommittedRows, Retention, none, path_of};
use crate::disk::Disk;
use crate::disk::log::{Block as Stored, BlockLog};
use crate::rows::{Bits, Row, RowVisitor, Rows, RowsVisitor, Stop};
use crate::threads::try_spawn_in;
use crate::{Error, Result};

/// Blocks that are read ahead of the one whose rows are being visited.
const AHEAD: usize = 4;
/// One in so many pages are few: only the blocks that hold their rows are read, not ahead.
const FEW: u64 = 64;

/// A committed state of the row file, open: the file stays readable even when a compaction drops it.
#[derive(Clone)]
pub(crate) struct RowFile {
    pub(super) path: PathBuf,
    log: Arc<BlockLog>,
    pub(super) kept: CommittedRows,
    /// Its directory, if there is one. Where it is damaged, rows are found without it.
    places: Arc<Result<Option<Places>>>,
    /// Blocks that stay in memory.
    unpacked: Arc<Unpacked>,
}

impl RowFile {
    /// Opens for reading what was committed.
    pub fn open(disk: &dyn Disk, dir: &Path, kept: CommittedRows) -> Result<RowFile> {
        let path = path_of(dir, kept.number);
        let log = Arc::new(BlockLog::read(disk, &path, kept.lengths)?);
        // A row takes two bytes at least: what is held of each is bounded by the file.
        if kept.rows > kept.lengths.data / 2 {
            let what = format!("{} bytes for {} rows", kept.lengths.data, kept.rows);
            return Err(Error::damaged(path, what));
        }
        Ok(RowFile {
            places: Arc::new(Places::open(disk, &path, kept.number)),
            unpacked: Arc::default(),
            path,
            log,
            kept,
        })
    }

    /// The number of the file.
    pub(in crate::store) fn number(&self) -> u64 {
        self.kept.number
    }

    /// Rows in it, superseded ones as well.
    pub(in crate::store) fn rows(&self) -> u64 {
        self.kept.rows
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// Marks in `live`, a bit a row, the last row of each page. How many those are, and their links. From the
    /// last row to the first, as a later one of the same page then was seen before; only heads are read.
    fn mark_live(&self, pages: u64, live: &mut Bits) -> Result<(u64, u64)> {
        self.mark_last(pages, |_| true, live)
    }

    /// The same of the pages that are `wanted`.
    pub(super) fn mark_last(
        &self,
        pages: u64,
        wanted: impl Fn(u64) -> bool,
        live: &mut Bits,
    ) -> Result<(u64, u64)> {
        let mut seen = Bits::new(pages);
        let (mut rows, mut links) = (0, 0);
        self.back_over(0..self.kept.rows, |row, head| {
            if u64::from(head.page) >= pages {
                let what = format!("row {row} is of page {}", head.page);
                return Err(self.damaged(what).into());
            }
            if wanted(head.page.into()) && seen.set(head.page.into()) {
                live.set(row);
                rows += 1;
                links += u64::from(head.links);
            }
            Ok(())
        })?;
        Ok((rows, links))
    }

    /// Calls `visit` with the head of each of these rows, from the last one back. Reads no links. Returns whether it
    /// came to the first one.
    pub(super) fn back_over(
        &self,
        rows: Range<u64>,
        mut visit: impl FnMut(u64, &Head) -> Result<(), Stop>,
    ) -> Result<bool> {
        let mut end = self.kept.rows;
        let mut heads = Vec::new();
        for at in (0..self.log.entries()).rev() {
            if end <= rows.start {
                break;
            }
            let first = self.heads(at, end, &mut heads)?;
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
            Err(self.damaged(format!("its first row is {end}")))
        }
    }

    /// The directory, if there is one and it is sound.
    pub(super) fn places(&self) -> Result<Option<&Places>> {
        let places = self.places.as_ref().as_ref().map_err(Error::again)?;
        let places = places.as_ref();
        let sum_before = |row| self.sum_before(row);
        places
            .map(|places| places.check(self.kept.rows, sum_before))
            .transpose()
    }

    /// The number of a page's last row: from the directory, but for the rows behind it.
    pub(super) fn last_row(&self, page: u32) -> Result<Option<u64>> {
        let places = self.places().ok().flatten();
        let (mut found, covered) = match places.map(|places| (places.get(page.into()), places)) {
            Some((Ok(row), places)) if row.is_none_or(|row| row < self.kept.rows) => {
                (row, places.rows)
            }
            // There is none; it is damaged; or it is newer than these rows, and the page's row as well.
            _ => (None, 0),
        };
        self.back_over(covered..self.kept.rows, |row, head| {
            if head.page != page {
                return Ok(());
            }
            found = Some(row);
            Err(Stop::Enough)
        })?;
        Ok(found)
    }

    /// Calls `read` with the last row of `page`. Returns whether it has one.
    fn row(&self, page: u32, pages: u64, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let Some(row) = self.last_row(page)? else {
            return Ok(false);
        };
        let (first, rows) = self.block_of(row, pages)?;
        let stopped = rows.each(|at, head, targets, weights| {
            if first + at as u64 == row && head.page == page {
                read(row_of(*head, targets, weights));
                return Err(());
            }
            Ok(())
        });
        if stopped.is_err() {
            return Ok(true);
        }
        let places = super::places::path_of(&self.path);
        let what = format!("row {row} is not of page {page}, as it says");
        Err(Error::damaged(places, what))
    }

    /// The block that holds a row, and its first row.
    fn block_of(&self, row: u64, pages: u64) -> Result<(u64, Block)> {
        self.unpacked_block(&self.log.find(row)?, pages, Block::default())
    }

    /// Tells the rows up to the one before `row` from all others: the checksum of the block that ends there, or holds the
    /// last of them.
    pub(in crate::store) fn sum_before(&self, row: u64) -> Result<u64> {
        match row.checked_sub(1) {
            Some(last) => Ok(xxh3_64(&self.log.find(last)?.payload)),
            None => Ok(0),
        }
    }

    /// Marks the last rows of these pages: from the directory, but for the rows behind it.
    fn mark_of(&self, wanted: &Bits, pages: u64, marked: &mut Bits) -> Result<()> {
        // A directory that is newer than these rows leads to newer ones.
        let places = self.places().ok().flatten();
        let Some(places) = places.filter(|places| places.rows <= self.kept.rows) else {
            return self
                .mark_last(pages, |page| wanted.get(page), marked)
                .map(drop);
        };
        let mut seen = Bits::new(pages);
        self.back_over(places.rows..self.kept.rows, |row, head| {
            let page = u64::from(head.page);
            if wanted.get(page) && seen.set(page) {
                marked.set(row);
            }
            Ok(())
        })?;
        places.each_of(wanted, |page, row| {
            if !seen.get(page) {
                marked.set(row);
            }
        })
    }

    /// Calls `visit` with the rows that are marked, those of a block at a time. Blocks without one are not read.
    pub(super) fn each_marked(
        &self,
        marked: &Bits,
        pages: u64,
        visit: &mut RowsVisitor<'_>,
    ) -> Result<(), Stop> {
        let mut from = 0;
        while let Some(row) = marked.next(from).filter(|&row| row < self.kept.rows) {
            let (first, rows) = match self.unpacked.find(row) {
                Some(found) => found,
                None => {
                    let (first, rows) = self.block_of(row, pages)?;
                    (first, Arc::new(rows))
                }
            };
            visit(&rows_of(&rows, |at, _| marked.get(first + at as u64)))?;
            from = first + rows.heads.len() as u64;
        }
        Ok(())
    }

    fn holds_nonsense(&self, first: u64) -> Error {
        let what = format!("the block of row {first} holds invalid data");
        self.damaged(what)
    }

    /// The heads of a block, whose last row is the one before `end`; its first row.
    fn heads(&self, at: u64, end: u64, heads: &mut Vec<Head>) -> Result<u64> {
        let (front, first, rows) = self.log.front(at, FIXED, heads_end)?;
        let what = || format!("block {at} has no rows up to row {end}");
        let damaged = || self.log.damaged_at(at, what());
        if first.checked_add(rows.into()) != Some(end) {
            return Err(damaged());
        }
        unpack_heads(&front, rows as usize, heads).ok_or_else(damaged)?;
        Ok(first)
    }

    /// Reads all blocks from the one with row `from` on, in order, until nobody takes them any more.
    fn read(
        &self,
        from: u64,
        pages: u64,
        free: &Receiver<Block>,
        mut give: impl FnMut(Result<(u64, Block)>) -> bool,
    ) {
        let blocks = match self.log.blocks_from(from) {
            Ok(blocks) => blocks,
            Err(error) => {
                give(Err(error));
                return;
            }
        };
        for block in blocks {
            let unpacked = block.and_then(|block| {
                let rows = free.try_recv().unwrap_or_default();
                self.unpacked_block(&block, pages, rows)
            });
            if !give(unpacked) {
                return;
            }
        }
    }

    /// The first row of a block of the log, and all its rows, which are put into `rows`.
    fn unpacked_block(&self, block: &Stored, pages: u64, mut rows: Block) -> Result<(u64, Block)> {
        match unpack(&block.payload, block.pages as usize, pages, &mut rows) {
            Some(()) => Ok((block.first, rows)),
            None => Err(self.holds_nonsense(block.first)),
        }
    }
}

/// What a commit says of rows, with their file open, so that nothing takes it away. A damaged file is no matter
/// before somebody asks for rows.
pub(crate) struct RowsOf {
    dir: PathBuf,
    retention: Retention,
    file: Option<Result<RowFile>>,
    pages: u64,
}

impl RowsOf {
    /// Of a commit that knows `pages` pages.
    pub fn new(disk: &dyn Disk, dir: &Path, retention: Retention, pages: u64) -> RowsOf {
        let open = |kept: &CommittedRows| RowFile::open(disk, dir, *kept);
        RowsOf {
            dir: dir.into(),
            file: retention.kept().map(open),
            retention,
            pages,
        }
    }

    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// Returns whether the file could not be opened.
    pub fn failed(&self) -> bool {
        self.file.as_ref().is_some_and(Result::is_err)
    }

    /// The rows.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if there are none, which says why; [`Error::Damaged`].
    pub fn rows(&self) -> Result<KeptRows> {
        KeptRows::of(self.file()?.clone(), self.pages)
    }

    fn file(&self) -> Result<&RowFile> {
        match &self.file {
            None => Err(none(&self.dir, &self.retention, self.pages)),
            Some(file) => file.as_ref().map_err(Error::again),
        }
    }

    /// Checksum of the block that holds the last row.
    ///
    /// # Errors
    ///
    /// As of [`RowsOf::rows`].
    pub fn last_block(&self) -> Result<u64> {
        let file = self.file()?;
        file.sum_before(file.kept.rows)
    }

    /// Calls `read` with the row of one page. Returns whether it has one.
    ///
    /// # Errors
    ///
    /// As of [`RowsOf::rows`].
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.file()?.row(page, self.pages, read)
    }
}

/// The rows of a store: [`Rows`], as of a commit. Sweeps read the file from its start to its end, with a thread
/// that reads, checks and unpacks ahead, and may go on while a writer appends or compacts.
pub struct KeptRows {
    pub(super) file: RowFile,
    pages: u64,
    links: u64,
    rows: u64,
    /// A bit for each row that is the last of its page; `None`: all are.
    live: Option<Bits>,
}

impl KeptRows {
    pub(in crate::store) fn of(file: RowFile, pages: u64) -> Result<KeptRows> {
        let kept = file.kept;
        let mut found = (kept.rows, kept.links);
        let mut live = None;
        if kept.superseded > 0 {
            let mut bits = Bits::new(kept.rows);
            found = file.mark_live(pages, &mut bits)?;
            live = Some(bits);
        }
        if found.0 + kept.superseded != kept.rows {
            let what = format!(
                "{} rows of {} pages, of which {} should be superseded",
                kept.rows, found.0, kept.superseded
            );
            return Err(file.damaged(what));
        }
        Ok(KeptRows {
            file,
            pages,
            rows: found.0,
            links: found.1,
            live,
        })
    }

    /// The rows that were read stay in memory as far as these bytes go: the next sweep does not read them again.
    pub(crate) fn stay_in(&self, bytes: u64) {
        self.file.unpacked.set_room(bytes);
    }

    /// What is held of an earlier state of the file stays in memory, too, as far as [`KeptRows::stay_in`] then says.
    pub(crate) fn take_held(&self, held: &HeldRows) {
        let kept = &self.file.kept;
        self.file.unpacked.take_held(held, kept.number, kept.rows);
    }

    /// Hands on what is in memory to a later state of the file.
    pub(crate) fn give_held(&self, held: &HeldRows) {
        self.file.unpacked.give_held(held, self.file.kept.number);
    }

    /// The rows that a sweep visits.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns whether links of some rows weigh more than others: only heads are read.
    ///
    /// # Errors
    /// Those of reading.
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

    /// The file as a whole: its length, and what of it is superseded.
    pub fn kept(&self) -> &CommittedRows {
        &self.file.kept
    }

    /// Reads everything, and checks the counts.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut found = (0, 0);
        self.each_block::<Error>(0, &mut |_, rows| {
            found.0 += rows.heads.len() as u64;
            found.1 += rows.targets.len() as u64;
            Ok(())
        })?;
        let kept = &self.file.kept;
        if found != (kept.rows, kept.links) {
            return Err(self.file.damaged(format!(
                "{} rows with {} links, not {} with {}",
                found.0, found.1, kept.rows, kept.links
            )));
        }
        // Were none superseded, nobody looked.
        let (rows, _) = self.file.mark_live(self.pages, &mut Bits::new(kept.rows))?;
        if rows != self.rows {
            let what = "a page has two rows, and none is superseded";
            return Err(self.file.damaged(what));
        }
        self.file.log.verify_index()
    }

    /// Calls `visit` with each block from the one with row `from` on, and the number of its first row.
    fn each_block<E: From<Error>>(
        &self,
        from: u64,
        visit: &mut dyn FnMut(u64, &Block) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut end = 0;
        for (first, rows) in self.file.unpacked.blocks() {
            end = first + rows.heads.len() as u64;
            if end > from {
                visit(first, &rows)?;
            }
        }
        let from = from.max(end);
        if from >= self.file.kept.rows {
            return Ok(());
        }
        let (back, free) = bounded(AHEAD + 2);
        let mut take = |block: Result<(u64, Block)>| {
            let (first, rows) = block?;
            visit(first, &rows)?;
            end = first + rows.heads.len() as u64;
            if let Some(rows) = self.file.unpacked.keep(first, rows) {
                let _ = back.try_send(rows);
            }
            Ok::<_, E>(())
        };
        std::thread::scope(|scope| {
            let (full, blocks) = bounded(AHEAD);
            let read = (free, move |block| full.send(block).is_ok());
            let beside = try_spawn_in(scope, "rows", read, |(free, give)| {
                self.file.read(from, self.pages, &free, give);
            });
            match beside {
                Ok(_) => blocks.into_iter().try_for_each(&mut take),
                Err((free, _)) => {
                    let mut taken = Ok(());
                    self.file.read(from, self.pages, &free, |block| {
                        taken = take(block);
                        taken.is_ok()
                    });
                    taken
                }
            }
        })?;
        if end == self.file.kept.rows {
            Ok(())
        } else {
            let what = format!("it ends after row {end} of {}", self.file.kept.rows);
            Err(self.file.damaged(what).into())
        }
    }

    /// Calls `visit` with the head, targets and weights of each row that is the last of its page, from row `from` on.
    pub(super) fn each_from<E: From<Error>>(
        &self,
        from: u64,
        mut visit: impl FnMut(Head, &[u32], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_block(from, &mut |first, rows| {
            rows.each(|at, head, targets, weights| {
                let row = first + at as u64;
                if row >= from && self.counts(row) {
                    visit(*head, targets, weights)
                } else {
                    Ok(())
                }
            })
        })
    }

    /// How many of the rows before row `end` are the last of their page.
    pub(super) fn live_before(&self, end: u64) -> u64 {
        match &self.live {
            None => end,
            Some(live) => (0..end).filter(|&row| live.get(row)).count() as u64,
        }
    }

    /// Returns whether a row is the last of its page.
    pub(super) fn counts(&self, row: u64) -> bool {
        self.live.as_ref().is_none_or(|live| live.get(row))
    }

    /// Tells the rows up to the one before `row` from all others: the checksum of the block that ends there, or holds the
    /// last of them.
    pub(crate) fn sum_before(&self, row: u64) -> Result<u64> {
        self.file.sum_before(row)
    }

    /// Calls `visit` with every row that was written as number `from` or later, in that order: with those, too, that
    /// a later one of the same page supersedes.
    ///
    /// # Errors
    ///
    /// As of [`Rows::sweep`].
    pub(crate) fn written_from(&self, from: u64, visit: &mut RowVisitor<'_>) -> Result<bool> {
        Stop::is_whole(self.each_block(from, &mut |first, block| {
            block.each(|at, head, targets, weights| {
                if first + at as u64 >= from {
                    visit(row_of(*head, targets, weights))
                } else {
                    Ok(())
                }
            })
        }))
    }

    /// Calls `visit` with many rows of a sweep at a time, from the one of number `from` on.
    ///
    /// # Errors
    ///
    /// As of [`Rows::sweep`].
    pub(crate) fn sweep_from(
        &self,
        from: u64,
        visit: &mut dyn FnMut(&[Row<'_>]) -> Result<(), Stop>,
    ) -> Result<bool> {
        let mut passed = 0;
        Stop::is_whole(self.walk_many(&mut |rows| {
            let skipped = from.saturating_sub(passed).min(rows.len() as u64);
            passed += rows.len() as u64;
            visit(&rows[skipped as usize..])
        }))
    }
}

impl Rows for KeptRows {
    fn walk_some(&self, wanted: &Bits, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        if wanted.count() > self.pages / FEW {
            return self.each_block(0, &mut |first, block| {
                visit(&rows_of(block, |at, head| {
                    wanted.get(head.page.into()) && self.counts(first + at as u64)
                }))
            });
        }
        let mut marked = Bits::new(self.file.kept.rows);
        self.file.mark_of(wanted, self.pages, &mut marked)?;
        self.file.each_marked(&marked, self.pages, visit)
    }

    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.each_from(0, |head, targets, weights| {
            visit(row_of(head, targets, weights))
        })
    }

    fn walk_many(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.each_block(0, &mut |first, block| {
            visit(&rows_of(block, |at, _| self.counts(first + at as u64)))
        })
    }

    fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.file.row(page, self.pages, read)
    }
}

/// Those rows of a block that are wanted, by their numbers in it and their heads.
fn rows_of<'b>(block: &'b Block, wanted: impl Fn(usize, &Head) -> bool) -> Vec<Row<'b>> {
    let mut rows = Vec::with_capacity(block.heads.len());
    let all = block.each(|at, head, targets, weights| {
        if wanted(at, head) {
            rows.push(row_of(*head, targets, weights));
        }
        Ok::<(), Infallible>(())
    });
    let Ok(()) = all;
    rows
}

pub(super) fn row_of<'a>(head: Head, targets: &'a [u32], weights: &'a [u64]) -> Row<'a> {
    Row {
        page: head.page,
        gone: head.gone,
        targets,
        weights,
    }
}
