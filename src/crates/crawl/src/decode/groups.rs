//! Formats with one link per line: a record is a *group*, the run of links with one key (for example the source).
//!
//! Lines that are not links (comments, blank and malformed lines) do not end a group. Those inside a group are emitted
//! just before it without moving the offset, because it counts as read only as a whole.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use super::csv_links::CsvScan;
use super::lines::{self, TextLine};
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
    /// True if lines are those of CSV, in which a line feed may be inside quotes.
    const IS_CSV: bool = false;

    fn read(line: &[u8]) -> Result<GroupLine<'_>, Bad>;

    /// Returns the fetch that a line describes besides its link, or instead of one ([`GroupLine::Fetch`]).
    fn fetch(_line: &[u8]) -> Option<Record<'_>> {
        None
    }
}

/// Returns the offset after the line's end, if `buf`, the line's next bytes, holds it.
fn line_end<G: GroupFormat>(scan: &mut CsvScan, buf: &[u8]) -> Option<usize> {
    if G::IS_CSV {
        scan.run(buf)
    } else {
        lines::line_end(buf)
    }
}

pub enum GroupLine<'a> {
    Edge(Edge<'a>),
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

/// Returns the digits of a whole number without sign, also of one written as 3.0.
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

    fn whole(&self, buf: &[u8]) -> usize {
        let mut group: Option<(&[u8], usize)> = None;
        // Stops before the last group, which may continue.
        if G::IS_CSV {
            // Only a scan from the start finds where lines of CSV end.
            let mut lines_end = 0;
            for line in lines_of::<G>(buf).take_while(|line| line.terminated) {
                if let Ok(GroupLine::Edge(edge)) = G::read(line.text)
                    && group.is_none_or(|(key, _)| key != edge.key)
                {
                    group = Some((edge.key, line.start));
                }
                lines_end = line.end;
            }
            return group.map_or(lines_end, |(_, start)| start);
        }
        // A search backwards leaves most lines unread.
        let lines_end = lines::whole(buf);
        let mut end = lines_end;
        while end > 0 {
            let start = lines::whole(&buf[..end - 1]);
            if let Ok(GroupLine::Edge(edge)) = G::read(lines::trim(&buf[start..end - 1])) {
                match group {
                    Some((key, _)) if key != edge.key => break,
                    _ => group = Some((edge.key, start)),
                }
            }
            end = start;
        }
        group.map_or(lines_end, |(_, start)| start)
    }

    fn is_cut(&self, rest: &[u8]) -> bool {
        lines_of::<G>(rest).any(|line| !line.terminated)
    }

    /// Returns a skipper of a group. A line longer than [`HELD_MAX`] is skipped unparsed.
    fn skipper(&self) -> Skipper {
        let (mut group, mut long) = (None, None::<CsvScan>);
        Box::new(move |buf, at_end| {
            let mut at = 0;
            while at < buf.len() {
                let rest = &buf[at..];
                let mut scan = long.unwrap_or_default();
                let line = match line_end::<G>(&mut scan, rest) {
                    Some(end) => end,
                    None if at_end => rest.len(),
                    None if long.is_some() || rest.len() > HELD_MAX => {
                        long = Some(scan);
                        return Skipped::Inside(buf.len());
                    }
                    None => return Skipped::Inside(at),
                };
                let is_long = long.take().is_some() || line > HELD_MAX;
                if is_long && group.is_none() {
                    return Skipped::Ended(at + line);
                }
                let text = lines::trim(rest[..line].strip_suffix(b"\n").unwrap_or(rest));
                // The group's key is that of the first link; lines that are no links belong to it.
                if !is_long
                    && let Ok(GroupLine::Edge(edge)) = G::read(text)
                    && edge.key != group.get_or_insert_with(|| edge.key.to_vec())
                {
                    return Skipped::Ended(at);
                }
                at += line;
            }
            if at_end {
                Skipped::Ended(at)
            } else {
                Skipped::Inside(at)
            }
        })
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut grouper = Grouper::<G> {
            sink,
            chunk,
            done: 0,
            key: &[],
            group: Record::default(),
            span: 0..0,
            apart: 0,
            inside: 0,
            format: PhantomData,
        };
        // True if the group's page belongs to another shard: only its first link is kept, which marks it as open.
        let mut skips = false;
        for line in lines_of::<G>(chunk) {
            let is_open = !grouper.group.links.is_empty();
            let edge = match G::read(line.text) {
                Ok(GroupLine::Edge(edge)) => edge,
                _ if is_open => {
                    grouper.apart += 1;
                    continue;
                }
                read => {
                    grouper.done = line.end;
                    if !grouper.emit(read, line.text) {
                        return;
                    }
                    continue;
                }
            };
            if is_open && grouper.key == edge.key {
                grouper.inside = grouper.apart;
            } else {
                if !grouper.flush(line.start) {
                    return;
                }
                skips = skips_links(self.shard, &edge.from, self.names);
                (grouper.key, grouper.group.url) = (edge.key, edge.from);
                put_time(&mut grouper.group, edge.time);
                grouper.span.start = line.start;
            }
            let links = &mut grouper.group.links;
            if links.is_empty() || !skips {
                let link = Link {
                    weight: edge.weight,
                    ..Link::to(edge.to)
                };
                keep(links, link);
            }
            grouper.span.end = line.end;
        }
        grouper.flush(chunk.len());
    }
}

