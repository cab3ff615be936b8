//! The partitions of a committed state, for reading: how they hang together, and what they come to.

use std::path::PathBuf;
use std::sync::Arc;

use super::addresses::{ADDRESSES, Addresses, GHOSTS};
use super::all::{PublishedPart, PublishedParts};
use super::base::{CommittedBase, OwedBase, OwedGoal};
use super::cash_parts::PartCash;
use super::elsewhere::{Ask, PartSeen};
use super::rows::{CommittedRows, KeptRows, Retention};
use super::{SettledBase, View};
use crate::disk::Disk;
use crate::engine::Totals;
use crate::rows::{Ghost, Ghosts};
use crate::{Error, Result};

/// The partitions of a state, and what all of them are together.
pub(super) struct ViewParts {
    /// Those that this process has,
    pub views: Vec<View>,
    /// and their numbers.
    pub here: Vec<usize>,
    /// What all of them say.
    pub seen: Vec<PartSeen>,
    /// Asks for what is read of those that others have.
    pub ask: Option<Ask>,
    pub totals: Totals,
    pub retention: Retention,
    /// What a snapshot is read with.
    published: PublishedParts,
    /// The partition of each page, and its number there.
    pub order: Arc<Addresses>,
    pub ghosts: Vec<GhostLog>,
    /// Their cash, where it crosses from one to another.
    pub cash: PartCash,
}

/// Where a partition of a state is read.
#[derive(Clone, Copy)]
pub(super) enum PartAt<'v> {
    /// By this process.
    Here(&'v View),
    /// By the process that has the partition of this number.
    Elsewhere(usize, &'v Ask),
}

impl ViewParts {
    /// Where a partition is read.
    pub fn part_at(&self, number: usize) -> Result<PartAt<'_>> {
        match (self.place(number), &self.ask) {
            (Some(at), _) => Ok(PartAt::Here(&self.views[at])),
            (None, Some(ask)) => Ok(PartAt::Elsewhere(number, ask)),
            (None, None) => Err(Error::internal("a partition is nowhere")),
        }
    }

    /// The ghosts of a partition that this process has.
    pub fn ghosts_of(&self, number: usize) -> Result<&GhostLog> {
        let ghosts = self.place(number).and_then(|at| self.ghosts.get(at));
        ghosts.ok_or_else(|| Error::internal("a partition is not here"))
    }

    /// Where it is among those of this process.
    fn place(&self, number: usize) -> Option<usize> {
        let at = self.here.binary_search(&number).ok()?;
        (at < self.views.len()).then_some(at)
    }
}

/// What is settled of a state: one block, or one for each partition.
pub(crate) struct ViewBlocks {
    pub blocks: Vec<RowBlock>,
    /// The block of each page, and its number there; `None`: there is one block.
    pub order: Option<Arc<Addresses>>,
}

/// Rows, in numbers of a block's own, and those of its numbers that are pages of others.
pub(crate) struct RowBlock {
    pub rows: KeptRows,
    pub ghosts: GhostLog,
}

/// The first ghosts in a log of them; the default has none.
#[derive(Clone, Default)]
pub(crate) struct GhostLog {
    log: Option<Arc<Addresses>>,
    count: u64,
}

impl GhostLog {
    fn new(log: Addresses) -> GhostLog {
        GhostLog {
            count: log.count,
            log: Some(Arc::new(log)),
        }
    }

