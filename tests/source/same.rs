//! The same bytes and hash from every wrapping, chunk size and read size.

use super::common::*;
use cashrank_crawl::source::Compression;
use xxhash_rust::xxh3::xxh3_128;

/// Every way to wrap `text`, with the compression, members and unchecked members to be found.
fn wrappings(text: &[u8]) -> Vec<(&'static str, Vec<u8>, Compression, u64, u64)> {
    use Compression::*;
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    // A line each, or a thousand members.
    let lines: Vec<Vec<u8>> = lines
        .chunks(lines.len().div_ceil(1000).max(1))
        .map(|lines| lines.concat())
        .collect();
    let count = lines.len() as u64;
    let (left, right) = text.split_at((text.len() / 2 + 3).min(text.len()));
    let unchecked = |data: &[u8]| zstd_frame(data, false);
    let mut sized = zstd::bulk::Compressor::new(1).unwrap();
    let padding = [0u8; 700];
    vec![
        ("plain", text.to_vec(), Plain, 0, 0),
        ("one gzip member", gzip(text), Gzip, 1, 0),
        (
            "many gzip members",
            lines.iter().flat_map(|line| gzip(line)).collect(),
            Gzip,
            count,
            0,
        ),
        (
            "gzip cut in a line",
            [gzip(left), gzip(right)].concat(),
            Gzip,
            2,
            0,
        ),
        (
            "gzip, header fields",
            [gzip_with_all_fields(left), gzip(right)].concat(),
            Gzip,
            2,
            0,
        ),
        (
            "gzip, empty members",
            [
                gzip(b""),
                gzip(left),
                gzip(b""),
                gzip(b""),
                gzip(right),
                gzip(b""),
            ]
            .concat(),
            Gzip,
            6,
            0,
        ),
        (
            "gzip, zero padding",
            [&gzip(text)[..], &padding].concat(),
            Gzip,
            1,
            0,
        ),
        ("one zstd frame", zstd_frame(text, true), Zstd, 1, 0),
        ("one unchecked frame", unchecked(text), Zstd, 1, 1),
        (
            "a frame with its size",
            sized.compress(text).unwrap(),
            Zstd,
            1,
            1,
        ),
        (
            "many zstd frames",
            lines
                .iter()
                .flat_map(|line| zstd_frame(line, true))
                .collect(),
            Zstd,
            count,
            0,
        ),
        (
            "zstd, mixed and skippable",
            [
                zstd_skippable(b"first"),
                zstd_frame(left, true),
                zstd_skippable(b""),
                unchecked(right),
                unchecked(b""),
                zstd_skippable(&padding),
            ]
            .concat(),
            Zstd,
            3,
            2,
        ),
    ]
}

#[test]
fn every_wrapping_gives_the_plain_bytes() {
    let whole = text(3000);
    let unended = [&whole[..], b"no line end"].concat();
    for text in [&whole[..], &unended, b"x", b"\n"] {
        for (name, data, compression, members, unchecked) in wrappings(text) {
            for how in How::default().variants() {
                let mut source = how.source(&data);
                assert_eq!(source.compression(), compression, "{name}");
                assert_eq!(source.head().unwrap(), text, "{name}");
                let outcome = drain(source);
                let summary = outcome.summary.clone();
                assert_eq!(outcome.verified, outcome.bytes, "{name}");
                assert_eq!(outcome.sound(), text, "{name}");
                assert_eq!(summary.prefix, xxh3_128(text), "{name}");
                assert_eq!(summary.bytes, text.len() as u64, "{name}");
                assert_eq!(summary.compressed, data.len() as u64, "{name}");
                assert_eq!(summary.members, members, "{name}");
                assert_eq!(summary.unchecked, unchecked, "{name}");
                assert_eq!(summary.damage, None);
            }
        }
    }
}

