//! The rows that changed since an earlier commit: those that came, and those that they superseded. Pages that were fetched
//! again with the same links are not among them.

use xxhash_rust::xxh3::Xxh3;

use super::read::{KeptRows, RowFile, row_of};
use crate::Result;
use crate::engine::Cells;
use crate::rows::{Bits, Row, RowVisitor, Stop};

/// See the head of the file.
pub(crate) struct Since {
    /// The rows of the earlier commit, and pages known then.
    old: RowFile,
    pages: u64,
    /// Those of them that were superseded since, a bit each.
    gone: Bits,
    /// How many of today's rows lie before the new ones.
    place: u64,
    /// Pages whose links are as they were then, a bit each.
    same: Bits,
    /// Rows that came; links of those that are of pages known then, and of those that they superseded.
    pub rows: u64,
    pub links: u64,
}

impl KeptRows {
    /// Looks for what changed since `old`, when `pages` pages were known. `place` is where its rows end in today's file:
    /// the file's number, and rows. Reads the rows that came and those that they superseded; takes 16 bytes of memory for each
    /// of these.
    ///
    /// # Errors
    ///
    /// The place is not in today's file; those of reading.
    pub(crate) fn since(&self, old: RowFile, pages: u64, place: (u64, u64)) -> Result<Since> {
        let now = &self.file.kept;
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
        let mut since = Since {
            gone: Bits::new(old.kept.rows),
            same: Bits::new(pages),
            old,
            pages,
            place,
            rows,
            links,
        };
        // Where the file is the same, it knows whether any was superseded.
        let old = &since.old;
        if rows > 0 && (number != old.kept.number || now.superseded != old.kept.superseded) {
            let (found, more) = old.mark_last(pages, |page| changed.get(page), &mut since.gone)?;
            since.links += more;
            self.leave_out_same(&mut since, found as usize)?;
        }
        Ok(since)
    }

    /// Leaves out the rows that are as those that they superseded, of which there are so many.
    fn leave_out_same(&self, since: &mut Since, superseded: usize) -> Result<()> {
        let mut before: Cells<[u32; 4]> = Cells::reserve(superseded)?;
        let mut places = before.iter_mut();
        Stop::is_whole(since.old_rows(&mut |row| {
            let place = places.next().ok_or(Stop::Enough)?;
            *place = known_by(&row);
            Ok(())
        }))?;
        before.sort_unstable();
        let (mut same, mut rows, mut links) = (Bits::new(since.pages), 0, 0);
        Stop::is_whole(self.new_rows(since, &mut |row| {
            let is_same = before.binary_search(&known_by(&row)).is_ok();
            if is_same && u64::from(row.page) < since.pages && same.set(row.page.into()) {
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

    /// Calls `visit` with each row that came.
    pub(crate) fn new_rows(&self, since: &Since, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.each_from(since.place, |head, targets, weights| {
            since.unless_same(row_of(head, targets, weights), visit)
        })
    }
}

impl Since {
    /// Calls `visit` with each row that counted then and was superseded.
    pub(crate) fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.old.each_marked(&self.gone, self.pages, &mut |rows| {
            rows.iter()
                .try_for_each(|row| self.unless_same(*row, visit))
        })
    }

    fn unless_same(&self, row: Row<'_>, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        if self.same.get(row.page.into()) {
            Ok(())
        } else {
            visit(row)
        }
    }
}

/// A row's page, and 96 bits of a hash of its links: two lists of links of a page are taken to be the same if these are.
fn known_by(row: &Row<'_>) -> [u32; 4] {
    let mut hash = Xxh3::new();
    hash.update(&row.targets.len().to_le_bytes());
    hash.update(bytemuck::cast_slice(row.targets));
    hash.update(bytemuck::cast_slice(row.weights));
    let hash = hash.digest128();
    let [first, second, third] = [0, 32, 64].map(|from| (hash >> from) as u32);
    [row.page, first, second, third]
}
