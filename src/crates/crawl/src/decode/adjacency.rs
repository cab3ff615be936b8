//! Adjacency lists: `node TAB successor TAB ...`, one node per line, names opaque or URLs. Specified in
//! `formats/adjacency.md`.

use std::borrow::Cow;

use memchr::memchr_iter;

use super::lines::{self, LineSkipper};
use super::{Bad, Decoder, FormatSpec, Names, Parsed, Record, Sink, Skipper, skips_links, utf8};
use crate::model::keep;
use crate::rules::{InputRules, Shard};

/// Adjacency lists with opaque names.
pub const FORMAT: FormatSpec = FormatSpec {
    name: "adjacency",
    about: "a graph: a node and its successors, separated by tabs",
    is_grouped: false,
    caveat: None,
    usual: &Adjacency::new(Names::Opaque),
    by: |rules, _| std::sync::Arc::new(Adjacency::by(rules, Names::Opaque)),
};

/// Adjacency lists with URLs as names.
pub const OF_URLS: FormatSpec = FormatSpec {
    name: "url-adjacency",
    about: "adjacency, with names that are URLs",
    is_grouped: false,
    caveat: None,
    usual: &Adjacency::new(Names::Url),
    by: |rules, _| std::sync::Arc::new(Adjacency::by(rules, Names::Url)),
};

/// Decoder of adjacency lists.
pub struct Adjacency {
    names: Names,
    shard: Option<Shard>,
}

impl Adjacency {
    /// Returns a decoder for names of this kind.
    pub const fn new(names: Names) -> Adjacency {
        Adjacency { names, shard: None }
    }

    fn by(rules: &InputRules, names: Names) -> Adjacency {
        Adjacency {
            names,
            shard: rules.shard,
        }
    }
}

impl Decoder for Adjacency {
    fn names(&self) -> Names {
        self.names
    }

    fn joins_links(&self) -> bool {
        false
    }

    fn whole(&self, buf: &[u8]) -> usize {
        lines::whole(buf)
    }

    fn is_cut(&self, rest: &[u8]) -> bool {
        !rest.ends_with(b"\n")
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(LineSkipper)
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        for line in lines::lines(chunk) {
            let parsed = if line.text.iter().all(|&byte| byte == b' ') {
                Parsed::Other { kind: "blank line" }
            } else {
                match self.read(line.text, &mut record) {
                    Ok(()) => Parsed::Record(&record),
                    Err(bad) => bad.into(),
                }
            };
            if !sink(line.end, parsed) {
                return;
            }
        }
    }
}

impl Adjacency {
    fn read<'a>(&self, line: &'a [u8], record: &mut Record<'a>) -> Result<(), Bad> {
        if let Some(at) = lines::control(line) {
            return Err(lines::control_byte(line, at));
        }
        utf8(line).map_err(Bad::utf8)?;
        // Writers that put a tab after the node leave one there if it has no successors.
        let line = line.strip_suffix(b"\t").unwrap_or(line);
        record.links.clear();
        let mut start = 0;
        for tab in memchr_iter(b'\t', line).chain([line.len()]) {
            let name = &line[start..tab];
            if name.is_empty() {
                return Err(Bad::malformed(format!("empty name, at byte {}", start + 1)));
            }
            let url = Cow::Borrowed(name);
            match start {
                0 => {
                    record.url = url;
                    if skips_links(self.shard, name, self.names) {
                        break;
                    }
                }
                _ => keep(&mut record.links, url),
            }
            start = tab + 1;
        }
        Ok(())
    }
}
