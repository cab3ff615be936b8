//! Rank-biased overlap (Webber, Moffat, Zobel: A similarity measure for indefinite rankings, 2010): the expected
//! overlap of the two top d for a reader who continues to the next rank with probability p.
//!
//! Computes the extrapolated form, equation 32, for rankings of lengths s <= l with overlap X_d at depth d:
//!
//! ```text
//! (1-p)/p [ sum_{d=1..l} X_d/d p^d  +  sum_{d=s+1..l} X_s (d-s)/(s d) p^d ]  +  [ (X_l - X_s)/l + X_s/s ] p^l
//! ```
//!
//! Ranks below [`DEPTH`] weigh less than p^1000 = 2e-46, far less than the rounding of the result, so rankings are read
//! to that depth.

use std::collections::HashMap;
use std::hash::Hash;

/// Persistence p: the ten best ranks carry 86 % of the weight (equation 21 of the paper).
pub const P: f64 = 0.9;
pub const DEPTH: usize = 1000;

/// Returns the extrapolated rank-biased overlap of two rankings, best first, each without repeats, for p = [`P`]: 0
/// (disjoint) to 1 (equal). Two empty rankings are equal; an empty and another one are disjoint.
pub fn extrapolated<T: Eq + Hash>(left: &[T], right: &[T]) -> f64 {
    let left = &left[..left.len().min(DEPTH)];
    let right = &right[..right.len().min(DEPTH)];
    let (s, l) = (left.len().min(right.len()), left.len().max(right.len()));
    if s == 0 {
        return if l == 0 { 1.0 } else { 0.0 };
    }
    let overlap = overlaps(left, right, l);
    let at_s = overlap[s] as f64;
    let (mut sum, mut weight) = (0.0, 1.0);
    for (d, &overlap) in overlap.iter().enumerate().skip(1) {
        weight *= P;
        sum += overlap as f64 / d as f64 * weight;
        if d > s {
            sum += at_s * (d - s) as f64 / (s * d) as f64 * weight;
        }
    }
    let end = (overlap[l] as f64 - at_s) / l as f64 + at_s / s as f64;
    ((1.0 - P) / P * sum + end * weight).clamp(0.0, 1.0)
}

/// Returns X_d for d = 0 to `l`: the number of items within the first d of both.
fn overlaps<T: Eq + Hash>(left: &[T], right: &[T], l: usize) -> Vec<usize> {
    let ranks: HashMap<&T, usize> = left.iter().zip(1..).collect();
    let mut overlap = vec![0; l + 1];
    for (name, rank) in right.iter().zip(1usize..) {
        if let Some(&other) = ranks.get(name) {
            overlap[rank.max(other)] += 1;
        }
    }
    for d in 1..=l {
        overlap[d] += overlap[d - 1];
    }
    overlap
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-14, "{a} {b}");
    }

    #[test]
    fn closed_forms() {
        let many: Vec<u32> = (0..5000).collect();
        close(extrapolated(&many, &many), 1.0);
        close(extrapolated(&many, &many[..7]), 1.0); // A front of the other agrees as far as seen.
        close(extrapolated(&[1, 2, 3], &[4, 5]), 0.0);
        // Two swapped: X = 0, 2, hence (1-p)/p p^2 + p^2 = p.
        close(extrapolated(&[1, 2], &[2, 1]), P);
        // Disjoint except for the last of n: X_n = 1, hence ((1-p)/p + 1) p^n / n = p^(n-1) / n.
        close(extrapolated(&[1, 2, 3, 9], &[5, 6, 7, 9]), P.powi(3) / 4.0);
        // s = 1, l = 2, found at the longer's second position: X = 0, 1, so the second sum is 0 and (1-p)/p p^2/2 +
        // p^2/2 = p/2.
        close(extrapolated(&[1], &[2, 1]), P / 2.0);
        close(extrapolated::<u32>(&[], &[]), 1.0);
        close(extrapolated(&[], &[1]), 0.0);
    }

    #[test]
    fn symmetric() {
        let (a, b) = ([3, 1, 4, 15, 9, 2, 6], [2, 7, 1, 8]);
        close(extrapolated(&a, &b), extrapolated(&b, &a));
    }

    #[test]
    fn what_lies_deeper_weighs_nothing() {
        assert!(P.powi(DEPTH as i32) < 1e-40);
    }
}
