//! The store's directory: whether it holds a store, its creation, what else it may contain, and its lock.
//!
//! A store without pages takes other settings and forgets what it read: it is created again. Nothing is lost, as
//! nothing was applied, so a first attempt with a wrong option costs nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::cash::{CASH, MARKS, slots_sum};
use super::identity::{Identity, NEXT, Settings};
use super::index_file::INDEX;
use super::manifest::Manifest;
use super::names::NameLogs;
use super::rows::number_of;
use super::spool::{SPOOL, remove_spool, spool_state};
use super::tables::Tables;
use super::warm::WARM;
use super::{SNAPSHOTS, rows};
use crate::batch::HashKey;
use crate::disk::{Access, Disk, DiskFile, read_whole};
use crate::engine::{EngineState, Totals};
use crate::{Error, Result};

pub(super) const LOCK: &str = "lock";
/// Number of attempts of a writer to take the lock, and the pause between them.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// File whose presence makes a directory a store.
pub const IDENTITY: &str = "identity.json";
/// Entries that the directory of a new store may contain; the first is in the root of many file systems.
const IGNORED: [&str; 2] = ["lost+found", LOCK];
const FOLDERS: [&str; 3] = [MARKS, rows::ROWS, SNAPSHOTS];
const FILES: [&str; 6] = [
    "urls",
    "urls.index",
    "fingerprints",
    "fingerprints.index",
    CASH,
    "store.redb",
];

