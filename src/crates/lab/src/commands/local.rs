//! `cashrank-lab local`: experiments with the global PageRank of local domains.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::bail;
use cashrank_base::rules::Scope;
use cashrank_graph::graph::Graph;
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};
use cashrank_lab::local::{self, Method, Row, Study, Ties, World};
use cashrank_steer::local::{LocalOptions, Policy};

use super::web::GraphArgs;
use super::{print, progress, threads};

/// Compare ways to find the global PageRank of local domains, as in Table 1 of Davis and Dhillon (2006).
///
/// The graph is the web, and each method of `cashrank local` fetches pages of it outside some domains. Without --graph,
/// a synthetic web of hosts.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cashrank-lab local --graph graph.tsv.zst --domains 5 --domain-pages 4000")]
pub struct Args {
    /// Number of pages of the synthetic web.
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "graph",
        value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    #[command(flatten)]
    graph: GraphArgs,
    #[command(flatten)]
    domains: DomainArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Methods to compare: sc, pf, outlink, random or share, with `+` for the extrapolated estimate.
    /// Default: all.
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    select: Vec<MethodArg>,
    /// Which of pages with equal scores is fetched first: the one known first, the first by name, or any (random).
    #[arg(long, value_name = "WHICH", default_value = "known")]
    ties: Ties,
    /// With --figures: also measure times for domains of this many pages.
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u64).range(1..), requires = "figures", value_delimiter = ',')]
    time: Vec<u64>,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// The random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object a row, for programs.
    #[arg(long)]
    json: bool,
    /// Also make the paper's figures, and write their tables (CSV) and plots (SVG) into this folder.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Number of domains at a time [default: one for each processor]. Results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

#[derive(clap::Args)]
struct DomainArgs {
    /// Number of domains: ranges of consecutive pages, evenly spread.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    domains: u64,
    /// Pages of each domain. Default: 4,000, or a tenth of the graph divided by the domains.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    domain_pages: Option<u64>,
    /// A domain by the names of its pages, as --scope. May be repeated, for several domains.
    #[arg(long, value_name = "PAGES", requires = "graph",
        conflicts_with_all = ["domains", "domain_pages"])]
    domain: Vec<Scope>,
}

#[derive(clap::Args)]
struct BudgetArgs {
    /// Pages to fetch outside, for each page of the domain.
    #[arg(long, value_name = "SHARE", default_value_t = 2.0)]
    outside: f64,
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
}

/// Method, parsed from its name.
#[derive(Debug, Clone, Copy)]
struct MethodArg(Method);

impl std::str::FromStr for MethodArg {
    type Err = cashrank::Error;

    fn from_str(text: &str) -> cashrank::Result<MethodArg> {
        let name = text.strip_suffix('+');
        Ok(MethodArg(Method {
            policy: name.unwrap_or(text).parse::<Policy>()?,
            extrapolated: name.is_some(),
        }))
    }
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        if !(self.budget.outside >= 0.0 && self.budget.outside <= 1e6) {
            bail!("--outside {}: 0 to 1,000,000", self.budget.outside);
        }
        let (name, graph, names) = self.web()?;
        let order = order(graph.nodes(), &names);
        let domains = self.choose(&graph, &names, &order)?;
        let mut places = vec![0; order.len()];
        for (place, &page) in (0u32..).zip(&order) {
            places[page as usize] = place;
        }
        let exact = pagerank(
            &graph,
            PowerOptions {
                damping: self.damping,
                ..PowerOptions::default()
            },
        )?;
        let study = Study {
            name,
            world: World::new(&graph, &exact.scores).with_places(&places),
            domains,
            rounds: self.budget.rounds as usize,
            outside: self.budget.outside,
            ties: self.ties,
            power: LocalOptions::of(self.damping).power,
            seed: self.seed,
            threads: threads(self.threads),
        };
        if let Some(folder) = &self.figures {
            let sizes: Vec<usize> = self.time.iter().map(|&pages| pages as usize).collect();
            local::figures(&study, &sizes, &progress, folder)?;
            progress(&format!("the figures are in {}", folder.display()));
            return Ok(());
        }
        self.table(&study)
    }

    fn table(&self, study: &Study<'_>) -> anyhow::Result<()> {
        let methods = if self.select.is_empty() {
            Method::all()
        } else {
            self.select.iter().map(|chosen| chosen.0).collect()
        };
        print(|out| {
            if !self.json {
                writeln!(out, "{}", Row::COLUMNS)?;
            }
            for method in methods {
                let row = study.row(method, false)?;
                if self.json {
                    writeln!(out, "{}", serde_json::to_string(&row)?)?
                } else {
                    writeln!(out, "{}", row.line())?
                }
                out.flush()?;
            }
            Ok(())
        })
    }

    fn web(&self) -> anyhow::Result<(String, Graph, Vec<String>)> {
        let Some((file, loaded)) = self.graph.load()? else {
            let graph = local::hosts(self.pages as usize, 6, self.seed);
            return Ok((format!("{} pages of hosts", self.pages), graph, Vec::new()));
        };
        let names = loaded.pages.into_iter().map(|page| page.name).collect();
        let name = Path::new(file)
            .file_name()
            .unwrap_or(file)
            .to_string_lossy();
        Ok((name.into_owned(), loaded.graph, names))
    }

    /// Chooses the domains; ranges are of pages in the order of their names.
    fn choose(
        &self,
        graph: &Graph,
        names: &[String],
        order: &[u32],
    ) -> anyhow::Result<Vec<Vec<u32>>> {
        if !self.domains.domain.is_empty() {
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
            return self.domains.domain.iter().map(pages).collect();
        }
        let (nodes, count) = (graph.nodes(), self.domains.domains as usize);
        let usual = (nodes / (10 * count).max(1)).clamp(1, 4000);
        let pages = self
            .domains
            .domain_pages
            .map_or(usual, |pages| pages as usize);
        let mut domains = local::ranges(nodes, count, pages)?;
        for page in domains.iter_mut().flatten() {
            *page = order[*page as usize];
        }
        Ok(domains)
    }
}

/// Returns all pages in the order of their names; names that are numbers are ordered by value.
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
