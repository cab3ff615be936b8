//! Edge lists: `from TAB to`, one link a line, names opaque. Specified in `formats/edges.md`.
//!
//! A record is a *group*: the run of links with one source. Lines that are no link (comments,
//! blank and malformed ones) do not end it. Those inside it are handed out just before it,
//! without moving the offset: the group counts as read only as a whole.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memrchr};

use super::lines;
use super::record::keep;
use super::{Bad, Decoder, HELD_MAX, Names, Parsed, Record, Sink, Skipped, Skipper};

/// See the module.
pub(super) struct Edges;

impl Decoder for Edges {
    fn names(&self) -> Names {
        Names::Opaque
    }

    /// Up to the first line of the last group: more of it may follow.
    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if at_end {
            return buf.len();
        }
        let lines_end = memrchr(b'\n', buf).map_or(0, |lf| lf + 1);
        let mut group: Option<(&[u8], usize)> = None;
        let mut end = lines_end;
        while end > 0 {
            let start = memrchr(b'\n', &buf[..end - 1]).map_or(0, |lf| lf + 1);
            if let Line::Edge(from, _) = read(lines::trim(&buf[start..end - 1])) {
                match group {
                    Some((source, _)) if source != from => break,
                    _ => group = Some((from, start)),
                }
            }
            end = start;
        }
        group.map_or(lines_end, |(_, start)| start)
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(GroupSkipper::default())
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut groups = Groups {
            sink,
            chunk,
            done: 0,
            group: Record::default(),
            group_start: 0,
            group_end: 0,
            inside: 0,
            after: 0,
            after_end: 0,
        };
        let mut start = 0;
        for line in lines::lines(chunk) {
            let more = match read(line.text) {
                Line::Edge(from, to) => groups.edge(from, to, start..line.end),
                Line::Noise(noise) => groups.noise(noise, line.end),
            };
            start = line.end;
            if !more {
                return;
            }
        }
        groups.flush();
    }
}

/// One line.
enum Line<'a> {
    Edge(&'a [u8], &'a [u8]),
    Noise(Noise),
}

/// What a line that is no link is.
enum Noise {
    Other(&'static str),
    Bad(Bad),
}

impl From<Noise> for Parsed<'_, '_> {
    fn from(noise: Noise) -> Self {
        match noise {
            Noise::Other(kind) => Parsed::Other { kind },
            Noise::Bad(bad) => bad.into(),
        }
    }
}

/// Reads a line that [`lines::trim`] went over, once: a second CR or byte order mark is text.
fn read(line: &[u8]) -> Line<'_> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = line.iter().position(|byte| !blank(byte)) else {
        return Line::Noise(Noise::Other("blank line"));
    };
    if line[start] == b'#' {
        return Line::Noise(Noise::Other("comment"));
    }
    if let Err(error) = std::str::from_utf8(line) {
        return Line::Noise(Noise::Bad(Bad::utf8(error)));
    }
    let malformed = |said: &str| Line::Noise(Noise::Bad(Bad::malformed(said)));
    let end = line.len() - line.iter().rev().take_while(|byte| blank(byte)).count();
    let line = &line[start..end];
    // Names are short: plain loops beat a search that has to be set up.
    let Some(gap) = line.iter().position(blank) else {
        return malformed("one name only, expected `from` TAB `to`");
    };
    let (from, rest) = line.split_at(gap);
    let to = &rest[rest.iter().take_while(|byte| blank(byte)).count()..];
    if to.iter().any(blank) {
        return malformed("more than two fields, expected `from` TAB `to`");
    }
    Line::Edge(from, to)
}

/// Most lines inside a group that are no links: they are handed out with it, all at once.
const NOISE_MAX: usize = 1 << 16;

