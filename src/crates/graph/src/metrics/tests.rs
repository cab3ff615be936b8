use super::*;
use proptest::prelude::*;

fn scores(pairs: &[(&str, f64)]) -> Scores {
    let mut scores = Scores::new();
    for (name, score) in pairs {
        scores.push(name.as_bytes(), *score).unwrap();
    }
    scores
}

fn numbered(values: &[f64]) -> Scores {
    let mut scores = Scores::new();
    for (i, value) in values.iter().enumerate() {
        scores.push(i.to_string().as_bytes(), *value).unwrap();
    }
    scores
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{a} {b}");
}

/// Left: a 1/2, b 1/4, c 1/4; right: b 1/2, c 3/8, d 1/8, e 0.
#[test]
fn by_hand() {
    let left = scores(&[("a", 2.0), ("b", 1.0), ("c", 1.0)]);
    let right = scores(&[("b", 4.0), ("c", 3.0), ("d", 1.0), ("e", 0.0)]);
    let c = compare(left, right).unwrap();
    assert_eq!(
        (c.left_pages, c.right_pages, c.common_pages, c.union_pages),
        (3, 4, 2, 5)
    );
    close(c.l1, 0.5 + 0.25 + 0.125 + 0.125);
    close(c.l2, (0.25f64 + 0.0625 + 2.0 * 0.015625).sqrt());
    close(c.linf, 0.5);
    // b: (1/4)/(1/2), c: (1/8)/(3/8), d: all of it; a and e have no reference.
    close(
        c.relative_error_percent,
        100.0 * (0.5 + 1.0 / 3.0 + 1.0) / 3.0,
    );
    assert_eq!((c.relative_error_pages, c.reference_zero_pages), (3, 2));
    // A tenth of 3, rounded up: b.
    close(c.relative_error_top_tenth_percent, 50.0);
    assert_eq!(c.relative_error_top_tenth_pages, 1);
    assert_eq!(c.kendall_tau_b, None); // The left side scores b and c equally.
    assert!(c.top.is_empty());
}

#[test]
fn top_tenth_with_ties_has_its_size() {
    let right = numbered(&[1.0; 95]);
    let left = numbered(&[2.0; 95]);
    let c = compare(left, right).unwrap();
    assert_eq!(c.relative_error_top_tenth_pages, 10);
    assert_eq!(c.relative_error_pages, 95);
    assert_eq!(c.top.len(), 1);
    assert_eq!(c.top[0].common, 10); // Ties fall alike on both sides.
}

/// Of 1,000 pages the left side ranks i at i, the right side rotates them by 5: of the top k, k - 5 stay.
#[test]
fn top_k_overlap() {
    let left: Vec<f64> = (0..1000).map(|i| 2000.0 - f64::from(i)).collect();
    let mut right = left.clone();
    right.rotate_right(5);
    let c = compare(numbered(&left), numbered(&right)).unwrap();
    let found: Vec<_> = c
        .top
        .iter()
        .map(|top| (top.k, top.common, top.overlap))
        .collect();
    assert_eq!(found, [(10, 5, 0.5), (100, 95, 0.95), (1000, 1000, 1.0)]);
}

#[test]
fn undefined_is_refused() {
    let fine = || scores(&[("a", 1.0)]);
    let refused = [
        scores(&[]),
        scores(&[("a", 0.0), ("b", 0.0)]),
        scores(&[("a", 1.0), ("b", 1.0), ("a", 2.0)]),
        scores(&[("a", f64::MAX), ("b", f64::MAX)]),
    ];
    for bad in refused {
        let error = compare(bad.clone(), fine()).unwrap_err().to_string();
        assert!(error.contains("left"), "{error}");
        let error = compare(fine(), bad).unwrap_err().to_string();
        assert!(error.contains("right"), "{error}");
    }
}

#[test]
fn disjoint() {
    let c = compare(scores(&[("a", 1.0), ("b", 2.0)]), scores(&[("c", 1.0)])).unwrap();
    assert_eq!((c.l1, c.common_pages, c.kendall_tau_b), (2.0, 0, None));
    assert_eq!(c.rank_biased_overlap, 0.0);
    assert_eq!(c.relative_error_percent, 100.0);
}

#[test]
fn printed() {
    let c = compare(scores(&[("a", 1.0)]), scores(&[("a", 3.0)])).unwrap();
    let text = c.to_string();
    assert!(text.contains("kendall_tau_b\tundefined\n"), "{text}");
    let json = serde_json::to_value(&c).unwrap();
    assert!(json["kendall_tau_b"].is_null());
    // Every line's key must be a key of the JSON.
    for line in text.lines() {
        let (key, _) = line.split_once('\t').unwrap();
        assert!(json.get(key).is_some(), "{key}");
    }
}

