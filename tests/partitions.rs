//! Stores with partitions of pages, against stores without them and against PageRank as its formula has it: whatever
//! threads, checkpoints and failures there were on the way.

#[path = "partitions/base.rs"]
mod base;
#[path = "partitions/epochs.rs"]
mod epochs;
#[path = "partitions/passes.rs"]
mod passes;
#[path = "partitions/processes.rs"]
mod processes;

use crate::crawl;
use crate::disk;
use crate::folder::in_memory;
use crate::rows::{Named, expected};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cashrank::ExportFormat;
use cashrank::check::{Depth, check};
use cashrank::engine::Config;
use cashrank::formats::Format;
use cashrank::ingest::{Every, Job, Note, Observer, Outcome, ProgressReport, ingest};
use cashrank::rows::Rows;
use cashrank::snapshot::Snapshot;
use cashrank::source::InputName;
use cashrank::store::rows::KeepRows;
use cashrank::store::{Disk, DiskFile, Partitions, RealDisk, Settings, open_view};
use cashrank::{Error, Limits, Result};
use crawl::crawl;
use disk::{Files, Meddled, MeddledFile, Over};
use tempfile::TempDir;

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: Note<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

struct Lab {
    folder: TempDir,
    records: Vec<String>,
}

impl Lab {
    fn new(seed: u64, records: u64) -> Lab {
        let lab = Lab {
            folder: in_memory(),
            records: crawl(seed, records),
        };
        fs::write(lab.path("crawl"), lab.records.concat()).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn job(&self, store: &str, partitions: u32) -> Job {
        let limits = Limits {
            // Little address space for each of many stores.
            pages: 1 << 12,
            ..Limits::default()
        };
        let mut settings = Settings::new(Config::default(), &limits);
        settings.partitions = Partitions::of(partitions).unwrap();
        let input = InputName::File(self.path("crawl"));
        Job {
            settings,
            limits,
            format: Some(Format::Records),
            checkpoint_every: Every::Never,
            settle: Some(1e-9.into()),
            ..Job::new(self.path(store), vec![input])
        }
    }
}

fn run(job: &Job) -> Result<Outcome> {
    ingest(job, Arc::new(RealDisk), &mut Quiet)
}

/// What a store publishes: the snapshot's file, and its export.
fn published(store: &Path) -> (Vec<u8>, Vec<u8>) {
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    let mut export = Vec::new();
    snapshot.export(ExportFormat::Tsv, &mut export).unwrap();
    (fs::read(snapshot.path()).unwrap(), export)
}

fn names(store: &Path) -> Vec<String> {
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    snapshot.names().collect::<Result<_>>().unwrap()
}

/// The rows of a store as readers of its snapshot see them, by name.
fn rows_by_name(store: &Path) -> BTreeMap<String, Named> {
    let names = names(store);
    let rows = Snapshot::latest(&RealDisk, store).unwrap().rows().unwrap();
    let mut found = BTreeMap::new();
    rows.sweep(&mut |row| {
        let name = |page: &u32| names[*page as usize].clone();
        let targets: BTreeSet<String> = row.targets.iter().map(name).collect();
        assert_eq!(targets.len(), row.targets.len());
        let of = name(&row.page);
        found.insert(of.clone(), (of, row.gone, targets));
        Ok(())
    })
    .unwrap();
    found
}

fn by_name(rows: Vec<Named>) -> BTreeMap<String, Named> {
    rows.into_iter().map(|row| (row.0.clone(), row)).collect()
}

/// PageRank of pages by name, damping 0.85, by its formula: what pages without links have goes to all alike.
fn pagerank(names: &[String], rows: &[Named]) -> Vec<f64> {
    let numbered = names.iter().enumerate();
    let number: HashMap<&str, usize> = numbered.map(|(at, name)| (&**name, at)).collect();
    let mut links = vec![Vec::new(); names.len()];
    for (page, _, targets) in rows {
        links[number[&**page]] = targets.iter().map(|target| number[&**target]).collect();
    }
    let pages = names.len() as f64;
    let mut scores = vec![1.0 / pages; names.len()];
    for _ in 0..200 {
        let mut next = vec![0.0; names.len()];
        let mut to_all = 0.15;
        for (links, score) in links.iter().zip(&scores) {
            if links.is_empty() {
                to_all += 0.85 * score;
            }
            for &target in links {
                next[target] += 0.85 * score / links.len() as f64;
            }
        }
        next.iter_mut().for_each(|score| *score += to_all / pages);
        scores = next;
    }
    scores
}

/// Pages have the numbers that they have in one store, the rows are those of the input, and importance is within the bound
/// of what its formula says, whatever the number of partitions.
#[test]
fn rankings_are_those_of_one_store() {
    let lab = Lab::new(11, 300);
    run(&lab.job("one", 1)).unwrap();
    let one = lab.path("one");
    let known = names(&one);
    let rows = expected(&lab.records);
    let exact = pagerank(&known, &rows);
    for partitions in [1, 2, 4, 64] {
        let store = format!("in-{partitions}");
        run(&lab.job(&store, partitions)).unwrap();
        let store = lab.path(&store);
        assert_eq!(names(&store), known);
        assert_eq!(rows_by_name(&store), by_name(rows.clone()));
        let snapshot = Snapshot::latest(&RealDisk, &store).unwrap();
        let bound = snapshot.bound_l1().unwrap();
        let off: f64 = (snapshot.named().map(Result::unwrap).zip(&exact))
            .map(|(page, exact)| (page.importance - exact).abs())
            .sum();
        assert!(
            bound < 4e-9 && off <= bound + 1e-12,
            "{partitions}: {off} {bound}"
        );
        let (info, of_one) = (snapshot.info(), Snapshot::latest(&RealDisk, &one).unwrap());
        let of_one = of_one.info();
        assert_eq!(info.counters, of_one.counters);
        assert_eq!((info.visits, info.time), (of_one.visits, of_one.time));
        let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
        assert!(
            checked.damage.is_empty() && checked.strangers.is_empty(),
            "{checked:?}"
        );
        let report = checked.checkpoint.unwrap();
        let pages = known.len() as u64;
        assert_eq!(
            (report.pages, report.names, report.fingerprints),
            (pages, Some(pages), pages)
        );
        assert_eq!(report.rows, Some(rows.len() as u64));
    }
}

/// A store of one partition has no files of partitions, and its identity is of the version before them.
#[test]
fn one_partition_is_no_partition() {
    let lab = Lab::new(12, 60);
    run(&lab.job("one", 1)).unwrap();
    let mut files = RealDisk.list(&lab.path("one")).unwrap();
    files.sort();
    assert!(
        !files
            .iter()
            .any(|file| file == "parts" || file.starts_with("addresses"))
    );
    let identity = fs::read_to_string(lab.path("one").join("identity.json")).unwrap();
    assert!(!identity.contains("partition") && identity.contains("\"cashrank_store\": 3"));
}

/// The bytes depend neither on threads, nor on where checkpoints fall, nor on batches.
#[test]
fn the_same_bytes_whatever_the_threads_and_checkpoints() {
    let lab = Lab::new(13, 200);
    for partitions in [4, 64] {
        let mut all = Vec::new();
        for (at, (threads, every)) in [
            (1, Every::Never),
            (2, Every::Records(7)),
            (3, Every::Records(17)),
            (16, Every::Records(64)),
        ]
        .into_iter()
        .enumerate()
        {
            let store = format!("s{partitions}-{at}");
            run(&Job {
                threads,
                checkpoint_every: every,
                ..lab.job(&store, partitions)
            })
            .unwrap();
            all.push(published(&lab.path(&store)));
        }
        assert!(all.iter().all(|one| *one == all[0]));
    }
}

/// A disk of which everything fails from a change on, as if the process had been killed.
#[derive(Default)]
struct Dying {
    /// Changes that succeed.
    left: AtomicU64,
    /// Partitions have synced their databases since the store last did.
    ahead: AtomicBool,
    /// That was so when it died.
    died_ahead: AtomicBool,
}

impl Dying {
    fn after(changes: u64) -> Arc<Dying> {
        Arc::new(Dying {
            left: AtomicU64::new(changes),
            ..Dying::default()
        })
    }