/// Gathers lines into groups and hands them out. Noise is counted only, and read again when it is
/// handed out: there may be far more of it than of links.
struct Groups<'s, 'c, 'f> {
    sink: &'s mut Sink<'f>,
    chunk: &'c [u8],
    /// Offset given last.
    done: usize,
    /// The open group; none while it has no links.
    group: Record<'c>,
    group_start: usize,
    group_end: usize,
    /// Lines of noise before the group's last link.
    inside: usize,
    /// Lines of noise after it so far, and where they end.
    after: usize,
    after_end: usize,
}

impl<'c> Groups<'_, 'c, '_> {
    fn edge(&mut self, from: &'c [u8], to: &'c [u8], line: Range<usize>) -> bool {
        let open = !self.group.links.is_empty();
        if open && *self.group.url == *from {
            self.inside += std::mem::take(&mut self.after);
        } else {
            if !self.flush() {
                return false;
            }
            self.group.url = Cow::Borrowed(from);
            self.group_start = line.start;
        }
        keep(&mut self.group.links, Cow::Borrowed(to));
        self.group_end = line.end;
        true
    }

    fn noise(&mut self, noise: Noise, end: usize) -> bool {
        if self.group.links.is_empty() {
            self.done = end;
            return (self.sink)(end, noise.into());
        }
        self.after += 1;
        self.after_end = end;
        true
    }

    /// Hands out the open group with its noise; `false`: the sink wants no more.
    fn flush(&mut self) -> bool {
        if self.group.links.is_empty() {
            return true;
        }
        let (inside, after) = (
            std::mem::take(&mut self.inside),
            std::mem::take(&mut self.after),
        );
        let went_on = if inside > NOISE_MAX {
            self.done = self.group_end;
            let said =
                format!("{inside} lines inside its group are no links, more than {NOISE_MAX}");
            (self.sink)(self.done, Bad::malformed(said).into())
        } else {
            let group = self.group_start..self.group_end;
            (inside == 0 || self.hand_out(group, false)) && {
                self.done = self.group_end;
                (self.sink)(self.done, Parsed::Record(&self.group))
            }
        };
        self.group.links.clear();
        went_on && (after == 0 || self.hand_out(self.group_end..self.after_end, true))
    }

    /// Hands out the noise within a part of the chunk; the offset goes along if it `moves`.
    fn hand_out(&mut self, part: Range<usize>, moves: bool) -> bool {
        for line in lines::lines(&self.chunk[part.clone()]) {
            if let Line::Noise(noise) = read(line.text) {
                if moves {
                    self.done = part.start + line.end;
                }
                if !(self.sink)(self.done, noise.into()) {
                    return false;
                }
            }
        }
        true
    }
}

/// Skips a group. A line longer than [`HELD_MAX`] is not looked into: it is skipped with the
/// group, or alone if it is the group's first.
#[derive(Default)]
struct GroupSkipper {
    source: Option<Vec<u8>>,
    in_long_line: bool,
}

impl Skipper for GroupSkipper {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        let mut at = 0;
        while at < buf.len() {
            let rest = &buf[at..];
            let line = match memchr(b'\n', rest) {
                Some(lf) => lf + 1,
                None if at_end => rest.len(),
                None if self.in_long_line || rest.len() > HELD_MAX => {
                    self.in_long_line = true;
                    return Skipped::Inside(buf.len());
                }
                None => return Skipped::Inside(at),
            };
            let long = std::mem::take(&mut self.in_long_line) || line > HELD_MAX;
            if long && self.source.is_none() {
                return Skipped::Ended(at + line);
            }
            if !long && !self.belongs(rest[..line].strip_suffix(b"\n").unwrap_or(rest)) {
                return Skipped::Ended(at);
            }
            at += line;
        }
        match at_end {
            true => Skipped::Ended(at),
            false => Skipped::Inside(at),
        }
    }
}

impl GroupSkipper {
    /// Whether the line is part of the group; the first link makes the group.
    fn belongs(&mut self, line: &[u8]) -> bool {
        let Line::Edge(from, _) = read(lines::trim(line)) else {
            return true;
        };
        from == self.source.get_or_insert_with(|| from.to_vec())
    }
}
