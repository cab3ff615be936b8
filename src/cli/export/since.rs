//! `cashrank export --since`: only what changed since an older snapshot.

use std::cell::Cell;
use std::path::Path;

use cashrank::{Change, Result};
use cashrank_store::memory::to_read;
use cashrank_store::snapshot::export::{Format, Page, Score};
use cashrank_store::snapshot::{LevelRanking, Snapshot, SnapshotSelector};
use cashrank_store::store::RealDisk;

use crate::cli::common::{MemoryArg, parsed};
use crate::cli::levels::{LevelArgs, note_parameters};

/// Options that select what changed since an older snapshot.
#[derive(clap::Args)]
pub(super) struct SinceArgs {
    /// Write only what is new or has changed since this snapshot, by its number or by a time.
    ///
    /// Those are scores that moved by more than the errors of both rankings may be, and pages found gone (404, 410) since. Tables
    /// have a column `change`: new, changed, diluted (as the mean page: it only gave way to new pages) or gone.
    #[arg(long, value_name = "N|TIME", value_parser = parsed::<SnapshotSelector>)]
    pub since: Option<SnapshotSelector>,
    /// Count a score as changed if it moved by at least this share of what it was, like 0.1.
    #[arg(long, value_name = "RATIO", value_parser = ratio, requires = "since")]
    least: Option<f64>,
}

fn ratio(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err(format!("{text:?}: a number above 0, like 0.1 for a tenth")),
    }
}

/// Older ranking, and the rule for what counts as changed since.
pub(super) struct ChangeFilter {
    older: LevelRanking,
    least: Option<f64>,
    /// Number of selected rows, by kind of change.
    counts: [Cell<u64>; 4],
}

impl SinceArgs {
    /// Refuses formats that need all rows, not only the changed ones.
    pub fn check(&self, format: Format) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.since.is_none() || format != Format::Solr,
            "--since: Solr takes all scores from one file, and pages that are not in it would have none; export all, or \
             --to scores"
        );
        Ok(())
    }

    pub fn open(
        &self,
        store: &Path,
        level: &LevelArgs,
        memory: &MemoryArg,
    ) -> Result<Option<ChangeFilter>> {
        if self.since.is_none() {
            return Ok(None);
        }
        let snapshot = Snapshot::of(&RealDisk, store, self.since)?;
        Ok(Some(ChangeFilter {
            older: level.open(snapshot, memory)?,
            least: self.least,
            counts: Default::default(),
        }))
    }
}

impl ChangeFilter {
    /// Returns the number of bytes that reading the older ranking takes in addition to the newer one.
    pub fn held_bytes(&self) -> u64 {
        to_read(self.older.len()) + self.older.held_bytes()
    }

    pub fn rows<'r>(
        &'r self,
        newer: &'r LevelRanking,
        score: Score,
    ) -> Result<impl Iterator<Item = Result<Page<'static>>> + 'r> {
        let scales = [&self.older, newer].map(|ranking| score.scale(ranking.ranked()));
        note_parameters(&self.older, newer);
        newer.changed_since(&self.older, scales, self.least)
    }

    pub fn count(&self, page: &Page<'_>) {
        if let Some(change) = page.change {
            let count = &self.counts[change as usize];
            count.set(count.get() + 1);
        }
    }

    pub fn summary(&self) -> serde_json::Value {
        let of = |change: Change| self.counts[change as usize].get();
        serde_json::json!({
            "snapshot": self.older.snapshot().path().display().to_string(),
            "new": of(Change::New),
            "changed": of(Change::Changed),
            "diluted": of(Change::Diluted),
            "gone": of(Change::Gone),
        })
    }

    pub fn said(&self) -> String {
        let [new, changed, diluted, gone] = self.counts.each_ref().map(Cell::get);
        let older = self.older.snapshot().info().counters.records;
        format!(
            "{new} new, {changed} changed, {diluted} diluted by new pages and {gone} gone since snapshot {older}"
        )
    }
}
