//! The store: a directory that outlives the process. One writer, locked; any number of readers.
//!
//! | part | what | module |
//! |---|---|---|
//! | `identity.json` | version, settings, key | `identity` |
//! | `lock` | locked by the writer | here |
//! | `store.redb` | manifest, chunk slots, history: **the only commit point** | `tables`, `manifest`, `blocks` |
//! | `cash` | cells and ages, two slots a chunk | `chunks` |
//! | `urls`, `fingerprints` (and `.index`) | names in page order, append-only | `names`, `log` |
//! | `rows/` | rows of links that visits applied, append-only | `rows`, `log` |
//! | `marks/` | retained copies of the cells | `marks` |
//! | `snapshots/` | published rankings, immutable; `latest.json` | [`crate::snapshot`] |
//! | `spool/` | bytes of standard input that no checkpoint covers yet | `spool` |
//!
//! **A checkpoint**, at a record boundary: logs and rows appended and synced; new marks synced; changed
//! chunks written to their other slots, synced; then one redb transaction with history and
//! manifest. Only after it are the old slots and dropped marks given up.
//!
//! **Recovery** is opening: redb gives the last commit, logs are cut to its lengths, chunks are
//! loaded and checked, the law is checked, the index is rebuilt, marks of no commit and snapshots
//! never published are removed. redb trusts its pages, so all its calls are fenced (`fence`).
//!
//! **Damage** is found, never used, and never repaired: [`PARTS`] says what each file's means. [`crate::check`]
//! looks for it.
//!
//! Any failure of an operation is final for the process: a store that failed once refuses all
//! further writes, because after a failed sync nobody knows what the disk holds.

mod blocks;
mod chunks;
mod fence;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod identity;
mod inside;
mod log;
mod manifest;
mod marks;
mod names;
mod overlay;
mod packing;
mod progress;
mod reindex;
mod renew;
pub mod rows;
mod spool;
mod tables;
mod told;
mod verify;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::batch::HashKey;
use crate::engine::{
    Admission, Archive, CHUNK_PAGES, Engine, EngineState, Fingerprint, Links, Mark, Notes, PageId,
    fold, merge, mergeable,
};
use crate::memory::Need;
use crate::model::Limits;
use crate::threads::in_two;
use crate::{Error, Result};
use blocks::Packer;
use chunks::{CASH, ChunkFile, Chunks, Slot, slots_sum};
use identity::Identity;
use manifest::Manifest;
use names::NameLogs;
use packing::{Packed, Packing, pack};
use tables::{Access, Tables, Writing};

pub(crate) use crate::codec::sealed::{from_text, to_text};
pub(crate) use crate::codec::varint::number;
pub use crate::disk::{Disk, DiskFile, RealDisk};
pub(crate) use crate::disk::{read_whole, write_whole};
pub use crate::model::{PARTS, StorePart as Part, part_of};
pub use fence::{Fenced, fenced};
pub(crate) use identity::NEXT as NEXT_IDENTITY;
pub use identity::{Settings, VERSION};
pub use names::NameLengths;
pub(crate) use names::{NameReader, kept};
pub use progress::{Input, Place, Progress, Spooled, Unverified};
use reindex::reindex;
use rows::{KeepRows, Reason, RowWriter, Standing, Stop};
pub(crate) use spool::{Spool, SpoolReader, remove_spool};
pub use spool::{SpoolOptions, SpoolStanding, Told, spool_standing, verify_spool};
use told::check_settings;
pub use verify::{Depth, Report};
pub use view::View;

/// Names of the parts of a store directory.
pub(crate) const SNAPSHOTS: &str = "snapshots";
const LOCK: &str = "lock";
/// How often a writer asks for the lock, and how long it waits between.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Rows from which on a run is worth a thread.
const PACKED_BESIDE: usize = 1 << 11;

