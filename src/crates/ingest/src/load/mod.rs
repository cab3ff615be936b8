//! Inputs read into memory, with names numbered in order of first appearance: a crawl as rows with names, read at once
//! or as a crawler delivers it, with or without a store; or a graph.

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
use crate::session::Writer;
use crate::snapshot::Snapshot;
use crate::source::{InputName, Source, SourceOptions};
use crate::threads::processors;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchOutcome {
    /// Read; its links are its row.
    Read,
    /// Gone: it answered 404 or 410.
    Gone,
    /// Not fetched, or found unchanged, so that its links are unknown.
    Failed,
}

/// Callback for each delivered page, once it is in the crawl, and in the store if there is one. Returns false to stop.
pub type Each<'a> =
    dyn FnMut(&Crawled, Option<&mut Writer>, u32, FetchOutcome) -> Result<bool> + 'a;

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
    /// Maps names of the current input to pages, if no store does.
    resolver: Resolver,
    rows: LatestRows,
    /// Number of visits and last fetch of each page, for a graph.
    visits: Option<Vec<(u64, Option<Time>)>>,
    /// True if the crawl began with the pages of a store.
    of_store: bool,
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
            of_store: false,
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

    /// Returns the pages of a store, under their numbers and without their rows, to which deliveries to the store are
    /// added ([`Crawled::deliver`]). Fails with [`Error::TooLarge`](crate::Error::TooLarge) if their names take more
    /// than `memory` bytes, and with [`Error::Unsupported`](crate::Error::Unsupported) if there are too many.
    pub fn of_store(snapshot: &Snapshot, writer: &Writer, memory: Option<u64>) -> Result<Crawled> {
        let mut crawled = Crawled::of(writer.rules(), false)?;
        crawled.limit_memory(memory);
        crawled.of_store = true;
        for name in snapshot.names() {
            crawled.know(name?)?;
            if crawled.names.all.len().is_multiple_of(1 << 16) {
                crawled.check_room()?;
            }
        }
        crawled.check_room()?;
        Ok(crawled)
    }

    pub fn limit_memory(&mut self, bytes: Option<u64>) {
        self.rules.limits.memory = bytes;
    }

    /// Returns an upper bound of the crawl's memory in bytes.
    pub fn bytes(&self) -> u64 {
        let each = self.visits.as_ref().map_or(PAGE_BYTES, |_| NODE_BYTES);
        let names = self.names.text + self.names.index.bytes();
        self.names.all.len() as u64 * each + names + self.rows.bytes()
    }

    /// Adds the store's next page, with this name.
    fn know(&mut self, name: String) -> Result<()> {
        node(self.names.all.len() as u64)?;
        self.names.text += name.len() as u64;
        self.names.all.push(name);
        self.rows.grow(self.names.all.len() as u64);
        Ok(())
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
        let options = SourceOptions::default();
        self.input(input, format, options, None, &mut |_, _, _, _| Ok(true))
    }

    /// Reads an input as it comes, and adds it to `store` if there is one: `each` is called immediately with every
    /// page, and may stop by `false`. Data in the store is durable once `each`, or the caller, makes a checkpoint.
    pub fn deliver(
        &mut self,
        input: &InputName,
        format: Option<Format>,
        store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        // The smallest chunks: each holds what has arrived.
        let options = SourceOptions {
            chunk_bytes: 1,
            ..SourceOptions::default()
        };
        self.input(input, format, options, store, each)
    }

    fn input(
        &mut self,
        input: &InputName,
        format: Option<Format>,
        options: SourceOptions,
        store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        // A store that a crawler delivers to has URLs.
        let names = store.is_some().then_some(Names::Url).or(self.kind);
        let reader = InputReader::new(self.rules.clone(), &options, self.threads);
        let mut source = reader.open(input)?;
        match checked_format_of(&mut source, format, names)? {
            Some((format, _)) => self.read_source(&reader, source, format, store, each),
            None => Ok(()),
        }
    }

    fn read_source(
        &mut self,
        reader: &InputReader,
        source: Source,
        format: Format,
        store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        if self.visits.is_some() {
            self.report.caveat = self.report.caveat.or(format.caveat());
        }
        self.kind = Some(format.decoder().names());
        self.is_grouped = format.is_grouped();
        self.resolver = Resolver::default();
        let mut records = reader.read(source, format)?;
        let crawled = self;
        let mut delivery = Delivery {
            crawled,
            store,
            each,
        };
        records.visit(&mut delivery).map(drop)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.names.all.len() as u64;
        let (what, remedy) = if self.visits.is_some() {
            ("graph", "use `ingest`, which needs no graph")
        } else if !self.of_store {
            ("crawl", "ingest it into a store, and use `store`")
        } else {
            (
                "crawl",
                "ingest what is fetched, round by round, and search without `live`",
            )
        };
        let work = || format!("a {what} in memory of more than {pages} pages");
        check_room(self.rules.limits.memory, self.bytes(), work, remedy)
    }

    /// Adds a record. Returns its page and outcome, unless it is of no page or only makes it known.
    fn entry(
        &mut self,
        batch: &Batch,
        at: usize,
        store: Option<&Writer>,
    ) -> Option<(u32, FetchOutcome)> {
        let entry = &batch.entries[at];
        let totals = batch.totals(at);
        if self.visits.is_none() && totals.is_some_and(|t| t.visits == 0 && t.failed == 0) {
            return None;
        }
        self.report.skipped += u64::from(matches!(entry.what, What::Skipped(_)));
        if !entry.what.is_of_page() {
            return None;
        }
        let resolver = store.map_or(&self.resolver, Writer::resolver);
        let page = resolver.node(entry.source);
        let facts = self.visits.as_mut().map(|all| &mut all[page as usize]);
        let was_read = match &facts {
            Some((visits, _)) => *visits > 0,
            None => self.rows.has(page),
        };
        let fetch = match entry.what {
            What::Failed => return Some((page, FetchOutcome::Failed)),
            What::Gone => FetchOutcome::Gone,
            // Its only link is the page with the same content.
            What::Unchanged if entry.links_start == entry.links_end || was_read => {
                FetchOutcome::Failed
            }
            _ => FetchOutcome::Read,
        };
        let has_row = fetch != FetchOutcome::Failed;
        let is_graph = facts.is_some();
        if let Some((visits, last)) = facts {
            *visits += totals.map_or(0, |t| t.visits.into()).max(has_row.into());
            *last = (*last).max(entry.fetched_at);
        }
        if has_row {
            let (targets, weights) = &mut self.links;
            targets.clear();
            let names = batch.targets(entry).iter();
            targets.extend(names.map(|&name| resolver.node(name)));
            batch.weigh(entry, weights);
            if is_graph {
                sort_links(targets, weights);
            }
            self.report.ungrouped += u64::from(self.is_grouped && was_read);
            let links = Links { targets, weights };
            self.rows.set(page, fetch == FetchOutcome::Gone, links);
        }
        Some((page, fetch))
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

/// Input that is added to a crawl, and to its store if there is one.
struct Delivery<'r, 'e> {
    crawled: &'r mut Crawled,
    store: Option<&'r mut Writer>,
    each: &'r mut Each<'e>,
}

impl BatchVisitor for Delivery<'_, '_> {
    fn remark(&mut self, input: &InputName, remark: Remark) {
        let report = &mut self.crawled.report;
        match remark {
            Remark::Caveat(caveat) => report.caveat = report.caveat.or(Some(caveat)),
            Remark::Missing(missing) => report.missing.push((input.clone(), missing)),
        }
    }

    fn piece(&mut self, _: &mut InputRecords, piece: &Piece) -> Result<bool> {
        let (crawled, batch) = (&mut *self.crawled, &piece.batch);
        if let Some(store) = &mut self.store {
            store.take(batch)?;
            for (name, page) in (0..).zip(store.resolver().pages()) {
                if page.0 == crawled.names.all.len() as u64 {
                    crawled.know(String::from_utf8_lossy(batch.name(name)).into_owned())?;
                }
            }
        } else {
            let names_end = batch.fingerprints.len() as u32;
            crawled.resolver.begin();
            crawled
                .resolver
                .admit(&mut crawled.names, batch, names_end)?;
            crawled.rows.grow(crawled.names.all.len() as u64);
        }
        if let Some(visits) = &mut crawled.visits {
            visits.resize(crawled.names.all.len(), (0, None));
        }
        for at in 0..batch.entries.len() {
            if let Some((page, fetch)) = crawled.entry(batch, at, self.store.as_deref())
                && !(self.each)(crawled, self.store.as_deref_mut(), page, fetch)?
            {
                return Ok(false);
            }
        }
        let timeless = batch.entries.iter().filter(|entry| entry.is_timeless);
        crawled.report.timeless += timeless.count() as u64;
        crawled.check_room()?;
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
