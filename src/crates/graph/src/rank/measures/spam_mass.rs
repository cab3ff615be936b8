//! Spam mass: the share of a node's PageRank that does not come from a trusted set (Z. Gyongyi, P. Berkhin, H.
//! Garcia-Molina, J. Pedersen, "Link Spam Detection Based on Mass Estimation", VLDB 2006).
//!
//! Let p be the linear PageRank of the uniform vector v of sum 1, p = d M p + (1 - d) v, and p' that of a vector w,
//! which pays the trusted nodes gamma in total, and others nothing. The relative mass is
//!
//! ```text
//! m = 1 - p'/p        at most 1; near 1: its PageRank comes from untrusted nodes
//! ```
//!
//! Trusted sets are small compared with all good nodes, so the paper takes for gamma the estimated share of good nodes
//! (0.85); trusted nodes themselves then have a negative mass. If gamma is the share of nodes in the set, with equal
//! weights, m is the share itself, from 0 to 1.
//!
//! **Departure from the paper.** Here nodes without links pass all they have to the virtual page, which the paper
//! drops. This only scales the ranking: x = d M x + (1 - d l(x)) t is solved by (1 - d l(x))/(1 - d) times the linear
//! PageRank of t. So both PageRanks are settled with their bounds, and divided by that factor. p > 0 for every node,
//! since v is uniform.

use super::personalised::settled;
use super::{Accuracy, MeasureSpec, Measured, ScoreKind, Uses, Work};
use crate::metrics::sum::CompensatedSum;
use crate::rank::Teleport;
use crate::rank::settle::BYTES;
use crate::rows::Rows;
use crate::{Error, Result};

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "spam-mass",
    about: "the share of its PageRank that does not come from trusted pages",
    scores: ScoreKind::Other,
    uses: &[Uses::Damping, Uses::Until, Uses::Teleport, Uses::Gamma],
    bytes: |nodes, _, _| nodes * (BYTES + 8 + 8 + 8 + 1),
    compute: mass,
};

fn mass(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let options = work.options;
    if !(options.gamma > 0.0 && options.gamma <= 1.0) {
        return Err(Error::Usage(format!(
            "`gamma` is {}: above 0 and at most 1",
            options.gamma
        )));
    }
    let linked = linked(work.rows)?;
    let Some(mut all) = linear(&Teleport::default(), &linked, work)? else {
        return Ok(None);
    };
    let Some(trusted) = linear(&options.teleport, &linked, work)? else {
        return Ok(None);
    };
    for (p, of_trusted) in all.scores.iter_mut().zip(&trusted.scores) {
        *p = 1.0 - options.gamma * of_trusted / *p;
    }
    let bound = |measured: &Measured| measured.accuracy.bound_l1().unwrap_or(2.0);
    Ok(Some(Measured {
        accuracy: Accuracy::BoundsL1 {
            pagerank: bound(&all),
            trusted: bound(&trusted),
        },
        reached: all.reached && trusted.reached,
        sweeps: 1 + all.sweeps + trusted.sweeps,
        scores: all.scores,
    }))
}

fn linked(rows: &dyn Rows) -> Result<Vec<bool>> {
    let mut linked = vec![false; rows.pages() as usize];
    rows.sweep(&mut |row| {
        linked[row.page as usize] = row.degree() > 0;
        Ok(())
    })?;
    Ok(linked)
}

/// Computes the linear PageRank of a teleport vector of sum 1.
fn linear(teleport: &Teleport, linked: &[bool], work: &mut Work<'_>) -> Result<Option<Measured>> {
    let Some(mut measured) = settled(teleport, work)? else {
        return Ok(None);
    };
    let on_linked = measured.scores.iter().zip(linked);
    let on_linked = on_linked.filter(|(_, linked)| **linked);
    let on_linked = CompensatedSum::of(on_linked.map(|(x, _)| *x));
    let damping = work.options.config()?.damping();
    let part = (1.0 - damping) / (1.0 - damping * on_linked);
    measured.scores.iter_mut().for_each(|x| *x *= part);
    Ok(Some(measured))
}
