//! A simulated crawl: a strategy chooses pages of a web, and real engines apply what is found there.
//!
//! The cash decides where Greedy goes, and it is the same whatever the window is. So engines that differ
//! in their windows can be driven side by side through one crawl, of which the first one's ledger decides.
//!
//! **Known from the start.** In the paper's experiments every page is known and holds 1/n before the first
//! crawl. The engine here is begun with all pages admitted and none in its first round, as a checkpoint of an
//! older crawl would be; with `recycle_after` 0 nothing is ever recycled then, as in the paper. A crawl that
//! *grows* begins with a few pages instead; others are admitted as links to them are found, and recycled
//! at the ends of rounds as long as they were not crawled.
//!
//! **Time.** As many crawls as the web had pages at first take 30 days (the paper's Figure 5: "N pages
//! per month"), so that windows can be given in fetch time.

use cashrank::Digest;
use cashrank::{Error, Result};
use cashrank_crawl::batch::{Batch, BatchEntry, Fingerprints, HashKey, LinkCounts, What};
use cashrank_crawl::decode::Time;
use cashrank_graph::engine::{
    Config, Engine, InMemory, Ledger, PageId, ROUND_MIN, TargetLinks, age,
};

use crate::random::{Purpose, Random};
use crate::strategy::{Scheduler, Strategy};
use crate::web::{PAGES_MAX, Web};

/// Time in which as many pages are crawled as the web had at first, in seconds.
pub const MONTH: Time = 30 * 86_400;

/// Crawl in progress.
pub struct Crawl {
    web: Web,
    engines: Vec<Engine<InMemory>>,
    scheduler: Box<dyn Scheduler>,
    /// Batch that never ends: its names are the known pages, in the engines' order.
    batch: Batch,
    fingerprints: Fingerprints,
    /// The web's number of each known page.
    nodes: Vec<u32>,
    /// The engines' number of each page of the web, or [`UNKNOWN`].
    known: Vec<u32>,
    first_pages: u64,
    crawled: u64,
    /// Sum of the cash of crawled pages, at the moment they were crawled, since it was last read.
    cash: u128,
    rounds: u64,
}

const UNKNOWN: u32 = u32::MAX;

impl Crawl {
    /// Begins a crawl of `web` by one engine for each of `configs`, which differ in windows only. If it is `growing`,
    /// one page in a thousand is known at first, otherwise all are.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no engine or a configuration does not fit.
    pub fn begin(
        web: Web,
        strategy: Strategy,
        growing: bool,
        configs: &[Config],
        seed: u64,
    ) -> Result<Crawl> {
        let engine =
            |config: &Config| Engine::with_storage(config.clone(), PAGES_MAX, InMemory::default());
        let engines = configs.iter().map(engine).collect::<Result<Vec<_>>>()?;
        if engines.is_empty() {
            return Err(Error::Usage("a crawl without a window".into()));
        }
        let first_pages = web.live().len() as u64;
        let mut crawl = Crawl {
            scheduler: strategy.scheduler(Random::new(seed, Purpose::Order)),
            batch: Batch::default(),
            fingerprints: HashKey([seed, 0]).fingerprints(),
            nodes: Vec::new(),
            known: Vec::new(),
            first_pages,
            crawled: 0,
            cash: 0,
            rounds: 0,
            engines,
            web,
        };
        let mut seeds = crawl.web.live().to_vec();
        if growing {
            let mut random = Random::new(seed, Purpose::Seeds);
            let first = seeds.len().div_ceil(1000);
            for at in 0..first {
                let other = at + random.below(seeds.len() - at);
                seeds.swap(at, other);
            }
            seeds.truncate(first);
        }
        crawl.open(&seeds, !growing)?;
        Ok(crawl)
    }

    /// Lets the engines admit the first pages. If `settled`, none counts as never visited.
    fn open(&mut self, pages: &[u32], settled: bool) -> Result<()> {
        for &page in pages {
            self.name(page);
        }
        self.apply(What::Failed, 0)?;
        for engine in self.engines.iter_mut().filter(|_| settled) {
            let mut state = engine.state();
            let pages = state.totals.pages;
            state.totals.round_records = 0;
            state.totals.round_length = pages.max(ROUND_MIN);
            let cells = engine.ledger().cells().to_vec();
            let load = |to: &mut [u64], ages: &mut [u8]| {
                to.copy_from_slice(&cells);
                ages.fill(age::OLDEST << 4 | age::OLDEST);
                // If their number is odd, the last half byte belongs to the next page.
                if let Some(last) = ages.last_mut().filter(|_| pages % 2 == 1) {
                    *last = age::OLDEST;
                }
                Ok(())
            };
            engine.restore(state, load)?;
        }
        self.make_known(0);
        Ok(())
    }

