//! Global PageRank of a local domain (J. V. Davis, I. S. Dhillon: Estimating the global PageRank of web communities,
//! KDD 2006).
//!
//! A crawl of one site, some hosts or a topic gives wrong ranks, since importance also flows in from pages that were
//! not crawled. This module chooses a few pages outside to fetch, and estimates the domain's PageRank in the whole web,
//! which is partitioned (equation 2)
//!
//! ```text
//! G = [ L     G_out    ]     L: links within the domain, n pages
//!     [ L_out G_within ]     L_out: from the domain to pages outside, which are not fetched: the frontier
//! ```
//!
//! and p* = E_L g / ||E_L g||_1 is sought, the PageRank g of G on the domain (section 4). [`LocalSearch`] is
//! FindGlobalPR (Algorithm 2): F begins as L; in each of T rounds a [`Policy`] chooses k pages of the frontier, they
//! are fetched and join F, and the PageRank f of F is recomputed by the power method; at the end `estimate` restricts it
//! to the domain. With k T = n or 2n pages outside the distance to p* falls to a fraction. When no page is left to
//! fetch, F is everything reachable, and if that is the web, f is g.
//!
//! All is sparse: [`LocalGraph`] and [`Matrix`] hold the rows of fetched pages, and each round takes time and memory
//! proportional to them, whatever the size of the web.
//!
//! **Departures.** Self-links and repeats are dropped (as in the paper, section 5.1). The policy, the estimate and the
//! power method document their additions; [`Policy::Share`] and [`LocalEstimator::Extrapolated`] are ours. Links may
//! have weights, and pages that are gone or cannot be fetched count as pages without links, as in all rankings of this
//! library.

mod estimate;
mod known;
mod search;
mod select;
#[cfg(test)]
mod tests;

pub use estimate::{LocalEstimate, LocalEstimator, estimate};
pub use known::{LocalGraph, Matrix, Size};
pub use search::{LocalSearch, LocalSearchOptions, PageRequest};
pub use select::{Policy, best_by};
