//! Cache of the first blocks of a row file, unpacked: sweeps repeat over the same rows, and blocks that fit in memory
//! are read once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{BlockRows, RowHead};

/// Cache of the first blocks of a row file, up to a number of bytes.
#[derive(Default)]
pub(super) struct UnpackedRows {
    room: u64,
    prefix: Mutex<Prefix>,
}

#[derive(Default)]
struct Prefix {
    blocks: Vec<(u64, Arc<BlockRows>)>,
    end: u64,
    bytes: u64,
}

fn bytes_of(block: &BlockRows) -> u64 {
    let bytes = block.heads.capacity() * size_of::<RowHead>()
        + block.targets.capacity() * size_of::<u32>()
        + block.weights.capacity() * size_of::<u64>();
    bytes as u64
}

impl UnpackedRows {
    pub fn with_room(room: u64) -> UnpackedRows {
        UnpackedRows {
            room,
            ..UnpackedRows::default()
        }
    }

    fn prefix(&self) -> MutexGuard<'_, Prefix> {
        self.prefix.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn blocks(&self) -> Vec<(u64, Arc<BlockRows>)> {
        self.prefix().blocks.clone()
    }

    pub fn find(&self, row: u64) -> Option<(u64, Arc<BlockRows>)> {
        let prefix = self.prefix();
        if row >= prefix.end {
            return None;
        }
        let behind = prefix.blocks.partition_point(|(first, _)| *first <= row);
        prefix.blocks.get(behind.checked_sub(1)?).cloned()
    }

    /// Caches the next block if there is room for it; otherwise returns it.
    pub fn keep(&self, first: u64, block: BlockRows) -> Option<BlockRows> {
        let bytes = bytes_of(&block);
        let mut prefix = self.prefix();
        if first != prefix.end || prefix.bytes + bytes > self.room {
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
        let mut writer =
            RowWriter::create(&disk, dir, 1, 1 << 24).unwrap_or_else(|e| panic!("{e}"));
        let mut kept = None;
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
            kept = Some(writer.sync().unwrap());
        }
        let each = |step: u64| Bits::of(0..PAGES, |page| page % step == 0);
        // Few pages are read in another way than many.
        let (many, few) = (each(31), each(97));
        let read = |room: Option<u64>| {
            let file = RowFile::open(&disk, dir, kept.unwrap(), PAGES).unwrap();
            let mut rows = KeptRows::of(file).unwrap();
            rows.stay_in(room.unwrap_or(0));
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
        let expected = read(None);
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
            assert_eq!(read(Some(room)), expected, "{room}");
        }
    }
}
