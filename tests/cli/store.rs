//! The store: who may open it, and with which settings.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::support::{Lab, await_that, crawl};

#[test]
fn other_settings_are_refused_and_named() {
    let lab = Lab::new();
    lab.file("a", crawl(51, 60).concat());
    lab.run("ingest a --store s").exits(0);
    for (option, name) in [
        ("--damping 0.9", "--damping"),
        ("--window whole", "--window"),
        ("--self-links keep", "--self-links"),
        ("--marks 3", "--marks"),
        ("--recycle-after 2", "--recycle-after"),
        ("--limit-line 1M", "--limit-line"),
        ("--limit-url 1K", "--limit-url"),
        ("--limit-links 7", "--limit-links"),
    ] {
        lab.run(&format!("ingest a --store s {option}"))
            .exits(2)
            .says(&[name]);
    }
    // Settings that change no result may change, and the store's own may be repeated.
    lab.run("ingest a --store s --threads 3 --checkpoint-every 9 --limit-held 1K --damping 0.85")
        .exits(0);
}

/// A store keeps its original settings when later commands leave them out.
#[test]
fn settings_left_out_are_those_of_the_store() {
    let lab = Lab::new();
    lab.file("a", crawl(52, 60).concat());
    let with = "--damping 0.7 --window whole --self-links keep";
    lab.run(&format!("ingest a --store s {with}")).exits(0);
    lab.run("ingest a --repeat 3 --store s").exits(0);
    lab.run(&format!("ingest a --repeat 3 --store t {with}"))
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("t"));
    assert_eq!(lab.stat("s")["window"], "whole");
}

#[test]
fn one_writes_others_read() {
    let lab = Lab::on_disk();
    let records = crawl(53, 300);
    lab.file("a", records.concat());
    let mut running = lab.start("ingest - --store s --snapshot-every 100");
    running.write(records[..150].concat().as_bytes());
    lab.await_snapshot("s", 100);
    crate::support::await_that("the first snapshot is current", || {
        lab.path("s/snapshots/latest.json").exists()
    });

    lab.run("ingest a --store s").exits(6).says(&["s: in use"]);
    assert_eq!(lab.stat("s")["records"], 100);
    assert_eq!(
        lab.run("top -n 3 --json --store s").exits(0).json()["records"],
        100
    );
    let tsv = lab.export("s");
    let url = tsv.lines().nth(1).unwrap().split('\t').next().unwrap();
    lab.run(&format!("rank {url} --store s")).exits(0);
    lab.run("compare s s/snapshots/000000000100.snapshot")
        .exits(0);
    lab.run("verify --store s")
        .exits(0)
        .says(&["an ingest is running"]);

    // The result for what was read so far equals that of a run of its own.
    lab.file("h", records[..100].concat());
    lab.run("ingest h --store head").exits(0);
    assert!(tsv == lab.export("head"));

    running.write(records[150..].concat().as_bytes());
    running.end().exits(0);
    lab.run("ingest a --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
    lab.run("verify --store s").exits(0);
}

#[test]
fn a_store_of_another_version_is_refused() {
    let lab = Lab::new();
    lab.file("a", crawl(54, 20).concat());
    lab.run("ingest a --store s").exits(0);
    let path = lab.path("s/identity.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (mine, other, says) in [
        (
            "\"cashrank_store\": 3",
            "\"cashrank_store\": 7",
            &["version 7", "versions 3 and 6"][..],
        ),
        // Before version 0.3 a window could group measures.
        (
            "\"window\": \"auto\"",
            "\"window\": \"30d,groups=3\"",
            &["groups of measures"],
        ),
    ] {
        let other = text.replace(mine, other);
        assert_ne!(text, other);
        std::fs::write(&path, other).unwrap();
        for line in ["ingest a", "top", "stat", "verify", "export --to tsv"] {
            let done = lab.run(&format!("{line} --store s")).exits(2);
            done.says(says).says(&["new store"]);
        }
    }
}

#[test]
fn what_is_no_store_is_refused() {
    let lab = Lab::new();
    lab.file("a", crawl(55, 20).concat());
    std::fs::create_dir(lab.path("folder")).unwrap();
    lab.file("folder/mine", "keep me");
    for line in ["top", "stat", "verify", "rank x", "export --to tsv"] {
        for store in ["folder", "nowhere"] {
            lab.run(&format!("{line} --store {store}"))
                .exits(2)
                .says(&[store, "store"]);
        }
    }
    lab.run("ingest a --store folder")
        .exits(2)
        .says(&["folder"]);
    assert_eq!(std::fs::read(lab.path("folder/mine")).unwrap(), b"keep me");
    assert_eq!(std::fs::read_dir(lab.path("folder")).unwrap().count(), 1);
    lab.run("ingest a --store a")
        .exits(2)
        .says(&["a: is a file"]);
    // An empty folder may become a store.
    std::fs::create_dir(lab.path("empty")).unwrap();
    lab.run("ingest a --store empty").exits(0);
}

#[test]
fn damage_is_found_and_has_its_own_exit_code() {
    let lab = Lab::new();
    lab.file("a", crawl(56, 60).concat());
    for (part, line) in [
        ("urls", "export --to tsv"),
        ("fingerprints", "verify"),
        ("cash", "verify"),
        ("snapshots/000000000060.snapshot", "top"),
    ] {
        let store = part.replace('/', "-");
        lab.run(&format!("ingest a --store {store}")).exits(0);
        let path = lab.path(&store).join(part);
        let mut bytes = std::fs::read(&path).unwrap();
        // The first slot of `cash` may be the unused one, so damage both.
        let half = if part == "cash" {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        for at in [40, half + 40] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x10;
            }
        }
        std::fs::write(&path, bytes).unwrap();
        lab.run(&format!("{line} --store {store}"))
            .exits(5)
            .says(&[part, "damaged"]);
    }
}

