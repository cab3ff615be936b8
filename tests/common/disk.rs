//! The system's disk, with hooks on its files.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cashrank_store::store::{Disk, DiskFile, RealDisk};

/// Hooks on the operations of a disk.
pub trait Over: Send + Sync {
    /// Called before a file is opened, and perhaps created.
    fn before(&self, _path: &Path, _create: bool) -> io::Result<()> {
        Ok(())
    }
    /// Called before a folder, or the name of a file, is changed or synced.
    fn before_change(&self) -> io::Result<()> {
        Ok(())
    }
    /// Returns the file to use in place of `file`.
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile>;
}

/// Disk with these hooks.
pub struct Meddled<T>(pub T);

impl<T: Over> Disk for Meddled<T> {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        self.0.before(path, create)?;
        Ok(self.0.over(path, RealDisk.open(path, create)?))
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.before(path, true)?;
        Ok(self.0.over(path, RealDisk.create_new(path)?))
    }
    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.0.over(path, RealDisk.read(path)?))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.before_change()?;
        RealDisk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.before_change()?;
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.before_change()?;
        RealDisk.remove(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.before_change()?;
        RealDisk.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }
}

/// Hooks on a file's reads, writes and syncs; by default they do what is requested.
pub trait Files: Send + Sync {
    fn read(&self, file: &dyn DiskFile, buf: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(buf, offset)
    }
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        file.write_at(data, offset)
    }
    fn sync(&self, file: &dyn DiskFile) -> io::Result<()> {
        file.sync()
    }
    fn set_len(&self, file: &dyn DiskFile, len: u64) -> io::Result<()> {
        file.set_len(len)
    }
}

/// File with these hooks.
pub struct MeddledFile(pub Box<dyn DiskFile>, pub Arc<dyn Files>);

impl fmt::Debug for MeddledFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl DiskFile for MeddledFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.1.read(&*self.0, buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.write(&*self.0, data, offset)
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.set_len(&*self.0, len)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.sync(&*self.0)
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

/// Disk without room for files whose path contains this text.
#[derive(Clone, Copy)]
pub struct NoRoomIn(pub &'static str);

impl Over for NoRoomIn {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.to_string_lossy().contains(self.0) {
            Box::new(MeddledFile(file, Arc::new(*self)))
        } else {
            file
        }
    }
}

impl Files for NoRoomIn {
    fn write(&self, _: &dyn DiskFile, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}
