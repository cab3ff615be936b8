//! The spool of a store, copied into another that has read the same.

use std::io::ErrorKind;
use std::path::Path;

use super::{SPOOL, verify_spool};
use crate::disk::{Disk, recreate};
use crate::store::Progress;
use crate::store::folder::make_dir;
use crate::{Error, Result};

/// Bytes copied at a time.
const PIECE: usize = 1 << 20;

/// Copies the spool of a store, if it has one, durably, and checks that the bytes are there that must be after `progress`.
///
/// # Errors
/// [`Error::Io`]; [`Error::Damaged`].
pub(crate) fn copy_spool(
    disk: &dyn Disk,
    (from, to): (&Path, &Path),
    progress: &Progress,
) -> Result<()> {
    let folder = from.join(SPOOL);
    let names = match disk.list(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => names.map_err(Error::opening(&folder))?,
    };
    let copies = to.join(SPOOL);
    make_dir(disk, &copies)?;
    for name in names {
        copy(disk, &folder.join(&name), &copies.join(&name))?;
    }
    for folder in [&*copies, to] {
        disk.sync_dir(folder).map_err(Error::io(folder, "sync"))?;
    }
    verify_spool(disk, to, progress).map(drop)
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let source = disk.read(from).map_err(Error::opening(from))?;
    let copy = recreate(disk, to).map_err(Error::io(to, "create"))?;
    let size = source.size().map_err(Error::reading(from))?;
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < size {
        let piece = &mut piece[..PIECE.min((size - at) as usize)];
        source.read_at(piece, at).map_err(Error::reading(from))?;
        copy.write_at(piece, at).map_err(Error::io(to, "write"))?;
        at += piece.len() as u64;
    }
    copy.sync().map_err(Error::io(to, "sync"))
}
