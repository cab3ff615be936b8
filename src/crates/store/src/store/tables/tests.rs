//! Tests that runs and admissions are read back, and that damage is refused.

use super::*;
use crate::disk::{DiskFile, RealDisk};
use crate::engine::{Admission, Config, HistoryRow, merge, rows_of_run};
use crate::store::blocks::Packer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

fn random(seed: u64, at: u64, below: u64) -> u64 {
    xxh3_64_with_seed(&at.to_le_bytes(), seed) % below
}

/// Creates a database of some hundred pages. Returns its manifest.
fn make(dir: &Path) -> Manifest {
    let tables = Tables::open(&RealDisk, dir, Access::Create).unwrap();
    let mut manifest = Manifest::default();
    for number in 0..6 {
        let writing = tables.begin().unwrap();
        let row = |page| HistoryRow {
            page,
            visits: 1,
            cash: u128::from(random(number, page, u64::MAX)),
            ..HistoryRow::default()
        };
        let rows = (0..4000).map(|page| Ok(row(page)));
        let run = writing.put_run(number, number, rows).unwrap();
        let mut admissions = Packer::new();
        admissions.add(Admission::default());
        writing
            .put_admissions(number, admissions.finish().unwrap())
            .unwrap();
        manifest.admission_blocks += 1;
        manifest.runs.push(run);
        let slots: Vec<(u8, u64)> = (0..200).map(|hash| (1, hash)).collect();
        let numbered: Vec<(u64, (u8, u64))> = (0..).zip(slots.iter().copied()).collect();
        writing.put_slots(&numbered).unwrap();
        manifest.slots = slots_sum(&slots);
        writing.commit(&manifest).unwrap();
    }
    manifest
}

type All = (Manifest, Vec<(u8, u64)>, Vec<HistoryRow>, usize);

fn read(tables: &Tables) -> Result<All> {
    let reading = tables.read()?;
    let manifest = reading.manifest()?;
    let slots = reading.slots(200, manifest.slots)?;
    let mut rows = Vec::new();
    for run in &manifest.runs {
        for row in rows_of_run(reading.rows(*run)) {
            rows.push(row?);
        }
    }
    let admissions = reading.admissions(manifest.admission_blocks);
    let admissions = admissions.collect::<Result<Vec<_>>>()?.len();
    Ok((manifest, slots, rows, admissions))
}

/// Merges all runs, as checkpoints do, and closes.
fn write(tables: Tables, manifest: &Manifest) -> Result<()> {
    let writing = tables.begin()?;
    let mut manifest = manifest.clone();
    let pair = [manifest.runs[0], manifest.runs[1]];
    let merged = writing.merge_runs(&pair, 6, manifest.admission_blocks, |rows, admissions| {
        let admitted = admissions.filter_map(|admission| admission.err().map(Err));
        let merged = merge(Config::default().policy(), rows, None, 0);
        Box::new(rows_of_run(merged).chain(admitted))
    })?;
    manifest.runs.splice(0..2, [merged]);
    writing.commit(&manifest)
}

/// Regression: a block of a run is 4 KB, and 100 KB unpacked. A snapshot of 10,000 runs held an unpacked block of each:
/// 1 GB.
#[test]
fn few_rows_of_a_run_are_unpacked_at_a_time() {
    let temp = cashrank_base::folder::in_memory();
    let run = make(temp.path()).runs[2];
    let tables = Tables::open(&RealDisk, temp.path(), Access::Look).unwrap();
    let reading = tables.read().unwrap();
    let mut rows = reading.rows(run);
    let (mut slice, mut next) = (Vec::new(), 0);
    loop {
        slice.clear();
        rows(&mut slice).unwrap();
        if slice.is_empty() {
            break;
        }
        assert!(slice.capacity() <= 64);
        for row in &slice {
            assert_eq!(
                (row.page, row.cash),
                (next, random(2, next, u64::MAX).into())
            );
            next += 1;
        }
    }
    assert_eq!(next, 4000);
}

