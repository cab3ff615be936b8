//! `--resident`: partitions that take turns in memory, while records are read and when they are settled, come to the same bytes,
//! and leave nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::mounts::Mounted;
use crate::support::{Lab, crawl};

const PARTITIONS: usize = 5;

/// A store that was ranked roughly, and has a base.
fn store(lab: &Lab) {
    lab.file("a", crawl(1, 500).concat());
    lab.file("b", crawl(2, 300).concat());
    lab.run(&format!(
        "ingest --store s --partitions {PARTITIONS} --settle 0.1 a"
    ))
    .exits(0);
}

/// All that a ranking, and the next one, is made of.
fn bytes(lab: &Lab, store: &str) -> Vec<Vec<u8>> {
    let mut all = vec![lab.snapshot(store)];
    for part in 0..PARTITIONS {
        let base = lab.path(&format!("{store}/parts/{part:03}/base"));
        let bases = std::fs::read_dir(base).into_iter().flatten();
        let mut files: Vec<_> = bases.map(|file| file.unwrap().path()).collect();
        files.sort();
        all.extend(files.iter().map(|file| std::fs::read(file).unwrap()));
    }
    all
}

fn left(lab: &Lab, store: &str) -> Vec<String> {
    let names = std::fs::read_dir(lab.path(store).join("snapshots")).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !name.ends_with(".snapshot") && name != "latest.json")
        .collect()
}

#[test]
fn the_same_bytes_however_many_are_there() {
    let lab = Lab::on_disk();
    store(&lab);
    let run = |name: &str, from_nothing: bool, options: &str| {
        lab.copy("s", name);
        if from_nothing {
            for part in 0..PARTITIONS {
                let base = lab.path(&format!("{name}/parts/{part:03}/base"));
                std::fs::remove_dir_all(base).unwrap();
            }
        }
        let settle = format!("settle --store {name} --until 1e-9 {options}");
        let said = lab.run(&settle).exits(0);
        assert_eq!(
            said.err.contains("from the start"),
            from_nothing,
            "{}",
            said.err
        );
        let settled = bytes(&lab, name);
        lab.run(&format!("ingest --store {name} {options} a b"))
            .exits(0);
        lab.run(&format!("verify --deep --store {name}")).exits(0);
        assert_eq!(left(&lab, name), [""; 0]);
        (settled, bytes(&lab, name))
    };
    for from_nothing in [false, true] {
        let all = run(&format!("all-{from_nothing}"), from_nothing, "");
        assert_eq!(all.0.len(), 1 + PARTITIONS);
        for resident in [1, 2, PARTITIONS - 1, PARTITIONS, 99] {
            let name = format!("{resident}-{from_nothing}");
            let turned = run(&name, from_nothing, &format!("--resident {resident}"));
            assert!(
                turned == all,
                "{resident} at a time, from nothing: {from_nothing}"
            );
        }
    }
}

/// From the first record on, by one thread and by two.
#[test]
fn an_ingest_settles_in_turns() {
    let lab = Lab::on_disk();
    store(&lab);
    let ingest = |name: &str, options: &str| {
        for inputs in ["a", "a b"] {
            let ingest = format!("ingest --store {name} --partitions {PARTITIONS} {options}");
            lab.run(&format!("{ingest} --snapshot-every 200 {inputs}"))
                .exits(0);
        }
        assert_eq!(left(&lab, name), [""; 0]);
        lab.snapshot(name)
    };
    let all = ingest("all", "");
    for (resident, threads) in [(1, 1), (2, 1), (1, 2), (2, 2), (5, 2)] {
        let name = format!("{resident}-{threads}");
        let turned = ingest(&name, &format!("--resident {resident} --threads {threads}"));
        assert!(turned == all, "{name}");
    }
}

/// Where there is no room for all, they take turns by themselves; where there is none for one, that is refused.
#[test]
fn memory_decides_where_nobody_does() {
    let lab = Lab::on_disk();
    store(&lab);
    lab.copy("s", "all");
    lab.run("settle --store all --until 1e-9").exits(0);
    lab.run("settle --store s --until 1e-9 --memory 1k")
        .exits(8)
        .says(&["--memory"]);
    let mut memory = 1 << 10;
    let done = loop {
        let done = lab.run(&format!("settle --store s --until 1e-9 --memory {memory}"));
        if done.code == Some(0) {
            break done;
        }
        done.exits(8);
        memory += memory / 16;
    };
    done.says(&["of 5 partitions are in memory at a time"]);
    assert!(bytes(&lab, "s") == bytes(&lab, "all"));
}