/// Returns true if a directory with these names is empty, or holds only what an interrupted creation left.
fn is_free(disk: &dyn Disk, dir: &Path, names: &[String]) -> io::Result<bool> {
    let is_begun = names.iter().any(|name| name == NEXT);
    for name in names {
        let path = dir.join(name);
        let is_left = match &**name {
            NEXT => true,
            CASH => is_begun && disk.read(&path)?.size()? == 0,
            name if IGNORED.contains(&name) => true,
            rows::ROWS if is_begun => {
                (disk.list(&path)?.iter()).all(|name| number_of(name).is_some())
            }
            // Also without `identity.next`, which is missing if the interruption came while it was rewritten.
            name if FOLDERS.contains(&name) || name == SPOOL || name == OLD_BASES => {
                disk.list(&path)?.is_empty()
            }
            name => is_begun && FILES.contains(&name),
        };
        if !is_left {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether `dir` holds a store; an error if it holds anything else.
pub(super) fn is_store(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    let is_whole = |names: &[String]| names.iter().any(|name| name == IDENTITY);
    // An entry has disappeared, or is not of a kind that a store has.
    let is_another = |kind| matches!(kind, IsADirectory | NotADirectory | NotFound);
    match disk.list(dir) {
        Ok(names) if is_whole(&names) => Ok(true),
        Ok(names) => match is_free(disk, dir, &names) {
            Ok(true) => Ok(false),
            // Another process may have finished it, and written to it, since.
            _ if disk.list(dir).is_ok_and(|names| is_whole(&names)) => Ok(true),
            // One that is created again has no identity meanwhile.
            _ if is_busy(disk, dir) => Err(Error::Busy { path: dir.into() }),
            Err(error) if !is_another(error.kind()) => Err(Error::io(dir, "look through")(error)),
            _ if names.iter().any(|name| name == "store.redb") => {
                Err(Error::damaged(dir.join(IDENTITY), "it is missing"))
            }
            _ => Err(Error::Usage(format!(
                "{}: neither a store nor an empty directory; name another store",
                dir.display()
            ))),
        },
        Err(error) if error.kind() == NotFound => Ok(false),
        Err(error) if error.kind() == NotADirectory => Err(Error::Usage(format!(
            "{}: is a file, and a store is a directory; name another store",
            dir.display()
        ))),
        Err(error) => Err(Error::io(dir, "list")(error)),
    }
}

/// Takes the lock of the store in `dir`, which is created if there is none. Returns true if it was created.
pub(super) fn lock_or_create(
    disk: &dyn Disk,
    dir: &Path,
    settings: &Settings,
) -> Result<(Box<dyn DiskFile>, bool)> {
    if is_store(disk, dir)? {
        return Ok((take_lock(disk, dir)?, false));
    }
    // Drops a trailing slash, and follows a symbolic link, so that the link remains.
    let dir = dir.components().collect::<PathBuf>();
    let dir: &Path = &disk.target(&dir).map_err(Error::io(&dir, "follow"))?;
    if dir.file_name().is_none() {
        return Err(Error::Usage(format!(
            "{}: a store is made under a name of its own; name a directory in it, or \
             its full path",
            dir.display()
        )));
    }
    let is_made = make_dir(disk, dir)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let synced = sync_dir(disk, parent);
    // The parent of an existing directory may be unreadable.
    if is_made {
        synced?;
    }
    let lock = take_lock(disk, dir)?;
    // Another process may have created it meanwhile.
    let is_new = !is_store(disk, dir)?;
    if is_new {
        create(disk, dir, settings, HashKey::random()?)?;
    }
    Ok((lock, is_new))
}

/// Creates an empty store in a free directory. Until the identity is renamed, last, the directory is no store.
pub(super) fn create(disk: &dyn Disk, dir: &Path, settings: &Settings, key: HashKey) -> Result<()> {
    remove_except(disk, dir, |name| !FILES.contains(&name))?;
    // The rows of a store that is created again go while `identity.next` still marks the directory: without it, only
    // empty folders are free.
    let rows = dir.join(rows::ROWS);
    if disk.list(&rows).is_ok() {
        remove_except(disk, &rows, |_| false)?;
        sync_dir(disk, &rows)?;
    }
    sync_dir(disk, dir)?;
    let identity = Identity::stage(disk, dir, settings.clone(), key)?;
    for folder in FOLDERS {
        make_dir(disk, &dir.join(folder))?;
    }
    NameLogs::create(disk, dir)?.sync()?;
    Access::Create.open(disk, &dir.join(CASH))?.sync()?;
    let tables = Tables::open(disk, dir, Access::Create)?;
    tables.begin()?.commit(&Manifest {
        identity,
        slots: slots_sum(&[]),
        engine: EngineState {
            totals: Totals::start(),
            ..EngineState::default()
        },
        ..Manifest::default()
    })?;
    drop(tables);
    sync_dir(disk, dir)?;
    Identity::adopt(disk, dir)
}

pub(super) fn sync_dir(disk: &dyn Disk, dir: &Path) -> Result<()> {
    disk.sync_dir(dir).map_err(Error::io(dir, "sync"))
}

/// Creates a directory unless there is one. Returns whether there was none.
pub(super) fn make_dir(disk: &dyn Disk, path: &Path) -> Result<bool> {
    match disk.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true).map_err(Error::io(path, "create")),
    }
}

/// Returns true if a store has no page, and no acknowledged bytes of a stream that may continue.
pub(super) fn is_void(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    resumes: bool,
) -> Result<bool> {
    if manifest.engine.totals.pages > 0 {
        return Ok(false);
    }
    let has_ended = manifest.progress.finished && !resumes;
    Ok(has_ended || spool_state(disk, dir)?.is_none_or(|spool| spool.acked == 0))
}

/// Creates a void store again, with other settings; a process that is killed leaves the rest to the next one. Fails
/// with [`Error::Conflict`] if the directory has entries that are not the store's.
pub(super) fn renew(disk: &dyn Disk, dir: &Path, settings: &Settings, key: HashKey) -> Result<()> {
    let own = |name: &str| is_own(name) || IGNORED.contains(&name);
    let names = disk.list(dir).map_err(Error::io(dir, "list"))?;
    if let Some(stranger) = names.iter().find(|name| !own(name)) {
        return Err(Error::Conflict(format!(
            "{}: the store has no pages and would be created again, but {stranger} is not one of its files: move that away, \
             or name another store",
            dir.display()
        )));
    }
    let (snapshots, marks) = (dir.join(SNAPSHOTS), dir.join(MARKS));
    // The name of the current snapshot goes first.
    remove_file(disk, &snapshots.join("latest.json"))?;
    sync_dir(disk, &snapshots)?;
    for folder in [&snapshots, &marks] {
        remove_except(disk, folder, |_| false)?;
        sync_dir(disk, folder)?;
    }
    remove_spool(disk, dir)?;
    for name in CACHES {
        remove_file(disk, &dir.join(name))?;
    }
    remove_leftovers(disk, dir)?;
    // A writer that was killed before its commit may have written cells.
    let cash = Access::Write.open(disk, &dir.join(CASH))?;
    cash.set_len(0)?;
    cash.sync()?;
    sync_dir(disk, dir)?;
    let mut names = disk.list(dir).map_err(Error::io(dir, "list"))?;
    names.retain(|name| name != IDENTITY);
    names.push(NEXT.into());
    if !is_free(disk, dir, &names).map_err(Error::io(dir, "look through"))? {
        return Err(Error::Conflict(format!(
            "{}: the store has no pages and would be created again, but a folder in it has entries that are not its own: \
             move them away, or name another store",
            dir.display()
        )));
    }
    let identity = dir.join(IDENTITY);
    disk.rename(&identity, &dir.join(NEXT))
        .map_err(Error::io(&identity, "replace"))?;
    sync_dir(disk, dir)?;
    create(disk, dir, settings, key)
}

/// Returns true if the entry of this name in a store's directory is the store's.
pub fn is_own(name: &str) -> bool {
    let mut all = [&FOLDERS[..], &FILES, &CACHES, &LEFTOVERS].into_iter();
    [IDENTITY, LOCK, SPOOL, OLD_BASES].contains(&name) || all.any(|names| names.contains(&name))
}

/// Caches in a store that no commit names.
const CACHES: [&str; 3] = [INDEX, "remote", WARM];

/// Files that a killed process may leave: temporary caches and identity.
const LEFTOVERS: [&str; 4] = ["index.tmp", "remote.tmp", "warm.tmp", NEXT];

/// Folder with the settled states of version 0.2, which stays, empty.
const OLD_BASES: &str = "base";

/// Removes what killed processes and earlier versions left. Anything that is not theirs stays.
pub(super) fn remove_leftovers(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for name in LEFTOVERS {
        remove_file(disk, &dir.join(name))?;
    }
    let bases = dir.join(OLD_BASES);
    if disk.list(&bases).is_ok() {
        remove_except(disk, &bases, |name| {
            name != "beside.tmp" && name.parse::<u64>().is_err()
        })?;
    }
    Ok(())
}

pub(super) fn remove_file(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(path, "remove")),
    }
}

