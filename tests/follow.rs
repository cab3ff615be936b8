//! A follower that is asked about one snapshot after another answers like one that was given everything at once:
//! `schedule::next`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use cashrank::{Options, Writer};
use cashrank_crawl::decode::{Link, Names, Record};
use cashrank_graph::engine::SelfLinks;
use cashrank_steer::schedule::{Candidate, Focus, Follower, NextOptions, STRATEGIES, next};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;
use tempfile::TempDir;

use crate::cnr;

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

/// Returns the share of each page in the scores of a list of all pages.
fn shares(list: &[Candidate]) -> HashMap<u64, f64> {
    let sum: f64 = list.iter().map(|of| of.score).sum();
    told(list)
        .into_iter()
        .map(|(page, score)| (page, score / sum.max(f64::MIN_POSITIVE)))
        .collect()
}

/// Returns the L1 distance of two lists of all pages as shares, and checks the order of `one` against its own shares:
/// two pages may be in another order than in `other` only if they differ there by no more than the two moved.
fn distance(one: &[Candidate], other: &[Candidate]) -> f64 {
    let (theirs, others) = (shares(one), shares(other));
    assert_eq!(theirs.len(), others.len());
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for (page, _) in told(one) {
        let moved = (theirs[&page] - others[&page]).abs();
        sum += moved;
        let share = others[&page];
        assert!(
            share - moved <= least + 1e-12,
            "{share} comes after {least}"
        );
        least = least.min(share + moved);
    }
    sum
}

/// Bound on the error of Forecast's solution by pushes, in L1 of shares. A page's residual is at most 0.05 sqrt(links +
/// 1); their sum depends on the graph: at most 0.14 in 240 lists of 40 random crawls.
const NEAR: f64 = 0.15;

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

/// Random crawls, cut at random places, each order; rows are superseded and compacted on the way.
#[test]
fn followers_answer_as_if_told_all_at_once() {
    let mut files = std::collections::HashSet::new();
    for seed in 1..=4u64 {
        let home = TempDir::new().unwrap();
        let store = home.path().join("store");
        let mut dice = Dice(seed * 7919);
        let mut time = 1_700_000_000;
        let nodes = [40, 400, 400, 3000][seed as usize - 1];
        let mut lists: Vec<(NextOptions, Follower)> = Vec::new();
        for strategy in STRATEGIES {
            lists.push((
                options(strategy.name, usize::MAX),
                Follower::new(options(strategy.name, usize::MAX)),
            ));
        }
        for (strategy, rule) in [
            ("xyleme", "host:h1.example.org=0.3"),
            ("forecast", "unread=0.2"),
        ] {
            let mut focused = options(strategy, usize::MAX);
            focused.focus = Focus::of(vec![rule.parse().unwrap()]).unwrap();
            lists.push((focused.clone(), Follower::new(focused)));
        }
        for _ in 0..6 {
            let mut writer = Writer::open(&store, &Options::default()).unwrap();
            let records = 1 + dice.below(300);
            read(&mut writer, &mut dice, records, nodes, &mut time);
            writer.checkpoint().unwrap();
            writer.publish().unwrap();
            drop(writer);
            let snapshot = latest(&store);
            files.extend(
                snapshot
                    .rows_retention()
                    .and_then(|of| of.kept())
                    .map(|kept| (seed, kept.number)),
            );
            for (options, follower) in &mut lists {
                let from_nothing = next(&RealDisk, &store, options).unwrap();
                let followed = follower.next(&snapshot).unwrap();
                let name = options.strategy.spec().name;
                if name == "forecast" && options.focus.is_empty() {
                    assert!(follower.bytes() > 0);
                    let off = distance(&followed, &from_nothing);
                    assert!(off < NEAR, "seed {seed}: {off}");
                } else {
                    assert_eq!(told(&followed), told(&from_nothing), "seed {seed}: {name}");
                }
            }
        }
    }
    assert!(files.len() > 4, "no row file was compacted: {files:?}");
}

