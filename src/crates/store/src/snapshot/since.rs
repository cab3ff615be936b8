//! Changes of a ranking since an older one of the same store, by page or site.
//!
//! Both rankings number pages or sites in the order of first appearance, and none ever disappears, so the two are read
//! in parallel by number, in bounded memory, and what the older one lacks is new. A score changed if it moved by more
//! than the bounds of both rankings explain (`metrics/moved`), or by a requested ratio.
//!
//! A page that was found gone (404, 410) stays in the ranking; the snapshot tells which are.

use super::{LevelRanking, Snapshot, SnapshotColumn};
use crate::engine::CHUNK_PAGES;
use crate::metrics::moved::{is_dilution, is_moved, margin};
use crate::model::{Change, Page};
use crate::rows::{Bits, Rows};
use crate::{Error, Result};

/// Rule for which scores count as changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeRule {
    /// Factors of the scores of the older and of the newer ranking.
    pub scales: [f64; 2],
    /// Minimum difference, exclusive; `None` if every difference counts.
    pub margin: Option<f64>,
    /// Minimum relative difference, instead of the margin.
    pub least: Option<f64>,
    /// True to require the margin in addition to `least`; without a margin no score then counts.
    pub certain_only: bool,
    /// Ratio of the scaled scores, newer to older, of a page that keeps its ratio to the mean page; `None` if scores
    /// are not shares of a whole.
    pub growth: Option<f64>,
}

impl ChangeRule {
    /// Returns the rule for these two rankings, whose scores are multiplied by `scales` first.
    pub fn of(older: &LevelRanking, newer: &LevelRanking, scales: [f64; 2]) -> ChangeRule {
        let bound = |ranking: &LevelRanking, scale: f64| ranking.bound_l1().map(|b| b * scale);
        ChangeRule {
            scales,
            margin: margin(bound(older, scales[0]), bound(newer, scales[1])),
            least: None,
            certain_only: false,
            growth: newer.computed().is_none().then(|| {
                let pages = older.ranked() as f64 / newer.ranked() as f64;
                pages * scales[1] / scales[0]
            }),
        }
    }

    fn change(&self, older: f64, newer: f64) -> Option<Change> {
        let (older, newer) = (older * self.scales[0], newer * self.scales[1]);
        let change = newer - older;
        let is_certain = || self.margin.is_some() && is_moved(change, self.margin);
        let is_change = match self.least {
            Some(least) => is_moved(change, None) && change.abs() >= least * older.abs(),
            None => is_moved(change, self.margin),
        };
        if !is_change || self.certain_only && !is_certain() {
            return None;
        }
        let dilution = self.growth.map(|growth| older * (growth - 1.0));
        Some(
            if dilution.is_some_and(|part| is_dilution(change, part, self.margin)) {
                Change::Diluted
            } else {
                Change::Changed
            },
        )
    }
}

impl LevelRanking {
    /// Iterates over the rows that changed since `older`, in number order, each with its [`Page::change`]. `gone` marks
    /// pages that were found gone since then ([`Snapshot::gone_since`]).
    ///
    /// # Errors
    /// [`Error::Usage`] if `older` is not of the same store, level and measure, or is the newer one.
    pub fn changed_since<'r>(
        &'r self,
        older: &'r LevelRanking,
        rule: ChangeRule,
        gone: Option<Bits>,
    ) -> Result<impl Iterator<Item = Result<Page<'static>>> + 'r> {
        let measure = |ranking: &LevelRanking| ranking.computed().map(|info| info.measure.clone());
        let [new, old] = [self, older].map(|ranking| &ranking.snapshot().info().counters);
        if self.snapshot().store() != older.snapshot().store()
            || (self.level(), measure(self)) != (older.level(), measure(older))
            || old.records > new.records
        {
            return Err(Error::Usage(format!(
                "{}: not an older ranking than {} of the same store",
                older.path().display(),
                self.path().display()
            )));
        }
        let mut scores = older.scores();
        Ok(self.rows().filter_map(move |row| {
            let known = scores.next().transpose();
            let marked = || {
                let (row, known) = (row?, known?);
                let is_gone = || gone.as_ref().is_some_and(|gone| gone.get(row.page.0));
                let change = match known {
                    _ if is_gone() => Some(Change::Gone),
                    None => Some(Change::New),
                    Some(score) => rule.change(score, row.importance),
                };
                Ok(change.is_some().then_some(Page { change, ..row }))
            };
            marked().transpose()
        }))
    }
}

impl Snapshot {
    /// Returns the pages that are gone and were visited since `older`. Checks the kept links of the store's current
    /// snapshot first: other programs apply the changes, so none are taken from a damaged store.
    ///
    /// # Errors
    /// [`Error::Missing`] if the snapshot does not tell which pages are gone.
    pub fn gone_since(&self, older: &Snapshot) -> Result<Bits> {
        if self
            .rows_retention()
            .is_some_and(|rows| rows.kept().is_some())
        {
            self.rows()?.sweep(&mut |_| Ok(()))?;
        }
        let mut gone = Bits::new(self.len());
        for block in 0..self.columns.blocks() {
            let before = if block < older.columns.blocks() {
                older.columns.column(block, SnapshotColumn::Visits)?
            } else {
                Vec::new()
            };
            let now = self.columns.column(block, SnapshotColumn::Visits)?;
            let is_gone = self.columns.gone(block)?;
            let first = block * CHUNK_PAGES;
            for (at, &visits) in now.iter().enumerate() {
                if is_gone[at] != 0 && visits != before.get(at).copied().unwrap_or_default() {
                    gone.set(first + at as u64);
                }
            }
        }
        Ok(gone)
    }

    /// Returns the pages that are gone, or [`Error::Missing`] if the snapshot does not tell.
    pub(super) fn gone(&self) -> Result<Bits> {
        let mut gone = Bits::new(self.len());
        for block in 0..self.columns.blocks() {
            for (page, &is_gone) in (block * CHUNK_PAGES..).zip(&self.columns.gone(block)?) {
                if is_gone != 0 {
                    gone.set(page);
                }
            }
        }
        Ok(gone)
    }

    /// Returns true if the snapshot tells which pages are gone; those of older versions do not.
    pub fn says_gone(&self) -> bool {
        self.columns.says_gone()
    }
}
