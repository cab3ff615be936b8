//! Text that rows are converted to: JSON lines if names are URLs, else an adjacency list, or with weights an edge list.

use super::super::decompress::Fault;
use crate::decode::{lines, put_string};
use crate::formats::Format;
use crate::url;

pub(super) const SNIFF_NAMES: usize = 16;

pub trait Rows: Send {
    /// Appends the text of the next rows until `out` has `full` bytes; returns `false` after the last. The last row may
    /// exceed `full`. Must not be called after the last row, or after a fault.
    fn more(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, Fault>;
}

/// Chooses the format of a graph that begins with these names: records if most are URLs.
///
/// | format | text |
/// |---|---|
/// | `records` | `{"url":...,"links":[...]}` |
/// | `adjacency`, which has no weights | `name TAB target ...` |
/// | `edges` | `name TAB target TAB weight`, one line per link |
pub(super) fn format_of(names: &[Vec<u8>], has_weights: bool) -> Format {
    let urls = names.iter().filter(|name| url::is_web(name)).count();
    match has_weights {
        _ if 2 * urls > names.len() => Format::Records,
        true => Format::Edges,
        false => Format::Adjacency,
    }
}

/// Returns a page's name as the store has it: the canonical form of a URL.
pub(super) fn page_name<'n>(
    format: Format,
    name: &'n [u8],
    longest: usize,
    scratch: &'n mut Vec<u8>,
) -> &'n [u8] {
    scratch.clear();
    if format != Format::Records {
        return name;
    }
    match url::canonical(name, None, longest, scratch) {
        Ok(form) => form.text(name, scratch),
        Err(_) => name,
    }
}

pub(super) fn holds(format: Format, name: &[u8]) -> bool {
    let is_text = |blanks: &[u8]| {
        !name.iter().any(|byte| blanks.contains(byte)) && lines::control(name).is_none()
    };
    !name.is_empty()
        && match format {
            Format::Records => true,
            Format::Adjacency => is_text(b"\t"),
            _ => name[0] != b'#' && is_text(b" \t"),
        }
}

pub(super) struct PageWriter {
    pub format: Format,
    page: Option<Vec<u8>>,
    has_links: bool,
}

impl PageWriter {
    pub fn new(format: Format) -> PageWriter {
        PageWriter {
            format,
            page: None,
            has_links: false,
        }
    }

    #[cfg(feature = "parquet")]
    pub fn page(&self) -> Option<&[u8]> {
        self.page.as_deref()
    }

    /// Begins a page; the page before must have ended. `fetched_at` is in seconds since 1970.
    pub fn begin(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        match self.format {
            Format::Records => {
                out.extend_from_slice(br#"{"url":"#);
                put_string(name, out);
                put_time(fetched_at, out);
                out.extend_from_slice(br#","links":["#);
            }
            Format::Adjacency => out.extend_from_slice(name),
            _ => {}
        }
        self.page = Some(name.to_vec());
        self.has_links = false;
    }

    pub fn link(&mut self, to: &[u8], weight: u32, out: &mut Vec<u8>) {
        let is_first = !std::mem::replace(&mut self.has_links, true);
        match self.format {
            Format::Records => {
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
            Format::Adjacency => {
                out.push(b'\t');
                out.extend_from_slice(to);
            }
            _ => {
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
        if self.format == Format::Edges && !self.has_links {
            let page = self.page.clone();
            page.inspect(|page| self.link(page, 0, out));
        }
        match (self.page.take(), self.format) {
            (Some(_), Format::Records) => out.extend_from_slice(b"]}\n"),
            (Some(_), Format::Adjacency) => out.push(b'\n'),
            _ => {}
        }
    }

    /// Writes a page whose links are unknown: it was found unchanged, or is only to be admitted. Adjacency and edge
    /// lists cannot express this, so the page has no links there.
    pub fn known(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        if self.format == Format::Records {
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
