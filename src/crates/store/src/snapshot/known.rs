//! Facts about the fetches of all pages, which a snapshot stores besides importance: read from the history, block by
//! block, and cached for the next snapshot of the run, which then reads only newer runs and packs only changed columns.
//!
//! The cache is used if rows of a page are joined whatever runs they are in, and as long as those runs exist: after a
//! merge everything is read again, with the same result.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SnapshotColumn;
use super::planes::Planes;
use crate::engine::{
    Blocks, CellSweep, FetchTimes, HistoryRow, HistoryView, NO_TIME, RowFetches, measure,
};
use crate::model::{Digest, Fetches, Time};
use crate::store::View;
use crate::{Error, Result};

/// Columns of these facts, in the order of the file.
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
/// Positions among them of the columns from which a page's rows are continued.
const FAILED: usize = 0;
const LAST_FAILED: usize = 1;
const COMPARED: usize = 2;
const CHANGED: usize = 3;
const VISITS: usize = 5;
const LAST_FETCH: usize = 6;
const RECYCLED: usize = 8;

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
        (fetches.gone == Some(true)).into(),
        fetches.recycled,
    ]
}

/// Facts about a block of pages.
pub(super) struct KnownBlock {
    columns: [(Planes, Option<Vec<u8>>); COLUMNS.len()],
    /// State for detecting the next change of a page: digest of the first observation; digest of the last one and time
    /// of the first, stored as differences from the first digest and the last fetch, which are mostly 0.
    first: Planes,
    last: Planes,
    since: Planes,
    flags: Planes,
    /// Number of rows that are measures of a window.
    measures: u64,
    /// Times when pages were last reached, as of the packed column.
    times: FetchTimes,
}

impl Default for KnownBlock {
    fn default() -> KnownBlock {
        KnownBlock {
            columns: values(&Fetches::default()).map(|usual| (Planes::new(usual), None)),
            first: Planes::new(0),
            last: Planes::new(0),
            since: Planes::new(0),
            flags: Planes::new(0),
            measures: 0,
            times: FetchTimes::default(),
        }
    }
}

impl KnownBlock {
    fn grow(&mut self, len: usize) {
        if len == self.flags.len() {
            return;
        }
        for (planes, packed) in &mut self.columns {
            planes.grow(len);
            *packed = None;
        }
        for planes in [
            &mut self.first,
            &mut self.last,
            &mut self.since,
            &mut self.flags,
        ] {
            planes.grow(len);
        }
    }

    /// Returns all rows of a page so far, joined; its distributed cash is reduced to 0 or 1.
    fn row(&self, at: usize) -> HistoryRow {
        let flags = self.flags.get(at);
        if flags & SEEN == 0 {
            return HistoryRow::default();
        }
        let column = |column: usize| self.columns[column].0.get(at);
        let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let last_fetch = column(LAST_FETCH);
        let first = self.first.get(at);
        let digest = |bits: u64| Digest::from_bits(bits as u32);
        HistoryRow {
            cash: u128::from(flags & PAID != 0),
            visits: column(VISITS),
            last_fetch: Some(last_fetch as Time).filter(|&time| time != NO_TIME),
            recycled: column(RECYCLED),
            fetches: RowFetches {
                failed: short(column(FAILED)),
                last_failed: column(LAST_FAILED) as Time,
                reached: flags & REACHED != 0,
                first: digest(first),
                last: digest(first ^ self.last.get(at)),
                compared: short(column(COMPARED)),
                changed: short(column(CHANGED)),
                since: (last_fetch ^ self.since.get(at)) as Time,
            },
            ..HistoryRow::default()
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
        let mut row = self.row(at);
        let is_known = self.flags.get(at) & SEEN != 0;
        let counted = joins && is_known && is_measure(&row);
        row.cash |= u128::from(next.cash > 0);
        row.take_visits(next);
        let counts = is_measure(if joins { &row } else { next });
        self.measures = self.measures + u64::from(counts) - u64::from(counted);
        let set = |planes: &mut Planes, value: u64| {
            if is_known {
                planes.set(at, value)
            } else {
                planes.set_first(at, value)
            }
        };
        let fetches = row.known();
        for ((planes, packed), value) in self.columns.iter_mut().zip(values(&fetches)) {
            if set(planes, value) {
                *packed = None;
            }
        }
        let RowFetches {
            reached,
            first,
            last,
            since,
            ..
        } = row.fetches;
        let bits = |digest: Digest| u64::from(digest.bits());
        set(&mut self.first, bits(first));
        set(&mut self.last, bits(first) ^ bits(last));
        set(&mut self.since, since as u64 ^ stored(row.last_fetch));
        let flag = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
        let flags = SEEN | flag(REACHED, reached) | flag(PAID, row.cash > 0);
        set(&mut self.flags, flags);
    }

    /// Returns the times when its pages were last reached.
    pub fn times(&mut self) -> &FetchTimes {
        let (reached, packed) = &self.columns[LAST_FETCH];
        if packed.is_none() {
            self.times = FetchTimes::default();
            let times = (0..reached.len()).map(|at| reached.get(at) as Time);
            times
                .filter(|time| *time != NO_TIME)
                .for_each(|time| self.times.add(time));
        }
        &self.times
    }

    /// Iterates over its packed columns, in their order.
    pub fn packed(&mut self) -> impl Iterator<Item = io::Result<&[u8]>> {
        let columns = self.columns.iter_mut();
        columns.map(|(planes, packed)| {
            if packed.is_none() {
                *packed = Some(planes.pack()?);
            }
            Ok(packed.as_deref().unwrap_or_default())
        })
    }

    /// Returns its memory in bytes.
    fn bytes(&self) -> u64 {
        let columns = self.columns.iter();
        let columns =
            columns.map(|(planes, packed)| planes.bytes() + packed.as_ref().map_or(0, Vec::len));
        let others = [&self.first, &self.last, &self.since, &self.flags];
        let bytes = columns.sum::<usize>() + others.map(Planes::bytes).iter().sum::<usize>();
        bytes as u64
    }
}

/// Facts about a block, and the cash of its pages.
#[derive(Default)]
pub(super) struct FactsWithCash {
    pub block: KnownBlock,
    pub cash: Vec<u64>,
}

/// Adds rows of the history to the blocks `before` and passes all blocks to `each`, which may take them and leave
/// others. Returns the number of measures, including those of `before`.
pub(super) fn read(
    view: &View,
    mut rows: Blocks<'_>,
    before: Vec<KnownBlock>,
    mut each: impl FnMut(&mut FactsWithCash) -> Result<()>,
) -> Result<u64> {
    let is_measure = measure(&view.settings().config);
    let joins = view.joined_runs().is_some();
    let paid = view.totals().paid;
    let (mut before, mut sweep) = (before.into_iter(), CellSweep::new(view));
    let (mut taken, mut at) = (Vec::new(), 0);
    let mut known = FactsWithCash::default();
    let mut measures = 0;
    while let Some((first, cells, _)) = sweep.next()? {
        known.block = before.next().unwrap_or_default();
        known.block.grow(cells.len());
        known.cash.clear();
        let cash = cells.iter().map(|cell| cell.wrapping_add(paid));
        known.cash.extend(cash);
        loop {
            if at == taken.len() {
                at = 0;
                taken.clear();
                rows(&mut taken)?;
            }
            let Some(row) = taken.get(at) else {
                break;
            };
            let place = row.page.checked_sub(first).ok_or_else(|| {
                Error::internal(format!("the history goes back to page {}", row.page))
            })?;
            if place >= cells.len() as u64 {
                break;
            }
            known.block.add(place as usize, row, joins, &is_measure);
            at += 1;
        }
        measures += known.block.measures;
        each(&mut known)?;
    }
    match taken.get(at) {
        None => Ok(measures),
        Some(row) => Err(Error::internal(format!(
            "the history has a row for page {}, which the ledger does not know",
            row.page
        ))),
    }
}

/// Cache of facts that a snapshot leaves to the next one.
#[derive(Default)]
pub struct HeldKnown(Mutex<FactsCache>);

impl fmt::Debug for HeldKnown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldKnown")
    }
}

