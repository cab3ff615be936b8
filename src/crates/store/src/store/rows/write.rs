//! Appending of rows to the log.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread::JoinHandle;

use super::block::{BlockRows, RowHead, pack};
use super::{CommittedRows, GiveUpReason, ROWS, path_of};
use crate::disk::Disk;
use crate::disk::log::{BlockLog, LogLengths};
use crate::engine::{PageId, TargetLinks};
use crate::rows::{PAGES_MAX, Row};
use crate::threads::spawn;
use crate::{Error, Result};

/// Packed bytes that may wait to be written, plus one block.
const WAITING: usize = 1 << 20;

type Packed = (BlockRows, Vec<u8>);

pub struct RowWriter {
    log: BlockLog,
    kept: CommittedRows,
    /// Number of rows in blocks that were written to the log.
    closed: u64,
    filling: BlockRows,
    /// Previous block, while it is packed.
    packing: Option<JoinHandle<Packed>>,
    /// Block for reuse.
    spare: BlockRows,
    most: u64,
    /// True until the directory entries of a new file are durable.
    new: bool,
    /// Bound on page numbers, exclusive.
    pages: u64,
    /// Reason why all rows have to be given up, if one does not fit.
    misfit: Option<GiveUpReason>,
}

impl RowWriter {
    pub fn create(disk: &dyn Disk, dir: &Path, number: u64, most: u64) -> Result<RowWriter> {
        let log = BlockLog::create(disk, &path_of(dir, number))?;
        let kept = CommittedRows {
            number,
            ..CommittedRows::default()
        };
        Ok(RowWriter::with(log, kept, most, true))
    }

    pub fn open(disk: &dyn Disk, dir: &Path, kept: CommittedRows, most: u64) -> Result<RowWriter> {
        let path = path_of(dir, kept.number);
        let log = BlockLog::open(disk, &path, kept.lengths)?;
        let end = log.last()?.map_or(0, |block| block.pages().end);
        if end != kept.rows {
            let what = format!("it ends with row {end} of {}", kept.rows);
            return Err(Error::damaged(path, what));
        }
        Ok(RowWriter::with(log, kept, most, false))
    }

    fn with(log: BlockLog, kept: CommittedRows, most: u64, new: bool) -> RowWriter {
        RowWriter {
            log,
            kept,
            closed: kept.rows,
            filling: BlockRows::default(),
            packing: None,
            spare: BlockRows::default(),
            most,
            new,
            pages: PAGES_MAX,
            misfit: None,
        }
    }

    /// Appends a page's row. With `again` the page has one already, which is now superseded.
    pub fn append(
        &mut self,
        page: PageId,
        gone: bool,
        links: TargetLinks<'_>,
        again: bool,
    ) -> Result<()> {
        let largest = links.targets.iter().fold(page.0, |max, to| max.max(to.0));
        if largest >= self.pages {
            self.misfit = Some(GiveUpReason::TooManyPages);
            return Ok(());
        }
        let targets = links.targets.iter().map(|target| target.0 as u32);
        self.filling.targets.extend(targets);
        self.add(page.0 as u32, gone, links.targets.len(), links.weights)?;
        self.kept.superseded += u64::from(again);
        Ok(())
    }

    pub fn copy(&mut self, row: &Row<'_>) -> Result<()> {
        self.filling.targets.extend_from_slice(row.targets);
        self.add(row.page, row.gone, row.targets.len(), row.weights)
    }

    /// Appends the rest of a row whose targets were added.
    fn add(&mut self, page: u32, gone: bool, links: usize, weights: &[u64]) -> Result<()> {
        self.filling.weights.extend_from_slice(weights);
        self.filling.heads.push(RowHead {
            page,
            links: links as u32,
            gone,
            weighted: !weights.is_empty(),
        });
        self.kept.rows += 1;
        self.kept.links += links as u64;
        if self.filling.is_full() {
            self.pack_beside()
        } else {
            Ok(())
        }
    }

