//! `store.redb`: the manifest, the cash chunks' current slots, and the history. Its commit is the
//! store's only commit point.
//!
//! | table | key | value |
//! |---|---|---|
//! | `manifest` | `"manifest"` | see `manifest.rs`, sealed |
//! | `manifest` | `"stream"` | what the last stream is known by, sealed; absent where none was read |
//! | `chunks` | chunk u64 | slot u8, hash u64, sealed |
//! | `history` | (run u64, block u64) | rows, sealed |
//! | `admissions` | block u64 | admissions, sealed |
//!
//! redb does not check pages or values when it reads them. So every value is sealed under its table
//! and key (`blocks.rs`), every key that must be there is asked for, and every call of redb goes through
//! a [`Fence`]. The only place that uses redb.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, Key, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};

use super::blocks::{Entry, Packer, Seal, seal, unpack, unseal};
use super::chunks::{CASH, Slot, slots_sum};
use super::fence::{Fence, Fenced};
use super::manifest::{self, Manifest, Run};
use super::overlay::Overlay;
use crate::disk::{Disk, DiskFile};
use crate::engine::{Admissions, Blocks, Row, Rows};
use crate::memory::DATABASE;
use crate::{Error, Result};

const MANIFEST: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("manifest");
const CHUNKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("chunks");
const HISTORY: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("history");
const ADMISSIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("admissions");

/// What the values are sealed under.
const MANIFEST_SEAL: Seal<0> = Seal("manifest", []);
const STREAM_SEAL: Seal<0> = Seal("stream", []);

fn chunk_seal(chunk: u64) -> Seal<1> {
    Seal("chunks", [chunk])
}

fn rows_seal((run, block): (u64, u64)) -> Seal<2> {
    Seal("history", [run, block])
}

