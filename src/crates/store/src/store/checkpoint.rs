//! Checkpoints, and the storage of what the engine emits between two of them: runs, admissions, names, marks, rows.

use super::chunks::Slot;
use super::folder::{check_in_place, remove_file};
use super::manifest::HistoryRun;
use super::marks::MARKS;
use super::progress::InputProgress;
use super::rows::{self, RowWriter};
use super::tables::{WriteTransaction, pack_run};
use super::warm::WARM;
use super::{StoreWriter, marks};
use crate::engine::{
    Admission, CashMark, Engine, EngineState, Fingerprint, Notes, PageId, Storage, TargetLinks,
    merge, mergeable, rows_of_run,
};
use crate::threads::{joined, spawn};
use crate::{Error, Result};

/// Run of the history, its sealed blocks, and the notes from which it was packed, for reuse.
pub(super) type PackedRun = (HistoryRun, Vec<Vec<u8>>, Notes);

fn pack(number: u64, interval: u64, mut notes: Notes) -> Result<PackedRun> {
    let mut blocks = Vec::new();
    let run = pack_run(number, interval, notes.run().map(Ok), |_, block| {
        blocks.push(block);
        Ok(())
    })?;
    Ok((run, blocks, notes))
}

/// Smallest number of rows for which a run is packed on a separate thread.
const PACKED_BESIDE: usize = 1 << 11;

/// Makes the engine's state durable, together with the progress in the inputs.
pub fn checkpoint(engine: &mut Engine<StoreWriter>, progress: &InputProgress) -> Result<()> {
    engine.storage().check_writes()?;
    engine.check_times()?;
    let store = engine.storage();
    check_in_place(&*store.disk, &store.dir, store.identity.hash)?;
    let result = try_checkpoint(engine, progress);
    engine.storage_mut().failed = result.is_err();
    result
}

fn try_checkpoint(engine: &mut Engine<StoreWriter>, progress: &InputProgress) -> Result<()> {
    engine.flush_log()?;
    engine.ledger().check_law().map_err(Error::internal)?;
    let state = engine.state();
    let store = engine.storage_mut();
    store.manifest.engine = state;
    store.manifest.progress = progress.clone();
    store.manifest.generation += 1;
    store.manifest.names = store.names.sync()?;
    store.sync_rows()?;
    store.sync_marks()?;

    let store = engine.storage();
    let ledger = engine.ledger();
    let pages = ledger.totals().pages;
    let changed = ledger.dirty_chunks();
    let written = store.cash.write(ledger.arrays(), pages, changed)?;
    engine.storage_mut().commit(&written)?;
    engine.clean();
    Ok(())
}

impl StoreWriter {
    pub(super) fn writing(&mut self) -> Result<&WriteTransaction> {
        match &mut self.writing {
            Some(writing) => Ok(writing),
            none => Ok(none.insert(self.tables.begin()?)),
        }
    }

    /// Records a failure, after which nothing may be written.
    pub(super) fn noting<T>(&mut self, result: Result<T>) -> Result<T> {
        self.failed |= result.is_err();
        result
    }

    fn sync_marks(&mut self) -> Result<()> {
        if self.new_marks.is_empty() {
            return Ok(());
        }
        let marks = self.dir.join(MARKS);
        for file in std::mem::take(&mut self.new_marks).into_values() {
            file.sync().map_err(Error::io(&marks, "sync"))?;
        }
        self.disk
            .sync_dir(&marks)
            .map_err(Error::io(&marks, "sync"))
    }

    fn commit(&mut self, written: &[(u64, Slot)]) -> Result<()> {
        if let Some(block) = self.admissions.finish() {
            self.put_admissions(block)?;
        }
        self.finish_packing()?;
        self.merge_runs()?;
        self.writing()?.put_slots(written)?;
        self.manifest.slots = self.cash.note(written);
        let writing = self.writing.take();
        let writing = writing.ok_or_else(|| Error::internal("no transaction"))?;
        writing.commit(&self.manifest)?;
        self.clear_up()
    }

    pub fn check_writes(&self) -> Result<()> {
        if self.failed {
            return Err(Error::Conflict(
                "an earlier write failed; start again from the last checkpoint".into(),
            ));
        }
        Ok(())
    }

    /// Removes files that the last commit does not name.
    fn clear_up(&mut self) -> Result<()> {
        self.note_warm_place();
        for number in std::mem::take(&mut self.dropped_marks) {
            marks::remove(&*self.disk, &self.dir, number)?;
        }
        if let Some(number) = self.rows.doomed.take() {
            rows::remove(&*self.disk, &self.dir, number)?;
            remove_file(&*self.disk, &self.dir.join(WARM))?;
        }
        let pages = self.manifest.engine.totals.pages;
        if let Some(kept) = self.manifest.rows.retention.kept() {
            let damage = rows::renew_places(&*self.disk, &self.dir, kept, pages)?;
            self.rows.renewed_places = damage.or(self.rows.renewed_places.take());
        }
        Ok(())
    }

