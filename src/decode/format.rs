//! The formats by name, and a guess from an input's first bytes.

use std::str::FromStr;
use std::sync::Arc;

use memchr::memrchr;

use super::Decoder;
use super::adjacency::Adjacency;
use super::edges::Edges;
use super::frame;
use super::lines;
use super::records::Records;
use super::wat::{self, Wat};
use crate::cza::{Cza, MAGIC};
use crate::error::{Error, Result};
use crate::rules::InputRules;

/// A format of crawl records; each has its specification in `formats/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JSON lines, one object a crawl record.
    Records,
    /// Common Crawl WAT.
    Wat,
    /// `node TAB successor TAB ...`.
    Adjacency,
    /// `from TAB to`, grouped by source.
    Edges,
    /// A crawl archive, as `cashrank convert` writes it.
    Cza,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [
        Format::Records,
        Format::Wat,
        Format::Adjacency,
        Format::Edges,
        Format::Cza,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Records => "records",
            Format::Wat => "wat",
            Format::Adjacency => "adjacency",
            Format::Edges => "edges",
            Format::Cza => "cza",
        }
    }

    /// The format's parser, by these rules.
    pub fn decoder_by(self, rules: &InputRules) -> Arc<dyn Decoder> {
        match self {
            Format::Records => Arc::new(Records::by(&rules.fields)),
            Format::Wat => Arc::new(Wat),
            Format::Adjacency => Arc::new(Adjacency),
            Format::Edges => Arc::new(Edges),
            Format::Cza => Arc::new(Cza),
        }
    }

    /// The format's parser, by the default rules. That of [`Format::Cza`] finds its sections only:
    /// records are read by the pipeline.
    pub fn decoder(self) -> &'static dyn Decoder {
        match self {
            Format::Records => &Records::USUAL,
            Format::Wat => &Wat,
            Format::Adjacency => &Adjacency,
            Format::Edges => &Edges,
            Format::Cza => &Cza,
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format> {
        let known = Format::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            Error::Refused(format!("no format {name:?}; there are: {names}"))
        })
    }
}

/// Guesses the format from the first bytes of the decompressed input (64 KiB are plenty).
///
/// Returns the format and, for people, what it was told by.
///
/// # Errors
/// [`Error::Refused`] if the bytes fit no format, or more than one; the text says what they look
/// like and what to do.
pub fn guess(head: &[u8]) -> Result<(Format, String)> {
    if is_archive(head) {
        return Ok((Format::Cza, "it begins as a crawl archive does".to_owned()));
    }
    let start = lines::trim(head).trim_ascii_start();
    let guessed = match start {
        // Decided by the first byte: see `is_decided`.
        [b'{', ..] => Ok((Format::Records, "it begins with a JSON object".to_owned())),
        _ if is_part_of_archive(head) => {
            Err("it looks like a crawl archive whose start is damaged or missing".to_owned())
        }
        [] => Err("it is empty or blank".to_owned()),
        [b'[', ..] => Err("it is a JSON array, and records are one object a line".to_owned()),
        _ if start.starts_with(b"WARC/") => guess_warc(start),
        _ if start.starts_with(b"filedesc://") => Err("it is an ARC, not a WAT".to_owned()),
        [b'<', ..] => Err("it looks like HTML or XML".to_owned()),
        _ => guess_graph(head),
    };
    guessed.map_err(|said| {
        Error::Refused(format!(
            "no known format: {said}; if it is records, wat, adjacency, edges or cza all the same, name it \
             with --format"
        ))
    })
}

/// Whether the first bytes alone decide what [`guess`] says: more of them change nothing.
pub fn is_decided(head: &[u8]) -> bool {
    let start = lines::trim(head).trim_ascii_start();
    start.first() == Some(&b'{') || head.starts_with(&MAGIC)
}

/// Whether it begins as an archive does, or ends in there.
fn is_archive(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || (!head.is_empty() && MAGIC.starts_with(head))
}

/// Whether it looks like an archive without being one: most of its first bytes are right, or it begins
/// with a later section. Text has no bytes as the heads of sections do.
fn is_part_of_archive(head: &[u8]) -> bool {
    let right = head.iter().zip(&MAGIC).filter(|(a, b)| a == b).count();
    right + 2 >= MAGIC.len() || (head.starts_with(b"CZA") && head.get(4).is_some_and(|&b| b < 9))
}

