use super::*;
use crate::metrics::NameHash;
use proptest::prelude::*;

fn wanted(count: usize, by: By) -> MoveOptions {
    MoveOptions {
        count,
        by,
        top: u64::MAX,
        certain_only: false,
    }
}

/// Computes ranks by definition: 1 + pages of strictly greater importance.
fn standings(importances: &[Option<f64>]) -> Vec<Option<Standing>> {
    let above = |x: f64| importances.iter().flatten().filter(|&&y| y > x).count() as u64;
    let standing = |x: &Option<f64>| {
        x.map(|importance| Standing {
            importance,
            rank: 1 + above(importance),
        })
    };
    importances.iter().map(standing).collect()
}

type Sides = (Vec<Option<Standing>>, Vec<Option<Standing>>);

fn run(sides: &Sides, wanted: MoveOptions) -> Moves {
    run_within(sides, wanted, None)
}

/// Finds the moves of two sides that both have this bound, which is then the margin.
fn run_within((left, right): &Sides, wanted: MoveOptions, bound: Option<f64>) -> Moves {
    let pages = [left, right].map(|side| side.iter().flatten().count() as u64);
    let mut movers = MoveCollector::new(wanted, [bound; 2], pages);
    for (page, (left, right)) in left.iter().zip(right).enumerate() {
        movers.add(page as u128, *left, *right);
    }
    movers.finish()
}

fn pages(of: &[Mover]) -> Vec<usize> {
    of.iter().map(|page| page.key as usize).collect()
}

/// Six pages. Sixteenths are exact.
///
/// | page | left | rank | right | rank | change | relative | ranks |
/// |---|---|---|---|---|---|---|---|
/// | 0 | 8/16 | 1 | 6/16 | 1 | -2/16 | -1/4 | 0 |
/// | 1 | 4/16 | 2 | 3/16 | 3 | -1/16 | -1/4 | -1 |
/// | 2 | 2/16 | 3 | 4/16 | 2 | +2/16 | +1 | 1 |
/// | 3 | 0 | 5 | 2/16 | 4 | +2/16 | none | 1 |
/// | 4 | 2/16 | 3 | - | | | | |
/// | 5 | - | | 1/16 | 5 | | | |
fn by_hand() -> Sides {
    let shares = |parts: [Option<u8>; 6]| -> Vec<Option<f64>> {
        parts
            .iter()
            .map(|p| p.map(|p| f64::from(p) / 16.0))
            .collect()
    };
    let left = shares([Some(8), Some(4), Some(2), Some(0), Some(2), None]);
    let right = shares([Some(6), Some(3), Some(4), Some(2), None, Some(1)]);
    (standings(&left), standings(&right))
}

#[test]
fn what_moved_by_hand() {
    let sides = by_hand();
    let found = run(&sides, wanted(10, By::Change));
    // 2 and 3 gained equally; 2 ranks better now.
    assert_eq!(pages(&found.rose), [2, 3]);
    assert_eq!(pages(&found.fell), [0, 1]);
    assert_eq!(pages(&found.new), [5]);
    assert_eq!(pages(&found.missing), [4]);
    let two = &found.rose[0];
    assert_eq!(
        (two.change(), two.relative(), two.rank_change()),
        (0.125, Some(1.0), Some(1))
    );
    assert_eq!(found.rose[1].relative(), None);
    for (bound, certain) in [
        (None, None),
        (Some(0.124), Some(true)),
        (Some(0.125), Some(false)),
    ] {
        let found = run_within(&sides, wanted(10, By::Change), bound);
        assert_eq!(found.rose[0].certain, certain);
    }

    let expected = MoveSummary {
        left_pages: 5,
        right_pages: 5,
        common_pages: 4,
        new_pages: 1,
        missing_pages: 1,
        rose_pages: 2,
        fell_pages: 2,
        unchanged_pages: 0,
        same_rank_pages: 1,
        margin: None,
        diluted_pages: 0,
        l1: (2 + 1 + 2 + 2 + 2 + 1) as f64 / 16.0,
        dilution_l1: 0.0,
        // (2, 1, 2, 2, 2, 1)/16.
        l2: 18f64.sqrt() / 16.0,
        linf: 0.125,
    };
    assert_eq!(found.summary, expected);

    // A rise from zero comes first; 0 and 1 lost a quarter each, 0 more importance.
    let found = run(&sides, wanted(10, By::Relative));
    assert_eq!(pages(&found.rose), [3, 2]);
    assert_eq!(pages(&found.fell), [0, 1]);
    let found = run(&sides, wanted(10, By::Rank));
    assert_eq!(pages(&found.rose), [2, 3]);
    assert_eq!(pages(&found.fell), [1]);
}

