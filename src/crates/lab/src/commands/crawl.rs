//! `cashrank-lab crawl`: how early crawl orders find the pages that matter.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use cashrank_graph::graph::Graph;
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};
use cashrank_lab::figures::Base;
use cashrank_lab::folder::Folder;
use cashrank_lab::plot::{Axis, Line, Plot, Scale};
use cashrank_lab::steer::{NodeNames, Order, Point, Setting, Web, mean};

use super::web::WebArgs;
use super::{print, progress};

/// Shares of the web at which results are measured, unless the crawl ends before.
const SHARES: [f64; 16] = [
    0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0,
];

/// Crawl each page once, from a few seeds, and measure how early crawl orders find the important pages.
///
/// Measures hot pages, importance collected, Kendall's tau, and the bounds of `cashrank coverage`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cashrank-lab crawl --graph graph.tsv.zst --strategy forecast,oracle --figures crawls")]
pub struct Args {
    #[command(flatten)]
    web: WebArgs,
    /// One or several orders, separated by commas: those of `cashrank next`; backlink, pagerank[:k=K], rankmass,
    /// larger-sites-first, fica-inverse, fica-power, fica-linear and fica-one, which papers have; `circulating`; and
    /// `oracle`, which knows all PageRanks beforehand.
    #[arg(long, value_name = "ORDERS", default_value = "forecast")]
    strategy: Orders,
    /// Number of sets of seeds over which results are averaged.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    sets: u64,
    /// Seeds in a set [default: a thousandth of the pages].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Stop after this share of the web.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    until: f64,
    /// Maximum number of pages of a host at a time [default: any].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    per_host: Option<u64>,
    /// Choose this many pages at a time [default: one; of those read, a hundredth for forecast, and a twentieth for other orders that settle].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// The random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object a row, for programs.
    #[arg(long)]
    json: bool,
    /// Also write the table (CSV) and its plots (SVG) into this folder.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

/// Orders of a list with commas; a parameter of an order is recognised by its `=`.
#[derive(Debug, Clone)]
struct Orders(Vec<Order>);

impl FromStr for Orders {
    type Err = String;

    fn from_str(text: &str) -> Result<Orders, String> {
        let mut names: Vec<String> = Vec::new();
        for part in text.split(',') {
            match names.last_mut() {
                Some(last) if part.contains('=') && !part.contains(':') => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => names.push(part.into()),
            }
        }
        let orders: Result<_, String> = names.iter().map(|name| name.parse()).collect();
        orders.map(Orders)
    }
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.until > 0.0 && self.until <= 1.0,
            "--until {}: a share of the web, more than 0 and at most 1",
            self.until
        );
        let (name, graph, names) = match self.web.base()? {
            (Base::Graph { name, graph }, names) => (name, graph, names),
            (base, names) => {
                let graph = base.web(self.seed)?.graph();
                ("synthetic web".into(), graph, names)
            }
        };
        let crawls = Crawls {
            args: self,
            graph,
            name,
        };
        crawls.run(&names)
    }
}

struct Crawls {
    args: Args,
    graph: Graph,
    /// Name of the web.
    name: String,
}

impl Crawls {
    /// Prints a line for each order and share, and draws them if a folder is given.
    fn run(&self, names: &[String]) -> anyhow::Result<()> {
        let options = PowerOptions {
            damping: self.args.damping,
            ..PowerOptions::default()
        };
        let exact = pagerank(&self.graph, options)?;
        let names = (!names.is_empty())
            .then(|| NodeNames::of(names))
            .transpose()?;
        let found = self.crawl(&exact.scores, names.as_ref())?;
        match &self.args.figures {
            Some(folder) => Ok(self.draw(&found, folder)?),
            None => Ok(()),
        }
    }

