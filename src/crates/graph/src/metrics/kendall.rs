//! Kendall's tau-b in O(n log n) (Knight: A computer method for calculating Kendall's tau with ungrouped data, 1966).
//!
//! ```text
//! tau-b = (C - D) / sqrt((n0 - n1) (n0 - n2))      C - D = n0 - n1 - n2 + n3 - 2 D
//! ```
//!
//! n0 is the number of all pairs, n1 of those tied in x, n2 in y, n3 in both. After sorting by (x, y), the number of
//! discordant pairs D is the number of exchanges that sorting by y takes, counted while merging. Counts are exact.

/// Returns tau-b of the pairs (x, y), -1 to 1; `None` if undefined: fewer than two pairs, or all x or all y equal.
/// Values must not be NaN. Takes 16 bytes per pair beyond its argument.
pub fn tau_b(mut pairs: Vec<(f64, f64)>) -> Option<f64> {
    for (x, y) in &mut pairs {
        // `total_cmp` would distinguish 0 from -0.
        *x += 0.0;
        *y += 0.0;
    }
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let ties_x = ties(&pairs, |a, b| a.0 == b.0);
    let ties_both = ties(&pairs, |a, b| a == b);
    let mut ys: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let all = choose_two(ys.len());
    drop(pairs);
    let discordant = sort_counting(&mut ys);
    let ties_y = ties(&ys, |a, b| a == b);

    if all == ties_x || all == ties_y {
        return None;
    }
    let balance = all - ties_x - ties_y + ties_both - 2 * discordant;
    // One root of the product: for equal factors it is exact, so equal rankings give exactly 1.
    let scale = ((all - ties_x) as f64 * (all - ties_y) as f64).sqrt();
    Some((balance as f64 / scale).clamp(-1.0, 1.0))
}

fn choose_two(n: usize) -> i128 {
    n as i128 * (n as i128 - 1) / 2
}

/// Returns the number of equal pairs in a sequence where equal elements are adjacent.
fn ties<T>(sorted: &[T], same: impl FnMut(&T, &T) -> bool) -> i128 {
    let runs = sorted.chunk_by(same);
    runs.map(|run| choose_two(run.len())).sum()
}

/// Sorts and returns the number of pairs that were in strictly descending order.
fn sort_counting(values: &mut Vec<f64>) -> i128 {
    let n = values.len();
    let mut other = vec![0.0; n];
    let mut inversions = 0;
    let mut width = 1;
    while width < n {
        for (from, to) in values.chunks(2 * width).zip(other.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            inversions += merge(left, right, to);
        }
        std::mem::swap(values, &mut other);
        width *= 2;
    }
    inversions
}

/// Merges two sorted runs; returns the number of (left, right) pairs with left > right.
fn merge(left: &[f64], right: &[f64], to: &mut [f64]) -> i128 {
    let (mut l, mut r, mut inversions) = (0, 0, 0);
    for slot in to {
        if r == right.len() || (l < left.len() && left[l] <= right[r]) {
            *slot = left[l];
            l += 1;
        } else {
            *slot = right[r];
            r += 1;
            inversions += (left.len() - l) as i128;
        }
    }
    inversions
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tau(x: &[f64], y: &[f64]) -> Option<f64> {
        tau_b(x.iter().copied().zip(y.iter().copied()).collect())
    }

    /// Computes tau-b by definition, pair by pair.
    fn naive(pairs: &[(f64, f64)]) -> Option<f64> {
        let (mut balance, mut loose_x, mut loose_y) = (0i64, 0i64, 0i64);
        for (i, a) in pairs.iter().enumerate() {
            for b in &pairs[..i] {
                let sign = |a: f64, b: f64| i64::from(a > b) - i64::from(a < b);
                let (x, y) = (sign(a.0, b.0), sign(a.1, b.1));
                balance += x * y;
                loose_x += x.abs();
                loose_y += y.abs();
            }
        }
        let scale = (loose_x as f64 * loose_y as f64).sqrt();
        (loose_x > 0 && loose_y > 0).then(|| balance as f64 / scale)
    }

    #[test]
    fn known_values() {
        // Example of scipy.stats.kendalltau. Of 10 pairs 2 are tied in x, 1 in y (and x); 2 concordant and 6
        // discordant: -4 / sqrt(8 * 9).
        let t = tau(&[12., 2., 1., 12., 2.], &[1., 4., 7., 1., 0.]).unwrap();
        assert!((t + 2f64.sqrt() / 3.0).abs() < 1e-15, "{t}");
        // Without ties: n = 4, one exchange of neighbours leaves 5 concordant of 6.
        let t = tau(&[1., 2., 3., 4.], &[1., 3., 2., 4.]).unwrap();
        assert!((t - 4.0 / 6.0).abs() < 1e-15, "{t}");
        assert_eq!(tau(&[1., 2., 3.], &[5., 6., 9.]), Some(1.0));
        assert_eq!(tau(&[1., 2., 3.], &[9., 6., 5.]), Some(-1.0));
        assert_eq!(tau(&[0.0, -0.0, 1.0], &[1.0, 1.0, 2.0]), Some(1.0));
    }

    #[test]
    fn undefined() {
        assert_eq!(tau(&[], &[]), None);
        assert_eq!(tau(&[1.], &[1.]), None);
        assert_eq!(tau(&[1., 1., 1.], &[1., 2., 3.]), None);
        assert_eq!(tau(&[1., 2., 3.], &[4., 4., 4.]), None);
    }

    /// Reversed sequences: all pairs are discordant, for every width of merge.
    #[test]
    fn long_reversals() {
        for n in [2u32, 15, 16, 17, 31, 32, 33, 1000, 4097] {
            let pairs = (0..n).map(|i| (f64::from(i), -f64::from(i))).collect();
            assert_eq!(tau_b(pairs), Some(-1.0), "{n}");
        }
    }

    #[test]
    fn pairs_of_four_billion_are_counted() {
        assert_eq!(choose_two(1 << 32), (1 << 63) - (1 << 31));
        assert_eq!(choose_two(0), 0);
        assert_eq!(choose_two(1), 0);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            pairs in prop::collection::vec((0u8..30, 0u8..30), 0..150),
            coarse in 1u8..10,
        ) {
            let pairs: Vec<(f64, f64)> = pairs
                .iter()
                .map(|&(x, y)| (f64::from(x / coarse), f64::from(y)))
                .collect();
            match (tau_b(pairs.clone()), naive(&pairs)) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() < 1e-14, "{} {}", a, b),
                (a, b) => prop_assert_eq!(a, b),
            }
        }

        #[test]
        fn agrees_without_ties(pairs in prop::collection::vec((any::<i32>(), any::<i32>()), 2..150)) {
            let pairs: Vec<(f64, f64)> =
                pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).collect();
            let (a, b) = (tau_b(pairs.clone()), naive(&pairs));
            prop_assert!(a.zip(b).is_some_and(|(a, b)| (a - b).abs() < 1e-14), "{:?} {:?}", a, b);
        }
    }
}
