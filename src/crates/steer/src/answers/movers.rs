//! Changes between two rankings.

use serde::Serialize;

use crate::Result;
use crate::metrics::moved::{Move, MoveOptions, MoveSummary, Moves};
use crate::model::{PageId, PageState};
use crate::snapshot::{Snapshot, moved};

/// Pages that moved between two snapshots of a store.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotMovers {
    /// File name of the older snapshot; absent if there is only one.
    pub from: Option<String>,
    pub to: String,
    /// Counts and sums over all pages; absent if there is only one snapshot.
    #[serde(flatten)]
    pub summary: Option<MoveSummary>,
    /// Pages in both snapshots that moved most, up or down.
    pub movers: Vec<Mover>,
    /// New pages of best rank.
    pub new: Vec<Mover>,
}

/// Page that moved, or is new.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mover {
    /// URL, or the name in a crawl without URLs.
    pub url: String,
    /// Result of the page's fetches so far; absent if the snapshot does not record which pages are gone.
    pub state: Option<PageState>,
    /// Rank in the older snapshot; absent for a page that was not known.
    pub rank_before: Option<u64>,
    /// Rank in the newer snapshot; absent for a page that it lacks.
    pub rank: Option<u64>,
    /// Smallest and largest rank that the error bound allowed in the older snapshot; absent without a bound and for a
    /// page that only one has.
    pub ranks_before: Option<[u64; 2]>,
    /// Smallest and largest rank that the error bound allows in the newer snapshot; absent without a bound and for a page
    /// that only one has.
    pub ranks: Option<[u64; 2]>,
    /// Importance in the older snapshot.
    pub importance_before: Option<f64>,
    /// Importance in the newer snapshot.
    pub importance: Option<f64>,
    /// True if PageRank itself changed in that direction: the importance changed by more than both bounds allow. Absent
    /// without bounds, and for a new page.
    pub certain: Option<bool>,
    /// True if the rank by PageRank changed in that direction: `ranks_before` and `ranks` do not overlap. Absent if one
    /// of the two fields is.
    pub rank_certain: Option<bool>,
}

/// Returns the `n` pages whose importance changed most from `older` to `newer`, two snapshots of one store: up or down,
/// relative to the older importance, among pages that both have and either ranks in its first 1,000. Ties are ordered
/// by the change of importance, then by rank.
///
/// ```
/// # mod cashrank { pub use cashrank_base::model::*; pub use cashrank_store::session::*; pub use cashrank_steer::{answers::*, schedule::*}; }
/// # use cashrank::{Options, Record, Writer, movers};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
/// writer.push(&Record::new("http://a.example/", ["/b", "/c"]))?;
/// let older = writer.publish()?;
/// writer.push(&Record::new("http://a.example/b", ["/c", "/d"]))?;
/// let newer = writer.publish()?;
/// let moved = movers(&older, &newer, 10)?;
/// let fell = moved.iter().find(|page| page.rank > page.rank_before);
/// assert_eq!(fell.map(|page| &*page.url), Some("http://a.example/b"));
/// # Ok(())
/// # }
/// ```
pub fn movers(older: &Snapshot, newer: &Snapshot, n: usize) -> Result<Vec<Mover>> {
    let wanted = MoveOptions {
        count: n,
        ..MoveOptions::default()
    };
    Ok(SnapshotMovers::between(older, newer, wanted)?.movers)
}

impl Mover {
    /// Returns the change of importance, -1 to 1; 0 counts for a ranking that lacks the page.
    pub fn change(&self) -> f64 {
        self.importance.unwrap_or(0.0) - self.importance_before.unwrap_or(0.0)
    }

    /// Converts a move of a page with this name, whose fetches had this result.
    #[doc(hidden)]
    pub fn of<P>(
        page: &Move<P>,
        url: String,
        state: Option<PageState>,
        margin: Option<f64>,
    ) -> Mover {
        let (left, right) = (page.left, page.right);
        let both = left.zip(right);
        Mover {
            url,
            state,
            rank_before: left.map(|side| side.rank),
            rank: right.map(|side| side.rank),
            ranks_before: both.and_then(|(left, _)| left.ranks),
            ranks: both.and_then(|(_, right)| right.ranks),
            importance_before: left.map(|side| side.importance),
            importance: right.map(|side| side.importance),
            certain: page.is_certain(margin),
            rank_certain: page.is_rank_certain(),
        }
    }
}

/// Returns what moved from `older` to `newer`, in which pages have the
/// [`same_numbers`](crate::snapshot::same_numbers), with the names of the pages.
pub fn named_moves(
    older: &Snapshot,
    newer: &Snapshot,
    wanted: MoveOptions,
) -> Result<Moves<Mover>> {
    let found = moved(older, newer, wanted)?;
    let margin = found.summary.margin;
    found.try_map(|pages| {
        // The newer snapshot has all pages of a list, or none.
        let is_known = pages.first().is_none_or(|page| page.right.is_some());
        named(&pages, if is_known { newer } else { older }, margin)
    })
}

/// Names pages by a snapshot, which must have all of them.
fn named(pages: &[Move<PageId>], snapshot: &Snapshot, margin: Option<f64>) -> Result<Vec<Mover>> {
    let numbers: Vec<PageId> = pages.iter().map(|page| page.page).collect();
    let named = pages.iter().zip(snapshot.named_pages(&numbers)?);
    Ok(named
        .map(|(page, named)| Mover::of(page, named.url.into_owned(), named.state, margin))
        .collect())
}

impl SnapshotMovers {
    /// Compares `older` and `newer`, two snapshots of one store; each list has at most `wanted.count` pages. Pages that
    /// moved are ordered by the criterion in `wanted`, ties by the change of importance, then by rank.
    pub fn between(
        older: &Snapshot,
        newer: &Snapshot,
        wanted: MoveOptions,
    ) -> Result<SnapshotMovers> {
        let found = moved(older, newer, wanted)?;
        let mut both: Vec<Move<PageId>> = found.rose.into_iter().chain(found.fell).collect();
        let size = |page: &Move<PageId>| page.size(wanted.by);
        let rank = |page: &Move<PageId>| page.right.map(|side| side.rank);
        both.sort_by(|a, b| {
            size(b)
                .total_cmp(&size(a))
                .then(b.change().abs().total_cmp(&a.change().abs()))
                .then(rank(a).cmp(&rank(b)))
                .then(a.page.cmp(&b.page))
        });
        both.truncate(wanted.count);
        let name = |snapshot: &Snapshot| {
            let name = snapshot.path().file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        Ok(SnapshotMovers {
            from: Some(name(older)),
            to: name(newer),
            movers: named(&both, newer, found.summary.margin)?,
            new: named(&found.new, newer, found.summary.margin)?,
            summary: Some(found.summary),
        })
    }

    pub fn first(&self, n: usize) -> SnapshotMovers {
        let first = |list: &[Mover]| list.iter().take(n).cloned().collect();
        SnapshotMovers {
            from: self.from.clone(),
            to: self.to.clone(),
            summary: self.summary.clone(),
            movers: first(&self.movers),
            new: first(&self.new),
        }
    }
}
