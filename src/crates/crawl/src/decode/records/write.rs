//! Writes a record as one line of JSON, which reads back as the same record.

use super::names::page_field;
use crate::decode::{Names, Record, put_string};
use crate::model::utc;
use crate::rules::Rel;

/// Appends the record as a line. Times that RFC 3339 cannot express are left out; no format yields one.
pub fn write(record: &Record<'_>, names: Names, line: &mut Vec<u8>) {
    line.push(b'{');
    put_text(page_field(names), &record.url, line);
    if let Some(time) = record.fetched_at.and_then(utc) {
        line.push(b',');
        put_text("fetched_at", time.as_bytes(), line);
    }
    if let Some(status) = record.status {
        line.push(b',');
        put_name("status", line);
        line.extend_from_slice(status.to_string().as_bytes());
    }
    let same_as = match &record.same_as {
        None if record.revisit => Some(&record.url),
        same_as => same_as.as_ref(),
    };
    for (name, text) in [
        ("redirect", record.redirect.as_ref()),
        ("base", record.base.as_ref()),
        ("revisit", same_as),
    ] {
        if let Some(text) = text {
            line.push(b',');
            put_text(name, text, line);
        }
    }
    if let Some(digest) = record.digest.text() {
        line.push(b',');
        put_text("digest", digest.as_bytes(), line);
    }
    put_totals(record, line);
    put_links(record, line);
    line.extend_from_slice(b"}\n");
}

fn put_totals(record: &Record<'_>, line: &mut Vec<u8>) {
    let Some(totals) = record.totals else {
        return;
    };
    let counts = [
        ("failed", totals.failed),
        ("compared", totals.compared),
        ("changed", totals.changed),
        ("watched_s", totals.watched_s),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    for (name, count) in [("visits", totals.visits)].into_iter().chain(counts) {
        line.push(b',');
        put_name(name, line);
        line.extend_from_slice(count.to_string().as_bytes());
    }
    if let Some(time) = totals.last_failed.and_then(utc) {
        line.push(b',');
        put_text("last_failed", time.as_bytes(), line);
    }
}

fn put_links(record: &Record<'_>, line: &mut Vec<u8>) {
    if record.links.is_empty() {
        return;
    }
    line.push(b',');
    put_list("links", &record.links, line, |link, line| {
        put_url(&link.url, line);
    });
    if record.links.iter().any(|link| link.rel != Rel::default()) {
        line.push(b',');
        put_list("links_rel", &record.links, line, |link, line| {
            if link.rel == Rel::default() {
                line.extend_from_slice(b"null");
            } else {
                put_string(link.rel.words().as_bytes(), line);
            }
        });
    }
    if record.links.iter().any(|link| link.weight != 1) {
        line.push(b',');
        put_list("links_weight", &record.links, line, |link, line| {
            line.extend_from_slice(link.weight.to_string().as_bytes());
        });
    }
}

fn put_list<T>(
    name: &str,
    values: &[T],
    line: &mut Vec<u8>,
    mut put: impl FnMut(&T, &mut Vec<u8>),
) {
    put_name(name, line);
    line.push(b'[');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            line.push(b',');
        }
        put(value, line);
    }
    line.push(b']');
}

fn put_name(name: &str, line: &mut Vec<u8>) {
    put_string(name.as_bytes(), line);
    line.push(b':');
}

fn put_text(name: &str, text: &[u8], line: &mut Vec<u8>) {
    put_name(name, line);
    put_url(text, line);
}

/// Appends a URL. Bytes that are not UTF-8 are percent-encoded, as in its canonical form.
fn put_url(url: &[u8], line: &mut Vec<u8>) {
    if std::str::from_utf8(url).is_ok() {
        return put_string(url, line);
    }
    let mut text = String::new();
    for chunk in url.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    put_string(text.as_bytes(), line);
}
