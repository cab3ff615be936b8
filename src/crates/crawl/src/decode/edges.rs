//! Edge lists: `from TAB to`, or `from TAB to TAB weight`, one link per line, names opaque or URLs. Specified in
//! `formats/edges.md`.
//!
//! A record is the run of links with one source: see [`groups`](super::groups).

use std::borrow::Cow;

use super::groups::{Edge, GroupFormat, GroupLine, Groups, NonLink, weight};
use super::{Bad, FormatSpec, Names, lines, utf8};

/// Edge lists with opaque names.
pub const FORMAT: FormatSpec = FormatSpec {
    name: "edges",
    about: "a graph: one link per line, grouped by source",
    is_grouped: true,
    caveat: None,
    usual: &Groups::<EdgeListFormat>::new(Names::Opaque),
    by: |rules, _| std::sync::Arc::new(Groups::<EdgeListFormat>::by(rules, Names::Opaque)),
};

/// Edge lists with URLs as names.
pub const OF_URLS: FormatSpec = FormatSpec {
    name: "url-edges",
    about: "edges, with names that are URLs",
    is_grouped: true,
    caveat: None,
    usual: &Groups::<EdgeListFormat>::new(Names::Url),
    by: |rules, _| std::sync::Arc::new(Groups::<EdgeListFormat>::by(rules, Names::Url)),
};

/// Line format of edge lists.
pub struct EdgeListFormat;

impl GroupFormat for EdgeListFormat {
    const JOINS: bool = false;
    type CsvScan = ();

    /// Reads a line that [`super::lines::trim`] was applied to once: a second CR or byte order mark is text.
    fn read(line: &[u8]) -> GroupLine<'_> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let Some(start) = line.iter().position(|byte| !blank(byte)) else {
            return GroupLine::Apart(NonLink::Other("blank line"));
        };
        if line[start] == b'#' {
            return GroupLine::Apart(NonLink::Other("comment"));
        }
        if let Some(at) = lines::control(line) {
            return GroupLine::Apart(NonLink::Bad(lines::control_byte(line, at)));
        }
        if let Err(error) = utf8(line) {
            return GroupLine::Apart(NonLink::Bad(Bad::utf8(error)));
        }
        let malformed = |message: &str| GroupLine::Apart(NonLink::Bad(Bad::malformed(message)));
        let end = line.len() - line.iter().rev().take_while(|byte| blank(byte)).count();
        let line = &line[start..end];
        // Names are short: plain loops beat a search that needs setting up.
        let Some(gap) = line.iter().position(blank) else {
            return malformed("one name only, expected `from` TAB `to`");
        };
        let (from, rest) = line.split_at(gap);
        let to = &rest[rest.iter().take_while(|byte| blank(byte)).count()..];
        let (to, rest) = to.split_at(to.iter().position(blank).unwrap_or(to.len()));
        let weight = match rest.trim_ascii_start() {
            [] => 1,
            more if more.iter().any(blank) => {
                return malformed("more than three fields, expected `from` TAB `to` TAB `weight`");
            }
            field => match weight(field) {
                Ok(weight) => weight,
                Err(bad) => return GroupLine::Apart(NonLink::Bad(bad)),
            },
        };
        GroupLine::Edge(Edge {
            key: from,
            from: Cow::Borrowed(from),
            to: Cow::Borrowed(to),
            weight,
            fetched_at: None,
            bad_time: None,
        })
    }
}
