//! Kept rows: the links of visited pages, as page numbers on disk, for as long as the store exists.
//!
//! A row is appended for each page that was read or found gone. Of several rows of a page the last one is live; the
//! others are *superseded*. Rows lie in the order of their visits in one log (`disk::log`), `rows/NUMBER` and
//! `rows/NUMBER.index`, block after block (`block`); the manifest has its committed lengths ([`CommittedRows`]), so
//! recovery is a truncation. When half of the rows and links are superseded, a checkpoint writes the live ones to a new
//! file in the same order, and its commit switches to that file (`write`); the old one stays while the current
//! snapshot names it. So sweeps do not depend on where checkpoints were or when the log was compacted.
//!
//! A directory next to the log, `rows/NUMBER.places`, finds the row of a page (`places`).
//!
//! Rows are optional: the ranking by OPIC does not need them. If they do not fit (`--keep-links`, page numbers beyond
//! 32 bits) all of them are given up, and the store records why ([`Retention`]); a part is never kept. A full disk ends
//! the run, as for every other file; with free space again, the same command continues with the same bytes.

pub mod block;
pub mod places;
mod read;
mod since;
mod unpacked;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::{remove_except, remove_file};
use crate::disk::Disk;
use crate::disk::log::LogLengths;
use crate::model::human;
use crate::{Error, Result};

pub use read::{KeptRows, RowFile};
pub use since::RowsDiff;
pub use unpacked::UnpackedRows;
pub(super) use write::{RowWriter, compact};

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

/// Committed state of the row file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedRows {
    /// Number of the file; each compaction begins another.
    pub number: u64,
    pub lengths: LogLengths,
    pub rows: u64,
    pub links: u64,
    pub superseded: u64,
    /// Number of rows and links at which a checkpoint next checks how much is superseded.
    pub look_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GiveUpReason {
    /// A command requested that no rows are kept.
    Asked,
    /// Rows would have exceeded this limit in bytes.
    TooLarge(u64),
    /// A page number exceeded the range of rows.
    TooManyPages,
}

/// Kept rows of a store, or the reason why there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// No rows were kept from the start.
    #[default]
    NotKept,
    Kept(CommittedRows),
    /// Rows were kept until they were given up.
    GivenUp(GiveUpReason),
}

impl Retention {
    pub fn kept(&self) -> Option<&CommittedRows> {
        match self {
            Retention::Kept(kept) => Some(kept),
            _ => None,
        }
    }

    /// Tells serde to omit the default.
    pub fn is_not_kept(&self) -> bool {
        *self == Retention::NotKept
    }

    /// Describes why there are no rows, for messages.
    pub fn why_not(&self) -> String {
        match self {
            Retention::Kept(_) => "they are kept".into(),
            Retention::NotKept => {
                "it was begun with `keep_links` none, or by an older cashrank".into()
            }
            Retention::GivenUp(reason) => format!("they were dropped: {reason}"),
        }
    }
}

impl std::fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GiveUpReason::Asked => f.write_str("`keep_links` none"),
            GiveUpReason::TooLarge(most) => {
                write!(
                    f,
                    "they would have taken more than {} of disk",
                    human(*most)
                )
            }
            GiveUpReason::TooManyPages => f.write_str("page numbers in rows have 32 bits"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsState {
    pub retention: Retention,
    /// Limit in bytes that was requested; `None` for the default.
    pub most: Option<u64>,
    /// Numbers of files from before compactions that a snapshot may still name.
    pub retired: Vec<u64>,
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

/// Returns the number in the name of a row file, its index or its directory.
pub fn number_of(name: &str) -> Option<u64> {
    let ends = [".index", ".places"];
    let number = ends.iter().find_map(|end| name.strip_suffix(end));
    number.unwrap_or(name).parse().ok()
}

/// Writes the directory of committed rows if it is due; returns the damage of a damaged one. On a full disk or with
/// damaged rows no directory is written, as it is only a cache.
pub(super) fn renew_places(
    disk: &dyn Disk,
    dir: &Path,
    kept: &CommittedRows,
    pages: u64,
) -> Result<Option<Error>> {
    let file = read::RowFile::open(disk, dir, *kept, pages)?;
    match places::renew(disk, &file) {
        Err(error) if error.is_full() || matches!(error, Error::Damaged { .. }) => Ok(None),
        renewed => renewed,
    }
}

pub(super) fn remove(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    let path = path_of(dir, number);
    for path in [path.with_extension("index"), places::path_of(&path), path] {
        remove_file(disk, &path)?;
    }
    Ok(())
}

pub(super) fn remove_others(disk: &dyn Disk, dir: &Path, state: &RowsState) -> Result<()> {
    let folder = dir.join(ROWS);
    match disk.list(&folder) {
        // A store of version 1.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        names => drop(names.map_err(Error::opening(&folder))?),
    }
    let current = state.retention.kept().map(|kept| kept.number);
    // Files of other names are not the store's.
    remove_except(disk, &folder, |name| {
        number_of(name.strip_suffix(".tmp").unwrap_or(name)).is_none_or(|number| {
            let is_named = current == Some(number) || state.retired.contains(&number);
            is_named && !name.ends_with(".tmp")
        })
    })
}
