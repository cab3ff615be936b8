//! Kept rows: the links of visited pages, as page numbers on disk, for as long as the store exists.
//!
//! A row is appended for each page that was read or found gone. Of several rows of a page the last one is live; the
//! others are *superseded*. Rows lie in the order of their visits in one log (`disk::log`), `rows/NUMBER` and
//! `rows/NUMBER.index`, block after block (`block`); the manifest has its committed lengths ([`CommittedRows`]), so
//! recovery is a truncation. When half of the rows and links are superseded, a checkpoint writes the live ones to a new
//! file in the same order, and its commit switches to that file (`write`); the old one stays while the current
//! snapshot names it. So sweeps do not depend on where checkpoints were or when the log was compacted.
//!
//! Rows are optional: the ranking by OPIC does not need them. If they do not fit (`--keep-links`, page numbers beyond
//! 32 bits) all of them are given up, and the store records why ([`Retention`]); a part is never kept. A full disk ends
//! the run, as for every other file; with free space again, the same command continues with the same bytes.

pub mod block;
mod read;
mod write;

use std::path::{Path, PathBuf};

use super::folder::{make_dir, remove_except, remove_file, sync_dir};
use super::manifest::Manifest;
use crate::disk::Disk;
use crate::{Error, Result};

pub use super::manifest::{CommittedRows, GiveUpReason, Retention};
pub use read::{KeptRows, RowFile, UnpackedRows};
pub(super) use write::RowWriter;

pub const ROWS: &str = "rows";

/// Default limit on the disk space of kept rows, in bytes ([`KeepRows`]).
pub const ROWS_BYTES: u64 = 8 << 30;

/// Retention of rows by an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepRows {
    /// Default: kept in a new store, and in one that has kept them from its start; up to this many bytes.
    Usual(u64),
    /// Requested, up to this many bytes: a store that has pages and kept no rows is refused.
    AtMost(u64),
    /// Keeps no rows; existing ones are given up.
    None,
}

impl KeepRows {
    /// Returns the default for the store in `dir`, which need not exist: [`ROWS_BYTES`] or, if less, half of the free
    /// disk space plus what its rows occupy already.
    pub fn usual(dir: &Path) -> KeepRows {
        let files = std::fs::read_dir(dir.join(ROWS)).into_iter().flatten();
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        let most = sizes.sum::<u64>().saturating_add(free_bytes(dir) / 2);
        KeepRows::Usual(ROWS_BYTES.min(most))
    }
}

/// Returns the free bytes on the disk of `path`, which need not exist.
fn free_bytes(path: &Path) -> u64 {
    let path = std::path::absolute(path).unwrap_or_default();
    let found = path
        .ancestors()
        .find_map(|path| rustix::fs::statvfs(path).ok());
    found.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns the error of an operation that needs rows in a store of `pages` pages that has none.
pub(super) fn none(dir: &Path, retention: &Retention, pages: u64) -> Error {
    if pages == 0 && *retention == Retention::NotKept {
        return Error::Missing(format!(
            "{}: the store has no pages yet, as no ingest has reached a checkpoint: run the same ingest again",
            dir.display()
        ));
    }
    Error::Missing(format!(
        "{}: the store keeps no rows of links ({}); ingest the inputs into a new store with enough \
         `keep_links`",
        dir.display(),
        retention.why_not()
    ))
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(ROWS).join(number.to_string())
}

/// Returns the number in the name of a row file, its index or, of version 0.2, its directory.
pub fn number_of(name: &str) -> Option<u64> {
    let ends = [".index", ".places"];
    let number = ends.iter().find_map(|end| name.strip_suffix(end));
    number.unwrap_or(name).parse().ok()
}

pub(super) fn remove(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    let path = path_of(dir, number);
    remove_file(disk, &path.with_extension("index"))?;
    remove_file(disk, &path)
}

/// Returns true if the folder with the rows of a store does not exist, which is no damage if none are kept.
pub fn is_missing(disk: &dyn Disk, folder: &Path) -> bool {
    let listed = disk.list(folder);
    listed.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

pub(super) fn remove_others(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<()> {
    let current = manifest.retention.kept().map(|kept| kept.number);
    let folder = dir.join(ROWS);
    // Some tools that copy a store leave out empty folders.
    if current.is_none() && manifest.retired_rows.is_empty() && is_missing(disk, &folder) {
        make_dir(disk, &folder)?;
        return sync_dir(disk, dir);
    }
    // Files of other names are not the store's.
    remove_except(disk, &folder, |name| {
        number_of(name.strip_suffix(".tmp").unwrap_or(name)).is_none_or(|number| {
            let is_named = current == Some(number) || manifest.retired_rows.contains(&number);
            is_named && !name.ends_with(".tmp") && !name.ends_with(".places")
        })
    })
}
