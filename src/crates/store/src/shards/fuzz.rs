//! Fuzz target of a store's file of remote page numbers.

use std::path::Path;

use super::RemotePages;
use super::names::{KnownRemote, NamesState};
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
    let mut of_first = RemotePages::default();
    while !bytes.0.is_empty() {
        let [here, there] = bytes.array().map(u32::from);
        of_first.here.push(here);
        of_first.there.push(there);
    }
    let known = KnownRemote::of(covered, vec![of_first.clone(), RemotePages::default()]);
    let states = [pages, 1 << 8].map(|pages| NamesState { pages, sum: 0 });
    assert!(known.put(&disk, dir, STORE, &states).is_ok());
    let below = |numbers: &[u32], end: u64| numbers.iter().all(|page| u64::from(*page) < end);
    let mut sorted = of_first.here.clone();
    sorted.sort_unstable();
    let is_sound = of_first.there.is_sorted_by(|one, next| one < next)
        && sorted.is_sorted_by(|one, next| one < next)
        && below(&of_first.here, covered)
        && below(&of_first.there, pages);
    match read() {
        Ok(found) => assert!(is_sound && found.covered == covered && found.remote[0] == of_first),
        Err(Error::Damaged { .. }) => assert!(!is_sound),
        Err(other) => panic!("{other:?}"),
    }
}
