//! Opening of the frontier's file, if it is one of ours.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use cashrank_fence::Overlay;
use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, TableError};

use super::tables::{FACTS, VERSION};
use super::{Fence, Fenced};
use cashrank_serve::{Problem, Result};

/// Opens the file, or creates it. A file of another program is left unchanged. All pages are checked against their
/// checksums, since all of them are read now anyway and redb trusts them later.
pub(super) fn open(fence: &Arc<Fence>, cache_bytes: usize) -> Result<Fenced<Database>> {
    let path = fence.path();
    fence.hold(|| {
        if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
            let version = failing(path, version(path))?;
            check(path, version)?;
        }
        let mut builder = Database::builder();
        builder.set_cache_size(cache_bytes);
        builder.set_check_integrity_on_open(true);
        failing(path, builder.create(path).map_err(redb::Error::from))
    })
}

fn failing<T>(path: &Path, done: std::result::Result<T, redb::Error>) -> Result<T> {
    done.map_err(|error| Problem::Failed(format!("{}: {error}", path.display())))
}

/// Kind of an existing file.
enum Version {
    /// No tables: its creation was interrupted.
    None,
    /// Version of its tables.
    Of(u64),
    /// File of another program, or another of this program's files.
    Foreign,
}

fn check(path: &Path, version: Version) -> Result<()> {
    match version {
        Version::None | Version::Of(VERSION) => Ok(()),
        Version::Of(_) => Err(Problem::Asked(format!(
            "{}: not a frontier of version {VERSION}; use another file, or the program that made it",
            path.display()
        ))),
        Version::Foreign => Err(Problem::Asked(format!(
            "{}: not a frontier's file; it was not changed: name another file, or a new one",
            path.display()
        ))),
    }
}

/// Inspects a database without changing its file, which redb would repair, if necessary, when opening it.
fn version(path: &Path) -> std::result::Result<Version, redb::Error> {
    let file = File::options().read(true).write(true).open(path)?;
    let file = Overlay::new(FileBackend::new(file)?)?;
    let db = Database::builder().create_with_backend(file)?;
    let reading = db.begin_read()?;
    let facts = match reading.open_table(FACTS) {
        Ok(facts) => facts,
        Err(TableError::TableDoesNotExist(_)) if reading.list_tables()?.next().is_none() => {
            return Ok(Version::None);
        }
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Ok(Version::Foreign),
    };
    let version = facts.get("version")?;
    Ok(version.map_or(Version::Foreign, |version| Version::Of(version.value())))
}
