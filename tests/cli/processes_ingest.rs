//! `ingest --processes` and `--hosts`: the same bytes as by one process, whatever is killed on the way and however many go on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::processes::{hosts, secret};
use crate::support::{Lab, Running, crawl};

/// What a store says: its ranking, names and links.
fn said(lab: &Lab, store: &str) -> (Vec<u8>, String, String) {
    let export = lab.export(store);
    let links = lab.run(&format!("export --links --to tsv --store {store}"));
    (lab.snapshot(store), export, links.exits(0).out)
}

/// Sizes of all files of the partitions, but for those whose sizes depend on the past.
fn files(lab: &Lab, store: &str) -> BTreeMap<PathBuf, u64> {
    fn walk(dir: &Path, home: &Path, all: &mut BTreeMap<PathBuf, u64>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, home, all);
            } else if path.file_name().is_some_and(|name| name != "store.redb") {
                let size = fs::metadata(&path).unwrap().len();
                let mut name = path.strip_prefix(home).unwrap().to_owned();
                // Bases are numbered by commits, of which there may be one more or less.
                if dir.ends_with("base") {
                    name.set_file_name("base");
                }
                all.insert(name, size);
            }
        }
    }
    let home = lab.path(store).join("parts");
    let mut all = BTreeMap::new();
    walk(&home, &home, &mut all);
    all
}

const EVERY: &str = "--settle 1e-7 --snapshot-every 150 --checkpoint-every 70";
/// The same with cash that crosses between partitions, by which pages are ranked.
const EPOCHS: &str = "--epoch 40 --settle none --snapshot-every 150 --checkpoint-every 70";

#[test]
fn the_same_bytes_by_any_number_of_processes() {
    let lab = Lab::on_disk();
    for (name, seed, records) in [("one", 1, 400), ("two", 2, 200), ("three", 3, 90)] {
        lab.file(name, crawl(seed, records).concat());
    }
    for (partitions, ways, every) in [
        (4, 0..3, EVERY),
        (16, 3..4, EVERY),
        (5, 0..2, EPOCHS),
        (16, 2..4, EPOCHS),
    ] {
        let of = |store: &str, counts: [Option<u32>; 3]| {
            let inputs = ["one", "two", "three"].into_iter().zip(counts);
            let mut all = Vec::new();
            for (input, count) in inputs {
                let by = count.map_or(String::new(), |count| {
                    // Partitions of each take turns, or do not.
                    let resident = if count == 3 { "--resident 1" } else { "" };
                    format!("--processes {count} {resident}")
                });
                let line = format!(
                    "ingest --store {store} --partitions {partitions} {every} {by} {input}"
                );
                let err = lab.run(&line).exits(0).err;
                assert!(!err.contains("warning"), "{line}: {err}");
                lab.run(&format!("verify --deep --store {store}")).exits(0);
                all.push(said(&lab, store));
            }
            (all, files(&lab, store))
        };
        let epochs = if every == EPOCHS { "e" } else { "" };
        let alone = of(&format!("alone{epochs}{partitions}"), [None; 3]);
        for counts in &[[1, 2, 3], [3, 4, 1], [4, 3, 2], [2, 3, 4]][ways] {
            let store = format!("s{epochs}{partitions}-{counts:?}").replace([' ', ','], "");
            let several = of(&store, counts.map(Some));
            assert!(several.0 == alone.0, "{partitions} {every} {counts:?}");
            assert_eq!(several.1, alone.1, "{partitions} {every} {counts:?}");
        }
    }
}

fn process(lab: &Lab, store: &str, number: usize, inputs: &str) -> Running {
    lab.start(&format!(
        "ingest --store {store} --hosts hosts --secret secret --process {number} --silence 2s --wait 3s {inputs}"
    ))
}

