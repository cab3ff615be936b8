//! `cashrank pagerank`: the exact, off-line reference.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cashrank::engine::{Effort, PageId, ranks};
use cashrank::graph::Graph;
use cashrank::memory::to_read;
use cashrank::rank::{Options, Teleport, method};
use cashrank::snapshot::Snapshot;
use cashrank::snapshot::export::{Format as ExportFormat, Page, Setup, export};
use cashrank::store::RealDisk;

use super::common::{Exit, MemoryArg, counted, links, pages, print_json, store_unless};
use super::export::{ScoringArgs, export_formats, report_left_out, scratch};
use super::loaded::{LoadArgs, report_loaded};
use super::output::{Output, SummedOutputArgs};
use crate::cli::common::say;

/// Compute exact PageRank of a graph that fits in memory, by power iteration.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank pagerank crawl.jsonl.zst -o exact.tsv
  cashrank pagerank graph.tsv --damping 0.9999 --lazy -o exact.tsv
  cashrank pagerank --store ranks -o exact.tsv

Links count as in `ingest`: URLs are canonical, repeated links count once, and a page that was read again counts \
with its latest links. The output has url, importance, rank, visits and last_fetch, in the order in which pages \
first appeared.

With --store no input is read. The links are those of the current snapshot, also while an ingest is running.")]
pub struct Args {
    /// Files, or `-` for standard input.
    #[arg(value_name = "INPUT")]
    inputs: Vec<OsString>,
    /// Use the links that this store keeps, instead of inputs, and its damping unless one is given [default, without
    /// inputs: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["inputs", "follow"])]
    store: Option<PathBuf>,
    #[command(flatten)]
    iteration: IterationArgs,
    /// The format to write.
    #[arg(long, value_name = "FORMAT", default_value = "tsv", value_parser = export_formats())]
    to: ExportFormat,
    #[command(flatten)]
    scoring: ScoringArgs,
    #[command(flatten)]
    output: SummedOutputArgs,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(clap::Args)]