/// A killed creation leaves a directory without `identity.json`, which the next one uses up, wherever it was killed. A
/// store that lost this file is none of these: it is damaged, and stays unchanged.
#[test]
fn what_a_killed_creation_left_is_used_up() {
    let lab = Lab::new();
    lab.file("a", crawl(54, 30).concat());
    lab.run("ingest a --store t").exits(0);
    let files = ["urls", "fingerprints", "fingerprints.index", "store.redb"];
    for made in 0..=files.len() {
        let left = lab.path(&format!("s{made}"));
        std::fs::create_dir_all(left.join("marks")).unwrap();
        for name in ["lock", "cash"] {
            std::fs::write(left.join(name), "").unwrap();
        }
        for name in files[..made].iter().chain(&["identity.next"]) {
            std::fs::write(left.join(name), "half").unwrap();
        }
        lab.run(&format!("ingest a --store s{made}")).exits(0);
        lab.run(&format!("verify --deep --store s{made}")).exits(0);
        assert!(!left.join("identity.next").exists());
        assert!(lab.snapshot(&format!("s{made}")) == lab.snapshot("t"));
    }
    let identity = lab.path("t/identity.json");
    std::fs::rename(&identity, lab.path("t/identity.next")).unwrap();
    lab.run("ingest a --store t").exits(5);
    assert!(lab.path("t/store.redb").exists());
    std::fs::rename(lab.path("t/identity.next"), identity).unwrap();
    lab.run("verify --deep --store t").exits(0);
}

/// Regression: a user's folder with the name of a temporary store was emptied.
#[test]
fn folders_of_the_users_own_stay() {
    let lab = Lab::new();
    lab.file("a", crawl(54, 30).concat());
    for (folder, file) in [
        ("v", "urls"),
        ("w", "thesis.txt"),
        ("x", "marks/thesis.txt"),
    ] {
        let path = lab.path(folder).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "mine").unwrap();
        if file != "urls" {
            // As if creation of a store had begun there.
            std::fs::write(lab.path(folder).join("identity.next"), "half").unwrap();
        }
        lab.run(&format!("ingest a --store {folder}"))
            .exits(2)
            .says(&["neither a store nor an empty directory"]);
        assert_eq!(std::fs::read(path).unwrap(), b"mine");
    }
}

