//! `store.redb`: the manifest, the cash chunks' current slots, and the history. Its commit is the
//! store's only commit point.
//!
//! | table | key | value |
//! |---|---|---|
//! | `manifest` | `"manifest"` | see `manifest.rs`, sealed |
//! | `chunks` | chunk u64 | slot u8, hash u64, sealed |
//! | `history` | (run u64, block u64) | rows, sealed |
//! | `admissions` | block u64 | admissions, sealed |
//!
//! redb does not check values when it reads them, so every value carries its own checksum.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};

use super::blocks::{seal, unpack, unseal};
use super::cash::Slot;
use super::disk::{Disk, DiskFile};
use super::manifest::{Manifest, Run};
use crate::engine::{Admission, Admissions, Row, Rows};
use crate::{Error, Result};

const MANIFEST: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("manifest");
const CHUNKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("chunks");
const HISTORY: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("history");
const ADMISSIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("admissions");

/// redb's page cache. The history is written once and read in order: a small one does.
const CACHE_BYTES: usize = 64 << 20;

/// redb's storage, on the store's disk.
#[derive(Debug)]
struct Backend(Box<dyn DiskFile>);

impl StorageBackend for Backend {
    fn len(&self) -> std::io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write_at(data, offset)
    }
}

/// Turns redb's errors into ours.
#[derive(Clone)]
struct Failed<'p>(&'p Path);

impl Failed<'_> {
    fn map<E: Into<redb::Error>>(&self, action: &'static str) -> impl FnOnce(E) -> Error {
        let path: PathBuf = self.0.into();
        move |error| match error.into() {
            redb::Error::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                Error::damaged(path, "it refers to what is past its end")
            }
            redb::Error::Io(source) => Error::Io {
                path,
                action,
                source,
            },
            redb::Error::PreviousIo => Error::Io {
                path,
                action,
                source: std::io::Error::other("an earlier operation on it failed"),
            },
            other => Error::Damaged {
                path,
                what: format!("cannot {action}: {other}"),
            },
        }
    }
}

/// The database.
pub(crate) struct Tables {
    path: PathBuf,
    db: Database,
}

impl Tables {
    /// Opens `store.redb` in `dir`; creates it if `create`.
    pub fn open(disk: &dyn Disk, dir: &Path, create: bool) -> Result<Tables> {
        let path = dir.join("store.redb");
        let file = disk.open(&path, create).map_err(Error::io(&path, "open"))?;
        let len = file.size().map_err(Error::io(&path, "measure"))?;
        if !create && len == 0 {
            return Err(Error::damaged(&path, "it is empty"));
        }
        let db = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(Backend(file))
            .map_err(Failed(&path).map("open"))?;
        Ok(Tables { path, db })
    }

    /// Begins what the next commit will commit.
    pub fn begin(&self) -> Result<Writing> {
        let failed = Failed(&self.path);
        let mut txn = self.db.begin_write().map_err(failed.map("begin"))?;
        txn.set_durability(redb::Durability::Immediate)
            .map_err(failed.map("begin"))?;
        txn.set_two_phase_commit(true);
        Ok(Writing {
            path: self.path.clone(),
            txn,
        })
    }

    /// The last committed state, for reading; stays as it is whatever is committed later.
    pub fn read(&self) -> Result<Reading> {
        let txn = self
            .db
            .begin_read()
            .map_err(Failed(&self.path).map("read"))?;
        Ok(Reading {
            path: self.path.clone(),
            txn,
        })
    }

    /// Checks redb's own structure.
    pub fn check(&mut self) -> Result<()> {
        let sound = self
            .db
            .check_integrity()
            .map_err(Failed(&self.path).map("check"))?;
        if sound {
            Ok(())
        } else {
            Err(Error::damaged(&self.path, "redb had to repair it"))
        }
    }
}

/// An open write transaction.
pub(crate) struct Writing {
    path: PathBuf,
    txn: redb::WriteTransaction,
}