fn vectors() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    let vector = || prop::collection::vec(0u32..50, 1..150);
    (vector(), vector()).prop_filter("sums above 0", |(a, b)| {
        a.iter().sum::<u32>() > 0 && b.iter().sum::<u32>() > 0
    })
}

fn floats(values: &[u32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

proptest! {
    #[test]
    fn a_ranking_equals_itself((values, _) in vectors(), factor in 1u32..1000) {
        let values = floats(&values);
        // A multiple by a power of two is normalised to the same bits.
        let scaled: Vec<f64> = values.iter().map(|v| v * 2f64.powi(factor as i32 % 40)).collect();
        let c = compare(numbered(&values), numbered(&scaled)).unwrap();
        prop_assert_eq!((c.l1, c.linf, c.relative_error_percent), (0.0, 0.0, 0.0));
        prop_assert!(c.top.iter().all(|top| top.overlap == 1.0));
        prop_assert!((c.rank_biased_overlap - 1.0).abs() < 1e-14);
        let varied = values.iter().any(|&value| value != values[0]);
        prop_assert_eq!(c.kendall_tau_b.is_some(), varied);
        prop_assert!(c.kendall_tau_b.is_none_or(|tau| tau == 1.0));
    }

    #[test]
    fn sides_swap((a, b) in vectors()) {
        let (a, b) = (floats(&a), floats(&b));
        let there = compare(numbered(&a), numbered(&b)).unwrap();
        let back = compare(numbered(&b), numbered(&a)).unwrap();
        prop_assert_eq!(there.l1, back.l1);
        prop_assert_eq!(there.linf, back.linf);
        prop_assert_eq!(&there.top, &back.top);
        prop_assert!((there.rank_biased_overlap - back.rank_biased_overlap).abs() < 1e-14);
        match (there.kendall_tau_b, back.kendall_tau_b) {
            (Some(x), Some(y)) => prop_assert!((x - y).abs() < 1e-14),
            (x, y) => prop_assert_eq!(x, y),
        }
        prop_assert!((0.0..=2.0 + 1e-14).contains(&there.l1) && there.linf <= there.l1);
    }

    /// The order of input doesn't matter, to the last bit.
    #[test]
    fn order_does_not_matter((a, b) in vectors(), seed in any::<u64>()) {
        let pairs = |values: &[u32]| -> Vec<(String, f64)> {
            values.iter().enumerate().map(|(i, &v)| (i.to_string(), f64::from(v) / 7.0)).collect()
        };
        let collect = |pairs: &[(String, f64)]| {
            let borrowed: Vec<_> = pairs.iter().map(|(n, s)| (n.as_str(), *s)).collect();
            scores(&borrowed)
        };
        let (left, right) = (pairs(&a), pairs(&b));
        let mut shuffled = left.clone();
        shuffled.sort_by_key(|(name, _)| xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), seed));
        let straight = compare(collect(&left), collect(&right)).unwrap();
        let mixed = compare(collect(&shuffled), collect(&right)).unwrap();
        prop_assert_eq!(straight, mixed);
    }

    /// Compares with the definitions, spelled out over plain vectors.
    #[test]
    fn agrees_with_the_definitions((a, b) in vectors()) {
        let (a, b) = (floats(&a), floats(&b));
        let c = compare(numbered(&a), numbered(&b)).unwrap();
        let share = |v: &[f64], i: usize| v.get(i).copied().unwrap_or(0.0) / v.iter().sum::<f64>();
        let n = a.len().max(b.len());
        let differences: Vec<f64> = (0..n).map(|i| (share(&a, i) - share(&b, i)).abs()).collect();
        close(c.l1, differences.iter().sum());
        close(c.l2, differences.iter().map(|d| d * d).sum::<f64>().sqrt());
        close(c.linf, differences.iter().copied().fold(0.0, f64::max));
        let relative: Vec<f64> = (0..n)
            .filter(|&i| share(&b, i) > 0.0)
            .map(|i| differences[i] / share(&b, i))
            .collect();
        close(c.relative_error_percent, 100.0 * relative.iter().sum::<f64>() / relative.len() as f64);
        prop_assert_eq!(c.relative_error_pages, relative.len() as u64);
        prop_assert_eq!(c.reference_zero_pages + c.relative_error_pages, c.union_pages);
        prop_assert_eq!(c.relative_error_top_tenth_pages, (relative.len() as u64).div_ceil(10));
        let common = a.iter().zip(&b).map(|(&x, &y)| (x, y)).collect();
        prop_assert_eq!(c.kendall_tau_b, kendall::tau_b(common));
    }
}
