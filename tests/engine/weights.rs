//! Weighted links. The reference is PageRank of the weighted walk, written from the definitions: a link weighs the
//! product of the weights of its kinds, a target what the heaviest link to it does, and a page distributes in
//! proportion.

use std::borrow::Cow;
use std::collections::HashMap;

use cashrank::Engine;
use cashrank_base::rules::{Follow, Rel};
use cashrank_crawl::decode::{Link, Names, Record};
use cashrank_graph::engine::Config;
use proptest::prelude::*;

use super::common::l1;

/// Pages with their links: target, and `rel` as bits.
type Web = Vec<(usize, Vec<(usize, u8)>)>;

const HOSTS: usize = 3;

fn url(page: usize) -> String {
    format!("http://h{}.example/{page}", page % HOSTS)
}

/// Returns the pages in order of first appearance.
fn order(web: &Web) -> Vec<usize> {
    let mut order = Vec::new();
    for (page, links) in web {
        for named in std::iter::once(*page).chain(links.iter().map(|link| link.0)) {
            if !order.contains(&named) {
                order.push(named);
            }
        }
    }
    order
}

/// Returns the weight of a link, from the definition.
fn weight(follow: &Follow, page: usize, target: usize, rel: u8) -> f64 {
    let place = if page % HOSTS == target % HOSTS {
        follow.internal
    } else {
        follow.external
    };
    let kinds = [follow.nofollow, follow.ugc, follow.sponsored];
    let of_rel = (0..3).filter(|kind| rel >> kind & 1 == 1);
    f64::from(place) * of_rel.map(|kind| f64::from(kinds[kind])).product::<f64>()
}

/// Computes PageRank by power iteration to the last bits, in the order of `pages`.
fn exact(web: &Web, pages: &[usize], follow: &Follow, damping: f64) -> Vec<f64> {
    let number: HashMap<usize, usize> = pages.iter().copied().zip(0..).collect();
    let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new(); pages.len()];
    for (page, links) in web {
        let mut row: HashMap<usize, f64> = HashMap::new();
        for &(target, rel) in links.iter().filter(|link| link.0 != *page) {
            let heaviest = row.entry(number[&target]).or_insert(0.0);
            *heaviest = heaviest.max(weight(follow, *page, target, rel));
        }
        rows[number[page]] = row.into_iter().collect();
    }
    let n = pages.len() as f64;
    let mut x = vec![1.0 / n; pages.len()];
    for _ in 0..2000 {
        let mut next = vec![0.0; pages.len()];
        let mut spread = 0.0;
        for (page, row) in rows.iter().enumerate() {
            let all: f64 = row.iter().map(|link| link.1).sum();
            let handed = if all > 0.0 { damping * x[page] } else { 0.0 };
            spread += x[page] - handed;
            for &(target, weight) in row.iter().filter(|_| all > 0.0) {
                next[target] += handed * weight / all;
            }
        }
        x = next.iter().map(|value| value + spread / n).collect();
    }
    x
}

/// Returns the engine's importance after `passes` passes, and its bound.
fn crawled(web: &Web, config: &Config, passes: usize) -> (Vec<f64>, f64) {
    let mut engine = Engine::new(config.clone()).unwrap();
    let mut reader = cashrank::Reader::new(&engine, Names::Url).unwrap();
    for _ in 0..passes {
        engine.begin_pass().unwrap();
        for (page, links) in web {
            let links = links.iter().map(|&(target, rel)| Link {
                url: Cow::Owned(url(target).into_bytes()),
                rel: Rel::all().nth(usize::from(rel)).unwrap(),
                weight: 1,
            });
            let record = Record {
                url: Cow::Owned(url(*page).into_bytes()),
                links: links.collect(),
                ..Record::default()
            };
            reader.apply(&mut engine, &record).unwrap();
        }
    }
    engine.ledger().check_law().unwrap();
    let ranking = engine.ranking().unwrap();
    let bound = ranking.window.certificate.and_then(|c| c.received_l1);
    let importance = ranking.pages.iter().map(|page| page.importance).collect();
    (importance, bound.unwrap_or(2.0))
}

fn config(follow: Follow) -> Config {
    let mut config = Config::default();
    config.follow = follow;
    config
}

fn webs() -> impl Strategy<Value = Web> {
    let links = prop::collection::vec((0usize..8, 0u8..8), 0..8);
    let rows = prop::collection::vec(links, 8);
    rows.prop_map(|rows| rows.into_iter().enumerate().collect())
}

fn weights() -> impl Strategy<Value = Follow> {
    prop::array::uniform5(0u32..5).prop_map(|[nofollow, ugc, sponsored, internal, external]| {
        Follow {
            nofollow,
            ugc,
            sponsored,
            internal,
            external,
            ..Follow::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_weighted_walk(web in webs(), follow in weights()) {
        let config = config(follow.clone());
        let (found, bound) = crawled(&web, &config, 300);
        let expected = exact(&web, &order(&web), &follow, config.damping());
        let distance = l1(&found, &expected);
        prop_assert!(distance <= bound + 1e-12, "{distance} > {bound}");
        prop_assert!(distance <= 1e-4, "{distance}, {bound}");
    }

    /// Links of weight 0 only make their targets known; and only proportions of weights matter.
    #[test]
    fn the_same_as_plain_links(web in webs(), scale in 1u32..1000) {
        let plain = crawled(&web, &Config::default(), 9);
        let same = Follow { internal: scale, external: scale, ..Follow::default() };
        let weighted = crawled(&web, &config(same.clone()), 9);
        let rels = web.iter().flat_map(|row| &row.1).all(|link| link.1 == 0);
        prop_assert!(!rels || plain == weighted);
        let bare: Web = web
            .iter()
            .map(|(page, links)| (*page, links.iter().map(|link| (link.0, 0)).collect()))
            .collect();
                prop_assert!(crawled(&bare, &config(same), 9) == crawled(&bare, &Config::default(), 9));
    }
}

/// a links to b, c and, with `nofollow`, to x; weights 3 for other hosts. b and c link back. With n = 4 and x without
/// links: a = (1 - d)/n + d (b + c) + d x/n, and so on for the closed form below.
#[test]
fn a_closed_form() {
    // Hosts: 0, 3 and 6 share one; 1 is on another.
    let web: Web = vec![
        (0, vec![(3, 0), (1, 0), (6, 1)]),
        (3, vec![(0, 0)]),
        (1, vec![(0, 0)]),
    ];
    let follow = "nofollow=0,external=3".parse().unwrap();
    let config = config(follow);
    let d = config.damping();
    let (found, _) = crawled(&web, &config, 400);
    // x = t, where t = (1 - d)/4 + d x/4; b = t + d a/4, c = t + d 3a/4, a = t + d (b + c).
    let x = (1.0 - d) / (4.0 - d);
    let a = x * (1.0 + 2.0 * d) / (1.0 - d * d);
    let expected = [a, x + d * a / 4.0, x + d * 3.0 * a / 4.0, x];
    assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(l1(&found, &expected) < 1e-6, "{found:?} {expected:?}");
}