    fn crawl(
        &self,
        importance: &[f64],
        names: Option<&NodeNames>,
    ) -> anyhow::Result<Vec<Vec<Point>>> {
        let web = Web::new(&self.graph, importance, names);
        let mut shares: Vec<f64> = SHARES
            .iter()
            .copied()
            .filter(|share| *share < self.args.until)
            .collect();
        shares.push(self.args.until);
        let setting = Setting {
            seeds: self.args.seeds.unwrap_or(0),
            shares,
            damping: self.args.damping,
            per_host: self.args.per_host,
            batch: self.args.batch,
        };
        let mut found = Vec::new();
        print(|out| {
            if !self.args.json {
                writeln!(out, "{COLUMNS}")?;
            }
            for order in &self.args.strategy.0 {
                let crawls =
                    (0..self.args.sets).map(|set| web.crawl(order, &setting, set, self.args.seed));
                let points = mean(&crawls.collect::<Result<Vec<_>, _>>()?);
                for point in &points {
                    writeln!(out, "{}", self.line(order, point))?;
                }
                out.flush()?;
                found.push(points);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn line(&self, order: &Order, point: &Point) -> String {
        if self.args.json {
            return serde_json::json!({
                "strategy": order.to_string(),
                "share": point.share,
                "hot": point.hot,
                "importance": point.importance,
                "kendall_tau_b": point.tau,
                "at_least": point.coverage.map(|coverage| coverage.at_least),
                "at_most": point.coverage.map(|coverage| coverage.at_most),
                "links": point.links,
            })
            .to_string();
        }
        let columns = columns(point, |value| format!("{value:.4}")).join("\t");
        format!("{order}\t{columns}\t{:.0}", point.links)
    }

    fn draw(&self, found: &[Vec<Point>], folder: &Path) -> cashrank::Result<()> {
        let files = Folder::make(folder)?;
        let mut table = format!("{}\n", COLUMNS.replace('\t', ","));
        for (order, points) in self.args.strategy.0.iter().zip(found) {
            for point in points {
                let columns = columns(point, |value| value.to_string()).join(",");
                // Parameters contain commas.
                table.push_str(&format!("\"{order}\",{columns},{}\n", point.links));
            }
        }
        files.write("crawl.csv", &table)?;
        let what = "Of the first k pages read, the share among the k pages of greatest PageRank";
        let plot = self.plot("Hot pages found", what, found, |point| Some(point.hot));
        files.write("crawl-hot.svg", &plot.svg())?;
        let what = "Share of all PageRank that the pages read hold";
        let plot = self.plot("Importance collected", what, found, |point| {
            Some(point.importance)
        });
        files.write("crawl-importance.svg", &plot.svg())?;
        let what =
            "At least so much of what readers who start at the seeds see is on the pages read";
        let plot = self.plot("Coverage", what, found, |point| {
            point.coverage.map(|coverage| coverage.at_least)
        });
        files.write("crawl-coverage.svg", &plot.svg())?;
        progress(&format!("the figures are in {}", folder.display()));
        Ok(())
    }

    fn plot(
        &self,
        title: &str,
        what: &str,
        found: &[Vec<Point>],
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Plot {
        let lines = self
            .args
            .strategy
            .0
            .iter()
            .zip(found)
            .map(|(order, points)| Line {
                name: order.to_string(),
                points: points
                    .iter()
                    .filter_map(|point| Some((100.0 * point.share, 100.0 * value(point)?)))
                    .collect(),
            });
        let limit = match self.args.per_host {
            Some(most) => format!(", at most {most} pages of a host at a time"),
            None => String::new(),
        };
        Plot {
            title: format!("{title}: {}", self.name),
            subtitle: format!("{what}; mean of {} sets of seeds{limit}", self.args.sets),
            x: axis("pages read, % of the web"),
            y: axis("%"),
            lines: lines.collect(),
        }
    }
}

const COLUMNS: &str = "strategy\tshare\thot\timportance\tkendall_tau_b\tat_least\tat_most\tlinks";

/// Returns the columns between the order and its links.
fn columns(point: &Point, show: fn(f64) -> String) -> [String; 6] {
    let or_none = |value: Option<f64>| value.map_or(String::new(), show);
    [
        point.share.to_string(),
        show(point.hot),
        show(point.importance),
        or_none(point.tau),
        or_none(point.coverage.map(|coverage| coverage.at_least)),
        or_none(point.coverage.map(|coverage| coverage.at_most)),
    ]
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.into(),
        scale: Scale::Linear,
    }
}
