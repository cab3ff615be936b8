//! Simulated crawls from a few seeds, in which a crawl order decides what is read next: how early the
//! important pages are found.
//!
//! The crawler knows nothing of the web but what it read. It reads the seeds, drawn at random, then asks its
//! order for pages; where none is left, a page drawn at random is read. A page is read once. Pages have the
//! numbers that an ingest would give them: in the order in which they become known, a page before its links.
//!
//! An order that is up to date after every page is asked page by page; `forecast` for a hundredth as many pages as were
//! read, and one that settles for a twentieth. Orders that use the last ranking get one of the rows read, within 0.01. A limit of pages a host holds for the pages asked for at a
//! time, then a twentieth for all orders.
//!
//! **Hot pages** (FICA, section 4): of the first k pages read, the share that is among the k pages of
//! greatest PageRank of the whole graph. **tau** (its Table 1): Kendall's, of the PageRank of the pages read
//! and their scores, for orders that score pages that were read, too (by distance, or by cash); for other orders, how
//! early they were read.
//!
//! **Coverage**: the bounds on what readers who start at the seeds see of the web, over the pages read
//! ([`cashrank_graph::rank::coverage`]).

use std::collections::HashMap;
use std::ops::Range;

use cashrank::{Error, Result};
use cashrank_base::url::host;
use cashrank_graph::engine::damping_units;
use cashrank_graph::graph::Graph;
use cashrank_graph::metrics::kendall::tau_b;
use cashrank_graph::rank::RankOptions;
use cashrank_graph::rank::coverage::CoverageBounds;
use cashrank_graph::rank::settle::{settle, settle_near};
use cashrank_graph::rows::{Row, Rows, RowsVisitor, Stop};
use cashrank_steer::schedule::{Choice, CrawlFacts, CrawlHistory, SettledRanking, by_name};

use crate::flow::SeedFlow;
use crate::orders::{Batching, PaperOrder, Queue, QueuedStrategy, larger_sites};
use crate::random::{Purpose, Random};

/// Order in which pages are chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Strategy in the syntax of `next`, and its text.
    Strategy(Choice, String),
    /// Order from a paper.
    Paper(PaperOrder),
    /// Order that knows the final importance of every page, and takes the most important found so far: an upper limit
    /// for the others.
    Oracle,
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Order::Strategy(_, text) => f.write_str(text),
            Order::Paper(order) => order.fmt(f),
            Order::Oracle => f.write_str("oracle"),
        }
    }
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Order, String> {
        match text {
            "oracle" => Ok(Order::Oracle),
            text => match PaperOrder::named(text) {
                Some(order) => Ok(Order::Paper(order)),
                None => Ok(Order::Strategy(text.parse()?, text.into())),
            },
        }
    }
}

/// Settings of simulated crawls.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Number of seeds of a crawl; 0: a thousandth of the pages.
    pub seeds: u64,
    /// Shares of the web at which results are measured, ascending; the last one ends the crawl.
    pub shares: Vec<f64>,
    /// Share of a page's importance that its links pass on, for coverage.
    pub damping: f64,
    /// Maximum number of pages per host in a request.
    pub per_host: Option<u64>,
    /// Number of pages per request, instead of the number described in the module's head.
    pub batch: Option<u64>,
}

/// Measurements at one share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Share of the web's pages that was read.
    pub share: f64,
    /// Share of these that are hot.
    pub hot: f64,
    /// Share of all importance that these hold.
    pub importance: f64,
    /// Kendall's tau; `None` if undefined.
    pub tau: Option<f64>,
    /// Bounds on what readers from the seeds see of the web; `None` if not all seeds were read yet.
    pub coverage: Option<CoverageBounds>,
    /// Number of links that the order touched per page read ([`cashrank_steer::schedule::Strategy::links`]).
    pub links: f64,
}

/// Names of the nodes of a web: their order, and their hosts.
pub struct NodeNames {
    order: Vec<u32>,
    /// Host of each node, numbered in order of first appearance.
    host: Vec<u32>,
    hosts: u32,
}

