//! The partitions of a committed state, for reading: how they hang together, and what they come to.

use std::path::PathBuf;
use std::sync::Arc;

use super::addresses::{ADDRESSES, Addresses, GHOSTS};
use super::all::{PublishedPart, PublishedParts};
use super::base::{CommittedBase, OwedBase};
use super::elsewhere::{AskHistory, PartSeen};
use super::rows::{CommittedRows, KeptRows, Retention};
use super::{SettledBase, View};
use crate::disk::Disk;
use crate::engine::{Row, Totals};
use crate::rows::Ghost;
use crate::{Error, Result};

/// The partitions of a state, and what all of them are together.
pub(super) struct ViewParts {
    /// Those that this process has,
    pub views: Vec<View>,
    /// and their numbers.
    pub here: Vec<usize>,
    /// What all of them say.
    pub seen: Vec<PartSeen>,
    /// Reads the history of those that others have.
    pub ask: Option<AskHistory>,
    /// By partition: the number of each of its own pages among all. They ascend.
    pub numbers: Vec<Vec<u32>>,
    pub totals: Totals,
    pub retention: Retention,
    /// What a snapshot is read with.
    published: PublishedParts,
    /// The partition of each page, and its number there.
    places: Arc<[(u32, u32)]>,
    pub ghosts: Vec<Arc<[Ghost]>>,
    /// The logs that this was read from.
    pub order: Addresses,
    pub ghost_logs: Vec<Addresses>,
}

/// What is settled of a state: one block, or one for each partition.
pub(crate) struct ViewBlocks {
    pub blocks: Vec<RowBlock>,
    /// The block of each page, and its number there; `None`: there is one block.
    pub places: Option<Arc<[(u32, u32)]>>,
}

/// Rows, in numbers of a block's own, and those of its numbers that are pages of others.
pub(crate) struct RowBlock {
    pub rows: KeptRows,
    pub ghosts: Arc<[Ghost]>,
}

impl RowBlock {
    /// How many of its first so many pages are ghosts.
    pub fn ghosts_of_first(&self, pages: u64) -> u64 {
        first(&self.ghosts, pages) as u64
    }

    /// When the block had so many pages, and these rows.
    fn of_first(rows: KeptRows, pages: u64, ghosts: &Arc<[Ghost]>) -> RowBlock {
        let first = first(ghosts, pages);
        let ghosts = if first == ghosts.len() {
            ghosts.clone()
        } else {
            ghosts[..first].into()
        };
        RowBlock { rows, ghosts }
    }
}

/// How many of a block's first so many pages are ghosts, which are in ascending order.
fn first(ghosts: &[Ghost], pages: u64) -> usize {
    ghosts.partition_point(|ghost| u64::from(ghost.page) < pages)
}

impl View {
    /// Of a store with partitions: with the states of these that belong to this one.
    ///
    /// # Errors
    /// The orders of pages and ghosts are damaged or cannot be read.
    pub(crate) fn with_parts(self, disk: &dyn Disk, views: Vec<View>) -> Result<View> {
        let here = (0..views.len()).collect();
        let seen = views.iter().map(View::seen).collect();
        self.with_some_parts(disk, (here, views), seen, None)
    }

    /// The same where this process has some of them, with these numbers, and others have the rest.
    ///
    /// # Errors
    /// Those of [`View::with_parts`].
    pub(crate) fn with_some_parts(
        mut self,
        disk: &dyn Disk,
        (here, mut views): (Vec<usize>, Vec<View>),
        seen: Vec<PartSeen>,
        ask: Option<AskHistory>,
    ) -> Result<View> {
        for (view, &number) in views.iter_mut().zip(&here) {
            let Some(state) = self.manifest.bases.get(number) else {
                continue;
            };
            let open = |named: &CommittedBase| {
                SettledBase::open(disk, &view.dir, view.manifest.identity, named, false)
            };
            view.base = state.base.as_ref().map(open);
        }
        let published = PublishedParts {
            addresses: self.manifest.parts.log,
            parts: seen.iter().map(|part| part.published.clone()).collect(),
        };
        let addresses = Addresses::open(disk, &self.dir, ADDRESSES, published.addresses)?;
        let mut places = Vec::with_capacity(published.addresses.count as usize);
        let pages = published.parts.iter().map(|part| part.pages);
        let numbers = addresses.numbers(pages, |owner, at| places.push((owner, at)))?;
        let mut ghosts = Vec::with_capacity(views.len());
        let mut ghost_logs = Vec::with_capacity(views.len());
        for view in &views {
            ghosts.push(view.ghosts(disk)?);
            ghost_logs.push(view.ghost_log(disk)?);
        }
        let totals = Totals {
            pages: published.addresses.count,
            visits: seen.iter().map(|part| part.visits).sum(),
            ..self.manifest.engine.totals
        };
        self.parts = Some(Box::new(ViewParts {
            retention: published.retention(),
            views,
            here,
            seen,
            ask,
            numbers,
            totals,
            published,
            places: places.into(),
            ghosts,
            order: addresses,
            ghost_logs,
        }));
        Ok(self)
    }

