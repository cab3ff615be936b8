//! The one way to publish a file of a store: written under a temporary name, made durable, and renamed.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, recreate};
use crate::{Error, Result};

/// Temporary file for a final path. Removed on drop unless it was renamed, as it may have filled the disk.
pub struct TempFile<'d> {
    disk: &'d dyn Disk,
    pub path: PathBuf,
    /// Final path.
    pub place: PathBuf,
    is_in_place: bool,
}

impl<'d> TempFile<'d> {
    /// Creates the temporary path for the file at `place`.
    pub fn of(disk: &'d dyn Disk, place: PathBuf) -> TempFile<'d> {
        TempFile {
            disk,
            path: place.with_extension("tmp"),
            place,
            is_in_place: false,
        }
    }

    /// Creates the file, empty. A leftover of that name is removed.
    pub fn create(&self) -> Result<Box<dyn DiskFile>> {
        recreate(self.disk, &self.path).map_err(Error::io(&self.path, "create"))
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
