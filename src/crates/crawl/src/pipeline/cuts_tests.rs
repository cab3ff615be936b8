//! Tests streams that are cut at every byte and then sent again: both runs together read what one run reads from the
//! whole.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::thread;

use super::{checked_format_of, format_again, pass_over};
use crate::decode::Parsed;
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
    records: Vec<String>,
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
        Some(format) => format_again(&mut source, format, front.place.offset),
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
    let mut again = source.shown_again();
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
            front.records.push(format!("{parsed:?}"));
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
    for cut in 0..=whole.len() {
        let front = read_on(&Front::default(), &whole[..cut], true);
        let all = read_on(&front, whole, true);
        if expected.format.is_some_and(Format::ends_lines) {
            // The prefix is trusted first, and verified by its hash here.
            assert_eq!(all, read_on(&front, whole, false), "{name} cut at {cut}");
        }
        if front.is_whole || all.records == expected.records {
            assert_eq!(all.records, expected.records, "{name} cut at {cut}");
            assert_eq!(all.format, expected.format, "{name} cut at {cut}");
        } else {
            open += 1;
            let is_read = |record: &String| all.records.contains(record);
            assert!(expected.records.iter().all(is_read), "{name} cut at {cut}");
        }
    }
    open
}

/// Cuts a sample of a format everywhere, plain and compressed.
fn cut_sample(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(path).unwrap();
    let open = cut_everywhere(name, &bytes);
    // In a WARC a response may end where the stream does: whether a request or outlinks follow it cannot be known.
    let may_go_on = ["edges.tsv", "csv-links.csv", "crawl-log.log", "nutch.txt"];
    let ends_anywhere = may_go_on.contains(&name) || name.ends_with(".warc");
    assert!(open == 0 || ends_anywhere, "{name}: {open}");
    for pack in [gzip, zstandard] {
        let most = open + 3;
        let open = cut_everywhere(name, &packed(&bytes, pack));
        assert!(open <= most, "{name}: {open}");
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
