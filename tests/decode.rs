//! The decoders, through their public interface: golden samples, every cut point, random bytes, and counts on real
//! crawls.
//!
//! Each sample `formats/samples/{good,bad}/FORMAT-*` has a file `*.expected`, written by hand from the specification:
//! one line for each thing that the decoder hands out, in order.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cashrank_base::rules::{FieldNames, InputRules, Rel, Shard};
use cashrank_crawl::decode::frame::WARC;
use cashrank_crawl::decode::{Decoder, HELD_MAX, Link, Parsed, Reason, Record, Skipped};
use cashrank_crawl::formats::Format;
use proptest::prelude::*;

/// Formats that differ in more than the kind of names.
const TEXT: [Format; 10] = [
    Format::Records,
    Format::NodeRecords,
    Format::Warc,
    Format::Arc,
    Format::Wat,
    Format::Adjacency,
    Format::Edges,
    Format::CrawlLog,
    Format::Nutch,
    Format::CsvLinks,
];

/// Output of a decoder, with its offset.
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
            Parsed::Large => return true,
        };
        said.push(Said { end, what });
        true
    });
    said
}

/// Checks that `data` gives `at_once`, read as a reader does: in pieces of each of these lengths, cut by `whole`. What a
/// decoder hands out depends on its chunk alone, so a chunk that several lengths have in common is decoded once.
fn check_pieces(
    decoder: &dyn Decoder,
    data: &[u8],
    at_once: &[Said],
    pieces: impl Iterator<Item = usize>,
) {
    // Chunk, and the part of `at_once` that it gave.
    let mut chunks: HashMap<Range<usize>, Range<usize>> = HashMap::new();
    for piece in pieces {
        let (mut start, mut read, mut said) = (0, 0, 0);
        while start < data.len() {
            read = (read + piece).min(data.len());
            let buf = &data[start..read];
            let whole = if read == data.len() {
                buf.len()
            } else {
                decoder.whole(buf)
            };
            assert!(whole <= buf.len());
            let chunk = start..start + whole;
            let given = chunks.entry(chunk.clone()).or_insert_with(|| {
                let mut found = decode(decoder, &data[chunk.clone()]);
                for one in &mut found {
                    assert!(one.end <= whole);
                    one.end += start;
                }
                let given = said..said + found.len();
                let expected = at_once.get(given.clone());
                assert_eq!(Some(&found[..]), expected, "pieces of {piece}");
                given
            });
            assert_eq!(given.start, said, "pieces of {piece}");
            (start, said) = (chunk.end, given.end);
        }
        assert_eq!(said, at_once.len(), "pieces of {piece}");
    }
}

/// Checks all promises of the interface that hold for any bytes.
fn check_promises(format: Format, data: &[u8], pieces: impl Iterator<Item = usize>) {
    let decoder = format.decoder();
    let at_once = decode(decoder, data);
    check_pieces(decoder, data, &at_once, pieces);
    let mut done = 0;
    for (at, said) in at_once.iter().enumerate() {
        assert!(said.end >= done && said.end <= data.len());
        if let What::Bad(_, detail) = &said.what {
            assert!(
                !detail.is_empty() && detail.len() < 400 && !detail.contains('\n'),
                "{detail}"
            );
        }
        if said.end > done {
            let mut rest = decode(decoder, &data[said.end..]);
            rest.iter_mut().for_each(|one| one.end += said.end);
            assert_eq!(rest, at_once[at + 1..], "continued from {}", said.end);
            check_skipper(format, &data[done..], said.end - done);
        }
        done = said.end;
    }
}