/// Removes the files in a folder whose names are not `kept`.
pub(super) fn remove_except(
    disk: &dyn Disk,
    folder: &Path,
    kept: impl Fn(&str) -> bool,
) -> Result<()> {
    let names = disk.list(folder).map_err(Error::opening(folder))?;
    let mut others = names.iter().filter(|name| !kept(name));
    others.try_for_each(|name| remove_file(disk, &folder.join(name)))
}

/// Removes snapshots that a killed writer left unpublished, except the file that announces the first one.
pub(super) fn remove_unpublished(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let snapshots = dir.join(SNAPSHOTS);
    let is_begun = disk.read(&snapshots.join("latest.json")).is_err();
    remove_except(disk, &snapshots, |name| {
        let is_whole = !name.ends_with(".tmp") && !name.ends_with(".unfinished");
        is_whole || is_begun && name == "latest.tmp"
    })
}

/// Replaces an error by one about the moved folder, if the store of this identity was moved or removed meanwhile.
pub fn blame_move(disk: &dyn Disk, dir: &Path, identity: u64, error: Error) -> Error {
    let is_of_files = matches!(
        error,
        Error::Io { .. } | Error::Damaged { .. } | Error::Missing(_)
    );
    match check_in_place(disk, dir, identity) {
        Err(moved) if is_of_files => moved,
        _ => error,
    }
}

