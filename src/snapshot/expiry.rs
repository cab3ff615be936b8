//! Pages that no fetch reached for long: a ranking may leave out their links, as if they were only linked to.
//!
//! Ages count back from the latest time of a record, never from a clock: the same records give the same ranking. A
//! page whose fetches have no times is never too old. Failed fetches reach no page; answers that it had not changed do.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::engine::{HistoryView, Row as HistoryRow, rows_of_run};
use crate::model::Time;
use crate::rows::{Bits, Rows, Without};
use crate::store::View;

/// Links that a ranking leaves out because their pages were not fetched for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// Pages not reached for longer than so many seconds.
    pub after: Time,
    /// That is, last reached before this time.
    pub before: Time,
    /// Pages whose links are left out.
    pub pages: u64,
}

/// The pages that are too old, and since when.
pub(super) struct Expiry {
    after: Time,
    before: Time,
    pages: Bits,
}

impl Expiry {
    /// Of a commit, with pages last reached more than `after` seconds before its latest record. `None`: no record has a time,
    /// so no page is known to be old.
    ///
    /// # Errors
    ///
    /// Those of reading the history.
    pub fn of(view: &View, after: Time) -> Result<Option<Expiry>> {
        let Some(latest) = view.state().time else {
            return Ok(None);
        };
        let before = latest.saturating_sub(after);
        let mut pages = Bits::new(view.state().totals.pages);
        let mut rows = rows_of_run(HistoryView::rows(view, 0, 0)?).peekable();
        while let Some(row) = rows.next() {
            let row = row?;
            let mut reached = row.last_fetch;
            let is_same = |next: &Result<HistoryRow>| {
                next.as_ref().map_or(true, |next| next.page == row.page)
            };
            while let Some(next) = rows.next_if(is_same) {
                reached = reached.max(next?.last_fetch);
            }
            if reached.is_some_and(|reached| reached < before) {
                pages.set(row.page);
            }
        }
        Ok(Some(Expiry {
            after,
            before,
            pages,
        }))
    }

    /// The rows of the others.
    pub fn over<'r>(&'r self, rows: &'r dyn Rows) -> Result<Without<'r>> {
        Without::new(rows, &self.pages)
    }

    /// The pages whose rows are left out.
    pub fn found(&self, rows: &Without<'_>) -> Expired {
        Expired {
            after: self.after,
            before: self.before,
            pages: rows.count,
        }
    }
}
