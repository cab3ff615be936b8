//! A folder with a graph: a table of pages, and links between their numbers.
//!
//! Each page becomes a record with its links, in the order of the table. Links must be sorted by source. Pages that
//! were never fetched appear only as targets of links; those without a link to them come first, as records of status
//! 304 without a time, so that the store knows them. They are found by reading the links an extra time, if any page was
//! not fetched.
//!
//! Pages whose names are spellings of one URL become one record at the position of the first, with the links of all and
//! the latest fetch: as separate records, the links of the last one would replace the others'. The links of later
//! spellings are found by reading the links an extra time.
//!
//! Memory: the names of all pages, 8 bytes for each, 16 more if the table tells of fetches, and one if any page was not
//! fetched. Links of later spellings are sorted in bounded memory and temporary files.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::super::decompress::Fault;
use super::failed;
use super::text::{PageWriter, Rows, SNIFF_NAMES, TextLayout};
use crate::disk::ExternalSorter;
use crate::model::{DamageKind, LOOK_EVERY, Limits, check_room};
use crate::{Error, Result};

/// Row of the table of pages.
pub(super) struct GraphPage {
    pub name: Vec<u8>,
    pub fetch: LastFetch,
}

/// Outcome of a page's last fetch; of those of two spellings of a page, the greater counts. Times are in seconds since
/// 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))] // Only Parquet tables have it.
pub(super) enum LastFetch {
    Never,
    /// Page that was found unchanged, with unknown links.
    Unchanged(i64),
    /// Page whose links are known, or about whose fetches nothing is known.
    Read(Option<i64>),
}

/// Link between pages, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedLink {
    pub source: u64,
    pub target: u64,
    pub weight: u32,
}

/// Pages in order, from number 0 on.
pub(super) type Pages = Box<dyn Iterator<Item = Result<GraphPage, Fault>> + Send>;

/// Links, which [`link_check`] has checked.
pub(super) type Links = Box<dyn Iterator<Item = Result<NumberedLink, Fault>> + Send>;

/// Returns a check that links are between the first `pages` pages, and sorted by source.
pub(super) fn link_check(pages: u64) -> impl FnMut(NumberedLink) -> Result<NumberedLink, String> {
    let mut last = 0;
    move |link| {
        let source = link.source;
        let number = source.max(link.target);
        if number >= pages {
            return Err(format!(
                "a link of page {number}, and there are {pages} pages, counted from 0"
            ));
        }
        if source < last {
            return Err(format!(
                "a link of page {source} after those of page {last}: sort links by source"
            ));
        }
        last = source;
        Ok(link)
    }
}

/// Files of a graph. Both functions open them at their start.
pub(super) struct GraphFiles {
    pub pages: Box<dyn Fn() -> Result<Pages> + Send>,
    /// Returns the links between this number of pages, and whether they have weights.
    pub links: Box<dyn Fn(u64) -> Result<(Links, bool)> + Send>,
}

/// Reader of a graph.
pub(super) struct GraphText {
    files: GraphFiles,
    layout: TextLayout,
    limits: Limits,
    /// State of reading; `None` before it begins.
    reading: Option<GraphReading>,
}

impl GraphText {
    /// Returns a reader of the files in a folder; reads the first names.
    pub fn open(folder: &Path, files: GraphFiles, limits: &Limits) -> Result<GraphText> {
        let (pages, (_, has_weights)) = ((files.pages)()?, (files.links)(0)?);
        let first = pages.take(SNIFF_NAMES).map(|page| Ok(page?.name));
        let first: Vec<Vec<u8>> = first
            .collect::<Result<_, Fault>>()
            .map_err(|fault| failed(folder, fault))?;
        Ok(GraphText {
            layout: TextLayout::of(&first, has_weights),
            files,
            limits: limits.clone(),
            reading: None,
        })
    }

    /// Returns the layout of the text.
    pub fn layout(&self) -> TextLayout {
        self.layout
    }
}

