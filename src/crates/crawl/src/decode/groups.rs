//! Formats with one link per line: a record is a *group*, the run of links with one key (for example the source).
//!
//! Lines that are not links (comments, blank and malformed lines) do not end a group. Those inside a group are emitted
//! just before it without moving the offset, because a group counts as read only as a whole.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use memchr::{memchr, memrchr};

use super::lines;
use super::{
    Bad, Decoder, HELD_MAX, Link, Names, Parsed, Record, RecordTime, Sink, Skipped, Skipper,
    put_time, shown, skips_links,
};
use crate::model::keep;
use crate::rules::{InputRules, Shard};

pub trait GroupFormat: Send + Sync + 'static {
    /// True if a link's line also describes a fetch ([`GroupFormat::fetch`]).
    const TELLS: bool = false;
    /// True if links may be relative to their page ([`Decoder::joins_links`]).
    const JOINS: bool = true;
    type CsvScan: Clone + Default + Send;

    /// Returns the offset after the line's end, if `buf`, the line's next bytes, holds it.
    fn line_end(_scan: &mut Self::CsvScan, buf: &[u8]) -> Option<usize> {
        memchr(b'\n', buf).map(|lf| lf + 1)
    }

    fn read(line: &[u8]) -> Result<GroupLine<'_>, Bad>;

    /// Returns the fetch that a line describes besides its link, or instead of one ([`GroupLine::Fetch`]).
    fn fetch(_line: &[u8]) -> Option<Record<'_>> {
        None
    }

    /// Implements [`Decoder::whole`]. Searches backwards, so that most of `buf` is not read.
    fn whole(buf: &[u8]) -> usize {
        let lines_end = memrchr(b'\n', buf).map_or(0, |lf| lf + 1);
        let mut group: Option<(&[u8], usize)> = None;
        let mut end = lines_end;
        while end > 0 {
            let start = memrchr(b'\n', &buf[..end - 1]).map_or(0, |lf| lf + 1);
            if let Ok(GroupLine::Edge(edge)) = Self::read(lines::trim(&buf[start..end - 1])) {
                match group {
                    Some((key, _)) if key != edge.key => break,
                    _ => group = Some((edge.key, start)),
                }
            }
            end = start;
        }
        group.map_or(lines_end, |(_, start)| start)
    }
}

pub enum GroupLine<'a> {
    Edge(Edge<'a>),
    /// Name of something else.
    Other(&'static str),
    /// Fetch without a link, which [`GroupFormat::fetch`] returns.
    Fetch,
}

pub struct Edge<'a> {
    pub key: &'a [u8],
    pub from: Cow<'a, [u8]>,
    pub to: Cow<'a, [u8]>,
    pub weight: u32,
    /// Time at which `from` was fetched; a group's time is that of its first line.
    pub time: RecordTime,
}

/// Returns the digits of a whole number, also of one written as 3.0; `None` for any other text, and with a sign.
pub fn whole_number(text: &[u8]) -> Option<&str> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, fraction) = text.split_at(digits);
    let is_whole = match fraction {
        [] => true,
        [b'.', zeros @ ..] => !zeros.is_empty() && zeros.iter().all(|&byte| byte == b'0'),
        _ => false,
    };
    let digits = std::str::from_utf8(digits).ok();
    digits.filter(|digits| is_whole && !digits.is_empty())
}

pub fn weight(field: &[u8]) -> Result<u32, Bad> {
    whole_number(field)
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| {
            Bad::malformed(format!(
                "{:?} is not a weight, a whole number from 0 to {}",
                shown(field),
                u32::MAX
            ))
        })
}

pub struct Groups<G> {
    names: Names,
    shard: Option<Shard>,
    format: PhantomData<G>,
}

impl<G> Groups<G> {
    pub fn by(rules: &InputRules, names: Names) -> Groups<G> {
        Groups {
            names,
            shard: rules.shard,
            format: PhantomData,
        }
    }
}

impl<G: GroupFormat> Decoder for Groups<G> {
    fn names(&self) -> Names {
        self.names
    }

    fn joins_links(&self) -> bool {
        G::JOINS
    }

    /// Stops before the last group, which may continue.
    fn whole(&self, buf: &[u8]) -> usize {
        G::whole(buf)
    }

    fn is_cut(&self, mut rest: &[u8]) -> bool {
        while let Some(end) = G::line_end(&mut G::CsvScan::default(), rest) {
            rest = &rest[end..];
        }
        !rest.is_empty()
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(LinkGroupSkipper::<G> {
            key: None,
            long: None,
        })
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut gathering = Grouper::<G> {
            groups: self,
            sink,
            chunk,
            done: 0,
            key: &[],
            group: Record::default(),
            group_start: 0,
            group_end: 0,
            skips: false,
            inside: 0,
            after: 0,
            after_end: 0,
        };
        for (text, line) in lines_of::<G>(chunk) {
            let more = match G::read(text) {
                Ok(GroupLine::Edge(edge)) => gathering.edge(edge, line),
                read => gathering.apart(read, text, line.end),
            };
            if !more {
                return;
            }
        }
        gathering.flush();
    }
}

pub fn lines_of<G: GroupFormat>(chunk: &[u8]) -> impl Iterator<Item = (&[u8], Range<usize>)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = chunk.get(start..).filter(|rest| !rest.is_empty())?;
        let end = G::line_end(&mut G::CsvScan::default(), rest);
        let text = end.map_or(rest, |end| &rest[..end - 1]);
        let line = start..start + end.unwrap_or(rest.len());
        start = line.end;
        Some((lines::trim(text), line))
    })
}

