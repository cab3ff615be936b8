//! Changes between two snapshots of a store.

use serde::Serialize;

use crate::Result;
use crate::metrics::moved::{Move, MoveOptions, MoveSummary, margin};
use crate::model::{PageId, PageState};
use crate::snapshot::{Snapshot, moved};

/// Pages that moved between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotMovers {
    /// File name of the older snapshot; absent if there is only one.
    pub from: Option<String>,
    /// File name of the newer snapshot.
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
    /// URL or name.
    pub url: String,
    /// Result of the page's fetches so far; absent if the snapshot does not record which pages are gone.
    pub state: Option<PageState>,
    /// Rank in the older snapshot; absent for a page that was not known.
    pub rank_before: Option<u64>,
    /// Rank in the newer snapshot.
    pub rank: Option<u64>,
    /// Smallest and largest rank that the error bound allowed in the older snapshot; absent without a bound and for a
    /// new page.
    pub ranks_before: Option<[u64; 2]>,
    /// Smallest and largest rank that the error bound allows in the newer snapshot; absent without a bound.
    pub ranks: Option<[u64; 2]>,
    /// Importance in the older snapshot.
    pub importance_before: Option<f64>,
    /// Importance in the newer snapshot.
    pub importance: Option<f64>,
    /// True if PageRank itself changed in that direction: the importance changed by more than both bounds allow. Absent
    /// without bounds, and for a new page.
    pub certain: Option<bool>,
    /// True if the rank by PageRank changed in that direction: `ranks_before` and `ranks` do not overlap. Absent if one
    /// of these is.
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
///
/// # Errors
/// A snapshot, or names, are damaged or cannot be read.
pub fn movers(older: &Snapshot, newer: &Snapshot, n: usize) -> Result<Vec<Mover>> {
    let wanted = MoveOptions {
        count: n,
        ..MoveOptions::default()
    };
    Ok(SnapshotMovers::between(older, newer, wanted)?.movers)
}

impl SnapshotMovers {
    /// Compares `older` and `newer`, two snapshots of one store; each list has `wanted.count` pages. Pages that moved
    /// are ordered by the criterion in `wanted`, ties by the change of importance, then by rank. The margin is computed
    /// from the bounds of the two snapshots: that of `wanted` is ignored.
    pub fn between(
        older: &Snapshot,
        newer: &Snapshot,
        wanted: MoveOptions,
    ) -> Result<SnapshotMovers> {
        let margin = margin(older.bound_l1(), newer.bound_l1());
        let found = moved(older, newer, MoveOptions { margin, ..wanted })?;
        let mut both: Vec<Move<PageId>> = found.rose.into_iter().chain(found.fell).collect();
        let size = |page: &Move<PageId>| page.size(wanted.by);
        both.sort_by(|a, b| {
            size(b)
                .total_cmp(&size(a))
                .then(b.change().abs().total_cmp(&a.change().abs()))
                .then(a.right.rank.cmp(&b.right.rank))
                .then(a.page.cmp(&b.page))
        });
        both.truncate(wanted.count);
        let numbers = both.iter().map(|page| page.page);
        let numbers: Vec<PageId> = numbers.chain(found.new.iter().map(|new| new.0)).collect();
        let mut named = newer.named_pages(&numbers)?.into_iter();
        let mut movers = Vec::new();
        for (page, named) in both.iter().zip(named.by_ref()) {
            movers.push(Mover {
                url: named.url.into_owned(),
                state: named.state,
                rank_before: Some(page.left.rank),
                rank: Some(page.right.rank),
                ranks_before: page.left.ranks,
                ranks: page.right.ranks,
                importance_before: Some(page.left.importance),
                importance: Some(page.right.importance),
                certain: page.is_certain(margin),
                rank_certain: page.is_rank_certain(),
            });
        }
        let new = found.new.iter().zip(named).map(|((_, now), named)| Mover {
            url: named.url.into_owned(),
            state: named.state,
            rank: Some(now.rank),
            importance: Some(now.importance),
            ..Mover::default()
        });
        let name = |snapshot: &Snapshot| {
            let name = snapshot.path().file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        Ok(SnapshotMovers {
            from: Some(name(older)),
            to: name(newer),
            summary: Some(found.summary),
            movers,
            new: new.collect(),
        })
    }

    /// Returns the first `n` pages of each list.
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
