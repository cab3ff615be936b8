//! Text that rows are converted to: JSON lines if names are URLs, else an adjacency list, or an edge list if links have
//! weights.

use super::super::decompress::{Fault, Step};
use crate::decode::{lines, put_string};
use crate::formats::Format;
use crate::model::DamageKind;
use crate::url;

/// Number of first names that decide whether names are URLs.
pub(super) const SNIFF_NAMES: usize = 16;

/// Source of rows that are written as text.
pub trait Rows: Send {
    /// Appends the text of the next rows until `out` has `full` bytes; returns `false` after the last.
    fn more(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, Fault>;
}

/// Capacity that a buffer has beyond its full length, for the end of its last row, in bytes.
const SLACK: usize = 4 << 10;

/// Text of all rows, yielded like the output of a decompressor.
pub struct TableText {
    rows: Box<dyn Rows>,
    /// Number of bytes that may follow: a few bytes of a table may expand to very many rows.
    left: u64,
    ended: bool,
}

impl TableText {
    /// Returns the text of `rows`, at most `limit` bytes.
    pub fn of(rows: Box<dyn Rows>, limit: u64) -> TableText {
        TableText {
            rows,
            left: limit,
            ended: false,
        }
    }

    /// Appends text to `out` until it has `full` bytes, which it has not yet; the last row may exceed them.
    pub fn step(&mut self, out: &mut Vec<u8>, full: usize) -> Result<Step, Fault> {
        if self.ended {
            return Ok(Step::Finished);
        }
        let before = out.len();
        out.reserve_exact((full + SLACK).saturating_sub(before));
        let more = self.rows.more(out, full);
        let len = (out.len() - before) as u64;
        let Some(left) = self.left.checked_sub(len) else {
            out.truncate(before);
            let what = "the rows of the table are more text than `limit_expansion`";
            return Err(Fault::Damage(DamageKind::Expansion, what.into()));
        };
        (self.left, self.ended) = (left, !more?);
        Ok(Step::Data)
    }
}

/// Text format of pages and their links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextLayout {
    /// JSON lines: `{"url":...,"links":[...]}`.
    Records,
    /// Adjacency list: `name TAB target ...`. It has no weights.
    Adjacency,
    /// Edge list: `name TAB target TAB weight`, one line per link.
    Edges,
}

impl TextLayout {
    /// Chooses the layout of a graph that begins with these names: records if most are URLs.
    pub fn of(names: &[Vec<u8>], has_weights: bool) -> TextLayout {
        let urls = names.iter().filter(|name| url::is_web(name)).count();
        match has_weights {
            _ if 2 * urls > names.len() => TextLayout::Records,
            true => TextLayout::Edges,
            false => TextLayout::Adjacency,
        }
    }

    pub fn format(self) -> Format {
        match self {
            TextLayout::Records => Format::Records,
            TextLayout::Adjacency => Format::Adjacency,
            TextLayout::Edges => Format::Edges,
        }
    }

    /// Returns a page's name as the store has it: the canonical form of a URL.
    pub fn page_name<'n>(
        self,
        name: &'n [u8],
        longest: usize,
        scratch: &'n mut Vec<u8>,
    ) -> &'n [u8] {
        scratch.clear();
        match self {
            TextLayout::Records => match url::canonical(name, None, longest, scratch) {
                Ok(form) => form.text(name, scratch),
                Err(_) => name,
            },
            TextLayout::Adjacency | TextLayout::Edges => name,
        }
    }

    /// Returns whether the text can represent this name.
    pub fn holds(self, name: &[u8]) -> bool {
        let is_text = |blanks: &[u8]| {
            !name.iter().any(|byte| blanks.contains(byte)) && lines::control(name).is_none()
        };
        !name.is_empty()
            && match self {
                TextLayout::Records => true,
                TextLayout::Adjacency => is_text(b"\t"),
                TextLayout::Edges => name[0] != b'#' && is_text(b" \t"),
            }
    }
}

/// Writes pages with their links, one page after the other.
pub(super) struct PageWriter {
    pub layout: TextLayout,
    /// Page whose links are being written.
    page: Option<Vec<u8>>,
    has_links: bool,
}

impl PageWriter {
    pub fn new(layout: TextLayout) -> PageWriter {
        PageWriter {
            layout,
            page: None,
            has_links: false,
        }
    }

    /// Returns the page whose links are being written.
    #[cfg(feature = "parquet")]
    pub fn page(&self) -> Option<&[u8]> {
        self.page.as_deref()
    }

    /// Begins a page; the one before must have ended. `fetched_at` is in seconds since 1970.
    pub fn begin(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        match self.layout {
            TextLayout::Records => {
                out.extend_from_slice(br#"{"url":"#);
                put_string(name, out);
                put_time(fetched_at, out);
                out.extend_from_slice(br#","links":["#);
            }
            TextLayout::Adjacency => out.extend_from_slice(name),
            TextLayout::Edges => {}
        }
        self.page = Some(name.to_vec());
        self.has_links = false;
    }

    /// Appends a link of the page.
    pub fn link(&mut self, to: &[u8], weight: u32, out: &mut Vec<u8>) {
        let is_first = !std::mem::replace(&mut self.has_links, true);
        match self.layout {
            TextLayout::Records => {
                if !is_first {
                    out.push(b',');
                }
                if weight == 1 {
                    return put_string(to, out);
                }
                out.extend_from_slice(br#"{"url":"#);
                put_string(to, out);
                out.extend_from_slice(format!(r#","weight":{weight}}}"#).as_bytes());
            }
            TextLayout::Adjacency => {
                out.push(b'\t');
                out.extend_from_slice(to);
            }
            TextLayout::Edges => {
                for name in [self.page.as_deref().unwrap_or_default(), to] {
                    out.extend_from_slice(name);
                    out.push(b'\t');
                }
                out.extend_from_slice(format!("{weight}\n").as_bytes());
            }
        }
    }

    /// Ends the page, if one was begun. In an edge list, a page without links gets a link to itself of weight 0.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.layout == TextLayout::Edges && !self.has_links {
            let page = self.page.clone();
            page.inspect(|page| self.link(page, 0, out));
        }
        match (self.page.take(), self.layout) {
            (None, _) | (_, TextLayout::Edges) => {}
            (_, TextLayout::Records) => out.extend_from_slice(b"]}\n"),
            (_, TextLayout::Adjacency) => out.push(b'\n'),
        }
    }

    /// Writes a page whose links are unknown: it was found unchanged, or is only to be admitted. Adjacency and edge
    /// lists cannot express this: there it is a page without links.
    pub fn known(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        if self.layout == TextLayout::Records {
            out.extend_from_slice(br#"{"status":304,"url":"#);
            put_string(name, out);
            put_time(fetched_at, out);
            out.extend_from_slice(b"}\n");
        } else {
            self.begin(name, None, out);
            self.end(out);
        }
    }
}

fn put_time(fetched_at: Option<i64>, out: &mut Vec<u8>) {
    if let Some(at) = fetched_at {
        out.extend_from_slice(format!(r#","fetched_at":{at}"#).as_bytes());
    }
}
