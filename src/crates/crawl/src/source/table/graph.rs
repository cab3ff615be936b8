//! A folder with a graph: a table of pages, and links between their numbers.
//!
//! | files | graph |
//! |---|---|
//! | `pages.parquet` or `sites.parquet`, and `links.parquet` | two tables, as `export` writes them ([`pair`](super::pair)) |
//! | `*vertices*.txt`, `*edges*.txt`, perhaps `.gz` or `.zst` | Common Crawl's layout: `number TAB name`, and `number TAB number` |
//!
//! Each page becomes a record with its links, in the order of the table. Links must be sorted by source. Pages that
//! were never fetched appear only as targets of links; those without a link to them, which an extra scan of the links
//! finds, come first, as records of status 304 without a time, so that the store knows them.
//!
//! Pages whose names are spellings of one URL become one record at the position of the first, with the links of all,
//! which are then sorted, and the latest fetch: as separate records, the links of the last would replace the others'.
//!
//! Memory: the names of all pages and 8 bytes for each, 16 more if the table has fetches, and one more if any page was
//! not fetched. Links are sorted in bounded memory and temporary files.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::super::decompress::Fault;
use super::super::{Plain, open_plain};
use super::text::{PageWriter, Rows, SNIFF_NAMES, format_of, holds, page_name};
use super::{TableInput, failed, pair};
use crate::decode::lines;
use crate::disk::{Disk, ExternalSorter, RealDisk};
use crate::formats::Format;
use crate::model::{DamageKind, LOOK_EVERY, Limits, check_room};
use crate::{Error, Result};

pub(super) struct GraphPage {
    pub name: Vec<u8>,
    pub fetch: LastFetch,
}

