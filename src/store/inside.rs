//! A store made inside a directory that cannot be replaced: a mount point, or one in a folder that is not ours.
//!
//! Elsewhere a store is made aside and renamed into place, so that a cut leaves a whole store or none. Here its pieces
//! are made in a folder [`UNFINISHED`] inside and moved out of it. `identity.json` is the last to come: without it, and
//! with that folder's own, there is no store yet, and it is made again.

use std::io;
use std::path::Path;

use super::folder::{
    IDENTITY, IGNORED, UNFINISHED, clear, fill, is_leftover, is_store, make_dir, not_free,
    take_lock,
};
use super::{HashKey, Settings};
use crate::disk::{Disk, DiskFile, read_whole, write_whole};
use crate::{Error, Result};

/// Returns whether an error in putting a store in the place of the directory `dir` means that it is to be made inside.
pub(super) fn is_meant(disk: &dyn Disk, dir: &Path, error: &io::Error) -> bool {
    use io::ErrorKind::*;
    let kinds = [
        ResourceBusy,
        CrossesDevices,
        DirectoryNotEmpty,
        PermissionDenied,
        ReadOnlyFilesystem,
    ];
    kinds.contains(&error.kind()) && disk.list(dir).is_ok()
}

/// Makes the store; its lock. `None`: another process has made it meanwhile.
pub(super) fn create(
    disk: &dyn Disk,
    dir: &Path,
    settings: &Settings,
    key: HashKey,
) -> Result<Option<Box<dyn DiskFile>>> {
    let aside = dir.join(UNFINISHED);
    let sync = |path: &Path| disk.sync_dir(path).map_err(Error::io(path, "sync"));
    make_dir(disk, &aside)?;
    sync(dir)?;
    // Empty, it may go whatever comes: it says nothing.
    let tidy = || drop(disk.remove_dir(&aside));
    let lock = take_lock(disk, dir).inspect_err(|_| tidy())?;
    if is_store(disk, dir)? {
        tidy();
        return Ok(None);
    }
    let is_left = is_leftover(disk, dir, &IGNORED)
        .and_then(|dir| Ok(dir && is_leftover(disk, &aside, &[])?))
        .map_err(Error::io(dir, "list"))?;
    if !is_left {
        return Err(not_free(dir));
    }
    // Files that were moved out when the making was cut off, and those that were not. Folders are replaced.
    clear(disk, dir)?;
    clear(disk, &aside)?;
    fill(disk, &aside, settings, key)?;
    sync(&aside)?;
    let names = disk.list(&aside).map_err(Error::io(&aside, "list"))?;
    for name in names.iter().filter(|name| *name != IDENTITY) {
        let to = dir.join(name);
        let moved = disk.rename(&aside.join(name), &to);
        moved.map_err(Error::io(&to, "create"))?;
    }
    sync(&aside)?;
    sync(dir)?;
    let (from, to) = (aside.join(IDENTITY), dir.join(IDENTITY));
    let identity = read_whole(disk, &from).map_err(Error::io(&from, "read"))?;
    write_whole(disk, &to, &identity).map_err(Error::io(&to, "create"))?;
    drop(disk.remove(&from));
    tidy();
    Ok(Some(lock))
}
