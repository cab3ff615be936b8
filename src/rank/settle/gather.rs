//! What was settled in blocks, read in the order of all pages, and what several processes settled, brought to the first of
//! them.

use super::Settled;
use super::peers::nonsense;
use crate::codec::{planes, varint};
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
        let each = self.ledger.each_is_paid();
        // A block of each at a time, so that little is on the way.
        for at in 0..blocks.div_ceil(processes) {
            let mut messages = vec![Vec::new(); processes];
            if peers.process() != 0 && peers.number(at) < blocks {
                let cells = self.ledger.places().own_cells(at, 0, None)?;
                messages[0] = pack(&cells, each)?;
            }
            for (process, message) in peers.exchange(messages)?.iter().enumerate() {
                let number = at * processes + process;
                // Only process 0 is sent anything.
                let is_sent = peers.process() == 0 && process > 0 && number < blocks;
                let own = own.get(number).copied().filter(|_| is_sent);
                let cells = match own {
                    Some(own) => unpack(message, own, each),
                    None => message.is_empty().then(Vec::new),
                };
                let cells = cells.ok_or_else(|| nonsense(process))?;
                if let Some(block) = gathered.blocks.get_mut(number) {
                    *block = cells;
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

/// X of each page, and D less what makes up for what each is paid: little is left where little waits.
fn pack(cells: &[(i64, i64)], each: i64) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    let own = |&(own, _): &(i64, i64)| varint::zigzag(own);
    let waiting = |&(_, account): &(i64, i64)| varint::zigzag(account.wrapping_add(each));
    for units in [
        cells.iter().map(own).collect::<Vec<u64>>(),
        cells.iter().map(waiting).collect(),
    ] {
        planes::put(&mut message, &units)?;
    }
    Ok(message)
}

/// What [`pack`] packed, of so many pages.
fn unpack(mut message: &[u8], pages: usize, each: i64) -> Option<Vec<(i64, i64)>> {
    let own = planes::take(&mut message, pages)?;
    let waiting = planes::take(&mut message, pages)?;
    if !message.is_empty() || own.len() != pages || waiting.len() != pages {
        return None;
    }
    let own = own.into_iter().map(varint::unzigzag);
    let waiting = waiting.into_iter().map(varint::unzigzag);
    let accounts = waiting.map(|waiting| waiting.wrapping_sub(each));
    Some(own.zip(accounts).collect())
}