/// An open store, the writer's side: the archive of a durable [`Engine`].
pub struct Store {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    identity: Identity,
    tables: Arc<Tables>,
    writing: Option<Writing>,
    cash: Chunks,
    names: NameLogs,
    /// Absent where none are kept.
    rows: Option<RowWriter>,
    /// Visits append rows.
    appends_rows: bool,
    /// Why rows were given up since somebody asked.
    gave_up: Option<Reason>,
    /// A row file that no commit names any more once the next is made.
    doomed_rows: Option<u64>,
    manifest: Manifest,
    /// The newest run, until it is written.
    packing: Option<Packing>,
    admissions: Packer<Admission>,
    /// Marks written since the last checkpoint and still kept, by number.
    new_marks: BTreeMap<u64, Box<dyn DiskFile>>,
    /// Marks of the last checkpoint dropped since; their files go after the next commit.
    dropped_marks: Vec<u64>,
    failed: bool,
    /// Holds the lock for as long as the store is open. The last field, so that it is given up
    /// last: redb still writes when it is closed.
    _lock: Box<dyn DiskFile>,
}

/// What opening a store found.
pub struct Opened {
    /// The engine at the last checkpoint, its archive the store.
    pub engine: Engine<Store>,
    /// How far the inputs were read.
    pub progress: Progress,
    /// The store was just made.
    pub new: bool,
}

impl Store {
    /// Opens the store in `dir` for writing; makes it if there is none. `settings` must agree with
    /// the store's; [`settings_of`] reads them. A store without pages takes any, and begins anew.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        limits: &Limits,
        keep: KeepRows,
    ) -> Result<Opened> {
        let created = match is_store(&*disk, dir)? {
            true => None,
            false => create(&*disk, dir, settings)?,
        };
        let new = created.is_some();
        let lock = match created {
            Some(lock) => lock,
            None => take_lock(&*disk, dir)?,
        };
        // A store of another version is refused before anything of it is looked at.
        Identity::read(&*disk, dir)?;
        let tables = Tables::open(&*disk, dir, Access::Write)?;
        let (identity, mut manifest) = renew::opened(&*disk, dir, &tables, settings)?;
        let reading = tables.read()?;
        let pages = manifest.engine.totals.pages;
        let cash = Chunks {
            slots: reading.slots(pages.div_ceil(CHUNK_PAGES), manifest.slots)?,
            file: ChunkFile::open(&*disk, dir)?,
        };
        drop(reading);
        marks::remove_others(&*disk, dir, &manifest.engine.marks)?;
        remove_unpublished(&*disk, dir)?;
        rows::remove_others(&*disk, dir, &manifest.rows)?;
        // The file is the last commit's until there is another.
        if manifest.corrected.take().is_none() && !identity.has_rows() {
            remove_corrected(&*disk, dir)?;
        }
        let mut store = Store {
            cash,
            names: NameLogs::open(&*disk, dir, manifest.names, pages)?,
            rows: None,
            appends_rows: true,
            gave_up: None,
            doomed_rows: None,
            tables: Arc::new(tables),
            writing: None,
            packing: None,
            admissions: Packer::new(),
            new_marks: BTreeMap::new(),
            dropped_marks: Vec::new(),
            failed: false,
            _lock: lock,
            dir: dir.into(),
            identity,
            manifest,
            disk,
        };
        store.begin_rows(keep)?;
        let progress = store.manifest.progress.clone();
        let engine = store.into_engine(limits)?;
        Ok(Opened {
            engine,
            progress,
            new,
        })
    }

    fn into_engine(self, limits: &Limits) -> Result<Engine<Store>> {
        let page_limit = limits.pages;
        let state = self.manifest.engine.clone();
        let pages = state.totals.pages;
        if pages > page_limit {
            return Err(Error::Conflict(format!(
                "{}: knows {pages} pages, more than `limit_pages` {page_limit}; raise it",
                self.dir.display()
            )));
        }
        Need::check_resume(&self.identity.settings.config, pages, limits.memory)?;
        let cash = Chunks {
            file: ChunkFile::look(&*self.disk, &self.dir)?,
            slots: self.cash.slots.clone(),
        };
        let names = NameReader::open(&*self.disk, &self.dir, self.manifest.names)?;
        names.check_end(&self.key())?;
        let config = self.identity.settings.config.clone();
        let dir = self.dir.clone();
        let mut engine = Engine::with_archive(config, page_limit, self)?;
        let load = |cells: &mut [u64], ages: &mut [u8]| {
            let arrays = vec![bytemuck::cast_slice_mut(cells), ages];
            cash.file.load(&cash.slots, arrays)
        };
        // The cash waits for the disk while the index keeps the processors busy.
        let index = || reindex(pages, &names);
        let (indexed, restored) = in_two(true, index, || engine.restore(state, load));
        restored?;
        let law = engine.ledger().check_law();
        law.map_err(|what| Error::damaged(dir.join(CASH), what))?;
        let (index, known) = indexed?;
        verify::check_count(&dir.join("fingerprints"), known, pages)?;
        engine.restore_index(index);
        let news = engine.archive().keeps_fetches();
        engine.take_news(news);
        Ok(engine)
    }

    /// The key of its fingerprints.
    pub fn key(&self) -> HashKey {
        self.identity.key
    }

    /// Whether what fetches told is kept: failures and changes.
    pub(crate) fn keeps_fetches(&self) -> bool {
        self.identity.has_fetches()
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its disk.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Number of the last commit.
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    fn writing(&mut self) -> Result<&Writing> {
        if self.writing.is_none() {
            self.writing = Some(self.tables.begin()?);
        }
        self.writing
            .as_ref()
            .ok_or_else(|| Error::internal("no transaction"))
    }

    /// The last committed state, for reading while this store goes on.
    pub fn view(&self) -> Result<View> {
        View::new(&*self.disk, &self.dir, self.tables.clone(), &self.identity)
    }

    fn merge_runs(&mut self) -> Result<()> {
        let policy = self.identity.settings.config.policy();
        let start = self.manifest.engine.window_start;
        loop {
            let runs = &self.manifest.runs;
            let sizes: Vec<(u64, u64)> = runs.iter().map(|run| (run.interval, run.rows)).collect();
            let EngineState { marks, totals, .. } = &self.manifest.engine;
            let Some(range) = mergeable(&sizes, marks, totals.pages) else {
                return Ok(());
            };
            let parts = runs[range.clone()].to_vec();
            let number = self.manifest.next_run;
            self.manifest.next_run += 1;
            let blocks = self.manifest.admission_blocks;
            let writing = self.writing()?;
            let merged =
                writing.merge_runs(&parts, number, blocks, |rows, admissions| {
                    match range.start {
                        0 => fold(&policy, rows, admissions, start),
                        _ => merge(&policy, rows, start),
                    }
                })?;
            self.manifest.runs.splice(range, [merged]);
        }
    }
}

