//! The ledger of a settling: blocks of pages, and the sums of all. See [`super`] for what they mean.
//!
//! Each step is done for every block by itself, on as many threads as there are, and the sums are of whole numbers: so
//! neither threads nor processes make a difference.

use std::sync::Arc;

use super::block::{self, Block, SUPPLY, Whole};
use super::mail::Routes;
use super::peers::Peers;
use super::worth::Worth;
use crate::engine::{SettledPages, SettledTotals};
use crate::rank::Teleport;
use crate::rows::{Ghost, Rows};
use crate::threads::dealt;
use crate::{Error, Result};

/// Pages that are settled as one block, and how they hang together with other blocks.
#[derive(Clone)]
pub(crate) struct Part<'r> {
    /// Their rows, in numbers of the block's own.
    pub rows: &'r dyn Rows,
    /// Those of its numbers that are pages of other blocks.
    pub ghosts: Arc<[Ghost]>,
    /// How the virtual page pays its pages.
    pub teleport: Teleport,
}

impl<'r> Part<'r> {
    /// All pages in one.
    pub fn whole(rows: &'r dyn Rows, teleport: &Teleport) -> Part<'r> {
        Part {
            rows,
            ghosts: Arc::default(),
            teleport: teleport.clone(),
        }
    }

    /// Pages of its own.
    pub fn pages(&self) -> u64 {
        self.rows.pages().saturating_sub(self.ghosts.len() as u64)
    }
}

/// Who works on the blocks.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Blocks that are worked on at a time.
    pub threads: usize,
    /// Other processes, which have other blocks.
    pub peers: Peers,
}

impl Workers {
    /// So many threads, and no other process.
    pub fn threads(threads: usize) -> Workers {
        Workers {
            threads,
            peers: Peers::default(),
        }
    }
}

pub(super) struct Ledger {
    /// Those of this process.
    blocks: Vec<Block>,
    threads: usize,
    routes: Routes,
    /// Of all blocks.
    pages: u64,
    damping: u64,
    /// W: n where the virtual page pays all pages the same.
    weights: u64,
    /// The sum of X.
    sum: i128,
    /// T.
    virtual_page: i128,
    is_first_sweep: bool,
    /// What larger units have added to [`Ledger::rounding`].
    strayed: u128,
}

