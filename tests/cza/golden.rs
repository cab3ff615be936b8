//! The golden sample, good and bad. `WRITE_SAMPLES=1 cargo test --test library cza::golden` writes the archives anew.
//!
//! The expected files are written by hand: `good/cza/*.expected` from the records beside them,
//! `bad/cza/*.expected` with words of what a reader says.

use std::fs;
use std::path::{Path, PathBuf};

use cashrank::ingest::convert;
use xxhash_rust::xxh3::xxh3_64;

use super::support::{Silent, archive, conversion, from_bytes, index_of};

fn samples(folder: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples");
    root.join(folder).join("cza")
}

fn writing() -> bool {
    std::env::var_os("WRITE_SAMPLES").is_some()
}

#[test]
fn golden_good() {
    let folder = samples("good");
    if writing() {
        for (records, sample) in [("records", "crawl"), ("words", "words"), ("hosts", "hosts")] {
            let records = fs::read_to_string(folder.join(format!("{records}.jsonl"))).unwrap();
            fs::write(folder.join(format!("{sample}.cza")), archive(&records, 4)).unwrap();
        }
    }
    for name in ["crawl", "words", "hosts"] {
        check_good(&folder, name);
    }
    // As version 0.1 wrote it at level 9.
    check_good(&folder, "hosts-0.1");
}

fn check_good(folder: &Path, name: &str) {
    let bytes = fs::read(folder.join(format!("{name}.cza"))).unwrap();
    let read = from_bytes(&bytes).unwrap();
    assert!(read.bad_end.is_none());
    let (counters, written) = (&read.counters, &read.written);
    let found = format!(
        "blocks {}\nrecords {}\ngone {}\nunchanged {}\nfailed {}\nskipped {}\nother {}\nnames {}\nlinks {}\n\
         no page {}\ninvalid {}\nown {}\nrepeated {}\n",
        index_of(&bytes).blocks.len(),
        counters.records,
        counters.gone,
        counters.unchanged,
        counters.failed,
        counters.skipped_total(),
        counters.other,
        written.names,
        counters.links,
        counters.links_scheme,
        counters.links_invalid,
        counters.links_own,
        counters.links_repeated,
    );
    let expected = fs::read_to_string(folder.join(format!("{name}.cza.expected"))).unwrap();
    assert_eq!(found, expected, "{name}");
}

/// Not only the counts: every name, record and link that version 0.1 wrote is read as it was.
#[test]
fn an_archive_of_version_0_1_becomes_a_new_one() {
    let folder = samples("good");
    let job = conversion(&folder.join("hosts-0.1.cza"), None, 4);
    let (bytes, converted) = convert(&job, Vec::new(), PathBuf::new(), &mut Silent).unwrap();
    assert!(converted.bad_end.is_none());
    assert!(bytes == fs::read(folder.join("hosts.cza")).unwrap());
}

/// Writes a new checksum behind a head that was changed.
fn seal(bytes: &mut [u8], head: std::ops::Range<usize>) {
    let sum = xxh3_64(&bytes[head.start..head.end - 8]);
    bytes[head.end - 8..head.end].copy_from_slice(&sum.to_le_bytes());
}

/// What is bad about each bad sample: made from the good one, with checksums made right again where
/// the content is to be at fault.
fn bad() -> Vec<(&'static str, Vec<u8>)> {
    let good = fs::read(samples("good").join("crawl.cza")).unwrap();
    let index = index_of(&good);
    let (first, second) = (
        index.blocks[0].offset as usize,
        index.blocks[1].offset as usize,
    );
    let end = index.end as usize;
    // By a version whose archives are not read.
    let as_written = |name| fs::read(samples("bad").join(format!("{name}.cza"))).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let header = |at: usize, value: u8| {
        changed(&|bytes| {
            bytes[at] = value;
            seal(bytes, 0..64);
        })
    };
    let block = |at: usize, value: u8| {
        changed(&|bytes| {
            bytes[first + at] = value;
            seal(bytes, first..first + 96);
        })
    };
    vec![
        ("version", header(8, 5)),
        ("other-limits", header(32, 1)),
        ("url-rules", header(12, 9)),
        ("other-names", header(40, 1)),
        ("header-feature", header(48, 1)),
        ("header-bit", changed(&|bytes| bytes[20] ^= 1)),
        ("block-flag", block(4, 255)),
        ("block-without-classes", block(4, 53)),
        ("block-without-words", block(4, 51)),
        ("block-without-hosts", block(4, 39)),
        ("block-elsewhere", block(5, 1)),
        ("block-from", block(6, 3)),
        ("hosts-before", block(20, 1)),
        ("by-hosts", as_written("by-hosts")),
        ("version-1", as_written("version-1")),
        ("version-3", as_written("version-3")),
        ("more-records", block(8, 200)),
        ("more-names", block(12, 200)),
        ("first-name", block(16, 1)),
        ("first-record", block(24, 1)),
        ("more-text", block(32, 255)),
        ("absurd-text", block(38, 255)),
        ("more-targets", block(40, 255)),
        ("absurd-targets", block(46, 255)),
        ("more-links", block(48, 255)),
        ("names-bit", changed(&|bytes| bytes[first + 96] ^= 1)),
        ("records-bit", changed(&|bytes| bytes[second - 1] ^= 1)),
        ("lost-block", [&good[..first], &good[second..]].concat()),
        ("no-end", good[..end].to_vec()),
        ("cut-in-block", good[..second - 1].to_vec()),
        ("cut-in-head", good[..first + 20].to_vec()),
        ("cut-in-end", good[..good.len() - 1].to_vec()),
        ("behind-the-end", [&good[..], b"x"].concat()),
        (
            "totals",
            changed(&|bytes| {
                bytes[end + 32] ^= 1;
                seal(bytes, end..end + 64);
            }),
        ),
        (
            // A length that is no number of 64 bits.
            "absurd-end",
            changed(&|bytes| {
                bytes[end + 8..end + 16].copy_from_slice(&((1u64 << 59) - 1).to_le_bytes());
                seal(bytes, end..end + 64);
            }),
        ),
        ("index-bit", changed(&|bytes| bytes[end + 64] ^= 1)),
        ("tail", changed(&|bytes| bytes[good.len() - 16] ^= 1)),
        ("empty-block", {
            // A block of streams that are not there.
            changed(&|bytes| {
                let sum = xxh3_64(&[]).to_le_bytes();
                bytes.truncate(first + 96);
                bytes[first + 56..first + 64].fill(0);
                bytes[first + 64..first + 72].copy_from_slice(&sum);
                bytes[first + 72..first + 80].copy_from_slice(&sum);
                seal(bytes, first..first + 96);
            })
        }),
    ]
}

#[test]
fn golden_bad() {
    let folder = samples("bad");
    let mut listed = 0;
    for (name, bytes) in bad() {
        let path = folder.join(format!("{name}.cza"));
        if writing() {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
        let said = match from_bytes(&bytes) {
            Err(error) => error.to_string(),
            Ok(read) => read
                .bad_end
                .unwrap_or_else(|| panic!("{name} is read"))
                .to_string(),
        };
        let expected = fs::read_to_string(folder.join(format!("{name}.cza.expected")));
        let expected = expected.unwrap_or_else(|_| panic!("{name}: {said}"));
        for words in expected.lines() {
            assert!(said.contains(words), "{name}: {said}");
        }
        listed += 1;
    }
    let files = fs::read_dir(&folder).unwrap().count();
    assert_eq!(
        files,
        2 * listed,
        "samples and their expected files, no others"
    );
}