/// Makes the engine's state durable, with how far the inputs were read.
pub fn checkpoint(engine: &mut Engine<Store>, progress: &Progress) -> Result<()> {
    if engine.archive().failed {
        return Err(Error::Conflict(
            "an earlier write failed; start again from the last checkpoint".into(),
        ));
    }
    let result = try_checkpoint(engine, progress);
    engine.archive_mut().failed = result.is_err();
    result
}

fn try_checkpoint(engine: &mut Engine<Store>, progress: &Progress) -> Result<()> {
    engine.flush_log()?;
    engine.ledger().check_law().map_err(Error::internal)?;
    let state = engine.state();
    let store = engine.archive_mut();
    store.manifest.engine = state;
    store.manifest.progress = progress.clone();
    store.manifest.generation += 1;
    store.manifest.names = store.names.sync()?;
    store.sync_rows()?;
    store.sync_marks()?;

    let store = engine.archive();
    let ledger = engine.ledger();
    let pages = ledger.totals().pages;
    let changed = ledger.dirty_chunks();
    let written = store.cash.write(&ledger.arrays(), pages, changed)?;
    engine.archive_mut().commit(&written)?;
    engine.clean();
    Ok(())
}

impl Store {
    /// Notes a failure: nothing may be written after it.
    fn noting<T>(&mut self, result: Result<T>) -> Result<T> {
        self.failed |= result.is_err();
        result
    }

    fn sync_marks(&mut self) -> Result<()> {
        if self.new_marks.is_empty() {
            return Ok(());
        }
        let marks = self.dir.join("marks");
        for file in std::mem::take(&mut self.new_marks).into_values() {
            file.sync().map_err(Error::io(&marks, "sync"))?;
        }
        self.disk
            .sync_dir(&marks)
            .map_err(Error::io(&marks, "sync"))
    }

