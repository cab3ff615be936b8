//! Appending of rows to the log, and its compaction: copying the rows that are not superseded, in order, to a new file. A
//! store creates its row file as requested, and gives it up if it cannot continue.

use std::path::Path;
use std::thread::JoinHandle;

use super::block::{BlockRows, RowHead, pack};
use super::read::{KeptRows, RowFile};
use super::{CommittedRows, GiveUpReason, KeepRows, ROWS, Retention, path_of, remove};
use crate::disk::log::BlockLog;
use crate::disk::{Access, Disk};
use crate::engine::{PageId, TargetLinks};
use crate::rows::{PAGES_MAX, Row, Rows};
use crate::store::StoreWriter;
use crate::store::folder::sync_dir;
use crate::threads::{joined, spawn};
use crate::{Error, Result};

/// Packed bytes that may wait to be written, plus one block.
const WAITING: usize = 1 << 20;

/// Number of rows and links below which no file is compacted.
const LEAST: u64 = 1 << 10;

pub struct RowWriter {
    log: BlockLog,
    kept: CommittedRows,
    /// Number of rows in blocks that were written to the log.
    closed: u64,
    filling: BlockRows,
    /// Number of rows of the previous block, while it is packed.
    packing: Option<(u32, JoinHandle<Vec<u8>>)>,
    most: u64,
    pub pages: u64,
    /// Reason why all rows have to be given up, if one does not fit.
    pub misfit: Option<GiveUpReason>,
}

impl RowWriter {
    pub fn create(disk: &dyn Disk, dir: &Path, number: u64, most: u64) -> Result<RowWriter> {
        let kept = CommittedRows {
            number,
            ..CommittedRows::default()
        };
        let writer = RowWriter::open(disk, dir, Access::Create, kept, most)?;
        sync_dir(disk, &dir.join(ROWS))?;
        Ok(writer)
    }

    fn open(
        disk: &dyn Disk,
        dir: &Path,
        access: Access,
        kept: CommittedRows,
        most: u64,
    ) -> Result<RowWriter> {
        let log = BlockLog::open(disk, &path_of(dir, kept.number), access, kept.lengths)?;
        let end = log.last()?.map_or(0, |block| block.pages().end);
        if end != kept.rows {
            let what = format!("it ends with row {end} of {}", kept.rows);
            return Err(log.damaged(what));
        }
        Ok(RowWriter {
            log,
            kept,
            closed: kept.rows,
            filling: BlockRows::default(),
            packing: None,
            most,
            pages: PAGES_MAX,
            misfit: None,
        })
    }

    /// Appends a page's row. With `again` the page has one already, which is superseded.
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
            self.start_packing()
        } else {
            Ok(())
        }
    }

    /// Packs the block on another thread, as sorting links takes about as long as applying them.
    fn start_packing(&mut self) -> Result<()> {
        self.end_packing()?;
        let mut rows = std::mem::take(&mut self.filling);
        let count = rows.heads.len() as u32;
        let packing = spawn("rows", move || pack(&mut rows))?;
        self.packing = Some((count, packing));
        Ok(())
    }

    fn end_packing(&mut self) -> Result<()> {
        let Some((count, packing)) = self.packing.take() else {
            return Ok(());
        };
        self.log.append(self.closed, count, &joined(packing));
        self.closed += u64::from(count);
        if self.log.bytes() > self.most {
            self.misfit = Some(GiveUpReason::TooLarge(self.most));
        }
        if self.log.waiting() >= WAITING {
            self.log.flush()?;
        }
        Ok(())
    }

    pub fn sync(&mut self) -> Result<CommittedRows> {
        if !self.filling.heads.is_empty() {
            self.start_packing()?;
        }
        self.end_packing()?;
        if self.misfit.is_none() {
            self.kept.lengths = self.log.sync()?;
        }
        Ok(self.kept)
    }
}

/// Compacts a synced file if at least half of its rows and links are superseded: returns the synced writer of a new
/// file with the others, which the next commit may name, and the old rows. Otherwise, or without room for the new file,
/// schedules the next check for when the live part has doubled, and the file has grown by a quarter.
fn compact(
    disk: &dyn Disk,
    dir: &Path,
    old: &mut RowWriter,
    pages: u64,
) -> Result<Option<(RowWriter, KeptRows)>> {
    let kept = old.kept;
    let all = kept.rows + kept.links;
    if kept.superseded == 0 || all < kept.look_at.max(LEAST) {
        return Ok(None);
    }
    let rows = KeptRows::of(RowFile::open(disk, dir, kept, pages)?)?;
    let live = rows.rows() + rows.links();
    if 2 * live > all {
        old.kept.look_at = (2 * live).max(all + all / 4);
        return Ok(None);
    }
    let number = kept.number + 1;
    let copy = || -> Result<RowWriter> {
        let mut new = RowWriter::create(disk, dir, number, old.most)?;
        rows.sweep(&mut |row| Ok(new.copy(&row)?))?;
        new.kept.look_at = 2 * live;
        new.sync()?;
        Ok(new)
    };
    match copy() {
        Ok(new) if new.misfit.is_none() => Ok(Some((new, rows))),
        failed => {
            remove(disk, dir, number)?;
            old.kept.look_at = all + all / 4;
            match failed {
                Err(error) if !error.is_full() => Err(error),
                _ => Ok(None),
            }
        }
    }
}

