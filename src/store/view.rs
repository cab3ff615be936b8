//! A committed state, for reading: what snapshots are made from. `verify.rs` checks one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunks::{ChunkFile, Chunks};
use super::folder::check_in_place;
use super::identity::{Identity, Settings};
use super::manifest::{Manifest, Run};
use super::marks::MarkFiles;
use super::names::{NameLengths, NameReader};
use super::progress::Progress;
use super::rows::{KeptRows, Retention, RowsOf};
use super::tables::{Reading, Tables};
use super::warm::WarmStart;
use crate::batch::HashKey;
use crate::disk::{Disk, DiskFile};
use crate::engine::{
    Admissions, Blocks, CHUNK_PAGES, Counters, EngineState, HistoryView, Mark, Policy, Row,
    TimeTable, Totals, fold_pages,
};
use crate::{Error, Result};

/// The last committed state of a store. It stays readable until two commits later; but see `set_cash_aside`.
pub struct View {
    pub(super) dir: PathBuf,
    settings: Settings,
    policy: Arc<dyn Policy>,
    pub(super) key: HashKey,
    pub(super) reading: Reading,
    pub(super) manifest: Manifest,
    pub(super) cash: Chunks,
    pub(super) marks: MarkFiles,
    pub(super) names: NameReader,
    pub(super) rows: RowsOf,
    /// Of a view to publish from: the warm start, if there is one that fits.
    pub(super) warm: Option<Result<WarmStart>>,
    /// Keeps the database open.
    pub(super) tables: Arc<Tables>,
    /// The store's lock, where this is a writer's. The last field, so that it is given up last.
    pub(super) lock: Option<Arc<dyn DiskFile>>,
}

impl View {
    pub(super) fn new(
        disk: &dyn Disk,
        dir: &Path,
        tables: Arc<Tables>,
        identity: &Identity,
    ) -> Result<View> {
        let reading = tables.read()?;
        let manifest = reading.manifest()?;
        manifest.check_identity(dir, identity)?;
        let pages = manifest.engine.totals.pages;
        let chunks = pages.div_ceil(CHUNK_PAGES);
        let names = NameReader::open(disk, dir, manifest.names)?;
        Ok(View {
            cash: Chunks {
                slots: reading.slots(chunks, manifest.slots)?,
                file: ChunkFile::look(disk, dir)?,
            },
            marks: MarkFiles::open(disk, dir, identity.hash, &manifest.engine.marks)?,
            names,
            rows: RowsOf::new(disk, dir, manifest.rows.retention, pages),
            warm: None,
            key: identity.key,
            policy: identity.settings.config.policy(),
            settings: identity.settings.clone(),
            dir: dir.into(),
            reading,
            manifest,
            tables,
            lock: None,
        })
    }

    /// Reads cash from a copy at `path` from now on: this state then stays readable however many commits come.
    ///
    /// # Errors
    ///
    /// Those of reading cash and of writing the copy.
    pub(crate) fn set_cash_aside(&mut self, disk: &dyn Disk, path: &Path) -> Result<()> {
        let pages = self.manifest.engine.totals.pages;
        self.cash = self.cash.copy(disk, path, pages)?;
        Ok(())
    }

