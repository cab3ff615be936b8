//! Damaged stores: the messages, and what still works.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Lab, crawl};

/// Reads all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    all
}

fn store(lab: &Lab, seed: u64) {
    lab.file("a", crawl(seed, 60).concat());
    lab.run("ingest a --store s --checkpoint-every 7 --snapshot-every 20")
        .exits(0);
}

#[test]
fn a_deep_verify_reads_all() {
    let lab = Lab::new();
    store(&lab, 81);
    let quick = lab.run("verify --json --store s").exits(0).json();
    let deep = lab.run("verify --deep --json --store s").exits(0).json();
    let pages = lab.stat("s")["pages"].clone();
    for verified in [&quick, &deep] {
        assert_eq!(verified["pages"], pages);
        assert_eq!(verified["fingerprints"], pages);
        assert_eq!(verified["checkpoint"], true);
        assert_eq!(verified["damage"].as_array().map(Vec::len), Some(0));
    }
    assert!(quick["names"].is_null());
    assert_eq!(deep["names"], pages);
    assert_eq!(
        (&quick["snapshots"], &deep["snapshots"]),
        (&1.into(), &3.into())
    );
}

#[test]
fn verify_tells_all_damage_and_changes_nothing() {
    let lab = Lab::new();
    store(&lab, 82);
    let cash = lab.path("s/cash");
    let mut bytes = fs::read(&cash).unwrap();
    let half = bytes.len() / 2;
    for at in [40, half + 40] {
        bytes[at] ^= 1;
    }
    fs::write(&cash, bytes).unwrap();
    fs::remove_file(lab.path("s/snapshots/000000000060.snapshot")).unwrap();
    lab.file("s/notes.txt", "mine");
    let before = files(&lab.path("s"));
    for line in ["verify --store s", "verify --deep --store s"] {
        lab.run(line).exits(5).says(&[
            "s/cash: damaged: chunk 0",
            "restore the whole store",
            "what this means: ingesting stops",
            "000000000060.snapshot: damaged: it is missing",
            "run the same ingest again",
            "s/notes.txt: not part of the store",
        ]);
    }
    let json = lab.run("verify --json --store s").exits(5).json();
    assert_eq!(json["checkpoint"], false);
    assert_eq!(json["damage"][0]["file"], "s/cash");
    assert_eq!(json["damage"].as_array().map(Vec::len), Some(2));
    assert!(files(&lab.path("s")) == before);
}

/// Regression: opening the store recreated missing files as empty ones, and a lost identity was reported as a directory
/// of something else.
#[test]
fn a_lost_file_is_named_and_not_recreated() {
    for part in [
        "identity.json",
        "store.redb",
        "cash",
        "urls",
        "urls.index",
        "fingerprints",
        "fingerprints.index",
    ] {
        let lab = Lab::new();
        store(&lab, 83);
        fs::remove_file(lab.path("s").join(part)).unwrap();
        for line in ["ingest a", "verify", "verify --deep"] {
            lab.run(&format!("{line} --store s"))
                .exits(5)
                .says(&[&format!("s/{part}: damaged: it is missing")]);
            assert!(!lab.path("s").join(part).exists());
        }
    }
}

/// Regression: a finished ingest checked only the end of the current snapshot, and did nothing if a column was damaged.
#[test]
fn repeating_an_ingest_replaces_a_damaged_current_snapshot() {
    let lab = Lab::new();
    store(&lab, 84);
    let sound = lab.snapshot("s");
    let path = lab.path("s/snapshots/000000000060.snapshot");
    let mut bytes = sound.clone();
    bytes[20] ^= 4;
    fs::write(&path, bytes).unwrap();
    lab.run("export --to tsv --store s")
        .exits(5)
        .says(&["000000000060.snapshot: damaged", "the same ingest again"]);
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == sound);
    fs::remove_file(&path).unwrap();
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == sound);
    fs::write(lab.path("s/snapshots/latest.json"), "{}").unwrap();
    lab.run("top --store s").exits(5).says(&["latest.json"]);
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == sound);
}

