//! Temporary files, renamed once they are complete.
//!
//! Among users' files, names are tried until one is free ([`unfinished`]): the leftover of a killed command may be a user's
//! file. Inside a store names belong to the writer, who has the lock, so leftovers are removed ([`recreate`]). In both
//! cases the file is created exclusively, so that no link is followed and no existing file is overwritten.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile, StoreFile};
use crate::{Error, Result};

/// Creates a file or directory beside `path`: `NAME.unfinished`, or `NAME.2.unfinished` and so on. `make` creates it,
/// and returns [`io::ErrorKind::AlreadyExists`] if the name is taken.
pub fn unfinished<T>(
    path: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T)> {
    let mut number = 1u64;
    loop {
        let mut aside = path.as_os_str().to_owned();
        if number > 1 {
            aside.push(format!(".{number}"));
        }
        aside.push(".unfinished");
        let aside = PathBuf::from(aside);
        match make(&aside) {
            Ok(made) => return Ok((aside, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::io(aside, "create")(error)),
        }
    }
}

/// Creates a file beside `path` and removes its name, so that the file vanishes with the process however it ends.
/// Returns the removed name, for errors.
pub fn unnamed(path: &Path) -> Result<(PathBuf, File)> {
    let create = |path: &Path| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).open(path)
    };
    let (path, file) = unfinished(path, create).map_err(temporary)?;
    fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
    Ok((path, file))
}

/// Adds a remedy to an error of creating a temporary file or folder, if the system's folder for them is the cause.
pub fn temporary(error: Error) -> Error {
    let folder = std::env::temp_dir();
    let absolute = |path: &Path| std::path::absolute(path).ok();
    match error {
        Error::Io {
            path,
            action,
            source,
        } if path.parent().and_then(absolute) == absolute(&folder) => {
            let what = format!(
                "{source}; temporary files go into {}: make this folder, or set TMPDIR to one that may be written into",
                folder.display()
            );
            Error::io(path, action)(io::Error::new(source.kind(), what))
        }
        error => error,
    }
}

/// Creates a file of the store's writer; a leftover or link of that name is removed.
pub fn recreate(disk: &dyn Disk, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    match disk.create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(path)?;
            disk.create_new(path)
        }
        created => created,
    }
}

/// Temporary file for a final path. Removed on drop unless it was renamed, as it may have filled the disk.
pub struct TempFile<'d> {
    disk: &'d dyn Disk,
    pub path: PathBuf,
    /// Path that the file gets once it is whole.
    pub place: PathBuf,
    is_in_place: bool,
}

impl<'d> TempFile<'d> {
    pub fn of(disk: &'d dyn Disk, place: PathBuf) -> TempFile<'d> {
        TempFile {
            disk,
            path: place.with_extension("tmp"),
            place,
            is_in_place: false,
        }
    }

    /// Creates the file, empty. A leftover of that name is removed.
    pub fn create(&self) -> Result<StoreFile> {
        let file = recreate(self.disk, &self.path).map_err(Error::io(&self.path, "create"))?;
        Ok(StoreFile::new(&self.path, file))
    }

    /// Renames a complete and durable file to its final path, which is returned.
    pub fn put_in_place(mut self) -> Result<PathBuf> {
        let folder = self.place.parent().unwrap_or(Path::new("."));
        self.disk
            .rename(&self.path, &self.place)
            .and_then(|()| {
                self.is_in_place = true;
                self.disk.sync_dir(folder)
            })
            .map_err(Error::io(&self.place, "publish"))?;
        Ok(std::mem::take(&mut self.place))
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.is_in_place {
            let _ = self.disk.remove(&self.path);
        }
    }
}