#[test]
fn certain_is_more_than_half_of_both_bounds() {
    assert_eq!(margin(Some(0.25), Some(0.5)), Some(0.375));
    assert_eq!(margin(None, Some(0.5)), None);
    assert_eq!(margin(Some(0.5), None), None);
    let sure = |margin| {
        let found = run_within(&by_hand(), wanted(0, By::Change), Some(margin)).summary;
        (found.rose_pages, found.fell_pages, found.unchanged_pages)
    };
    assert_eq!(sure(0.0), (2, 2, 0));
    assert_eq!(sure(0.1), (2, 1, 1));
    assert_eq!(sure(0.125), (0, 0, 4));
    let certain = MoveOptions {
        certain_only: true,
        ..wanted(9, By::Change)
    };
    let found = run_within(&by_hand(), certain, Some(0.1));
    assert_eq!(found.fell.len(), 1);
}

/// A page may rise in rank because another loses more than it loses itself.
#[test]
fn a_page_that_lost_importance_did_not_rise() {
    let (left, right) = (
        standings(&[Some(0.6), Some(0.4)]),
        standings(&[Some(0.1), Some(0.3)]),
    );
    let found = run(&(left, right), wanted(9, By::Rank));
    assert!(found.rose.is_empty());
    assert_eq!(pages(&found.fell), [0]);
}

/// Two pages become four. The first keeps its ratio to the mean of 1.5; that of the second goes from 0.5 to 1.5.
#[test]
fn what_new_pages_take_is_dilution() {
    let standing = |importance, rank| Some(Standing { importance, rank });
    let left = vec![standing(0.75, 1), standing(0.25, 2), None, None];
    let right = vec![
        standing(0.375, 1),
        standing(0.375, 1),
        standing(0.125, 3),
        standing(0.125, 3),
    ];
    for margin in [None, Some(0.01)] {
        let sides = (left.clone(), right.clone());
        let found = run_within(&sides, wanted(9, By::Change), margin).summary;
        assert_eq!((found.rose_pages, found.fell_pages), (1, 1));
        assert_eq!(found.diluted_pages, 1);
        // The whole loss of the first; the second gained in spite of it.
        assert_eq!((found.l1, found.dilution_l1), (0.75, 0.375));
    }
}

/// A thousand pages, ranked 1 to 1000; on the right the first five are last.
#[test]
fn ties_of_ranks_go_to_the_larger_change() {
    let mut movers = MoveCollector::new(wanted(3, By::Rank), [None; 2], [1000; 2]);
    for page in 0..1000u64 {
        let standing = |rank: u64| Standing {
            importance: (1001 - rank) as f64 / 500_500.0,
            rank,
        };
        let later = if page < 5 { 996 + page } else { page - 4 };
        movers.add(page.into(), Some(standing(page + 1)), Some(standing(later)));
    }
    let found = movers.finish();
    assert_eq!(found.summary.rose_pages, 995);
    // Five ranks each, so the greater gain of importance counts; these are equal too, so the better rank comes first.
    let rose: Vec<_> = found.rose.iter().map(|page| page.rank_change()).collect();
    assert_eq!(rose, [Some(5); 3]);
    assert_eq!(found.fell.len(), 3);
    assert!(found.fell.iter().all(|page| page.key < 5));
}

#[test]
fn sides_without_pages() {
    assert_eq!(
        run(&(vec![], vec![]), wanted(3, By::Change)).summary.l1,
        0.0
    );
    let full = standings(&[Some(0.5), Some(0.5)]);
    let found = run(&(vec![None; 2], full), wanted(3, By::Change));
    assert_eq!((found.summary.l1, found.summary.new_pages), (1.0, 2));
    let one = || {
        let mut scores = Scores::new();
        scores.push(b"a", 1.0).unwrap();
        scores
    };
    for (left, right) in [(Scores::new(), one()), (one(), Scores::new())] {
        assert!(moved_by_name(left, right, [None; 2], wanted(3, By::Change)).is_err());
    }
}

