//! Additional numeric columns of an export: scores by other measures.

use anyhow::Context;
use cashrank::Error;
use cashrank_graph::rank::measures::{MeasureOptions, measure};
use cashrank_store::snapshot::export::{NumberColumn, Page};
use cashrank_store::snapshot::{LevelRanking, Snapshot};
use cashrank_store::store::RealDisk;

use super::ExportArgs;
use crate::cli::common::threads;

#[derive(Default)]
pub(super) struct Further {
    pub columns: Vec<NumberColumn>,
    numbers: Vec<Numbers>,
    pub held_bytes: u64,
}

enum Numbers {
    Ranking(Box<LevelRanking>),
    Scores(Vec<f64>),
}

impl Further {
    /// Fills in the columns of rows; the rows must come in the order of the values.
    pub fn fill<'r, 'p: 'r>(
        &'r self,
        rows: impl Iterator<Item = cashrank::Result<Page<'p>>> + 'r,
    ) -> impl Iterator<Item = cashrank::Result<Page<'p>>> + 'r {
        let scores = self.numbers.iter().map(|of| (0..).zip(of.scores()));
        let mut scores: Vec<_> = scores.collect();
        rows.map(move |page| {
            let mut page = page?;
            let number = page.page.0;
            let more = scores.iter_mut().map(|scores| {
                let score = scores.find(|(at, score)| *at == number || score.is_err());
                score.map(|(_, score)| score).transpose()
            });
            page.more = more.collect::<cashrank::Result<_>>()?;
            Ok(page)
        })
    }
}

impl Numbers {
    fn scores(&self) -> Box<dyn Iterator<Item = cashrank::Result<f64>> + '_> {
        match self {
            Numbers::Scores(scores) => Box::new(scores.iter().copied().map(Ok)),
            Numbers::Ranking(ranking) => ranking.scores(),
        }
    }
}

impl ExportArgs {
    pub(super) fn further(&self, ranking: &LevelRanking) -> anyhow::Result<Further> {
        let mut further = Further::default();
        let measures = self.ranking.level.measures();
        for (at, &measure) in measures.iter().enumerate() {
            let column = NumberColumn::of_measure(measure);
            let is_new = !measures[..at].contains(&measure);
            anyhow::ensure!(is_new, "--measure: {} is named twice", column.name);
            if at > 0 {
                let numbers = self.numbers(ranking, measure)?;
                further.held_bytes += match &numbers {
                    Numbers::Ranking(further) => further.held_bytes(),
                    Numbers::Scores(_) => 8 * ranking.len(),
                };
                further.columns.push(column);
                further.numbers.push(numbers);
            }
        }
        Ok(further)
    }

    /// Returns scores by another measure. For pages, a measure without parameters need not have been computed before.
    fn numbers(&self, ranking: &LevelRanking, by: Option<&str>) -> anyhow::Result<Numbers> {
        let (of, mut name) = (ranking.snapshot(), self.ranking.level.named(by));
        if by.is_some() {
            name.roll_up = Default::default();
        }
        let snapshot = Snapshot::open(&RealDisk, of.path())?;
        let opened = self.ranking.level.open_named(snapshot, &name, &self.memory);
        let spec = by.map(measure).transpose()?;
        let spec = spec.filter(|spec| name.level.is_page() && spec.uses.is_empty());
        let (Err(Error::Missing(_)), Some(spec)) = (&opened, spec) else {
            return Ok(Numbers::Ranking(opened?.into()));
        };
        let options = MeasureOptions {
            threads: threads(None),
            memory: self.memory.budget(threads(None))?,
            ..MeasureOptions::default()
        };
        let measured = spec.compute(&of.rows()?, &options, &mut ())?;
        let scores = measured.context("nothing was ranked")?.scores;
        Ok(Numbers::Scores(scores))
    }
}
