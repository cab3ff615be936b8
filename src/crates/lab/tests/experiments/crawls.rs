//! Crawls: conservation of cash, closed forms, determinism, and errors of parameters.

use cashrank_graph::engine::{Config, Estimator, SelfLinks, WindowPolicy};
use cashrank_graph::graph::Graph;
use cashrank_lab::crawl::Crawl;
use cashrank_lab::experiment::{Changes, Reading, Setting};
use cashrank_lab::strategy::Strategy;
use cashrank_lab::web::Web;

use super::{power_web, rows};

/// Whatever the web and the crawler do, the sum of all cash is what was endowed, to the last unit (Lemma 2.2).
#[test]
fn the_books_balance_on_webs_that_change() {
    for strategy in Strategy::ALL {
        for growing in [false, true] {
            let configs = [Config::default()];
            let web = power_web(2_001, 11);
            let mut crawl = Crawl::begin(web, strategy, growing, &configs, 3).unwrap();
            for step in 0..15_000 {
                crawl.step().unwrap();
                match step % 40 {
                    0 => crawl.web_mut().appear().unwrap(),
                    20 => crawl.web_mut().vanish().unwrap(),
                    n if n % 3 == 0 => crawl.web_mut().change_in_degree(),
                    _ => {}
                }
                if step % 500 == 0 {
                    crawl.ledger().check_law().unwrap();
                }
            }
            crawl.ledger().check_law().unwrap();
            let counters = crawl.engines()[0].counters().clone();
            assert!(counters.gone > 0 && counters.failed == 1, "{counters:?}");
            // The first record, which makes pages known, is not a crawl.
            assert_eq!(counters.records, 15_001);
            assert_eq!(counters.skipped_total(), 0);
        }
    }
}

/// A crawl that grows finds the pages that links lead to, and no strategy starves any: fifty passes suffice for the
/// giant component, which nearly all pages of this web are in.
#[test]
fn a_growing_crawl_finds_the_web() {
    for strategy in Strategy::ALL {
        let setting = Setting {
            strategy,
            growing: true,
            recycle_after: 8,
            passes: 50,
            ..Setting::default()
        };
        let web = power_web(2_000, 1);
        let mut reached = vec![false; 2_000];
        // The crawl draws its own seeds; from one page of the giant component the result is the same.
        let hub = (0..2_000).max_by_key(|&page| web.in_degree(page)).unwrap();
        let mut queue = vec![hub];
        while let Some(page) = queue.pop() {
            if !std::mem::replace(&mut reached[page as usize], true) {
                queue.extend(web.links(page));
            }
        }
        let reachable = reached.iter().filter(|&&is| is).count() as u64;
        assert!(reachable > 1_900);
        let rows = rows(&setting, web).unwrap();
        assert!(rows[0].known < 2_000 || rows[0].crawled == 2_000);
        let known = rows.last().unwrap().known;
        assert!(known >= reachable, "{strategy}: {known} of {reachable}");
    }
}

/// Two pages that link to each other have half each by symmetry; the estimate is within its bound.
#[test]
fn two_pages_have_half_each() {
    let graph = Graph::of_pairs(2, &[0, 1], &[1, 0], SelfLinks::Drop);
    for strategy in [Strategy::Greedy, Strategy::Cycle] {
        let setting = Setting {
            strategy,
            windows: vec![(WindowPolicy::Whole, Some(Estimator::Received))],
            passes: 2_000,
            samples: 0,
            ..Setting::default()
        };
        let web = Web::of_graph(&graph, 1).unwrap();
        let last = rows(&setting, web).unwrap().pop().unwrap();
        // Within the certified bound, which 4,000 crawls bring below a tenth of a percent.
        let bound = last.bound.unwrap();
        assert!(bound < 1e-2, "{bound}");
        assert!(last.errors.weighted <= 100.0 * bound, "{last:?}");
        assert_eq!(last.errors.above_twice, 0.0);
    }
}

const WINDOWS: [&str; 5] = [
    "whole",
    "auto",
    "variable:4",
    "fixed:60d",
    "interpolation:2",
];

fn readings() -> Vec<Reading> {
    let reading = |text: &&str| (text.parse().unwrap(), None);
    WINDOWS.iter().map(reading).collect()
}

/// Engines driven side by side do not affect one another: each window has the rows it has alone.
#[test]
fn windows_side_by_side_are_as_alone() {
    let setting = Setting {
        windows: readings(),
        passes: 4,
        changes: Changes {
            in_degree: 0.02,
            appear: 0.01,
            vanish: 0.01,
            ..Changes::NONE
        },
        ..Setting::default()
    };
    let together = rows(&setting, power_web(1_500, 8)).unwrap();
    for window in readings() {
        let alone = Setting {
            windows: vec![window],
            ..setting.clone()
        };
        let alone = rows(&alone, power_web(1_500, 8)).unwrap();
        let of = together.iter().filter(|sample| sample.window == window.0);
        assert_eq!(alone.len(), 4);
        assert!(of.eq(&alone), "{}", window.0);
    }
}

/// The share of pages that change equals the rate, to a page.
#[test]
fn changes_come_at_their_rate() {
    let web = power_web(1_000, 2);
    let setting = Setting {
        windows: vec![(WindowPolicy::Whole, None)],
        changes: Changes {
            appear: 0.05,
            after: 2,
            until: Some(4),
            ..Changes::NONE
        },
        passes: 6,
        ..Setting::default()
    };
    let live: Vec<u64> = rows(&setting, web)
        .unwrap()
        .iter()
        .map(|row| row.live)
        .collect();
    assert_eq!(live[..2], [1_000, 1_000]);
    assert!(
        live[2].abs_diff(1_050) <= 1 && live[3].abs_diff(1_100) <= 1,
        "{live:?}"
    );
    assert!(live[4..].iter().all(|&pages| pages == live[3]), "{live:?}");
}

#[test]
fn what_is_no_setting_is_refused() {
    let good = Setting::default;
    let changes = |in_degree| Changes {
        in_degree,
        ..Changes::NONE
    };
    let cases = [
        (
            Setting {
                passes: 0,
                ..good()
            },
            "0 passes",
        ),
        (
            Setting {
                windows: Vec::new(),
                ..good()
            },
            "without a window",
        ),
        (
            Setting {
                damping: 1.0,
                ..good()
            },
            "damping",
        ),
        (
            Setting {
                damping: f64::NAN,
                ..good()
            },
            "damping",
        ),
        (
            Setting {
                recycle_after: 200,
                ..good()
            },
            "recycle_after",
        ),
        (
            Setting {
                changes: changes(-0.1),
                ..good()
            },
            "change rate of -0.1",
        ),
        (
            Setting {
                changes: changes(f64::NAN),
                ..good()
            },
            "change rate of NaN",
        ),
        (
            Setting {
                changes: changes(f64::INFINITY),
                ..good()
            },
            "change rate of inf",
        ),
        (
            Setting {
                changes: Changes {
                    after: 3,
                    until: Some(3),
                    ..Changes::NONE
                },
                ..good()
            },
            "no pass between",
        ),
        (
            Setting {
                windows: vec![("variable:4".parse().unwrap(), Some(Estimator::Received))],
                ..good()
            },
            "distributed",
        ),
        (
            Setting {
                changes: Changes {
                    vanish: 10.0,
                    ..Changes::NONE
                },
                ..good()
            },
            "died out",
        ),
    ];
    for (setting, reason) in cases {
        let error = rows(&setting, power_web(50, 1)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
