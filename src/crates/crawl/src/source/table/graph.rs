//! A folder with a graph: a table of pages, and links between their numbers.
//!
//! | files | graph |
//! |---|---|
//! | `pages.parquet` or `sites.parquet`, and `links.parquet` | two tables, as `export` writes them ([`edges`](super::edges)) |
//! | `*vertices*.txt`, `*edges*.txt`, perhaps `.gz` or `.zst` | Common Crawl's layout: `number TAB name`, and `number TAB number` |
//!
//! Each page becomes a record with its links, in the order of the table. Pages whose names are spellings of one URL
//! become one record at the position of the first, with the links of all, which are then sorted, and the latest fetch:
//! as separate records, the links of the last would replace the others'.
//!
//! Memory: the names of all pages and 8 bytes for each, 16 more if the table has fetches.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::super::decompress::Fault;
use super::super::{Plain, open_plain};
#[cfg(feature = "parquet")]
use super::edges;
use super::text::{GraphRows, LastFetch, NO_TIME, PageWriter, SNIFF_NAMES};
use super::text::{format_of, page_name, sorted};
use super::{TableInput, failed};
use crate::disk::{Disk, RealDisk};
use crate::formats::Format;
use crate::model::{DamageKind, LOOK_EVERY, Limits, check_room};
use crate::{Error, Result};

/// Name of a page, and its last fetch.
pub(super) type GraphPage = (Vec<u8>, LastFetch);

/// Numbers of the source and the target, and the weight.
pub(super) type NumberedLink = [u64; 3];

const READ: LastFetch = (true, NO_TIME);

const LINKS: &str = "links.parquet";

/// Files of pages and of links.
struct GraphFiles {
    pages: Vec<PathBuf>,
    links: Vec<PathBuf>,
    are_tables: bool,
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
        let has = |known: &&str| names.iter().any(|name| name == known);
        let table = ["pages.parquet", "sites.parquet"].into_iter().find(has);
        let wrong = match (has(&LINKS), vertices.is_empty(), table) {
            (true, false, _) => "links.parquet and files of vertices: leave one graph",
            (true, true, None) => "links.parquet and no pages.parquet",
            (true, true, Some(pages)) => {
                let files = GraphFiles {
                    pages: vec![folder.join(pages)],
                    links: vec![folder.join(LINKS)],
                    are_tables: true,
                };
                let why = format!("it is a folder with {pages} and {LINKS}");
                return Ok(Some((files, why)));
            }
            (false, true, _) => return Ok(None),
            (false, false, _) if edges.is_empty() => "files of vertices and none of edges",
            (false, false, _) => {
                let files = GraphFiles {
                    pages: vertices,
                    links: edges,
                    are_tables: false,
                };
                let why = "it is a folder with files of vertices and of edges";
                return Ok(Some((files, why.into())));
            }
        };
        Err(Error::Unsupported(format!("has {wrong}")))
    }

    fn pages(&self, limits: &Limits) -> Result<GraphRows<GraphPage>> {
        #[cfg(feature = "parquet")]
        if self.are_tables {
            return edges::pages(&self.pages[0]);
        }
        Ok(read_vertices(&self.pages, limits))
    }

    /// Returns the links between this number of pages.
    fn links(&self, pages: u64, limits: &Limits) -> Result<GraphRows<NumberedLink>> {
        #[cfg(feature = "parquet")]
        if self.are_tables {
            return edges::links(&self.links[0], pages);
        }
        Ok(read_edges(&self.links, limits, pages))
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
    if files.are_tables && cfg!(not(feature = "parquet")) {
        return Err(super::without_parquet());
    }
    // Checks the columns of links.
    drop(files.links(0, limits)?);
    let first = files.pages(limits)?.take(SNIFF_NAMES);
    let first: Result<Vec<Vec<u8>>, Fault> = first.map(|page| Ok(page?.0)).collect();
    let format = format_of(&first.map_err(|fault| failed(folder, fault))?);
    let (limits, mut graph) = (limits.clone(), None);
    let rows = move |out: &mut Vec<u8>| {
        let graph = match &mut graph {
            Some(graph) => graph,
            none => none.insert(GraphText::begin(&files, format, &limits)?),
        };
        graph.step(out)
    };
    Ok(Some(TableInput {
        rows: Box::new(rows),
        known: (format, why),
    }))
}

