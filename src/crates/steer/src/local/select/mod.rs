//! Policies that choose which pages outside to fetch next: SelectNodes of the paper, one type each behind [`Select`].
//!
//! | name | chooses the pages of the frontier |
//! |---|---|
//! | [`sc`](Complement) | that would move the domain's ranks most, by stochastic complementation (SC-Select) |
//! | [`pf`](FlowPolicy) | that most PageRank flows into (PF-Select) |
//! | [`outlink`](OutlinkCount) | that most pages of the domain link to |
//! | [`random`](RandomPolicy) | at random |
//! | [`frontier-cash`](FrontierCash) | that most cash of the domain's pages reaches, as far as it may return: our own |
//! | [`share`](SharePolicy) | that most PageRank flows into from pages that link into the domain: our own |

mod cash;
mod flow;
mod sc;

use std::fmt;
use std::str::FromStr;

use super::Matrix;

pub use cash::FrontierCash;
pub use flow::{FlowPolicy, OutlinkCount, RandomPolicy, SharePolicy};
pub use sc::Complement;

/// Policy that scores pages of the frontier.
pub trait Select: fmt::Debug + Send {
    /// Returns a score for each page of the frontier, never NaN: the higher, the sooner. `ranks` are the members'
    /// PageRanks, `damping` is what they were computed with.
    fn scores(&mut self, matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64>;

    /// Returns the threshold of the power method that scores need, if the estimate is made with `threshold`. The
    /// paper's policies use that.
    fn threshold(&self, threshold: f64) -> f64 {
        threshold
    }
}

/// Returns the `count` positions of the frontier with the highest scores, best first; ties by who was known first.
pub fn best(scores: &[f64], count: usize) -> Vec<u32> {
    best_by(scores, count, |_| 0)
}

/// Returns the positions like [`best`]; among equal scores, those with the smallest `tie` come first, then those known
/// first.
pub fn best_by(scores: &[f64], count: usize, tie: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..scores.len() as u32).collect();
    let order = |&a: &u32, &b: &u32| {
        let (x, y) = (scores[a as usize], scores[b as usize]);
        let ties = || tie(a).cmp(&tie(b)).then(a.cmp(&b));
        y.total_cmp(&x).then_with(ties)
    };
    if count < places.len() {
        places.select_nth_unstable_by(count, order);
        places.truncate(count);
    }
    places.sort_unstable_by(order);
    places
}

/// Name of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Stochastic complementation: [`Complement`].
    Complement,
    /// PageRank that flows into a page: [`FlowPolicy`].
    Flow,
    /// Links from the domain: [`OutlinkCount`].
    OutlinkCount,
    /// Pages drawn at random: [`RandomPolicy`].
    Random,
    /// Cash of the domain: [`FrontierCash`].
    FrontierCash,
    /// Flow from pages that link into the domain: [`SharePolicy`].
    #[default]
    Share,
}

impl Policy {
    /// All policies, the paper's first, in its order.
    pub const ALL: [Policy; 6] = [
        Policy::Complement,
        Policy::Flow,
        Policy::OutlinkCount,
        Policy::Random,
        Policy::FrontierCash,
        Policy::Share,
    ];

    /// Returns the policy; `seed` is for random ones.
    pub fn policy(self, seed: u64) -> Box<dyn Select> {
        match self {
            Policy::Complement => Box::new(Complement),
            Policy::Flow => Box::new(FlowPolicy),
            Policy::OutlinkCount => Box::new(OutlinkCount),
            Policy::Random => Box::new(RandomPolicy::new(seed)),
            Policy::FrontierCash => Box::new(FrontierCash),
            Policy::Share => Box::new(SharePolicy),
        }
    }
}

impl Policy {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Complement => "sc",
            Policy::Flow => "pf",
            Policy::OutlinkCount => "outlink",
            Policy::Random => "random",
            Policy::FrontierCash => "frontier-cash",
            Policy::Share => "share",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        let found = Policy::ALL.iter().find(|policy| policy.name() == text);
        let unknown =
            || format!("unknown policy {text:?}: sc, pf, outlink, random, frontier-cash or share");
        found.copied().ok_or_else(unknown)
    }
}
