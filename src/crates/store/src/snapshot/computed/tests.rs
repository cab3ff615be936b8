//! Tests of rankings beside snapshots: their contents, the samples, and refusals.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::disk::RealDisk;
use crate::model::{PageId, Record};
use crate::rank::computing::Computing;
use crate::rank::measures::measure;
use crate::session::{Options, Writer};
use crate::snapshot::{
    KeepSnapshots, LevelRanking, RankingName, Selection, Snapshot, Watcher, pin, snapshots, thin,
};
use crate::store::{open_view, open_view_to_publish};

/// Three hosts of two domains. Links between hosts: www.a.example to b.example twice (from two pages), a.example to
/// www.a.example, b.example to www.a.example and to a.example.
const CRAWL: [(&str, &[&str]); 4] = [
    ("http://www.a.example/", &["/x", "http://b.example/"]),
    ("http://www.a.example/x", &["/", "http://b.example/"]),
    (
        "http://b.example/",
        &["http://www.a.example/", "http://a.example/"],
    ),
    ("http://a.example/", &["http://www.a.example/x"]),
];

struct Crawl {
    home: tempfile::TempDir,
}

impl Crawl {
    fn new() -> Crawl {
        let crawl = Crawl {
            home: cashrank_base::folder::in_memory(),
        };
        crawl.read(0);
        crawl
    }

    fn dir(&self) -> PathBuf {
        self.home.path().join("store")
    }

    /// Reads the crawl at `seconds` after 1970, and publishes.
    fn read(&self, seconds: i64) {
        let mut writer = Writer::open(self.dir(), &Options::default()).unwrap();
        for (url, links) in CRAWL {
            let mut record = Record::new(url, links.iter().copied());
            record.fetched_at = Some(seconds);
            writer.push(&record).unwrap();
        }
        writer.publish().unwrap();
    }

    fn compute(&self, computing: &Computing) -> Result<Option<(PathBuf, ComputedInfo)>> {
        let view = open_view_to_publish(&RealDisk, &self.dir())?;
        publish_computed(&RealDisk, &view, computing, &Watcher::default())
    }

