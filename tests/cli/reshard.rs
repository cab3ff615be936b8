//! `cashrank reshard`: a store with another number of partitions is as if it had been made with that number.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Done, Lab, await_that, crawl};

/// Records of pages of some hosts that are fetched in two halves: with times, content, failures, gone and unchanged pages. Each page
/// has the same links in both, but one in seven, and one in five has a digest of its content.
fn fetched(half: u32) -> String {
    let url = |page: u32| format!("http://h{}.example/p{page}", page % 11);
    let record = |page: u32| {
        let shift = if page.is_multiple_of(7) { half } else { 0 };
        let links: Vec<String> = (1..5)
            .map(|k| url((page * 13 + k * 31 + shift * 5) % 180))
            .collect();
        let at = 1_700_000_000 + i64::from(half * 100_000 + page * 10);
        let mut record = json!({"url": url(page), "links": links, "fetched_at": at});
        match (page + half * 40) % 23 {
            0 => record["status"] = 503.into(),
            1 => record["status"] = 404.into(),
            2 => record["status"] = 304.into(),
            _ => {}
        }
        if page.is_multiple_of(5) {
            record["digest"] = format!("content {}", page * (half % 2)).into();
        }
        record.to_string() + "\n"
    };
    // The second half reads most pages again, and some that were only linked to.
    (half * 20..120 + half * 20).map(record).collect()
}

/// A lab with both halves, and a store of the first with so many partitions.
fn lab(partitions: u32) -> Lab {
    let lab = Lab::on_disk();
    lab.file("first", fetched(0));
    lab.file("second", fetched(1));
    lab.run(&format!(
        "ingest --store old --partitions {partitions} first"
    ))
    .exits(0);
    lab
}

