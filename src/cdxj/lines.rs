//! CDXJ: a line for each capture: a key of the URL, the time of the fetch in 14 digits, and a JSON
//! object with `filename`, `offset` and `length`, as numbers or as text. Lines that begin with `!`
//! tell of the index, and blank ones are passed over. (pywb, `cdxj-indexer`.)
//! Specified in `formats/cdxj.md`.

use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::decode::{Time, archive_time};
use crate::model::Limits;
use crate::source::open_plain;
use crate::{Error, Result};

/// One line.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub line: u64,
    pub time: Time,
    pub file: Cow<'a, str>,
    pub offset: u64,
    pub len: u64,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    filename: Cow<'a, str>,
    offset: Number,
    length: Number,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(u64),
    Text(String),
}

impl Number {
    fn read(self) -> Option<u64> {
        match self {
            Number::Number(number) => Some(number),
            Number::Text(text) => text.parse().ok(),
        }
    }
}

/// Hands out the entries of the index at `path`, in its order.
pub(super) fn read(
    path: &Path,
    limits: &Limits,
    mut take: impl FnMut(Entry<'_>) -> Result<()>,
) -> Result<()> {
    let mut lines = BufReader::new(open_plain(path, limits)?);
    let (mut text, mut number, mut offset) = (Vec::new(), 0, 0);
    loop {
        text.clear();
        let read = lines.read_until(b'\n', &mut text);
        let read = read.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error.after_record(number),
            Err(error) => Error::io(path, "read")(error),
        })?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        let line = text.trim_ascii();
        if !line.is_empty() && line[0] != b'!' {
            let entry = entry(line, number).map_err(|detail| Error::BadRecord {
                input: path.display().to_string(),
                record: number,
                offset,
                reason: "malformed",
                detail,
            })?;
            take(entry)?;
        }
        offset += read as u64;
    }
}

fn entry(line: &[u8], number: u64) -> Result<Entry<'_>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let mut parts = line.splitn(3, ' ');
    let (Some(_), Some(time), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("not CDXJ: a key, a time and a JSON object, separated by spaces".into());
    };
    let read = archive_time(time).filter(|_| time.len() == 14);
    let time = read.ok_or_else(|| format!("{:?} is not a time of 14 digits", shown(time)))?;
    let fields: Fields<'_> =
        serde_json::from_str(json).map_err(|error| format!("its JSON: {error}"))?;
    let [Some(offset), Some(len)] = [fields.offset.read(), fields.length.read()] else {
        return Err("`offset` or `length` is not a number".into());
    };
    Ok(Entry {
        line: number,
        time,
        file: fields.filename,
        offset,
        len,
    })
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Fuzz target: a line is refused, or what was read of it is read again from a line of it.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(data: &[u8]) {
    for line in data.split(|&byte| byte == b'\n') {
        let Ok(found) = entry(line.trim_ascii(), 7) else {
            continue;
        };
        let time = std::str::from_utf8(line.trim_ascii())
            .ok()
            .and_then(|line| line.split(' ').nth(1));
        let fields = serde_json::json!({
            "filename": found.file,
            "offset": found.offset.to_string(),
            "length": found.len,
        });
        let again = format!("k {} {fields}", time.expect("it was read"));
        let again = entry(again.as_bytes(), 7).expect("it was read");
        assert_eq!(
            (found.time, found.file, found.offset, found.len),
            (again.time, again.file, again.offset, again.len)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_indexers_write_them() {
        let text = br#"org,example)/a b 20140325122341 {"url": "http://x", "length": "12", "offset": 7, "filename": "x/a.warc.gz"}"#;
        assert!(entry(text, 1).is_err(), "a key holds no blank");
        let text = br#"org,example)/a 20140325122341 {"length": "12", "offset": 7, "filename": "x/a.warc.gz", "x": [1]}"#;
        let found = entry(text, 3).unwrap();
        // 2014-03-25T12:23:41Z.
        assert_eq!(
            (found.time, found.offset, found.len),
            (1_395_750_221, 7, 12)
        );
        assert_eq!((found.line, &*found.file), (3, "x/a.warc.gz"));
    }

    /// A sample, and what is expected of its lines.
    fn sample(folder: &str) -> (Vec<u8>, String) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("formats/samples")
            .join(folder);
        let expected = std::fs::read_to_string(folder.join("index.cdxj.expected")).unwrap();
        (std::fs::read(folder.join("index.cdxj")).unwrap(), expected)
    }

    #[test]
    fn the_good_sample() {
        let (_, expected) = sample("good");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good/index.cdxj");
        let mut found = String::new();
        read(&path, &Limits::default(), |entry| {
            let Entry {
                line,
                time,
                file,
                offset,
                len,
            } = entry;
            found += &format!("line {line}: {time} {file} {offset} {len}\n");
            Ok(())
        })
        .unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_bad_sample() {
        let (lines, expected) = sample("bad");
        let lines = lines
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        let mut count = 0;
        for (line, message) in lines.zip(expected.lines()) {
            let error = entry(line.trim_ascii(), 1).unwrap_err();
            assert!(error.contains(message), "{}: {error}", line.escape_ascii());
            count += 1;
        }
        assert_eq!((count, expected.lines().count()), (7, 7));
    }
}
