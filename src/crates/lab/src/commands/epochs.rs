//! `cashrank-lab epochs`: what it costs in accuracy that cash crosses between partitions only at the ends of epochs.
//!
//! ```text
//! zstd -dc ../shared/data/cnr-2000/adjacency.tsv.zst | cashrank-lab epochs /tmp/epochs --partitions 1,4,64
//! ```
//!
//! Reads `page<TAB>target<TAB>...` lines with pages as numbers, and visits all pages pass by pass in the order of the lines: in
//! a real store of each number of partitions and length of epochs. After some passes the ranking by the window is compared
//! with PageRank, which power iteration computes in memory.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cashrank::engine::{Config, SelfLinks, WindowPolicy};
use cashrank::graph::GraphBuilder;
use cashrank::internal::Sum;
use cashrank::metrics::kendall::tau_b;
use cashrank::rank::pagerank::{Options as Exact, pagerank};
use cashrank::{Error, Options, Partitions, Record, Snapshot, Writer};

use super::{bfs_order, print};

/// Measure what epochs cost: rankings of stores with partitions, by a window, against PageRank of a graph read from stdin.
#[derive(clap::Args)]
pub struct Args {
    /// A folder for the stores, which are removed one after the other. It must not be there.
    folder: PathBuf,
    /// Numbers of partitions.
    #[arg(
        long,
        value_name = "P,...",
        value_delimiter = ',',
        default_value = "1,4,64"
    )]
    partitions: Vec<u32>,
    /// Records of an epoch.
    #[arg(
        long,
        value_name = "E,...",
        value_delimiter = ',',
        default_value = "1000,10000,100000"
    )]
    epoch: Vec<u64>,
    /// After which passes to compare.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1,2,5,10"
    )]
    passes: Vec<u64>,
    /// So many pages, in the order of their numbers, are one host.
    #[arg(long, value_name = "PAGES", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    host: u32,
    /// The window, as for `ingest`.
    #[arg(long, value_name = "WINDOW", default_value = "auto")]
    window: WindowPolicy,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
}

/// A graph, and its PageRank.
struct Web {
    names: Vec<String>,
    links: Vec<Vec<u32>>,
    exact: Vec<f64>,
}

impl Args {
    pub fn run(mut self) -> anyhow::Result<()> {
        self.passes.sort_unstable();
        let links = bfs_order::read(io::stdin().lock())?;
        let web = self.web(links)?;
        std::fs::create_dir(&self.folder).map_err(Error::io(&self.folder, "create"))?;
        print(|out| {
            writeln!(out, "partitions\tepoch\tpass\tl1\tbound\ttau")
                .map_err(Error::io("standard output", "write"))?;
            for &count in &self.partitions {
                for partitions in self.stores(count)? {
                    let store = self.folder.join("store");
                    self.crawl(&web, &store, partitions, out)?;
                    std::fs::remove_dir_all(&store).map_err(Error::io(&store, "remove"))?;
                }
            }
            Ok(())
        })?;
        std::fs::remove_dir(&self.folder)
            .map_err(Error::io(&self.folder, "remove"))
            .context("a store may be left in it")
    }

    /// One partition has no epochs.
    fn stores(&self, count: u32) -> cashrank::Result<Vec<Partitions>> {
        let of = Partitions::of(count)?;
        if count == 1 {
            return Ok(vec![of]);
        }
        self.epoch
            .iter()
            .map(|&epoch| of.with_epoch(epoch))
            .collect()
    }

    fn web(&self, links: Vec<Vec<u32>>) -> anyhow::Result<Web> {
        let mut graph = GraphBuilder::new(SelfLinks::Drop);
        for (page, targets) in (0..).zip(&links) {
            graph.row(page, targets.iter().copied());
        }
        let exact = Exact {
            damping: self.damping,
            residual: 1e-12,
            ..Exact::default()
        };
        let name = |page: u32| format!("http://h{}.example/{page}", page / self.host);
        Ok(Web {
            names: (0..links.len() as u32).map(name).collect(),
            exact: pagerank(&graph.build(), exact)?.scores,
            links,
        })
    }

    /// Makes one store, and a line after each pass that is asked for.
    fn crawl(
        &self,
        web: &Web,
        store: &Path,
        partitions: Partitions,
        out: &mut dyn io::Write,
    ) -> cashrank::Result<()> {
        let mut config = Config::default();
        config.window = self.window;
        config.set_damping(self.damping)?;
        let options = Options {
            config,
            partitions,
            settle: None,
            ..Options::default()
        };
        let mut writer = Writer::open(store, &options)?;
        let mut done = 0;
        for &passes in &self.passes {
            for _ in done..passes {
                for (name, targets) in web.names.iter().zip(&web.links) {
                    let targets = targets.iter().map(|&target| &*web.names[target as usize]);
                    writer.push(&Record::new(name, targets))?;
                }
            }
            done = passes;
            let snapshot = writer.publish()?;
            let (l1, tau) = web.compare(&snapshot)?;
            let epoch = partitions
                .epoch
                .map_or("-".into(), |epoch| epoch.to_string());
            let bound = snapshot
                .bound_l1()
                .map_or("none".into(), |bound| format!("{bound:.3e}"));
            let tau = tau.map_or("none".into(), |tau| format!("{tau:.5}"));
            writeln!(
                out,
                "{}\t{epoch}\t{passes}\t{l1:.3e}\t{bound}\t{tau}",
                partitions.count
            )
            .and_then(|()| out.flush())
            .map_err(Error::io("standard output", "write"))?;
        }
        Ok(())
    }
}

impl Web {
    /// The L1 distance of a ranking to PageRank, and Kendall's tau-b.
    fn compare(&self, snapshot: &Snapshot) -> cashrank::Result<(f64, Option<f64>)> {
        let mut l1 = Sum::default();
        let mut both = Vec::with_capacity(self.exact.len());
        for page in snapshot.named() {
            let page = page?;
            let number = page
                .url
                .rsplit('/')
                .next()
                .and_then(|end| end.parse::<usize>().ok());
            let exact = number.and_then(|number| self.exact.get(number));
            let exact =
                *exact.ok_or_else(|| Error::Usage(format!("{}: no such page", page.url)))?;
            l1.add((page.importance - exact).abs());
            both.push((page.importance, exact));
        }
        Ok((l1.value(), tau_b(both)))
    }
}