/// Regression: redb trusts its pages. On damaged ones it panicked, with `unreachable!` where a page is neither leaf nor
/// branch, and with slices out of range, when opening, reading, writing and closing. Now all calls go through a fence.
#[test]
fn damaged_pages_are_reported_or_do_not_matter() {
    let temp = cashrank_base::folder::in_memory();
    make(temp.path());
    let path = temp.path().join("store.redb");
    let good = std::fs::read(&path).unwrap();
    let sound = read(&Tables::open(&RealDisk, temp.path(), Access::Look).unwrap()).unwrap();
    assert_eq!((sound.2.len(), sound.3), (24_000, 6));
    let pages: Vec<usize> = (0..good.len())
        .step_by(4096)
        .filter(|&page| good[page..page + 4096].iter().any(|&byte| byte != 0))
        .collect();
    let (mut fenced, mut told) = (0, 0);
    for round in 0..200 {
        let mut bytes = good.clone();
        let page = pages[random(1, round, pages.len() as u64) as usize];
        // Most of what redb trusts is at the start of a page.
        let at = page + random(2, round, [64, 4096 - 64][round as usize % 2]) as usize;
        for (byte, held) in bytes[at..at + [1, 8, 64][round as usize % 3]]
            .iter_mut()
            .enumerate()
        {
            *held ^= 1 + random(3, round * 64 + byte as u64, 255) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        let mut judge = |result: Result<()>| match result {
            Ok(()) => {}
            Err(Error::Damaged { what, .. }) => {
                told += 1;
                fenced += u64::from(what == "redb cannot use its pages");
            }
            Err(error) => panic!("round {round}: {error}"),
        };
        let look = Tables::open(&RealDisk, temp.path(), Access::Look);
        judge(look.and_then(|tables| read(&tables)).map(|found| {
            assert!(found == sound, "round {round}: other values");
        }));
        assert!(std::fs::read(&path).unwrap() == bytes, "a look writes");
        let look = Tables::open(&RealDisk, temp.path(), Access::Look);
        judge(look.and_then(|mut tables| tables.check()));
        let open = Tables::open(&RealDisk, temp.path(), Access::Write);
        judge(open.and_then(|tables| write(tables, &sound.0)));
    }
    eprintln!("{told} times told, {fenced} of them caught");
    assert!(told > 200 && fenced > 3, "{told} told, {fenced} caught");
}

/// File on which writing fails with this system error.
#[derive(Debug)]
struct Unwritable(i32);

impl Unwritable {
    fn fail(&self) -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(self.0))
    }
}

impl DiskFile for Unwritable {
    fn read_at(&self, _: &mut [u8], _: u64) -> std::io::Result<()> {
        self.fail()
    }

    fn write_at(&self, _: &[u8], _: u64) -> std::io::Result<()> {
        self.fail()
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _: u64) -> std::io::Result<()> {
        self.fail()
    }

    fn sync(&self) -> std::io::Result<()> {
        self.fail()
    }

    fn try_lock(&self) -> std::io::Result<bool> {
        Ok(true)
    }
}

/// EIO, ENOSPC, EINVAL, ENOTDIR, ENAMETOOLONG, EFBIG, EROFS, EBADF, ENXIO, EOVERFLOW: numbers of Linux.
#[test]
fn errors_of_writing_are_no_damage() {
    for number in [5, 28, 22, 20, 36, 27, 30, 9, 6, 75] {
        let made =
            redb::Database::builder().create_with_backend(Backend(Box::new(Unwritable(number))));
        let error = failed(Path::new("store.redb"), "write")(made.err().unwrap());
        assert!(
            matches!(error, crate::Error::Io { .. }),
            "{number}: {error}"
        );
        let system = std::io::Error::from_raw_os_error(number).to_string();
        assert!(error.to_string().contains(&system), "{error}");
    }
}