    /// Commits, with the slots of cash that were written.
    fn commit(&mut self, written: &[(u64, Slot)]) -> Result<()> {
        if let Some(block) = self.admissions.finish() {
            self.put_admissions(block)?;
        }
        self.finish_packing()?;
        self.merge_runs()?;
        self.writing()?.put_slots(written)?;
        self.manifest.slots = self.cash.note(written);
        if let Some(writing) = self.writing.take() {
            writing.commit(&self.manifest)?;
        }
        for number in std::mem::take(&mut self.dropped_marks) {
            marks::remove(&*self.disk, &self.dir, number)?;
        }
        match self.doomed_rows.take() {
            Some(number) => rows::remove(&*self.disk, &self.dir, number),
            None => Ok(()),
        }
    }

    /// Packs a run: a large one while the engine goes on. Once at a time, so that runs are written in
    /// order, and at the same places of the stream whatever the threads do.
    fn put_run(&mut self, interval: u64, notes: Notes) -> Result<Notes> {
        let number = self.manifest.next_run;
        self.manifest.next_run += 1;
        let used = self.finish_packing()?;
        if notes.len() < PACKED_BESIDE {
            return self.write_run(pack(number, interval, notes)?);
        }
        let used = used.unwrap_or_else(|| notes.another());
        self.packing = Some(Packing::start(number, interval, notes)?);
        Ok(used)
    }

    /// Writes the run that is being packed, if there is one. Its notes.
    fn finish_packing(&mut self) -> Result<Option<Notes>> {
        let packed = self.packing.take().map(Packing::end).transpose()?;
        packed.map(|packed| self.write_run(packed)).transpose()
    }

    fn write_run(&mut self, packed: Packed) -> Result<Notes> {
        let Packed { run, blocks, notes } = packed;
        self.writing()?.put_run(&run, &blocks)?;
        self.manifest.runs.push(run);
        Ok(notes)
    }

    fn put_admissions(&mut self, block: Vec<u8>) -> Result<()> {
        let number = self.manifest.admission_blocks;
        self.manifest.admission_blocks += 1;
        self.writing()?.put_admissions(number, block)
    }
}

/// Kept rows.
impl Store {
    /// Opens the row file, or begins it, as asked and as far as the store has rows.
    fn begin_rows(&mut self, keep: KeepRows) -> Result<()> {
        let (disk, dir) = (&*self.disk, &*self.dir);
        let standing = &self.manifest.rows.standing;
        let empty = self.manifest.engine.totals.pages == 0 && self.identity.has_rows();
        let most = match keep {
            KeepRows::None => {
                if standing.kept().is_some() {
                    self.give_up_rows(Reason::Asked)?;
                }
                return Ok(());
            }
            KeepRows::AtMost(most) => most,
            KeepRows::Usual(most) => {
                // What is there already stays.
                let held = standing.kept().map_or(0, |kept| kept.lengths.data);
                self.manifest.rows.most.unwrap_or(most.max(held))
            }
        };
        if let Some(kept) = standing.kept() {
            if kept.lengths.data > most {
                return self.give_up_rows(Reason::TooLarge(most));
            }
            self.rows = Some(RowWriter::open(disk, dir, *kept, most)?);
        } else if empty {
            self.rows = Some(RowWriter::create(disk, dir, 1, most)?);
        } else if let KeepRows::AtMost(_) = keep {
            return Err(Error::Conflict(format!(
                "{}: the store has pages and keeps no rows of links ({}), and they cannot be had \
                 afterwards; leave `keep_rows` out, or ingest the inputs into a new store",
                dir.display(),
                standing.why_not()
            )));
        }
        if let KeepRows::AtMost(most) = keep {
            self.manifest.rows.most = Some(most);
        }
        Ok(())
    }

    /// Whether visits append rows, if they are kept: those of repeated passes have nothing new.
    pub(crate) fn append_rows(&mut self, append: bool) {
        self.appends_rows = append;
    }

    /// Whether there are rows.
    pub fn rows_standing(&self) -> &Standing {
        &self.manifest.rows.standing
    }

    /// Why rows were given up, if they were since this was last asked.
    pub fn rows_given_up(&mut self) -> Option<Reason> {
        self.gave_up.take()
    }

    /// Removes row files of before compactions, but for the one that the current snapshot names.
    pub(crate) fn release_rows(&mut self, named: Option<u64>) -> Result<()> {
        let retired = &mut self.manifest.rows.retired;
        let (stay, go) = std::mem::take(retired)
            .into_iter()
            .partition(|number| named == Some(*number));
        *retired = stay;
        let go: Vec<u64> = go;
        let removed = go
            .into_iter()
            .try_for_each(|number| rows::remove(&*self.disk, &self.dir, number));
        self.noting(removed)
    }