    /// Returns the web.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// Returns the web for changing it.
    pub fn web_mut(&mut self) -> &mut Web {
        &mut self.web
    }

    /// Returns the engines, in the order of their configurations.
    pub fn engines(&mut self) -> &mut [Engine<InMemory>] {
        &mut self.engines
    }

    /// Returns the ledger, which is the same for all engines.
    pub fn ledger(&self) -> &Ledger {
        self.engines[0].ledger()
    }

    /// Returns the web's number of each page that the engines know, in their order.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the number of pages crawled so far.
    pub fn crawled(&self) -> u64 {
        self.crawled
    }

    /// Returns the cash, in units, that pages had when they were crawled: the sum since the last call.
    pub fn take_cash(&mut self) -> u128 {
        std::mem::take(&mut self.cash)
    }

    /// Crawls one page.
    ///
    /// # Errors
    /// [`Error::Usage`] if all known pages are gone; errors of the engine.
    pub fn step(&mut self) -> Result<()> {
        let page = self.scheduler.next().ok_or_else(|| {
            Error::Usage("all pages that were known have vanished: nothing is left to crawl".into())
        })?;
        let node = self.nodes[page as usize];
        self.cash += u128::from(self.ledger().cash(PageId(u64::from(page))));
        self.crawled += 1;
        self.batch.links.clear();
        if !self.web.is_live(node) {
            self.apply(What::Gone, page)?;
            self.scheduler.gone();
        } else {
            let first_new = self.nodes.len();
            let mut links = std::mem::take(&mut self.batch.links);
            for at in 0..self.web.links(node).len() {
                let target = self.web.links(node)[at];
                links.push(self.name(target));
            }
            self.batch.links = links;
            self.apply(What::Visit, page)?;
            self.make_known(first_new);
            self.scheduler
                .crawled(self.engines[0].ledger(), &self.batch.links);
        }
        let rounds = self.ledger().totals().rounds;
        if rounds != self.rounds {
            self.rounds = rounds;
            self.scheduler.recycled(self.engines[0].ledger());
        }
        Ok(())
    }

    /// Returns the engines' number of a page of the web; adds the page if it is new.
    fn name(&mut self, node: u32) -> u32 {
        self.known.resize(self.web.pages(), UNKNOWN);
        let known = &mut self.known[node as usize];
        if *known == UNKNOWN {
            *known = self.nodes.len() as u32;
            self.nodes.push(node);
            let name = node.to_string();
            let fingerprint = self.fingerprints.of(name.as_bytes());
            self.batch.push_name(name.as_bytes(), fingerprint);
        }
        *known
    }

    fn make_known(&mut self, first: usize) {
        for page in first..self.nodes.len() {
            self.scheduler.known(page as u32, self.engines[0].ledger());
        }
    }

    /// Applies a record in all engines; its links are the batch's. Pages have the numbers of their names.
    fn apply(&mut self, what: What, source: u32) -> Result<()> {
        let seconds = u128::from(self.crawled) * MONTH as u128 / u128::from(self.first_pages);
        let page = |name: u32| PageId(name.into());
        let targets: Vec<PageId> = self.batch.links.iter().copied().map(page).collect();
        let entry = BatchEntry {
            end: 0,
            what,
            source,
            names_end: 0,
            links_start: 0,
            links_end: 0,
            fetched_at: Some(seconds as Time),
            digest: Digest::NONE,
            counts: LinkCounts {
                read: targets.len() as u32,
                ..LinkCounts::default()
            },
            status: None,
            is_timeless: false,
            kind: None,
        };
        let links = TargetLinks::from(&targets[..]);
        for engine in &mut self.engines {
            engine.admit(&self.batch, self.nodes.len() as u32)?;
            engine.apply(&entry, page(source), links, None)?;
        }
        Ok(())
    }
}
