//! `cashrank simulate --crawl`: how early crawl orders find the pages that matter.

use std::path::Path;

use anyhow::Context as _;
use cashrank::graph::Graph;
use cashrank::rank::pagerank::{Options, pagerank};
use cashrank::schedule::{NameOrder, NameOrderBuilder};
use cashrank::sim::plot::{Axis, Line, Plot, Scale};
use cashrank::sim::steer::{Order, Point, Setting, Web, mean};

use super::common::{Exit, print, say};

/// Shares of the web at which is measured, unless the crawl ends before.
const SHARES: [f64; 16] = [
    0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0,
];

/// What is asked of crawls.
pub struct Crawls {
    pub graph: Graph,
    /// Of each node; none: they have none.
    pub names: Vec<String>,
    /// What to call the web.
    pub name: String,
    pub orders: Vec<Order>,
    pub sets: u64,
    pub seeds: u64,
    pub until: f64,
    pub per_host: Option<u64>,
    pub batch: Option<u64>,
    pub damping: f64,
    pub seed: u64,
    pub json: bool,
}

/// The orders of a list with commas; parameters of one are told apart by `=`.
pub fn orders(text: &str) -> Result<Vec<Order>, String> {
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
    names.iter().map(|name| name.parse()).collect()
}

impl Crawls {
    /// Prints a line for each order and share, and draws them into `folder`.
    pub fn run(self, folder: Option<&Path>) -> anyhow::Result<Exit> {
        let options = Options {
            damping: self.damping,
            ..Options::default()
        };
        let exact = pagerank(&self.graph, options)?;
        let names = (!self.names.is_empty()).then(|| {
            let mut builder = NameOrderBuilder::default();
            self.names
                .iter()
                .for_each(|name| builder.add(name.as_bytes()));
            builder.build()
        });
        let found = self.crawl(&exact.scores, names.as_ref())?;
        if let Some(folder) = folder {
            self.draw(&found, folder)?;
        }
        Ok(Exit::Done)
    }

    fn crawl(
        &self,
        importance: &[f64],
        names: Option<&NameOrder>,
    ) -> anyhow::Result<Vec<Vec<Point>>> {
        let web = Web::new(&self.graph, importance, names);
        let mut shares: Vec<f64> = SHARES
            .iter()
            .copied()
            .filter(|share| *share < self.until)
            .collect();
        shares.push(self.until);
        let setting = Setting {
            seeds: self.seeds,
            shares,
            per_host: self.per_host,
            batch: self.batch,
        };
        let mut found = Vec::new();
        print(|out| {
            if !self.json {
                writeln!(out, "{COLUMNS}")?;
            }
            for order in &self.orders {
                let order = self.fitted(order);
                let crawls = (0..self.sets).map(|set| web.crawl(&order, &setting, set, self.seed));
                let points = mean(&crawls.collect::<Result<Vec<_>, _>>()?);
                for point in &points {
                    writeln!(out, "{}", self.line(&order, point))?;
                }
                out.flush()?;
                found.push(points);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// K, where none was given, is a 72nd of the web, as in the FICA paper.
    fn fitted(&self, order: &Order) -> Order {
        match order {
            Order::Strategy(choice) => {
                Order::Strategy(choice.clone().with_k(self.graph.nodes() as u64 / 72))
            }
            Order::Oracle => Order::Oracle,
        }
    }

    fn line(&self, order: &Order, point: &Point) -> String {
        if self.json {
            return serde_json::json!({
                "strategy": order.to_string(),
                "share": point.share,
                "hot": point.hot,
                "importance": point.importance,
                "kendall_tau_b": point.tau,
                "links": point.links,
            })
            .to_string();
        }
        let tau = point.tau.map_or(String::new(), |tau| format!("{tau:.4}"));
        let Point {
            share,
            hot,
            importance,
            links,
            ..
        } = point;
        format!("{order}\t{share}\t{hot:.4}\t{importance:.4}\t{tau}\t{links:.0}")
    }

    fn draw(&self, found: &[Vec<Point>], folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| path.display().to_string())
        };
        let mut table = String::from("strategy,share,hot,importance,kendall_tau_b,links\n");
        for (order, points) in self.orders.iter().zip(found) {
            for point in points {
                let tau = point.tau.map_or(String::new(), |tau| tau.to_string());
                let Point {
                    share,
                    hot,
                    importance,
                    links,
                    ..
                } = point;
                // Parameters have commas.
                table.push_str(&format!(
                    "\"{order}\",{share},{hot},{importance},{tau},{links}\n"
                ));
            }
        }
        write("crawl.csv", table)?;
        let what = "Of the first k pages read, the share among the k pages of greatest PageRank";
        let plot = self.plot("Hot pages found", what, found, |point| point.hot);
        write("crawl-hot.svg", plot.svg())?;
        let what = "Share of all PageRank that the pages read hold";
        let plot = self.plot("Importance collected", what, found, |point| {
            point.importance
        });
        write("crawl-importance.svg", plot.svg())?;
        say!("the figures are in {}", folder.display());
        Ok(())
    }

    fn plot(
        &self,
        title: &str,
        what: &str,
        found: &[Vec<Point>],
        value: impl Fn(&Point) -> f64,
    ) -> Plot {
        let lines = self.orders.iter().zip(found).map(|(order, points)| Line {
            name: order.to_string(),
            points: points
                .iter()
                .map(|point| (100.0 * point.share, 100.0 * value(point)))
                .collect(),
        });
        let limit = match self.per_host {
            Some(most) => format!(", at most {most} pages of a host at a time"),
            None => String::new(),
        };
        Plot {
            title: format!("{title}: {}", self.name),
            subtitle: format!("{what}; mean of {} sets of seeds{limit}", self.sets),
            x: axis("pages read, % of the web"),
            y: axis("%"),
            lines: lines.collect(),
        }
    }
}

const COLUMNS: &str = "strategy\tshare\thot\timportance\tkendall_tau_b\tlinks";

fn axis(label: &str) -> Axis {
    Axis {
        label: label.into(),
        scale: Scale::Linear,
    }
}
