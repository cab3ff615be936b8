//! The store's directory: whether there is one, what is in it, and its lock.

use std::path::Path;
use std::time::Duration;

use super::chunks::{ChunkFile, slots_sum};
use super::identity::{Identity, Settings};
use super::manifest::Manifest;
use super::names::NameLogs;
use super::tables::{Access, Tables};
use super::{SNAPSHOTS, rows};
use crate::batch::HashKey;
use crate::disk::{Disk, DiskFile};
use crate::engine::EngineState;
use crate::{Error, Result};

pub(super) const LOCK: &str = "lock";
/// How often a writer asks for the lock, and how long it waits between.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where the pieces of a store that is made inside its directory are made.
pub(super) const UNFINISHED: &str = "unfinished";
/// What makes a directory a store.
pub(super) const IDENTITY: &str = "identity.json";
/// What a directory may hold besides: the first is in the root of many file systems.
pub(super) const IGNORED: [&str; 3] = ["lost+found", LOCK, UNFINISHED];

/// Whether a directory that holds these names is as good as empty.
pub(super) fn is_free(disk: &dyn Disk, dir: &Path, names: &[String]) -> bool {
    names.iter().all(|name| IGNORED.contains(&&**name)) || is_begun(disk, dir)
}

/// Whether a store was begun inside, and not finished.
pub(super) fn is_begun(disk: &dyn Disk, dir: &Path) -> bool {
    disk.read(&dir.join(UNFINISHED).join(IDENTITY)).is_ok()
        && disk.read(&dir.join(IDENTITY)).is_err()
}

/// Whether `dir` holds a store. A directory that holds anything else is refused.
pub(super) fn is_store(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    match disk.list(dir) {
        Ok(names) if names.iter().any(|name| name == "identity.json") => Ok(true),
        Ok(names) if is_free(disk, dir, &names) => Ok(false),
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

pub(super) fn make_dir(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::io(path, "create")),
    }
}

/// Removes what a killed creation left, but nothing that a store in use would hold.
pub(super) fn clear_unfinished(disk: &dyn Disk, aside: &Path) -> Result<()> {
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
pub(super) fn remove_unfinished(disk: &dyn Disk, aside: &Path) {
    if clear_unfinished(disk, aside).is_ok() {
        drop(disk.remove(&aside.join(LOCK)));
        for dir in ["marks", rows::ROWS, SNAPSHOTS] {
            drop(disk.remove_dir(&aside.join(dir)));
        }
        drop(disk.remove_dir(aside));
    }
}

/// Fills a directory with an empty store, all but its lock.
pub(super) fn fill(disk: &dyn Disk, dir: &Path, settings: &Settings, key: HashKey) -> Result<()> {
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
pub(super) fn remove_corrected(disk: &dyn Disk, dir: &Path) -> Result<()> {
    remove_old(disk, &dir.join("correction"))
}

/// A file that version 0.1 had while it read inputs again, and that a killed process left.
pub(crate) const REPLAY: &str = "replay";

/// Removes it: it was of no use to another process.
pub(super) fn remove_replay(disk: &dyn Disk, dir: &Path) -> Result<()> {
    remove_old(disk, &dir.join(REPLAY))
}

fn remove_old(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(path, "remove")),
    }
}

/// Removes what a killed writer left of snapshots it did not publish.
pub(super) fn remove_unpublished(disk: &dyn Disk, dir: &Path) -> Result<()> {
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

pub(super) fn take_lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn DiskFile>> {
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
pub(super) fn is_busy(disk: &dyn Disk, dir: &Path) -> bool {
    let lock = disk.read(&dir.join(LOCK));
    lock.and_then(|lock| lock.try_lock())
        .is_ok_and(|free| !free)
}
