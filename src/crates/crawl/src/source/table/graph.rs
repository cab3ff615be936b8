//! A folder with a graph, as Common Crawl publishes it: `*vertices*.txt` with lines `number TAB name`, and `*edges*.txt`
//! with lines `number TAB number`, perhaps `.gz` or `.zst`.
//!
//! Each page becomes a record with its links, in the order of the vertices. Pages whose names are spellings of one URL
//! become one record at the position of the first, with the links of all, which are then sorted: as separate records,
//! the links of the last would replace the others'.
//!
//! Memory: the names of all pages and 8 bytes for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::super::decompress::Fault;
use super::super::{Plain, open_plain};
use super::{GraphRows, PageWriter, Rows, SNIFF_NAMES, TableInput};
use super::{failed, format_of, lazily, page_name, sorted};
use crate::disk::{Disk, RealDisk};
use crate::formats::Format;
use crate::model::{DamageKind, LOOK_EVERY, Limits, check_room};
use crate::{Error, Result};

type NumberedLink = [u64; 2];

struct GraphFiles {
    vertices: Vec<PathBuf>,
    edges: Vec<PathBuf>,
}

impl GraphFiles {
    /// Finds the files in a folder; `None` if it has no vertices.
    fn find(folder: &Path) -> Result<Option<GraphFiles>> {
        let names = RealDisk.list(folder).map_err(Error::io(folder, "read"))?;
        let files_of = |part: &str| -> Vec<PathBuf> {
            let is_part = |name: &&String| {
                let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
                plain.ends_with(".txt") && name.contains(part)
            };
            let found = names.iter().filter(is_part);
            found.map(|name| folder.join(name)).collect()
        };
        let (vertices, edges) = (files_of("vertices"), files_of("edges"));
        match (vertices.is_empty(), edges.is_empty()) {
            (true, _) => Ok(None),
            (false, true) => Err(Error::Unsupported(
                "has files of vertices and none of edges".into(),
            )),
            (false, false) => Ok(Some(GraphFiles { vertices, edges })),
        }
    }

    fn pages(&self, limits: &Limits) -> GraphRows<Vec<u8>> {
        let mut expected = 0;
        parse_lines(&self.vertices, limits, move |[page, name, _]| {
            let name = name.filter(|name| !name.is_empty());
            let (Some(page), Some(name)) = (page.and_then(number), name) else {
                return Err("a number, a tab and a name are expected".into());
            };
            if page != expected {
                return Err(format!(
                    "vertex {page} where {expected} is expected: vertices must be numbered from 0 on, in order"
                ));
            }
            expected += 1;
            Ok(name.to_vec())
        })
    }

    /// Reads the links between this number of pages. Each is an error unless it is between them, and sorted by source.
    fn links(&self, pages: u64, limits: &Limits) -> GraphRows<NumberedLink> {
        let mut last = 0;
        parse_lines(&self.edges, limits, move |fields| {
            let [Some(from), Some(to), None] = fields else {
                return Err("two numbers with a tab between them are expected".into());
            };
            let [Some(source), Some(target)] = [from, to].map(number) else {
                return Err("two numbers are expected".into());
            };
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
            Ok([source, target])
        })
    }

    /// Reads all pages, and returns the text of the graph. One step writes a link, or ends a page and begins the next.
    fn text(&self, format: Format, limits: &Limits) -> Result<Rows, Fault> {
        let pages = PageTable::read(self.pages(limits), limits.memory)?;
        // For each page that is a later spelling of a URL, the page of the first.
        let firsts = pages.spellings(format, limits.url_bytes)?;
        let mut links = self.links(pages.len(), limits);
        if !firsts.is_empty() {
            links = by_first(links, &firsts, limits.held_bytes)?;
        }
        let (mut links, mut writer) = (links.peekable(), PageWriter::new(format));
        let mut next = 0;
        Ok(Box::new(move |out| {
            // An error counts as a link of any page. All other links are of pages that there are.
            let is_of_page = |link: &Result<NumberedLink, Fault>| {
                link.as_ref().map_or(true, |[source, _]| *source < next)
            };
            if let Some(link) = links.next_if(is_of_page) {
                writer.link(pages.name(link?[1]), 1, out);
                return Ok(true);
            }
            writer.end(out);
            if next == pages.len() {
                return Ok(false);
            }
            if !firsts.contains_key(&next) {
                writer.begin(pages.name(next), out);
            }
            next += 1;
            Ok(true)
        }))
    }
}

pub fn is_graph(folder: &Path) -> bool {
    matches!(
        GraphFiles::find(folder),
        Ok(Some(_)) | Err(Error::Unsupported(_))
    )
}

/// Opens the graph in a folder; `None` if there is none. Reads the first names.
pub(super) fn open(folder: &Path, limits: &Limits) -> Result<Option<TableInput>> {
    let Some(files) = GraphFiles::find(folder)? else {
        return Ok(None);
    };
    let first: Result<Vec<_>, Fault> = files.pages(limits).take(SNIFF_NAMES).collect();
    let format = format_of(&first.map_err(|fault| failed(folder, fault))?);
    let limits = limits.clone();
    let why = "it is a folder with files of vertices and of edges";
    Ok(Some(TableInput {
        rows: lazily(move || files.text(format, &limits)),
        known: (format, why.into()),
    }))
}

/// Sorts links by source; those of later spellings of a page become links of the first.
fn by_first(
    links: GraphRows<NumberedLink>,
    firsts: &BTreeMap<u64, u64>,
    memory: u64,
) -> Result<GraphRows<NumberedLink>, Fault> {
    let split = |[source, target]: NumberedLink| {
        let source = firsts.get(&source).unwrap_or(&source);
        (source.to_be_bytes().into(), target.to_be_bytes().into())
    };
    sorted(links, memory, split, |(source, target)| {
        let number = |bytes: Vec<u8>| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        Some([number(source)?, number(target)?])
    })
}

#[derive(Default)]
struct PageTable {
    text: Vec<u8>,
    ends: Vec<u64>,
}

impl PageTable {
    fn read(pages: GraphRows<Vec<u8>>, memory: Option<u64>) -> Result<PageTable, Fault> {
        let mut table = PageTable::default();
        for name in pages {
            let name = name?;
            table.text.extend_from_slice(&name);
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

    /// Maps each page that is not the first with its URL to the first; two pages of one name are an error.
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

    /// Fails if the table exceeds the memory. A growing vector takes up to three times its length: old and new.
    fn check(&self, memory: Option<u64>) -> Result<()> {
        let pages = self.len();
        let need = 3 * (self.text.len() as u64 + 8 * pages) + pages;
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

    /// The links of a page with two spellings are those of both, in their order, one after the other.
    #[test]
    fn links_of_later_spellings_follow_those_of_the_first() {
        const LINKS: u64 = 1000;
        let (twice, later) = (3, 7);
        let sources = || (0..10).flat_map(|source| [source; LINKS as usize / 10]);
        let all = || sources().zip(0..LINKS);
        let links: GraphRows<NumberedLink> =
            Box::new(all().map(|(source, target)| Ok([source, target])));
        let firsts = BTreeMap::from([(later, twice)]);
        let found = by_first(links, &firsts, 1 << 10).unwrap();
        let found: Vec<(u64, u64)> = found
            .map(|link| link.map(|[source, target]| (source, target)))
            .collect::<Result<_, Fault>>()
            .unwrap();
        let mut expected: Vec<(u64, u64)> = all()
            .map(|(source, target)| (if source == later { twice } else { source }, target))
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