/// Returns an error unless the store of this identity is still in its directory.
pub(super) fn check_in_place(disk: &dyn Disk, dir: &Path, identity: u64) -> Result<()> {
    let is_gone = match read_whole(disk, &dir.join(IDENTITY)) {
        Ok(text) => xxh3_64(&text) != identity,
        Err(error) => {
            [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
        }
    };
    if !is_gone {
        return Ok(());
    }
    let what = "the store that was here was moved away or removed meanwhile; put it back or give its new name, and the \
        same command goes on from its last checkpoint";
    let gone = io::Error::new(io::ErrorKind::NotFound, what);
    Err(Error::io(dir, "go on")(gone))
}

pub(super) fn take_lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn DiskFile>> {
    let path = dir.join(LOCK);
    let lock = disk.open(&path, true).map_err(Error::io(&path, "open"))?;
    if lock_soon(&*lock).map_err(Error::io(&path, "lock"))? {
        Ok(lock)
    } else {
        Err(Error::Busy { path: dir.into() })
    }
}

/// Takes the lock of a file, with retries, as a reader may hold it briefly. Returns false if it stays locked.
pub fn lock_soon(file: &dyn DiskFile) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        if file.try_lock()? {
            return Ok(true);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(false)
}

/// Returns true if a writer has the store open. Takes the lock for an instant, for which writers wait.
pub fn is_busy(disk: &dyn Disk, dir: &Path) -> bool {
    let lock = disk.read(&dir.join(LOCK));
    lock.and_then(|lock| lock.try_lock())
        .is_ok_and(|free| !free)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;
    use crate::check::{Depth, check};
    use crate::disk::RealDisk;
    use crate::engine::Config;
    use crate::model::Limits;
    use crate::store::rows::KeepRows;
    use crate::store::{StoreWriter, settings_of};

    /// Disk on which the parent of a store cannot be read, and its `cash` is looked at while another process finishes it.
    struct Shared {
        dir: PathBuf,
        /// Name under which the other process has its store.
        other: PathBuf,
        is_shared: AtomicBool,
    }

    impl Disk for Shared {
        fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.open(path, create)
        }
        fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.create_new(path)
        }
        fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            if path.ends_with(CASH) && self.is_shared.swap(false, Ordering::Relaxed) {
                std::fs::remove_dir_all(&self.dir)?;
                std::fs::rename(&self.other, &self.dir)?;
            }
            RealDisk.read(path)
        }
        fn create_dir(&self, path: &Path) -> io::Result<()> {
            RealDisk.create_dir(path)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            RealDisk.rename(from, to)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            RealDisk.remove(path)
        }
        fn sync_dir(&self, path: &Path) -> io::Result<()> {
            if Some(path) == self.dir.parent() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            RealDisk.sync_dir(path)
        }
        fn list(&self, path: &Path) -> io::Result<Vec<String>> {
            RealDisk.list(path)
        }
    }

    fn shared(home: &Path) -> Shared {
        Shared {
            dir: home.join("store"),
            other: home.join("other"),
            is_shared: AtomicBool::new(false),
        }
    }

    fn settings() -> Settings {
        Settings::new(Config::default(), &Limits::default())
    }

    /// Disk on which all that changes folders fails after some number of these operations.
    struct Stopping(AtomicU64);

    impl Stopping {
        fn next(&self) -> io::Result<()> {
            match self.0.fetch_sub(1, Ordering::Relaxed) {
                0 => {
                    self.0.store(0, Ordering::Relaxed);
                    Err(io::Error::other("stopped"))
                }
                _ => Ok(()),
            }
        }
    }

    impl Disk for Stopping {
        fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
            self.next()?;
            RealDisk.open(path, create)
        }
        fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            self.next()?;
            RealDisk.create_new(path)
        }
        fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.read(path)
        }
        fn create_dir(&self, path: &Path) -> io::Result<()> {
            self.next()?;
            RealDisk.create_dir(path)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.next()?;
            RealDisk.rename(from, to)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            self.next()?;
            RealDisk.remove(path)
        }
        fn sync_dir(&self, path: &Path) -> io::Result<()> {
            self.next()?;
            RealDisk.sync_dir(path)
        }
        fn list(&self, path: &Path) -> io::Result<Vec<String>> {
            RealDisk.list(path)
        }
    }

    /// A store without pages takes other settings, wherever a kill stops that. Files that are not the store's prevent it.
    #[test]
    fn a_store_without_pages_is_recreated() {
        let home = cashrank_base::folder::in_memory();
        let limits = Limits::default();
        let open = |dir: &Path, settings: &Settings| {
            let disk = Arc::new(RealDisk);
            let opened = StoreWriter::open(
                disk,
                dir,
                settings,
                &limits,
                KeepRows::Usual(1 << 20),
                false,
            );
            opened.map(drop)
        };
        let other = Settings {
            links: 77,
            ..settings()
        };
        let make = |name: &str| {
            let dir = home.path().join(name);
            open(&dir, &settings()).unwrap();
            // What a writer leaves that published a ranking of no pages, and was killed before its next commit.
            std::fs::write(dir.join(SNAPSHOTS).join("latest.json"), "of no use").unwrap();
            std::fs::write(dir.join(SNAPSHOTS).join("1.snapshot"), "of no use").unwrap();
            std::fs::write(dir.join(CASH), "cells").unwrap();
            std::fs::write(dir.join(WARM), "of no use").unwrap();
            dir
        };
        let mut stops = 0;
        let mut is_done = false;
        while !is_done {
            let dir = make(&stops.to_string());
            let disk = Stopping(AtomicU64::new(stops));
            is_done = renew(&disk, &dir, &other, HashKey([1, 2])).is_ok();
            open(&dir, &other).unwrap_or_else(|error| panic!("after {stops}: {error}"));
            assert_eq!(settings_of(&RealDisk, &dir).unwrap(), Some(other.clone()));
            let checked = check(&RealDisk, &dir, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty() && checked.strangers.is_empty());
            assert!(checked.checkpoint.is_some());
            stops += 1;
        }
        assert!(stops > 20, "{stops}");
        let dir = make("mine");
        std::fs::write(dir.join("notes.txt"), "mine").unwrap();
        let refused = open(&dir, &other).unwrap_err();
        assert!(matches!(refused, Error::Conflict(_)) && refused.to_string().contains("notes.txt"));
        assert!(dir.join(SNAPSHOTS).join("1.snapshot").exists());
        open(&dir, &settings()).unwrap();
    }

    #[test]
    fn an_identity_of_another_store_is_damage() {
        let home = cashrank_base::folder::in_memory();
        let dir = home.path().join("s");
        drop(lock_or_create(&RealDisk, &dir, &settings()).unwrap());
        let other = Settings {
            links: 77,
            ..settings()
        };
        Identity::stage(&RealDisk, &dir, other, HashKey([1, 2])).unwrap();
        Identity::adopt(&RealDisk, &dir).unwrap();
        let checked = check(&RealDisk, &dir, Depth::Quick, None).unwrap();
        let [damage] = &checked.damage[..] else {
            panic!("{:?}", checked.damage)
        };
        assert!(damage.to_string().contains("of two stores"), "{damage}");
    }

    /// Regression: an empty directory was refused if the user may not read the one that it is in.
    #[test]
    fn an_empty_directory_becomes_a_store_whatever_it_is_in() {
        let home = cashrank_base::folder::in_memory();
        let disk = shared(home.path());
        std::fs::create_dir(&disk.dir).unwrap();
        let (lock, is_new) = lock_or_create(&disk, &disk.dir, &settings()).unwrap();
        assert!(is_new && is_store(&disk, &disk.dir).unwrap());
        drop(lock);
        let again = lock_or_create(&disk, &disk.dir, &settings()).unwrap();
        assert!(!again.1);
        // One that is made here must last.
        let disk = Shared {
            dir: home.path().join("new"),
            ..disk
        };
        assert!(lock_or_create(&disk, &disk.dir, &settings()).is_err());
    }

    /// Regression: a store that another process finished, and wrote to, while its names were looked at was said to have
    /// lost `identity.json`.
    #[test]
    fn a_store_that_another_process_finishes_is_one() {
        let home = cashrank_base::folder::in_memory();
        let disk = shared(home.path());
        std::fs::create_dir(&disk.other).unwrap();
        create(&RealDisk, &disk.other, &settings(), HashKey([1, 2])).unwrap();
        std::fs::create_dir(&disk.dir).unwrap();
        for name in [CASH, NEXT, "store.redb"] {
            std::fs::copy(disk.other.join(CASH), disk.dir.join(name)).unwrap();
        }
        assert!(!is_store(&disk, &disk.dir).unwrap());
        std::fs::write(disk.other.join(CASH), "a page's").unwrap();
        disk.is_shared.store(true, Ordering::Relaxed);
        assert!(is_store(&disk, &disk.dir).unwrap());
    }
}