#[test]
fn none_at_a_time_is_refused() {
    let lab = Lab::on_disk();
    store(&lab);
    for line in ["settle --store s", "ingest --store s a b"] {
        for resident in ["0", "-1", "x"] {
            lab.run(&format!("{line} --resident={resident}"))
                .exits(2)
                .says(&["--resident"]);
        }
    }
}

/// Killed, stopped, and with a full disk: the ranking before stays, and the same command comes to the same bytes.
#[test]
fn what_is_broken_off_is_begun_again() {
    let lab = Lab::on_disk();
    store(&lab);
    lab.copy("s", "all");
    let settle = "settle --until 1e-11 --resident 1 --store";
    lab.run(&format!("{settle} all")).exits(0);
    let (before, all) = (lab.snapshot("s"), lab.snapshot("all"));
    let mut killed = 0;
    for wait in (0..).step_by(7) {
        lab.copy("s", &format!("s{wait}"));
        let running = lab.start(&format!("{settle} s{wait}"));
        sleep(Duration::from_millis(wait));
        let was_killed = running.kill();
        killed += u32::from(was_killed);
        lab.run(&format!("{settle} s{wait}")).exits(0);
        assert!(lab.snapshot(&format!("s{wait}")) == all, "{wait}");
        if !was_killed {
            break;
        }
    }
    assert!(killed > 0);
    let running = lab.start(&format!("{settle} s"));
    running.await_handler();
    running.signal("INT");
    let done = running.end();
    if done.code != Some(0) {
        done.exits(130).says(&["nothing was published"]);
        assert!(lab.snapshot("s") == before);
    }
    assert_eq!(left(&lab, "s"), [""; 0]);
}

#[test]
fn a_full_disk_is_named() {
    let lab = Lab::on_disk();
    store(&lab);
    lab.copy("s", "all");
    let settle = "settle --until 1e-9 --resident 1 --store";
    lab.run(&format!("{settle} all")).exits(0);
    let Some(_mounted) = Mounted::at(&lab.path("m")) else {
        return;
    };
    lab.copy("s", "m/s");
    let mut fill = std::fs::File::create(lab.path("m/fill")).unwrap();
    let filled = std::io::copy(&mut std::io::repeat(0), &mut fill);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    lab.run(&format!("{settle} m/s"))
        .exits(7)
        .says(&["m/s/snapshots/", "No space left"]);
    drop(fill);
    std::fs::remove_file(lab.path("m/fill")).unwrap();
    assert_eq!(left(&lab, "m/s"), [""; 0]);
    lab.run(&format!("{settle} m/s")).exits(0);
    assert!(bytes(&lab, "m/s") == bytes(&lab, "all"));
}

/// All files of a store but for its databases, whose bytes depend on the past.
fn files(lab: &Lab, store: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, home: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, home, all);
            } else if path.file_name().is_some_and(|name| name != "store.redb") {
                let name = path.strip_prefix(home).unwrap().to_owned();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let home = lab.path(store);
    let mut all = BTreeMap::new();
    walk(&home, &home, &mut all);
    all
}

/// Records are read into copies of a store, so that keys and with them all bytes are the same, however many partitions are in
/// memory, on however many threads.
#[test]
fn records_are_read_in_turns() {
    let lab = Lab::on_disk();
    store(&lab);
    lab.file("c", crawl(3, 900).concat());
    let read = |name: &str, options: &str| {
        lab.copy("s", name);
        let every = "--checkpoint-every 230 --snapshot-every 400";
        let done = lab.run(&format!("ingest --store {name} {every} {options} a b c"));
        let err = done.exits(0).err;
        lab.run(&format!("verify --deep --store {name}")).exits(0);
        (files(&lab, name), err)
    };
    let (all, _) = read("all", "");
    assert!(all.len() > 30, "{:?}", all.keys());
    for (resident, threads) in [(1, 1), (1, 3), (2, 2), (3, 1), (PARTITIONS - 1, 2)] {
        let name = format!("r{resident}t{threads}");
        let (turned, err) = read(&name, &format!("--resident {resident} --threads {threads}"));
        let said = format!("{resident} of {PARTITIONS} partitions are in memory at a time");
        assert!(err.contains(&said), "{err}");
        assert_eq!(
            turned.keys().collect::<Vec<_>>(),
            all.keys().collect::<Vec<_>>()
        );
        for (file, bytes) in &turned {
            assert!(*bytes == all[file], "{name}: {}", file.display());
        }
    }
}

