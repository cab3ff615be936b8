//! `cashrank-lab simulate`: one crawl of a web that may change, measured against exact PageRank.

use cashrank::Error;
use cashrank_graph::engine::{Estimator, WindowPolicy};
use cashrank_lab::experiment::{Changes, Sample, Setting};
use cashrank_lab::strategy::Strategy;

use super::print;
use super::web::WebArgs;

/// Simulate a crawl of a web that may change, and measure the error of the ranking.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank-lab simulate --strategy greedy --passes 10
  cashrank-lab simulate --pages 20000 --window variable:8 --window auto --change-rate 0.01
  cashrank-lab simulate --graph graph.tsv.zst --strategy random --samples 4 --json

A pass is as many crawls as the web had pages at first. Errors are relative to exact PageRank of the web at that \
moment. The engine is that of `cashrank ingest`; by default all else is as in Abiteboul, Preda, Cobena: Adaptive \
On-Line Page Importance Computation (2003), section 4.2. The same options give the same bytes.")]
pub struct Args {
    #[command(flatten)]
    web: WebArgs,
    /// Which page is crawled next: random, greedy or cycle.
    #[arg(long, value_name = "WHICH", default_value = "greedy")]
    strategy: Strategy,
    /// A window, as for `ingest`. May be repeated.
    #[arg(long, value_name = "WINDOW", default_value = "whole")]
    window: Vec<WindowPolicy>,
    /// How to read importance: received or distributed. Default: distributed, as in the paper.
    #[arg(long, value_name = "HOW")]
    estimator: Option<Estimator>,
    /// How many passes to crawl.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    passes: u32,
    /// Rows to print for each pass.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Begin with one page in a thousand, and find the others by links. Default: all pages are known.
    #[arg(long)]
    growing: bool,
    /// The share of a page's importance that its links pass on.
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
}

#[derive(clap::Args)]
struct ChangeArgs {
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
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        let setting = self.setting();
        let web = self.web.base()?.0.web(self.seed)?;
        print(|out| {
            let mut columns = if self.json {
                String::new()
            } else {
                format!("{}\n", Sample::COLUMNS)
            };
            setting.run(web, |sample| {
                // A refused setting has no columns.
                let head = std::mem::take(&mut columns);
                let line = if self.json {
                    serde_json::to_string(&sample).map_err(std::io::Error::from)
                } else {
                    Ok(sample.line())
                };
                // Each row is printed at once: the next one may take long.
                let written =
                    line.and_then(|line| writeln!(out, "{head}{line}").and_then(|()| out.flush()));
                written.map_err(Error::io("standard output", "write"))
            })?;
            Ok(())
        })
    }

    fn setting(&self) -> Setting {
        let reading = |&window: &WindowPolicy| {
            let distributed = Estimator::Distributed;
            (window, Some(self.estimator.unwrap_or(distributed)))
        };
        Setting {
            strategy: self.strategy,
            growing: self.growing,
            changes: Changes {
                in_degree: self.changes.change_rate,
                appear: self.changes.appear,
                vanish: self.changes.vanish,
                after: self.changes.change_after,
                until: self.changes.change_until,
            },
            windows: self.window.iter().map(reading).collect(),
            passes: self.passes,
            samples: self.samples,
            damping: self.damping,
            recycle_after: self.recycle_after,
            seed: self.seed,
        }
    }
}