    /// Returns whether the store is locked by whoever reads this, so that nobody else publishes meanwhile.
    pub(crate) fn is_writers(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns whether the store is still in its folder.
    ///
    /// # Errors
    ///
    /// It was moved away or removed.
    pub(crate) fn check_in_place(&self, disk: &dyn Disk) -> Result<()> {
        check_in_place(disk, &self.dir, self.manifest.identity)
    }

    /// The store's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The engine's totals, marks and counters.
    pub fn state(&self) -> &EngineState {
        &self.manifest.engine
    }

    /// Counts of what was read.
    pub fn counters(&self) -> &Counters {
        &self.manifest.engine.counters
    }

    /// How far the inputs were read.
    pub fn progress(&self) -> &Progress {
        &self.manifest.progress
    }

    /// The names of all pages.
    pub(crate) fn names(&self) -> &NameReader {
        &self.names
    }

    /// Committed lengths of the name logs.
    pub fn name_lengths(&self) -> NameLengths {
        self.manifest.names
    }

    /// The kept rows of links.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if there are none, which says why; [`Error::Damaged`](crate::Error::Damaged).
    pub fn rows(&self) -> Result<KeptRows> {
        self.rows.rows()
    }

    /// The warm start, if there is one that fits.
    ///
    /// # Errors
    ///
    /// It cannot be used, and why.
    pub(crate) fn warm(&self) -> Option<Result<&WarmStart>> {
        let warm = self.warm.as_ref()?;
        Some(warm.as_ref().map_err(Error::again))
    }

    /// Checksum of the block that holds the last row, which tells these rows from others.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub(crate) fn last_block(&self) -> Result<u64> {
        self.rows.last_block()
    }

    /// The store's identity.
    pub(crate) fn identity(&self) -> u64 {
        self.manifest.identity
    }

    /// Returns whether there are rows.
    pub fn rows_retention(&self) -> &Retention {
        self.rows.retention()
    }

    /// Commits so far.
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// Numbers of the history's runs, oldest first, if rows of a page are joined whatever runs they are in; `None`: they are
    /// not.
    pub(crate) fn joined_runs(&self) -> Option<Vec<u64>> {
        (!self.policy.is_timed()).then(|| self.manifest.runs.iter().map(|run| run.number).collect())
    }

    /// The rows behind the first so many of these runs.
    pub(crate) fn rows_behind(&self, runs: usize) -> Result<Blocks<'_>> {
        match runs {
            0 => HistoryView::rows(self, 0, 0),
            _ => self.rows_of_runs(runs, 0, 0),
        }
    }

    fn rows_of_runs(&self, skipped: usize, since: u64, start: u128) -> Result<Blocks<'_>> {
        let runs = self.manifest.runs.iter().skip(skipped);
        let run = |run: &Run| Ok(of_run(self.reading.rows(*run)?, run, since));
        let runs = runs.map(run).collect::<Result<_>>()?;
        let admissions = self.reading.admissions(self.manifest.admission_blocks)?;
        Ok(fold_pages(&self.policy, runs, admissions, start))
    }

    /// Rows of the history.
    pub fn history_rows(&self) -> u64 {
        self.manifest.runs.iter().map(|run| run.rows).sum()
    }
}

/// The rows of a run, with their cash if it is of the window.
fn of_run<'v>(mut blocks: Blocks<'v>, run: &Run, since: u64) -> Blocks<'v> {
    let inside = run.interval >= since;
    Box::new(move |rows: &mut Vec<Row>| {
        blocks(rows)?;
        if !inside {
            rows.iter_mut().for_each(|row| row.cash = 0);
        }
        Ok(())
    })
}

impl HistoryView for View {
    fn totals(&self) -> &Totals {
        &self.manifest.engine.totals
    }

    fn marks(&self) -> &[Mark] {
        &self.manifest.engine.marks
    }

    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let arrays = &mut [bytemuck::cast_slice_mut(cells), ages];
        self.cash.read(first, arrays)
    }

    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()> {
        let marked = self.marks().iter().find(|kept| kept.number == mark);
        let pages = marked.map_or(0, |mark| mark.totals.pages);
        debug_assert!(first + out.len() as u64 <= pages);
        self.marks.cells(mark, first, out)
    }

    fn admissions(&self) -> Result<Admissions<'_>> {
        self.reading.admissions(self.manifest.admission_blocks)
    }

    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>> {
        self.rows_of_runs(0, since, start)
    }

    fn times(&self) -> &TimeTable {
        &self.manifest.engine.times
    }

    fn window_start(&self) -> u128 {
        self.manifest.engine.window_start
    }
}