    fn live(&self) -> io::Result<()> {
        let one_less = |left: u64| left.checked_sub(1);
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        if left == Ok(1) {
            self.died_ahead
                .store(self.ahead.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        left.map(drop)
            .map_err(|_| io::Error::other("the disk is gone"))
    }
}

struct Dies(Arc<Dying>);

/// What it does with one file.
struct DyingFile {
    disk: Arc<Dying>,
    /// A database: of a partition?
    database: Option<bool>,
}

impl Over for Dies {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        if create && !path.exists() {
            self.0.live()
        } else {
            Ok(())
        }
    }

    fn before_change(&self) -> io::Result<()> {
        self.0.live()
    }

    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let is_part = path.iter().any(|part| part == "parts");
        let database = path.ends_with("store.redb").then_some(is_part);
        let disk = self.0.clone();
        Box::new(MeddledFile(file, Arc::new(DyingFile { disk, database })))
    }
}

impl Files for DyingFile {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        self.disk.live()?;
        file.write_at(data, offset)
    }

    fn sync(&self, file: &dyn DiskFile) -> io::Result<()> {
        self.disk.live()?;
        if let Some(of_part) = self.database {
            self.disk.ahead.store(of_part, Ordering::SeqCst);
        }
        file.sync()
    }

    fn set_len(&self, file: &dyn DiskFile, len: u64) -> io::Result<()> {
        self.disk.live()?;
        file.set_len(len)
    }
}

