//! Weights of links.

use super::build::Unusable;
use crate::model::{Batch, Link, Reason};
use crate::rules::Follow;
use crate::url;

/// Computes the weights of links.
pub(super) struct Weighing {
    /// Weights of the batch's names as link targets; [`UNASKED`] if not computed yet.
    pub of_names: Vec<u64>,
    /// True if weights depend on the kind of link or on its target.
    pub is_chosen: bool,
}

/// Marks a weight that is not computed yet; larger than any product in an accepted record.
const UNASKED: u64 = u64::MAX;

impl Weighing {
    pub fn new(follow: &Follow) -> Weighing {
        Weighing {
            of_names: Vec::new(),
            is_chosen: !follow.is_default(),
        }
    }

    /// Returns the weight of a link from a page of `host` to a name of the batch; at most [`u64::MAX`]. Names that are
    /// not URLs have no host.
    pub fn weight(
        &mut self,
        follow: &Follow,
        batch: &Batch,
        (host, target): (&[u8], u32),
        link: &Link<'_>,
    ) -> u64 {
        let is_internal = !host.is_empty() && url::host(batch.name(target)) == host;
        let weight = u64::from(link.weight).saturating_mul(follow.weight(link.rel, is_internal));
        if !follow.has_pages() {
            return weight;
        }
        let at = target as usize;
        if self.of_names.len() <= at {
            self.of_names.resize(at + 1, UNASKED);
        }
        if self.of_names[at] == UNASKED {
            self.of_names[at] = follow.weight_of_page(batch.name(target));
        }
        weight.saturating_mul(self.of_names[at])
    }
}

/// Rejects links whose total weight is too large to divide cash by.
pub(super) fn check_sum(weights: &[u64]) -> Result<(), Unusable> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum < 1 << 63 {
        return Ok(());
    }
    Err(Unusable(
        Reason::Malformed,
        "its links weigh 2^63 or more together: give them smaller weights".to_owned(),
    ))
}
