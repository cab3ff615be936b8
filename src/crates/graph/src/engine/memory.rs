//! Storage in memory, for use as a library and for tests.

use std::borrow::Cow;

use super::estimate::{Estimation, HistoryView, PageScores, Window};
use super::history::{Admission, Admissions, Blocks, Notes, merge, mergeable, rows_of_run};
use super::ledger::Totals;
use super::row::HistoryRow;
use super::{
    CashMark, Config, Engine, EngineState, Fingerprint, PageId, Scores, Storage, TargetLinks,
};
use crate::graph::{self, LatestRows, node};
use crate::model::{Fetches, Limits, Page};
use crate::{Error, Result};

/// Names, history and marks held in memory.
#[derive(Default)]
pub struct InMemory {
    names: Vec<Box<[u8]>>,
    admissions: Vec<Admission>,
    /// Runs of the history, each with its mark interval.
    #[doc(hidden)]
    pub runs: Vec<(u64, Vec<HistoryRow>)>,
    marks: Vec<(u64, Vec<u64>)>,
    /// Links of all pages, if importance may be settled over them.
    rows: Option<LatestRows>,
}

impl Storage for InMemory {
    fn page(&mut self, _fingerprint: Fingerprint, name: &[u8]) -> Result<()> {
        self.names.push(name.into());
        Ok(())
    }

    fn row(
        &mut self,
        page: PageId,
        gone: bool,
        links: TargetLinks<'_>,
        _again: bool,
    ) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            let targets: Result<Vec<u32>> = links.targets.iter().map(|to| node(to.0)).collect();
            let targets = targets?;
            rows.grow(self.names.len() as u64);
            let links = graph::Links::new(&targets, links.weights);
            rows.set(node(page.0)?, gone, links);
        }
        Ok(())
    }

    fn admission(&mut self, admission: Admission) -> Result<()> {
        self.admissions.push(admission);
        Ok(())
    }

    fn run(&mut self, interval: u64, notes: &mut Notes) -> Result<()> {
        self.runs.push((interval, notes.run().collect()));
        Ok(())
    }

    fn keep_mark(&mut self, mark: &CashMark, cells: &[u64]) -> Result<()> {
        self.marks.push((mark.number, cells.to_vec()));
        Ok(())
    }

    fn drop_mark(&mut self, number: u64) -> Result<()> {
        self.marks.retain(|(kept, _)| *kept != number);
        Ok(())
    }
}

/// Ranking of all pages, and the window that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Window of the ranking, with its certificate.
    pub window: Window,
    /// Ranked pages, in number order.
    pub pages: Vec<Page<'static>>,
}

impl Ranking {
    /// Returns the `n` pages of best rank; ties in order of first appearance.
    pub fn top(&self, n: usize) -> Vec<&Page<'static>> {
        let mut pages: Vec<&Page<'static>> = self.pages.iter().collect();
        pages.sort_by_key(|page| (page.rank, page.page));
        pages.truncate(n);
        pages
    }
}

impl Engine<InMemory> {
    /// Creates an empty engine that keeps everything in memory.
    pub fn new(config: Config) -> Result<Engine<InMemory>> {
        let storage = InMemory {
            rows: config.is_settled().then(LatestRows::default),
            ..InMemory::default()
        };
        Engine::with_storage(config, Limits::default().pages, storage)
    }

    /// Returns the links of all pages as of their last visits; `None` if the settings ask for importance over a period.
    pub fn rows(&self) -> Option<&dyn crate::rows::Rows> {
        let rows = self.storage().rows.as_ref()?;
        Some(rows)
    }

    pub fn ranking(&mut self) -> Result<Ranking> {
        self.ranking_by(None)
    }