/// Generates few distinct values, so that there are ties of every kind.
fn sides() -> impl Strategy<Value = Sides> {
    let share = || prop::option::weighted(0.9, (0u8..8).prop_map(|part| f64::from(part) / 64.0));
    prop::collection::vec((share(), share()), 0..120).prop_map(|pairs| {
        let (left, right): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        (standings(&left), standings(&right))
    })
}

fn bys() -> impl Strategy<Value = By> {
    prop::sample::select(vec![By::Change, By::Relative, By::Rank])
}

/// Computes the lists as the module's head defines them: all pages sorted, then cut.
fn naive((left, right): &Sides, wanted: MoveOptions) -> [Vec<usize>; 4] {
    let listed = |page: usize| {
        let ranks = [left[page], right[page]];
        ranks.iter().flatten().any(|s| s.rank <= wanted.top)
    };
    let all = || (0..left.len()).filter(|&page| listed(page));
    let both = |page: usize| left[page].zip(right[page]);
    // (key, change), larger first.
    let keys = |page: usize| {
        let (l, r) = both(page).unwrap();
        let change = r.importance - l.importance;
        let key = match wanted.by {
            By::Change => change,
            By::Relative if change == 0.0 => 0.0,
            By::Relative => change / l.importance,
            By::Rank => l.rank as f64 - r.rank as f64,
        };
        (key, change)
    };
    let moved = |sign: f64| {
        let mut rows: Vec<usize> = all()
            .filter(|&page| both(page).is_some())
            .filter(|&page| sign * keys(page).0 > 0.0 && sign * keys(page).1 > 0.0)
            .collect();
        rows.sort_by(|&a, &b| {
            let ((key_a, change_a), (key_b, change_b)) = (keys(a), keys(b));
            let later = |page: usize| (right[page].unwrap().rank, page);
            (sign * key_b, sign * change_b)
                .partial_cmp(&(sign * key_a, sign * change_a))
                .unwrap()
                .then(later(a).cmp(&later(b)))
        });
        rows
    };
    let alone = |one: &[Option<Standing>], other: &[Option<Standing>]| {
        let mut rows: Vec<usize> = all()
            .filter(|&page| one[page].is_some() && other[page].is_none())
            .collect();
        rows.sort_by_key(|&page| (one[page].unwrap().rank, page));
        rows
    };
    let mut lists = [
        moved(1.0),
        moved(-1.0),
        alone(right, left),
        alone(left, right),
    ];
    lists
        .iter_mut()
        .for_each(|list| list.truncate(wanted.count));
    lists
}

fn listed(found: &Moves) -> [Vec<usize>; 4] {
    [
        pages(&found.rose),
        pages(&found.fell),
        pages(&found.new),
        pages(&found.missing),
    ]
}

