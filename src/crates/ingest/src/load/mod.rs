//! Inputs read into memory, with names numbered in order of first appearance: a crawl as rows with names, or a graph.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;

use std::ops::Range;

use crate::Result;
use crate::batch::{Batch, Rules, What};
use crate::batches::rules_in_memory;
use crate::decode::{Missing, Names, Time};
use crate::engine::{Admit, Config, Index, PageId, Resolver};
use crate::formats::Format;
use crate::graph::{Graph, LatestRows, Links, node};
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::{BatchVisitor, InputReader, InputRecords, Piece, Remark, checked_format_of};
use crate::rules::{Follow, InputRules};
use crate::source::{InputName, Source, SourceOptions};
use crate::threads::processors;

#[derive(Debug, Default)]
pub struct LoadReport {
    /// Number of records that could not be used.
    pub skipped: u64,
    /// Number of records that were used without their times, which are invalid.
    pub timeless: u64,
    /// Number of groups, in inputs with a link per line, whose source had a group before: only the last one counts.
    pub ungrouped: u64,
    /// First caveat of an input; for a graph also of its format ([`Format::caveat`]).
    pub caveat: Option<&'static str>,
    /// Inputs whose records lack fields that ranking needs.
    pub missing: Vec<(InputName, Missing)>,
}

/// Graph with the facts about its nodes, which are numbered in order of first appearance.
pub struct LoadedGraph {
    pub graph: Graph,
    pub pages: Vec<NodeFacts>,
    pub report: LoadReport,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Canonical URL or opaque name.
    pub name: String,
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
        self_links: config.self_links,
        follow: config.follow.clone(),
        ..rules_in_memory(limits, input)?
    };
    let mut crawled = Crawled::of(rules, true)?;
    crawled.threads = processors();
    for input in inputs {
        crawled.read(input, format)?;
    }
    Ok(crawled.into_graph())
}

/// Pages by number, in order of first appearance, and the rows of those read here, each as of the last visit.
pub struct Crawled {
    rules: Rules,
    threads: usize,
    names: NameTable,
    /// Maps names of the current input to pages.
    resolver: Resolver,
    rows: LatestRows,
    /// Number of visits and last fetch of each page, for a graph.
    visits: Option<Vec<(u64, Option<Time>)>>,
    /// Kind of names of the last input.
    kind: Option<Names>,
    /// True if the current input has a link per line.
    is_grouped: bool,
    /// Targets and weights of a record, reused.
    links: (Vec<u32>, Vec<u64>),
    pub report: LoadReport,
}

/// Maximum bytes per page besides its name and its entry in the index: entries in arrays just reallocated.
const PAGE_BYTES: u64 = 3 * (24 + 8 + 8 + 4) + ALLOCATION;
/// Maximum bytes per node of a graph besides its name, its entry in the index, and links: in arrays that were just
/// reallocated, or in the one of [`NodeFacts`]; its name's allocation; and 32 of PageRank and ranks.
const NODE_BYTES: u64 = 3 * (24 + 24 + 4) + ALLOCATION + 32;

impl Crawled {
    /// Returns an empty crawl. Fails if the system has no random numbers for the key of hashes.
    pub fn new(input: &InputRules, follow: &Follow, limits: &Limits) -> Result<Crawled> {
        let rules = Rules {
            follow: follow.clone(),
            ..rules_in_memory(limits, input)?
        };
        Crawled::of(rules, false)
    }

    fn of(rules: Rules, is_graph: bool) -> Result<Crawled> {
        Ok(Crawled {
            rules,
            threads: 1,
            names: NameTable {
                index: Index::new()?,
                all: Vec::new(),
                text: 0,
            },
            resolver: Resolver::default(),
            rows: LatestRows::default(),
            visits: is_graph.then(Vec::new),
            kind: None,
            is_grouped: false,
            links: Default::default(),
            report: LoadReport::default(),
        })
    }

    fn into_graph(self) -> LoadedGraph {
        let names = self.names.all.into_iter();
        let pages = names.zip(self.visits.unwrap_or_default());
        let pages = pages.map(|(name, (visits, last_fetch))| NodeFacts {
            name,
            visits,
            last_fetch,
        });
        LoadedGraph {
            pages: pages.collect(),
            graph: self.rows.into_table(),
            report: self.report,
        }
    }

    /// Returns an upper bound of the crawl's memory in bytes.
    pub fn bytes(&self) -> u64 {
        let each = self.visits.as_ref().map_or(PAGE_BYTES, |_| NODE_BYTES);
        let names = self.names.text + self.names.index.bytes();
        self.names.all.len() as u64 * each + names + self.rows.bytes()
    }

    pub fn name(&self, page: u32) -> &str {
        &self.names.all[page as usize]
    }

    pub fn names(&self) -> &[String] {
        &self.names.all
    }

    /// Returns the links of the pages that were read here.
    pub fn rows(&self) -> &LatestRows {
        &self.rows
    }

    /// Returns whether rules on names may have left out pages.
    pub fn is_scoped(&self) -> bool {
        !self.rules.input.scope.is_all()
    }