    fn open(&self, level: Level, measure: Option<&str>) -> Result<LevelRanking> {
        let snapshot = Snapshot::latest(&RealDisk, &self.dir())?;
        let name = RankingName {
            level,
            measure: measure.map(str::to_owned),
        };
        LevelRanking::open(&RealDisk, snapshot, &name, None)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir().join(SNAPSHOTS)).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn computing(name: &str, level: Level) -> Computing {
    Computing::new(measure(name).unwrap(), level)
}

/// Returns name, score, rank, pages and visits of all sites.
fn within(scope: &str) -> Selection {
    Selection {
        scope: scope.parse().unwrap(),
        ..Selection::default()
    }
}

fn listed(ranking: &LevelRanking) -> Vec<(String, f64, u64, u64, u64)> {
    let rows = ranking.rows().map(|row| {
        let row = row.unwrap();
        let pages = row.site.map_or(0, |site| site.pages);
        (
            row.url.into_owned(),
            row.importance,
            row.rank,
            pages,
            row.visits,
        )
    });
    rows.collect()
}

#[test]
fn hosts_are_counted_as_the_definition_says() {
    let crawl = Crawl::new();
    let (path, info) = crawl
        .compute(&computing("in-degree", Level::Host))
        .unwrap()
        .unwrap();
    assert_eq!((info.count, info.links, info.pages), (3, 4, 4));
    let ranking = crawl.open(Level::Host, Some("in-degree")).unwrap();
    assert_eq!(ranking.path(), path);
    let expected = [
        ("www.a.example", 2.0, 1, 2, 2),
        ("b.example", 1.0, 2, 1, 1),
        ("a.example", 1.0, 2, 1, 1),
    ];
    let expected = expected
        .map(|(name, score, rank, pages, visits)| (name.to_owned(), score, rank, pages, visits));
    assert_eq!(listed(&ranking), expected);
    let top = ranking.top(2, &Selection::default()).unwrap();
    assert_eq!((&*top[0].url, &*top[1].url), ("www.a.example", "b.example"));
    assert_eq!(top[0].last_fetch, Some(0));
    let found = ranking.find(&[b"a.example", b"c.example"]).unwrap();
    assert_eq!(found, [Some(PageId(2)), None]);
    assert!(ranking.top(1, &within("host:b.example")).is_err());
}

/// A surfer jumps to each host with (1 - d)/3, and goes from b to the two others alike: with w = a + b/2, b = w and a =
/// b/2 of what links carry.
#[test]
fn pagerank_of_hosts_is_certified() {
    let crawl = Crawl::new();
    let mut asked = computing("pagerank", Level::Host);
    asked.options.until = 1e-9;
    crawl.compute(&asked).unwrap();
    let ranking = crawl.open(Level::Host, Some("pagerank")).unwrap();
    let (d, t) = (0.85, 0.05);
    // b = t + d w, a = t + d b/2, w = t + d (a + b/2).
    let b = (t + d * t + d * d * t) / (1.0 - d * d * (d / 2.0) - d * d / 2.0);
    let a = t + d * b / 2.0;
    let w = t + d * (a + b / 2.0);
    let found: Vec<f64> = listed(&ranking).into_iter().map(|row| row.1).collect();
    let far: f64 = found
        .iter()
        .zip([w, b, a])
        .map(|(x, y)| (x - y).abs())
        .sum();
    let bound = ranking.bound_l1().unwrap();
    assert!(far <= bound && bound < 3e-9, "{far} {bound}");
    assert_eq!(ranking.certain_top().unwrap(), Some(2));
}

#[test]
fn pages_have_scores_and_the_facts_of_the_snapshot() {
    let crawl = Crawl::new();
    crawl.compute(&computing("in-degree", Level::Page)).unwrap();
    let ranking = crawl.open(Level::Page, Some("in-degree")).unwrap();
    let rows = listed(&ranking);
    let row = |url: &str| rows.iter().find(|row| row.0 == url).unwrap();
    assert_eq!(row("http://www.a.example/x").1, 2.0);
    assert_eq!(row("http://a.example/").1, 1.0);
    assert_eq!(row("http://b.example/").4, 1);
    let within = ranking.top(9, &within("host:a.example")).unwrap();
    assert_eq!(within.len(), 1);
    assert_eq!((within[0].rank, &*within[0].url), (4, "http://a.example/"));
}

#[test]
fn a_roll_up_adds_the_snapshot_up() {
    let crawl = Crawl::new();
    let ranking = crawl.open(Level::Domain, None).unwrap();
    let rows = listed(&ranking);
    assert_eq!(rows.len(), 2);
    assert_eq!((&*rows[0].0, rows[0].3, rows[0].4), ("a.example", 3, 3));
    assert!((rows[0].1 + rows[1].1 - 1.0).abs() < 1e-12);
    let best = ranking.top(1, &Selection::default()).unwrap().remove(0);
    let pages = crawl.open(Level::Page, None).unwrap();
    let first = pages.top(1, &Selection::default()).unwrap().remove(0);
    let site = best.site.unwrap();
    assert_eq!(
        (site.best, site.largest),
        (Some(first.url.into()), Some(first.importance))
    );
}

/// The bytes do not depend on the memory for links between sites, of which there are 3600 here, 32 bytes each: with a
/// third of 100 kB, they go to temporary files.
#[test]
fn the_same_links_give_the_same_bytes() {
    let crawl = Crawl::new();
    let names: Vec<String> = (0..60).map(|n| format!("http://h{n}.example/")).collect();
    let mut writer = Writer::open(crawl.dir(), &Options::default()).unwrap();
    for name in &names {
        let links = names.iter().map(String::as_str);
        writer.push(&Record::new(name, links)).unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    let bytes = [100_000, 1 << 24].map(|memory| {
        let mut asked = computing("pagerank", Level::Prefix(1));
        asked.options.memory = Some(memory);
        let (path, _) = crawl.compute(&asked).unwrap().unwrap();
        fs::read(path).unwrap()
    });
    assert!(bytes[0] == bytes[1]);
    assert!(crawl.names().iter().all(|name| !name.ends_with(".tmp")));
}

/// Rankings are removed with their snapshot, and are listed with it.
#[test]
fn rankings_stay_as_long_as_their_snapshot() {
    let crawl = Crawl::new();
    crawl.compute(&computing("in-degree", Level::Host)).unwrap();
    crawl.read(1);
    crawl
        .compute(&computing("out-degree", Level::Page))
        .unwrap();
    crawl
        .compute(&computing("in-degree", Level::Domain))
        .unwrap();
    let listed = snapshots(&RealDisk, &crawl.dir()).unwrap();
    let names = |at: usize| -> Vec<String> {
        let all = listed[at].computed.iter();
        all.map(|name| format!("{} {}", name.level, name.measure))
            .collect()
    };
    assert_eq!(names(0), ["host in-degree"]);
    assert_eq!(names(1), ["page out-degree", "domain in-degree"]);
    pin(&RealDisk, &crawl.dir(), 4, true).unwrap();
    thin(&RealDisk, &crawl.dir(), KeepSnapshots::newest(1)).unwrap();
    assert!(
        crawl
            .names()
            .contains(&"000000000004.host.in-degree.ranking".into())
    );
    pin(&RealDisk, &crawl.dir(), 4, false).unwrap();
    thin(&RealDisk, &crawl.dir(), KeepSnapshots::newest(1)).unwrap();
    let left = [
        "000000000008.domain.in-degree.ranking",
        "000000000008.page.out-degree.ranking",
        "000000000008.snapshot",
        "latest.json",
    ];
    assert_eq!(crawl.names(), left);
}

#[test]
fn what_cannot_be_computed_leaves_nothing() {
    let crawl = Crawl::new();
    let before = crawl.names();
    let view = open_view(&RealDisk, &crawl.dir()).unwrap();
    let asked = computing("in-degree", Level::Host);
    let unlocked = publish_computed(&RealDisk, &view, &asked, &Watcher::default());
    assert!(unlocked.unwrap_err().to_string().contains("lock"));
    drop(view);
    let stopped = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let view = open_view_to_publish(&RealDisk, &crawl.dir()).unwrap();
    let watcher = Watcher::new(stopped);
    for name in ["in-degree", "pagerank", "hits-hubs"] {
        let asked = computing(name, Level::Host);
        let ended = publish_computed(&RealDisk, &view, &asked, &watcher).unwrap();
        assert!(ended.is_none());
    }
    drop(view);
    let mut small = asked.clone();
    small.options.memory = Some(10);
    assert!(matches!(crawl.compute(&small), Err(Error::TooLarge { .. })));
    assert_eq!(crawl.names(), before);
    let none = crawl.open(Level::Host, Some("harmonic")).err().unwrap();
    assert!(
        none.to_string().contains("none was computed beside it"),
        "{none}"
    );
}

/// A ranking of another store, or of other records, is refused.
#[test]
fn a_ranking_of_something_else_is_refused() {
    let crawl = Crawl::new();
    let asked = computing("in-degree", Level::Host);
    let (old, _) = crawl.compute(&asked).unwrap().unwrap();
    crawl.read(1);
    let (new, _) = crawl.compute(&asked).unwrap().unwrap();
    fs::copy(&old, &new).unwrap();
    let refused = crawl.open(Level::Host, Some("in-degree")).err().unwrap();
    assert!(
        refused.to_string().contains("another snapshot"),
        "{refused}"
    );
}

fn samples(kind: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../../formats/samples")
        .join(kind)
        .join("ranking")
}

fn is_writing() -> bool {
    std::env::var_os("WRITE_SAMPLES").is_some()
}

const GOOD: [(&str, Level); 2] = [("page.ranking", Level::Page), ("host.ranking", Level::Host)];

/// The in-degrees of the crawl above, counted by hand in the tests above.
#[test]
fn the_good_samples_are_what_is_written_today() {
    let crawl = Crawl::new();
    for (name, level) in GOOD {
        let (path, _) = crawl
            .compute(&computing("in-degree", level))
            .unwrap()
            .unwrap();
        let golden = samples("good").join(name);
        if is_writing() {
            fs::copy(&path, &golden).unwrap();
        }
        assert!(
            fs::read(path).unwrap() == fs::read(&golden).unwrap(),
            "{name}"
        );
        ComputedRanking::open(&RealDisk, &golden)
            .unwrap()
            .verify()
            .unwrap();
    }
}

/// Returns damaged files, each with a name and the expected message.
fn bad(good: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let with = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] ^= byte;
        bytes
    };
    let end = good.len();
    let mut version = good.to_vec();
    for at in [7, end - 1] {
        version[at] = b'9';
    }
    vec![
        ("empty", Vec::new(), "too short for a ranking"),
        (
            "truncated",
            good[..end - 1].to_vec(),
            "does not begin and end like a ranking",
        ),
        (
            "first-magic",
            with(0, 1),
            "does not begin and end like a ranking",
        ),
        ("version-magic", version, "a ranking of version 09"),
        (
            "score-bit",
            with(20, 1),
            "column Score of block 0 is damaged",
        ),
        ("trailer-bit", with(end - 40, 1), "its trailer is damaged"),
        (
            "info-bit",
            with(end - 60, 1),
            "its directory does not match its checksum",
        ),
    ]
}

