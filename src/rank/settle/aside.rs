//! Blocks that take turns: what they have lies aside, in a file without a name, while others are in memory, and so does what
//! they hand on to each other.
//!
//! ```text
//! state   of each block: X i64 and D i64 of each page of its own | streaks i8 of these | costs u8 of all its pages
//! mail    what one block has for another, packed (see `mail`); of one sweep
//! ```
//! Ghosts have nothing once what is for them was sent. What a block has is read whole for a sweep; to deliver mail and to weigh,
//! without X and streaks. So a visit of pages without links, which comes between, is made of D alone, and is made up for when
//! the block is whole: until then it [waits](Elsewhere::visit_dangling). The sums of X and D are kept, and what is read is checked
//! against them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::block::{Block, Dangling, Sums};
use super::ghosts::ByOwner;
use super::ledger::Part;
use super::worth::{Cost, GHOST};
use crate::disk::{Disk, Nameless};
use crate::memory::in_memory;
use crate::rank::Teleport;
use crate::{Error, Result};

/// Bytes of memory that a ghost takes beside those of a page while its block is in memory: as it is read, and put in order, and
/// what is for it. The allocator keeps the first for the next block.
pub(crate) const A_GHOST: u64 = 12 + 8 + 8;
/// Cells that are read or written at a time where ghosts lie between them.
const CELLS: usize = 1 << 16;

/// How many blocks are in memory at a time, and the files for the others.
#[derive(Debug, Clone)]
pub struct Turns {
    resident: usize,
    files: Arc<Files>,
}

#[derive(Debug)]
struct Files {
    state: Nameless,
    mail: Nameless,
    /// Where the next mail goes.
    end: AtomicU64,
}

impl Turns {
    /// So many blocks at a time. The files have names that begin like `path` until they are there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(disk: &dyn Disk, path: &Path, resident: usize) -> Result<Turns> {
        let file = |end| Nameless::create(disk, &path.with_extension(end));
        let files = Files {
            state: file("state.tmp")?,
            mail: file("mail.tmp")?,
            end: AtomicU64::new(0),
        };
        Ok(Turns {
            resident: resident.max(1),
            files: Arc::new(files),
        })
    }

    /// How many of so many blocks stay in memory all the time, and how many others are there at a time, on so many threads.
    pub(super) fn of(&self, blocks: usize, threads: usize) -> (usize, usize) {
        in_memory(self.resident, blocks, threads)
    }

    /// How many blocks are in memory at a time.
    pub(crate) fn resident(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.resident)
    }

    pub(super) fn aside(&self) -> Aside {
        Aside(self.files.clone())
    }
}

/// The files.
#[derive(Clone)]
pub(super) struct Aside(Arc<Files>);

impl Aside {
    /// Puts mail there. Where.
    pub fn post(&self, mail: &[u8]) -> Result<u64> {
        let at = self.0.end.fetch_add(mail.len() as u64, Ordering::Relaxed);
        self.0.mail.write(mail, at)?;
        Ok(at)
    }

    /// The mail there, and where it was.
    pub fn take(aside: Option<&Aside>, at: u64, len: usize) -> Result<(Vec<u8>, &Aside)> {
        let aside = aside.ok_or_else(|| Error::internal("mail lies nowhere"))?;
        let mut mail = vec![0; len];
        aside.0.mail.read(&mut mail, at)?;
        Ok((mail, aside))
    }

    /// All mail was delivered.
    pub fn clear_mail(&self) -> Result<()> {
        self.0.end.store(0, Ordering::Relaxed);
        self.0.mail.clear()
    }

    /// What is read is not what was written.
    pub fn damaged(&self) -> Error {
        self.0.state.damaged()
    }
}

/// What of a block is read, and then written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// All, and it changes.
    All,
    /// All.
    Read,
    /// D and costs, and D changes.
    Accounts,
    /// D and costs.
    Weigh,
}

impl Use {
    fn is_whole(self) -> bool {
        matches!(self, Use::All | Use::Read)
    }
}

/// A block that lies aside.
pub(super) struct Elsewhere {
    pages: u64,
    /// Pages of its own.
    own: u64,
    /// Where it is in the file.
    offset: u64,
    teleport: Teleport,
    /// Nothing was written yet: it has nothing.
    is_new: bool,
    /// Pages without links were visited, with this for each, since X was written.
    visited: Option<i64>,
    /// The sums, and the largest |X| at most.
    sums: Sums,
}

impl Elsewhere {
    /// A block whose bytes begin at `offset`, and where they end.
    ///
    /// # Errors
    /// The virtual page pays some of its pages more than others.
    pub fn new(part: &Part<'_>, offset: u64) -> Result<(Elsewhere, u64)> {
        if !part.teleport.is_uniform() {
            return Err(Error::internal("blocks that take turns are paid alike"));
        }
        let elsewhere = Elsewhere {
            pages: part.rows.pages(),
            own: part.pages(),
            offset,
            teleport: part.teleport.clone(),
            is_new: true,
            visited: None,
            sums: Sums::default(),
        };
        let end = elsewhere.costs_at() + elsewhere.pages;
        Ok((elsewhere, end))
    }

    fn accounts_at(&self) -> u64 {
        self.offset + 8 * self.own
    }

    fn streaks_at(&self) -> u64 {
        self.offset + 16 * self.own
    }

    fn costs_at(&self) -> u64 {
        self.streaks_at() + self.own
    }

