//! `cashrank simulate --local`: experiments with the global PageRank of local domains.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;
use cashrank::Limits;
use cashrank::engine::Config;
use cashrank::formats::Format;
use cashrank::graph::Graph;
use cashrank::load::load;
use cashrank::local::{Policy, Power};
use cashrank::rank::pagerank::{Options, pagerank};
use cashrank::rules::{InputRules, Scope};
use cashrank::sim::local::{self, Method, Row, Study, Ties, World};
use cashrank::source::InputName;

use super::common::{Exit, one_of, parsed, positive, print, say, threads};

/// Options of `simulate --local`.
#[derive(clap::Args)]
#[command(next_help_heading = "Local domains")]
pub struct LocalArgs {
    /// Experiment with `cashrank local` instead of crawls, as in Table 1 of Davis and Dhillon (2006): the graph is the
    /// web, and each method fetches pages of it outside some domains. Without --graph, a synthetic web of hosts.
    #[arg(long, conflicts_with_all = ["web", "out_degree", "strategy", "window", "estimator", "passes", "samples",
        "change_rate", "appear", "vanish", "change_after", "change_until", "growing", "recycle_after"])]
    pub local: bool,
    /// Number of domains: ranges of consecutive pages, evenly spread.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive, requires = "local")]
    domains: u64,
    /// Pages of each domain. Default: 4,000, or a tenth of the graph divided by the domains.
    #[arg(long, value_name = "N", value_parser = positive, requires = "local")]
    domain_pages: Option<u64>,
    /// A domain by the names of its pages, as --scope. May be repeated, for several domains.
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>, requires = "local", requires = "graph",
        conflicts_with_all = ["domains", "domain_pages"])]
    domain: Vec<Scope>,
    /// Pages to fetch outside, for each page of the domain.
    #[arg(long, value_name = "SHARE", default_value_t = 2.0, requires = "local")]
    outside: f64,
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = positive, requires = "local")]
    rounds: u64,
    /// Methods to compare: sc, pf, outlink, random, frontier-cash or share, with `+` for the extrapolated estimate.
    /// Default: all.
    #[arg(long, value_name = "METHOD", value_parser = parsed::<Chosen>, requires = "local", value_delimiter = ',')]
    select: Vec<Chosen>,
    /// Which of pages with equal scores is fetched first: the one known first, the first by name, or any (random).
    #[arg(long, value_name = "WHICH", default_value = "known", requires = "local",
        value_parser = one_of(Ties::ALL.map(Ties::name), parsed::<Ties>))]
    ties: Ties,
    /// With --figures: also measure times for domains of so many pages.
    #[arg(long, value_name = "PAGES", value_parser = positive, requires = "figures", requires = "local", value_delimiter = ',')]
    time: Vec<u64>,
}

/// A method by its name.
#[derive(Debug, Clone, Copy)]
struct Chosen(Method);

impl std::str::FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Chosen, String> {
        let name = text.strip_suffix('+');
        Ok(Chosen(Method {
            policy: name.unwrap_or(text).parse::<Policy>()?,
            extrapolated: name.is_some(),
        }))
    }
}

/// What `simulate` says beside [`LocalArgs`].
pub struct Base<'a> {
    pub graph: Option<&'a OsString>,
    pub format: Option<Format>,
    pub pages: u64,
    pub damping: f64,
    pub seed: u64,
    pub json: bool,
    pub figures: Option<&'a PathBuf>,
    pub threads: Option<u64>,
}

impl LocalArgs {
    pub fn run(&self, base: &Base<'_>) -> anyhow::Result<Exit> {
        if !(self.outside >= 0.0 && self.outside <= 1e6) {
            bail!("--outside {}: 0 to 1,000,000", self.outside);
        }
        let (name, graph, names) = self.web(base)?;
        let order = order(graph.nodes(), &names);
        let domains = self.choose(&graph, &names, &order)?;
        let mut places = vec![0; order.len()];
        for (place, &page) in (0u32..).zip(&order) {
            places[page as usize] = place;
        }
        let exact = pagerank(
            &graph,
            Options {
                damping: base.damping,
                ..Options::default()
            },
        )?;
        let study = Study {
            name,
            world: World::new(&graph, &exact.scores).with_places(&places),
            domains,
            rounds: self.rounds as usize,
            outside: self.outside,
            ties: self.ties,
            power: Power {
                damping: base.damping,
                ..Power::default()
            },
            seed: base.seed,
            threads: threads(base.threads),
        };
        if let Some(folder) = base.figures {
            let sizes: Vec<usize> = self.time.iter().map(|&pages| pages as usize).collect();
            local::figures(&study, &sizes, &|line| say!("{line}"), folder)?;
            say!("the figures are in {}", folder.display());
            return Ok(Exit::Done);
        }
        self.table(&study, base.json)
    }

    fn table(&self, study: &Study<'_>, json: bool) -> anyhow::Result<Exit> {
        let methods = if self.select.is_empty() {
            Method::all()
        } else {
            self.select.iter().map(|chosen| chosen.0).collect()
        };
        print(|out| {
            if !json {
                writeln!(out, "{}", Row::COLUMNS)?;
            }
            for method in methods {
                let row = study.row(method, false)?;
                if json {
                    writeln!(out, "{}", serde_json::to_string(&row)?)?
                } else {
                    writeln!(out, "{}", row.line())?
                }
                out.flush()?;
            }
            Ok(())
        })
    }

    fn web(&self, base: &Base<'_>) -> anyhow::Result<(String, Graph, Vec<String>)> {
        let Some(file) = base.graph else {
            let graph = local::hosts(base.pages as usize, 6, base.seed);
            return Ok((format!("{} pages of hosts", base.pages), graph, Vec::new()));
        };
        let inputs = [InputName::parse(file)];
        let (config, rules) = (Config::default(), InputRules::default());
        let loaded = load(&inputs, base.format, &config, &rules, &Limits::default())?;
        let names = loaded.pages.into_iter().map(|page| page.name).collect();
        let name = Path::new(file)
            .file_name()
            .unwrap_or(file)
            .to_string_lossy();
        Ok((name.into_owned(), loaded.graph, names))
    }

    /// Ranges are of pages in order of their names.
    fn choose(
        &self,
        graph: &Graph,
        names: &[String],
        order: &[u32],
    ) -> anyhow::Result<Vec<Vec<u32>>> {
        if !self.domain.is_empty() {
            let pages = |scope: &Scope| -> anyhow::Result<Vec<u32>> {
                let named = (0u32..).zip(names);
                let local = named.filter(|(_, name)| scope.has(name.as_bytes()));
                let local: Vec<u32> = local.map(|(page, _)| page).collect();
                if local.is_empty() {
                    bail!("--domain {scope}: no page of the graph is in it")
                } else {
                    Ok(local)
                }
            };
            return self.domain.iter().map(pages).collect();
        }
        let (nodes, count) = (graph.nodes(), self.domains as usize);
        let usual = (nodes / (10 * count).max(1)).clamp(1, 4000);
        let pages = self.domain_pages.map_or(usual, |pages| pages as usize);
        let mut domains = local::ranges(nodes, count, pages)?;
        for page in domains.iter_mut().flatten() {
            *page = order[*page as usize];
        }
        Ok(domains)
    }
}

/// All pages in order of their names, numbers by their values.
fn order(nodes: usize, names: &[String]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    if !names.is_empty() {
        let key = |&page: &u32| {
            let name = &names[page as usize];
            (name.parse::<u64>().unwrap_or(u64::MAX), name.as_str())
        };
        order.sort_by_key(key);
    }
    order
}