impl Writing {
    fn failed(&self) -> Failed<'_> {
        Failed(&self.path)
    }

    /// Writes a block of rows.
    pub fn put_rows(&self, run: u64, block: u64, value: &[u8]) -> Result<()> {
        let mut table = self
            .txn
            .open_table(HISTORY)
            .map_err(self.failed().map("open"))?;
        table
            .insert((run, block), value)
            .map_err(self.failed().map("write"))?;
        Ok(())
    }

    /// Writes a block of admissions.
    pub fn put_admissions(&self, block: u64, value: &[u8]) -> Result<()> {
        let mut table = self
            .txn
            .open_table(ADMISSIONS)
            .map_err(self.failed().map("open"))?;
        table
            .insert(block, value)
            .map_err(self.failed().map("write"))?;
        Ok(())
    }

    /// Notes which slot of a chunk is current.
    pub fn put_slots(&self, slots: &[(u64, Slot)]) -> Result<()> {
        let mut table = self
            .txn
            .open_table(CHUNKS)
            .map_err(self.failed().map("open"))?;
        for (chunk, slot) in slots {
            let mut value = vec![0; 8];
            value.push(slot.slot);
            value.extend_from_slice(&slot.hash.to_le_bytes());
            table
                .insert(chunk, &seal(value)[..])
                .map_err(self.failed().map("write"))?;
        }
        Ok(())
    }

    /// Merges runs `older` and `newer` into run `number`: `merge` makes one stream of rows of the
    /// two. Returns the new run.
    pub fn merge_runs(
        &self,
        runs: [Run; 2],
        number: u64,
        merge: impl for<'a> FnOnce(Vec<Rows<'a>>, Admissions<'a>) -> Rows<'a>,
    ) -> Result<Run> {
        let failed = self.failed();
        let table = self.txn.open_table(HISTORY).map_err(failed.map("open"))?;
        let admissions = self
            .txn
            .open_table(ADMISSIONS)
            .map_err(failed.map("open"))?;
        let table = RefCell::new(table);
        let mut merged = Run {
            number,
            interval: runs[0].interval,
            rows: 0,
            blocks: 0,
            bytes: 0,
        };
        let mut packer = super::blocks::Packer::new();
        let put = |merged: &mut Run, value: Vec<u8>| {
            merged.bytes += value.len() as u64;
            table
                .borrow_mut()
                .insert((number, merged.blocks), &value[..])
                .map_err(failed.map("write"))?;
            merged.blocks += 1;
            Ok(())
        };
        let parts = runs
            .iter()
            .map(|run| {
                rows_of(&self.path, *run, |key| {
                    let value = table.borrow().get(key)?.map(|value| value.value().to_vec());
                    Ok(value)
                })
            })
            .collect();
        for row in merge(parts, admissions_of(&self.path, &admissions)) {
            merged.rows += 1;
            if let Some(value) = packer.add(row?) {
                put(&mut merged, value)?;
            }
        }
        if let Some(value) = packer.finish() {
            put(&mut merged, value)?;
        }
        for run in runs {
            for block in 0..run.blocks {
                table
                    .borrow_mut()
                    .remove((run.number, block))
                    .map_err(failed.map("write"))?;
            }
        }
        Ok(merged)
    }

    /// Commits, with the manifest.
    pub fn commit(self, manifest: &Manifest) -> Result<()> {
        let failed = Failed(&self.path);
        let bytes = manifest.to_bytes().map_err(Error::Refused)?;
        let mut table = self.txn.open_table(MANIFEST).map_err(failed.map("open"))?;
        table
            .insert("manifest", &bytes[..])
            .map_err(failed.map("write"))?;
        drop(table);
        self.txn.commit().map_err(failed.map("commit"))
    }
}

/// A committed state.
pub(crate) struct Reading {
    path: PathBuf,
    txn: redb::ReadTransaction,
}