    /// Makes rows durable, and compacts them if half are superseded.
    fn sync_rows(&mut self) -> Result<()> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let (disk, dir) = (&*self.disk, &*self.dir);
        match rows.sync(disk, dir) {
            Ok(kept) => self.manifest.rows.standing = Standing::Kept(kept),
            Err(stop) => return self.stop_rows(stop),
        }
        let pages = self.manifest.engine.totals.pages;
        match rows::compact(disk, dir, rows, pages) {
            Ok(None) => {}
            Ok(Some(new)) => {
                self.manifest.rows.retired.push(rows.kept().number);
                *rows = new;
            }
            // The old file goes on.
            Err(Stop::GiveUp(_) | Stop::Full(_)) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
        self.manifest.rows.standing = Standing::Kept(*rows.kept());
        Ok(())
    }

    fn stop_rows(&mut self, stop: Stop) -> Result<()> {
        match stop {
            Stop::GiveUp(reason) => self.give_up_rows(reason),
            // As with every other file: with room again, the same run goes on to the same bytes.
            Stop::Full(error) | Stop::Failed(error) => Err(error),
        }
    }

    /// Keeps no more rows. The next commit says so; then their file goes.
    fn give_up_rows(&mut self, reason: Reason) -> Result<()> {
        self.gave_up = Some(reason);
        let committed = self.manifest.rows.standing.kept().copied();
        self.doomed_rows = committed.map(|kept| kept.number);
        let standing = Standing::GivenUp(reason);
        self.manifest.rows.standing = standing;
        let Some(writer) = self.rows.take() else {
            return Ok(());
        };
        let number = writer.kept().number;
        match committed {
            Some(kept) => writer.cut(kept.lengths),
            None => {
                drop(writer);
                rows::remove(&*self.disk, &self.dir, number)
            }
        }
    }
}

impl Archive for Store {
    fn page(&mut self, fingerprint: Fingerprint, name: &[u8]) -> Result<()> {
        let appended = self.names.append(fingerprint, name);
        self.noting(appended)
    }

    fn admission(&mut self, admission: Admission) -> Result<()> {
        match self.admissions.add(admission) {
            Some(block) => {
                let put = self.put_admissions(block);
                self.noting(put)
            }
            None => Ok(()),
        }
    }

    fn row(&mut self, page: PageId, gone: bool, links: Links<'_>, again: bool) -> Result<()> {
        let Some(rows) = self.rows.as_mut().filter(|_| self.appends_rows) else {
            return Ok(());
        };
        match rows.append(page, gone, links, again) {
            Ok(()) => Ok(()),
            Err(stop) => {
                let stopped = self.stop_rows(stop);
                self.noting(stopped)
            }
        }
    }

    fn run(&mut self, interval: u64, notes: Notes) -> Result<Notes> {
        let put = self.put_run(interval, notes);
        self.noting(put)
    }

    fn keep_mark(&mut self, mark: &Mark, cells: &[u64]) -> Result<()> {
        let written = marks::write(&*self.disk, &self.dir, self.identity.hash, mark, cells);
        let file = self.noting(written)?;
        self.new_marks.insert(mark.number, file);
        Ok(())
    }

    fn drop_mark(&mut self, number: u64) -> Result<()> {
        // No checkpoint names a mark made since the last: it can go at once, and with it an open
        // file. Short rounds make thousands of marks between two checkpoints.
        if self.new_marks.remove(&number).is_some() {
            let removed = marks::remove(&*self.disk, &self.dir, number);
            return self.noting(removed);
        }
        self.dropped_marks.push(number);
        Ok(())
    }
}

