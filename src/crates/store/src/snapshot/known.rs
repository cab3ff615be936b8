//! Facts about the fetches of all pages, which a snapshot stores besides importance: read from the history, block by
//! block, and cached for the next snapshot of the run, which then reads only newer runs and packs only changed columns.
//!
//! The cache is used if rows of a page are joined whatever runs they are in, and as long as those runs exist: after a
//! merge everything is read again, with the same result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::SnapshotColumn;
use super::column::Planes;
use crate::Result;
use crate::engine::{
    Blocks, HistoryRow, HistoryView, NO_TIME, RowFetches, RunReader, each_chunk, measure,
};
use crate::model::{Digest, Fetches, Time};
use crate::store::View;
use crate::threads::par_map;

/// Columns of the facts, in the order of the file.
pub(super) const COLUMNS: [SnapshotColumn; 9] = [
    SnapshotColumn::Failed,
    SnapshotColumn::LastFailed,
    SnapshotColumn::Compared,
    SnapshotColumn::Changed,
    SnapshotColumn::Watched,
    SnapshotColumn::Visits,
    SnapshotColumn::LastFetch,
    SnapshotColumn::Gone,
    SnapshotColumn::Recycled,
];
/// Position of the last fetch in [`COLUMNS`].
const LAST_FETCH: usize = 6;

/// Number of values kept for a page: [`COLUMNS`], and the state from which its next row is joined (two digests, a time
/// and flags).
const NUMBERS: usize = COLUMNS.len() + 4;
const FLAGS: usize = NUMBERS - 1;

/// Flag of a page: there is a row of it.
const SEEN: u64 = 1;
/// Flag of a page: it was reached.
const REACHED: u64 = 2;
/// Flag of a page: it distributed cash.
const PAID: u64 = 4;

fn stored(time: Option<Time>) -> u64 {
    time.unwrap_or(NO_TIME) as u64
}

pub(super) fn values(fetches: &Fetches) -> [u64; COLUMNS.len()] {
    [
        fetches.failed,
        stored(fetches.last_failed),
        fetches.compared,
        fetches.changed,
        fetches.watched_s,
        fetches.visits,
        stored(fetches.last),
        fetches.gone.into(),
        fetches.recycled,
    ]
}

/// Returns the numbers of a page, given all its rows so far, joined.
fn numbers(row: &HistoryRow) -> [u64; NUMBERS] {
    let fetches = &row.fetches;
    let bits = |digest: Digest| u64::from(digest.bits());
    let flag = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
    let state = [
        bits(fetches.first),
        bits(fetches.first) ^ bits(fetches.last),
        fetches.since as u64 ^ stored(row.last_fetch),
        SEEN | flag(REACHED, fetches.reached) | flag(PAID, row.cash > 0),
    ];
    let mut numbers = [0; NUMBERS];
    numbers[..COLUMNS.len()].copy_from_slice(&values(&row.known()));
    numbers[COLUMNS.len()..].copy_from_slice(&state);
    numbers
}

/// Returns all rows of a page so far, joined; its distributed cash is reduced to 0 or 1.
fn joined(numbers: [u64; NUMBERS]) -> HistoryRow {
    let [
        failed,
        last_failed,
        compared,
        changed,
        _,
        visits,
        last_fetch,
        _,
        recycled,
        first,
        last,
        since,
        flags,
    ] = numbers;
    let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    HistoryRow {
        cash: u128::from(flags & PAID != 0),
        visits,
        last_fetch: Some(last_fetch as Time).filter(|&time| time != NO_TIME),
        recycled,
        fetches: RowFetches {
            failed: short(failed),
            last_failed: last_failed as Time,
            reached: flags & REACHED != 0,
            first: Digest::from_bits(first as u32),
            last: Digest::from_bits((first ^ last) as u32),
            compared: short(compared),
            changed: short(changed),
            since: (last_fetch ^ since) as Time,
        },
        ..HistoryRow::default()
    }
}

/// Packed columns of one value, by this and their length.
pub(super) type DefaultColumns = HashMap<(u64, usize), Vec<u8>>;

#[derive(Debug)]
pub(super) struct KnownBlock {
    numbers: [Planes; NUMBERS],
    /// Columns in packed form, as far as that is up to date.
    packed: [Option<Vec<u8>>; COLUMNS.len()],
    /// Number of rows that are measures of a window.
    measures: u64,
}

impl Default for KnownBlock {
    fn default() -> KnownBlock {
        let usual = values(&Fetches::default());
        let usual = |at: usize| Planes::new(usual.get(at).copied().unwrap_or(0));
        KnownBlock {
            numbers: std::array::from_fn(usual),
            packed: Default::default(),
            measures: 0,
        }
    }
}

