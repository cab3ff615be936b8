//! The store's file of kept rows: begun as asked, appended to, compacted, and given up where it may not go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Store;
use super::rows::{
    self, AppendError, KeepRows, KeptRows, Reason, Retention, RowFile, RowWriter, RowsOf,
};
use super::warm::{self, RowPlace, WarmFile, WarmRows, WarmStart};
use crate::{Error, Result};

impl Store {
    /// Opens the row file, or begins it, as asked and as far as the store has rows.
    pub(super) fn begin_rows(&mut self, keep: KeepRows) -> Result<()> {
        let (disk, dir) = (&*self.disk, &*self.dir);
        let retention = &self.manifest.rows.retention;
        let empty = self.manifest.engine.totals.pages == 0 && self.identity.has_rows();
        let held = retention.kept().map_or(0, |kept| kept.lengths.data);
        let Some(most) = self.rows_most(keep, held) else {
            if retention.kept().is_some() {
                self.give_up_rows(Reason::Asked)?;
            }
            return Ok(());
        };
        if let Some(kept) = retention.kept() {
            if kept.lengths.data > most {
                return self.give_up_rows(Reason::TooLarge(most));
            }
            self.rows.writer = Some(RowWriter::open(disk, dir, *kept, most)?);
        } else if empty {
            self.rows.writer = Some(RowWriter::create(disk, dir, 1, most)?);
        } else if let (Retention::GivenUp(Reason::TooLarge(had)), KeepRows::AtMost(most)) =
            (retention, keep)
            && most <= *had
        {
            // The same command again, or one that leaves them less room: they stay given up.
            return Ok(());
        } else if let KeepRows::AtMost(_) = keep {
            return Err(Error::Conflict(format!(
                "{}: the store has pages and keeps no rows of links ({}), and they cannot be added later; leave \
                 `keep_rows` out, or ingest the inputs into a new store",
                dir.display(),
                retention.why_not()
            )));
        }
        // From the next commit on the store knows the bytes that were asked for.
        if let KeepRows::AtMost(most) = keep {
            self.manifest.rows.most = Some(most);
        }
        Ok(())
    }

    /// Bytes that rows may take, of which so many are held; `None`: there are to be none. Unless others are asked for,
    /// they are as before, and what is held stays.
    fn rows_most(&self, keep: KeepRows, held: u64) -> Option<u64> {
        match keep {
            KeepRows::None => None,
            KeepRows::AtMost(most) => Some(most),
            KeepRows::Usual(most) => Some(self.manifest.rows.most.unwrap_or(most.max(held))),
        }
    }