/// Outcome of a page's last fetch, in seconds since 1970. The greatest of a page's spellings counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))] // Only Parquet tables have it.
pub(super) enum LastFetch {
    Never,
    /// The page was found unchanged, with unknown links.
    Unchanged(i64),
    /// The page's links are known, or nothing is known about its fetches.
    Read(Option<i64>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedLink {
    pub source: u64,
    pub target: u64,
    pub weight: u32,
}

pub(super) type Pages = Box<dyn Iterator<Item = Result<GraphPage, Fault>> + Send>;

/// Links that [`link_check`] has checked.
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

const LINKS: &str = "links.parquet";

struct GraphFiles {
    are_tables: bool,
    pages: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

impl GraphFiles {
    /// Finds the files in a folder, and describes how they were recognised; `None` if it has no part of a graph.
    fn find(folder: &Path) -> Result<Option<(GraphFiles, String)>> {
        let names = RealDisk.list(folder).map_err(Error::io(folder, "read"))?;
        let of_lines = |part: &str| -> Vec<PathBuf> {
            let is_part = |name: &&String| {
                let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
                plain.ends_with(".txt") && name.contains(part)
            };
            let found = names.iter().filter(is_part);
            found.map(|name| folder.join(name)).collect()
        };
        let (vertices, edges) = (of_lines("vertices"), of_lines("edges"));
        let is_pages = |name: &&String| ["pages.parquet", "sites.parquet"].contains(&&***name);
        let pages = names.iter().find(is_pages);
        let has_links = names.iter().any(|name| name == LINKS);
        let wrong = |what| Err(Error::Unsupported(format!("has {what}")));
        match (has_links, vertices.is_empty(), pages) {
            (true, false, _) => wrong("links.parquet and files of vertices: leave one graph"),
            (true, true, None) => wrong("links.parquet and no pages.parquet"),
            (true, true, Some(pages)) => {
                let why = format!("it is a folder with {pages} and {LINKS}");
                let files = GraphFiles {
                    are_tables: true,
                    pages: vec![folder.join(pages)],
                    links: vec![folder.join(LINKS)],
                };
                Ok(Some((files, why)))
            }
            (false, true, _) => Ok(None),
            (false, false, _) if edges.is_empty() => wrong("files of vertices and none of edges"),
            (false, false, _) => {
                let files = GraphFiles {
                    are_tables: false,
                    pages: vertices,
                    links: edges,
                };
                let why = "it is a folder with files of vertices and of edges";
                Ok(Some((files, why.to_owned())))
            }
        }
    }

    fn pages(&self, limits: &Limits) -> Result<Pages> {
        if self.are_tables {
            pair::pages(&self.pages[0])
        } else {
            Ok(read_vertices(&self.pages, limits))
        }
    }

    /// Returns the links between this number of pages, and whether they have weights.
    fn links(&self, pages: u64, limits: &Limits) -> Result<(Links, bool)> {
        if self.are_tables {
            pair::links(&self.links[0], pages)
        } else {
            Ok((read_edges(&self.links, limits, pages), false))
        }
    }
}

/// Returns whether the folder holds a graph, or a part of one.
pub fn is_graph(folder: &Path) -> bool {
    matches!(
        GraphFiles::find(folder),
        Ok(Some(_)) | Err(Error::Unsupported(_))
    )
}

/// Opens the graph in a folder; `None` if there is none. Reads the first names.
pub(super) fn open(folder: &Path, limits: &Limits) -> Result<Option<TableInput>> {
    let Some((files, why)) = GraphFiles::find(folder)? else {
        return Ok(None);
    };
    let (_, has_weights) = files.links(0, limits)?;
    let first = files.pages(limits)?.take(SNIFF_NAMES);
    let first: Result<Vec<Vec<u8>>, Fault> = first.map(|page| Ok(page?.name)).collect();
    let first = first.map_err(|fault| failed(folder, fault))?;
    let format = format_of(&first, has_weights);
    let rows = GraphText {
        files,
        format,
        limits: limits.clone(),
        reading: None,
    };
    Ok(Some(TableInput {
        rows: Box::new(rows),
        known: (format, why),
    }))
}

struct GraphText {
    files: GraphFiles,
    format: Format,
    limits: Limits,
    reading: Option<GraphReading>,
}

impl Rows for GraphText {
    fn more(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, Fault> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(GraphReading::begin(&self.files, self.format, &self.limits)?),
        };
        while out.len() < full {
            if !reading.step(out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct GraphReading {
    pages: PageTable,
    firsts: BTreeMap<u64, u64>,
    /// Links by source; those of a later spelling count as links of the first, after its own.
    links: Peekable<Links>,
    /// Pages that come first: they were never fetched and have no links. The last element is the next page.
    isolated: Vec<u64>,
    writer: PageWriter,
    open: Option<u64>,
    /// Number of the next page in the table's order.
    next: u64,
}

impl GraphReading {
    fn begin(files: &GraphFiles, format: Format, limits: &Limits) -> Result<GraphReading, Fault> {
        let mut pages = PageTable::read(files.pages(limits)?, format, limits.memory)?;
        let firsts = pages.spellings(format, limits.url_bytes as usize)?;
        for (&later, &first) in &firsts {
            pages.join_fetches(first, later);
        }
        let open_links = || files.links(pages.len(), limits).map(|(links, _)| links);
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
            links = by_first(links, &firsts, sorter)?;
        }
        Ok(GraphReading {
            links: links.peekable(),
            isolated,
            writer: PageWriter::new(format),
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
            if !self.firsts.contains_key(&page) {
                self.begin_page(page, out);
            }
        } else {
            // A link is left only if there are no pages.
            self.links.next().transpose()?;
            return Ok(false);
        }
        Ok(true)
    }

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

/// Returns whether a link is of this page; an error counts as of any page.
fn is_of(link: &Result<NumberedLink, Fault>, page: u64) -> bool {
    link.as_ref().map_or(true, |link| link.source == page)
}

/// Sorts links by source; those of later spellings of a page become links of the first.
fn by_first(
    links: Links,
    firsts: &BTreeMap<u64, u64>,
    mut sorter: ExternalSorter,
) -> Result<Links, Fault> {
    for link in links {
        let link = link?;
        let source = firsts.get(&link.source).unwrap_or(&link.source);
        let value = [link.target, link.weight.into()].map(u64::to_be_bytes);
        sorter.push(&source.to_be_bytes(), value.as_flattened())?;
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

struct PageTable {
    text: Vec<u8>,
    ends: Vec<u64>,
    /// Fetches of the first pages. Nothing is known about those of the others, in most graphs about those of all.
    fetches: Vec<LastFetch>,
}

impl PageTable {
    fn read(pages: Pages, format: Format, memory: Option<u64>) -> Result<PageTable, Fault> {
        let mut table = PageTable {
            text: Vec::new(),
            ends: Vec::new(),
            fetches: Vec::new(),
        };
        for page in pages {
            let page = page?;
            if !holds(format, &page.name) {
                let what = format!("page {} has a name that is empty or no text", table.len());
                return Err(Fault::Damage(DamageKind::InvalidData, what));
            }
            if page.fetch != LastFetch::Read(None) {
                let fetches = &mut table.fetches;
                fetches.resize(table.ends.len(), LastFetch::Read(None));
                fetches.push(page.fetch);
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

    /// Maps each page that is not the first with its URL to the first; two pages of one name are an error. The hashes
    /// reuse the memory freed since growing.
    fn spellings(&self, format: Format, longest: usize) -> Result<BTreeMap<u64, u64>, Fault> {
        let mut scratch = Vec::new();
        let mut hash = |page| xxh3_64(page_name(format, self.name(page), longest, &mut scratch));
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
                let url = page_name(format, name, longest, &mut scratch).to_vec();
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

    /// Fails if the table exceeds the memory. A growing vector takes up to three times its length: old and new.
    fn check(&self, memory: Option<u64>) -> Result<()> {
        let pages = self.len();
        let fetches = (size_of::<LastFetch>() * self.fetches.len()) as u64;
        let need = 3 * (self.text.len() as u64 + 8 * pages + fetches) + pages;
        let work = || format!("a graph of more than {pages} pages, with their names,");
        let instead = "join links and names outside, and read a table of names";
        check_room(memory, need, work, instead)
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

/// Reads Common Crawl's files of vertices, in the order of their names.
fn read_vertices(files: &[PathBuf], limits: &Limits) -> Pages {
    let mut expected = 0;
    parse_lines(files, limits, move |line| {
        let mut fields = line.split(|&byte| byte == b'\t');
        let (Some(number), Some(name)) = (fields.next().and_then(number), fields.next()) else {
            return Err("a number, a tab and a name are expected".into());
        };
        if number != expected {
            return Err(format!(
                "vertex {number} where {expected} is expected: vertices must be numbered from 0 on, in order"
            ));
        }
        expected += 1;
        Ok(GraphPage {
            name: name.to_vec(),
            fetch: LastFetch::Read(None),
        })
    })
}

/// Reads Common Crawl's files of edges between `pages` pages, in the order of their names.
fn read_edges(files: &[PathBuf], limits: &Limits, pages: u64) -> Links {
    let mut check = link_check(pages);
    parse_lines(files, limits, move |line| {
        let mut fields = line.split(|&byte| byte == b'\t');
        let [Some(from), Some(to), None] = [fields.next(), fields.next(), fields.next()] else {
            return Err("two numbers with a tab between them are expected".into());
        };
        let [Some(source), Some(target)] = [number(from), number(to)] else {
            return Err("two numbers are expected".into());
        };
        check(NumberedLink {
            source,
            target,
            weight: 1,
        })
    })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the lines of several files, chunk by chunk, except blank lines and comments. Ends a chunk at its first error.
fn parse_lines<T: Send + 'static>(
    files: &[PathBuf],
    limits: &Limits,
    mut parse: impl FnMut(&[u8]) -> Result<T, String> + Send + 'static,
) -> Box<dyn Iterator<Item = Result<T, Fault>> + Send> {
    let (mut files, limits) = (files.to_vec(), limits.clone());
    files.reverse();
    let mut open: Option<(Plain, String)> = None;
    let mut number = 0u64;
    let mut next = move || -> Result<Option<Vec<Result<T, Fault>>>, Fault> {
        loop {
            let Some((reader, file)) = &mut open else {
                let Some(path) = files.pop() else {
                    return Ok(None);
                };
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                open = Some((open_plain(&path, &limits)?, name.into_owned()));
                number = 0;
                continue;
            };
            let Some(chunk) = reader.next_lines()? else {
                open = None;
                continue;
            };
            let mut parsed = Vec::new();
            for line in lines::lines(chunk) {
                number += 1;
                if line.text.trim_ascii().is_empty() || line.text[0] == b'#' {
                    continue;
                }
                let row = parse(line.text).map_err(|what| {
                    let what = format!("{file}: line {number}: {what}");
                    Fault::Damage(DamageKind::InvalidData, what)
                });
                let is_bad = row.is_err();
                parsed.push(row);
                if is_bad {
                    break;
                }
            }
            return Ok(Some(parsed));
        }
    };
    let chunks = std::iter::from_fn(move || next().transpose());
    Box::new(chunks.flat_map(|parsed| parsed.unwrap_or_else(|fault| vec![Err(fault)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_a_bad_one_are_not_parsed() {
        let home = cashrank_base::folder::in_memory();
        let file = home.path().join("edges.txt");
        std::fs::write(&file, "0\t1\nbad\n".repeat(100)).unwrap();
        let mut is_over = false;
        let rows = parse_lines(&[file], &Limits::default(), move |line| {
            assert!(!is_over);
            is_over = line == b"bad";
            if is_over { Err("bad".into()) } else { Ok(()) }
        });
        let good: Vec<bool> = rows.map(|row| row.is_ok()).collect();
        assert_eq!(good, [true, false]);
    }

    /// The links of a page with two spellings are those of both, in their order, behind each other.
    #[test]
    fn links_of_later_spellings_follow_those_of_the_first() {
        const LINKS: u64 = 1000;
        let (twice, later) = (3, 7);
        let sources = || (0..10).flat_map(|source| [source; LINKS as usize / 10]);
        let all = || sources().zip(0..LINKS);
        let links: Links = Box::new(all().map(|(source, target)| {
            Ok(NumberedLink {
                source,
                target,
                weight: 1,
            })
        }));
        let firsts = BTreeMap::from([(later, twice)]);
        let sorter = ExternalSorter::new(1 << 10, &std::env::temp_dir());
        let found = by_first(links, &firsts, sorter).unwrap();
        let found: Vec<(u64, u64)> = found
            .map(|link| link.map(|link| (link.source, link.target)))
            .collect::<Result<_, Fault>>()
            .unwrap();
        let mut expected: Vec<(u64, u64)> = all()
            .map(|(source, target)| (if source == later { twice } else { source }, target))
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
