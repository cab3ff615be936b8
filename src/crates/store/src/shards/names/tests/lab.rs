//! Shards of small crawls, for tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::model::{Link, Record};

pub(super) const N: u32 = 4;

/// Rounds of a few pages.
pub(super) const SMALL: Round = Round {
    pages: 7,
    bytes: u64::MAX,
};

/// Returns pages of a crawl, each with its links: 7 hosts, which belong to all four shards.
pub(super) fn crawl(seed: u64) -> Vec<(String, Vec<String>)> {
    let mut state = seed;
    let mut below = move |n: u64| {
        // Knuth's MMIX generator.
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let mut page = move || format!("http://a{}.example/{}", below(7), below(20));
    (0..60)
        .map(|_| (page(), (0..4).map(|_| page()).collect()))
        .collect()
}

pub(super) fn write(dir: &Path, shard: Option<Shard>, crawl: &[(String, Vec<String>)]) {
    let options = Options {
        input: InputRules {
            shard,
            ..InputRules::default()
        },
        ..Options::default()
    };
    let mut writer = Writer::open(dir, &options).unwrap();
    for (url, links) in crawl {
        let links = links.iter().map(|link| Link::to(link.clone().into_bytes()));
        writer
            .push(&Record {
                url: url.clone().into_bytes().into(),
                links: links.collect(),
                ..Record::default()
            })
            .unwrap();
    }
    writer.checkpoint().unwrap();
}

pub(super) fn shard(number: u32) -> Shard {
    format!("{number}/{N}").parse().unwrap()
}

/// Stores of the shards of a crawl.
pub(super) struct Lab {
    pub home: tempfile::TempDir,
}

impl Lab {
    pub fn new(crawl: &[(String, Vec<String>)]) -> Lab {
        let home = cashrank_base::folder::in_memory();
        let lab = Lab { home };
        (0..N).for_each(|number| write(&lab.dir(number), Some(shard(number)), crawl));
        lab
    }

    pub fn dir(&self, number: u32) -> PathBuf {
        self.home.path().join(number.to_string())
    }

    pub fn dirs(&self) -> Vec<PathBuf> {
        (0..N).map(|number| self.dir(number)).collect()
    }

    /// Copies the stores to another place.
    pub fn copy(&self) -> Lab {
        let home = cashrank_base::folder::in_memory();
        copy(self.home.path(), home.path());
        Lab { home }
    }

    pub fn file(&self, number: u32) -> PathBuf {
        self.dir(number).join("remote")
    }

    pub fn files(&self) -> Vec<Vec<u8>> {
        (0..N)
            .map(|number| fs::read(self.file(number)).unwrap())
            .collect()
    }

    pub fn try_exchange(&self, peers: &mut dyn Peers, size: Round) -> Result<Outcome> {
        exchange_of(&self.dirs(), peers, size)
    }

    pub fn exchange(&self) -> Outcome {
        self.try_exchange(&mut OneProcess::new(N as usize), SMALL)
            .unwrap()
    }

    pub fn generations(&self) -> Vec<u64> {
        let dirs = self.dirs().into_iter();
        dirs.map(|dir| open_view(&RealDisk, &dir).unwrap().manifest.generation)
            .collect()
    }

    pub fn names(&self) -> Vec<Vec<String>> {
        self.dirs().iter().map(|dir| names(dir)).collect()
    }

    /// Checks the numbers found against the names.
    pub fn check(&self, outcome: &Outcome) {
        let names = self.names();
        for (number, remote) in (0..).zip(&outcome.remote) {
            let mut found = BTreeSet::new();
            for (owner, pages) in remote.iter().enumerate() {
                assert!(pages.there.is_sorted() && pages.here.len() == pages.there.len());
                for (&here, &there) in pages.here.iter().zip(&pages.there) {
                    assert_eq!(names[number][here as usize], names[owner][there as usize]);
                    assert!(found.insert(here) && owner != number);
                }
            }
            let is_remote = |name: &String| !shard(number as u32).has(name.as_bytes());
            let remote = names[number].iter().filter(|name| is_remote(name));
            assert_eq!(found.len(), remote.count(), "{number}");
        }
        for dir in self.dirs() {
            let checked = check(&RealDisk, &dir, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty(), "{:?}", checked.damage);
            assert!(checked.strangers.is_empty(), "{:?}", checked.strangers);
        }
    }
}

pub(super) fn exchange_of(dirs: &[PathBuf], peers: &mut dyn Peers, size: Round) -> Result<Outcome> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let local = local_shards(&*disk, dirs)?;
    let names = exchange_in_rounds(&disk, &local, peers, None, size)?;
    let generations = names
        .shards
        .iter()
        .map(|shard| shard.view.manifest.generation);
    Ok(Outcome {
        admitted: names.admitted,
        warnings: names.warnings,
        generations: generations.collect(),
        remote: names.shards.into_iter().map(|shard| shard.remote).collect(),
    })
}

#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub admitted: u64,
    pub warnings: Vec<String>,
    pub generations: Vec<u64>,
    pub remote: Vec<Vec<RemotePages>>,
}

pub(super) fn names(dir: &Path) -> Vec<String> {
    let view = open_view(&RealDisk, dir).unwrap();
    view.names.names().collect::<Result<_>>().unwrap()
}

/// Copies the contents of a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
