//! The values of `store.redb`: each is sealed under its table and its key, and is checked when it is read.

use std::path::Path;

use crate::engine::{Admissions, Blocks, Row};
use crate::store::blocks::{Entry, Packer, Seal, seal, unpack, unseal};
use crate::store::manifest::Run;
use crate::{Error, Result};

/// The tags that values are sealed under.
pub(super) const MANIFEST_SEAL: Seal<0> = Seal("manifest", []);
pub(super) const STREAM_SEAL: Seal<0> = Seal("stream", []);
pub(super) const BASE_SEAL: Seal<0> = Seal("base", []);
pub(super) const BASES_SEAL: Seal<0> = Seal("bases", []);
pub(super) const PARTS_SEAL: Seal<0> = Seal("parts", []);
pub(super) const SUMS_SEAL: Seal<0> = Seal("sums", []);

pub(super) fn chunk_seal(chunk: u64) -> Seal<1> {
    Seal("chunks", [chunk])
}

pub(super) fn rows_seal((run, block): (u64, u64)) -> Seal<2> {
    Seal("history", [run, block])
}

pub(super) fn admissions_seal(block: u64) -> Seal<1> {
    Seal("admissions", [block])
}

/// Packs rows into the sealed blocks of run `number`, which `put` takes. Returns the run.
pub(in crate::store) fn pack_run(
    number: u64,
    interval: u64,
    rows: impl Iterator<Item = Result<Row>>,
    mut put: impl FnMut((u64, u64), Vec<u8>) -> Result<()>,
) -> Result<Run> {
    let mut run = Run {
        number,
        interval,
        rows: 0,
        blocks: 0,
        bytes: 0,
    };
    let mut packer = Packer::new();
    let mut put = |run: &mut Run, value: Vec<u8>| {
        run.bytes += value.len() as u64;
        let key = (number, run.blocks);
        run.blocks += 1;
        put(key, seal(rows_seal(key), value))
    };
    for row in rows {
        run.rows += 1;
        if let Some(value) = packer.add(row?) {
            put(&mut run, value)?;
        }
    }
    if let Some(value) = packer.finish() {
        put(&mut run, value)?;
    }
    Ok(run)
}

pub(super) type Value = Result<Option<Vec<u8>>>;

pub(in crate::store) fn rows_of<'a>(
    path: &'a Path,
    run: Run,
    get: impl Fn((u64, u64)) -> Value + 'a,
) -> Blocks<'a> {
    let mut blocks = 0..run.blocks;
    Box::new(move |rows| {
        while rows.is_empty() {
            let Some(block) = blocks.next() else {
                break;
            };
            let key = (run.number, block);
            let which = || format!("history run {}, block {block}", run.number);
            entries(path, rows_seal(key), get(key), which, rows)?;
        }
        Ok(())
    })
}

pub(super) fn admissions_of<'a>(
    path: &'a Path,
    blocks: u64,
    get: impl Fn(u64) -> Value + 'a,
) -> Admissions<'a> {
    Box::new((0..blocks).flat_map(move |block| {
        let which = || format!("admission block {block}");
        let mut admissions = Vec::new();
        let read = entries(
            path,
            admissions_seal(block),
            get(block),
            which,
            &mut admissions,
        );
        let error = read.err().map(Err);
        admissions.into_iter().map(Ok).chain(error)
    }))
}

/// Adds the entries of a block, which must be there. None of a damaged one.
pub(super) fn entries<T: Entry, const N: usize>(
    path: &Path,
    seal: Seal<N>,
    value: Value,
    which: impl FnOnce() -> String,
    out: &mut Vec<T>,
) -> Result<()> {
    let before = out.len();
    let unpacked = value?.and_then(|value| unpack(unseal(seal, &value)?, out));
    unpacked.ok_or_else(|| {
        out.truncate(before);
        Error::damaged(path, format!("{} is damaged", which()))
    })
}
