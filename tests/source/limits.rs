//! Over-long records, bombs, and frames that request too much.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::*;
use cashrank_crawl::decode::{Decoder, Names, Sink, Skipper};
use cashrank_crawl::source::{DamageKind, InputName, Source, SourceOptions};
use xxhash_rust::xxh3::xxh3_128;

/// Returns the lines over `limit`, and the others: what any reader must find.
fn split(text: &[u8], limit: usize) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut kept, mut dropped, mut at) = (Vec::new(), Vec::new(), 0);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if line.len() <= limit {
            kept.extend_from_slice(line);
        } else {
            dropped.push((at, line.len() as u64));
        }
        at += line.len() as u64;
    }
    (kept, dropped)
}

#[test]
fn records_over_the_limit_are_dropped_exactly() {
    let text = text(9000);
    for unended in [&b""[..], b"short", &[b'x'; 200]] {
        let text = [&text[..], unended].concat();
        for limit in [0, 1, 2, 25, 26, 58, 59, 60, 199, 200] {
            let (kept, dropped) = split(&text, limit);
            for data in [
                text.clone(),
                gzip(&text),
                members(&text, &[333; 20], zstd_checked).data,
            ] {
                for held in [100, 1 << 20] {
                    let mut how = How::default().held(held);
                    how.limits.line_bytes = limit as u64;
                    for how in how.variants() {
                        let outcome = how.read(&data);
                        assert_eq!(outcome.dropped, dropped, "limit {limit}");
                        assert_eq!(outcome.summary.bytes, text.len() as u64);
                        assert_eq!(outcome.summary.prefix, xxh3_128(&text));
                        assert_eq!(outcome.sound(), kept, "limit {limit}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_over_long_record_that_is_cut_is_not_reported() {
    let mut text = b"short\n".to_vec();
    text.extend([b'x'; 5000]);
    let data = gzip(&text);
    let mut how = How::default();
    how.limits.line_bytes = 100;
    for how in how.variants() {
        let outcome = how.read(&data[..data.len() - 9]);
        assert_eq!(outcome.damage().kind, DamageKind::Truncated);
        assert_eq!(outcome.bytes, b"short\n");
        assert_eq!(outcome.dropped, []);
        assert_eq!(outcome.summary.bytes, 6);
        assert_eq!(outcome.summary.prefix, xxh3_128(b"short\n"));
    }
}

/// Decoder of lines that records the longest buffer it was given.
struct Watch(AtomicUsize);

impl Decoder for Watch {
    fn names(&self) -> Names {
        Names::Opaque
    }

    fn whole(&self, buf: &[u8]) -> usize {
        self.0.fetch_max(buf.len(), Ordering::Relaxed);
        Lines.whole(buf)
    }

    fn skipper(&self) -> Skipper {
        Lines.skipper()
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        Lines.decode(chunk, sink);
    }
}

/// Length of a bomb and of an endless line in bytes: many times what may be held.
const LENGTH: u64 = 100_000_000;

/// Writes one member that expands to as many zeros between two short lines.
fn bomb(encoder: &mut dyn Write) {
    encoder.write_all(b"first\n").unwrap();
    std::io::copy(&mut std::io::repeat(0).take(LENGTH), encoder).unwrap();
    encoder.write_all(b"\nlast\n").unwrap();
}

fn gzip_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    bomb(&mut encoder);
    encoder.finish().unwrap()
}

fn zstd_bomb() -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    bomb(&mut encoder);
    encoder.finish().unwrap()
}

#[test]
fn bombs_stay_within_memory() {
    for (data, ratio) in [(gzip_bomb(), 1000), (zstd_bomb(), 10_000)] {
        assert!(LENGTH / data.len() as u64 > ratio, "{}", data.len());
        let mut how = How::default().held(8 << 20);
        how.limits.line_bytes = 4 << 20;
        let decoder = Watch(AtomicUsize::new(0));
        let mut source = how.source(&data);
        let (mut bytes, mut dropped, mut memory) = (Vec::new(), Vec::new(), 0);
        let mut buffer = Vec::new();
        while let Some(chunk) = source.next_chunk(&decoder, buffer).unwrap() {
            memory = memory.max(source.memory());
            bytes.extend_from_slice(&chunk.bytes);
            if chunk.oversize > 0 {
                dropped.push((chunk.offset + chunk.bytes.len() as u64, chunk.oversize));
            }
            buffer = chunk.bytes;
        }
        assert_eq!(bytes, b"first\nlast\n");
        assert_eq!(dropped, [(6, LENGTH + 1)]);
        // The look-ahead, the limits, and three chunks.
        assert!(memory <= (1 << 20) + (12 << 20) + (3 << 20), "{memory}");
        assert!(decoder.0.into_inner() <= (4 << 20) + (1 << 20));
    }
}

/// The maximum that may be held is held when a member turns out to be too large.
#[test]
fn held_data_stays_within_memory() {
    let text = text(8 << 20);
    for data in [gzip(&text), zstd_checked(&text)] {
        let outcome = How::default().held(6 << 20).read(&data);
        assert!(outcome.memory >= 6 << 20);
        assert!(outcome.memory <= 10 << 20, "{}", outcome.memory);
        assert!(outcome.sound() == text);
    }
}

#[test]
fn expansion_is_limited_to_the_byte() {
    let text = text(5000);
    let size = text.len();
    let first = whole_lines(&text[..1000]).len();
    for compress in [gzip as fn(&[u8]) -> Vec<u8>, zstd_checked] {
        let data = members(&text, &[first], compress).data;
        for held in [100, 1 << 20] {
            let mut how = How::default().held(held as u64);
            how.limits.expansion_bytes = (size - first) as u64;
            assert_eq!(how.read(&data).sound(), text);
            how.limits.expansion_bytes -= 1;
            for how in how.variants() {
                let outcome = how.read(&data);
                assert_eq!(outcome.damage().kind, DamageKind::Expansion);
                assert_eq!(outcome.damage().unverified_from, first as u64);
                if held > first {
                    assert_eq!(outcome.verified, &text[..first]);
                }
                let to = if held == 100 { size - 1 } else { first };
                assert_eq!(outcome.bytes, whole_lines(&text[..to]));
            }
        }
    }
}

#[test]
fn zstd_windows() {
    let text = text(5 << 20);
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(22).unwrap();
    encoder.write_all(&text).unwrap();
    let data = [zstd_checked(b"before\n"), encoder.finish().unwrap()].concat();
    let mut how = How::default();
    how.limits.zstd_window_log = 22;
    assert_eq!(how.read(&data).sound().len(), 7 + text.len());
    how.limits.zstd_window_log = 21;
    let outcome = how.read(&data);
    assert_eq!(outcome.damage().kind, DamageKind::Unsupported);
    assert_eq!(outcome.bytes, b"before\n");
    assert!(
        outcome
            .damage()
            .what
            .contains("raise `limit_zstd_window` to 22")
    );
    // Outside the library's range: clamped to it.
    for log in [0, 9, 32, 1000] {
        how.limits.zstd_window_log = log;
        how.read(&zstd_checked(b"small\n"));
    }
    // A window that no reader can have: 2^41 * 15/8, by hand.
    let huge = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 1, 0, 0];
    assert_eq!(
        How::default().read(&huge).damage().kind,
        DamageKind::Unsupported
    );
}

/// A line far longer than memory should hold, and the record after it.
#[test]
fn a_long_line_of_a_pipe_is_never_held() {
    let line = std::io::repeat(b'x').take(3 * LENGTH);
    let reader = line.chain(&b"\nafter\n"[..]);
    let mut source = Source::from_reader(
        InputName::Stdin,
        Box::new(reader),
        &cashrank::Limits::default(),
        &SourceOptions::default(),
    )
    .unwrap();
    let chunk = source.next_chunk(&Lines, Vec::new()).unwrap().unwrap();
    assert_eq!((chunk.offset, chunk.oversize), (0, 3 * LENGTH + 1));
    assert!(source.memory() <= 8 << 20, "{}", source.memory());
    let chunk = source.next_chunk(&Lines, chunk.bytes).unwrap().unwrap();
    assert_eq!(chunk.bytes, b"after\n");
}
