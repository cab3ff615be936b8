//! Reads a whole crawl into a graph, by the link rules of the engine.

use super::{NameTable, batches, open};
use crate::Result;
use crate::batch::{Batch, BatchEntry, HashKey, Rules, What};
use crate::decode::{Missing, Time};
use crate::engine::{Config, Resolver};
use crate::formats::Format;
use crate::graph::{Graph, GraphBuilder};
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::Remark;
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions};

/// Graph with the facts about its nodes, which are numbered in order of first appearance.
pub struct LoadedGraph {
    /// Links of all nodes.
    pub graph: Graph,
    /// Facts about each node.
    pub pages: Vec<NodeFacts>,
    /// Number of records that could not be used.
    pub skipped: u64,
    /// Number of records that were used without their times, which are invalid.
    pub timeless: u64,
    /// Number of groups, in inputs with a link per line (`edges` and others), whose source had a group before: only the
    /// last one counts.
    pub ungrouped: u64,
    /// Caveat of the inputs' formats ([`Format::caveat`]), or of an input.
    pub caveat: Option<&'static str>,
    /// Inputs whose records lack fields that ranking needs.
    pub missing: Vec<(InputName, Missing)>,
}

/// Facts about a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Canonical URL or opaque name.
    pub name: String,
    /// Number of visits read.
    pub visits: u64,
    /// Time of the last fetch, in seconds since 1970.
    pub last_fetch: Option<Time>,
}

/// Reads `inputs` into a graph. Visits, links and their weights are determined as by the engine with this `config`; of
/// several visits of a page the last one counts, and a page that is gone has no links. Fails with
/// [`Error::Unsupported`](crate::Error::Unsupported) if a format cannot be guessed or there are too many nodes, and
/// with [`Error::TooLarge`](crate::Error::TooLarge) if the graph, with what PageRank takes of it, exceeds
/// `limits.memory`.
pub fn load(
    inputs: &[InputName],
    format: Option<Format>,
    config: &Config,
    input: &InputRules,
    limits: &Limits,
) -> Result<LoadedGraph> {
    let rules = Rules {
        limits: limits.clone(),
        self_links: config.self_links,
        key: HashKey::random()?,
        input: input.clone(),
        follow: config.follow.clone(),
    };
    let mut loading = GraphLoader::new(config)?;
    loading.memory = limits.memory;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut names = None;
    for input in inputs {
        let opened = open(input, format, &rules, SourceOptions::default(), names)?;
        if let Some((source, format)) = opened {
            names = Some(format.decoder().names());
            for remark in loading.input(source, format, &rules, threads)? {
                match remark {
                    Remark::Caveat(caveat) => {
                        loading.caveat.get_or_insert(caveat);
                    }
                    Remark::Missing(missing) => loading.missing.push((input.clone(), missing)),
                }
            }
        }
    }
    Ok(loading.finish())
}

/// Maximum bytes per node besides its name, its entry in the index, and links: a [`NodeFacts`] of 48, in an array that
/// was just reallocated; its name's allocation; and 32 of PageRank and ranks.
const NODE_BYTES: u64 = 3 * 48 + ALLOCATION + 32;

pub(super) struct GraphLoader {
    builder: GraphBuilder,
    /// Weights of a record's links.
    weights: Vec<u64>,
    pages: NameTable<NodeFacts>,
    /// Maps names of the current input to pages.
    resolver: Resolver,
    skipped: u64,
    timeless: u64,
    ungrouped: u64,
    caveat: Option<&'static str>,
    missing: Vec<(InputName, Missing)>,
    /// Memory limit in bytes.
    memory: Option<u64>,
    /// True if the current input has a link per line.
    grouped: bool,
}

impl GraphLoader {
    pub fn new(config: &Config) -> Result<GraphLoader> {
        Ok(GraphLoader {
            builder: GraphBuilder::new(config.self_links),
            weights: Vec::new(),
            pages: NameTable::new()?,
            resolver: Resolver::default(),
            skipped: 0,
            timeless: 0,
            ungrouped: 0,
            caveat: None,
            missing: Vec::new(),
            memory: None,
            grouped: false,
        })
    }

    /// Reads one input to its end. Returns the remarks about its first records.
    pub fn input(
        &mut self,
        source: Source,
        format: Format,
        rules: &Rules,
        threads: usize,
    ) -> Result<Vec<Remark>> {
        self.grouped = format.is_grouped();
        self.caveat = self.caveat.or(format.caveat());
        self.resolver = Resolver::default();
        batches(source, format, rules, threads, &mut |batch| {
            self.batch(batch)
        })
    }

    pub fn finish(mut self) -> LoadedGraph {
        self.builder.grow(self.pages.all.len());
        LoadedGraph {
            graph: self.builder.build(),
            pages: self.pages.all,
            skipped: self.skipped,
            timeless: self.timeless,
            ungrouped: self.ungrouped,
            caveat: self.caveat,
            missing: self.missing,
        }
    }

    fn batch(&mut self, batch: &Batch) -> Result<bool> {
        self.resolver.admit(&mut self.pages, batch)?;
        for at in 0..batch.entries.len() {
            self.entry(batch, at);
        }
        self.timeless += batch.timeless.len() as u64;
        self.check_room()?;
        Ok(true)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.pages.all.len() as u64;
        let need = pages * NODE_BYTES + self.pages.bytes() + self.builder.bytes();
        let work = || format!("a graph in memory of more than {pages} pages");
        check_room(
            self.memory,
            need,
            work,
            "use `ingest`, which needs no graph",
        )
    }

    fn entry(&mut self, batch: &Batch, at: usize) {
        let entry = &batch.entries[at];
        let told = batch.totals(at).map(|totals| u64::from(totals.visits));
        match entry.what {
            What::Skipped(_) => self.skipped += 1,
            What::Other | What::OutOfScope | What::OtherShard | What::Failed => {}
            What::Unchanged if batch.targets(entry).is_empty() || self.was_visited(entry) => {
                let source = self.fetched(entry);
                self.pages.all[source as usize].visits += told.unwrap_or(0);
            }
            What::Visit | What::Gone | What::Unchanged => {
                let source = self.fetched(entry);
                let visits = &mut self.pages.all[source as usize].visits;
                self.ungrouped += u64::from(self.grouped && *visits > 0);
                *visits += told.unwrap_or(1).max(1);
                let targets = batch.targets(entry).iter();
                let targets = targets.map(|&name| self.resolver.node(name));
                batch.weigh(entry, &mut self.weights);
                if self.weights.is_empty() {
                    self.builder.row(source, targets);
                } else {
                    let weights = self.weights.iter().copied();
                    self.builder.weighted_row(source, targets.zip(weights));
                }
            }
        }
    }

    fn was_visited(&self, entry: &BatchEntry) -> bool {
        let source = self.resolver.node(entry.source);
        self.pages.all[source as usize].visits > 0
    }

    /// Notes the time of a fetch; returns the page.
    fn fetched(&mut self, entry: &BatchEntry) -> u32 {
        let source = self.resolver.node(entry.source);
        let page = &mut self.pages.all[source as usize];
        page.last_fetch = page.last_fetch.max(entry.fetched_at);
        source
    }
}

impl From<String> for NodeFacts {
    fn from(name: String) -> NodeFacts {
        NodeFacts {
            name,
            ..NodeFacts::default()
        }
    }
}
