//! Passes after the first, over the kept rows: inputs are not read again and need not exist. A pass visits each page
//! that has a row, once, with the links of its last record, in the order of these records. A position in it is the
//! number of pages visited, `records` of the input's position, whose `offset` stays 0.
//!
//! If no rows are kept at the end of the first pass, all files are read again. Each must hold what it held in pass 1,
//! whose hash is kept, before anything of it is made durable: so checkpoints by time are made between files, and one
//! inside a file (by number of records, or because of a stop) reads the whole file once more first.

use super::IngestRun;
use crate::engine::{PageId, TargetLinks};
use crate::ingest::InjectedFault;
use crate::model::counted;
use crate::rows::{Row, Stop};
use crate::session::Writer;
use crate::source::InputName;
use crate::store::InputProgress;
use crate::{Error, Result};

const AHEAD: usize = 64;

/// Returns an error if the passes of a plan cannot be continued as they were begun.
pub(super) fn check_passes(progress: &InputProgress, writer: &Writer) -> Result<()> {
    if progress.finished || progress.pass == 1 || writer.storage().rows_given_up.is_none() {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "`keep_links`: pass {} of {} uses the links kept in the store; leave `keep_links` out, or give at least as \
         much as they take",
        progress.pass, progress.repeat
    )))
}

impl IngestRun<'_> {
    /// Visits the pages of all rows, from where a checkpoint left off. Returns false if it was stopped.
    pub(super) fn sweep_rows(&mut self) -> Result<bool> {
        let from = match self.job.fault {
            Some(InjectedFault::PassFromStart) => 0,
            _ => self.progress.place.records,
        };
        if from > 0 {
            self.observer.say(format!(
                "pass {} over the links of the store: continuing after {}",
                self.progress.pass,
                counted(from, "page", "pages")
            ));
        }
        self.begun = true;
        let rows = self.writer.view()?.rows()?;
        let all = rows.rows();
        let mut targets = Vec::new();
        let whole = rows.sweep_from(from, &mut |rows| {
            for rows in rows.chunks(AHEAD) {
                self.visit_rows(rows, &mut targets)?;
                self.report_progress(None, self.progress.place.records, Some(all));
                if self.stop_asked() {
                    return Err(Stop::Enough);
                }
            }
            Ok(self.on_time()?)
        })?;
        if whole {
            self.progress.go_to(self.inputs.len() as u64);
        }
        Ok(whole)
    }

    fn visit_rows(&mut self, rows: &[Row<'_>], targets: &mut Vec<PageId>) -> Result<()> {
        let page = |page: u32| PageId(page.into());
        targets.clear();
        for row in rows {
            targets.extend(row.targets.iter().map(|&target| page(target)));
        }
        let pages = rows.iter().map(|row| page(row.page));
        self.writer.engine.ledger().prefetch(pages, targets);
        let mut rest = &targets[..];
        for row in rows {
            let links = TargetLinks {
                targets: rest.split_off(..row.targets.len()).unwrap_or_default(),
                weights: row.weights,
            };
            let engine = &mut self.writer.engine;
            engine.replay_visit(page(row.page), row.gone, links)?;
            self.progress.place.records += 1;
            if self.is_due() {
                self.on_records()?;
            }
        }
        Ok(())
    }

    /// Checks that what was applied of a file being read again is what pass 1 read; [`Error::InputChanged`] otherwise.
    pub(super) fn check_as_in_pass_1(&self) -> Result<()> {
        let place = self.progress.place;
        let input = self.inputs.get(self.progress.input as usize);
        let end = self.current().and_then(|input| input.end);
        let (true, Some(input @ InputName::File(_)), Some(end)) = (self.is_rereading(), input, end)
        else {
            return Ok(());
        };
        let mut source = self.reader.open(input)?;
        let same = source
            .pass_to(place.offset, Some(place.prefix))
            .and_then(|()| source.pass_to(end.offset, Some(end.prefix)))
            .and_then(|()| Ok(source.head()?.is_empty()));
        match same {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::InputChanged(_) | Error::Corrupt { .. }) => {
                Err(Error::InputChanged(format!(
                    "{input}: has changed since pass 1, and nothing of the change was kept; put the old file back and run \
                     the same command again, or use another store"
                )))
            }
            Err(error) => Err(error),
        }
    }
}
