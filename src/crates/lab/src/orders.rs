//! Crawl orders that `next` does not offer; other orders are compared with them.

mod circulating;
mod learning;
mod ledger;
mod queue;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use cashrank::Result;
use cashrank_graph::engine::damping_units;
use cashrank_graph::rank::RankOptions;
use cashrank_graph::rank::settle::settle;
use cashrank_graph::rows::Row;
use cashrank_steer::schedule::{CrawlFacts, CrawlState, ScoredPage, Strategy};

use crate::flow::SeedFlow;
use circulating::Circulating;
pub use learning::Learning;
use learning::LearningOrder;
use ledger::LedgerOrder;
pub(crate) use queue::{Queue, QueuedStrategy};

/// Crawl order by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PaperOrder {
    /// Back-link count (Cho, Garcia-Molina, Page 1998): most links seen first.
    Backlink,
    /// Partial PageRank (Cho, Garcia-Molina, Page 1998; FICA's Algorithm 2): after every K pages read, PageRank of the
    /// known graph orders the pages; those found since follow, in the order of finding. The default K is a 72nd of the
    /// known pages, as the FICA paper has 250,000 for 18 M.
    PartialPageRank {
        /// Number of pages read between two computations.
        k: Option<u32>,
    },
    /// RankMass, windowed (Cho, Schonfeld, VLDB 2007): pages with the largest waiting share of the readers from the
    /// seeds come first.
    RankMass,
    /// Larger sites first (Castillo, Marin, Rodriguez, Baeza-Yates 2004): a page of the host with the most pages
    /// waiting.
    LargerSites,
    /// OPIC's Greedy: most cash first, of a ledger that is driven over the rows as an ingest would. `next` takes the
    /// cash from the store.
    Greedy,
    /// Greedy in which pages already read pass on what they receive: [`Circulating`].
    Circulating {
        /// Share of a page's cash that its links pass on.
        damping: f64,
    },
    /// FICA with another learning rate.
    Fica(Learning),
}

/// Number of pages that an order is asked for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// One: the order is up to date after every page.
    One,
    /// The pages read divided by this: an answer sweeps over all rows.
    Part(u32),
}

impl Batching {
    /// Returns the batching of the strategy of this name in `next`.
    pub fn of_strategy(name: &str) -> Batching {
        match name {
            "forecast" => Batching::Part(100),
            "settled" | "random" => Batching::Part(20),
            _ => Batching::One,
        }
    }
}

const DAMPING: f64 = 0.85;
/// L1 bound on partial PageRank.
const LEFT: f64 = 0.007_65;

impl PaperOrder {
    /// Returns the order of this name, if there is one.
    pub fn named(text: &str) -> Option<PaperOrder> {
        if let Some(k) = text.strip_prefix("pagerank:k=") {
            let k = k.parse().ok().filter(|&k| k > 0)?;
            return Some(PaperOrder::PartialPageRank { k: Some(k) });
        }
        if let Some(damping) = text.strip_prefix("circulating:damping=") {
            let damping = damping.parse().ok()?;
            let is_share = (0.0..=1.0).contains(&damping);
            return is_share.then_some(PaperOrder::Circulating { damping });
        }
        if let Some(learning) = Learning::named(text) {
            return Some(PaperOrder::Fica(learning));
        }
        Some(match text {
            "backlink" => PaperOrder::Backlink,
            "pagerank" => PaperOrder::PartialPageRank { k: None },
            "rankmass" => PaperOrder::RankMass,
            "larger-sites-first" => PaperOrder::LargerSites,
            "greedy" => PaperOrder::Greedy,
            "circulating" => PaperOrder::Circulating {
                damping: circulating::DAMPING,
            },
            _ => return None,
        })
    }

    /// Returns how many pages should be requested at a time.
    pub fn batching(self) -> Batching {
        match self {
            PaperOrder::RankMass | PaperOrder::LargerSites => Batching::Part(20),
            _ => Batching::One,
        }
    }

