//! Cut and damaged inputs.

use std::io::Read;

use super::common::*;
use cashrank_crawl::source::{DamageKind, Member};
use xxhash_rust::xxh3::xxh3_128;

const LENGTHS: [usize; 5] = [150, 0, 97, 203, 1];

fn gzip_members(text: &[u8]) -> Members {
    members(text, &LENGTHS, gzip)
}

fn zstd_frames(text: &[u8]) -> Members {
    members(text, &LENGTHS, zstd_checked)
}

/// Returns what another reader of the format yields before it finds the cut.
fn readable(data: &[u8], zstd: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let _expected = if zstd {
        zstd::stream::read::Decoder::with_buffer(data)
            .unwrap()
            .read_to_end(&mut out)
    } else {
        flate2::bufread::MultiGzDecoder::new(data).read_to_end(&mut out)
    };
    out
}

#[test]
fn truncation_at_every_byte() {
    let text = text(700);
    for (input, zstd) in [(gzip_members(&text), false), (zstd_frames(&text), true)] {
        for cut in 0..input.data.len() {
            let data = &input.data[..cut];
            let done = input.ends.iter().rev().find(|end| end.0 <= cut).copied();
            let (member_at, verified) = done.unwrap_or((0, 0));
            for held in [0, 120, 1 << 20] {
                for how in How::default().held(held).variants().into_iter().step_by(4) {
                    let outcome = how.read(data);
                    if cut == member_at {
                        // Looks like a sound end.
                        assert_eq!(outcome.sound(), &text[..verified]);
                        continue;
                    }
                    let expected = readable(data, zstd);
                    assert_eq!(outcome.bytes, whole_lines(&expected), "cut at {cut}");
                    assert_eq!(whole_lines(&outcome.bytes), outcome.bytes);
                    assert!(text.starts_with(&outcome.bytes));
                    if held == 1 << 20 {
                        assert_eq!(outcome.verified, whole_lines(&text[..verified]));
                    }
                    // Less, if members stream.
                    assert!(outcome.verified.len() <= verified);
                    let damage = outcome.damage();
                    assert_eq!(damage.kind, DamageKind::Truncated, "cut at {cut}");
                    assert_eq!(damage.unverified_from, verified as u64);
                    assert_eq!(damage.handed_out_to, outcome.bytes.len() as u64);
                    let member = Member {
                        compressed: member_at as u64,
                        decompressed: verified as u64,
                    };
                    assert_eq!(damage.member, Some(member));
                    assert_eq!(outcome.summary.damage.as_ref(), Some(damage));
                }
            }
        }
    }
}

/// Applied up to the cut, then the whole input: together they give the uncut one.
#[test]
fn a_cut_input_continues_with_the_whole_one() {
    let text = text(700);
    for input in [gzip_members(&text), zstd_frames(&text)] {
        for cut in 0..input.data.len() {
            let first = How::default().chunk(33).read(&input.data[..cut]);
            let mut source = How::default().chunk(20).source(&input.data);
            source
                .pass_to(first.summary.bytes, Some(first.summary.prefix))
                .unwrap();
            let second = drain(source);
            assert_eq!(second.summary.prefix, xxh3_128(&text));
            assert_eq!([first.bytes, second.sound()].concat(), text);

            // The cut input once more: nothing new, and the same error.
            let mut source = How::default().source(&input.data[..cut]);
            source
                .pass_to(first.summary.bytes, Some(first.summary.prefix))
                .unwrap();
            let again = drain(source);
            assert_eq!(again.bytes, b"");
            assert_eq!(again.summary.damage, first.summary.damage);
        }
    }
}

