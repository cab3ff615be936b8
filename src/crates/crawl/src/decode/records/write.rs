//! Writes a record as one line of JSON, which reads back as the same record.

use super::names::page_field;
use crate::decode::{Link, Names, Record, Time, put_string, utc};
use crate::rules::Rel;
use crate::url;

/// Appends the record as a line. Times that RFC 3339 cannot express are left out; no format yields one.
pub fn write(record: &Record<'_>, names: Names, line: &mut Vec<u8>) {
    let mut object = ObjectWriter { line, start: b'{' };
    object.text(page_field(names), Some(&record.url));
    object.time("fetched_at", record.fetched_at);
    object.number("status", record.status);
    object.text("redirect", record.redirect.as_deref());
    object.text("base", record.base.as_deref());
    let same_as = record.same_as.as_ref();
    let itself = Some(&record.url).filter(|_| record.revisit);
    object.text("revisit", same_as.or(itself).map(|url| &**url));
    let digest = record.digest.text();
    object.text("digest", digest.as_deref().map(str::as_bytes));
    if let Some(totals) = record.totals {
        object.number("visits", Some(totals.visits));
        for (name, count) in [
            ("failed", totals.failed),
            ("compared", totals.compared),
            ("changed", totals.changed),
            ("watched_s", totals.watched_s),
        ] {
            object.number(name, Some(count).filter(|count| *count > 0));
        }
        object.time("last_failed", totals.last_failed);
    }
    let links = &record.links;
    if !links.is_empty() {
        object.list("links", links, |link, line| put_url(&link.url, line));
    }
    if links.iter().any(|link| link.rel != Rel::default()) {
        object.list("links_rel", links, |link, line| {
            if link.rel == Rel::default() {
                line.extend_from_slice(b"null");
            } else {
                put_string(link.rel.words().as_bytes(), line);
            }
        });
    }
    if links.iter().any(|link| link.weight != 1) {
        object.list("links_weight", links, |link, line| {
            line.extend_from_slice(link.weight.to_string().as_bytes());
        });
    }
    line.extend_from_slice(b"}\n");
}

struct ObjectWriter<'l> {
    line: &'l mut Vec<u8>,
    /// Byte before the next field: a brace first, then a comma.
    start: u8,
}

impl ObjectWriter<'_> {
    fn name(&mut self, name: &str) {
        self.line.push(std::mem::replace(&mut self.start, b','));
        put_string(name.as_bytes(), self.line);
        self.line.push(b':');
    }

    fn text(&mut self, name: &str, text: Option<&[u8]>) {
        if let Some(text) = text {
            self.name(name);
            put_url(text, self.line);
        }
    }

    fn number(&mut self, name: &str, number: Option<impl ToString>) {
        if let Some(number) = number {
            self.name(name);
            self.line.extend_from_slice(number.to_string().as_bytes());
        }
    }

    fn time(&mut self, name: &str, time: Option<Time>) {
        let time = time.and_then(utc);
        self.text(name, time.as_deref().map(str::as_bytes));
    }

    fn list(&mut self, name: &str, links: &[Link<'_>], put: impl Fn(&Link<'_>, &mut Vec<u8>)) {
        self.name(name);
        self.line.push(b'[');
        for (at, link) in links.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            put(link, self.line);
        }
        self.line.push(b']');
    }
}

/// Appends a URL. Bytes that are not UTF-8 are percent-encoded, as in its canonical form.
fn put_url(raw: &[u8], line: &mut Vec<u8>) {
    put_string(url::text(raw).as_bytes(), line);
}