    /// Creates the order's strategy, without any pages; larger sites are chosen by [`larger_sites`] instead.
    pub fn strategy(self) -> Box<dyn Strategy> {
        match self {
            PaperOrder::Backlink | PaperOrder::LargerSites => Box::<Backlink>::default(),
            PaperOrder::PartialPageRank { k } => Box::new(PartialPageRank {
                k,
                ranked: 0,
                scores: Vec::new(),
            }),
            PaperOrder::RankMass => Box::<RankMass>::default(),
            PaperOrder::Greedy => Box::<LedgerOrder>::default(),
            PaperOrder::Circulating { damping } => Box::new(Circulating::new(damping)),
            PaperOrder::Fica(learning) => Box::new(LearningOrder {
                learning,
                scores: Vec::new(),
            }),
        }
    }
}

impl fmt::Display for PaperOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PaperOrder::Backlink => "backlink",
            PaperOrder::PartialPageRank { k: None } => "pagerank",
            PaperOrder::PartialPageRank { k: Some(k) } => return write!(f, "pagerank:k={k}"),
            PaperOrder::RankMass => "rankmass",
            PaperOrder::LargerSites => "larger-sites-first",
            PaperOrder::Greedy => "greedy",
            PaperOrder::Circulating { damping } if *damping == circulating::DAMPING => {
                "circulating"
            }
            PaperOrder::Circulating { damping } => {
                return write!(f, "circulating:damping={damping}");
            }
            PaperOrder::Fica(learning) => return learning.fmt(f),
        })
    }
}

/// Count of links seen to each page. The FICA paper recounts only after every K pages (its Algorithm 2); here the count
/// is always current.
#[derive(Default)]
struct Backlink {
    links: Vec<u32>,
}

impl Strategy for Backlink {
    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.links.resize(crawl.pages() as usize, 0);
        for target in row.links() {
            self.links[target as usize] += 1;
        }
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        let links = self.links.get(page as usize).copied();
        Some(links.unwrap_or(0).into())
    }
}

struct PartialPageRank {
    k: Option<u32>,
    /// Number of pages read when importance was computed last.
    ranked: u32,
    scores: Vec<f64>,
}

impl Strategy for PartialPageRank {
    fn prepare(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<()> {
        let k = self.k.unwrap_or(crawl.pages() / 72).max(1);
        if crawl.read() - self.ranked >= k {
            self.ranked = crawl.read();
            let options = RankOptions::until(damping_units(DAMPING), LEFT);
            let settled = settle(facts.rows, &options, &mut ())?;
            self.scores = settled.map_or_else(Vec::new, |settled| settled.importance());
        }
        Ok(())
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        // Pages found since score less than any PageRank, which is never 0.
        Some(self.scores.get(page as usize).copied().unwrap_or(0.0))
    }
}

/// RankMass. The paper's crawler passes on waiting shares at once; the windowed one after a number of pages; here it
/// happens at each request.
#[derive(Default)]
struct RankMass {
    flow: SeedFlow,
}

impl Strategy for RankMass {
    fn prepare(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<()> {
        let seeds = crawl.seeds();
        if self.flow.seeds() != seeds {
            self.flow = SeedFlow::from(damping_units(DAMPING), seeds);
        }
        self.flow.push(facts.rows).map(drop)
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        Some(self.flow.waiting(page))
    }

    fn links(&self) -> u64 {
        self.flow.links()
    }
}

/// Lists open pages, given with their hosts in the order in which they became known: the largest of `hosts` sites gives
/// one page, the first known, and is smaller then. Sites of equal size take turns, the first known one first.
pub fn larger_sites(
    open: impl DoubleEndedIterator<Item = (u32, u32)>,
    hosts: u32,
    count: usize,
) -> Vec<ScoredPage> {
    let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); hosts as usize];
    for (page, host) in open.rev() {
        waiting[host as usize].push(page);
    }
    let sizes = (0..hosts).map(|host| (waiting[host as usize].len(), Reverse(host)));
    let mut sites: BinaryHeap<(usize, Reverse<u32>)> = sizes.filter(|site| site.0 > 0).collect();
    let mut best = Vec::new();
    while best.len() < count
        && let Some((size, Reverse(host))) = sites.pop()
        && let Some(page) = waiting[host as usize].pop()
    {
        best.push(ScoredPage {
            page,
            score: size as f64,
        });
        if size > 1 {
            sites.push((size - 1, Reverse(host)));
        }
    }
    best
}

#[cfg(test)]
pub(crate) mod tests {
    use cashrank_graph::rows::{Rows, RowsVisitor, Stop};
    use cashrank_steer::schedule::CrawlHistory;

