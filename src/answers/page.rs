//! Answers about pages, by URLs in any form.

use serde::Serialize;

use super::Rankings;
use super::list::{ListLine, find_lines};
use crate::model::{Page, PageId, PageState, utc};
use crate::sites::{Level, RollUpBy};
use crate::snapshot::{ComputedInfo, Info, LevelRanking, Selection, Snapshot, SnapshotPage};
use crate::{Result, url};

/// The most important pages or sites.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Top<R = Vec<Page<'static>>> {
    /// Name of the snapshot; of several shards, the id of the ranking that theirs are parts of.
    pub snapshot: String,
    /// Records until then.
    pub records: u64,
    /// Pages known.
    pub pages: u64,
    /// Bound on the error.
    pub bound_l1: Option<f64>,
    /// How many of the first positions are certain; absent without a bound.
    pub certain_top: Option<u64>,
    /// What is ranked, unless it is the snapshot itself.
    #[serde(flatten)]
    pub of: Option<RankingOf>,
    /// The pages or sites, best first.
    pub top: R,
}

/// A ranking of sites, or by a measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankingOf {
    /// What is ranked.
    pub level: Level,
    /// How many of them.
    pub count: u64,
    /// What sites are ranked by, where the importance of their pages is put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roll_up: Option<RollUpBy>,
    /// What it says of itself, if it was computed.
    pub computed: Option<ComputedInfo>,
}

impl<R> Top<R> {
    /// These rows of a ranking, best first.
    ///
    /// # Errors
    /// As of [`LevelRanking::certain_top`].
    pub fn with<'r>(rankings: impl Into<Rankings<'r>>, top: R) -> Result<Top<R>> {
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
                roll_up: ranking.roll_up(),
                computed: ranking.computed().cloned(),
            }),
            top,
        })
    }
}

impl Top {
    /// The `n` of best rank that are selected.
    ///
    /// # Errors
    /// As of [`LevelRanking::top`].
    pub fn of(ranking: &LevelRanking, n: usize, selection: &Selection) -> Result<Top> {
        Top::with(ranking, ranking.top(n, selection)?)
    }

    /// Adds the `n` most important pages of each site, as [`LevelRanking::best_pages`].
    ///
    /// # Errors
    /// As there.
    pub fn add_pages(
        &mut self,
        ranking: &LevelRanking,
        n: usize,
        memory: Option<u64>,
    ) -> Result<()> {
        let sites: Vec<PageId> = self.top.iter().map(|row| row.page).collect();
        let best = ranking.best_pages(&sites, n, memory)?;
        for (row, best_pages) in self.top.iter_mut().zip(best) {
            row.site.get_or_insert_default().best_pages = best_pages;
        }
        Ok(())
    }

    /// The first `n` of these.
    pub fn first(&self, n: usize) -> Top {
        Top {
            top: self.top.iter().take(n).cloned().collect(),
            snapshot: self.snapshot.clone(),
            of: self.of.clone(),
            ..*self
        }
    }
}

/// The answer about one page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rank {
    /// The URL or name, as it was asked for.
    pub url: String,
    /// Whether the page is known; all else is absent where not.
    pub known: bool,
    /// Its share of all importance.
    pub importance: Option<f64>,
    /// 1 + pages of strictly greater importance.
    pub rank: Option<u64>,
    /// The share of pages, in percent, that do not rank higher.
    pub percentile: Option<f64>,
    /// Of a site: its pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Its cash, as a share of all: C of the OPIC paper; absent of a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<f64>,
    /// What it distributed in the ranking's window, as a share of what all pages did: H of the paper; of a settled ranking, what
    /// it would distribute in the long run. Absent of a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distributed: Option<f64>,
    /// Visits.
    pub visits: Option<u64>,
    /// Its last fetch, in RFC 3339.
    pub last_fetch: Option<String>,
    /// What its fetches came to: crawled, not crawled, failed or gone; absent of a site, and where an older snapshot does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Fetches that failed since it was last reached.
    pub failed: Option<u64>,
    /// How often two fetches showed whether it had changed.
    pub compared: Option<u64>,
    /// How often it had.
    pub changed: Option<u64>,
}

