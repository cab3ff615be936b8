//! Exact PageRank of a graph in memory, by power iteration, with a proven bound on the error.
//!
//! The fixpoint `pi` is the engine's: damping d as [`damping_units`] has it, teleports and
//! the mass of dangling nodes spread uniformly. With l(x) the mass on nodes that have links,
//!
//! ```text
//! F(x)_j = (1 - d l(x)) / n  +  sum over links i -> j of  d x_i / out(i)
//! ```
//!
//! For x that sums to 1 this is the usual map; it makes F(x) sum to 1 for every x, so that
//! rounding does not add up over the iterations. Where links have weights, `1/out(i)` is the link's part of its
//! row's weight.
//!
//! **The lazy iteration** (Abiteboul, Preda, Cobena, WWW 2003, section 1: L + I) takes half a step,
//! G(x) = (F(x) + x)/2. Its fixpoint is the same. Where links go round in cycles, or between two groups of
//! pages, F turns what is left of the error round, and only damping shrinks it: by d a step, which for d near 1
//! is next to nothing. An eigenvalue z of F is (1 + z)/2 of G, so between two groups G halves at least, and in a
//! ring of n it shrinks by cos(pi/n). Where the error does not turn it is slower: d becomes (1 + d)/2, about twice
//! as many steps; so it does in long rings. In formulas both are one, with k = 0 or 1/2 the part that a page
//! keeps; again it sums to 1 for every x:
//!
//! ```text
//! (1 - k) F(x) + k x   computed as   k x_j  +  (1 - k sum(x) - (1 - k) d l(x)) / n  +  sum of  (1 - k) d x_i / out(i)
//! ```
//!
//! Damping 1 is refused. F is then no contraction: a graph may have many fixpoints (one for each group of pages that no
//! link leaves), and no distance between steps bounds the distance from any. The largest damping is 1 - 2^-32.
//!
//! **Bound.** Let y be the computed step from x, r = ||y - x||_1, and rho >= its rounding in L1. With M the
//! stochastic matrix, c = k + (1 - k) d and s = sum(x) - 1, the exact step less pi is (k I + (1 - k) d M)(x - pi) less
//! c s/n everywhere, and |s| <= rho since x was computed like y. So ||y - pi|| <= rho + c ||x - pi|| + c rho, and with
//! ||x - pi|| <= r + ||y - pi||:
//!
//! ```text
//! ||y - pi||_1 <= (c r + (1 + c) rho) / (1 - c)
//! ```
//!
//! Without rounding that is, for k = 0, the well-known d/(1 - d) times the last difference; for k = 1/2 it is
//! (1 + d)/(1 - d) times that, and the difference is half of the residual ||F(x) - x||, so both
//! say nearly the same of the same residual. Node j's entry is a sum of at most in(j) + 2 non-negative terms, a share has two
//! roundings, the error of the term in 1/n is at most 6u/n (u = 2^-53), halving is exact: one step's rounding is at most
//! u (sum of in(j) y_j + 9), terms of order u^2 apart. For x in place of y it is at most u n r more, since in(j) <= n.
//! Another 7 u pays for the rounding of r, and 3 u for those of the parts of links that have weights. Where the virtual
//! page pays nodes by weights ([`Teleport`]), their parts are in the place of 1/n, and u more pays for their rounding.
//!
//! Sums over all nodes are compensated and everything runs in node order on one thread: the same graph gives
//! the same bits. Memory: the graph and two `f64` a node.

use super::{Computed, RankingSpec, Teleport};
use crate::Result;
use crate::engine::damping_units;
use crate::graph::{Graph, Table, Weight};
use crate::metrics::sum::Sum;

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// 0 <= damping < 1; used as [`damping_units`] has it.
    pub damping: f64,
    /// Stop once a step moves the vector by at most this much in L1. Positive.
    pub residual: f64,
    /// Half steps: for damping near 1 where links go round in short cycles. The result is the same.
    pub lazy: bool,
}

impl Options {
    /// The multiple of 2^-32 that is used for the damping asked for.
    pub fn damping_used(&self) -> f64 {
        damping_units(self.damping) as f64 / 2f64.powi(32)
    }
}

