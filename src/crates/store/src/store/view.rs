//! A committed state of a store for reading, from which snapshots are made; its opening and verification.
//!
//! Verification goes part by part: one damaged file does not hide another. Memory: buffers; a deep check also needs the
//! memory of an index, as an ingest does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SNAPSHOTS;
use super::cash::{CashFile, mark_cells, open_marks, verify_mark};
use super::folder::{
    check_in_place, is_busy, is_store, remove_leftovers, remove_unpublished, take_lock,
};
use super::identity::{Identity, Settings, no_store};
use super::index_file::{IndexFile, reindex};
use super::manifest::{HistoryRun, Manifest};
use super::names::NameReader;
use super::rows::{KeptRows, RowFile};
use super::tables::{Tables, Transaction};
use super::warm::WarmStart;
use crate::disk::{Access, Disk, DiskFile, StoreFile};
use crate::engine::{
    Admissions, Blocks, CHUNK_PAGES, CashMark, EngineState, HistoryRow, HistoryView, Index,
    RowPolicy, Totals, merge, rows_of_run,
};
use crate::memory::DATABASE;
use crate::rows::Rows;
use crate::{Error, Result};

/// Last committed state of a store. It stays readable until two commits later; see `copy_cash` for longer.
pub struct View {
    pub dir: PathBuf,
    pub identity: Identity,
    reading: Transaction<redb::ReadTransaction>,
    pub manifest: Manifest,
    cash: CashFile,
    marks: Vec<StoreFile>,
    pub names: NameReader,
    /// Rows of links, open so that they cannot vanish. Damage is reported when rows are requested.
    rows: Result<RowFile>,
    /// Warm start if there is one that fits, or why it cannot be used; only in a view for publishing.
    pub(crate) warm: Result<Option<WarmStart>>,
    _tables: Arc<Tables>,
    /// Lock of the store, if nobody else can publish meanwhile. The last field, so that it is dropped last.
    pub(crate) lock: Option<Arc<dyn DiskFile>>,
}

impl View {
    pub(super) fn new(
        disk: &dyn Disk,
        dir: &Path,
        tables: Arc<Tables>,
        identity: Identity,
    ) -> Result<View> {
        let reading = tables.read()?;
        let manifest = reading.manifest()?;
        manifest.check_identity(dir, &identity)?;
        let pages = manifest.engine.totals.pages;
        let slots = reading.slots(pages.div_ceil(CHUNK_PAGES), manifest.slots)?;
        let names = NameReader::open(disk, dir, manifest.names)?;
        Ok(View {
            cash: CashFile::open(disk, dir, Access::Look, slots)?,
            marks: open_marks(disk, dir, &manifest.engine.marks)?,
            names,
            rows: RowFile::of(disk, dir, &manifest.retention, pages),
            warm: Ok(None),
            identity,
            dir: dir.into(),
            reading,
            manifest,
            _tables: tables,
            lock: None,
        })
    }

    /// Copies the cash to a file, which the caller removes, so that this state outlives any number of commits.
    pub fn copy_cash(&mut self, disk: &dyn Disk) -> Result<PathBuf> {
        let engine = &self.manifest.engine;
        let name = format!("{:012}.cash.tmp", engine.counters.records);
        let path = self.dir.join(SNAPSHOTS).join(name);
        self.cash = self.cash.copy(disk, &path, engine.totals.pages)?;
        Ok(path)
    }

    pub fn check_in_place(&self, disk: &dyn Disk) -> Result<()> {
        check_in_place(disk, &self.dir, self.manifest.identity)
    }

    fn mark_files(&self) -> impl Iterator<Item = (&CashMark, &StoreFile)> {
        self.manifest.engine.marks.iter().zip(&self.marks)
    }

    fn policy(&self) -> RowPolicy {
        self.identity.settings.config.policy()
    }

    /// Returns the kept rows of links, or [`Error::Missing`](crate::Error::Missing) with the reason if there are none.
    pub fn rows(&self) -> Result<KeptRows> {
        self.row_file().cloned().and_then(KeptRows::of)
    }

