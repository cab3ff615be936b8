//! Tests streams that are cut at every byte and then sent again: both runs together read what one run reads from the
//! whole.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::thread;

use super::{checked_format_of, pass_over, resumed_format};
use crate::decode::{Parsed, Record};
use crate::formats::Format;
use crate::model::InputPosition;
use crate::model::Limits;
use crate::source::{InputName, Source, SourceOptions};

/// Records read from a stream, and how far.
#[derive(Clone, Debug, Default, PartialEq)]
struct Front {
    format: Option<Format>,
    place: InputPosition,
    /// True if all that was read is certainly complete: nothing after it can belong to the last record.
    is_whole: bool,
    /// True if it has requests.
    has_requests: bool,
    /// Records, and what else was handed out, as text.
    records: Vec<Result<Record<'static>, String>>,
}

/// Reads a stream of these bytes from where `before` ended, as a run does. A failure to guess the format leaves
/// `before` unchanged.
fn read_on(before: &Front, bytes: &[u8], trusted: bool) -> Front {
    let limits = Limits::default();
    let options = SourceOptions::default();
    let stream = Box::new(Cursor::new(bytes.to_vec()));
    let mut front = before.clone();
    let opened = Source::live(InputName::Stdin, stream, None, &limits, &options);
    let mut source = opened.unwrap();
    let format = match front.format {
        Some(format) => resumed_format(&mut source, format, front.place.offset),
        None => checked_format_of(&mut source, None, None)
            .map(|found| found.map_or(Format::Records, |(format, _)| format)),
    };
    let Ok(format) = format else {
        return front;
    };
    front.format = Some(format);
    // Damage before the position was found by the run before.
    let Ok(mut source) = pass_over(source, format, front.place, trusted) else {
        return front;
    };
    let decoder = format.decoder();
    let mut again = source.shown_again;
    front.is_whole = true;
    while let Ok(chunk) = source.next_chunk(decoder, Vec::new()) {
        let Some(chunk) = chunk else {
            let end = source.end();
            (front.place.offset, front.place.prefix) = (end.bytes, end.prefix);
            return front;
        };
        if chunk.cut || chunk.may_lack_request && front.has_requests {
            return front;
        }
        front.is_whole = decoder.whole(&chunk.bytes) == chunk.bytes.len();
        decoder.decode(&chunk.bytes, &mut |end, parsed: Parsed<'_, '_>| {
            let end = chunk.offset + end as u64;
            if again > 0 {
                again -= 1;
                if again > 0 || end == before.place.offset {
                    return true;
                }
            }
            front.has_requests |= matches!(parsed, Parsed::Other { kind: "request" });
            front.records.push(match parsed {
                Parsed::Record(record) => Ok(record.clone().into_owned()),
                other => Err(format!("{other:?}")),
            });
            if end > front.place.offset {
                let mut prefix = chunk.prefix.clone();
                prefix.update(&chunk.bytes[..(end - chunk.offset) as usize]);
                (front.place.offset, front.place.prefix) = (end, prefix.digest128());
            }
            true
        });
    }
    front
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Compresses each third as a member or frame of its own.
fn packed(bytes: &[u8], pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    bytes
        .chunks(bytes.len().div_ceil(3))
        .flat_map(pack)
        .collect()
}

/// Cuts `whole` everywhere. Returns how many cuts fell between the lines of a record in a format that does not mark a
/// record's end. Then the front of the record counts as one, and so does the whole of it once it is sent.
fn cut_everywhere(name: &str, whole: &[u8]) -> usize {
    let expected = read_on(&Front::default(), whole, true);
    assert!(!expected.records.is_empty(), "{name}");
    let mut open = 0;
    let mut last: Option<(Front, bool)> = None;
    for cut in 0..=whole.len() {
        let front = read_on(&Front::default(), &whole[..cut], true);
        // Reading depends on nothing else, so cuts with the same front need one look at what follows.
        let is_open = match last {
            Some((same, is_open)) if same == front => is_open,
            _ => is_between_lines(&format!("{name} cut at {cut}"), &front, whole, &expected),
        };
        open += usize::from(is_open);
        last = Some((front, is_open));
    }
    open
}

/// Reads `whole` from where a front of it ended, which must give the records `expected`. Returns true if the front ended
/// between the lines of a record.
fn is_between_lines(what: &str, front: &Front, whole: &[u8], expected: &Front) -> bool {
    let all = read_on(front, whole, true);
    if expected.format.is_some_and(Format::ends_lines) {
        // The prefix is trusted first, and verified by its hash here.
        assert_eq!(all, read_on(front, whole, false), "{what}");
    }
    if front.is_whole || all.records == expected.records {
        assert_eq!(all.records, expected.records, "{what}");
        assert_eq!(all.format, expected.format, "{what}");
        return false;
    }
    let records = &mut expected.records.iter();
    assert!(records.all(|record| all.records.contains(record)), "{what}");
    true
}

/// Cuts a sample of a format everywhere, plain and compressed.
fn cut_sample(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(path).unwrap();
    let [plain, compressed @ ..] = thread::scope(|scope| {
        let packings = [
            bytes.clone(),
            packed(&bytes, gzip),
            packed(&bytes, zstandard),
        ];
        packings
            .map(|whole| scope.spawn(move || cut_everywhere(name, &whole)))
            .map(|open| open.join().unwrap())
    });
    // In a WARC a response may end where the stream does: whether a request or outlinks follow it cannot be known.
    let may_go_on = ["edges.tsv", "csv-links.csv", "crawl-log.log", "nutch.txt"];
    let ends_anywhere = may_go_on.contains(&name) || name.ends_with(".warc");
    assert!(plain == 0 || ends_anywhere, "{name}: {plain}");
    for open in compressed {
        assert!(open <= plain + 3, "{name}: {open}");
    }
}

#[test]
fn what_is_cut_at_any_byte_is_read_when_it_is_sent_whole() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../formats/samples/good");
    let samples: Vec<PathBuf> = fs::read_dir(samples)
        .unwrap()
        .map(|sample| sample.unwrap().path())
        .filter(|path| path.is_file() && path.extension().unwrap() != "expected")
        .collect();
    assert_eq!(samples.len(), 16);
    thread::scope(|scope| {
        for sample in &samples {
            scope.spawn(|| cut_sample(sample));
        }
    });
}