struct GraphText {
    pages: PageTable,
    /// For each page that is a later spelling of a URL, the page of the first.
    firsts: BTreeMap<u64, u64>,
    /// Links by source; those of a later spelling count as links of the first, after its own.
    links: Peekable<GraphRows<NumberedLink>>,
    writer: PageWriter,
    /// Number of the next page.
    next: u64,
}

impl GraphText {
    fn begin(files: &GraphFiles, format: Format, limits: &Limits) -> Result<GraphText, Fault> {
        let mut pages = PageTable::read(files.pages(limits)?, limits.memory)?;
        let firsts = pages.spellings(format, limits.url_bytes)?;
        for (&later, &first) in &firsts {
            let joint = pages.fetch(first).max(pages.fetch(later));
            if let Some(fetch) = pages.fetches.get_mut(first as usize) {
                *fetch = joint;
            }
        }
        let mut links = files.links(pages.len(), limits)?;
        if !firsts.is_empty() {
            links = by_first(links, &firsts, limits.held_bytes)?;
        }
        Ok(GraphText {
            links: links.peekable(),
            writer: PageWriter::new(format),
            next: 0,
            firsts,
            pages,
        })
    }

    /// Writes the next link, or the end of a page and the beginning of the next; returns `false` after the last page.
    fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        // An error counts as a link of any page. All links are of pages that there are, or errors.
        let is_before = |link: &Result<NumberedLink, Fault>, page: u64| {
            link.as_ref().map_or(true, |[source, ..]| *source < page)
        };
        let page = self.next;
        if let Some(link) = self.links.next_if(|link| is_before(link, page)) {
            let [_, target, weight] = link?;
            let target = self.pages.name(target);
            self.writer.link(target, weight as u32, out);
            return Ok(true);
        }
        self.writer.end(out);
        if page == self.pages.len() {
            return Ok(false);
        }
        self.next += 1;
        if !self.firsts.contains_key(&page) {
            let is_of = |link: &Result<_, _>| is_before(link, page + 1);
            let has_links = self.links.peek().is_some_and(is_of);
            let (name, fetch) = (self.pages.name(page), self.pages.fetch(page));
            self.writer.begin(name, fetch, has_links, out);
        }
        Ok(true)
    }
}

/// Sorts links by source; those of later spellings of a page become links of the first.
fn by_first(
    links: GraphRows<NumberedLink>,
    firsts: &BTreeMap<u64, u64>,
    memory: u64,
) -> Result<GraphRows<NumberedLink>, Fault> {
    let split = |[source, target, weight]: NumberedLink| {
        let source = firsts.get(&source).unwrap_or(&source);
        let value = [target, weight].map(u64::to_be_bytes);
        (source.to_be_bytes().to_vec(), value.concat())
    };
    sorted(links, memory, split, |(source, value)| {
        let link = [source, value].concat().as_chunks().0.try_into().ok();
        link.map(|link: [_; 3]| link.map(u64::from_be_bytes))
    })
}

#[derive(Default)]
struct PageTable {
    text: Vec<u8>,
    ends: Vec<u64>,
    /// Last fetches of the first pages. Nothing is known about those of the others, in most graphs about those of all.
    fetches: Vec<LastFetch>,
}

