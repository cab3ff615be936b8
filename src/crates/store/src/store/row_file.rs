//! The store's file of kept rows: created as requested, appended to, compacted, and given up if it cannot continue.

use std::sync::Arc;

use super::StoreWriter;
use super::rows::{self, GiveUpReason, KeepRows, Retention, RowFile, RowWriter};
use super::warm::{self, RowPlace, WarmRows, WarmStart};
use crate::{Error, Result};

impl StoreWriter {
    /// Opens or creates the row file, as requested and as the store allows.
    pub(super) fn begin_rows(&mut self, keep: KeepRows) -> Result<()> {
        let (disk, dir) = (&*self.disk, &*self.dir);
        let retention = &self.manifest.rows.retention;
        let empty = self.manifest.engine.totals.pages == 0 && self.identity.has_rows();
        let held = retention.kept().map_or(0, |kept| kept.lengths.data);
        let Some(most) = self.rows_most(keep, held) else {
            if retention.kept().is_some() {
                self.give_up_rows(GiveUpReason::Asked)?;
            }
            return Ok(());
        };
        if let Some(kept) = retention.kept() {
            if kept.lengths.data > most {
                return self.give_up_rows(GiveUpReason::TooLarge(most));
            }
            self.rows.writer = Some(RowWriter::open(disk, dir, *kept, most)?);
        } else if empty {
            self.rows.writer = Some(RowWriter::create(disk, dir, 1, most)?);
        } else if let (Retention::GivenUp(GiveUpReason::TooLarge(had)), KeepRows::AtMost(most)) =
            (retention, keep)
            && most <= *had
        {
            // The same command again, or one that leaves rows less room: they stay given up.
            return Ok(());
        } else if let KeepRows::AtMost(_) = keep {
            return Err(Error::Conflict(format!(
                "{}: the store has pages and keeps no rows of links ({}), and they cannot be added later; leave \
                 `keep_links` out, or ingest the inputs into a new store",
                dir.display(),
                retention.why_not()
            )));
        }
        // The next commit stores the limit that was requested.
        if let KeepRows::AtMost(most) = keep {
            self.manifest.rows.most = Some(most);
        }
        Ok(())
    }

    /// Returns the limit for rows in bytes, given `held` bytes present; `None` to keep none. Without a new request the
    /// limit stays, and present rows are kept.
    fn rows_most(&self, keep: KeepRows, held: u64) -> Option<u64> {
        match keep {
            KeepRows::None => None,
            KeepRows::AtMost(most) => Some(most),
            KeepRows::Usual(most) => Some(self.manifest.rows.most.unwrap_or(most.max(held))),
        }
    }

    /// Returns true if rows are kept, including those after the last checkpoint.
    pub fn keeps_rows(&self) -> bool {
        self.rows.writer.is_some()
    }

    /// Returns true if rows were given up and this was not reported yet.
    pub fn is_giving_up_rows(&self) -> bool {
        self.rows.gave_up.is_some()
    }

    /// Returns whether committed rows are kept, and if not, why.
    pub fn rows_retention(&self) -> &Retention {
        &self.manifest.rows.retention
    }

    /// Returns the warm start if there is one that fits, or the error of opening it.
    pub(super) fn warm(&self) -> Option<Result<WarmStart>> {
        Some(match self.rows.warm.as_ref()? {
            Ok(warm) => Ok(warm.clone()),
            Err(error) => Err(error.again()),
        })
    }

    /// Begins a ranking of the last commit whose result will be the next warm start.
    pub fn begin_warm_start(&mut self) -> Result<()> {
        let kept = self.manifest.rows.retention.kept();
        let pages = self.manifest.engine.totals.pages;
        let rows = kept.map(|kept| WarmRows::of(&*self.disk, &self.dir, *kept, pages));
        self.rows.ranked = rows.transpose()?;
        Ok(())
    }

