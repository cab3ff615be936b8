//! Values of `store.redb`: each is sealed under its table and its key, and checked when it is read.

use std::path::Path;

use crate::engine::{Admissions, Blocks, HistoryRow};
use crate::snapshot::blocks::flat;
use crate::store::blocks::{Packer, SEAL, Seal, seal, unpack, unpack_some, unseal};
use crate::store::manifest::HistoryRun;
use crate::{Error, Result};

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
    let mut run = HistoryRun {
        number,
        interval,
        rows: 0,
        blocks: 0,
        bytes: 0,
    };
    let mut packer = Packer::new();
    let mut put = |run: &mut HistoryRun, value: Vec<u8>| {
        let key = (number, run.blocks);
        run.blocks += 1;
        run.bytes += value.len() as u64;
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

pub fn rows_of<'a>(
    path: &'a Path,
    run: HistoryRun,
    get: impl Fn((u64, u64)) -> Value + 'a,
) -> Blocks<'a> {
    let mut blocks = 0..run.blocks;
    let (mut value, mut at, mut before) = (Vec::new(), 0, HistoryRow::default());
    Box::new(move |rows| {
        let damaged = |block| {
            let what = format!("history run {}, block {block} is damaged", run.number);
            Error::damaged(path, what)
        };
        while at == value.len() {
            let Some(block) = blocks.next() else {
                return Ok(());
            };
            let key = (run.number, block);
            let sealed = get(key)?.filter(|value| unseal(rows_seal(key), value).is_some());
            value = sealed.ok_or_else(|| damaged(block))?;
            (at, before) = (SEAL, HistoryRow::default());
        }
        let mut rest = &value[at..];
        unpack_some(&mut rest, SLICE, before, rows).ok_or_else(|| damaged(blocks.start - 1))?;
        at = value.len() - rest.len();
        before = rows.last().copied().unwrap_or_default();
        Ok(())
    })
}

/// Number of rows of a run that are unpacked at a time. Many runs are read together, and an unpacked row takes twenty
/// times the memory of a packed one.
const SLICE: usize = 64;

pub fn admissions_of<'a>(
    path: &'a Path,
    blocks: u64,
    get: impl Fn(u64) -> Value + 'a,
) -> Admissions<'a> {
    Box::new(flat((0..blocks).map(move |block| {
        let mut admissions = Vec::new();
        let value = get(block)?;
        let seal = admissions_seal(block);
        let unpacked = value.and_then(|value| unpack(unseal(seal, &value)?, &mut admissions));
        let damaged = || Error::damaged(path, format!("admission block {block} is damaged"));
        unpacked.ok_or_else(damaged)?;
        Ok(admissions)
    })))
}
