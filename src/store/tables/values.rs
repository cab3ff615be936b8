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
pub(super) const GOAL_SEAL: Seal<0> = Seal("goal", []);
pub(super) const PARTS_SEAL: Seal<0> = Seal("parts", []);
pub(super) const SUMS_SEAL: Seal<0> = Seal("sums", []);
pub(super) const EPOCH_SEAL: Seal<0> = Seal("epoch", []);

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
    let mut packer = RunPacker::new(number, interval);
    for row in rows {
        if let Some((key, value)) = packer.add(row?) {
            put(key, value)?;
        }
    }
    let (run, last) = packer.end();
    last.map_or(Ok(()), |(key, value)| put(key, value))?;
    Ok(run)
}

/// A run that is being packed, row by row.
pub(in crate::store) struct RunPacker {
    run: Run,
    packer: Packer<Row>,
}

/// A sealed block of a run, with its key.
type RunBlock = ((u64, u64), Vec<u8>);

impl RunPacker {
    pub fn new(number: u64, interval: u64) -> RunPacker {
        RunPacker {
            run: Run {
                number,
                interval,
                rows: 0,
                blocks: 0,
                bytes: 0,
            },
            packer: Packer::new(),
        }
    }

    /// Adds the next row, of a page behind that of the last one. A block that is full.
    pub fn add(&mut self, row: Row) -> Option<RunBlock> {
        self.run.rows += 1;
        let value = self.packer.add(row)?;
        Some(self.sealed(value))
    }

    /// The run, and its last block, if that has a row.
    pub fn end(mut self) -> (Run, Option<RunBlock>) {
        let last = self.packer.finish().map(|value| self.sealed(value));
        (self.run, last)
    }

    fn sealed(&mut self, value: Vec<u8>) -> RunBlock {
        let key = (self.run.number, self.run.blocks);
        self.run.blocks += 1;
        self.run.bytes += value.len() as u64;
        (key, seal(rows_seal(key), value))
    }
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

pub(in crate::store) fn admissions_of<'a>(
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
