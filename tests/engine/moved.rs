//! Certain changes are true: between two snapshots of one stream, no page's change differs from the change of its
//! PageRank (each of its own window's graph) by more than the margin, and a certain one has its sign.

use cashrank_graph::engine::{Config, Ranking, WindowPolicy};
use cashrank_graph::metrics::moved::{By, MoveCollector, MoveOptions, Mover, Standing, margin};
use proptest::prelude::*;

use super::reference::Reference;
use super::stream::{Event, Fetch, Run, config, events};

/// Rounding of the reference's floating-point sums.
const SLACK: f64 = 1e-12;

/// Snapshot with its estimates.
struct Look {
    ranking: Ranking,
    pagerank: Vec<f64>,
}

impl Look {
    fn at(run: &mut Run, reference: &Reference) -> Look {
        let ranking = run.engine.ranking().unwrap();
        let pagerank = reference.window(ranking.window.mark as usize).pagerank();
        Look { ranking, pagerank }
    }

    fn bound(&self) -> Option<f64> {
        self.ranking.window.certificate?.received_l1
    }

    fn standing(&self, page: usize) -> Option<Standing> {
        self.ranking.pages.get(page).map(|page| Standing {
            importance: page.importance,
            rank: page.rank,
        })
    }
}

/// Checks every page; returns the number of certain changes.
fn check(left: &Look, right: &Look) -> Result<u64, TestCaseError> {
    let bounds = [left.bound(), right.bound()];
    let margin = margin(bounds[0], bounds[1]);
    let wanted = MoveOptions {
        count: 100,
        by: By::Change,
        top: u64::MAX,
        certain_only: false,
    };
    let counts = [left, right].map(|look| look.pagerank.len() as u64);
    let mut movers = MoveCollector::new(wanted, bounds, counts);
    let pages = left.pagerank.len().max(right.pagerank.len());
    for page in 0..pages {
        movers.add(page as u128, left.standing(page), right.standing(page));
    }
    let found = movers.finish();
    let truth = |page: &Mover| {
        let at = page.key as usize;
        right.pagerank[at] - left.pagerank[at]
    };
    let mut certain = 0;
    for page in found.rose.iter().chain(&found.fell) {
        let Some(margin) = margin else {
            prop_assert_eq!(page.certain, None);
            continue;
        };
        let (truth, change) = (truth(page), page.change());
        prop_assert!(
            (truth - change).abs() <= margin + SLACK,
            "{truth} {change} {margin}"
        );
        if page.certain == Some(true) {
            certain += 1;
            prop_assert!(
                truth * change.signum() > -SLACK,
                "{truth} {change} {margin}"
            );
        }
    }
    let sums = &found.summary;
    if margin.is_some() {
        prop_assert_eq!(sums.rose_pages + sums.fell_pages, certain);
    }
    Ok(certain)
}

/// Returns passes over a graph whose row `i` has page `i`'s links.
fn passes(rows: &[Vec<u32>], count: usize) -> Vec<Event> {
    let fetch = |(page, links): (usize, &Vec<u32>)| {
        Event::Fetch(Fetch {
            page: page as u32,
            status: Some(200),
            redirect: None,
            links: links.clone(),
            time: None,
        })
    };
    let pass = || std::iter::once(Event::BeginPass).chain(rows.iter().enumerate().map(fetch));
    (0..count).flat_map(|_| pass()).collect()
}

fn look(events: [&[Event]; 2], config: &Config) -> [Look; 2] {
    let mut run = Run::new(config);
    let mut reference = Run::reference(config);
    events.map(|events| {
        for event in events {
            run.apply(event);
            reference.apply(event);
        }
        Look::at(&mut run, &reference)
    })
}

/// Generates two graphs of the same pages, and passes over each.
fn graphs() -> impl Strategy<Value = [(Vec<Vec<u32>>, usize); 2]> {
    (2u32..9).prop_flat_map(|pages| {
        let row = proptest::collection::vec(0..pages, 0..5);
        let rows = || proptest::collection::vec(row.clone(), pages as usize);
        ((rows(), 1usize..25), (rows(), 1usize..25)).prop_map(|(one, other)| [one, other])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any stream, cut anywhere: growing graphs, links that change, gone pages.
    #[test]
    fn certain_changes_are_true(
        config in config(WindowPolicy::Auto),
        events in events(2..120),
        cut in any::<proptest::sample::Index>(),
    ) {
        let (before, after) = events.split_at(1 + cut.index(events.len() - 1));
        let mut run = Run::new(&config);
        let mut reference = Run::reference(&config);
        before.iter().for_each(|event| { run.apply(event); reference.apply(event); });
        prop_assume!(!reference.cash.is_empty());
        let left = Look::at(&mut run, &reference);
        after.iter().for_each(|event| { run.apply(event); reference.apply(event); });
        check(&left, &Look::at(&mut run, &reference))?;
    }

    /// Passes over a graph, and then over another: bounds are tight, which makes many changes certain.
    #[test]
    fn certain_changes_of_changed_links_are_true(
        config in config(WindowPolicy::Auto),
        [(before, first), (after, second)] in graphs(),
    ) {
        let events = [passes(&before, first), passes(&after, second)];
        let [left, right] = look([&events[0], &events[1]], &config);
        check(&left, &right)?;
    }

    /// If no link changed, PageRank did not change: nothing may be certain.
    #[test]
    fn nothing_is_certain_where_nothing_changed(
        config in config(WindowPolicy::Auto),
        [(rows, first), (_, second)] in graphs(),
    ) {
        let events = [passes(&rows, first), passes(&rows, second)];
        let [left, right] = look([&events[0], &events[1]], &config);
        let certain = check(&left, &right)?;
        // An exception: links that were read while pages were still unknown. Then the first window has other rows than
        // the second.
        let same = left.pagerank.iter().zip(&right.pagerank).all(|(l, r)| (l - r).abs() < 1e-13);
        prop_assert!(certain == 0 || !same, "{certain}");
    }
}

/// From a ring (1/n each) to a star of n - 1 leaves, whose hub has (1 + d (n - 1))/(n (1 + d)). After many passes all
/// changes are certain.
#[test]
fn from_a_ring_to_a_star() {
    let n = 6u32;
    let ring: Vec<Vec<u32>> = (0..n).map(|page| vec![(page + 1) % n]).collect();
    let star = (0..n).map(|page| if page == 0 { (1..n).collect() } else { vec![0] });
    let star: Vec<Vec<u32>> = star.collect();
    let config = Config::default();
    let events = [passes(&ring, 100), passes(&star, 300)];
    let [left, right] = look([&events[0], &events[1]], &config);
    assert_eq!(check(&left, &right).unwrap(), u64::from(n));
    let (d, k) = (config.damping(), f64::from(n) - 1.0);
    let hub = (1.0 + d * k) / ((k + 1.0) * (1.0 + d));
    let sides = (left.standing(0).unwrap(), right.standing(0).unwrap());
    let margin = margin(left.bound(), right.bound()).unwrap();
    let change = sides.1.importance - sides.0.importance;
    assert!(
        (change - (hub - 1.0 / f64::from(n))).abs() <= margin && margin < 1e-3,
        "{change} {margin}"
    );
}
