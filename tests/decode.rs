//! The decoders, through their public interface: golden samples, every cut point, random bytes,
//! and counts on real crawls.
//!
//! A sample `formats/samples/{good,bad}/FORMAT-*` has beside it `*.expected`, written by hand from
//! the specification: a line for each thing the decoder hands out, in order.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cashrank::decode::{Decoder, Format, HELD_MAX, Parsed, Reason, Record, Skipped};
use proptest::prelude::*;

/// What a decoder handed out, and the offset with it.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    end: usize,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    Record(Record<'static>),
    Bad(Reason, String),
    Other(&'static str),
}

fn decode(decoder: &dyn Decoder, chunk: &[u8]) -> Vec<Said> {
    let mut said = Vec::new();
    decoder.decode(chunk, &mut |end, parsed| {
        let what = match parsed {
            Parsed::Record(record) => What::Record(record.clone().into_owned()),
            Parsed::Bad { reason, detail } => What::Bad(reason, detail),
            Parsed::Other { kind } => What::Other(kind),
        };
        said.push(Said { end, what });
        true
    });
    said
}

/// Decodes `data` as a reader does: it reads pieces of `piece` bytes and cuts by `whole`.
fn decode_in_pieces(decoder: &dyn Decoder, data: &[u8], piece: usize) -> Vec<Said> {
    let mut said = Vec::new();
    let (mut start, mut read) = (0, 0);
    while start < data.len() {
        read = (read + piece).min(data.len());
        let at_end = read == data.len();
        let buf = &data[start..read];
        let whole = decoder.whole(buf, at_end);
        assert!(whole <= buf.len());
        assert!(!at_end || whole == buf.len(), "all is whole at the end");
        for mut one in decode(decoder, &buf[..whole]) {
            assert!(one.end <= whole);
            one.end += start;
            said.push(one);
        }
        start += whole;
    }
    said
}

/// All promises of the interface that hold for any bytes.
fn check_promises(decoder: &dyn Decoder, data: &[u8], pieces: impl Iterator<Item = usize>) {
    let at_once = decode(decoder, data);
    for piece in pieces {
        assert_eq!(decode_in_pieces(decoder, data, piece), at_once, "pieces of {piece}");
    }
    let mut done = 0;
    for (at, said) in at_once.iter().enumerate() {
        assert!(said.end >= done && said.end <= data.len());
        if let What::Bad(_, detail) = &said.what {
            assert!(!detail.is_empty() && detail.len() < 400 && !detail.contains('\n'), "{detail}");
        }
        if said.end > done {
            let mut rest = decode(decoder, &data[said.end..]);
            rest.iter_mut().for_each(|one| one.end += said.end);
            assert_eq!(rest, at_once[at + 1..], "continued from {}", said.end);
            check_skipper(decoder, &data[done..], said.end - done, &at_once[at].what);
        }
        done = said.end;
    }
}

