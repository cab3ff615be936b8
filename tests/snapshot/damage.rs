//! Damage anywhere is found or has no effect: never a panic, never a different value.

use std::fs;
use std::path::{Path, PathBuf};

use cashrank::{Error, Result};
use cashrank_store::store::{RealDisk, VerifyReport, open_view};

use crate::folder::in_memory;

use super::make::{
    READ_PARTS, ROW_PARTS, SNAPSHOT, copy_parts, make_store, read_all, read_rows, samples,
};

fn is_named(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. }) || error.is_refusal()
}

/// Every byte of a snapshot is under a checksum, or is compared: every flip is found.
#[test]
fn every_flipped_bit_of_a_snapshot_is_found() {
    let temp = in_memory();
    copy_parts(&samples("good").join("store"), temp.path());
    let path = temp.path().join(SNAPSHOT);
    let good = fs::read(&path).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let error = read_all(temp.path()).expect_err("a flipped bit passed");
        assert!(is_named(&error), "bit {bit}: {error}");
    }
    eprintln!("{} flips, all found", good.len() * 8);
}

#[test]
fn a_snapshot_cut_anywhere_is_found() {
    let temp = in_memory();
    copy_parts(&samples("good").join("store"), temp.path());
    let path = temp.path().join(SNAPSHOT);
    let good = fs::read(&path).unwrap();
    for len in 0..good.len() {
        fs::write(&path, &good[..len]).unwrap();
        let error = read_all(temp.path()).expect_err("a cut passed");
        assert!(
            matches!(error, Error::Damaged { .. }),
            "{len} bytes: {error}"
        );
    }
}

/// The files that readers of snapshots use, without the manifest: a flip is found, or the values read are the same.
///
/// Regression: `identity.json` and `latest.json` had no checksum of their own. A flipped digit of the key made `rank`
/// report every URL as unknown; a flipped digit of a length made an export end early, silently.
#[test]
fn readers_find_flips_or_read_the_same() {
    let temp = in_memory();
    copy_parts(&samples("good").join("store"), temp.path());
    let expected = read_all(temp.path()).unwrap();
    let (mut flips, mut harmless) = (0, 0);
    for part in &READ_PARTS[..6] {
        let path = temp.path().join(part);
        let good = fs::read(&path).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            flips += 1;
            match read_all(temp.path()) {
                Ok(found) => {
                    harmless += 1;
                    assert!(found == expected, "{part}, bit {bit}");
                }
                Err(error) => assert!(is_named(&error), "{part}, bit {bit}: {error}"),
            }
        }
        for len in 0..good.len() {
            fs::write(&path, &good[..len]).unwrap();
            match read_all(temp.path()) {
                Ok(found) => assert!(found == expected, "{part}, {len} bytes"),
                Err(error) => assert!(is_named(&error), "{part}, {len} bytes: {error}"),
            }
        }
        fs::write(&path, &good).unwrap();
    }
    eprintln!("{flips} flips, {harmless} without effect");
}

/// The index has no checksum; the data it refers to does.
#[test]
fn every_flipped_bit_of_rows_is_found_or_does_not_matter() {
    let temp = in_memory();
    copy_parts(&samples("good").join("store"), temp.path());
    let expected = read_rows(temp.path()).unwrap();
    for part in ROW_PARTS {
        let path = temp.path().join(part);
        let good = fs::read(&path).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            match read_rows(temp.path()) {
                Ok(found) => {
                    assert!(found == expected && part.ends_with("index"), "bit {bit}");
                }
                Err(error) => assert!(is_named(&error), "{part}, bit {bit}: {error}"),
            }
        }
        fs::write(&path, &good).unwrap();
    }
}

/// Regression: an index has no checksum, and an offset near 2^64 in it overflowed when a header's length was added.
#[test]
fn an_index_that_leads_nowhere_is_damaged() {
    let temp = in_memory();
    copy_parts(&samples("good").join("store"), temp.path());
    let path = temp.path().join("urls.index");
    for offset in [u64::MAX, u64::MAX - 23, 1 << 63, 67, 44, 1] {
        let mut entry = 0u64.to_le_bytes().to_vec();
        entry.extend(offset.to_le_bytes());
        fs::write(&path, entry).unwrap();
        let error = read_all(temp.path()).expect_err("it led somewhere");
        assert!(matches!(error, Error::Damaged { .. }), "{offset}: {error}");
    }
}

/// Checks a whole store, like `cashrank verify`.
fn verify(store: &Path) -> Result<VerifyReport> {
    let view = open_view(&RealDisk, store)?;
    let report = view.verify()?;
    view.check_database()?;
    read_all(store)?;
    Ok(report)
}

/// Returns the bits of a file to flip, some sixty spread over it. A check of a store takes tens of milliseconds.
fn bits(len: usize) -> Vec<usize> {
    let step = (len * 8 / 60).max(1);
    // Odd steps reach all eight bits of a byte.
    (0..len * 8).step_by(step | 1).collect()
}

#[test]
fn verify_finds_flips_in_every_file_of_a_store() {
    let temp = in_memory();
    let store = temp.path().join("store");
    make_store(&store);
    let report = verify(&store).unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(store.join("marks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len() as u64, report.marks);
    files.extend(READ_PARTS.map(|part| store.join(part)));
    let (mut flips, mut harmless) = (0, 0);
    for path in files {
        let good = fs::read(&path).unwrap();
        for bit in bits(good.len()) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            flips += 1;
            match verify(&store) {
                Ok(found) => {
                    harmless += 1;
                    // Only latest.json has meaningless bytes (white space).
                    assert!(
                        path.ends_with("latest.json"),
                        "{}, bit {bit}",
                        path.display()
                    );
                    assert_eq!(found, report);
                }
                Err(error) => assert!(is_named(&error), "{}, bit {bit}: {error}", path.display()),
            }
        }
        fs::write(&path, &good).unwrap();
        assert_eq!(verify(&store).unwrap(), report);
    }
    eprintln!("{flips} flips, {harmless} without effect");
}

/// `cash` has two slots per chunk. Of five pages 40 bytes of cells and 3 of ages matter, in the current slot: each flip
/// there is found, and none in the other slot has an effect.
#[test]
fn verify_finds_flips_of_cash_in_the_current_slot() {
    const CELLS: usize = 8 << 17;
    const SLOT: usize = CELLS + (1 << 16);
    let temp = in_memory();
    let store = temp.path().join("store");
    make_store(&store);
    let report = verify(&store).unwrap();
    let path = store.join("cash");
    let good = fs::read(&path).unwrap();
    assert_eq!(good.len(), 2 * SLOT);
    let mut found = [0, 0];
    for (slot, found) in found.iter_mut().enumerate() {
        for byte in (0..40).chain(CELLS..CELLS + 3) {
            let mut bytes = good.clone();
            bytes[slot * SLOT + byte] ^= 1 << (byte % 8);
            fs::write(&path, &bytes).unwrap();
            match verify(&store) {
                Ok(same) => assert_eq!(same, report),
                Err(error) => {
                    assert!(matches!(error, Error::Damaged { .. }), "{error}");
                    *found += 1;
                }
            }
        }
    }
    found.sort_unstable();
    assert_eq!(found, [0, 43]);
    // Cut inside the first slot's cells, neither slot is whole.
    for len in [0, 39] {
        fs::write(&path, &good[..len]).unwrap();
        let error = verify(&store).expect_err("a cut passed");
        assert!(is_named(&error), "{len} bytes: {error}");
    }
}
