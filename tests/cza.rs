//! Crawl archives through the library: the golden sample, good and bad; every cut and every flipped
//! bit of a small archive; the index at its end.

#[path = "cza/golden.rs"]
mod golden;
#[path = "cza/support.rs"]
mod support;

use cashrank::Error;
use cashrank::archive::{Index, Options};
use cashrank::formats::Format;
use cashrank::ingest::convert;
use cashrank::source::DamageKind;

use support::{Silent, archive, crawl, from_bytes, index_of};

/// Records of the blocks that end at or before `offset`.
fn records_before(index: &Index, offset: u64) -> u64 {
    let ends = index
        .blocks
        .iter()
        .skip(1)
        .map(|next| (next.offset, next.first_record));
    let ends = ends.chain([(index.end, index.records)]);
    let whole = ends
        .filter(|(end, _)| *end <= offset)
        .map(|(_, records)| records);
    whole.max().unwrap_or(0)
}

#[test]
fn cut_at_every_byte() {
    let bytes = archive(&crawl(5, 60), 13);
    let index = index_of(&bytes);
    assert_eq!(index.blocks.len(), 5);
    for cut in 1..bytes.len() {
        let read = from_bytes(&bytes[..cut]).unwrap();
        let Some(Error::Corrupt { damage, .. }) = read.bad_end else {
            panic!("cut to {cut} bytes: {read:?}");
        };
        assert_eq!(damage.kind, DamageKind::Truncated, "{cut}: {damage}");
        assert!(!damage.unverified_records());
        let expected = records_before(&index, cut as u64);
        assert_eq!(read.written.records, expected, "cut to {cut} bytes");
    }
    let whole = from_bytes(&bytes).unwrap();
    assert!(whole.bad_end.is_none());
    assert_eq!(
        (whole.written.records, whole.written.links),
        (60, index.links)
    );
}

#[test]
fn a_bit_flipped_in_every_byte() {
    let bytes = archive(&crawl(6, 30), 13);
    let index = index_of(&bytes);
    for bit in (0..bytes.len()).map(|at| 8 * at + at % 8) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let read = from_bytes(&flipped);
        if bit < 64 {
            assert!(
                matches!(read, Err(Error::Unsupported(_))),
                "{bit}: {read:?}"
            );
            continue;
        }
        let read = read.unwrap();
        let Some(Error::Corrupt { damage, .. }) = read.bad_end else {
            panic!("bit {bit}: {read:?}");
        };
        assert!(!damage.unverified_records());
        // Flipped lengths cannot make a reader wait for more: the head is checked first.
        assert_ne!(damage.kind, DamageKind::Truncated, "{bit}: {damage}");
        let expected = records_before(&index, bit as u64 / 8);
        assert_eq!(read.written.records, expected, "bit {bit}");
    }
}

/// Whole, sound sections of an archive, but not in their places.
#[test]
fn sections_lost_doubled_exchanged_or_of_another_archive() {
    let bytes = archive(&crawl(7, 60), 13);
    let index = index_of(&bytes);
    let mut cuts: Vec<usize> = index.blocks.iter().map(|b| b.offset as usize).collect();
    cuts.extend([index.end as usize, bytes.len()]);
    let header = &bytes[..cuts[0]];
    let sections: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
    let other = archive(&crawl(8, 60), 13);
    let other_index = index_of(&other);
    let second = other_index.blocks[1].offset as usize..other_index.blocks[2].offset as usize;
    let lost = |at: usize| [&sections[..at], &sections[at + 1..]].concat().concat();
    let put = |at: usize, section: &[u8]| {
        [&sections[..at], &[section], &sections[at..]]
            .concat()
            .concat()
    };
    let mut bad: Vec<Vec<u8>> = (0..6).map(lost).collect();
    bad.extend((0..6).map(|at| put(at, sections[at])));
    bad.push(put(6, header));
    bad.push(put(2, header));
    bad.push(put(6, b"more"));
    bad.push(
        [&sections[..1], &[&other[second]], &sections[2..]]
            .concat()
            .concat(),
    );
    for (at, sections) in bad.iter().enumerate() {
        let read = from_bytes(&[header, sections].concat()).unwrap();
        assert!(
            matches!(read.bad_end, Some(Error::Corrupt { .. })),
            "{at}: {read:?}"
        );
    }
    let read = from_bytes(&sections.concat());
    assert!(matches!(read, Err(Error::Unsupported(_))), "{read:?}");
}

