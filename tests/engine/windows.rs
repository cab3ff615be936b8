//! Marks, and ranks.

use cashrank_graph::engine::Config;
use proptest::prelude::*;

use super::common::record;
use super::stream::{Run, config, events};
use cashrank_graph::engine::{Span, WindowPolicy};

/// However long the stream, a handful of marks covers it: the newest and the last but one are always there, and the
/// ages of neighbours stay in proportion. Six marks over R rounds with even ratios would step by R^(1/5); dropping one
/// at a time stays within 8 times that.
#[test]
fn ages_of_marks_grow_geometrically() {
    let mut run = Run::new(&Config::default());
    for round in 1..=3_000u64 {
        run.record(&record("a", ["b"]));
        run.engine.begin_pass().unwrap();
        let marks = run.engine.marks();
        let ages: Vec<u64> = marks
            .iter()
            .map(|mark| round - mark.totals.rounds)
            .collect();
        assert_eq!(marks.len() as u64, round.min(6));
        assert_eq!(ages.last(), Some(&0));
        assert!(ages.windows(2).all(|pair| pair[0] > pair[1]));
        let step = 8.0 * (round as f64).powf(0.2);
        let mut older = round;
        for &age in ages.iter().filter(|age| **age > 0) {
            assert!(
                older as f64 / age as f64 <= step,
                "round {round}: ages {ages:?}"
            );
            older = age;
        }
        if round > 1 {
            assert_eq!(older, 1, "round {round}: ages {ages:?}");
        }
    }
}

/// b and c are known from one page's links, and nothing else distinguishes them.
#[test]
fn ties_share_a_rank_and_the_next_rank_is_skipped() {
    let mut run = Run::new(&Config::default());
    run.record(&record("a", ["b", "c", "d"]));
    run.record(&record("d", ["a"]));
    let ranking = run.engine.ranking().unwrap();
    let rank = |name: &str| {
        let page = ranking.pages.iter().find(|page| page.url == name);
        page.unwrap().rank
    };
    assert_eq!(rank("b"), rank("c"));
    let mut ranks: Vec<u64> = ranking.pages.iter().map(|page| page.rank).collect();
    ranks.sort_unstable();
    let tied = rank("b") as usize;
    assert!(
        ranks.len() == 4 && ranks[tied - 1] == ranks[tied],
        "{ranks:?}"
    );
    assert!(!ranks.contains(&(tied as u64 + 1)), "{ranks:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_rank_is_one_plus_the_pages_strictly_above(
        config in config(WindowPolicy::Auto),
        events in events(0..40),
    ) {
        let mut run = Run::new(&config);
        events.iter().for_each(|event| run.apply(event));
        let ranking = run.engine.ranking().unwrap();
        for page in &ranking.pages {
            let above = ranking.pages.iter().filter(|other| other.importance > page.importance);
            prop_assert_eq!(page.rank, above.count() as u64 + 1);
        }
        let top = ranking.top(3);
        prop_assert_eq!(top.len(), ranking.pages.len().min(3));
        prop_assert!(top.windows(2).all(|two| (two[0].rank, two[0].page) < (two[1].rank, two[1].page)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// With a maximum age, `auto` begins at no older mark, unless all are older: then at the newest.
    #[test]
    fn no_window_is_older_than_allowed(
        config in config(WindowPolicy::Auto),
        events in events(1..120),
        turnovers in 0.1..3.0f64,
    ) {
        let mut config = config;
        config.max_age = Some(Span::Turnovers(turnovers));
        let mut run = Run::new(&config);
        for event in &events {
            run.apply(event);
        }
        let window = run.engine.ranking().unwrap().window;
        let totals = run.engine.state().totals;
        let spans = window.turnovers.unwrap();
        if spans > turnovers + 1e-9 {
            // In that case all are older, except for one at this very moment, which begins no window unless cash waits.
            for mark in run.engine.marks().iter().filter(|mark| mark.number > window.mark) {
                prop_assert_eq!(mark.totals.clock, totals.clock);
            }
        }
    }
}
