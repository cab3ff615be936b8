//! Values of `store.redb`: each is sealed under its table and its key, and checked when it is read.

use std::path::Path;

use crate::engine::{Admissions, Blocks, HistoryRow};
use crate::store::blocks::{Packer, SEAL, Seal, seal, unpack, unpack_some, unseal};
use crate::store::manifest::HistoryRun;
use crate::{Error, Result};

/// Seals of the values.
pub(super) const MANIFEST_SEAL: Seal<0> = Seal("manifest", []);
pub(super) const STREAM_SEAL: Seal<0> = Seal("stream", []);
pub(super) const REQUESTS_SEAL: Seal<0> = Seal("requests", []);

pub(super) fn chunk_seal(chunk: u64) -> Seal<1> {
    Seal("chunks", [chunk])
}

pub(super) fn rows_seal((run, block): (u64, u64)) -> Seal<2> {
    Seal("history", [run, block])
}

pub(super) fn admissions_seal(block: u64) -> Seal<1> {
    Seal("admissions", [block])
}

/// Packs rows into the sealed blocks of run `number`, which are passed to `put`. Returns the run.
pub fn pack_run(
    number: u64,
    interval: u64,
    rows: impl Iterator<Item = Result<HistoryRow>>,
    mut put: impl FnMut((u64, u64), Vec<u8>) -> Result<()>,
) -> Result<HistoryRun> {
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

/// Packs a run, row by row.
pub struct RunPacker {
    run: HistoryRun,
    packer: Packer<HistoryRow>,
}

/// Sealed block of a run, with its key.
type RunBlock = ((u64, u64), Vec<u8>);

impl RunPacker {
    pub fn new(number: u64, interval: u64) -> RunPacker {
        RunPacker {
            run: HistoryRun {
                number,
                interval,
                rows: 0,
                blocks: 0,
                bytes: 0,
            },
            packer: Packer::new(),
        }
    }

    /// Adds the next row, of a later page than the last one. Returns a block if one is full.
    pub fn add(&mut self, row: HistoryRow) -> Option<RunBlock> {
        self.run.rows += 1;
        let value = self.packer.add(row)?;
        Some(self.sealed(value))
    }

    /// Returns the run, and its last block if that is not empty.
    pub fn end(mut self) -> (HistoryRun, Option<RunBlock>) {
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

pub fn rows_of<'a>(
    path: &'a Path,
    run: HistoryRun,
    get: impl Fn((u64, u64)) -> Value + 'a,
) -> Blocks<'a> {
    let mut blocks = 0..run.blocks;
    let (mut held, mut before) = (OpenBlock::default(), HistoryRow::default());
    Box::new(move |rows| {
        while held.is_over() {
            let Some(block) = blocks.next() else {
                return Ok(());
            };
            let key = (run.number, block);
            held = OpenBlock::of(rows_seal(key), get(key)?).ok_or_else(|| damaged(path, key))?;
            before = HistoryRow::default();
        }
        let taken = held.take(SLICE, before, rows);
        taken.ok_or_else(|| damaged(path, (run.number, blocks.start - 1)))?;
        before = rows.last().copied().unwrap_or_default();
        Ok(())
    })
}

fn damaged(path: &Path, (run, block): (u64, u64)) -> Error {
    Error::damaged(path, format!("history run {run}, block {block} is damaged"))
}

/// Number of rows of a run that are unpacked at a time. Many runs are read together, and an unpacked row takes twenty
/// times the memory of a packed one.
const SLICE: usize = 64;

/// Block of a run, and how much of it was unpacked.
#[derive(Default)]
struct OpenBlock {
    value: Vec<u8>,
    at: usize,
}

impl OpenBlock {
    /// Returns the block if it has this seal.
    fn of<const N: usize>(seal: Seal<N>, value: Option<Vec<u8>>) -> Option<OpenBlock> {
        let value = value.filter(|value| unseal(seal, value).is_some())?;
        Some(OpenBlock { value, at: SEAL })
    }

    fn is_over(&self) -> bool {
        self.at == self.value.len()
    }

    /// Appends at most `most` of its remaining rows, which follow on `before`; `None` if they are invalid.
    fn take(&mut self, most: usize, before: HistoryRow, rows: &mut Vec<HistoryRow>) -> Option<()> {
        let mut rest = &self.value[self.at..];
        unpack_some(&mut rest, most, before, rows)?;
        self.at = self.value.len() - rest.len();
        Some(())
    }
}

pub fn admissions_of<'a>(
    path: &'a Path,
    blocks: u64,
    get: impl Fn(u64) -> Value + 'a,
) -> Admissions<'a> {
    Box::new((0..blocks).flat_map(move |block| {
        let mut admissions = Vec::new();
        let read = get(block).and_then(|value| {
            let seal = admissions_seal(block);
            let unpacked = value.and_then(|value| unpack(unseal(seal, &value)?, &mut admissions));
            unpacked.ok_or_else(|| {
                admissions.clear();
                Error::damaged(path, format!("admission block {block} is damaged"))
            })
        });
        let error = read.err().map(Err);
        admissions.into_iter().map(Ok).chain(error)
    }))
}