struct IterationArgs {
    /// The share of a page's importance that its links pass on, 0 or more and less than 1 [default: 0.85].
    #[arg(long, value_name = "D")]
    damping: Option<f64>,
    /// Stop when a step moves the ranking by at most this much in L1 (with --lazy: when a whole step would).
    #[arg(long, value_name = "L1", default_value_t = 1e-12)]
    residual: f64,
    /// Take half steps: x <- (F(x) + x)/2, for the same result. That needs far fewer steps if links form short cycles
    /// and damping is near 1, and about twice as many otherwise.
    #[arg(long)]
    lazy: bool,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let output = self.output.open()?;
        output.must_spare(&self.inputs)?;
        output.must_show(self.to.name(), self.to.is_text())?;
        self.scoring.check(self.to)?;
        match store_unless(&self.inputs, self.store.as_deref())? {
            Some(store) => self.of_store(&store, &output),
            None => self.of_inputs(&output),
        }
    }

    fn of_inputs(&self, output: &Output) -> anyhow::Result<Exit> {
        let loaded = self.load.load(&self.inputs, "pagerank", &self.memory)?;
        let result = self.rank(&loaded.graph, 0.85)?;
        let rows = loaded
            .pages
            .iter()
            .zip(&result.scores)
            .zip(ranks(&result.scores));
        let rows = rows.enumerate().map(|(at, ((page, score), rank))| {
            Ok(Page {
                page: PageId(at as u64),
                url: Cow::Borrowed(&page.name),
                importance: *score,
                rank,
                visits: page.visits,
                last_fetch: page.last_fetch,
                ..Page::default()
            })
        });
        self.export(output, loaded.pages.len(), rows)?;
        if self.output.json {
            print_json(&result.summary(&loaded.graph, loaded.skipped, loaded.ungrouped))?;
        } else {
            result.report(&loaded.graph);
        }
        Ok(report_loaded(&loaded))
    }

    fn of_store(&self, store: &Path, output: &Output) -> anyhow::Result<Exit> {
        if let Some(option) = self.load.given() {
            anyhow::bail!(
                "{option} goes with inputs: a store's links were read by its own settings"
            );
        }
        let snapshot = Snapshot::latest(&RealDisk, store)?;
        let config = &snapshot.info().settings.config;
        let rows = snapshot.rows()?;
        // Names and what else is known of pages are read when all is ranked.
        let beside = to_read(snapshot.len());
        let graph = Graph::of_rows(&rows, rows.has_weights()?, self.memory.budget(3)?, beside)?;
        let result = self.rank(&graph, config.damping())?;
        let scores = result.scores.iter().zip(ranks(&result.scores));
        let rows = snapshot.named().zip(scores);
        let rows = rows.map(|(page, (&importance, rank))| {
            Ok(Page {
                rank,
                importance,
                ..page?
            })
        });
        self.export(output, graph.nodes(), rows)?;
        if self.output.json {
            return print_json(&result.summary(&graph, 0, 0));
        }
        result.report(&graph);
        Ok(Exit::Done)
    }

    /// To the damping that was given, or else this one.
    fn rank(&self, graph: &Graph, damping: f64) -> anyhow::Result<Ranked> {
        let mut options = Options::residual(
            self.iteration.damping.unwrap_or(damping),
            self.iteration.residual,
        )?;
        options.lazy = self.iteration.lazy;
        let scores = method("exact")?.compute(graph, &options, &Teleport::default(), &mut ())?;
        let scores = scores.context("nothing was ranked")?;
        let mut pairs = Vec::new();
        scores.read(0, graph.nodes(), &mut pairs)?;
        Ok(Ranked {
            scores: pairs.into_iter().map(|(score, _)| score).collect(),
            damping: options.damping(),
            bound: scores
                .certificate()
                .and_then(|certificate| certificate.received_l1),
            effort: scores.effort(),
        })
    }

    fn export<'a>(
        &self,
        output: &Output,
        pages: usize,
        rows: impl Iterator<Item = cashrank::Result<Page<'a>>>,
    ) -> anyhow::Result<()> {
        let setup = Setup {
            scoring: self.scoring.scoring(),
            pages: pages as u64,
            folder: Some(scratch(output)),
            ..Setup::default()
        };
        let path = self.output.file.name();
        let mut left_out = 0;
        output.put(|out| {
            left_out = export(self.to, &setup, out, path, rows)?.left_out;
            Ok(())
        })?;
        report_left_out(left_out, self.to);
        Ok(())
    }
}

/// Scores of all pages, and what is certain of them.
struct Ranked {
    scores: Vec<f64>,
    /// Damping as it was used.
    damping: f64,
    /// `None`: none below 2.
    bound: Option<f64>,
    effort: Effort,
}

impl Ranked {
    fn bound(&self) -> f64 {
        self.bound.unwrap_or(2.0)
    }

    fn report(&self, graph: &Graph) {
        say!(
            "{}, {}, {}; L1 error at most {:.1e} with damping {}, the multiple of 2^-32 used{}",
            pages(graph.nodes() as u64),
            links(graph.links() as u64),
            counted(self.effort.sweeps, "iteration", "iterations"),
            self.bound(),
            self.damping,
            if self.effort.reached {
                ""
            } else {
                " (the requested residual is below what 64-bit numbers resolve)"
            }
        );
    }

    fn summary(&self, graph: &Graph, skipped: u64, ungrouped: u64) -> serde_json::Value {
        serde_json::json!({
            "pages": graph.nodes(),
            "links": graph.links(),
            "iterations": self.effort.sweeps,
            "bound": self.bound(),
            "damping_used": self.damping,
            "converged": self.effort.reached,
            "skipped": skipped,
            "ungrouped": ungrouped,
        })
    }
}
