//! Creation of a store inside a directory that cannot be replaced: a mount point, or one in a folder that is not
//! writable.
//!
//! Otherwise a store is created in a temporary directory and renamed into place, so that a crash leaves a whole store
//! or none. Here its files are created in a folder [`UNFINISHED`] inside and moved out of it, `identity.json` last: as
//! long as that file is still in the folder there is no store, and creation starts over.

use std::io;
use std::path::Path;

use super::folder::{
    IDENTITY, IGNORED, UNFINISHED, clear, fill, is_leftover, is_store, make_dir, not_free,
    take_lock,
};
use super::{HashKey, Settings};
use crate::disk::{Disk, DiskFile, read_whole, write_whole};
use crate::{Error, Result};

/// Returns true if this error of renaming a store over the directory `dir` means that it has to be created inside.
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

/// Creates the store. Returns its lock, or `None` if another process has created it meanwhile.
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
    // Removes the folder if it is empty; errors do not matter.
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
    // Files that an interrupted creation moved out, and those that it did not. Folders are replaced.
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
