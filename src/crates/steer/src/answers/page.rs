//! Answers about pages, by URLs in any form.

use serde::Serialize;

use super::Rankings;
use crate::Result;
use crate::model::{Page, PageId};
use crate::sites::Level;
use crate::snapshot::{ComputedInfo, LevelRanking, Rank, Selection, pages_of};

/// Most important pages or sites.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Top {
    /// Name of the snapshot; of several shards, the id of their common ranking.
    pub snapshot: String,
    /// Number of records read until the snapshot.
    pub records: u64,
    pub pages: u64,
    /// Certified bound on the L1 error.
    pub bound_l1: Option<f64>,
    /// Number of the first positions that are certain; absent without a bound.
    pub certain_top: Option<u64>,
    /// Ranking that is shown, unless it is the snapshot itself.
    #[serde(flatten)]
    pub of: Option<RankingOf>,
    /// Pages or sites, best first.
    pub top: Vec<Page<'static>>,
}

/// Ranking of sites, or by a measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankingOf {
    pub level: Level,
    /// Number of ranked pages or sites.
    pub count: u64,
    /// Header of the ranking, if it was computed by a measure.
    pub computed: Option<ComputedInfo>,
}

impl Top {
    /// Returns the `n` selected pages or sites of best rank.
    pub fn of<'r>(
        rankings: impl Into<Rankings<'r>>,
        n: usize,
        selection: &Selection,
    ) -> Result<Top> {
        let rankings: Rankings<'_> = rankings.into();
        let ranking = rankings.first();
        Ok(Top {
            snapshot: rankings.name(),
            records: rankings.records(),
            pages: rankings.pages(),
            bound_l1: ranking.bound_l1(),
            certain_top: rankings.certain_top()?,
            of: (!ranking.is_of_pages()).then(|| RankingOf {
                level: ranking.level(),
                count: ranking.len(),
                computed: ranking.computed().cloned(),
            }),
            top: rankings.top(n, selection)?,
        })
    }
}

/// Returns the ranks of pages or sites, each with its number, by URLs in any form or by names.
pub fn ranks_of(ranking: &LevelRanking, urls: &[String]) -> Result<Vec<(Option<PageId>, Rank)>> {
    if ranking.is_of_pages() {
        return ranking.snapshot().numbered_ranks(urls);
    }
    let found = pages_of(urls, |names| ranking.find(names))?;
    let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
    let mut rows = ranking.at(&numbers)?.into_iter();
    let ranks = urls.iter().zip(found).map(|(url, number)| {
        let row = number.and_then(|_| rows.next());
        (number, Rank::of_row(url, row.as_ref(), ranking.len()))
    });
    Ok(ranks.collect())
}
