//! `--resident`: partitions that take turns in memory when they are settled come to the same bytes, and leave nothing.

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
    let lab = Lab::new();
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
    let lab = Lab::new();
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
    let lab = Lab::new();
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
    let lab = Lab::new();
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
    let lab = Lab::new();
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
    let lab = Lab::new();
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
