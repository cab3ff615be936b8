//! Temporary files, renamed once they are complete: a name for them that no other file has.
//!
//! Outside of stores, where other people's files lie, names are tried until one is free ([`unfinished`]). What a killed
//! command leaves there cannot be distinguished from a file of the user's own; it stays, and the next command takes the
//! next name. Inside a store names are the writer's, who has the lock: what lies there goes ([`recreate`]). Either way
//! the file is made exclusively, so that no link is followed, and nothing is written into a file that has another name.

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