/// Whatever ends a run, or kills it: what it left on disk for the turns is gone, and the same command comes to the same bytes.
#[test]
fn an_ingest_in_turns_that_was_killed_goes_on() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(1, 4_000).concat());
    let ingest = |store: &str, options: &str| {
        format!(
            "ingest --store {store} --partitions {PARTITIONS} --checkpoint-every 500 {options} a"
        )
    };
    lab.run(&ingest("all", "")).exits(0);
    let mut killed = 0;
    for wait in (0..).step_by(60) {
        // Each time another number of them continues.
        let running = lab.start(&ingest("s", &format!("--resident {}", 1 + wait / 60 % 4)));
        sleep(Duration::from_millis(wait));
        if !running.kill() {
            break;
        }
        killed += 1;
    }
    assert!(killed > 0);
    lab.run(&ingest("s", "--resident 2")).exits(0);
    lab.run("verify --deep --store s").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("all"));
    assert_eq!(lab.export("s"), lab.export("all"));
}

/// A run stops at the same record, however many partitions are in memory, and continues from there.
#[test]
fn a_limit_on_pages_is_met_at_the_same_record() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(1, 400).concat());
    let ingest = |store: &str, options: &str| {
        lab.run(&format!(
            "ingest --store {store} --partitions {PARTITIONS} {options} a"
        ))
    };
    for limit in [20, 57, 90] {
        let mut all = Vec::new();
        for resident in ["", "--resident 1", "--resident 3"] {
            let store = format!("{limit}{}", resident.replace(' ', ""));
            let options = format!("--limit-pages {limit} {resident}");
            ingest(&store, &options).exits(2);
            // Once more, with names that are known.
            ingest(&store, &options).exits(2);
            let stat = lab.stat(&store);
            let counts = (stat["pages"].clone(), stat["records"].clone());
            assert!(counts.0.as_u64() <= Some(limit), "{stat}");
            ingest(&store, resident).exits(0);
            all.push((counts, lab.snapshot(&store)));
        }
        assert!(all.iter().all(|one| *one == all[0]), "{limit}");
    }
}

/// An input that is not grouped by source is said to be so, with the same count.
#[test]
fn sources_that_come_back_are_counted_in_turns() {
    let lab = Lab::on_disk();
    let hosts = ["a", "b", "c", "d"];
    let line = |at: usize| format!("http://{}.example/\thttp://x.example/{at}\n", hosts[at % 4]);
    lab.file("edges", (0..40).map(line).collect::<String>());
    for resident in ["", "--resident 1"] {
        let store = format!("s{}", resident.len());
        let format = "--format edges --partitions 4";
        // Each group after the first of its source: 40 groups of 4 sources.
        lab.run(&format!("ingest --store {store} {format} {resident} edges"))
            .exits(0)
            .says(&["36 lines return to an earlier source"]);
    }
}

#[test]
fn a_full_disk_while_records_are_read_is_named() {
    let lab = Lab::on_disk();
    store(&lab);
    lab.file("c", crawl(3, 3_000).concat());
    let ingest = "ingest --resident 1 a b c --store";
    lab.copy("s", "all");
    lab.run(&format!("{ingest} all")).exits(0);
    let Some(_mounted) = Mounted::at(&lab.path("m")) else {
        return;
    };
    lab.copy("s", "m/s");
    let mut fill = fs::File::create(lab.path("m/fill")).unwrap();
    let filled = std::io::copy(&mut std::io::repeat(0), &mut fill);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    lab.run(&format!("{ingest} m/s"))
        .exits(7)
        .says(&["m/s/parts/", "No space left"]);
    drop(fill);
    fs::remove_file(lab.path("m/fill")).unwrap();
    lab.run(&format!("{ingest} m/s")).exits(0);
    assert!(bytes(&lab, "m/s") == bytes(&lab, "all"));
}

/// As little memory as an ingest can do with has room for one partition at a time, and that is enough.
#[test]
fn memory_decides_while_records_are_read() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(1, 3_000).concat());
    let ingest = |store: &str, options: &str| {
        lab.run(&format!(
            "ingest --store {store} --partitions {PARTITIONS} {options} a"
        ))
    };
    ingest("all", "").exits(0);
    let (mut low, mut high) = (1u64 << 20, 1u64 << 31);
    let mut last = None;
    while high - low > 1 << 12 {
        let memory = low.midpoint(high);
        let store = format!("s{memory}");
        let done = ingest(&store, &format!("--memory {memory}"));
        match done.code {
            Some(0) => (high, last) = (memory, Some((done, store))),
            _ => {
                done.exits(8).says(&["--memory"]);
                low = memory;
            }
        }
    }
    let (done, store) = last.unwrap();
    done.says(&[&format!(
        "1 of {PARTITIONS} partitions are in memory at a time"
    )]);
    assert!(lab.snapshot(&store) == lab.snapshot("all"));
}
