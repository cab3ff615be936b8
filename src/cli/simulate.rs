//! `cashrank simulate`: crawls of synthetic webs, measured against exact PageRank.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cashrank::engine::{Config, Estimator, WindowPolicy};
use cashrank::load::load;
use cashrank::rules::InputRules;
use cashrank::sim::experiment::{Changes, Sample, Setting};
use cashrank::sim::figures::{Base, figures};
use cashrank::sim::strategy::Strategy;
use cashrank::sim::web::{InDegree, OutDegree};
use cashrank::source::InputName;
use cashrank::{Error, Limits};

use super::common::{self, Exit, one_of, parsed, positive, print, threads};
use super::simulate_crawl::{Crawls, orders};
use super::simulate_local::LocalArgs;
use super::values::{FormatArg, formats, windows};
use crate::cli::common::say;

/// Simulate crawls of a web that may change, and measure the error of the ranking.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank simulate --strategy greedy --passes 10
  cashrank simulate --pages 20000 --window variable:8 --window auto --change-rate 0.01
  cashrank simulate --graph graph.tsv.zst --strategy random --samples 4 --json
  cashrank simulate --figures figures
  cashrank simulate --local --graph graph.tsv.zst --domains 5 --domain-pages 4000
  cashrank simulate --crawl --graph graph.tsv.zst --strategy forecast,oracle --figures crawls

