//! The store: a directory that outlives the process. One writer, locked; any number of readers.
//!
//! | part | what | module |
//! |---|---|---|
//! | `identity.json` | version, settings, key | `identity` |
//! | `lock` | locked by the writer | `folder` |
//! | `store.redb` | manifest, chunk slots, history: **the only commit point** | `tables`, `manifest`, `blocks` |
//! | `cash` | cells and ages, two slots a chunk | `chunks` |
//! | `urls`, `fingerprints` (and `.index`) | names in page order, append-only | `names`, `log` |
//! | `index` | map from fingerprint to page, as of the end of a run | `index_file` |
//! | `remote` | of a shard: numbers of its remote pages in their owners' stores | [`crate::shards`] |
//! | `warm` | the warm start of the next settling; a cache that no commit names | `warm` |
//! | `rows/` | rows of links that visits applied, append-only | `rows`, `log` |
//! | `marks/` | retained copies of the cells | `marks` |
//! | `snapshots/` | published rankings, immutable; `latest.json` | [`crate::snapshot`] |
//! | `spool/` | bytes of standard input not yet covered by a checkpoint | `spool` |
//!
//! **A checkpoint**, at a record boundary: logs and rows appended and synced; new marks synced; changed chunks written
//! to their other slots, synced; then one redb transaction with history and manifest. Only then are old slots and
//! dropped marks freed.
//!
//! **Recovery** is opening: redb gives the last commit, logs are truncated to its lengths, chunks are loaded and
//! checked, the law is checked, the index is read or rebuilt, and uncommitted marks and unpublished snapshots are
//! removed. redb trusts its pages, so all its calls are fenced (`fence`).
//!
//! **Damage** is detected and never used. It is repaired only in caches: the row directory, the warm start, the index
//! and the numbers of remote pages. [`PARTS`] says what damage to each file means; [`crate::check`] finds it.
//!
//! Any failure of an operation is final for the process: a store that failed once refuses all further writes, because
//! the disk's contents are unknown after a failed sync.

mod blocks;
mod checkpoint;
mod chunks;
mod folder;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod identity;
mod index_file;
mod manifest;
mod marks;
mod names;
mod progress;
mod row_file;
pub mod rows;
mod settings;
mod spool;
mod tables;
mod verify;
mod view;
pub mod warm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::batch::HashKey;
use crate::disk::Access;
use crate::engine::{Admission, CHUNK_PAGES, Engine};
use crate::memory::{Need, pages_with_room};
use crate::model::Limits;
use crate::threads::join;
use crate::{Error, Result};
use blocks::Packer;
use chunks::{CASH, CashFile};
pub use folder::{IDENTITY, LEFTOVERS, OLD_BASES, blame_move, is_busy, lock_soon};
use folder::{is_void, lock_or_create, remove_file, remove_leftovers, remove_unpublished, renew};
use identity::Identity;
use index_file::indexed;
pub use index_file::{IndexFile, keep_index, trust_index};
use manifest::Manifest;
use names::NameLogs;
use tables::{Tables, WriteTransaction};

pub use crate::codec::sealed::{from_text, to_text};
pub use crate::codec::varint::number;
pub use crate::disk::{
    Disk, DiskFile, RealDisk, TempFile, read_whole, temporary, unfinished, write_whole,
};
pub use crate::model::{PARTS, StoreFile, part_of};
pub use cashrank_fence::{PanicFate, fenced};
use checkpoint::PackedRun;
pub use checkpoint::checkpoint;
pub use identity::{Settings, VERSION};
pub use names::{NameLengths, NameReader, kept};
pub use progress::{Input, InputProgress, Spooled, Unverified};
use rows::{GiveUpReason, KeepRows, RowWriter};
use settings::check_settings;
pub use settings::differences;
pub use spool::{OnDurable, SpoolOptions, SpoolState, spool_state, verify_spool};
pub use spool::{Spool, SpoolReader, remove_spool};
pub use verify::{Depth, VerifyReport};
pub use view::{View, identity_of, open_view, open_view_to, open_view_to_publish, settings_of};
use warm::{WarmRows, WarmStart};

pub const SNAPSHOTS: &str = "snapshots";

/// Store open for writing: the storage of a durable [`Engine`].
pub struct StoreWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    identity: Identity,
    /// True if the store was just created.
    pub is_new: bool,
    tables: Arc<Tables>,
    /// Transaction of the next commit, once something is written to it.
    writing: Option<WriteTransaction>,
    cash: CashFile,
    names: NameLogs,
    /// Number of pages that the index on disk covers.
    indexed: u64,
    /// Damage of the index on disk, if it was not used.
    unused_index: Option<Error>,
    rows: OpenRows,
    manifest: Manifest,
    /// Newest run of the history, while it is packed.
    packing: Option<JoinHandle<Result<PackedRun>>>,
    admissions: Packer<Admission>,
    /// Marks created since the last checkpoint that are still kept, by number.
    new_marks: BTreeMap<u64, Box<dyn DiskFile>>,
    /// Numbers of dropped marks, whose files are removed after the next commit.
    dropped_marks: Vec<u64>,
    failed: bool,
    /// Lock, held while the store or a view is open. Last field, so dropped last: redb still writes on closing.
    lock: Arc<dyn DiskFile>,
}

#[derive(Default)]
struct OpenRows {
    writer: Option<RowWriter>,
    /// Reason why rows were given up, until it is reported.
    gave_up: Option<GiveUpReason>,
    /// Damage of the row directory if it was rebuilt, until it is reported.
    renewed_places: Option<Error>,
    /// Number of a row file that the next commit does not name.
    doomed: Option<u64>,
    /// Warm start if there is one that fits, or the error of opening it.
    warm: Option<Result<WarmStart>>,
    /// Rows of the commit that is being ranked and whose result will be the next warm start.
    ranked: Option<WarmRows>,
}

