//! Cache of the first blocks of a row file, unpacked: sweeps repeat over the same rows, and blocks that fit in memory
//! are read once. A later state of the file begins with the same blocks.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{BlockRows, RowHead};

/// Cache of the first blocks of a row file, up to a number of bytes. A reader of a later state of the file can use it after the
/// reader of an earlier one.
#[derive(Default)]
pub struct UnpackedRows(Mutex<Prefix>);

#[derive(Default)]
struct Prefix {
    number: u64,
    blocks: Vec<(u64, Arc<BlockRows>)>,
    end: u64,
    /// Memory of the blocks in bytes, and its limit.
    bytes: u64,
    room: u64,
}

impl fmt::Debug for UnpackedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnpackedRows")
    }
}

fn bytes_of(block: &BlockRows) -> u64 {
    let bytes = block.heads.capacity() * size_of::<RowHead>()
        + block.targets.capacity() * size_of::<u32>()
        + block.weights.capacity() * size_of::<u64>();
    bytes as u64
}

impl UnpackedRows {
    /// Prepares the cache for the first `rows` rows of file `number`, and sets its limit in bytes. Drops blocks of
    /// other files, and those that do not fit.
    pub(super) fn prepare(&self, number: u64, rows: u64, room: u64) {
        let mut prefix = self.prefix();
        if prefix.number != number || prefix.end > rows {
            *prefix = Prefix::default();
        }
        (prefix.number, prefix.room) = (number, room);
        while prefix.bytes > room
            && let Some((first, last)) = prefix.blocks.pop()
        {
            prefix.bytes -= bytes_of(&last);
            prefix.end = first;
        }
    }

    fn prefix(&self) -> MutexGuard<'_, Prefix> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn blocks(&self) -> Vec<(u64, Arc<BlockRows>)> {
        self.prefix().blocks.clone()
    }

    pub(super) fn find(&self, row: u64) -> Option<(u64, Arc<BlockRows>)> {
        let prefix = self.prefix();
        if row >= prefix.end {
            return None;
        }
        let behind = prefix.blocks.partition_point(|(first, _)| *first <= row);
        prefix.blocks.get(behind.checked_sub(1)?).cloned()
    }

    /// Caches the next block if there is room for it; otherwise returns it.
    pub(super) fn keep(&self, first: u64, block: BlockRows) -> Option<BlockRows> {
        let bytes = bytes_of(&block);
        let mut prefix = self.prefix();
        if first != prefix.end || prefix.bytes + bytes > prefix.room {
            return Some(block);
        }
        prefix.bytes += bytes;
        prefix.end = first + block.heads.len() as u64;
        prefix.blocks.push((first, Arc::new(block)));
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::super::read::{KeptRows, RowFile, one_by_one};
    use super::super::write::RowWriter;
    use crate::engine::{PageId, TargetLinks};
    use crate::fuzz::memory::Memory;
    use crate::rows::{Bits, Row, Rows, Stop};

    const PAGES: u64 = 1000;

    /// Page and targets.
    type Found = Vec<(u32, Vec<u32>)>;

    fn found(sweep: impl FnOnce(&mut dyn FnMut(Row<'_>) -> Result<(), Stop>)) -> Found {
        let mut rows = Found::new();
        sweep(&mut |row| {
            rows.push((row.page, row.targets.to_vec()));
            Ok(())
        });
        rows
    }

    /// Whatever is cached, sweeps visit the same rows: all of them, some, and those from one on.
    #[test]
    fn sweeps_are_the_same_whatever_stays_in_memory() {
        let (disk, dir) = (Memory::default(), Path::new("store"));
        let create = |number| RowWriter::create(&disk, dir, number, 1 << 24);
        let mut writer = create(1).unwrap_or_else(|e| panic!("{e}"));
        let mut commits = Vec::new();
        // One block per commit. Pages are read again: 37 is no divisor.
        for commit in 0..40u64 {
            for row in 0..50 {
                let page = (commit * 50 + row) * 37 % PAGES;
                let links: Vec<PageId> = (1..=row % 7)
                    .map(|to| PageId((page + to) % PAGES))
                    .collect();
                let links = TargetLinks::from(&links[..]);
                let again = commit >= PAGES / 50;
                assert!(writer.append(PageId(page), false, links, again).is_ok());
            }
            commits.push(writer.sync().unwrap());
        }
        let all = commits[39];
        let each = |step: u64| Bits::of(0..PAGES, |page| page % step == 0);
        // Few pages are read in another way than many.
        let (many, few) = (each(31), each(97));
        let read = |kept, cache: Arc<_>, room| {
            let file = RowFile::open(&disk, dir, kept, PAGES).unwrap();
            let mut rows = KeptRows::of(file).unwrap();
            rows.stay_in(cache, room);
            (0..3)
                .map(|_| {
                    (
                        found(|visit| rows.walk(visit).unwrap()),
                        [&many, &few].map(|marked| {
                            found(|visit| {
                                let mut each =
                                    |some: &[Row<'_>]| some.iter().try_for_each(|row| visit(*row));
                                rows.walk_some(marked, &mut each).unwrap()
                            })
                        }),
                        found(|visit| rows.each_from(730, |_, _| true, one_by_one(visit)).unwrap()),
                    )
                })
                .collect::<Vec<_>>()
        };
        let expected = read(all, Arc::default(), 0);
        assert_eq!(expected[0].0.len() as u64, PAGES);
        assert_eq!(expected[0].1.each_ref().map(Vec::len), [33, 11]);
        for (found, marked) in expected[0].1.iter().zip([&many, &few]) {
            let marked = |row: &&(u32, Vec<u32>)| marked.get(row.0.into());
            let all = expected[0].0.iter().filter(marked).cloned();
            assert_eq!(*found, all.collect::<Found>());
        }
        assert_eq!(expected[0].2.len(), 2000 - 730);
        assert!(expected.iter().all(|sweep| *sweep == expected[0]));
        for room in [1, 1_500, 4_000, 20_000, 1 << 20] {
            assert_eq!(read(all, Arc::default(), room), expected, "{room}");
        }
        // Readers of other states share the cache, and those of another file.
        let mut other = create(2).unwrap_or_else(|e| panic!("{e}"));
        let links = TargetLinks::from(&[PageId(7)][..]);
        assert!(other.append(PageId(2), false, links, false).is_ok());
        let other = other.sync().unwrap();
        let cache = Arc::default();
        for (kept, room) in [
            (commits[20], 4_000),
            (all, 1 << 20),
            (all, 1_500),
            (commits[30], 20_000),
            (commits[10], 1 << 20),
            (other, 1 << 20),
            (all, 1 << 20),
        ] {
            let expected = read(kept, Arc::default(), 0);
            let shared = read(kept, Arc::clone(&cache), room);
            assert_eq!(shared, expected, "{kept:?}, {room}");
        }
    }
}
