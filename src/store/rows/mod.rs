//! Kept rows: what visits found of pages' links, as page numbers, on disk for as long as the store lives.
//!
//! A row is appended for each page that was read, or found gone. Of a page with several the last one
//! counts; the others are *superseded*. Rows lie in the order of their visits in one log (`disk::log`), `rows/NUMBER`
//! and `rows/NUMBER.index`, block after block (`block`); the manifest has its committed lengths ([`CommittedRows`]), so
//! that recovery is a cut. Where half of the rows and links are superseded, a checkpoint writes the others into a new
//! file, in the same order, and its commit switches to that (`compact`); the old one stays while the current
//! snapshot names it. So sweeps over a log do not depend on where checkpoints were, nor on when it was compacted.
//!
//! A directory beside the log, `rows/NUMBER.places`, finds the row of one page (`places`).
//!
//! Rows are an addition: nothing of the ranking that OPIC gives needs them. Where they don't fit (`--keep-rows`,
//! pages with numbers beyond 32 bits) they are given up, all of them, and the store says so from
//! then on ([`Retention`]). They are never there in part. A full disk ends the run, as with every other file: with room
//! again, the same command goes on to the same bytes.

pub(crate) mod block;
mod compact;
mod directory;
pub(crate) mod places;
mod read;
mod since;
mod unpacked;
mod write;

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::disk::log::LogLengths;
use crate::model::human;
use crate::{Error, Result};

pub(super) use compact::compact;
pub use read::KeptRows;
pub(crate) use read::{RowFile, RowsOf};
pub(crate) use since::Since;
pub(crate) use unpacked::HeldRows;
pub(super) use write::{AppendError, RowWriter};

/// The folder of a store's row files.
pub(crate) const ROWS: &str = "rows";

/// The usual bytes of disk for kept rows ([`KeepRows`]).
pub const ROWS_BYTES: u64 = 8 << 30;

/// Whether an ingest keeps rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepRows {
    /// In a new store; in one that has pages, if it kept them from its start. They may take so many bytes.
    Usual(u64),
    /// They are asked for, and may take so many bytes: a store that has pages and kept none is refused.
    AtMost(u64),
    /// None; those that there are are given up.
    None,
}

impl KeepRows {
    /// The default for the store in `dir`, which need not be there yet: [`ROWS_BYTES`], or, if that is less, half of
    /// what is free on its disk beside what its rows take already.
    pub fn usual(dir: &Path) -> KeepRows {
        let sizes = entries(dir.join(ROWS)).filter_map(|file| Some(file.metadata().ok()?.len()));
        let most = sizes.sum::<u64>().saturating_add(free_bytes(dir) / 2);
        KeepRows::Usual(ROWS_BYTES.min(most))
    }
}

/// What is in a folder, as far as it can be read.
fn entries(folder: PathBuf) -> impl Iterator<Item = DirEntry> {
    let all = std::fs::read_dir(folder).into_iter().flatten();
    all.filter_map(std::io::Result::ok)
}

/// Bytes free on the disk on which `path` is, or will be.
fn free_bytes(path: &Path) -> u64 {
    let path = std::path::absolute(path).unwrap_or_default();
    let found = path
        .ancestors()
        .find_map(|path| rustix::fs::statvfs(path).ok());
    found.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A committed state of the row file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedRows {
    /// Which file: each compaction begins another.
    pub number: u64,
    /// Its committed lengths.
    pub lengths: LogLengths,
    /// Rows in it.
    pub rows: u64,
    /// Links in them.
    pub links: u64,
    /// How many of the rows are superseded.
    pub superseded: u64,
    /// Rows and links from which on a checkpoint looks again how much is superseded.
    pub look_at: u64,
}

/// Why rows were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Somebody asked for none.
    Asked,
    /// They took more bytes than they may.
    TooLarge(u64),
    /// A page had a number that rows have no room for.
    TooManyPages,
}

/// Whether a store has rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// None were kept from the start.
    #[default]
    NotKept,
    /// All of them.
    Kept(CommittedRows),
    /// They were kept until this happened.
    GivenUp(Reason),
}

impl Retention {
    /// The rows, if they are kept.
    pub fn kept(&self) -> Option<&CommittedRows> {
        match self {
            Retention::Kept(kept) => Some(kept),
            _ => None,
        }
    }

    /// For serde.
    pub(crate) fn is_not_kept(&self) -> bool {
        *self == Retention::NotKept
    }

    /// Why there are no rows, for people.
    pub fn why_not(&self) -> String {
        match self {
            Retention::Kept(_) => "they are kept".into(),
            Retention::NotKept => {
                "it was begun with `keep_rows` none, or by an older cashrank".into()
            }
            Retention::GivenUp(reason) => format!("they were dropped: {reason}"),
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Asked => f.write_str("`keep_rows` none"),
            Reason::TooLarge(most) => {
                write!(
                    f,
                    "they would have taken more than {} of disk",
                    human(*most)
                )
            }
            Reason::TooManyPages => f.write_str("page numbers in rows have 32 bits"),
        }
    }
}

/// The manifest's entry about rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowsState {
    pub retention: Retention,
    /// The most bytes that were asked for; `None`: the usual ones.
    pub most: Option<u64>,
    /// Files of before compactions, which a snapshot may still name.
    pub retired: Vec<u64>,
}

/// The error of whatever needs rows of a store that knows `pages` pages: there are none.
pub(super) fn none(dir: &Path, retention: &Retention, pages: u64) -> Error {
    if pages == 0 && *retention == Retention::NotKept {
        return Error::Missing(format!(
            "{}: the store has no pages yet, as no ingest has reached a checkpoint: run the same ingest again",
            dir.display()
        ));
    }
    Error::Missing(format!(
        "{}: the store keeps no rows of links ({}); ingest the inputs into a new store with enough \
         `keep_rows`",
        dir.display(),
        retention.why_not()
    ))
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(ROWS).join(number.to_string())
}

/// The number in the name of a row file, of its index or directory.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let ends = [".index", ".places"];
    let number = ends.iter().find_map(|end| name.strip_suffix(end));
    number.unwrap_or(name).parse().ok()
}

/// Writes the directory of committed rows, if it is time; of a damaged one, returns what was wrong. A full disk, or
/// damaged rows, leave them without a new one: nothing needs it.
pub(super) fn renew_places(
    disk: &dyn Disk,
    dir: &Path,
    kept: &CommittedRows,
    pages: u64,
) -> Result<Option<Error>> {
    let file = read::RowFile::open(disk, dir, *kept)?;
    match directory::renew(disk, &file, pages).map_err(AppendError::from) {
        Ok(damage) => Ok(damage),
        Err(AppendError::Failed(error)) if !matches!(error, Error::Damaged { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Removes a row file, as far as it is there.
pub(super) fn remove(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    let path = path_of(dir, number);
    for path in [path.with_extension("index"), places::path_of(&path), path] {
        match disk.remove(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.map_err(Error::io(&path, "remove"))?,
        }
    }
    Ok(())
}

/// Removes all row files that the manifest does not name.
pub(super) fn remove_others(disk: &dyn Disk, dir: &Path, state: &RowsState) -> Result<()> {
    let folder = dir.join(ROWS);
    let names = match disk.list(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(Error::opening(&folder))?,
    };
    let current = state.retention.kept().map(|kept| kept.number);
    for name in names {
        let named =
            number_of(&name).is_some_and(|n| current == Some(n) || state.retired.contains(&n));
        if !named {
            let path = folder.join(name);
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}
