//! Finds record boundaries in JSON that is not one object per line: objects over several lines, in arrays, or in a row.
//!
//! Everything between two objects (white space, commas, brackets of arrays) belongs to the second. A broken object ends
//! before the next line that begins with `{` and is indented no more than the object.

use memchr::memchr3;

use crate::decode::lines::TextLine;
use crate::decode::{Skipped, Skipper};

/// Maximum indentation that is distinguished, in blanks.
const INDENT_MAX: usize = 1000;
const NOT_BLANK: usize = usize::MAX;

/// Examines a text that begins with an object. Returns the evidence that it is not one object per line, if there is
/// any, and whether more bytes cannot change the answer.
pub fn layout(start: &[u8]) -> (Option<&'static str>, bool) {
    let mut cut = Cut::default();
    let end = cut.run(start);
    if cut.place == ScanState::Behind {
        // The text has lines, and its first record was cut short.
        return (None, true);
    }
    let (object, rest) = start.split_at(end.unwrap_or(start.len()));
    if object.contains(&b'\n') {
        let why = "it begins with a JSON object over several lines";
        return (Some(why), end.is_some());
    }
    let next = rest
        .iter()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    match next {
        Some(b'{' | b',') => {
            let why = "it begins with a JSON object that others follow on its line";
            (Some(why), true)
        }
        next => (None, next.is_some()),
    }
}

/// Finder of a record's end. It sees every byte once, in pieces of any size.
#[derive(Default)]
pub(super) struct Cut {
    place: ScanState,
    depth: usize,
    /// True if a value has just ended: another may follow only after a comma.
    after_value: bool,
    /// True if only the next record's start shows that the object is broken: a chunk may end before that start.
    by_next: bool,
    /// Indentation of the record, in blanks.
    indent: usize,
    /// Number of blanks so far on this line; [`NOT_BLANK`] once it holds anything else.
    blanks: usize,
    /// Offset of the line's start in the bytes seen last; 0 if it began before them.
    line: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Before,
    Inside,
    Text,
    Escaped,
    /// After an error that breaks the object.
    Behind,
}

impl Cut {
    /// Continues to the record's end and returns the offset after it; `None` if `buf` ends before.
    pub fn run(&mut self, buf: &[u8]) -> Option<usize> {
        self.line = 0;
        let mut at = 0;
        while at < buf.len() {
            let byte = buf[at];
            match (self.place, byte) {
                (ScanState::Text, b'\\') => self.place = ScanState::Escaped,
                (ScanState::Text, b'"') => {
                    (self.place, self.after_value) = (ScanState::Inside, true)
                }
                (ScanState::Text | ScanState::Escaped, b'\n') => {
                    self.place = ScanState::Behind;
                    continue;
                }
                (ScanState::Text, _) => {
                    at += memchr3(b'"', b'\\', b'\n', &buf[at..]).unwrap_or(buf.len() - at);
                    continue;
                }
                (ScanState::Escaped, _) => self.place = ScanState::Text,
                (_, b'\n') => (self.blanks, self.line) = (0, at + 1),
                (_, b' ' | b'\t' | b'\r') => self.blank(),
                (ScanState::Before, _) => self.before(byte),
                (ScanState::Inside, _) => {
                    if self.inside(byte) {
                        return Some(at + 1);
                    }
                    if self.place == ScanState::Behind {
                        continue;
                    }
                    self.blanks = NOT_BLANK;
                }
                (ScanState::Behind, b'{') if self.blanks != NOT_BLANK => return Some(self.line),
                (ScanState::Behind, _) => self.blanks = NOT_BLANK,
            }
            at += 1;
        }
        None
    }

    fn blank(&mut self) {
        let most = match self.place {
            ScanState::Before => INDENT_MAX,
            _ => self.indent,
        };
        self.blanks = if self.blanks < most {
            self.blanks + 1
        } else {
            NOT_BLANK
        };
    }

    fn before(&mut self, byte: u8) {
        self.indent = match self.blanks {
            NOT_BLANK => 0,
            blanks => blanks,
        };
        match byte {
            // Bytes of a byte order mark are skipped, too.
            b'[' | b']' | b',' | 0xEF | 0xBB | 0xBF => {}
            b'{' => (self.place, self.depth) = (ScanState::Inside, 1),
            _ => self.place = ScanState::Behind,
        }
        self.blanks = NOT_BLANK;
    }

    fn inside(&mut self, byte: u8) -> bool {
        match byte {
            b'"' | b'{' | b'[' if self.after_value => {
                self.by_next = byte == b'{' && self.blanks != NOT_BLANK;
                self.place = ScanState::Behind;
            }
            b'"' => self.place = ScanState::Text,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => (self.depth, self.after_value) = (self.depth - 1, true),
            b',' | b':' => self.after_value = false,
            _ => self.after_value = true,
        }
        self.depth == 0
    }
}

impl Skipper for Cut {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        match self.run(buf) {
            Some(end) => Skipped::Ended(end),
            None if at_end => Skipped::Ended(buf.len()),
            None if self.place == ScanState::Before || self.blanks == NOT_BLANK => {
                Skipped::Inside(buf.len())
            }
            // The next record may begin with this line.
            None => {
                self.blanks = 0;
                Skipped::Inside(self.line)
            }
        }
    }
}

pub(super) fn documents(chunk: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &chunk[start..];
        let mut cut = Cut::default();
        let end = cut.run(rest);
        if cut.place == ScanState::Before {
            return None;
        }
        let text = &rest[..end.unwrap_or(rest.len())];
        start += text.len();
        Some(TextLine {
            text: opened(text),
            start: start - text.len(),
            end: start,
            terminated: (end.is_some() || cut.place == ScanState::Behind) && !cut.by_next,
        })
    })
}

fn opened(text: &[u8]) -> &[u8] {
    let before = text.iter().take_while(|byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'[' | b']' | b',' | 0xEF | 0xBB | 0xBF)
    });
    text[before.count()..].trim_ascii_end()
}
