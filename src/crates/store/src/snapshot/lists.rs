//! The best pages of a ranking, and the best pages of some sites.

use std::collections::HashMap;

use super::blocks::flat;
use super::{LevelRanking, SnapshotColumn};
use crate::engine::PageId;
use crate::metrics::BestItems;
use crate::model::SitePage;
use crate::{Error, Result};

/// Ranks and numbers of pages; of equal rank the one of the lower number is better.
pub(super) type RankedPages = BestItems<(u64, PageId)>;

/// Returns the pages, best first.
pub(super) fn pages_of_best(best: RankedPages) -> Vec<PageId> {
    let best = best.finish(Ord::cmp).into_iter();
    best.map(|(_, page)| page).collect()
}

/// Returns the `n` pages of best rank among those for which `may_be` is true.
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

impl LevelRanking {
    /// Returns the `n` most important pages of each of these sites, best first; [`Error::Usage`] if pages are ranked.
    /// Determines the sites of pages, if they are not known yet, within `memory` bytes.
    pub fn best_pages(
        &self,
        sites: &[PageId],
        n: usize,
        memory: Option<u64>,
    ) -> Result<Vec<Vec<SitePage>>> {
        if self.level().is_page() {
            return Err(Error::Usage(
                "`best` lists pages of sites: give a `level` of sites".into(),
            ));
        }
        let found;
        let column = match self.sites() {
            Some(sites) => sites,
            None => {
                found = self.snapshot().sites(self.level(), memory)?;
                &found
            }
        };
        let places = sites.iter().zip(0..);
        let places: HashMap<usize, usize> =
            places.map(|(site, at)| (site.0 as usize, at)).collect();
        let mut best = vec![RankedPages::new(n); sites.len()];
        let ranks = self.snapshot().columns.column_blocks(SnapshotColumn::Rank);
        for (page, rank) in flat(ranks).enumerate() {
            let rank = rank?;
            let site = column.site(page);
            if let Some(&at) = site.and_then(|site| places.get(&site)) {
                best[at].add((rank, PageId(page as u64)), Ord::cmp);
            }
        }
        let best: Vec<_> = best.into_iter().map(pages_of_best).collect();
        // All sites at once: each block of columns and of names is read once.
        let numbers = best.concat();
        let pages = self.snapshot().named_pages(&numbers)?.into_iter();
        let mut pages = pages.map(|page| SitePage {
            rank: page.rank,
            importance: page.importance,
            url: page.url.into_owned(),
            state: page.state,
        });
        let of_site = |best: &Vec<_>| pages.by_ref().take(best.len()).collect();
        Ok(best.iter().map(of_site).collect())
    }
}