impl KnownBlock {
    fn grow(&mut self, len: usize) {
        if len > self.numbers[0].len() {
            self.numbers.iter_mut().for_each(|planes| planes.grow(len));
            self.packed = Default::default();
        }
    }

    /// Adds the next row of a page. Where rows of a page are joined they are one measure, or none.
    fn add(
        &mut self,
        at: usize,
        next: &HistoryRow,
        joins: bool,
        is_measure: &impl Fn(&HistoryRow) -> bool,
    ) {
        let is_known = self.numbers[FLAGS].get(at) & SEEN != 0;
        let mut row = if is_known {
            joined(self.numbers.each_ref().map(|planes| planes.get(at)))
        } else {
            HistoryRow::default()
        };
        let counted = joins && is_known && is_measure(&row);
        row.cash |= u128::from(next.cash > 0);
        row.take_visits(next);
        let counts = is_measure(if joins { &row } else { next });
        self.measures = self.measures + u64::from(counts) - u64::from(counted);
        for (column, value) in numbers(&row).into_iter().enumerate() {
            let planes = &mut self.numbers[column];
            // The first row of a page finds the defaults.
            let changed = (is_known || value != planes.usual) && planes.set(at, value);
            if changed && let Some(packed) = self.packed.get_mut(column) {
                *packed = None;
            }
        }
    }

    /// Iterates over the times when pages of the block were last reached.
    pub fn times(&self) -> impl Iterator<Item = Time> + '_ {
        let reached = &self.numbers[LAST_FETCH];
        let times = (0..reached.len()).map(|at| reached.get(at) as Time);
        times.filter(|time| *time != NO_TIME)
    }

    /// Packs the columns that changed, in parallel. Many hold defaults only: these are packed once, and kept in `defaults`.
    pub fn packed(&mut self, defaults: &mut DefaultColumns) -> Result<impl Iterator<Item = &[u8]>> {
        let columns = self.packed.iter_mut().zip(&self.numbers);
        let mut changed: Vec<_> = columns.filter(|(packed, _)| packed.is_none()).collect();
        for (_, planes) in changed.iter().filter(|(_, planes)| planes.is_default()) {
            let of = (planes.usual, planes.len());
            if let Entry::Vacant(new) = defaults.entry(of) {
                new.insert(planes.pack()?);
            }
        }
        par_map(&mut changed, |_, (packed, planes)| {
            let usual = defaults.get(&(planes.usual, planes.len()));
            let usual = usual.filter(|_| planes.is_default()).cloned();
            **packed = Some(usual.map_or_else(|| planes.pack(), Ok)?);
            Ok(())
        })?;
        let packed = self.packed.iter();
        Ok(packed.map(|packed| packed.as_deref().unwrap_or_default()))
    }

    fn bytes(&self) -> u64 {
        let planes = self.numbers.iter().map(Planes::bytes);
        let packed = self.packed.iter().flatten().map(Vec::len);
        planes.chain(packed).sum::<usize>() as u64
    }
}

/// Adds rows of the history to the blocks `before` and passes all to `each`. Returns the number of measures.
pub(super) fn read(
    view: &View,
    rows: Blocks<'_>,
    before: Vec<KnownBlock>,
    mut each: impl FnMut(KnownBlock, &[u64]) -> Result<()>,
) -> Result<u64> {
    let is_measure = measure(&view.identity.settings.config);
    let joins = view.joined_runs().is_some();
    let paid = view.totals().paid;
    let (mut rows, mut before) = (RunReader::new(rows), before.into_iter());
    let mut measures = 0;
    each_chunk(view, |first, cells, _| {
        let mut block = before.next().unwrap_or_default();
        block.grow(cells.len());
        let cash: Vec<u64> = cells.iter().map(|cell| cell.wrapping_add(paid)).collect();
        let end = first + cells.len() as u64;
        loop {
            let of_block = rows.take_while(|page| page < end)?;
            if of_block.is_empty() {
                break;
            }
            for row in of_block {
                block.add(row.place(first)? as usize, row, joins, &is_measure);
            }
        }
        measures += block.measures;
        each(block, &cash)
    })?;
    rows.check_end()?;
    Ok(measures)
}

/// Cache of facts that a snapshot leaves to the next one: blocks, and the runs of the history that they cover.
#[derive(Debug, Default)]
pub struct FactsCache {
    runs: Vec<u64>,
    blocks: Vec<KnownBlock>,
}

