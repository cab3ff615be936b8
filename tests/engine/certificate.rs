//! The certificate: no estimate is further from the PageRank of its window's own graph than its bound, whatever was
//! read in whatever order.
//!
//! Snapshots estimate as at a round's end, so the reference counts the cash that waits at recyclable pages as
//! distributed to the virtual page: one additional empty row each.

use cashrank_graph::engine::{Config, Engine, Span, WindowPolicy};
use proptest::prelude::*;

use super::common::l1;
use super::reference::Reference;
use super::stream::{Run, config, events};

/// Rounding of the reference's floating-point sums, a few pages and some dozen rows.
const SLACK: f64 = 1e-12;

fn check(run: &mut Run, reference: &Reference, config: &Config) -> Result<(), TestCaseError> {
    let ranking = run.engine.ranking().unwrap();
    let y: Vec<f64> = ranking.pages.iter().map(|page| page.importance).collect();
    let Some(certificate) = ranking.window.certificate else {
        prop_assert_eq!(reference.window(0).clock, 0, "something was distributed");
        return Ok(());
    };
    let window = reference.window(ranking.window.mark as usize);
    prop_assert!((y.iter().sum::<f64>() - 1.0).abs() <= SLACK);
    prop_assert!(
        l1(&y, &window.received) <= SLACK,
        "received: {:?}, {:?}",
        y,
        window.received
    );

    let rounding = window.rounding;
    prop_assert!((certificate.rounding_l1 - rounding).abs() <= SLACK);
    // The virtual page's receipts are distributed in whole units, and the rest, less than a unit per page, is added to
    // the sum: at most twice the rest above the sum with the rest distributed.
    let whole_units = 2.0 * y.len() as f64 / window.clock as f64;
    prop_assert!(certificate.residual_l1 <= window.residual + whole_units + SLACK);
    prop_assert!(certificate.residual_l1 >= window.residual - SLACK);
    // Y = L'X, except for whole units.
    prop_assert!(l1(&y, &window.step(&window.distributed)) <= rounding + SLACK);

    let pi = window.pagerank();
    let d = config.damping();
    let (to_y, to_x) = (l1(&y, &pi), l1(&window.distributed, &pi));
    prop_assert!(to_y <= certificate.received_l1.unwrap_or(2.0) + SLACK);
    prop_assert!(to_x <= certificate.distributed_l1.unwrap_or(2.0) + SLACK);
    // The bound is the promised one, not a weaker one, and it is given whenever it is below 2.
    let promised = (d * certificate.residual_l1 + rounding) / (1.0 - d);
    match certificate.received_l1 {
        Some(bound) => prop_assert!((bound - promised).abs() <= 1e-9 * (1.0 + promised)),
        None => prop_assert!(promised >= 2.0 - 1e-9),
    }
    match config.window {
        WindowPolicy::Auto => {
            least_residual(run.engine.marks(), reference, certificate.residual_l1)
        }
        WindowPolicy::Fixed { .. } => nearest(run, reference, ranking.window.mark),
        other => unreachable!("{other}"),
    }
}

/// Checks that no retained mark is nearer to the intended start of the window than the chosen one.
fn nearest(run: &Run, reference: &Reference, chosen: u64) -> Result<(), TestCaseError> {
    let clock = |mark: u64| match mark.checked_sub(1) {
        None => 0,
        Some(at) => reference.marks[at as usize].clock,
    };
    let start = super::measures::begins(reference, run.engine.config().window, &[]);
    let now = reference.window(0).clock;
    for mark in run
        .engine
        .marks()
        .iter()
        .filter(|mark| mark.totals.clock < now)
    {
        let (found, other) = (
            clock(chosen).abs_diff(start),
            clock(mark.number).abs_diff(start),
        );
        prop_assert!(found <= other, "{found} from {start}, {other}");
    }
    prop_assert!(clock(chosen).abs_diff(start) <= start);
    Ok(())
}

/// Checks that no retained mark begins a window of smaller residual than the chosen one.
fn least_residual(
    marks: &[cashrank_graph::engine::CashMark],
    reference: &Reference,
    chosen: f64,
) -> Result<(), TestCaseError> {
    for mark in std::iter::once(0).chain(marks.iter().map(|mark| mark.number as usize)) {
        let clock = mark
            .checked_sub(1)
            .map_or(0, |at| reference.marks[at].clock);
        let window = reference.window(mark);
        if mark == 0 || reference.now.clock > clock {
            let whole_units = 2.0 * reference.cash.len() as f64 / window.clock as f64;
            prop_assert!(chosen <= window.residual + whole_units + SLACK);
        }
    }
    Ok(())
}

/// Returns settings with `auto`, and with windows of some turnovers.
fn configs() -> impl Strategy<Value = Config> {
    let spans = prop_oneof![Just(1.0), 0.01..6.0f64].prop_map(Span::Turnovers);
    let fixed = spans.prop_map(|span| WindowPolicy::Fixed { span, least: 0 });
    let fixed = fixed.prop_flat_map(config).prop_map(|mut config| {
        config.marks = config.marks.max(1);
        config
    });
    prop_oneof![2 => config(WindowPolicy::Auto), 1 => fixed]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Growing graphs, links that change, dangling, gone and never visited pages, any order.
    #[test]
    fn bounds_hold(
        config in configs(),
        events in events(1..120),
        looks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..3),
    ) {
        let mut run = Run::new(&config);
        let mut reference = Run::reference(&config);
        let looks: Vec<usize> = looks.iter().map(|look| look.index(events.len())).collect();
        for (at, event) in events.iter().enumerate() {
            run.apply(event);
            reference.apply(event);
            if looks.contains(&at) && !reference.cash.is_empty() {
                check(&mut run, &reference, &config)?;
            }
        }
        if !reference.cash.is_empty() {
            check(&mut run, &reference, &config)?;
        }
    }

    /// `whole` always uses the window since the start.
    #[test]
    fn the_whole_window_begins_at_the_start(config in config(WindowPolicy::Whole), events in events(1..60)) {
        let mut run = Run::new(&config);
        let mut reference = Run::reference(&config);
        for event in &events {
            run.apply(event);
            reference.apply(event);
        }
        if !reference.cash.is_empty() {
            let ranking = run.engine.ranking().unwrap();
            prop_assert_eq!(ranking.window.mark, 0);
            let window = reference.window(0);
            if window.clock > 0 {
                prop_assert!(l1(&run.importance(), &window.received) <= SLACK);
            }
        }
    }
}

#[test]
fn nothing_read_gives_no_pages_and_no_bound() {
    let ranking = Engine::new(Config::default()).unwrap().ranking().unwrap();
    assert!(ranking.pages.is_empty() && ranking.window.certificate.is_none());
}