impl StoreWriter {
    pub(in crate::store) fn begin_rows(&mut self, keep: KeepRows) -> Result<()> {
        let (disk, dir) = (&*self.disk, &*self.dir);
        let retention = self.manifest.retention;
        let held = retention.kept().map_or(0, |kept| kept.lengths.data);
        // Without a new request the limit stays, and present rows are kept.
        let most = match keep {
            KeepRows::None => None,
            KeepRows::AtMost(most) => Some(most),
            KeepRows::Usual(most) => Some(self.manifest.rows_most.unwrap_or(most.max(held))),
        };
        self.rows = match (retention.kept(), most) {
            (None, None) => return Ok(()),
            (Some(_), None) => return self.give_up_rows(GiveUpReason::Asked),
            (Some(_), Some(most)) if held > most => {
                return self.give_up_rows(GiveUpReason::TooLarge(most));
            }
            (Some(kept), Some(most)) => {
                Some(RowWriter::open(disk, dir, Access::Write, *kept, most)?)
            }
            (None, Some(most)) if self.manifest.engine.totals.pages == 0 => {
                Some(RowWriter::create(disk, dir, 1, most)?)
            }
            (None, Some(_)) => None,
        };
        let KeepRows::AtMost(most) = keep else {
            return Ok(());
        };
        if self.rows.is_some() {
            // The next commit stores the limit that was requested.
            self.manifest.rows_most = Some(most);
            return Ok(());
        }
        match retention {
            // The same command again, or one that leaves rows less room: they stay given up.
            Retention::GivenUp(GiveUpReason::TooLarge(had)) if most <= had => Ok(()),
            _ => Err(Error::Conflict(format!(
                "{}: the store has pages and keeps no rows of links ({}), and they cannot be added later; leave \
                 `keep_links` out, or ingest the inputs into a new store",
                dir.display(),
                retention.why_not()
            ))),
        }
    }

    #[cfg(test)]
    pub fn limit_row_pages(&mut self, pages: u64) {
        if let Some(writer) = &mut self.rows {
            writer.pages = pages;
        }
    }

    /// Removes row files from before compactions, except for the one that the current snapshot names and those that the
    /// current and next warm start need.
    pub fn release_rows(&mut self, named: Option<u64>) -> Result<()> {
        let warm = self.warm.iter().flatten().map(|warm| &warm.rows);
        let of_warm = warm.chain(&self.ranked).map(|rows| rows.0.kept.number);
        let needed: Vec<u64> = of_warm.chain(named).collect();
        let retired = &mut self.manifest.retired_rows;
        let go: Vec<u64> = retired
            .extract_if(.., |one| !needed.contains(one))
            .collect();
        let mut go = go.into_iter();
        let removed = go.try_for_each(|number| remove(&*self.disk, &self.dir, number));
        self.noting(removed)
    }

    pub(in crate::store) fn sync_rows(&mut self) -> Result<()> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let (disk, dir) = (&*self.disk, &*self.dir);
        rows.sync()?;
        if let Some(reason) = rows.misfit {
            return self.give_up_rows(reason);
        }
        let pages = self.manifest.engine.totals.pages;
        if let Some((new, old)) = compact(disk, dir, rows, pages)? {
            // The current and the next warm start end after as many live rows of the new file.
            let warm = self.warm.iter_mut().flatten().map(|warm| &mut warm.rows);
            for (_, (number, end)) in warm.chain(&mut self.ranked) {
                if *number == old.kept().number {
                    (*number, *end) = (new.kept.number, old.live_before(*end));
                }
            }
            self.manifest.retired_rows.push(rows.kept.number);
            *rows = new;
        }
        self.manifest.retention = Retention::Kept(rows.kept);
        Ok(())
    }

    /// Stops keeping rows. The next commit records this; then their file is removed.
    pub(in crate::store) fn give_up_rows(&mut self, reason: GiveUpReason) -> Result<()> {
        self.rows_given_up = Some(reason);
        (self.warm, self.ranked) = (Ok(None), None);
        let committed = self.manifest.retention.kept().copied();
        self.doomed_rows = committed.map(|kept| kept.number);
        self.manifest.retention = Retention::GivenUp(reason);
        let Some(writer) = self.rows.take() else {
            return Ok(());
        };
        let number = writer.kept.number;
        match committed {
            Some(kept) => writer.log.cut(kept.lengths),
            None => {
                drop(writer);
                remove(&*self.disk, &self.dir, number)
            }
        }
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
