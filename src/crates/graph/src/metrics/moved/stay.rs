//! Counts how many of the first k pages of one side are among the first k of the other, for all powers of ten k at
//! once. Pages of equal rank are treated equally, so the first k can be more than k pages if ranks are shared.

use serde::Serialize;

/// Pages of the ranks 1 to k that stayed, entered and left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stay {
    /// The ranks are 1 to k.
    pub k: u64,
    /// Number of pages of these ranks on both sides.
    pub stayed: u64,
    /// Number of pages of these ranks on the right side only.
    pub entered: u64,
    /// Number of pages of these ranks on the left side only.
    pub left: u64,
}

/// Number of powers of ten that may bound a rank: 10^1 to 10^20.
const LEVELS: usize = 20;

/// Number of pages by the smallest level that holds their rank.
#[derive(Debug, Default)]
pub(super) struct Stays {
    left: [u64; LEVELS],
    right: [u64; LEVELS],
    both: [u64; LEVELS],
}

/// Returns the smallest `i` with `rank <= 10^(i + 1)`.
fn level(rank: u64) -> usize {
    let digits = rank.saturating_sub(1).checked_ilog10();
    digits.unwrap_or(0) as usize
}

impl Stays {
    pub(super) fn add(&mut self, left: Option<u64>, right: Option<u64>) {
        let (left, right) = (left.map(level), right.map(level));
        if let Some(level) = left {
            self.left[level] += 1;
        }
        if let Some(level) = right {
            self.right[level] += 1;
        }
        if let Some((left, right)) = left.zip(right) {
            self.both[left.max(right)] += 1;
        }
    }

    /// Returns the counts for k = 10, 100, ... up to `shorter`.
    pub(super) fn finish(self, shorter: u64) -> Vec<Stay> {
        let powers = (1..).map_while(|exponent| 10u64.checked_pow(exponent));
        let (mut left, mut right, mut both) = (0, 0, 0);
        let mut stays = Vec::new();
        for (level, k) in powers.enumerate().take_while(|&(_, k)| k <= shorter) {
            left += self.left[level];
            right += self.right[level];
            both += self.both[level];
            stays.push(Stay {
                k,
                stayed: both,
                entered: right - both,
                left: left - both,
            });
        }
        stays
    }
}