fn sorted(done: Done) -> Vec<String> {
    let mut lines: Vec<String> = done.out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// What is known of all pages, but for their ranks: names in their order, links, and what fetches found.
fn known(lab: &Lab, store: &str) -> Vec<Vec<String>> {
    let lines = [
        "export --links --to tsv",
        "export --to jsonl",
        "next -n 1000 --refetch --to jsonl",
        "next -n 1000 --strategy backlink --to jsonl",
    ];
    let stat = lab.stat(store);
    let fields = [
        "pages",
        "records",
        "visits",
        "visited",
        "links",
        "gone",
        "failed",
        "unchanged",
        "rows",
    ];
    let counts = fields.map(|field| {
        let mut value = stat[field].clone();
        if let Some(rows) = value.as_object_mut() {
            rows.retain(|name, _| ["pages", "links"].contains(&&**name));
        }
        format!("{field} {value}")
    });
    let lists = lines.map(|line| {
        let done = lab.run(&format!("{line} --store {store}")).exits(0);
        assert!(!done.out.is_empty(), "{line}");
        let mut done = Done {
            out: done.out,
            ..done
        };
        if line.contains("jsonl") {
            let without = |line: &str| {
                let mut page: Value = serde_json::from_str(line).unwrap();
                for ranked in ["importance", "rank", "cash", "score", "bound"] {
                    page.as_object_mut().unwrap().remove(ranked);
                }
                format!("{page}\n")
            };
            done.out = done.out.lines().map(without).collect();
        }
        sorted(done)
    });
    [counts.to_vec()].into_iter().chain(lists).collect()
}

/// Removes what importance was settled to, so that the next ranking starts as one of a new store.
fn without_base(lab: &Lab, store: &str) {
    let mut removed = 0;
    let parts = fs::read_dir(lab.path(store).join("parts"))
        .into_iter()
        .flatten();
    let parts = parts.map(|part| part.unwrap().path());
    for store in parts.chain([lab.path(store)]) {
        removed += usize::from(fs::remove_dir_all(store.join("base")).is_ok());
    }
    assert!(removed > 0);
}

/// Where all rows of a new partition come from one of the old ones, their order is that of the crawl: the next ranking has the
/// bytes of one that was made with that number from the start.
#[test]
fn what_follows_is_as_if_there_had_been_as_many_from_the_start() {
    for (before, after) in [(1, 3), (2, 6), (1, 16)] {
        let lab = lab(before);
        without_base(&lab, "old");
        lab.run(&format!(
            "reshard --store old --partitions {after} --to new"
        ))
        .exits(0)
        .says(&["from the start"]);
        lab.run("verify --deep --store new").exits(0);
        lab.run("ingest --store new first second").exits(0);
        assert_eq!(lab.stat("new")["partitions"], after);
        lab.run(&format!(
            "ingest --store whole --partitions {after} first second"
        ))
        .exits(0);
        assert_eq!(
            known(&lab, "new"),
            known(&lab, "whole"),
            "{before} to {after}"
        );
        assert!(
            lab.export("new") == lab.export("whole"),
            "{before} to {after}"
        );
        lab.run("verify --deep --store new").exits(0);
    }
}

/// From any number to any other: the same graph and facts, and rankings that differ by no more than their bounds.
#[test]
fn all_that_is_known_is_carried_over() {
    for (before, after) in [(1, 4), (3, 2), (4, 1), (5, 7), (2, 40)] {
        let lab = lab(before);
        let to = format!("reshard --store old --partitions {after} --to new --json");
        let made = lab.run(&to).exits(0).json();
        assert_eq!(made["partitions_before"], before);
        assert_eq!(made["settled"], true);
        lab.run(&format!("ingest --store whole --partitions {after} first"))
            .exits(0);
        lab.run("settle --store new --until 1e-3").exits(0);
        assert_eq!(
            known(&lab, "new"),
            known(&lab, "whole"),
            "{before} to {after}"
        );
        assert_eq!(
            known(&lab, "new"),
            known(&lab, "old"),
            "{before} to {after}"
        );
        // Rankings of the first half, and of both.
        for more in ["", "first second"] {
            for store in ["new", "whole"].iter().filter(|_| !more.is_empty()) {
                lab.run(&format!("ingest --store {store} --settle 1e-6 {more}"))
                    .exits(0);
                lab.run(&format!("verify --deep --store {store}")).exits(0);
            }
            let bound = |store: &str| lab.stat(store)["bound_l1"].as_f64();
            let bounds = bound("new")
                .zip(bound("whole"))
                .map(|(one, other)| one + other);
            let moved = lab.run("compare new whole").exits(0).out;
            let l1 = moved.lines().find_map(|line| line.strip_prefix("l1\t"));
            let l1: f64 = l1.unwrap().parse().unwrap();
            assert!(l1 <= bounds.unwrap_or(2e-2), "{before} to {after}: {l1}");
        }
        assert_eq!(
            known(&lab, "new"),
            known(&lab, "whole"),
            "{before} to {after}"
        );
        lab.run("verify --deep --store old").exits(0);
    }
}

/// There and back: the ranking starts from what it was settled to, so that nothing is left to settle, and is the same to the
/// last bit.
#[test]
fn there_and_back_is_the_same_store() {
    for (there, back) in [(1, 4), (4, 1), (3, 5)] {
        let lab = lab(there);
        lab.run(&format!(
            "reshard --store old --partitions {back} --to other"
        ))
        .exits(0);
        lab.run(&format!(
            "reshard --store other --partitions {there} --to again"
        ))
        .exits(0);
        for store in ["other", "again"] {
            lab.run(&format!("settle --until 1e-2 --store {store}"))
                .exits(0);
            lab.run(&format!("verify --deep --store {store}")).exits(0);
            assert!(
                lab.export(store) == lab.export("old"),
                "{there} to {back}: {store}"
            );
            assert_eq!(
                known(&lab, store),
                known(&lab, "old"),
                "{there} to {back}: {store}"
            );
        }
    }
}

/// Partition by partition or all at once, by one thread or more: the same files.
#[test]
fn turns_and_threads_make_no_difference() {
    let lab = lab(2);
    let options = [
        "",
        "--resident 1",
        "--resident 2 --threads 1",
        "--threads 8",
    ];
    let made = options.iter().enumerate().map(|(number, options)| {
        lab.run(&format!(
            "reshard --store old --partitions 5 --to new{number} {options}"
        ))
        .exits(0);
        let store = lab.path(&format!("new{number}"));
        let mut files = Vec::new();
        for part in 0..5 {
            let dir = store.join(format!("parts/{part:03}"));
            for name in ["urls", "fingerprints", "ghosts", "rows/1", "cash"] {
                files.push(fs::read(dir.join(name)).unwrap());
            }
        }
        files.push(fs::read(store.join("addresses")).unwrap());
        files
    });
    let made: Vec<_> = made.collect();
    assert!(made.iter().all(|files| *files == made[0]));
}

/// A stream that was cut off continues in the new store, from what its spool has.
#[test]
fn a_spooled_stream_goes_on() {
    let lab = Lab::on_disk();
    let lines = crawl(7, 600);
    let line = "ingest - --store old --spool --settle 1e-6 --snapshot-every 100";
    let mut running = lab.start(&format!("{line} --partitions 2"));
    running.write(lines[..350].concat().as_bytes());
    lab.await_snapshot("old", 100);
    await_that("bytes are durable", || {
        let acked = fs::read_to_string(lab.path("old/spool/acked")).unwrap_or_default();
        let acked = acked
            .split("\"acked\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next()?.trim().parse().ok());
        acked.is_some_and(|acked: u64| acked >= lines[..350].concat().len() as u64)
    });
    assert!(running.kill());
    lab.run("reshard --store old --partitions 3 --to new")
        .exits(0);
    lab.run("verify --deep --store new").exits(0);
    let rest = lines[350..].concat();
    let line = line.replace("old", "new");
    lab.feed(&line, rest.as_bytes()).exits(0);
    lab.file("all", lines.concat());
    lab.run("ingest --store whole --partitions 3 --settle 1e-6 all")
        .exits(0);
    assert_eq!(lab.stat("new")["records"], lab.stat("whole")["records"]);
    assert_eq!(known(&lab, "new"), known(&lab, "whole"));
}

/// Epochs stay, or are as is said, and the books of the new store balance: `verify` checks that, and so does each checkpoint. A
/// ranking by its cash is no farther from one that is settled than both promise.
#[test]
fn a_store_gets_and_keeps_epochs() {
    let lab = Lab::on_disk();
    lab.file("first", crawl(6, 700).concat());
    lab.file("second", crawl(7, 1300).concat());
    lab.run("ingest --store one --settle 1e-6 first").exits(0);
    lab.run("ingest --store four --partitions 4 --epoch 90 --settle 1e-6 first")
        .exits(0);
    let ways = [
        ("four", "--partitions 3", json!(90)),
        ("four", "--partitions 8 --epoch 30", json!(30)),
        ("four", "--partitions 4 --epoch 91", json!(91)),
        ("four", "--partitions 1", Value::Null),
        ("one", "--partitions 4 --epoch 90", json!(90)),
    ];
    for (at, (old, options, epoch)) in ways.into_iter().enumerate() {
        let new = format!("new{at}");
        lab.run(&format!("reshard --store {old} {options} --to {new}"))
            .exits(0);
        lab.run(&format!("verify --deep --store {new}")).exits(0);
        for (input, rounds) in [("first", 0), ("second", 1)] {
            let line = format!("ingest --store {new} --settle 1e-9 {input} --checkpoint-every 64");
            lab.run(&line).exits(0);
            lab.run(&format!("settle --store {new} --until 1e-9"))
                .exits(0);
            lab.run(&format!("verify --deep --store {new}")).exits(0);
            let stat = lab.stat(&new);
            assert_eq!(stat["epoch"], epoch, "{options}");
            if epoch.is_u64() {
                assert!(stat["rounds"].as_u64() >= Some(rounds), "{options}: {stat}");
            }
            lab.copy(&new, "settled");
            lab.file("third", crawl(8, 1).concat());
            for (store, settle) in [("settled", "1e-9"), (&*lab.copy(&new, "window"), "none")] {
                lab.run(&format!("ingest --store {store} --settle {settle} third"))
                    .exits(0);
            }
            let bound = |store: &str| lab.stat(store)["bound_l1"].as_f64().unwrap_or(2.0);
            let promised = bound("settled") + bound("window");
            let moved = lab.run("compare settled window").exits(0).out;
            let l1 = moved.lines().find_map(|line| line.strip_prefix("l1\t"));
            let l1: f64 = l1.unwrap().parse().unwrap();
            assert!(l1 > 0.0 && l1 <= promised, "{options}: {l1} {promised}");
            fs::remove_dir_all(lab.path("settled")).unwrap();
            fs::remove_dir_all(lab.path("window")).unwrap();
        }
    }
    lab.run("reshard --store four --partitions 4 --to new")
        .exits(2)
        .says(&["already"]);
    lab.run("reshard --store four --partitions 1 --epoch 5 --to new")
        .exits(2)
        .says(&["--epoch"]);
    lab.run("ingest --store w --partitions 4 --epoch 90 --window whole first")
        .exits(0);
    lab.run("reshard --store w --partitions 3 --to new")
        .exits(2)
        .says(&["--window"]);
}

/// A store of several passes gets partitions, and loses them again, with all that is known; more passes follow. Not from inside
/// one: the rest of it would be other pages.
#[test]
fn a_store_of_several_passes() {
    let lab = lab(1);
    lab.run("ingest --store of1 --repeat 3 --partitions 1 first")
        .exits(0);
    lab.run("reshard --store of1 --partitions 4 --epoch 50 --to of4")
        .exits(0);
    lab.run("reshard --store of4 --partitions 1 --to again")
        .exits(0);
    let before = known(&lab, "of1");
    for (store, partitions) in [("of4", 4), ("again", 1)] {
        lab.run(&format!("settle --store {store} --until 1e-9"))
            .exits(0);
        assert_eq!(known(&lab, store), before);
        let line = format!("ingest --store {store} --partitions {partitions} --repeat 3 first");
        lab.run(&line).exits(0).says(&["nothing to do"]);
        let visits = |store: &str| lab.stat(store)["visits"].as_u64().unwrap();
        let (visited, rows) = (visits(store), lab.stat(store)["rows"]["pages"].as_u64());
        lab.run(&line.replace("--repeat 3", "--repeat 5")).exits(0);
        assert_eq!(visits(store), visited + 2 * rows.unwrap());
        lab.run(&format!("verify --deep --store {store}")).exits(0);
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let lab = lab(2);
    let refused = |line: &str, code: i32, words: &[&str]| {
        lab.run(&format!("reshard {line}")).exits(code).says(words);
        assert!(!lab.path("new").exists(), "{line}");
        let left = lab
            .names()
            .into_iter()
            .filter(|name| name.contains("unfinished"));
        assert_eq!(left.count(), 0, "{line}");
    };
    refused(
        "--store old --partitions 2 --to new",
        2,
        &["--partitions 2", "already"],
    );
    refused(
        "--store old --partitions 257 --to new",
        2,
        &["from 1 to 256"],
    );
    refused(
        "--store none --partitions 3 --to new",
        2,
        &["not a cashrank store"],
    );
    refused(
        "--store old --partitions 3 --to first",
        2,
        &["is there already", "name a new folder"],
    );
    refused(
        "--store old --partitions 3 --to old",
        2,
        &["is there already"],
    );
    std::os::unix::fs::symlink("nowhere", lab.path("link")).unwrap();
    refused(
        "--store old --partitions 3 --to link",
        2,
        &["is there already"],
    );
    // Its story: an ingest took a store that was put among the old store's rows for one of these.
    for inside in ["old/new", "old/rows/2", "old/parts/../x"] {
        refused(
            &format!("--store old --partitions 3 --to {inside}"),
            2,
            &["in the store old", "outside"],
        );
    }
    refused(
        "--store old --partitions 3 --to nowhere/new",
        7,
        &["nowhere"],
    );
    refused(
        "--store old --partitions 3 --to new --memory 1M",
        8,
        &["--memory", "--resident"],
    );
    for (options, words) in [
        ("--window whole", "--window"),
        ("--max-age 90d", "--max-age"),
        ("--repeat 2", "--epoch"),
        ("--complete", "--complete"),
        ("--keep-rows none", "--keep-rows"),
    ] {
        let store = format!("s{}", options.split(' ').next().unwrap());
        lab.run(&format!(
            "ingest --store {store} --partitions 1 {options} first"
        ))
        .exits(0);
        refused(
            &format!("--store {store} --partitions 3 --to new"),
            2,
            &[words],
        );
    }
    // Somebody writes.
    let mut running = lab.start("ingest - --store old --partitions 2");
    running.write(fetched(1).as_bytes());
    await_that("it is open", || {
        let verified = lab.run("verify --store old");
        verified.out.contains("not checked")
    });
    refused("--store old --partitions 3 --to new", 6, &["old"]);
    running.end().exits(0);
    lab.run("reshard --store old --partitions 3 --to new")
        .exits(0);
}

/// It is killed anywhere, or stopped: the old store is as it was, the new one is whole or not there, and the command done again
/// leaves nothing else.
#[test]
fn a_kill_leaves_the_old_store_and_no_half_of_a_new_one() {
    let lab = Lab::on_disk();
    lab.file("crawl", crawl(5, 6000).concat());
    lab.run("ingest --store old crawl").exits(0);
    let before = lab.names();
    let line = "reshard --store old --partitions 8 --to new";
    let started = std::time::Instant::now();
    lab.run(line).exits(0);
    let lasts = started.elapsed();
    let export = |store: &str| {
        sorted(
            lab.run(&format!("export --links --to tsv --store {store}"))
                .exits(0),
        )
    };
    lab.run("settle --store new").exits(0);
    let links = export("new");
    fs::remove_dir_all(lab.path("new")).unwrap();
    let mut killed = 0;
    for cut in 0..24 {
        let is_interrupted = cut % 6 == 5;
        if is_interrupted {
            // One that is interrupted at once leaves there what the kill before it left.
            let _ = fs::remove_dir_all(lab.path("new.unfinished"));
        }
        let running = lab.start(line);
        std::thread::sleep(lasts * cut / 20);
        if is_interrupted {
            running.await_handler();
            running.signal("INT");
            let done = running.end();
            assert!([Some(0), Some(130)].contains(&done.code), "{done:?}");
            if done.code == Some(130) {
                assert_eq!(lab.names(), before);
            }
        } else {
            killed += u32::from(running.kill());
        }
        if lab.path("new").exists() {
            lab.run("verify --deep --store new").exits(0);
            fs::remove_dir_all(lab.path("new")).unwrap();
        }
    }
    assert!(killed > 3, "{killed} of 24 were killed");
    lab.run("verify --deep --store old").exits(0);
    lab.run(line).exits(0);
    let mut after = lab.names();
    after.retain(|name| name != "new");
    assert_eq!(after, before);
    lab.run("settle --store new").exits(0);
    assert_eq!(export("new"), links);
}

/// Names that users gave are left alone: a folder that another program made is not emptied.
#[test]
fn a_folder_of_the_users_is_not_taken() {
    let lab = lab(1);
    fs::create_dir_all(lab.path("new.unfinished/store")).unwrap();
    lab.file("new.unfinished/reshard", "my notes");
    lab.run("reshard --store old --partitions 3 --to new")
        .exits(0);
    assert_eq!(
        fs::read(lab.path("new.unfinished/reshard")).unwrap(),
        b"my notes"
    );
    assert!(lab.path("new.unfinished/store").exists());
    lab.run("verify --deep --store new").exits(0);
}
