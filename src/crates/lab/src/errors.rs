//! Distance of an estimate from exact PageRank: the paper's measures (section 4.2), page by page.
//!
//! X is the estimate and Imp the reference, each normalised over the live pages; a live page that the crawl does not
//! know has X = 0. The error of page j is e_j = |X_j - Imp_j| / Imp_j, in percent. Weighted with importance (which sums
//! to 1) its mean is the sum of |X_j - Imp_j|: the L1 distance.

use cashrank::Result;
use cashrank_graph::graph::Graph;
use cashrank_graph::metrics::kendall::tau_b;
use cashrank_graph::metrics::sum::CompensatedSum;
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};
use serde::{Deserialize, Serialize};

use crate::web::Web;

/// Exact importance of a web's pages at one moment.
pub struct Reference {
    /// Importance by page of the web; 0 for vanished ones. The live pages sum to 1.
    importance: Vec<f64>,
    /// Flags of the live pages of the top tenth (rounded up; of equal ones the first).
    top: Vec<bool>,
    live: u64,
}

/// Errors in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Mean of e_j over all pages (Figure 2).
    #[serde(rename = "error_percent")]
    pub all: f64,
    /// Mean of e_j over the tenth of highest importance (Figure 3).
    #[serde(rename = "error_top_tenth_percent")]
    pub top: f64,
    /// Mean weighted with importance: 100 x the L1 distance.
    #[serde(rename = "error_weighted_percent")]
    pub weighted: f64,
    /// Share of pages whose error is more than twice the mean.
    #[serde(rename = "above_twice_the_mean_percent")]
    pub above_twice: f64,
    /// Share of pairs of pages in the wrong order: (1 - Kendall's tau-b) / 2; 50 if tau is undefined.
    #[serde(rename = "wrong_order_percent")]
    pub ordering: f64,
}

impl Reference {
    /// Computes exact PageRank of the web as it is now. Its remaining error is far below anything that [`Errors`]
    /// report: the bound is 6e-6/n, and no page has less than 0.15/n at damping 0.85.
    ///
    /// Pages that vanished are in the graph, without links. They take nothing from the others except for a part of the
    /// teleports, which normalising over the live pages restores.
    pub fn of(web: &Web, damping: f64) -> Result<Reference> {
        let graph: Graph = web.graph();
        let options = PowerOptions {
            damping,
            residual: 1e-6 / graph.nodes() as f64,
        };
        Ok(Reference::new(web, pagerank(&graph, options)?.scores))
    }

    /// Creates a reference with these importances.
    pub(super) fn new(web: &Web, mut importance: Vec<f64>) -> Reference {
        for (page, value) in (0..).zip(&mut importance) {
            if !web.is_live(page) {
                *value = 0.0;
            }
        }
        let sum = CompensatedSum::of(importance.iter().copied());
        importance.iter_mut().for_each(|value| *value /= sum);
        let mut best = web.live().to_vec();
        let by_rank = |&a: &u32, &b: &u32| {
            let of = |page: u32| importance[page as usize];
            of(b).total_cmp(&of(a)).then(a.cmp(&b))
        };
        best.sort_unstable_by(by_rank);
        best.truncate(best.len().div_ceil(10));
        let mut top = vec![false; importance.len()];
        best.iter().for_each(|&page| top[page as usize] = true);
        Reference {
            importance,
            top,
            live: web.live().len() as u64,
        }
    }

    /// Returns the exact importance by page of the web; 0 for vanished ones.
    pub fn importance(&self) -> &[f64] {
        &self.importance
    }

    /// Computes the errors of an estimate, given by page of the web. Its values for vanished pages are ignored.
    pub fn errors(&self, estimate: &[f64]) -> Errors {
        let pairs = estimate.iter().zip(&self.importance).zip(&self.top);
        let live = pairs.filter(|((_, exact), _)| **exact > 0.0);
        let sum = CompensatedSum::of(live.clone().map(|((x, _), _)| *x));
        // Nothing is known of any live page: all estimates are 0.
        let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
        let (mut all, mut top, mut l1) = (
            CompensatedSum::default(),
            CompensatedSum::default(),
            CompensatedSum::default(),
        );
        let mut errors = Vec::with_capacity(self.live as usize);
        let mut both = Vec::with_capacity(self.live as usize);
        for ((x, &exact), &is_top) in live {
            let off = (x * scale - exact).abs();
            let error = 100.0 * off / exact;
            all.add(error);
            l1.add(off);
            if is_top {
                top.add(error);
            }
            errors.push(error);
            both.push((*x, exact));
        }
        let live = self.live as f64;
        let mean = all.value() / live;
        let above = errors.iter().filter(|&&error| error > 2.0 * mean).count();
        Errors {
            all: mean,
            top: top.value() / self.live.div_ceil(10) as f64,
            weighted: 100.0 * l1.value(),
            above_twice: 100.0 * above as f64 / live,
            ordering: 50.0 * (1.0 - tau_b(both).unwrap_or(0.0)),
        }
    }
}
