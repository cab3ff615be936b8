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
//!
//! **Spam mass**: the share of a node's PageRank that does not come from a trusted set (Z. Gyongyi, P. Berkhin, H.
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
//! (0.85); trusted nodes themselves then have a negative mass. Departure from the paper: here nodes without links pass all
//! they have to the virtual page, which the paper drops. This only scales the ranking: x = d M x + (1 - d l(x)) t is
//! solved by (1 - d l(x))/(1 - d) times the linear PageRank of t. So both PageRanks are settled with their bounds, and
//! divided by that factor. p > 0 for every node, since v is uniform.

use super::{Accuracy, Measured, Work};
use crate::metrics::sum::CompensatedSum;
use crate::rank::settle::settle_for;
use crate::rank::{RankOptions, Teleport};
use crate::rows::Rows;
use crate::{Error, Result};

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

pub(super) fn spam_mass(work: &mut Work<'_>) -> Result<Option<Measured>> {
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