/// A WAT shows by its first record of `metadata` in JSON, a WARC by any answer or request.
fn guess_warc(head: &[u8]) -> Result<(Format, String), String> {
    let mut at = 0;
    loop {
        at += frame::line_ends(&head[at..]);
        let Ok(Some(header)) = frame::header(&head[at..]) else {
            return Err("it is a WARC file without a WAT record near its start".to_owned());
        };
        if wat::is_wat(&header) {
            let said = "it is a WARC file with metadata records in JSON".to_owned();
            return Ok((Format::Wat, said));
        }
        if !header.kind.eq_ignore_ascii_case(b"warcinfo") {
            let kind = String::from_utf8_lossy(header.kind);
            let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(format!(
                "it is a WARC (with a `{kind}` record), not a WAT, the links extracted from one"
            ));
        }
        let block = usize::try_from(header.length).unwrap_or(usize::MAX);
        at = at
            .saturating_add(header.len)
            .saturating_add(block)
            .min(head.len());
    }
}

/// Edges have two fields in every line; without a tab anywhere, other lines could be anything.
fn guess_graph(head: &[u8]) -> Result<(Format, String), String> {
    // The last line may be cut.
    let whole = memrchr(b'\n', head).map_or(head, |lf| &head[..lf]);
    let (mut data, mut tabs, mut pairs) = (0u64, 0u64, 0u64);
    for line in lines::lines(whole) {
        let text = line.text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let fields = text.split(|byte| matches!(byte, b' ' | b'\t'));
        let fields = fields.filter(|field| !field.is_empty()).count();
        data += 1;
        tabs += u64::from(line.text.contains(&b'\t'));
        pairs += u64::from(fields == 2);
    }
    match (data, tabs) {
        (0, _) => Err("it has comments only".to_owned()),
        _ if pairs == data => Ok((Format::Edges, "every line has two fields".to_owned())),
        (_, 0) => Err("its lines have neither tabs nor two fields".to_owned()),
        _ => {
            let said = "its lines are split by tabs, and not all have two fields";
            Ok((Format::Adjacency, said.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
        let said = "warc".parse::<Format>().unwrap_err().to_string();
        assert_eq!(
            said,
            "no format \"warc\"; there are: records, wat, adjacency, edges, cza"
        );
    }

    #[test]
    fn guesses() {
        let warc = |kind: &str| {
            format!(
                "\r\nWARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 3\r\n\r\na\nb\r\n\r\n\
                 WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: application/json\r\nContent-Length: 9"
            )
        };
        let (wat, warc) = (
            warc("metadata") + "000\r\n\r\n{",
            warc("response") + "\r\n\r\n",
        );
        for (head, expected) in [
            ("\u{FEFF}{\"url\":", Some(Format::Records)),
            ("\r\n \n{", Some(Format::Records)),
            (&wat, Some(Format::Wat)),
            (&warc, None),
            ("WARC/1.0\n", None),
            ("# a\n# b\n1\t2\n3 4\r\n5\t6\t7", Some(Format::Edges)),
            ("1 2\n", Some(Format::Edges)),
            ("1\t2", Some(Format::Edges)),
            ("0\t1\t2\n1\t\n", Some(Format::Adjacency)),
            ("a b\tc\n", Some(Format::Adjacency)),
            ("a\tb\nc\n", Some(Format::Adjacency)),
            ("1 2 0.5\n", None),
            ("word\n", None),
            ("# only\n", None),
            ("", None),
            ("\n\n", None),
            ("[{\"url\":\"u\"}]", None),
            ("filedesc://x.arc 0.0.0.0", None),
            ("<html>", None),
            ("\u{89}CZA\r\n\u{1a}\n", None),
            ("CZAB\u{1}\0\0\0\t\n", None),
            ("CZAB\tx\n", Some(Format::Edges)),
        ] {
            let guessed = guess(head.as_bytes()).ok().map(|(format, _)| format);
            assert_eq!(guessed, expected, "{head:?}");
        }
        let said = guess(warc.as_bytes()).unwrap_err().to_string();
        assert!(
            said.contains("is a WARC (with a `response` record), not a WAT"),
            "{said}"
        );
    }
}
