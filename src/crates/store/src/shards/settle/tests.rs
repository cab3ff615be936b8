//! Tests on random crawls distributed over shards, against an exact solution of the whole graph; and of interrupted
//! steps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::check::{Depth, check};
use crate::disk::{DiskFile, RealDisk};
use crate::model::{Link, Record};
use crate::rank::computing::Computing;
use crate::rank::elimination::{TestRows, dense, numbers};
use crate::rank::measures::MEASURES;
use crate::rank::peers::OneProcess;
use crate::rules::{InputRules, Shard};
use crate::session::{Options as Writing, Writer};
use crate::shards::names::tests::copy;
use crate::sites::Level;
use crate::snapshot::publish_computed;
use crate::store::open_view_to_publish;

/// Names of pages, and the latest links of each crawled page.
struct Crawl {
    records: Vec<(String, Vec<String>)>,
}

impl Crawl {
    /// Creates a crawl of up to 60 pages on up to 9 hosts, some crawled again with other links.
    fn random(seed: u64) -> Crawl {
        let mut pick = numbers(seed);
        let (hosts, pages) = (1 + pick(9), 1 + pick(60));
        let url = |page: u64| format!("http://h{}.example/{page}", page % hosts);
        let record = |_| {
            let page = pick(pages);
            let links = (0..pick(6) * pick(3)).map(|_| url(pick(pages)));
            (url(page), links.collect())
        };
        Crawl {
            records: (0..1 + pages * 4 / 5).map(record).collect(),
        }
    }

    /// Returns the PageRank of all pages.
    fn exact(&self, damping: f64) -> BTreeMap<&str, f64> {
        let all = self.records.iter();
        let names = all.flat_map(|(url, links)| links.iter().chain([url]));
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        let number: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let mut kept = TestRows {
            pages: names.len() as u64,
            rows: Vec::new(),
        };
        for (url, links) in &self.records {
            let others = links.iter().filter(|link| *link != url);
            let targets: BTreeSet<u32> = others.map(|link| number[link.as_str()]).collect();
            let targets: Vec<u32> = targets.into_iter().collect();
            kept.visit(number[url.as_str()], &targets, &[]);
        }
        names.into_iter().zip(dense(&kept, damping)).collect()
    }

    fn write(&self, home: &Path, shards: usize) -> Vec<PathBuf> {
        let write = |number| {
            let dir = home.join(format!("{number}"));
            let shard: Shard = format!("{number}/{shards}").parse().unwrap();
            let options = Writing {
                input: InputRules {
                    shard: Some(shard),
                    ..InputRules::default()
                },
                ..Writing::default()
            };
            let mut writer = Writer::open(&dir, &options).unwrap();
            for (url, links) in &self.records {
                let links = links.iter().map(|link| Link::to(link.as_bytes()));
                let record = Record {
                    url: url.as_bytes().into(),
                    links: links.collect(),
                    ..Record::default()
                };
                writer.push(&record).unwrap();
            }
            writer.checkpoint().unwrap();
            dir
        };
        (0..shards).map(write).collect()
    }
}

fn options(until: f64) -> SettleOptions {
    SettleOptions {
        until,
        keep: KeepSnapshots::ALL,
        memory: None,
        watcher: Arc::default(),
    }
}

fn settle_all(dirs: &[PathBuf], until: f64) -> Together {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let together = settle(
        &disk,
        dirs,
        &mut OneProcess::new(dirs.len()),
        &options(until),
    );
    together.unwrap().unwrap()
}

/// File system that fails after a number of renames, as if the process was killed.
struct Renames(AtomicUsize);

impl Renames {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn alive<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.is_over() {
            return Err(io::Error::other("killed"));
        }
        work()
    }
}

