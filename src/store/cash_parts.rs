//! The cash of all partitions of a state, in the order of all pages: as one store would have it, a chunk at a time.
//!
//! A partition's pages ascend in that order, so whoever goes through it once reads each of its chunks once: the last one of
//! each partition, and of each mark that is read with it, stays in memory. What waits inside an epoch to cross to another
//! partition counts as the cash of its page there. That of partitions of other processes is asked for.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::View;
use super::elsewhere::Asked;
use super::manifest::unpacked;
use super::view_parts::{GhostLog, PartAt, ViewParts};
use crate::engine::{CHUNK_PAGES, HistoryView, age_at};
use crate::rows::Ghost;
use crate::{Error, Result};

/// Pages of a partition in a chunk of all: the place there, and the number in the partition, both ascending.
type Placed = Vec<(u32, u32)>;
/// Pages of a partition for which others have something, and units.
type Waiting = Vec<(u32, u64)>;

/// Ghosts of a partition whose cash is looked at at a time.
const AT_A_TIME: u64 = 1 << 20;

/// See the head of the file.
#[derive(Default)]
pub(super) struct PartCash {
    /// By partition, in the order of pages.
    waiting: OnceLock<Vec<Waiting>>,
    held: Mutex<Held>,
}

/// What was read last.
#[derive(Default)]
struct Held {
    /// The pages of the chunk of all that begins with a page, by partition.
    pages: Option<(u64, Vec<Placed>)>,
    /// The last chunk of a partition's cash, or of one of its marks.
    chunks: HashMap<(Option<u64>, usize), Chunk>,
}

/// Cells, and of cash ages, from page `first` on.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Chunk {
    first: Option<u64>,
    cells: Vec<u64>,
    ages: Vec<u8>,
}

impl Chunk {
    /// Reads the chunk that has a page, of a partition or of one of its marks, unless it is there.
    fn bring(&mut self, part: PartAt<'_>, mark: Option<u64>, page: u64) -> Result<u64> {
        let first = page - page % CHUNK_PAGES;
        if self.first == Some(first) {
            return Ok(first);
        }
        match part {
            PartAt::Here(view) => self.read(view, mark, page)?,
            PartAt::Elsewhere(number, ask) => {
                *self = unpacked(&ask(number, Asked::Cash { mark, page })?)?;
                let len = self.cells.len() as u64;
                let ages = self.ages.len() as u64;
                let is_it = self.first == Some(first) && page - first < len;
                if !is_it || mark.is_none() && ages != len.div_ceil(2) {
                    return Err(Error::internal(
                        "a process sent other cash than was asked for",
                    ));
                }
            }
        }
        Ok(first)
    }

    /// The same of a partition that is here.
    fn read(&mut self, view: &View, mark: Option<u64>, page: u64) -> Result<()> {
        let first = page - page % CHUNK_PAGES;
        let known = match mark {
            None => Some(view.state().totals.pages),
            Some(number) => {
                let mut marks = view.marks().iter();
                let mark = marks.find(|mark| mark.number == number);
                mark.map(|mark| mark.totals.pages)
            }
        };
        let len = known.and_then(|known| known.checked_sub(first));
        let len = len.filter(|&len| len > page - first);
        let len = len.ok_or_else(|| {
            let what = format!("its cash, or a mark, ends before page {page}");
            Error::damaged(view.dir().join("store.redb"), what)
        })?;
        let len = len.min(CHUNK_PAGES) as usize;
        self.first = None;
        self.cells.resize(len, 0);
        match mark {
            None => {
                self.ages.resize(len.div_ceil(2), 0);
                view.chunk(first, &mut self.cells, &mut self.ages)?;
            }
            Some(number) => view.mark_cells(number, first, &mut self.cells)?,
        }
        self.first = Some(first);
        Ok(())
    }
}

impl View {
    /// The chunk of the cash of this partition that has a page, or of one of its marks.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn cash_chunk(&self, mark: Option<u64>, page: u64) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        chunk.read(self, mark, page)?;
        Ok(chunk)
    }

    /// What this partition, which has these ghosts, has of the cash of [`AT_A_TIME`] of them, from one on: by whose they are.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn waiting(&self, ghosts: &GhostLog, first: u64) -> Result<Vec<Waiting>> {
        let mut waiting = Vec::new();
        waiting.resize_with(self.settings().partitions.count as usize, Waiting::new);
        let paid = self.state().totals.paid;
        let mut chunk = Chunk::default();
        for Ghost { page, owner, at } in ghosts.read_some(first, AT_A_TIME)? {
            let first = chunk.bring(PartAt::Here(self), None, page.into())?;
            let cell = chunk.cells[(u64::from(page) - first) as usize];
            let units = cell.wrapping_add(paid);
            if units > 0 {
                let owner = waiting.get_mut(owner as usize);
                let owner = owner.ok_or_else(|| Error::internal("a ghost is of no partition"))?;
                owner.push((at, units));
            }
        }
        Ok(waiting)
    }
}