/// Large enough for many blocks, calls and chunks, held and streamed.
#[test]
fn large_inputs() {
    let text = text(3 << 20);
    for (name, data, ..) in wrappings(&text) {
        for how in [How::default(), How::default().chunk(65_537).held(1 << 20)] {
            let outcome = how.read(&data);
            assert_eq!(outcome.summary.prefix, xxh3_128(&text), "{name}");
            assert!(outcome.sound() == text, "{name}");
        }
    }
}

#[test]
fn empty_inputs() {
    let empty: [&[u8]; 4] = [
        b"",
        &gzip(b""),
        &zstd_frame(b"", true),
        &zstd_skippable(b"x"),
    ];
    for data in empty {
        for how in How::default().variants() {
            let mut source = how.source(data);
            assert_eq!(source.head().unwrap(), b"");
            let outcome = drain(source);
            // XXH128 of no bytes, as xxHash's own test vectors have it.
            assert_eq!(
                outcome.summary.prefix,
                0x99aa_06d3_0147_98d8_6001_c324_468d_497f
            );
            assert_eq!(outcome.sound(), b"");
        }
    }
}

#[test]
fn head_shows_64_kib_and_consumes_nothing() {
    let text = text(200_000);
    for (name, data, ..) in wrappings(&text) {
        for chunk in [1, 1000, 1 << 20] {
            let mut source = How::default().chunk(chunk).source(&data);
            assert_eq!(source.head().unwrap(), &text[..64 << 10], "{name}");
            assert_eq!(source.head().unwrap(), &text[..64 << 10], "{name}");
            assert!(drain(source).sound() == text, "{name}");
        }
    }
}

#[test]
fn buffers_are_reused() {
    let text = text(3 << 20);
    let mut source = How::default().chunk(1 << 16).source(&text);
    let mut seen = std::collections::HashSet::new();
    let mut buffer = Vec::new();
    let mut chunks = 0;
    while let Some(chunk) = source.next_chunk(&Lines, buffer).unwrap() {
        seen.insert(chunk.bytes.as_ptr());
        buffer = chunk.bytes;
        chunks += 1;
    }
    assert!(chunks > 40 && seen.len() <= 4, "{chunks} {}", seen.len());
}

#[test]
fn pass_to_continues_where_a_run_stopped() {
    let text = [text(3000), b"no line end".to_vec()].concat();
    let ends = |n: &usize| *n == 0 || *n == text.len() || text[*n - 1] == b'\n';
    for (name, data, ..) in wrappings(&text) {
        for offset in (0..=text.len()).filter(ends).step_by(9) {
            for how in [How::default(), How::default().chunk(50).held(100)] {
                let mut source = how.source(&data);
                source
                    .pass_to(offset as u64, Some(xxh3_128(&text[..offset])))
                    .unwrap();
                let outcome = drain(source);
                assert_eq!(outcome.summary.prefix, xxh3_128(&text), "{name}");
                assert_eq!(outcome.sound(), &text[offset..], "{name}");
            }
        }
    }
}

#[test]
fn pass_to_refuses_another_input() {
    let text = text(3000);
    let offset = whole_lines(&text[..2000]).len();
    let mut other = text.clone();
    other[100] ^= 1;
    for (name, data, ..) in wrappings(&text) {
        let mut source = How::default().source(&data);
        let error = source
            .pass_to(offset as u64, Some(xxh3_128(&other[..offset])))
            .unwrap_err();
        let (found, recorded) = (xxh3_128(&text[..offset]), xxh3_128(&other[..offset]));
        let message = error.to_string();
        assert!(
            matches!(error, cashrank::Error::InputChanged(_)),
            "{name}: {message}"
        );
        assert!(
            message.contains(&format!("{found:032x}")),
            "{name}: {message}"
        );
        assert!(
            message.contains(&format!("{recorded:032x}")),
            "{name}: {message}"
        );

        let beyond = text.len() as u64 + 1;
        let mut source = How::default().source(&data);
        let error = source.pass_to(beyond, Some(0)).unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, cashrank::Error::InputChanged(_)),
            "{name}: {message}"
        );
        assert!(
            message.contains(&format!("ends at byte {}", text.len())),
            "{message}"
        );
    }
}