/// What three machines make, each on a disk of its own: together that of one, as store `whole`.
fn on_three_machines(every: &str) -> Lab {
    let lab = Lab::on_disk();
    lab.file("one", crawl(1, 400).concat());
    lab.file("two", crawl(2, 200).concat());
    hosts(&lab, 3);
    for input in ["one", "two"] {
        lab.run(&format!(
            "ingest --store alone --partitions 4 {every} {input}"
        ))
        .exits(0);
        let mut others = [1, 2].map(|number| process(&lab, &format!("m{number}"), number, ""));
        let mut first = process(&lab, "m0", 0, &format!("--partitions 4 {every} {input}"));
        first.join().exits(0);
        for other in &mut others {
            other.join().exits(0);
        }
        assert!(lab.snapshot("m0") == lab.snapshot("alone"), "{input}");
    }
    let parts = |store: &str| {
        let parts = fs::read_dir(lab.path(store).join("parts")).unwrap();
        let mut names: Vec<_> = parts.map(|part| part.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(parts("m0"), ["000", "003"]);
    assert_eq!(parts("m1"), ["001"]);
    assert_eq!(parts("m2"), ["002"]);
    let whole = lab.copy("m0", "whole");
    lab.copy("m1/parts/001", "whole/parts/001");
    lab.copy("m2/parts/002", "whole/parts/002");
    lab.run(&format!("verify --deep --store {whole}")).exits(0);
    assert!(said(&lab, &whole) == said(&lab, "alone"));
    lab
}

/// Each machine has a disk of its own, with its partitions; together they are the store.
#[test]
fn each_machine_has_its_own_partitions() {
    let lab = on_three_machines(EVERY);
    // One of another store.
    lab.run("ingest --store other --partitions 4 --settle 0.1 one")
        .exits(0);
    fs::remove_dir_all(lab.path("m1/parts/001")).unwrap();
    lab.copy("other/parts/001", "m1/parts/001");
    let mut others = [1, 2].map(|number| process(&lab, &format!("m{number}"), number, ""));
    lab.file("three", crawl(3, 20).concat());
    let first = process(&lab, "m0", 0, "--partitions 4 three").join();
    first.exits(7).says(&["process 1", "m1/parts/001"]);
    for other in &mut others {
        assert_ne!(other.join().code, Some(0));
    }
}

/// Where cash crosses, the first process brings that of all together, and reads it nowhere but from the others. Settled by several,
/// the ranking has it as well.
#[test]
fn cash_crosses_between_machines() {
    let lab = on_three_machines(EPOCHS);
    lab.run("settle --store alone --until 1e-9").exits(0);
    lab.run("settle --store whole --until 1e-9 --processes 3")
        .exits(0);
    assert!(said(&lab, "whole") == said(&lab, "alone"));
    assert!(lab.stat("whole")["turnovers"].as_f64().unwrap() > 0.0);
}

/// Whichever process is killed, whenever, with whatever number of processes it continues: the same bytes in the end.
#[test]
fn kills_make_no_difference() {
    whoever_is_killed(EVERY);
}

#[test]
fn kills_inside_an_epoch_make_no_difference() {
    whoever_is_killed(EPOCHS);
}

fn whoever_is_killed(every: &str) {
    let lab = Lab::on_disk();
    lab.file("one", crawl(1, 600).concat());
    hosts(&lab, 3);
    let started = Instant::now();
    lab.run(&format!(
        "ingest --store timed --partitions 4 {every} --processes 3 one"
    ))
    .exits(0);
    let takes = started.elapsed();
    lab.run(&format!("ingest --store alone --partitions 4 {every} one"))
        .exits(0);
    let alone = said(&lab, "alone");
    let kills = std::env::var("KILLS").map_or(10, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let store = format!("killed{kill}");
        // Some twice.
        for again in 0..=kill % 2 {
            let options = format!("--partitions 4 {every} one");
            let inputs = |number| if number == 0 { &options } else { "" };
            let mut all: Vec<Running> = (0..3)
                .map(|number| process(&lab, &store, number, inputs(number)))
                .collect();
            thread::sleep(takes * (kill + again) / kills);
            all.swap_remove((kill + again) as usize % 3).kill();
            for mut left in all {
                let done = left.join();
                assert!(!done.err.contains("panicked"), "{}", done.err);
            }
            if lab.path(&store).join("identity.json").exists() {
                lab.run(&format!("verify --store {store}")).exits(0);
            }
        }
        let count = 1 + kill % 4;
        lab.run(&format!(
            "ingest --store {store} --partitions 4 {every} --processes {count} one"
        ))
        .exits(0);
        lab.run(&format!("verify --deep --store {store}")).exits(0);
        assert!(said(&lab, &store) == alone, "kill {kill}");
        fs::remove_dir_all(lab.path(&store)).unwrap();
    }
}

/// A stream on standard input is read by the first process; one that is lost is named, and the stream sent again continues.
#[test]
fn a_lost_process_is_named_and_the_stream_goes_on() {
    let lab = Lab::on_disk();
    let records = crawl(1, 400).concat();
    lab.file("one", &records);
    lab.run(&format!("ingest --store alone --partitions 4 {EVERY} one"))
        .exits(0);
    let addresses = hosts(&lab, 2);
    let mut first = process(&lab, "s", 0, &format!("--partitions 4 {EVERY} -"));
    let second = process(&lab, "s", 1, "");
    let half = records.len() / 2;
    first.write(&records.as_bytes()[..half]);
    crate::support::await_that("it reads", || {
        lab.path("s/store.redb").exists() && lab.path("s/snapshots/latest.json").exists()
    });
    let since = Instant::now();
    second.signal("STOP");
    // Although no more records come for now.
    first.join().exits(7).says(&[
        &format!("process 1 ({})", addresses[1]),
        "is lost",
        "silent for 2s",
    ]);
    assert!(since.elapsed() < Duration::from_secs(60));
    drop(second);
    let done = lab.feed(
        &format!("ingest --store s --partitions 4 {EVERY} --processes 2 -"),
        records.as_bytes(),
    );
    done.exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("alone"));
}

/// Where a disk is full, it is said whose; with room the same command continues to the same bytes.
#[test]
fn a_full_disk_is_named() {
    let lab = Lab::on_disk();
    lab.file("one", crawl(1, 600).concat());
    lab.run(&format!("ingest --store alone --partitions 4 {EVERY} one"))
        .exits(0);
    let addresses = hosts(&lab, 2);
    let options = format!("--partitions 4 {EVERY} one");
    let mut first = process(&lab, "s", 0, &options);
    let limited = lab.limited(
        "-f 48",
        "ingest --store s --hosts hosts --secret secret --process 1 --silence 2s --wait 3s",
    );
    let err = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(7), "{err}");
    assert!(
        err.contains("parts/00") && err.contains("File too large"),
        "{err}"
    );
    first
        .join()
        .exits(7)
        .says(&[&format!("process 1 ({})", addresses[1]), "File too large"]);
    lab.run(&format!("ingest --store s --processes 3 {options}"))
        .exits(0);
    lab.run("verify --deep --store s").exits(0);
    assert!(said(&lab, "s") == said(&lab, "alone"));
}