fn admissions_seal(block: u64) -> Seal<1> {
    Seal("admissions", [block])
}

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
fn failed<E: Into<redb::Error>>(path: &Path, action: &'static str) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.into();
    move |error| match error.into() {
        redb::Error::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::damaged(path, "it refers to what is past its end")
        }
        // What redb says of a file that is none of its own, and the system of an absurd offset.
        redb::Error::Io(source)
            if matches!(
                source.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput
            ) =>
        {
            Error::damaged(path, source.to_string())
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

/// How `store.redb` is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// For a new store.
    Create,
    /// For going on.
    Write,
    /// For checking: nothing that redb writes reaches the file.
    Look,
}

/// The database.
pub(crate) struct Tables {
    fence: Arc<Fence>,
    db: Fenced<Database>,
}

impl Tables {
    /// Opens `store.redb` in `dir`.
    pub fn open(disk: &dyn Disk, dir: &Path, access: Access) -> Result<Tables> {
        let path = dir.join("store.redb");
        let file = match access {
            Access::Look => disk.read(&path),
            _ => disk.open(&path, access == Access::Create),
        };
        let file = file.map_err(Error::opening(&path))?;
        let len = file.size().map_err(Error::io(&path, "measure"))?;
        if access != Access::Create && len == 0 {
            return Err(Error::damaged(&path, "it is empty"));
        }
        let file: Box<dyn DiskFile> = match access {
            Access::Look => Box::new(Overlay::new(file).map_err(Error::io(&path, "measure"))?),
            _ => file,
        };
        let fence = Fence::new(path);
        let db = fence.hold(|| {
            Database::builder()
                .set_cache_size(DATABASE as usize)
                .create_with_backend(Backend(file))
                .map_err(failed(fence.path(), "open"))
        })?;
        Ok(Tables { db, fence })
    }

    /// Begins what the next commit will commit.
    pub fn begin(&self) -> Result<Writing> {
        let path = self.fence.path();
        let txn = self.db.hold(|db| {
            let mut txn = db.begin_write().map_err(failed(path, "begin"))?;
            txn.set_durability(redb::Durability::Immediate)
                .map_err(failed(path, "begin"))?;
            txn.set_two_phase_commit(true);
            Ok(txn)
        })?;
        Ok(Writing {
            fence: self.fence.clone(),
            txn,
        })
    }

    /// The last committed state, for reading; stays as it is whatever is committed later.
    pub fn read(&self) -> Result<Reading> {
        let path = self.fence.path();
        let txn = self
            .db
            .hold(|db| db.begin_read().map_err(failed(path, "read")))?;
        Ok(Reading {
            fence: self.fence.clone(),
            txn,
        })
    }

    /// Checks redb's own structure: every page against its checksum. Only possible while no
    /// [`Reading`] or [`Writing`] lives.
    pub fn check(&mut self) -> Result<()> {
        let path = self.fence.path();
        let sound = self
            .db
            .with_mut(|db| db.check_integrity().map_err(failed(path, "check")))?;
        match sound {
            true => Ok(()),
            false => Err(Error::damaged(path, "redb would have to repair it")),
        }
    }
}

type Table<'t, K> = Fenced<redb::Table<'t, K, &'static [u8]>>;

/// An open write transaction.
pub(crate) struct Writing {
    fence: Arc<Fence>,
    txn: Fenced<redb::WriteTransaction>,
}

impl Writing {
    fn table<K: Key>(&self, which: TableDefinition<'_, K, &'static [u8]>) -> Result<Table<'_, K>> {
        let path = self.fence.path();
        self.txn
            .hold(|txn| txn.open_table(which).map_err(failed(path, "open")))
    }

    /// Writes the blocks of a run.
    pub fn put_run(&self, run: &Run, blocks: &[Vec<u8>]) -> Result<()> {
        let mut table = self.table(HISTORY)?;
        for (block, at) in blocks.iter().zip(0..) {
            insert(&self.fence, &mut table, (run.number, at), block)?;
        }
        Ok(())
    }

    /// Writes a block of admissions.
    pub fn put_admissions(&self, block: u64, value: Vec<u8>) -> Result<()> {
        let value = seal(admissions_seal(block), value);
        insert(&self.fence, &mut self.table(ADMISSIONS)?, block, &value)
    }

    /// Notes which slot of a chunk is current.
    pub fn put_slots(&self, slots: &[(u64, Slot)]) -> Result<()> {
        let mut table = self.table(CHUNKS)?;
        for &(chunk, slot) in slots {
            let mut value = vec![0; 8];
            value.extend_from_slice(&slot.to_bytes());
            let value = seal(chunk_seal(chunk), value);
            insert(&self.fence, &mut table, chunk, &value)?;
        }
        Ok(())
    }

    /// Merges neighbouring runs, oldest first, into run `number`: `merge` makes one stream of their
    /// rows, with all `admissions` blocks of admissions at hand. Returns the new run.
    pub fn merge_runs(
        &self,
        runs: &[Run],
        number: u64,
        admissions: u64,
        merge: impl for<'a> FnOnce(Vec<Blocks<'a>>, Admissions<'a>) -> Rows<'a>,
    ) -> Result<Run> {
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

    /// Commits, with the manifest.
    pub fn commit(self, manifest: &Manifest) -> Result<()> {
        let value = manifest.to_bytes().map_err(Error::internal)?;
        let value = seal(MANIFEST_SEAL, value);
        let mut table = self.table(MANIFEST)?;
        insert(&self.fence, &mut table, "manifest", &value)?;
        if let Some(stream) = &manifest.progress.stream {
            let value = manifest::to_bytes(stream).map_err(Error::internal)?;
            let value = seal(STREAM_SEAL, value);
            insert(&self.fence, &mut table, "stream", &value)?;
        }
        drop(table);
        let path = self.fence.path();
        self.txn
            .take(|txn| txn.commit().map_err(failed(path, "commit")))
    }
}

/// Packs rows into the sealed blocks of run `number`, which `put` takes. Returns the run.
pub(super) fn pack_run(
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

/// A value, not yet checked. To be called inside the fence.
fn get<'k, K: Key + 'static>(
    fence: &Fence,
    table: &impl ReadableTable<K, &'static [u8]>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
) -> Result<Option<Vec<u8>>> {
    let value = table.get(key).map_err(failed(fence.path(), "read"))?;
    Ok(value.map(|value| value.value().to_vec()))
}

/// A committed state.
pub(crate) struct Reading {
    fence: Arc<Fence>,
    txn: Fenced<redb::ReadTransaction>,
}

type ReadTable<K> = Fenced<redb::ReadOnlyTable<K, &'static [u8]>>;

impl Reading {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.fence.path(), what)
    }

    fn table<K: Key>(&self, which: TableDefinition<'_, K, &'static [u8]>) -> Result<ReadTable<K>> {
        let path = self.fence.path();
        self.txn
            .hold(|txn| txn.open_table(which).map_err(failed(path, "open")))
    }

    /// The manifest.
    pub fn manifest(&self) -> Result<Manifest> {
        let table = self.table(MANIFEST)?;
        let value = table.with(|table| get(&self.fence, table, "manifest"))?;
        let value = value.ok_or_else(|| self.damaged("it has no manifest"))?;
        let content = unseal(MANIFEST_SEAL, &value)
            .ok_or_else(|| self.damaged("the manifest does not match its checksum"))?;
        let mut manifest = Manifest::from_bytes(content).map_err(|what| self.damaged(what))?;
        let stream = table.with(|table| get(&self.fence, table, "stream"))?;
        if let Some(value) = stream {
            let content = unseal(STREAM_SEAL, &value)
                .ok_or_else(|| self.damaged("a stream's signature does not match its checksum"))?;
            let stream = manifest::from_bytes(content)
                .map_err(|what| self.damaged(format!("a stream's signature {what}")))?;
            manifest.progress.stream = Some(stream);
        }
        Ok(manifest)
    }

    /// The current slots of so many chunks, which hash to `sum`.
    pub fn slots(&self, count: u64, sum: u64) -> Result<Vec<Slot>> {
        let slots = match count {
            0 => Vec::new(),
            _ => {
                let table = self.table(CHUNKS)?;
                let slot = |chunk| {
                    let value = table.with(|table| get(&self.fence, table, chunk))?;
                    value
                        .and_then(|value| Slot::from_bytes(unseal(chunk_seal(chunk), &value)?))
                        .ok_or_else(|| {
                            self.damaged(format!("no sound entry for {CASH} chunk {chunk}"))
                        })
                };
                (0..count).map(slot).collect::<Result<Vec<Slot>>>()?
            }
        };
        match slots_sum(&slots) == sum {
            true => Ok(slots),
            false => Err(self.damaged(format!(
                "its entries for {CASH} are not those of its manifest"
            ))),
        }
    }

    /// The rows of a run.
    pub fn rows(&self, run: Run) -> Result<Blocks<'_>> {
        let table = self.table(HISTORY)?;
        Ok(rows_of(self.fence.path(), run, move |key| {
            table.with(|table| get(&self.fence, table, key))
        }))
    }

    /// All admissions.
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

