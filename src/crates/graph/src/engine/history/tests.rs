use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::Config;
use crate::engine::window::Span;

/// Returns a run that is read `at_a_time` rows at a time.
fn blocks(rows: &[HistoryRow], at_a_time: usize) -> Blocks<'_> {
    let mut blocks = rows.chunks(at_a_time);
    Box::new(move |out| {
        out.extend(blocks.next().unwrap_or_default());
        Ok(())
    })
}

/// Generates a run with rows near to and far from each other.
fn run() -> impl Strategy<Value = Vec<HistoryRow>> {
    let further = prop_oneof![1u64..4, 60..70u64, 1_000..1_100u64, Just(1 << 20)];
    let row = (further, 0u128..1 << 90, 0u64..3, any::<Option<i64>>());
    proptest::collection::vec(row, 0..160).prop_map(|rows| {
        let mut page = 0;
        let rows = rows.into_iter();
        let row = rows.map(|(further, cash, visits, last_fetch)| {
            page += further;
            HistoryRow {
                page,
                cash,
                visits,
                last_fetch,
                ..HistoryRow::default()
            }
        });
        row.collect()
    })
}

proptest! {
    /// Cash and visits of a page are added up and its last fetch is the latest, whatever the runs and the blocks they
    /// are read in.
    #[test]
    fn rows_are_added_up(runs in proptest::collection::vec(run(), 0..8), at_a_time in 1usize..130) {
        let mut sums: BTreeMap<u64, (u128, u64, Option<i64>)> = BTreeMap::new();
        for row in runs.iter().flatten() {
            let sum = sums.entry(row.page).or_default();
            *sum = (sum.0 + row.cash, sum.1 + row.visits, sum.2.max(row.last_fetch));
        }
        let parts = runs.iter().map(|rows| blocks(rows, at_a_time)).collect();
        let merged = rows_of_run(merge(Config::default().policy(), parts, None, 0));
        let merged = merged.map(|row| row.map(|row| (row.page, (row.cash, row.visits, row.last_fetch))));
        let merged = merged.collect::<Result<Vec<_>>>().unwrap();
        prop_assert_eq!(merged, sums.into_iter().collect::<Vec<_>>());
    }
}

/// Length of the window of the policies below, in turnovers.
const WINDOW: Span = Span::Turnovers(0.5);

/// Generates measures of few pages in stream order, with the number of the run of each, and where the window starts.
/// Some are those of a page found unchanged.
fn measures() -> impl Strategy<Value = (Vec<(usize, HistoryRow)>, u128)> {
    let row = (
        0u64..4,
        0u128..1000,
        1u128..40,
        any::<bool>(),
        any::<bool>(),
    );
    let rows = proptest::collection::vec((row, prop::bool::weighted(0.2)), 0..80);
    (rows, 0u128..2000).prop_map(|(rows, start)| {
        let (mut clock, mut run) = (0, 0);
        let rows = rows
            .into_iter()
            .map(|((page, cash, on, is_measure, is_cut), cut)| {
                clock += on;
                run += usize::from(is_cut && cut);
                let row = HistoryRow {
                    page: page * 50,
                    cash: if is_measure { cash } else { 0 },
                    visits: u64::from(is_measure),
                    last_fetch: Some(clock as i64),
                    clock: if is_measure { clock } else { 0 },
                    pages: 4,
                    span: if is_measure { 64 } else { 0 },
                    ..HistoryRow::default()
                };
                (run, row)
            });
        (rows.collect(), start)
    })
}

/// Merges rows by the policy, from the oldest on.
fn merged(policy: RowPolicy, runs: &[Vec<HistoryRow>], start: u128) -> Vec<HistoryRow> {
    let parts = runs.iter().map(|rows| blocks(rows, 7)).collect();
    let merged = merge(policy, parts, Some(Box::new(std::iter::empty())), start);
    rows_of_run(merged).collect::<Result<_>>().unwrap()
}

