//! Tests of the program: shards of one crawl, settled by one process or several, and failures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Instant;

use cashrank::{Options, Record, Shard, Snapshot, Store, Writer};

#[path = "../../../../tests/common/address.rs"]
mod address;
use address::free_address;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cashrank-cluster");

/// Returns a crawl of 600 of 900 pages on 40 hosts: page i has links to pages near 7 i, 11 i + 1 and so on, some to
/// hosts of its own.
fn crawl() -> Vec<(String, Vec<String>)> {
    let url = |page: usize| format!("http://h{}.example/{page}", page % 40);
    let links = |page: usize| {
        let targets = (1..=page % 9).map(|k| (page * (2 * k + 5) + k * k) % 900);
        let mut targets: Vec<usize> = targets.filter(|target| *target != page).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.into_iter().map(url).collect()
    };
    (0..600).map(|page| (url(page), links(page))).collect()
}

/// Returns what the program prints about the number of all pages.
fn pages_said() -> String {
    let pages = crawl()
        .into_iter()
        .flat_map(|(url, links)| links.into_iter().chain([url]));
    let pages = pages.collect::<std::collections::BTreeSet<String>>().len();
    format!("{pages} pages in all shards")
}

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes the crawl into a store.
    fn store(&self, name: &str, shard: Option<Shard>) -> PathBuf {
        let dir = self.path(name);
        let mut options = Options::default();
        options.input.shard = shard;
        let mut writer = Writer::open(&dir, &options).unwrap();
        for (url, links) in crawl() {
            let links: Vec<&str> = links.iter().map(|link| link.as_str()).collect();
            writer.push(&Record::new(url.as_str(), links)).unwrap();
        }
        writer.checkpoint().unwrap();
        dir
    }

    /// Writes the shards of the crawl, named after `name`.
    fn shards(&self, name: &str, count: usize) -> Vec<PathBuf> {
        let shard = |number| {
            let shard = format!("{number}/{count}").parse().unwrap();
            self.store(&format!("{name}-{number}"), Some(shard))
        };
        (0..count).map(shard).collect()
    }

    fn secret(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn hosts(&self, count: usize) -> PathBuf {
        let path = self.path("hosts");
        let lines: Vec<String> = (0..count).map(|_| free_address()).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        path
    }
}

fn settle(stores: &[PathBuf]) -> Command {
    settle_to("1e-8", stores)
}

