//! A committed state, for reading: what snapshots are made from, and what `verify` checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cash::{CashFile, Slot};
use super::disk::{Disk, DiskFile};
use super::identity::{Identity, Settings};
use super::manifest::Manifest;
use super::marks::MarkFiles;
use super::names::{NameLengths, NameReader};
use super::progress::Progress;
use super::tables::{Reading, Tables};
use crate::engine::{
    Admissions, CHUNK_PAGES, Counters, EngineState, Mark, Past, Rows, Sweep, Totals, check_law,
    fold,
};
use crate::{Error, Result};

/// The last committed state of a store. It stays readable until two commits later.
pub struct View {
    dir: PathBuf,
    settings: Settings,
    reading: Reading,
    manifest: Manifest,
    slots: Vec<Slot>,
    cash: CashFile,
    marks: MarkFiles,
    names: NameReader,
    /// Keeps the database open.
    tables: Arc<Tables>,
    /// Keeps writers away, if the view is nobody's.
    lock: Option<Box<dyn DiskFile>>,
}

/// What [`View::verify`] checked.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Report {
    /// Pages known.
    pub pages: u64,
    /// Chunks of cash read and checked.
    pub cash_chunks: u64,
    /// Marks read and checked.
    pub marks: u64,
    /// Rows of the history.
    pub history_rows: u64,
    /// Records that admitted pages.
    pub admissions: u64,
    /// Names, as many as pages.
    pub names: u64,
    /// Expected pairs of distinct URLs that the index takes for one page.
    pub expected_wrong_merges: f64,
}

impl View {
    pub(super) fn new(
        disk: &dyn Disk,
        dir: &Path,
        tables: Arc<Tables>,
        identity: &Identity,
        lock: Option<Box<dyn DiskFile>>,
    ) -> Result<View> {
        let reading = tables.read()?;
        let manifest = reading.manifest()?;
        manifest.check_identity(dir, identity)?;
        let chunks = manifest.engine.totals.pages.div_ceil(CHUNK_PAGES);
        Ok(View {
            slots: reading.slots(chunks)?,
            cash: CashFile::open(disk, dir, false)?,
            marks: MarkFiles::open(disk, dir, &manifest.engine.marks)?,
            names: NameReader::open(disk, dir, manifest.names)?,
            settings: identity.settings.clone(),
            dir: dir.into(),
            reading,
            manifest,
            tables,
            lock,
        })
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

    /// What was read.
    pub fn counters(&self) -> &Counters {
        &self.manifest.engine.counters
    }

    /// How far the inputs were read.
    pub fn progress(&self) -> &Progress {
        &self.manifest.progress
    }

    /// Committed lengths of the name logs.
    pub fn name_lengths(&self) -> NameLengths {
        self.manifest.names
    }

    /// Commits so far.
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// Bytes of the history's blocks.
    pub fn history_bytes(&self) -> u64 {
        self.manifest.runs.iter().map(|run| run.bytes).sum()
    }

    /// Rows of the history.
    pub fn history_rows(&self) -> u64 {
        self.manifest.runs.iter().map(|run| run.rows).sum()
    }

    /// Checks every checksum, the law, and that all parts agree on the pages there are.
    pub fn verify(&self) -> Result<Report> {
        let totals = self.totals();
        let pages = totals.pages;
        let cash = self.verify_cash()?;
        check_law(cash, totals).map_err(|what| Error::damaged(self.dir.join("cash"), what))?;
        self.marks.verify()?;
        let count = |what: &str, file: &str, found: u64| {
            if found == pages {
                return Ok(());
            }
            Err(Error::damaged(
                self.dir.join(file),
                format!("{found} {what} for {pages} pages"),
            ))
        };
        let mut names = 0;
        for name in self.names.names() {
            name?;
            names += 1;
        }
        count("names", "urls", names)?;
        let mut fingerprints = 0;
        for fingerprint in self.names.fingerprints() {
            fingerprint?;
            fingerprints += 1;
        }
        count("fingerprints", "fingerprints", fingerprints)?;
        self.names.verify_indexes()?;
        let (history_rows, admissions) = self.verify_history()?;
        Ok(Report {
            pages,
            cash_chunks: self.slots.len() as u64,
            marks: self.manifest.engine.marks.len() as u64,
            history_rows,
            admissions,
            names,
            expected_wrong_merges: crate::engine::expected_wrong_merges(pages),
        })
    }

    fn verify_cash(&self) -> Result<u128> {
        let paid = self.totals().paid;
        let mut sum = 0;
        let mut sweep = Sweep::new(self);
        while let Some((_, cells, _)) = sweep.next()? {
            let cash = cells.iter().map(|cell| u128::from(cell.wrapping_add(paid)));
            sum += cash.sum::<u128>();
        }
        Ok(sum)
    }

    fn verify_history(&self) -> Result<(u64, u64)> {
        let pages = self.totals().pages;
        let bad = |what: String| Error::damaged(self.dir.join("store.redb"), what);
        let mut rows = 0;
        let mut visits = 0;
        for run in &self.manifest.runs {
            let mut found = 0;
            for row in self.reading.rows(*run)? {
                let row = row?;
                if row.page >= pages {
                    return Err(bad(format!("history of page {}, of {pages}", row.page)));
                }
                found += 1;
                visits += row.visits;
            }
            if found != run.rows {
                return Err(bad(format!(
                    "run {} has {found} rows, not {}",
                    run.number, run.rows
                )));
            }
            rows += found;
        }
        if visits != self.totals().visits {
            return Err(bad(format!(
                "the history has {visits} visits, the ledger {}",
                self.totals().visits
            )));
        }
        let mut admissions = 0;
        for admission in self.admissions()? {
            admission?;
            admissions += 1;
        }
        Ok((rows, admissions))
    }

    /// Checks redb's own structure. Only possible when nobody else uses the view's store.
    pub fn check_database(self) -> Result<()> {
        let View {
            tables,
            reading,
            lock: _lock,
            ..
        } = self;
        drop(reading);
        match Arc::into_inner(tables) {
            Some(mut tables) => tables.check(),
            None => Ok(()),
        }
    }
}

impl Past for View {
    fn totals(&self) -> &Totals {
        &self.manifest.engine.totals
    }

    fn marks(&self) -> &[Mark] {
        &self.manifest.engine.marks
    }

    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let chunk = first / CHUNK_PAGES;
        let slot = self.slots.get(chunk as usize).copied();
        let slot = slot
            .filter(|_| first.is_multiple_of(CHUNK_PAGES))
            .ok_or_else(|| {
                Error::damaged(
                    self.dir.join("cash"),
                    format!("no chunk begins at page {first}"),
                )
            })?;
        self.cash
            .read(chunk, self.totals().pages, slot, cells, ages)
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

    fn rows(&self, since: u64) -> Result<Rows<'_>> {
        let runs = self
            .manifest
            .runs
            .iter()
            .map(|run| {
                let inside = run.interval >= since;
                let rows = self.reading.rows(*run)?;
                Ok(Box::new(rows.map(move |row| Ok(row?.counted(inside)))) as Rows<'_>)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(fold(self.settings.config.window, runs, self.admissions()?))
    }
}
