//! Temporary files, renamed once they are complete: a name for them that no other file has.
//!
//! Outside of stores, where other people's files lie, names are tried until one is free ([`unfinished`]). What a killed
//! command leaves there cannot be distinguished from a file of the user's own; it stays, and the next command takes the
//! next name. Inside a store names are the writer's, who has the lock: what lies there goes ([`recreate`]). Either way
//! the file is made exclusively, so that no link is followed, and nothing is written into a file that has another name.
//!
//! What nobody but the process itself reads needs no name ([`Nameless`]).

use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile};
use crate::{Error, Result};

/// Makes a file or directory beside `path`: `NAME.unfinished`, or `NAME.2.unfinished` and so on. `make` makes it, and
/// says [`io::ErrorKind::AlreadyExists`] where the name is taken.
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

/// The error of making a temporary file or folder, which may be what the system's folder for these cannot take: then it says so,
/// and what to do.
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

/// Makes a file of the store's writer; what has its name, a killed writer's or a link, is removed.
pub(crate) fn recreate(disk: &dyn Disk, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    match disk.create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(path)?;
            disk.create_new(path)
        }
        created => created,
    }
}

/// A file of the store's writer whose name is given up at once: it goes with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Nameless {
    file: Box<dyn DiskFile>,
    /// The name that it had.
    path: PathBuf,
}

impl Nameless {
    /// See [`recreate`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(disk: &dyn Disk, path: &Path) -> Result<Nameless> {
        let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
        disk.remove(path).map_err(Error::io(path, "remove"))?;
        Ok(Nameless {
            file,
            path: path.into(),
        })
    }

    /// Fills `bytes` from `at` on.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Damaged`]: it ends before.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        let read = self.file.read_at(bytes, at);
        read.map_err(Error::reading(&self.path))
    }

    /// Writes `bytes` at `at`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = self.file.write_at(bytes, at);
        written.map_err(Error::io(&self.path, "write"))
    }

    /// Gives up all that is in it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn clear(&self) -> Result<()> {
        self.file.set_len(0).map_err(Error::io(&self.path, "cut"))
    }

    /// What is read is not what was written.
    pub fn damaged(&self) -> Error {
        Error::damaged(&self.path, "it does not read as written")
    }
}
