//! Adjacency lists: `node TAB successor TAB ...`, one node per line, opaque or a URL. See `formats/adjacency.md`.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memchr_iter;

use super::{
    Bad, Decoder, FormatSpec, Names, ReadResult, Record, Sink, lines, parsed, skips_links, utf8,
};
use crate::model::keep;
use crate::rules::{InputRules, Shard};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "adjacency",
    about: "a graph: a node and its successors, separated by tabs",
    by: |rules, _| Adjacency::by(rules, Names::Opaque),
};

pub const OF_URLS: FormatSpec = FormatSpec {
    name: "url-adjacency",
    about: "adjacency, with names that are URLs",
    by: |rules, _| Adjacency::by(rules, Names::Url),
};

struct Adjacency {
    names: Names,
    shard: Option<Shard>,
}

impl Adjacency {
    fn by(rules: &InputRules, names: Names) -> Arc<dyn Decoder> {
        Arc::new(Adjacency {
            names,
            shard: rules.shard,
        })
    }
}

impl Decoder for Adjacency {
    fn names(&self) -> Names {
        self.names
    }

    fn joins_links(&self) -> bool {
        false
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        for line in lines::lines(chunk) {
            let read = self.read(line.text, &mut record);
            if !sink(line.end, parsed(read, &record)) {
                return;
            }
        }
    }
}

impl Adjacency {
    fn read<'a>(&self, line: &'a [u8], record: &mut Record<'a>) -> ReadResult {
        if line.iter().all(|&byte| byte == b' ') {
            return Ok(Some("blank line"));
        }
        lines::check_control(line)?;
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
        Ok(None)
    }
}
