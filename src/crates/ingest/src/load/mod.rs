//! Inputs read into memory, as a graph whose nodes are numbered in order of first appearance.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;

use crate::Result;
use crate::batch::{Batch, Rules, What};
use crate::batches::rules_in_memory;
use crate::decode::{Missing, Names, Time};
use crate::engine::{Config, Index};
use crate::formats::Format;
use crate::graph::{Graph, LatestRows, Links, node};
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::{BatchVisitor, InputReader, InputRecords, Piece, Remark, checked_format_of};
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions};
use crate::threads::processors;

#[derive(Debug, Default)]
pub struct LoadReport {
    pub skipped: u64,
    /// Number of records that were used without their times, which are invalid.
    pub timeless: u64,
    /// Number of groups, in inputs with a link per line, whose source had a group before: only the last one counts.
    pub ungrouped: u64,
    /// First caveat of an input or of its format ([`Format::caveat`]).
    pub caveat: Option<&'static str>,
    pub missing: Vec<(InputName, Missing)>,
}

pub struct LoadedGraph {
    pub graph: Graph,
    pub pages: Vec<NodeFacts>,
    pub report: LoadReport,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: String,
    pub visits: u64,
    /// Time of the last fetch, in seconds since 1970.
    pub last_fetch: Option<Time>,
}

/// Reads `inputs` into a graph, as the engine does with this `config`; of several visits of a page the last one counts,
/// and a page that is gone has no links. Fails with [`Error::Unsupported`](crate::Error::Unsupported) if a format cannot
/// be guessed or there are too many nodes, and with [`Error::TooLarge`](crate::Error::TooLarge) if the graph, with what
/// PageRank takes of it, exceeds `limits.memory`.
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
    let mut loader = GraphLoader::new(rules, processors())?;
    for input in inputs {
        loader.read(input, format)?;
    }
    Ok(loader.into_graph())
}

/// Nodes by number, in order of first appearance, and their rows, each as of the last visit.
struct GraphLoader {
    rules: Rules,
    threads: usize,
    index: Index,
    pages: Vec<NodeFacts>,
    text: u64,
    batch_pages: Vec<u32>,
    rows: LatestRows,
    kind: Option<Names>,
    is_grouped: bool,
    /// Targets and weights of a record, reused.
    links: (Vec<u32>, Vec<u64>),
    report: LoadReport,
}

/// Maximum bytes per node of a graph besides its name and links, with those of PageRank and ranks.
const NODE_BYTES: u64 = 3 * (48 + 4) + ALLOCATION + 32;

impl GraphLoader {
    fn new(rules: Rules, threads: usize) -> Result<GraphLoader> {
        Ok(GraphLoader {
            rules,
            threads,
            index: Index::new()?,
            pages: Vec::new(),
            text: 0,
            batch_pages: Vec::new(),
            rows: LatestRows::default(),
            kind: None,
            is_grouped: false,
            links: Default::default(),
            report: LoadReport::default(),
        })
    }

    fn into_graph(self) -> LoadedGraph {
        LoadedGraph {
            pages: self.pages,
            graph: self.rows.into_table(),
            report: self.report,
        }
    }

    fn bytes(&self) -> u64 {
        let names = self.text + self.index.bytes();
        self.pages.len() as u64 * NODE_BYTES + names + self.rows.bytes()
    }

    fn read(&mut self, input: &InputName, format: Option<Format>) -> Result<()> {
        let reader = InputReader::new(self.rules.clone(), &SourceOptions::default(), self.threads);
        let mut source = reader.open(input)?;
        match checked_format_of(&mut source, format, self.kind)? {
            Some((format, _)) => self.read_source(&reader, source, format),
            None => Ok(()),
        }
    }

    fn read_source(&mut self, reader: &InputReader, source: Source, format: Format) -> Result<()> {
        self.report.caveat = self.report.caveat.or(format.caveat());
        self.kind = Some(format.decoder().names());
        self.is_grouped = format.is_grouped();
        let mut records = reader.read(source, format)?;
        records.visit(self).map(drop)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.pages.len() as u64;
        let work = || format!("a graph in memory of more than {pages} pages");
        let remedy = "use `ingest`, which needs no graph";
        check_room(self.rules.limits.memory, self.bytes(), work, remedy)
    }

    fn entry(&mut self, batch: &Batch, at: usize) {
        let entry = &batch.entries[at];
        self.report.skipped += u64::from(matches!(entry.what, What::Skipped(_)));
        if !entry.what.is_of_page() {
            return;
        }
        let page = self.batch_pages[entry.source as usize];
        let facts = &mut self.pages[page as usize];
        let was_read = facts.visits > 0;
        let has_row = match entry.what {
            What::Failed => return,
            What::Gone => true,
            // Its only link is the page with the same content.
            What::Unchanged => entry.links_start < entry.links_end && !was_read,
            _ => true,
        };
        let counted = batch.totals(at).map_or(0, |totals| totals.visits.into());
        facts.visits += counted.max(has_row.into());
        facts.last_fetch = facts.last_fetch.max(entry.fetched_at);
        if has_row {
            let (targets, weights) = &mut self.links;
            targets.clear();
            let names = batch.targets(entry).iter();
            targets.extend(names.map(|&name| self.batch_pages[name as usize]));
            batch.weigh(entry, weights);
            sort_links(targets, weights);
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

impl BatchVisitor for GraphLoader {
    fn remark(&mut self, input: &InputName, remark: Remark) {
        let report = &mut self.report;
        match remark {
            Remark::Caveat(caveat) => report.caveat = report.caveat.or(Some(caveat)),
            Remark::Missing(missing) => report.missing.push((input.clone(), missing)),
        }
    }

    fn piece(&mut self, _: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let batch = &piece.batch;
        let (index, pages) = (&mut self.index, &mut self.batch_pages);
        pages.clear();
        let names = 0..batch.fingerprints.len();
        index.admit_all(&batch.fingerprints, names, |_, page, _| {
            pages.push(node(page.0)?);
            Ok(())
        })?;
        for (name, &page) in (0..).zip(&self.batch_pages) {
            if page as usize == self.pages.len() {
                let name = String::from_utf8_lossy(batch.name(name)).into_owned();
                self.text += name.len() as u64;
                self.pages.push(NodeFacts {
                    name,
                    ..NodeFacts::default()
                });
            }
        }
        self.rows.grow(self.pages.len() as u64);
        (0..batch.entries.len()).for_each(|at| self.entry(batch, at));
        let timeless = batch.entries.iter().filter(|entry| entry.is_timeless);
        self.report.timeless += timeless.count() as u64;
        self.check_room()?;
        Ok(true)
    }
}
