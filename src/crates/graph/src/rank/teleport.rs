//! Teleport vector of PageRank: the pages that the virtual page pays.

use std::sync::Arc;

use crate::graph::whole_numbers;
use crate::{Error, Result};

/// Distribution of what the virtual page pays: uniform by default, or by weights, as in personalised PageRank. Surfers
/// who do not follow a link continue at these pages, and so do those at a page without links.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Teleport {
    /// Weight of each page; empty for uniform.
    weights: Arc<[u64]>,
    sum: u64,
}

impl Teleport {
    /// Creates a vector from the weights of all pages.
    ///
    /// # Errors
    /// [`Error::Usage`] if the weights sum to 0 or to more than 2^32.
    pub fn of(weights: Vec<u32>) -> Result<Teleport> {
        let teleport = Teleport::new(weights.into_iter().map(u64::from))?;
        // Rounding down loses less than a unit for each unit of weight.
        if teleport.sum > 1 << 32 {
            return Err(Error::Usage(format!(
                "teleport weights are {} together: at most 2^32",
                teleport.sum
            )));
        }
        Ok(teleport)
    }

    /// Creates a vector from finite weights of at least 0, rounded by [`whole_numbers`]. Their sum may be up to 2^53, and
    /// settling gets no closer than 2^-58 for each unit of it: exact PageRank does.
    ///
    /// # Errors
    /// [`Error::Usage`] if all weights are 0.
    pub fn of_floats(weights: &[f64]) -> Result<Teleport> {
        Teleport::new(whole_numbers(weights).into_iter())
    }

    /// Creates a vector from weights whose sum is at most 2^53. Settling gets no closer than 2^-58 for each unit of it.
    ///
    /// # Errors
    /// [`Error::Usage`] if all weights are 0.
    pub fn new(weights: impl Iterator<Item = u64>) -> Result<Teleport> {
        let weights: Arc<[u64]> = weights.collect();
        let sum = weights.iter().sum();
        if sum == 0 {
            let text = "teleport weights are 0 together: at least one page needs some";
            return Err(Error::Usage(text.into()));
        }
        Ok(Teleport { weights, sum })
    }

    /// Checks that there is a weight for each of `pages` pages.
    pub(super) fn check(&self, pages: u64) -> Result<()> {
        let weights = self.weights.len() as u64;
        if self.is_uniform() || weights == pages {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "teleport weights of {weights} pages, where there are {pages}"
        )))
    }

    pub fn is_uniform(&self) -> bool {
        self.weights.is_empty()
    }

    /// Returns the sum of the weights of `pages` pages.
    pub fn sum(&self, pages: u64) -> u64 {
        if self.is_uniform() { pages } else { self.sum }
    }

    #[inline]
    pub(super) fn weight(&self, page: usize) -> u64 {
        self.weights.get(page).copied().unwrap_or(1)
    }

    /// Returns the payment to each of `pages` pages, of `units` in total.
    pub(super) fn shares(&self, units: f64, pages: usize) -> impl Iterator<Item = f64> + '_ {
        let (each, sum) = (units / pages as f64, self.sum as f64);
        (0..pages).map(move |page| match self.weights.get(page) {
            None => each,
            Some(&weight) => units * weight as f64 / sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_checked() {
        assert!(Teleport::of(vec![0, 0]).is_err());
        assert!(Teleport::of(vec![u32::MAX, 2]).is_err());
        let teleport = Teleport::of(vec![u32::MAX, 1]).unwrap();
        assert!(teleport.check(2).is_ok() && teleport.check(3).is_err());
        assert!(Teleport::default().check(3).is_ok());
        let shares: Vec<f64> = Teleport::of(vec![3, 0, 1])
            .unwrap()
            .shares(8.0, 3)
            .collect();
        assert_eq!(shares, [6.0, 0.0, 2.0]);
        let floats = Teleport::of_floats(&[0.75, 0.0, 0.25]).unwrap();
        assert_eq!(floats, Teleport::of(vec![3, 0, 1]).unwrap());
        assert!(Teleport::of_floats(&[0.0, 0.0]).is_err());
    }
}
