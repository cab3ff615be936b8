//! Crawl in memory as rows with names, read at once or as a crawler delivers it, with or without a store.

use super::{NameTable, batches, open};
use crate::Result;
use crate::batch::{Batch, HashKey, Rules, What};
use crate::decode::{Missing, Names};
use crate::engine::{Resolver, SelfLinks};
use crate::formats::Format;
use crate::graph::{GraphBuilder, LatestRows, Links};
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::Remark;
use crate::rows::{Row, RowVisitor, Rows, Stop};
use crate::rules::{Follow, InputRules};
use crate::session::Writer;
use crate::snapshot::Snapshot;
use crate::source::{InputName, SourceOptions};

/// Outcome of fetching a page.
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

/// Pages by number, in order of first appearance, and the rows of those that were read here. The last visit of a page
/// counts.
pub struct Crawled {
    rules: Rules,
    names: NameTable<String>,
    /// Maps names of the current input to pages, if no store does.
    resolver: Resolver,
    rows: LatestRows,
    /// True if it began with the pages of a store.
    of_store: bool,
    /// Kind of names of the last input.
    kind: Option<Names>,
    skipped: u64,
    /// True if the current input has a link per line.
    is_grouped: bool,
    /// Number of groups, in such inputs, whose source had a group before.
    ungrouped: u64,
    /// Remarks about the first records of inputs.
    remarks: Vec<(InputName, Remark)>,
}

/// Maximum bytes per page besides its name and its entry in the index: its entries in arrays that were just
/// reallocated.
const PAGE_BYTES: u64 = 3 * (24 + 16 + 4 + 1) + ALLOCATION;

impl Crawled {
    /// Returns an empty crawl. Fails if the system has no random numbers for the key of hashes.
    pub fn new(input: &InputRules, follow: &Follow, limits: &Limits) -> Result<Crawled> {
        let rules = Rules {
            limits: limits.clone(),
            self_links: SelfLinks::Drop,
            key: HashKey::random()?,
            input: input.clone(),
            follow: follow.clone(),
        };
        Crawled::of(rules)
    }

    fn of(rules: Rules) -> Result<Crawled> {
        Ok(Crawled {
            rules,
            names: NameTable::new()?,
            resolver: Resolver::default(),
            rows: LatestRows::default(),
            of_store: false,
            kind: None,
            skipped: 0,
            is_grouped: false,
            ungrouped: 0,
            remarks: Vec::new(),
        })
    }

    /// Returns the pages of a store, under their numbers and without their rows, to which deliveries to the store are
    /// added ([`Crawled::deliver`]). Fails with [`Error::TooLarge`](crate::Error::TooLarge) if their names take more
    /// than `memory` bytes, and with [`Error::Unsupported`](crate::Error::Unsupported) if there are too many.
    pub fn of_store(snapshot: &Snapshot, writer: &Writer, memory: Option<u64>) -> Result<Crawled> {
        let mut crawled = Crawled::of(writer.rules())?;
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

    /// Sets the memory limit.
    pub fn limit_memory(&mut self, bytes: Option<u64>) {
        self.rules.limits.memory = bytes;
    }

    /// Returns an upper bound of its memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let pages = self.names.all.len() as u64;
        pages * PAGE_BYTES + self.names.bytes() + self.rows.bytes()
    }

    /// Adds the store's next page, with this name.
    fn know(&mut self, name: String) -> Result<()> {
        GraphBuilder::node(self.names.all.len() as u64)?;
        self.names.text += name.len() as u64;
        self.names.all.push(name);
        self.rows.grow(self.names.all.len() as u64);
        Ok(())
    }

    /// Returns the name of a page: a canonical URL, or opaque.
    pub fn name(&self, page: u32) -> &str {
        &self.names.all[page as usize]
    }

    /// Returns the names of all pages.
    pub fn names(&self) -> &[String] {
        &self.names.all
    }

    /// Yields the targets of a page that was read here, with their weights.
    pub fn targets(&self, page: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.rows.get(page).iter()
    }

    /// Returns whether rules on names may have left out pages.
    pub fn is_scoped(&self) -> bool {
        !self.rules.input.scope.is_all()
    }

    /// Returns the number of records that could not be used.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of groups, in inputs with a link per line, whose source had a group before: only the last one
    /// counts.
    pub fn ungrouped(&self) -> u64 {
        self.ungrouped
    }

