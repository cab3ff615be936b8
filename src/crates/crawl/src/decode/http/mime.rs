//! Media type of a body, as browsers determine it: from `Content-Type` ([Fetch standard, "extract a MIME
//! type"](https://fetch.spec.whatwg.org/#concept-header-extract-mime-type)), or from its first bytes ([MIME Sniffing,
//! 7.1](https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type)). Unlike in the standard,
//! commas and semicolons in quotes separate, too: no charset has any.

use std::borrow::Cow;

use crate::decode::html::Markup;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MediaType {
    essence: Vec<u8>,
    pub charset: Option<Vec<u8>>,
}

impl MediaType {
    /// Returns the media type that the header fields name; `None` if they name none.
    pub fn extract(values: &[Cow<'_, [u8]>]) -> Option<MediaType> {
        let (mut found, mut charset): (Option<MediaType>, _) = (None, None);
        let values = values
            .iter()
            .flat_map(|value| value.split(|&byte| byte == b','));
        for mut next in values.filter_map(MediaType::parse) {
            let is_same = found.is_some_and(|found| found.essence == next.essence);
            if !is_same {
                charset.clone_from(&next.charset);
            } else if next.charset.is_none() {
                next.charset.clone_from(&charset);
            }
            found = Some(next);
        }
        let is_unknown = |found: &MediaType| {
            matches!(
                &found.essence[..],
                b"unknown/unknown" | b"application/unknown"
            )
        };
        found.filter(|found| !is_unknown(found))
    }

    /// [Parses a MIME type](https://mimesniff.spec.whatwg.org/#parsing-a-mime-type); `None` also for `*/*`.
    fn parse(value: &[u8]) -> Option<MediaType> {
        let mut parts = value.split(|&byte| byte == b';');
        let essence = parts.next()?.trim_ascii();
        let slash = essence.iter().position(|&byte| byte == b'/')?;
        let (kind, subtype) = (&essence[..slash], &essence[slash + 1..]);
        let is_token = |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| is_token(byte));
        if !is_token(kind) || !is_token(subtype) || essence == b"*/*" {
            return None;
        }
        let charset = parts.find_map(|part| {
            let equals = part.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (&part[..equals], part[equals + 1..].trim_ascii_end());
            let is_charset = name.trim_ascii_start().eq_ignore_ascii_case(b"charset");
            let value = match value.strip_prefix(b"\"") {
                Some(quoted) => quoted.split(|&byte| byte == b'"').next()?,
                None => value,
            };
            (is_charset && !value.is_empty()).then(|| value.to_vec())
        });
        Some(MediaType {
            essence: essence.to_ascii_lowercase(),
            charset,
        })
    }

    /// Returns the markup of a body of this type; `None` if it has no links.
    pub fn markup(&self) -> Option<Markup> {
        match &self.essence[..] {
            b"text/html" => Some(Markup::Html),
            b"application/xhtml+xml" => Some(Markup::Xhtml),
            b"text/xml" | b"application/xml" => Some(Markup::Xml),
            other => other.ends_with(b"+xml").then_some(Markup::Xml),
        }
    }
}

const LOOKED_AT: usize = 1445;

/// Beginnings of HTML, each followed by a blank or a `>`.
const OF_HTML: [&[u8]; 17] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<!--",
];