/// Regression: four processes that create one store at once shared its temporary folder, and one failed on a missing
/// file. Now one creates it, and the others wait, or find it in use.
#[test]
fn of_many_that_make_the_same_store_one_does() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(54, 30).concat());
    for round in 0..10 {
        let line = format!("ingest a --store s{round}");
        let running: Vec<_> = (0..4).map(|_| lab.start(&line)).collect();
        let codes: Vec<_> = running.into_iter().map(|one| one.end().code).collect();
        assert!(codes.contains(&Some(0)), "{codes:?}");
        assert!(
            codes.iter().all(|code| [Some(0), Some(6)].contains(code)),
            "{codes:?}"
        );
        lab.run(&format!("verify --deep --store s{round}")).exits(0);
        assert!(!lab.path(&format!("s{round}/identity.next")).exists());
    }
}

#[test]
fn of_two_that_create_the_same_store_one_is_refused() {
    let lab = Lab::on_disk();
    let first = lab.start("ingest - --store s");
    let second = lab.start("ingest - --store s");
    let mut codes = [0; 2];
    crate::support::await_that("the store is there", || lab.path("s").exists());
    let mut running = [first, second];
    // While both inputs are open, only the refused process ends.
    let ended = |one: &mut crate::support::Running| one.child.try_wait().unwrap().is_some();
    crate::support::await_that("one of them ends", || running.iter_mut().any(ended));
    for (code, one) in codes.iter_mut().zip(running) {
        *code = one.end().code.unwrap();
    }
    codes.sort();
    // The other one read nothing.
    assert_eq!(codes, [3, 6]);
}

/// Regression: a check held the writer's lock for its whole duration, and an ingest that began meanwhile was refused. A
/// file that cannot be written is not damage: on a read-only file system the lock cannot be opened for writing.
#[test]
fn a_check_holds_up_no_writer_and_needs_no_right_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    lab.file("a", crawl(17, 200).concat());
    lab.run("ingest a --store s").exits(0);
    let view =
        cashrank_store::store::open_view(&cashrank_store::store::RealDisk, &lab.path("s")).unwrap();
    lab.file("b", crawl(18, 200).concat());
    lab.run("ingest a b --store s").exits(0);
    assert!(view.is_overtaken(&cashrank_store::store::RealDisk));
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(lab.path("s/lock"), read_only).unwrap();
    let done = lab.run("verify --deep --store s --json").exits(0);
    assert_eq!(done.json()["checkpoint"], true);
    // Without it nobody writes.
    std::fs::remove_file(lab.path("s/lock")).unwrap();
    lab.run("verify --store s").exits(0);
    assert!(!lab.path("s/lock").exists());
}

/// Unpacks a `.tar.zst` of plain files and folders into `into`.
fn unpack(packed: &[u8], into: &Path) {
    let bytes = zstd::decode_all(packed).unwrap();
    let mut rest = &bytes[..];
    while rest[0] != 0 {
        let text = |range: std::ops::Range<usize>| {
            let field = rest[range].split(|byte| *byte == 0).next().unwrap();
            std::str::from_utf8(field).unwrap().trim().to_owned()
        };
        let path = into.join(text(0..100));
        let size = usize::from_str_radix(&text(124..136), 8).unwrap();
        match rest[156] {
            b'5' => fs::create_dir_all(&path).unwrap(),
            _ => fs::write(&path, &rest[512..512 + size]).unwrap(),
        }
        rest = &rest[512 + size.next_multiple_of(512)..];
    }
}

