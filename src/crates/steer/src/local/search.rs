//! FindGlobalPR (Algorithm 2): chooses the pages to fetch, round by round.
//!
//! PageRank of the fetched pages is computed by the power method of Algorithm 1:
//!
//! ```text
//! f <- alpha F D^-1 f + (1 - alpha) e/l      until a step moves f by less than delta in L1
//! ```
//!
//! If links have weights, a column of F D^-1 holds each link's part of the column's weight. Only links among members
//! count: one to an unfetched page is left out of F and of the out-degree D. A member without links among members is
//! dangling, its column the uniform vector. Alpha is 0.85 and delta 1e-6 by default (section 6.1). The paper starts at
//! random; here each round starts at the last round's result, or uniformly, so that the same rows give the same bytes;
//! the result is the same to delta/(1 - alpha).

use rand_pcg::Pcg64;

use super::{LocalEstimate, LocalEstimator, LocalGraph, Matrix, Policy, best_by, estimate};
use crate::engine::checked_damping;
use crate::rank::Teleport;
use crate::rank::pagerank::{PowerOptions, Walk};
use crate::{Error, Result};

impl Matrix {
    /// Returns the PageRank of the members, which sums to 1. Starts from earlier ranks of the first members, and an
    /// even share of the others.
    pub fn ranks(&self, power: &PowerOptions, before: &[f64]) -> Vec<f64> {
        let members = self.len();
        let even = 1.0 / members as f64;
        let before = &before[..before.len().min(members)];
        let mut now: Vec<f64> = before
            .iter()
            .map(|rank| rank * before.len() as f64 * even)
            .collect();
        now.resize(members, even);
        let walk = Walk {
            links: &self.inside,
            damping: power.damping,
            teleport: &Teleport::default(),
        };
        walk.settle(now, power.residual).scores
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSearchOptions {
    pub policy: Policy,
    pub estimator: LocalEstimator,
    /// Alpha, and delta as the residual.
    pub power: PowerOptions,
    pub seed: u64,
}

impl Default for LocalSearchOptions {
    fn default() -> LocalSearchOptions {
        LocalSearchOptions {
            policy: Policy::default(),
            estimator: LocalEstimator::default(),
            power: PowerOptions {
                damping: 0.85,
                residual: 1e-6,
            },
            seed: 0,
        }
    }
}

impl LocalSearchOptions {
    pub fn check(&self) -> Result<()> {
        let PowerOptions { damping, residual } = self.power;
        checked_damping(damping)?;
        if residual > 0.0 && residual < 2.0 {
            Ok(())
        } else {
            Err(Error::Usage(format!(
                "threshold {residual}: above 0 and below 2"
            )))
        }
    }

    /// Returns the settings of the power method between rounds.
    fn coarse(&self) -> PowerOptions {
        PowerOptions {
            residual: self.policy.threshold(self.power.residual),
            ..self.power
        }
    }
}

/// Page to fetch, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRequest {
    pub page: u32,
    /// Score by the policy: higher is sooner.
    pub score: f64,
    /// PageRank that links from fetched pages pass to it, where the fetched pages' ranks sum to 1.
    pub flow: f64,
}

/// Search for pages outside a domain that determine its global PageRank. It reads nothing itself: the caller fetches
/// the requested pages and provides their links, from a graph, a crawler or a store.
///
/// ```
/// use cashrank_steer::local::{LocalGraph, LocalSearch, LocalSearchOptions};
///
/// # fn main() -> cashrank_base::Result<()> {
/// let web: [&[u32]; 4] = [&[1, 2], &[0], &[0, 3], &[1]];
/// let mut known = LocalGraph::default();
/// known.fetch(0, web[0].iter().copied())?;
/// known.fetch(1, web[1].iter().copied())?;
/// known.close_domain()?;
/// let mut search = LocalSearch::new(known, LocalSearchOptions::default())?;
/// while let [asked, ..] = search.next(1)[..] {
///     search.known_mut().fetch(asked.page, web[asked.page as usize].iter().copied())?;
///     search.update();
/// }
/// assert_eq!(search.known().fetched(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LocalSearch {
    known: LocalGraph,
    options: LocalSearchOptions,
    draws: Pcg64,
    matrix: Matrix,
    ranks: Vec<f64>,
}

impl LocalSearch {
    /// Begins with a known graph, whose domain is closed. Fails with [`Error::Usage`] if an option is out of range or
    /// the domain is empty.
    pub fn new(known: LocalGraph, options: LocalSearchOptions) -> Result<LocalSearch> {
        options.check()?;
        if known.domain() == 0 {
            return Err(Error::Usage(
                "a search begins when the domain is known: close it first".into(),
            ));
        }
        let matrix = known.matrix();
        let ranks = matrix.ranks(&options.coarse(), &[]);
        Ok(LocalSearch {
            draws: Pcg64::new(u128::from(options.seed), 0),
            known,
            options,
            matrix,
            ranks,
        })
    }

    /// Returns the `count` pages of the frontier to fetch next, best first; fewer if there are no more. Repeated calls
    /// before an [`update`](LocalSearch::update) return the same pages, except with random policies.
    pub fn next(&mut self, count: usize) -> Vec<PageRequest> {
        self.next_by(count, |_| 0)
    }

    /// Returns the pages to fetch next like [`LocalSearch::next`]; among equal scores, those with the smallest `tie`
    /// come first, then those known first.
    pub fn next_by(&mut self, count: usize, tie: impl Fn(u32) -> u64) -> Vec<PageRequest> {
        let LocalSearchOptions { policy, power, .. } = self.options;
        let (matrix, ranks) = (&self.matrix, &self.ranks);
        let scores = policy.scores(matrix, ranks, power.damping, &mut self.draws);
        let places = best_by(&scores, count, |place| tie(matrix.frontier[place as usize]));
        let asked = places.into_iter().map(|place| {
            let place = place as usize;
            let flow = matrix.flow(place, |k, weight| ranks[k] * weight / matrix.out(k));
            PageRequest {
                page: matrix.frontier[place],
                score: scores[place],
                flow: power.damping * flow,
            }
        });
        asked.collect()
    }

    /// Returns the known graph, for adding pages that were fetched, gone or lost. They count from the next
    /// [`update`](LocalSearch::update) on.
    pub fn known_mut(&mut self) -> &mut LocalGraph {
        &mut self.known
    }

    /// Recomputes the ranks of all fetched pages, as exactly as the policy needs them.
    pub fn update(&mut self) {
        self.matrix = self.known.matrix();
        self.ranks = self.matrix.ranks(&self.options.coarse(), &self.ranks);
    }

    pub fn into_known(self) -> LocalGraph {
        self.known
    }

    pub fn known(&self) -> &LocalGraph {
        &self.known
    }

    /// Returns the links as of the last update.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Estimates the domain's global PageRank as of the last update.
    pub fn estimate(&self) -> LocalEstimate {
        self.estimate_by(self.options.estimator)
    }

    pub fn estimate_by(&self, estimator: LocalEstimator) -> LocalEstimate {
        let power = &self.options.power;
        let ranks = self.matrix.ranks(power, &self.ranks);
        estimate::estimate(&self.known, &self.matrix, &ranks, power, estimator)
    }
}
