//! A crawl held as rows with names, read at once or as a crawler delivers it.

use std::collections::HashMap;

use super::GraphBuilder;
use crate::Result;
use crate::batch::{Batch, Entry, HashKey, Rules, What};
use crate::cza::Chain;
use crate::engine::{Fingerprint, SelfLinks};
use crate::formats::Format;
use crate::memory::{ALLOCATION, check_room};
use crate::model::Limits;
use crate::pipeline::{BufferPool, Delays, Next, Pipeline, guess_of};
use crate::rows::{Row, Rows};
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions};

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// It was read; its links are its row.
    Read,
    /// It is gone (404, 410).
    Gone,
    /// It could not be fetched.
    Failed,
}

/// Pages by number, in order of first appearance, and the rows of those that were fetched. The last visit of a page
/// counts.
pub struct Crawled {
    rules: Rules,
    nodes: HashMap<Fingerprint, u32>,
    names: Vec<String>,
    /// In order of first visits: page, whether it is gone, targets.
    rows: Vec<(u32, bool, Box<[u32]>)>,
    /// Where a page's row is.
    places: HashMap<u32, usize>,
    ids: Vec<u32>,
    skipped: u64,
    text: u64,
    links: u64,
}

/// What a page takes at most beside its name: an entry of each of two hash tables that just grew, and a row.
const PAGE_BYTES: u64 = 113 + 80 + 24 + 32 + 2 * ALLOCATION;

impl Crawled {
    /// Nothing yet.
    ///
    /// # Errors
    /// If the system has no random numbers for the key of hashes.
    pub fn new(input: &InputRules, limits: &Limits) -> Result<Crawled> {
        Ok(Crawled {
            rules: Rules {
                limits: limits.clone(),
                self_links: SelfLinks::Drop,
                key: HashKey::random()?,
                input: input.clone(),
                classes: false,
            },
            nodes: HashMap::new(),
            names: Vec::new(),
            rows: Vec::new(),
            places: HashMap::new(),
            ids: Vec::new(),
            skipped: 0,
            text: 0,
            links: 0,
        })
    }

    /// The name of a page: a canonical URL, or opaque.
    pub fn name(&self, page: u32) -> &str {
        &self.names[page as usize]
    }

    /// The names of all pages.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The targets of a page that was fetched.
    pub fn targets(&self, page: u32) -> &[u32] {
        let place = self.places.get(&page);
        place.map_or(&[], |&place| &self.rows[place].2)
    }

    /// Records that could not be used.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads an input to its end.
    ///
    /// # Errors
    /// Those of reading; [`Error::Unsupported`](crate::Error::Unsupported) if the format cannot be guessed, [`Error::TooLarge`](crate::Error::TooLarge) if the crawl takes
    /// more than the memory limit.
    pub fn read(&mut self, input: &InputName, format: Option<Format>) -> Result<()> {
        self.input(input, format, SourceOptions::default(), &mut |_, _, _| {
            Ok(true)
        })
    }

    /// Reads an input as it comes: `each` is told of every page at once, and may end it by `false`.
    ///
    /// # Errors
    /// Those of [`Crawled::read`], and of `each`.
    pub fn deliver(
        &mut self,
        input: &InputName,
        format: Option<Format>,
        each: &mut dyn FnMut(&Crawled, u32, Fetch) -> Result<bool>,
    ) -> Result<()> {
        // The smallest chunks: each holds what has come.
        let options = SourceOptions {
            chunk_bytes: 1,
            ..SourceOptions::default()
        };
        self.input(input, format, options, each)
    }

    fn input(
        &mut self,
        input: &InputName,
        format: Option<Format>,
        options: SourceOptions,
        each: &mut dyn FnMut(&Crawled, u32, Fetch) -> Result<bool>,
    ) -> Result<()> {
        let mut source = Source::open(input, &self.rules.limits, &options)?;
        let format = match format {
            Some(format) => format,
            None => match guess_of(input, &mut source)? {
                Some((format, _)) => format,
                None => return Ok(()),
            },
        };
        self.ids.clear();
        let mut chain = (format == Format::Cza).then(|| Chain::new(&self.rules));
        let pool = BufferPool::new(1);
        let mut pipeline = Pipeline::start(source, format, &self.rules, 1, 0, &pool, Delays::NONE)?;
        loop {
            match pipeline.next()? {
                Next::Idle => {}
                Next::End(summary) => {
                    let ended = chain.map(|chain| chain.finish(input, summary.bytes));
                    return ended.unwrap_or(Ok(()));
                }
                Next::Piece(mut piece) => {
                    if let Some(chain) = &mut chain {
                        chain.follow(&piece.chunk, &mut piece.batch, input)?;
                    }
                    if !self.batch(&piece.batch, each)? {
                        return Ok(());
                    }
                    self.skipped += u64::from(piece.last && piece.chunk.oversize > 0);
                    pipeline.recycle(piece);
                }
            }
        }
    }

    fn batch(
        &mut self,
        batch: &Batch,
        each: &mut dyn FnMut(&Crawled, u32, Fetch) -> Result<bool>,
    ) -> Result<bool> {
        if batch.part.is_none() {
            self.ids.clear();
        }
        for (name, fingerprint) in batch.fingerprints.iter().enumerate() {
            let next = GraphBuilder::node(self.names.len() as u64)?;
            let page = *self.nodes.entry(*fingerprint).or_insert(next);
            if page == next {
                let name = String::from_utf8_lossy(batch.name(name as u32)).into_owned();
                self.text += name.len() as u64;
                self.names.push(name);
            }
            self.ids.push(page);
        }
        for entry in &batch.entries {
            if let Some((page, fetch)) = self.entry(batch, entry)
                && !each(self, page, fetch)?
            {
                return Ok(false);
            }
        }
        let pages = self.names.len() as u64;
        let need = pages * PAGE_BYTES + self.text + 4 * self.links;
        let work = || format!("a crawl in memory of more than {pages} pages");
        let remedy = "ingest it into a store, and use `store`";
        check_room(self.rules.limits.memory, need, work, remedy)?;
        Ok(true)
    }

    fn entry(&mut self, batch: &Batch, entry: &Entry) -> Option<(u32, Fetch)> {
        let page = |ids: &[u32]| ids[entry.source as usize];
        let fetch = match entry.what {
            What::Skipped(_) => {
                self.skipped += 1;
                return None;
            }
            What::Other | What::OutOfScope | What::Unchanged => return None,
            What::Failed => return Some((page(&self.ids), Fetch::Failed)),
            What::Gone => Fetch::Gone,
            What::Visit => Fetch::Read,
        };
        let page = page(&self.ids);
        let targets = batch.targets(entry).iter();
        let targets: Box<[u32]> = targets.map(|&name| self.ids[name as usize]).collect();
        let place = *self.places.entry(page).or_insert(self.rows.len());
        if place == self.rows.len() {
            self.rows.push((page, false, Box::default()));
        }
        let row = &mut self.rows[place];
        self.links = self.links + targets.len() as u64 - row.2.len() as u64;
        *row = (page, fetch == Fetch::Gone, targets);
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

    fn sweep(&self, visit: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        for (page, gone, targets) in &self.rows {
            visit(Row {
                page: *page,
                gone: *gone,
                targets,
                weights: &[],
            })?;
        }
        Ok(())
    }
}