/// A store of program version 0.1, which kept no rows of links, is refused with advice, and stays unchanged.
#[test]
fn a_store_of_version_0_1_is_refused() {
    let lab = Lab::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/bad/store");
    let packed = fs::read(samples.join("0.1-correction.tar.zst")).unwrap();
    unpack(&packed, &lab.path(""));
    lab.file("in.jsonl", crawl(71, 60).concat());
    let before = fs::read(lab.path("old/store.redb")).unwrap();
    for line in ["ingest in.jsonl", "top", "stat", "verify --deep"] {
        let done = lab.run(&format!("{line} --store old")).exits(2);
        done.says(&["old/identity.json", "a store of version 1", "a new store"]);
    }
    assert!(fs::read(lab.path("old/store.redb")).unwrap() == before);
}

/// Unpacks the store `old` of a golden sample, made from the file `first` by this command; with `WRITE_SAMPLES` it is
/// made again.
fn unpack_sample(lab: &Lab, name: &str, ingest: &str) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good/store");
    let path = samples.join(name);
    if std::env::var_os("WRITE_SAMPLES").is_some() {
        lab.run(ingest).exits(0);
        let made = std::process::Command::new("tar")
            .args([
                "--format=ustar",
                "--owner=0",
                "--group=0",
                "-cf",
                "made.tar",
                "old",
            ])
            .current_dir(lab.path(""))
            .status();
        assert!(made.unwrap().success());
        let tar = fs::read(lab.path("made.tar")).unwrap();
        fs::write(&path, zstd::encode_all(&tar[..], 19).unwrap()).unwrap();
        fs::remove_dir_all(lab.path("old")).unwrap();
    }
    unpack(&fs::read(path).unwrap(), &lab.path(""));
}

/// Continues the store `old` of a golden sample, and compares the result with that of today's program.
fn goes_on(lab: &Lab, ingest: &str) {
    lab.run("verify --deep --store old").exits(0);
    let second = |store: &str| {
        let ingest = format!("ingest second --store {store} --settle 1e-8");
        lab.run(&ingest).exits(0)
    };
    let done = second("old");
    assert!(!done.err.contains("warning"), "{}", done.err);
    lab.run("verify --deep --store old").exits(0);
    lab.run(&ingest.replace("old", "new")).exits(0);
    second("new");
    let links = |store: &str| {
        let links = lab
            .run(&format!("export --links --to tsv --store {store}"))
            .exits(0)
            .out;
        let mut links: Vec<String> = links.lines().map(str::to_owned).collect();
        links.sort_unstable();
        links
    };
    assert!(links("old") == links("new"));
    for field in ["pages", "records", "visits", "visited"] {
        assert_eq!(lab.stat("old")[field], lab.stat("new")[field], "{field}");
    }
    // Each is certified to be within 1e-8 of PageRank.
    let moved = lab.run("compare old new").exits(0).out;
    let l1 = moved.lines().find_map(|line| line.strip_prefix("l1\t"));
    assert!(l1.unwrap().parse::<f64>().unwrap() <= 2e-8, "{moved}");
}

/// Stores of version 0.2 with partitions (4) or epochs (5) are refused by name, with advice, as those of a later
/// version are; they stay unchanged.
#[test]
fn a_store_with_partitions_is_refused() {
    let lab = Lab::new();
    lab.file("in.jsonl", crawl(71, 60).concat());
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/bad/store");
    let packed = fs::read(samples.join("4-partitions.tar.zst")).unwrap();
    unpack(&packed, &lab.path(""));
    let identity = lab.path("old/identity.json");
    let text = fs::read_to_string(&identity).unwrap();
    for version in [4, 5, 7] {
        let version_key = |version: u32| format!("\"cashrank_store\": {version}");
        assert!(text.contains(&version_key(4)), "{text}");
        fs::write(
            &identity,
            text.replace(&version_key(4), &version_key(version)),
        )
        .unwrap();
        let before = fs::read(lab.path("old/store.redb")).unwrap();
        for line in [
            "ingest in.jsonl",
            "settle",
            "top",
            "stat",
            "export --links --to tsv",
            "verify --deep",
        ] {
            let done = lab.run(&format!("{line} --store old")).exits(2);
            let done = done.says(&["old/identity.json", &format!("version {version}")]);
            for word in ["partitions", "`cashrank export` of version 0.2"] {
                assert_eq!(done.err.contains(word), version < 7, "{done:#?}");
            }
        }
        assert!(fs::read(lab.path("old/store.redb")).unwrap() == before);
    }
}

