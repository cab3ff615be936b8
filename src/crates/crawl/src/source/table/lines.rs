//! Common Crawl's layout of graphs: `number TAB name` in files of vertices, `number TAB number` in files of edges,
//! plain, gzip or zstd. Several files of each are read in the order of their names.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use super::super::decompress::Fault;
use super::super::plain::{Plain, open_plain};
use super::graph::{GraphFiles, GraphPage, LastFetch, Links, NumberedLink, Pages, link_check};
use crate::Error;
use crate::model::{DamageKind, Limits};

/// Returns the graph of these files.
pub(super) fn graph(vertices: Vec<PathBuf>, edges: Vec<PathBuf>, limits: &Limits) -> GraphFiles {
    let [of_pages, of_links] = [limits.clone(), limits.clone()];
    GraphFiles {
        pages: Box::new(move || Ok(pages(&vertices, &of_pages))),
        links: Box::new(move |pages| Ok((links(&edges, &of_links, pages), false))),
    }
}

/// Reads the files of vertices.
fn pages(files: &[PathBuf], limits: &Limits) -> Pages {
    let mut lines = GraphFileLines::of(files, limits);
    let mut expected = 0;
    Box::new(std::iter::from_fn(move || {
        lines.read(|line| {
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
    }))
}

/// Reads the files of edges between `pages` pages.
fn links(files: &[PathBuf], limits: &Limits, pages: u64) -> Links {
    let mut lines = GraphFileLines::of(files, limits);
    let mut check = link_check(pages);
    Box::new(std::iter::from_fn(move || {
        lines.read(|line| {
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
    }))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Byte order mark: some programs write one at a file's start, and files get concatenated.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Lines of several files.
struct GraphFileLines {
    files: Vec<PathBuf>,
    /// Number of files opened so far; the last of them is `open`.
    begun: usize,
    open: Option<BufReader<Plain>>,
    limits: Limits,
    /// Last line, without its end, and its number in its file.
    line: Vec<u8>,
    number: u64,
}

impl GraphFileLines {
    fn of(files: &[PathBuf], limits: &Limits) -> GraphFileLines {
        GraphFileLines {
            files: files.to_vec(),
            begun: 0,
            open: None,
            limits: limits.clone(),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Parses the next line that is neither blank nor a comment; `None` after the last.
    fn read<T>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Option<Result<T, Fault>> {
        match self.next_line() {
            Ok(true) => Some(parse(&self.line).map_err(|what| self.wrong(&what))),
            Ok(false) => None,
            Err(fault) => Some(Err(fault)),
        }
    }

    fn next_line(&mut self) -> Result<bool, Fault> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(path) = self.files.get(self.begun) else {
                    return Ok(false);
                };
                let open = open_plain(path, &self.limits)?;
                self.open = Some(BufReader::new(open));
                self.begun += 1;
                self.number = 0;
                continue;
            };
            self.line.clear();
            let read = open.read_until(b'\n', &mut self.line);
            // The reader passes on errors of this crate.
            let read = read.map_err(|error| match error.downcast::<Error>() {
                Ok(error) => error.into(),
                Err(error) => Fault::Io(error),
            })?;
            if read == 0 {
                self.open = None;
                continue;
            }
            self.number += 1;
            if self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            for end in [b'\n', b'\r'] {
                self.line.pop_if(|last| *last == end);
            }
            if !self.line.trim_ascii().is_empty() && self.line[0] != b'#' {
                return Ok(true);
            }
        }
    }

    fn wrong(&self, what: &str) -> Fault {
        let file = self.begun.checked_sub(1).and_then(|at| self.files.get(at));
        let name = file.and_then(|path| path.file_name()).unwrap_or_default();
        let what = format!("{}: line {}: {what}", name.to_string_lossy(), self.number);
        Fault::Damage(DamageKind::InvalidData, what)
    }
}