    /// Those among the first so many pages of their partition.
    pub fn of_first(&self, pages: u64) -> Result<GhostLog> {
        let (mut low, mut high) = (0, self.count);
        let mut held = None;
        while let Some(log) = &self.log
            && low < high
        {
            let mid = low + (high - low) / 2;
            if u64::from(log.get(mid, &mut held)?.page) < pages {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        Ok(GhostLog {
            count: low,
            ..self.clone()
        })
    }

    /// So many at most, from one on.
    pub(super) fn read_some(&self, first: u64, most: u64) -> Result<Vec<Ghost>> {
        let count = self.count.saturating_sub(first).min(most) as usize;
        let Some(log) = self.log.as_ref().filter(|_| count > 0) else {
            return Ok(Vec::new());
        };
        let mut ghosts = Vec::with_capacity(count);
        for ghost in log.entries(first)?.take(count) {
            ghosts.push(ghost?);
        }
        Ok(ghosts)
    }

    /// Checks the index of the log.
    pub(super) fn verify_index(&self) -> Result<()> {
        let mut log = self.log.iter();
        log.try_for_each(|log| log.verify_index())
    }
}

impl Ghosts for GhostLog {
    fn count(&self) -> u64 {
        self.count
    }

    fn read(&self) -> Result<Vec<Ghost>> {
        self.read_some(0, self.count)
    }
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
        ask: Option<Ask>,
    ) -> Result<View> {
        for (view, &number) in views.iter_mut().zip(&here) {
            let Some(state) = self.manifest.bases.get(number) else {
                continue;
            };
            let base = state.base.as_ref();
            view.base = base.map(|named| view.open_base(disk, named, false));
        }
        let published = PublishedParts {
            addresses: self.manifest.parts.log,
            parts: seen.iter().map(|part| part.published.clone()).collect(),
        };
        let order = Addresses::open(disk, &self.dir, ADDRESSES, published.addresses)?;
        let ghosts = views.iter().map(|view| view.ghosts(disk));
        let ghosts = ghosts.collect::<Result<_>>()?;
        let parts = seen.iter().map(|part| &part.totals);
        let totals = Totals {
            pages: published.addresses.count,
            visits: parts.clone().map(|part| part.visits).sum(),
            ..self.manifest.engine.totals
        };
        let totals = if self.has_cash() {
            totals.with_parts(parts)
        } else {
            totals
        };
        self.parts = Some(Box::new(ViewParts {
            retention: published.retention(),
            views,
            here,
            seen,
            ask,
            totals,
            published,
            order: Arc::new(order),
            ghosts,
            cash: PartCash::default(),
        }));
        Ok(self)
    }

    /// Returns whether it is of a store with partitions.
    pub(crate) fn has_partitions(&self) -> bool {
        self.settings().partitions.split().is_some()
    }

    /// Returns whether importance can be read from the cash of its pages: it reaches all that they link to.
    pub(crate) fn has_cash(&self) -> bool {
        let partitions = self.settings().partitions;
        partitions.split().is_none() || partitions.epoch.is_some()
    }

    /// Pages that settling has to go over: those of all partitions, with what each knows of others.
    pub fn settled_pages(&self) -> u64 {
        self.block_pages().iter().map(|(pages, _)| pages).sum()
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
    pub(super) fn ghosts(&self, disk: &dyn Disk) -> Result<GhostLog> {
        let log = Addresses::open(disk, &self.dir, GHOSTS, self.manifest.parts.log)?;
        Ok(GhostLog::new(log))
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
    ) -> impl Iterator<Item = (usize, &View, GhostLog)> {
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
    fn settled_ghosts(&self) -> Vec<GhostLog> {
        let parts = self.parts.as_ref();
        parts.map_or_else(|| vec![GhostLog::default()], |parts| parts.ghosts.clone())
    }

    /// Pages that each of all blocks knows, and how many of them are ghosts.
    pub(crate) fn block_pages(&self) -> Vec<(u64, u64)> {
        match &self.parts {
            None => vec![(self.manifest.engine.totals.pages, 0)],
            Some(parts) => {
                let all = parts.seen.iter().map(|part| &part.published);
                all.map(|part| (part.pages, part.ghosts.count)).collect()
            }
        }
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
            order: self.parts.as_ref().map(|parts| parts.order.clone()),
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
        ghosts: &GhostLog,
    ) -> Result<RowBlock> {
        Ok(RowBlock {
            rows: self.rows_of(disk, owed)?,
            ghosts: ghosts.of_first(owed.pages)?,
        })
    }

    /// What these bases were settled over, one for each block.
    ///
    /// # Errors
    /// Those of reading rows.
    pub(crate) fn blocks_of_bases(&self, bases: &[&SettledBase]) -> Result<Vec<RowBlock>> {
        let bases = bases.iter().zip(self.settled_ghosts());
        let blocks = bases.map(|(base, ghosts)| {
            Ok(RowBlock {
                rows: base.rows()?,
                ghosts: ghosts.of_first(base.file.head.totals.pages)?,
            })
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
            Some(view.open_base(disk, named, true))
        });
        bases.collect()
    }

    /// A base of this state of this name, which a commit has, or that is `beside` the run.
    pub(super) fn open_base(
        &self,
        disk: &dyn Disk,
        named: &CommittedBase,
        beside: bool,
    ) -> Result<SettledBase> {
        SettledBase::open(disk, &self.dir, self.manifest.identity, named, beside)
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

    /// The bases that the commit owes, one for each block, if it does, and how near they are to be settled, if it says so.
    pub(crate) fn owed_bases(&self) -> Option<(Vec<OwedBase>, Option<OwedGoal>)> {
        let owed = self.manifest.all_bases().iter().map(|state| state.owed);
        let owed: Vec<OwedBase> = owed.collect::<Option<_>>()?;
        let blocks = self.partitions().max(1);
        (owed.len() == blocks).then_some((owed, self.manifest.goal))
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
}
