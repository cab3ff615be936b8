//! Outlinks that Heritrix lists in `metadata` records: lines `outlink: URL hop context`.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::decode::Link;
use crate::decode::frame::{WarcHeader, without_cr};
use crate::model::keep;

const NAME: &[u8] = b"outlink:";

/// Returns whether a metadata record lists any outlinks.
pub(super) fn are_in(block: &[u8]) -> bool {
    lines(block).next().is_some()
}

/// Adds the links of a record in a capture's tail. `listed` stays `None` until a record lists outlinks; otherwise
/// nothing was looked for.
pub(super) fn add<'a>(
    header: &WarcHeader<'a>,
    block: &'a [u8],
    listed: &mut Option<Vec<Link<'a>>>,
) {
    if !header.kind.eq_ignore_ascii_case(b"metadata") {
        return;
    }
    for line in lines(block) {
        let links = listed.get_or_insert_default();
        if let Some(url) = link(line) {
            keep(links, Cow::Borrowed(url));
        }
    }
}

/// Yields the values of the `outlink` lines.
fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(block, NAME).filter_map(|at| {
        let at_line_start = at == 0 || block[at - 1] == b'\n';
        let rest = &block[at + NAME.len()..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        at_line_start.then(|| without_cr(line).trim_ascii_start())
    })
}

/// Returns the target if a reader of the page could follow it: hop `L` (link) or `R` (refresh). A link found in an
/// attribute must be of `a` or `area`, as in HTML: Heritrix reports forms and options as `L`, too. `E` are embedded
/// resources; `X` and `I` are guesses.
fn link(line: &[u8]) -> Option<&[u8]> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (url, hop, context) = (parts.next()?, parts.next()?, parts.next().unwrap_or(b""));
    let counts = match hop {
        b"L" => match memmem::find(context, b"/@") {
            Some(slash) => {
                let element = &context[..slash];
                element.eq_ignore_ascii_case(b"a") || element.eq_ignore_ascii_case(b"area")
            }
            None => true,
        },
        b"R" => true,
        _ => false,
    };
    (counts && !url.is_empty()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts from Heritrix's own archives, and invented ones.
    #[test]
    fn which_lines_are_links() {
        let block = b"via: http://v/\r\noutlink: http://a/ L a/@href\r\n\
            outlink: http://b/ L AREA/@HREF\noutlink: http://c/ L option/@value\n\
            outlink: http://d/ E img/@src\noutlink: http://e/ X =JS_MISC\noutlink: http://f/ I =INFERRED_MISC\n\
            outlink: http://g/ R meta\noutlink: http://h/ L =NAVLINK_MISC\noutlink: http://i/ L\n\
            x outlink: http://j/ L a/@href\noutlink:  L a/@href\noutlink: http://k/\noutlink: http://l/ L a/@href";
        let header = WarcHeader {
            kind: b"metadata",
            ..WarcHeader::default()
        };
        let mut listed = None;
        add(&header, block, &mut listed);
        let urls: Vec<_> = listed.unwrap().into_iter().map(|link| link.url).collect();
        let expected = [
            "http://a/",
            "http://b/",
            "http://g/",
            "http://h/",
            "http://i/",
            "http://l/",
        ];
        assert_eq!(urls, expected.map(|url| Cow::Borrowed(url.as_bytes())));
    }

    #[test]
    fn none_listed_is_not_an_empty_list() {
        let header = WarcHeader {
            kind: b"metadata",
            ..WarcHeader::default()
        };
        for (block, lists) in [
            (&b"via: http://v/\r\nfetchTimeMs: 3\r\n"[..], false),
            (b"outlink: http://a/ E img/@src\r\n", true),
        ] {
            let mut listed = None;
            add(&header, block, &mut listed);
            assert_eq!(listed, lists.then(Vec::new));
            assert_eq!(are_in(block), lists);
        }
    }
}
