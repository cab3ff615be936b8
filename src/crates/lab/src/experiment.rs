//! One simulated crawl with measurements: a setting gives rows of errors over time.

use cashrank::{Error, Result};
use cashrank_graph::engine::{
    Config, ENDOWMENT, Engine, Estimation, Estimator, InMemory, WindowPolicy, damping_units,
};
use cashrank_graph::rank::Teleport;
use cashrank_graph::rank::pagerank::Walk;
use serde::{Deserialize, Serialize};

use crate::crawl::Crawl;
use crate::errors::{Errors, Reference};
use crate::strategy::Strategy;
use crate::web::Web;

/// Changes of the web in a pass (the time in which as many pages are crawled as it had at first), as shares of that
/// number. Changes are spread evenly over the crawls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changes {
    /// Share of pages whose in-degree is doubled or halved: the paper's change rate.
    pub in_degree: f64,
    /// Share of pages that appear.
    pub appear: f64,
    /// Share of pages that vanish.
    pub vanish: f64,
    /// Number of passes before the first change.
    pub after: u32,
    /// Number of passes after which changes stop; `None`: they do not stop.
    pub until: Option<u32>,
}

impl Changes {
    /// No changes.
    pub const NONE: Changes = Changes {
        in_degree: 0.0,
        appear: 0.0,
        vanish: 0.0,
        after: 0,
        until: None,
    };
}

/// Window, and the estimator; `None`: the window's default.
pub type Reading = (WindowPolicy, Option<Estimator>);

/// Settings of a simulated crawl, without the web.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Strategy that chooses the next page.
    pub strategy: Strategy,
    /// True if pages become known by links; false if all are known at first.
    pub growing: bool,
    /// Changes of the web.
    pub changes: Changes,
    /// Windows that are read, side by side.
    pub windows: Vec<Reading>,
    /// Number of passes. A pass is as many crawls as the web had pages at first.
    pub passes: u32,
    /// Number of rows per pass and window; 0: one after the last pass.
    pub samples: u32,
    /// Damping, of the engine and of the reference.
    pub damping: f64,
    /// Value of [`Config::recycle_after`]; 0 as in the paper.
    pub recycle_after: u8,
    /// Seed of the crawl (the web has its own).
    pub seed: u64,
}

impl Default for Setting {
    /// Returns the paper's setting: Greedy over a web that does not change, ten passes, all of the history.
    fn default() -> Setting {
        Setting {
            strategy: Strategy::Greedy,
            growing: false,
            changes: Changes::NONE,
            windows: vec![(WindowPolicy::Whole, Some(Estimator::Distributed))],
            passes: 10,
            samples: 1,
            damping: 0.85,
            recycle_after: 0,
            seed: 1,
        }
    }
}

/// Measurements of one window at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of pages crawled so far.
    #[serde(rename = "crawled_pages")]
    pub crawled: u64,
    /// Number of passes so far.
    pub passes: f64,
    /// Number of live pages.
    #[serde(rename = "live_pages")]
    pub live: u64,
    /// Number of pages that the engine knows, including vanished ones.
    #[serde(rename = "known_pages")]
    pub known: u64,
    /// G in turnovers of the supply: the paper's error factor is 1/G.
    pub turnovers: f64,
    /// Mean cash of the pages crawled since the sample before, at the moment they were crawled; 1 is the mean of all
    /// pages.
    #[serde(rename = "cash_at_crawl_per_mean")]
    pub cash: f64,
    /// Window that was read.
    pub window: WindowPolicy,
    /// Estimator that was used.
    pub estimator: Estimator,
    /// Errors against exact PageRank of the web as it is at this moment.
    #[serde(flatten)]
    pub errors: Errors,
    /// Certified bound on the L1 distance from PageRank of the window's own graph, if there is one.
    #[serde(rename = "l1_bound")]
    pub bound: Option<f64>,
    /// Mean number of measures kept per page.
    #[serde(rename = "measures_per_page")]
    pub measures: f64,
}

