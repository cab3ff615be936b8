//! `store.redb`: the manifest, the cash chunks' current slots, and the history. Its commit is the store's only commit
//! point. Its tables are specified in `formats/store.md`, "Tables".
//!
//! redb does not check pages or values when it reads them. So every value is sealed under its table and key
//! (`blocks.rs`), every key that must be there is looked up, and only this module calls redb, through a [`Fence`].

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cashrank_fence::{self as fence, Overlay};
use redb::{Database, Key, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use serde::de::DeserializeOwned;

use super::blocks::{Packer, SEAL, Seal, seal, unpack, unpack_some, unseal};
use super::cash::{CASH, read_slot, slot_bytes, slots_sum};
use super::manifest::{self, HistoryRun, InputProgress, Manifest};
use crate::disk::{Access, Disk, DiskFile};
use crate::engine::{Admissions, Blocks, HistoryRow, Rows};
use crate::memory::DATABASE;
use crate::snapshot::blocks::flat;
use crate::{Error, Result};

const MANIFEST: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("manifest");
const CHUNKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("chunks");
const HISTORY: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("history");
const ADMISSIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("admissions");

type Fence = fence::Fence<Error>;
type Fenced<T> = fence::Fenced<T, Error>;

pub struct Tables {
    fence: Arc<Fence>,
    db: Fenced<Database>,
    /// Flag to be set before the database is closed ([`Overlay::over`]).
    over: Option<Arc<AtomicBool>>,
}

impl Drop for Tables {
    fn drop(&mut self) {
        if let Some(over) = &self.over {
            over.store(true, Ordering::Release);
        }
    }
}

impl Tables {
    /// Opens `store.redb` in `dir`. With [`Access::Look`] nothing that redb writes reaches the file.
    pub fn open(disk: &dyn Disk, dir: &Path, access: Access) -> Result<Tables> {
        let path = dir.join("store.redb");
        let file = access.open(disk, &path)?;
        if access != Access::Create && file.size()? == 0 {
            return Err(file.damaged("it is empty"));
        }
        let file = Backend(file.file);
        let fence = Fence::new(path);
        let mut over = None;
        let db = fence.hold(|| {
            let path = fence.path();
            let mut builder = Database::builder();
            builder.set_cache_size(DATABASE as usize);
            let db = if access == Access::Look {
                let file = Overlay::new(file).map_err(Error::io(path, "measure"))?;
                over = Some(file.over());
                builder.create_with_backend(file)
            } else {
                builder.create_with_backend(file)
            };
            db.map_err(failed(path, "open"))
        })?;
        Ok(Tables { db, fence, over })
    }

    pub fn begin(&self) -> Result<Transaction<redb::WriteTransaction>> {
        let path = self.fence.path();
        let txn = self.db.hold(|db| {
            let mut txn = db.begin_write().map_err(failed(path, "begin"))?;
            txn.set_durability(redb::Durability::Immediate)
                .map_err(failed(path, "begin"))?;
            txn.set_two_phase_commit(true);
            Ok(txn)
        })?;
        Ok(Transaction {
            fence: self.fence.clone(),
            txn,
        })
    }

    /// Returns the last committed state, which later commits do not change.
    pub fn read(&self) -> Result<Transaction<redb::ReadTransaction>> {
        let path = self.fence.path();
        let txn = self
            .db
            .hold(|db| db.begin_read().map_err(failed(path, "read")))?;
        Ok(Transaction {
            fence: self.fence.clone(),
            txn,
        })
    }

    /// Checks redb's own structure, page by page. Only possible while no transaction lives.
    pub fn check(&mut self) -> Result<()> {
        let path = self.fence.path();
        let sound = self
            .db
            .with_mut(|db| db.check_integrity().map_err(failed(path, "check")))?;
        if sound {
            Ok(())
        } else {
            Err(Error::damaged(path, "redb would have to repair it"))
        }
    }
}

type Table<'t, K> = Fenced<redb::Table<'t, K, &'static [u8]>>;

/// Transaction of redb, for writing or for reading.
pub struct Transaction<T> {
    fence: Arc<Fence>,
    txn: Fenced<T>,
}

impl Transaction<redb::WriteTransaction> {
    fn table<K: Key>(&self, which: TableDefinition<'_, K, &'static [u8]>) -> Result<Table<'_, K>> {
        let path = self.fence.path();
        self.txn
            .hold(|txn| txn.open_table(which).map_err(failed(path, "open")))
    }

    pub fn put_run(&self, run: &HistoryRun, blocks: &[Vec<u8>]) -> Result<()> {
        let mut table = self.table(HISTORY)?;
        for (block, at) in blocks.iter().zip(0..) {
            insert(&self.fence, &mut table, (run.number, at), block)?;
        }
        Ok(())
    }

    pub fn put_admissions(&self, block: u64, value: Vec<u8>) -> Result<()> {
        let value = seal(admissions_seal(block), value);
        insert(&self.fence, &mut self.table(ADMISSIONS)?, block, &value)
    }

    /// Writes which slots of chunks are current.
    pub fn put_slots(&self, slots: &[(u64, (u8, u64))]) -> Result<()> {
        let mut table = self.table(CHUNKS)?;
        for &(chunk, slot) in slots {
            let mut value = vec![0; 8];
            value.extend_from_slice(&slot_bytes(slot));
            let value = seal(chunk_seal(chunk), value);
            insert(&self.fence, &mut table, chunk, &value)?;
        }
        Ok(())
    }

    /// Merges neighbouring runs, oldest first, into run `number`: `merge` makes one stream of their rows, given all
    /// `admissions` blocks of admissions. Returns the new run.
    pub fn merge_runs(
        &self,
        runs: &[HistoryRun],
        number: u64,
        admissions: u64,
        merge: impl for<'a> FnOnce(Vec<Blocks<'a>>, Admissions<'a>) -> Rows<'a>,
    ) -> Result<HistoryRun> {
        let fence = &*self.fence;
        let table = RefCell::new(self.table(HISTORY)?);
        let admitted = self.table(ADMISSIONS)?;
        let parts = runs
            .iter()
            .map(|run| {
                rows_of(fence.path(), *run, |key| {
                    table.borrow().with(|table| get(fence, table, key))
                })
            })
            .collect();
        let admitted = admissions_of(fence.path(), admissions, |block| {
            admitted.with(|table| get(fence, table, block))
        });
        let interval = runs.first().map_or(0, |run| run.interval);
        let merged = pack_run(number, interval, merge(parts, admitted), |key, value| {
            insert(fence, &mut table.borrow_mut(), key, &value)
        })?;
        for run in runs {
            for block in 0..run.blocks {
                table.borrow_mut().with_mut(|table| {
                    let removed = table.remove((run.number, block));
                    removed.map(drop).map_err(failed(fence.path(), "write"))
                })?;
            }
        }
        Ok(merged)
    }

    pub fn commit(self, manifest: &Manifest) -> Result<()> {
        let value = manifest.to_bytes().map_err(Error::internal)?;
        let value = seal(MANIFEST_SEAL, value);
        let mut table = self.table(MANIFEST)?;
        insert(&self.fence, &mut table, "manifest", &value)?;
        let InputProgress {
            stream, requests, ..
        } = &manifest.progress;
        for (name, value) in [
            (STREAM_SEAL, stream.as_ref().map(manifest::to_bytes)),
            (REQUESTS_SEAL, requests.as_ref().map(manifest::to_bytes)),
        ] {
            if let Some(value) = value.transpose().map_err(Error::internal)? {
                insert(&self.fence, &mut table, name.0, &seal(name, value))?;
            }
        }
        drop(table);
        let path = self.fence.path();
        self.txn
            .take(|txn| txn.commit().map_err(failed(path, "commit")))
    }
}

