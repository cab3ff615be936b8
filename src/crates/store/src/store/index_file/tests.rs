//! Tests of the index on disk: its bytes, its lookups, and its rejection.

use super::super::names::{NameLengths, NameLogs};
use super::*;
use crate::batch::HashKey;
use crate::disk::{RealDisk, read_whole};
use crate::fuzz::memory::Memory;

const DIR: &str = "store";
const STORE: u64 = 77;

fn print(page: u64) -> Fingerprint {
    HashKey([1, 2]).fingerprints().of(&page.to_le_bytes())
}

/// Writes fingerprints, with commits after each of these numbers of pages.
fn names(disk: &Memory, commits: &[u64]) -> NameReader {
    let mut logs = NameLogs::create(disk, Path::new(DIR)).unwrap();
    let mut lengths = NameLengths::default();
    let mut page = 0;
    for &end in commits {
        for page in page..end {
            logs.append(print(page), b"").unwrap();
        }
        page = end;
        lengths = logs.sync().unwrap();
    }
    NameReader::open(disk, Path::new(DIR), lengths).unwrap()
}

/// Writes the index of the first `pages` pages, as a store with as many pages does.
fn keep(disk: &Memory, index: &Index, names: &NameReader) {
    let sum = names.sum_of_prints(index.pages() - 1).unwrap().unwrap();
    write(disk, Path::new(DIR), STORE, index, sum).unwrap();
}

/// Opens it as a writer does whose commit has this many pages.
fn open(disk: &Memory, names: &NameReader, pages: u64) -> Result<Option<IndexFile>> {
    let file = IndexFile::open(disk, Path::new(DIR), STORE)?;
    file.map(|file| file.check(pages, names).map(|()| file))
        .transpose()
}

fn grown(pages: u64) -> Index {
    let mut index = Index::new().unwrap();
    for page in 0..pages {
        assert_eq!(index.admit(print(page)).unwrap(), (PageId(page), true));
    }
    index
}

/// The bytes are as computed from `formats/store.md`.
#[test]
fn its_bytes_are_those_of_the_specification() {
    let pages = 20_000u64;
    let disk = Memory::default();
    let names = names(&disk, &[pages]);
    keep(&disk, &grown(pages), &names);
    let bytes = read_whole(&disk, &Path::new(DIR).join(INDEX)).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let sum = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64(bytes);
    assert_eq!([number(0), number(8), number(16)], [1, STORE, pages]);
    assert_eq!(number(4128), sum(&bytes[..4128]));
    let mut at = 4136;
    let mut pages_of = vec![Vec::new(); 512];
    for (segment, pages) in pages_of.iter_mut().enumerate() {
        let slots = number(32 + 8 * segment) as usize;
        assert!(slots < 4096, "one chunk");
        let homes = slots as u128 - 64;
        let log = homes.ilog2();
        let chunk = &bytes[at..at + 10 * slots];
        let begins = sum(&bytes[..32]).to_le_bytes();
        let summed = [chunk, &(at as u64).to_le_bytes(), &begins].concat();
        assert_eq!(number(at + 10 * slots), sum(&summed));
        at += 10 * slots + 8;
        for (place, slot) in chunk
            .chunks(10)
            .enumerate()
            .filter(|(_, slot)| slot != &[0; 10])
        {
            let mut whole = [0; 16];
            whole[..10].copy_from_slice(slot);
            let whole = u128::from_le_bytes(whole);
            let page = (whole & ((1 << (11 + log)) - 1)) as u64 - 1;
            let rest = (whole >> (11 + log)) & ((1 << (63 - log)) - 1);
            let last = (whole >> 74) as usize;
            let tag = (print(page) as u64 >> 1) as u128;
            let product = tag * homes;
            let home = (product >> 63) as usize;
            assert_eq!((print(page) >> 119) as usize, segment);
            assert_eq!(
                (home % 64, (product & ((1 << 63) - 1)) >> log),
                (last, rest)
            );
            assert!((home..home + 64).contains(&place));
            pages.push(page);
        }
    }
    assert_eq!(at, bytes.len());
    let mut all = pages_of.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..pages));
}

#[test]
fn pages_are_found_in_the_file_and_in_what_is_loaded_of_it() {
    let disk = Memory::default();
    let names = names(&disk, &[40_000, 41_000]);
    let old = grown(40_000);
    keep(&disk, &old, &names);
    let path = Path::new(DIR).join(INDEX);
    let bytes = read_whole(&disk, &path).unwrap();
    // The bytes do not depend on how the index grew.
    keep(&disk, &reindex_of(&names, 40_000), &names);
    assert!(read_whole(&disk, &path).unwrap() == bytes);
    assert!(open(&disk, &names, 39_999).is_err());
    for known in [40_000, 41_000] {
        let file = open(&disk, &names, known).unwrap().unwrap();
        assert_eq!(file.pages, 40_000);
        for page in (0..42_000).step_by(7) {
            let found = file.get(print(page)).unwrap();
            assert_eq!(found, (page < 40_000).then_some(PageId(page)));
        }
        file.verify(&names).unwrap();
    }
    let file = open(&disk, &names, 41_000);
    let (index, known, from_file) = indexed(41_000, &names, file).unwrap();
    assert_eq!((known, from_file.unwrap()), (Some(41_000), 40_000));
    for page in 0..42_000 {
        let found = index.get(print(page));
        assert_eq!(found, (page < 41_000).then_some(PageId(page)));
    }
}

