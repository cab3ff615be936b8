//! `cashrank pagerank`: the exact, off-line reference.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cashrank::Limits;
use cashrank::engine::{Config, PageId, SelfLinks};
use cashrank::formats::Format;
use cashrank::rules::Follow;
use cashrank::sim::{Options, load, pagerank};
use cashrank::snapshot::export::{Format as ExportFormat, RankedPage, export};
use cashrank::source::InputName;

use super::common::{Exit, MemoryArg, parsed, self_links, thousands};
use super::output::to_file;
use super::rules::RulesArgs;

/// Compute exact PageRank of a graph that fits in memory, by power iteration.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank pagerank crawl.jsonl.zst -o exact.tsv
  cashrank pagerank graph.tsv --damping 0.9999 --lazy -o exact.tsv
The same link rules as `ingest`: canonical URLs, repeats dropped, a page read again counts with its
last links. Writes url, importance, rank, visits and last_fetch, in order of first appearance.")]
pub struct Args {
    /// Files, or `-` for standard input.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// auto, records, warc, arc, wat, adjacency, edges, crawl-log, nutch, csv-links or cza.
    #[arg(long, default_value = "auto")]
    format: String,
    /// Share of a page's importance that its links hand on, 0 or more and less than 1.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// Stop once a step moves the vector by at most this much in L1 (--lazy: a whole one would).
    #[arg(long, value_name = "L1", default_value_t = 1e-12)]
    residual: f64,
    /// Take half steps: x <- (F(x) + x)/2. The same result, in far fewer steps where links go round in
    /// short cycles and damping is near 1; in about twice as many elsewhere.
    #[arg(long)]
    lazy: bool,
    /// What links weigh, as of `ingest`.
    #[arg(long, value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// Links from a page to itself: keep or drop.
    #[arg(long, value_name = "HOW", default_value = "drop", value_parser = self_links)]
    self_links: SelfLinks,
    /// tsv, jsonl or parquet.
    #[arg(long, value_name = "FORMAT", default_value = "tsv", value_parser = parsed::<ExportFormat>)]
    to: ExportFormat,
    /// The file; `-` or none: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    rules: RulesArgs,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let format = match self.format.as_str() {
            "auto" => None,
            name => Some(name.parse::<Format>()?),
        };
        let inputs: Vec<InputName> = self.inputs.iter().map(|i| InputName::parse(i)).collect();
        let mut config = Config::default();
        config.self_links = self.self_links;
        config.follow = self.follow.unwrap_or_default();
        let loaded = load(
            &inputs,
            format,
            &config,
            &self.rules.resolve(None)?,
            &Limits {
                memory: self.memory.budget(),
                ..Limits::default()
            },
        )?;
        let options = Options {
            damping: self.damping,
            residual: self.residual,
            lazy: self.lazy,
        };
        let result = pagerank(&loaded.graph, options)?;
        let path = self.output.as_deref().unwrap_or(Path::new("-"));
        let rows = loaded.pages.iter().zip(&result.scores).zip(result.ranks());
        let rows = rows.enumerate().map(|(at, ((page, score), rank))| {
            Ok(RankedPage {
                page: PageId(at as u64),
                url: Cow::Borrowed(&page.name),
                importance: *score,
                rank,
                visits: page.visits,
                last_fetch: page.last_fetch,
            })
        });
        to_file(self.output.as_deref(), |out| {
            export(self.to, out, path, rows)?;
            Ok(())
        })?;
        eprintln!(
            "{} pages, {} links, {} iterations; L1 error at most {:.1e}{}",
            thousands(loaded.graph.nodes() as u64),
            thousands(loaded.graph.links() as u64),
            result.iterations,
            result.bound,
            if result.converged {
                ""
            } else {
                " (the residual asked for is below what 64-bit numbers resolve)"
            }
        );
        if let Some(caveat) = loaded.caveat {
            eprintln!("{caveat}");
        }
        if loaded.ungrouped > 0 {
            eprintln!(
                "{} groups of edges replaced an earlier group of the same source. If the file is not \
                 grouped by source, sort it first (edges: sort -s -k1,1; crawl-log: sort -s \
                 -k6,6)",
                thousands(loaded.ungrouped)
            );
        }
        if loaded.skipped > 0 {
            eprintln!("{} records were skipped", thousands(loaded.skipped));
            return Ok(Exit::Skipped);
        }
        Ok(Exit::Done)
    }
}
