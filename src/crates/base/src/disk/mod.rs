//! All disk access of the store behind one small trait.
//!
//! So faults can be injected under the code that users run. The exceptions are unnamed files that sort what exceeds the
//! memory ([`unnamed`]).
//!
//! Temporary files are renamed once they are complete. Among users' files, names are tried until one is free
//! ([`unfinished`]): the leftover of a killed command may be a user's file. Inside a store names belong to the writer, who
//! has the lock, so leftovers are removed ([`recreate`]). In both cases the file is created exclusively, so that no link
//! is followed and no existing file is overwritten.

pub mod log;
mod sorter;

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::frame::{self, HeadReader};
use crate::codec::sealed;
use crate::{Error, Result};
pub use sorter::{ExternalSorter, Sorted};

pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing; creates it if `create`.
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file for reading and writing; `AlreadyExists` if anything has its name, even a dangling link.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames a file or directory, replacing what is there (a directory only if empty).
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory's entries durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Resolves symbolic links; returns the path itself if it is none.
    fn target(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.into())
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// Open file. Reads and writes give their offset; there is no position.
pub trait DiskFile: Send + Sync + Debug {
    /// Fills `buf` from `offset`; `UnexpectedEof` if the file is too short.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `data` at `offset`, extending the file if necessary.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes all written data, and the length, durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes the exclusive lock; false if another process has it.
    fn try_lock(&self) -> io::Result<bool>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Create,
    Write,
    /// For reading only.
    Look,
}

impl Access {
    /// Opens a file, which must exist except for [`Access::Create`].
    pub fn open(self, disk: &dyn Disk, path: &Path) -> Result<StoreFile> {
        let file = match self {
            Access::Create => disk.open(path, true).map_err(Error::io(path, "create")),
            Access::Write => disk.open(path, false).map_err(Error::opening(path)),
            Access::Look => disk.read(path).map_err(Error::opening(path)),
        };
        Ok(StoreFile::new(path, file?))
    }
}

/// Open file of a store with its path, which its errors name.
#[derive(Debug)]
pub struct StoreFile {
    pub path: PathBuf,
    pub file: Box<dyn DiskFile>,
}

impl StoreFile {
    pub fn new(path: impl Into<PathBuf>, file: Box<dyn DiskFile>) -> StoreFile {
        let path = path.into();
        StoreFile { path, file }
    }

    /// Fills `bytes` from `offset`; it is damage if the file ends inside them.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self.file.read_at(bytes, offset);
        read.map_err(Error::reading(&self.path))
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.file.write_at(bytes, offset);
        written.map_err(Error::io(&self.path, "write"))
    }

    pub fn size(&self) -> Result<u64> {
        self.file.size().map_err(Error::io(&self.path, "measure"))
    }

    /// Truncates the file, or extends it with zeros.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(Error::io(&self.path, "cut"))
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }
}

/// Opens a cache that begins with a sealed head of `N` numbers, which are returned; `None` if there is none.
pub fn open_cache<const N: usize>(
    disk: &dyn Disk,
    path: &Path,
) -> Result<Option<(StoreFile, [u64; N])>> {
    let file = match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => StoreFile::new(path, file.map_err(Error::opening(path))?),
    };
    let mut head = vec![0; 8 * (N + 1)];
    file.read_at(&mut head, 0)?;
    if frame::is_sealed(&head) {
        Ok(Some((file, HeadReader(&head).u64s())))
    } else {
        Err(file.damaged("the checksum of its head does not match"))
    }
}

const LINKS: usize = 40;

pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(path)?;
        Ok(Box::new(RealFile::from(file)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile::from(file)))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        // Opening a pipe would wait for a writer.
        if std::fs::metadata(path)?.file_type().is_fifo() {
            return Err(io::Error::other("it is a pipe, not a file"));
        }
        Ok(Box::new(RealFile::from(File::open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn target(&self, path: &Path) -> io::Result<PathBuf> {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS {
            match std::fs::read_link(&path) {
                Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
                Err(_) => return Ok(path),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    locked: AtomicBool,
}

impl From<File> for RealFile {
    fn from(file: File) -> RealFile {
        RealFile {
            file,
            locked: AtomicBool::new(false),
        }
    }
}

/// Unlocks explicitly: a child process that is being spawned shares all open files, so closing alone may not suffice.
impl Drop for RealFile {
    fn drop(&mut self) {
        if *self.locked.get_mut() {
            let _ = self.file.unlock();
        }
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => {
                self.locked.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Writes a small sealed file ([`sealed`]) atomically: to a temporary file, synced, renamed over `path`, directory synced.
pub fn write_sealed(disk: &dyn Disk, path: &Path, content: &impl Serialize) -> Result<()> {
    let text = sealed::to_text(content).map_err(|error| Error::internal(error.to_string()))?;
    let temp = path.with_extension("tmp");
    let write = || {
        let file = recreate(disk, &temp)?;
        file.write_at(&text, 0)?;
        file.sync()?;
        drop(file);
        disk.rename(&temp, path)?;
        disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
    };
    write().map_err(Error::io(path, "write"))
}

/// Reads a small sealed file; `None` if there is none.
pub fn read_sealed<T: DeserializeOwned>(disk: &dyn Disk, path: &Path) -> Result<Option<T>> {
    let text = match read_whole(disk, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(Error::reading(path))?,
    };
    let content = sealed::from_text(&text);
    content.map(Some).map_err(|what| Error::damaged(path, what))
}

const WHOLE_MAX: u64 = 1 << 20;

/// Reads a small file; `FileTooLarge` if it exceeds a megabyte.
pub fn read_whole(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.read(path)?;
    let len = file.size()?;
    if len > WHOLE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut data = vec![0; len as usize];
    file.read_at(&mut data, 0)?;
    Ok(data)
}

/// Creates a file or directory by `make` beside `path`: `NAME.unfinished`, or `NAME.2.unfinished` and so on.
pub fn unfinished<T>(
    path: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T)> {
    let mut number = 1u64;
    loop {
        let mut temp = path.as_os_str().to_owned();
        if number > 1 {
            temp.push(format!(".{number}"));
        }
        temp.push(".unfinished");
        let temp = PathBuf::from(temp);
        match make(&temp) {
            Ok(made) => return Ok((temp, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::io(temp, "create")(error)),
        }
    }
}

/// Creates a file beside `path` and removes its name, which is returned for errors.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is shared, as with a process that is being spawned.
    #[test]
    fn a_lock_is_released_although_others_have_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let holder = RealFile::from(File::open(file.path()).unwrap());
        let other = RealDisk.read(file.path()).unwrap();
        assert!(holder.try_lock().unwrap());
        let copy = holder.file.try_clone().unwrap();
        assert!(!other.try_lock().unwrap());
        drop(holder);
        assert!(other.try_lock().unwrap());
        drop(copy);
    }
}