/// Guesses the markup of a body without a type. Unlike in the standard, a byte order mark may come first.
pub(super) fn sniff(body: &[u8]) -> Option<Markup> {
    let body = &body[..body.len().min(LOOKED_AT)];
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let body = body.trim_ascii_start();
    let is_html = OF_HTML.iter().any(|start| {
        body.split_at_checked(start.len())
            .is_some_and(|(front, rest)| {
                front.eq_ignore_ascii_case(start) && matches!(rest.first(), Some(b' ' | b'>'))
            })
    });
    if is_html {
        return Some(Markup::Html);
    }
    body.starts_with(b"<?xml").then_some(Markup::Xml)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(values: &[&str]) -> Option<(String, Option<String>)> {
        let values: Vec<Cow<'_, [u8]>> = values.iter().map(|v| v.as_bytes().into()).collect();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        MediaType::extract(&values).map(|found| (text(found.essence), found.charset.map(text)))
    }

    /// The first eight are the Fetch standard's examples; the others follow its algorithm.
    #[test]
    fn types_are_extracted_as_in_the_fetch_standard() {
        for (values, expected) in [
            (
                &["text/plain;charset=gbk, text/html"][..],
                Some(("text/html", None)),
            ),
            (
                &["text/html;charset=gbk;a=b, text/html;x=y"],
                Some(("text/html", Some("gbk"))),
            ),
            (
                &["text/html;charset=gbk;a=b", "text/html;x=y"],
                Some(("text/html", Some("gbk"))),
            ),
            (
                &["text/html;charset=gbk", "x/x", "text/html;x=y"],
                Some(("text/html", None)),
            ),
            (&["text/html", "cannot-parse"], Some(("text/html", None))),
            (&["text/html", "*/*"], Some(("text/html", None))),
            (&["text/html", ""], Some(("text/html", None))),
            (&["cannot-parse"], None),
            (&[], None),
            (&["*/*"], None),
            (&["unknown/unknown"], None),
            (&["application/unknown"], None),
            (&["; charset=gbk"], None),
            (&["text/html text/html"], None),
            (&["\ttext/HTML \t"], Some(("text/html", None))),
            (
                &["text/html ; x=y; CharSet=\"EUC-JP\" ; z"],
                Some(("text/html", Some("EUC-JP"))),
            ),
            (
                &["text/html; charset=\"gbk\"x"],
                Some(("text/html", Some("gbk"))),
            ),
            (&["text/html; charset="], Some(("text/html", None))),
            (
                &["text/html;charset=one;charset=two"],
                Some(("text/html", Some("one"))),
            ),
        ] {
            let expected = expected.map(|(essence, charset): (&str, Option<&str>)| {
                (essence.to_owned(), charset.map(str::to_owned))
            });
            assert_eq!(extract(values), expected, "{values:?}");
        }
    }

    #[test]
    fn xml_types() {
        for (value, markup) in [
            ("text/html", Some(Markup::Html)),
            ("application/xhtml+xml", Some(Markup::Xhtml)),
            ("text/xml", Some(Markup::Xml)),
            ("application/xml;charset=utf-8", Some(Markup::Xml)),
            ("application/vnd.wap.xhtml+xml", Some(Markup::Xml)),
            ("text/plain", None),
            ("application/json", None),
        ] {
            let found = MediaType::extract(&[value.as_bytes().into()]);
            assert_eq!(found.unwrap().markup(), markup, "{value}");
        }
    }

    /// Tests the standard's table row by row, and near misses.
    #[test]
    fn html_is_recognised_by_the_table_of_mime_sniffing() {
        for start in [
            "<!DOCTYPE HTML",
            "<HTML",
            "<HEAD",
            "<SCRIPT",
            "<IFRAME",
            "<H1",
            "<DIV",
            "<FONT",
            "<TABLE",
            "<A",
            "<STYLE",
            "<TITLE",
            "<B",
            "<BODY",
            "<BR",
            "<P",
            "<!--",
        ] {
            let lower = start.to_ascii_lowercase();
            for text in [
                format!("{start}>"),
                format!("{lower} x"),
                format!("\t\n\x0C\r {start} "),
                format!("\u{FEFF}{start}>"),
            ] {
                assert_eq!(sniff(text.as_bytes()), Some(Markup::Html), "{text:?}");
            }
            for text in [
                start.to_owned(),
                format!("{start}\n"),
                format!("{start}/>"),
                format!("x{start}>"),
                format!("{}{start}>", " ".repeat(LOOKED_AT)),
            ] {
                assert_eq!(sniff(text.as_bytes()), None, "{text:?}");
            }
        }
        assert_eq!(sniff(b" \n<?xml version"), Some(Markup::Xml));
        for text in [
            "", "<", "<?XML", "<h2>", "<span>", "text", "%PDF-1.4", "<htmlx>",
        ] {
            assert_eq!(sniff(text.as_bytes()), None, "{text}");
        }
    }
}
