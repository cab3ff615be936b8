//! Scores by name: collected one by one, or read from text.
//!
//! Only the 128-bit hash (XXH3) of a name is kept: 24 bytes per page. Among 100 million names the probability that any
//! two share a hash is about 1e-23.

use std::io::{BufRead, Read};

use crate::model::NameHash;
use crate::{Error, Limits, Result};

/// Hash of a page's name, and its score: finite, not negative, not -0.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreRow {
    pub(super) name: NameHash,
    pub(super) score: f64,
}

/// Scores of one side of a comparison, in any order. Each name may occur once, as [`compare`](super::compare) checks.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    pub(super) rows: Vec<ScoreRow>,
}

impl Scores {
    pub fn new() -> Scores {
        Scores::default()
    }

    /// Adds a page. Fails with [`Error::Unsupported`] if the score is negative, infinite or NaN.
    pub fn push(&mut self, name: &[u8], score: f64) -> Result<()> {
        if let Some(what) = unfit(score) {
            let name = String::from_utf8_lossy(name);
            return Err(Error::Unsupported(format!(
                "{name:?}: the score {score} {what}"
            )));
        }
        self.rows.push(ScoreRow {
            name: NameHash::of(name),
            score: score + 0.0, // -0 becomes 0.
        });
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn unfit(score: f64) -> Option<&'static str> {
    if score.is_nan() {
        Some("is not a number")
    } else if score.is_infinite() {
        Some("is not finite")
    } else if score < 0.0 {
        Some("is negative")
    } else {
        None
    }
}

/// Reads scores from decompressed text, and passes each name and score to `each`. The first line determines which of
/// two forms the text has:
///
/// - `name<TAB>score`, further columns ignored. Names are bytes, taken unchanged.
/// - one bare number per line: the names are `0`, `1`, ... in the order of the lines, not counting a header.
///
/// The first line may be a header, whose score is not a number and does not begin with a digit, sign or point. A byte
/// order mark, carriage returns at line ends and spaces around a number are dropped. `label` names the input in errors:
/// [`Error::BadRecord`] has the number from 1 of the first invalid line, such as a blank one, and its offset.
pub fn read_each_score(
    mut input: impl BufRead,
    label: &str,
    limits: &Limits,
    mut each: impl FnMut(&[u8], f64) -> Result<()>,
) -> Result<()> {
    let limit = limits.line_bytes;
    let (mut buffer, mut start, mut count, mut named) = (Vec::new(), 0, 0u64, None);
    for number in 1.. {
        buffer.clear();
        let mut line = input.by_ref().take(limit.saturating_add(1));
        let read = line.read_until(b'\n', &mut buffer);
        let read = read.map_err(Error::io(label, "read"))? as u64;
        if read == 0 {
            break;
        }
        let begin = start;
        start += read;
        let bad = |detail: String| Error::BadRecord {
            input: label.to_owned(),
            record: number,
            offset: begin,
            reason: "malformed",
            detail,
        };
        if buffer.last() != Some(&b'\n') && read > limit {
            return Err(bad(format!("the line is longer than {limit} bytes")));
        }
        let line = buffer.strip_suffix(b"\n").unwrap_or(&buffer);
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if number == 1 {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            if is_header(line) {
                continue;
            }
        }
        let named = *named.get_or_insert(line.contains(&b'\t'));
        let (name, score) = split(line, named).map_err(bad)?;
        match name {
            Some(name) => each(name, score)?,
            None => each(count.to_string().as_bytes(), score)?,
        }
        count += 1;
    }
    Ok(())
}

fn split(line: &[u8], named: bool) -> Result<(Option<&[u8]>, f64), String> {
    let name = line.iter().position(|&byte| byte == b'\t');
    match name.map(|end| &line[..end]) {
        _ if line.is_empty() => Err("the line is blank".into()),
        None if named => Err("no tab between name and score".into()),
        Some(_) if !named => Err("a tab, where lines before are bare numbers".into()),
        Some(b"") => Err("the name is empty".into()),
        name => Ok((name, number(score_field(line))?)),
    }
}

/// Returns the second column of a line; without a tab, the whole line.
fn score_field(line: &[u8]) -> &[u8] {
    let mut columns = line.split(|&byte| byte == b'\t');
    let first = columns.next().unwrap_or_default();
    columns.next().unwrap_or(first)
}

fn number(field: &[u8]) -> Result<f64, String> {
    let text = std::str::from_utf8(field.trim_ascii()).ok();
    let Some(score) = text.and_then(|text| text.parse().ok()) else {
        let field = String::from_utf8_lossy(&field[..field.len().min(60)]);
        return Err(format!("{field:?} is not a number"));
    };
    match unfit(score) {
        Some(what) => Err(format!("the score {score} {what}")),
        None => Ok(score),
    }
}

/// Returns whether the first line's score was not meant as a number.
fn is_header(line: &[u8]) -> bool {
    let text = std::str::from_utf8(score_field(line).trim_ascii()).unwrap_or_default();
    match text.as_bytes().first() {
        None | Some(b'0'..=b'9' | b'+' | b'-' | b'.') => false,
        Some(_) => text.parse::<f64>().is_err(), // "nan" and "inf" are numbers.
    }
}

#[cfg(any(test, feature = "testing"))]
pub fn read_scores(input: impl BufRead, label: &str, limits: &Limits) -> Result<Scores> {
    let mut scores = Scores::new();
    read_each_score(input, label, limits, |name, score| scores.push(name, score))?;
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Scores> {
        read_scores(text.as_ref(), "scores.tsv", &Limits::default())
    }

    fn assert_same(text: impl AsRef<[u8]>, expected: &[(&[u8], f64)]) {
        let mut scores = Scores::new();
        for (name, score) in expected {
            scores.push(name, *score).unwrap();
        }
        let pairs = |scores: Scores| -> Vec<_> {
            scores
                .rows
                .iter()
                .map(|row| (row.name, row.score.to_bits()))
                .collect()
        };
        assert_eq!(pairs(read(text).unwrap()), pairs(scores));
    }

    #[test]
    fn two_columns() {
        let expected: &[(&[u8], f64)] = &[(b"a", 0.25), (b"b c", 1e-7), (b"\xFF", 3.0)];
        assert_same(b"a\t0.25\nb c\t1e-7\n\xFF\t3", expected);
        assert_same(b"name\tscore\na\t0.25\nb c\t1E-7\n\xFF\t3\n", expected);
        assert_same(
            b"\xEF\xBB\xBFa\t0.25\r\nb c\t1e-7\r\n\xFF\t 3 \r\n",
            expected,
        );
        assert_same(
            b"url\timportance\trank\tvisits\tlast_fetch\na\t0.25\t2\t1\t\nb c\t1e-7\t3\t1\t\n\xFF\t3.0\t1\t2\t2014-03-25T12:12:25Z\n",
            expected,
        );
    }

    #[test]
    fn bare_numbers() {
        let expected: &[(&[u8], f64)] = &[(b"0", 0.5), (b"1", 0.0), (b"2", 2.5e-8)];
        assert_same("0.5\n-0\n2.5e-8\n", expected);
        assert_same("score\n0.5\n0\n2.5e-8", expected);
        assert_same("", &[]);
        assert_same("url\timportance\n", &[]);
    }

    #[test]
    fn malformed_lines_are_named() {
        let cases: &[(&[u8], u64, u64, &str)] = &[
            (b"a\t1\nb\n", 2, 4, "no tab"),
            (b"a\t1\nb\tx\n", 2, 4, "\"x\" is not a number"),
            (b"a\t1\n\nb\t2\n", 2, 4, "blank"),
            (b"a\t1\nb\t\n", 2, 4, "\"\" is not a number"),
            (b"h\tscore\nh\tscore\n", 2, 8, "\"score\" is not a number"),
            (b"a\t0.1x\n", 1, 0, "\"0.1x\" is not a number"),
            (b"a\t-1\n", 1, 0, "negative"),
            (b"a\tNaN\n", 1, 0, "not a number"),
            (b"a\t1e999\n", 1, 0, "not finite"),
            (b"a\tinf\n", 1, 0, "not finite"),
            (b"\t1\n", 1, 0, "name is empty"),
            (b"a\t\xFF\nb\t\xFF\n", 1, 0, "is not a number"),
            (b"1\n2\nx\n", 3, 4, "\"x\" is not a number"),
            (b"1\n2\t3\n", 2, 2, "a tab"),
            (b"\n", 1, 0, "blank"),
        ];
        for (text, line, byte, what) in cases {
            let shown = String::from_utf8_lossy(text);
            match read(text) {
                Err(Error::BadRecord {
                    record,
                    offset,
                    detail,
                    ..
                }) => {
                    assert_eq!((record, offset), (*line, *byte), "{shown:?}");
                    assert!(detail.contains(what), "{shown:?}: {detail}");
                }
                other => panic!("{shown:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn long_lines_are_refused() {
        let limits = Limits {
            line_bytes: 8,
            ..Limits::default()
        };
        let read = |text: &str| read_scores(text.as_bytes(), "x", &limits);
        assert!(read("abcde\t1\n").is_ok()); // 7 bytes and the line's end.
        assert!(read("abcdef\t1\n").is_ok());
        assert!(read("abcdef\t1").is_ok());
        assert!(read("abcdefg\t1\n").is_err());
        assert!(read("abcdefg\t1").is_err());
    }

    #[test]
    fn unfit_scores_are_refused() {
        let mut scores = Scores::new();
        for score in [-1e-300, f64::NAN, f64::INFINITY] {
            assert!(scores.push(b"a", score).is_err());
        }
        assert!(scores.is_empty());
    }
}
