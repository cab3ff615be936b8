//! `interpolation:T` against section 3.3's formula in floating point, measure by measure.

use cashrank::engine::{Config, Span, WindowPolicy};
use proptest::prelude::*;

use super::common::l1;
use super::reference::Reference;
use super::stream::{Run, config, events};

const ENDOWMENT: f64 = (1u64 << 30) as f64;

/// H of every page, normalised. T is `turnovers` of the supply at the measure; a page starts with the
/// history of a page of mean importance, T/pages.
fn histories(reference: &Reference, turnovers: f64) -> Vec<f64> {
    let mut history = vec![turnovers * ENDOWMENT; reference.cash.len()];
    let mut measured = reference.admitted.clone();
    // Recycling an empty page leaves no measure.
    for row in reference
        .rows
        .iter()
        .filter(|row| row.visit || row.cash > 0)
    {
        let t = turnovers * ENDOWMENT * row.pages as f64;
        let since = (row.clock - measured[row.page]) as f64;
        let h = &mut history[row.page];
        *h = if since < t {
            *h * (t - since) / t + row.cash as f64
        } else {
            row.cash as f64 * t / since
        };
        measured[row.page] = row.clock;
    }
    let sum: f64 = history.iter().sum();
    history.iter().map(|h| h / sum).collect()
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
            // Each measure drops less than a unit of 2^30 x T; a hundred of them at most.
            let slack = 1e-6 / turnovers.min(1.0);
            prop_assert!(l1(&found, &histories(&reference, turnovers)) <= slack);
            let window = whole.engine.ranking().unwrap().window;
            prop_assert!(window.certificate.is_none() && window.turnovers == Some(turnovers));
        }
    }
}
