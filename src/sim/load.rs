//! Reading a whole crawl into a graph, by the link rules of the engine.

use std::collections::HashMap;

use super::graph::{Graph, GraphBuilder};
use crate::Result;
use crate::batch::{Batch, Entry, HashKey, Rules, What};
use crate::cza::Chain;
use crate::decode::Time;
use crate::engine::{Config, Fingerprint};
use crate::formats::Format;
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::guess_of;
use crate::pipeline::{BufferPool, Delays, Next, Pipeline};
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions};

/// A graph and what is known of its nodes, which are numbered in order of first appearance.
pub struct Loaded {
    /// The graph.
    pub graph: Graph,
    /// By node.
    pub pages: Vec<Page>,
    /// Records that could not be used.
    pub skipped: u64,
    /// Records that were used without their times, which cannot be read.
    pub timeless: u64,
    /// Groups of inputs with a link a line (`edges` and others) whose source had a group before: only the last one counts.
    pub ungrouped: u64,
    /// What should be known of the inputs' formats ([`Format::caveat`]).
    pub caveat: Option<&'static str>,
}

/// One node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Canonical URL or opaque name.
    pub name: String,
    /// Visits read.
    pub visits: u64,
    /// Time of the last fetch, in seconds since 1970.
    pub last_fetch: Option<Time>,
}

/// Reads `inputs` into a graph. What is a visit, which links count and what they weigh is decided as by the
/// engine with this `config`;
/// of several visits of a page the last one counts, and a page gone has no links.
///
/// # Errors
/// Those of [`Source`]; [`Error::Unsupported`](crate::Error::Unsupported) if a format cannot be guessed or there are too many nodes;
/// [`Error::TooLarge`](crate::Error::TooLarge) if the graph, with what PageRank takes of it, is larger than `limits.memory`.
pub fn load(
    inputs: &[InputName],
    format: Option<Format>,
    config: &Config,
    input: &InputRules,
    limits: &Limits,
) -> Result<Loaded> {
    let rules = Rules {
        limits: limits.clone(),
        self_links: config.self_links,
        key: HashKey::random()?,
        input: input.clone(),
        classes: !config.follow.is_default(),
    };
    let mut loading = Loading::new(config);
    loading.memory = limits.memory;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    for input in inputs {
        let mut source = Source::open(input, limits, &SourceOptions::default())?;
        let format = match format {
            Some(format) => format,
            None => match guess_of(input, &mut source)? {
                Some((format, _)) => format,
                None => continue,
            },
        };
        loading.input(source, format, &rules, threads)?;
    }
    Ok(loading.finish())
}

/// What a node takes at most beside the bytes of its name and links: 113 of a hash table that has just grown, the old
/// one beside it; a [`Page`] of 48, and its name's allocation; and 32 of PageRank and ranks.
const NODE_BYTES: u64 = 113 + 48 + ALLOCATION + 32;

pub(super) struct Loading {
    builder: GraphBuilder,
    /// What a link of each class weighs; none: all the same.
    weights: Vec<u64>,
    nodes: HashMap<Fingerprint, u32>,
    pages: Vec<Page>,
    skipped: u64,
    timeless: u64,
    ungrouped: u64,
    caveat: Option<&'static str>,
    /// Bytes of all names.
    text: u64,
    /// Bytes of what is known of an archive's hosts.
    hosts: u64,
    /// Most bytes of memory to take.
    memory: Option<u64>,
    /// The input being read has a link a line.
    grouped: bool,
    ids: Vec<u32>,
}

impl Loading {
    pub fn new(config: &Config) -> Loading {
        let weights = config.follow.table();
        Loading {
            builder: match weights.is_empty() {
                true => GraphBuilder::new(config.self_links),
                false => GraphBuilder::weighted(config.self_links),
            },
            weights,
            nodes: HashMap::new(),
            pages: Vec::new(),
            skipped: 0,
            timeless: 0,
            ungrouped: 0,
            caveat: None,
            text: 0,
            hosts: 0,
            memory: None,
            grouped: false,
            ids: Vec::new(),
        }
    }