impl Default for Options {
    /// Damping 0.85, residual 1e-12, whole steps.
    fn default() -> Self {
        Options {
            damping: 0.85,
            residual: 1e-12,
            lazy: false,
        }
    }
}

/// The result of [`pagerank`].
#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    /// Importance by node; sums to 1.
    pub scores: Vec<f64>,
    /// Iterations made, each one pass over the links.
    pub iterations: u64,
    /// How far the last step would have moved the vector in L1, had it been a whole one: the distance
    /// between the last two vectors, or twice that of a half step.
    pub residual: f64,
    /// Proven bound on the L1 distance of `scores` from the exact PageRank, rounding included.
    pub bound: f64,
    /// Whether the residual asked for was reached. If not, it is below what 64-bit numbers resolve.
    pub converged: bool,
}

pub(super) const RANKING: RankingSpec = RankingSpec {
    name: "exact",
    about: "by power iteration on a graph in memory, with a proven bound",
    bytes: |pages, links| pages * (8 + 16 + 8) + links * 12,
    compute: |rows, options, teleport, _| {
        let in_memory = rows.in_memory().and_then(|rows| rows.downcast_ref());
        let read = match in_memory {
            None => Some(Graph::of_rows(rows, true, None)?),
            Some(_) => None,
        };
        let Some(graph) = in_memory.or(read.as_ref()) else {
            return Ok(None);
        };
        let damping = options.damping();
        // The bound is d/(1 - d) times the residual, and rounding.
        let residual = 0.99 * options.until * (1.0 - damping) / damping.max(0.5);
        let steps = Options {
            damping,
            residual: options.residual.unwrap_or(residual),
            lazy: options.lazy,
        };
        let result = pagerank_for(graph, steps, teleport)?;
        let sweeps = result.iterations;
        let mut computed = Computed::new(result.scores, rows, options, sweeps, result.residual);
        computed.certificate.received_l1 = (result.bound < 2.0).then_some(result.bound);
        computed.effort.reached &= options.residual.is_some() || result.bound <= options.until;
        Ok(Some(Box::new(computed)))
    },
};

/// Computes PageRank from a uniform start. See the module's head.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for options out of range.
pub fn pagerank(graph: &Graph, options: Options) -> Result<PageRank> {
    pagerank_for(graph, options, &Teleport::default())
}

/// The same, with a virtual page that pays some nodes more than others: personalised PageRank.
///
/// # Errors
/// As [`pagerank`]; [`Error::Usage`](crate::Error::Usage) if `teleport` has not a weight for each node.
pub fn pagerank_for(graph: &Graph, options: Options, teleport: &Teleport) -> Result<PageRank> {
    teleport.check(graph.nodes() as u64)?;
    let walk = Walk {
        links: graph,
        damping: check(options)?,
        kept: if options.lazy { 0.5 } else { 0.0 },
        teleport,
    };
    let mut result = walk.settle(
        teleport.shares(1.0, graph.nodes()).collect(),
        options.residual,
    );
    if graph.nodes() > 0 {
        result.bound = walk.bound(&result);
    }
    Ok(result)
}

/// Hands `each` the vectors after 1, 2, ... `iterations` steps from a uniform start: what the off-line
/// algorithm knows after reading the graph so many times.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) if damping is out of range.
pub fn iterate(
    graph: &Graph,
    damping: f64,
    iterations: u64,
    mut each: impl FnMut(&[f64]),
) -> Result<()> {
    let damping = check(Options {
        damping,
        ..Options::default()
    })?;
    let walk = Walk {
        links: graph,
        damping,
        kept: 0.0,
        teleport: &Teleport::default(),
    };
    let n = graph.nodes();
    let mut now = vec![1.0 / n as f64; n];
    let mut next = vec![0.0; n];
    for _ in 0..iterations {
        walk.step(&now, &mut next);
        std::mem::swap(&mut now, &mut next);
        each(&now);
    }
    Ok(())
}

