//! Changes between two rankings.

use serde::Serialize;

use crate::Result;
use crate::metrics::moved::{MoveOptions, MoveSummary, Mover};
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

impl SnapshotMovers {
    /// Compares `older` and `newer`, two snapshots of one store; each list has at most `wanted.count` pages. Pages that
    /// moved are ordered by the criterion in `wanted`, ties by the change of importance, then by rank.
    pub fn between(
        older: &Snapshot,
        newer: &Snapshot,
        wanted: MoveOptions,
    ) -> Result<SnapshotMovers> {
        let found = moved(older, newer, wanted)?;
        let mut movers: Vec<Mover> = found.rose.into_iter().chain(found.fell).collect();
        movers.sort_by(|a, b| Mover::by_size(wanted.by, a, b));
        movers.truncate(wanted.count);
        let name = |snapshot: &Snapshot| {
            let name = snapshot.path().file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        Ok(SnapshotMovers {
            from: Some(name(older)),
            to: name(newer),
            movers,
            new: found.new,
            summary: Some(found.summary),
        })
    }
}