    /// Reads one input to its end.
    pub fn input(
        &mut self,
        source: Source,
        format: Format,
        rules: &Rules,
        threads: usize,
    ) -> Result<()> {
        self.grouped = format.is_grouped();
        self.caveat = self.caveat.or(format.caveat());
        self.ids.clear();
        let input = source.name().clone();
        let mut chain = (format == Format::Cza).then(|| Chain::new(rules));
        let spent = BufferPool::new(threads);
        let mut pipeline =
            Pipeline::start(source, format, rules, threads, 0, &spent, Delays::NONE)?;
        loop {
            match pipeline.next()? {
                Next::Idle => {}
                Next::End(summary) => {
                    let ended = chain.map(|chain| chain.finish(&input, summary.bytes));
                    return ended.unwrap_or(Ok(()));
                }
                Next::Piece(mut piece) => {
                    if let Some(chain) = &mut chain {
                        chain.follow(&piece.chunk, &mut piece.batch, &input)?;
                        self.hosts = chain.bytes_with(0);
                    }
                    self.batch(&piece.batch)?;
                    self.skipped += u64::from(piece.last && piece.chunk.oversize > 0);
                    pipeline.recycle(piece);
                }
            }
        }
    }

    pub fn finish(mut self) -> Loaded {
        self.builder.grow(self.pages.len());
        Loaded {
            graph: self.builder.build(),
            pages: self.pages,
            skipped: self.skipped,
            timeless: self.timeless,
            ungrouped: self.ungrouped,
            caveat: self.caveat,
        }
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        if batch.part.is_none() {
            self.ids.clear();
        }
        for (name, fingerprint) in batch.fingerprints.iter().enumerate() {
            let next = GraphBuilder::node(self.pages.len() as u64)?;
            let node = *self.nodes.entry(*fingerprint).or_insert(next);
            if node == next {
                let name = String::from_utf8_lossy(batch.name(name as u32)).into_owned();
                self.text += name.len() as u64;
                self.pages.push(Page {
                    name,
                    ..Page::default()
                });
            }
            self.ids.push(node);
        }
        for entry in &batch.entries {
            self.entry(batch, entry);
        }
        self.timeless += batch.timeless.len() as u64;
        self.check_room()
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.pages.len() as u64;
        let need = pages * NODE_BYTES + self.text + self.hosts + self.builder.bytes();
        let work = || format!("a graph in memory of more than {pages} pages");
        check_room(
            self.memory,
            need,
            work,
            "use `ingest`, which needs no graph",
        )
    }

    fn entry(&mut self, batch: &Batch, entry: &Entry) {
        match entry.what {
            What::Skipped(_) => self.skipped += 1,
            What::Other | What::OutOfScope | What::Failed => {}
            What::Unchanged => self.fetched(entry),
            What::Visit | What::Gone => {
                let source = self.ids[entry.source as usize];
                self.fetched(entry);
                let visits = &mut self.pages[source as usize].visits;
                self.ungrouped += u64::from(self.grouped && *visits > 0);
                *visits += 1;
                let targets = batch.targets(entry).iter();
                let targets = targets.map(|&name| self.ids[name as usize]);
                if self.weights.is_empty() {
                    self.builder.row(source, targets);
                } else {
                    let classes = batch.classes(entry).iter();
                    let weights = classes.map(|class| self.weights[usize::from(class.number())]);
                    self.builder.weighted_row(source, targets.zip(weights));
                }
            }
        }
    }

    fn fetched(&mut self, entry: &Entry) {
        let source = self.ids[entry.source as usize] as usize;
        let page = &mut self.pages[source];
        page.last_fetch = page.last_fetch.max(entry.fetched_at);
    }
}
