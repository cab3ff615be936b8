//! A crawl held as rows with names, read at once or as a crawler delivers it, beside a store or alone.

use std::collections::HashMap;

use super::{Nodes, batches, open};
use crate::batch::{Batch, Entry, HashKey, Rules, What};
use crate::engine::SelfLinks;
use crate::formats::Format;
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::rows::{Row, RowVisitor, Rows, Stop};
use crate::rules::{Follow, InputRules};
use crate::session::Writer;
use crate::snapshot::Snapshot;
use crate::source::{InputName, SourceOptions};
use crate::{Error, Result};

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// It was read; its links are its row.
    Read,
    /// It is gone (404, 410).
    Gone,
    /// It could not be fetched, or was found unchanged, which does not tell its links.
    Failed,
}

/// Hears of each page that was delivered, when it is in the crawl, and in the store that it goes to.
pub type Each<'a> = dyn FnMut(&Crawled, Option<&mut Writer>, u32, Fetch) -> Result<bool> + 'a;

/// Pages by number, in order of first appearance, and the rows of those that were read here. The last visit of a page
/// counts.
pub struct Crawled {
    rules: Rules,
    /// What a link of each class weighs; none: all the same.
    follow: Vec<u64>,
    nodes: Nodes,
    names: Vec<String>,
    /// In order of first visits.
    rows: Vec<CrawledRow>,
    /// Where a page's row is.
    places: HashMap<u32, usize>,
    /// It began with the pages of a store.
    of_store: bool,
    skipped: u64,
    links: u64,
}

struct CrawledRow {
    page: u32,
    gone: bool,
    targets: Box<[u32]>,
    /// Empty: all weigh the same.
    weights: Box<[u64]>,
}

/// What a page takes at most beside its name: an entry of each of two hash tables that just grew, and a row.
const PAGE_BYTES: u64 = 113 + 80 + 40 + 32 + 3 * ALLOCATION;

impl Crawled {
    /// Nothing yet.
    ///
    /// # Errors
    /// If the system has no random numbers for the key of hashes.
    pub fn new(input: &InputRules, follow: &Follow, limits: &Limits) -> Result<Crawled> {
        let rules = Rules {
            limits: limits.clone(),
            self_links: SelfLinks::Drop,
            key: HashKey::random()?,
            input: input.clone(),
            classes: !follow.is_default(),
        };
        Ok(Crawled::of(rules, follow))
    }

    fn of(rules: Rules, follow: &Follow) -> Crawled {
        Crawled {
            rules,
            follow: follow.table(),
            nodes: Nodes::default(),
            names: Vec::new(),
            rows: Vec::new(),
            places: HashMap::new(),
            of_store: false,
            skipped: 0,
            links: 0,
        }
    }

    /// The pages of a store, under their numbers, without their rows, to be followed by what is delivered to the store
    /// ([`Crawled::deliver`]).
    ///
    /// # Errors
    /// Those of reading the names; [`Error::TooLarge`] if they take more than the memory limit; [`Error::Unsupported`] if there are too many.
    pub fn of_store(snapshot: &Snapshot, writer: &Writer) -> Result<Crawled> {
        let mut crawled = Crawled::of(writer.rules(), &snapshot.info().settings.config.follow);
        crawled.of_store = true;
        let fingerprints = crawled.rules.key.fingerprints();
        for name in snapshot.names() {
            let name = name?;
            let fingerprint = fingerprints.of(name.as_bytes());
            crawled.nodes.node(fingerprint, name.len())?;
            crawled.names.push(name);
            if crawled.names.len().is_multiple_of(1 << 16) {
                crawled.check_room()?;
            }
        }
        crawled.check_room()?;
        Ok(crawled)
    }

    /// The name of a page: a canonical URL, or opaque.
    pub fn name(&self, page: u32) -> &str {
        &self.names[page as usize]
    }

    /// The names of all pages.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The targets of a page that was read here, and what each link weighs.
    pub fn targets(&self, page: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let row = self.places.get(&page).map(|&place| &self.rows[place]);
        row.into_iter().flat_map(|row| {
            let weights = row.weights.iter().copied().chain(std::iter::repeat(1));
            row.targets.iter().copied().zip(weights)
        })
    }

