//! Settled bases of stores with partitions: one in each, which one commit names.

use super::*;

use cashrank::engine::Effort;

use crate::disk::NoRoomIn;

/// The records of a crawl in so many files, and what is read up to the end of each.
pub(super) fn files(lab: &Lab, count: usize) -> Vec<(PathBuf, usize)> {
    let len = lab.records.len().div_ceil(count);
    let file = |(at, records): (usize, &[String])| {
        let path = lab.path(&format!("file{at}"));
        fs::write(&path, records.concat()).unwrap();
        (path, at * len + records.len())
    };
    lab.records.chunks(len).enumerate().map(file).collect()
}

pub(super) fn job_of(lab: &Lab, store: &str, partitions: u32, file: &Path) -> Job {
    Job {
        inputs: vec![InputName::File(file.into())],
        ..lab.job(store, partitions)
    }
}

fn effort(store: &Path) -> Effort {
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    snapshot.info().window.settled.unwrap()
}

/// Links gone over, in sweeps over all.
fn sweeps(effort: &Effort) -> f64 {
    effort.links_touched as f64 / effort.links as f64
}

pub(super) fn is_sound(store: &Path) {
    let checked = check(&RealDisk, store, Depth::Deep, None).unwrap();
    assert!(
        checked.damage.is_empty() && checked.strangers.is_empty(),
        "{checked:?}"
    );
}

/// The bound of the current ranking holds, for the links that these records leave.
fn bound_is_true(store: &Path, records: &[String]) {
    let known = names(store);
    let exact = pagerank(&known, &expected(records));
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    let off: f64 = (snapshot.named().map(Result::unwrap).zip(&exact))
        .map(|(page, exact)| (page.importance - exact).abs())
        .sum();
    let bound = snapshot.bound_l1().unwrap();
    assert!(off <= bound + 1e-12, "{off} {bound}");
}

/// A file more costs a fraction of a ranking from nothing, and all that was certified on the way was true.
#[test]
fn the_next_ranking_starts_from_the_last() {
    let lab = Lab::new(21, 600);
    for partitions in [4, 64] {
        let store = lab.path(&format!("in-{partitions}"));
        let mut costs = Vec::new();
        for (file, read) in files(&lab, 30) {
            let job = job_of(&lab, &format!("in-{partitions}"), partitions, &file);
            run(&Job {
                settle: Some(0.01.into()),
                ..job
            })
            .unwrap();
            bound_is_true(&store, &lab.records[..read]);
            costs.push(sweeps(&effort(&store)));
        }
        is_sound(&store);
        run(&Job {
            settle: Some(0.01.into()),
            ..lab.job("once", partitions)
        })
        .unwrap();
        let once = sweeps(&effort(&lab.path("once")));
        let late = costs[20..].iter().sum::<f64>() / 10.0;
        assert!(late < 0.5 * once, "{partitions}: {costs:?}, {once}");
        fs::remove_dir_all(lab.path("once")).unwrap();
    }
}

/// Several files in turn: the bytes depend neither on threads, nor on checkpoints, nor on looks by the clock; bases that
/// numbers of records ask for come at the same places.
#[test]
fn the_same_bytes_file_after_file() {
    let lab = Lab::new(22, 240);
    let files = files(&lab, 4);
    let ways = [
        (1, Every::Never, false),
        (2, Every::Records(7), true),
        (3, Every::Records(17), false),
        (16, Every::Time(std::time::Duration::ZERO), true),
    ];
    for partitions in [4, 64] {
        for every in [None, Some(25)] {
            let mut all = Vec::new();
            for (at, &(threads, checkpoints, looks)) in ways.iter().enumerate() {
                let store = format!("s{partitions}-{every:?}-{at}");
                for (file, _) in &files {
                    let looks = if looks {
                        Every::Time(std::time::Duration::ZERO)
                    } else {
                        Every::Never
                    };
                    run(&Job {
                        threads,
                        checkpoint_every: checkpoints,
                        snapshot_every: every.map_or(looks, Every::Records),
                        ..job_of(&lab, &store, partitions, file)
                    })
                    .unwrap();
                }
                is_sound(&lab.path(&store));
                all.push(published(&lab.path(&store)));
                fs::remove_dir_all(lab.path(&store)).unwrap();
            }
            assert!(
                all.iter().all(|one| *one == all[0]),
                "{partitions} {every:?}"
            );
        }
    }
}

