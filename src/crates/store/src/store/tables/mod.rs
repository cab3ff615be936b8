//! `store.redb`: the manifest, the cash chunks' current slots, and the history. Its commit is the store's only commit
//! point. Its tables are specified in `formats/store.md`, "Tables".
//!
//! redb does not check pages or values when it reads them. So every value is sealed under its table and key
//! (`blocks.rs`), every key that must be there is looked up, and only this module calls redb, through a [`Fence`].

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cashrank_fence::{self as fence, Fence, Overlay};
use redb::{Database, Key, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use serde::de::DeserializeOwned;

use super::blocks::{Packer, SEAL, seal, unpack, unpack_some, unseal};
use super::cash::{CASH, read_slot, slot_bytes, slots_sum};
use super::manifest::{self, HistoryRun, InputProgress, Manifest};
use crate::disk::{Access, Disk, DiskFile};
use crate::engine::{Admissions, Blocks, HistoryRow, Rows};
use crate::memory::DATABASE;
use crate::snapshot::blocks::flat;
use crate::{Error, Result};

type Definition<K> = TableDefinition<'static, K, &'static [u8]>;

const MANIFEST: Definition<&str> = TableDefinition::new("manifest");
const CHUNKS: Definition<u64> = TableDefinition::new("chunks");
const HISTORY: Definition<(u64, u64)> = TableDefinition::new("history");
const ADMISSIONS: Definition<u64> = TableDefinition::new("admissions");

type Fenced<T> = fence::Fenced<T, Error>;

pub struct Tables {
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
        let fence = Fence::new(path, |path, what| Error::damaged(path, what));
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
        Ok(Tables { db, over })
    }

    pub fn begin(&self) -> Result<Transaction<redb::WriteTransaction>> {
        let path = self.db.path();
        let txn = self.db.hold(|db| {
            let mut txn = db.begin_write().map_err(failed(path, "begin"))?;
            txn.set_durability(redb::Durability::Immediate)
                .map_err(failed(path, "begin"))?;
            txn.set_two_phase_commit(true);
            Ok(txn)
        })?;
        Ok(Transaction(txn))
    }

    /// Returns the last committed state, which later commits do not change.
    pub fn read(&self) -> Result<Transaction<redb::ReadTransaction>> {
        let begin = |db: &Database| db.begin_read().map_err(failed(self.db.path(), "read"));
        Ok(Transaction(self.db.hold(begin)?))
    }

    /// Checks redb's own structure, page by page. Only possible while no transaction lives.
    pub fn check(&mut self) -> Result<()> {
        let path = self.db.path().to_owned();
        let check = |db: &mut Database| db.check_integrity().map_err(failed(&path, "check"));
        if self.db.with_mut(check)? {
            Ok(())
        } else {
            Err(Error::damaged(path, "redb would have to repair it"))
        }
    }
}

/// Transaction of redb, for writing or for reading.
pub struct Transaction<T>(Fenced<T>);

type Table<'t, K> = redb::Table<'t, K, &'static [u8]>;

impl Transaction<redb::WriteTransaction> {
    fn on<K: Key + 'static, T>(
        &self,
        which: Definition<K>,
        work: impl FnOnce(&mut Table<'_, K>) -> Result<T>,
    ) -> Result<T> {
        let open = failed(self.0.path(), "open");
        self.0
            .with(|txn| work(&mut txn.open_table(which).map_err(open)?))
    }

    fn put<'k, K: Key + 'static>(
        &self,
        which: Definition<K>,
        key: impl Borrow<K::SelfType<'k>>,
        value: &[u8],
    ) -> Result<()> {
        self.on(which, |table| {
            let inserted = table.insert(key, value);
            inserted.map(drop).map_err(failed(self.0.path(), "write"))
        })
    }

