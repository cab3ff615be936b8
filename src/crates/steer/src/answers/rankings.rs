//! Rankings of a store, or of the stores of a crawl's shards read as one, and answers from them.
//!
//! Every page is an own page of one shard, which lists it with its rank among the own pages of all shards. So the lists
//! of all shards together equal the list of a single store with all pages.

use serde::Serialize;

use crate::Result;
use crate::metrics::Positions;
use crate::model::{Page, PageId};
use crate::sites::Level;
use crate::snapshot::{ComputedInfo, LevelRanking, Rank, Selection, Snapshot, pages_of};

/// Ranking of one store at any level and by any measure, or the page rankings of all shards of a crawl that were ranked
/// together, read as one; at least one.
#[derive(Clone, Copy)]
pub struct Rankings<'r>(pub &'r [LevelRanking]);

impl<'r> From<&'r LevelRanking> for Rankings<'r> {
    fn from(one: &'r LevelRanking) -> Rankings<'r> {
        Rankings(std::slice::from_ref(one))
    }
}

impl<'r> Rankings<'r> {
    /// Returns the first ranking. Rankings that were made together agree in bound, damping, level and measure.
    pub fn first(self) -> &'r LevelRanking {
        &self.0[0]
    }

    pub fn each(self) -> impl Iterator<Item = &'r LevelRanking> {
        self.0.iter()
    }

    pub fn snapshots(self) -> impl Iterator<Item = &'r Snapshot> {
        self.each().map(LevelRanking::snapshot)
    }

    pub fn are_several(self) -> bool {
        self.0.len() > 1
    }

    pub fn len(self) -> u64 {
        if self.are_several() {
            self.first().ranked()
        } else {
            self.first().len()
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pages of the store, or of own pages of all shards.
    pub fn pages(self) -> u64 {
        if self.are_several() {
            self.first().ranked()
        } else {
            self.first().snapshot().len()
        }
    }

    pub fn records(self) -> u64 {
        self.snapshots().map(|of| of.info().counters.records).sum()
    }

    /// Returns the name of the snapshot; of several shards, the id of their common ranking.
    pub fn name(self) -> String {
        let snapshot = self.first().snapshot();
        match snapshot.info().cluster {
            Some(of) if self.are_several() => format!("{:016x}", of.id),
            _ => {
                let name = snapshot.path().file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
        }
    }

    pub fn held_bytes(self) -> u64 {
        self.each().map(LevelRanking::held_bytes).sum()
    }

    /// Returns the number of the first positions that are certain, by [`Snapshot::certain_top`].
    pub fn certain_top(self) -> Result<Option<u64>> {
        if !self.are_several() {
            return self.first().certain_top();
        }
        let Some(bound) = self.first().bound_l1() else {
            return Ok(None);
        };
        let mut positions = Positions::new(bound);
        for snapshot in self.snapshots() {
            let listed = snapshot.within(&Selection::default())?;
            snapshot.importances(&mut |page, importance| {
                if listed.as_ref().is_none_or(|listed| listed.get(page.into())) {
                    positions.add(importance);
                }
            })?;
        }
        Ok(Some(positions.certain()))
    }

    /// Returns the `n` selected rows of best rank, best first; ties between shards by page number, then by URL.
    pub fn top(self, n: usize, selection: &Selection) -> Result<Vec<Page<'static>>> {
        let mut rows = self.first().top(n, selection)?;
        for ranking in self.each().skip(1) {
            rows.extend(ranking.top(n, selection)?);
        }
        if self.are_several() {
            rows.sort_by(|a, b| (a.rank, a.page, &a.url).cmp(&(b.rank, b.page, &b.url)));
            rows.truncate(n);
        }
        Ok(rows)
    }

    /// Iterates over all listed rows in number order, one shard after another.
    pub fn rows(self) -> impl Iterator<Item = Result<Page<'static>>> + 'r {
        self.each().flat_map(|ranking| {
            let is_listed =
                |row: &Result<Page<'_>>| row.as_ref().map_or(true, |row| ranking.lists(row));
            ranking.rows().filter(is_listed)
        })
    }

    /// Returns the ranks of pages or sites, each with its number, by URLs in any form or by names; of several shards,
    /// those in the page's own.
    pub fn ranks_of(self, urls: &[String]) -> Result<Vec<(Option<PageId>, Rank)>> {
        let mut found = ranks_of(self.first(), urls)?;
        if !self.are_several() {
            return Ok(found);
        }
        // The answer of the first shard holds unless the page is another shard's own.
        for ranking in self.each().skip(1) {
            let snapshot = ranking.snapshot();
            let of_shard = ranks_of(ranking, urls)?;
            let numbers: Vec<_> = of_shard.iter().filter_map(|(number, _)| *number).collect();
            let mut names = snapshot.names_of(&numbers)?.into_iter();
            for (found, answer) in found.iter_mut().zip(of_shard) {
                let name = answer.0.and_then(|_| names.next());
                if name.is_some_and(|name| snapshot.is_local(name.as_bytes())) {
                    *found = answer;
                }
            }
        }
        Ok(found)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Top {
    /// Name of the snapshot; of several shards, the id of their common ranking.
    pub snapshot: String,
    pub records: u64,
    pub pages: u64,
    pub bound_l1: Option<f64>,
    /// Number of the first positions that are certain; absent without a bound.
    pub certain_top: Option<u64>,
    /// Ranking that is shown, unless it is the snapshot itself.
    #[serde(flatten)]
    pub of: Option<RankingOf>,
    pub top: Vec<Page<'static>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankingOf {
    pub level: Level,
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
