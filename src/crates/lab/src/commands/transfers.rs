//! `cashrank-lab transfers`: what money transfers between crawlers are for (Abiteboul, Preda, Cobena, WWW 2003, section 4.1).
//!
//! ```text
//! zstd -dc ../shared/data/cnr-2000/adjacency.tsv.zst \
//!     | cargo run --release -p cashrank-lab -- transfers --shards 1,4,16 --every 0.1,1,3
//! ```
//!
//! Reads `page<TAB>target<TAB>...` lines with pages as numbers, and deals runs of pages, as hosts, to shards. Each shard has a
//! ledger of its own and visits its pages in the order of their numbers, pass by pass. What is for a page of another shard
//! waits, and is sent there every `--every` passes; or it never is, and counts as if the page had no links, as in the
//! stores of `cashrank ingest --shard`. Compared with PageRank is what all pages distributed in the last pass.
//!
//! The ledgers are simple ones, in floating point: what differs is whether cash crosses, and when.

use std::io;

use cashrank::Error;
use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::Graph;
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};

use super::{bfs_order, print};

/// Measure rankings by cash of shards, with and without money transfers, against PageRank of a graph read from stdin.
#[derive(clap::Args)]
pub struct Args {
    /// Numbers of shards.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1,4,16"
    )]
    shards: Vec<u32>,
    /// After how many passes cash is sent; each is tried, and never to send.
    #[arg(
        long,
        value_name = "PASSES,...",
        value_delimiter = ',',
        default_value = "0.1,1,3"
    )]
    every: Vec<f64>,
    /// Passes to make.
    #[arg(long, value_name = "N", default_value_t = 6)]
    passes: u32,
    /// This many pages, in the order of their numbers, are one host.
    #[arg(long, value_name = "PAGES", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    host: u32,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        let mut links = bfs_order::read(io::stdin().lock())?;
        let mut sources = Vec::new();
        for (page, targets) in (0..).zip(&mut links) {
            targets.sort_unstable();
            targets.dedup();
            targets.retain(|&target| target != page);
            sources.extend(std::iter::repeat_n(page, targets.len()));
        }
        let targets = links.concat();
        let last = targets.iter().max().map_or(0, |&last| last as usize + 1);
        let nodes = last.max(links.len());
        let graph = Graph::of_pairs(nodes, &sources, &targets, SelfLinks::Drop);
        let exact = PowerOptions {
            damping: self.damping,
            residual: 1e-12,
        };
        let exact = pagerank(&graph, exact)?.scores;
        print(|out| {
            let written = Error::io("standard output", "write");
            let passes: String = (1..=self.passes)
                .map(|pass| format!("\tl1_{pass}"))
                .collect();
            writeln!(out, "shards\tsent_every{passes}").map_err(written)?;
            for &shards in &self.shards {
                let every = self.every.iter().map(|&passes| Some(passes));
                // A single shard has nothing to send.
                let every = every.filter(|_| shards > 1).chain([None]);
                for every in every {
                    let distances = self.crawl(&links, &exact, shards, every);
                    let distances = distances.iter().map(|l1| format!("\t{l1:.3}"));
                    let every = every.map_or("never".into(), |passes| passes.to_string());
                    let line = format!("{shards}\t{every}{}", distances.collect::<String>());
                    writeln!(out, "{line}")
                        .and_then(|()| out.flush())
                        .map_err(Error::io("standard output", "write"))?;
                }
            }
            Ok(())
        })
    }

    /// Returns the L1 distance to PageRank of what was distributed in each pass.
    fn crawl(
        &self,
        links: &[Vec<u32>],
        exact: &[f64],
        shards: u32,
        every: Option<f64>,
    ) -> Vec<f64> {
        let pages = links.len();
        // Fibonacci hashing distributes hosts evenly.
        let of = |page: u32| (page / self.host).wrapping_mul(2_654_435_769) >> 7;
        let owner: Vec<u32> = (0..pages as u32).map(|page| of(page) % shards).collect();
        let mut ledgers: Vec<Ledger> = (0..shards)
            .map(|shard| Ledger::new(links, &owner, shard, every.is_none()))
            .collect();
        let every = every.map(|passes| (passes * pages as f64).max(1.0) as u64);
        let mut visits = 0u64;
        let mut distances = Vec::new();
        for _ in 0..self.passes {
            let mut distributed = vec![0.0; pages];
            for (page, targets) in links.iter().enumerate() {
                let ledger = &mut ledgers[owner[page] as usize];
                distributed[page] += ledger.visit(page, targets, self.damping);
                visits += 1;
                if every.is_some_and(|every| visits.is_multiple_of(every)) {
                    transfer(&mut ledgers, &owner);
                }
            }
            if every.is_none() {
                ledgers.iter_mut().for_each(Ledger::recycle);
            }
            let sum: f64 = distributed.iter().sum();
            let distance = distributed
                .iter()
                .zip(exact)
                .map(|(cash, exact)| (cash / sum - exact).abs());
            distances.push(distance.sum());
        }
        distances
    }
}

