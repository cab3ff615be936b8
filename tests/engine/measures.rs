//! Windows of measures against the definitions of section 3.3, with every measure remembered.

use cashrank_graph::engine::{Config, Estimator, Span, WindowPolicy};
use proptest::prelude::*;

use super::common::{l1, record};
use super::reference::{Reference, Row};
use super::stream::{Event, Fetch, Run, config, events};

const ENDOWMENT: u128 = 1 << 30;

/// Returns G at the beginning of a window that ends when G is `clock` and the time is `now`.
fn start(reference: &Reference, span: Span, clock: u128, pages: usize, records: usize) -> u128 {
    let units = match span {
        Span::Turnovers(turnovers) => (turnovers * (pages as u128 * ENDOWMENT) as f64) as u128,
        Span::Seconds(seconds) => {
            let times = &reference.times[..records];
            let Some(&(Some(now), _)) = times.last() else {
                return 0;
            };
            // A 64th of the window is the best accuracy.
            let part = (seconds + 63) / 64;
            let mut begun: Vec<(i64, u128)> = Vec::new();
            for &(time, clock) in times {
                let time = time.unwrap();
                if begun
                    .last()
                    .is_none_or(|(last, _)| time.div_euclid(part) > last.div_euclid(part))
                {
                    begun.push((time, clock));
                }
            }
            let before = begun.iter().rev().find(|(time, _)| *time <= now - seconds);
            return before.map_or(0, |(_, clock)| *clock);
        }
    };
    clock.saturating_sub(units)
}

/// Returns the cash that a round's end would recycle.
fn waiting(reference: &Reference, page: usize) -> u128 {
    if reference.recyclable(page) {
        reference.cash[page]
    } else {
        0
    }
}

/// Returns G as at a round's end.
fn now(reference: &Reference) -> u128 {
    let pages = 0..reference.cash.len();
    reference.now.clock + pages.map(|page| waiting(reference, page)).sum::<u128>()
}

/// Returns G where a window begins: it never moves back. `records_at` is the number of records at each mark, if the
/// window is in fetch time.
pub fn begins(reference: &Reference, policy: WindowPolicy, records_at: &[usize]) -> u128 {
    let WindowPolicy::Fixed { span, .. } = policy else {
        return 0;
    };
    let records_at = records_at.iter().copied().chain(std::iter::repeat(0));
    let ends = reference.marks.iter().zip(records_at);
    let then = ends.map(|(end, records)| start(reference, span, end.clock, end.pages, records));
    let (pages, records) = (reference.cash.len(), reference.times.len());
    let last = start(reference, span, now(reference), pages, records);
    then.max().unwrap_or(0).max(last)
}

