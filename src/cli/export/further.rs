//! Additional numeric columns of an export: scores by other measures.

use cashrank_store::snapshot::export::{NumberColumn, Page};
use cashrank_store::snapshot::{LevelRanking, Snapshot};
use cashrank_store::store::RealDisk;

use super::ExportArgs;

#[derive(Default)]
pub(super) struct Further {
    pub columns: Vec<NumberColumn>,
    rankings: Vec<LevelRanking>,
}

impl Further {
    pub fn held_bytes(&self) -> u64 {
        self.rankings.iter().map(LevelRanking::held_bytes).sum()
    }

    /// Fills in the columns of rows; the rows must come in the order of the values.
    pub fn fill<'r, 'p: 'r>(
        &'r self,
        rows: impl Iterator<Item = cashrank::Result<Page<'p>>> + 'r,
    ) -> impl Iterator<Item = cashrank::Result<Page<'p>>> + 'r {
        let scores = self.rankings.iter().map(|of| (0..).zip(of.scores()));
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

impl ExportArgs {
    pub(super) fn further(&self, ranking: &LevelRanking) -> anyhow::Result<Further> {
        let mut further = Further::default();
        let level = &self.ranking.level;
        let measures = level.measures();
        for (at, &measure) in measures.iter().enumerate() {
            let column = NumberColumn::of_measure(measure);
            let is_new = !measures[..at].contains(&measure);
            anyhow::ensure!(is_new, "--measure: {} is named twice", column.name);
            if at > 0 {
                let snapshot = Snapshot::open(&RealDisk, ranking.snapshot().path())?;
                let name = level.named(measure);
                further.columns.push(column);
                let ranking = level.open_named(snapshot, &name, &self.memory)?;
                further.rankings.push(ranking);
            }
        }
        Ok(further)
    }
}
