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

/// Returns rows that `begin` begins to read at the first step.
pub(super) fn lazily(begin: impl FnOnce() -> Result<Rows, Fault> + Send + 'static) -> Rows {
    let (mut begin, mut rows) = (Some(begin), None::<Rows>);
    Box::new(move |out| {
        if let Some(begin) = begin.take() {
            rows = Some(begin()?);
        }
        rows.as_mut().map_or(Ok(false), |rows| rows(out))
    })
}

pub(super) type GraphRows<T> = Box<dyn Iterator<Item = Result<T, Fault>> + Send>;
/// Sort key and value of a row.
pub(super) type KeyedRow = (Vec<u8>, Vec<u8>);

/// Sorts rows by the bytes of a key, in `memory` bytes and temporary files; rows of one key keep their order. `split`
/// makes a key and a value of a row, and `join` the row of both.
pub(super) fn sorted<T: 'static>(
    rows: impl Iterator<Item = Result<T, Fault>>,
    memory: u64,
    split: impl Fn(T) -> KeyedRow,
    join: fn(KeyedRow) -> Option<T>,
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

/// Writer of pages, one after the other, each with its links.
pub(super) struct PageWriter {
    pub format: Format,
    /// True if a page was begun that has not ended.
    pub is_open: bool,
    has_links: bool,
}

impl PageWriter {
    pub fn new(format: Format) -> PageWriter {
        PageWriter {
            format,
            is_open: false,
            has_links: false,
        }
    }

    /// Begins a page; the page before must have ended.
    pub fn begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        put_name(self.format, name, out);
        out.extend_from_slice(b",\"links\":[");
        (self.is_open, self.has_links) = (true, false);
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

    /// Ends the page, if one is open.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            out.extend_from_slice(b"]}\n");
        }
    }
}

/// Writes the name of a page, at the start of its record.
pub(super) fn put_name(format: Format, name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(page_field(format.decoder().names()).as_bytes());
    out.extend_from_slice(b"\":");
    put_string(name, out);
}