fn reindex_of(names: &NameReader, pages: u64) -> Index {
    let mut index = Index::with_room(pages).unwrap();
    for print in names.fingerprints(0).unwrap().take(pages as usize) {
        assert!(index.admit(print.unwrap()).unwrap().1);
    }
    index
}

#[test]
fn what_is_damaged_or_of_others_is_not_used() {
    let disk = Memory::default();
    let names = names(&disk, &[20_000]);
    keep(&disk, &grown(20_000), &names);
    let path = Path::new(DIR).join(INDEX);
    let bytes = read_whole(&disk, &path).unwrap();
    let is_whole = || {
        let file = open(&disk, &names, 20_000)?;
        file.map_or(Ok(()), |file| file.verify(&names))
    };
    is_whole().unwrap();
    for at in (0..bytes.len()).step_by(4_999).chain(0..40) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 16;
        disk.put(&path, &flipped);
        assert!(is_whole().is_err(), "byte {at}");
        let file = open(&disk, &names, 20_000);
        let (index, known, from_file) = indexed(20_000, &names, file).unwrap();
        assert!(known == Some(20_000) && from_file.is_err());
        assert_eq!(index.get(print(19_999)), Some(PageId(19_999)));
        disk.put(&path, &bytes[..at]);
        assert!(is_whole().is_err(), "cut at {at}");
    }
    // Of another store, and of other fingerprints.
    disk.put(&path, &bytes);
    assert!(IndexFile::open(&disk, Path::new(DIR), STORE + 1).is_err());
    let sum = names.sum_of_prints(19_999).unwrap().unwrap();
    write(&disk, Path::new(DIR), STORE, &grown(20_000), sum + 1).unwrap();
    assert!(is_whole().is_err());
    // Valid except for the pages in it: found by the comparison.
    let mut other = Index::new().unwrap();
    for page in 0..20_000 {
        other.admit(print(page ^ 1)).unwrap();
    }
    write(&disk, Path::new(DIR), STORE, &other, sum).unwrap();
    let error = is_whole().unwrap_err().to_string();
    assert!(error.contains("it does not lead to page 0"), "{error}");
    assert!(open(&disk, &names, 20_000).is_ok());
}

#[test]
fn another_is_due_when_a_store_has_grown() {
    assert!(!is_due(LEAST_PAGES - 1, 0) && is_due(LEAST_PAGES, 0));
    assert!(!is_due(64_000, 64_000) && !is_due(65_000, 64_000) && is_due(65_001, 64_000));
}

/// Writes logs of `pages` pages whose names are numbers; `twice` gives a page the name of another.
fn logs(disk: &dyn Disk, dir: &Path, pages: u64, twice: Option<(u64, u64)>) -> NameReader {
    let mut logs = NameLogs::create(disk, dir).unwrap();
    for page in 0..pages {
        let like = twice
            .filter(|(at, _)| *at == page)
            .map_or(page, |(_, like)| like);
        let name = like.to_string();
        let print = HashKey([1, 2]).fingerprints().of(name.as_bytes());
        logs.append(print, name.as_bytes()).unwrap();
    }
    let lengths: NameLengths = logs.sync().unwrap();
    NameReader::open(disk, dir, lengths).unwrap()
}

#[test]
fn every_page_is_found() {
    let dir = cashrank_base::folder::in_memory();
    let names = logs(&RealDisk, dir.path(), 300_000, None);
    let (index, count) = reindex(300_000, &names, None).unwrap();
    assert_eq!(count, Some(300_000));
    for (page, print) in (0..).zip(names.fingerprints(0).unwrap()) {
        assert_eq!(index.get(print.unwrap()), Some(PageId(page)));
    }
}

#[test]
fn a_duplicate_page_is_reported() {
    for (at, like) in [(1, 0), (99_999, 3), (99_999, 99_998), (50_000, 49_000)] {
        let dir = cashrank_base::folder::in_memory();
        let names = logs(&RealDisk, dir.path(), 100_000, Some((at, like)));
        assert_eq!(reindex(100_000, &names, None).unwrap().1, None);
    }
}

/// Measures the speed. MILLIONS is the number of pages in millions; TMPDIR needs 16 bytes per page.
#[test]
#[ignore = "cargo test --release --lib index_file::tests::speed -- --ignored --nocapture"]
fn speed() {
    let millions = std::env::var("MILLIONS").map_or(1, |m| m.parse::<u64>().unwrap());
    let pages = millions * 1_000_000;
    let dir = cashrank_base::folder::in_memory();
    let mut logs = NameLogs::create(&RealDisk, dir.path()).unwrap();
    for page in 0..pages {
        let print = HashKey([1, 2]).fingerprints().of(&page.to_le_bytes());
        logs.append(print, b"").unwrap();
    }
    let lengths = logs.sync().unwrap();
    let names = NameReader::open(&RealDisk, dir.path(), lengths).unwrap();
    let started = std::time::Instant::now();
    let (index, count) = reindex(pages, &names, None).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(count, Some(pages));
    let bytes = index.bytes() as f64 / pages as f64;
    eprintln!(
        "{:.2} M pages/s, {bytes:.2} bytes a page",
        pages as f64 / 1e6 / seconds
    );
}
