//! Moves between two sides that are joined by name.
//!
//! Memory: 24 bytes per page and side for the join, and 8 for the ranks.

use super::ranks::ranks;
use super::{MoveCollector, MoveOptions, Standing};
use crate::Result;
use crate::metrics::scores::ScoreRow;
use crate::metrics::{ComparedSide, NameHash, Scores, join};

/// Computes the moves from `left` to `right`, whose L1 errors have these `bounds`, in terms of shares (scores divided
/// by their sum). Ties that nothing else decides are in the order of the names' hashes. Fails like
/// [`compare`](crate::metrics::compare).
pub fn moved_by_name(
    left: Scores,
    right: Scores,
    bounds: [Option<f64>; 2],
    wanted: MoveOptions,
) -> Result<super::Moves<NameHash>> {
    let mut left = ComparedSide::new("left", left)?;
    let mut right = ComparedSide::new("right", right)?;
    left.sort()?;
    right.sort()?;
    let ranks = [Ranks::of(&left, bounds[0]), Ranks::of(&right, bounds[1])];
    let pages = [&left, &right].map(|side| side.rows.len() as u64);
    let mut movers = MoveCollector::new(wanted, pages);
    join(&left.rows, &right.rows, |l, r| {
        let standing = |side: &ComparedSide, ranks: &Ranks, row: &ScoreRow| Standing {
            importance: side.share(Some(row)),
            rank: ranks.of_score(row.score),
            ranks: ranks.bounds(side, row),
        };
        let Some(name) = l.or(r).map(|row| NameHash(row.name)) else {
            return;
        };
        let l = l.map(|row| standing(&left, &ranks[0], row));
        let r = r.map(|row| standing(&right, &ranks[1], row));
        movers.add(name, l, r);
    });
    Ok(movers.finish())
}

/// Scores in descending order, and the bound on the L1 error of their shares.
struct Ranks {
    scores: Vec<f64>,
    bound: Option<f64>,
}

impl Ranks {
    fn of(side: &ComparedSide, bound: Option<f64>) -> Ranks {
        let mut scores: Vec<f64> = side.rows.iter().map(|row| row.score).collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        Ranks { scores, bound }
    }

    /// Returns the range of ranks that the bound permits for a row.
    fn bounds(&self, side: &ComparedSide, row: &ScoreRow) -> Option<[u64; 2]> {
        let above = |limit: f64| {
            let is_above = |&score: &f64| side.share_of(score) > limit;
            Some(self.scores.partition_point(is_above) as u64)
        };
        ranks(side.share(Some(row)), self.bound?, above)
    }

    /// Returns 1 + the number of strictly greater scores.
    fn of_score(&self, score: f64) -> u64 {
        1 + self.scores.partition_point(|&other| other > score) as u64
    }
}