impl Disk for Renames {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        self.alive(|| RealDisk.open(path, create))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.alive(|| RealDisk.create_new(path))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.alive(|| RealDisk.read(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.alive(|| RealDisk.create_dir(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let left = &self.0;
        self.alive(|| {
            left.fetch_sub(1, Ordering::Relaxed);
            if self.is_over() {
                return Err(io::Error::other("killed"));
            }
            RealDisk.rename(from, to)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.alive(|| RealDisk.remove(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.alive(|| RealDisk.sync_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.alive(|| RealDisk.list(path))
    }
}

/// Killed before any rename, even if each shard has a ranking of its own pages already, readers find whole rankings,
/// and the same command leaves the same bytes as without interruption.
#[test]
fn a_ranking_killed_at_any_rename_can_be_repeated() {
    let mut crawl = Crawl::random(5);
    // Most pages are known from links only, so that shards get pages of each other.
    crawl.records.truncate(crawl.records.len() / 3);
    let home = cashrank_base::folder::in_memory();
    let dirs = crawl.write(home.path(), 3);
    for dir in &dirs {
        let options = Writing::of(dir).unwrap();
        Writer::open(dir, &options).unwrap().publish().unwrap();
    }
    let copy_as = |name: &str| {
        let copy_one = |dir: &PathBuf| {
            let name = format!("copy-{name}");
            let to = home.path().join(name).join(dir.file_name().unwrap());
            copy(dir, &to);
            to
        };
        dirs.iter().map(copy_one).collect::<Vec<_>>()
    };
    let bytes = |dirs: &[PathBuf]| -> Vec<Vec<u8>> {
        let read = |dir: &PathBuf| {
            let snapshot = Snapshot::latest(&RealDisk, dir).unwrap();
            snapshot.named().for_each(|page| drop(page.unwrap()));
            fs::read(snapshot.path()).unwrap()
        };
        dirs.iter().map(read).collect()
    };
    let undisturbed = copy_as("undisturbed");
    assert!(settle_all(&undisturbed, 1e-6).admitted > 0);
    let expected = bytes(&undisturbed);
    let mut published_in_part = 0;
    for renames in 1.. {
        let dirs = copy_as(&renames.to_string());
        let disk: Arc<dyn Disk> = Arc::new(Renames(AtomicUsize::new(renames)));
        let done = settle(&disk, &dirs, &mut OneProcess::new(3), &options(1e-6));
        let found = bytes(&dirs);
        let new = found
            .iter()
            .zip(&expected)
            .filter(|(one, other)| one == other);
        published_in_part += usize::from((1..3).contains(&new.count()));
        if done.is_ok() {
            assert!(found == expected);
            break;
        }
        settle_all(&dirs, 1e-6);
        assert!(bytes(&dirs) == expected, "killed at rename {renames}");
    }
    assert!(published_in_part >= 2);
}

/// Rankings by measures belong to the snapshot beside which they are, and are removed with it.
#[test]
fn a_ranking_by_a_measure_goes_with_its_snapshot() {
    let mut crawl = Crawl::random(5);
    crawl.records.truncate(crawl.records.len() / 3);
    let home = cashrank_base::folder::in_memory();
    let dirs = crawl.write(home.path(), 3);
    let rankings = || {
        let files = dirs
            .iter()
            .map(|dir| fs::read_dir(dir.join("snapshots")).unwrap());
        let names = files.flatten().map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".ranking"))
            .count()
    };
    for dir in &dirs {
        let options = Writing::of(dir).unwrap();
        Writer::open(dir, &options).unwrap().publish().unwrap();
        let view = open_view_to_publish(&RealDisk, dir).unwrap();
        let computing = Computing::new(&MEASURES[0], Level::Host);
        // A shard may have no pages.
        let _ = publish_computed(&RealDisk, &view, &computing, &Watcher::default());
    }
    let before = rankings();
    assert!(settle_all(&dirs, 1e-6).admitted > 0);
    for dir in &dirs {
        let found = check(&RealDisk, dir, Depth::Deep, None).unwrap();
        assert!(found.damage.is_empty(), "{:?}", found.damage);
    }
    assert!(rankings() < before);
}

/// In a shard that knows all pages importances sum to at most 1, although those of remote pages are rounded.
#[test]
fn a_shard_that_knows_all_pages_is_sound() {
    for seed in 0..12 {
        let mut crawl = Crawl::random(seed);
        // Each shard has a page with links to all.
        let maps = (0..9).map(|host| format!("http://h{host}.example/map"));
        let all = crawl.exact(0.85).into_keys().map(str::to_owned);
        let all: Vec<String> = all.chain(maps.clone()).collect();
        crawl.records.extend(maps.map(|map| (map, all.clone())));
        let home = cashrank_base::folder::in_memory();
        let dirs = crawl.write(home.path(), 2);
        for shard in settle_all(&dirs, 0.3).shards {
            assert_eq!(shard.info.pages as usize, all.len());
            let checked = check(&RealDisk, &shard.dir, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty(), "{seed}: {:?}", checked.damage);
        }
    }
}

/// Compares the ranking of random crawls, distributed over random numbers of shards, with PageRank of all their links.
fn random_crawls(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut pick = numbers(!seed);
        let crawl = Crawl::random(seed);
        let home = cashrank_base::folder::in_memory();
        let dirs = crawl.write(home.path(), 1 + pick(8) as usize);
        let until = [0.3, 1e-3, 1e-7][pick(3) as usize];
        let together = settle_all(&dirs, until);
        let mut exact = crawl.exact(0.85);
        let (mut off, mut sum) = (0.0, 0.0);
        let mut ranked = Vec::new();
        for shard in &together.shards {
            let bound = shard.info.bound_l1();
            assert!(
                bound.is_some_and(|bound| bound <= until),
                "{seed}: {bound:?}"
            );
            let snapshot = Snapshot::latest(&RealDisk, &shard.dir).unwrap();
            for page in snapshot.named() {
                let page = page.unwrap();
                if !snapshot.is_local(page.url.as_bytes()) {
                    continue;
                }
                let expected = exact.remove(&*page.url);
                let expected = expected.unwrap_or_else(|| panic!("{seed}: {} is twice", page.url));
                off += (page.importance - expected).abs();
                sum += page.importance;
                ranked.push((page.importance, page.rank));
            }
        }
        assert!(exact.is_empty(), "{seed}: no shard has {exact:?}");
        assert!(off <= until, "{seed}: {off}");
        assert!((sum - 1.0).abs() < 1e-12, "{seed}: {sum}");
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        for &(importance, rank) in &ranked {
            let above = ranked.partition_point(|other| other.0 > importance) as u64;
            assert_eq!(rank, 1 + above, "{seed}");
        }
    }
}

#[test]
fn random_crawls_have_their_pagerank() {
    random_crawls(0..20);
}

#[test]
#[ignore = "takes minutes"]
fn two_thousand_random_crawls_have_their_pagerank() {
    random_crawls(0..2000);
}