/// The first bytes stay: without its magic number an input is plain.
#[test]
fn no_flipped_bit_lets_a_wrong_byte_pass_as_verified() {
    let text = text(700);
    for (input, magic) in [(gzip_members(&text), 2), (zstd_frames(&text), 4)] {
        let (mut damaged, mut complete) = (0, 0);
        for bit in magic * 8..input.data.len() * 8 {
            let mut data = input.data.clone();
            data[bit / 8] ^= 1 << (bit % 8);
            for how in [
                How::default(),
                How::default().chunk(7),
                How::default().held(100),
                How::default().held(0).chunk(30),
                How::default().accepting(),
            ] {
                let outcome = how.read(&data);
                let held = how.limits.held_bytes > 700;
                for (offset, bytes) in &outcome.verified_at {
                    assert!(text[*offset..].starts_with(bytes), "bit {bit}");
                }
                if outcome.error.is_none() {
                    assert_eq!(outcome.bytes, text, "bit {bit}");
                    complete += 1;
                    continue;
                }
                damaged += 1;
                let damage = outcome.damage();
                assert_eq!(whole_lines(&outcome.bytes), outcome.bytes, "bit {bit}");
                let from = damage.unverified_from as usize;
                assert!(
                    text.starts_with(whole_lines(&outcome.bytes[..from.min(outcome.bytes.len())]))
                );
                let released = damage.kind == DamageKind::Truncated;
                if held {
                    assert_eq!(outcome.verified, whole_lines(&text[..from]), "bit {bit}");
                }
                if held && !how.options.accept_unverified && !released {
                    assert_eq!(outcome.bytes, outcome.verified, "bit {bit}");
                    assert!(!damage.unverified_records());
                }
            }
        }
        assert!(damaged > complete && complete > 0, "{damaged} {complete}");
    }
}

/// Returns two members; the second's checksum is wrong.
fn failing(compress: fn(&[u8]) -> Vec<u8>, text: &[u8]) -> (Vec<u8>, usize) {
    let first = whole_lines(&text[..300]).len() + 5;
    let mut data = [compress(&text[..first]), compress(&text[first..])].concat();
    // The last field is gzip's length after the CRC, or zstd's checksum.
    let at = data.len() - if data[0] == 0x1f { 8 } else { 4 };
    data[at] ^= 0x10;
    (data, first)
}

#[test]
fn a_failed_checksum_on_both_sides_of_the_held_limit() {
    let text = text(2000);
    for compress in [gzip as fn(&[u8]) -> Vec<u8>, zstd_checked] {
        let (data, first) = failing(compress, &text);
        let second = (text.len() - first) as u64;
        for (held, accept, streamed) in [
            (second, false, false),
            (second - 1, false, true),
            (second, true, true),
        ] {
            let mut how = How::default().held(held);
            how.options.accept_unverified = accept;
            for how in how.variants() {
                let outcome = how.read(&data);
                let damage = outcome.damage();
                assert_eq!(damage.kind, DamageKind::ChecksumFailed);
                assert_eq!(damage.unverified_from, first as u64);
                assert_eq!(damage.unverified_records(), streamed);
                let verified = whole_lines(&text[..first]);
                assert_eq!(outcome.verified, verified);
                assert_eq!(outcome.bytes, if streamed { &text[..] } else { verified });
                assert_eq!(outcome.summary.members, 1);
            }
        }
    }
}

#[test]
fn a_sound_member_on_both_sides_of_the_held_limit() {
    let text = text(2000);
    let size = text.len() as u64;
    for data in [gzip(&text), zstd_checked(&text), zstd_frame(&text, false)] {
        let held = How::default().held(size).chunk(100).read(&data);
        assert_eq!(held.verified, text);
        let streamed = How::default().held(size - 1).chunk(100).read(&data);
        assert!(streamed.verified.len() < text.len());
        assert_eq!(streamed.sound(), text);
    }
}

/// Holding back the front of a frame that declares its size as too large would gain nothing.
#[test]
fn a_frame_that_declares_its_size_streams_from_its_start() {
    let text = text(1 << 20);
    let size = text.len() as u64;
    let data = zstd::bulk::compress(&text, 1).unwrap();
    let held = How::default().held(size).chunk(1 << 16).read(&data);
    assert!(held.memory > text.len());
    assert!(held.verified == text);
    let streamed = How::default().held(size - 1).chunk(1 << 16).read(&data);
    // The look-ahead of 512 KiB and four chunks.
    assert!(
        streamed.memory <= (512 << 10) + (4 << 16),
        "{}",
        streamed.memory
    );
    assert!(streamed.verified.len() < text.len());
    assert!(streamed.sound() == text);
}

