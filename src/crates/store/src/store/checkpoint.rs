//! A store open for writing: its opening at the last checkpoint, the storage of what the engine emits between two
//! checkpoints (runs, admissions, names, marks, rows), and the checkpoint itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blocks::Packer;
use super::cash::{CASH, CashFile, MARKS, remove_mark, remove_other_marks, write_mark};
use super::folder::{check_in_place, is_void, lock_or_create, remove_file, remove_leftovers};
use super::folder::{remove_unpublished, renew, sync_dir};
use super::identity::{Identity, Settings, check_settings};
use super::index_file::{IndexFile, indexed, take_index};
use super::manifest::{InputProgress, Manifest};
use super::names::{NameLogs, NameReader};
use super::rows::{self, GiveUpReason, KeepRows, RowWriter};
use super::tables::{Tables, Transaction};
use super::view::{View, check_count};
use super::warm::{WARM, WarmRows, WarmStart};
use crate::disk::{Access, Disk, DiskFile, StoreFile};
use crate::engine::{
    Admission, CHUNK_PAGES, CashMark, Engine, EngineState, Fingerprint, Notes, PageId, Storage,
    TargetLinks, merge, mergeable, rows_of_run,
};
use crate::memory::{Need, pages_with_room};
use crate::model::Limits;
use crate::threads::join;
use crate::{Error, Result};

/// Store open for writing: the storage of a durable [`Engine`].
pub struct StoreWriter {
    pub disk: Arc<dyn Disk>,
    pub dir: PathBuf,
    pub identity: Identity,
    pub is_new: bool,
    tables: Arc<Tables>,
    /// Transaction of the next commit, once something is written to it.
    writing: Option<Transaction<redb::WriteTransaction>>,
    cash: CashFile,
    pub(super) names: NameLogs,
    /// Number of pages that the index on disk covers.
    pub(super) indexed: u64,
    /// Damage of the index, which was rebuilt, until it is reported.
    pub rebuilt: Option<Error>,
    pub rows: Option<RowWriter>,
    /// Reason why rows were given up, until it is reported.
    pub rows_given_up: Option<GiveUpReason>,
    /// Number of a row file that the next commit does not name.
    pub(super) doomed_rows: Option<u64>,
    /// Warm start if there is one that fits, or the error of opening it.
    pub(super) warm: Result<Option<WarmStart>>,
    /// Rows of the commit that is being ranked and whose result will be the next warm start.
    pub(super) ranked: Option<WarmRows>,
    pub manifest: Manifest,
    admissions: Packer<Admission>,
    /// Marks created since the last checkpoint that are still kept, by number.
    new_marks: BTreeMap<u64, StoreFile>,
    /// Numbers of dropped marks, whose files are removed after the next commit.
    dropped_marks: Vec<u64>,
    failed: bool,
    /// Lock, held while the store or a view is open. Last field, so dropped last: redb still writes on closing.
    lock: Arc<dyn DiskFile>,
}

impl StoreWriter {
    /// Opens the store in `dir` for writing, at its last checkpoint; creates it if there is none. `settings` must be
    /// the store's, unless it holds nothing: then it starts over.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        keep: KeepRows,
        resumes: bool,
    ) -> Result<Engine<StoreWriter>> {
        let (lock, is_new) = lock_or_create(&*disk, dir, settings)?;
        let read = || {
            // Refuses a store of another version before reading anything else.
            let identity = Identity::read(&*disk, dir)?;
            let tables = Tables::open(&*disk, dir, Access::Write)?;
            let manifest = tables.read()?.manifest()?;
            manifest.check_identity(dir, &identity)?;
            Ok::<_, Error>((identity, tables, manifest))
        };
        let (mut identity, mut tables, mut manifest) = read()?;
        let is_untouched = manifest.progress.inputs.is_empty() && identity.settings == *settings;
        if !is_untouched && is_void(&*disk, dir, &manifest, resumes)? {
            drop(tables);
            renew(&*disk, dir, settings, identity.key)?;
            (identity, tables, manifest) = read()?;
        }
        check_settings(dir, &identity.settings, settings)?;
        let reading = tables.read()?;
        let pages = manifest.engine.totals.pages;
        let slots = reading.slots(pages.div_ceil(CHUNK_PAGES), manifest.slots)?;
        let cash = CashFile::open(&*disk, dir, Access::Write, slots)?;
        drop(reading);
        remove_other_marks(&*disk, dir, &manifest.engine.marks)?;
        remove_unpublished(&*disk, dir)?;
        remove_leftovers(&*disk, dir)?;
        rows::remove_others(&*disk, dir, &manifest)?;
        let mut store = StoreWriter {
            cash,
            names: NameLogs::open(&*disk, dir, Access::Write, manifest.names, pages)?,
            indexed: 0,
            rebuilt: None,
            rows: None,
            rows_given_up: None,
            doomed_rows: None,
            warm: WarmStart::open(&*disk, dir, identity.hash, &manifest.retention),
            ranked: None,
            tables: Arc::new(tables),
            writing: None,
            admissions: Packer::new(),
            new_marks: BTreeMap::new(),
            dropped_marks: Vec::new(),
            failed: false,
            lock: Arc::from(lock),
            dir: dir.into(),
            identity,
            is_new,
            manifest,
            disk,
        };
        store.begin_rows(keep)?;
        store.into_engine(limits)
    }

    fn into_engine(self, limits: &Limits) -> Result<Engine<StoreWriter>> {
        let limit = limits.pages;
        let state = self.manifest.engine.clone();
        let pages = state.totals.pages;
        if pages > limit {
            return Err(Error::Conflict(format!(
                "{}: knows {pages} pages, more than `limit_pages` {limit}; raise it",
                self.dir.display()
            )));
        }
        let settings = &self.identity.settings;
        Need::check_resume(&settings.config, pages, limits.memory)?;
        let slots = self.cash.slots.clone();
        let cash = CashFile::open(&*self.disk, &self.dir, Access::Look, slots)?;
        let names = NameReader::open(&*self.disk, &self.dir, self.manifest.names)?;
        names.check_end(&self.identity.key)?;
        let config = self.identity.settings.config.clone();
        let dir = self.dir.clone();
        let room = pages_with_room(&config, limits);
        let mut engine = Engine::with_storage(config, room, self)?;
        let load = |cells: &mut [u64], ages: &mut [u8]| cash.load(cells, ages);
        // Loading the cash waits for the disk while building the index keeps the processors busy.
        let store = engine.storage();
        let file = IndexFile::open(&*store.disk, &store.dir, store.identity.hash);
        let file = file.and_then(|file| match file {
            Some(file) => file.check(pages, &names).map(|()| Some(file)),
            None => Ok(None),
        });
        let index = || indexed(pages, &names, file);
        let (found, restored) = join(true, index, || engine.restore(state, load));
        restored?;
        let law = engine.ledger().check_law();
        law.map_err(|what| Error::damaged(dir.join(CASH), what))?;
        let (index, known, from_file) = found?;
        check_count(&dir.join("fingerprints"), known, pages)?;
        take_index(&mut engine, index, from_file);
        let shard = engine.storage().identity.settings.input.shard;
        engine.shard = shard;
        Ok(engine)
    }

    /// Returns the last committed state, for reading while this store continues.
    pub fn view(&self) -> Result<View> {
        let tables = self.tables.clone();
        let mut view = View::new(&*self.disk, &self.dir, tables, self.identity.clone())?;
        view.lock = Some(self.lock.clone());
        view.warm = self.warm.as_ref().map(Clone::clone).map_err(Error::again);
        Ok(view)
    }
}

