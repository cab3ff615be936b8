//! Fuzz target of a store's file of remote page numbers.

use std::path::Path;

use super::remote_pages::{KnownRemote, NamesState, Remote};
use crate::Error;
use crate::fuzz::dice::Bytes;
use crate::fuzz::memory::Memory;

const STORE: u64 = 42;

/// Fuzzes `remote` of shard 1 of 2, as it is, and with the input as numbers in a sound file. Input: the number of pages
/// that it covers and that its owner has, then pairs of numbers.
pub fn remote(data: &[u8]) {
    let Ok(shard) = "1/2".parse() else { return };
    let (dir, path) = (Path::new("store"), Path::new("store/remote"));
    let disk = Memory::default();
    disk.put(path, data);
    let read = || KnownRemote::read(&disk, dir, STORE, shard);
    // No input guesses a checksum.
    assert!(read().is_err());

    let mut bytes = Bytes(data);
    let [covered, pages] = bytes.array().map(u64::from);
    let mut of_first = Vec::new();
    while !bytes.0.is_empty() {
        let [here, there] = bytes.array().map(u32::from);
        of_first.push(Remote { there, here });
    }
    let known = KnownRemote::of(covered, vec![of_first.clone(), Vec::new()]);
    let states = [pages, 1 << 8].map(|pages| NamesState { pages, sum: 0 });
    assert!(known.put(&disk, dir, STORE, &states).is_ok());
    let is_sound = of_first.is_sorted_by(|one, next| one.here < next.here)
        && (of_first.iter())
            .all(|page| u64::from(page.here) < covered && u64::from(page.there) < pages);
    match read() {
        Ok(found) => assert!(is_sound && found.covered == covered && found.remote[0] == of_first),
        Err(Error::Damaged { .. }) => assert!(!is_sound),
        Err(other) => panic!("{other:?}"),
    }
}