/// Checks that a skipper ends where the record does, however the bytes arrive. `data` begins with a record of `len`
/// bytes. Of an exchange it skips the first record: a longer one is never over the limit.
fn check_skipper(format: Format, data: &[u8], len: usize) {
    let expected = match format {
        _ if format.is_grouped() => group_end(format, data),
        Format::Warc | Format::Wat => WARC.first(data, true).unwrap().end,
        _ => len,
    };
    for piece in [1, 2, 7, data.len()] {
        let mut skipper = format.decoder().skipper();
        let (mut start, mut read) = (0, 0);
        let end = loop {
            read = (read + piece).min(data.len());
            match skipper(&data[start..read], read == data.len()) {
                Skipped::Ended(n) => break start + n,
                Skipped::Inside(n) => {
                    assert!(read < data.len(), "at the end, a record ends");
                    assert!(read - start - n <= HELD_MAX);
                    start += n;
                }
            }
        };
        assert_eq!(end, expected, "pieces of {piece}");
    }
}

/// Returns the start of the second group: noise before and after the first one belongs to it. Groups have links;
/// records of single fetches in a crawl log have none.
fn group_end(format: Format, data: &[u8]) -> usize {
    let said = decode(format.decoder(), data);
    let is_group = |said: &Said| match &said.what {
        What::Record(record) => !record.links.is_empty(),
        _ => false,
    };
    let mut records = (0..said.len()).filter(|&at| is_group(&said[at]));
    records.nth(1).map_or(data.len(), |second| {
        // Output from inside a group comes before it, at the offset before.
        let unmoved = said[..second].iter().rev().map(|one| one.end);
        unmoved.max().unwrap_or(0)
    })
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Reads the samples of a folder: format, path, bytes, and the expected listing.
fn samples(folder: &str) -> Vec<(Format, PathBuf, Vec<u8>, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root("formats/samples").join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = PathBuf::from(format!("{}.expected", path.display()));
        let mut formats = Format::ALL.into_iter();
        let format = formats.find(|format| name.starts_with(format.name()));
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
            if record.bad_time.is_some() {
                line += " bad-time";
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
            if let Some(same_as) = &record.same_as {
                line += &format!(" same as {}", text(same_as));
            }
            if let Some(totals) = record.totals {
                let counts = (totals.visits, totals.failed, totals.last_failed);
                let changes = (totals.compared, totals.changed, totals.watched_s);
                let ((visits, failed, at), (compared, changed, watched)) = (counts, changes);
                line += &format!(
                    " totals ({visits}, {failed}, {at:?}, {compared}, {changed}, {watched})"
                );
            }
            let link = |link: &Link<'_>| {
                let weight = match link.weight {
                    1 => String::new(),
                    weight => format!(" weight {weight}"),
                };
                text(&link.url) + &rels(link.rel) + &weight
            };
            let links: Vec<_> = record.links.iter().map(link).collect();
            format!("{line} [{}]\n", links.join(", "))
        }
    };
    said.iter().map(line).collect()
}