/// Makes the engine's state durable, together with the progress in the inputs.
pub fn checkpoint(engine: &mut Engine<StoreWriter>, progress: &InputProgress) -> Result<()> {
    let store = engine.storage();
    if store.failed {
        return Err(Error::Conflict(
            "an earlier write failed; start again from the last checkpoint".into(),
        ));
    }
    engine.check_times()?;
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
    fn writing(&mut self) -> Result<&Transaction<redb::WriteTransaction>> {
        match &mut self.writing {
            Some(writing) => Ok(writing),
            none => Ok(none.insert(self.tables.begin()?)),
        }
    }

    pub(super) fn noting<T>(&mut self, result: Result<T>) -> Result<T> {
        self.failed |= result.is_err();
        result
    }

    fn sync_marks(&mut self) -> Result<()> {
        if self.new_marks.is_empty() {
            return Ok(());
        }
        for file in std::mem::take(&mut self.new_marks).into_values() {
            file.sync()?;
        }
        sync_dir(&*self.disk, &self.dir.join(MARKS))
    }

    fn commit(&mut self, written: &[(u64, (u8, u64))]) -> Result<()> {
        if let Some(block) = self.admissions.finish() {
            self.put_admissions(block)?;
        }
        self.merge_runs()?;
        self.writing()?.put_slots(written)?;
        self.manifest.slots = self.cash.note(written);
        let writing = self.writing.take();
        let writing = writing.ok_or_else(|| Error::internal("no transaction"))?;
        writing.commit(&self.manifest)?;
        self.clear_up()
    }

    /// Removes files that the last commit does not name.
    fn clear_up(&mut self) -> Result<()> {
        self.note_warm_place();
        for number in std::mem::take(&mut self.dropped_marks) {
            remove_mark(&*self.disk, &self.dir, number)?;
        }
        if let Some(number) = self.doomed_rows.take() {
            rows::remove(&*self.disk, &self.dir, number)?;
            remove_file(&*self.disk, &self.dir.join(WARM))?;
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
        let block = self.admissions.add(admission);
        let put = block.map_or(Ok(()), |block| self.put_admissions(block));
        self.noting(put)
    }

    fn page_limit(&self) -> u64 {
        self.rows.as_ref().map_or(u64::MAX, |rows| rows.pages)
    }

    fn row(&mut self, page: PageId, gone: bool, links: TargetLinks<'_>, again: bool) -> Result<()> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let appended = rows.append(page, gone, links, again);
        let appended = match rows.misfit {
            Some(reason) => self.give_up_rows(reason),
            None => appended,
        };
        self.noting(appended)
    }

    fn run(&mut self, interval: u64, notes: &mut Notes) -> Result<()> {
        let number = self.manifest.next_run;
        self.manifest.next_run += 1;
        let rows = notes.run().map(Ok);
        let put = self.writing();
        let put = put.and_then(|writing| writing.put_run(number, interval, rows));
        let run = self.noting(put)?;
        self.manifest.runs.push(run);
        Ok(())
    }

    fn keep_mark(&mut self, mark: &CashMark, cells: &[u64]) -> Result<()> {
        let written = write_mark(&*self.disk, &self.dir, self.identity.hash, mark, cells);
        let file = self.noting(written)?;
        self.new_marks.insert(mark.number, file);
        Ok(())
    }

    fn drop_mark(&mut self, number: u64) -> Result<()> {
        // No checkpoint names a mark made since the last one, so it is removed at once and its file closed. Short
        // rounds make thousands of marks between two checkpoints.
        if self.new_marks.remove(&number).is_some() {
            let removed = remove_mark(&*self.disk, &self.dir, number);
            return self.noting(removed);
        }
        self.dropped_marks.push(number);
        Ok(())
    }
}