impl Sample {
    /// Header of a table of samples.
    pub const COLUMNS: &str = "crawled_pages,passes,live_pages,known_pages,turnovers,cash_at_crawl_per_mean,\
        window,estimator,error_percent,error_top_tenth_percent,error_weighted_percent,\
        above_twice_the_mean_percent,wrong_order_percent,l1_bound,measures_per_page";

    /// Formats a line of the table, without its end.
    pub fn line(&self) -> String {
        let Errors {
            all,
            top,
            weighted,
            above_twice,
            ordering,
        } = self.errors;
        let bound = self
            .bound
            .map_or(String::new(), |bound| format!("{bound:.4e}"));
        // Windows may contain a comma.
        let window = match self.window.to_string() {
            window if window.contains(',') => format!("\"{window}\""),
            window => window,
        };
        format!(
            "{},{:.4},{},{},{:.4},{:.4},{window},{},{all:.4},{top:.4},{weighted:.4},{above_twice:.4},\
             {ordering:.4},{bound},{:.4}",
            self.crawled,
            self.passes,
            self.live,
            self.known,
            self.turnovers,
            self.cash,
            self.estimator,
            self.measures,
        )
    }
}

impl Setting {
    fn check(&self) -> Result<()> {
        let Changes {
            in_degree,
            appear,
            vanish,
            after,
            until,
        } = self.changes;
        let rates = [
            ("in-degrees", in_degree),
            ("pages appearing", appear),
            ("pages vanishing", vanish),
        ];
        for (what, rate) in rates {
            if !(0.0..=RATE_MAX).contains(&rate) {
                return Err(Error::Usage(format!(
                    "a change rate of {rate} ({what}): a share of the pages, from 0 to {RATE_MAX}"
                )));
            }
        }
        if self.passes == 0 {
            return Err(Error::Usage("0 passes: at least 1".into()));
        }
        if until.is_some_and(|until| until <= after) {
            return Err(Error::Usage(format!(
                "changes after pass {after} until pass {}: there is no pass between",
                until.unwrap_or(0)
            )));
        }
        Ok(())
    }

    fn configs(&self) -> Result<Vec<Config>> {
        let config = |&(window, estimator): &Reading| {
            let mut config = Config::default();
            config.window = window;
            config.recycle_after = self.recycle_after;
            config.set_damping(self.damping)?;
            config.set_estimator(estimator.unwrap_or(window.estimator()));
            Ok(config)
        };
        self.windows.iter().map(config).collect()
    }

    /// Crawls `web`, and passes each row to `each` as soon as it is known.
    ///
    /// # Errors
    /// [`Error::Usage`] for a parameter out of range, or a web that died out; errors of `each`.
    pub fn run(&self, web: Web, mut each: impl FnMut(Sample) -> Result<()>) -> Result<()> {
        self.check()?;
        let pass = web.live().len() as u64;
        let crawl = Crawl::begin(
            web,
            self.strategy,
            self.growing,
            &self.configs()?,
            self.seed,
        )?;
        let mut run = Run {
            setting: self,
            crawl,
            pass,
            due: [0.0; 3],
            reference: None,
        };
        let samples = u64::from(self.passes) * u64::from(self.samples.max(1));
        let end = u64::from(self.passes) * pass;
        for sample in 1..=samples {
            if self.samples == 0 && sample < samples {
                continue;
            }
            let until = (u128::from(end) * u128::from(sample) / u128::from(samples)) as u64;
            let before = run.crawl.crawled();
            while run.crawl.crawled() < until {
                run.crawl.step()?;
                run.change()?;
            }
            run.sample(until - before, &mut each)?;
        }
        Ok(())
    }