#[test]
fn the_index_finds_the_block_of_a_record() {
    let bytes = archive(&crawl(9, 50), 7);
    let index = index_of(&bytes);
    assert_eq!((index.records, index.blocks.len()), (50, 8));
    for record in 0..50 {
        let found = index.find(record).unwrap();
        assert_eq!(found.first_record, record / 7 * 7);
        assert_eq!(&bytes[found.offset as usize..][..4], b"CZAB");
    }
    assert_eq!(index.find(50), None);
    assert_eq!(&bytes[index.end as usize..][..4], b"CZAE");
}

/// What could not be verified gets no end: nobody takes it for a whole archive.
#[test]
fn unverified_records_are_not_sealed() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, crawl(10, 40).as_bytes()).unwrap();
    let mut packed = encoder.finish().unwrap();
    *packed.last_mut().unwrap() ^= 1;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &packed).unwrap();
    let mut job = support::conversion(file.path(), Some(Format::Records), 10);
    job.limits.held_bytes = 100;
    for accept in [false, true] {
        job.source.accept_unverified = accept;
        let (bytes, converted) = convert(&job, Vec::new(), "".into(), &mut Silent).unwrap();
        assert!(matches!(converted.bad_end, Some(Error::Corrupt { .. })));
        assert_eq!(converted.unverified.is_none(), accept);
        let read = from_bytes(&bytes).unwrap();
        assert_eq!(read.bad_end.is_none(), accept);
    }
}

/// Levels say the same; there are none above the highest.
#[test]
fn levels_say_the_same() {
    let records = crawl(11, 60);
    let file = tempfile::NamedTempFile::new().unwrap();
    let made = |bytes: &[u8], format, level| {
        std::fs::write(file.path(), bytes).unwrap();
        let mut job = support::conversion(file.path(), format, 13);
        job.level = level;
        convert(&job, Vec::new(), "".into(), &mut Silent).map(|(bytes, _)| bytes)
    };
    let most = Options::LEVEL_MAX;
    let [one, other] =
        [1, most].map(|level| made(records.as_bytes(), Some(Format::Records), level).unwrap());
    assert!(one != other);
    assert!(made(&one, None, most).unwrap() == other);
    assert!(made(&other, None, 1).unwrap() == one);
    for level in [0, most + 1] {
        assert!(matches!(made(&one, None, level), Err(Error::Usage(_))));
    }
}

/// A record that would bring more than 1,310,720 targets together begins a block: what is written is read under the
/// default limits.
#[test]
fn a_huge_record_begins_a_block() {
    let links = |from: u32, count: u32| -> String {
        let links = (from..from + count).map(|n| format!("\"/{n:x}\""));
        links.collect::<Vec<_>>().join(",")
    };
    let record = |page: &str, links: &str| {
        format!("{{\"url\":\"http://{page}.example/\",\"status\":200,\"links\":[{links}]}}\n")
    };
    for (first, blocks) in [(310_720, 1), (310_721, 2)] {
        let [one, other] = [links(0, first), links(0, 1_000_000)];
        let bytes = archive(&(record("a", &one) + &record("b", &other)), 1000);
        assert_eq!(index_of(&bytes).blocks.len(), blocks, "{first}");
        assert!(from_bytes(&bytes).unwrap().bad_end.is_none());
    }
}

/// Nothing at all is an archive, too.
#[test]
fn an_archive_of_nothing() {
    let bytes = archive("", 7);
    let read = from_bytes(&bytes).unwrap();
    assert!(read.bad_end.is_none());
    assert_eq!(read.written.records, 0);
    assert_eq!(index_of(&bytes).blocks, []);
}
