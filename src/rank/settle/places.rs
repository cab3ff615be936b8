//! Where the blocks of a process are: in memory, all or some of them; the others take turns there (`aside`).

use super::aside::{Aside, Elsewhere, Turns, Use};
use super::block::{Block, Whole};
use super::ledger::{Part, Workers};
use crate::threads::dealt;
use crate::{Error, Result};

pub(super) struct Places {
    places: Vec<Place>,
    /// Where those lie that are not in memory.
    aside: Option<Aside>,
    /// Blocks that are worked on at a time.
    threads: usize,
    damping: u64,
}

enum Place {
    Here(Block),
    Aside(Elsewhere),
}

impl Places {
    /// Blocks of which none has anything.
    pub fn new(parts: &[Part<'_>], damping: u64, workers: &Workers) -> Result<Places> {
        let turns = workers.turns.as_ref();
        let (here, threads) = turns.map_or((parts.len(), workers.threads), |turns| {
            turns.of(parts.len(), workers.threads)
        });
        let mut places = Vec::with_capacity(parts.len());
        let mut end = 0;
        for (at, part) in parts.iter().enumerate() {
            part.teleport.check(part.rows.pages())?;
            places.push(if at < here {
                let (teleport, ghosts) = (part.teleport.clone(), part.ghosts.read()?);
                Place::Here(Block::new(part.rows.pages(), damping, teleport, ghosts)?)
            } else {
                let elsewhere;
                (elsewhere, end) = Elsewhere::new(part, end)?;
                Place::Aside(elsewhere)
            });
        }
        Ok(Places {
            aside: turns.filter(|_| here < parts.len()).map(Turns::aside),
            places,
            threads,
            damping,
        })
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Where those lie that are not in memory, if there are any.
    pub fn aside(&self) -> Option<Aside> {
        self.aside.clone()
    }

    /// The blocks that lie aside, each in its place.
    pub fn elsewhere(&mut self) -> impl Iterator<Item = Option<&mut Elsewhere>> {
        self.places.iter_mut().map(|place| match place {
            Place::Here(_) => None,
            Place::Aside(elsewhere) => Some(elsewhere),
        })
    }

    /// Does something with so much of every block, which sees the whole as this. The ghosts of those that lie aside are known
    /// if their parts are given. The results are in the order of the blocks.
    pub fn each<T: Send>(
        &mut self,
        whole: Whole,
        using: Use,
        parts: Option<&[Part<'_>]>,
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (aside, damping) = (self.aside.as_ref(), self.damping);
        dealt(self.threads, &mut self.places, |at, place| match place {
            Place::Here(block) => {
                block.tell(whole);
                work(at, block)
            }
            Place::Aside(elsewhere) => {
                let aside = aside.ok_or_else(nowhere)?;
                let part = parts.and_then(|parts| parts.get(at));
                let mut block = elsewhere.load(aside, damping, using, part)?;
                block.tell(whole);
                let done = work(at, &mut block)?;
                elsewhere.store(aside, &block, using)?;
                Ok(done)
            }
        })
    }

    /// Gives blocks that are in memory back the room that what they sent took.
    pub fn give_back(&mut self, spare: impl Iterator<Item = Vec<i64>>) {
        for (place, spare) in self.places.iter_mut().zip(spare) {
            if let Place::Here(block) = place
                && block.spare.is_empty()
            {
                block.spare = spare;
            }
        }
    }

    /// Reads every block, on so many threads at most. The results are in the order of the blocks.
    pub fn read<T: Send>(
        &self,
        threads: usize,
        work: impl Fn(usize, &Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let mut places: Vec<&Place> = self.places.iter().collect();
        let threads = threads.min(self.threads);
        dealt(threads, &mut places, |at, place| match place {
            Place::Here(block) => work(at, block),
            Place::Aside(elsewhere) => {
                let aside = self.aside.as_ref().ok_or_else(nowhere)?;
                work(at, &elsewhere.load(aside, self.damping, Use::Read, None)?)
            }
        })
    }

    /// A block that is in memory.
    pub fn block(&self, at: usize) -> Option<&Block> {
        match self.places.get(at)? {
            Place::Here(block) => Some(block),
            Place::Aside(_) => None,
        }
    }

    /// (X, D) of so many of a block's own pages, or all, from number `first` of these on. For one in memory this is slow.
    pub fn own_cells(&self, at: usize, first: u64, len: Option<usize>) -> Result<Vec<(i64, i64)>> {
        let len = len.unwrap_or(usize::MAX);
        match (self.places.get(at), &self.aside) {
            (Some(Place::Here(block)), _) => {
                let own = block.own_cells().skip(first as usize);
                Ok(own.take(len).collect())
            }
            (Some(Place::Aside(elsewhere)), Some(aside)) => elsewhere.own_cells(aside, first, len),
            _ => Err(nowhere()),
        }
    }
}

fn nowhere() -> Error {
    Error::internal("a block is nowhere")
}
