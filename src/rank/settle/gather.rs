//! What several processes settled, brought to the first of them.

use super::Settled;
use super::peers::nonsense;
use crate::Result;
use crate::codec::varint;

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
                for (own, account) in self.ledger.block(at).own_cells() {
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

    /// (y, x) of a page: see [`Settled::estimates`]. Of a block of another process it is number `at` among its own pages.
    pub(crate) fn estimate_in(&self, gathered: &Gathered, block: usize, at: usize) -> (f64, f64) {
        let peers = self.ledger.peers();
        if peers.has(block) {
            let mut page = self.estimates_of(peers.place(block), at as u64, 1);
            return page.next().unwrap_or_default();
        }
        let cells = gathered.blocks.get(block).and_then(|block| block.get(at));
        let &(own, account) = cells.unwrap_or(&(0, 0));
        self.estimate(own, account, 1)
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
