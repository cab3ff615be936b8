//! The impact of pages outside on the domain (section 6.2 of the paper): which of them lift its ranks most.
//!
//! ```text
//! impact(j) = (o_L[j] / o[j]) g[j]       o: links of page j, o_L: those that lead into the domain, by weight if they have any
//! ```
//!
//! In terms of the random surfer, the probability that they are at page j and take a link into the domain, given that they
//! take a link at all. g is the PageRank of the web; here it is that of F, which is all that is known of it. Pages not
//! fetched have no impact yet: what they may have is what a [`Policy`](super::Policy) estimates.

use super::Matrix;

/// A page outside that links into the domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impact {
    /// The member of the known graph.
    pub member: usize,
    /// Its PageRank, where all pages fetched have 1 together.
    pub importance: f64,
    /// The part of its links that lead into the domain, by weight; above 0, at most 1.
    pub into_domain: f64,
}

impl Impact {
    /// The product of both.
    pub fn value(&self) -> f64 {
        self.importance * self.into_domain
    }
}

/// Pages outside with links into the domain, the one with the greatest impact first; of equal ones the page fetched first.
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