fn settle_to(until: &str, stores: &[PathBuf]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["settle", "--until", until]).args(stores);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the command of process `index`, which has every `count`-th store.
fn process(
    stores: &[PathBuf],
    index: usize,
    count: usize,
    hosts: &Path,
    secret: &Path,
    wait: &str,
) -> Command {
    let own: Vec<PathBuf> = stores.iter().skip(index).step_by(count).cloned().collect();
    let mut command = settle(&own);
    command
        .arg("--hosts")
        .arg(hosts)
        .arg("--secret")
        .arg(secret);
    command.args([
        "--index",
        &index.to_string(),
        "--silence",
        "10",
        "--wait",
        wait,
    ]);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn exits(output: Output, code: i32, says: &[&str]) -> String {
    let text = said(&output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    text
}

fn ends(child: Child, code: i32, says: &[&str]) -> String {
    exits(child.wait_with_output().unwrap(), code, says)
}

fn snapshot(dir: &Path) -> Snapshot {
    Store::open(dir).unwrap().snapshot().unwrap()
}

/// Returns importance and rank of the own pages of all these stores.
fn own_pages(stores: &[PathBuf]) -> BTreeMap<String, (f64, u64)> {
    let mut all = BTreeMap::new();
    for dir in stores {
        let snapshot = snapshot(dir);
        for page in snapshot.named() {
            let page = page.unwrap();
            let shard = snapshot.info().settings.input.shard;
            if shard.is_none_or(|shard| shard.has(page.url.as_bytes())) {
                let twice = all.insert(page.url.to_string(), (page.importance, page.rank));
                assert_eq!(twice, None, "{}", page.url);
            }
        }
    }
    all
}

/// Returns the bytes of all current snapshots.
fn bytes(stores: &[PathBuf]) -> Vec<Vec<u8>> {
    let read = |dir: &PathBuf| fs::read(snapshot(dir).path()).unwrap();
    stores.iter().map(read).collect()
}

#[test]
fn shards_have_the_ranking_of_one_store() {
    let lab = Lab::new();
    let one = lab.store("one", None);
    Store::open(&one).unwrap().settle(1e-8).unwrap();
    let expected = own_pages(std::slice::from_ref(&one));
    let slack = snapshot(&one).bound_l1().unwrap();
    for count in [1, 4, 13] {
        let shards = lab.shards(&format!("of{count}"), count);
        exits(
            settle(&shards).output().unwrap(),
            0,
            &[&pages_said(), "settled in"],
        );
        let pages = own_pages(&shards);
        assert!(pages.keys().eq(expected.keys()));
        let sum: f64 = pages.values().map(|(importance, _)| importance).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        let bound = snapshot(&shards[0]).bound_l1().unwrap();
        let off: f64 = pages
            .values()
            .zip(expected.values())
            .map(|(one, other)| (one.0 - other.0).abs())
            .sum();
        assert!(
            bound <= 1.2e-8 && off <= bound + slack,
            "{off}: {bound} and {slack}"
        );
        for (url, (importance, rank)) in &pages {
            let above = pages.values().filter(|other| other.0 > *importance).count() as u64;
            assert_eq!(*rank, 1 + above, "{url}");
        }
        // A shard and the owner agree about the rank of a remote page, and about its importance up to rounding.
        for dir in &shards {
            let mut rounded = 0.0;
            for page in snapshot(dir).named() {
                let page = page.unwrap();
                let (importance, rank) = pages[&*page.url];
                assert_eq!(rank, page.rank, "{}", page.url);
                assert!(importance >= page.importance, "{}", page.url);
                rounded += importance - page.importance;
            }
            assert!(rounded < bound / 64.0, "{rounded}");
            Store::open(dir).unwrap().verify().unwrap();
        }
        let before = bytes(&shards);
        exits(
            settle(&shards).output().unwrap(),
            0,
            &["already", "nothing to do"],
        );
        assert!(bytes(&shards) == before);
        // A more accurate ranking stays.
        exits(settle_to("0.5", &shards).output().unwrap(), 0, &["already"]);
        assert!(bytes(&shards) == before);
    }
}

#[test]
fn processes_come_to_the_same_bytes() {
    let lab = Lab::new();
    let shards = lab.shards("s", 5);
    let copy = |to: &str| -> Vec<PathBuf> {
        let copy = |dir: &PathBuf| {
            let copy = lab.path(to).join(dir.file_name().unwrap());
            copy_all(dir, &copy);
            copy
        };
        shards.iter().map(copy).collect()
    };
    let secret = lab.secret("secret", "0123456789abcdef");
    let expected = copy("one");
    exits(settle(&expected).output().unwrap(), 0, &[]);
    for count in [2, 3] {
        let stores = copy(&format!("by{count}"));
        let hosts = lab.hosts(count);
        let begun = (0..count).map(|index| {
            let mut command = process(&stores, index, count, &hosts, &secret, "30");
            command.spawn().unwrap()
        });
        let begun: Vec<Child> = begun.collect();
        for child in begun {
            ends(child, 0, &[&pages_said()]);
        }
        assert!(bytes(&stores) == bytes(&expected), "{count} processes");
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn stores_that_do_not_belong_together_are_refused() {
    let lab = Lab::new();
    let shards = lab.shards("s", 3);
    let whole = lab.store("whole", None);
    let of_two = lab.store("of-two", Some("1/2".parse().unwrap()));
    let with = |stores: &[&PathBuf]| {
        let stores: Vec<PathBuf> = stores.iter().map(|store| (*store).clone()).collect();
        settle(&stores).output().unwrap()
    };
    let [a, b, c] = &shards[..] else { panic!() };
    exits(with(&[a, b]), 2, &["shard"]);
    exits(with(&[a, b, b, c]), 2, &["s-1"]);
    exits(with(&[a, b, &whole]), 2, &["whole"]);
    exits(with(&[a, &of_two, c]), 2, &["of-two"]);
    exits(with(&[&lab.path("nowhere")]), 2, &["nowhere"]);
    let held = Writer::open(a, &Options::of(a).unwrap()).unwrap();
    exits(with(&[a, b, c]), 6, &["s-0", "in use"]);
    drop(held);
    assert!(
        Store::open(a).unwrap().snapshot().is_err(),
        "nothing is published"
    );
    exits(with(&[a, b, c]), 0, &[]);
}

#[test]
fn a_process_that_is_killed_or_has_another_secret_is_named() {
    let lab = Lab::new();
    let shards = lab.shards("s", 2);
    let hosts = lab.hosts(2);
    let secret = lab.secret("secret", "0123456789abcdef");
    let other = lab.secret("other", "fedcba9876543210");
    let begin = |index: usize, secret: &Path| {
        let mut command = process(&shards, index, 2, &hosts, secret, "2");
        command.spawn().unwrap()
    };
    let (one, two) = (begin(0, &secret), begin(1, &other));
    ends(one, 7, &["process 1"]);
    ends(two, 7, &["process 0"]);
    // Two processes with different bounds.
    let mut rough = settle_to("0.5", &shards[1..]);
    rough
        .arg("--hosts")
        .arg(&hosts)
        .arg("--secret")
        .arg(&secret);
    rough.args(["--index", "1", "--wait", "5"]);
    let one = begin(0, &secret);
    let two = rough.spawn().unwrap();
    let said = [one, two].map(|child| child.wait_with_output().unwrap());
    assert!(
        said.iter()
            .any(|output| self::said(output).contains("--until")),
        "{said:?}"
    );
    // Nobody comes.
    ends(begin(0, &secret), 7, &["process 1"]);
    assert!(Store::open(&shards[0]).unwrap().snapshot().is_err());
}

/// Killed at any moment, the same command gives the same bytes as without interruption.
#[test]
fn kills_change_nothing() {
    let lab = Lab::new();
    let expected = lab.shards("s", 4);
    let stores: Vec<PathBuf> = expected
        .iter()
        .map(|dir| lab.path("killed").join(dir.file_name().unwrap()))
        .collect();
    for (from, to) in expected.iter().zip(&stores) {
        copy_all(from, to);
    }
    let started = Instant::now();
    exits(settle(&expected).output().unwrap(), 0, &[]);
    let lasts = started.elapsed();
    for kill in 1..=8 {
        let mut child = settle(&stores).spawn().unwrap();
        sleep(lasts * kill / 9);
        // It may have ended before.
        let _ = child.kill();
        child.wait_with_output().unwrap();
        for dir in &stores {
            // A reader finds a whole ranking, or none.
            if let Ok(snapshot) = Store::open(dir).unwrap().snapshot() {
                snapshot.named().for_each(|page| drop(page.unwrap()));
            }
        }
    }
    exits(settle(&stores).output().unwrap(), 0, &[]);
    assert!(bytes(&stores) == bytes(&expected));
    for dir in &stores {
        Store::open(dir).unwrap().verify().unwrap();
    }
}

/// A reader that closes standard output early, as `head` does, causes no failure; the rankings are published.
#[test]
fn closed_output_is_no_failure() {
    let lab = Lab::new();
    let stores = lab.shards("s", 2);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = settle(&stores);
    let output = command.arg("--json").stdout(writer).output().unwrap();
    exits(output, 0, &[]);
    snapshot(&stores[1]);
}
