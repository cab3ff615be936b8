//! Impact of pages outside on the domain (section 6.2 of the paper): which of them raise its ranks most.
//!
//! ```text
//! impact(j) = (o_L[j] / o[j]) g[j]       o: links of page j, o_L: those that lead into the domain, by weight if they have any
//! ```
//!
//! In terms of the random surfer, the probability of being at page j and following a link into the domain, given that a
//! link is followed. g is the PageRank of the web, approximated here by that of F. Unfetched pages have no impact yet:
//! a [`Policy`](super::Policy) estimates what they may have.

use super::Matrix;

/// Page outside that links into the domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impact {
    /// Member of the known graph.
    pub member: usize,
    /// PageRank, where the fetched pages' ranks sum to 1.
    pub importance: f64,
    /// Part of its links that lead into the domain, by weight; above 0, at most 1.
    pub into_domain: f64,
}

impl Impact {
    /// Returns the product of both.
    pub fn value(&self) -> f64 {
        self.importance * self.into_domain
    }
}

/// Returns the pages outside with links into the domain, by descending impact; ties by who was fetched first.
pub(super) fn impacts(matrix: &Matrix, ranks: &[f64]) -> Vec<Impact> {
    let outside = ranks.iter().enumerate().skip(matrix.domain);
    let impacts = outside.filter_map(|(member, &importance)| {
        let mut into = 0.0;
        matrix.inside.at(member).each(|target, weight| {
            if (target as usize) < matrix.domain {
                into += weight;
            }
        });
        (into > 0.0).then(|| Impact {
            member,
            importance,
            into_domain: (into / matrix.out(member)).min(1.0),
        })
    });
    let mut impacts: Vec<Impact> = impacts.collect();
    impacts.sort_by(|a, b| b.value().total_cmp(&a.value()));
    impacts
}
