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
    fn add(&mut self, column: NumberColumn, numbers: Numbers, held_bytes: u64) {
        self.columns.push(column);
        self.numbers.push(numbers);
        self.held_bytes += held_bytes;
    }

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
        let measures = self.level.measures();
        for (at, &measure) in measures.iter().enumerate() {
            let column = NumberColumn::of_measure(measure);
            let is_new = !measures[..at].contains(&measure);
            anyhow::ensure!(is_new, "--measure: {} is named twice", column.name);
            if at > 0 {
                self.add_measure(&mut further, ranking, measure)?;
            }
        }
        Ok(further)
    }

    /// Adds scores by another measure. For pages, a measure without parameters need not have been computed before.
    fn add_measure(
        &self,
        further: &mut Further,
        ranking: &LevelRanking,
        by: Option<&str>,
    ) -> anyhow::Result<()> {
        let (of, mut name) = (ranking.snapshot(), self.level.named(by));
        if by.is_some() {
            name.roll_up = Default::default();
        }
        let column = NumberColumn::of_measure(by);
        let snapshot = Snapshot::open(&RealDisk, of.path())?;
        let opened = self.level.open_named(snapshot, &name, &self.memory);
        let spec = by.map(measure).transpose()?;
        let spec = spec.filter(|spec| name.level.is_page() && spec.uses.is_empty());
        if let (Err(Error::Missing(_)), Some(spec)) = (&opened, spec) {
            let options = MeasureOptions {
                threads: threads(None),
                memory: self.memory.budget(threads(None))?,
                ..MeasureOptions::default()
            };
            let measured = spec.compute(&of.rows()?, &options, &mut ())?;
            let scores = measured.context("nothing was ranked")?.scores;
            further.add(column, Numbers::Scores(scores), 8 * ranking.len());
        } else {
            let opened = opened?;
            let held_bytes = opened.held_bytes();
            further.add(column, Numbers::Ranking(opened.into()), held_bytes);
        }
        Ok(())
    }
}