    /// Yields the inputs whose records lack fields that ranking needs.
    pub fn missing(&self) -> impl Iterator<Item = (&InputName, &Missing)> {
        self.remarks
            .iter()
            .filter_map(|(input, remark)| match remark {
                Remark::Missing(missing) => Some((input, missing)),
                Remark::Caveat(_) => None,
            })
    }

    /// Returns the first caveat of an input.
    pub fn caveat(&self) -> Option<&'static str> {
        let caveats = self.remarks.iter().map(|(_, remark)| match remark {
            Remark::Missing(_) => None,
            Remark::Caveat(caveat) => Some(*caveat),
        });
        caveats.flatten().next()
    }

    /// Reads an input to its end. Fails with [`Error::Unsupported`] if the format cannot be guessed, and with
    /// [`Error::TooLarge`] if the crawl exceeds the memory limit.
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
        mut store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        // A store that a crawler delivers to has URLs.
        let names = store.is_some().then_some(Names::Url).or(self.kind);
        let Some((source, format)) = open(input, format, &self.rules, options, names)? else {
            return Ok(());
        };
        self.kind = Some(format.decoder().names());
        self.is_grouped = format.is_grouped();
        self.resolver = Resolver::default();
        let rules = self.rules.clone();
        let remarks = batches(source, format, &rules, 1, &mut |batch| {
            self.batch(batch, store.as_deref_mut(), each)
        })?;
        let remarks = remarks.into_iter().map(|remark| (input.clone(), remark));
        self.remarks.extend(remarks);
        Ok(())
    }

    fn batch(
        &mut self,
        batch: &Batch,
        mut store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<bool> {
        if let Some(store) = &mut store {
            store.take(batch)?;
            for (name, page) in (0..).zip(store.resolver().pages()) {
                if page.0 == self.names.all.len() as u64 {
                    self.know(String::from_utf8_lossy(batch.name(name)).into_owned())?;
                }
            }
        } else {
            self.resolver.admit(&mut self.names, batch)?;
            self.rows.grow(self.names.all.len() as u64);
        }
        for at in 0..batch.entries.len() {
            if let Some((page, fetch)) = self.entry(batch, at, store.as_deref())
                && !each(self, store.as_deref_mut(), page, fetch)?
            {
                return Ok(false);
            }
        }
        self.check_room()?;
        Ok(true)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.names.all.len() as u64;
        let work = || format!("a crawl in memory of more than {pages} pages");
        let remedy = if !self.of_store {
            "ingest it into a store, and use `store`"
        } else {
            "ingest what is fetched, round by round, and search without `live`"
        };
        check_room(self.rules.limits.memory, self.bytes(), work, remedy)
    }

    fn entry(
        &mut self,
        batch: &Batch,
        at: usize,
        store: Option<&Writer>,
    ) -> Option<(u32, FetchOutcome)> {
        let entry = &batch.entries[at];
        let told = batch.totals(at);
        if told.is_some_and(|totals| totals.visits == 0 && totals.failed == 0) {
            // The page only becomes known.
            return None;
        }
        let resolver = store.map_or(&self.resolver, Writer::resolver);
        let fetch = match entry.what {
            What::Skipped(_) => {
                self.skipped += 1;
                return None;
            }
            What::Other | What::OutOfScope | What::OtherShard => return None,
            // Its only link is the page with the same content.
            What::Unchanged
                if !batch.targets(entry).is_empty()
                    && !self.rows.has(resolver.node(entry.source)) =>
            {
                FetchOutcome::Read
            }
            What::Failed | What::Unchanged => {
                return Some((resolver.node(entry.source), FetchOutcome::Failed));
            }
            What::Gone => FetchOutcome::Gone,
            What::Visit => FetchOutcome::Read,
        };
        let page = resolver.node(entry.source);
        self.ungrouped += u64::from(self.is_grouped && self.rows.has(page));
        let targets = batch.targets(entry).iter();
        let targets: Vec<u32> = targets.map(|&name| resolver.node(name)).collect();
        let mut weights = Vec::new();
        batch.weigh(entry, &mut weights);
        let links = Links {
            targets: &targets,
            weights: &weights,
        };
        self.rows.set(page, fetch == FetchOutcome::Gone, links);
        Some((page, fetch))
    }
}

impl Rows for Crawled {
    fn pages(&self) -> u64 {
        self.rows.pages()
    }

    fn links(&self) -> u64 {
        self.rows.links()
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.rows.walk(visit)
    }

    fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.rows.row(page, read)
    }
}