/// Wherever the disk is gone in a run over three files, each of them a command: the same commands go on to the same bytes.
fn dies_anywhere(partitions: u32, step: usize, least: usize) {
    let lab = Lab::new(23, 90);
    let files = files(&lab, 3);
    let job = |store: &str, file: &Path| Job {
        checkpoint_every: Every::Records(20),
        snapshot_every: Every::Records(25),
        threads: 1,
        ..job_of(&lab, store, partitions, file)
    };
    let mut whole = Vec::new();
    for (file, _) in &files {
        run(&job("whole", file)).unwrap();
        whole.push(published(&lab.path("whole")));
    }
    let store = lab.path("dies");
    let mut deaths = 0;
    for changes in (0..).step_by(step) {
        let dying = Dying::after(changes);
        for (file, whole) in files.iter().map(|(file, _)| file).zip(&whole) {
            let job = job("dies", file);
            let disk: Arc<dyn Disk> = Arc::new(Meddled(Dies(dying.clone())));
            let is_over = dying.left.load(Ordering::SeqCst) == 0;
            if is_over || ingest(&job, disk, &mut Quiet).is_err() {
                if store.join("identity.json").exists() {
                    is_undamaged(&store);
                }
                run(&job).unwrap_or_else(|error| panic!("{changes}: {error}"));
            }
            assert!(published(&store) == *whole, "{changes}");
        }
        is_sound(&store);
        fs::remove_dir_all(&store).unwrap();
        if dying.left.load(Ordering::SeqCst) > 0 {
            break;
        }
        deaths += 1;
    }
    assert!(deaths >= least, "{deaths}");
}

/// What a disk that was gone could not remove may be left.
pub(super) fn is_undamaged(store: &Path) {
    let checked = check(&RealDisk, store, Depth::Deep, None).unwrap();
    assert!(checked.damage.is_empty(), "{checked:?}");
}

#[test]
fn four_that_die_anywhere_go_on_to_the_same_bytes() {
    dies_anywhere(4, 7, 100);
}

#[test]
fn sixty_four_that_die_anywhere_go_on_to_the_same_bytes() {
    dies_anywhere(64, 1501, 3);
}

/// What has no room for the base of partition 2.
pub(super) const FULL: NoRoomIn = NoRoomIn("parts/002/base/");

/// Warnings that were given about bases.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Observer for Warnings {
    fn note(&mut self, note: Note<'_>) {
        if let Note::Base { warning } = note {
            self.0.push(warning.to_string());
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Files in the folders of bases.
fn bases(store: &Path) -> Vec<String> {
    let parts = RealDisk.list(&store.join("parts")).unwrap();
    let bases = parts.iter().flat_map(|part| {
        let folder = store.join("parts").join(part).join("base");
        RealDisk.list(&folder).unwrap_or_default()
    });
    bases.collect()
}

/// Where one partition's base does not fit on the disk the ranking is published, no base is left in part, and the next
/// command makes it: the bytes are those of a run with room.
#[test]
fn a_disk_without_room_for_one_base_has_none() {
    let lab = Lab::new(24, 120);
    let files = files(&lab, 2);
    for (file, _) in &files {
        run(&job_of(&lab, "whole", 4, file)).unwrap();
    }
    let first = job_of(&lab, "full", 4, &files[0].0);
    let store = lab.path("full");
    let mut warnings = Warnings::default();
    ingest(&first, Arc::new(Meddled(FULL)), &mut warnings).unwrap();
    let [warning] = &warnings.0[..] else {
        panic!("{:?}", warnings.0)
    };
    assert!(warning.contains("is published"), "{warning}");
    assert_eq!(bases(&store), Vec::<String>::new());
    is_sound(&store);
    run(&job_of(&lab, "full", 4, &files[1].0)).unwrap();
    assert_eq!(bases(&store).len(), 4);
    is_sound(&store);
    assert!(published(&store) == published(&lab.path("whole")));
}
