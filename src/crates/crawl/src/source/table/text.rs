//! Text that graphs are converted to: lines of JSON, in the format `records` if names are URLs, else `node-records`.

use std::borrow::Cow;

use super::super::decompress::Fault;
use crate::decode::put_string;
use crate::decode::records::names::page_field;
use crate::formats::Format;
use crate::url::{self, CanonicalForm};

pub(super) const SNIFF_NAMES: usize = 16;

/// Appends the text of a table's next row, a part of it, or nothing; returns `false` after the last. Must not be called
/// after that, or after a fault.
pub type Rows = Box<dyn FnMut(&mut Vec<u8>) -> Result<bool, Fault> + Send>;

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
pub(super) fn page_name<'n>(format: Format, name: &'n [u8], longest: usize) -> Cow<'n, [u8]> {
    if format != Format::Records {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::new();
    match url::canonical(name, None, longest, &mut out) {
        Ok(CanonicalForm::Rewritten) => Cow::Owned(out),
        Ok(form) => Cow::Borrowed(form.text(name, &[])),
        Err(_) => Cow::Borrowed(name),
    }
}

/// Writer of pages, one after the other, each with its links.
pub(super) struct PageWriter {
    pub format: Format,
    /// True if a page was begun and not ended.
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

    /// Begins a page; the page before must have ended. `fetched_at` is in seconds since 1970.
    pub fn begin(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        self.page(name, out);
        if let Some(at) = fetched_at {
            out.extend_from_slice(format!(r#","fetched_at":{at}"#).as_bytes());
        }
        out.extend_from_slice(br#","links":["#);
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

    /// Ends the page, if one was begun.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            out.extend_from_slice(b"]}\n");
        }
    }

    /// Writes a page whose links are unknown: it was found unchanged at `fetched_at`, or was never fetched.
    pub fn known(&mut self, name: &[u8], fetched_at: Option<i64>, out: &mut Vec<u8>) {
        self.page(name, out);
        let rest = match fetched_at {
            Some(at) => format!(",\"status\":304,\"fetched_at\":{at}}}\n"),
            None => ",\"visits\":0}\n".to_owned(),
        };
        out.extend_from_slice(rest.as_bytes());
    }

    /// Writes the name of a page, at the start of its record.
    pub fn page(&self, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(page_field(self.format.decoder().names()).as_bytes());
        out.extend_from_slice(b"\":");
        put_string(name, out);
    }
}