#[test]
fn the_bad_samples_are_refused_as_expected() {
    let good = fs::read(samples("good").join("host.ranking")).unwrap();
    for (name, bytes, says) in bad(&good) {
        let path = samples("bad").join(name).with_extension("ranking");
        let expected = path.with_extension("ranking.expected");
        if is_writing() {
            fs::write(&path, &bytes).unwrap();
            fs::write(&expected, format!("{says}\n")).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
        assert_eq!(fs::read_to_string(expected).unwrap().trim_end(), says);
        let opened = ComputedRanking::open(&RealDisk, &path);
        let error = opened.and_then(|ranking| ranking.verify()).unwrap_err();
        assert!(error.to_string().contains(says), "{name}: {error}");
    }
}

/// The tables of the specification have the columns, in their order.
#[test]
fn the_specification_has_the_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../../../formats/ranking.md")).unwrap();
    let names = ["score", "rank", "pages", "visits", "last_fetch", "name"];
    for (number, name) in names.into_iter().enumerate() {
        assert!(text.contains(&format!("| {number} | {name} |")), "{name}");
    }
    assert_eq!(names.len(), SITE_COLUMNS);
}

#[test]
fn names_of_files_say_what_is_in_them() {
    for (level, measure, name) in [
        (
            Level::Host,
            "hits-hubs",
            "000000000300.host.hits-hubs.ranking",
        ),
        (
            Level::Prefix(12),
            "pagerank",
            "000000000300.prefix-12.pagerank.ranking",
        ),
    ] {
        let of = ComputedName {
            level,
            measure: measure.into(),
        };
        let path = of.path_for(Path::new("s/snapshots/000000000300.snapshot"));
        assert_eq!(path, Path::new("s/snapshots").join(name));
        assert_eq!(ComputedName::of_file(name), Some((300, of)));
    }
    for wrong in [
        "1.host.x",
        "1.host..ranking",
        "1.ranking",
        "x.host.y.ranking",
        "1.no.y.ranking",
    ] {
        assert_eq!(ComputedName::of_file(wrong), None, "{wrong}");
    }
}
