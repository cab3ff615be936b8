//! The ledger of a settling: blocks of pages, and the sums of all. See [`super`] for what they mean.
//!
//! Each step is done for every block by itself, on as many threads as there are, and the sums are of whole numbers: so
//! neither threads nor processes make a difference, nor whether blocks are in memory or take turns (`aside`). A sweep is
//! three steps: rows are gone over, and what is for others is taken; what is for a block is delivered; pages without
//! links are visited, and all is weighed.

use super::aside::{Turns, Use};
use super::block::{self, Block, Dangling, OWN_MAX, SUPPLY, Sums, Whole};
use super::mail::{Routes, Sent};
use super::peers::Peers;
use super::places::Places;
use super::worth::Worth;
use crate::engine::SettledTotals;
use crate::rank::Teleport;
use crate::rows::{Ghost, Ghosts, Rows};
use crate::{Error, Result};

/// Pages that are settled as one block, and how they hang together with other blocks.
#[derive(Clone)]
pub(crate) struct Part<'r> {
    /// Their rows, in numbers of the block's own.
    pub rows: &'r dyn Rows,
    /// Those of its numbers that are pages of other blocks.
    pub ghosts: &'r dyn Ghosts,
    /// How the virtual page pays its pages.
    pub teleport: Teleport,
}

static NO_GHOSTS: Vec<Ghost> = Vec::new();

impl<'r> Part<'r> {
    /// All pages in one.
    pub fn whole(rows: &'r dyn Rows, teleport: &Teleport) -> Part<'r> {
        Part {
            rows,
            ghosts: &NO_GHOSTS,
            teleport: teleport.clone(),
        }
    }

    /// Pages of its own.
    pub fn pages(&self) -> u64 {
        self.rows.pages().saturating_sub(self.ghosts.count())
    }
}

/// Who works on the blocks.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Blocks that are worked on at a time.
    pub threads: usize,
    /// Other processes, which have other blocks.
    pub peers: Peers,
    /// Blocks of this process take turns in memory; `None`: all are there.
    pub turns: Option<Turns>,
}

impl Workers {
    /// So many threads, and no other process.
    pub fn threads(threads: usize) -> Workers {
        Workers {
            threads,
            peers: Peers::default(),
            turns: None,
        }
    }
}

pub(super) struct Ledger {
    /// The blocks of this process.
    places: Places,
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
    /// What waits at pages without links, by block, since the last delivery.
    dangling: Vec<Dangling>,
    /// They are to be visited, with so much for each, before blocks in memory are weighed.
    visiting: Option<i64>,
}