/// Regression: readers find no ranking without `latest.json`, yet `verify` found nothing wrong.
#[test]
fn a_lost_name_of_the_current_snapshot_is_damage() {
    let lab = Lab::new();
    lab.file("a", crawl(86, 60).concat());
    lab.file("b", crawl(87, 60).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("ingest b --store s").exits(0);
    lab.run("verify --store s").exits(0);
    fs::remove_file(lab.path("s/snapshots/latest.json")).unwrap();
    lab.run("verify --store s")
        .exits(5)
        .says(&["latest.json: damaged: it is missing, and there are 2 snapshots"]);
    lab.run("ingest b --store s").exits(0);
    lab.run("verify --deep --store s").exits(0);
}

/// Between the renames of a snapshot and of `latest.json`, which says how many names there are, the new one has more pages:
/// what needs no names is answered, and what lacks some is an error, not a shorter answer.
#[test]
fn a_snapshot_that_is_not_published_lacks_names() {
    let lab = Lab::new();
    let records = crawl(61, 90);
    lab.file("a", records[..30].concat());
    lab.file("b", records[30..].concat());
    lab.run("ingest a --store s").exits(0);
    let latest = fs::read(lab.path("s/snapshots/latest.json")).unwrap();
    let known = lab.run("export --to jsonl --store s").exits(0).out;
    lab.run("ingest b --store s").exits(0);
    let newer = lab.stat("s")["pages"].as_u64().unwrap();
    assert!((known.lines().count() as u64) < newer);
    fs::write(lab.path("s/snapshots/latest.json"), latest).unwrap();
    let page: serde_json::Value = serde_json::from_str(known.lines().next().unwrap()).unwrap();
    let page = page["url"].as_str().unwrap();
    let history = lab.run(&format!("history {page} --store s --json"));
    let history = history.exits(0).json();
    assert_eq!(history["history"][1]["snapshot"], 90, "{history}");
    for line in ["--to tsv", "--to parquet -o out", "--to jsonl --sort url"] {
        lab.run(&format!("export {line} --snapshot 90 --store s"))
            .exits(5)
            .says(&[" for its "]);
    }
    // The same ingest publishes it.
    lab.run("ingest a b --store s").exits(0);
    let lines = lab.run("export --to jsonl --store s").exits(0).out;
    assert_eq!(lines.lines().count() as u64, newer);
}

/// Regression: without `latest.json`, or the folder that every store has, readers took a store for one that has
/// published nothing, and `next` listed its seeds again.
#[test]
fn a_store_that_lost_its_snapshots_is_no_new_one() {
    let lab = Lab::new();
    lab.file("a", crawl(90, 60).concat());
    lab.run("ingest a --store s").exits(0);
    lab.file("seeds", "http://seed.example/\n");
    let sound = lab.snapshot("s");
    lab.run("ingest a --store linked").exits(0);
    let lost = |lost: &str, part: &str| {
        for line in [
            "top",
            "stat",
            "next",
            "next --seeds seeds",
            "links http://a.test/1",
            "export --to tsv",
            "history http://a.test/1",
        ] {
            lab.run(&format!("{line} --store {lost}"))
                .exits(5)
                .says(&[part, "damaged: it is missing"]);
        }
    };
    fs::remove_file(lab.path("s/snapshots/latest.json")).unwrap();
    lost("s", "s/snapshots/latest.json");
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == sound);
    fs::remove_dir_all(lab.path("s/snapshots")).unwrap();
    lost("s", "s/snapshots");
    // A link to a disk that is not mounted.
    let snapshots = lab.path("linked/snapshots");
    fs::rename(&snapshots, lab.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("/nowhere/snapshots", &snapshots).unwrap();
    lost("linked", "linked/snapshots");
    let identity = lab.path("linked/identity.json");
    fs::remove_file(&identity).unwrap();
    std::os::unix::fs::symlink("/nowhere/identity.json", &identity).unwrap();
    for line in ["top", "next --seeds seeds", "verify", "ingest a"] {
        lab.run(&format!("{line} --store linked"))
            .exits(5)
            .says(&["linked/identity.json", "what it leads to is missing"]);
    }
}

/// An ingest that was killed between the two renames of its first ranking leaves no damage.
#[test]
fn a_first_ranking_that_was_half_published_is_none_yet() {
    let lab = Lab::new();
    lab.file("a", crawl(90, 60).concat());
    lab.run("ingest a --store s").exits(0);
    let sound = lab.snapshot("s");
    fs::remove_file(lab.path("s/snapshots/latest.json")).unwrap();
    lab.file("s/snapshots/latest.tmp", "");
    for line in ["top", "links http://a.test/1", "export --to tsv"] {
        let line = format!("{line} --store s");
        lab.run(&line).exits(2).says(&["no snapshot published yet"]);
    }
    lab.run("verify --store s").exits(0);
    lab.run("ingest a --store s").exits(0);
    assert!(lab.snapshot("s") == sound);
    assert!(!lab.path("s/snapshots/latest.tmp").exists());
}

#[test]
fn a_lost_snapshot_that_was_pinned_is_damage() {
    let lab = Lab::new();
    lab.file("a", crawl(91, 30).concat());
    lab.file("b", crawl(92, 30).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("snapshots --store s --pin 30").exits(0);
    lab.run("ingest b --store s").exits(0);
    lab.run("verify --deep --store s").exits(0);
    fs::remove_file(lab.path("s/snapshots/000000000030.snapshot")).unwrap();
    lab.run("verify --deep --store s")
        .exits(5)
        .says(&["000000000030.snapshot: damaged: it is missing, though it is pinned"]);
    lab.run("snapshots --store s --unpin 30").exits(0);
    lab.run("verify --store s").exits(0);
}

/// Regression: redb panics on a page that is neither leaf nor branch, and the user saw a backtrace. `exits` checks that
/// no output says "panicked".
#[test]
fn damaged_pages_of_the_database_are_no_panic() {
    let lab = Lab::new();
    store(&lab, 85);
    let path = lab.path("s/store.redb");
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page[0] = 7;
    }
    fs::write(&path, bytes).unwrap();
    for line in ["verify", "verify --deep", "ingest a"] {
        lab.run(&format!("{line} --store s"))
            .exits(5)
            .says(&["s/store.redb: damaged", "new store"]);
    }
    // Published snapshots stay readable.
    lab.run("top --store s").exits(0);
    lab.export("s");
}

/// Commands that read a store with two snapshots and a computed ranking.
const READERS: [&str; 14] = [
    "top --json",
    "top --measure harmonic --json",
    "rank http://a.test/1 --json",
    "links http://a.test/1 --in",
    "stat --json",
    "stat --record",
    "next --refetch",
    "export --to tsv",
    "export --to tsv --links",
    "export --to jsonl --since 6",
    "history http://a.test/1 --json",
    "snapshots --json",
    "compare s --snapshot 6 --moved 3 --json",
    "local --domain host:a.test",
];

/// Returns the output of a command, without what changes with each look at a disk.
fn said(lab: &Lab, command: &str) -> (Option<i32>, String, String) {
    let store = if command.starts_with("compare") {
        ""
    } else {
        " --store s"
    };
    let done = lab.run(&format!("{command}{store}"));
    assert!(!done.err.contains("panicked"), "{command}: {done:?}");
    let lines = done
        .out
        .lines()
        .map(|line| match serde_json::from_str(line) {
            Ok(serde_json::Value::Object(mut object)) => {
                object.remove("disk_bytes");
                object.remove("published");
                serde_json::Value::Object(object).to_string()
            }
            _ => line.to_owned(),
        });
    (done.code, lines.collect(), done.err)
}

/// Regression: `stat --record` cited the hash of damaged bytes, `export --since` took gone pages for changed ones,
/// `stat` left a damaged ranking out, and a lost `latest.json` gave "no snapshot published yet".
#[test]
fn readers_name_damage_or_are_right() {
    let lab = Lab::new();
    let record = |page: u32| {
        let status = if page.is_multiple_of(5) { 410 } else { 200 };
        format!(
            "{{\"url\":\"http://a.test/{page}\",\"status\":{status},\"fetched_at\":\"2026-01-0{}T00:00:00Z\",\
             \"links\":[\"/{}\",\"http://b.test/{page}\"]}}\n",
            1 + page % 9,
            page % 4 + 1
        )
    };
    lab.file("a", (1..=6).map(record).collect::<String>());
    lab.file("b", (4..=10).map(record).collect::<String>());
    for input in ["a", "b"] {
        lab.run(&format!("ingest {input} --store s")).exits(0);
    }
    lab.run("compute --measure harmonic --store s --quiet")
        .exits(0);
    let sound: Vec<_> = READERS.iter().map(|command| said(&lab, command)).collect();
    assert!(sound.iter().all(|(code, ..)| *code == Some(0)), "{sound:?}");
    let mut wrong = Vec::new();
    for (path, bytes) in files(&lab.path("s")) {
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        let mut flipped = bytes.clone();
        if let Some(byte) = flipped.get_mut(bytes.len() / 3) {
            *byte ^= 4;
        }
        for (damage, left) in [("flipped", Some(flipped)), ("lost", None)] {
            // Old snapshots and their computed rankings may be removed without effect.
            let is_kept = name == "000000000006.snapshot" || name.ends_with(".ranking");
            if left.is_none() && is_kept {
                continue;
            }
            match left {
                Some(left) => fs::write(&path, left).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            for (command, right) in READERS.iter().zip(&sound) {
                let (code, out, err) = said(&lab, command);
                let is_named = code == Some(5) && err.contains(name);
                if !is_named && (code, &out) != (right.0, &right.1) {
                    wrong.push(format!("{name} {damage}, {command}: exit {code:?}, {err}"));
                }
            }
            fs::write(&path, &bytes).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A sound snapshot of other records under the name of another is refused, by every reader and by `verify`.
#[test]
fn a_snapshot_under_the_name_of_another_is_refused() {
    let lab = Lab::new();
    let record = |page: u32| {
        format!(
            "{{\"url\":\"http://a.test/{page}\",\"links\":[\"/{}\"]}}\n",
            page / 2
        )
    };
    for (input, pages) in [("a", 1..=6), ("b", 7..=10)] {
        lab.file(input, pages.map(record).collect::<String>());
        lab.run(&format!("ingest {input} --store s")).exits(0);
    }
    let snapshot = |number: u32| lab.path(&format!("s/snapshots/{number:012}.snapshot"));
    fs::copy(snapshot(6), snapshot(10)).unwrap();
    for command in ["top", "stat", "rank http://a.test/1", "verify --deep"] {
        let (code, _, err) = said(&lab, command);
        let said = "000000000010.snapshot: damaged: it is of 6 records";
        assert!(
            code == Some(5) && err.contains(said),
            "{command}: {code:?}, {err}"
        );
    }
    // The same inputs again make another.
    lab.run("ingest a b --store s").exits(0);
    lab.run("verify --deep --store s").exits(0);
}

/// Files of others in folders of a store stay when it is written.
#[test]
fn files_of_others_in_folders_stay() {
    let lab = Lab::new();
    lab.file("a", "{\"url\":\"http://a.test/1\",\"links\":[\"/2\"]}\n");
    lab.file("b", "{\"url\":\"http://a.test/2\",\"links\":[\"/1\"]}\n");
    lab.run("ingest a --store s").exits(0);
    let strangers = [
        "rows/1.bak",
        "rows/notes.txt",
        "marks/1.bak",
        "marks/README",
    ];
    let ours = ["rows/7", "rows/7.index", "rows/1.tmp", "marks/77"];
    for name in strangers.iter().chain(&ours) {
        fs::write(lab.path(&format!("s/{name}")), "?").unwrap();
    }
    lab.run("ingest b --store s").exits(0);
    for name in strangers {
        assert!(lab.path(&format!("s/{name}")).exists(), "{name}");
    }
    for name in ours {
        assert!(!lab.path(&format!("s/{name}")).exists(), "{name}");
    }
}
