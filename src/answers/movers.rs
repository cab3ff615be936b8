//! The largest moves between two snapshots of a store.

use serde::Serialize;

use crate::Result;
use crate::metrics::moved::{By, Move, MoveOptions, Standing};
use crate::model::PageId;
use crate::snapshot::{Snapshot, moved};

/// The largest moves between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Movers {
    /// The older one; absent where there is one snapshot only.
    pub from: Option<String>,
    /// The newer one.
    pub to: String,
    /// Those that moved most, by the difference of importance.
    pub movers: Vec<Mover>,
}

/// A page that moved.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mover {
    /// Its URL or name.
    pub url: String,
    /// Rank before; absent for a page that was not known.
    pub rank_before: Option<u64>,
    /// Rank now.
    pub rank: Option<u64>,
    /// Importance before.
    pub importance_before: Option<f64>,
    /// Importance now.
    pub importance: Option<f64>,
}

/// A page, and where it stood in both snapshots.
type Moved = (PageId, Option<Standing>, Option<Standing>);

fn importance(standing: Option<Standing>) -> f64 {
    standing.map_or(0.0, |standing| standing.importance)
}

/// The `n` pages that moved most from `older` to `newer`, two snapshots of one store, by the difference of their importance.
///
/// ```
/// # use cashrank::{Options, Record, Writer, movers};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
/// writer.push(&Record::new("http://a.example/", ["/b", "/c"]))?;
/// let older = writer.publish()?;
/// writer.push(&Record::new("http://a.example/b", ["/c"]))?;
/// let newer = writer.publish()?;
/// let moved = movers(&older, &newer, 1)?;
/// assert_eq!(moved[0].url, "http://a.example/c");
/// assert!(moved[0].importance > moved[0].importance_before);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A snapshot, or names, are damaged or cannot be read.
pub fn movers(older: &Snapshot, newer: &Snapshot, n: usize) -> Result<Vec<Mover>> {
    let wanted = MoveOptions {
        count: n,
        by: By::Change,
        top: u64::MAX,
        margin: None,
        certain_only: false,
    };
    let found = moved(older, newer, wanted)?;
    let both = found.rose.into_iter().chain(found.fell);
    let both = both.map(|Move { page, left, right }| (page, Some(left), Some(right)));
    let new = found.new.into_iter();
    let mut all: Vec<Moved> = both
        .chain(new.map(|(page, right)| (page, None, Some(right))))
        .collect();
    let change = |&(_, left, right): &Moved| (importance(right) - importance(left)).abs();
    all.sort_by(|a, b| change(b).total_cmp(&change(a)).then(a.0.cmp(&b.0)));
    all.truncate(n);
    let pages: Vec<PageId> = all.iter().map(|(page, ..)| *page).collect();
    let named = all.into_iter().zip(newer.names_of(&pages)?);
    let mover = |((_, left, right), url): (Moved, String)| Mover {
        url,
        rank_before: left.map(|standing| standing.rank),
        rank: right.map(|standing| standing.rank),
        importance_before: left.map(|standing| standing.importance),
        importance: right.map(|standing| standing.importance),
    };
    Ok(named.map(mover).collect())
}