impl NodeNames {
    /// Returns the order and the hosts of these names.
    pub fn of(names: &[String]) -> Result<NodeNames> {
        let mut numbers = HashMap::new();
        let mut host_of = |name: &String| {
            let next = numbers.len() as u32;
            *numbers
                .entry(host(name.as_bytes()).to_vec())
                .or_insert(next)
        };
        let host = names.iter().map(&mut host_of).collect();
        let each = |nodes: Range<u64>, visit: &mut dyn FnMut(&[u8])| {
            let names = &names[nodes.start as usize..nodes.end as usize];
            names.iter().for_each(|name| visit(name.as_bytes()));
            Ok(())
        };
        Ok(NodeNames {
            order: by_name(names.len() as u64, 1, each)?,
            host,
            hosts: numbers.len() as u32,
        })
    }

    /// Returns the order of the pages with these numbers; `UNKNOWN` for nodes that are not known.
    fn of_pages(&self, numbers: &[u32]) -> Vec<u32> {
        let pages = self.order.iter().map(|&node| numbers[node as usize]);
        pages.filter(|&page| page != UNKNOWN).collect()
    }
}

/// Ranking of the rows read, as an ingest would have published it.
struct LastRanking {
    damping: f64,
    bound_l1: f64,
    importance: Vec<f64>,
}

impl LastRanking {
    /// Settles the rows, from the last ranking.
    fn settle(&mut self, rows: &RowsRead) -> Result<()> {
        let options = RankOptions::until(damping_units(self.damping), SETTLED);
        let settled = match settle_near(rows, &self.importance, &options, &mut ())? {
            Some(settled) => Some(settled),
            None => settle(rows, &options, &mut ())?,
        };
        if let Some(settled) = settled {
            self.bound_l1 = settled.certificate.received_l1.unwrap_or(f64::INFINITY);
            self.importance = settled.importance();
        }
        Ok(())
    }
}

/// Bound to which rankings are settled, as by an ingest.
const SETTLED: f64 = 0.01;

/// Web to crawl.
pub struct Web<'a> {
    /// Links of the web.
    pub graph: &'a Graph,
    /// Final importance of each node.
    pub importance: &'a [f64],
    /// Names of the nodes; `None` if they have none.
    pub names: Option<&'a NodeNames>,
    /// Position of each node by importance, from 0.
    places: Vec<u32>,
}

impl<'a> Web<'a> {
    /// Creates a web whose nodes have these importances.
    pub fn new(graph: &'a Graph, importance: &'a [f64], names: Option<&'a NodeNames>) -> Web<'a> {
        let mut order: Vec<u32> = (0..graph.nodes() as u32).collect();
        let of = |node: u32| importance[node as usize];
        order.sort_by(|&a, &b| of(b).total_cmp(&of(a)).then(a.cmp(&b)));
        let mut places = vec![0; order.len()];
        for (place, &node) in order.iter().enumerate() {
            places[node as usize] = place as u32;
        }
        Web {
            graph,
            importance,
            names,
            places,
        }
    }

    /// Crawls the web once. `set` and `seed` determine the random draws, the same for all orders.
    ///
    /// # Errors
    /// The web has no pages; errors of the order.
    pub fn crawl(
        &self,
        order: &Order,
        setting: &Setting,
        set: u64,
        seed: u64,
    ) -> Result<Vec<Point>> {
        if self.graph.nodes() == 0 {
            return Err(Error::Usage("the web has no pages to crawl".into()));
        }
        let mut crawl = Crawl::new(self, order, setting, seed.wrapping_add(set));
        let mut points = Vec::new();
        let nodes = self.graph.nodes() as f64;
        for &share in &setting.shares {
            let until = ((share * nodes).round() as u32).clamp(1, self.graph.nodes() as u32);
            crawl.until(until)?;
            points.push(crawl.point(share)?);
        }
        Ok(points)
    }
}

const UNKNOWN: u32 = u32::MAX;

/// Rows of the pages read, in the order of reading.
#[derive(Default)]
struct RowsRead {
    pages: Vec<u32>,
    ends: Vec<usize>,
    targets: Vec<u32>,
    known: u64,
}

impl Rows for RowsRead {
    fn pages(&self) -> u64 {
        self.known
    }

