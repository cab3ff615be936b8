//! Expiry: a ranking can leave out the links of pages that no fetch has reached for long, as if these pages were only
//! linked to.
//!
//! Ages count back from the latest time at which a page was reached, never from a clock: the same records give the same
//! ranking. Outliers far ahead of all other times are ignored for that: times of at most a tenth of the pages, or of
//! one page of at least three, that follow all earlier times by more than a year ([`FetchTimes::latest_with`]).
//! Otherwise one record with a wrong date would leave out the links of all other pages. The time of a snapshot is the
//! latest accepted one, so everything that counts from it uses the same rule. A page whose fetches have no times never
//! expires. Failed fetches do not reach a page; answers that it had not changed do.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::engine::{FetchTimes, HistoryRow, HistoryView, rows_of_run};
use crate::model::Time;
use crate::rows::{Bits, Rows, Without};
use crate::store::View;

/// Links that a ranking leaves out because their pages were not fetched for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// Maximum age in seconds since a page was last reached.
    pub after: Time,
    /// Time before which expired pages were last reached.
    pub before: Time,
    /// Number of pages whose links are left out.
    pub pages: u64,
    /// Number of pages last reached at times so far ahead that ages do not count back from them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ahead: u64,
}

/// Tells serde to omit the default.
fn is_none(pages: &u64) -> bool {
    *pages == 0
}

/// Pages that expired, with the age and the time limit.
pub(super) struct Expiry {
    after: Time,
    before: Time,
    pages: Bits,
    ahead: u64,
}

impl Expiry {
    /// Finds the pages of a commit that were last reached more than `after` seconds before the latest time. Returns
    /// `None` if no record has a time, so that no page can expire.
    pub fn of(view: &View, after: Time) -> Result<Option<Expiry>> {
        let mut times = FetchTimes::default();
        each_page(view, &mut |_, reached| times.add(reached))?;
        // Without a time at which a page was reached, none can expire.
        let Some((latest, ahead)) = times.latest_with(view.state().time) else {
            return Ok(None);
        };
        let before = latest.saturating_sub(after);
        let mut pages = Bits::new(view.state().totals.pages);
        each_page(view, &mut |page, reached| {
            if reached < before {
                pages.set(page);
            }
        })?;
        Ok(Some(Expiry {
            after,
            before,
            pages,
            ahead,
        }))
    }

    /// Returns the rows without those of expired pages.
    pub fn over<'r>(&'r self, rows: &'r dyn Rows) -> Result<Without<'r>> {
        Without::new(rows, &self.pages)
    }

    /// Describes the links that are left out.
    pub fn found(&self, rows: &Without<'_>) -> Expired {
        Expired {
            after: self.after,
            before: self.before,
            pages: rows.count,
            ahead: self.ahead,
        }
    }
}

/// Calls `take` with each page that was reached at a known time, and the latest such time.
fn each_page(view: &View, take: &mut dyn FnMut(u64, Time)) -> Result<()> {
    let mut rows = rows_of_run(HistoryView::rows(view, 0, 0)?).peekable();
    while let Some(row) = rows.next() {
        let row = row?;
        let mut reached = row.last_fetch;
        let is_same =
            |next: &Result<HistoryRow>| next.as_ref().map_or(true, |next| next.page == row.page);
        while let Some(next) = rows.next_if(is_same) {
            reached = reached.max(next?.last_fetch);
        }
        if let Some(reached) = reached {
            take(row.page, reached);
        }
    }
    Ok(())
}
