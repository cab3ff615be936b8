//! Fuzz targets of all parts of a store's files.
//!
//! Inputs with a checksum are tried as they are and with the checksum corrected; otherwise no changed byte would pass
//! it.

mod files;
mod whole;

pub use files::{cash, identity, index, log, log_written, marks, name_block, names_written, warm};
pub use whole::store;

use super::blocks::{Entry, Packer, unpack};
use super::manifest::Manifest;
use super::rows::block;
use crate::codec::varint::{put, take, unzigzag, zigzag};
use crate::engine::{Admission, HistoryRow, RowFetches};
use crate::fuzz::dice::Bytes;
use crate::model::Digest;

/// Fuzzes variable-length integers.
pub fn varint(data: &[u8]) {
    let mut rest = data;
    let mut values = Vec::new();
    while let Some(value) = take(&mut rest) {
        values.push(value);
    }
    let mut text = Vec::new();
    for &value in &values {
        put(&mut text, value);
    }
    assert!(
        text.len() <= data.len(),
        "no value takes more than it was given"
    );
    let mut rest = &text[..];
    for &value in &values {
        assert_eq!(take(&mut rest), Some(value));
        assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
    }
    assert!(rest.is_empty());
}

/// Fuzzes packed rows of the history.
pub fn rows(data: &[u8]) {
    block(data, |before: &HistoryRow, bytes: &mut Bytes<'_>| {
        let flags = bytes.byte();
        let clock = u128::from(bytes.u64()) << (flags & 64);
        let timed = flags & 1 != 0 && clock != 0;
        HistoryRow {
            page: before.page.saturating_add(bytes.u64() >> (flags & 63)),
            cash: u128::from(bytes.u64()) << (flags & 32),
            visits: bytes.u64(),
            last_fetch: (flags & 2 != 0).then(|| bytes.u64() as i64),
            clock: if timed { clock } else { 0 },
            pages: if timed { bytes.u64() } else { 0 },
            span: if timed {
                u128::from(bytes.u64()) << (flags & 64)
            } else {
                0
            },
            folded: flags & 4 != 0,
            recycled: if flags & 16 != 0 { bytes.u64() } else { 0 },
            fetches: match flags & 8 {
                0 => RowFetches::default(),
                _ => fetches(bytes),
            },
        }
    });
}

/// Returns arbitrary observations of fetches.
fn fetches(bytes: &mut Bytes<'_>) -> RowFetches {
    let mut number = || bytes.u64() as u32;
    let (first, last) = (number(), number());
    RowFetches {
        failed: number(),
        reached: number() & 1 != 0,
        first: Digest::from_bits(first),
        last: Digest::from_bits(last),
        compared: number(),
        changed: number(),
        since: i64::from(number()),
        last_failed: i64::from(number()),
    }
}

/// Fuzzes packed admissions.
pub fn admissions(data: &[u8]) {
    block(data, |before: &Admission, bytes: &mut Bytes<'_>| {
        let shift = bytes.byte();
        Admission {
            first: before.first.saturating_add(bytes.u64() >> (shift & 63)),
            paid: bytes.u64(),
            clock: u128::from(bytes.u64()) << (shift & 64),
        }
    });
}

/// Fuzzes a block of `T`: its content as it is, and packed from generated entries.
fn block<T>(data: &[u8], make: impl Fn(&T, &mut Bytes<'_>) -> T)
where
    T: Entry + PartialEq + std::fmt::Debug,
{
    let mut entries = Vec::new();
    if unpack::<T>(data, &mut entries).is_some() {
        // A number may be coded longer than necessary, or be redundant: packing again gives the packer's form.
        let first = repacked(&entries);
        assert_eq!(first.len(), entries.len());
        assert_eq!(repacked(&first), first);
    }
    let mut bytes = Bytes(data);
    let mut made: Vec<T> = Vec::new();
    while !bytes.0.is_empty() {
        let before = made.last().copied().unwrap_or_default();
        made.push(make(&before, &mut bytes));
    }
    assert_eq!(repacked(&made), made);
}

fn repacked<T: Entry>(entries: &[T]) -> Vec<T> {
    let mut packer = Packer::new();
    let mut blocks: Vec<Vec<u8>> = entries.iter().filter_map(|&one| packer.add(one)).collect();
    blocks.extend(packer.finish());
    let mut back = Vec::new();
    for block in blocks {
        assert!(block.len() <= super::blocks::BLOCK_BYTES);
        let unpacked = unpack(&block[8..], &mut back);
        assert!(
            unpacked.is_some(),
            "a block that was just packed is damaged"
        );
    }
    back
}

/// Fuzzes a block of kept rows. Input: number of rows, number of pages (4 bytes), and the payload, as it is and with
/// the checksum of its heads corrected.
pub fn row_block(data: &[u8]) {
    let mut bytes = Bytes(data);
    let count = usize::from(bytes.byte());
    let pages = bytes.u64() & u64::from(u32::MAX);
    let mut payload = bytes.0.to_vec();
    for _ in 0..2 {
        if let Some(rows) = block::unpack(&payload, count, pages) {
            let mut heads = Vec::new();
            assert!(block::unpack_heads(&payload, count, &mut heads).is_some());
            assert_eq!((heads.len(), &heads), (count, &rows.heads));
            assert!(rows.targets.iter().all(|&target| u64::from(target) < pages));
            // Packed again it may be shorter; the rows are the same.
            let packed = block::pack(&mut rows.clone());
            assert!(packed.len() <= payload.len());
            assert_eq!(block::unpack(&packed, count, pages), Some(rows));
        }
        block::reseal(&mut payload);
    }
}

/// Fuzzes the manifest, without its seal.
pub fn manifest(data: &[u8]) {
    if let Ok(manifest) = Manifest::from_bytes(data) {
        let bytes = manifest.to_bytes().unwrap_or_default();
        assert_eq!(Manifest::from_bytes(&bytes[8..]), Ok(manifest));
    }
}