    fn row_file(&self) -> Result<&RowFile> {
        self.rows.as_ref().map_err(Error::again)
    }

    /// Returns the checksum of the block that holds the last row, which identifies these rows.
    pub fn last_block(&self) -> Result<u64> {
        self.row_file()
            .and_then(|file| file.sum_before(file.kept.rows))
    }

    /// Returns the numbers of the history's runs, oldest first, if the policy joins all rows of a page.
    pub fn joined_runs(&self) -> Option<Vec<u64>> {
        (!self.policy().is_timed())
            .then(|| self.manifest.runs.iter().map(|run| run.number).collect())
    }

    /// Returns the rows after the `skipped` first runs of the history; see [`HistoryView::rows`].
    pub fn rows_of_runs(&self, skipped: usize, since: u64, start: u128) -> Result<Blocks<'_>> {
        let runs = self.manifest.runs.iter().skip(skipped);
        let runs = runs.map(|run| of_run(self.reading.rows(*run), run, since));
        let admissions = self.admissions()?;
        Ok(merge(
            self.policy(),
            runs.collect(),
            Some(admissions),
            start,
        ))
    }

    /// Returns the last committed state under the same lock, with the database open for reading only.
    pub fn reopened(self, disk: &dyn Disk) -> Result<View> {
        let (dir, lock) = (self.dir.clone(), self.lock.clone());
        // The database has to be closed before it is opened again.
        drop(self);
        let identity = Identity::read(disk, &dir)?;
        let mut view = committed(disk, &dir, identity, Depth::Quick)?;
        view.lock = lock;
        Ok(view)
    }

    /// Returns true if a writer came since the view was opened, so that data may mix two commits.
    pub fn is_overtaken(&self, disk: &dyn Disk) -> bool {
        let now = || {
            Tables::open(disk, &self.dir, Access::Look)?
                .read()?
                .manifest()
        };
        is_busy(disk, &self.dir) || !now().is_ok_and(|now| now == self.manifest)
    }
}

/// Returns the rows of a run, with their cash only if the run is inside the window.
fn of_run<'v>(mut blocks: Blocks<'v>, run: &HistoryRun, since: u64) -> Blocks<'v> {
    let inside = run.interval >= since;
    Box::new(move |rows: &mut Vec<HistoryRow>| {
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

    fn state(&self) -> &EngineState {
        &self.manifest.engine
    }

    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        self.cash.read(first, cells, ages)
    }

    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()> {
        let mut marks = self.mark_files();
        let found = marks.find(|(of, _)| of.number == mark);
        let found = found.ok_or_else(|| Error::internal("no such mark"))?;
        mark_cells(self.identity.hash, found, first, out)
    }

    fn admissions(&self) -> Result<Admissions<'_>> {
        Ok(self.reading.admissions(self.manifest.admission_blocks))
    }

    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>> {
        self.rows_of_runs(0, since, start)
    }
}

/// Opens the last committed state of the store in `dir` for reading. Writes nothing and blocks no writer. Returns
/// [`Error::Busy`] while an ingest runs. If one begins later, what is read may mix two commits and look damaged: see
/// [`View::is_overtaken`].
pub fn open_view(disk: &dyn Disk, dir: &Path) -> Result<View> {
    open_view_to(disk, dir, Depth::Quick)
}

/// Opens like [`open_view`]; with [`Depth::Deep`], checks all of redb's pages before using any.
pub fn open_view_to(disk: &dyn Disk, dir: &Path, depth: Depth) -> Result<View> {
    let look = || {
        let identity = Identity::read(disk, dir)?;
        if is_busy(disk, dir) {
            return Err(Error::Busy { path: dir.into() });
        }
        committed(disk, dir, identity, depth)
    };
    // Apparent damage may come from a writer that began meanwhile.
    look().or_else(|error| match error {
        Error::Damaged { .. } => look(),
        other => Err(other),
    })
}

