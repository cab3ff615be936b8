//! Difference between the rows of two commits: new rows, and those that they superseded. Pages that were fetched again
//! with the same links are left out.

use xxhash_rust::xxh3::Xxh3;

use super::read::{KeptRows, RowFile};
use crate::Result;
use crate::engine::Cells;
use crate::rows::{Bits, Row, RowVisitor, Stop};

pub struct RowsDiff {
    old: RowFile,
    /// Bitmap of the old rows that were superseded since.
    gone: Bits,
    /// Number of current rows before the new ones.
    place: u64,
    /// Bitmap of the pages whose links did not change.
    same: Bits,
    /// Number of new rows; number of links in those of old pages and in the rows that they superseded.
    pub rows: u64,
    pub links: u64,
}

impl KeptRows {
    /// Finds what changed since `old`. `place` is the end of the old rows in the current file: number of the file, and
    /// rows; it is an error if the file does not have that position. Reads the new rows and those that they superseded,
    /// and takes 16 bytes of memory for each.
    pub fn since(&self, old: RowFile, place: (u64, u64)) -> Result<RowsDiff> {
        let (now, pages) = (&self.file.kept, old.pages);
        let (number, place) = place;
        if number != now.number || place > now.rows {
            let what = format!("it does not have the first {place} rows of file {number}");
            return Err(self.file.damaged(what));
        }
        let mut changed = Bits::new(pages);
        let (mut rows, mut links) = (0, 0);
        self.file.back_over(place..now.rows, |_, head| {
            let page = u64::from(head.page);
            if page >= pages {
                rows += 1;
            } else if changed.set(page) {
                rows += 1;
                links += u64::from(head.links);
            }
            Ok(())
        })?;
        let mut since = RowsDiff {
            gone: Bits::new(old.kept.rows),
            same: Bits::new(pages),
            old,
            place,
            rows,
            links,
        };
        // If the file is the same, its count of superseded rows tells whether any was.
        let old = &since.old;
        if rows > 0 && (number != old.kept.number || now.superseded != old.kept.superseded) {
            let (found, more) = old.mark_last(|page| changed.get(page), &mut since.gone)?;
            since.links += more;
            self.leave_out_same(&mut since, found as usize)?;
        }
        Ok(since)
    }

    /// Leaves out rows equal to those that they superseded, which are `superseded` in number.
    fn leave_out_same(&self, since: &mut RowsDiff, superseded: usize) -> Result<()> {
        let mut before: Cells<[u32; 4]> = Cells::reserve(superseded)?;
        let mut places = before.iter_mut();
        Stop::is_whole(since.old_rows(&mut |row| {
            let place = places.next().ok_or(Stop::Enough)?;
            *place = known_by(&row);
            Ok(())
        }))?;
        before.sort_unstable();
        let (mut same, mut rows, mut links) = (Bits::new(since.old.pages), 0, 0);
        Stop::is_whole(self.new_rows(since, &mut |row| {
            let is_same = before.binary_search(&known_by(&row)).is_ok();
            if is_same && u64::from(row.page) < since.old.pages && same.set(row.page.into()) {
                rows += 1;
                links += 2 * row.targets.len() as u64;
            }
            Ok(())
        }))?;
        since.same = same;
        since.rows = since.rows.saturating_sub(rows);
        since.links = since.links.saturating_sub(links);
        Ok(())
    }

    pub fn new_rows(&self, since: &RowsDiff, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let is_live = |at, _: &Row<'_>| self.counts(at);
        self.each_from(since.place, is_live, |rows| since.unless_same(rows, visit))
    }
}

impl RowsDiff {
    /// Calls `visit` with each old row that was superseded.
    pub fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let mut visit = |rows: &[Row<'_>]| self.unless_same(rows, visit);
        self.old.each_marked(&self.gone, &mut visit)
    }

    fn unless_same(&self, rows: &[Row<'_>], visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let mut others = rows.iter().filter(|row| !self.same.get(row.page.into()));
        others.try_for_each(|row| visit(*row))
    }
}

/// Returns a row's page and 96 bits of a hash of its links; equal values are taken as equal links.
fn known_by(row: &Row<'_>) -> [u32; 4] {
    let mut hash = Xxh3::new();
    hash.update(&row.targets.len().to_le_bytes());
    hash.update(bytemuck::cast_slice(row.targets));
    hash.update(bytemuck::cast_slice(row.weights));
    let hash = hash.digest128();
    let [first, second, third] = [0, 32, 64].map(|from| (hash >> from) as u32);
    [row.page, first, second, third]
}
