//! Degrees of synthetic webs compared with their distributions, and effects of changes.

use std::collections::HashSet;

use cashrank_lab::web::{InDegree, OutDegree, Web};

use super::power_web;

fn in_degrees(web: &Web) -> Vec<usize> {
    (0..web.pages() as u32)
        .map(|page| web.in_degree(page))
        .collect()
}

/// The exponent of greatest likelihood, where P(k) is proportional to k^-a for k from 1 to n - 1: the
/// derivative of the log-likelihood, mean(ln k) - E_a(ln k), is 0 there. Its standard error is
/// 1 / sqrt(n Var_a(ln k)) (Fisher); four of them are allowed.
#[test]
fn a_power_law_has_its_exponent() {
    for (exponent, seed) in [(2.1, 1), (2.1, 7), (3.0, 1)] {
        let pages = 100_000;
        let out = OutDegree::Poisson;
        let web = Web::synthetic(pages, InDegree::Power(exponent), out, seed).unwrap();
        let n = pages as f64;
        let mean = in_degrees(&web)
            .iter()
            .map(|&k| (k as f64).ln())
            .sum::<f64>()
            / n;
        let moments = |a: f64| {
            let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
            for k in 1..pages {
                let (log, weight) = ((k as f64).ln(), (k as f64).powf(-a));
                (sum, first, second) = (
                    sum + weight,
                    first + weight * log,
                    second + weight * log * log,
                );
            }
            let expected = first / sum;
            (expected, second / sum - expected * expected)
        };
        let (mut low, mut high) = (1.5, 5.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            // A greater exponent has the smaller mean.
            if moments(middle).0 > mean {
                low = middle
            } else {
                high = middle
            }
        }
        let allowed = 4.0 / (n * moments(exponent).1).sqrt();
        assert!(
            (low - exponent).abs() <= allowed,
            "{low} for {exponent} +- {allowed}"
        );
    }
}

/// Poisson's mean and variance are m. The sample's have standard errors sqrt(m / n) and, with the fourth
/// moment m + 3 m^2, sqrt((m + 2 m^2) / n); four of them are allowed. Out-degrees are sums over all pages of
/// rare events, so they are Poisson's too, to a part in n.
#[test]
fn poisson_has_its_mean_and_variance() {
    for m in [0.5, 5.0, 60.0] {
        let n = 30_000u64;
        let web = Web::synthetic(n, InDegree::Poisson(m), OutDegree::Poisson, 3).unwrap();
        let out = (0..n as u32).map(|page| web.links(page).len()).collect();
        for degrees in [in_degrees(&web), out] {
            let n = n as f64;
            let mean = degrees.iter().sum::<usize>() as f64 / n;
            let off = |k: &usize| (*k as f64 - mean).powi(2);
            let variance = degrees.iter().map(off).sum::<f64>() / (n - 1.0);
            assert!(
                (mean - m).abs() <= 4.0 * (m / n).sqrt(),
                "mean {mean} for {m}"
            );
            let allowed = 4.0 * ((m + 2.0 * m * m) / n).sqrt();
            assert!(
                (variance - m).abs() <= allowed,
                "variance {variance} for {m}"
            );
        }
    }
}

/// The sources' links and the targets' links are the same; none is duplicated, leads to its own page, or to or from a
/// page that vanished. Holds after any changes.
#[test]
fn links_agree_from_both_ends() {
    for out in [OutDegree::Poisson, OutDegree::Power, OutDegree::LikeIn] {
        let mut web = Web::synthetic(500, InDegree::Power(2.1), out, 5).unwrap();
        for step in 0..3_000 {
            match step % 7 {
                0..4 => web.change_in_degree(),
                4 | 5 => web.vanish().unwrap(),
                _ => web.appear().unwrap(),
            }
            if step % 50 == 0 {
                check(&web);
            }
            if web.live().len() == 2 {
                break;
            }
        }
        check(&web);
        let refused = loop {
            if let Err(error) = web.vanish() {
                break error.to_string();
            }
        };
        assert!(refused.contains("died out"), "{refused}");
        assert_eq!(web.live().len(), 2);
    }
}

fn check(web: &Web) {
    let mut into = vec![0; web.pages()];
    for page in 0..web.pages() as u32 {
        let targets: HashSet<u32> = web.links(page).iter().copied().collect();
        assert_eq!(targets.len(), web.links(page).len());
        assert!(!targets.contains(&page));
        assert!(targets.is_empty() || web.is_live(page));
        assert!(targets.iter().all(|&target| web.is_live(target)));
        targets
            .iter()
            .for_each(|&target| into[target as usize] += 1);
    }
    assert_eq!(into, in_degrees(web));
    let live = (0..web.pages() as u32).filter(|&page| web.is_live(page));
    let mut listed = web.live().to_vec();
    listed.sort_unstable();
    assert!(live.eq(listed));
}

/// One page's in-degree is doubled or halved; both happen about as often: of 4,000 changes, 4 standard
/// deviations of a fair coin are 126 (pages without links to them, which only grow, are few).
#[test]
fn a_change_doubles_or_halves() {
    let mut web = power_web(2_000, 9);
    let mut doubled = 0;
    for _ in 0..4_000 {
        let before = in_degrees(&web);
        web.change_in_degree();
        let after = in_degrees(&web);
        let changed: Vec<(usize, usize)> = before
            .into_iter()
            .zip(after)
            .filter(|(b, a)| b != a)
            .collect();
        let [(before, after)] = changed[..] else {
            panic!("{changed:?}");
        };
        assert!(after == 2 * before || after == before / 2 || (before, after) == (0, 1));
        doubled += i32::from(after > before && before > 0);
    }
    assert_eq!(web.changes(), 4_000);
    assert!((1_000..=2_126).contains(&doubled), "{doubled}");
}

#[test]
fn what_is_no_web_is_refused() {
    let make = |pages, in_degree| Web::synthetic(pages, in_degree, OutDegree::Poisson, 1);
    for (pages, in_degree, reason) in [
        (0, InDegree::Power(2.1), "at least 2"),
        (1, InDegree::Power(2.1), "at least 2"),
        (1 << 40, InDegree::Power(2.1), "at most"),
        (10, InDegree::Power(1.9), "an exponent from 2"),
        (10, InDegree::Power(f64::NAN), "an exponent from 2"),
        (10, InDegree::Poisson(0.0), "a mean above 0"),
        (10, InDegree::Poisson(-1.0), "a mean above 0"),
        (10, InDegree::Poisson(f64::INFINITY), "a mean above 0"),
    ] {
        let error = make(pages, in_degree).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
    // Two pages can only link to each other.
    let web = make(2, InDegree::Power(2.1)).unwrap();
    assert_eq!((web.links(0), web.links(1)), (&[1][..], &[0][..]));
}
