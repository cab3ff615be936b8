//! Sorts records by the time of their fetches, in bounded memory.

use std::path::PathBuf;

use crate::Result;
use crate::decode::Time;
use crate::disk::ExternalSorter;
use crate::engine::FetchTimes;

/// Resources for sorting records.
#[derive(Debug, Clone)]
pub struct SortRoom {
    /// Memory in bytes.
    pub memory: u64,
    /// Folder of unnamed temporary files, for what exceeds the memory.
    pub folder: PathBuf,
}

impl SortRoom {
    /// Returns one of `sorters` that share the room.
    pub(super) fn sorter(&self, sorters: usize) -> ExternalSorter {
        ExternalSorter::new(self.memory as usize / sorters, &self.folder)
    }
}

/// Sorts lines by the times of their records, stably. A record without a time gets the latest time of the records
/// before it, but not of a few that are far ahead, as in an ingest; if none of them has a time, it comes first.
pub struct TimeOrder {
    sorter: ExternalSorter,
    times: FetchTimes,
}

impl TimeOrder {
    pub fn new(room: &SortRoom) -> TimeOrder {
        TimeOrder {
            sorter: room.sorter(1),
            times: FetchTimes::default(),
        }
    }

    /// Adds a record's line.
    pub fn push(&mut self, time: Option<Time>, line: &[u8]) -> Result<()> {
        let latest = || self.times.latest().map(|(latest, _)| latest);
        let key = time_key(time.or_else(latest));
        if let Some(time) = time {
            self.times.add(time);
        }
        self.sorter.push(&key, line)
    }

    /// Calls `put` with all lines, in order.
    pub fn each(self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for record in self.sorter.sorted()? {
            put(&record?.1)?;
        }
        Ok(())
    }
}

/// Returns a key that sorts like times, with none before all others. (No page was fetched at the smallest time.)
pub(super) fn time_key(time: Option<Time>) -> [u8; 8] {
    (time.unwrap_or(Time::MIN) as u64 ^ 1 << 63).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns each record with its time in an ingest, sorted by that, whatever fits into memory.
    fn expected(times: &[Option<Time>]) -> Vec<(Option<Time>, usize)> {
        let mut latest = None;
        let mut all: Vec<_> = times
            .iter()
            .enumerate()
            .map(|(at, &time)| {
                latest = latest.max(time);
                (time.or(latest), at)
            })
            .collect();
        all.sort_by_key(|(time, _)| *time);
        all
    }

    proptest! {
        #[test]
        fn times_are_as_they_are_ingested(
            times in prop::collection::vec(prop::option::of(-5i64..5), 0..200),
            memory in 1u64..5_000,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut order = TimeOrder::new(&SortRoom {
                memory,
                folder: dir.path().into(),
            });
            for (at, time) in times.iter().enumerate() {
                order.push(*time, at.to_string().as_bytes()).unwrap();
            }
            let mut sorted: Vec<usize> = Vec::new();
            order.each(|line| {
                sorted.push(std::str::from_utf8(line).unwrap().parse().unwrap());
                Ok(())
            }).unwrap();
            let places: Vec<usize> = expected(&times).into_iter().map(|(_, at)| at).collect();
            prop_assert_eq!(&sorted, &places);
            // Read again in this order, each record gets the same time.
            let again: Vec<_> = sorted.iter().map(|at| times[*at]).collect();
            let before: Vec<_> = expected(&times).into_iter().map(|(time, _)| time).collect();
            let mut after = expected(&again);
            after.sort_by_key(|(_, at)| *at);
            prop_assert_eq!(after.into_iter().map(|(time, _)| time).collect::<Vec<_>>(), before);
        }
    }
}
