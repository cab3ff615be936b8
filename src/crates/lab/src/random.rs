//! Seeded random numbers: the same seed gives the same numbers on every machine.
//!
//! Numbers are taken from PCG as whole words and scaled here, and powers come from `libm`, so that neither
//! another version of a distribution nor another machine's mathematics changes a web.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

/// Purpose of a stream of numbers. Streams of one seed are independent of one another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Web = 1,
    Changes = 2,
    Order = 3,
    Seeds = 4,
}

/// Stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(Pcg64);

impl Random {
    pub fn new(seed: u64, purpose: Purpose) -> Random {
        Random(Pcg64::new(u128::from(seed), purpose as u128))
    }

    /// Returns a number in `0..n`, uniform to within n / 2^64. `n` is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// Returns a number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 2f64.powi(53)
    }

    pub fn coin(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }

    /// Returns a random element of a slice that is not empty.
    pub fn one_of(&mut self, of: &[u32]) -> u32 {
        of[self.below(of.len())]
    }
}

/// Distribution over whole numbers from `first` on, sampled by inversion.
#[derive(Debug, Clone)]
pub(super) struct Distribution {
    first: u32,
    /// Sums of the weights so far; the last one is their total.
    sums: Vec<f64>,
}

impl Distribution {
    /// Returns the distribution with P(k) proportional to k^-exponent, for k from 1 to `most`.
    pub fn power(exponent: f64, most: u32) -> Distribution {
        let weights = (1..=most).map(|k| libm::pow(f64::from(k), -exponent));
        Distribution::new(1, weights)
    }

    /// Returns Poisson's distribution, cut off after `most`. Up to a mean of 500 no weight is lost to rounding.
    pub fn poisson(mean: f64, most: u32) -> Distribution {
        let mut weight = libm::exp(-mean);
        let weights = (0..=most).map(|k| {
            if k > 0 {
                weight *= mean / f64::from(k);
            }
            weight
        });
        // Beyond the mean, values that no longer change the sum are never drawn.
        let far = (20.0 * (mean + 10.0)) as usize;
        Distribution::new(0, weights.take(far))
    }

    fn new(first: u32, weights: impl Iterator<Item = f64>) -> Distribution {
        let mut sum = 0.0;
        let sums = weights.map(|weight| {
            sum += weight;
            sum
        });
        Distribution {
            first,
            sums: sums.collect(),
        }
    }

    pub fn draw(&self, random: &mut Random) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let at = random.unit() * total;
        let place = self.sums.partition_point(|&sum| sum <= at);
        self.first + place.min(self.sums.len().saturating_sub(1)) as u32
    }
}
