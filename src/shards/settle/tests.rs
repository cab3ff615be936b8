//! Random crawls, dealt to shards, against an exact solution of the whole graph; and the steps cut off.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::disk::RealDisk;
use crate::model::{Link, Record};
use crate::rank::peers::OneProcess;
use crate::rank::settle::tests::{Kept, dense, numbers};
use crate::rules::{InputRules, Shard};
use crate::session::{Options as Writing, Writer};

/// Names of pages, and the latest links of each that was crawled.
struct Crawl {
    records: Vec<(String, Vec<String>)>,
}

impl Crawl {
    /// Of up to 60 pages on up to 9 hosts, some crawled again with other links.
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

    /// PageRank of all pages.
    fn exact(&self, damping: f64) -> BTreeMap<&str, f64> {
        let all = self.records.iter();
        let names = all.flat_map(|(url, links)| links.iter().chain([url]));
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        let number: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let mut kept = Kept {
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

/// Holds the ranking of random crawls, dealt to random numbers of shards, to PageRank of all their links.
fn random_crawls(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut pick = numbers(!seed);
        let crawl = Crawl::random(seed);
        let home = tempfile::tempdir().unwrap();
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