proptest! {
    /// Several runs give what one run of all rows gives.
    #[test]
    fn runs_are_merged_as_one((rows, start) in measures()) {
        let mut whole: Vec<HistoryRow> = rows.iter().map(|(_, row)| *row).collect();
        whole.sort_by_key(|row| row.page);
        let mut runs = vec![Vec::new(); 80];
        rows.iter().for_each(|(run, row)| runs[*run].push(*row));
        runs.iter_mut().for_each(|run| run.sort_by_key(|row| row.page));
        for policy in [
            RowPolicy::Sums,
            RowPolicy::Since { least: 2 },
            RowPolicy::Last(3),
            RowPolicy::Folded(WINDOW),
        ] {
            let one = merged(policy, std::slice::from_ref(&whole), start);
            prop_assert_eq!(merged(policy, &runs, start), one, "{:?}", policy);
        }
    }
}

/// Sums, and fetches of unchanged pages, take one row in memory, however many there are.
#[test]
fn rows_are_joined_as_they_come() {
    for policy in [RowPolicy::Sums, RowPolicy::Last(3)] {
        let rows = vec![HistoryRow::default(); 1000];
        let mut merge = RunMerge {
            policy,
            runs: vec![RunReader::new(blocks(&rows, 7))],
            admissions: None,
            start: 0,
            pages: vec![Vec::new(); STRETCH],
            there: [0; STRETCH / 64],
        };
        merge.next_stretch(0).unwrap();
        assert_eq!(merge.pages[0].len(), 1, "{policy:?}");
    }
}

/// A run whose pages descend, as no store's does, is refused, and nothing follows.
#[test]
fn a_run_that_goes_back_is_refused() {
    let at = |page| HistoryRow {
        page,
        ..HistoryRow::default()
    };
    let rows = [at(2_000), at(u64::MAX), at(5), at(9_000)];
    for at_a_time in 1..4 {
        let parts = vec![blocks(&rows, at_a_time)];
        let merged = merge(Config::default().policy(), parts, None, 0);
        let merged: Vec<_> = rows_of_run(merged).collect();
        let (last, before) = merged.split_last().unwrap();
        assert!(last.is_err());
        assert!(before.iter().all(Result::is_ok));
    }
}

fn marks(numbers: &[u64]) -> Vec<CashMark> {
    let mark = |&number: &u64| CashMark {
        number,
        ..CashMark::default()
    };
    numbers.iter().map(mark).collect()
}

/// Merges while there is something to merge, if no two rows join. Returns the number of rows merged.
fn settle(runs: &mut Vec<(u64, u64)>) -> u64 {
    let mut merged = 0;
    while let Some(range) = mergeable(runs, &[], u64::MAX / 2) {
        let rows = runs[range.clone()].iter().map(|run| run.1).sum();
        let interval = runs[range.start].0;
        runs.splice(range, [(interval, rows)]);
        merged += rows;
    }
    merged
}

/// While the number of pages grows, each row is merged once or twice in some thousand runs, whether runs come one by
/// one or hundreds at a time and whatever their sizes; and the runs stay few.
#[test]
fn rows_are_merged_a_few_times() {
    for (at_a_time, sizes) in [(1, [100; 3]), (300, [100; 3]), (7, [1, 30, 100])] {
        let (mut runs, mut merged, mut rows) = (Vec::new(), 0, 0);
        for run in 0..3_000 {
            runs.push((0, sizes[run % 3]));
            rows += sizes[run % 3];
            if run % at_a_time == 0 {
                merged += settle(&mut runs);
                assert!(runs.len() <= RUNS_MAX);
            }
        }
        assert!(merged <= 2 * rows, "{merged} for {rows}");
        assert!(merged >= rows / 2, "{merged} for {rows}");
    }
}

/// Sizes that never let a run grow much: the runs stay few all the same.
#[test]
fn runs_stay_few_whatever_their_sizes() {
    let mut runs = Vec::new();
    for run in 0u64..5_000 {
        runs.push((0, 3u64.pow((run + 1).trailing_zeros())));
        settle(&mut runs);
        assert!(runs.len() <= RUNS_MAX);
    }
}

#[test]
fn a_retained_mark_separates_runs() {
    let runs = [(0, 5), (1, 5), (2, 5), (3, 5)];
    assert_eq!(mergeable(&runs, &marks(&[2]), 5), Some(2..4));
    assert_eq!(mergeable(&runs[..3], &marks(&[2]), 5), Some(0..2));
    assert_eq!(mergeable(&runs, &marks(&[1, 2, 3]), 5), None);
    assert_eq!(mergeable(&runs, &[], 10), Some(0..4));
    assert_eq!(mergeable(&runs, &[], 11), None);
}