    /// Returns a ranking by `scores`, or by the window's estimate if there are none.
    pub fn ranking_by(&mut self, scores: Option<&dyn Scores>) -> Result<Ranking> {
        self.flush_log()?;
        self.merge_runs()?;
        let engine = &*self;
        let config = engine.config();
        let mut all: Vec<(Fetches, PageScores)> = Vec::new();
        if scores.is_none() {
            engine.check_times()?;
        }
        let estimation = Estimation::begin(engine, config)?;
        let window = match scores {
            Some(scores) => Window::settled(config, scores),
            None => estimation.window.clone(),
        };
        let mut read = Vec::new();
        estimation.blocks(|first, pages| {
            if let Some(scores) = scores {
                scores.read(first, pages.len(), &mut read)?;
                for (page, scores) in pages.iter_mut().zip(&read) {
                    page.1 = window.estimator.read(*scores);
                }
            }
            all.append(pages);
            Ok(())
        })?;
        let importance: Vec<f64> = all.iter().map(|(_, scores)| scores.0).collect();
        let ranked = all.into_iter().zip(ranks(&importance));
        let pages = (0..).zip(&engine.storage().names).zip(ranked);
        let pages = pages.map(|((page, name), ((fetches, (importance, _)), rank))| Page {
            page: PageId(page),
            url: Cow::Owned(String::from_utf8_lossy(name).into_owned()),
            importance,
            rank,
            visits: fetches.visits,
            last_fetch: fetches.last,
            state: Some(fetches.state()),
            ..Page::default()
        });
        let pages = pages.collect();
        Ok(Ranking { window, pages })
    }

    fn merge_runs(&mut self) -> Result<()> {
        let policy = self.config().policy();
        loop {
            let runs = &self.storage().runs;
            let sizes: Vec<(u64, u64)> = runs
                .iter()
                .map(|(interval, rows)| (*interval, rows.len() as u64))
                .collect();
            let pages = self.ledger().totals().pages;
            let Some(range) = mergeable(&sizes, self.marks(), pages) else {
                return Ok(());
            };
            let parts = runs[range.clone()].iter();
            let parts = parts.map(|(_, rows)| blocks(rows, true)).collect();
            let admissions = (range.start == 0).then(|| self.admissions()).transpose()?;
            let merged = merge(policy, parts, admissions, self.state.window_start);
            let merged = rows_of_run(merged).collect::<Result<Vec<HistoryRow>>>()?;
            let interval = runs[range.start].0;
            let runs = &mut self.storage_mut().runs;
            runs.splice(range, [(interval, merged)]);
        }
    }
}

/// Returns rows as a run; without `counted`, their cash is 0.
fn blocks(rows: &[HistoryRow], counted: bool) -> Blocks<'_> {
    let mut blocks = rows.chunks(BLOCK_ROWS);
    Box::new(move |out| {
        let block = blocks.next().unwrap_or_default().iter();
        out.extend(block.map(|row| row.counted(counted)));
        Ok(())
    })
}

const BLOCK_ROWS: usize = 512;

/// Returns the rank of each value: 1 + the number of strictly greater values.
pub fn ranks(values: &[f64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    values
        .iter()
        .map(|value| sorted.partition_point(|other| other > value) as u64 + 1)
        .collect()
}

impl HistoryView for Engine<InMemory> {
    fn totals(&self) -> &Totals {
        self.ledger().totals()
    }

    fn state(&self) -> &EngineState {
        &self.state
    }

    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let ledger = self.ledger();
        cells.copy_from_slice(&ledger.cells()[first as usize..][..cells.len()]);
        ages.copy_from_slice(&ledger.ages()[first as usize / 2..][..ages.len()]);
        Ok(())
    }

    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()> {
        let kept = self.storage().marks.iter().find(|(kept, _)| *kept == mark);
        let (_, cells) = kept.ok_or_else(|| Error::internal(format!("mark {mark} is not kept")))?;
        out.copy_from_slice(&cells[first as usize..][..out.len()]);
        Ok(())
    }

    fn admissions(&self) -> Result<Admissions<'_>> {
        Ok(Box::new(self.storage().admissions.iter().copied().map(Ok)))
    }

    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>> {
        let runs = self.storage().runs.iter();
        let runs = runs.map(|(interval, rows)| blocks(rows, *interval >= since));
        let admissions = self.admissions()?;
        let policy = self.config().policy();
        Ok(merge(policy, runs.collect(), Some(admissions), start))
    }
}
