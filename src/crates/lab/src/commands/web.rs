//! The web of an experiment: a synthetic one, or a graph from a file.

use std::ffi::OsString;

use cashrank::Limits;
use cashrank_base::rules::InputRules;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Config;
use cashrank_ingest::load::{LoadedGraph, load};
use cashrank_lab::figures::Base;
use cashrank_lab::web::{InDegree, OutDegree};

use super::progress;

/// A graph from a file.
#[derive(clap::Args)]
pub struct GraphArgs {
    /// A real graph instead of a synthetic web: a file, or `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<OsString>,
    /// The graph's format (see formats/) [default: recognised from the content].
    #[arg(long, requires = "graph")]
    format: Option<Format>,
}

impl GraphArgs {
    /// Loads the named file; returns its name and the graph.
    pub fn load(&self) -> cashrank::Result<Option<(&OsString, LoadedGraph)>> {
        let Some(file) = &self.graph else {
            return Ok(None);
        };
        let inputs = [InputName::parse(file)];
        let (config, rules) = (Config::default(), InputRules::default());
        let loaded = load(&inputs, self.format, &config, &rules, &Limits::default())?;
        let skipped = loaded.report.skipped;
        if skipped > 0 {
            progress(&format!("{skipped} records were skipped"));
        }
        Ok(Some((file, loaded)))
    }
}

/// A web with a distribution of links, or a graph from a file.
#[derive(clap::Args)]
pub struct WebArgs {
    /// Distribution of in-degrees: power:EXPONENT or poisson:MEAN.
    #[arg(
        long,
        value_name = "WEB",
        default_value = "power:2.1",
        conflicts_with = "graph"
    )]
    web: InDegree,
    /// Distribution of out-degrees: poisson, power, or like-in (pages with many links to them also have many).
    #[arg(
        long,
        value_name = "HOW",
        default_value = "poisson",
        conflicts_with = "graph"
    )]
    out_degree: OutDegree,
    /// Number of pages of the web.
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "graph",
        value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    #[command(flatten)]
    graph: GraphArgs,
}

impl WebArgs {
    /// Returns the web, and the names of its pages, if they have any.
    pub fn base(&self) -> cashrank::Result<(Base, Vec<String>)> {
        let Some((file, loaded)) = self.graph.load()? else {
            let synthetic = Base::Synthetic {
                pages: self.pages,
                in_degree: self.web,
                out_degree: self.out_degree,
            };
            return Ok((synthetic, Vec::new()));
        };
        let names = loaded.pages.into_iter().map(|page| page.name).collect();
        let base = Base::Graph {
            name: file.display().to_string(),
            graph: loaded.graph,
        };
        Ok((base, names))
    }
}