    fn merge_runs(&mut self) -> Result<()> {
        let policy = self.identity.settings.config.policy();
        let start = self.manifest.engine.window_start;
        loop {
            let runs = &self.manifest.runs;
            let sizes: Vec<(u64, u64)> = runs.iter().map(|run| (run.interval, run.rows)).collect();
            let EngineState { marks, totals, .. } = &self.manifest.engine;
            let Some(range) = mergeable(&sizes, marks, totals.pages) else {
                return Ok(());
            };
            let parts = runs[range.clone()].to_vec();
            let number = self.manifest.next_run;
            self.manifest.next_run += 1;
            let blocks = self.manifest.admission_blocks;
            let writing = self.writing()?;
            let merged = writing.merge_runs(&parts, number, blocks, |rows, admissions| {
                let admissions = (range.start == 0).then_some(admissions);
                rows_of_run(merge(policy, rows, admissions, start))
            })?;
            self.manifest.runs.splice(range, [merged]);
        }
    }

    /// Packs a run; a large one on another thread while the engine continues. At most one at a time, so runs are
    /// written in order and at the same points of the stream, independent of threads.
    fn put_run(&mut self, interval: u64, notes: Notes) -> Result<Notes> {
        let number = self.manifest.next_run;
        self.manifest.next_run += 1;
        let used = self.finish_packing()?;
        if notes.len() < PACKED_BESIDE {
            return self.write_run(pack(number, interval, notes)?);
        }
        let used = used.unwrap_or_else(|| notes.another());
        self.packing = Some(spawn("pack", move || pack(number, interval, notes))?);
        Ok(used)
    }

    /// Writes the run that is being packed, if there is one. Returns its notes.
    pub(super) fn finish_packing(&mut self) -> Result<Option<Notes>> {
        let Some(packing) = self.packing.take() else {
            return Ok(None);
        };
        self.write_run(joined(packing)?).map(Some)
    }

    fn write_run(&mut self, (run, blocks, notes): PackedRun) -> Result<Notes> {
        self.writing()?.put_run(&run, &blocks)?;
        self.manifest.runs.push(run);
        Ok(notes)
    }

    fn put_admissions(&mut self, block: Vec<u8>) -> Result<()> {
        let number = self.manifest.admission_blocks;
        self.manifest.admission_blocks += 1;
        self.writing()?.put_admissions(number, block)
    }
}

impl Storage for StoreWriter {
    fn page(&mut self, fingerprint: Fingerprint, name: &[u8]) -> Result<()> {
        let appended = self.names.append(fingerprint, name);
        self.noting(appended)
    }

    fn admission(&mut self, admission: Admission) -> Result<()> {
        match self.admissions.add(admission) {
            Some(block) => {
                let put = self.put_admissions(block);
                self.noting(put)
            }
            None => Ok(()),
        }
    }

    /// Returns the limit of kept rows, if rows are kept.
    fn page_limit(&self) -> u64 {
        self.rows
            .writer
            .as_ref()
            .map_or(u64::MAX, RowWriter::page_limit)
    }

    fn row(&mut self, page: PageId, gone: bool, links: TargetLinks<'_>, again: bool) -> Result<()> {
        let Some(rows) = &mut self.rows.writer else {
            return Ok(());
        };
        let appended = rows.append(page, gone, links, again);
        let appended = match rows.misfit() {
            Some(reason) => self.give_up_rows(reason),
            None => appended,
        };
        self.noting(appended)
    }

    fn run(&mut self, interval: u64, notes: Notes) -> Result<Notes> {
        let put = self.put_run(interval, notes);
        self.noting(put)
    }

    fn keep_mark(&mut self, mark: &CashMark, cells: &[u64]) -> Result<()> {
        let written = marks::write(&*self.disk, &self.dir, self.identity.hash, mark, cells);
        let file = self.noting(written)?;
        self.new_marks.insert(mark.number, file);
        Ok(())
    }

    fn drop_mark(&mut self, number: u64) -> Result<()> {
        // No checkpoint names a mark made since the last one, so it is removed at once and its file closed. Short
        // rounds make thousands of marks between two checkpoints.
        if self.new_marks.remove(&number).is_some() {
            let removed = marks::remove(&*self.disk, &self.dir, number);
            return self.noting(removed);
        }
        self.dropped_marks.push(number);
        Ok(())
    }
}
