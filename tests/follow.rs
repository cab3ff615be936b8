//! Lists of pages to crawl next: `schedule::next`.

use std::borrow::Cow;
use std::path::Path;

use cashrank::{Options, Writer};
use cashrank_crawl::decode::{Link, Record};
use cashrank_steer::schedule::{Candidate, NextOptions, STRATEGIES, next};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use crate::folder::in_memory;

/// Random numbers from a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }
}

fn options(strategy: &str, count: usize) -> NextOptions {
    let mut options = NextOptions::default();
    options.strategy = strategy.parse().unwrap();
    options.count = count;
    options
}

fn push(writer: &mut Writer, url: &str, links: &[String], status: i32, time: i64) {
    let record = Record {
        url: Cow::Borrowed(url.as_bytes()),
        links: links.iter().map(|link| Link::to(link.as_bytes())).collect(),
        fetched_at: Some(time),
        status: Some(status),
        ..Record::default()
    };
    writer.push(&record).unwrap();
}

/// Returns pages with their scores.
fn told(list: &[Candidate]) -> Vec<(u64, f64)> {
    list.iter()
        .map(|of| (of.page.unwrap().0, of.score))
        .collect()
}

fn url(node: u64) -> String {
    format!("http://h{}.example.org/d{}/p{node}", node % 3, node % 5)
}

/// Reads pages at random, some again with other links, some gone or failing.
fn read(writer: &mut Writer, dice: &mut Dice, records: u64, nodes: u64, time: &mut i64) {
    for _ in 0..records {
        let node = dice.below(nodes);
        let links: Vec<String> = (0..dice.below(9))
            .map(|_| {
                let far = dice.below(nodes);
                url(if dice.below(2) == 0 {
                    far * far / nodes
                } else {
                    far
                })
            })
            .collect();
        let status = [200, 200, 200, 200, 200, 404, 503, 304][dice.below(8) as usize];
        *time += 60;
        push(writer, &url(node), &links, status, *time);
    }
}

fn latest(store: &Path) -> Snapshot {
    Snapshot::latest(&RealDisk, store).unwrap()
}

/// The lists do not depend on which rows a checkpoint dropped because the page was read again.
#[test]
fn lists_do_not_depend_on_checkpoints() {
    let home = in_memory();
    let mut files = Vec::new();
    let stores = [("often", 10), ("once", 1000)].map(|(name, every)| {
        let store = home.path().join(name);
        let (mut dice, mut time) = (Dice(11), 1_700_000_000);
        let mut writer = Writer::open(&store, &Options::default()).unwrap();
        for _ in 0..1000 / every {
            read(&mut writer, &mut dice, every, 200, &mut time);
            writer.checkpoint().unwrap();
        }
        read(&mut writer, &mut dice, 40, 3000, &mut time);
        writer.checkpoint().unwrap();
        writer.publish().unwrap();
        drop(writer);
        files.push(
            latest(&store)
                .rows_retention()
                .unwrap()
                .kept()
                .unwrap()
                .number,
        );
        store
    });
    assert!(files[0] > files[1], "no row file was compacted: {files:?}");
    for strategy in STRATEGIES {
        let options = options(strategy.name, usize::MAX);
        let [often, once] = stores
            .each_ref()
            .map(|store| next(&RealDisk, store, &options).unwrap());
        assert!(!once.is_empty());
        assert_eq!(told(&often), told(&once), "{}", strategy.name);
    }
}

/// A page that leads to another one, at damping d: of the PageRank of both the other has (1 + d)/(2 + d), of what read
/// pages receive d/(1 + d), of the cash d, and half of the rest if the virtual page pays it. An order uses the damping
/// that it is given, or the store's.
#[test]
fn orders_go_by_the_damping_of_the_store() {
    let home = in_memory();
    for d in [0.85, 0.6] {
        let store = home.path().join(d.to_string());
        let mut settings = Options::default();
        settings.config.set_damping(d).unwrap();
        let mut writer = Writer::open(&store, &settings).unwrap();
        push(&mut writer, &url(0), &[url(1)], 200, 1_700_000_000);
        writer.checkpoint().unwrap();
        writer.publish().unwrap();
        drop(writer);
        let check = |strategy: &str, expected: f64| {
            let list = next(&RealDisk, &store, &options(strategy, 1)).unwrap();
            let score = list[0].score;
            assert!((score - expected).abs() < 0.016, "{d} {strategy}: {score}");
        };
        // In endowments; the page has its own as well.
        check("greedy", 1.0 + d + 0.5 * (1.0 - d));
        for (given, d) in [("", d), ("damping=0.3,", 0.3)] {
            check(&format!("forecast:{given}"), d / (1.0 + d));
            check(&format!("settled:{given}"), (1.0 + d) / (2.0 + d));
            check(&format!("xyleme:{given}"), d + 0.5 * (1.0 - d));
        }
    }
}

/// A shorter list is the beginning of a longer one, with limits and without.
#[test]
fn a_shorter_list_begins_a_longer_one() {
    let home = in_memory();
    let store = home.path().join("store");
    let mut writer = Writer::open(&store, &Options::default()).unwrap();
    read(&mut writer, &mut Dice(11), 400, 2000, &mut 1_700_000_000);
    writer.checkpoint().unwrap();
    writer.publish().unwrap();
    drop(writer);
    for strategy in STRATEGIES {
        for per_host in [None, Some(7)] {
            let list = |count| {
                let mut options = options(strategy.name, count);
                options.per_host = per_host;
                told(&next(&RealDisk, &store, &options).unwrap())
            };
            let longest = list(200);
            assert!(longest.len() >= 21, "{}: {}", strategy.name, longest.len());
            for count in [1, 5, 20] {
                assert_eq!(
                    list(count),
                    longest[..count],
                    "{} {per_host:?}",
                    strategy.name
                );
            }
        }
    }
}