/// Computes the estimate by its definition.
fn expected(reference: &Reference, policy: WindowPolicy, records_at: &[usize]) -> Vec<f64> {
    let pages = reference.cash.len();
    let now = now(reference);
    let supply = pages as u128 * ENDOWMENT;
    let begins = begins(reference, policy, records_at);
    let value = |page: usize| -> Option<f64> {
        // (G, cash) of each.
        let of_page = |row: &&Row| row.page == page && (row.visit || row.cash > 0);
        let measures = reference.rows.iter().filter(of_page);
        let measures: Vec<(u128, u128)> = measures.map(|row| (row.clock, row.cash)).collect();
        if measures.is_empty() {
            return None;
        }
        let inside = measures.iter().filter(|(clock, _)| *clock > begins).count();
        let last = match policy {
            WindowPolicy::Fixed { least: 0, .. } => {
                let sum: u128 = measures[measures.len() - inside..]
                    .iter()
                    .map(|m| m.1)
                    .sum();
                let length = now - begins;
                return (length > 0)
                    .then(|| (sum + waiting(reference, page)) as f64 / length as f64);
            }
            WindowPolicy::Fixed { least, .. } => inside.max(least as usize),
            WindowPolicy::Variable(last) => last as usize,
            _ => unreachable!("a window of measures"),
        };
        let forgotten = measures.len().saturating_sub(last);
        let sum: u128 = measures[forgotten..].iter().map(|m| m.1).sum();
        let length = match forgotten.checked_sub(1) {
            Some(before) => now - measures[before].0,
            None => now - reference.admitted[page] + supply,
        };
        (length > 0).then(|| (sum + reference.cash[page]) as f64 / length as f64)
    };
    let values: Vec<Option<f64>> = (0..pages).map(value).collect();
    let recent = match policy {
        WindowPolicy::Fixed { least: 0, .. } => begins,
        _ => now.saturating_sub(supply),
    };
    let mean = |of: Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
    let known = || (0..pages).filter_map(|page| Some((page, values[page]?)));
    let young: Vec<f64> = known()
        .filter(|(page, _)| reference.admitted[*page] >= recent)
        .map(|v| v.1)
        .collect();
    let all: Vec<f64> = known().map(|v| v.1).collect();
    let default = match (young.is_empty(), all.is_empty()) {
        (false, _) => mean(young),
        (true, false) => mean(all),
        (true, true) => 1.0,
    };
    let values: Vec<f64> = values
        .iter()
        .map(|value| value.unwrap_or(default))
        .collect();
    let sum: f64 = values.iter().sum();
    if sum > 0.0 {
        values.iter().map(|value| value / sum).collect()
    } else {
        vec![1.0 / pages as f64; pages]
    }
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        prop_oneof![Just(1.0), 0.01..6.0f64].prop_map(Span::Turnovers),
        (1i64..3_000).prop_map(Span::Seconds),
    ]
}

fn fixed(
    span: impl Strategy<Value = Span>,
    least: impl Strategy<Value = u32>,
) -> impl Strategy<Value = WindowPolicy> {
    (span, least).prop_map(|(span, least)| WindowPolicy::Fixed { span, least })
}

fn policies() -> impl Strategy<Value = WindowPolicy> {
    prop_oneof![
        fixed(spans(), Just(0)),
        fixed(spans(), 1u32..4),
        (1u32..9).prop_map(WindowPolicy::Variable),
    ]
}

fn configs() -> impl Strategy<Value = Config> {
    policies().prop_flat_map(config).prop_map(|mut config| {
        config.set_estimator(Estimator::Distributed);
        config
    })
}

/// Adds times to records, which mostly increase.
fn timed(events: Vec<Event>, steps: &[i64]) -> Vec<Event> {
    let mut now = 1_000_000;
    let steps = steps.iter().cycle();
    let set = |(mut event, step): (Event, &i64)| {
        now += step;
        if let Event::Fetch(fetch) = &mut event {
            fetch.time = Some(now);
        }
        event
    };
    events.into_iter().zip(steps).map(set).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn they_are_the_papers_wherever_runs_are_cut(
        config in configs(),
        events in events(1..100),
        steps in proptest::collection::vec(-20i64..200, 1..9),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let events = timed(events, &steps);
        let mut whole = Run::new(&config);
        let mut cut = Run::new(&config);
        let mut reference = Run::reference(&config);
        let mut records_at = Vec::new();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len())).collect();
        for (at, event) in events.iter().enumerate() {
            for run in [&mut whole, &mut cut] {
                run.apply(event);
            }
            reference.apply(event);
            records_at.resize(reference.marks.len(), reference.times.len());
            if cuts.contains(&at) {
                // A ranking cuts the log into a run and merges runs.
                cut.importance();
            }
        }
        let found = whole.importance();
        prop_assert_eq!(&found, &cut.importance());
        if !found.is_empty() {
            let sum: f64 = found.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            prop_assert!(l1(&found, &expected(&reference, config.window, &records_at)) <= 1e-9);
            prop_assert!(whole.engine.ranking().unwrap().window.certificate.is_none());
        }
    }
}

