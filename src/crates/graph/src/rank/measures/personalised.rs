//! PageRank, and personalised PageRank, in which the virtual page pays chosen nodes only.
//!
//! ```text
//! x = d M x + (1 - d l(x)) t
//! ```
//!
//! with damping d, M the links, each row's parts summing to 1, l(x) the mass on nodes that have links, and t the
//! teleport vector: 1/n everywhere, or the weights given, as a share of their sum. Topic-sensitive PageRank (T.
//! Haveliwala, WWW 2002) has the pages of a topic in t, TrustRank (Z. Gyongyi, H. Garcia-Molina, J. Pedersen,
//! VLDB 2004) pages that are trusted. Both are settled, with the bound proven in [`settle`](crate::rank::settle).

use super::{Accuracy, MeasureSpec, Measured, ScoreKind, Uses, Work};
use crate::Result;
use crate::rank::settle::{BYTES, settle_for};
use crate::rank::{RankOptions, Teleport};

pub(super) const PAGERANK: MeasureSpec = MeasureSpec {
    name: "pagerank",
    about: "PageRank: where a surfer is who follows links, with a proven bound",
    scores: ScoreKind::Share,
    uses: &[Uses::Damping, Uses::Until],
    bytes: |nodes, _, _| nodes * (BYTES + 8),
    compute: |work| settled(&Teleport::default(), work),
};

pub(super) const PERSONALISED: MeasureSpec = MeasureSpec {
    name: "personalised",
    about: "PageRank of surfers who begin at chosen pages: topics, trust; with a proven bound",
    scores: ScoreKind::Share,
    uses: &[Uses::Damping, Uses::Until, Uses::Teleport],
    bytes: |nodes, _, _| nodes * (BYTES + 8 + 8),
    compute: |work| settled(&work.options.teleport, work),
};

pub(super) fn settled(teleport: &Teleport, work: &mut Work<'_>) -> Result<Option<Measured>> {
    let options = work.options;
    let config = options.config()?;
    // The bound includes the rounding of the damping.
    let left = config.bound_for(options.until);
    let settling = RankOptions::until(config.damping_units(), left.unwrap_or(options.until));
    let settled = settle_for(work.rows, &settling, teleport, work.watch)?;
    Ok(settled.map(|settled| {
        let bound = settled.certificate.received_l1.unwrap_or(2.0);
        Measured {
            scores: settled.importance(),
            accuracy: Accuracy::BoundL1(bound + config.damping_bound()),
            reached: settled.effort.reached && left.is_some(),
            sweeps: settled.effort.sweeps,
        }
    }))
}
