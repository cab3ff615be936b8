//! FindGlobalPR (Algorithm 2): which pages to fetch, round by round.

use super::{Estimate, Estimator, Known, Matrix, Policy, Power, Select, estimate, select};
use crate::engine::checked_damping;
use crate::{Error, Result};

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// Which pages are asked for.
    pub policy: Policy,
    /// How the estimate is made.
    pub estimator: Estimator,
    /// The power method's settings.
    pub power: Power,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl Options {
    /// Checks what the types don't.
    ///
    /// # Errors
    /// [`Error::Usage`]: a number is out of range.
    pub fn check(&self) -> Result<()> {
        let Power { damping, threshold } = self.power;
        checked_damping(damping)?;
        if threshold > 0.0 && threshold < 2.0 {
            Ok(())
        } else {
            Err(Error::Usage(format!(
                "threshold {threshold}: above 0 and below 2"
            )))
        }
    }
}

/// A page to fetch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The page.
    pub page: u32,
    /// The policy's score: higher is sooner.
    pub score: f64,
    /// The PageRank that links from pages fetched hand to it, where those have 1 together.
    pub flow: f64,
}

/// The search for pages outside a domain that tell its global PageRank. It reads nothing itself: whoever
/// drives it fetches the pages asked for and hands over their links, from a graph, a crawler or a store.
///
/// ```
/// use cashrank::local::{Known, Options, Search};
///
/// # fn main() -> cashrank::Result<()> {
/// let web: [&[u32]; 4] = [&[1, 2], &[0], &[0, 3], &[1]];
/// let mut known = Known::default();
/// known.fetch(0, web[0].iter().copied())?;
/// known.fetch(1, web[1].iter().copied())?;
/// known.close_domain()?;
/// let mut search = Search::new(known, Options::default())?;
/// while let [asked, ..] = search.next(1)[..] {
///     search.fetched(asked.page, web[asked.page as usize].iter().copied())?;
///     search.update();
/// }
/// assert_eq!(search.known().fetched(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Search {
    known: Known,
    options: Options,
    select: Box<dyn Select>,
    matrix: Matrix,
    ranks: Vec<f64>,
}

impl Search {
    /// Begins with what is known, whose domain is closed.
    ///
    /// # Errors
    /// [`Error::Usage`]: options out of range, or an empty domain.
    pub fn new(known: Known, options: Options) -> Result<Search> {
        options.check()?;
        if known.domain() == 0 {
            return Err(Error::Usage(
                "a search begins when the domain is known: close it first".into(),
            ));
        }
        let matrix = known.matrix();
        let select = options.policy.policy(options.seed);
        let ranks = coarse(&options.power, &*select).rank(&matrix);
        Ok(Search {
            select,
            known,
            options,
            matrix,
            ranks,
        })
    }

    /// The `count` pages of the frontier to fetch next, best first; fewer if there are no more. Asked again
    /// before an [`update`](Search::update), it names the same ones, but for policies that draw.
    pub fn next(&mut self, count: usize) -> Vec<Asked> {
        self.next_by(count, |_| 0)
    }

    /// The same, but of pages with equal scores that with the least `tie` comes first, and of those the one known first.
    pub fn next_by(&mut self, count: usize, tie: impl Fn(u32) -> u64) -> Vec<Asked> {
        let damping = self.options.power.damping;
        let scores = self.select.scores(&self.matrix, &self.ranks, damping);
        let frontier = &self.matrix.frontier;
        let places = select::best_by(&scores, count, |place| tie(frontier[place as usize]));
        let asked = places.into_iter().map(|place| Asked {
            page: self.matrix.frontier[place as usize],
            score: scores[place as usize],
            flow: self.flow(place as usize),
        });
        asked.collect()
    }

    fn flow(&self, place: usize) -> f64 {
        let mut flow = 0.0;
        self.matrix.sources.at(place).each(|k, weight| {
            flow += self.ranks[k as usize] * weight / self.matrix.out(k as usize);
        });
        self.options.power.damping * flow
    }

    /// A page was fetched, with these links. It counts from the next [`update`](Search::update) on.
    ///
    /// # Errors
    /// Those of [`Known::fetch`].
    pub fn fetched(&mut self, page: u32, targets: impl IntoIterator<Item = u32>) -> Result<()> {
        self.known.fetch(page, targets)
    }

    /// The same with what each link weighs, as [`Known::fetch_weighted`] has it.
    ///
    /// # Errors
    /// Those of [`Known::fetch`].
    pub fn fetched_weighted(
        &mut self,
        page: u32,
        targets: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<()> {
        self.known.fetch_weighted(page, targets)
    }

    /// A page that was asked for is gone.
    ///
    /// # Errors
    /// Those of [`Known::gone`].
    pub fn gone(&mut self, page: u32) -> Result<()> {
        self.known.gone(page)
    }

    /// A page that was asked for could not be fetched.
    ///
    /// # Errors
    /// Those of [`Known::lost`].
    pub fn lost(&mut self, page: u32) -> Result<()> {
        self.known.lost(page)
    }

    /// Computes the ranks of all pages fetched so far, as exactly as the policy needs them.
    pub fn update(&mut self) {
        self.matrix = self.known.matrix();
        let power = coarse(&self.options.power, &*self.select);
        self.ranks = power.rank_from(&self.matrix, &self.ranks);
    }

    /// Ends the search.
    pub fn into_known(self) -> Known {
        self.known
    }

    /// What is known.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The links as of the last update.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The PageRank of F as of the last update, by member.
    pub fn ranks(&self) -> &[f64] {
        &self.ranks
    }

    /// The domain's global PageRank, estimated, as of the last update.
    pub fn estimate(&self) -> Estimate {
        self.estimate_by(self.options.estimator)
    }

    /// The same by a certain estimator.
    pub fn estimate_by(&self, estimator: Estimator) -> Estimate {
        let power = &self.options.power;
        let ranks = power.rank_from(&self.matrix, &self.ranks);
        estimate::estimate(&self.known, &self.matrix, &ranks, power, estimator)
    }
}

/// The power method between rounds.
fn coarse(power: &Power, select: &dyn Select) -> Power {
    Power {
        threshold: select.threshold(power.threshold),
        ..*power
    }
}
