//! Fuzz target of a store's file of remote page numbers.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::remote_log::{Flaw, RemoteLog};
use crate::Error;
use crate::codec::frame::BlockHead;
use crate::fuzz::dice::Bytes;
use crate::fuzz::memory::Memory;
use crate::rules::Shard;

const STORE: u64 = 42;

fn read(disk: &Memory, shard: Shard) -> (RemoteLog, Option<Flaw>) {
    RemoteLog::read(disk, Path::new("store"), STORE, shard)
}

/// Fuzzes `remote` of shard 1 of 2, as it is, and with the input as payloads of blocks with valid heads. Input: for
/// each block the number of pages less 1, the length of its payload, and the payload.
pub fn remote(data: &[u8]) {
    let Ok(shard) = "1/2".parse() else { return };
    let path = Path::new("store/remote");
    let disk = Memory::default();
    disk.put(path, data);
    let (log, flaw) = read(&disk, shard);
    // No input guesses a checksum.
    assert!(log.covered == 0 && flaw.is_some() != data.is_empty());

    let mut bytes = Bytes(data);
    let (mut file, mut first) = (Vec::new(), 0);
    while !bytes.0.is_empty() {
        let [pages, len] = bytes.array();
        let end = first + u64::from(pages) + 1;
        let payload = bytes.take(len.into());
        let head = BlockHead::default().u64s([1, STORE, first, end]);
        file.extend(head.u64s([payload.len() as u64, xxh3_64(payload)]).sealed());
        file.extend_from_slice(payload);
        first = end;
    }
    disk.put(path, &file);
    let (mut log, flaw) = read(&disk, shard);
    match flaw {
        None => assert_eq!(log.covered, first),
        Some(Flaw::Damaged(Error::Damaged { .. })) => assert!(log.covered < first),
        Some(other) => panic!("{other:?}"),
    }
    assert!(log.state_of(1).pages >= log.covered);
    let [pages, own] = [0, 1].map(|owner| log.remote.get(owner).map_or(&[][..], Vec::as_slice));
    assert!(own.is_empty() && pages.is_sorted_by(|one, next| one.here < next.here));
    for page in pages {
        assert!(u64::from(page.here) < log.covered);
    }
    // The next writer truncates what was not used.
    let states = log.states.clone();
    let cut = log.append(&disk, Vec::new(), &states);
    assert!(cut.is_ok(), "{cut:?}");
    let (again, flaw) = read(&disk, shard);
    assert!(flaw.is_none() && again.remote == log.remote && again.covered == log.covered);
}
