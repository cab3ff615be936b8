//! How a store is made: aside, and renamed into place.

use std::path::{Path, PathBuf};

use super::folder::{
    clear_unfinished, fill, is_begun, is_store, make_dir, remove_unfinished, take_lock,
};
use super::identity::Settings;
use super::inside;
use crate::batch::HashKey;
use crate::disk::{Disk, DiskFile};
use crate::{Error, Result};

/// Makes a store aside and renames it into place, so that a cut leaves a whole store or none; or [`inside`], where
/// that cannot be. Its lock. `None`: another process has made it meanwhile.
pub(super) fn create(
    disk: &dyn Disk,
    dir: &Path,
    settings: &Settings,
) -> Result<Option<Box<dyn DiskFile>>> {
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
    if is_begun(disk, dir) {
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