impl FactsCache {
    /// Returns the cached blocks, if the state continues where they end, and the number of its runs that they cover.
    pub(super) fn take(&mut self, view: &View) -> (Vec<KnownBlock>, usize) {
        let FactsCache { runs, blocks } = std::mem::take(self);
        match view.joined_runs() {
            Some(all) if all.starts_with(&runs) => (blocks, runs.len()),
            _ => (Vec::new(), 0),
        }
    }

    /// Adds the next block if all so far fit in `room` bytes; otherwise leaves the cache empty for good.
    pub(super) fn add(&mut self, block: KnownBlock, room: &mut u64) {
        match room.checked_sub(block.bytes().max(1)) {
            Some(left) => {
                *room = left;
                self.blocks.push(block);
            }
            None => (*room, self.blocks) = (0, Vec::new()),
        }
    }

    pub(super) fn finish(&mut self, view: &View) {
        match view.joined_runs() {
            Some(runs) if !self.blocks.is_empty() => self.runs = runs,
            _ => *self = FactsCache::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Config;

    /// Generates a row of the history of one of some pages.
    fn row() -> impl Strategy<Value = HistoryRow> {
        let time = || prop_oneof![Just(NO_TIME), 1_400_000_000i64..1_400_000_099];
        let digest = || (0u32..5).prop_map(Digest::from_bits);
        let fetches = (
            (0u32..3, time(), any::<bool>()),
            (digest(), digest(), 0u32..3, 0u32..2, time()),
        );
        let fetches = fetches.prop_map(|(failures, looks)| {
            let mut it = RowFetches::default();
            (it.failed, it.last_failed, it.reached) = failures;
            (it.first, it.last, it.compared, it.changed, it.since) = looks;
            it
        });
        let visits = prop_oneof![Just(0u64), 1u64..400];
        let row = (
            0u64..4,
            prop_oneof![Just(0u128), Just(7)],
            visits,
            time(),
            (0u64..3, fetches),
        );
        row.prop_map(
            |(page, cash, visits, last_fetch, (recycled, fetches))| HistoryRow {
                page,
                cash,
                visits,
                last_fetch: Some(last_fetch).filter(|&time| time != NO_TIME),
                recycled,
                fetches,
                ..HistoryRow::default()
            },
        )
    }

    proptest! {
        /// Whatever was cached in between, a page's columns are those of all its rows joined, and it is one measure if
        /// they are.
        #[test]
        fn a_block_is_what_its_rows_come_to(rows in proptest::collection::vec(row(), 0..40)) {
            let is_measure = measure(&Config::default());
            let mut block = KnownBlock::default();
            let mut joined: [Option<HistoryRow>; 4] = [None; 4];
            let mut len = 0;
            for row in &rows {
                // Pages come as they are first seen.
                len = len.max(row.page as usize + 1);
                block.grow(len);
                block.add(row.page as usize, row, true, &is_measure);
                match &mut joined[row.page as usize] {
                    Some(joined) => {
                        joined.cash += row.cash;
                        joined.take_visits(row);
                    }
                    none => *none = Some(*row),
                }
                let mut defaults = DefaultColumns::new();
                let packed = block.packed(&mut defaults).unwrap();
                let packed: Vec<Vec<u8>> = packed.map(<[u8]>::to_vec).collect();
                let expected = joined[..len].iter().map(|row| {
                    let row = row.unwrap_or_default();
                    values(&row.known())
                });
                let expected: Vec<_> = expected.collect();
                for (column, packed) in packed.iter().enumerate() {
                    let of: Vec<u64> = expected.iter().map(|values| values[column]).collect();
                    prop_assert_eq!(packed, &crate::snapshot::column::pack(&of).unwrap());
                }
                let measures = joined.iter().flatten().filter(|row| is_measure(row)).count();
                prop_assert_eq!(block.measures, measures as u64);
            }
        }
    }

    #[test]
    fn blocks_are_kept_if_there_is_room_for_all() {
        let block = || {
            let mut block = KnownBlock::default();
            block.grow(1000);
            let row = HistoryRow {
                visits: 1,
                ..HistoryRow::default()
            };
            block.add(0, &row, true, &|_| true);
            block
        };
        // Visits and flags; everything else has its default.
        assert_eq!(block().bytes(), 2 * 1000);
        for (mut room, kept) in [(0, 0), (3999, 0), (4000, 2), (1 << 20, 2)] {
            let mut cache = FactsCache::default();
            (0..2).for_each(|_| cache.add(block(), &mut room));
            assert_eq!(cache.blocks.len(), kept, "{room}");
        }
    }
}