impl Rows for GraphText {
    fn more(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, Fault> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(GraphReading::begin(&self.files, self.layout, &self.limits)?),
        };
        while out.len() < full {
            if !reading.step(out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// State of reading a graph.
struct GraphReading {
    pages: PageTable,
    /// Maps every later spelling of a page to its first.
    firsts: BTreeMap<u64, u64>,
    /// Links by source; those of later spellings also as links of the first, behind its own.
    links: Peekable<Links>,
    /// Pages that come first, which were never fetched and have no links; the last of them is the next.
    isolated: Vec<u64>,
    writer: PageWriter,
    /// Page whose links are being written.
    open: Option<u64>,
    /// Next page in the table's order.
    next: u64,
}

impl GraphReading {
    fn begin(
        files: &GraphFiles,
        layout: TextLayout,
        limits: &Limits,
    ) -> Result<GraphReading, Fault> {
        let mut pages = PageTable::read((files.pages)()?, layout, limits.memory)?;
        let firsts = pages.spellings(layout, limits.url_bytes as usize)?;
        for (&later, &first) in &firsts {
            pages.join_fetches(first, later);
        }
        let open_links = || (files.links)(pages.len()).map(|(links, _)| links);
        let is_never = |page: &u64| pages.fetch(*page) == LastFetch::Never;
        let mut isolated: Vec<u64> = (0..pages.len()).rev().filter(is_never).collect();
        if !isolated.is_empty() {
            let mut is_linked = vec![false; pages.len() as usize];
            for link in open_links()? {
                let link = link?;
                for page in [link.source, link.target] {
                    is_linked[*firsts.get(&page).unwrap_or(&page) as usize] = true;
                }
            }
            isolated.retain(|page| !firsts.contains_key(page) && !is_linked[*page as usize]);
        }
        let mut links = open_links()?;
        if !firsts.is_empty() {
            let memory = usize::try_from(limits.held_bytes).unwrap_or(usize::MAX);
            let sorter = ExternalSorter::new(memory, &std::env::temp_dir());
            links = merged(links, by_first(open_links()?, &firsts, sorter)?);
        }
        Ok(GraphReading {
            links: links.peekable(),
            isolated,
            writer: PageWriter::new(layout),
            open: None,
            next: 0,
            firsts,
            pages,
        })
    }

    /// Writes the next link, or the beginning or end of a page; returns `false` after the last page.
    fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if let Some(page) = self.isolated.pop() {
            self.writer.known(self.pages.name(page), None, out);
        } else if let Some(page) = self.open {
            match self.links.next_if(|link| is_of(link, page)).transpose()? {
                Some(link) => {
                    let target = self.pages.name(link.target);
                    self.writer.link(target, link.weight, out);
                }
                None => {
                    self.writer.end(out);
                    self.open = None;
                }
            }
        } else if self.next < self.pages.len() {
            let page = self.next;
            self.next += 1;
            if self.firsts.contains_key(&page) {
                let links = &mut self.links;
                while links
                    .next_if(|link| is_of(link, page))
                    .transpose()?
                    .is_some()
                {}
            } else {
                self.begin_page(page, out);
            }
        } else {
            // A link is left only if there are no pages.
            self.links.next().transpose()?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Begins a page, if it was fetched.
    fn begin_page(&mut self, page: u64, out: &mut Vec<u8>) {
        let has_links = self.links.peek().is_some_and(|link| is_of(link, page));
        let time = match self.pages.fetch(page) {
            LastFetch::Unchanged(at) if !has_links => {
                return self.writer.known(self.pages.name(page), Some(at), out);
            }
            LastFetch::Never if !has_links => return,
            LastFetch::Never => None,
            LastFetch::Unchanged(at) => Some(at),
            LastFetch::Read(at) => at,
        };
        self.writer.begin(self.pages.name(page), time, out);
        self.open = Some(page);
    }
}

/// Returns whether a link is of this page; an error is of any.
fn is_of(link: &Result<NumberedLink, Fault>, page: u64) -> bool {
    link.as_ref().map_or(true, |link| link.source == page)
}

/// Returns the links of later spellings of a page as links of the first, sorted by source.
fn by_first(
    links: Links,
    firsts: &BTreeMap<u64, u64>,
    mut sorter: ExternalSorter,
) -> Result<Links, Fault> {
    for link in links {
        let link = link?;
        if let Some(first) = firsts.get(&link.source) {
            let value = [link.target, link.weight.into()].map(u64::to_be_bytes);
            sorter.push(&first.to_be_bytes(), value.as_flattened())?;
        }
    }
    Ok(Box::new(sorter.sorted()?.map(|link| {
        let (source, value) = link?;
        let numbers = [source, value].concat();
        let [source, target, weight] = numbers.as_chunks().0 else {
            return Err(Error::internal("a sorted link of a graph is not what it was").into());
        };
        Ok(NumberedLink {
            source: u64::from_be_bytes(*source),
            target: u64::from_be_bytes(*target),
            weight: u64::from_be_bytes(*weight) as u32,
        })
    })))
}

/// Merges links that are sorted by source; of one source, `own` come first.
fn merged(own: Links, later: Links) -> Links {
    let [mut own, mut later] = [own, later].map(|links| links.fuse().peekable());
    Box::new(std::iter::from_fn(move || {
        let is_later = match (own.peek(), later.peek()) {
            (Some(Ok(own)), Some(Ok(later))) => later.source < own.source,
            (own, later) => own.is_none() || matches!(later, Some(Err(_))),
        };
        if is_later { later.next() } else { own.next() }
    }))
}

/// Names and fetches of all pages, in memory.
struct PageTable {
    text: Vec<u8>,
    ends: Vec<u64>,
    /// Fetches of the first pages; of the others, as of all in most graphs, nothing is known.
    fetches: Vec<LastFetch>,
}

impl PageTable {
    fn read(pages: Pages, layout: TextLayout, memory: Option<u64>) -> Result<PageTable, Fault> {
        let mut table = PageTable {
            text: Vec::new(),
            ends: Vec::new(),
            fetches: Vec::new(),
        };
        for page in pages {
            let page = page?;
            if !layout.holds(&page.name) {
                let what = format!("page {} has a name that is empty or no text", table.len());
                return Err(Fault::Damage(DamageKind::InvalidData, what));
            }
            if page.fetch != LastFetch::Read(None) {
                table
                    .fetches
                    .resize(table.ends.len(), LastFetch::Read(None));
                table.fetches.push(page.fetch);
            }
            table.text.extend_from_slice(&page.name);
            table.ends.push(table.text.len() as u64);
            if table.len().is_multiple_of(LOOK_EVERY) {
                table.check(memory)?;
            }
        }
        table.check(memory)?;
        table.text.shrink_to_fit();
        table.ends.shrink_to_fit();
        Ok(table)
    }

    /// Maps each page to the first of the pages that share its URL, unless it is that itself; two of the same name are
    /// an error. The hashes reuse the memory freed since growing.
    fn spellings(&self, layout: TextLayout, longest: usize) -> Result<BTreeMap<u64, u64>, Fault> {
        let mut scratch = Vec::new();
        let mut hash = |page| xxh3_64(layout.page_name(self.name(page), longest, &mut scratch));
        let mut hashes: Vec<(u64, u64)> = (0..self.len()).map(|page| (hash(page), page)).collect();
        hashes.sort_unstable();
        let mut firsts = BTreeMap::new();
        for same in hashes
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|same| same.len() > 1)
        {
            let (mut urls, mut names) = (BTreeMap::new(), BTreeMap::new());
            for &(_, page) in same {
                let name = self.name(page);
                if let Some(other) = names.insert(name, page) {
                    let name = String::from_utf8_lossy(name);
                    let what = format!(
                        "pages {other} and {page} are both `{name}`: a page has one number"
                    );
                    return Err(Fault::Damage(DamageKind::InvalidData, what));
                }
                let url = layout.page_name(name, longest, &mut scratch).to_vec();
                let first = *urls.entry(url).or_insert(page);
                if first != page {
                    firsts.insert(page, first);
                }
            }
        }
        Ok(firsts)
    }

    fn fetch(&self, page: u64) -> LastFetch {
        let fetch = self.fetches.get(page as usize);
        fetch.copied().unwrap_or(LastFetch::Read(None))
    }

    fn join_fetches(&mut self, first: u64, later: u64) {
        let joint = self.fetch(first).max(self.fetch(later));
        if let Some(fetch) = self.fetches.get_mut(first as usize) {
            *fetch = joint;
        }
    }

    /// Fails if the table exceeds the memory. A vector that grows by doubling may have twice the capacity, with the old
    /// one still allocated.
    fn check(&self, memory: Option<u64>) -> Result<()> {
        let fetches = (size_of::<LastFetch>() * self.fetches.len()) as u64;
        let need = 3 * (self.text.len() as u64 + 8 * self.len() + fetches) + self.len();
        let work = || {
            format!(
                "a graph of more than {} pages, with their names,",
                self.len()
            )
        };
        check_room(
            memory,
            need,
            work,
            "join links and names outside, and read a table of names",
        )
    }

    fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    fn name(&self, page: u64) -> &[u8] {
        let at = page as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of a page with two spellings are those of both, in order, and only those of the second are sorted: the
    /// others would not fit, and there is no folder for temporary files.
    #[test]
    fn only_links_of_later_spellings_are_sorted() {
        const LINKS: u64 = 1000;
        let (twice, later) = (3, 7);
        let sources = || (0..10).flat_map(|source| [source; LINKS as usize / 10]);
        let links = || -> Links {
            let all = sources().zip(0..LINKS).map(move |(source, target)| {
                let link = NumberedLink {
                    source,
                    target,
                    weight: 1,
                };
                // Few links are of the later spelling.
                (source != later || target.is_multiple_of(10)).then_some(Ok(link))
            });
            Box::new(all.flatten())
        };
        let firsts = BTreeMap::from([(later, twice)]);
        let sorter = ExternalSorter::new(1 << 10, Path::new("no/such/folder"));
        let found = merged(links(), by_first(links(), &firsts, sorter).unwrap());
        let pairs = |links: Links| -> Vec<(u64, u64)> {
            let pairs = links.map(|link| link.map(|link| (link.source, link.target)));
            pairs.collect::<Result<_, Fault>>().unwrap()
        };
        let mut expected = pairs(links());
        let of_later: Vec<_> = expected
            .iter()
            .filter(|link| link.0 == later)
            .copied()
            .collect();
        expected.extend(of_later.iter().map(|&(_, target)| (twice, target)));
        expected.sort_unstable();
        assert_eq!(of_later.len() as u64, LINKS / 100);
        assert_eq!(pairs(found), expected);
    }
}