impl ViewParts {
    /// See [`HistoryView::chunk`].
    pub(super) fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let waiting = self.waiting()?;
        ages.fill(0);
        self.gather(first, None, cells.len(), |owner, pages, chunk, part| {
            let waiting = waiting.get(owner).map_or(&[][..], |waiting| waiting);
            let from = pages.first().map_or(0, |&(_, at)| at);
            let mut waiting = waiting[waiting.partition_point(|&(at, _)| at < from)..].iter();
            let mut next = waiting.next();
            for &(place, at) in pages {
                let begins = chunk.bring(part, None, at.into())?;
                let here = u64::from(at) - begins;
                let mut cell = chunk.cells[here as usize];
                while let Some(&(page, units)) = next.filter(|(page, _)| *page <= at) {
                    if page == at {
                        cell = cell.wrapping_add(units);
                    }
                    next = waiting.next();
                }
                cells[place as usize] = cell;
                ages[place as usize / 2] |= age_at(&chunk.ages, here) << (place % 2 * 4);
            }
            Ok(())
        })
    }

    /// See [`HistoryView::mark_cells`].
    pub(super) fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()> {
        self.gather(first, Some(mark), out.len(), |_, pages, chunk, part| {
            for &(place, at) in pages {
                let begins = chunk.bring(part, Some(mark), at.into())?;
                out[place as usize] = chunk.cells[(u64::from(at) - begins) as usize];
            }
            Ok(())
        })
    }

    /// Calls `take` with each partition's number, its pages among the first `len` of the chunk of all that begins with page
    /// `first`, what was read last of it, and where it is.
    fn gather(
        &self,
        first: u64,
        mark: Option<u64>,
        len: usize,
        mut take: impl FnMut(usize, &[(u32, u32)], &mut Chunk, PartAt<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut held = self.cash.held.lock();
        let held = held.as_deref_mut();
        let held = held.map_err(|_| Error::internal("reading cash failed before"))?;
        let Held { pages, chunks } = held;
        if pages.as_ref().is_none_or(|(of, _)| *of != first) {
            *pages = Some((first, self.pages_of(first)?));
        }
        let by_part = pages.iter().flat_map(|(_, pages)| pages);
        for (owner, all) in by_part.enumerate() {
            let known = all.partition_point(|&(place, _)| (place as usize) < len);
            let chunk = chunks.entry((mark, owner)).or_default();
            take(owner, &all[..known], chunk, self.part_at(owner)?)?;
        }
        Ok(())
    }

    /// The pages of the chunk that begins with page `first`, by partition.
    fn pages_of(&self, first: u64) -> Result<Vec<Placed>> {
        let mut pages = vec![Placed::new(); self.seen.len()];
        let entries = self.order.entries(first)?.take(CHUNK_PAGES as usize);
        for (place, address) in (0..).zip(entries) {
            let Ghost { page, owner, at } = address?;
            let part = pages.get_mut(owner as usize);
            let part = part.filter(|part| part.last().is_none_or(|&(_, last)| last < at));
            part.ok_or_else(|| self.order.nowhere(page))?
                .push((place, at));
        }
        Ok(pages)
    }

    /// What waits in each partition to cross, by whose it is.
    fn waiting(&self) -> Result<&[Waiting]> {
        if let Some(waiting) = self.cash.waiting.get() {
            return Ok(waiting);
        }
        let mut waiting = vec![Waiting::new(); self.seen.len()];
        for (number, seen) in self.seen.iter().enumerate() {
            for first in (0..seen.published.ghosts.count).step_by(AT_A_TIME as usize) {
                let its: Vec<Waiting> = match self.part_at(number)? {
                    PartAt::Here(view) => view.waiting(self.ghosts_of(number)?, first)?,
                    PartAt::Elsewhere(number, ask) => {
                        unpacked(&ask(number, Asked::Waiting { first })?)?
                    }
                };
                for (all, its) in waiting.iter_mut().zip(its) {
                    all.extend(its);
                }
            }
        }
        for all in &mut waiting {
            all.sort_unstable();
        }
        Ok(self.cash.waiting.get_or_init(|| waiting))
    }

    /// Forgets what was read, which was somewhere else.
    pub(super) fn forget_cash(&mut self) {
        let held = self.cash.held.get_mut();
        *held.unwrap_or_else(PoisonError::into_inner) = Held::default();
    }
}