    fn links(&self) -> u64 {
        self.targets.len() as u64
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        let mut start = 0;
        for (&page, &end) in self.pages.iter().zip(&self.ends) {
            visit(&[Row::new(page, &self.targets[start..end])])?;
            start = end;
        }
        Ok(())
    }
}

/// Numbers of nodes and pages.
struct Numbers {
    /// Page of each node.
    page: Vec<u32>,
    /// Node of each page.
    node: Vec<u32>,
}

/// Readers who start at the seeds.
struct Readers {
    /// Nodes at which they, and the crawl, start.
    seeds: Vec<u32>,
    /// Flow of readers over the rows of pages read.
    flow: SeedFlow,
}

struct Crawl<'a> {
    web: &'a Web<'a>,
    setting: &'a Setting,
    history: CrawlHistory,
    rows_read: RowsRead,
    /// Start of each node's row in the graph.
    starts: Vec<usize>,
    numbers: Numbers,
    /// Pages that the oracle may take, by importance.
    oracle: Option<Queue>,
    batching: Batching,
    needs_names: bool,
    /// Last ranking; `None` if the order needs none.
    published: Option<LastRanking>,
    /// True for the order that goes by the sizes of hosts.
    by_sites: bool,
    /// True for the orders that score pages that were read, too: by distance, or by cash.
    scores_read: bool,
    random: Random,
    readers: Readers,
    /// Nodes to be read before the order is asked, last first.
    waiting: Vec<u32>,
}