impl PageTable {
    fn read(pages: GraphRows<GraphPage>, memory: Option<u64>) -> Result<PageTable, Fault> {
        let mut table = PageTable::default();
        for page in pages {
            let (name, fetch) = page?;
            if name.is_empty() {
                let what = format!("page {} has an empty name", table.len());
                return Err(Fault::Damage(DamageKind::InvalidData, what));
            }
            table.text.extend_from_slice(&name);
            table.ends.push(table.text.len() as u64);
            if fetch != READ {
                table.fetches.resize(table.ends.len() - 1, READ);
                table.fetches.push(fetch);
            }
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
    fn spellings(&self, format: Format, longest: u64) -> Result<BTreeMap<u64, u64>, Fault> {
        let hash = |page| xxh3_64(&page_name(format, self.name(page), longest));
        let mut hashes: Vec<(u64, u64)> = (0..self.len()).map(|page| (hash(page), page)).collect();
        hashes.sort_unstable();
        let mut firsts = BTreeMap::new();
        let groups = hashes.chunk_by(|a, b| a.0 == b.0);
        for same in groups.filter(|same| same.len() > 1) {
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
                let url = page_name(format, name, longest);
                let first = *urls.entry(url).or_insert(page);
                if first != page {
                    firsts.insert(page, first);
                }
            }
        }
        Ok(firsts)
    }

    fn fetch(&self, page: u64) -> LastFetch {
        self.fetches.get(page as usize).copied().unwrap_or(READ)
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

/// Returns a check that links are between the first `pages` pages, and sorted by source.
pub(super) fn link_check(pages: u64) -> impl FnMut(NumberedLink) -> Result<NumberedLink, String> {
    let mut last = 0;
    move |link| {
        let [source, target, _] = link;
        let number = source.max(target);
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

/// Reads Common Crawl's files of vertices, in the order of their names.
fn read_vertices(files: &[PathBuf], limits: &Limits) -> GraphRows<GraphPage> {
    let mut expected = 0;
    parse_lines(files, limits, move |[page, name, _]| {
        let (Some(page), Some(name)) = (page.and_then(number), name) else {
            return Err("a number, a tab and a name are expected".into());
        };
        if page != expected {
            return Err(format!(
                "vertex {page} where {expected} is expected: vertices must be numbered from 0 on, in order"
            ));
        }
        expected += 1;
        Ok((name.to_vec(), READ))
    })
}

/// Reads Common Crawl's files of edges between `pages` pages, in the order of their names.
fn read_edges(files: &[PathBuf], limits: &Limits, pages: u64) -> GraphRows<NumberedLink> {
    let mut check = link_check(pages);
    parse_lines(files, limits, move |fields| {
        let [Some(from), Some(to), None] = fields else {
            return Err("two numbers with a tab between them are expected".into());
        };
        let [Some(source), Some(target)] = [from, to].map(number) else {
            return Err("two numbers are expected".into());
        };
        check([source, target, 1])
    })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the first three fields of each line of several files, except blank lines and comments.
fn parse_lines<T: 'static>(
    files: &[PathBuf],
    limits: &Limits,
    mut parse: impl FnMut([Option<&[u8]>; 3]) -> Result<T, String> + Send + 'static,
) -> GraphRows<T> {
    let (mut files, limits) = (Vec::from(files).into_iter(), limits.clone());
    let mut open: Option<(Plain, PathBuf, u64)> = None;
    let mut next = move || -> Result<Option<T>, Fault> {
        loop {
            if let Some((lines, path, number)) = &mut open
                && let Some(line) = lines.next_line()?
            {
                *number += 1;
                if line.trim_ascii().is_empty() || line[0] == b'#' {
                    continue;
                }
                let mut fields = line.split(|&byte| byte == b'\t');
                let fields = std::array::from_fn(|_| fields.next());
                return parse(fields).map(Some).map_err(|what| {
                    let file = path.file_name().unwrap_or_default().to_string_lossy();
                    let what = format!("{file}: line {number}: {what}");
                    Fault::Damage(DamageKind::InvalidData, what)
                });
            }
            open = None;
            let Some(path) = files.next() else {
                return Ok(None);
            };
            open = Some((open_plain(&path, &limits)?, path, 0));
        }
    };
    Box::new(std::iter::from_fn(move || next().transpose()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of a page with two spellings are those of both, in their order, behind each other.
    #[test]
    fn links_of_later_spellings_follow_those_of_the_first() {
        const LINKS: u64 = 1000;
        let (twice, later) = (3, 7);
        let sources = || (0..10).flat_map(|source| [source; LINKS as usize / 10]);
        let all = || sources().zip(0..LINKS);
        let links: GraphRows<NumberedLink> =
            Box::new(all().map(|(source, target)| Ok([source, target, 1])));
        let firsts = BTreeMap::from([(later, twice)]);
        let found = by_first(links, &firsts, 1 << 10).unwrap();
        let found: Vec<(u64, u64)> = found
            .map(|link| link.map(|[source, target, _]| (source, target)))
            .collect::<Result<_, Fault>>()
            .unwrap();
        let mut expected: Vec<(u64, u64)> = all()
            .map(|(source, target)| (if source == later { twice } else { source }, target))
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
