//! Comparison of two rankings of one store, read block by block: pages that moved, and changes since the older one.
//!
//! Both number pages or sites in the order of first appearance, and none ever disappears, so what the older one lacks is
//! new. A page that was found gone (404, 410) stays in the ranking; the snapshot tells which are.

use super::blocks::flat;
use super::{LevelRanking, Selection, Snapshot, SnapshotColumn};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::metrics::moved::{MoveCollector, MoveOptions, Mover, Moves, Standing};
use crate::metrics::moved::{is_dilution, is_moved, margin};
use crate::model::{Change, Page};
use crate::rows::{Bits, Rows};
use crate::{Error, Result};

/// Returns the moves from `left` to `right`, two snapshots of one store; in a shard those of its own pages.
pub fn moved(left: &Snapshot, right: &Snapshot, wanted: MoveOptions) -> Result<Moves> {
    let local = right.within(&Selection::default())?;
    let sides = [left, right];
    let pages = sides.map(|side| side.info().ranked_pages());
    let mut movers = MoveCollector::new(wanted, sides.map(Snapshot::bound_l1), pages);
    for block in 0..left.columns.blocks().max(right.columns.blocks()) {
        let (l, r) = (left.standings(block)?, right.standings(block)?);
        for at in 0..l.len().max(r.len()) {
            let page = block * CHUNK_PAGES + at as u64;
            if local.as_ref().is_none_or(|local| local.get(page)) {
                movers.add(page.into(), l.get(at).copied(), r.get(at).copied());
            }
        }
    }
    let mut found = movers.finish();
    right.name(&mut found.rose)?;
    right.name(&mut found.fell)?;
    right.name(&mut found.new)?;
    left.name(&mut found.missing)?;
    Ok(found)
}

impl Snapshot {
    /// Fills in the names and states of pages, all of which this snapshot has.
    fn name(&self, pages: &mut [Mover]) -> Result<()> {
        let numbers = pages.iter().map(|page| PageId(page.key as u64));
        let numbers: Vec<PageId> = numbers.collect();
        for (page, named) in pages.iter_mut().zip(self.named_pages(&numbers)?) {
            (page.url, page.state) = (named.url.into_owned(), named.state);
        }
        Ok(())
    }

    /// Reads importances and ranks of a block; empty if there is no such block.
    fn standings(&self, block: u64) -> Result<Vec<Standing>> {
        if block >= self.columns.blocks() {
            return Ok(Vec::new());
        }
        let importances = self.columns.column(block, SnapshotColumn::Importance)?;
        let ranks = self.columns.column(block, SnapshotColumn::Rank)?;
        let pages = self.info().ranked_pages();
        let both = importances.into_iter().map(f64::from_bits).zip(ranks);
        both.map(|(importance, rank)| {
            // For a share of 1, rounding may give a little more than 1.
            if !(0.0..1.001).contains(&importance) || !(1..=pages).contains(&rank) {
                return Err(self.columns.damaged(format!(
                    "a page has importance {importance} and rank {rank} of {pages}"
                )));
            }
            Ok(Standing { importance, rank })
        })
        .collect()
    }
}

impl LevelRanking {
    /// Iterates over the rows that changed since `older`, in number order. Scores are multiplied by `scales`, and
    /// changed if they moved by more than the bounds explain, or by the share `least` of the older one.
    pub fn changed_since<'r>(
        &'r self,
        older: &'r LevelRanking,
        scales: [f64; 2],
        least: Option<f64>,
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
        let gone = self.level().is_page();
        let gone = gone.then(|| self.snapshot().gone_since(older.snapshot()));
        let gone = gone.transpose()?;
        let bound = |ranking: &LevelRanking, scale: f64| ranking.bound_l1().map(|b| b * scale);
        let margin = margin(bound(older, scales[0]), bound(self, scales[1]));
        // Ratio of the scaled scores of a page that keeps its ratio to the mean page, if scores are shares of a whole.
        let growth = self.computed().is_none().then(|| {
            let pages = older.ranked() as f64 / self.ranked() as f64;
            pages * scales[1] / scales[0]
        });
        let change_of = move |older: f64, newer: f64| {
            let (older, newer) = (older * scales[0], newer * scales[1]);
            let change = newer - older;
            let is_change = match least {
                Some(least) => is_moved(change, None) && change.abs() >= least * older.abs(),
                None => is_moved(change, margin),
            };
            let dilution = growth.map(|growth| older * (growth - 1.0));
            let is_diluted = dilution.is_some_and(|part| is_dilution(change, part, margin));
            is_change.then_some(if is_diluted {
                Change::Diluted
            } else {
                Change::Changed
            })
        };
        let mut scores = older.scores();
        Ok(self.rows().filter_map(move |row| {
            let known = scores.next().transpose();
            let marked = || {
                let (row, known) = (row?, known?);
                let is_gone = || gone.as_ref().is_some_and(|gone| gone.get(row.page.0));
                let change = match known {
                    _ if is_gone() => Some(Change::Gone),
                    None => Some(Change::New),
                    Some(score) => change_of(score, row.importance),
                };
                Ok(change.is_some().then_some(Page { change, ..row }))
            };
            marked().transpose()
        }))
    }
}

impl Snapshot {
    /// Returns the pages that are gone and were visited since `older`, once the kept links are checked.
    fn gone_since(&self, older: &Snapshot) -> Result<Bits> {
        if self
            .rows_retention()
            .is_some_and(|rows| rows.kept().is_some())
        {
            self.rows()?.sweep(&mut |_| Ok(()))?;
        }
        let gone = self.gone()?;
        let mut found = Bits::new(self.len());
        let [visits, before] = [self, older].map(|of| &of.columns);
        let mut before = flat(before.column_blocks(SnapshotColumn::Visits));
        let visits = flat(visits.column_blocks(SnapshotColumn::Visits));
        for (page, now) in (0..).zip(visits) {
            let before = before.next().transpose()?.unwrap_or_default();
            if now? != before && gone.get(page) {
                found.set(page);
            }
        }
        Ok(found)
    }
}
