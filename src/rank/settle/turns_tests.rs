//! Settling in turns against all blocks in memory, on random graphs and random splits.

use std::io;
use std::path::Path;

use super::blocks_tests::{a_change, a_split_graph};
use super::peers_tests::settled_by_each;
use super::tests::{DAMPINGS, dense, numbers};
use super::*;
use crate::disk::{Disk, DiskFile, RealDisk};
use crate::fuzz::memory::Memory;

fn in_turns(disk: &dyn Disk, resident: usize, threads: usize) -> Workers {
    Workers {
        turns: Some(Turns::new(disk, Path::new("settling"), resident).unwrap()),
        ..Workers::threads(threads)
    }
}

#[test]
fn turns_make_no_difference() {
    let nothing = Gathered::default();
    for seed in 0..300 {
        let mut pick = numbers(seed);
        let blocks = 1 + pick(9) as u32;
        let (_, split) = a_split_graph(&mut pick, blocks);
        let damping = DAMPINGS[pick(5) as usize];
        let until = 10f64.powi(-(pick(12) as i32));
        let options = Options::until((damping * 2f64.powi(32)) as u64, until);
        let settled = |workers: &Workers| {
            let settled = settle_parts(&split.parts(), &options, workers, &mut ());
            settled.unwrap().unwrap()
        };
        let all = settled(&Workers::threads(1));
        for resident in [1, 2, blocks as usize - 1, blocks as usize] {
            let threads = 1 + pick(3) as usize;
            let disk = Memory::default();
            let turned = settled(&in_turns(&disk, resident, threads));
            let what = format!("seed {seed}, {resident} of {blocks}, {threads} threads");
            assert_eq!(
                split.bits(&turned, &nothing),
                split.bits(&all, &nothing),
                "{what}"
            );
            assert_eq!(turned.certificate, all.certificate, "{what}");
            assert_eq!(turned.progress, all.progress, "{what}");
            assert!(disk.paths().is_empty(), "{what}");
        }
    }
}

/// What is settled in turns is as near to the solution as its bound says.
#[test]
fn no_bound_is_violated_in_turns() {
    for seed in 0..300 {
        let mut pick = numbers(seed);
        let blocks = 2 + pick(8) as u32;
        let (kept, split) = a_split_graph(&mut pick, blocks);
        let options = Options::until(
            (0.85 * 2f64.powi(32)) as u64,
            10f64.powi(-(pick(11) as i32)),
        );
        let disk = Memory::default();
        let workers = in_turns(&disk, 1 + pick(2) as usize, 1);
        let settled = settle_parts(&split.parts(), &options, &workers, &mut ());
        let settled = settled.unwrap().unwrap();
        assert!(settled.reached, "seed {seed}");
        let exact = dense(&kept, options.damping());
        let found = split.estimates(&settled, &Gathered::default());
        let off: f64 = found
            .iter()
            .zip(&exact)
            .map(|((y, _), exact)| (y - exact).abs())
            .sum();
        assert!(
            off <= settled.certificate.received_l1.unwrap() + 1e-12,
            "seed {seed}: {off}"
        );
    }
}

/// From a base, of rows of which some changed: the base that is left is the same as well.
#[test]
fn bases_are_the_same_in_turns() {
    let mut used = 0;
    for seed in 0..200 {
        let (changed, mut pick) = (a_change(seed), numbers(seed));
        let (after, options) = (&changed.after, &changed.options);
        let one = Workers::threads(1);
        let first = settle_parts(&changed.before.parts(), options, &one, &mut ());
        let Some(held) = changed.held(&first.unwrap().unwrap()) else {
            continue;
        };
        let bases: Vec<&dyn Base> = held.iter().map(|held| held as &dyn Base).collect();
        let parts = after.parts();
        let run = |workers: &Workers| {
            let (settled, came) =
                settle_from(&parts, options, Some(&bases), workers, &mut ()).unwrap();
            assert!(
                !matches!(came, BaseUse::Unusable(_)),
                "seed {seed}: {came:?}"
            );
            let settled = settled.unwrap();
            let left = settled.as_bases(1, |_, pages| {
                Ok((
                    pages.own.to_vec(),
                    pages.accounts.to_vec(),
                    pages.costs.to_vec(),
                ))
            });
            let bits = after.bits(&settled, &Gathered::default());
            let totals = settled.base_totals();
            (
                matches!(came, BaseUse::Used),
                bits,
                left.unwrap(),
                totals,
                settled.progress,
            )
        };
        let all = run(&one);
        used += u32::from(all.0);
        for resident in [1, 2, after.blocks()] {
            let disk = Memory::default();
            let turned = run(&in_turns(&disk, resident, 1 + pick(2) as usize));
            assert!(turned == all, "seed {seed}, {resident}");
        }
    }
    assert!(used > 100, "{used}");
}

/// Several processes, of which each lets its blocks take turns.
#[test]
fn processes_may_take_turns() {
    for seed in 0..60 {
        let mut pick = numbers(seed);
        let blocks = 4 + pick(5) as u32;
        let (_, split) = a_split_graph(&mut pick, blocks);
        let options = Options::until((0.85 * 2f64.powi(32)) as u64, 10f64.powi(-(pick(9) as i32)));
        let run = |count, turns: bool| {
            let disk = Memory::default();
            let with = |peers: &Peers| {
                let name = peers.process().to_string();
                turns.then(|| Turns::new(&disk, Path::new(&name), 1).unwrap())
            };
            let (settled, gathered) = settled_by_each(&split, &options, count, with).swap_remove(0);
            (
                split.bits(&settled, &gathered),
                settled.certificate,
                settled.progress,
            )
        };
        let one = run(1, false);
        for count in 1..=3 {
            assert_eq!(run(count, true), one, "seed {seed}, {count} processes");
        }
    }
}

/// In the system's folder the files have no names either.
#[test]
fn files_have_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let turns = Turns::new(&RealDisk, &dir.path().join("settling"), 1).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    drop(turns);
}

/// Has no room for what blocks have.
struct Full(Memory);

#[derive(Debug)]
struct FullFile(Box<dyn DiskFile>);

impl Disk for Full {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        self.0.open(path, create)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FullFile(self.0.create_new(path)?)))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.read(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

impl DiskFile for FullFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

#[test]
fn a_full_disk_is_named() {
    let mut pick = numbers(3);
    let (_, split) = a_split_graph(&mut pick, 4);
    let workers = in_turns(&Full(Memory::default()), 1, 1);
    let error = settle_parts(
        &split.parts(),
        &Options::until(1 << 31, 0.1),
        &workers,
        &mut (),
    );
    let error = error.err().unwrap();
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains("settling."), "{error}");
}
