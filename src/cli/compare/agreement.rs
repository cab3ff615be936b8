//! Agreement of two rankings within their bounds.

use cashrank_graph::sites::RollUpBy;
use cashrank_store::snapshot::LevelRanking;

use super::side::CompareSide;
use crate::cli::common::rounded_up;

/// Distance of two rankings, and the distance that their bounds allow. A file of scores counts as exact if the other
/// side has a bound.
#[derive(serde::Serialize)]
pub struct Agreement {
    /// True if the distance is within the bounds, so that both may be of the same links; `None` without bounds.
    agree: Option<bool>,
    /// Sum of the bounds on the L1 errors.
    allowed_l1: Option<f64>,
    /// First line of the output for people.
    #[serde(skip)]
    pub line: String,
}

impl Agreement {
    /// Judges two rankings by their L1 distance.
    pub fn of(sides: [&CompareSide; 2], l1: f64) -> Agreement {
        let bound = |side: &CompareSide| match side.ranking().and_then(LevelRanking::roll_up) {
            // Largest importances per site do not sum to 1, so no bound applies.
            Some(RollUpBy::Largest) => None,
            _ => side.bound_l1(),
        };
        let unbounded = sides.into_iter().filter(|side| bound(side).is_none());
        let unbounded: Vec<&CompareSide> = unbounded.collect();
        let is_known = unbounded.len() < 2 && unbounded.iter().all(|side| side.ranking().is_none());
        let allowed = is_known.then(|| sides.into_iter().filter_map(bound).sum());
        let names: Vec<String> = unbounded.iter().map(|side| side.to_string()).collect();
        let names = names.join(" and ");
        let apart = match l1 {
            0.0 => "they are the same".into(),
            l1 => format!("{l1:.1e} apart (L1)"),
        };
        let line = match allowed {
            None => format!("unknown: {apart}; no bound of {names}"),
            Some(allowed) => {
                let answer = if l1 <= allowed { "yes" } else { "no" };
                let provided = match &*names {
                    "" => String::new(),
                    file => format!(", if {file} is exact"),
                };
                let allowed = rounded_up(allowed);
                format!("{answer}{provided}: {apart}, and the bounds allow {allowed}")
            }
        };
        Agreement {
            agree: allowed.map(|allowed| l1 <= allowed),
            allowed_l1: allowed,
            line: format!("agree\t{line}"),
        }
    }
}