#[test]
fn invalid_data_in_a_streamed_member_keeps_what_came_before() {
    let text = text(1 << 20);
    for compress in [gzip as fn(&[u8]) -> Vec<u8>, zstd_checked] {
        let good = compress(&text);
        let mut data = good.clone();
        let at = data.len() / 2;
        for byte in &mut data[at..at + 64] {
            *byte ^= 0xa5;
        }
        let how = How::default().held(1000);
        let expected = how.read(&data);
        assert_ne!(expected.damage().kind, DamageKind::Truncated);
        assert!(text.starts_with(&expected.bytes[..text.len() / 4]));
        // The same up to the damage, however it is read.
        for how in how.variants().into_iter().skip(6) {
            let outcome = how.read(&data);
            assert!(outcome.bytes == expected.bytes);
            assert_eq!(outcome.damage(), expected.damage());
        }
    }
}

#[test]
fn what_follows_the_last_member() {
    let text = text(500);
    let mut zstd_in_gzip = gzip(&text);
    zstd_in_gzip.extend(zstd_checked(b"x\n"));
    let mut gzip_in_zstd = zstd_checked(&text);
    gzip_in_zstd.extend(gzip(b"x\n"));
    let padded = [&gzip(&text)[..], &[0; 9], b"x"].concat();
    let padded_zstd = [&zstd_checked(&text)[..], &[0; 9]].concat();
    let garbage = [&gzip(&text)[..], b"garbage"].concat();
    for data in [zstd_in_gzip, gzip_in_zstd, padded, padded_zstd, garbage] {
        for how in How::default().variants() {
            let outcome = how.read(&data);
            let damage = outcome.damage();
            assert_eq!(damage.kind, DamageKind::Trailing);
            assert_eq!(damage.member, None);
            assert_eq!(damage.unverified_from, text.len() as u64);
            assert!(!damage.unverified_records());
            assert_eq!(outcome.verified, text);
            assert_eq!(outcome.bytes, text);
        }
    }
    // A last record without its end might continue in the damaged part: it is not handed out.
    let data = [&gzip(b"whole\nnot whole")[..], b"?"].concat();
    assert_eq!(How::default().read(&data).bytes, b"whole\n");
}

#[test]
fn headers_that_break_the_rules() {
    let text = b"a line\n";
    let reserved = |mut data: Vec<u8>| {
        data[3] |= 0x20;
        data
    };
    let method = |mut data: Vec<u8>| {
        data[2] = 7;
        data
    };
    let header_sum = |mut data: Vec<u8>| {
        data[4] ^= 1; // the time, which only the header's CRC covers
        data
    };
    for (data, kind) in [
        (reserved(gzip(text)), DamageKind::InvalidData),
        (method(gzip(text)), DamageKind::InvalidData),
        (
            header_sum(gzip_with_all_fields(text)),
            DamageKind::ChecksumFailed,
        ),
    ] {
        let outcome = How::default().read(&data);
        assert_eq!(outcome.damage().kind, kind);
        assert_eq!(outcome.bytes, b"");
    }
    assert_eq!(How::default().read(&header_sum(gzip(text))).sound(), text);
}

#[test]
fn messages_say_where_and_what_was_used() {
    let text = b"one\ntwo\nthr";
    let first = gzip(text);
    let at = first.len();
    let cut = [&first[..], &gzip(b"ee\nfour\n")[..20]].concat();
    let error = How::default().read(&cut).error.unwrap();
    let message = error.after_record(2).to_string();
    let expected =
        format!("-: the input ends inside the gzip member that starts at compressed byte {at};");
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.ends_with("(after record 2)"), "{message}");
    let (failed, _) = failing(gzip, &super::common::text(2000));
    let message = How::default()
        .held(10)
        .read(&failed)
        .error
        .unwrap()
        .to_string();
    assert!(
        message.contains("were used but could not be verified"),
        "{message}"
    );
}
