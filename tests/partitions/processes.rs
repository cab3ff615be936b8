//! Ingests by several processes, which are threads here: whichever disk dies, or is full, and whenever.

#[path = "../common/ends.rs"]
mod ends;

use ends::processes;

use super::base::{files, is_sound, is_undamaged, job_of};
use super::epochs::with_epochs;
use super::*;

use std::num::NonZeroUsize;
use std::thread;

use cashrank::ingest::follow;
use cashrank::rank::settle::{Exchange, Peers, Workers};
use cashrank::snapshot::{Residency, Watcher, dismiss};

/// What comes of a job in each process, which all have a disk of their own.
pub(super) fn together(job: &Job, disks: Vec<Arc<dyn Disk>>) -> Vec<Result<()>> {
    thread::scope(|scope| {
        let each = processes(disks.len()).into_iter().zip(disks).enumerate();
        let each = each.map(|(process, (peers, disk))| {
            scope.spawn(move || {
                if process > 0 {
                    let workers = Workers {
                        peers,
                        ..Workers::threads(1)
                    };
                    let within = Residency::default();
                    return follow(&disk, &job.store, &workers, within, &Watcher::default());
                }
                let job = Job {
                    peers: Some(peers.clone()),
                    ..job.clone()
                };
                ingest(&job, disk, &mut Quiet)?;
                dismiss(&peers)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

pub(super) fn real(count: usize) -> Vec<Arc<dyn Disk>> {
    (0..count).map(|_| Arc::new(RealDisk) as _).collect()
}

/// Wherever the disk of one process is gone: the same commands, by another number of processes, go on to the same bytes. Deaths
/// in a commit, when partitions are ahead of their store, are among them.
#[test]
fn processes_that_die_anywhere_go_on_to_the_same_bytes() {
    die_anywhere(&Lab::new(25, 90), |job| job);
}

/// The same with cash on its way from one to another. Each takes turns with its partitions, or does not.
#[test]
fn processes_that_die_inside_an_epoch_go_on_to_the_same_bytes() {
    for resident in [None, NonZeroUsize::new(1)] {
        die_anywhere(&Lab::new(25, 90), |job| Job {
            settings: with_epochs(job.settings, 8, "whole"),
            settle: None,
            resident,
            ..job
        });
    }
}

fn die_anywhere(lab: &Lab, of: impl Fn(Job) -> Job) {
    let files = files(lab, 2);
    let job = |store: &str, file: &Path| {
        of(Job {
            checkpoint_every: Every::Records(10),
            snapshot_every: Every::Records(25),
            threads: 1,
            ..job_of(lab, store, 4, file)
        })
    };
    let mut whole = Vec::new();
    for (file, _) in &files {
        run(&job("whole", file)).unwrap();
        whole.push(published(&lab.path("whole")));
    }
    let store = lab.path("dies");
    let (mut deaths, mut ahead) = (0, 0);
    for victim in 0..3 {
        for changes in (0..).step_by(31) {
            let dying = Dying::after(changes);
            for ((file, _), whole) in files.iter().zip(&whole) {
                let job = job("dies", file);
                let mut disks = real(3);
                let gone = dying.left.load(Ordering::SeqCst) == 0;
                if !gone {
                    disks[victim] = Arc::new(Meddled(Dies(dying.clone())));
                }
                let done = together(&job, disks);
                let is_whole = done.iter().all(Result::is_ok);
                if !is_whole {
                    if store.join("identity.json").exists() {
                        is_undamaged(&store);
                    }
                    let count = 1 + changes as usize % 4;
                    for done in together(&job, real(count)) {
                        done.unwrap_or_else(|error| panic!("{victim} {changes}: {error}"));
                    }
                }
                assert!(published(&store) == *whole, "{victim} {changes}");
            }
            is_sound(&store);
            fs::remove_dir_all(&store).unwrap();
            if dying.left.load(Ordering::SeqCst) > 0 {
                break;
            }
            deaths += 1;
            ahead += u32::from(dying.died_ahead.load(Ordering::SeqCst));
        }
    }
    assert!(deaths >= 60 && ahead >= 5, "{deaths} {ahead}");
}

/// Where one disk has no room for a base, there is none, and the ranking is what it should be.
#[test]
fn one_disk_without_room_for_its_base() {
    let lab = Lab::new(26, 120);
    run(&lab.job("alone", 4)).unwrap();
    let mut disks = real(3);
    disks[2] = Arc::new(Meddled(super::base::FULL));
    let job = lab.job("full", 4);
    for done in together(&job, disks) {
        done.unwrap();
    }
    let store = lab.path("full");
    assert!(published(&store) == published(&lab.path("alone")));
    let left = fs::read_dir(store.join("parts/000/base")).unwrap().count();
    assert_eq!(left, 0);
    is_sound(&store);
    for done in together(&job, real(2)) {
        done.unwrap();
    }
    assert_eq!(
        fs::read_dir(store.join("parts/002/base")).unwrap().count(),
        1
    );
    is_sound(&store);
}

/// A disk without room for partitions that take turns.
struct NoTurns;

impl Over for NoTurns {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        let waits = path.to_string_lossy().contains("snapshots/settling-");
        if create && waits {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn over(&self, _: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        file
    }
}

/// In each process as many partitions are in memory at a time as in the first: the bytes are those of all in memory.
#[test]
fn partitions_of_each_process_take_turns() {
    let lab = Lab::new(27, 120);
    run(&lab.job("alone", 6)).unwrap();
    let job = |store: &str, resident: usize| Job {
        resident: NonZeroUsize::new(resident),
        ..lab.job(store, 6)
    };
    for (count, resident) in [(1, 2), (2, 1), (2, 2), (3, 1)] {
        let store = format!("{count}-{resident}");
        for done in together(&job(&store, resident), real(count)) {
            done.unwrap();
        }
        let store = lab.path(&store);
        assert!(published(&store) == published(&lab.path("alone")));
        is_sound(&store);
    }
    for victim in 0..2 {
        let store = format!("full-{victim}");
        let mut disks = real(2);
        disks[victim] = Arc::new(Meddled(NoTurns));
        let done = together(&job(&store, 1), disks);
        let error = done[victim].as_ref().unwrap_err().to_string();
        assert!(error.contains(&format!("settling-{victim}")), "{error}");
        for done in together(&job(&store, 1), real(2)) {
            done.unwrap();
        }
        assert!(published(&lab.path(&store)) == published(&lab.path("alone")));
    }
}
