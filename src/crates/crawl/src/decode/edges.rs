//! Edge lists: `from TAB to`, perhaps with `TAB weight`, one link per line, of URLs or not. See `formats/edges.md`.
//!
//! A record is the run of links with one source: see [`groups`](super::groups).

use std::borrow::Cow;

use super::groups::{Edge, GroupFormat, GroupLine, Groups, weight};
use super::{Bad, FormatSpec, Names, lines, utf8};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "edges",
    about: "a graph: one link per line, grouped by source",
    by: |rules, _| std::sync::Arc::new(Groups::<EdgeListFormat>::by(rules, Names::Opaque)),
};

pub const OF_URLS: FormatSpec = FormatSpec {
    name: "url-edges",
    about: "edges, with names that are URLs",
    by: |rules, _| std::sync::Arc::new(Groups::<EdgeListFormat>::by(rules, Names::Url)),
};

pub struct EdgeListFormat;

impl GroupFormat for EdgeListFormat {
    const JOINS: bool = false;

    /// Reads a line that [`super::lines::trim`] was applied to once: a second CR or byte order mark is text.
    fn read(line: &[u8]) -> Result<GroupLine<'_>, Bad> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let Some(start) = line.iter().position(|byte| !blank(byte)) else {
            return Ok(GroupLine::Other("blank line"));
        };
        if line[start] == b'#' {
            return Ok(GroupLine::Other("comment"));
        }
        lines::check_control(line)?;
        utf8(line).map_err(Bad::utf8)?;
        let end = line.len() - line.iter().rev().take_while(|byte| blank(byte)).count();
        let line = &line[start..end];
        // Names are short: plain loops beat a search that needs setting up.
        let gap = line.iter().position(blank);
        let gap = gap.ok_or_else(|| Bad::malformed("one name only, expected `from` TAB `to`"))?;
        let (from, rest) = line.split_at(gap);
        let to = &rest[rest.iter().take_while(|byte| blank(byte)).count()..];
        let (to, rest) = to.split_at(to.iter().position(blank).unwrap_or(to.len()));
        let weight = match rest.trim_ascii_start() {
            [] => 1,
            more if more.iter().any(blank) => {
                let message = "more than three fields, expected `from` TAB `to` TAB `weight`";
                return Err(Bad::malformed(message));
            }
            field => weight(field)?,
        };
        Ok(GroupLine::Edge(Edge {
            key: from,
            from: Cow::Borrowed(from),
            to: Cow::Borrowed(to),
            weight,
            time: Ok(None),
        }))
    }
}
