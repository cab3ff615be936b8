//! Queries of links in pages that are not in UTF-8: browsers percent-encode them in the page's encoding, so servers
//! expect that. URL standard, [query state](https://url.spec.whatwg.org/#query-state) and [percent-encode after
//! encoding](https://url.spec.whatwg.org/#string-percent-encode-after-encoding).

use std::fmt::Write;

use encoding_rs::{EncoderResult, Encoding, UTF_8};

/// Returns the link with its query percent-encoded in the page's encoding. A link stays unchanged if the encoding is
/// UTF-8 or UTF-16 or the query is ASCII: the URL parser then writes the same.
pub(super) fn encoded(link: Vec<u8>, page: &'static Encoding) -> Vec<u8> {
    let encoding = page.output_encoding();
    if encoding == UTF_8 || link.is_ascii() {
        return link;
    }
    match split(&link) {
        Some((front, query, fragment)) if !query.is_ascii() => {
            let query = percent_encoded(query, encoding);
            [front.as_bytes(), query.as_bytes(), fragment.as_bytes()].concat()
        }
        _ => link,
    }
}

/// Splits a link into the part up to the `?`, the query, and the rest; `None` without a query.
fn split(link: &[u8]) -> Option<(&str, &str, &str)> {
    let link = std::str::from_utf8(link).ok()?;
    // The URL parser drops trailing blanks, but could not drop them once encoded.
    let link = link.trim_end_matches(|c| c <= ' ');
    let (before, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    let (front, query) = before.split_at(before.find('?')? + 1);
    Some((front, query, fragment))
}

fn percent_encoded(query: &str, encoding: &'static Encoding) -> String {
    // The URL parser removes these before it reads anything.
    let query = query.replace(['\t', '\n', '\r'], "");
    let mut encoder = encoding.new_encoder();
    let mut out = String::with_capacity(query.len() * 2);
    let mut rest = &query[..];
    let mut bytes = [0; 1024];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        for &byte in &bytes[..written] {
            push(byte, &mut out);
        }
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(char) => {
                let _ = write!(out, "%26%23{}%3B", u32::from(char)); // Writing to a String never fails.
            }
        }
    }
}

/// Appends a byte, escaped if the URL standard's special-query percent-encode set has it.
fn push(byte: u8, out: &mut String) {
    let stays = matches!(byte, 0x21..=0x7E) && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'');
    if stays {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "%{byte:02X}");
    }
}
