//! Compaction: copies the rows that are not superseded, in order, to a new file.

use std::path::Path;

use super::read::{KeptRows, RowFile};
use super::write::RowWriter;
use super::{CommittedRows, remove};
use crate::Result;
use crate::disk::Disk;
use crate::rows::{Row, Rows};

/// Number of rows and links below which no file is compacted.
const LEAST: u64 = 1 << 10;

/// Returns true if it is time to check how much of the file is superseded.
fn is_due(kept: &CommittedRows) -> bool {
    kept.superseded > 0 && kept.rows + kept.links >= kept.look_at.max(LEAST)
}

/// Compacts a synced file if at least half of its rows and links are superseded: returns the synced writer of a new
/// file with the others, which the next commit may name. Otherwise schedules the next check for when the live part has
/// doubled, but not before the file has grown by a quarter, so that checks cost little in total. `places` are positions
/// in the old file, its number and rows before them, and are updated to the new file.
///
/// If there is no room for the new file, the old one is unchanged.
pub fn compact<'p>(
    disk: &dyn Disk,
    dir: &Path,
    old: &mut RowWriter,
    pages: u64,
    places: impl Iterator<Item = &'p mut (u64, u64)>,
) -> Result<Option<RowWriter>> {
    let kept = *old.kept();
    if !is_due(&kept) {
        return Ok(None);
    }
    let rows = KeptRows::of(RowFile::open(disk, dir, kept)?, pages)?;
    let (all, live) = (kept.rows + kept.links, rows.rows() + rows.links());
    if 2 * live > all {
        old.look_at((2 * live).max(all + all / 4));
        return Ok(None);
    }
    let number = kept.number + 1;
    let written = write(disk, dir, &rows, number, old.most());
    let new = match written {
        Ok(new) if new.misfit().is_none() => new,
        failed => {
            remove(disk, dir, number)?;
            old.look_at(all + all / 4);
            return match failed {
                Err(error) if !error.is_full() => Err(error),
                _ => Ok(None),
            };
        }
    };
    // A position after a row of the old file is now after the live rows before it.
    for (at, rows_before) in places.filter(|(at, _)| *at == kept.number) {
        *at = number;
        *rows_before = rows.live_before(*rows_before);
    }
    Ok(Some(new))
}

fn write(
    disk: &dyn Disk,
    dir: &Path,
    rows: &KeptRows,
    number: u64,
    most: u64,
) -> Result<RowWriter> {
    let mut new = RowWriter::create(disk, dir, number, most)?;
    let is_live = |at, _: &Row<'_>| rows.counts(at);
    rows.each_from(0, is_live, |some| {
        some.iter().try_for_each(|row| new.copy(row))
    })?;
    new.look_at(2 * (rows.rows() + rows.links()));
    new.sync(disk, dir)?;
    Ok(new)
}
