//! The folder that tables and plots are written into.

use std::path::Path;

use cashrank::{Error, Result};

/// A folder for figures.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'f>(&'f Path);

impl Folder<'_> {
    /// Makes the folder, unless it is there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(path: &Path) -> Result<Folder<'_>> {
        std::fs::create_dir_all(path).map_err(Error::io(path, "create"))?;
        Ok(Folder(path))
    }

    /// Writes a file of this name into it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(self, name: &str, text: &str) -> Result<()> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(Error::io(&path, "write"))
    }
}
