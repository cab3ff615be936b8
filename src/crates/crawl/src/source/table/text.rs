//! Text that graphs are converted to: lines of JSON, in the format `records` if names are URLs, else `node-records`.

use std::borrow::Cow;

use super::super::decompress::Fault;
use crate::Error;
use crate::decode::put_string;
use crate::decode::records::names::page_field;
use crate::disk::ExternalSorter;
use crate::formats::Format;
use crate::url::{self, CanonicalForm};

pub(super) const SNIFF_NAMES: usize = 16;

/// Appends the text of a table's next row, a part of it, or nothing; returns `false` after the last. Must not be called
/// after that, or after a fault.
pub type Rows = Box<dyn FnMut(&mut Vec<u8>) -> Result<bool, Fault> + Send>;

pub(super) type GraphRows<T> = Box<dyn Iterator<Item = Result<T, Fault>> + Send>;

/// Sorts rows by the bytes of a key, in `memory` bytes and temporary files; rows of one key keep their order. `split`
/// makes a key and a value of a row, and `join` the row of both.
pub(super) fn sorted<T: 'static>(
    rows: impl Iterator<Item = Result<T, Fault>>,
    memory: u64,
    split: impl Fn(T) -> (Vec<u8>, Vec<u8>),
    join: fn((Vec<u8>, Vec<u8>)) -> Option<T>,
) -> Result<GraphRows<T>, Fault> {
    let memory = usize::try_from(memory).unwrap_or(usize::MAX);
    let mut sorter = ExternalSorter::new(memory, &std::env::temp_dir());
    for row in rows {
        let (key, value) = split(row?);
        sorter.push(&key, &value)?;
    }
    Ok(Box::new(sorter.sorted()?.map(move |record| {
        let other = || Error::internal("a sorted row of a graph is not what it was");
        Ok(join(record?).ok_or_else(other)?)
    })))
}

/// Chooses the format of a graph that begins with these names: records of URLs if most are URLs.
pub(super) fn format_of(names: &[Vec<u8>]) -> Format {
    let urls = names.iter().filter(|name| url::is_web(name)).count();
    if 2 * urls > names.len() {
        Format::Records
    } else {
        Format::NodeRecords
    }
}

/// Returns a page's name as the store has it: the canonical form of a URL.
pub(super) fn page_name(format: Format, name: &[u8], longest: u64) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let canonical = || url::canonical(name, None, longest as usize, &mut out);
    match (format == Format::Records).then(canonical) {
        Some(Ok(CanonicalForm::Rewritten)) => Cow::Owned(out),
        Some(Ok(form)) => Cow::Borrowed(form.text(name, &[])),
        _ => Cow::Borrowed(name),
    }
}

/// Last fetch of a page: whether its links are known, and the time in seconds since 1970, or [`NO_TIME`]. The greatest
/// of a page's spellings counts. With links unknown, a time is that of a fetch which found the page unchanged.
pub(super) type LastFetch = (bool, i64);

pub(super) const NO_TIME: i64 = i64::MIN;

/// Writer of pages, one after the other, each with its links.
pub(super) struct PageWriter {
    pub format: Format,
    /// True if a page was begun whose list of links has not ended.
    pub is_open: bool,
    has_links: bool,
    /// Records that follow the open page.
    pub next: Vec<u8>,
}

impl PageWriter {
    pub fn new(format: Format) -> PageWriter {
        PageWriter {
            format,
            is_open: false,
            has_links: false,
            next: Vec::new(),
        }
    }

    /// Begins a page; the page before must have ended.
    pub fn begin(
        &mut self,
        name: &[u8],
        (is_read, at): LastFetch,
        has_links: bool,
        out: &mut Vec<u8>,
    ) {
        put_name(self.format, name, out);
        self.is_open = is_read || has_links;
        self.has_links = false;
        let time = match at {
            NO_TIME => String::new(),
            at => format!(r#","fetched_at":{at}"#),
        };
        let (status, rest) = match (self.is_open, at) {
            (true, _) => ("", ",\"links\":["),
            (false, NO_TIME) => ("", ",\"visits\":0}\n"),
            (false, _) => (",\"status\":304", "}\n"),
        };
        out.extend_from_slice([status, &time, rest].concat().as_bytes());
    }

    pub fn link(&mut self, to: &[u8], weight: u32, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_links, true) {
            out.push(b',');
        }
        if weight == 1 {
            return put_string(to, out);
        }
        out.extend_from_slice(br#"{"url":"#);
        put_string(to, out);
        out.extend_from_slice(format!(r#","weight":{weight}}}"#).as_bytes());
    }

    /// Ends the page, if one is open, and writes the records that follow it.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            out.extend_from_slice(b"]}\n");
        }
        out.append(&mut self.next);
    }
}

/// Writes the name of a page, at the start of its record.
pub(super) fn put_name(format: Format, name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(page_field(format.decoder().names()).as_bytes());
    out.extend_from_slice(b"\":");
    put_string(name, out);
}
