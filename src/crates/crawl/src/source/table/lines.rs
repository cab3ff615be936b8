//! Common Crawl's layout of graphs: `number TAB name` in files of vertices, `number TAB number` in files of edges,
//! plain, gzip or zstd. Several files of each are read in the order of their names.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use super::super::decompress::Fault;
use super::super::plain::{Plain, open_plain};
use super::graph::{Files, GraphPage, GraphPages, LastFetch, Links, NumberedLink};
use crate::model::{DamageKind, Limits};
use crate::{Error, Result};

/// Files of a graph in Common Crawl's layout.
pub(super) struct LineFiles {
    pub vertices: Vec<PathBuf>,
    pub edges: Vec<PathBuf>,
    pub limits: Limits,
}

impl Files for LineFiles {
    fn pages(&self) -> Result<Box<dyn GraphPages>, Fault> {
        Ok(Box::new(Vertices {
            lines: GraphFileLines::of(&self.vertices, &self.limits),
            next: 0,
        }))
    }

    fn links(&self) -> Result<Box<dyn Links>, Fault> {
        Ok(Box::new(GraphFileLines::of(&self.edges, &self.limits)))
    }

    fn has_weights(&self) -> bool {
        false
    }
}

struct Vertices {
    lines: GraphFileLines,
    next: u64,
}

impl GraphPages for Vertices {
    fn next(&mut self) -> Result<Option<GraphPage>, Fault> {
        if !self.lines.next_line()? {
            return Ok(None);
        }
        let mut fields = self.lines.line.split(|&byte| byte == b'\t');
        let (number, name) = (fields.next().and_then(number), fields.next());
        let row = match (number, name) {
            (Some(number), Some(name)) if number == self.next => GraphPage {
                name: name.to_vec(),
                fetch: LastFetch::Read(None),
            },
            (Some(number), Some(_)) => {
                let expected = self.next;
                return Err(self.lines.wrong(&format!(
                    "vertex {number} where {expected} is expected: vertices must be numbered from 0 on, in order"
                )));
            }
            _ => return Err(self.lines.wrong("a number, a tab and a name are expected")),
        };
        self.next += 1;
        Ok(Some(row))
    }
}

impl Links for GraphFileLines {
    fn next(&mut self) -> Result<Option<NumberedLink>, Fault> {
        if !self.next_line()? {
            return Ok(None);
        }
        let mut fields = self.line.split(|&byte| byte == b'\t');
        match [fields.next(), fields.next(), fields.next()] {
            [Some(from), Some(to), None] => match [number(from), number(to)] {
                [Some(source), Some(target)] => Ok(Some(NumberedLink {
                    source,
                    target,
                    weight: 1,
                })),
                _ => Err(self.wrong("two numbers are expected")),
            },
            _ => Err(self.wrong("two numbers with a tab between them are expected")),
        }
    }

    fn place(&self) -> String {
        format!("{}: line {}", self.name(), self.number)
    }
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

    /// Reads the next line that is neither blank nor a comment; returns `false` after the last.
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
            if read.map_err(passed_on_by_reader)? == 0 {
                self.open = None;
                continue;
            }
            self.number += 1;
            if self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            }
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            if !self.line.trim_ascii().is_empty() && self.line[0] != b'#' {
                return Ok(true);
            }
        }
    }

    fn name(&self) -> String {
        let file = self.begun.checked_sub(1).and_then(|at| self.files.get(at));
        let name = file.and_then(|path| path.file_name());
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    fn wrong(&self, what: &str) -> Fault {
        Fault::Damage(
            DamageKind::InvalidData,
            format!("{}: {what}", Links::place(self)),
        )
    }
}

fn passed_on_by_reader(error: std::io::Error) -> Fault {
    match error.downcast::<Error>() {
        Ok(error) => error.into(),
        Err(error) => Fault::Io(error),
    }
}