    /// Whether pages may have been left out, by rules on names.
    pub fn is_scoped(&self) -> bool {
        !self.rules.input.scope.is_all()
    }

    /// Records that could not be used.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads an input to its end.
    ///
    /// # Errors
    /// Those of reading; [`Error::Unsupported`] if the format cannot be guessed; [`Error::TooLarge`] if the crawl takes
    /// more than the memory limit.
    pub fn read(&mut self, input: &InputName, format: Option<Format>) -> Result<()> {
        let options = SourceOptions::default();
        self.input(input, format, options, None, &mut |_, _, _, _| Ok(true))
    }

    /// Reads an input as it comes, into `store`, too, if there is one: `each` is told of every page at once, and may end
    /// it by `false`. What the store took is durable when `each`, or the caller, makes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Crawled::read`], of [`Writer::push`], and of `each`.
    pub fn deliver(
        &mut self,
        input: &InputName,
        format: Option<Format>,
        store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        // The smallest chunks: each holds what has come.
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
        let Some((source, format)) = open(input, format, &self.rules.limits, &options)? else {
            return Ok(());
        };
        if format == Format::Cza && store.is_some() {
            return Err(Error::Unsupported(format!(
                "{input}: an archive is read by `ingest`; a crawler delivers records"
            )));
        }
        self.nodes.end();
        let rules = self.rules.clone();
        batches(source, format, &rules, 1, &mut |batch| {
            self.batch(batch, store.as_deref_mut(), each)
        })
    }

    fn batch(
        &mut self,
        batch: &Batch,
        mut store: Option<&mut Writer>,
        each: &mut Each<'_>,
    ) -> Result<bool> {
        if let Some(store) = &mut store {
            store.take(batch)?;
        }
        let names = &mut self.names;
        self.nodes.take(batch, |name| names.push(name))?;
        for entry in &batch.entries {
            if let Some((page, fetch)) = self.entry(batch, entry)
                && !each(self, store.as_deref_mut(), page, fetch)?
            {
                return Ok(false);
            }
        }
        self.check_room()?;
        Ok(true)
    }

    fn check_room(&self) -> Result<()> {
        let pages = self.names.len() as u64;
        let link = if self.follow.is_empty() { 4 } else { 12 };
        let need = pages * PAGE_BYTES + self.nodes.text() + link * self.links;
        let work = || format!("a crawl in memory of more than {pages} pages");
        let remedy = if !self.of_store {
            "ingest it into a store, and use `store`"
        } else {
            "ingest what is fetched, round by round, and search without `live`"
        };
        check_room(self.rules.limits.memory, need, work, remedy)
    }

    fn entry(&mut self, batch: &Batch, entry: &Entry) -> Option<(u32, Fetch)> {
        let fetch = match entry.what {
            What::Skipped(_) => {
                self.skipped += 1;
                return None;
            }
            What::Other | What::OutOfScope => return None,
            What::Failed | What::Unchanged => {
                return Some((self.nodes.of(entry.source), Fetch::Failed));
            }
            What::Gone => Fetch::Gone,
            What::Visit => Fetch::Read,
        };
        let page = self.nodes.of(entry.source);
        let targets = batch.targets(entry).iter();
        let targets: Box<[u32]> = targets.map(|&name| self.nodes.of(name)).collect();
        let classes = batch.classes(entry).iter();
        let weights = classes.map(|class| self.follow[usize::from(class.number())]);
        let row = CrawledRow {
            page,
            gone: fetch == Fetch::Gone,
            weights: if self.follow.is_empty() {
                Box::default()
            } else {
                weights.collect()
            },
            targets,
        };
        self.links += row.targets.len() as u64;
        match self.places.get(&page) {
            Some(&place) => {
                let before = std::mem::replace(&mut self.rows[place], row);
                self.links -= before.targets.len() as u64;
            }
            None => {
                self.places.insert(page, self.rows.len());
                self.rows.push(row);
            }
        }
        Some((page, fetch))
    }
}

impl Rows for Crawled {
    fn pages(&self) -> u64 {
        self.names.len() as u64
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        for row in &self.rows {
            visit(Row {
                page: row.page,
                gone: row.gone,
                targets: &row.targets,
                weights: &row.weights,
            })?;
        }
        Ok(())
    }
}
