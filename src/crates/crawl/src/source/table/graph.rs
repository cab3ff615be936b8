//! A folder with a graph: a table of pages, and links between their numbers.
//!
//! Each page becomes a record with its links, in the order of the table. Links must be sorted by source. Pages that
//! were never fetched appear only as targets of links; those without a link to them come first, as records of status
//! 304 without a time, so that the store knows them. They are found by reading the links an extra time, if any page was
//! not fetched.
//!
//! Memory: the names of all pages, and 8 bytes and a bit for each.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::super::decompress::Fault;
use super::text::{PIECE, Rows, TELLING, TextLayout};
use super::twins::Twins;
use crate::Result;
use crate::model::{DamageKind, Limits};
use crate::model::{LOOK_EVERY, check_room};

/// Row of the table of pages.
pub(super) struct GraphPage {
    pub name: Vec<u8>,
    pub fetch: LastFetch,
}

/// Outcome of a page's last fetch. Times are in seconds since 1970.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))] // Only Parquet tables have it.
pub(super) enum LastFetch {
    /// Page whose links are known, or about whose fetches nothing is known.
    Read(Option<i64>),
    /// Page that was found unchanged, with unknown links.
    Unchanged(i64),
    Never,
}

impl LastFetch {
    /// Combines the fetches of two twins.
    pub fn or(self, other: LastFetch) -> LastFetch {
        match (self, other) {
            (LastFetch::Read(one), LastFetch::Read(other)) => LastFetch::Read(one.max(other)),
            (LastFetch::Unchanged(one), LastFetch::Unchanged(other)) => {
                LastFetch::Unchanged(one.max(other))
            }
            (read @ LastFetch::Read(_), _) | (_, read @ LastFetch::Read(_)) => read,
            (LastFetch::Never, other) | (other, LastFetch::Never) => other,
        }
    }

    fn time(self) -> Option<i64> {
        match self {
            LastFetch::Read(at) => at,
            LastFetch::Unchanged(at) => Some(at),
            LastFetch::Never => None,
        }
    }
}

/// Pages in order, from number 0 on.
pub(super) trait GraphPages: Send {
    fn next(&mut self) -> Result<Option<GraphPage>, Fault>;
}

/// Link between pages, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedLink {
    pub source: u64,
    pub target: u64,
    pub weight: u32,
}

/// Links in the order of their sources.
pub(super) trait Links: Send {
    fn next(&mut self) -> Result<Option<NumberedLink>, Fault>;

    /// Returns the position of the last link, for messages.
    fn place(&self) -> String;
}

/// Files of a graph.
pub(super) trait Files: Send {
    /// Opens the table of pages at its start.
    fn pages(&self) -> Result<Box<dyn GraphPages>, Fault>;

    /// Opens the links at their start.
    fn links(&self) -> Result<Box<dyn Links>, Fault>;

    /// Returns whether links have weights.
    fn has_weights(&self) -> bool;
}

/// Reader of a graph.
pub(super) struct Graph {
    files: Box<dyn Files>,
    layout: TextLayout,
    memory: Option<u64>,
    /// Maximum length of a name, in bytes.
    longest: usize,
    /// State of reading; `None` before it begins.
    reading: Option<GraphReading>,
}

impl Graph {
    /// Returns a reader of these files; reads the first names.
    pub fn of(files: impl Files + 'static, limits: &Limits) -> Result<Graph, Fault> {
        let mut names = Vec::new();
        let mut pages = files.pages()?;
        while let Some(page) = pages.next()?
            && names.len() < TELLING
        {
            names.push(page.name);
        }
        Ok(Graph {
            layout: TextLayout::of(&names, files.has_weights()),
            files: Box::new(files),
            memory: limits.memory,
            longest: limits.url_bytes as usize,
            reading: None,
        })
    }

    /// Returns the layout of the text.
    pub fn layout(&self) -> TextLayout {
        self.layout
    }
}

impl Rows for Graph {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => {
                let names = GraphNames::read(&mut *self.files.pages()?, self.layout, self.memory)?;
                let mut twins = names.twins(self.layout, self.longest)?;
                twins.read(&*self.files, names.len(), self.memory)?;
                none.insert(GraphReading::begin(names, twins, &*self.files)?)
            }
        };
        reading.more(self.layout, out)
    }
}

