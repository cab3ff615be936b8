//! Where the new store is made: in a folder beside its final place, which it gets by a rename once it is whole.
//!
//! The folder is `NAME.unfinished`, or `NAME.2.unfinished` and so on where that is taken. A file in it, locked by the process
//! that makes the store, says what it is. A killed one leaves the folder, and the next one empties and uses it: only a folder
//! that has this file, and nothing but it and the store, is taken for one.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, read_whole, unfinished};
use crate::{Error, Result};

/// The file that says what the folder is,
const MARK: &str = "reshard";
/// and what it says.
const TEXT: &[u8] = b"a store that `cashrank reshard` was making; may be removed\n";
/// The store in it, and the same while it is made itself.
const STORE: &str = "store";
const BEGUN: &str = "store.unfinished";

/// See the head of the file.
pub(super) struct Unfinished<'d> {
    disk: &'d dyn Disk,
    folder: PathBuf,
    /// Holds the lock.
    _mark: Box<dyn DiskFile>,
}

impl<'d> Unfinished<'d> {
    /// Makes the folder for a store that is to come to `to`, where there must be nothing.
    ///
    /// # Errors
    /// [`Error::Usage`]: there is something; those of writing.
    pub fn begin(disk: &'d dyn Disk, to: &Path) -> Result<Unfinished<'d>> {
        if to.file_name().is_none() {
            return Err(Error::Usage(format!(
                "{}: a store is made under a name of its own; name a directory in it",
                to.display()
            )));
        }
        check_free(disk, to)?;
        let (folder, mark) = unfinished(to, |folder| begin(disk, folder))?;
        let made = Unfinished {
            disk,
            folder,
            _mark: mark,
        };
        made.clear()?;
        Ok(made)
    }

    /// Where the store is made.
    pub fn store(&self) -> PathBuf {
        self.folder.join(STORE)
    }

    /// Removes what there is of a store.
    fn clear(&self) -> Result<()> {
        [STORE, BEGUN]
            .iter()
            .try_for_each(|name| remove_all(self.disk, &self.folder.join(name)))
    }

    /// Gives the store its place, and removes the folder.
    ///
    /// # Errors
    /// [`Error::Usage`]: there is something meanwhile; those of renaming.
    pub fn put(self, to: &Path) -> Result<()> {
        let sync = |path: &Path| self.disk.sync_dir(path).map_err(Error::io(path, "sync"));
        sync(&self.folder)?;
        check_free(self.disk, to)?;
        let moved = self.disk.rename(&self.store(), to);
        moved.map_err(Error::io(to, "create"))?;
        match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync(parent)?,
            _ => sync(Path::new("."))?,
        }
        self.remove();
        Ok(())
    }

    /// Removes the folder, as far as it can, where no store comes of it.
    pub fn give_up(self) {
        if self.clear().is_ok() {
            self.remove();
        }
    }

    fn remove(&self) {
        drop(self.disk.remove(&self.folder.join(MARK)));
        drop(self.disk.remove_dir(&self.folder));
    }
}

/// Refuses a place where there is something.
fn check_free(disk: &dyn Disk, to: &Path) -> Result<()> {
    // A link is there even where it leads nowhere.
    let is_link = disk.target(to).map_or(true, |target| target != to);
    let is_there = match (disk.list(to), disk.read(to)) {
        (Ok(_), _) | (_, Ok(_)) => true,
        (Err(error), _) => is_link || error.kind() != ErrorKind::NotFound,
    };
    if !is_there {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{}: is there already; name a new folder, or remove it",
        to.display()
    )))
}

/// Makes the folder, or takes one that a killed process left. `AlreadyExists`: the name is taken.
fn begin(disk: &dyn Disk, folder: &Path) -> io::Result<Box<dyn DiskFile>> {
    let path = folder.join(MARK);
    let mark = match disk.create_dir(folder) {
        Ok(()) => {
            let mark = disk.create_new(&path)?;
            mark.write_at(TEXT, 0)?;
            mark.sync()?;
            mark
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !is_left(disk, folder) {
                return Err(error);
            }
            disk.open(&path, false)?
        }
        Err(error) => return Err(error),
    };
    if mark.try_lock()? {
        Ok(mark)
    } else {
        Err(ErrorKind::AlreadyExists.into())
    }
}

/// Returns whether a folder is what a killed process left.
fn is_left(disk: &dyn Disk, folder: &Path) -> bool {
    let is_real = disk.target(folder).is_ok_and(|target| target == folder);
    let is_ours = |name: &String| [MARK, STORE, BEGUN].contains(&&**name);
    let names = disk.list(folder);
    is_real
        && names.is_ok_and(|names| names.iter().all(is_ours))
        && read_whole(disk, &folder.join(MARK)).is_ok_and(|text| text == TEXT)
}

/// Removes a folder with all that is in it, if it is there. Links are removed, and not followed.
fn remove_all(disk: &dyn Disk, path: &Path) -> Result<()> {
    let removing = Error::io(path, "remove");
    let is_link = disk.target(path).map_or(true, |target| target != path);
    let names = match disk.list(path) {
        Ok(names) if !is_link => names,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_link => return Ok(()),
        _ => return disk.remove(path).map_err(removing),
    };
    for name in names {
        remove_all(disk, &path.join(name))?;
    }
    disk.remove_dir(path).map_err(removing)
}
