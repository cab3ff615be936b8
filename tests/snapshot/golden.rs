//! The golden sample, good and bad.

use std::fs;

use cashrank::{Error, PageState};
use cashrank_store::snapshot::{LevelRanking, Selection, Snapshot, SnapshotPage};
use cashrank_store::store::RealDisk;
use xxhash_rust::xxh3::xxh3_64;

use crate::folder::in_memory;

use super::make::{
    ROW_PARTS, SETTLED, SNAPSHOT, copy_parts, copy_with, make_settled, make_store, read_all,
    read_rows, samples,
};

fn writing() -> bool {
    std::env::var_os("WRITE_SAMPLES").is_some()
}

/// The expected listing holds the closed form of `common::clique_with_tail`, computed independently of this program.
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
    let formula = super::common::clique_with_tail(0.85);
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
        assert_eq!(page.fetches.visits, line[3].parse::<u64>().unwrap());
        assert_eq!(page.fetches.last, Some(line[4].parse().unwrap()));
    }
    let snapshot = Snapshot::latest(&RealDisk, &folder.join("store")).unwrap();
    // Of the window, plus the effect of using 0.6 x 2^-32 less than 0.85.
    let rounding = 2.0 * 0.6 / 2f64.powi(32) / 0.15;
    assert!(snapshot.info().bound_l1().unwrap() < 1e-8 + 1.01 * rounding);
    assert_eq!(snapshot.info().counters.gone, 60);
}

/// The settled sample has the header that the specification lists, and its certificate holds against the closed form.
#[test]
fn the_settled_sample_reads_as_the_closed_form_says() {
    let golden = samples("good").join("settled");
    if writing() {
        let temp = in_memory();
        make_settled(&temp.path().join("store"));
        copy_with(&temp.path().join("store"), &golden, SETTLED);
    }
    let pages = read_all(&golden).unwrap();
    let snapshot = Snapshot::latest(&RealDisk, &golden).unwrap();
    assert!(snapshot.path().ends_with(SETTLED));
    let window = &snapshot.info().window;
    let settled = window.settled.unwrap();
    assert_eq!(
        (settled.until, settled.reached, settled.links),
        // Damping is a multiple of 2^-32, so the published bound cannot reach 1e-9.
        (1e-9, false, 8)
    );
    assert!(settled.links_touched > 0 && settled.sweeps > 0);
    let certificate = window.certificate.unwrap();
    let bound = certificate.received_l1.unwrap();
    // The published bound is against 0.85 itself, from which the damping used differs by 0.6 x 2^-32.
    let rounding = 2.0 * 0.6 / 2f64.powi(32) / 0.15;
    let published = snapshot.info().bound_l1().unwrap();
    assert!(
        bound <= 1e-9 && published <= bound + 1.01 * rounding,
        "{bound} {published}"
    );

    // The damping used, a multiple of 2^-32.
    let formula = super::common::clique_with_tail(3_650_722_201.0 / 4_294_967_296.0);
    let of = |importance: &dyn Fn(&SnapshotPage) -> f64| -> Vec<f64> {
        pages.iter().map(|(_, page)| importance(page)).collect()
    };
    let received = super::common::l1(&of(&|page| page.importance), &formula);
    assert!(received <= bound, "{received} {bound}");
    let distributed = super::common::l1(&of(&|page| page.distributed), &formula);
    let certified = certificate.distributed_l1.unwrap();
    assert!(distributed <= certified, "{distributed} {certified}");
    // One pass: a, b, c; s leads to t, which is gone.
    let visits: Vec<u64> = pages.iter().map(|(_, page)| page.fetches.visits).collect();
    assert_eq!(visits, [1; 5]);
    let rows = read_rows(&golden).unwrap();
    let expected = fs::read_to_string(samples("good").join("rows.expected")).unwrap();
    assert_eq!(rows_listed(&rows), expected);
}

