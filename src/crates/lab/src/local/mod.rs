//! The experiments of Davis and Dhillon (section 6): the graph is the web, domains are parts of it, and
//! a search ([`cashrank_steer::local`]) may fetch pages of the rest.
//!
//! Estimates are held to the exact PageRank of the whole graph on the domain, normalised: L1, L2, Linf, and Kendall's tau-b,
//! for which ranks that agree in nine digits are ties (they come of the same links, added in another order).
//!
//! The paper's domains are sites; without names, ranges of consecutive numbers stand for them, as node numbers of
//! crawled graphs follow the sorted URLs. For lack of such a graph, [`hosts`] makes one.

mod figures;
mod hosts;

use std::time::Instant;

use cashrank::{Error, Result};
use cashrank_graph::graph::Graph;
use cashrank_graph::metrics::kendall::tau_b;
use cashrank_steer::local::{LocalGraph, LocalOptions, Policy, best_by, estimate};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use figures::{Row, Study, figures, times};
pub use hosts::hosts;

/// Distance of an estimate from the truth.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Distance {
    /// Sum of the absolute differences.
    pub l1: f64,
    /// Root of the sum of their squares.
    pub l2: f64,
    /// Largest difference.
    pub linf: f64,
    /// Kendall's tau-b; 1 if it is undefined.
    pub tau: f64,
}

impl Distance {
    /// Computes the distance between an estimate and the truth, each of sum 1.
    pub fn new(estimate: &[f64], truth: &[f64]) -> Distance {
        let mut distance = Distance::default();
        let mut squares = 0.0;
        for (a, b) in estimate.iter().zip(truth) {
            let difference = (a - b).abs();
            distance.l1 += difference;
            squares += difference * difference;
            distance.linf = distance.linf.max(difference);
        }
        distance.l2 = squares.sqrt();
        let digits = |x: f64| (libm::log(x) * 1e9).round();
        let pairs = estimate.iter().zip(truth);
        let pairs = pairs.map(|(&a, &b)| (digits(a), digits(b))).collect();
        distance.tau = tau_b(pairs).unwrap_or(1.0);
        distance
    }
}

/// Method: policy that chooses the fetched pages, and estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Method {
    /// Policy that chooses the pages to fetch.
    #[serde(serialize_with = "as_text")]
    pub policy: Policy,
    /// True if the estimate is extrapolated.
    pub extrapolated: bool,
}

fn as_text<S: serde::Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(policy)
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plus = if self.extrapolated { "+" } else { "" };
        write!(f, "{}{plus}", self.policy)
    }
}

impl Method {
    /// Returns the paper's four methods, and ours with either estimate.
    pub fn all() -> Vec<Method> {
        let method = |&policy: &Policy| Method {
            policy,
            extrapolated: false,
        };
        let mut all: Vec<Method> = Policy::ALL.iter().map(method).collect();
        all.push(Method {
            policy: Policy::Share,
            extrapolated: true,
        });
        all
    }
}

/// Rule for which of several pages with equal scores is fetched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The page that became known first: breadth-first.
    #[default]
    Known,
    /// The first page by name.
    Name,
    /// A random page.
    Random,
}

impl Ties {
    /// All rules.
    pub const ALL: [Ties; 3] = [Ties::Known, Ties::Name, Ties::Random];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Ties::Known => "known",
            Ties::Name => "name",
            Ties::Random => "random",
        }
    }
}

impl std::str::FromStr for Ties {
    type Err = String;

    fn from_str(text: &str) -> Result<Ties, String> {
        let found = Ties::ALL.into_iter().find(|ties| ties.name() == text);
        found.ok_or_else(|| format!("{text:?}: known, name or random"))
    }
}

/// Settings of an experiment on one domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    /// Number of rounds: T.
    pub rounds: usize,
    /// Number of pages to fetch in all, as a share of the domain's: 2 for 2n.
    pub outside: f64,
    /// Rule that decides between equal scores.
    pub ties: Ties,
    /// Other options of the search.
    pub options: LocalOptions,
}