/// Whether `dir` holds a store. A directory that holds anything else is refused.
fn is_store(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    match disk.list(dir) {
        Ok(names) if names.iter().any(|name| name == "identity.json") => Ok(true),
        Ok(names) if inside::is_free(disk, dir, &names) => Ok(false),
        Ok(names) if names.iter().any(|name| name == "store.redb") => {
            Err(Error::damaged(dir.join("identity.json"), "it is missing"))
        }
        Ok(_) => Err(Error::Usage(format!(
            "{}: neither a store nor an empty directory; name another store",
            dir.display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(Error::Usage(format!(
                "{}: is a file, and a store is a directory; name another store",
                dir.display()
            )))
        }
        Err(error) => Err(Error::io(dir, "list")(error)),
    }
}

/// Makes a store aside and renames it into place, so that a cut leaves a whole store or none; or [`inside`], where
/// that cannot be. Its lock. `None`: another process has made it meanwhile.
fn create(disk: &dyn Disk, dir: &Path, settings: &Settings) -> Result<Option<Box<dyn DiskFile>>> {
    // Without a slash at the end, which would put it inside.
    let dir = dir.components().collect::<PathBuf>();
    // A store is made where a link leads to, so that it stays one.
    let dir: &Path = &disk.target(&dir).map_err(Error::io(&dir, "follow"))?;
    let Some(name) = dir.file_name() else {
        return Err(Error::Usage(format!(
            "{}: a store is made under a name of its own; name a directory in it, or \
             its full path",
            dir.display()
        )));
    };
    if inside::is_begun(disk, dir) {
        return inside::create(disk, dir, settings);
    }
    let mut aside = name.to_owned();
    aside.push(".unfinished");
    let aside = dir.with_file_name(aside);
    match make_dir(disk, &aside) {
        Err(Error::Io { source, .. }) if inside::is_meant(disk, dir, &source) => {
            return inside::create(disk, dir, settings);
        }
        made => made?,
    }
    // The lock goes with the directory when that gets its name.
    let lock = take_lock(disk, &aside)?;
    if is_store(disk, dir)? {
        return Ok(None);
    }
    clear_unfinished(disk, &aside)?;
    fill(disk, &aside, settings, HashKey::random()?)?;
    let sync = |path: &Path| disk.sync_dir(path).map_err(Error::io(path, "sync"));
    sync(&aside)?;
    match disk.rename(&aside, dir) {
        Err(error) if inside::is_meant(disk, dir, &error) => {
            drop(lock);
            remove_unfinished(disk, &aside);
            return inside::create(disk, dir, settings);
        }
        renamed => renamed.map_err(Error::io(dir, "create"))?,
    }
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync(Path::new("."))?,
        Some(parent) => sync(parent)?,
        None => {}
    }
    Ok(Some(lock))
}

fn make_dir(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::io(path, "create")),
    }
}