    /// Returns whether rows are kept, of what no checkpoint knows yet as well.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.rows.writer.is_some()
    }

    /// Returns whether rows were given up, which was not reported yet.
    pub(crate) fn is_giving_up_rows(&self) -> bool {
        self.rows.gave_up.is_some()
    }

    /// Returns whether there are committed rows.
    pub fn rows_retention(&self) -> &Retention {
        &self.manifest.rows.retention
    }

    /// The committed rows.
    ///
    /// # Errors
    /// [`Error::Missing`] if there are none; [`Error::Damaged`].
    pub(crate) fn kept_rows(&self) -> Result<KeptRows> {
        let pages = self.manifest.engine.totals.pages;
        RowsOf::new(&*self.disk, &self.dir, self.manifest.rows.retention, pages).rows()
    }

    /// The warm start, if there is one that fits; or what is wrong with it.
    pub(super) fn warm(&self) -> Option<Result<WarmStart>> {
        Some(match self.rows.warm.as_ref()? {
            Ok(warm) => Ok(warm.clone()),
            Err(error) => Err(error.again()),
        })
    }

    /// A ranking of the last commit begins that will be the next warm start.
    ///
    /// # Errors
    /// Those of opening its rows.
    pub(crate) fn begin_warm_start(&mut self) -> Result<()> {
        let kept = self.manifest.rows.retention.kept();
        let rows = kept.map(|kept| WarmRows::of(&*self.disk, &self.dir, *kept));
        self.rows.ranked = rows.transpose()?;
        Ok(())
    }

    /// That ranking is over; if it `wrote` the warm start, this takes the place of the one before.
    pub(crate) fn end_warm_start(&mut self, wrote: bool) {
        if let Some(rows) = self.rows.ranked.take().filter(|_| wrote) {
            let opened = WarmFile::open(&*self.disk, &self.dir).transpose();
            self.rows.warm = opened.map(|file| {
                let file = Arc::new(file?);
                Ok(WarmStart { file, rows })
            });
        }
        self.note_warm_place();
    }

    /// Notes in the warm start where its rows end, if a compaction that was committed moved that. Where this fails it is of
    /// no use to later processes.
    pub(super) fn note_warm_place(&self) {
        let Some(now) = self.manifest.rows.retention.kept() else {
            return;
        };
        // While a ranking is in progress, the next one may take its place any moment.
        let (Some(Ok(warm)), None) = (&self.rows.warm, &self.rows.ranked) else {
            return;
        };
        let (number, rows) = warm.rows.place;
        if warm.file.noted.load(Ordering::Relaxed) == number {
            return;
        }
        let noted = RowFile::open(&*self.disk, &self.dir, *now).and_then(|file| {
            let place = RowPlace {
                number,
                rows,
                last_block: file.sum_before(rows)?,
            };
            warm::note_place(&*self.disk, &self.dir, warm.file.head, place)
        });
        if noted.is_ok() {
            warm.file.noted.store(number, Ordering::Relaxed);
        }
    }

    /// Takes fewer numbers of pages in rows than there are.
    #[cfg(test)]
    pub(crate) fn limit_row_pages(&mut self, pages: u64) {
        if let Some(writer) = &mut self.rows.writer {
            writer.limit_pages(pages);
        }
    }

    /// Why rows were given up, if they were since this was last asked.
    pub fn rows_given_up(&mut self) -> Option<Reason> {
        self.rows.gave_up.take()
    }

    /// The damage of the directory of rows, if it was rebuilt since the last call.
    pub fn renewed_places(&mut self) -> Option<Error> {
        self.rows.renewed_places.take()
    }

    /// Removes row files of before compactions, but for the one that the current snapshot names, and those that the warm
    /// start, and the next one, are of.
    pub(crate) fn release_rows(&mut self, named: Option<u64>) -> Result<()> {
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
        match rows.sync(disk, dir) {
            Ok(kept) => self.manifest.rows.retention = Retention::Kept(kept),
            Err(stop) => return self.stop_rows(stop),
        }
        let pages = self.manifest.engine.totals.pages;
        // What the warm start, and the next one, are of ends elsewhere then.
        let warm = self.rows.warm.as_mut().and_then(|warm| warm.as_mut().ok());
        let warm = warm.map(|warm| &mut warm.rows.place);
        let ranked = self.rows.ranked.as_mut().map(|rows| &mut rows.place);
        let places = warm.into_iter().chain(ranked);
        match rows::compact(disk, dir, rows, pages, places) {
            Ok(None) => {}
            Ok(Some(new)) => {
                self.manifest.rows.retired.push(rows.kept().number);
                *rows = new;
            }
            // The old file goes on.
            Err(AppendError::GiveUp(_) | AppendError::Full(_)) => {}
            Err(AppendError::Failed(error)) => return Err(error),
        }
        self.manifest.rows.retention = Retention::Kept(*rows.kept());
        Ok(())
    }

    pub(super) fn stop_rows(&mut self, stop: AppendError) -> Result<()> {
        match stop {
            AppendError::GiveUp(reason) => self.give_up_rows(reason),
            // As with every other file: with room again, the same run goes on to the same bytes.
            AppendError::Full(error) | AppendError::Failed(error) => Err(error),
        }
    }

    /// Keeps no more rows. The next commit says so; then their file goes.
    fn give_up_rows(&mut self, reason: Reason) -> Result<()> {
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