/// State of reading a graph.
struct GraphReading {
    names: GraphNames,
    twins: Twins,
    pages: Box<dyn GraphPages>,
    links: PeekedLinks,
    /// Page whose links are being written.
    open: Option<u64>,
    has_links: bool,
    /// Next page, in the table's order and among the isolated pages that come first.
    page: u64,
    alone: u64,
}

impl GraphReading {
    fn begin(
        mut names: GraphNames,
        twins: Twins,
        files: &dyn Files,
    ) -> Result<GraphReading, Fault> {
        if names.has_alone {
            let mut links = PeekedLinks::of(files.links()?, names.len())?;
            while let Some(link) = links.next {
                names.not_alone(link.source);
                names.not_alone(link.target);
                links.advance()?;
            }
        }
        Ok(GraphReading {
            pages: files.pages()?,
            links: PeekedLinks::of(files.links()?, names.len())?,
            open: None,
            has_links: false,
            page: 0,
            alone: 0,
            names,
            twins,
        })
    }

    fn more(&mut self, layout: TextLayout, out: &mut Vec<u8>) -> Result<bool, Fault> {
        while out.len() < PIECE {
            if self.names.has_alone && self.alone < self.names.len() {
                if self.names.is_alone(self.alone) {
                    layout.known(self.names.get(self.alone), None, out);
                }
                self.alone += 1;
                continue;
            }
            match (self.open, self.links.next) {
                (Some(page), Some(link)) if link.source == page => {
                    self.write(layout, page, link, out);
                    self.links.advance()?;
                }
                (Some(page), _) => {
                    for link in self.twins.take_links(page) {
                        self.write(layout, page, link, out);
                    }
                    layout.end(self.names.get(page), self.has_links, out);
                    self.open = None;
                }
                (None, _) if self.page == self.names.len() => return Ok(false),
                (None, _) => self.next_page(layout, out)?,
            }
        }
        Ok(true)
    }

    fn write(&mut self, layout: TextLayout, page: u64, link: NumberedLink, out: &mut Vec<u8>) {
        let (from, to) = (self.names.get(page), self.names.get(link.target));
        layout.link(from, to, link.weight, !self.has_links, out);
        self.has_links = true;
    }

    /// Writes the next page, without its links, if it was fetched.
    fn next_page(&mut self, layout: TextLayout, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(row) = self.pages.next()? else {
            let what = "the table of pages was changed while it was read";
            return Err(Fault::Damage(DamageKind::InvalidData, what.into()));
        };
        let page = self.page;
        self.page += 1;
        let is_own = |link: Option<NumberedLink>| link.is_some_and(|link| link.source == page);
        if self.twins.is_later(page) {
            while is_own(self.links.next) {
                self.links.advance()?;
            }
            return Ok(());
        }
        let has_links = is_own(self.links.next) || !self.twins.links(page).is_empty();
        let name = self.names.get(page);
        match self.twins.fetch(page, row.fetch) {
            LastFetch::Unchanged(at) if !has_links => layout.known(name, Some(at), out),
            LastFetch::Never if !has_links => {}
            fetch => {
                layout.begin(name, fetch.time(), out);
                (self.open, self.has_links) = (Some(page), false);
            }
        }
        Ok(())
    }
}

/// Links with a look-ahead of one.
pub(super) struct PeekedLinks {
    links: Box<dyn Links>,
    pub next: Option<NumberedLink>,
    pages: u64,
}

impl PeekedLinks {
    pub fn of(links: Box<dyn Links>, pages: u64) -> Result<PeekedLinks, Fault> {
        let mut links = PeekedLinks {
            links,
            next: None,
            pages,
        };
        links.advance()?;
        Ok(links)
    }

    /// Moves to the next link, whose source must not be smaller than the last one's.
    pub fn advance(&mut self) -> Result<(), Fault> {
        let last = self.next.map_or(0, |link| link.source);
        self.next = self.links.next()?;
        let Some(NumberedLink { source, target, .. }) = self.next else {
            return Ok(());
        };
        let (number, pages) = (source.max(target), self.pages);
        let wrong = if number >= pages {
            format!("a link of page {number}, and there are {pages} pages, counted from 0")
        } else if source < last {
            format!("a link of page {source} after those of page {last}: sort links by source")
        } else {
            return Ok(());
        };
        let what = format!("{}: {wrong}", self.links.place());
        Err(Fault::Damage(DamageKind::InvalidData, what))
    }
}