    /// Ends the ranking of `begin_warm_start`; if it `wrote` the warm start, this replaces the previous one.
    pub fn end_warm_start(&mut self, wrote: bool) {
        if let Some(rows) = self.rows.ranked.take().filter(|_| wrote) {
            let opened = warm::open(&*self.disk, &self.dir).transpose();
            self.rows.warm = opened.map(|file| {
                let file = Arc::new(file?);
                Ok(WarmStart { file, rows })
            });
        }
        self.note_warm_place();
    }

    /// Updates the place of the rows of the warm start after a compaction; on failure, later processes cannot use it.
    pub(super) fn note_warm_place(&mut self) {
        let Some(now) = self.manifest.rows.retention.kept() else {
            return;
        };
        // During a ranking the next warm start may replace it at any moment.
        let (Some(Ok(warm)), None) = (&mut self.rows.warm, &self.rows.ranked) else {
            return;
        };
        let (number, rows) = warm.rows.place;
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

    #[cfg(test)]
    pub fn limit_row_pages(&mut self, pages: u64) {
        if let Some(writer) = &mut self.rows.writer {
            writer.limit_pages(pages);
        }
    }

    pub fn rows_given_up(&mut self) -> Option<GiveUpReason> {
        self.rows.gave_up.take()
    }

    pub fn renewed_places(&mut self) -> Option<Error> {
        self.rows.renewed_places.take()
    }

    /// Removes row files from before compactions, except for the one that the current snapshot names and those that the
    /// current and next warm start need.
    pub fn release_rows(&mut self, named: Option<u64>) -> Result<()> {
        let warm = self.rows.warm.iter().flatten().map(|warm| &warm.rows);
        let of_warm = warm.chain(&self.rows.ranked).map(|rows| rows.file.number());
        let needed: Vec<u64> = of_warm.chain(named).collect();
        let retired = &mut self.manifest.rows.retired;
        let (stay, go) = std::mem::take(retired)
            .into_iter()
            .partition(|number| needed.contains(number));
        *retired = stay;
        let go: Vec<u64> = go;
        let removed = go
            .into_iter()
            .try_for_each(|number| rows::remove(&*self.disk, &self.dir, number));
        self.noting(removed)
    }

    /// Makes rows durable, and compacts them if half are superseded.
    pub(super) fn sync_rows(&mut self) -> Result<()> {
        let Some(rows) = &mut self.rows.writer else {
            return Ok(());
        };
        let (disk, dir) = (&*self.disk, &*self.dir);
        let kept = rows.sync()?;
        if let Some(reason) = rows.misfit() {
            return self.give_up_rows(reason);
        }
        self.manifest.rows.retention = Retention::Kept(kept);
        let pages = self.manifest.engine.totals.pages;
        // Compaction moves the positions of the current and next warm start.
        let warm = self.rows.warm.as_mut().and_then(|warm| warm.as_mut().ok());
        let warm = warm.map(|warm| &mut warm.rows.place);
        let ranked = self.rows.ranked.as_mut().map(|rows| &mut rows.place);
        let places = warm.into_iter().chain(ranked);
        if let Some(new) = rows::compact(disk, dir, rows, pages, places)? {
            self.manifest.rows.retired.push(rows.kept().number);
            *rows = new;
        }
        self.manifest.rows.retention = Retention::Kept(*rows.kept());
        Ok(())
    }

    /// Stops keeping rows. The next commit records this; then their file is removed.
    pub(super) fn give_up_rows(&mut self, reason: GiveUpReason) -> Result<()> {
        self.rows.gave_up = Some(reason);
        (self.rows.warm, self.rows.ranked) = (None, None);
        let committed = self.manifest.rows.retention.kept().copied();
        self.rows.doomed = committed.map(|kept| kept.number);
        let retention = Retention::GivenUp(reason);
        self.manifest.rows.retention = retention;
        let Some(writer) = self.rows.writer.take() else {
            return Ok(());
        };
        let number = writer.kept().number;
        match committed {
            Some(kept) => writer.cut(kept.lengths),
            None => {
                drop(writer);
                rows::remove(&*self.disk, &self.dir, number)
            }
        }
    }
}
