//! Creation of a store: in a temporary directory that is renamed into place.

use std::io;
use std::path::{Path, PathBuf};

use super::folder::{LOCK, clear, fill, is_begun, is_leftover, is_store, remove_unfinished};
use super::identity::Settings;
use super::inside;
use crate::batch::HashKey;
use crate::disk::{Disk, DiskFile, unfinished};
use crate::{Error, Result};

/// Creates a store in a temporary directory and renames it into place, so that a crash leaves a whole store or none;
/// falls back to [`inside`] where that is impossible. Returns its lock, or `None` if another process has created the
/// store meanwhile.
pub(super) fn create(
    disk: &dyn Disk,
    dir: &Path,
    settings: &Settings,
    key: HashKey,
) -> Result<Option<Box<dyn DiskFile>>> {
    // Drops a trailing slash, which would place the temporary directory inside.
    let dir = dir.components().collect::<PathBuf>();
    // Follows a symbolic link, so that the link remains.
    let dir: &Path = &disk.target(&dir).map_err(Error::io(&dir, "follow"))?;
    if dir.file_name().is_none() {
        return Err(Error::Usage(format!(
            "{}: a store is made under a name of its own; name a directory in it, or \
             its full path",
            dir.display()
        )));
    }
    if is_begun(disk, dir) {
        return inside::create(disk, dir, settings, key);
    }
    let (aside, lock) = match unfinished(dir, |aside| begin(disk, aside)) {
        Err(Error::Io { source, .. }) if inside::is_meant(disk, dir, &source) => {
            return inside::create(disk, dir, settings, key);
        }
        begun => begun?,
    };
    let give_up = || {
        remove_unfinished(disk, &aside);
        is_store(disk, dir)
    };
    if is_store(disk, dir)? {
        give_up()?;
        return Ok(None);
    }
    clear(disk, &aside)?;
    fill(disk, &aside, settings, key)?;
    let sync = |path: &Path| disk.sync_dir(path).map_err(Error::io(path, "sync"));
    sync(&aside)?;
    if let Err(error) = disk.rename(&aside, dir) {
        // Another process may have created it meanwhile.
        if give_up()? {
            return Ok(None);
        }
        return if inside::is_meant(disk, dir, &error) {
            inside::create(disk, dir, settings, key)
        } else {
            Err(Error::io(dir, "create")(error))
        };
    }
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync(Path::new("."))?,
        Some(parent) => sync(parent)?,
        None => {}
    }
    Ok(Some(lock))
}

/// Begins a store in a directory of this process: a new one, or a leftover of a killed creation. Returns its lock,
/// which moves with the directory when that is renamed. Fails with `AlreadyExists` if the name is taken by a user's
/// file or by another process.
fn begin(disk: &dyn Disk, aside: &Path) -> io::Result<Box<dyn DiskFile>> {
    let taken = || io::Error::from(io::ErrorKind::AlreadyExists);
    let made = disk.create_dir(aside);
    let is_old = made.is_err();
    match made {
        // An empty directory may be the user's.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_left = is_leftover(disk, aside, &[LOCK]).unwrap_or(false);
            if !is_left || disk.list(aside).is_ok_and(|names| names.is_empty()) {
                return Err(taken());
            }
        }
        made => made?,
    }
    // Another process that takes it for a leftover may be faster, and may even have moved its store into place.
    let path = aside.join(LOCK);
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => taken(),
        _ => error,
    };
    let lock = disk.open(&path, true).map_err(gone)?;
    let is_locked = lock.try_lock()?;
    let again = disk.open(&path, false).map_err(gone)?;
    if is_locked && !(is_old && again.try_lock()?) {
        Ok(lock)
    } else {
        Err(taken())
    }
}