/// The damping to use.
fn check(options: Options) -> Result<f64> {
    Ok(super::Options::residual(options.damping, options.residual)?.damping())
}

/// Iterations after which only rounding can keep the residual above `residual`: the first
/// is at most 2, and each is at most `contraction` times the one before. Twice that, for good measure.
fn iteration_limit(contraction: f64, residual: f64) -> u64 {
    if contraction == 0.0 || residual >= 2.0 {
        return 2;
    }
    let needed = (residual / 2.0).ln() / contraction.ln();
    (2.0 * needed).ceil() as u64 + 2
}

/// The damped walk over links, whatever they weigh, which the power method takes steps of.
pub(crate) struct Walk<'a, W> {
    pub links: &'a Table<W>,
    /// d
    pub damping: f64,
    /// k: 0 or 1/2.
    pub kept: f64,
    pub teleport: &'a Teleport,
}

impl<W: Weight> Walk<'_, W> {
    /// By how much a step shrinks the distance of two vectors, at least.
    fn contraction(&self) -> f64 {
        self.kept + (1.0 - self.kept) * self.damping
    }

    /// Takes steps until one moves the vector by at most `residual` in L1, or by no more than rounding does. The bound
    /// is left out.
    pub fn settle(&self, start: Vec<f64>, residual: f64) -> PageRank {
        let mut result = PageRank {
            iterations: 0,
            residual: 0.0,
            bound: 0.0,
            converged: true,
            scores: start,
        };
        if result.scores.is_empty() {
            return result;
        }
        let limit = iteration_limit(self.contraction(), residual);
        let mut next = vec![0.0; result.scores.len()];
        loop {
            self.step(&result.scores, &mut next);
            result.residual = distance(&result.scores, &next) / (1.0 - self.kept);
            std::mem::swap(&mut result.scores, &mut next);
            result.iterations += 1;
            result.converged = result.residual <= residual;
            if result.converged || result.iterations >= limit {
                return result;
            }
        }
    }

    /// `next` = (1 - k) F(`now`) + k `now`.
    fn step(&self, now: &[f64], next: &mut [f64]) {
        let handed = (1.0 - self.kept) * self.damping;
        let linked = self
            .links
            .rows()
            .zip(now)
            .filter(|(row, _)| !row.is_empty());
        let linked: Sum = linked.map(|(_, &x)| x).collect();
        let mut paid = 1.0 - handed * linked.value();
        if self.kept > 0.0 {
            let all: Sum = now.iter().copied().collect();
            paid = 1.0 - self.kept * all.value() - handed * linked.value();
        }
        if self.teleport.is_uniform() {
            next.fill(paid / now.len() as f64);
        } else {
            let shares = self.teleport.shares(paid, now.len());
            next.iter_mut()
                .zip(shares)
                .for_each(|(next, share)| *next = share);
        }
        if self.kept > 0.0 {
            let pairs = next.iter_mut().zip(now);
            pairs.for_each(|(next, &x)| *next += self.kept * x);
        }
        if !self.links.is_weighted() {
            let rows = self.links.rows().zip(now);
            for (row, &x) in rows.filter(|(row, _)| !row.is_empty()) {
                let share = handed * x / row.len() as f64;
                for &target in row {
                    next[target as usize] += share;
                }
            }
            return;
        }
        for (row, &x) in self.links.all().zip(now) {
            let all = row.weight();
            for (&target, weight) in row.targets.iter().zip(row.weights) {
                next[target as usize] += handed * x * (weight.value() / all);
            }
        }
    }

    /// What is proven of the last vector.
    fn bound(&self, result: &PageRank) -> f64 {
        let contraction = self.contraction();
        let difference = result.residual * (1.0 - self.kept);
        let rho = self.rounding(&result.scores, difference);
        let bound = contraction * difference + (1.0 + contraction) * rho;
        (bound / (1.0 - contraction)).min(2.0)
    }

    /// Bound on one step's rounding in L1, for the last vector and the one before.
    fn rounding(&self, scores: &[f64], difference: f64) -> f64 {
        let by_links = self.links.targets().iter().map(|&t| scores[t as usize]);
        let by_links = by_links.collect::<Sum>().value();
        let unit = f64::EPSILON / 2.0;
        let terms = if self.teleport.is_uniform() {
            19.0
        } else {
            20.0
        };
        // A hundredth covers what is of order u^2, and the roundings of this sum itself.
        1.01 * unit * (by_links + terms + scores.len() as f64 * difference)
    }
}