/// Names of all pages, in memory.
struct GraphNames {
    text: Vec<u8>,
    ends: Vec<u64>,
    /// Bitmap of the isolated pages: never fetched, and without a link seen so far.
    alone: Vec<u64>,
    has_alone: bool,
}

impl GraphNames {
    fn read(
        pages: &mut dyn GraphPages,
        layout: TextLayout,
        memory: Option<u64>,
    ) -> Result<GraphNames, Fault> {
        let mut names = GraphNames {
            text: Vec::new(),
            ends: Vec::new(),
            alone: Vec::new(),
            has_alone: false,
        };
        while let Some(page) = pages.next()? {
            if !layout.holds(&page.name) {
                let what = format!("page {} has a name that is empty or no text", names.len());
                return Err(Fault::Damage(DamageKind::InvalidData, what));
            }
            let number = names.len();
            if number.is_multiple_of(64) {
                names.alone.push(0);
            }
            if matches!(page.fetch, LastFetch::Never) {
                names.alone[(number / 64) as usize] |= 1 << (number % 64);
                names.has_alone = true;
            }
            names.text.extend_from_slice(&page.name);
            names.ends.push(names.text.len() as u64);
            if names.len().is_multiple_of(LOOK_EVERY) {
                names.check(memory)?;
            }
        }
        names.check(memory)?;
        names.text.shrink_to_fit();
        names.ends.shrink_to_fit();
        Ok(names)
    }

    /// Finds the pages that share one URL; two of the same name are an error. The hashes reuse the memory freed since
    /// growing.
    fn twins(&self, layout: TextLayout, longest: usize) -> Result<Twins, Fault> {
        let mut scratch = Vec::new();
        let mut hash = |page| xxh3_64(layout.page_name(self.get(page), longest, &mut scratch));
        let mut hashes: Vec<(u64, u64)> = (0..self.len()).map(|page| (hash(page), page)).collect();
        hashes.sort_unstable();
        let mut twins = Twins::default();
        for same in hashes
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|same| same.len() > 1)
        {
            let mut named: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for &(_, page) in same {
                let name = layout.page_name(self.get(page), longest, &mut scratch);
                named.entry(name.to_vec()).or_default().push(page);
            }
            for pages in named.values() {
                self.must_differ(pages)?;
                let (first, later) = (pages[0], &pages[1..]);
                later.iter().for_each(|&later| twins.add(first, later));
            }
        }
        Ok(twins)
    }

    /// Fails if two of these pages have the same name.
    fn must_differ(&self, pages: &[u64]) -> Result<(), Fault> {
        let mut named: Vec<_> = pages.iter().map(|&page| (self.get(page), page)).collect();
        named.sort_unstable();
        let Some(twice) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) else {
            return Ok(());
        };
        let (name, one, other) = (twice[0].0, twice[0].1, twice[1].1);
        let name = String::from_utf8_lossy(name);
        let what = format!("pages {one} and {other} are both `{name}`: a page has one number");
        Err(Fault::Damage(DamageKind::InvalidData, what))
    }

    /// Fails if the names exceed the memory. A vector that grows by doubling may have twice the capacity, with the old
    /// one still allocated.
    fn check(&self, memory: Option<u64>) -> Result<(), Fault> {
        let need = 3 * (self.text.len() as u64 + 8 * self.len()) + self.len() / 8;
        let work = || {
            format!(
                "a graph of more than {} pages, with their names,",
                self.len()
            )
        };
        let instead = "join links and names outside, and read a table of names";
        Ok(check_room(memory, need, work, instead)?)
    }

    fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    fn is_alone(&self, page: u64) -> bool {
        self.alone[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    fn not_alone(&mut self, page: u64) {
        self.alone[(page / 64) as usize] &= !(1 << (page % 64));
    }

    fn get(&self, page: u64) -> &[u8] {
        let at = page as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }
}
