//! Verification of a committed state, part by part: one damaged file does not hide another. Memory: buffers; a deep
//! check also needs the memory of an index, as an ingest does.

use std::path::Path;

use super::index_file::{IndexFile, reindex};
use super::view::View;
use crate::disk::Disk;
use crate::engine::{CellSweep, HistoryView, Index, check_law, rows_of_run};
use crate::memory::DATABASE;
use crate::rows::Rows;
use crate::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Reads the files that an ingest reads when it starts, and the marks.
    Quick,
    /// Reads all files of the store.
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
    /// Number of fingerprints, equal to the pages.
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
            marks: self.marks().len() as u64,
            expected_wrong_merges: crate::engine::Index::expected_wrong_merges(pages),
            ..VerifyReport::default()
        };
        note(self.inspect_cash());
        for mark in self.marks() {
            note(self.marks.verify(mark));
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

    fn inspect_cash(&self) -> Result<()> {
        let paid = self.totals().paid;
        let mut sum = 0;
        let mut sweep = CellSweep::new(self);
        while let Some((_, cells, _)) = sweep.next()? {
            let cash = cells.iter().map(|cell| u128::from(cell.wrapping_add(paid)));
            sum += cash.sum::<u128>();
        }
        let law = check_law(sum, self.totals());
        law.map_err(|what| Error::damaged(self.dir.join("cash"), what))
    }

    fn inspect_rows(&self, depth: Depth, report: &mut VerifyReport) -> Result<()> {
        if self.rows_retention().kept().is_none() {
            return Ok(());
        }
        let rows = self.rows()?;
        report.rows = Some(rows.rows());
        report.row_links = Some(rows.links());
        match depth {
            Depth::Quick => Ok(()),
            Depth::Deep => rows.verify().and_then(|()| rows.verify_places()),
        }
    }

    fn inspect_fingerprints(&self, depth: Depth, report: &mut VerifyReport) -> Result<()> {
        let pages = self.totals().pages;
        let found = match depth {
            Depth::Quick => {
                let mut blocks = self.names.fingerprint_blocks(0)?;
                let count = |block: super::names::Prints| block.fingerprints.len() as u64;
                Some(blocks.try_fold(0, |sum, block| block.map(|block| sum + count(block)))?)
            }
            Depth::Deep => reindex(pages, &self.names, None)?.1,
        };
        report.fingerprints = found.unwrap_or_default();
        check_count(&self.dir.join("fingerprints"), found, pages)
    }

    fn inspect_names(&self, report: &mut VerifyReport) -> Result<()> {
        let shard = self.settings().input.shard;
        let mut remote = 0;
        let found = self.names.check_all(&self.identity.key, &mut |name| {
            remote += u64::from(shard.is_some_and(|shard| !shard.has(name)));
        })?;
        report.names = Some(found);
        check_count(&self.dir.join("urls"), Some(found), self.totals().pages)?;
        let counted = self.counters().shard.remote_pages;
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
            for row in rows_of_run(self.reading.rows(*run)?) {
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
        match std::sync::Arc::into_inner(tables) {
            Some(mut tables) => tables.check(),
            None => Ok(()),
        }
    }
}