impl Rank {
    /// Of a page of a snapshot; `None`: it is not known.
    pub fn of(url: &str, page: Option<&SnapshotPage>, info: &Info) -> Rank {
        let row = page.map(|page| page.named(url, info.pages));
        let rank = Rank::of_row(url, row.as_ref(), info.ranked_pages());
        Rank {
            failed: page.map(|page| page.fetches.failed),
            compared: page.map(|page| page.fetches.compared),
            changed: page.map(|page| page.fetches.changed),
            ..rank
        }
    }

    /// Makes the answer for a row of a ranking of `of` pages or sites; `None`: the name is not known.
    pub fn of_row(url: &str, row: Option<&Page<'_>>, count: u64) -> Rank {
        let url = url.to_owned();
        let Some(row) = row else {
            return Rank {
                url,
                ..Rank::default()
            };
        };
        Rank {
            url,
            known: true,
            importance: Some(row.importance),
            rank: Some(row.rank),
            percentile: Some(percentile(row.rank, count)),
            pages: row.site.as_ref().map(|site| site.pages),
            cash: row.cash,
            distributed: row.distributed,
            state: row.state,
            visits: Some(row.visits),
            last_fetch: row.last_fetch.and_then(utc),
            ..Rank::default()
        }
    }
}

/// The share of all, in percent, that do not rank higher.
fn percentile(rank: u64, of: u64) -> f64 {
    100.0 * (1.0 - (rank - 1) as f64 / of as f64)
}

/// Rank of pages or sites, each with its number, by URLs in any form or by names.
///
/// # Errors
/// The ranking is damaged or cannot be read.
pub fn ranks_of(ranking: &LevelRanking, urls: &[String]) -> Result<Vec<(Option<PageId>, Rank)>> {
    let found = pages_of(urls, |names| ranking.find(names))?;
    let ranks = if ranking.is_of_pages() {
        page_ranks(ranking.snapshot(), urls, &found)?
    } else {
        let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
        let mut rows = ranking.at(&numbers)?.into_iter();
        let rows = found.iter().map(|number| number.and_then(|_| rows.next()));
        let ranks = urls.iter().zip(rows);
        ranks
            .map(|(url, row)| Rank::of_row(url, row.as_ref(), ranking.len()))
            .collect()
    };
    Ok(found.into_iter().zip(ranks).collect())
}

/// The ranks of pages that the snapshot has, by the URLs that they were found by.
pub(super) fn page_ranks(
    snapshot: &Snapshot,
    urls: &[String],
    found: &[Option<PageId>],
) -> Result<Vec<Rank>> {
    let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
    let mut pages = snapshot.pages_of(&numbers)?.into_iter();
    let pages = found.iter().map(|page| page.and_then(|_| pages.next()));
    let ranks = urls.iter().zip(pages);
    Ok(ranks
        .map(|(url, page)| Rank::of(url, page.as_ref(), snapshot.info()))
        .collect())
}

/// A URL's canonical form, or an opaque name as it is.
pub fn canonical(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match url::canonical(url.as_bytes(), None, usize::MAX, &mut out) {
        Ok(form) => form.text(url.as_bytes(), &out).to_vec(),
        Err(_) => url.as_bytes().to_vec(),
    }
}

/// The pages of these names, found by `find`: a URL in any form, or an opaque name that looks like one, for which `find` is
/// called once more.
///
/// # Errors
///
/// Those of `find`.
pub fn pages_of<P: Copy, E>(
    urls: &[String],
    find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<Option<P>>, E> {
    let lines = (0..).zip(urls);
    let lines = lines.map(|(number, url)| ListLine::of(url.as_bytes(), number));
    let found = find_lines(lines.collect(), find)?;
    Ok(found.into_iter().map(|of| of.page).collect())
}
