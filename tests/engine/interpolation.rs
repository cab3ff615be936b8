//! `interpolation:T` against section 3.3's formula in floating point, measure by measure.

use cashrank_graph::engine::{Config, Span, WindowPolicy};
use proptest::prelude::*;

use super::common::{l1, record};
use super::reference::Reference;
use super::stream::{Run, config, events};

const ENDOWMENT: f64 = (1u64 << 30) as f64;

/// Computes H of every page, normalised. T is `turnovers` of the supply at the measure. A page starts with the default
/// history: the mean of the histories of pages admitted in the last T that were measured (or else of all that were),
/// themselves included. A page's endowment is not cash that was added to it.
fn histories(reference: &Reference, turnovers: f64) -> Vec<f64> {
    let pages = reference.cash.len();
    // H = own + weight x default.
    let mut own = vec![0.0; pages];
    let mut weight = vec![1.0; pages];
    let mut last = reference.admitted.clone();
    let mut is_measured = vec![false; pages];
    // Recycling an empty page leaves no measure.
    for row in reference
        .rows
        .iter()
        .filter(|row| row.visit || row.cash > 0)
    {
        let page = row.page;
        let t = turnovers * ENDOWMENT * row.pages as f64;
        let since = (row.clock - last[page]) as f64;
        let endowment = if is_measured[page] { 0.0 } else { ENDOWMENT };
        let added = row.cash as f64 - endowment;
        if since < t {
            own[page] = own[page] * (t - since) / t + added;
            weight[page] *= (t - since) / t;
        } else {
            (own[page], weight[page]) = (added * t / since, 0.0);
        }
        (last[page], is_measured[page]) = (row.clock, true);
    }
    let waiting = (0..pages).filter(|&page| reference.recyclable(page));
    let now = reference.now.clock + waiting.map(|page| reference.cash[page]).sum::<u128>();
    let t = (turnovers * ENDOWMENT * pages as f64) as u128;
    let mean = |recent: u128| {
        let of = |page: &usize| is_measured[*page] && reference.admitted[*page] >= recent;
        let chosen: Vec<usize> = (0..pages).filter(of).collect();
        // default = mean(own + weight x default)
        let owns: f64 = chosen.iter().map(|&page| own[page]).sum();
        let rest: f64 = chosen.iter().map(|&page| 1.0 - weight[page]).sum();
        (rest > 0.0).then(|| owns / rest)
    };
    let default = mean(now.saturating_sub(t)).or(mean(0)).unwrap_or(0.0);
    let history: Vec<f64> = (0..pages)
        .map(|page| own[page] + weight[page] * default)
        .collect();
    let sum: f64 = history.iter().sum();
    if sum > 0.0 {
        history.iter().map(|h| h / sum).collect()
    } else {
        vec![1.0 / pages as f64; pages]
    }
}

fn interpolations() -> impl Strategy<Value = (Config, f64)> {
    let turnovers = prop_oneof![Just(1.5), 0.05..20.0f64];
    turnovers.prop_flat_map(|t| {
        let window = WindowPolicy::Interpolation(Span::Turnovers(t));
        (config(window), Just(t))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn it_is_the_papers_formula_wherever_runs_are_cut(
        (config, turnovers) in interpolations(),
        events in events(1..100),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let mut whole = Run::new(&config);
        let mut cut = Run::new(&config);
        let mut reference = Run::reference(&config);
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len())).collect();
        for (at, event) in events.iter().enumerate() {
            for run in [&mut whole, &mut cut] {
                run.apply(event);
            }
            reference.apply(event);
            if cuts.contains(&at) {
                // A ranking cuts the log into a run and merges runs.
                cut.importance();
            }
        }
        let found = whole.importance();
        prop_assert_eq!(&found, &cut.importance());
        if !found.is_empty() {
            // Each measure drops less than a unit of 2^30 x T, and less than 2^-32 of the default; there are at most a
            // hundred.
            let slack = 1e-5 / turnovers.min(1.0);
            prop_assert!(l1(&found, &histories(&reference, turnovers)) <= slack);
            let window = whole.engine.ranking().unwrap().window;
            prop_assert!(window.certificate.is_none() && window.turnovers == Some(turnovers));
        }
    }
}

/// Two pages link to each other. Later pages that link to them have no incoming links, and so little importance. A page
/// that was just introduced also has little: it gets the mean of recently introduced pages, and the mean of all is far
/// more.
#[test]
fn a_new_page_is_as_important_as_recently_introduced_ones() {
    let mut config = Config::default();
    config.window = WindowPolicy::Interpolation(Span::Turnovers(400.0));
    let mut run = Run::new(&config);
    let core = |run: &mut Run| {
        run.record(&record("a", ["b"]));
        run.record(&record("b", ["a"]));
    };
    for _ in 0..4_000 {
        core(&mut run);
    }
    let late: Vec<String> = (0..18).map(|page| format!("late{page}")).collect();
    for _ in 0..12 {
        for page in &late {
            core(&mut run);
            run.record(&record(page, ["a"]));
        }
    }
    // The last page is known, and has no measure.
    run.record(&record("a", ["b", "new"]));
    let importance = run.importance();
    let pages = importance.len();
    assert_eq!(pages, 2 + late.len() + 1);
    let new = importance[pages - 1];
    let mean = importance[2..pages - 1].iter().sum::<f64>() / late.len() as f64;
    assert!((new / mean - 1.0).abs() < 1e-6, "{new}, {mean}");
    // The mean of all pages is 1/n.
    assert!(new < 0.5 / pages as f64, "{new}");
}