/// Removes what a killed creation left, but nothing that a store in use would hold.
fn clear_unfinished(disk: &dyn Disk, aside: &Path) -> Result<()> {
    let list = |dir: &Path| match disk.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(Error::io(dir, "list")),
    };
    for dir in ["marks", rows::ROWS, SNAPSHOTS] {
        if !list(&aside.join(dir))?.is_empty() {
            return Err(Error::Usage(format!(
                "{}: is in the way, and in use; rename it",
                aside.display()
            )));
        }
    }
    for name in list(aside)? {
        if ![LOCK, "marks", rows::ROWS, SNAPSHOTS].contains(&&name[..]) {
            let path = aside.join(name);
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Removes an unfinished store that is not needed, as far as it can.
fn remove_unfinished(disk: &dyn Disk, aside: &Path) {
    if clear_unfinished(disk, aside).is_ok() {
        drop(disk.remove(&aside.join(LOCK)));
        for dir in ["marks", rows::ROWS, SNAPSHOTS] {
            drop(disk.remove_dir(&aside.join(dir)));
        }
        drop(disk.remove_dir(aside));
    }
}

/// Fills a directory with an empty store, all but its lock.
fn fill(disk: &dyn Disk, dir: &Path, settings: &Settings, key: HashKey) -> Result<()> {
    make_dir(disk, &dir.join("marks"))?;
    make_dir(disk, &dir.join(rows::ROWS))?;
    make_dir(disk, &dir.join(SNAPSHOTS))?;
    let identity = Identity::create(disk, dir, settings.clone(), key)?;
    NameLogs::create(disk, dir)?.sync()?;
    ChunkFile::create(disk, dir)?.sync()?;
    let tables = Tables::open(disk, dir, Access::Create)?;
    tables.begin()?.commit(&Manifest {
        identity: identity.hash,
        slots: slots_sum(&[]),
        engine: EngineState::start(),
        ..Manifest::default()
    })
}

/// Removes the file that version 0.1 had with `--correction`.
fn remove_corrected(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let path = dir.join("correction");
    match disk.remove(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(&path, "remove")),
    }
}

/// Removes what a killed writer left of snapshots it did not publish.
fn remove_unpublished(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let snapshots = dir.join(SNAPSHOTS);
    let names = disk.list(&snapshots);
    for name in names.map_err(Error::opening(&snapshots))? {
        if name.ends_with(".tmp") {
            let path = snapshots.join(name);
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

fn take_lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn DiskFile>> {
    let path = dir.join(LOCK);
    let lock = disk.open(&path, true).map_err(Error::io(&path, "open"))?;
    for _ in 0..LOCK_TRIES {
        if lock.try_lock().map_err(Error::io(&path, "lock"))? {
            return Ok(lock);
        }
        // A reader may just be looking whether there is a writer.
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(Error::Busy { path: dir.into() })
}

/// Whether a writer has the store open. The lock is held for a moment only, for which writers wait; where it cannot be
/// looked at, nobody writes who could be disturbed.
fn is_busy(disk: &dyn Disk, dir: &Path) -> bool {
    let lock = disk.read(&dir.join(LOCK));
    lock.and_then(|lock| lock.try_lock())
        .is_ok_and(|free| !free)
}

/// The last committed state of the store in `dir`, for reading it; nothing is written to it, and no writer is held
/// up. It is [`Error::Busy`] while an ingest runs. Should one begin later, what is read may be of two commits, and look
/// damaged: [`View::is_overtaken`] tells.
pub fn open_view(disk: &dyn Disk, dir: &Path) -> Result<View> {
    open_view_to(disk, dir, Depth::Quick)
}

/// As [`open_view`]; [`Depth::Deep`]: redb's pages are all checked before any is used.
pub(crate) fn open_view_to(disk: &dyn Disk, dir: &Path, depth: Depth) -> Result<View> {
    let look = || {
        let identity = Identity::read(disk, dir)?;
        if is_busy(disk, dir) {
            return Err(Error::Busy { path: dir.into() });
        }
        let mut tables = Tables::open(disk, dir, Access::Look)?;
        if depth == Depth::Deep {
            tables.check()?;
        }
        let identity = identity.or_next(disk, dir, tables.read()?.manifest()?.identity)?;
        View::new(disk, dir, Arc::new(tables), &identity)
    };
    // What looks damaged may be a writer's that came between.
    look().or_else(|error| match error {
        Error::Damaged { .. } => look(),
        other => Err(other),
    })
}

impl View {
    /// Whether a writer came since this was opened, so that what was read may be of two commits.
    pub fn is_overtaken(&self, disk: &dyn Disk) -> bool {
        let now = || {
            Tables::open(disk, &self.dir, Access::Look)?
                .read()?
                .manifest()
        };
        is_busy(disk, &self.dir) || !now().is_ok_and(|now| now == self.manifest)
    }
}

/// The settings of the store in `dir`; `None` if there is none yet.
pub fn settings_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Settings>> {
    if !is_store(disk, dir)? {
        return Ok(None);
    }
    Ok(Some(Identity::read(disk, dir)?.settings))
}

/// As [`settings_of`], but `None` also for a store that read something and has no pages: it takes any settings. One that
/// has read nothing yet keeps those it was begun with, unless others are asked for.
pub fn fixed_settings_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Settings>> {
    let settings = settings_of(disk, dir)?;
    let path = dir.join("fingerprints");
    // One with names that no checkpoint knows goes on as it was begun.
    let names = disk.read(&path).and_then(|file| file.size());
    let tried = || {
        let tables = Tables::open(disk, dir, Access::Look)?;
        Ok::<_, Error>(!tables.read()?.manifest()?.progress.inputs.is_empty())
    };
    match names {
        // What cannot be read now is told when the store is opened.
        Ok(0) if tried().unwrap_or(true) => Ok(None),
        _ => Ok(settings),
    }
}

/// The settings of the store in `dir`, and the key of its fingerprints.
pub(crate) fn identity_of(disk: &dyn Disk, dir: &Path) -> Result<(Settings, HashKey)> {
    if !is_store(disk, dir)? {
        return Err(identity::no_store(dir));
    }
    let identity = Identity::read(disk, dir)?;
    Ok((identity.settings, identity.key))
}
