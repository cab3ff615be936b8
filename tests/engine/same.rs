//! The engine agrees with the reference on every number after every event, and the law holds.

use cashrank_graph::engine::{PageId, WindowPolicy, age};
use proptest::prelude::*;

use super::reference::{Last, Reference};
use super::stream::{Event, Fetch, Run, config, events};

fn agree(run: &Run, reference: &Reference) -> Result<(), TestCaseError> {
    let ledger = run.engine.ledger();
    let totals = ledger.totals();
    prop_assert_eq!(ledger.check_law(), Ok(()));
    prop_assert_eq!(totals.pages, reference.cash.len() as u64);
    prop_assert_eq!(totals.clock, reference.now.clock);
    prop_assert_eq!(totals.paid, reference.now.paid as u64);
    prop_assert_eq!(u128::from(totals.virtual_cash), reference.virtual_cash);
    prop_assert_eq!(totals.virtual_received, reference.now.virtual_received);
    prop_assert_eq!(totals.followed, reference.now.followed);
    prop_assert_eq!(totals.rounds, reference.now.rounds);
    prop_assert_eq!(totals.visits, reference.visits.iter().sum::<u64>());
    for (page, &cash) in reference.cash.iter().enumerate() {
        let id = PageId(page as u64);
        prop_assert_eq!(u128::from(ledger.cash(id)), cash);
        prop_assert_eq!(
            ledger.cells()[page],
            (cash as u64).wrapping_sub(totals.paid)
        );
        let expected = match reference.last[page] {
            Last::Never => age::NEVER,
            Last::Gone => age::GONE,
            Last::Round(round) => (reference.now.rounds - round + 1).min(13) as u8,
        };
        prop_assert_eq!(ledger.age(id), expected);
    }
    let visited = reference
        .visits
        .iter()
        .filter(|&&visits| visits > 0)
        .count();
    prop_assert_eq!(run.engine.counters().visited, visited as u64);
    Ok(())
}

fn follow(config: &cashrank_graph::engine::Config, events: &[Event]) -> Result<(), TestCaseError> {
    let mut run = Run::new(config);
    let mut reference = Run::reference(config);
    for event in events {
        run.apply(event);
        reference.apply(event);
        agree(&run, &reference)?;
    }
    if !config.makes_marks() {
        prop_assert!(run.engine.marks().is_empty());
    }
    for mark in run.engine.marks() {
        let made = &reference.marks[mark.number as usize - 1];
        prop_assert_eq!(mark.totals.clock, made.clock);
        prop_assert_eq!(mark.totals.virtual_received, made.virtual_received);
        prop_assert_eq!(mark.totals.paid, made.paid as u64);
        prop_assert_eq!(mark.totals.rounds, made.rounds);
    }
    let ranking = run.engine.ranking().unwrap();
    for (page, ranked) in ranking.pages.iter().enumerate() {
        prop_assert_eq!(ranked.visits, reference.visits[page]);
        prop_assert_eq!(ranked.last_fetch, reference.last_fetch[page]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_number_agrees_after_every_event(
        config in config(WindowPolicy::Auto),
        events in events(0..80),
    ) {
        follow(&config, &events)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Rounds that end by themselves: more than 1,024 records, and more pages than that.
    #[test]
    fn long_streams_agree(config in config(WindowPolicy::Auto), seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut random = move |below: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (((state >> 32) * u64::from(below)) >> 32) as u32
        };
        let mut run = Run::new(&config);
        let mut reference = Run::reference(&config);
        for at in 0..9_000u32 {
            let known = 20 + at / 4;
            let event = Event::Fetch(Fetch {
                page: random(known),
                status: [None, Some(200), Some(404), Some(304), Some(500)][random(20).min(4) as usize],
                redirect: None,
                links: (0..random(8)).map(|_| random(known)).collect(),
                time: None,
            });
            run.apply(&event);
            reference.apply(&event);
            if at % 97 == 0 {
                agree(&run, &reference)?;
            }
        }
        agree(&run, &reference)?;
        prop_assert!(reference.now.rounds >= 5);
    }
}