    /// Reads an input to its end. Fails with [`Error::Unsupported`](crate::Error::Unsupported) if the format cannot be
    /// guessed, and with [`Error::TooLarge`](crate::Error::TooLarge) if the crawl exceeds the memory limit.
    pub fn read(&mut self, input: &InputName, format: Option<Format>) -> Result<()> {
        let reader = InputReader::new(self.rules.clone(), &SourceOptions::default(), self.threads);
        let mut source = reader.open(input)?;
        match checked_format_of(&mut source, format, self.kind)? {
            Some((format, _)) => self.read_source(&reader, source, format),
            None => Ok(()),
        }
    }

    fn read_source(&mut self, reader: &InputReader, source: Source, format: Format) -> Result<()> {
        if self.visits.is_some() {
            self.report.caveat = self.report.caveat.or(format.caveat());
        }
        self.kind = Some(format.decoder().names());
        self.is_grouped = format.is_grouped();
        self.resolver = Resolver::default();
        let mut records = reader.read(source, format)?;
        records.visit(self).map(drop)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.names.all.len() as u64;
        let (what, remedy) = if self.visits.is_some() {
            ("graph", "use `ingest`, which needs no graph")
        } else {
            ("crawl", "ingest it into a store, and use `store`")
        };
        let work = || format!("a {what} in memory of more than {pages} pages");
        check_room(self.rules.limits.memory, self.bytes(), work, remedy)
    }

    /// Adds a record, unless it is of no page, or of a crawl and only makes its page known.
    fn entry(&mut self, batch: &Batch, at: usize) {
        let entry = &batch.entries[at];
        let totals = batch.totals(at);
        if self.visits.is_none() && totals.is_some_and(|t| t.visits == 0 && t.failed == 0) {
            return;
        }
        self.report.skipped += u64::from(matches!(entry.what, What::Skipped(_)));
        if !entry.what.is_of_page() {
            return;
        }
        let page = self.resolver.node(entry.source);
        let facts = self.visits.as_mut().map(|all| &mut all[page as usize]);
        let was_read = match &facts {
            Some((visits, _)) => *visits > 0,
            None => self.rows.has(page),
        };
        let has_row = match entry.what {
            What::Failed => return,
            What::Gone => true,
            // Its only link is the page with the same content.
            What::Unchanged => entry.links_start < entry.links_end && !was_read,
            _ => true,
        };
        let is_graph = facts.is_some();
        if let Some((visits, last)) = facts {
            *visits += totals.map_or(0, |t| t.visits.into()).max(has_row.into());
            *last = (*last).max(entry.fetched_at);
        }
        if has_row {
            let (targets, weights) = &mut self.links;
            targets.clear();
            let names = batch.targets(entry).iter();
            targets.extend(names.map(|&name| self.resolver.node(name)));
            batch.weigh(entry, weights);
            if is_graph {
                sort_links(targets, weights);
            }
            self.report.ungrouped += u64::from(self.is_grouped && was_read);
            let links = Links { targets, weights };
            self.rows.set(page, entry.what == What::Gone, links);
        }
    }
}

/// Sorts links by target as a graph has them, without those of weight 0.
fn sort_links(targets: &mut Vec<u32>, weights: &mut Vec<u64>) {
    if weights.is_empty() {
        targets.sort_unstable();
        return;
    }
    let mut links: Vec<_> = targets.drain(..).zip(weights.drain(..)).collect();
    links.retain(|(_, weight)| *weight > 0);
    links.sort_unstable();
    (*targets, *weights) = links.into_iter().unzip();
}

impl BatchVisitor for Crawled {
    fn remark(&mut self, input: &InputName, remark: Remark) {
        let report = &mut self.report;
        match remark {
            Remark::Caveat(caveat) => report.caveat = report.caveat.or(Some(caveat)),
            Remark::Missing(missing) => report.missing.push((input.clone(), missing)),
        }
    }

    fn piece(&mut self, _: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let batch = &piece.batch;
        self.resolver.begin();
        let names_end = batch.fingerprints.len() as u32;
        self.resolver.admit(&mut self.names, batch, names_end)?;
        let pages = self.names.all.len();
        self.rows.grow(pages as u64);
        if let Some(visits) = &mut self.visits {
            visits.resize(pages, (0, None));
        }
        (0..batch.entries.len()).for_each(|at| self.entry(batch, at));
        let timeless = batch.entries.iter().filter(|entry| entry.is_timeless);
        self.report.timeless += timeless.count() as u64;
        self.check_room()?;
        Ok(true)
    }
}

struct NameTable {
    index: Index,
    all: Vec<String>,
    /// Length of all names in bytes.
    text: u64,
}

impl Admit for NameTable {
    fn admit(
        &mut self,
        batch: &Batch,
        names: Range<usize>,
        mut put: impl FnMut(PageId),
    ) -> Result<()> {
        let NameTable { index, all, text } = self;
        index.admit_all(&batch.fingerprints, names, |at, page, is_new| {
            node(page.0)?;
            if is_new {
                let name = batch.name(at as u32);
                *text += name.len() as u64;
                all.push(String::from_utf8_lossy(name).into_owned());
            }
            put(page);
            Ok(())
        })
    }
}