    /// Runs the off-line algorithm for comparison: errors of power iteration from equal importance on the web as it is,
    /// after 1, 2, ... iterations. Each reads as many pages as a pass crawls.
    ///
    /// # Errors
    /// [`Error::Usage`] if damping is out of range.
    pub fn offline(&self, web: &Web) -> Result<Vec<Errors>> {
        let reference = Reference::of(web, self.damping)?;
        let graph = web.graph();
        let walk = Walk {
            links: &graph,
            damping: damping_units(self.damping) as f64 / 2f64.powi(32),
            teleport: &Teleport::default(),
        };
        let mut now = vec![1.0 / graph.nodes() as f64; graph.nodes()];
        let mut next = now.clone();
        let iterate = |_| {
            walk.step(&now, &mut next);
            std::mem::swap(&mut now, &mut next);
            reference.errors(&now)
        };
        Ok((0..self.passes).map(iterate).collect())
    }
}

/// Maximum number of changes per page and pass.
const RATE_MAX: f64 = 10.0;

struct Run<'s> {
    setting: &'s Setting,
    crawl: Crawl,
    pass: u64,
    /// Changes that are due, of each kind.
    due: [f64; 3],
    /// Exact values, with the number of changes after which they were computed.
    reference: Option<(u64, Reference)>,
}

impl Run<'_> {
    /// Makes the changes that fall into the time of one crawl.
    fn change(&mut self) -> Result<()> {
        let changes = self.setting.changes;
        let crawled = self.crawl.crawled();
        let over = changes.until.map(|until| u64::from(until) * self.pass);
        if crawled <= u64::from(changes.after) * self.pass || over.is_some_and(|end| crawled > end)
        {
            return Ok(());
        }
        let web = self.crawl.web_mut();
        let rates = [changes.in_degree, changes.appear, changes.vanish];
        for (kind, (due, rate)) in self.due.iter_mut().zip(rates).enumerate() {
            *due += rate;
            while *due >= 1.0 {
                *due -= 1.0;
                match kind {
                    0 => web.change_in_degree(),
                    1 => web.appear()?,
                    _ => web.vanish()?,
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self, crawls: u64, each: &mut impl FnMut(Sample) -> Result<()>) -> Result<()> {
        let changes = self.crawl.web().changes();
        let reference = match self.reference.take() {
            Some((at, reference)) if at == changes => reference,
            _ => Reference::of(self.crawl.web(), self.setting.damping)?,
        };
        let totals = *self.crawl.ledger().totals();
        let mean = ENDOWMENT as f64;
        let cash = self.crawl.take_cash() as f64 / mean / crawls.max(1) as f64;
        let nodes = self.crawl.nodes().to_vec();
        let mut estimate = vec![0.0; self.crawl.web().pages()];
        let live = self.crawl.web().live().len() as u64;
        let crawled = self.crawl.crawled();
        for engine in self.crawl.engines() {
            let (window, measures) = read(engine, &nodes, &mut estimate)?;
            each(Sample {
                crawled,
                passes: crawled as f64 / self.pass as f64,
                live,
                known: totals.pages,
                turnovers: totals.clock as f64 / totals.supply() as f64,
                cash,
                window: window.policy,
                estimator: window.estimator,
                errors: reference.errors(&estimate),
                bound: window.bound_l1(),
                measures: measures / totals.pages as f64,
            })?;
        }
        self.reference = Some((changes, reference));
        Ok(())
    }
}

/// Fills in the estimate of every known page. Returns its window, and the number of measures kept.
fn read(
    engine: &mut Engine<InMemory>,
    nodes: &[u32],
    estimate: &mut [f64],
) -> Result<(cashrank_graph::engine::Window, f64)> {
    let ranking = engine.ranking()?;
    for (page, &node) in ranking.pages.iter().zip(nodes) {
        estimate[node as usize] = page.importance;
    }
    let window = &ranking.window;
    let rows = window.policy.rows(window.estimator);
    let measures = if rows.keeps_measures() {
        Estimation::begin(engine, engine.config())?.scores(|_, _| Ok(()))?
    } else {
        ranking.pages.len() as u64
    };
    Ok((ranking.window, measures as f64))
}
