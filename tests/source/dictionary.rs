//! zstd inputs that begin with a dictionary, as `.warc.zst` files do.

use std::io::Cursor;

use super::common::*;
use cashrank::Limits;
use cashrank_crawl::source::{DamageKind, InputName, Source, SourceOptions};

fn lines() -> Vec<Vec<u8>> {
    (0..2000)
        .map(|n| format!("https://site.example/page/{n}\tlink {}\n", n * 7).into_bytes())
        .collect()
}

/// Returns one frame per line, with checksum and size, each compressed with the dictionary.
fn frames(lines: &[Vec<u8>], dictionary: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    compressor.include_checksum(true).unwrap();
    let frames = lines.iter().map(|line| compressor.compress(line).unwrap());
    frames.flatten().collect()
}

/// Returns the skippable frame 0x184D2A5D (IIPC, Zstandard Compression for WARC Files).
fn frame_of(content: &[u8]) -> Vec<u8> {
    let magic = 0x184D_2A5D_u32.to_le_bytes();
    let length = (content.len() as u32).to_le_bytes();
    [&magic[..], &length, content].concat()
}

fn trained() -> Vec<u8> {
    zstd::dict::from_samples(&lines(), 4096).unwrap()
}

#[test]
fn trained_compressed_and_raw_dictionaries() {
    let (lines, trained) = (&lines()[..50], trained());
    let raw = b"https://site.example/page/\tlink ".repeat(20);
    for (what, dictionary, content) in [
        ("trained", &trained, trained.clone()),
        ("compressed", &trained, zstd_checked(&trained)),
        ("raw", &raw, raw.clone()),
        ("raw, compressed", &raw, zstd_checked(&raw)),
    ] {
        let frames = frames(lines, dictionary);
        // The dictionary is needed: the frames alone do not decode to these lines.
        let alone = zstd::stream::decode_all(&frames[..]);
        assert!(alone.is_err(), "{what}");
        // Other skippable frames are ignored, and so is another dictionary later.
        for more in [&b""[..], &zstd_skippable(b"extension"), &frame_of(&trained)] {
            let data = [&frame_of(&content)[..], more, &frames].concat();
            for how in How::default().variants() {
                let outcome = how.read(&data);
                assert_eq!(outcome.summary.members, lines.len() as u64, "{what}");
                assert_eq!(outcome.summary.unchecked, 0, "{what}");
                assert_eq!(outcome.sound(), lines.concat(), "{what}");
            }
        }
    }
}

/// An empty dictionary counts as none; frames without a dictionary may follow one.
#[test]
fn dictionaries_that_are_not_used() {
    for content in [Vec::new(), trained()] {
        let data = [frame_of(&content), zstd_checked(b"a\nb\n")].concat();
        assert_eq!(How::default().read(&data).sound(), b"a\nb\n");
    }
    // Not at the start: it is a skippable frame like any other.
    let data = [
        zstd_checked(b"a\n"),
        frame_of(b"junk"),
        zstd_checked(b"b\n"),
    ]
    .concat();
    assert_eq!(How::default().read(&data).sound(), b"a\nb\n");
}

#[test]
fn another_dictionary_than_the_frame_needs() {
    let trained = trained();
    let id = u32::from_le_bytes(trained[4..8].try_into().unwrap());
    let mut other = trained.clone();
    other[4] ^= 1;
    let lines = &lines()[..3];
    for (first, words) in [
        (
            frame_of(&other),
            format!(
                "needs dictionary {id}, and the input begins with dictionary {}",
                id ^ 1
            ),
        ),
        (
            frame_of(b"raw content"),
            format!("needs dictionary {id}, and the input begins with one without"),
        ),
        (
            Vec::new(),
            format!("needs dictionary {id}, and the input does not begin with one"),
        ),
    ] {
        let data = [first, frames(lines, &trained)].concat();
        let outcome = How::default().read(&data);
        assert_eq!(outcome.damage().kind, DamageKind::Unsupported);
        assert!(
            outcome.damage().what.contains(&words),
            "{}",
            outcome.damage().what
        );
        assert_eq!(outcome.bytes, b"");
    }
}

#[test]
fn damaged_dictionaries() {
    let trained = trained();
    let whole = frame_of(&zstd_checked(&trained));
    for cut in 4..whole.len() {
        let outcome = How::default().read(&whole[..cut]);
        assert_eq!(outcome.damage().kind, DamageKind::Truncated, "cut at {cut}");
        assert!(outcome.damage().what.contains("dictionary"));
    }
    // With its entropy tables cut off; and a compressed one with a flipped bit.
    let mut flipped = zstd_checked(&trained);
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    for content in [&trained[..20], &flipped] {
        let data = [frame_of(content), zstd_checked(b"a\n")].concat();
        let outcome = How::default().read(&data);
        assert_eq!(outcome.damage().kind, DamageKind::InvalidData);
        assert!(
            outcome.damage().what.contains("dictionary"),
            "{}",
            outcome.damage().what
        );
    }
}

/// Refused before data of that size is held: one that declares its large size, and one that grows.
#[test]
fn dictionaries_over_the_limit() {
    let huge = [0x5d, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff, 0, 0];
    let zeros = vec![0; (1 << 20) + 1];
    let told = frame_of(&zstd_checked(&zeros));
    // A stream does not declare its length.
    let mut stream = zstd::Encoder::new(Vec::new(), 1).unwrap();
    stream.window_log(18).unwrap();
    std::io::Write::write_all(&mut stream, &zeros).unwrap();
    let untold = frame_of(&stream.finish().unwrap());
    for data in [&huge[..], &told, &untold] {
        let mut how = How::default();
        how.limits.zstd_window_log = 20;
        let outcome = how.read(data);
        let what = &outcome.damage().what;
        assert_eq!(outcome.damage().kind, DamageKind::Unsupported, "{what}");
        assert!(what.contains("larger than 2^20 bytes"), "{what}");
    }
}

/// After a dictionary no frame can be decoded without the input's start, so reading can resume only there; without one
/// it resumes near the chunk.
#[test]
fn reading_restarts_at_the_start() {
    let (all, trained) = (lines(), trained());
    // Positions 64 KiB apart are kept.
    let lines: Vec<Vec<u8>> = all
        .chunks(100)
        .map(|some| some.concat().repeat(30))
        .collect();
    for (data, from_start) in [
        (
            [frame_of(&trained), frames(&lines, &trained)].concat(),
            true,
        ),
        (
            lines.iter().flat_map(|line| zstd_checked(line)).collect(),
            false,
        ),
    ] {
        let mut source = Source::from_reader(
            InputName::Stdin,
            Box::new(Cursor::new(data)),
            &Limits::default(),
            &SourceOptions {
                chunk_bytes: 10_000,
                ..SourceOptions::default()
            },
        )
        .unwrap();
        let mut last = None;
        while let Some(chunk) = source.next_chunk(&Lines, Vec::new()).unwrap() {
            last = chunk.member;
        }
        let last = last.unwrap();
        assert_eq!((last.compressed, last.decompressed) == (0, 0), from_start);
    }
}