/// ||a - b||_1.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let terms = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    terms.collect::<Sum>().value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::model::SelfLinks;
    use proptest::prelude::*;

    /// 0.85 as used: floor(0.85 x 2^32) = 3,650,722,201.
    const D: f64 = 3_650_722_201.0 / 4_294_967_296.0;

    fn graph(nodes: usize, links: &[(u32, u32)], self_links: SelfLinks) -> Graph {
        let mut builder = GraphBuilder::new(self_links);
        builder.grow(nodes);
        for source in 0..nodes as u32 {
            let row = links.iter().filter(|(from, _)| *from == source);
            builder.row(source, row.map(|&(_, to)| to));
        }
        builder.build()
    }

    /// Holds the results to the expected vector (scaled to sum 1), within the bound they claim.
    fn check_scores(graph: &Graph, expected: &[f64]) {
        for lazy in [false, true] {
            check_steps(graph, expected, lazy);
        }
    }

    fn check_steps(graph: &Graph, expected: &[f64], lazy: bool) {
        let options = Options {
            residual: 1e-14,
            lazy,
            ..Options::default()
        };
        let result = pagerank(graph, options).unwrap();
        assert!(result.converged && result.bound < 1e-12, "{result:?}");
        let sum: f64 = expected.iter().sum();
        let expected: Vec<f64> = expected.iter().map(|x| x / sum).collect();
        let error = distance(&result.scores, &expected);
        assert!(
            error <= result.bound + 1e-15,
            "{error:e} > {:e}",
            result.bound
        );
    }

    #[test]
    fn cycle_is_uniform() {
        let links: Vec<_> = (0..7).map(|i| (i, (i + 1) % 7)).collect();
        check_scores(&graph(7, &links, SelfLinks::Drop), &[1.0; 7]);
    }

    #[test]
    fn two_cycles_are_uniform() {
        let links = [(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)];
        check_scores(&graph(5, &links, SelfLinks::Drop), &[1.0; 5]);
    }

    #[test]
    fn all_dangling_is_uniform() {
        check_scores(&graph(5, &[], SelfLinks::Drop), &[1.0; 5]);
    }

    /// k leaves link to a dangling hub. A leaf has b = (1 - d + d h)/n, the hub h = b + d k b:
    /// 1 to 1 + d k.
    #[test]
    fn star_with_dangling_hub() {
        let links: Vec<_> = (1..=9).map(|leaf| (leaf, 0)).collect();
        let mut expected = [1.0; 10];
        expected[0] = 1.0 + 9.0 * D;
        check_scores(&graph(10, &links, SelfLinks::Drop), &expected);
    }

    /// Leaves and hub link to each other. With t = (1 - d)/n: l = t + d h/k, h = t + d k l, so
    /// h = t (1 + d k)/(1 - d^2).
    #[test]
    fn star_both_ways() {
        let links: Vec<_> = (1..=9).flat_map(|leaf| [(leaf, 0), (0, leaf)]).collect();
        let t = (1.0 - D) / 10.0;
        let hub = t * (1.0 + 9.0 * D) / (1.0 - D * D);
        let mut expected = [t + D * hub / 9.0; 10];
        expected[0] = hub;
        check_scores(&graph(10, &links, SelfLinks::Drop), &expected);
    }

    /// A clique of m; node 0 also links to m, m to m + 1, which is dangling. In units of what every
    /// node gets anyway: the clique's others c = 1 + d a/m + d c (m-2)/(m-1), node 0 a = 1 + d c, the tail
    /// t = 1 + d a/m, its end u = 1 + d t. Hence c (1 - d^2/m - d (m-2)/(m-1)) = 1 + d/m.
    #[test]
    fn clique_with_a_tail() {
        let m = 6u32;
        let mut links: Vec<_> = (0..m).flat_map(|i| (0..m).map(move |j| (i, j))).collect();
        links.extend([(0, m), (m, m + 1)]);
        let k = f64::from(m);
        let c = (1.0 + D / k) / (1.0 - D * D / k - D * (k - 2.0) / (k - 1.0));
        let a = 1.0 + D * c;
        let t = 1.0 + D * a / k;
        let mut expected = vec![c; m as usize + 2];
        expected[0] = a;
        expected[m as usize] = t;
        expected[m as usize + 1] = 1.0 + D * t;
        check_scores(&graph(m as usize + 2, &links, SelfLinks::Drop), &expected);
    }

    /// 1 links to 0, 0 to itself. Kept: 1 has (1 - d)/2, 0 the rest. Dropped: 0 is dangling, and this
    /// is the star of one leaf.
    #[test]
    fn self_links_kept_and_dropped() {
        let links = [(1, 0), (0, 0)];
        let low = (1.0 - D) / 2.0;
        check_scores(&graph(2, &links, SelfLinks::Keep), &[1.0 - low, low]);
        check_scores(&graph(2, &links, SelfLinks::Drop), &[1.0 + D, 1.0]);
    }

    #[test]
    fn edges_of_the_options() {
        let cycle = graph(3, &[(0, 1), (1, 0)], SelfLinks::Drop);
        let run = |damping, residual| {
            let options = |lazy| Options {
                damping,
                residual,
                lazy,
            };
            let lazy = pagerank(&cycle, options(true));
            let plain = pagerank(&cycle, options(false));
            assert_eq!(lazy.is_err(), plain.is_err());
            plain
        };
        for (damping, residual) in [
            (1.0, 0.1),
            (-0.1, 0.1),
            (f64::NAN, 0.1),
            (0.5, 0.0),
            (0.5, f64::NAN),
        ] {
            assert!(run(damping, residual).is_err(), "{damping} {residual}");
        }
        let flat = run(0.0, 1e-15).unwrap();
        assert_eq!(flat.scores, [1.0 / 3.0; 3]);
        // Less than 64-bit numbers resolve, perhaps: it ends, and says the truth.
        let star = graph(
            4,
            &[(1, 0), (2, 0), (3, 0), (0, 1), (0, 2)],
            SelfLinks::Drop,
        );
        let options = Options {
            residual: 1e-300,
            ..Options::default()
        };
        for lazy in [false, true] {
            let result = pagerank(&star, Options { lazy, ..options }).unwrap();
            assert_eq!(result.converged, result.residual <= 1e-300);
            assert!(result.residual < 1e-14);
        }
        let nothing = pagerank(&graph(0, &[], SelfLinks::Drop), Options::default()).unwrap();
        assert!(nothing.scores.is_empty() && nothing.converged);
    }

    /// A ring of n, and a page that links to node 0 of it. With t = (1 - d)/(n + 1) that page has t, and node i of the
    /// ring t/(1 - d) + e d^i, where e (1 - d^n) = d t, or e = d / ((n + 1)(1 + d + ... + d^(n - 1))).
    fn ring_with_a_feeder(n: u32, d: f64) -> (Graph, Vec<f64>) {
        let mut links: Vec<_> = (0..n).map(|i| (i, (i + 1) % n)).collect();
        links.push((n, 0));
        let pages = f64::from(n) + 1.0;
        let geometric: f64 = (0..n as i32).map(|i| d.powi(i)).sum();
        let e = d / (pages * geometric);
        let ring = (0..n as i32).map(|i| 1.0 / pages + e * d.powi(i));
        let expected = ring.chain([(1.0 - d) / pages]).collect();
        (graph(n as usize + 1, &links, SelfLinks::Drop), expected)
    }

    /// Even rings: whole steps carry the error round, and only damping shrinks it: by a factor of d a step, so
    /// with e = 1 - d to 1e-12 in some 25/e steps. Half steps shrink it by |1 + z|/2 at least, z the n-th root of 1
    /// that is nearest to 1, or 0 for the page that nothing links to: by cos(pi/n) or 1/2, whatever d is.
    #[test]
    fn lazy_steps_do_not_go_round_in_rings() {
        for n in [2, 4, 10] {
            let d = (0.9999f64 * 2f64.powi(32)).round() / 2f64.powi(32);
            let (ring, expected) = ring_with_a_feeder(n, d);
            let run = |lazy| {
                let options = Options {
                    damping: 0.9999,
                    lazy,
                    ..Options::default()
                };
                let result = pagerank(&ring, options).unwrap();
                let error = distance(&result.scores, &expected);
                assert!(result.converged && error <= result.bound, "{error}");
                result.iterations
            };
            let (plain, lazy) = (run(false), run(true));
            eprintln!("a ring of {n}: {plain} whole steps, {lazy} half steps");
            let factor = (std::f64::consts::PI / f64::from(n)).cos().max(0.5);
            let needed = 1e-12f64.ln() / factor.ln();
            assert!(plain > 100_000, "{plain}");
            assert!((lazy as f64) < needed + 10.0, "{lazy} {needed}");
        }
    }

    /// As near to 1 as damping can be: a bound of the residual over 2^-32 is no good, but the result is.
    #[test]
    fn lazy_steps_at_the_largest_damping() {
        let d = 1.0 - 2f64.powi(-32);
        for n in [2, 6] {
            let (ring, expected) = ring_with_a_feeder(n, d);
            let options = Options {
                damping: 1.0 - f64::EPSILON / 2.0,
                lazy: true,
                ..Options::default()
            };
            let result = pagerank(&ring, options).unwrap();
            assert!(result.converged && result.iterations < 300, "{result:?}");
            let error = distance(&result.scores, &expected);
            assert!(
                error < 1e-10 && error <= result.bound,
                "{error} {}",
                result.bound
            );
        }
    }

    /// PageRank by Gaussian elimination of (I - d M) x = (1 - d)/n, M with dangling columns uniform.
    fn by_elimination(graph: &Graph, d: f64) -> Vec<f64> {
        let n = graph.nodes();
        let mut a = vec![vec![0.0; n + 1]; n];
        for (i, row) in a.iter_mut().enumerate() {
            row[i] = 1.0;
            row[n] = (1.0 - d) / n as f64;
        }
        for (source, row) in graph.rows().enumerate() {
            if row.is_empty() {
                a.iter_mut().for_each(|line| line[source] -= d / n as f64);
            }
            for &target in row {
                a[target as usize][source] -= d / row.len() as f64;
            }
        }
        // Columns are diagonally dominant: no pivoting is needed.
        for k in 0..n {
            let (done, below) = a.split_at_mut(k + 1);
            for line in below {
                let factor = line[k] / done[k][k];
                line.iter_mut()
                    .zip(&done[k])
                    .for_each(|(x, y)| *x -= factor * y);
            }
        }
        let mut x = vec![0.0; n];
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
            x[i] = (a[i][n] - known) / a[i][i];
        }
        x
    }

    proptest! {
        #[test]
        fn the_bound_holds(
            links in prop::collection::vec((0u32..12, 0u32..12), 0..60),
            damping in 0.0..0.99f64,
            residual in prop::sample::select(vec![1.0, 0.1, 1e-3, 1e-9, 1e-13]),
            keep in any::<bool>(),
            lazy in any::<bool>(),
        ) {
            let rule = if keep { SelfLinks::Keep } else { SelfLinks::Drop };
            let graph = graph(12, &links, rule);
            let result = pagerank(&graph, Options { damping, residual, lazy }).unwrap();
            let d = (damping * 4_294_967_296.0).round() / 4_294_967_296.0;
            let exact = by_elimination(&graph, d);
            let error = distance(&result.scores, &exact);
            // The elimination's own error: 12 unknowns, condition at most 2/(1 - d).
            let slack = 1e-14 / (1.0 - d);
            prop_assert!(result.converged && result.residual <= residual);
            prop_assert!(error <= result.bound + slack, "{} > {}", error, result.bound);
            let sum: f64 = result.scores.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-14);
        }
    }
}
