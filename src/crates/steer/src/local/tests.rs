//! Compares with dense matrices, exact PageRank and hand-made examples.

use proptest::prelude::*;

use super::select::{norms, parts, siblings};
use super::*;
use crate::Result;
use crate::engine::SelfLinks;
use crate::graph::{Graph, GraphBuilder, Links};
use crate::rank::pagerank::{self, PowerOptions, pagerank};
use crate::rows::{Row, Rows, RowsVisitor, Stop};

/// 0.85 as exact PageRank uses it: in steps of 2^-32.
const ALPHA: f64 = 3_650_722_201.0 / 4_294_967_296.0;

fn power() -> PowerOptions {
    PowerOptions {
        damping: ALPHA,
        residual: 1e-14,
    }
}

fn scores(policy: Policy, matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64> {
    policy.scores(matrix, ranks, damping, 1)
}

/// Returns exact options with this estimate.
fn options(extrapolates: bool) -> LocalOptions {
    LocalOptions {
        power: power(),
        extrapolates,
        ..LocalOptions::of(ALPHA)
    }
}

/// Fetches pages of a web that the policy chooses, `count` in each round, until there are no more. Returns the known
/// graph and the ranks of the last round.
fn searched(
    web: &Web,
    mut known: LocalGraph,
    options: &LocalOptions,
    (rounds, count): (usize, usize),
) -> (LocalGraph, Vec<f64>) {
    let mut ranks = Vec::new();
    for _ in 0..rounds {
        let matrix = known.matrix();
        ranks = matrix.ranks(&options.power, &ranks);
        let asked = options.requests(&matrix, &ranks, count, |_| 0);
        assert!(asked.len() <= count);
        if asked.is_empty() {
            break;
        }
        for asked in asked {
            assert!(!known.is_fetched(asked.page), "{}", options.policy);
            known.fetch(asked.page, web[asked.page as usize].iter().copied());
        }
    }
    ranks = known.matrix().ranks(&options.power, &ranks);
    (known, ranks)
}

/// S f - f for one page of the frontier, in parts: x + (g z - y) at each member.
#[derive(Debug)]
struct Difference {
    g: f64,
    y: f64,
    /// Siblings and their losses: members, each once.
    x: Vec<(u32, f64)>,
}

/// Returns z, and S f - f for each page of the frontier.
fn differences(matrix: &Matrix, ranks: &[f64]) -> (Vec<f64>, Vec<Difference>) {
    let (z, y, into) = parts(matrix, ranks, ALPHA);
    let mut cells = vec![0.0; matrix.members()];
    let differences = into.into_iter().enumerate().map(|(place, g)| {
        let x = siblings(matrix, ranks, ALPHA, place, &mut cells);
        Difference { g, y, x }
    });
    let differences = differences.collect();
    (z, differences)
}

/// Web as rows of targets.
type Web = Vec<Vec<u32>>;

fn known(web: &Web, domain: usize, outside: usize) -> LocalGraph {
    let mut known = LocalGraph::default();
    for (page, row) in web.iter().enumerate().take(domain + outside) {
        if page == domain {
            known.close_domain().unwrap();
        }
        known.fetch(page as u32, row.iter().copied());
    }
    if outside == 0 {
        known.close_domain().unwrap();
    }
    known
}

fn graph(web: &Web) -> Graph {
    let mut builder = GraphBuilder::new(SelfLinks::Drop);
    builder.grow(web.len());
    for (page, row) in (0..).zip(web) {
        builder.row(page, row.iter().copied());
    }
    builder.build()
}

fn exact(web: &Web) -> Vec<f64> {
    let options = pagerank::PowerOptions {
        residual: 1e-14,
        ..pagerank::PowerOptions::default()
    };
    pagerank(&graph(web), options).unwrap().scores
}

fn normalised(ranks: &[f64]) -> Vec<f64> {
    let sum: f64 = ranks.iter().sum();
    ranks.iter().map(|rank| rank / sum).collect()
}

fn l1(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Generates webs of 3 to 14 pages, many of them dangling.
fn webs() -> impl Strategy<Value = Web> {
    (3usize..15).prop_flat_map(|pages| {
        let row = prop::collection::vec(0..pages as u32, 0..5);
        prop::collection::vec(row, pages)
    })
}

/// Web as rows of targets with weights.
type Weighted = Vec<Vec<(u32, u64)>>;

fn weighted_webs() -> impl Strategy<Value = Weighted> {
    (3usize..15).prop_flat_map(|pages| {
        let row = prop::collection::vec((0..pages as u32, 0u64..5), 0..5);
        prop::collection::vec(row, pages)
    })
}

fn known_weighted(web: &Weighted, domain: usize, outside: usize) -> LocalGraph {
    let mut known = LocalGraph::default();
    for (page, row) in web.iter().enumerate().take(domain + outside) {
        if page == domain {
            known.close_domain().unwrap();
        }
        known.fetch_weighted(page as u32, row.iter().copied());
    }
    if outside == 0 {
        known.close_domain().unwrap();
    }
    known
}

fn exact_weighted(web: &Weighted) -> Vec<f64> {
    let mut builder = GraphBuilder::new(SelfLinks::Drop);
    builder.grow(web.len());
    for (page, row) in (0..).zip(web) {
        builder.weighted_row(page, row.iter().copied());
    }
    let options = pagerank::PowerOptions {
        residual: 1e-14,
        ..pagerank::PowerOptions::default()
    };
    pagerank(&builder.build(), options).unwrap().scores
}

/// Computes S f for the page at `place` of the frontier, from the dense matrix of equation 9: column by column, a
/// member's links among members and to the page; uniform without any.
fn dense_complement(matrix: &Matrix, ranks: &[f64], place: u32) -> Vec<f64> {
    let l = matrix.members();
    let mut links_in = vec![0.0; l];
    for &target in matrix.inside.targets() {
        links_in[target as usize] += 1.0;
    }
    let links: f64 = links_in.iter().sum();
    let jump = (1.0 - ALPHA) / (l + 1) as f64;
    let mut stays = vec![0.0; l];
    let mut into = 0.0; // What flows to the page.
    for (k, &rank) in ranks.iter().enumerate() {
        let mut rows: Vec<usize> = matrix.inside.row(k).iter().map(|&t| t as usize).collect();
        if matrix.sources.row(place as usize).contains(&(k as u32)) {
            rows.push(l);
        }
        if rows.is_empty() {
            rows = (0..=l).collect();
        }
        let mut column = vec![jump; l + 1];
        for &row in &rows {
            column[row] += ALPHA / rows.len() as f64;
        }
        into += column[l] * rank;
        for (stays, p) in stays.iter_mut().zip(&column) {
            *stays += p * rank;
        }
    }
    let w = jump;
    let parts = stays.iter().zip(&links_in);
    let member = |(stays, &count): (&f64, &f64)| {
        let s = if links > 0.0 {
            count / links
        } else {
            1.0 / l as f64
        };
        stays + (ALPHA * s + jump) * into / (1.0 - w)
    };
    parts.map(member).collect()
}

proptest! {
    #[test]
    fn norms_are_sums(z in prop::collection::vec(1e-6f64..1.0, 1..40), g in 1e-3f64..1.0, y in 1e-6f64..0.5) {
        let sum: f64 = z.iter().map(|z| (g * z - y).abs()).sum();
        prop_assert!((norms(&z)(g, y) - sum).abs() < 1e-12);
    }

    /// Algorithm 3's sums equal those of the matrices that they stand for, without dangling members; and they move
    /// rank without creating any.
    #[test]
    fn stochastic_complementation_is_that_of_the_matrix(mut web in webs(), split in 0.2f64..0.8) {
        let fetched = ((web.len() as f64 * split) as usize).max(2);
        for (page, row) in web[..fetched].iter_mut().enumerate() {
            row.push((page + 1) as u32 % fetched as u32);
        }
        let domain = fetched.div_ceil(2);
        let matrix = known(&web, domain, fetched - domain).matrix();
        let ranks = matrix.ranks(&power(), &[]);
        let (z, differences) = differences(&matrix, &ranks);
        let influences = scores(Policy::Complement, &matrix, &ranks, ALPHA);
        for (place, difference) in (0..).zip(&differences) {
            let mut moved: Vec<f64> = z.iter().map(|z| difference.g * z - difference.y).collect();
            for &(member, x) in &difference.x {
                moved[member as usize] += x;
            }
            let complement = dense_complement(&matrix, &ranks, place);
            let expected: Vec<f64> = complement.iter().zip(&ranks).map(|(s, f)| s - f).collect();
            prop_assert!(l1(&moved, &expected) < 1e-12, "{moved:?} {expected:?}");
            prop_assert!(moved.iter().sum::<f64>().abs() < 1e-12);
            let influence: f64 = expected[..domain].iter().map(|x| x.abs()).sum();
            prop_assert!((influences[place as usize] - influence).abs() < 1e-12);
        }
    }

    /// With nothing fetched outside, the estimate is the PageRank of the domain by itself; with everything, that of the
    /// web.
    #[test]
    fn estimates_go_from_the_domains_own_rank_to_that_of_the_web(web in webs(), domain in 1usize..3) {
        for extrapolates in [false, true] {
            let own: Web = web[..domain].iter().map(|row| row.iter().copied().filter(|&t| (t as usize) < domain).collect()).collect();
            for (outside, expected) in [(0, exact(&own)), (web.len() - domain, exact(&web))] {
                let known = known(&web, domain, outside);
                let matrix = known.matrix();
                let ranks = matrix.ranks(&power(), &[]);
                let estimate = estimate(&known, &matrix, &ranks, &options(extrapolates));
                let expected = normalised(&expected[..domain]);
                prop_assert!(l1(&estimate.ranks, &expected) < 1e-10, "{:?} {expected:?}", estimate.ranks);
            }
        }
    }

    /// Pages that cannot be fetched count as pages without links: once all others were fetched, the ranks are the exact
    /// PageRank of that web, whatever failed and when, and nothing leaks.
    #[test]
    fn what_cannot_be_fetched_has_no_links(web in webs(), domain in 1usize..3, fails in prop::collection::vec(any::<bool>(), 15)) {
        let mut known = known(&web, domain, 0);
        let mut left = web.clone();
        for page in domain..web.len() {
            if fails[page] {
                known.lost(page as u32);
                left[page].clear();
            } else {
                known.fetch(page as u32, web[page].iter().copied());
            }
        }
        let matrix = known.matrix();
        let ranks = matrix.ranks(&power(), &[]);
        let expected = normalised(&exact(&left)[..domain]);
        for extrapolates in [false, true] {
            let estimate = estimate(&known, &matrix, &ranks, &options(extrapolates));
            prop_assert!(l1(&estimate.ranks, &expected) < 1e-10, "{:?} {expected:?}", estimate.ranks);
            prop_assert_eq!(estimate.leak, 0.0);
        }
    }

    /// With weighted links and everything fetched, the ranks are the exact PageRank of the weighted web.
    #[test]
    fn weighted_links_hand_on_by_weight(web in weighted_webs(), domain in 1usize..3) {
        let all = known_weighted(&web, domain, web.len() - domain);
        let matrix = all.matrix();
        let ranks = matrix.ranks(&power(), &[]);
        let estimate = estimate(&all, &matrix, &ranks, &options(false));
        let expected = exact_weighted(&web);
        prop_assert!(l1(&estimate.ranks, &normalised(&expected[..domain])) < 1e-10);
    }

    /// Equal weights, whatever their value, have no effect.
    #[test]
    fn equal_weights_are_none(web in webs(), domain in 1usize..3, weight in 1u64..1 << 40) {
        let weighted = web.iter().map(|row| row.iter().map(|&target| (target, weight)).collect()).collect();
        let (a, b) = (known(&web, domain, 1), known_weighted(&weighted, domain, 1));
        prop_assert_eq!(a.matrix(), b.matrix());
    }

    /// Scores of weighted links are finite for each policy.
    #[test]
    fn scores_of_weighted_links_are_numbers(web in weighted_webs(), split in 0.2f64..0.8) {
        let fetched = ((web.len() as f64 * split) as usize).max(1);
        let domain = fetched.div_ceil(2);
        let matrix = known_weighted(&web, domain, fetched - domain).matrix();
        let ranks = matrix.ranks(&power(), &[]);
        for policy in Policy::ALL {
            let scores = scores(policy, &matrix, &ranks, ALPHA);
            prop_assert_eq!(scores.len(), matrix.frontier.len());
            prop_assert!(scores.iter().all(|score| score.is_finite()), "{policy} {scores:?}");
        }
    }

    /// What links from outside pass to a page is a part of its rank.
    #[test]
    fn what_comes_from_outside_is_a_part(web in webs(), split in 0.1f64..1.0) {
        let fetched = ((web.len() as f64 * split) as usize).max(1);
        let domain = fetched.div_ceil(2);
        let known = known(&web, domain, fetched - domain);
        let matrix = known.matrix();
        let ranks = matrix.ranks(&power(), &[]);
        let estimate = estimate(&known, &matrix, &ranks, &options(false));
        prop_assert!(estimate.outside.iter().all(|part| (0.0..=1.0).contains(part)));
    }

    /// The matrix of the first members equals the one at the time when there were no others.
    #[test]
    fn a_matrix_of_the_past_is_as_it_was(web in webs()) {
        let all = known(&web, 1, web.len() - 1);
        for members in 1..web.len() {
            let then = known(&web, 1, members - 1).matrix();
            let now = all.matrix_of(members);
            prop_assert_eq!(&then.inside, &now.inside);
            prop_assert_eq!(&then.frontier, &now.frontier);
            prop_assert_eq!(&then.sources, &now.sources);
        }
    }

    /// Whatever the policy: at first the ranks are those of the domain by itself; no page is requested twice; in the
    /// end everything reachable is known; and if that is the web, the ranks are its exact PageRank.
    #[test]
    fn a_search_ends_with_all_that_can_be_reached(web in webs(), ring in any::<bool>(), count in 1usize..4) {
        let mut web = web;
        let pages = web.len() as u32;
        if ring {
            (0..pages).for_each(|page| web[page as usize].push((page + 1) % pages));
        }
        let two: Web = web[..2].iter().map(|row| row.iter().copied().filter(|&page| page < 2).collect()).collect();
        let (own, global) = (exact(&two), exact(&web));
        let mut reached = vec![false; web.len()];
        let mut queue = vec![0u32, 1];
        while let Some(page) = queue.pop() {
            if !std::mem::replace(&mut reached[page as usize], true) {
                queue.extend(&web[page as usize]);
            }
        }
        for policy in Policy::ALL {
            let options = |extrapolates| LocalOptions { policy, ..options(extrapolates) };
            let alone = known(&web, 2, 0);
            let matrix = alone.matrix();
            let first = estimate(&alone, &matrix, &[], &options(true));
            prop_assert!(l1(&first.ranks, &normalised(&own)) < 1e-9);
            let (found, ranks) = searched(&web, alone, &options(true), (99, count));
            prop_assert_eq!(found.fetched.len(), reached.iter().filter(|&&r| r).count());
            for extrapolates in [true, false] {
                let estimate = estimate(&found, &found.matrix(), &ranks, &options(extrapolates));
                prop_assert_eq!(estimate.leak, 0.0);
                let ranks = estimate.ranks;
                if reached.iter().all(|&reached| reached) {
                    prop_assert!(l1(&ranks, &normalised(&global[..2])) < 1e-9, "{policy} {ranks:?}");
                }
            }
        }
    }
}

/// Two pages that link to each other, one of them outside: each has 1/2, of which the other passes it 0.85.
#[test]
fn the_rank_that_comes_from_outside() {
    let known = known(&vec![vec![1], vec![0]], 1, 1);
    let matrix = known.matrix();
    let ranks = matrix.ranks(&power(), &[]);
    let estimate = estimate(&known, &matrix, &ranks, &options(false));
    assert!((estimate.outside[0] - ALPHA).abs() < 1e-12);
    assert_eq!((estimate.ranks[0], estimate.leak), (1.0, 0.0));
}

/// Half of the links lead to unfetched pages: half of the rank leaks.
#[test]
fn links_that_were_not_followed_leak() {
    // 0 <-> 1, and 0 -> 2, 1 -> 3, both not fetched.
    let known = known(&vec![vec![1, 2], vec![0, 3], vec![], vec![]], 2, 0);
    let matrix = known.matrix();
    let ranks = matrix.ranks(&power(), &[]);
    let estimate = estimate(&known, &matrix, &ranks, &options(false));
    assert!((estimate.leak - 0.5).abs() < 1e-12);
    assert_eq!(estimate.outside, [0.0, 0.0]);
}

/// ```text
/// domain: 0 -> 1, 2, 3    1 -> 0, 3     outside, fetched: 2 -> 3, 4    not fetched: 3, 4
/// ```
#[test]
fn scores_by_hand() {
    let web: Web = vec![vec![1, 2, 3], vec![0, 3], vec![3, 4], vec![], vec![]];
    let matrix = known(&web, 2, 1).matrix();
    assert_eq!(matrix.frontier, [3, 4]);
    let ranks = [0.5, 0.3, 0.2];
    let near = |scores: Vec<f64>, expected: [f64; 2]| {
        assert!(l1(&scores, &expected) < 1e-12, "{scores:?} {expected:?}");
    };
    // o is 2, 1 and 0.
    let flow = scores(Policy::Flow, &matrix, &ranks, ALPHA);
    near(flow, [0.5 / 3.0 + 0.3 / 2.0 + 0.2, 0.2]);
    near(
        scores(Policy::OutlinkCount, &matrix, &ranks, ALPHA),
        [2.0, 0.0],
    );
    // None of the links of 2 leads into the domain.
    let share = scores(Policy::Share, &matrix, &ranks, ALPHA);
    near(share, [0.5 / 3.0 + 0.3 / 2.0, 0.0]);
}

/// ```text
/// domain: 0 -> 1, 2    1 -> 0    2 -> 4     not fetched: 4    so 2 is dangling in F
/// ```
/// The paper's formulas ignore dangling members: g is all that 2 holds, plus the random surfer's part; z is distributed
/// over in-links, of which 0, 1 and 2 have one each; 4 has no siblings.
#[test]
fn complements_as_the_paper_has_them_know_no_dangling_members() {
    let web: Web = vec![vec![1, 2], vec![0], vec![4], vec![], vec![]];
    let matrix = known(&web, 2, 1).matrix();
    let ranks = [0.4, 0.3, 0.3];
    let (z, differences) = differences(&matrix, &ranks);
    let w = (1.0 - ALPHA) / 4.0;
    let [difference] = &differences[..] else {
        panic!("{differences:?}");
    };
    assert!((difference.g - (w + ALPHA * 0.3)).abs() < 1e-12);
    assert!((difference.y - w / 3.0).abs() < 1e-12);
    assert!(difference.x.is_empty());
    let each = (ALPHA / 3.0 + w) / (1.0 - w);
    assert!(l1(&z, &[each; 3]) < 1e-12);
}

/// ```text
/// domain: 0 -> 1, 2    outside: 1 -> 0, 3, 4    2 -> 3, 5    not fetched: 3, 4, 5
/// ```
#[test]
fn siblings_of_pages_that_link_into_the_domain_come_first() {
    let web: Web = vec![
        vec![1, 2],
        vec![0, 3, 4],
        vec![3, 5],
        vec![],
        vec![],
        vec![],
    ];
    let matrix = known(&web, 1, 2).matrix();
    assert_eq!(matrix.frontier, [3, 4, 5]);
    let share = scores(Policy::Share, &matrix, &[0.6, 0.2, 0.2], ALPHA);
    // A third of the links of 1 lead into the domain, none of 2; 1 has one link among members.
    let each = 0.2 / 2.0 / 3.0;
    assert!(l1(&share, &[each, each, 0.0]) < 1e-12, "{share:?}");
}

#[test]
fn the_best_come_first_and_of_equal_ones_the_first_known() {
    let scores = [1.0, 3.0, 2.0, 3.0, 0.0];
    let best = |scores: &[f64], count| best_by(scores, count, |_| 0);
    assert_eq!(best(&scores, 3), [1, 3, 2]);
    assert_eq!(best(&scores, 9), [1, 3, 2, 0, 4]);
    assert!(best(&scores, 0).is_empty());
    assert!(best(&[], 2).is_empty());
}

#[test]
fn repeats_links_to_itself_and_lost_pages_are_no_links() {
    let mut known = LocalGraph::default();
    known.fetch(7, [7, 9, 8, 9]);
    known.close_domain().unwrap();
    known.fetch(7, [3]); // Fetched before.
    assert_eq!((known.links(), known.has(3)), (2, false));
    // A page that could not be fetched is not asked for again, and counts as a page without links, until it is fetched.
    known.lost(9);
    known.lost(9);
    let matrix = known.matrix();
    assert_eq!(
        (&matrix.frontier[..], matrix.members(), matrix.failed),
        (&[8][..], 2, 1)
    );
    assert_eq!(
        (matrix.out[0], matrix.leaks(0), matrix.out[1]),
        (2.0, 1.0, 0.0)
    );
    assert!(known.is_fetched(7) && !known.is_fetched(9) && !known.is_fetched(1));
    let mut late = known.clone();
    late.fetch(9, [7]);
    let matrix = late.matrix();
    assert_eq!(
        (matrix.members(), matrix.failed, late.matrix().failed),
        (2, 0, 0)
    );
    assert_eq!(matrix.inside.row(1), [0]);
    // A page that is gone counts as a page without links.
    known.gone(8);
    known.gone(7); // Fetched before.
    let matrix = known.matrix();
    assert_eq!((matrix.members(), known.gone, matrix.failed), (3, 1, 1));
    assert_eq!((matrix.frontier.len(), matrix.leaks(0)), (0, 0.0));
}

#[test]
fn rows_give_the_domain_and_pages_fetched_outside() {
    let web: Web = vec![vec![1], vec![2, 0], vec![3], vec![0], vec![]];
    let all = LocalGraph::of_rows(&graph(&web), &[1, 2]).unwrap();
    assert_eq!((all.domain, all.fetched.len()), (2, 5));
    assert_eq!(all.fetched, [1, 2, 0, 3, 4]);
}

struct OneRow(Row<'static>);

impl Rows for OneRow {
    fn pages(&self) -> u64 {
        9
    }

    fn links(&self) -> u64 {
        self.0.targets.len() as u64
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        visit(&[self.0])
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |result: Result<LocalGraph>, says: &str| match result {
        Err(refused) if refused.is_refusal() => {
            let text = refused.to_string();
            assert!(text.contains(says), "{text}");
        }
        other => panic!("{other:?}"),
    };
    let row = |targets, weights, gone| {
        OneRow(Row {
            page: 1,
            gone,
            links: Links { targets, weights },
        })
    };
    // No page of the domain has links, since none was fetched or all are gone.
    let links = row(&[2, 3], &[], false);
    refused(
        LocalGraph::of_rows(&links, &[0, 5]),
        "no page that was fetched",
    );
    refused(LocalGraph::of_rows(&links, &[]), "no page that was fetched");
    let gone = row(&[], &[], true);
    refused(LocalGraph::of_rows(&gone, &[1]), "no page that was fetched");
    // A link of weight 0 does not count.
    let alike = LocalGraph::of_rows(&row(&[2, 3, 4], &[5, 0, 5], false), &[1]).unwrap();
    assert_eq!(alike.matrix().frontier, [2, 4]);
}

/// No link leads out: nothing to ask for, and the domain's own ranks.
#[test]
fn a_domain_without_links_out_has_nothing_to_fetch() {
    let web: Web = vec![vec![1], vec![0], vec![0]];
    let (known, options) = (known(&web, 2, 0), LocalOptions::of(0.85));
    let matrix = known.matrix();
    let ranks = matrix.ranks(&options.power, &[]);
    assert_eq!(options.requests(&matrix, &ranks, 10, |_| 0), []);
    let estimate = estimate(&known, &matrix, &ranks, &options);
    assert!(l1(&estimate.ranks, &[0.5, 0.5]) < 1e-6);
    assert_eq!(estimate.extrapolated, 0.0);
}

/// Ranks between rounds are as exact as the policy needs; those of an estimate are as exact as requested.
#[test]
fn estimates_are_exact_whatever_the_policy_asks_for() {
    let web: Web = (0..300u32)
        .map(|page| {
            (0..1 + page % 4)
                .map(|k| (page * 17 + k * k * 13 + 1) % 300)
                .collect()
        })
        .collect();
    let (known, ranks) = searched(&web, known(&web, 30, 0), &options(false), (6, 20));
    let matrix = known.matrix();
    let expected = normalised(&matrix.ranks(&power(), &[])[..30]);
    let estimate = estimate(&known, &matrix, &ranks, &options(false));
    assert!(l1(&estimate.ranks, &expected) < 1e-12);
}

/// Extrapolation never changes the order of pages or their ties.
#[test]
fn extrapolation_keeps_the_order() {
    let web: Web = (0..200u32)
        .map(|page| {
            (0..1 + page % 5)
                .map(|k| (page * page * 7 + k * 31 + page / 3) % 200)
                .collect()
        })
        .collect();
    let mut extrapolated = 0;
    for outside in 4..120 {
        let known = known(&web, 40, outside);
        let matrix = known.matrix();
        let ranks = matrix.ranks(&power(), &[]);
        let plain = estimate(&known, &matrix, &ranks, &options(false));
        let ahead = estimate(&known, &matrix, &ranks, &options(true));
        extrapolated += u32::from(ahead.extrapolated > 0.0);
        assert!((ahead.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for a in 0..40 {
            for b in 0..40 {
                let (p, q) = (
                    plain.ranks[a] - plain.ranks[b],
                    ahead.ranks[a] - ahead.ranks[b],
                );
                assert!(p * q >= 0.0, "{a} {b} {p} {q}");
            }
        }
    }
    assert!(extrapolated > 10, "{extrapolated}");
}