    fn get<'k, K: Key + 'static>(
        &self,
        which: Definition<K>,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> SealedValue {
        self.on(which, |table| get(self.0.path(), table, key))
    }

    /// Packs rows into the sealed blocks of run `number`. Returns the run.
    pub fn put_run(
        &self,
        number: u64,
        interval: u64,
        rows: impl Iterator<Item = Result<HistoryRow>>,
    ) -> Result<HistoryRun> {
        let mut run = HistoryRun {
            number,
            interval,
            rows: 0,
            blocks: 0,
            bytes: 0,
        };
        let mut packer = Packer::new();
        let put = |run: &mut HistoryRun, value: Vec<u8>| {
            let key = (number, run.blocks);
            run.blocks += 1;
            run.bytes += value.len() as u64;
            self.put(
                HISTORY,
                key,
                &seal("history", &<[u64; 2]>::from(key), value),
            )
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

    pub fn put_admissions(&self, block: u64, value: Vec<u8>) -> Result<()> {
        self.put(ADMISSIONS, block, &seal("admissions", &[block], value))
    }

    /// Writes which slots of chunks are current.
    pub fn put_slots(&self, slots: &[(u64, (u8, u64))]) -> Result<()> {
        slots.iter().try_for_each(|&(chunk, slot)| {
            let value = [&[0; SEAL][..], &slot_bytes(slot)].concat();
            self.put(CHUNKS, chunk, &seal("chunks", &[chunk], value))
        })
    }

    /// Merges neighbouring runs, oldest first, into run `number`, by `merge`. Returns the new run.
    pub fn merge_runs(
        &self,
        runs: &[HistoryRun],
        number: u64,
        admissions: u64,
        merge: impl for<'a> FnOnce(Vec<Blocks<'a>>, Admissions<'a>) -> Rows<'a>,
    ) -> Result<HistoryRun> {
        let path = self.0.path();
        let parts = runs.iter();
        let parts = parts.map(|run| rows_of(path, *run, |key| self.get(HISTORY, key)));
        let admitted = admissions_of(path, admissions, |block| self.get(ADMISSIONS, block));
        let interval = runs.first().map_or(0, |run| run.interval);
        let merged = self.put_run(number, interval, merge(parts.collect(), admitted))?;
        for run in runs {
            for block in 0..run.blocks {
                self.on(HISTORY, |table| {
                    let removed = table.remove((run.number, block));
                    removed.map(drop).map_err(failed(path, "write"))
                })?;
            }
        }
        Ok(merged)
    }

    pub fn commit(self, manifest: &Manifest) -> Result<()> {
        let InputProgress {
            stream, requests, ..
        } = &manifest.progress;
        for (name, value) in [
            ("manifest", Some(manifest.to_bytes())),
            ("stream", stream.as_ref().map(manifest::to_bytes)),
            ("requests", requests.as_ref().map(manifest::to_bytes)),
        ] {
            if let Some(value) = value.transpose().map_err(Error::internal)? {
                self.put(MANIFEST, name, &seal(name, &[], value))?;
            }
        }
        let path = self.0.path().to_owned();
        self.0
            .take(|txn| txn.commit().map_err(failed(&path, "commit")))
    }
}

type SealedValue = Result<Option<Vec<u8>>>;

/// Returns a value, not yet checked. To be called inside the fence.
fn get<'k, K: Key + 'static>(
    path: &Path,
    table: &impl ReadableTable<K, &'static [u8]>,
    key: impl Borrow<K::SelfType<'k>>,
) -> SealedValue {
    let value = table.get(key).map_err(failed(path, "read"))?;
    Ok(value.map(|value| value.value().to_vec()))
}

impl Transaction<redb::ReadTransaction> {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.0.path(), what)
    }

    fn get<'k, K: Key + 'static>(
        &self,
        which: Definition<K>,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> SealedValue {
        let path = self.0.path();
        self.0.with(|txn| {
            let table = txn.open_table(which).map_err(failed(path, "open"))?;
            get(path, &table, key)
        })
    }

    pub fn manifest(&self) -> Result<Manifest> {
        let content = self.content("manifest", "the manifest")?;
        let content = content.ok_or_else(|| self.damaged("it has no manifest"))?;
        let mut manifest = Manifest::from_bytes(&content).map_err(|what| self.damaged(what))?;
        manifest.progress.stream = self.part("stream", "a stream's signature")?;
        let what = "the number of a stream with requests";
        manifest.progress.requests = self.part("requests", what)?;
        Ok(manifest)
    }

    /// Reads the value of this name, if there is one. `what` names it in errors.
    fn content(&self, name: &str, what: &str) -> SealedValue {
        let Some(value) = self.get(MANIFEST, name)? else {
            return Ok(None);
        };
        let content = unseal(name, &[], &value).map(|content| Some(content.to_vec()));
        content.ok_or_else(|| self.damaged(format!("{what} does not match its checksum")))
    }

    fn part<T: DeserializeOwned>(&self, name: &str, what: &str) -> Result<Option<T>> {
        let content = self.content(name, what)?;
        let part = content.map(|content| manifest::from_bytes(&content));
        part.transpose()
            .map_err(|why| self.damaged(format!("{what} {why}")))
    }

    /// Reads the current slots of `count` chunks, which must hash to `sum`.
    pub fn slots(&self, count: u64, sum: u64) -> Result<Vec<(u8, u64)>> {
        let slot = |chunk| {
            let value = self.get(CHUNKS, chunk)?;
            let slot = value.and_then(|value| read_slot(unseal("chunks", &[chunk], &value)?));
            slot.ok_or_else(|| self.damaged(format!("no sound entry for {CASH} chunk {chunk}")))
        };
        let slots = (0..count).map(slot).collect::<Result<Vec<_>>>()?;
        if slots_sum(&slots) == sum {
            Ok(slots)
        } else {
            Err(self.damaged(format!(
                "its entries for {CASH} are not those of its manifest"
            )))
        }
    }

    pub fn rows(&self, run: HistoryRun) -> Blocks<'_> {
        rows_of(self.0.path(), run, |key| self.get(HISTORY, key))
    }

    pub fn admissions(&self, blocks: u64) -> Admissions<'_> {
        admissions_of(self.0.path(), blocks, |block| self.get(ADMISSIONS, block))
    }
}

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
            let is_sound =
                |value: &Vec<u8>| unseal("history", &<[u64; 2]>::from(key), value).is_some();
            value = get(key)?.filter(is_sound).ok_or_else(|| damaged(block))?;
            (at, before) = (SEAL, HistoryRow::default());
        }
        let mut rest = &value[at..];
        unpack_some(&mut rest, SLICE, before, rows).ok_or_else(|| damaged(blocks.start - 1))?;
        at = value.len() - rest.len();
        before = rows.last().copied().unwrap_or_default();
        Ok(())
    })
}

/// Number of rows of a run that are unpacked at a time: an unpacked one takes twenty times the memory.
const SLICE: usize = 64;

fn admissions_of<'a>(
    path: &'a Path,
    blocks: u64,
    get: impl Fn(u64) -> SealedValue + 'a,
) -> Admissions<'a> {
    Box::new(flat((0..blocks).map(move |block| {
        let mut admissions = Vec::new();
        let value = get(block)?;
        let unpacked = value
            .and_then(|value| unpack(unseal("admissions", &[block], &value)?, &mut admissions));
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
    let path = path.to_owned();
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