type Value = Result<Option<Vec<u8>>>;

fn rows_of<'a>(path: &'a Path, run: Run, get: impl Fn((u64, u64)) -> Value + 'a) -> Blocks<'a> {
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

fn admissions_of<'a>(
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
fn entries<T: Entry, const N: usize>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::engine::{Admission, Config, merge, rows_of_run};
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    fn random(seed: u64, at: u64, below: u64) -> u64 {
        xxh3_64_with_seed(&at.to_le_bytes(), seed) % below
    }

    /// A database of some hundred pages; its manifest.
    fn make(dir: &Path) -> Manifest {
        let tables = Tables::open(&RealDisk, dir, Access::Create).unwrap();
        let mut manifest = Manifest::default();
        for number in 0..6 {
            let writing = tables.begin().unwrap();
            let row = |page| Row {
                page,
                visits: 1,
                cash: u128::from(random(number, page, u64::MAX)),
                ..Row::default()
            };
            let rows = (0..4000).map(|page| Ok(row(page)));
            let mut blocks = Vec::new();
            let packed = pack_run(number, number, rows, |_, block| {
                blocks.push(block);
                Ok(())
            });
            let run = packed.unwrap();
            writing.put_run(&run, &blocks).unwrap();
            let mut admissions = Packer::new();
            admissions.add(Admission::default());
            writing
                .put_admissions(number, admissions.finish().unwrap())
                .unwrap();
            manifest.admission_blocks += 1;
            manifest.runs.push(run);
            let slots: Vec<Slot> = (0..200).map(|hash| Slot { slot: 1, hash }).collect();
            let numbered: Vec<(u64, Slot)> = (0..).zip(slots.iter().copied()).collect();
            writing.put_slots(&numbered).unwrap();
            manifest.slots = slots_sum(&slots);
            writing.commit(&manifest).unwrap();
        }
        manifest
    }

    type All = (Manifest, Vec<Slot>, Vec<Row>, usize);

    fn read(tables: &Tables) -> Result<All> {
        let reading = tables.read()?;
        let manifest = reading.manifest()?;
        let slots = reading.slots(200, manifest.slots)?;
        let mut rows = Vec::new();
        for run in &manifest.runs {
            for row in rows_of_run(reading.rows(*run)?) {
                rows.push(row?);
            }
        }
        let admissions = reading.admissions(manifest.admission_blocks)?;
        let admissions = admissions.collect::<Result<Vec<_>>>()?.len();
        Ok((manifest, slots, rows, admissions))
    }

    /// Merges all, as checkpoints do, and closes.
    fn write(tables: Tables, manifest: &Manifest) -> Result<()> {
        let writing = tables.begin()?;
        let mut manifest = manifest.clone();
        let pair = [manifest.runs[0], manifest.runs[1]];
        let merged =
            writing.merge_runs(&pair, 6, manifest.admission_blocks, |rows, admissions| {
                let admitted = admissions.filter_map(|admission| admission.err().map(Err));
                Box::new(merge(&Config::default().policy(), rows, 0).chain(admitted))
            })?;
        manifest.runs.splice(0..2, [merged]);
        writing.commit(&manifest)
    }

    /// Its story: redb trusts its pages. On damaged ones it panicked, with `unreachable!` where a page
    /// is neither leaf nor branch, and with slices out of range: when opening, reading, writing and
    /// closing. Now all calls go through a fence.
    #[test]
    fn damaged_pages_are_reported_or_do_not_matter() {
        let temp = tempfile::tempdir().unwrap();
        make(temp.path());
        let path = temp.path().join("store.redb");
        let good = std::fs::read(&path).unwrap();
        let sound = read(&Tables::open(&RealDisk, temp.path(), Access::Look).unwrap()).unwrap();
        assert_eq!((sound.2.len(), sound.3), (24_000, 6));
        let pages: Vec<usize> = (0..good.len())
            .step_by(4096)
            .filter(|&page| good[page..page + 4096].iter().any(|&byte| byte != 0))
            .collect();
        let (mut fenced, mut told) = (0, 0);
        for round in 0..200 {
            let mut bytes = good.clone();
            let page = pages[random(1, round, pages.len() as u64) as usize];
            // Most of what redb trusts is at a page's start.
            let at = page + random(2, round, [64, 4096 - 64][round as usize % 2]) as usize;
            for (byte, held) in bytes[at..at + [1, 8, 64][round as usize % 3]]
                .iter_mut()
                .enumerate()
            {
                *held ^= 1 + random(3, round * 64 + byte as u64, 255) as u8;
            }
            std::fs::write(&path, &bytes).unwrap();
            let mut judge = |result: Result<()>| match result {
                Ok(()) => {}
                Err(Error::Damaged { what, .. }) => {
                    told += 1;
                    fenced += u64::from(what == "redb cannot use its pages");
                }
                Err(error) => panic!("round {round}: {error}"),
            };
            let look = Tables::open(&RealDisk, temp.path(), Access::Look);
            judge(look.and_then(|tables| read(&tables)).map(|found| {
                assert!(found == sound, "round {round}: other values");
            }));
            assert!(std::fs::read(&path).unwrap() == bytes, "a look writes");
            let look = Tables::open(&RealDisk, temp.path(), Access::Look);
            judge(look.and_then(|mut tables| tables.check()));
            let open = Tables::open(&RealDisk, temp.path(), Access::Write);
            judge(open.and_then(|tables| write(tables, &sound.0)));
        }
        eprintln!("{told} times told, {fenced} of them caught");
        assert!(told > 200 && fenced > 3, "{told} told, {fenced} caught");
    }
}