pub fn lines_of<G: GroupFormat>(chunk: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    lines::lines_by(chunk, |rest| line_end::<G>(&mut CsvScan::default(), rest))
}

/// Maximum number of lines inside a group that are not links; they are emitted with the group, all at once.
const APART_MAX: usize = 1 << 16;

/// Emits groups and the lines around their links, which are read again when they are emitted.
struct Grouper<'s, 'c, 'f, G> {
    sink: &'s mut Sink<'f>,
    chunk: &'c [u8],
    /// Offset passed to the sink last.
    done: usize,
    /// Key of the open group; a group without links is not open.
    key: &'c [u8],
    group: Record<'c>,
    /// Part of the chunk from the group's first link to its last.
    span: Range<usize>,
    /// Number of non-link lines since the group's first link.
    apart: usize,
    /// Number of those before the group's last link.
    inside: usize,
    format: PhantomData<G>,
}

impl<G: GroupFormat> Grouper<'_, '_, '_, G> {
    fn emit(&mut self, read: Result<GroupLine<'_>, Bad>, text: &[u8]) -> bool {
        let parsed = match read {
            Ok(GroupLine::Other(kind)) => Parsed::Other { kind },
            Err(bad) => bad.into(),
            Ok(GroupLine::Edge(_) | GroupLine::Fetch) => {
                return G::fetch(text)
                    .is_none_or(|record| (self.sink)(self.done, Parsed::Record(&record)));
            }
        };
        (self.sink)(self.done, parsed)
    }

    /// Emits the open group, with its lines up to an offset; returns `false` if the sink stops.
    fn flush(&mut self, until: usize) -> bool {
        if self.group.links.is_empty() {
            return true;
        }
        let (span, inside) = (self.span.clone(), self.inside);
        (self.apart, self.inside) = (0, 0);
        let went_on = if inside > APART_MAX {
            self.done = span.end;
            let message =
                format!("{inside} lines inside its group are no links, more than {APART_MAX}");
            (self.sink)(self.done, Bad::malformed(message).into())
        } else {
            let has_lines = inside > 0 || G::TELLS;
            (!has_lines || self.hand_out(span.clone(), false)) && {
                self.done = span.end;
                (self.sink)(self.done, Parsed::Record(&self.group))
            }
        };
        self.group.links.clear();
        went_on && self.hand_out(span.end..until, true)
    }

    /// Emits the lines of a part of the chunk. The offset advances if `moves`.
    fn hand_out(&mut self, part: Range<usize>, moves: bool) -> bool {
        let chunk = self.chunk;
        lines_of::<G>(&chunk[part.clone()]).all(|line| {
            if moves {
                self.done = part.start + line.end;
            }
            self.emit(G::read(line.text), line.text)
        })
    }
}