/// Names, links and the header's `settled` are written today as in the sample. The number of sweeps, and so the last
/// digits, may improve.
#[test]
fn the_settled_sample_is_what_is_written_today() {
    let temp = in_memory();
    let store = temp.path().join("store");
    make_settled(&store);
    let golden = samples("good").join("settled");
    for part in ["urls", "urls.index"].into_iter().chain(ROW_PARTS) {
        let (new, old) = (fs::read(store.join(part)), fs::read(golden.join(part)));
        assert!(new.unwrap() == old.unwrap(), "{part}");
    }
    let keys = |store: &std::path::Path| -> Vec<String> {
        let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
        let info = serde_json::to_value(snapshot.info()).unwrap();
        let window = info["window"].as_object().unwrap();
        let settled = window["settled"].as_object().unwrap();
        window.keys().chain(settled.keys()).cloned().collect()
    };
    assert_eq!(keys(&store), keys(&golden));
    let (new, old) = (read_all(&store).unwrap(), read_all(&golden).unwrap());
    assert_eq!(new.len(), old.len());
    for ((name, new), (same, old)) in new.iter().zip(&old) {
        assert_eq!(name, same);
        assert!((new.importance - old.importance).abs() <= 1e-9, "{name}");
    }
}

/// Snapshots record which pages are gone: `t`, the last of the records.
#[test]
fn snapshots_say_which_pages_are_gone() {
    let pages = read_all(&samples("good").join("store")).unwrap();
    let states: Vec<_> = pages.iter().map(|(_, page)| page.fetches.state()).collect();
    let rows = read_rows(&samples("good").join("store")).unwrap();
    let expected: Vec<_> = (rows.iter())
        .map(|(_, gone, _)| {
            if *gone {
                PageState::Gone
            } else {
                PageState::Crawled
            }
        })
        .collect();
    assert_eq!(states, expected);
    let snapshot = Snapshot::latest(&RealDisk, &samples("good").join("store")).unwrap();
    let ranking = LevelRanking::of_pages(snapshot);
    let without_gone = Selection {
        without_gone: true,
        ..Selection::default()
    };
    let left: Vec<u64> = (ranking.top(9, &without_gone).unwrap().iter())
        .map(|page| page.page.0)
        .collect();
    let gone = rows.iter().find(|(_, gone, _)| *gone).unwrap().0;
    assert!(left.len() == 4 && !left.contains(&gone.into()), "{left:?}");
}