/// Result of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Distance before the first round, and after each.
    pub curve: Vec<Distance>,
    /// Number of pages fetched outside.
    pub fetched: usize,
    /// Number of these that were preferred to a page of the same score.
    pub tied: usize,
    /// Share of the rank flowing into the domain from outside that comes from the fetched pages.
    pub impact: f64,
    /// Seconds that choosing pages took.
    pub choosing_s: f64,
    /// Seconds that ranks and the estimate took.
    pub ranking_s: f64,
}

impl Outcome {
    /// Returns the distance after the last round.
    pub fn last(&self) -> Distance {
        self.curve.last().copied().unwrap_or_default()
    }
}

/// Graph as a web, with its exact PageRank.
#[derive(Debug)]
pub struct World<'a> {
    graph: &'a Graph,
    exact: &'a [f64],
    places: &'a [u32],
}

impl<'a> World<'a> {
    /// Creates a world; `exact` is the PageRank of the graph at the damping of the experiments.
    pub fn new(graph: &'a Graph, exact: &'a [f64]) -> World<'a> {
        World {
            graph,
            exact,
            places: &[],
        }
    }

    /// Sets the position of each page in the order of names. By default, names are numbers.
    pub fn with_places(self, places: &'a [u32]) -> World<'a> {
        World { places, ..self }
    }

    /// Returns a sort key for pages with equal scores: the smallest comes first.
    fn tie(&self, ties: Ties, seed: u64, page: u32) -> u64 {
        match ties {
            Ties::Known => 0,
            Ties::Name => self.places.get(page as usize).map_or(page, |&at| at).into(),
            Ties::Random => xxh3_64_with_seed(&page.to_le_bytes(), seed),
        }
    }

    /// Returns the truth on a domain.
    pub fn truth(&self, domain: &[u32]) -> Vec<f64> {
        let ranks: Vec<f64> = domain.iter().map(|&p| self.exact[p as usize]).collect();
        let sum: f64 = ranks.iter().sum();
        ranks.iter().map(|rank| rank / sum).collect()
    }

    /// Creates a domain for a search.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has no pages.
    pub fn domain(&self, domain: &[u32]) -> Result<LocalGraph> {
        let mut known = LocalGraph::default();
        for &page in domain {
            known.fetch(page, self.row(page));
        }
        known.close_domain()?;
        Ok(known)
    }

    /// Returns the paper's impact of each page outside, as a share of their sum: its PageRank times the part of its
    /// links that lead into the domain (section 6.2).
    fn impacts(&self, domain: &[u32]) -> Vec<f64> {
        let mut local = vec![false; self.graph.nodes()];
        domain.iter().for_each(|&page| local[page as usize] = true);
        let rows = self.graph.rows().zip(self.exact).zip(&local);
        let impact = |((row, rank), &is_local): ((&[u32], &f64), &bool)| {
            let into = row.iter().filter(|&&to| local[to as usize]).count();
            if is_local || into == 0 {
                0.0
            } else {
                rank * into as f64 / row.len() as f64
            }
        };
        let mut impacts: Vec<f64> = rows.map(impact).collect();
        let sum: f64 = impacts.iter().sum();
        if sum > 0.0 {
            impacts.iter_mut().for_each(|impact| *impact /= sum);
        }
        impacts
    }

    fn row(&self, page: u32) -> impl Iterator<Item = u32> + use<'a> {
        self.graph.row(page as usize).iter().copied()
    }

    /// Searches from a domain. Unless `curve`, intermediate distances are those of the estimate that is not
    /// extrapolated; times exclude them.
    ///
    /// # Errors
    /// Errors of [`World::domain`].
    pub fn run(&self, domain: &[u32], course: &Course, curve: bool) -> Result<Outcome> {
        let truth = self.truth(domain);
        let impacts = self.impacts(domain);
        let mut outcome = Outcome {
            curve: Vec::new(),
            fetched: 0,
            tied: 0,
            impact: 0.0,
            choosing_s: 0.0,
            ranking_s: 0.0,
        };
        let began = Instant::now();
        let mut known = self.domain(domain)?;
        let mut options = course.options;
        let mut matrix = known.matrix();
        let mut ranks = matrix.ranks(&options.power, &[]);
        outcome.ranking_s += began.elapsed().as_secs_f64();
        let plain = LocalOptions {
            extrapolates: false,
            ..options
        };
        let first = estimate(&known, &matrix, &ranks, &plain);
        outcome.curve.push(Distance::new(&first.ranks, &truth));
        let total = (course.outside * domain.len() as f64).round() as usize;
        for round in 0..course.rounds {
            let share = |round: usize| total * round / course.rounds;
            let count = share(round + 1) - share(round);
            let tie = |page| self.tie(course.ties, course.options.seed, page);
            let began = Instant::now();
            // One more page, to see whether the last ones had equals.
            let mut asked = options.requests(&matrix, &ranks, count + 1, tie);
            // Each round has its own draws.
            options.seed = options.seed.wrapping_add(1 << 32);
            outcome.choosing_s += began.elapsed().as_secs_f64();
            if asked.len() > count
                && let Some(next) = asked.pop()
            {
                let tied = asked.iter().filter(|asked| asked.score == next.score);
                outcome.tied += tied.count();
            }
            outcome.fetched += asked.len();
            for asked in asked {
                outcome.impact += impacts[asked.page as usize];
                known.fetch(asked.page, self.row(asked.page));
            }
            let began = Instant::now();
            matrix = known.matrix();
            ranks = matrix.ranks(&options.power, &ranks);
            outcome.ranking_s += began.elapsed().as_secs_f64();
            if curve && round + 1 < course.rounds {
                let now = estimate(&known, &matrix, &ranks, &options);
                outcome.curve.push(Distance::new(&now.ranks, &truth));
            }
        }
        let began = Instant::now();
        let last = estimate(&known, &matrix, &ranks, &options);
        outcome.ranking_s += began.elapsed().as_secs_f64();
        outcome.curve.push(Distance::new(&last.ranks, &truth));
        Ok(outcome)
    }

    /// Computes Figure 1: for `count` candidates, evenly spaced in order of influence, their influence as SC-Select
    /// estimates it, the links to them from the domain, and the L1 distance of the domain's ranks after fetching that
    /// page alone, with its real links.
    ///
    /// # Errors
    /// Errors of [`World::domain`].
    pub fn influences(
        &self,
        domain: &[u32],
        options: &LocalOptions,
        count: usize,
    ) -> Result<Vec<Influence>> {
        let truth = self.truth(domain);
        let known = self.domain(domain)?;
        let matrix = known.matrix();
        let ranks = matrix.ranks(&options.power, &[]);
        let damping = options.power.damping;
        let influences = Policy::Complement.scores(&matrix, &ranks, damping, 0);
        let order = best_by(&influences, influences.len(), |_| 0);
        let step = order.len().div_ceil(count.max(1)).max(1);
        let mut points = Vec::new();
        for place in order.into_iter().step_by(step) {
            let page = matrix.frontier[place as usize];
            let mut more = known.clone();
            more.fetch(page, self.row(page));
            let expanded = more.matrix();
            let moved = expanded.ranks(&options.power, &ranks);
            let sum: f64 = moved[..domain.len()].iter().sum();
            let moved = moved[..domain.len()].iter().map(|rank| rank / sum);
            points.push(Influence {
                influence: influences[place as usize],
                outlinks: matrix.sources.row(place as usize).len(),
                objective: moved.zip(&truth).map(|(a, b)| (a - b).abs()).sum(),
            });
        }
        Ok(points)
    }
}

/// Candidate of Figure 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Influence {
    /// Estimate of ||E_L (f_j - f)||.
    pub influence: f64,
    /// Number of links to it from the domain.
    pub outlinks: usize,
    /// Objective (equation 3) with the page fetched.
    pub objective: f64,
}

/// Returns `count` domains of `pages` consecutive nodes, evenly spread: number k begins at N (2k + 1)/(2 `count`).
///
/// # Errors
/// [`Error::Usage`] if they do not fit.
pub fn ranges(nodes: usize, count: usize, pages: usize) -> Result<Vec<Vec<u32>>> {
    if count == 0 || pages == 0 || pages > nodes / (2 * count) {
        return Err(Error::Usage(format!(
            "{count} domains of {pages} pages do not fit a graph of {nodes}: at most half of it is taken, {} pages each",
            nodes / (2 * count.max(1))
        )));
    }
    let range = |k: usize| {
        let from = nodes * (2 * k + 1) / (2 * count);
        (from as u32..(from + pages) as u32).collect()
    };
    Ok((0..count).map(range).collect())
}