/// The lists do not depend on which rows a checkpoint dropped because the page was read again.
#[test]
fn lists_do_not_depend_on_checkpoints() {
    let home = TempDir::new().unwrap();
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
/// that it is given, or the store's; only circulating cash has its own.
#[test]
fn orders_go_by_the_damping_of_the_store() {
    let home = TempDir::new().unwrap();
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
        check("circulating", 0.99);
        // In endowments; the page has its own as well.
        check("greedy", 1.0 + d + 0.5 * (1.0 - d));
        for (given, d) in [("", d), ("damping=0.3,", 0.3)] {
            check(&format!("forecast:{given}"), d / (1.0 + d));
            check(&format!("settled:{given}"), (1.0 + d) / (2.0 + d));
            check(&format!("xyleme:{given}"), d + 0.5 * (1.0 - d));
        }
    }
}

/// A different store in the place of the one that was followed; and the same one in an earlier state.
#[test]
fn a_store_made_anew_is_followed_anew() {
    let home = TempDir::new().unwrap();
    let mut dice = Dice(5);
    let mut time = 1_700_000_000;
    let stores = ["one", "two"].map(|name| home.path().join(name));
    let mut sizes = [300, 320].into_iter();
    for store in &stores {
        let mut writer = Writer::open(store, &Options::default()).unwrap();
        read(
            &mut writer,
            &mut dice,
            sizes.next().unwrap(),
            500,
            &mut time,
        );
        writer.checkpoint().unwrap();
        writer.publish().unwrap();
    }
    let older = home.path().join("older");
    copy(&stores[0], &older);
    let mut writer = Writer::open(&stores[0], &Options::default()).unwrap();
    read(&mut writer, &mut dice, 50, 500, &mut time);
    writer.checkpoint().unwrap();
    writer.publish().unwrap();
    drop(writer);
    // A copy that diverged from the same state: no number of rows or pages distinguishes it from the original.
    let mut writer = Writer::open(&older, &Options::default()).unwrap();
    read(&mut writer, &mut dice, 400, 500, &mut time);
    writer.checkpoint().unwrap();
    writer.publish().unwrap();
    drop(writer);
    let place = home.path().join("place");
    for strategy in ["fica", "distance", "greedy"] {
        let options = options(strategy, usize::MAX);
        let mut follower = Follower::new(options.clone());
        for store in [&stores[0], &older, &stores[1], &stores[0]] {
            let _ = std::fs::remove_dir_all(&place);
            copy(store, &place);
            let followed = follower.next(&latest(&place)).unwrap();
            let from_nothing = next(&RealDisk, store, &options).unwrap();
            assert_eq!(told(&followed), told(&from_nothing), "{strategy}");
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A shorter list is the beginning of a longer one, with limits and without.
#[test]
fn a_shorter_list_begins_a_longer_one() {
    let home = TempDir::new().unwrap();
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

/// cnr-2000, read breadth-first from some pages: the list after several snapshots equals that from nothing, except for
/// near ties.
#[test]
fn a_real_crawl_is_followed() {
    let Some(folder) = cnr::folder() else { return };
    let graph = cnr::graph(&cnr::adjacency(&folder), SelfLinks::Drop);
    let rows: Vec<&[u32]> = graph.rows().collect();
    let home = TempDir::new().unwrap();
    let store = home.path().join("store");
    let settings = Options {
        names: Names::Opaque,
        ..Options::default()
    };
    let mut follower = Follower::new(options("forecast", usize::MAX));
    let mut dice = Dice(3);
    let mut waiting = std::collections::VecDeque::new();
    waiting.extend((0..200).map(|_| dice.below(rows.len() as u64) as u32));
    let mut known = vec![false; rows.len()];
    let mut writer = Writer::open(&store, &settings).unwrap();
    for round in 0..5 {
        for _ in 0..[8_000, 200, 50, 4_000, 100][round] {
            let Some(node) = waiting.pop_front() else {
                break;
            };
            let links: Vec<String> = rows[node as usize].iter().map(u32::to_string).collect();
            push(&mut writer, &node.to_string(), &links, 200, 1_700_000_000);
            for &to in rows[node as usize] {
                if !std::mem::replace(&mut known[to as usize], true) {
                    waiting.push_back(to);
                }
            }
        }
        writer.checkpoint().unwrap();
        writer.publish().unwrap();
        let followed = follower.next(&latest(&store)).unwrap();
        let from_nothing = next(&RealDisk, &store, &options("forecast", usize::MAX)).unwrap();
        let off = distance(&followed, &from_nothing);
        eprintln!("round {round}: {} pages, {off:.4} in L1", followed.len());
        assert!(off < NEAR, "round {round}: {off}");
        assert!(followed.len() > 1000);
    }
}