fn insert<'k, K: Key + 'static>(
    fence: &Fence,
    table: &mut Table<'_, K>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
    value: &[u8],
) -> Result<()> {
    table.with_mut(|table| {
        let inserted = table.insert(key, value);
        inserted.map(drop).map_err(failed(fence.path(), "write"))
    })
}

/// Returns a value, not yet checked. To be called inside the fence.
fn get<'k, K: Key + 'static>(
    fence: &Fence,
    table: &impl ReadableTable<K, &'static [u8]>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
) -> Result<Option<Vec<u8>>> {
    let value = table.get(key).map_err(failed(fence.path(), "read"))?;
    Ok(value.map(|value| value.value().to_vec()))
}

type ReadTable<K> = Fenced<redb::ReadOnlyTable<K, &'static [u8]>>;

impl Transaction<redb::ReadTransaction> {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.fence.path(), what)
    }

    fn table<K: Key>(&self, which: TableDefinition<'_, K, &'static [u8]>) -> Result<ReadTable<K>> {
        let path = self.fence.path();
        self.txn
            .hold(|txn| txn.open_table(which).map_err(failed(path, "open")))
    }

    pub fn manifest(&self) -> Result<Manifest> {
        let table = self.table(MANIFEST)?;
        let value = table.with(|table| get(&self.fence, table, "manifest"))?;
        let value = value.ok_or_else(|| self.damaged("it has no manifest"))?;
        let content = unseal(MANIFEST_SEAL, &value)
            .ok_or_else(|| self.damaged("the manifest does not match its checksum"))?;
        let mut manifest = Manifest::from_bytes(content).map_err(|what| self.damaged(what))?;
        let stream = self.value_of(&table, STREAM_SEAL, "a stream's signature")?;
        manifest.progress.stream = stream;
        let what = "the number of a stream with requests";
        manifest.progress.requests = self.value_of(&table, REQUESTS_SEAL, what)?;
        Ok(manifest)
    }

    /// Reads the value under the name it is sealed with, if there is one. `what` names it in errors.
    fn value_of<T: DeserializeOwned>(
        &self,
        table: &ReadTable<&'static str>,
        seal: Seal<0>,
        what: &str,
    ) -> Result<Option<T>> {
        let value = table.with(|table| get(&self.fence, table, seal.0))?;
        let Some(value) = value else {
            return Ok(None);
        };
        let content = unseal(seal, &value)
            .ok_or_else(|| self.damaged(format!("{what} does not match its checksum")))?;
        let value = manifest::from_bytes(content);
        value
            .map(Some)
            .map_err(|why| self.damaged(format!("{what} {why}")))
    }

    /// Reads the current slots of `count` chunks, which must hash to `sum`.
    pub fn slots(&self, count: u64, sum: u64) -> Result<Vec<(u8, u64)>> {
        let slots = match count {
            0 => Vec::new(),
            _ => {
                let table = self.table(CHUNKS)?;
                let slot = |chunk| {
                    let value = table.with(|table| get(&self.fence, table, chunk))?;
                    value
                        .and_then(|value| read_slot(unseal(chunk_seal(chunk), &value)?))
                        .ok_or_else(|| {
                            self.damaged(format!("no sound entry for {CASH} chunk {chunk}"))
                        })
                };
                (0..count).map(slot).collect::<Result<Vec<_>>>()?
            }
        };
        if slots_sum(&slots) == sum {
            Ok(slots)
        } else {
            Err(self.damaged(format!(
                "its entries for {CASH} are not those of its manifest"
            )))
        }
    }

    pub fn rows(&self, run: HistoryRun) -> Result<Blocks<'_>> {
        let table = self.table(HISTORY)?;
        Ok(rows_of(self.fence.path(), run, move |key| {
            table.with(|table| get(&self.fence, table, key))
        }))
    }

    pub fn admissions(&self, blocks: u64) -> Result<Admissions<'_>> {
        if blocks == 0 {
            return Ok(Box::new(std::iter::empty()));
        }
        let table = self.table(ADMISSIONS)?;
        Ok(admissions_of(self.fence.path(), blocks, move |block| {
            table.with(|table| get(&self.fence, table, block))
        }))
    }
}

