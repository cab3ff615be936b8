//! The golden sample, good and bad.

use std::fs;

use cashrank::Error;
use cashrank::snapshot::Snapshot;
use cashrank::store::RealDisk;
use xxhash_rust::xxh3::xxh3_64;

use super::make::{SNAPSHOT, copy_parts, make_store, read_all, samples};

fn writing() -> bool {
    std::env::var_os("WRITE_SAMPLES").is_some()
}

/// The expected listing holds the closed form of `common::clique_with_tail`, computed apart from
/// this program.
#[test]
fn the_good_sample_reads_as_the_closed_form_says() {
    let folder = samples("good");
    let pages = read_all(&folder.join("store")).unwrap();
    let expected = fs::read_to_string(folder.join("snapshot.expected")).unwrap();
    let lines: Vec<Vec<&str>> = expected
        .lines()
        .skip(1)
        .map(|l| l.split('\t').collect())
        .collect();
    assert_eq!(lines.len(), pages.len());
    let formula = crate::common::clique_with_tail(0.85);
    for (at, (line, (url, page))) in lines.iter().zip(&pages).enumerate() {
        let importance: f64 = line[1].parse().unwrap();
        let (best, worst) = line[2].split_once("..").unwrap();
        assert_eq!(line[0], url);
        assert!((importance - formula[at]).abs() < 1e-9);
        assert!(
            (page.importance - importance).abs() < 1e-9,
            "{url}: {page:?}"
        );
        assert!(page.rank >= best.parse().unwrap() && page.rank <= worst.parse().unwrap());
        assert_eq!(page.visits, line[3].parse::<u64>().unwrap());
        assert_eq!(page.last_fetch, Some(line[4].parse().unwrap()));
    }
    let snapshot = Snapshot::latest(&RealDisk, &folder.join("store")).unwrap();
    assert!(snapshot.info().bound_l1().unwrap() < 1e-8);
    assert_eq!(snapshot.info().counters.gone, 60);
}

/// Nothing of the hash key, the clock or the machine is in a snapshot: the same records give the
/// same bytes, and these are they.
#[test]
fn the_good_sample_is_what_is_written_today() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("store");
    make_store(&store);
    let golden = samples("good").join("store");
    if writing() {
        copy_parts(&store, &golden);
    }
    // `identity.json` and the fingerprints hold the random key.
    for part in ["urls", "urls.index", "snapshots/latest.json", SNAPSHOT] {
        let (new, old) = (
            fs::read(store.join(part)).unwrap(),
            fs::read(golden.join(part)).unwrap(),
        );
        assert!(
            new == old,
            "{part} is no longer written as the sample has it"
        );
    }
}

/// A field of the trailer, counted from the file's end.
fn trailer(bytes: &mut [u8], from_end: usize) -> &mut [u8] {
    let at = bytes.len() - from_end;
    &mut bytes[at..at + 8]
}

fn trailer_number(bytes: &mut [u8], from_end: usize) -> usize {
    u64::from_le_bytes(trailer(bytes, from_end).try_into().unwrap()) as usize
}

/// Makes the tail's checksum right again, so that what lies behind it is what must be noticed.
fn reseal(mut bytes: Vec<u8>) -> Vec<u8> {
    let directory = trailer_number(&mut bytes, 40);
    let end = bytes.len() - 16;
    let sum = xxh3_64(&bytes[directory..end]);
    trailer(&mut bytes, 16).copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The bad samples: name, bytes, what reading them must say.
fn bad(good: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        bytes
    };
    let mut copy = good.to_vec();
    let (directory, info) = (trailer_number(&mut copy, 40), trailer_number(&mut copy, 32));
    let text = String::from_utf8_lossy(&good[info..]).into_owned();
    let version = info + text.find("\"version\":1").unwrap() + 10;
    let last = good.len() - 1;
    vec![
        (
            "truncated",
            good[..good.len() / 2].to_vec(),
            "damaged: begin and end like a snapshot",
        ),
        ("empty", Vec::new(), "damaged: too short"),
        (
            "first-magic",
            with(&|b| b[0] ^= 1),
            "damaged: begin and end like a snapshot",
        ),
        (
            "last-magic",
            with(&|b| b[last] ^= 1),
            "damaged: begin and end like a snapshot",
        ),
        (
            "version-magic",
            with(&|b| {
                b[7] = b'2';
                b[last] = b'2'
            }),
            "refused: a snapshot of version 02",
        ),
        (
            "version-info",
            reseal(with(&|b| b[version] = b'9')),
            "refused: a snapshot of version 9",
        ),
        (
            "column-bit",
            with(&|b| b[12] ^= 16),
            "damaged: column Importance of block 0 is damaged",
        ),
        (
            "directory-bit",
            with(&|b| b[directory + 3] ^= 1),
            "damaged: does not match its checksum",
        ),
        (
            "info-bit",
            with(&|b| b[info + 20] ^= 1),
            "damaged: does not match its checksum",
        ),
        (
            "trailer-bit",
            with(&|b| b[last - 8] ^= 1),
            "damaged: does not match its checksum",
        ),
        (
            "directory-outside",
            reseal(with(&|b| b[directory + 7] = 0x7f)),
            "damaged: outside of the columns",
        ),
        (
            "column-too-long",
            reseal(with(&|b| b[directory + 8..directory + 12].fill(0xff))),
            "damaged: outside of the columns",
        ),
        (
            "absurd-pages",
            reseal(with(&|b| trailer(b, 24).fill(0xff))),
            "damaged: its trailer is damaged",
        ),
        (
            "more-pages",
            reseal(with(&|b| trailer(b, 24)[0] = 6)),
            "damaged: does not fit its trailer",
        ),
        (
            "info-no-json",
            reseal(with(&|b| b[info] = b'[')),
            "damaged: its info",
        ),
    ]
}

#[test]
fn the_bad_samples_fail_as_named() {
    let golden = samples("good").join("store");
    let good = fs::read(golden.join(SNAPSHOT)).unwrap();
    let folder = samples("bad");
    let made = bad(&good);
    if writing() {
        for (name, bytes, says) in &made {
            fs::write(folder.join(format!("{name}.snapshot")), bytes).unwrap();
            fs::write(
                folder.join(format!("{name}.snapshot.expected")),
                format!("{says}\n"),
            )
            .unwrap();
        }
    }
    let temp = tempfile::tempdir().unwrap();
    copy_parts(&golden, temp.path());
    let mut found = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "snapshot") {
            continue;
        }
        found += 1;
        fs::copy(&path, temp.path().join(SNAPSHOT)).unwrap();
        let expected = fs::read_to_string(path.with_extension("snapshot.expected")).unwrap();
        let (kind, says) = expected.trim().split_once(": ").unwrap();
        let error = read_all(temp.path()).unwrap_err();
        let text = error.to_string();
        let right_kind = match error {
            Error::Damaged { .. } => kind == "damaged",
            Error::Refused(_) => kind == "refused",
            _ => false,
        };
        assert!(
            right_kind && text.contains(says),
            "{}: {text}",
            path.display()
        );
    }
    assert_eq!(found, made.len(), "every bad sample, and no other");
}