impl Ledger {
    pub fn new(parts: &[Part<'_>], damping: u64, workers: &Workers) -> Result<Ledger> {
        let pages: u64 = parts.iter().map(Part::pages).sum();
        let weights = parts.iter().map(|part| part.teleport.sum(part.pages()));
        let mut sums = [pages.into(), weights.sum::<u64>().into()];
        workers.peers.sum(&mut sums)?;
        let [pages, weights] = sums.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        Ok(Ledger {
            places: Places::new(parts, damping, workers)?,
            pages,
            routes: Routes::new(workers, parts)?,
            damping,
            weights,
            sum: 0,
            virtual_page: 0,
            is_first_sweep: true,
            strayed: 0,
            dangling: vec![Dangling::default(); parts.len()],
            visiting: None,
        })
    }

    /// The state with these totals; what pages have is to be filled in ([`Block::first_pages`]). Those that are not have
    /// nothing.
    pub fn resume(totals: &SettledTotals, parts: &[Part<'_>], workers: &Workers) -> Result<Ledger> {
        let mut ledger = Ledger::new(parts, totals.damping, workers)?;
        ledger.sum = totals.sum;
        ledger.virtual_page = totals.virtual_page;
        ledger.strayed = totals.strayed;
        ledger.is_first_sweep = false;
        Ok(ledger)
    }

    /// The blocks of this process.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Does something with every block of these parts. The results are in the order of the blocks.
    pub fn each_block<T: Send>(
        &mut self,
        parts: &[Part<'_>],
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let whole = self.whole();
        self.places.each(whole, Use::All, Some(parts), work)
    }

    /// Blocks, those of other processes as well.
    pub fn blocks(&self) -> usize {
        self.routes.blocks()
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

    /// Does something with every block of these parts, by which its pages may hand something on, and delivers what they
    /// handed on to pages of others.
    pub fn hand_on<T: Send>(
        &mut self,
        parts: &[Part<'_>],
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (results, handed) = self.begin_handing_on(parts, work)?;
        self.deliver(handed)?;
        Ok(results)
    }

    /// The same, but for what concerns other processes.
    pub fn begin_handing_on<T: Send>(
        &mut self,
        parts: &[Part<'_>],
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<(Vec<T>, HandedOn)> {
        let (whole, routes, aside) = (self.whole(), &self.routes, self.places.aside());
        let done = self
            .places
            .each(whole, Use::All, Some(parts), |at, block| {
                let done = work(at, block)?;
                let sent = routes.drain(at, block, aside.as_ref())?;
                Ok((done, sent, block.take_moved()))
            })?;
        let mut results = Vec::with_capacity(parts.len());
        let mut handed = HandedOn::default();
        for (done, sent, moved) in done {
            results.push(done);
            handed.sent.push(sent);
            handed.moved[0] += moved.sum;
            handed.moved[1] += moved.virtual_page;
        }
        Ok((results, handed))
    }

    /// Delivers what blocks handed on.
    pub fn deliver(&mut self, handed: HandedOn) -> Result<()> {
        let HandedOn { sent, mut moved } = handed;
        self.peers().sum(&mut moved)?;
        self.sum += moved[0];
        self.virtual_page += moved[1];
        let (whole, routes, aside) = (self.whole(), &self.routes, self.places.aside());
        let messages = routes.exchange(&sent, aside.as_ref())?;
        let received = routes.sorted(&messages)?;
        let deliver = |at: usize, block: &mut Block| {
            routes.deliver((at, block), &sent, &received[at], aside.as_ref())?;
            Ok(block.dangling())
        };
        self.dangling = self.places.each(whole, Use::Accounts, None, deliver)?;
        self.places
            .give_back(sent.into_iter().map(|sent| sent.units));
        aside.map_or(Ok(()), |aside| aside.clear_mail())
    }

    /// Does something with so much of every block.
    fn each<T: Send>(
        &mut self,
        using: Use,
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let whole = self.whole();
        self.places.each(whole, using, None, work)
    }

    /// What the virtual page has for each unit of weight, rounded down.
    pub fn each_is_paid(&self) -> i64 {
        block::each(self.virtual_page, self.weights)
    }

    /// The whole as all blocks see it.
    fn whole(&self) -> Whole {
        Whole {
            virtual_page: self.virtual_page,
            weights: self.weights,
            each: if self.is_first_sweep {
                SUPPLY / self.weights.max(1) as i64
            } else {
                self.each_is_paid()
            },
            is_first_sweep: self.is_first_sweep,
        }
    }

    /// Visits all pages without links again and again, until nothing waits at any: with c = T/W at the end, D
    /// is -c w at each of these pages, so that c W = T + sum of their D + c times the sum of their weights w.
    pub fn visit_dangling(&mut self) -> Result<()> {
        let here = self.dangling.iter().fold([0, 0], |sums, block| {
            [sums[0] + i128::from(block.weights), sums[1] + block.waiting]
        });
        let mut sums = here;
        self.peers().sum(&mut sums)?;
        let [weights, waiting] = sums;
        let each = match self.weights.saturating_sub(weights as u64) {
            // Nobody who is paid has links: each has its part of the supply.
            0 => SUPPLY / self.weights.max(1) as i64,
            linked => block::each(self.virtual_page + waiting, linked),
        };
        let moved = waiting + i128::from(each) * weights;
        self.sum += moved;
        self.virtual_page += moved;
        self.is_first_sweep = false;
        self.visiting = Some(each);
        let elsewhere = self.places.elsewhere().zip(&self.dangling);
        for (elsewhere, dangling) in elsewhere {
            if let Some(elsewhere) = elsewhere {
                elsewhere.visit_dangling(each, dangling);
            }
        }
        Ok(())
    }

    /// Checks the law, and finds what waits at all pages, and at those of each block. If rows have so many `links`, numbers
    /// that might get too large are made smaller first.
    pub fn weigh(&mut self, links: Option<u64>) -> Result<(Worth, Waiting)> {
        let (weighed, mut is_near) = self.weigh_blocks()?;
        if is_near && links.is_some() {
            // Of blocks that lie aside only a bound is known.
            let near = self.each(Use::All, |_, block| Ok(block.sums().own_max > OWN_MAX))?;
            is_near = self.peers().any(near.contains(&true))?;
        }
        let weighed = match links.filter(|_| is_near) {
            None => weighed,
            Some(links) => {
                self.halve(links)?;
                self.weigh_blocks()?.0
            }
        };
        let waiting = weighed.iter().map(Worth::waiting).collect();
        let here = weighed.into_iter().reduce(Worth::and).unwrap_or_default();
        let rest = self
            .virtual_page
            .rem_euclid(i128::from(self.weights.max(1)));
        let all = here.over_all(self.peers())?.with_rest(rest as u64);
        let waiting = Waiting {
            all: all.waiting(),
            blocks: waiting,
        };
        Ok((all, waiting))
    }

    /// What waits at blocks, of which the law is checked; and whether a page anywhere may have more than numbers are to be.
    fn weigh_blocks(&mut self) -> Result<(Vec<Worth>, bool)> {
        let (weighed, near, error) = self.weigh_unchecked()?;
        error.map_or(Ok((weighed, near)), Err)
    }

    /// By how much the law fails, if it does.
    pub fn unbalanced(&mut self) -> Result<Option<Error>> {
        Ok(self.weigh_unchecked()?.2)
    }

    fn weigh_unchecked(&mut self) -> Result<(Vec<Worth>, bool, Option<Error>)> {
        let visiting = self.visiting.take();
        let weighed = self.each(Use::Weigh, |_, block| {
            // Of others, the visit was made when they were read.
            if let Some(each) = visiting.filter(|_| !block.own.is_empty()) {
                block.visit_dangling(each);
            }
            Ok((block.weigh(), block.sums()))
        })?;
        let (weighed, mut blocks): (Vec<Worth>, Vec<Sums>) = weighed.into_iter().unzip();
        let elsewhere = self.places.elsewhere().zip(&mut blocks);
        for (elsewhere, block) in elsewhere {
            if let Some(elsewhere) = elsewhere {
                elsewhere.complete(block);
            }
        }
        let mut sums = [0; 3];
        for block in &blocks {
            let near = block.own_max > OWN_MAX;
            let of_block = [block.own, block.accounts, near.into()];
            let all = sums.iter_mut().zip(of_block);
            all.for_each(|(sum, value)| *sum += value);
        }
        self.peers().sum(&mut sums)?;
        let [own, accounts, near] = sums;
        Ok((weighed, near > 0, self.law(own, accounts)))
    }

    /// By how many units Y may be off from one step from X, where rows have so many links.
    pub fn rounding(&self, links: u64) -> u128 {
        self.strayed + 2 * u128::from(links)
    }

    /// Makes units twice as large, where rows have so many links.
    pub fn halve(&mut self, links: u64) -> Result<()> {
        let halved = self.each(Use::All, |_, block| Ok(block.halve()))?;
        let mut sums = halved
            .iter()
            .fold([0, 0], |all, block| [all[0] + block.0, all[1] + block.1]);
        self.peers().sum(&mut sums)?;
        self.sum = sums[0];
        self.virtual_page = -sums[1];
        self.strayed = self.strayed.div_ceil(2) + 3 * (u128::from(self.pages) + u128::from(links));
        Ok(())
    }

    /// What pages below 0 are short of, of the sum of Y and of X. What lies aside is whole from then on.
    pub fn below(&mut self) -> Result<(u128, u128)> {
        let below = self.each(Use::All, |_, block| Ok(block.below()))?;
        let mut sums = below.iter().fold([0, 0], |all, block| {
            [all[0] + block.0 as i128, all[1] + block.1 as i128]
        });
        self.peers().sum(&mut sums)?;
        Ok((sums[0] as u128, sums[1] as u128))
    }

    /// By how much the law fails with these sums of X and D, if it does.
    fn law(&self, own: i128, accounts: i128) -> Option<Error> {
        if accounts == -self.virtual_page && own == self.sum {
            return None;
        }
        Some(Error::internal(format!(
            "settling: the books do not balance: all accounts are {accounts} units for {} of the virtual page, and all \
             pages own {own} units, not {}; please report it",
            self.virtual_page, self.sum
        )))
    }

    /// Whether D is what the module's head defines, from X alone, over the rows of these parts; where units were made
    /// larger, as nearly as it says.
    pub fn is_function_of_own(&self, parts: &[Part<'_>]) -> Result<bool> {
        let workers = Workers {
            peers: self.peers().clone(),
            ..Workers::threads(self.places.threads())
        };
        let here = |at: usize| {
            let block = self.places.block(at);
            block.ok_or_else(|| Error::internal("a block is not in memory"))
        };
        let mut other = Ledger::new(parts, self.damping, &workers)?;
        other.hand_on(parts, |at, block| {
            let own = here(at)?;
            block.own_as(own);
            block.hand_on_all(own, parts[at].rows)
        })?;
        let mut off = 0;
        for at in 0..parts.len() {
            let other = other.places.block(at);
            off += other.map_or(Ok(0), |other| Ok(here(at)?.differs(other)))?;
        }
        Ok(2 * off <= self.strayed)
    }

    /// Of what pages may hand on in advance in a sweep, all together, the part of each block: as much as it has of what waits
    /// anywhere.
    pub fn advances(advance: u128, waiting: &Waiting) -> Vec<u128> {
        let blocks = waiting.blocks.iter();
        blocks
            .map(|&waits| share(advance, waits, waiting.all))
            .collect()
    }
}

/// What blocks handed on that is not delivered yet, and what they moved of the sums of X and T.
#[derive(Default)]
pub(super) struct HandedOn {
    sent: Vec<Sent>,
    moved: [i128; 2],
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