    /// Packs the block on another thread, as sorting links takes about as long as applying them.
    fn pack_beside(&mut self) -> Result<()> {
        self.end_packing()?;
        let spare = std::mem::take(&mut self.spare);
        let mut rows = std::mem::replace(&mut self.filling, spare);
        self.packing = Some(spawn("rows", move || {
            let payload = pack(&mut rows);
            (rows, payload)
        })?);
        Ok(())
    }

    fn end_packing(&mut self) -> Result<()> {
        let Some(packing) = self.packing.take() else {
            return Ok(());
        };
        let (mut rows, payload) = packing.join().unwrap_or_else(|panic| resume_unwind(panic));
        self.put(rows.heads.len(), &payload)?;
        rows.clear();
        self.spare = rows;
        Ok(())
    }

    fn put(&mut self, rows: usize, payload: &[u8]) -> Result<()> {
        self.log.append(self.closed, rows as u32, payload);
        self.closed += rows as u64;
        if self.log.bytes() > self.most {
            self.misfit = Some(GiveUpReason::TooLarge(self.most));
        } else if self.log.waiting() >= WAITING {
            self.log.flush()?;
        }
        Ok(())
    }

    pub fn sync(&mut self, disk: &dyn Disk, dir: &Path) -> Result<CommittedRows> {
        self.end_packing()?;
        if !self.filling.heads.is_empty() {
            let payload = pack(&mut self.filling);
            self.put(self.filling.heads.len(), &payload)?;
            self.filling.clear();
        }
        if self.log.bytes() > self.most {
            self.misfit = Some(GiveUpReason::TooLarge(self.most));
            return Ok(self.kept);
        }
        self.kept.lengths = self.log.sync()?;
        if std::mem::take(&mut self.new) {
            let folder = dir.join(ROWS);
            disk.sync_dir(&folder).map_err(Error::io(&folder, "sync"))?;
        }
        Ok(self.kept)
    }

    /// Returns why all rows have to be given up, if something did not fit.
    pub fn misfit(&self) -> Option<GiveUpReason> {
        self.misfit
    }

    /// Returns the largest number of pages that fit.
    pub fn page_limit(&self) -> u64 {
        self.pages
    }

    #[cfg(test)]
    pub fn limit_pages(&mut self, pages: u64) {
        self.pages = pages;
    }

    /// Returns the state of the file, whether committed or not.
    pub fn kept(&self) -> &CommittedRows {
        &self.kept
    }

    pub fn most(&self) -> u64 {
        self.most
    }

    /// Sets the number of rows and links at which the next check for superseded rows is due.
    pub fn look_at(&mut self, units: u64) {
        self.kept.look_at = units;
    }

    pub fn cut(self, committed: LogLengths) -> Result<()> {
        self.log.cut(committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::memory::Memory;

    /// The 32 bits of a page number limit rows, not stores.
    #[test]
    fn pages_beyond_32_bits_end_rows_and_nothing_else() {
        let disk = Memory::default();
        let dir = Path::new("store");
        let mut rows = RowWriter::create(&disk, dir, 1, 1 << 20).unwrap_or_else(|e| panic!("{e}"));
        let links = |targets: &[u64]| targets.iter().map(|&to| PageId(to)).collect::<Vec<_>>();
        let last = PAGES_MAX - 1;
        for (page, targets, fits) in [
            (last, links(&[0, last]), true),
            (0, links(&[PAGES_MAX]), false),
            (PAGES_MAX, links(&[]), false),
            (1 << 32, links(&[3]), false),
        ] {
            let links = TargetLinks::from(&targets[..]);
            rows.append(PageId(page), false, links, false).unwrap();
            let many = (!fits).then_some(GiveUpReason::TooManyPages);
            assert_eq!(rows.misfit.take(), many, "page {page}");
        }
    }
}
