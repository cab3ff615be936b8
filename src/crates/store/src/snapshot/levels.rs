//! Rankings as readers see them: of pages or sites, by importance (sites by the sum of their pages')
//! or by a measure, whose ranking was computed beside the snapshot.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::blocks::{flat, rows_at};
use super::computed::{ComputedInfo, ComputedName, ComputedRanking, RankingColumn};
use super::{Selection, Snapshot, SnapshotColumn};
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, Page, PageId, ranks};
use crate::memory::to_read;
use crate::metrics::{BestItems, Positions};
use crate::model::SiteFacts;
use crate::rows::Bits;
use crate::sites::{Level, SiteTotal, Sites, SitesBuilder};
use crate::{Error, Result};

pub struct LevelRanking {
    snapshot: Snapshot,
    level: Level,
    of: Of,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankingName {
    pub level: Level,
    pub measure: Option<String>,
}

impl RankingName {
    pub fn is_usual(&self) -> bool {
        self.measure.is_none() && self.level.is_page()
    }

    /// Returns the file of the ranking beside the snapshot at `path`, if it is a computed one.
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        self.computed().map(|name| name.path_for(path))
    }

    fn computed(&self) -> Option<ComputedName> {
        Some(ComputedName {
            level: self.level,
            measure: self.measure.clone()?,
        })
    }
}

enum Of {
    Pages,
    Sites(Box<SiteRanking>),
    Computed(Box<ComputedRanking>),
}

struct SiteRanking {
    sites: Sites,
    totals: Vec<SiteTotal>,
    ranks: Vec<u64>,
}

impl Snapshot {
    /// Determines the sites of all pages within `memory` bytes; `None` for no limit.
    pub fn sites(&self, level: Level, memory: Option<u64>) -> Result<Sites> {
        // The sites are in memory while the ranking is read.
        let beside = to_read(self.len());
        let mut builder = SitesBuilder::new(level, memory, beside);
        for name in self.names() {
            builder.add(name?.as_bytes())?;
        }
        builder.build()
    }

    /// Returns totals over the pages of each site; over own pages in a shard.
    pub fn roll_up(&self, sites: &Sites) -> Result<Vec<SiteTotal>> {
        let mut totals = vec![SiteTotal::default(); sites.len()];
        let local = self.within(&Selection::default())?;
        for page in self.pages() {
            let page = page?;
            if local.as_ref().is_some_and(|local| !local.get(page.page.0)) {
                continue;
            }
            if let Some(site) = sites.site(page.page.index()) {
                totals[site].add(page.page, page.importance, &page.fetches);
            }
        }
        Ok(totals)
    }
}

impl LevelRanking {
    pub fn of_pages(snapshot: Snapshot) -> LevelRanking {
        LevelRanking {
            level: Level::Page,
            of: Of::Pages,
            snapshot,
        }
    }