    /// Returns whether it is of a store with partitions.
    pub(crate) fn has_partitions(&self) -> bool {
        self.settings().partitions.split().is_some()
    }

    /// Pages that settling has to go over: those of all partitions, with what each knows of others.
    pub fn settled_pages(&self) -> u64 {
        self.settled_pages_of(&|_| true)
    }

    /// The same of some of the partitions, by number.
    pub(crate) fn settled_pages_of(&self, has: &dyn Fn(usize) -> bool) -> u64 {
        match &self.parts {
            None => self.manifest.engine.totals.pages,
            Some(parts) => {
                let all = parts.seen.iter().enumerate();
                let those = all.filter(|(number, _)| has(*number));
                those.map(|(_, part)| part.published.pages).sum()
            }
        }
    }

    /// How many partitions there are; 0 in a store without.
    pub fn partitions(&self) -> usize {
        self.manifest.parts.generations.len()
    }

    /// What processes that work on this state together must have in common: a hash of what the store's commit says, with the
    /// sums of its partitions, except for bases.
    ///
    /// # Errors
    /// That of [`Manifest::digest`](super::manifest::Manifest::digest).
    pub fn digest(&self) -> Result<u128> {
        self.manifest.digest()
    }

    /// The pages of other partitions that the rows of this one link to.
    pub(super) fn ghosts(&self, disk: &dyn Disk) -> Result<Arc<[Ghost]>> {
        self.ghost_log(disk)?.entries(0)?.collect()
    }

    fn ghost_log(&self, disk: &dyn Disk) -> Result<Addresses> {
        Addresses::open(disk, &self.dir, GHOSTS, self.manifest.parts.log)
    }

    pub(super) fn published(&self) -> PublishedPart {
        PublishedPart {
            pages: self.manifest.engine.totals.pages,
            names: self.manifest.names,
            ghosts: self.manifest.parts.log,
            rows: *self.rows_retention(),
        }
    }

    /// What a snapshot of this state is read with, if there are partitions.
    pub(crate) fn published_parts(&self) -> Option<PublishedParts> {
        self.parts.as_ref().map(|parts| parts.published.clone())
    }

    /// Those of these blocks that this process has, with the pages of each that are others'.
    fn own_views(
        &self,
        has: &dyn Fn(usize) -> bool,
    ) -> impl Iterator<Item = (usize, &View, Arc<[Ghost]>)> {
        let here = self.parts.as_ref().map_or(&[0][..], |parts| &parts.here);
        let views = here.iter().copied().zip(self.settled_views());
        let all = views.zip(self.settled_ghosts());
        let all = all.map(|((number, view), ghosts)| (number, view, ghosts));
        all.filter(|(number, ..)| has(*number))
    }

    /// Where the bases of these blocks are kept, and what they are of.
    pub(crate) fn homes(&self, has: &dyn Fn(usize) -> bool) -> Vec<(PathBuf, u64)> {
        let own = self.own_views(has);
        own.map(|(_, view, _)| (view.dir.clone(), view.identity()))
            .collect()
    }

    /// The pages and rows of each block; `None`: some has no rows.
    pub(crate) fn settled_rows(&self) -> Option<Vec<(u64, CommittedRows)>> {
        match &self.parts {
            None => {
                let rows = self.rows_retention().kept()?;
                Some(vec![(self.manifest.engine.totals.pages, *rows)])
            }
            Some(parts) => {
                let all = parts.seen.iter().map(|part| &part.published);
                all.map(|part| Some((part.pages, *part.rows.kept()?)))
                    .collect()
            }
        }
    }

    /// Those of which each is settled as a block, as far as this process has them: the partitions, or the state itself.
    pub(crate) fn settled_views(&self) -> &[View] {
        let parts = self.parts.as_ref();
        parts.map_or(std::slice::from_ref(self), |parts| &parts.views)
    }

    /// The ghosts of each.
    fn settled_ghosts(&self) -> Vec<Arc<[Ghost]>> {
        let parts = self.parts.as_ref();
        parts.map_or_else(|| vec![Arc::default()], |parts| parts.ghosts.clone())
    }