impl StoreWriter {
    /// Opens the store in `dir` for writing; creates it if there is none. Returns the engine at the last checkpoint,
    /// with the store as its storage. `settings` must agree with the store's, which [`settings_of`] reads. A store
    /// without pages accepts any settings and starts over, unless it holds acknowledged bytes of a stream that has not
    /// ended or that this run `resumes`.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        keep: KeepRows,
        resumes: bool,
    ) -> Result<Engine<StoreWriter>> {
        let (lock, is_new) = lock_or_create(&*disk, dir, settings)?;
        let read = || {
            // Refuses a store of another version before reading anything else.
            let identity = Identity::read(&*disk, dir)?;
            let tables = Tables::open(&*disk, dir, Access::Write)?;
            let manifest = tables.read()?.manifest()?;
            manifest.check_identity(dir, &identity)?;
            Ok::<_, Error>((identity, tables, manifest))
        };
        let (mut identity, mut tables, mut manifest) = read()?;
        let is_untouched = manifest.progress.inputs.is_empty() && identity.settings == *settings;
        if !is_untouched && is_void(&*disk, dir, &manifest, resumes)? {
            drop(tables);
            renew(&*disk, dir, settings, identity.key)?;
            (identity, tables, manifest) = read()?;
        }
        check_settings(dir, &identity.settings, settings)?;
        let reading = tables.read()?;
        let pages = manifest.engine.totals.pages;
        let slots = reading.slots(pages.div_ceil(CHUNK_PAGES), manifest.slots)?;
        let cash = CashFile::open(&*disk, dir, Access::Write, slots)?;
        drop(reading);
        marks::remove_others(&*disk, dir, &manifest.engine.marks)?;
        remove_unpublished(&*disk, dir)?;
        remove_leftovers(&*disk, dir)?;
        rows::remove_others(&*disk, dir, &manifest.rows)?;
        // Version 0.1 wrote this file with `--correction`. It belongs to the last commit until there is another.
        if manifest.corrected.take().is_none() && !identity.has_rows() {
            remove_file(&*disk, &dir.join("correction"))?;
        }
        let mut store = StoreWriter {
            cash,
            names: NameLogs::open(&*disk, dir, Access::Write, manifest.names, pages)?,
            indexed: 0,
            unused_index: None,
            rows: OpenRows {
                warm: WarmStart::open(&*disk, dir, identity.hash, &manifest.rows.retention)
                    .transpose(),
                ..OpenRows::default()
            },
            tables: Arc::new(tables),
            writing: None,
            packing: None,
            admissions: Packer::new(),
            new_marks: BTreeMap::new(),
            dropped_marks: Vec::new(),
            failed: false,
            lock: Arc::from(lock),
            dir: dir.into(),
            identity,
            is_new,
            manifest,
            disk,
        };
        store.begin_rows(keep)?;
        store.into_engine(limits)
    }

    fn into_engine(self, limits: &Limits) -> Result<Engine<StoreWriter>> {
        let limit = limits.pages;
        let state = self.manifest.engine.clone();
        let pages = state.totals.pages;
        if pages > limit {
            return Err(Error::Conflict(format!(
                "{}: knows {pages} pages, more than `limit_pages` {limit}; raise it",
                self.dir.display()
            )));
        }
        let settings = &self.identity.settings;
        Need::check_resume(&settings.config, pages, limits.memory)?;
        let slots = self.cash.slots.clone();
        let cash = CashFile::open(&*self.disk, &self.dir, Access::Look, slots)?;
        let names = NameReader::open(&*self.disk, &self.dir, self.manifest.names)?;
        names.check_end(&self.key())?;
        let config = self.identity.settings.config.clone();
        let dir = self.dir.clone();
        let room = pages_with_room(&config, limits);
        let mut engine = Engine::with_storage(config, room, self)?;
        let load = |cells: &mut [u64], ages: &mut [u8]| cash.load(cells, ages);
        // Loading the cash waits for the disk while building the index keeps the processors busy.
        let file = engine.storage().index_file(pages, &names);
        let index = || indexed(pages, &names, file);
        let (found, restored) = join(true, index, || engine.restore(state, load));
        restored?;
        let law = engine.ledger().check_law();
        law.map_err(|what| Error::damaged(dir.join(CASH), what))?;
        let (index, known, from_file) = found?;
        verify::check_count(&dir.join("fingerprints"), known, pages)?;
        engine.restore_index(index);
        engine.storage_mut().note_index(from_file);
        let identity = &engine.storage().identity;
        let (track, shard) = (identity.has_fetches(), identity.settings.input.shard);
        engine.track_fetches(track);
        engine.set_shard(shard);
        Ok(engine)
    }

    pub fn key(&self) -> HashKey {
        self.identity.key
    }

    /// Returns the hash of the identity file.
    pub fn identity(&self) -> u64 {
        self.identity.hash
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    pub fn progress(&self) -> &InputProgress {
        &self.manifest.progress
    }

    /// Returns the last committed state, for reading while this store continues.
    pub fn view(&self) -> Result<View> {
        let tables = self.tables.clone();
        let mut view = View::new(&*self.disk, &self.dir, tables, self.identity.clone())?;
        view.lock = Some(self.lock.clone());
        view.warm = self.warm();
        Ok(view)
    }
}
