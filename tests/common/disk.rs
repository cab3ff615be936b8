//! The system's disk, with something put over its files.

use std::io;
use std::path::Path;

use cashrank::store::{Disk, DiskFile, RealDisk};

/// What is put over.
pub trait Over: Send + Sync {
    /// Before a file is opened, perhaps made.
    fn before(&self, _path: &Path, _create: bool) -> io::Result<()> {
        Ok(())
    }
    /// The file to use instead.
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile>;
}

/// The disk with that.
pub struct Meddled<T>(pub T);

impl<T: Over> Disk for Meddled<T> {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        self.0.before(path, create)?;
        Ok(self.0.over(path, RealDisk.open(path, create)?))
    }
    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.0.over(path, RealDisk.read(path)?))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }
}