#[test]
fn a_run_that_dies_anywhere_goes_on_to_the_same_bytes() {
    let lab = Lab::new(14, 90);
    dies_anywhere(&lab, 7, |store| Job {
        checkpoint_every: Every::Records(30),
        threads: 1,
        ..lab.job(store, 4)
    });
}

/// Whichever change of the disk is the last of a job that makes a checkpoint after every 30 of 90 records, one in so many, also
/// when its partitions have committed and the store has not: readers find the state of a checkpoint, of which nothing is
/// damaged, and the same command continues to the same bytes.
fn dies_anywhere(lab: &Lab, one_in: usize, job: impl Fn(&str) -> Job) {
    run(&job("whole")).unwrap();
    let whole = published(&lab.path("whole"));
    let known = names(&lab.path("whole"));
    let (mut ahead, mut reached) = (0, BTreeSet::new());
    for changes in (0..).step_by(one_in) {
        let dying = Dying::after(changes);
        let job = job("dies");
        let disk: Arc<dyn Disk> = Arc::new(Meddled(Dies(dying.clone())));
        let done = ingest(&job, disk, &mut Quiet);
        let store = lab.path("dies");
        if dying.left.load(Ordering::SeqCst) > 0 {
            done.unwrap();
            break;
        }
        if done.is_ok() {
            // Only something that is not needed any more was not removed.
            assert!(published(&store) == whole);
        }
        if store.join("identity.json").exists() {
            let view = open_view(&RealDisk, &store).unwrap();
            let committed = view.counters().records as usize;
            assert!(committed.is_multiple_of(30), "{committed} after {changes}");
            reached.insert(committed);
            let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty(), "{changes}: {checked:?}");
            let report = checked.checkpoint.unwrap();
            let rows = expected(&lab.records[..committed]);
            assert_eq!(report.rows.unwrap_or(0), rows.len() as u64);
            let links: usize = rows.iter().map(|(_, _, targets)| targets.len()).sum();
            assert_eq!(report.row_links.unwrap_or(0), links as u64);
            ahead += u32::from(dying.died_ahead.load(Ordering::SeqCst));
        }
        run(&job).unwrap_or_else(|error| panic!("{changes}: {error}"));
        assert!(published(&store) == whole, "{changes}");
        assert_eq!(names(&store), known);
        let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
        assert!(checked.damage.is_empty(), "{changes}: {checked:?}");
        fs::remove_dir_all(&store).unwrap();
    }
    assert!(ahead >= 5, "{ahead}");
    assert_eq!(reached.len(), 4, "{reached:?}");
}

/// What needs cash to cross, or all links in one piece, is refused before there is a store.
#[test]
fn what_partitions_cannot_do_is_refused() {
    let lab = Lab::new(15, 20);
    let refused = |job: Job| match run(&job) {
        Err(Error::Usage(what)) => {
            assert!(what.contains("`partitions`"), "{what}");
            assert!(!job.store.exists(), "{what}");
        }
        other => panic!("{other:?}"),
    };
    let job = || lab.job("no", 4);
    refused(Job { repeat: 2, ..job() });
    refused(Job {
        complete: true,
        ..job()
    });
    refused(Job {
        settle: None,
        ..job()
    });
    refused(Job {
        keep_rows: KeepRows::None,
        ..job()
    });
    refused(Job {
        expire: Some(86_400),
        ..job()
    });
    let mut windowed = job();
    windowed.settings.config.window = "fixed:4".parse().unwrap();
    refused(windowed);
    assert!(Partitions::of(0).is_err() && Partitions::of(257).is_err());
}

/// A store keeps the number it was made with.
#[test]
fn the_number_of_partitions_is_a_stores() {
    let lab = Lab::new(16, 30);
    run(&lab.job("s", 4)).unwrap();
    for other in [1, 5] {
        let refused = run(&lab.job("s", other));
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    assert!(run(&lab.job("s", 4)).unwrap().nothing_to_do);
}
