//! The paper's measures of error, compared with `metrics`, which computes them in another way, and with closed forms.

use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::Graph;
use cashrank_graph::metrics::{Scores, compare};
use cashrank_lab::errors::Reference;
use cashrank_lab::web::Web;

use super::power_web;

#[test]
fn errors_are_those_of_metrics() {
    let web = power_web(3_000, 2);
    let reference = Reference::of(&web, 0.85).unwrap();
    // In-degree + 1 as an estimate, not normalised.
    let estimate: Vec<f64> = (0..3_000)
        .map(|page| web.in_degree(page) as f64 + 1.0)
        .collect();
    let errors = reference.errors(&estimate);
    let scores = |values: &[f64]| {
        let mut scores = Scores::new();
        for (page, value) in values.iter().enumerate() {
            scores.push(page.to_string().as_bytes(), *value).unwrap();
        }
        scores
    };
    let other = compare(scores(&estimate), scores(reference.importance())).unwrap();
    let tau = other.kendall_tau_b.unwrap();
    for (ours, theirs) in [
        (errors.all, other.relative_error_percent),
        (errors.top, other.relative_error_top_tenth_percent),
        (errors.weighted, 100.0 * other.l1),
        (errors.ordering, 50.0 * (1.0 - tau)),
    ] {
        assert!((ours - theirs).abs() <= 1e-9 * theirs, "{ours} {theirs}");
    }
}

/// k leaves link to a hub without links: leaves have 1 each, the hub 1 + d k (see `pagerank`). An estimate of 1/n for
/// all has known errors.
#[test]
fn a_star_by_hand() {
    let d = 3_650_722_201.0 / 4_294_967_296.0; // 0.85 as used.
    let leaves: Vec<u32> = (1..10).collect();
    let graph = Graph::of_pairs(10, &leaves, &[0; 9], SelfLinks::Drop);
    let web = Web::of_graph(&graph, 1).unwrap();
    let reference = Reference::of(&web, 0.85).unwrap();
    let sum = 10.0 + 9.0 * d;
    let (leaf, hub) = (1.0 / sum, (1.0 + 9.0 * d) / sum);
    assert!((reference.importance()[0] - hub).abs() < 1e-6);
    assert!((reference.importance()[5] - leaf).abs() < 1e-6);
    let errors = reference.errors(&[1.0; 10]);
    let (of_leaf, of_hub) = (100.0 * (0.1 - leaf) / leaf, 100.0 * (hub - 0.1) / hub);
    let all = (9.0 * of_leaf + of_hub) / 10.0;
    assert!((errors.all - all).abs() < 1e-3);
    assert!((errors.top - of_hub).abs() < 1e-3); // One page is a tenth of ten.
    assert!((errors.weighted - 200.0 * (hub - 0.1)).abs() < 1e-3);
    assert_eq!(errors.above_twice, 0.0); // Nine of ten make the mean.
    assert_eq!(errors.ordering, 50.0); // All alike is no order.
    let exact = reference.errors(reference.importance());
    assert!(
        exact.all < 1e-9 && exact.weighted < 1e-9 && exact.ordering == 0.0,
        "{exact:?}"
    );
}

/// Pages that vanished are ignored, whatever the estimate; unknown live ones count 100 %.
#[test]
fn only_live_pages_count() {
    let mut web = power_web(200, 4);
    (0..50).for_each(|_| web.vanish().unwrap());
    let reference = Reference::of(&web, 0.85).unwrap();
    let sum: f64 = reference.importance().iter().sum();
    assert!((sum - 1.0).abs() < 1e-12);
    let mut estimate = reference.importance().to_vec();
    for page in (0..200).filter(|&page| !web.is_live(page)) {
        estimate[page as usize] = 0.5;
    }
    assert!(reference.errors(&estimate).all < 1e-9);
    let nothing = reference.errors(&[0.0; 200]);
    assert_eq!((nothing.all, nothing.top), (100.0, 100.0));
}
