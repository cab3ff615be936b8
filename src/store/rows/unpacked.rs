//! The first blocks of a row file, unpacked: sweep after sweep goes over the same rows, and reads those blocks once that
//! memory has room for.

use std::sync::{Arc, Mutex, PoisonError};

use super::block::{Head, Rows as Block};

/// Blocks from the first one on.
#[derive(Default)]
pub(super) struct Unpacked(Mutex<Prefix>);

#[derive(Default)]
struct Prefix {
    blocks: Vec<(u64, Arc<Block>)>,
    /// The row after them.
    end: u64,
    /// Bytes that are left for more.
    room: u64,
}

impl Unpacked {
    /// Blocks may take so many bytes more.
    pub fn set_room(&self, bytes: u64) {
        self.with(|prefix| prefix.room = bytes);
    }

    /// Those that there are, each with its first row.
    pub fn blocks(&self) -> Vec<(u64, Arc<Block>)> {
        self.with(|prefix| prefix.blocks.clone())
    }

    /// The one that holds a row.
    pub fn find(&self, row: u64) -> Option<(u64, Arc<Block>)> {
        self.with(|prefix| {
            if row >= prefix.end {
                return None;
            }
            let behind = prefix.blocks.partition_point(|(first, _)| *first <= row);
            prefix.blocks.get(behind.checked_sub(1)?).cloned()
        })
    }

    /// Keeps the block that comes next, if there is room for it; else gives it back.
    pub fn keep(&self, first: u64, block: Block) -> Option<Block> {
        let bytes = block.heads.capacity() * size_of::<Head>()
            + block.targets.capacity() * size_of::<u32>()
            + block.weights.capacity() * size_of::<u64>();
        self.with(|prefix| {
            let left = prefix.room.checked_sub(bytes as u64);
            let (true, Some(left)) = (first == prefix.end, left) else {
                return Some(block);
            };
            prefix.room = left;
            prefix.end = first + block.heads.len() as u64;
            prefix.blocks.push((first, Arc::new(block)));
            None
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Prefix) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read::{KeptRows, RowFile};
    use super::super::write::RowWriter;
    use crate::engine::{Links, PageId};
    use crate::fuzz::memory::Memory;
    use crate::rows::{Bits, Row, Rows, Stop};

    const PAGES: u64 = 1000;

    /// Page, targets.
    type Found = Vec<(u32, Vec<u32>)>;

    fn found(sweep: impl FnOnce(&mut dyn FnMut(Row<'_>) -> Result<(), Stop>)) -> Found {
        let mut rows = Found::new();
        sweep(&mut |row| {
            rows.push((row.page, row.targets.to_vec()));
            Ok(())
        });
        rows
    }

    /// Whatever stays in memory, every sweep visits the same rows: all of them, some, and those from one on.
    #[test]
    fn sweeps_are_the_same_whatever_stays_in_memory() {
        let (disk, dir) = (Memory::default(), Path::new("store"));
        let mut writer =
            RowWriter::create(&disk, dir, 1, 1 << 24).unwrap_or_else(|e| panic!("{e}"));
        let mut kept = None;
        // A block a commit. Pages are read again: 37 is no divisor.
        for commit in 0..40u64 {
            for row in 0..50 {
                let page = (commit * 50 + row) * 37 % PAGES;
                let links: Vec<PageId> = (1..=row % 7)
                    .map(|to| PageId((page + to) % PAGES))
                    .collect();
                let links = Links::from(&links[..]);
                let again = commit >= PAGES / 50;
                assert!(writer.append(PageId(page), false, links, again).is_ok());
            }
            let synced = writer.sync(&disk, dir);
            kept = Some(synced.unwrap_or_else(|_| panic!("sync")));
        }
        let some = (0..PAGES)
            .step_by(31)
            .fold(Bits::new(PAGES), |mut some, page| {
                some.set(page);
                some
            });
        let read = |room: Option<u64>| {
            let file = RowFile::open(&disk, dir, kept.unwrap()).unwrap();
            let rows = KeptRows::of(file, PAGES).unwrap();
            rows.stay_in(room.unwrap_or(0));
            (0..3)
                .map(|_| {
                    (
                        found(|visit| rows.walk(visit).unwrap()),
                        found(|visit| rows.walk_some(&some, visit).unwrap()),
                        found(|visit| assert!(rows.written_from(730, visit).unwrap())),
                    )
                })
                .collect::<Vec<_>>()
        };
        let expected = read(None);
        assert_eq!(expected[0].0.len() as u64, PAGES);
        assert_eq!(expected[0].1.len(), 33);
        assert_eq!(expected[0].2.len(), 2000 - 730);
        assert!(expected.iter().all(|sweep| *sweep == expected[0]));
        for room in [1, 1_500, 4_000, 20_000, 1 << 20] {
            assert_eq!(read(Some(room)), expected, "{room}");
        }
    }
}
