//! The most important pages of some sites: one sweep over the ranks of all pages, and one read of the selected pages.

use std::collections::HashMap;

use super::levels::{Best, is_better, keep};
use super::{LevelRanking, SnapshotColumn};
use crate::engine::PageId;
use crate::model::SitePage;
use crate::sites::Sites;
use crate::{Error, Result};

impl LevelRanking {
    /// Returns the `n` most important pages of each of these sites, best first. Determines the sites of pages, if they
    /// are not known yet, within `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Usage`] if pages are ranked.
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
        let best = self.best_of(column, sites, n)?.into_iter();
        let best: Vec<_> = best.map(Best::into_sorted_vec).collect();
        // All sites at once: each block of columns and of names is read once.
        let numbers: Vec<PageId> = best.iter().flatten().map(|page| page.1).collect();
        let ranks = self.snapshot().ranks_of(&numbers)?;
        let named = ranks.into_iter().zip(self.snapshot().names_of(&numbers)?);
        let known = named.zip(self.snapshot().states_of(&numbers)?);
        let mut pages = known.map(|(((rank, importance), url), state)| SitePage {
            rank,
            importance,
            url,
            state,
        });
        let of_site = |best: &Vec<_>| pages.by_ref().take(best.len()).collect();
        Ok(best.iter().map(of_site).collect())
    }

    fn best_of(&self, column: &Sites, sites: &[PageId], n: usize) -> Result<Vec<Best>> {
        let places = sites.iter().enumerate();
        let places: HashMap<usize, usize> =
            places.map(|(at, site)| (site.0 as usize, at)).collect();
        let mut best = vec![Best::new(); sites.len()];
        let columns = &self.snapshot().columns;
        let mut page = 0;
        for block in 0..columns.blocks() {
            for rank in columns.column(block, SnapshotColumn::Rank)? {
                let candidate = (rank, PageId(page));
                let site = column.site(page as usize);
                page += 1;
                let Some(best) = site
                    .and_then(|site| places.get(&site))
                    .map(|&at| &mut best[at])
                else {
                    continue;
                };
                if is_better(best, n, candidate) {
                    keep(best, n, candidate);
                }
            }
        }
        Ok(best)
    }
}