/// Cached blocks, and the runs of the history that they cover.
#[derive(Default)]
pub(super) struct FactsCache {
    runs: Vec<u64>,
    blocks: Vec<KnownBlock>,
}

impl HeldKnown {
    /// Locks the cache; waits for the previous snapshot until it has written these columns.
    pub(super) fn lock(&self) -> MutexGuard<'_, FactsCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FactsCache {
    /// Takes the blocks if the state continues where they end, and the number of its runs that they cover.
    pub fn take(&mut self, view: &View) -> (Vec<KnownBlock>, usize) {
        let FactsCache { runs, blocks } = std::mem::take(self);
        match view.joined_runs() {
            Some(all) if all.starts_with(&runs) => (blocks, runs.len()),
            _ => (Vec::new(), 0),
        }
    }

    /// Stores the blocks of a state for the next one.
    pub fn give(&mut self, view: &View, blocks: Vec<KnownBlock>) {
        if let Some(runs) = view.joined_runs() {
            *self = FactsCache { runs, blocks };
        }
    }
}

/// Collects blocks, as long as all of them fit in memory.
pub(super) struct Keeping {
    room: u64,
    blocks: Option<Vec<KnownBlock>>,
}

impl Keeping {
    /// Creates a collection limited to `room` bytes.
    pub fn new(room: u64) -> Keeping {
        Keeping {
            room,
            blocks: (room > 0).then(Vec::new),
        }
    }

    pub fn add(&mut self, block: KnownBlock) {
        let left = self.room.checked_sub(block.bytes());
        match (left, &mut self.blocks) {
            (Some(left), Some(blocks)) => {
                self.room = left;
                blocks.push(block);
            }
            _ => self.blocks = None,
        }
    }

    /// Returns all blocks, if they fit.
    pub fn all(self) -> Option<Vec<KnownBlock>> {
        self.blocks
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
                let packed: Vec<Vec<u8>> = block.packed().map(|it| it.unwrap().to_vec()).collect();
                let expected = joined[..len].iter().map(|row| {
                    let row = row.unwrap_or_default();
                    values(&row.known())
                });
                let expected: Vec<_> = expected.collect();
                for (column, packed) in packed.iter().enumerate() {
                    let of: Vec<u64> = expected.iter().map(|values| values[column]).collect();
                    prop_assert_eq!(packed, &super::super::column::pack(&of).unwrap());
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
        for (room, kept) in [(0, None), (3999, None), (4000, Some(2)), (1 << 20, Some(2))] {
            let mut keeping = Keeping::new(room);
            (0..2).for_each(|_| keeping.add(block()));
            assert_eq!(keeping.all().map(|blocks| blocks.len()), kept, "{room}");
        }
    }
}