    /// What is settled of it.
    ///
    /// # Errors
    /// As of [`View::rows`].
    pub(crate) fn blocks(&self) -> Result<ViewBlocks> {
        self.some_blocks(&|_| true)
    }

    /// The same with some of the blocks only, by number.
    ///
    /// # Errors
    /// As of [`View::rows`].
    pub(crate) fn some_blocks(&self, has: &dyn Fn(usize) -> bool) -> Result<ViewBlocks> {
        let blocks = self.own_views(has).map(|(_, view, ghosts)| {
            let rows = view.rows()?;
            Ok(RowBlock { rows, ghosts })
        });
        Ok(ViewBlocks {
            blocks: blocks.collect::<Result<_>>()?,
            places: self.parts.as_ref().map(|parts| parts.places.clone()),
        })
    }

    /// What was there to settle in these blocks when bases were owed, one for each block there is.
    ///
    /// # Errors
    /// Those of reading rows.
    pub(crate) fn blocks_of(
        &self,
        disk: &dyn Disk,
        owed: &[OwedBase],
        has: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<RowBlock>> {
        let blocks = self.own_views(has).filter_map(|(number, view, ghosts)| {
            let owed = owed.get(number)?;
            Some(view.block_of(disk, owed, &ghosts))
        });
        blocks.collect()
    }

    /// What was there to settle in this block when a base was owed.
    pub(super) fn block_of(
        &self,
        disk: &dyn Disk,
        owed: &OwedBase,
        ghosts: &Arc<[Ghost]>,
    ) -> Result<RowBlock> {
        let rows = self.rows_of(disk, owed)?;
        Ok(RowBlock::of_first(rows, owed.pages, ghosts))
    }

    /// What these bases were settled over, one for each block.
    ///
    /// # Errors
    /// Those of reading rows.
    pub(crate) fn blocks_of_bases(&self, bases: &[&SettledBase]) -> Result<Vec<RowBlock>> {
        let bases = bases.iter().zip(self.settled_ghosts());
        let blocks = bases.map(|(base, ghosts)| {
            let pages = base.file.head.totals.pages;
            Ok(RowBlock::of_first(base.rows()?, pages, &ghosts))
        });
        blocks.collect()
    }

    /// Bases that were written beside the run, one for each of these blocks; `named`: those of all.
    ///
    /// # Errors
    /// One cannot be used, and why.
    pub(crate) fn bases_beside(
        &self,
        disk: &dyn Disk,
        named: &[CommittedBase],
        has: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<SettledBase>> {
        let bases = self.own_views(has).filter_map(|(number, view, _)| {
            let named = named.get(number)?;
            Some(SettledBase::open(
                disk,
                &view.dir,
                view.manifest.identity,
                named,
                true,
            ))
        });
        bases.collect()
    }

    /// The settled base of each block, if the commit has them.
    ///
    /// # Errors
    /// One cannot be used, and why.
    pub(crate) fn bases(&self) -> Result<Option<Vec<&SettledBase>>> {
        self.some_bases(&|_| true)
    }

    /// The same of some of the blocks only, by number.
    ///
    /// # Errors
    /// One of them cannot be used, and why.
    pub(crate) fn some_bases(
        &self,
        has: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Vec<&SettledBase>>> {
        let bases = self.own_views(has).map(|(_, view, _)| view.base());
        let bases: Option<Vec<_>> = bases.collect();
        bases.map(|bases| bases.into_iter().collect()).transpose()
    }

    /// The settled bases that the commit names, one for each block, if there is one for each.
    pub(crate) fn named_bases(&self) -> Option<Vec<CommittedBase>> {
        match &self.parts {
            None => Some(vec![self.manifest.base.base?]),
            Some(parts) => {
                let named = self.manifest.bases.iter().map(|state| state.base);
                let named: Vec<CommittedBase> = named.collect::<Option<_>>()?;
                (named.len() == parts.seen.len()).then_some(named)
            }
        }
    }

    /// Gives rows of a partition's history the numbers of all pages. Those of ghosts, which were never visited but whose
    /// cash was recycled, are left out.
    pub(super) fn number(&self, numbers: &[u32], rows: &mut Vec<Row>) -> Result<()> {
        let mut lost = None;
        rows.retain_mut(|row| match numbers.get(row.page as usize) {
            Some(&number) if number != u32::MAX => {
                row.page = number.into();
                true
            }
            _ => {
                lost = lost.or((row.visits > 0).then_some(row.page));
                false
            }
        });
        match lost {
            None => Ok(()),
            Some(page) => Err(Error::damaged(
                self.dir.join("store.redb"),
                format!("history of page {page}, which is another partition's"),
            )),
        }
    }
}