/// A store with an index, which `verify --deep` checks against the fingerprints, and the warm start of version 0.2.
#[test]
fn a_golden_store_with_an_index_continues() {
    let lab = Lab::new();
    let links: Vec<String> = (0..16_400)
        .map(|page| format!("http://a.example/{page}"))
        .collect();
    let record = |url: &str, links: &[String]| {
        serde_json::json!({"url": url, "links": links}).to_string() + "\n"
    };
    lab.file("first", record("http://a.example/", &links));
    lab.file(
        "second",
        record(&links[7], &["http://b.example/".into(), links[8].clone()]),
    );
    let ingest = "ingest first --store old --settle 1e-8";
    unpack_sample(&lab, "3-index.tar.zst", ingest);
    assert!(lab.path("old/index").exists());
    assert_eq!(fs::read_dir(lab.path("old/base")).unwrap().count(), 1);
    lab.run("verify --deep --store old")
        .exits(2)
        .says(&["a snapshot of version 02", "`cashrank settle`"]);
    lab.run("settle --until 1e-8 --store old").exits(0);
    goes_on(&lab, ingest);
    assert_eq!(fs::read_dir(lab.path("old/base")).unwrap().count(), 0);
}

/// Regression: a store was moved away during an ingest, and the first missing file was called damaged, or just not
/// found; a store that took its place was written into. Now the ingest first checks that the store is still the one it
/// opened.
#[test]
fn a_moved_store_is_reported() {
    let records = crawl(53, 200);
    let (first, rest) = (records[..100].concat(), records[100..].concat());
    for with in ["nothing", "another store", "removed"] {
        for often in [
            "--snapshot-every 100",
            "--checkpoint-every 10 --snapshot-every 100",
            "--checkpoint-every 10 --snapshot-every 20",
        ] {
            let lab = Lab::on_disk();
            lab.file("all", records.concat());
            lab.run("ingest all --store whole").exits(0);
            let mut running = lab.start(&format!("ingest - --store s {often}"));
            running.write(first.as_bytes());
            lab.await_snapshot("s", 100);
            match with {
                // The snapshot's thread may still create a file.
                "removed" => await_that("it is removed", || {
                    fs::remove_dir_all(lab.path("s")).is_ok()
                }),
                _ => fs::rename(lab.path("s"), lab.path("moved")).unwrap(),
            }
            let other = (with == "another store").then(|| {
                lab.file("a", crawl(54, 30).concat());
                lab.run("ingest a --store s").exits(0);
                lab.run("verify --deep --store s").exits(0);
                (
                    lab.snapshot("s"),
                    fs::read(lab.path("s/store.redb")).unwrap(),
                )
            });
            // A ranking may have found out, and ended the run, before the rest is read.
            let _ = running.stdin.as_mut().unwrap().write_all(rest.as_bytes());
            let moved =
                "s: cannot go on: the store that was here was moved away or removed meanwhile";
            running.end().exits(7).says(&[moved]);
            match other {
                Some((snapshot, tables)) => {
                    assert_eq!(lab.snapshot("s"), snapshot);
                    assert_eq!(fs::read(lab.path("s/store.redb")).unwrap(), tables);
                    lab.run("verify --deep --store s").exits(0);
                }
                None => assert!(!lab.path("s").exists()),
            }
            if with != "removed" {
                lab.feed("ingest - --store moved", records.concat().as_bytes())
                    .exits(0);
                assert_eq!(lab.snapshot("moved"), lab.snapshot("whole"));
            }
        }
    }
}