/// The limit on pages is that of all processes: as many records go in as by one.
#[test]
fn the_limit_on_pages_is_the_same() {
    let lab = Lab::on_disk();
    lab.file("one", crawl(1, 400).concat());
    let of = |store: &str, by: &str| {
        let line = format!(
            "ingest --store {store} --partitions 4 --settle 1e-7 --limit-pages 150 {by} one"
        );
        let done = lab.run(&line);
        (
            done.code,
            lab.stat(store)["records"].clone(),
            lab.snapshot(store),
        )
    };
    let alone = of("alone", "");
    assert_ne!(alone.0, Some(0));
    for count in 1..=4 {
        let several = of(&format!("s{count}"), &format!("--processes {count}"));
        assert!(several == alone, "{count}: {:?} {:?}", several.0, several.1);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = Lab::on_disk();
    lab.file("one", crawl(1, 20).concat());
    hosts(&lab, 2);
    lab.run("ingest --store s --processes 2 one")
        .exits(2)
        .says(&["no --partitions"]);
    lab.run("ingest --store s --partitions 2 --processes 3 one")
        .exits(2)
        .says(&["3 processes", "2 --partitions"]);
    assert!(!lab.path("s").exists());
    lab.run("ingest --store s").exits(2);
    secret(&lab, "wrong", "another secret altogether");
    let mut first = process(&lab, "s", 0, "--partitions 2 one");
    lab.run("ingest --store s --hosts hosts --secret wrong --process 1 --wait 2s")
        .exits(7)
        .says(&["process 0", "same secret?"]);
    first
        .join()
        .exits(7)
        .says(&["refused a connection", "process 1", "did not come"]);
    // Processes that settle are others.
    lab.run("ingest --store t --partitions 2 one").exits(0);
    let mut first = process(&lab, "t", 0, "one");
    lab.run("settle --store t --hosts hosts --secret secret --process 1 --wait 2s")
        .exits(2);
    first.join().exits(7);
}
