//! Random: any pages of the frontier, the baseline.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use super::{Matrix, Select};

/// Draws pages uniformly (section 6.1): the same seed gives the same pages.
#[derive(Debug, Clone)]
pub struct RandomPolicy(Pcg64);

impl RandomPolicy {
    /// Returns a policy with this seed.
    pub fn new(seed: u64) -> RandomPolicy {
        RandomPolicy(Pcg64::new(u128::from(seed), 0))
    }
}

impl Select for RandomPolicy {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], _: f64) -> Vec<f64> {
        let draw = |_: &u32| (self.0.next_u64() >> 11) as f64;
        matrix.frontier.iter().map(draw).collect()
    }
}