/// Cash of a shard: of its own pages, and of the remote pages that it links to.
struct Ledger {
    cash: Vec<f64>,
    /// Pages of other shards.
    remote: Vec<usize>,
    /// Pages that the virtual page pays.
    paid: Vec<usize>,
    /// True if the virtual page pays at once; false if what it received waits for a transfer.
    pays: bool,
    virtual_cash: f64,
    /// Payment to each of the paid pages that is not in `cash` yet.
    each: f64,
}

impl Ledger {
    /// Creates a ledger. A page brings 1 with it; if nothing is sent, a remote page does, too.
    fn new(links: &[Vec<u32>], owner: &[u32], shard: u32, pays: bool) -> Ledger {
        let is_own = |page: &usize| owner[*page] == shard;
        let own: Vec<usize> = (0..links.len()).filter(is_own).collect();
        let targets = own.iter().flat_map(|&page| &links[page]);
        let mut remote: Vec<usize> = targets
            .map(|&target| target as usize)
            .filter(|target| !is_own(target))
            .collect();
        remote.sort_unstable();
        remote.dedup();
        let mut paid = own;
        if pays {
            paid.extend(&remote);
        }
        let mut cash = vec![0.0; links.len()];
        for &page in &paid {
            cash[page] = 1.0;
        }
        Ledger {
            cash,
            remote,
            paid,
            pays,
            virtual_cash: 0.0,
            each: 0.0,
        }
    }

    /// Distributes a page's cash; returns the amount.
    fn visit(&mut self, page: usize, targets: &[u32], damping: f64) -> f64 {
        let cash = self.cash[page] + self.each;
        self.cash[page] = -self.each;
        let handed = if targets.is_empty() {
            0.0
        } else {
            damping * cash
        };
        for &target in targets {
            self.cash[target as usize] += handed / targets.len() as f64;
        }
        self.virtual_cash += cash - handed;
        if self.pays {
            self.pay();
        }
        cash
    }

    fn pay(&mut self) {
        self.each += std::mem::take(&mut self.virtual_cash) / self.paid.len() as f64;
    }

    /// Visits remote pages, as pages without links.
    fn recycle(&mut self) {
        for &page in &self.remote {
            self.virtual_cash += self.cash[page] + self.each;
            self.cash[page] = -self.each;
        }
        self.pay();
    }
}

/// Sends the cash that waits at remote pages to their owners, and pays all pages what all virtual pages received.
fn transfer(ledgers: &mut [Ledger], owner: &[u32]) {
    for shard in 0..ledgers.len() {
        let remote = std::mem::take(&mut ledgers[shard].remote);
        for &page in &remote {
            let sent = std::mem::take(&mut ledgers[shard].cash[page]);
            ledgers[owner[page] as usize].cash[page] += sent;
        }
        ledgers[shard].remote = remote;
    }
    let virtual_cash = ledgers
        .iter_mut()
        .map(|ledger| std::mem::take(&mut ledger.virtual_cash));
    let each = virtual_cash.sum::<f64>() / owner.len() as f64;
    for ledger in ledgers {
        ledger.each += each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sum of all cash.
    fn cash_of(ledgers: &[Ledger]) -> f64 {
        let held = |ledger: &Ledger| {
            let cash: f64 = ledger.cash.iter().sum();
            cash + ledger.virtual_cash + ledger.each * ledger.paid.len() as f64
        };
        ledgers.iter().map(held).sum()
    }

    /// Conservation of cash over all shards: whatever is sent, the sum is what pages brought.
    #[test]
    fn transfers_keep_the_sum_of_all_cash() {
        let links: Vec<Vec<u32>> = (0..60u32)
            .map(|page| {
                (0..page % 5)
                    .map(|at| (page * 7 + at * 11 + 1) % 60)
                    .collect()
            })
            .collect();
        let owner: Vec<u32> = (0..60).map(|page| page / 7 % 4).collect();
        let mut ledgers: Vec<Ledger> = (0..4)
            .map(|shard| Ledger::new(&links, &owner, shard, false))
            .collect();
        for pass in 0..200 {
            for (page, targets) in links.iter().enumerate() {
                ledgers[owner[page] as usize].visit(page, targets, 0.85);
            }
            transfer(&mut ledgers, &owner);
            let cash = cash_of(&ledgers);
            assert!((cash - 60.0).abs() < 1e-9, "pass {pass}: {cash}");
        }
    }
}