/// Opens the last committed state of the store in `dir` together with its lock; [`Error::Busy`] if a writer has it.
pub fn open_view_to_publish(disk: &dyn Disk, dir: &Path) -> Result<View> {
    // Creates nothing where there is no store.
    identity_of(disk, dir)?;
    let lock = take_lock(disk, dir)?;
    let identity = Identity::read(disk, dir)?;
    let mut view = committed(disk, dir, identity, Depth::Quick)?;
    remove_unpublished(disk, dir)?;
    remove_leftovers(disk, dir)?;
    view.lock = Some(Arc::from(lock));
    let retention = &view.manifest.retention;
    view.warm = WarmStart::open(disk, dir, view.identity.hash, retention);
    Ok(view)
}

fn committed(disk: &dyn Disk, dir: &Path, identity: Identity, depth: Depth) -> Result<View> {
    let mut tables = Tables::open(disk, dir, Access::Look)?;
    if depth == Depth::Deep {
        tables.check()?;
    }
    View::new(disk, dir, Arc::new(tables), identity)
}

/// Returns the settings of the store in `dir`; `None` if there is none yet.
pub fn settings_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Settings>> {
    if !is_store(disk, dir)? {
        return Ok(None);
    }
    Ok(Some(Identity::read(disk, dir)?.settings))
}

/// Returns the identity of the store in `dir`: settings, key of the fingerprints, and the file's hash.
pub fn identity_of(disk: &dyn Disk, dir: &Path) -> Result<Identity> {
    if is_store(disk, dir)? {
        Identity::read(disk, dir)
    } else if is_busy(disk, dir) {
        Err(Error::Busy { path: dir.into() })
    } else {
        Err(no_store(dir))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Reads the files that an ingest reads when it starts, and the marks.
    Quick,
    Deep,
}

/// Counts of what was checked and is intact.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct VerifyReport {
    pub pages: u64,
    pub cash_chunks: u64,
    pub marks: u64,
    /// Number of pages with a kept row; `None` if none are kept.
    pub rows: Option<u64>,
    pub row_links: Option<u64>,
    pub fingerprints: u64,
    /// Number of names, equal to the pages; `None` if not all were read.
    pub names: Option<u64>,
    /// Number of history rows; `None` if they were not read.
    pub history_rows: Option<u64>,
    /// Number of records that admitted pages; `None` if they were not read.
    pub admissions: Option<u64>,
    /// Expected number of pairs of distinct URLs that the index merges.
    pub expected_wrong_merges: f64,
}

/// Checks that `found`, which is `None` if an item occurs twice, equals `pages`.
pub(super) fn check_count(path: &Path, found: Option<u64>, pages: u64) -> Result<()> {
    match found {
        Some(found) if found == pages => Ok(()),
        Some(found) => Err(Error::damaged(path, format!("{found} for {pages} pages"))),
        None => Err(Error::damaged(path, "one occurs twice")),
    }
}