impl Ledger {
    pub fn new(parts: &[Part<'_>], damping: u64, workers: &Workers) -> Result<Ledger> {
        let mut blocks = Vec::with_capacity(parts.len());
        let mut weights = 0;
        for part in parts {
            let pages = part.rows.pages();
            part.teleport.check(pages)?;
            weights += part.teleport.sum(part.pages());
            let (teleport, ghosts) = (part.teleport.clone(), part.ghosts.clone());
            blocks.push(Block::new(pages, damping, teleport, ghosts)?);
        }
        let pages: u64 = blocks.iter().map(Block::pages).sum();
        let mut sums = [pages.into(), weights.into()];
        workers.peers.sum(&mut sums)?;
        let [pages, weights] = sums.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        let mut ledger = Ledger {
            pages,
            threads: workers.threads,
            routes: Routes::new(&workers.peers, &blocks)?,
            damping,
            weights,
            sum: 0,
            virtual_page: 0,
            is_first_sweep: true,
            strayed: 0,
            blocks,
        };
        ledger.tell();
        Ok(ledger)
    }

    /// The state with these totals; what pages have is to be filled in ([`Block::first_pages`]). Those that are not have
    /// nothing.
    pub fn resume(totals: &SettledTotals, parts: &[Part<'_>], workers: &Workers) -> Result<Ledger> {
        let mut ledger = Ledger::new(parts, totals.damping, workers)?;
        ledger.sum = totals.sum;
        ledger.virtual_page = totals.virtual_page;
        ledger.strayed = totals.strayed;
        ledger.is_first_sweep = false;
        ledger.tell();
        Ok(ledger)
    }

    /// What all pages of a block have, if the virtual page pays all the same.
    pub fn settled_pages(&self, block: usize) -> Option<SettledPages<'_>> {
        self.blocks.get(block)?.settled_pages()
    }

    /// Does something with every block. The results are in the order of the blocks.
    pub fn each_block<T: Send>(&mut self, work: impl Fn(usize, &mut Block) -> T + Sync) -> Vec<T> {
        dealt(self.threads, &mut self.blocks, work)
    }

    /// Blocks, those of other processes as well.
    pub fn blocks(&self) -> usize {
        self.routes.blocks()
    }

    pub fn block(&self, at: usize) -> &Block {
        &self.blocks[at]
    }

    /// F: see the module's head.
    pub fn strayed(&self) -> u128 {
        self.strayed
    }

    /// T.
    pub fn virtual_page(&self) -> i128 {
        self.virtual_page
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// In 1/2^32.
    pub fn damping(&self) -> u64 {
        self.damping
    }

    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// What the virtual page has for a unit of weight.
    pub fn paid(&self) -> f64 {
        self.virtual_page as f64 / self.weights.max(1) as f64
    }

    /// What every page had at first, on average.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// Other processes that take the same steps.
    pub fn peers(&self) -> &Peers {
        &self.routes.peers
    }

    /// In the sweep that begins pages hand on so much in advance, at most, all together: each block's so much of it as it
    /// has of what waits anywhere.
    pub fn begin_sweep(&mut self, advance: u128, waiting: &Waiting) {
        for (block, &waits) in self.blocks.iter_mut().zip(&waiting.blocks) {
            block.begin_sweep(share(advance, waits, waiting.all));
        }
    }

    /// Delivers what blocks handed on to pages of others.
    pub fn exchange(&mut self) -> Result<()> {
        self.routes.deliver(&mut self.blocks, self.threads)?;
        self.collect()
    }

    /// Takes what blocks moved into the sums, and tells all blocks of these.
    fn collect(&mut self) -> Result<()> {
        let moved = self.blocks.iter_mut().map(Block::take_moved);
        let mut sums = moved.fold([0, 0], |[sum, virtual_page], moved| {
            [sum + moved.sum, virtual_page + moved.virtual_page]
        });
        self.peers().sum(&mut sums)?;
        self.sum += sums[0];
        self.virtual_page += sums[1];
        self.tell();
        Ok(())
    }

    /// The sums over all blocks of two numbers of each.
    fn sums(&mut self, of: impl Fn(&mut Block) -> (i128, i128) + Sync) -> Result<(i128, i128)> {
        let blocks = self.each_block(|_, block| of(block));
        let mut sums = blocks
            .iter()
            .fold([0, 0], |all, block| [all[0] + block.0, all[1] + block.1]);
        self.peers().sum(&mut sums)?;
        Ok((sums[0], sums[1]))
    }

    /// Tells all blocks of the sums.
    fn tell(&mut self) {
        let whole = Whole {
            virtual_page: self.virtual_page,
            weights: self.weights,
            each: if self.is_first_sweep {
                SUPPLY / self.weights.max(1) as i64
            } else {
                block::each(self.virtual_page, self.weights)
            },
            is_first_sweep: self.is_first_sweep,
        };
        self.blocks.iter_mut().for_each(|block| block.tell(whole));
    }

    /// Visits all pages without links again and again, until nothing waits at any: with c = T/W at the end, D
    /// is -c w at each of these pages, so that c W = T + sum of their D + c times the sum of their weights w.
    pub fn visit_dangling(&mut self) -> Result<()> {
        let (weights, waiting) = self.sums(|block| {
            let (weights, waiting) = block.dangling();
            (weights.into(), waiting)
        })?;
        let each = match self.weights.saturating_sub(weights as u64) {
            // Nobody who is paid has links: each has its part of the supply.
            0 => SUPPLY / self.weights.max(1) as i64,
            linked => block::each(self.virtual_page + waiting, linked),
        };
        self.each_block(|_, block| block.visit_dangling(each));
        self.is_first_sweep = false;
        self.collect()
    }

    /// What waits at all pages, and at those of each block.
    pub fn weigh(&mut self) -> Result<(Worth, Waiting)> {
        let rest = self
            .virtual_page
            .rem_euclid(i128::from(self.weights.max(1)));
        let blocks = self.each_block(|_, block| block.weigh());
        let waiting = blocks.iter().map(Worth::waiting).collect();
        let here = blocks.into_iter().reduce(Worth::and).unwrap_or_default();
        let all = here.over_all(self.peers())?.with_rest(rest as u64);
        let waiting = Waiting {
            all: all.waiting(),
            blocks: waiting,
        };
        Ok((all, waiting))
    }

    /// By how many units Y may be off from one step from X, where rows have so many links.
    pub fn rounding(&self, links: u64) -> u128 {
        self.strayed + 2 * u128::from(links)
    }

    /// Makes units twice as large where numbers might get too large: see the module's head.
    pub fn keep_in_bounds(&mut self, links: u64) -> Result<()> {
        let near = self.each_block(|_, block| block.is_near_limit());
        if self.peers().any(near.contains(&true))? {
            self.halve(links)?;
        }
        Ok(())
    }

    /// Makes units twice as large, where rows have so many links.
    pub fn halve(&mut self, links: u64) -> Result<()> {
        let (own, accounts) = self.sums(Block::halve)?;
        self.sum = own;
        self.virtual_page = -accounts;
        self.strayed = self.strayed.div_ceil(2) + 3 * (u128::from(self.pages) + u128::from(links));
        self.tell();
        Ok(())
    }

    /// What pages below 0 are short of, of the sum of Y and of X.
    pub fn below(&mut self) -> Result<(u128, u128)> {
        let below = self.sums(|block| {
            let (received, distributed) = block.below();
            (received as i128, distributed as i128)
        })?;
        Ok((below.0 as u128, below.1 as u128))
    }

    /// Checks the law; the error says by how much it fails.
    pub fn check_law(&mut self) -> Result<()> {
        self.unbalanced()?.map_or(Ok(()), Err)
    }

    /// By how much the law fails, if it does.
    pub fn unbalanced(&mut self) -> Result<Option<Error>> {
        let (own, accounts) = self.sums(|block| block.sums())?;
        if accounts == -self.virtual_page && own == self.sum {
            return Ok(None);
        }
        Ok(Some(Error::internal(format!(
            "settling: the books do not balance: all accounts are {accounts} units for {} of the virtual page, and all \
             pages own {own} units, not {}; please report it",
            self.virtual_page, self.sum
        ))))
    }

    /// Whether D is what the module's head defines, from X alone, over the rows of these parts; where units were made
    /// larger, as nearly as it says.
    pub fn is_function_of_own(&self, parts: &[Part<'_>]) -> Result<bool> {
        let workers = Workers {
            threads: self.threads,
            peers: self.peers().clone(),
        };
        let mut other = Ledger::new(parts, self.damping, &workers)?;
        let handed_on = other.each_block(|at, block| {
            let own = &self.blocks[at];
            block.own_as(own);
            block.hand_on_all(own, parts[at].rows)
        });
        handed_on.into_iter().collect::<Result<()>>()?;
        other.exchange()?;
        let blocks = self.blocks.iter().zip(&other.blocks);
        let off: u128 = blocks.map(|(one, other)| one.differs(other)).sum();
        Ok(2 * off <= self.strayed)
    }
}

/// What waits to be handed on: everywhere, and at the pages of each block of this process.
#[derive(Default)]
pub(super) struct Waiting {
    pub all: u128,
    pub blocks: Vec<u128>,
}

/// `part` of `all`, of so many units. Without overflow: units are below 2^64 where `all` is.
fn share(units: u128, part: u128, all: u128) -> u128 {
    match units.checked_mul(part) {
        _ if part == all => units,
        Some(product) => product / all.max(1),
        None => units / all.max(1) * part,
    }
}