const MANIFEST_SEAL: Seal<0> = Seal("manifest", []);
const STREAM_SEAL: Seal<0> = Seal("stream", []);
const REQUESTS_SEAL: Seal<0> = Seal("requests", []);

fn chunk_seal(chunk: u64) -> Seal<1> {
    Seal("chunks", [chunk])
}

fn rows_seal((run, block): (u64, u64)) -> Seal<2> {
    Seal("history", [run, block])
}

fn admissions_seal(block: u64) -> Seal<1> {
    Seal("admissions", [block])
}

/// Packs rows into the sealed blocks of run `number`, which are passed to `put`. Returns the run.
pub(super) fn pack_run(
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

type SealedValue = Result<Option<Vec<u8>>>;

fn rows_of<'a>(
    path: &'a Path,
    run: HistoryRun,
    get: impl Fn((u64, u64)) -> SealedValue + 'a,
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

fn admissions_of<'a>(
    path: &'a Path,
    blocks: u64,
    get: impl Fn(u64) -> SealedValue + 'a,
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

#[derive(Debug)]
struct Backend(Box<dyn DiskFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len).map_err(of_writing)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync().map_err(of_writing)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset).map_err(of_writing)
    }
}

/// Changes the kind of a write error if that kind would stand for damage, which only a read can find.
fn of_writing(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            io::Error::other(error)
        }
        _ => error,
    }
}

/// Returns a function that converts errors of redb to damage of `path`, or to a failed `action` on it.
fn failed<E: Into<redb::Error>>(path: &Path, action: &'static str) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.into();
    move |error| match error.into() {
        redb::Error::Io(source) if source.kind() == ErrorKind::UnexpectedEof => {
            Error::damaged(path, "it refers to data past its end")
        }
        // Errors of redb about a foreign file, and of the system about an absurd offset.
        redb::Error::Io(source)
            if matches!(
                source.kind(),
                ErrorKind::InvalidData | ErrorKind::InvalidInput
            ) =>
        {
            Error::damaged(path, source.to_string())
        }
        redb::Error::Io(source) => Error::io(path, action)(source),
        redb::Error::PreviousIo => {
            Error::io(path, action)(io::Error::other("an earlier operation on it failed"))
        }
        other => Error::damaged(path, format!("cannot {action}: {other}")),
    }
}
