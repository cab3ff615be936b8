//! Folder for tables and plots.

use std::path::Path;

use cashrank::{Error, Result};

/// Folder for figures.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'f>(&'f Path);

impl Folder<'_> {
    /// Creates the folder unless it exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(path: &Path) -> Result<Folder<'_>> {
        std::fs::create_dir_all(path).map_err(Error::io(path, "create"))?;
        Ok(Folder(path))
    }

    /// Writes a file of this name into the folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(self, name: &str, text: &str) -> Result<()> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(Error::io(&path, "write"))
    }
}