    /// Opens a ranking of a snapshot, by a computed measure or by importance. Roll-ups take at most `memory` bytes.
    pub fn open(
        disk: &dyn Disk,
        snapshot: Snapshot,
        name: &RankingName,
        memory: Option<u64>,
    ) -> Result<LevelRanking> {
        let of = match name.computed() {
            Some(name) => Of::Computed(ComputedRanking::open_named(disk, &snapshot, &name)?.into()),
            None if name.level.is_page() => Of::Pages,
            None => {
                let sites = snapshot.sites(name.level, memory)?;
                let totals = snapshot.roll_up(&sites)?;
                let scores: Vec<f64> = totals.iter().map(SiteTotal::importance).collect();
                let ranks = ranks(&scores);
                let rolled = SiteRanking {
                    sites,
                    totals,
                    ranks,
                };
                Of::Sites(rolled.into())
            }
        };
        Ok(LevelRanking {
            snapshot,
            level: name.level,
            of,
        })
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub fn is_of_pages(&self) -> bool {
        matches!(self.of, Of::Pages)
    }

    pub fn computed(&self) -> Option<&ComputedInfo> {
        match &self.of {
            Of::Computed(ranking) => Some(ranking.info()),
            _ => None,
        }
    }

    pub fn held_bytes(&self) -> u64 {
        self.sites().map_or(0, |sites| {
            let of_each = size_of::<SiteTotal>() + size_of::<u64>();
            sites.bytes() + (sites.len() * of_each) as u64
        })
    }

    pub(super) fn sites(&self) -> Option<&Sites> {
        match &self.of {
            Of::Sites(rolled) => Some(&rolled.sites),
            _ => None,
        }
    }

    pub fn path(&self) -> &Path {
        match &self.of {
            Of::Computed(ranking) => ranking.path(),
            _ => self.snapshot.path(),
        }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn len(&self) -> u64 {
        match &self.of {
            Of::Pages => self.snapshot.len(),
            Of::Sites(rolled) => rolled.sites.len() as u64,
            Of::Computed(ranking) => ranking.info().count,
        }
    }

    /// Returns the number of nodes that ranks refer to, more than the ranking holds for a shard ranked with others.
    pub fn ranked(&self) -> u64 {
        match &self.of {
            Of::Pages => self.snapshot.info().ranked_pages(),
            _ => self.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bound_l1(&self) -> Option<f64> {
        match self.computed() {
            Some(info) => info.accuracy.bound_l1(),
            None => self.snapshot.bound_l1(),
        }
    }

    pub fn scores(&self) -> Box<dyn Iterator<Item = Result<f64>> + '_> {
        let real = |bits: Result<u64>| bits.map(f64::from_bits);
        match &self.of {
            Of::Pages => {
                let columns = &self.snapshot.columns;
                Box::new(flat(columns.column_blocks(SnapshotColumn::Importance)).map(real))
            }
            Of::Sites(rolled) => {
                let scores = rolled.totals.iter().map(SiteTotal::importance);
                Box::new(scores.map(Ok))
            }
            Of::Computed(ranking) => {
                Box::new(flat(ranking.column_blocks(RankingColumn::Score)).map(real))
            }
        }
    }

    /// Returns the number of leading positions that are certain ([`Snapshot::certain_top`]).
    pub fn certain_top(&self) -> Result<Option<u64>> {
        if self.is_of_pages() {
            // None for a shard, which has only a part of the ranking.
            return self.snapshot.certain_top();
        }
        let Some(bound) = self.bound_l1() else {
            return Ok(None);
        };
        let mut positions = Positions::new(bound);
        for score in self.scores() {
            positions.add(score?);
        }
        Ok(Some(positions.certain()))
    }

    /// Returns the `n` selected rows of best rank, best first; [`Error::Usage`] for selected pages among sites.
    pub fn top(&self, n: usize, selection: &Selection) -> Result<Vec<Page<'static>>> {
        let within = self.within(selection)?;
        let is_within = |number: u64| within.as_ref().is_none_or(|within| within.get(number));
        let best = match &self.of {
            Of::Pages => {
                let ranks = self.snapshot.columns.column_blocks(SnapshotColumn::Rank);
                best_of(n, ranks, is_within)
            }
            Of::Sites(rolled) => {
                let ranks = rolled.ranks.chunks(CHUNK_PAGES as usize);
                best_of(n, ranks.map(|ranks| Ok(ranks.to_vec())), is_within)
            }
            Of::Computed(ranking) => {
                best_of(n, ranking.column_blocks(RankingColumn::Rank), is_within)
            }
        };
        self.at(&best?)
    }

    /// Returns true if lists have this row: in a shard only its own pages, and sites that have such pages.
    pub fn lists(&self, row: &Page<'_>) -> bool {
        let is_shard = self.snapshot.info().settings.input.shard.is_some();
        match &row.site {
            _ if !is_shard => true,
            Some(site) => site.pages > 0,
            None => self.snapshot.is_local(row.url.as_bytes()),
        }
    }

    /// Returns a bitmap of the listed pages or sites; `None` for all.
    pub(super) fn within(&self, selection: &Selection) -> Result<Option<Bits>> {
        if !selection.is_all() && !self.level().is_page() {
            let option = if selection.without_gone {
                "`without_gone`"
            } else {
                "`scope`"
            };
            return Err(Error::Usage(format!(
                "{option} is for pages, and {} are ranked: leave it or `level` out",
                self.level().plural()
            )));
        }
        if self.level().is_page() {
            return self.snapshot.within(selection);
        }
        if self.snapshot.info().settings.input.shard.is_none() {
            return Ok(None);
        }
        let mut within = Bits::new(self.len());
        for (site, row) in (0..).zip(self.rows()) {
            if self.lists(&row?) {
                within.set(site);
            }
        }
        Ok(Some(within))
    }

    /// Returns the rows with these numbers, in this order, with their names, and sites with their best page.
    pub fn at(&self, numbers: &[PageId]) -> Result<Vec<Page<'static>>> {
        let mut rows = self.facts_of(numbers)?;
        if let Of::Sites(rolled) = &self.of {
            let best = numbers.iter().map(|site| rolled.totals[site.index()].best);
            let best: Vec<PageId> = best.collect();
            for (row, best) in rows.iter_mut().zip(self.snapshot.named_pages(&best)?) {
                let site = row.site.get_or_insert_default();
                (site.best, site.best_state) = (Some(best.url.into_owned()), best.state);
            }
        } else if self.level.is_page() {
            for (row, name) in rows.iter_mut().zip(self.snapshot.names_of(numbers)?) {
                row.url = name.into();
            }
        }
        Ok(rows)
    }

    /// Returns rows like [`LevelRanking::at`], without the names of pages.
    pub fn facts_of(&self, numbers: &[PageId]) -> Result<Vec<Page<'static>>> {
        let scored = match &self.of {
            Of::Pages => Vec::new(),
            Of::Sites(rolled) => numbers
                .iter()
                .map(|site| rolled.site(site.index()))
                .collect(),
            Of::Computed(ranking) => rows_at(numbers, |block, places| {
                let rows = ranking.block(block)?;
                let row = |&place: &usize| rows.get(place).cloned().unwrap_or_default();
                Ok(places.iter().map(row).collect())
            })?,
        };
        if !self.level.is_page() {
            return Ok(scored);
        }
        let pages = self.snapshot.pages_of(numbers)?.into_iter();
        let mut rows: Vec<_> = pages.map(|page| page.named("", self.len())).collect();
        for (row, scored) in rows.iter_mut().zip(scored) {
            (row.rank, row.importance) = (scored.rank, scored.importance);
        }
        Ok(rows)
    }