impl Reading {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// The manifest.
    pub fn manifest(&self) -> Result<Manifest> {
        let failed = Failed(&self.path);
        let table = self.txn.open_table(MANIFEST).map_err(failed.map("open"))?;
        let value = table.get("manifest").map_err(failed.map("read"))?;
        let value = value.ok_or_else(|| self.damaged("it has no manifest"))?;
        Manifest::from_bytes(value.value()).map_err(|what| self.damaged(what))
    }

    /// The current slots of `chunks` chunks.
    pub fn slots(&self, chunks: u64) -> Result<Vec<Slot>> {
        if chunks == 0 {
            return Ok(Vec::new());
        }
        let failed = Failed(&self.path);
        let table = self.txn.open_table(CHUNKS).map_err(failed.map("open"))?;
        (0..chunks)
            .map(|chunk| {
                let value = table.get(chunk).map_err(failed.map("read"))?;
                value
                    .as_ref()
                    .and_then(|value| unseal(value.value()))
                    .and_then(|content| {
                        let (&slot, hash) = content.split_first()?;
                        Some(Slot {
                            slot,
                            hash: u64::from_le_bytes(hash.try_into().ok()?),
                        })
                    })
                    .filter(|slot| slot.slot < 2)
                    .ok_or_else(|| self.damaged(format!("no sound entry for cash chunk {chunk}")))
            })
            .collect()
    }

    /// The rows of a run.
    pub fn rows(&self, run: Run) -> Result<Rows<'_>> {
        let table = self
            .txn
            .open_table(HISTORY)
            .map_err(Failed(&self.path).map("open"))?;
        Ok(rows_of(&self.path, run, move |key| {
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        }))
    }

    /// All admissions.
    pub fn admissions(&self, blocks: u64) -> Result<Admissions<'_>> {
        if blocks == 0 {
            return Ok(Box::new(std::iter::empty()));
        }
        let table = self
            .txn
            .open_table(ADMISSIONS)
            .map_err(Failed(&self.path).map("open"))?;
        let all = (0..blocks).flat_map(move |block| {
            let value = table
                .get(block)
                .map(|value| value.and_then(|value| unpack::<Admission>(value.value())));
            spread(match value {
                Ok(Some(entries)) => Ok(entries),
                Ok(None) => Err(self.damaged(format!("admission block {block} is damaged"))),
                Err(error) => Err(Failed(&self.path).map("read")(error)),
            })
        });
        Ok(Box::new(all))
    }
}

fn spread<T: Copy>(entries: Result<Vec<T>>) -> impl Iterator<Item = Result<T>> {
    let (entries, error) = match entries {
        Ok(entries) => (entries, None),
        Err(error) => (Vec::new(), Some(Err(error))),
    };
    entries.into_iter().map(Ok).chain(error)
}

type Value = std::result::Result<Option<Vec<u8>>, redb::StorageError>;

fn rows_of<'a>(path: &'a Path, run: Run, get: impl Fn((u64, u64)) -> Value + 'a) -> Rows<'a> {
    Box::new((0..run.blocks).flat_map(move |block| {
        let value = get((run.number, block)).map_err(Failed(path).map("read"));
        spread(value.and_then(|value| {
            value
                .and_then(|value| unpack::<Row>(&value))
                .ok_or_else(|| {
                    let which = format!("history run {}, block {block} is damaged", run.number);
                    Error::damaged(path, which)
                })
        }))
    }))
}

fn admissions_of<'a>(
    path: &'a Path,
    table: &'a impl ReadableTable<u64, &'static [u8]>,
) -> Admissions<'a> {
    let failed = move |error| Failed(path).map::<redb::StorageError>("read")(error);
    match table.iter() {
        Err(error) => Box::new(std::iter::once(Err(failed(error)))),
        Ok(range) => Box::new(range.flat_map(move |entry| {
            spread(entry.map_err(failed).and_then(|(block, value)| {
                unpack::<Admission>(value.value()).ok_or_else(|| {
                    Error::damaged(
                        path,
                        format!("admission block {} is damaged", block.value()),
                    )
                })
            }))
        })),
    }
}