/// A skipper ends where the decoder says, however the bytes come. A group is ended by the next
/// source only: the noise behind it goes with it.
fn check_skipper(decoder: &dyn Decoder, data: &[u8], len: usize, what: &What) {
    for piece in [1, 2, 7, data.len()] {
        let mut skipper = decoder.skipper();
        let (mut start, mut read) = (0, 0);
        let end = loop {
            read = (read + piece).min(data.len());
            match skipper.skip(&data[start..read], read == data.len()) {
                Skipped::Ended(n) => break start + n,
                Skipped::Inside(n) => {
                    assert!(read < data.len(), "at the end, a record ends");
                    assert!(read - start - n <= HELD_MAX);
                    start += n;
                }
            }
        };
        let group = decoder.whole(&data[..len], false) == 0 && matches!(what, What::Record(_));
        let behind = match group {
            true => decode(decoder, &data[len..])
                .iter()
                .take_while(|said| !matches!(said.what, What::Record(_)))
                .last()
                .map_or(0, |said| said.end),
            false => 0,
        };
        let noise = matches!(what, What::Other(_) | What::Bad(..));
        if end != len && end != len + behind {
            // In `edges`, a skipper that begins at noise goes on to the end of the group.
            assert!(noise && end > len, "{end} {len} {behind} {piece}");
        }
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The samples of a folder: format, path, bytes, and the expected listing.
fn samples(folder: &str) -> Vec<(Format, PathBuf, Vec<u8>, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root("formats/samples").join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = PathBuf::from(format!("{}.expected", path.display()));
        let format = name.split(['-', '.']).next().and_then(|name| name.parse().ok());
        if let (Some(format), true) = (format, expected.exists()) {
            let listing = fs::read_to_string(expected).unwrap();
            found.push((format, path.clone(), fs::read(path).unwrap(), listing));
        }
    }
    found
}

fn listing(said: &[Said]) -> String {
    let text = |bytes: &[u8]| format!("{:?}", std::str::from_utf8(bytes).unwrap());
    let line = |said: &Said| match &said.what {
        What::Other(kind) => format!("other: {kind}\n"),
        What::Bad(reason, _) => format!("bad: {}\n", reason.name()),
        What::Record(record) => {
            let mut line = format!("record: {}", text(&record.url));
            if let Some(time) = record.fetched_at {
                line += &format!(" at {time}");
            }
            if let Some(status) = record.status {
                line += &format!(" status {status}");
            }
            if let Some(base) = &record.base {
                line += &format!(" base {}", text(base));
            }
            if let Some(redirect) = &record.redirect {
                line += &format!(" redirect {}", text(redirect));
            }
            if record.revisit {
                line += " revisit";
            }
            let links: Vec<_> = record.links.iter().map(|link| text(&link.url)).collect();
            format!("{line} [{}]\n", links.join(", "))
        }
    };
    said.iter().map(line).collect()
}

#[test]
fn samples_read_as_expected() {
    for folder in ["good", "bad"] {
        for (format, path, bytes, expected) in samples(folder) {
            let said = decode(format.decoder(), &bytes);
            assert_eq!(listing(&said), expected, "{}", path.display());
        }
    }
}

#[test]
fn good_samples_have_nothing_bad_and_are_told_apart() {
    let samples = samples("good");
    for format in Format::ALL {
        assert!(samples.iter().any(|sample| sample.0 == format), "{}", format.name());
    }
    for (format, path, bytes, expected) in samples {
        assert!(!expected.contains("bad:"), "{}", path.display());
        let (guessed, _) = cashrank::decode::guess(&bytes).unwrap();
        assert_eq!(guessed, format, "{}", path.display());
    }
}

/// Every reason that a decoder gives has a bad sample, for each format that can give it, and stands in
/// that format's specification.
#[test]
fn every_reason_has_a_bad_sample_and_is_specified() {
    use Reason::*;
    let samples = samples("bad");
    for (format, reasons) in [
        (Format::Records, &[Malformed, InvalidUtf8, BadUrl, BadTime, CutShort][..]),
        (Format::Wat, &[Malformed, InvalidUtf8, BadUrl, BadTime, CutShort]),
        (Format::Adjacency, &[Malformed, InvalidUtf8]),
        (Format::Edges, &[Malformed, InvalidUtf8]),
    ] {
        let spec = fs::read_to_string(root(&format!("formats/{}.md", format.name()))).unwrap();
        for reason in Reason::ALL {
            let line = format!("bad: {}\n", reason.name());
            let given = samples.iter().any(|(of, _, _, list)| *of == format && list.contains(&line));
            let row = spec.contains(&format!("| `{}` |", reason.name()));
            let expected = reasons.contains(&reason);
            assert_eq!((given, row), (expected, expected), "{} {}", format.name(), reason.name());
        }
    }
}

#[test]
fn cuts_change_nothing_at_any_point_of_the_samples() {
    for folder in ["good", "bad"] {
        for (format, _, bytes, _) in samples(folder) {
            check_promises(format.decoder(), &bytes, 1..=bytes.len());
        }
    }
}

#[test]
fn a_sink_that_wants_no_more_gets_no_more() {
    for folder in ["good", "bad"] {
        for (format, path, bytes, _) in samples(folder) {
            for stop in 1..=decode(format.decoder(), &bytes).len() {
                let mut calls = 0;
                format.decoder().decode(&bytes, &mut |_, _| {
                    calls += 1;
                    calls < stop
                });
                assert_eq!(calls, stop, "{}", path.display());
            }
        }
    }
}

/// Samples of a format, one after the other, with some bytes changed, inserted and taken out.
fn mutated(format: Format) -> impl Strategy<Value = Vec<u8>> {
    let mut pool = Vec::new();
    for (_, _, bytes, _) in samples("good").into_iter().chain(samples("bad")) {
        pool.push(bytes);
    }
    let own: Vec<_> = samples("good").into_iter().filter(|sample| sample.0 == format).collect();
    let own: Vec<_> = own.into_iter().map(|sample| sample.2).collect();
    let odd = prop::sample::select(b"\n\r\t #{}[]\",:\\u<\xEF\xBB\xBF\x00\xFF9-".to_vec());
    let change = (any::<prop::sample::Index>(), 0..3u8, odd);
    (
        prop::sample::select(own),
        prop::sample::select(pool),
        prop::collection::vec(change, 0..12),
    )
        .prop_map(|(mut bytes, more, changes)| {
            bytes.extend_from_slice(&more);
            for (at, how, byte) in changes {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            bytes
        })
}

/// Lines that make groups, breaks and noise likely.
fn graph_lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "a\tb\n", "a c\n", "a\td\r\n", "b\ta\n", "b a\n", " a  b \n", "# note\n", "\n", "a\n", "a b c\n",
        "a\t\n", "\t\n", "a\tb\tc\n", "b\t\tc\n", "\u{FEFF}a\tb\n", "é\tb\n", "é é\n", "#", "a\tb",
    ]);
    let line = prop_oneof![
        20 => line.prop_map(|line| line.as_bytes().to_vec()),
        1 => Just(b"a\t\xFF\n".to_vec()),
    ];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_keep_the_promises(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            check_promises(format.decoder(), &data, [1, 3, 50].into_iter());
        }
        let _ = cashrank::decode::guess(&data);
    }

    #[test]
    fn graph_lines_keep_the_promises(data in graph_lines()) {
        for format in Format::ALL {
            check_promises(format.decoder(), &data, 1..=data.len().max(1));
        }
        let _ = cashrank::decode::guess(&data);
    }

    #[test]
    fn mutated_samples_keep_the_promises(
        (format, data) in prop::sample::select(&Format::ALL[..])
            .prop_flat_map(|format| (Just(format), mutated(format))),
        piece in 1..2000usize,
    ) {
        check_promises(format.decoder(), &data, [piece, piece.min(17)].into_iter());
        let _ = cashrank::decode::guess(&data);
    }
}