proptest! {
    #[test]
    fn lists_are_all_pages_sorted_and_cut(
        sides in sides(),
        by in bys(),
        count in 0usize..20,
        top in prop_oneof![Just(u64::MAX), 1u64..60],
    ) {
        let wanted = MoveOptions { count, by, top, certain_only: false };
        prop_assert_eq!(listed(&run(&sides, wanted)), naive(&sides, wanted));
    }

    #[test]
    fn sums_are_by_definition(sides in sides(), margin in 0.0..0.1f64) {
        let (left, right) = &sides;
        let found = run_within(&sides, wanted(3, By::Change), Some(margin)).summary;
        let pairs = || left.iter().zip(right).filter_map(|(l, r)| l.zip(*r));
        let count = |test: &dyn Fn(Standing, Standing) -> bool| {
            pairs().filter(|(l, r)| test(*l, *r)).count() as u64
        };
        // Multiples of 1/64: sums are exact.
        let share = |side: &Option<Standing>| side.map_or(0.0, |side| side.importance);
        let l1: f64 = left.iter().zip(right).map(|(l, r)| (share(l) - share(r)).abs()).sum();
        prop_assert_eq!(found.l1, l1);
        prop_assert!((0.0..=l1 + 1e-12).contains(&found.dilution_l1));
        prop_assert!(found.diluted_pages <= found.rose_pages + found.fell_pages);
        prop_assert_eq!(found.common_pages, count(&|_, _| true));
        prop_assert_eq!(found.left_pages, left.iter().flatten().count() as u64);
        prop_assert_eq!(found.right_pages, right.iter().flatten().count() as u64);
        prop_assert_eq!(found.rose_pages, count(&|l, r| r.importance - l.importance > margin));
        prop_assert_eq!(found.fell_pages, count(&|l, r| l.importance - r.importance > margin));
        prop_assert_eq!(found.rose_pages + found.fell_pages + found.unchanged_pages, found.common_pages);
        prop_assert_eq!(found.same_rank_pages, count(&|l, r| l.rank == r.rank));
    }

    /// With sides swapped, what rose fell, and what was new is gone.
    #[test]
    fn sides_swap(sides in sides()) {
        let there = run(&sides, wanted(200, By::Change));
        let back = run(&(sides.1, sides.0), wanted(200, By::Change));
        let sorted = |mut pages: Vec<usize>| { pages.sort_unstable(); pages };
        let [rose, fell, new, gone] = listed(&there).map(sorted);
        prop_assert_eq!([fell, rose, gone, new], listed(&back).map(sorted));
        prop_assert_eq!((there.summary.l1, there.summary.linf), (back.summary.l1, back.summary.linf));
    }

    /// Joined by name, pages have the ranks and shares of the definition, and equal sums.
    #[test]
    fn names_join_as_numbers_do(sides in sides(), by in bys()) {
        let total = |side: &[Option<Standing>]| -> f64 {
            side.iter().flatten().map(|s| s.importance).sum()
        };
        prop_assume!(total(&sides.0) > 0.0 && total(&sides.1) > 0.0);
        let name = |page: usize| format!("page {page}");
        let shares = |side: &[Option<Standing>]| -> Vec<Option<Standing>> {
            let shares: Vec<_> =
                side.iter().map(|s| s.map(|s| s.importance / total(side))).collect();
            standings(&shares)
        };
        let scores = |side: &[Option<Standing>]| {
            let mut scores = Scores::new();
            for (page, standing) in side.iter().enumerate() {
                if let Some(standing) = standing {
                    scores.push(name(page).as_bytes(), standing.importance).unwrap();
                }
            }
            scores
        };
        let by_name = moved_by_name(scores(&sides.0), scores(&sides.1), [None; 2], wanted(200, by)).unwrap();
        let by_number = run(&(shares(&sides.0), shares(&sides.1)), wanted(200, by));
        let (mut named, mut numbered) = (by_name.summary.clone(), by_number.summary.clone());
        prop_assert!((named.l1 - numbered.l1).abs() < 1e-14);
        prop_assert!((named.dilution_l1 - numbered.dilution_l1).abs() < 1e-14);
        for found in [&mut named, &mut numbered] {
            (found.l1, found.dilution_l1) = (0.0, 0.0);
        }
        prop_assert_eq!(named, numbered);
        let sorted = |moves: &[Mover], key: &dyn Fn(u128) -> u128| -> Vec<Mover> {
            let keyed = moves.iter().map(|page| Mover { key: key(page.key), ..page.clone() });
            let mut rows: Vec<Mover> = keyed.collect();
            rows.sort_by_key(|row| row.key);
            rows
        };
        let of = |moves: &[Mover]| {
            sorted(moves, &|page| NameHash::of(name(page as usize).as_bytes()).into())
        };
        let hashed = |moves: &[Mover]| sorted(moves, &|key| key);
        prop_assert_eq!(hashed(&by_name.rose), of(&by_number.rose));
        prop_assert_eq!(hashed(&by_name.fell), of(&by_number.fell));
    }
}

/// With PageRank (0.5, 0.5), a ranking (0.55, 0.45) is 0.1 away: with that bound nothing is certain, and a smaller
/// bound would be wrong.
#[test]
fn a_page_is_certainly_above_another_beyond_the_bound_alone() {
    assert!(!is_certainly_above(0.55, 0.45, Some(0.1 + 1e-12)));
    assert!(is_certainly_above(0.55, 0.45, Some(0.0999)));
    assert!(!is_certainly_above(0.45, 0.55, Some(0.0)));
    assert!(!is_certainly_above(0.5, 0.5, Some(0.0)));
    assert!(!is_certainly_above(1.0, 0.0, None));
}