/// A page that links to one of two others, first to one and later to the other: a window forgets, the whole history
/// does not.
#[test]
fn a_window_forgets_what_has_changed() {
    let share = |window: &str| {
        let mut config = Config::default();
        config.window = window.parse().unwrap();
        config.set_estimator(Estimator::Distributed);
        let mut run = Run::new(&config);
        for pass in 0..40 {
            let to = if pass < 20 { "old" } else { "new" };
            run.record(&record("hub", [to]));
            run.record(&record("old", ["hub"]));
            run.record(&record("new", ["hub"]));
        }
        let importance = run.importance();
        // Pages: hub, old, new.
        importance[1] / importance[2]
    };
    for window in ["fixed:4", "fixed:4,min=3", "variable:4"] {
        assert!(share(window) < 0.5, "{window}: {}", share(window));
    }
    assert!(share("whole") > 0.7, "whole: {}", share("whole"));
}

/// Many new pages make a window in turnovers longer. It does not extend back to what was forgotten.
#[test]
fn a_window_never_begins_earlier_than_it_did() {
    let mut config = Config::default();
    config.window = "fixed:4".parse().unwrap();
    config.set_estimator(Estimator::Distributed);
    let (mut run, mut reference) = (Run::new(&config), Run::reference(&config));
    let fetch = |page: u32, links: Vec<u32>| {
        Event::Fetch(Fetch {
            page,
            status: None,
            redirect: None,
            links,
            time: None,
        })
    };
    let mut apply = |event: Event| {
        run.apply(&event);
        reference.apply(&event);
    };
    for _ in 0..20 {
        apply(fetch(0, vec![1]));
        apply(fetch(1, vec![0]));
        apply(Event::BeginPass);
    }
    apply(fetch(0, (2..12).collect()));
    apply(Event::BeginPass);
    apply(fetch(2, vec![0]));
    let starts: Vec<u128> = reference
        .marks
        .iter()
        .map(|end| start(&reference, Span::Turnovers(4.0), end.clock, end.pages, 0))
        .collect();
    assert!(!starts.is_sorted(), "it would move back: {starts:?}");
    let expected = expected(&reference, config.window, &[]);
    assert!(l1(&run.importance(), &expected) <= 1e-9);
}

/// With a window of two turnovers, the kept measures are those of two turnovers, however long the stream.
#[test]
fn measures_that_expired_are_gone() {
    let mut config = Config::default();
    config.window = "fixed:2".parse().unwrap();
    config.set_estimator(Estimator::Distributed);
    let mut run = Run::new(&config);
    let names: Vec<String> = (0..50).map(|page| format!("p{page}")).collect();
    let mut most = 0;
    for pass in 0..200 {
        for (at, name) in names.iter().enumerate() {
            let to = [&names[(at * 7 + 1) % 50], &names[(at * 3 + 2) % 50]];
            run.record(&record(name, to.map(String::as_str)));
        }
        run.engine.begin_pass().unwrap();
        run.importance();
        if pass > 20 {
            let runs = run.engine.storage().runs.iter();
            let rows: usize = runs.map(|(_, rows)| rows.len()).sum();
            most = rows.max(most);
        }
    }
    let turnovers = run.engine.state().totals.clock / run.engine.state().totals.supply();
    assert!(turnovers > 100);
    // A pass distributes about one and a half turnovers, so two or three measures per page are in the window; at most
    // twice as many are kept, and a base each.
    assert!(most <= 2 * 50 * 4, "{most}");
}

#[test]
fn a_window_in_fetch_time_needs_times() {
    let mut config = Config::default();
    config.window = "interpolation:7d".parse().unwrap();
    let run = Run::new(&config);
    let mut engine = run.engine;
    let mut reader = cashrank::Reader::new(&engine, cashrank_crawl::decode::Names::Opaque).unwrap();
    reader.apply(&mut engine, &record("a", ["b"])).unwrap();
    let error = engine.ranking().unwrap_err();
    assert!(error.to_string().contains("have no times"), "{error}");
}