    use super::*;

    /// Page 0 is a seed with three links, page 1 links to 2 and 4.
    pub(crate) struct Small;

    const SMALL: &[(u32, &[u32])] = &[(0, &[1, 2, 3]), (1, &[2, 4])];

    impl Rows for Small {
        fn pages(&self) -> u64 {
            5
        }

        fn links(&self) -> u64 {
            5
        }

        fn walk(&self, visit: &mut RowsVisitor<'_>) -> std::result::Result<(), Stop> {
            SMALL
                .iter()
                .try_for_each(|&(page, targets)| visit(&[Row::new(page, targets)]))
        }
    }

    fn after(order: &str) -> Vec<(u32, f64)> {
        with_links(order).0
    }

    /// Returns the pages of the order with their scores, and the number of links that it followed.
    fn with_links(order: &str) -> (Vec<(u32, f64)>, u64) {
        let mut history = CrawlHistory::new(PaperOrder::named(order).unwrap().strategy());
        for &(page, targets) in SMALL {
            history.row(Row::new(page, targets));
        }
        let best = history.best(&CrawlFacts::of(&Small), 100).unwrap();
        let best = best.iter().map(|of| (of.page, of.score)).collect();
        (best, history.strategy().links())
    }

    #[test]
    fn orders_by_hand() {
        assert_eq!(after("backlink"), [(2, 2.0), (3, 1.0), (4, 1.0)]);
        // On the first host 2 and 4 wait; then both hosts have one, and the first known one comes first.
        let sites = larger_sites([(2, 0), (3, 1), (4, 0)].into_iter(), 2, 100);
        let sites: Vec<(u32, f64)> = sites.iter().map(|of| (of.page, of.score)).collect();
        assert_eq!(sites, [(2, 2.0), (4, 1.0), (3, 1.0)]);
        // x1 = t + d x0 / 3, x2 = x1 + d x1 / 2, x3 = x1, x4 = t + d x1 / 2, where t is what the virtual page pays.
        let ranked = after("pagerank:k=1");
        let of = |page: u32| ranked.iter().find(|of| of.0 == page).unwrap().1;
        let x1 = of(3);
        assert!((of(2) - x1 * (1.0 + DAMPING / 2.0)).abs() < 0.01);
        assert_eq!(ranked[0].0, 2);
        // Of readers at page 0 a share d continues, a third of it to page 3; page 1 passes on half of its third.
        let (mass, links) = with_links("rankmass");
        assert_eq!(links, 5);
        let of = |page: u32| mass.iter().find(|of| of.0 == page).unwrap().1;
        assert!((of(4) / of(3) - DAMPING / 2.0).abs() < 1e-6);
        assert!((of(2) / of(3) - (1.0 + DAMPING / 2.0)).abs() < 1e-6);
    }

    #[test]
    fn orders_have_names() {
        for name in [
            "backlink",
            "pagerank",
            "pagerank:k=7",
            "rankmass",
            "larger-sites-first",
            "greedy",
            "circulating",
            "circulating:damping=0.5",
            "fica-inverse",
            "fica-one",
        ] {
            assert_eq!(PaperOrder::named(name).unwrap().to_string(), name);
        }
        assert_eq!(PaperOrder::named("pagerank:k=0"), None);
        assert_eq!(PaperOrder::named("forecast"), None);
    }

    /// Works out the ledger by hand, in endowments, up to rounding of units: page 0 passes d/3 to each of 1, 2 and 3, and
    /// the virtual page pays all four (1 - d)/4. Then page 1 passes d/2 of its 1 + d/3 + (1 - d)/4 to 2 and to 4, a new
    /// page with an endowment, and five pages are paid.
    #[test]
    fn greedy_is_the_ledger() {
        let d = 0.85;
        let first = (1.0 - d) / 4.0;
        let one = 1.0 + d / 3.0 + first;
        let second = (1.0 - d) * one / 5.0;
        let found = after("greedy");
        let expected = [
            (2, one + d * one / 2.0 + second),
            (4, 1.0 + d * one / 2.0 + second),
            (3, one + second),
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.0, expected.0);
            assert!(
                (found.1 - expected.1).abs() < 1e-8,
                "{found:?} {expected:?}"
            );
        }
        assert_eq!(found.len(), 3);
    }
}