/// A snapshot contains nothing of the hash key, the clock or the machine: the same records give the same bytes, and
/// these are they.
#[test]
fn the_good_sample_is_what_is_written_today() {
    let temp = in_memory();
    let store = temp.path().join("store");
    make_store(&store);
    let golden = samples("good").join("store");
    if writing() {
        copy_parts(&store, &golden);
    }
    // `identity.json` and the fingerprints hold the random key.
    let parts = ["urls", "urls.index", "snapshots/latest.json", SNAPSHOT];
    for part in parts.into_iter().chain(ROW_PARTS) {
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

/// The expected listing was written by hand, from the records.
#[test]
fn the_good_rows_read_as_listed() {
    let folder = samples("good");
    let rows = read_rows(&folder.join("store")).unwrap();
    let expected = fs::read_to_string(folder.join("rows.expected")).unwrap();
    assert_eq!(rows_listed(&rows), expected);
}

fn rows_listed(rows: &[(u32, bool, Vec<u32>)]) -> String {
    let line = |(page, gone, targets): &(u32, bool, Vec<u32>)| {
        let targets: Vec<String> = targets.iter().map(u32::to_string).collect();
        let what = match gone {
            true => "gone".into(),
            false => targets.join(" "),
        };
        format!("{page}\t{what}\n")
    };
    rows.iter().map(line).collect()
}

/// Returns a log's only block, with correct checksums of its header and of the heads in its payload.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let heads = u32::from_le_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let heads = xxh3_64(&bytes[48..(48 + heads).min(bytes.len())]);
    let sum = xxh3_64(&[&bytes[24..40], &heads.to_le_bytes()].concat());
    bytes[40..48].copy_from_slice(&sum.to_le_bytes());
    let payload = xxh3_64(&bytes[24..]);
    let sum = xxh3_64(&[&bytes[..16], &payload.to_le_bytes()].concat());
    bytes[16..24].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the bad row files: name, bytes, expected error of sweeping them. The good one is a header of 24 bytes,
/// fields of 24, heads of 10, controls of 2 for 8 links, and gaps.
fn bad_rows(good: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        bytes
    };
    let (heads, controls, gaps) = (48, 58, 60);
    let holds = "holds invalid data";
    vec![
        ("empty", Vec::new(), "bytes long, but"),
        ("cut", good[..good.len() - 1].to_vec(), "bytes long, but"),
        (
            "gap-bit",
            with(&|b| b[gaps] ^= 1),
            "its checksum does not match",
        ),
        (
            "heads-bit",
            with(&|b| b[heads] ^= 1),
            "its checksum does not match",
        ),
        ("fewer-rows", resealed(with(&|b| b[8] = 4)), holds),
        (
            "not-from-0",
            resealed(with(&|b| b[0] = 1)),
            "begins with number 1",
        ),
        ("unknown-code", resealed(with(&|b| b[36] = 4)), holds),
        ("more-links", resealed(with(&|b| b[28] = 9)), holds),
        ("gaps-too-short", resealed(with(&|b| b[32] -= 1)), holds),
        (
            "gone-with-links",
            resealed(with(&|b| b[heads + 1] |= 1)),
            holds,
        ),
        ("no-weights", resealed(with(&|b| b[heads + 1] |= 2)), holds),
        ("page-5-of-5", resealed(with(&|b| b[heads + 8] = 4)), holds),
        (
            "target-before-page-0",
            resealed(with(&|b| b[gaps] = 1)),
            holds,
        ),
        (
            "gap-of-4-bytes",
            resealed(with(&|b| b[controls] |= 3)),
            holds,
        ),
    ]
}

#[test]
fn bad_rows_are_refused() {
    let golden = samples("good").join("store");
    let folder = samples("bad").with_file_name("rows");
    let good = fs::read(golden.join(ROW_PARTS[0])).unwrap();
    assert_eq!(
        good[24..40],
        [10, 0, 0, 0, 8, 0, 0, 0, good[32], 0, 0, 0, 0, 0, 0, 0]
    );
    for (name, bytes, expected) in bad_rows(&good) {
        let path = folder.join(format!("{name}.rows"));
        let says = path.with_extension("expected");
        if writing() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
            fs::write(&says, format!("{expected}\n")).unwrap();
        }
        assert!(
            fs::read(&path).unwrap() == bytes,
            "{name}: not as made here"
        );
        assert_eq!(fs::read_to_string(&says).unwrap(), format!("{expected}\n"));
        let temp = in_memory();
        copy_parts(&golden, temp.path());
        fs::copy(&path, temp.path().join(ROW_PARTS[0])).unwrap();
        let error = read_rows(temp.path()).expect_err(name);
        let text = error.to_string();
        assert!(matches!(error, Error::Damaged { .. }), "{name}: {text}");
        assert!(
            text.contains(expected) && text.contains("rows/1"),
            "{name}: {text}"
        );
        // Damaged rows do not affect rankings.
        read_all(temp.path()).unwrap();
    }
}

/// Returns a field of the trailer, counted from the file's end.
fn trailer(bytes: &mut [u8], from_end: usize) -> &mut [u8] {
    let at = bytes.len() - from_end;
    &mut bytes[at..at + 8]
}

fn trailer_number(bytes: &mut [u8], from_end: usize) -> usize {
    u64::from_le_bytes(trailer(bytes, from_end).try_into().unwrap()) as usize
}

/// Corrects the tail's checksum, so that the damage before it is what must be noticed.
fn reseal(mut bytes: Vec<u8>) -> Vec<u8> {
    let directory = trailer_number(&mut bytes, 40);
    let end = bytes.len() - 16;
    let sum = xxh3_64(&bytes[directory..end]);
    trailer(&mut bytes, 16).copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the bad samples: name, bytes, expected error of reading them.
fn bad(good: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        bytes
    };
    let mut copy = good.to_vec();
    let (directory, info) = (trailer_number(&mut copy, 40), trailer_number(&mut copy, 32));
    let text = String::from_utf8_lossy(&good[info..]).into_owned();
    let version = info + text.find("\"version\":3").unwrap() + 10;
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
                b[7] = b'4';
                b[last] = b'4'
            }),
            "refused: a snapshot of version 04",
        ),
        (
            "version-info",
            reseal(with(&|b| b[version] = b'9')),
            "refused: a snapshot of version 9",
        ),
        (
            "column-bit",
            with(&|b| b[12] ^= 16),
            "damaged: column Failed of block 0 is damaged",
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
    let temp = in_memory();
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
            refused if refused.is_refusal() => kind == "refused",
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
