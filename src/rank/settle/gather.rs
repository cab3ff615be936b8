//! What was settled in blocks, read in the order of all pages, and what several processes settled, brought to the first of
//! them.

use super::Settled;
use super::peers::nonsense;
use crate::codec::varint;
use crate::{Error, Result};

/// X and D of the pages of other processes' blocks.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By block, of its own pages alone; nothing of blocks of this process.
    blocks: Vec<Vec<(i64, i64)>>,
}

impl Settled {
    /// Brings what pages have to process 0; the others get nothing. `own`: how many pages each block has of its own, as
    /// process 0 knows it.
    ///
    /// # Errors
    /// Those of [`super::Exchange`]; a block has another number of pages.
    pub(crate) fn gather(&self, own: &[usize]) -> Result<Gathered> {
        let peers = self.ledger.peers();
        let (processes, blocks) = (peers.processes(), self.ledger.blocks());
        let mut gathered = Gathered {
            blocks: vec![Vec::new(); blocks],
        };
        if processes == 1 {
            return Ok(gathered);
        }
        // A block of each at a time, so that little is on the way.
        for at in 0..blocks.div_ceil(processes) {
            let mut messages = vec![Vec::new(); processes];
            if peers.process() != 0 && peers.number(at) < blocks {
                for (own, account) in self.ledger.places().own_cells(at, 0, None)? {
                    for units in [own, account] {
                        varint::put(&mut messages[0], varint::zigzag(units).into());
                    }
                }
            }
            for (process, message) in peers.exchange(messages)?.iter().enumerate() {
                let cells = unpack(message).ok_or_else(|| nonsense(process))?;
                let number = at * processes + process;
                match gathered.blocks.get_mut(number) {
                    Some(_)
                        if peers.process() == 0
                            && process > 0
                            && own.get(number) != Some(&cells.len()) =>
                    {
                        return Err(nonsense(process));
                    }
                    Some(block) => *block = cells,
                    None if cells.is_empty() => {}
                    None => return Err(nonsense(process)),
                }
            }
        }
        Ok(gathered)
    }

    /// (X, D) of so many of the own pages of a block that is not in memory, from number `first` of these on; `None`: it is.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn cells_of(
        &self,
        gathered: &Gathered,
        block: usize,
        first: u64,
        len: usize,
    ) -> Result<Option<Vec<(i64, i64)>>> {
        let (peers, places) = (self.ledger.peers(), self.ledger.places());
        if !peers.has(block) {
            let cells = gathered.blocks.get(block);
            let cells = cells.into_iter().flatten().skip(first as usize);
            return Ok(Some(cells.take(len).copied().collect()));
        }
        let at = peers.place(block);
        match places.block(at) {
            Some(_) => Ok(None),
            None => places.own_cells(at, first, Some(len)).map(Some),
        }
    }

    /// (y, x) of the pages in these places, block and number there, which come in the order of the numbers of each block.
    /// `before`: how many pages of each block came before; those that came now are added.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn estimates_in(
        &self,
        gathered: &Gathered,
        places: &[(u32, u32)],
        before: &mut [u64],
    ) -> Result<Vec<(f64, f64)>> {
        let mut counts = vec![0; before.len()];
        for &(block, _) in places {
            let count = counts.get_mut(block as usize);
            *count.ok_or_else(|| Error::internal("a page is in no block"))? += 1;
        }
        let mut cells = Vec::with_capacity(before.len());
        for (block, (before, &count)) in before.iter_mut().zip(&counts).enumerate() {
            let read = self.cells_of(gathered, block, *before, count)?;
            cells.push(read.map(Vec::into_iter));
            *before += count as u64;
        }
        let of = |&(block, at): &(u32, u32)| {
            let found = match &mut cells[block as usize] {
                Some(cells) => cells.next(),
                None => {
                    let here = self
                        .ledger
                        .places()
                        .block(self.ledger.peers().place(block as usize));
                    here.and_then(|here| here.cell(at as usize))
                }
            };
            let (own, account) =
                found.ok_or_else(|| Error::internal("a block has too few pages"))?;
            Ok(self.estimate(own, account, 1))
        };
        places.iter().map(of).collect()
    }
}

fn unpack(mut message: &[u8]) -> Option<Vec<(i64, i64)>> {
    let mut cells = Vec::with_capacity(message.len() / 10);
    let take = |message: &mut &[u8]| {
        let units = u64::try_from(varint::take(message)?).ok()?;
        Some(varint::unzigzag(units))
    };
    while !message.is_empty() {
        cells.push((take(&mut message)?, take(&mut message)?));
    }
    Some(cells)
}