A pass is as many crawls as the web had pages at first. Errors are relative to exact PageRank of the web at that \
moment. The engine is that of `ingest`; by default all else is as in Abiteboul, Preda, Cobena: Adaptive On-Line \
Page Importance Computation (2003), section 4.2. The same options give the same bytes.")]
pub struct Args {
    /// Distribution of in-degrees: power:EXPONENT or poisson:MEAN.
    #[arg(long, value_name = "WEB", default_value = "power:2.1", value_parser = parsed::<InDegree>)]
    web: InDegree,
    /// Distribution of out-degrees: poisson, power, or like-in (pages with many links to them also have many).
    #[arg(long, value_name = "HOW", default_value = "poisson", value_parser = parsed::<OutDegree>)]
    out_degree: OutDegree,
    /// Number of pages of the web.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = positive)]
    pages: u64,
    /// A real graph instead of a synthetic web: a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["web", "out_degree", "pages"])]
    graph: Option<OsString>,
    /// The graph's format (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", requires = "graph", value_parser = formats())]
    format: FormatArg,
    /// Which page is crawled next: random, greedy or cycle. With --crawl: one or several orders of `next`, separated by
    /// commas, and `oracle`, which knows all PageRanks beforehand [default: greedy].
    #[arg(long, value_name = "WHICH")]
    strategy: Option<String>,
    /// Crawl each page once, from a few seeds, and measure how early the important pages are found: hot pages,
    /// importance collected, and Kendall's tau.
    #[arg(long, conflicts_with_all = ["window", "estimator", "passes", "samples", "change_rate", "appear",
        "vanish", "change_after", "change_until", "growing", "recycle_after", "threads"])]
    crawl: bool,
    /// With --crawl: the mean of so many sets of seeds.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive, requires = "crawl")]
    sets: u64,
    /// With --crawl: seeds in a set [default: a thousandth of the pages].
    #[arg(long, value_name = "N", value_parser = positive, requires = "crawl")]
    seeds: Option<u64>,
    /// With --crawl: stop after this share of the web.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "crawl")]
    until: f64,
    /// With --crawl: at most so many pages of a host at a time [default: any].
    #[arg(long, value_name = "N", value_parser = positive, requires = "crawl")]
    per_host: Option<u64>,
    /// With --crawl: choose so many pages at a time [default: one; of those read, a hundredth for forecast, and a twentieth for other orders that settle].
    #[arg(long, value_name = "N", value_parser = positive, requires = "crawl")]
    batch: Option<u64>,
    /// A window, as for `ingest`. May be repeated.
    #[arg(long, value_name = "WINDOW", default_value = "whole", value_parser = windows())]
    window: Vec<WindowPolicy>,
    /// How to read importance: received or distributed. Default: distributed, as in the paper.
    #[arg(long, value_name = "HOW", value_parser = one_of(["received", "distributed"], parsed::<Estimator>))]
    estimator: Option<Estimator>,
    /// How many passes to crawl.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    passes: u32,
    /// Rows to print for each pass.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// Share of all pages whose in-degree is doubled or halved in each pass.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    change_rate: f64,
    /// Share of all pages that appear in each pass.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    appear: f64,
    /// Share of all pages that vanish in each pass.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    vanish: f64,
    /// Passes before the first change.
    #[arg(long, value_name = "N", default_value_t = 0)]
    change_after: u32,
    /// The last pass with changes. Default: all.
    #[arg(long, value_name = "N")]
    change_until: Option<u32>,
    /// Begin with one page in a thousand, and find the others by links. Default: all pages are known.
    #[arg(long)]
    growing: bool,
    /// Share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// As for `ingest`. 0 is never, as in the paper.
    #[arg(long, value_name = "ROUNDS", default_value_t = 0)]
    recycle_after: u8,
    /// The random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object a row, for programs.
    #[arg(long)]
    json: bool,
    /// Make all experiments of the paper instead, and write their tables (CSV) and plots (SVG) into this folder. If
    /// interrupted, the same command goes on: until all crawls are done, the finished ones are in the folder's
    /// unfinished.jsonl.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["window", "estimator", "passes", "samples",
        "change_rate", "appear", "vanish", "change_after", "change_until", "growing", "damping",
        "recycle_after", "json"])]
    figures: Option<PathBuf>,
    /// With --figures: crawl so many at a time. Results do not depend on it. Default: one for each processor.
    #[arg(long, value_name = "N", value_parser = positive, requires = "figures")]
    threads: Option<u64>,
    #[command(flatten)]
    local: LocalArgs,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.local.local {
            return self.local();
        }
        if self.crawl {
            return self.crawls();
        }
        if let Some(folder) = &self.figures {
            anyhow::ensure!(
                self.strategy.is_none(),
                "--strategy cannot be used with --figures, which makes all experiments (with --crawl it can)"
            );
            return self.figures(folder);
        }
        let setting = self.setting()?;
        let web = self.base()?.0.web(self.seed)?;
        print(|out| {
            let mut columns = if self.json {
                String::new()
            } else {
                format!("{}\n", Sample::COLUMNS)
            };
            setting.run(web, |sample| {
                // A setting that is refused has no columns.
                let head = std::mem::take(&mut columns);
                let line = if self.json {
                    serde_json::to_string(&sample).map_err(std::io::Error::from)
                } else {
                    Ok(sample.line())
                };
                // A row is worth seeing before the next one is known.
                let written =
                    line.and_then(|line| writeln!(out, "{head}{line}").and_then(|()| out.flush()));
                written.map_err(|source| Error::Io {
                    path: "standard output".into(),
                    action: "write",
                    source,
                })
            })?;
            Ok(())
        })
    }

    fn local(&self) -> anyhow::Result<Exit> {
        self.local.run(&super::simulate_local::Base {
            graph: self.graph.as_ref(),
            format: self.format.0,
            pages: self.pages,
            damping: self.damping,
            seed: self.seed,
            json: self.json,
            figures: self.figures.as_ref(),
            threads: self.threads,
        })
    }

    fn crawls(self) -> anyhow::Result<Exit> {
        anyhow::ensure!(
            self.until > 0.0 && self.until <= 1.0,
            "--until {}: a share of the web, more than 0 and at most 1",
            self.until
        );
        let orders = orders(self.strategy.as_deref().unwrap_or("forecast"));
        let (name, graph, names) = match self.base()? {
            (Base::Graph { name, graph }, names) => (name, graph, names),
            (base, names) => {
                let graph = base.web(self.seed)?.graph();
                ("synthetic web".into(), graph, names)
            }
        };
        let crawls = Crawls {
            graph,
            names,
            name,
            orders: orders.map_err(anyhow::Error::msg)?,
            sets: self.sets,
            seeds: self.seeds.unwrap_or(0),
            until: self.until,
            per_host: self.per_host,
            batch: self.batch,
            damping: self.damping,
            seed: self.seed,
            json: self.json,
        };
        crawls.run(self.figures.as_deref())
    }

    fn setting(&self) -> anyhow::Result<Setting> {
        let strategy = self.strategy.as_deref().unwrap_or("greedy");
        let reading = |&window: &WindowPolicy| {
            let distributed = Estimator::Distributed;
            (window, Some(self.estimator.unwrap_or(distributed)))
        };
        Ok(Setting {
            strategy: strategy.parse::<Strategy>().map_err(anyhow::Error::msg)?,
            growing: self.growing,
            changes: Changes {
                in_degree: self.change_rate,
                appear: self.appear,
                vanish: self.vanish,
                after: self.change_after,
                until: self.change_until,
            },
            windows: self.window.iter().map(reading).collect(),
            passes: self.passes,
            samples: self.samples,
            damping: self.damping,
            recycle_after: self.recycle_after,
            seed: self.seed,
        })
    }

    fn figures(&self, folder: &Path) -> anyhow::Result<Exit> {
        let (base, _) = self.base()?;
        let tell = |line: &str| say!("{line}");
        figures(&base, self.seed, threads(self.threads), &tell, folder)?;
        say!("the figures are in {}", folder.display());
        Ok(Exit::Done)
    }

    /// The web, and the names of its pages, if they have any.
    fn base(&self) -> anyhow::Result<(Base, Vec<String>)> {
        let Some(file) = &self.graph else {
            let synthetic = Base::Synthetic {
                pages: self.pages,
                in_degree: self.web,
                out_degree: self.out_degree,
            };
            return Ok((synthetic, Vec::new()));
        };
        let format = self.format.0;
        let inputs = [InputName::parse(file)];
        let loaded = load(
            &inputs,
            format,
            &Config::default(),
            &InputRules::default(),
            &Limits::default(),
        )?;
        if loaded.skipped > 0 {
            common::tell_skipped(loaded.skipped);
        }
        let names = loaded.pages.into_iter().map(|page| page.name).collect();
        let base = Base::Graph {
            name: Path::new(file).display().to_string(),
            graph: loaded.graph,
        };
        Ok((base, names))
    }
}