fn rels(rel: Rel) -> String {
    let named = [
        (" nofollow", Rel::NOFOLLOW),
        (" ugc", Rel::UGC),
        (" sponsored", Rel::SPONSORED),
    ];
    let said = named.iter().filter(|(_, one)| rel.has(*one));
    said.map(|(name, _)| *name).collect()
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
fn good_samples_are_sound_and_distinguished() {
    let samples = samples("good");
    for format in TEXT {
        assert!(
            samples.iter().any(|sample| sample.0 == format),
            "{}",
            format.name()
        );
    }
    for (format, path, bytes, expected) in samples {
        assert!(!expected.contains("bad:"), "{}", path.display());
        let (guessed, _) = cashrank_crawl::formats::guess(&bytes).unwrap();
        assert_eq!(guessed, format, "{}", path.display());
    }
}

/// Every reason that a decoder gives has a bad sample, for each format that can give it, and is in that format's
/// specification.
#[test]
fn every_reason_has_a_bad_sample_and_is_specified() {
    use Reason::*;
    let samples = samples("bad");
    for (format, reasons) in [
        (
            Format::Records,
            &[Malformed, InvalidUtf8, BadUrl, BadTime, CutShort][..],
        ),
        (
            Format::Wat,
            &[Malformed, InvalidUtf8, BadUrl, BadTime, CutShort],
        ),
        (Format::Warc, &[Malformed, BadUrl, BadTime, CutShort]),
        (Format::Arc, &[Malformed, BadTime, CutShort]),
        (Format::Adjacency, &[Malformed, InvalidUtf8]),
        (Format::Edges, &[Malformed, InvalidUtf8]),
        (Format::CrawlLog, &[Malformed, InvalidUtf8, BadTime]),
        (Format::Nutch, &[Malformed, InvalidUtf8, BadUrl, BadTime]),
        (Format::CsvLinks, &[Malformed, InvalidUtf8, BadUrl, BadTime]),
    ] {
        let spec = fs::read_to_string(root(&format!("formats/{}.md", format.name()))).unwrap();
        for reason in Reason::ALL {
            // A record with an unreadable time is used.
            let line = match reason {
                BadTime => " bad-time ".into(),
                _ => format!("bad: {}\n", reason.name()),
            };
            let given = samples
                .iter()
                .any(|(of, _, _, list)| *of == format && list.contains(&line));
            let row = spec.contains(&format!("| `{}` |", reason.name()));
            let expected = reasons.contains(&reason);
            assert_eq!(
                (given, row),
                (expected, expected),
                "{} {}",
                format.name(),
                reason.name()
            );
        }
    }
}

#[test]
fn cuts_change_nothing_at_any_point_of_the_samples() {
    for folder in ["good", "bad"] {
        for (format, _, bytes, _) in samples(folder) {
            check_promises(format, &bytes, 1..=bytes.len());
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

/// The request may come before or after its response. At a stream's end the response to a request is waited for, and
/// the request of a response if the stream has requests.
#[test]
fn a_request_on_either_side_names_the_method() {
    let frame = |kind: &str, block: &str| {
        format!(
            "WARC/1.0\nWARC-Type: {kind}\nWARC-Target-URI: http://a/\nContent-Length: {}\n\n{block}\n\n",
            block.len()
        )
    };
    let wat = |kind: &str, payload: &str| {
        let json = format!(
            r#"{{"Envelope":{{"WARC-Header-Metadata":{{"WARC-Type":"{kind}","WARC-Target-URI":"http://a/"}},
            "Payload-Metadata":{{"HTTP-{payload}}}}}}}"#
        );
        frame("metadata", &json)
    };
    for (format, request, answer) in [
        (
            Format::Warc,
            frame("request", "POST / HTTP/1.1\n\n"),
            frame("response", "HTTP/1.1 404 x\n\n"),
        ),
        (
            Format::Wat,
            wat(
                "request",
                r#"Request-Metadata":{"Request-Message":{"Method":"POST"}}"#,
            ),
            wat(
                "response",
                r#"Response-Metadata":{"Response-Message":{"Status":"404"}}"#,
            ),
        ),
    ] {
        for text in [request.clone() + &answer, answer.clone() + &request] {
            let said = decode(format.decoder(), text.as_bytes()).into_iter();
            let what: Vec<_> = said.map(|one| one.what).collect();
            let expected = [What::Other("request"), What::Other("answer to POST")];
            assert_eq!(what, expected, "{text}");
            check_promises(format, text.as_bytes(), 1..=text.len());
        }
        assert!(format.decoder().is_cut(request.as_bytes()));
        assert!(!format.decoder().is_cut(answer.as_bytes()));
        // It may have been cut before its request, but not after it, nor the other way round.
        for (text, may_lack) in [
            (answer.clone(), true),
            (answer[..answer.len() - 2].to_owned(), true),
            (answer.clone() + &request, false),
            (request.clone() + &answer, false),
        ] {
            let found = format.decoder().may_lack_request(text.as_bytes());
            assert_eq!(found, may_lack, "{text}");
        }
    }
}

/// A name of many MiB is skipped in pieces without being held, and a group with a long line in it as a whole.
#[test]
fn long_lines_are_skipped_without_being_held() {
    let long = "x".repeat(3 * HELD_MAX);
    let revisit = "WARC/1.0\nWARC-Type: revisit\nWARC-Target-URI: http://a/\nContent-Length: ";
    let arc = "http://a/ 1.2.3.4 20140102030405 text/html";
    for (format, data, len) in [
        (
            Format::Records,
            format!("{long}\n{{\"url\":\"u\"}}\n"),
            long.len() + 1,
        ),
        (Format::Adjacency, format!("a\t{long}\nb\n"), long.len() + 3),
        (Format::Edges, format!("a\t{long}\nb\tc\n"), long.len() + 3),
        (
            Format::Edges,
            format!("a\tb\n{long}\td\na\tc\nb\tc\n"),
            long.len() + 11,
        ),
        (Format::Wat, format!("{long}\nWARC/1.0\n"), long.len() + 1),
        (
            Format::Nutch,
            format!("Recno:: 0\nURL:: u\n{long}\nRecno:: 1\nURL:: v\n"),
            long.len() + 19,
        ),
        (
            Format::CrawlLog,
            format!("{long}\n{long}\n"),
            long.len() + 1,
        ),
        // A line feed in quotes.
        (
            Format::CsvLinks,
            format!("1,a,b,\"\n{long}\n\"\n1,a,b\n"),
            long.len() + 11,
        ),
        (
            Format::Wat,
            format!(
                "WARC/1.0\nContent-Length: {}\n\n{long}\n\nWARC/1.0\n",
                long.len()
            ),
            long.len() + 34,
        ),
        (Format::Warc, format!("{long}\nWARC/1.0\n"), long.len() + 1),
        (
            Format::Warc,
            format!("{revisit}{}\n\n{long}\n\nWARC/1.0\n", long.len()),
            revisit.len() + 9 + long.len(),
        ),
        (Format::Arc, format!("{long}\n{arc} 0\n"), long.len() + 1),
        (
            Format::Arc,
            format!("{arc} {}\n{long}\n{arc} 0\n", long.len()),
            arc.len() + 9 + long.len(),
        ),
    ] {
        for piece in [1 << 16, HELD_MAX, data.len()] {
            let mut skipper = format.decoder().skipper();
            let (mut start, mut read) = (0, 0);
            let end = loop {
                read = (read + piece).min(data.len());
                match skipper(&data.as_bytes()[start..read], read == data.len()) {
                    Skipped::Ended(n) => break start + n,
                    Skipped::Inside(n) => start += n,
                }
                assert!(read - start <= HELD_MAX);
            };
            assert_eq!(end, len, "{} {piece}", format.name());
        }
    }
}

/// Samples of a format, concatenated, with some bytes changed, inserted and removed.
fn mutated(format: Format) -> impl Strategy<Value = Vec<u8>> {
    let mut pool = Vec::new();
    for (_, _, bytes, _) in samples("good").into_iter().chain(samples("bad")) {
        pool.push(bytes);
    }
    let own: Vec<_> = samples("good")
        .into_iter()
        .filter(|sample| sample.0 == format)
        .collect();
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
        "a\tb\n",
        "a c\n",
        "a\td\r\n",
        "b\ta\n",
        "b a\n",
        " a  b \n",
        "# note\n",
        "\n",
        "a\n",
        "a b c\n",
        "a\t\n",
        "\t\n",
        "a\tb\tc\n",
        "b\t\tc\n",
        "\u{FEFF}a\tb\n",
        "\u{FEFF}\u{FEFF}a\tb\n",
        "a\tb\r\r\n",
        "a\t\r\r\n",
        "é\tb\n",
        "é é\n",
        "#",
        "a\tb",
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
        for format in TEXT {
            check_promises(format, &data, [1, 3, 50].into_iter());
        }
        let _ = cashrank_crawl::formats::guess(&data);
    }

    #[test]
    fn graph_lines_keep_the_promises(data in graph_lines()) {
        for format in TEXT {
            check_promises(format, &data, 1..=data.len().max(1));
        }
        let _ = cashrank_crawl::formats::guess(&data);
    }

    #[test]
    fn mutated_samples_keep_the_promises(
        (format, data) in prop::sample::select(&TEXT[..])
            .prop_flat_map(|format| (Just(format), mutated(format))),
        piece in 1..2000usize,
    ) {
        check_promises(format, &data, [piece, piece.min(17)].into_iter());
        let _ = cashrank_crawl::formats::guess(&data);
    }
}

// "one CR before it is dropped, and so is a byte order mark": a second one is text.
#[test]
fn a_second_carriage_return_or_mark_is_part_of_a_name() {
    let data = "a\t\r\r\nb\tc\r\r\n\u{FEFF}\u{FEFF}b\td\n".as_bytes();
    let said = decode(Format::Edges.decoder(), data);
    let expected = concat!(
        "record: \"a\" [\"\\r\"]\n",
        "record: \"b\" [\"c\\r\"]\n",
        "record: \"\\u{feff}b\" [\"d\"]\n",
    );
    assert_eq!(listing(&said), expected);
    check_promises(Format::Edges, data, 1..=data.len());
}

/// Reads a real input, decompressed; `None`, with a printed note, if it is absent.
fn real(path: &str) -> Option<Vec<u8>> {
    let path = root("../shared/data").join(path);
    let Ok(file) = fs::File::open(&path) else {
        eprintln!("SKIPPED: no {}", path.display());
        return None;
    };
    let mut data = Vec::new();
    if path.extension().is_some_and(|ext| ext == "gz") {
        flate2::read::MultiGzDecoder::new(file)
            .read_to_end(&mut data)
            .unwrap();
    } else {
        let mut zstd = zstd::Decoder::new(file).unwrap();
        zstd.window_log_max(27).unwrap();
        zstd.read_to_end(&mut data).unwrap();
    }
    Some(data)
}

/// Counts of a real input.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    records: usize,
    links: usize,
    without_links: usize,
    revisits: usize,
    redirects: usize,
    gone: usize,
    other: usize,
    bad: usize,
}

fn count(format: Format, path: &str) -> Option<(Counts, Vec<u8>)> {
    let data = real(path)?;
    let (guessed, _) = cashrank_crawl::formats::guess(&data[..65_536]).unwrap();
    assert_eq!(guessed, format, "{path}");
    let mut counts = Counts::default();
    format.decoder().decode(&data, &mut |_, parsed| {
        match parsed {
            Parsed::Record(record) => {
                counts.records += 1;
                counts.links += record.links.len();
                counts.without_links += usize::from(record.links.is_empty());
                counts.revisits += usize::from(record.revisit);
                counts.redirects += usize::from(record.redirect.is_some());
                counts.gone += usize::from(record.status == Some(404));
            }
            Parsed::Bad { .. } => counts.bad += 1,
            Parsed::Other { .. } => counts.other += 1,
            Parsed::Large => {}
        }
        true
    });
    Some((counts, data))
}

/// Checks that cutting a real input by `whole` gives the same as decoding it at once.
fn check_real_pieces(format: Format, data: &[u8]) {
    let at_once = decode(format.decoder(), data);
    check_pieces(format.decoder(), data, &at_once, [1 << 17].into_iter());
}

// Records, links and 404s: the data's README. Records without links, by a reader in Python:
// `for l in sys.stdin: none += not json.loads(l).get("links")` over `zstd -dc --long=27`.
#[test]
fn real_records() {
    if let Some((counts, _)) = count(Format::Records, "flink-history/flink.jsonl.zst") {
        let expected = Counts {
            records: 54_932,
            links: 4_353_525,
            without_links: 4_120,
            gone: 669,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }
    if let Some((counts, data)) = count(Format::Records, "scrapy-httpd/httpd-manual.jsonl.zst") {
        let expected = Counts {
            records: 2_828,
            links: 279_195,
            without_links: 165,
            gone: 165,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        check_real_pieces(Format::Records, &data);
    }
}

// Distinct links of each page (the data's README), times and the one redirect of the same crawl, by their own names in it: min, max and the record with a
// `location`, read off it with Python's json.
#[test]
fn real_records_with_names_of_their_own() {
    let Some(data) = real("scrapy-httpd/httpd-manual.jsonl.zst") else {
        return;
    };
    let fields = ["fetched_at=fetch_time", "redirect=location"].map(|text| text.parse().unwrap());
    let rules = InputRules {
        fields: FieldNames::of(fields.to_vec()).unwrap(),
        ..InputRules::default()
    };
    let said = decode(
        &*Format::Records.decoder_by(&rules, &cashrank::Limits::default()),
        &data,
    );
    let records = said.iter().map(|said| match &said.what {
        What::Record(record) => record,
        other => panic!("{other:?}"),
    });
    let distinct = |record: &Record<'_>| -> usize {
        let links: HashSet<_> = record.links.iter().map(|link| link.url.to_vec()).collect();
        links.len()
    };
    assert_eq!(records.clone().map(distinct).sum::<usize>(), 136_342);
    let times = records.clone().map(|record| record.fetched_at.unwrap());
    // date -u -d 2026-11-20T18:12:48Z +%s, and of 18:13:39Z.
    let range = (times.clone().min(), times.max());
    assert_eq!(range, (Some(1_795_198_368), Some(1_795_198_419)));
    let mut redirects = records.filter_map(|record| Some((&record.url, record.redirect.as_ref()?)));
    let (from, to) = redirects.next().unwrap();
    assert_eq!(&**from, b"http://127.0.0.1:8802/manual/es/howto");
    assert_eq!(&**to, b"http://127.0.0.1:8802/manual/es/howto/");
    assert_eq!(redirects.next(), None);
}

// The data's README: 3,216,152 links, 78,056 pages without.
#[test]
fn real_graph() {
    if let Some((counts, data)) = count(Format::Adjacency, "cnr-2000/adjacency.tsv.zst") {
        let expected = Counts {
            records: 325_557,
            links: 3_216_152,
            without_links: 78_056,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        check_real_pieces(Format::Adjacency, &data);

        // The same graph as edges: a group for each page that has links.
        let edges = as_edges(&data);
        let mut counts = Counts::default();
        Format::Edges.decoder().decode(&edges, &mut |_, parsed| {
            let Parsed::Record(record) = parsed else {
                panic!("{parsed:?}")
            };
            counts.records += 1;
            counts.links += record.links.len();
            true
        });
        assert_eq!(
            (counts.records, counts.links),
            (325_557 - 78_056, 3_216_152)
        );
        check_real_pieces(Format::Edges, &edges);
    }
}

fn as_edges(adjacency: &[u8]) -> Vec<u8> {
    let mut edges = Vec::new();
    for line in std::str::from_utf8(adjacency).unwrap().lines() {
        let mut names = line.split('\t').filter(|name| !name.is_empty());
        let from = names.next().unwrap();
        for to in names {
            edges.extend_from_slice(format!("{from}\t{to}\n").as_bytes());
        }
    }
    edges
}

// By a reader in Python (gzip, json): frames by Content-Length; of `metadata` records those whose
// Envelope's WARC-Type is response or revisit and that have HTTP-Response-Metadata; links with path
// A@/href or AREA@/href and a url, of responses only; redirects: status 3xx but 304 with a
// Location; revisits: those that are no redirect (one of govuk's 55 is).
#[test]
fn real_wat() {
    for (
        path,
        [
            records,
            links,
            without_links,
            revisits,
            redirects,
            gone,
            other,
        ],
    ) in [
        (
            "blackbook/blackbook.wat.gz",
            // 38,614 anchors, and two refreshes, one of them the only link of a page.
            [261, 38_616, 132, 0, 7, 40, 562],
        ),
        (
            "govuk/BL-20140325121225068-00000-32090~opera~8443.wat.gz",
            [62, 7_094, 26, 0, 1, 3, 129],
        ),
        (
            "govuk/BL-20140325122341434-00000-32090~opera~8443.wat.gz",
            [62, 338, 55, 54, 1, 3, 129],
        ),
        (
            "postgresql/pg15-crawl1.wat.gz",
            [1_173, 24_971, 6, 0, 0, 1, 1_180],
        ),
        (
            "postgresql/pg15-crawl2.wat.gz",
            [1_175, 25_307, 6, 6, 0, 1, 1_180],
        ),
    ] {
        let Some((counts, data)) = count(Format::Wat, path) else {
            continue;
        };
        let expected = Counts {
            records,
            links,
            without_links,
            revisits,
            redirects,
            gone,
            other,
            bad: 0,
        };
        assert_eq!(counts, expected, "{path}");
        check_real_pieces(Format::Wat, &data);
    }
}

/// The first page of the manual: its URL without brackets, the time of the fetch and not of the
/// extraction, links as written. Read off the file with `zcat`.
#[test]
fn real_wat_in_detail() {
    let Some(data) = real("postgresql/pg15-crawl1.wat.gz") else {
        return;
    };
    let said = decode(Format::Wat.decoder(), &data);
    let first = said.iter().find_map(|said| match &said.what {
        What::Record(record) => Some(record),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!(&*first.url, b"http://127.0.0.1:8801/");
    // date -u -d 2026-11-20T18:07:16Z +%s
    assert_eq!(first.fetched_at, Some(1_795_198_036));
    assert_eq!(first.status, Some(200));
    assert_eq!(&*first.links[0].url, b"preface.html");
    assert_eq!(&*first.links[1].url, b"legalnotice.html");
}

/// Returns a WARC record of this type and target with this block.
fn warc_record(kind: &str, target: &str, block: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {target}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n\
         {block}\r\n\r\n",
        block.len()
    )
}

/// Returns a page of `own` and one of `other`, each with two links, in a format.
fn two_pages(format: Format, [own, other]: [&str; 2]) -> String {
    let html = "<a href=/x></a><a href=/y></a>";
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
    let page = |page: &str| match format {
        // A number that is not a field of records takes serde.
        Format::Records if page == own => {
            format!("{{\"n\":[1.5],\"url\":\"{page}\",\"links\":[\"/x\",\"/y\"]}}\n")
        }
        Format::Records => format!("{{\"url\":\"{page}\",\"links\":[\"/x\",\"/y\"]}}\n"),
        Format::Warc => warc_record("response", page, &answer),
        Format::Arc => {
            let (body, head) = (answer.as_str(), "192.0.2.1 20260101000000 text/html");
            format!("{page} {head} {}\n{body}\n", body.len())
        }
        Format::Wat => {
            let link = |to| format!("{{\"path\":\"A@/href\",\"url\":\"{to}\"}}");
            let links = format!("[{},{}]", link("/x"), link("/y"));
            let json = format!(
                "{{\"Envelope\":{{\"WARC-Header-Metadata\":{{\"WARC-Type\":\"response\",\"WARC-Target-URI\":\"{page}\"}},\
                 \"Payload-Metadata\":{{\"HTTP-Response-Metadata\":{{\"HTML-Metadata\":{{\"Links\":{links}}}}}}}}}}}"
            );
            warc_record("metadata", page, &json)
        }
        Format::UrlAdjacency => format!("{page}\t{page}x\t{page}y\n"),
        Format::UrlEdges => format!("{page}\t{page}x\n{page}\t{page}y\n"),
        Format::CsvLinks => {
            let line = |to| format!("20260101,{page},{page}{to},\n");
            line("x") + &line("y")
        }
        Format::Nutch => format!(
            "Recno:: 0\nURL:: {page}\n\nParseData::\nVersion: 5\nStatus: success(1,0)\nTitle: t\nOutlinks: 2\n  outlink: toUrl: {page}x anchor: \n  outlink: toUrl: {page}y anchor: \nContent Metadata:\n\n"
        ),
        other => panic!("{other:?}"),
    };
    page(own) + &page(other)
}

/// The links of other shards' pages are not read. Of a group, which is open until it has a link, the first one is.
#[test]
fn links_of_other_shards_are_not_read() {
    // Shards 0 and 1 of 4, as in the unit test of shards by the reference implementation.
    let pages = ["http://a.example/", "http://example.org/"];
    let shard: Shard = "0/4".parse().unwrap();
    let rules = InputRules {
        shard: Some(shard),
        ..InputRules::default()
    };
    for format in [
        Format::Records,
        Format::Warc,
        Format::Arc,
        Format::Wat,
        Format::UrlAdjacency,
        Format::UrlEdges,
        Format::CsvLinks,
        Format::Nutch,
    ] {
        let text = two_pages(format, pages);
        let links = |rules: &InputRules| -> Vec<usize> {
            let decoder = format.decoder_by(rules, &cashrank::Limits::default());
            let said = decode(&*decoder, text.as_bytes());
            let of_pages = said.iter().filter_map(|said| match &said.what {
                What::Record(record) => Some((record.url.to_vec(), record.links.len())),
                _ => None,
            });
            let of_pages: Vec<_> = of_pages.collect();
            assert_eq!(of_pages.len(), 2, "{format:?}: {said:?}");
            for ((url, _), page) in of_pages.iter().zip(pages) {
                assert_eq!(url, page.as_bytes(), "{format:?}");
            }
            of_pages.into_iter().map(|(_, links)| links).collect()
        };
        assert_eq!(links(&InputRules::default()), [2, 2], "{format:?}");
        let is_grouped = matches!(format, Format::UrlEdges | Format::CsvLinks);
        assert_eq!(links(&rules), [2, usize::from(is_grouped)], "{format:?}");
    }
}

/// A field after the links may say that the page is another one: the links that were skipped are then read after all.
#[test]
fn links_of_a_page_that_turns_out_to_be_the_shards_are_read() {
    let shard: Shard = "0/4".parse().unwrap();
    let rules = InputRules {
        shard: Some(shard),
        ..InputRules::default()
    };
    for (more, other) in [("", ""), (",\"n\":1.5", ",\"links_rel\":[\"\"]")] {
        let line = |url: &str, last: &str| {
            format!(
                "{{\"url\":\"{url}\",\"links\":[\"/x\"]{more}{other},\"final_url\":\"{last}\"}}\n"
            )
        };
        let (own, remote) = ("http://a.example/", "http://example.org/");
        let decoder = Format::Records.decoder_by(&rules, &cashrank::Limits::default());
        let records = |text: String| -> Vec<(String, usize)> {
            let said = decode(&*decoder, text.as_bytes());
            said.into_iter()
                .map(|said| match said.what {
                    What::Record(record) => (
                        String::from_utf8_lossy(&record.url).into_owned(),
                        record.links.len(),
                    ),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        // The redirect from one to the other comes first, and has no links.
        let [to_own, to_other] = [line(remote, own), line(own, remote)].map(records);
        assert_eq!(to_own, [(remote.into(), 0), (own.into(), 1)]);
        assert_eq!(to_other[0], (own.into(), 0));
        assert_eq!(to_other[1].0, remote);
    }
}