    /// Brings it into memory. Its ghosts are known if they are those of `part`, without which there must be something of it.
    pub fn load(
        &self,
        aside: &Aside,
        damping: u64,
        using: Use,
        part: Option<&Part<'_>>,
    ) -> Result<Block> {
        let ghosts = part.map(|part| part.ghosts.read()).transpose()?;
        let teleport = self.teleport.clone();
        if self.is_new {
            let ghosts = ghosts.ok_or_else(|| Error::internal("nothing of a block lies aside"))?;
            return Block::new(self.pages, damping, teleport, ghosts);
        }
        let mut block = Block::with_room(self.pages, damping, teleport, using.is_whole())?;
        block.ghosts = Arc::new(ByOwner::new(&ghosts.unwrap_or_default()));
        let state = &aside.0.state;
        state.read(&mut block.costs, self.costs_at())?;
        let Block { costs, .. } = &block;
        let marked = costs.iter().filter(|cost| **cost != GHOST).count() as u64;
        if marked != self.own {
            return Err(state.damaged());
        }
        let has_ghosts = self.own < self.pages;
        let costs = has_ghosts.then_some(&block.costs[..]);
        read_own(state, self.accounts_at(), &mut block.accounts, costs)?;
        if using.is_whole() {
            read_own(state, self.offset, &mut block.own, costs)?;
            read_own(state, self.streaks_at(), &mut block.streaks, costs)?;
        }
        if let Some(each) = self.visited {
            block.visit_dangling(each);
        }
        let Sums { own, accounts, .. } = block.sums();
        if accounts != self.sums.accounts || using.is_whole() && own != self.sums.own {
            return Err(state.damaged());
        }
        Ok(block)
    }

    /// Puts it aside.
    pub fn store(&mut self, aside: &Aside, block: &Block, using: Use) -> Result<()> {
        if matches!(using, Use::Read | Use::Weigh) {
            return Ok(());
        }
        let state = &aside.0.state;
        let costs = (self.own < self.pages).then_some(&block.costs[..]);
        let sums = block.sums();
        self.sums.accounts = sums.accounts;
        if using.is_whole() {
            write_own(state, self.offset, &block.own, costs)?;
            write_own(state, self.streaks_at(), &block.streaks, costs)?;
            state.write(&block.costs, self.costs_at())?;
            (self.visited, self.sums) = (None, sums);
            self.is_new = false;
        }
        if self.visited.is_some() {
            return Err(Error::internal("a visit that waits was left out"));
        }
        write_own(state, self.accounts_at(), &block.accounts, costs)
    }

    /// Visits its pages without links, at which this waits.
    pub fn visit_dangling(&mut self, each: i64, dangling: &Dangling) {
        let moved = dangling.waiting + i128::from(each) * i128::from(dangling.weights);
        self.sums.own += moved;
        self.sums.accounts -= moved;
        let most = dangling.most.saturating_add(each.unsigned_abs());
        self.sums.own_max = self.sums.own_max.saturating_add(most);
        self.visited = Some(each);
    }

    /// Fills in what is not known of it without X. The largest |X| may be less than that.
    pub fn complete(&self, sums: &mut Sums) {
        (sums.own, sums.own_max) = (self.sums.own, self.sums.own_max);
    }

    /// (X, D) of so many of its own pages, or those that there are, from number `first` of these on.
    pub fn own_cells(&self, aside: &Aside, first: u64, len: usize) -> Result<Vec<(i64, i64)>> {
        if self.is_new || self.visited.is_some() {
            return Err(Error::internal("a block is not whole"));
        }
        let len = len.min(self.own.saturating_sub(first) as usize);
        let [mut own, mut accounts] = [const { Vec::<i64>::new() }; 2];
        for (cells, at) in [(&mut own, self.offset), (&mut accounts, self.accounts_at())] {
            cells.resize(len, 0);
            aside.0.state.read(cast_slice_mut(cells), at + 8 * first)?;
        }
        Ok(own.into_iter().zip(accounts).collect())
    }
}

/// Reads what pages have that are no ghosts, by their costs; without costs, all.
fn read_own<T: Pod>(
    file: &Nameless,
    mut at: u64,
    cells: &mut [T],
    costs: Option<&[Cost]>,
) -> Result<()> {
    let Some(costs) = costs else {
        return file.read(cast_slice_mut(cells), at);
    };
    let mut read: Vec<T> = Vec::new();
    for (cells, costs) in cells.chunks_mut(CELLS).zip(costs.chunks(CELLS)) {
        let own = costs.iter().filter(|cost| **cost != GHOST).count();
        read.resize(own, T::zeroed());
        file.read(cast_slice_mut(&mut read), at)?;
        at += size_of_val(&read[..]) as u64;
        let mut next = read.iter();
        for (cell, cost) in cells.iter_mut().zip(costs) {
            if *cost != GHOST
                && let Some(&read) = next.next()
            {
                *cell = read;
            }
        }
    }
    Ok(())
}

/// The same, written.
fn write_own<T: Pod>(
    file: &Nameless,
    mut at: u64,
    cells: &[T],
    costs: Option<&[Cost]>,
) -> Result<()> {
    let Some(costs) = costs else {
        return file.write(cast_slice(cells), at);
    };
    let mut own: Vec<T> = Vec::new();
    for (cells, costs) in cells.chunks(CELLS).zip(costs.chunks(CELLS)) {
        own.clear();
        let pages = cells.iter().zip(costs);
        own.extend(
            pages
                .filter(|(_, cost)| **cost != GHOST)
                .map(|(cell, _)| *cell),
        );
        file.write(cast_slice(&own), at)?;
        at += size_of_val(&own[..]) as u64;
    }
    Ok(())
}