impl<'a> Crawl<'a> {
    fn new(web: &'a Web<'a>, order: &Order, setting: &'a Setting, seed: u64) -> Crawl<'a> {
        let nodes = web.graph.nodes();
        let mut random = Random::new(seed, Purpose::Seeds);
        let seeds = match setting.seeds {
            0 => nodes.div_ceil(1000),
            seeds => (seeds as usize).min(nodes),
        };
        let mut all: Vec<u32> = (0..nodes as u32).collect();
        for at in 0..seeds {
            let other = at + random.below(nodes - at);
            all.swap(at, other);
        }
        all.truncate(seeds);
        all.reverse();
        let mut starts = vec![0];
        starts.extend(web.graph.rows().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        let mut published = None;
        let (strategy, batching, needs_names) = match order {
            Order::Strategy(choice, text) => {
                let spec = choice.spec();
                // Unless a seed was given, each crawl draws by its own.
                let seeded = (text == "random")
                    .then(|| format!("random:seed={seed}").parse::<Choice>().ok());
                let strategy = seeded.flatten().as_ref().unwrap_or(choice).strategy();
                let strategy = QueuedStrategy::wrap(spec.name, strategy);
                let by_ranking = ["forecast", "settled"].contains(&spec.name);
                published = by_ranking.then(|| LastRanking {
                    damping: choice.damping(),
                    bound_l1: f64::INFINITY,
                    importance: Vec::new(),
                });
                (strategy, Batching::of_strategy(spec.name), spec.by_names)
            }
            Order::Paper(order) => (order.strategy(), order.batching(), false),
            // This strategy is never asked.
            Order::Oracle => (PaperOrder::Backlink.strategy(), Batching::One, false),
        };
        Crawl {
            web,
            setting,
            history: CrawlHistory::new(strategy),
            rows_read: RowsRead::default(),
            starts,
            numbers: Numbers {
                page: vec![UNKNOWN; nodes],
                node: Vec::new(),
            },
            oracle: (*order == Order::Oracle).then(Queue::default),
            batching,
            needs_names,
            published,
            by_sites: *order == Order::Paper(PaperOrder::LargerSites),
            scores_read: match order {
                Order::Strategy(choice, _) => choice.spec().name == "fica",
                Order::Paper(order) => matches!(order, PaperOrder::Greedy | PaperOrder::Fica(_)),
                Order::Oracle => false,
            },
            random,
            readers: Readers {
                seeds: all.clone(),
                flow: SeedFlow::default(),
            },
            waiting: all,
        }
    }

    /// Reads until `pages` pages were read.
    fn until(&mut self, pages: u32) -> Result<()> {
        while self.history.crawl().read() < pages {
            if self.waiting.is_empty() {
                self.waiting = self.ask()?;
                self.waiting.reverse();
            }
            let next = match self.waiting.pop() {
                Some(node) => node,
                None => self.draw(),
            };
            let page = self.numbers.page[next as usize];
            if page == UNKNOWN || !self.history.crawl().is_read(page) {
                self.read(next)?;
            }
        }
        Ok(())
    }

    /// Draws an unknown node. There is one, since all known ones were read, but not all nodes.
    fn draw(&mut self) -> u32 {
        let unknown = |node: &u32| self.numbers.page[*node as usize] == UNKNOWN;
        let left = (0..self.numbers.page.len() as u32).filter(unknown).count();
        let at = self.random.below(left.max(1));
        let drawn = (0..self.numbers.page.len() as u32).filter(unknown).nth(at);
        drawn.unwrap_or_default()
    }

    fn know(&mut self, node: u32) -> u32 {
        let page = &mut self.numbers.page[node as usize];
        if *page == UNKNOWN {
            *page = self.numbers.node.len() as u32;
            self.numbers.node.push(node);
            if let Some(oracle) = &mut self.oracle {
                oracle.put(*page, self.web.importance[node as usize]);
            }
        }
        *page
    }

    fn read(&mut self, node: u32) -> Result<()> {
        let page = self.know(node);
        let start = self.rows_read.targets.len();
        let links = self.starts[node as usize]..self.starts[node as usize + 1];
        for at in links {
            let target = self.know(self.web.graph.targets()[at]);
            self.rows_read.targets.push(target);
        }
        self.rows_read.pages.push(page);
        self.rows_read.ends.push(self.rows_read.targets.len());
        self.rows_read.known = self.numbers.node.len() as u64;
        let row = Row::new(page, &self.rows_read.targets[start..]);
        self.history.row(row);
        Ok(())
    }

    /// Returns the nodes to read next.
    fn ask(&mut self) -> Result<Vec<u32>> {
        let part = |of: u32| u64::from(self.history.crawl().read() / of);
        let count = match (self.setting.batch, self.setting.per_host, self.batching) {
            (Some(batch), ..) => batch,
            (None, Some(_), _) => part(20),
            (None, None, Batching::One) => 1,
            (None, None, Batching::Part(of)) => part(of),
        };
        let count = count.max(1) as usize;
        let Some(per_host) = self.setting.per_host else {
            return self.best(count);
        };
        let names = self.web.names.ok_or_else(|| {
            Error::Usage("a limit of pages a host needs the names of pages".into())
        })?;
        // Requests all pages at once: an order that settles would settle again for each longer list.
        let mut hosts: HashMap<u32, u64> = HashMap::new();
        let mut taken = self.best(self.numbers.node.len())?;
        taken.retain(|&node| {
            let of = hosts.entry(names.host[node as usize]).or_default();
            *of += 1;
            *of <= per_host
        });
        taken.truncate(count);
        Ok(taken)
    }

    fn best(&mut self, count: usize) -> Result<Vec<u32>> {
        let Crawl {
            history, numbers, ..
        } = self;
        let best = if let Some(oracle) = &mut self.oracle {
            oracle.best(history.crawl(), count)
        } else if self.by_sites {
            let names = self.web.names.ok_or_else(|| {
                Error::Usage("larger-sites-first needs the names of pages: their hosts".into())
            })?;
            let open = (0..history.crawl().pages()).filter(|&page| history.crawl().is_open(page));
            let host = |page: u32| names.host[numbers.node[page as usize] as usize];
            larger_sites(open.map(|page| (page, host(page))), names.hosts, count)
        } else {
            if let Some(published) = &mut self.published {
                published.settle(&self.rows_read)?;
            }
            let names = self.web.names.filter(|_| self.needs_names);
            let names = names.map(|names| names.of_pages(&numbers.page));
            let ranking = self.published.as_ref().map(|of| SettledRanking {
                damping: of.damping,
                bound_l1: of.bound_l1,
                importances: &of.importance,
            });
            let facts = CrawlFacts {
                names: names.as_deref(),
                ranking,
                ..CrawlFacts::of(&self.rows_read)
            };
            history.best(&facts, count)?
        };
        Ok(best
            .iter()
            .map(|of| numbers.node[of.page as usize])
            .collect())
    }

    fn coverage(&mut self) -> Result<Option<CoverageBounds>> {
        let pages: Vec<u32> = self
            .readers
            .seeds
            .iter()
            .map(|&seed| self.numbers.page[seed as usize])
            .collect();
        if !pages.iter().all(|&page| self.history.crawl().is_read(page)) {
            return Ok(None);
        }
        if self.readers.flow.seeds().is_empty() {
            self.readers.flow = SeedFlow::from(damping_units(self.setting.damping), &pages);
        }
        self.readers.flow.push(&self.rows_read).map(Some)
    }

    fn point(&mut self, share: f64) -> Result<Point> {
        let coverage = self.coverage()?;
        let read = &self.rows_read.pages;
        let nodes = read.iter().map(|&page| self.numbers.node[page as usize]);
        let hot = nodes
            .clone()
            .filter(|&node| (self.web.places[node as usize] as usize) < read.len());
        let importance = |node: u32| self.web.importance[node as usize];
        let all: f64 = self.web.importance.iter().sum();
        let (strategy, crawl) = (self.history.strategy(), self.history.crawl());
        let pairs = nodes
            .clone()
            .zip(read)
            .enumerate()
            .map(|(at, (node, &page))| {
                let own = self.scores_read.then(|| strategy.score(crawl, page));
                (importance(node), own.flatten().unwrap_or(-(at as f64)))
            });
        Ok(Point {
            share,
            hot: hot.count() as f64 / read.len() as f64,
            importance: nodes.map(importance).sum::<f64>() / all,
            tau: tau_b(pairs.collect()),
            coverage,
            links: strategy.links() as f64 / read.len() as f64,
        })
    }
}

/// Returns the mean of several crawls, share by share; tau and coverage only if all have one.
pub fn mean(crawls: &[Vec<Point>]) -> Vec<Point> {
    let count = crawls.len() as f64;
    let shares = crawls.first().map_or(0, Vec::len);
    let at = |at: usize| {
        let each = |of: &dyn Fn(&Point) -> f64| {
            crawls.iter().map(|crawl| of(&crawl[at])).sum::<f64>() / count
        };
        let taus: Option<Vec<f64>> = crawls.iter().map(|crawl| crawl[at].tau).collect();
        let covered = crawls.iter().all(|crawl| crawl[at].coverage.is_some());
        let bound =
            |of: fn(&CoverageBounds) -> f64| each(&|point| point.coverage.as_ref().map_or(0.0, of));
        Point {
            share: crawls[0][at].share,
            hot: each(&|point| point.hot),
            importance: each(&|point| point.importance),
            tau: taus.map(|taus| taus.iter().sum::<f64>() / count),
            coverage: covered.then(|| CoverageBounds {
                at_least: bound(|coverage| coverage.at_least),
                at_most: bound(|coverage| coverage.at_most),
            }),
            links: each(&|point| point.links),
        }
    };
    (0..shares).map(at).collect()
}