impl View {
    /// Checks everything except redb's own structure; returns the first damage as an error.
    #[cfg(any(test, feature = "testing"))]
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut damage = Vec::new();
        let report = self.inspect(Depth::Deep, &mut damage);
        damage.into_iter().next().map_or(Ok(report), Err)
    }

    /// Checks all parts and appends what is wrong to `damage`.
    pub fn inspect(&self, depth: Depth, damage: &mut Vec<Error>) -> VerifyReport {
        let mut note = |checked: Result<()>| damage.extend(checked.err());
        let pages = self.totals().pages;
        let mut report = VerifyReport {
            pages,
            cash_chunks: self.cash.slots.len() as u64,
            marks: self.state().marks.len() as u64,
            expected_wrong_merges: Index::expected_wrong_merges(pages),
            ..VerifyReport::default()
        };
        note(self.cash.verify(self.totals()));
        for mark in self.mark_files() {
            note(verify_mark(self.identity.hash, mark));
        }
        note(self.inspect_rows(depth, &mut report));
        note(self.inspect_fingerprints(depth, &mut report));
        note(self.names.check_end(&self.identity.key));
        if depth == Depth::Deep {
            note(self.inspect_names(&mut report));
            note(self.names.verify_indexes());
            note(self.inspect_history(&mut report));
        }
        report
    }

    pub fn inspect_index(&self, disk: &dyn Disk, depth: Depth) -> Result<()> {
        let Some(index) = IndexFile::open(disk, &self.dir, self.manifest.identity)? else {
            return Ok(());
        };
        index.check(self.manifest.engine.totals.pages, &self.names)?;
        match depth {
            Depth::Quick => Ok(()),
            Depth::Deep => index.verify(&self.names),
        }
    }

    /// Returns the maximum memory of a [`Depth::Deep`] check, in bytes.
    pub fn deep_bytes(&self) -> u64 {
        Index::bytes_with_room(self.totals().pages) + DATABASE
    }

    fn inspect_rows(&self, depth: Depth, report: &mut VerifyReport) -> Result<()> {
        if self.manifest.retention.kept().is_none() {
            return Ok(());
        }
        let rows = self.rows()?;
        report.rows = Some(rows.rows());
        report.row_links = Some(rows.links());
        match depth {
            Depth::Quick => Ok(()),
            Depth::Deep => rows.verify(),
        }
    }

    fn inspect_fingerprints(&self, depth: Depth, report: &mut VerifyReport) -> Result<()> {
        let pages = self.totals().pages;
        let found = match depth {
            Depth::Quick => {
                let mut blocks = self.names.fingerprint_blocks(0)?;
                Some(blocks.try_fold(0, |sum, block| Ok::<_, Error>(sum + block?.len() as u64))?)
            }
            Depth::Deep => reindex(pages, &self.names, None)?.1,
        };
        report.fingerprints = found.unwrap_or_default();
        check_count(&self.dir.join("fingerprints"), found, pages)
    }

    fn inspect_names(&self, report: &mut VerifyReport) -> Result<()> {
        let shard = self.identity.settings.input.shard;
        let mut remote = 0;
        let found = self.names.check_all(&self.identity.key, &mut |name| {
            remote += u64::from(shard.is_some_and(|shard| !shard.has(name)));
        })?;
        report.names = Some(found);
        check_count(&self.dir.join("urls"), Some(found), self.totals().pages)?;
        let counted = self.manifest.engine.counters.shard.remote_pages;
        if remote != counted {
            let what = format!("{counted} pages of other shards, but {remote} names are theirs");
            return Err(Error::damaged(self.dir.join("store.redb"), what));
        }
        Ok(())
    }

    fn inspect_history(&self, report: &mut VerifyReport) -> Result<()> {
        let pages = self.totals().pages;
        let bad = |what: String| Error::damaged(self.dir.join("store.redb"), what);
        let (mut rows, mut visits) = (0, 0u64);
        for run in &self.manifest.runs {
            let mut found = 0;
            for row in rows_of_run(self.reading.rows(*run)) {
                let row = row?;
                if row.page >= pages {
                    return Err(bad(format!("history of page {}, of {pages}", row.page)));
                }
                found += 1;
                visits = visits.saturating_add(row.visits);
            }
            if found != run.rows {
                let number = run.number;
                let what = format!("run {number} has {found} rows, not {}", run.rows);
                return Err(bad(what));
            }
            rows += found;
        }
        if visits != self.totals().visits {
            let ledger = self.totals().visits;
            let what = format!("the history has {visits} visits, the ledger {ledger}");
            return Err(bad(what));
        }
        report.history_rows = Some(rows);
        let mut admissions = 0;
        for admission in self.admissions()? {
            admission?;
            admissions += 1;
        }
        report.admissions = Some(admissions);
        Ok(())
    }

    /// Checks redb's own structure. Only possible if nothing else uses the view's store.
    #[cfg(any(test, feature = "testing"))]
    pub fn check_database(self) -> Result<()> {
        let View {
            _tables: tables,
            reading,
            ..
        } = self;
        drop(reading);
        match Arc::into_inner(tables) {
            Some(mut tables) => tables.check(),
            None => Ok(()),
        }
    }
}
