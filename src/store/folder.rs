//! The store's directory: whether there is one, what is in it, and its lock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::chunks::{CASH, ChunkFile, slots_sum};
use super::identity::{Identity, Settings};
use super::manifest::Manifest;
use super::names::NameLogs;
use super::tables::{Access, Tables};
use super::{SNAPSHOTS, rows};
use crate::batch::HashKey;
use crate::disk::{Disk, DiskFile, read_whole};
use crate::engine::EngineState;
use crate::{Error, Result};

pub(super) const LOCK: &str = "lock";
/// How often a writer asks for the lock, and how long it waits between.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where the pieces of a store that is made inside its directory are made.
pub(super) const UNFINISHED: &str = "unfinished";
/// The file that makes a directory a store.
pub(crate) const IDENTITY: &str = "identity.json";
/// Other entries that a new store's directory may have: the first is in the root of many file systems.
pub(super) const IGNORED: [&str; 3] = ["lost+found", LOCK, UNFINISHED];
/// The folders of a new store,
const FOLDERS: [&str; 3] = ["marks", rows::ROWS, SNAPSHOTS];
/// and its files; the second is the first on its way.
const FILES: [&str; 8] = [
    IDENTITY,
    "identity.tmp",
    "urls",
    "urls.index",
    "fingerprints",
    "fingerprints.index",
    CASH,
    "store.redb",
];

/// Returns whether a directory holds, besides these names, nothing that a killed creation did not leave: no other name,
/// and no page. What its user put there, or a store that has read something, is never taken for it. A link is none.
pub(super) fn is_leftover(disk: &dyn Disk, dir: &Path, besides: &[&str]) -> io::Result<bool> {
    if disk.target(dir)? != dir {
        return Ok(false);
    }
    for name in disk.list(dir)? {
        let path = dir.join(&name);
        let is_left = if FOLDERS.contains(&&*name) {
            disk.list(&path)?.is_empty()
        } else if name == CASH {
            disk.read(&path)?.size()? == 0
        } else {
            FILES.contains(&&*name) || besides.contains(&&*name)
        };
        if !is_left {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether a directory that holds these names is as good as empty.
fn is_free(disk: &dyn Disk, dir: &Path, names: &[String]) -> bool {
    let has_spare = || is_leftover(disk, &dir.join(UNFINISHED), &[]).unwrap_or(false);
    let is_ignored =
        |name: &String| IGNORED.contains(&&**name) && (name != UNFINISHED || has_spare());
    names.iter().all(is_ignored) || is_begun(disk, dir)
}

/// Returns whether a store was begun inside, and not finished.
pub(super) fn is_begun(disk: &dyn Disk, dir: &Path) -> bool {
    let aside = dir.join(UNFINISHED);
    disk.read(&aside.join(IDENTITY)).is_ok()
        && disk.read(&dir.join(IDENTITY)).is_err()
        && is_leftover(disk, &aside, &[]).unwrap_or(false)
        && is_leftover(disk, dir, &IGNORED).unwrap_or(false)
}

/// Returns whether `dir` holds a store. A directory that holds anything else is refused.
pub(super) fn is_store(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    match disk.list(dir) {
        Ok(names) if names.iter().any(|name| name == "identity.json") => Ok(true),
        Ok(names) if is_free(disk, dir, &names) => Ok(false),
        Ok(names) if names.iter().any(|name| name == "store.redb") => {
            Err(Error::damaged(dir.join("identity.json"), "it is missing"))
        }
        Ok(_) => Err(not_free(dir)),
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

/// A directory holds what is no store's.
pub(super) fn not_free(dir: &Path) -> Error {
    Error::Usage(format!(
        "{}: neither a store nor an empty directory; name another store",
        dir.display()
    ))
}

pub(super) fn make_dir(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::io(path, "create")),
    }
}

/// Removes the files that a creation made in a directory. Its folders are empty, and made again, or replaced.
pub(super) fn clear(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for name in disk.list(dir).map_err(Error::io(dir, "list"))? {
        if FILES.contains(&&*name) {
            let path = dir.join(name);
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Removes an unfinished store that is not needed, as far as it can.
pub(super) fn remove_unfinished(disk: &dyn Disk, aside: &Path) {
    if clear(disk, aside).is_ok() {
        drop(disk.remove(&aside.join(LOCK)));
        for dir in FOLDERS {
            drop(disk.remove_dir(&aside.join(dir)));
        }
        drop(disk.remove_dir(aside));
    }
}

/// Fills a directory with an empty store, all but its lock.
pub(super) fn fill(disk: &dyn Disk, dir: &Path, settings: &Settings, key: HashKey) -> Result<()> {
    for folder in FOLDERS {
        make_dir(disk, &dir.join(folder))?;
    }
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

/// Removes what a killed writer left of snapshots it did not publish. Where the first one was about to be, the file that says
/// so stays until one is.
pub(super) fn remove_unpublished(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let snapshots = dir.join(SNAPSHOTS);
    let names = disk.list(&snapshots);
    let names = names.map_err(Error::opening(&snapshots))?;
    let is_begun = !names.iter().any(|name| name == "latest.json");
    for name in names {
        if name.ends_with(".tmp") && !(is_begun && name == "latest.tmp") {
            let path = snapshots.join(name);
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Where a store was opened. Its folder may be moved away or removed while it is open.
pub(crate) struct Home {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// The hash of its identity.
    pub(super) identity: u64,
}

impl Home {
    /// Names the move of the folder, if that is what an error comes from.
    pub fn blamed(&self, error: Error) -> Error {
        let is_of_files = matches!(
            error,
            Error::Io { .. } | Error::Damaged { .. } | Error::Missing(_)
        );
        match check_in_place(&*self.disk, &self.dir, self.identity) {
            Err(moved) if is_of_files => moved,
            _ => error,
        }
    }
}

/// Returns whether the store of this identity is still in its folder: not nothing, nor another store.
///
/// # Errors
///
/// It is not.
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

/// Takes a file's lock, be it that somebody holds it for a moment: a reader may just be looking whether there is a writer.
/// False: it is held for longer.
pub(crate) fn lock_soon(file: &dyn DiskFile) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        if file.try_lock()? {
            return Ok(true);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(false)
}

/// Returns whether a writer has the store open. The lock is held for a moment only, for which writers wait; where it
/// cannot be looked at, nobody writes who could be disturbed.
pub(crate) fn is_busy(disk: &dyn Disk, dir: &Path) -> bool {
    let lock = disk.read(&dir.join(LOCK));
    lock.and_then(|lock| lock.try_lock())
        .is_ok_and(|free| !free)
}