    /// Iterates over all rows with names, in number order.
    pub fn rows(&self) -> Box<dyn Iterator<Item = Result<Page<'static>>> + '_> {
        match &self.of {
            Of::Pages => Box::new(self.snapshot.named()),
            Of::Sites(rolled) => {
                Box::new((0..rolled.sites.len()).map(|site| Ok(rolled.site(site))))
            }
            Of::Computed(ranking) if !self.level.is_page() => Box::new(ranking.rows()),
            Of::Computed(ranking) => {
                let both = self.snapshot.named().zip(ranking.rows());
                Box::new(both.map(|(page, scored)| {
                    let (page, scored) = (page?, scored?);
                    Ok(Page {
                        rank: scored.rank,
                        importance: scored.importance,
                        ..page
                    })
                }))
            }
        }
    }

    /// Returns the rows with these numbers, like [`LevelRanking::rows`].
    pub fn rows_of(&self, numbers: Range<u64>) -> Result<Vec<Page<'static>>> {
        let numbers: Vec<PageId> = numbers.map(PageId).collect();
        match &self.of {
            Of::Sites(_) => self.facts_of(&numbers),
            _ => self.at(&numbers),
        }
    }

    pub fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        if self.level().is_page() {
            return self.snapshot.find(names);
        }
        let mut numbers: HashMap<&[u8], Option<PageId>> =
            names.iter().map(|name| (*name, None)).collect();
        for row in self.rows() {
            let row = row?;
            if let Some(number) = numbers.get_mut(row.url.as_bytes()) {
                *number = Some(row.page);
            }
        }
        Ok(names.iter().map(|name| numbers[name]).collect())
    }
}

impl SiteRanking {
    fn site(&self, site: usize) -> Page<'static> {
        let total = &self.totals[site];
        Page {
            page: PageId(site as u64),
            rank: self.ranks[site],
            importance: total.importance(),
            visits: total.visits,
            last_fetch: total.last_fetch,
            url: self.sites.name(site).to_owned().into(),
            site: Some(SiteFacts {
                pages: total.pages,
                largest: Some(total.largest),
                ..SiteFacts::default()
            }),
            ..Page::default()
        }
    }
}

/// Ranks and numbers of pages; of equal rank the one of the lower number is better.
pub(super) type RankedPages = BestItems<(u64, PageId)>;

pub(super) fn pages_of_best(best: RankedPages) -> Vec<PageId> {
    let best = best.finish(Ord::cmp).into_iter();
    best.map(|(_, page)| page).collect()
}

pub(super) fn best_of(
    n: usize,
    ranks: impl Iterator<Item = Result<Vec<u64>>>,
    may_be: impl Fn(u64) -> bool,
) -> Result<Vec<PageId>> {
    let mut best = RankedPages::new(n);
    for (rank, number) in flat(ranks).zip(0..) {
        let rank = rank?;
        if may_be(number) {
            best.add((rank, PageId(number)), Ord::cmp);
        }
    }
    Ok(pages_of_best(best))
}