/// Maximum number of lines inside a group that are not links; they are emitted with the group, all at once.
const APART_MAX: usize = 1 << 16;

/// Collects lines into groups and emits them. Lines that are not links are only counted, and read again when they are
/// emitted: there may be far more of them than links.
struct Grouper<'s, 'c, 'f, G> {
    groups: &'s Groups<G>,
    sink: &'s mut Sink<'f>,
    chunk: &'c [u8],
    /// Offset passed to the sink last.
    done: usize,
    /// Key of the open group; a group without links is not open.
    key: &'c [u8],
    group: Record<'c>,
    group_start: usize,
    group_end: usize,
    /// True if the group's page belongs to another shard: only its first link is kept, which marks the group as open.
    skips: bool,
    /// Number of non-link lines before the group's last link.
    inside: usize,
    /// Number of non-link lines after the group's last link.
    after: usize,
    /// Offset at which these lines end.
    after_end: usize,
}

impl<'c, G: GroupFormat> Grouper<'_, 'c, '_, G> {
    fn edge(&mut self, edge: Edge<'c>, line: Range<usize>) -> bool {
        let open = !self.group.links.is_empty();
        if open && self.key == edge.key {
            self.inside += std::mem::take(&mut self.after);
        } else {
            if !self.flush() {
                return false;
            }
            self.key = edge.key;
            self.skips = skips_links(self.groups.shard, &edge.from, self.groups.names);
            self.group.url = edge.from;
            put_time(&mut self.group, edge.time);
            self.group_start = line.start;
        }
        if self.group.links.is_empty() || !self.skips {
            let link = Link {
                weight: edge.weight,
                ..Link::to(edge.to)
            };
            keep(&mut self.group.links, link);
        }
        self.group_end = line.end;
        true
    }

    fn apart(&mut self, read: Result<GroupLine<'_>, Bad>, text: &[u8], end: usize) -> bool {
        if self.group.links.is_empty() {
            self.done = end;
            return self.emit(read, text);
        }
        self.after += 1;
        self.after_end = end;
        true
    }

    /// Emits a line as an entry; emits nothing for a line that holds only a link.
    fn emit(&mut self, read: Result<GroupLine<'_>, Bad>, text: &[u8]) -> bool {
        let parsed = match read {
            Ok(GroupLine::Other(kind)) => Parsed::Other { kind },
            Err(bad) => bad.into(),
            Ok(GroupLine::Edge(_)) if !G::TELLS => return true,
            Ok(GroupLine::Edge(_) | GroupLine::Fetch) => {
                return G::fetch(text)
                    .is_none_or(|record| (self.sink)(self.done, Parsed::Record(&record)));
            }
        };
        (self.sink)(self.done, parsed)
    }

    /// Emits the open group with its lines; returns `false` if the sink stops.
    fn flush(&mut self) -> bool {
        if self.group.links.is_empty() {
            return true;
        }
        let (inside, after) = (
            std::mem::take(&mut self.inside),
            std::mem::take(&mut self.after),
        );
        let went_on = if inside > APART_MAX {
            self.done = self.group_end;
            let message =
                format!("{inside} lines inside its group are no links, more than {APART_MAX}");
            (self.sink)(self.done, Bad::malformed(message).into())
        } else {
            let group = self.group_start..self.group_end;
            ((inside == 0 && !G::TELLS) || self.hand_out(group, false)) && {
                self.done = self.group_end;
                (self.sink)(self.done, Parsed::Record(&self.group))
            }
        };
        self.group.links.clear();
        went_on && (after == 0 || self.hand_out(self.group_end..self.after_end, true))
    }

    /// Emits the lines of a part of the chunk; of a link's line, only the fetch. The offset advances if `moves`.
    fn hand_out(&mut self, part: Range<usize>, moves: bool) -> bool {
        let chunk = self.chunk;
        for (text, line) in lines_of::<G>(&chunk[part.clone()]) {
            if moves {
                self.done = part.start + line.end;
            }
            if !self.emit(G::read(text), text) {
                return false;
            }
        }
        true
    }
}

/// Skips a group. A line longer than [`HELD_MAX`] is skipped unparsed with the group, or alone if it comes first.
struct LinkGroupSkipper<G: GroupFormat> {
    key: Option<Vec<u8>>,
    long: Option<G::CsvScan>,
}

impl<G: GroupFormat> Skipper for LinkGroupSkipper<G> {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        let mut at = 0;
        while at < buf.len() {
            let rest = &buf[at..];
            let mut scan = self.long.clone().unwrap_or_default();
            let line = match G::line_end(&mut scan, rest) {
                Some(end) => end,
                None if at_end => rest.len(),
                None if self.long.is_some() || rest.len() > HELD_MAX => {
                    self.long = Some(scan);
                    return Skipped::Inside(buf.len());
                }
                None => return Skipped::Inside(at),
            };
            let long = self.long.take().is_some() || line > HELD_MAX;
            if long && self.key.is_none() {
                return Skipped::Ended(at + line);
            }
            if !long && !self.belongs(rest[..line].strip_suffix(b"\n").unwrap_or(rest)) {
                return Skipped::Ended(at);
            }
            at += line;
        }
        if at_end {
            Skipped::Ended(at)
        } else {
            Skipped::Inside(at)
        }
    }
}

impl<G: GroupFormat> LinkGroupSkipper<G> {
    /// Returns whether the line belongs to the group, whose key is that of the first link.
    fn belongs(&mut self, line: &[u8]) -> bool {
        let Ok(GroupLine::Edge(edge)) = G::read(lines::trim(line)) else {
            return true;
        };
        edge.key == self.key.get_or_insert_with(|| edge.key.to_vec())
    }
}
