//! Sweeps over all rows, some, and one, with and without a cache of unpacked blocks.

use std::path::Path;
use std::sync::Arc;

use super::super::path_of;
use super::super::write::RowWriter;
use super::{KeptRows, RowFile};
use crate::disk::Disk;
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
                    found(|visit| assert!(rows.sweep(visit).unwrap())),
                    [&many, &few].map(|marked| {
                        found(|visit| {
                            let mut each =
                                |some: &[Row<'_>]| some.iter().try_for_each(|row| visit(*row));
                            rows.walk_some(marked, &mut each).unwrap()
                        })
                    }),
                    found(|visit| {
                        let each = |some: &[Row<'_>]| some.iter().try_for_each(|row| visit(*row));
                        rows.each_from(730, |_, _| true, each).unwrap()
                    }),
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
    // The first page is searched; of the later ones it is known where their rows are.
    let open = || RowFile::open(&disk, dir, all, PAGES).unwrap();
    let asked_often = open();
    for page in 0..=PAGES as u32 {
        let of_sweep = expected[0].0.iter().find(|row| row.0 == page);
        for file in [&open(), &asked_often, &asked_often.clone()] {
            let mut found = None;
            let read = &mut |row: Row<'_>| found = Some((row.page, row.targets.to_vec()));
            assert_eq!(file.row(page, read).unwrap(), of_sweep.is_some());
            assert_eq!(found.as_ref(), of_sweep);
        }
    }
    // Damage before a page's row does not matter to it, however often it is asked for.
    let damaged = disk.copy();
    let rows = damaged.open(&path_of(dir, 1), false).unwrap();
    rows.write_at(&[0xff; 8], 100).unwrap();
    let file = RowFile::open(&damaged, dir, all, PAGES).unwrap();
    for _ in 0..3 {
        assert!(
            file.row(expected[0].0.last().unwrap().0, &mut |_| ())
                .unwrap()
        );
        file.row(PAGES as u32, &mut |_| ()).unwrap_err();
    }
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

/// The last row of a page is found in stretches of several rows, which may begin and end within a block.
#[test]
fn last_rows_are_found_in_long_stretches() {
    let (disk, dir) = (Memory::default(), Path::new("store"));
    let mut writer = RowWriter::create(&disk, dir, 1, 1 << 24).unwrap_or_else(|e| panic!("{e}"));
    let mut last = vec![None; PAGES as usize];
    for row in 0..300_000u64 {
        // One page of seven has no row.
        let page = row * row % PAGES / 7 * 7 + row % 6;
        let page = page.min(PAGES - 1);
        last[page as usize] = Some(row % PAGES);
        let links = [PageId(row % PAGES)];
        let links = TargetLinks::from(&links[..]);
        assert!(writer.append(PageId(page), false, links, true).is_ok());
    }
    let kept = writer.sync().unwrap();
    let file = RowFile::open(&disk, dir, kept, PAGES).unwrap();
    assert!(file.stretch_rows() > 1);
    for _ in 0..2 {
        for (page, last) in (0..).zip(&last) {
            let mut found = None;
            let known = file.row(page, &mut |row| found = Some(u64::from(row.targets[0])));
            assert_eq!((known.unwrap(), found), (last.is_some(), *last), "{page}");
        }
    }
}
