//! `ingest --partitions`: what the commands say of such a store, against one without.

use crate::support::{Lab, crawl};

#[test]
fn commands_show_a_store_with_partitions_as_one() {
    let lab = Lab::new();
    lab.file("crawl", crawl(1, 400).concat());
    lab.run("ingest --store one --settle 1e-9 crawl").exits(0);
    lab.run("ingest --store four --settle 1e-9 --partitions 4 crawl")
        .exits(0);
    let (one, four) = (lab.stat("one"), lab.stat("four"));
    for field in ["pages", "records", "visits", "visited", "links"] {
        assert_eq!(one[field], four[field], "{field}");
    }
    assert_eq!(four["partitions"], 4);
    assert!(one.get("partitions").is_none());
    let rows =
        |stat: &serde_json::Value| (stat["rows"]["pages"].clone(), stat["rows"]["links"].clone());
    assert_eq!(rows(&one), rows(&four));
    for line in ["links http://h1.example/p1", "export --links --to tsv"] {
        let sorted = |store: &str| {
            let done = lab.run(&format!("{line} --store {store}")).exits(0);
            let mut lines: Vec<String> = done.out.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted("one"), sorted("four"), "{line}");
    }
    let moved = lab.run("compare one four").exits(0).out;
    let l1 = moved.lines().find_map(|line| line.strip_prefix("l1\t"));
    assert!(l1.unwrap().parse::<f64>().unwrap() < 1e-8, "{moved}");
    lab.run("verify --deep --store four").exits(0);
    lab.run("settle --until 1e-8 --store four")
        .exits(0)
        .says(&["nothing to do"]);
    // The same command again, and without the option: there is nothing to do.
    lab.run("ingest --store four --partitions 4 crawl").exits(0);
    lab.run("ingest --store four crawl").exits(0);
    lab.run("ingest --store four --partitions 5 crawl")
        .exits(2)
        .says(&["--partitions"]);
}

#[test]
fn what_it_cannot_do_is_refused_in_words() {
    let lab = Lab::new();
    lab.file("crawl", crawl(2, 20).concat());
    for option in [
        "--repeat 2",
        "--complete",
        "--window whole",
        "--settle none",
        "--keep-rows none",
        "--expire 30d",
    ] {
        let line = format!("ingest --store s --partitions 4 {option} crawl");
        lab.run(&line).exits(2).says(&["--partitions"]);
        assert!(!lab.path("s").exists(), "{option}");
    }
    for number in [0, 257] {
        let line = format!("ingest --store s --partitions {number} crawl");
        lab.run(&line).exits(2).says(&["from 1 to 256"]);
    }
    lab.run("convert -o crawl.cza crawl").exits(0);
    lab.run("ingest --store s --partitions 4 crawl.cza")
        .exits(2)
        .says(&["archive"]);
    assert!(!lab.path("s").exists());
    lab.run("ingest --store s --partitions 4 crawl").exits(0);
    lab.run("settle --store s --expire 30d")
        .exits(2)
        .says(&["partitions"]);
}

/// Of damage in the logs, rows and identity of a partition `verify --deep` names the file.
#[test]
fn damage_in_a_partition_is_found() {
    let lab = Lab::new();
    lab.file("crawl", crawl(3, 300).concat());
    lab.run("ingest --store s --partitions 2 crawl").exits(0);
    let rows = std::fs::read_dir(lab.path("s/parts/000/rows")).unwrap();
    let names = rows.map(|file| file.unwrap().file_name().into_string().unwrap());
    let rows = names.filter(|name| !name.contains('.')).min().unwrap();
    let rows = format!("parts/000/rows/{rows}");
    for file in [
        "addresses",
        "addresses.index",
        "parts/001/ghosts",
        "parts/001/ghosts.index",
        "parts/001/urls",
        "parts/000/fingerprints",
        &rows,
        "parts/000/identity.json",
    ] {
        let path = lab.path("s").join(file);
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.is_empty(), "{file}");
        let mut damaged = bytes.clone();
        let middle = bytes.len() / 2;
        damaged[middle] ^= 4;
        std::fs::write(&path, damaged).unwrap();
        lab.run("verify --deep --store s").exits(5).says(&[file]);
        std::fs::write(&path, bytes).unwrap();
    }
    lab.run("verify --deep --store s").exits(0);
}

/// Ways to damage a file, with another one of its kind.
fn damages(bytes: &[u8], other: &[u8]) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let flipped = |at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 4;
        Some(bytes)
    };
    let mut all = vec![
        ("lost", None),
        ("emptied", Some(Vec::new())),
        ("cut", Some(bytes[..bytes.len() / 2].to_vec())),
        ("foreign", Some(other.to_vec())),
    ];
    // Cash has two places, of which one counts.
    if !bytes.is_empty() {
        all.push(("flipped", flipped(40.min(bytes.len() - 1))));
        all.push(("flipped in the middle", flipped(bytes.len() / 2)));
    }
    all
}

/// Where cash crosses, what each command says of a store of which a file is damaged names that file, or is what it says
/// without the damage.
#[test]
fn damage_where_cash_crosses_is_named() {
    let lab = Lab::new();
    lab.file("crawl", crawl(3, 1100).concat());
    lab.file("more", crawl(4, 60).concat());
    let settings = "--partitions 2 --epoch 150 --settle none";
    lab.run(&format!("ingest --store s {settings} crawl"))
        .exits(0);
    lab.file("crawl5", crawl(5, 1100).concat());
    lab.run(&format!("ingest --store other {settings} crawl5"))
        .exits(0);
    let lines = [
        "verify --deep --store c",
        "ingest --store c more",
        "settle --store c --until 1e-3",
    ];
    let said = |store: &str, line: &str| {
        lab.copy(store, "c");
        let done = lab.run(line);
        let snapshot = lab.path("c/snapshots/latest.json").exists();
        let snapshot = snapshot.then(|| lab.snapshot("c"));
        std::fs::remove_dir_all(lab.path("c")).unwrap();
        (done, snapshot)
    };
    let sound = lines.map(|line| {
        let (done, snapshot) = said("s", line);
        done.exits(0);
        snapshot
    });
    let marks = |of: &str| {
        let marks = std::fs::read_dir(lab.path(&format!("s/{of}"))).unwrap();
        let names = marks.map(|mark| mark.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.map(|name| format!("{of}/{name}")).collect();
        assert_eq!(names.len(), 1, "a round has ended");
        names.into_iter()
    };
    let mut files: Vec<String> = ["cash", "store.redb", "identity.json"]
        .iter()
        .flat_map(|file| [(*file).into(), format!("parts/001/{file}")])
        .collect();
    files.extend(marks("marks").chain(marks("parts/000/marks")));
    let mut found = 0;
    for file in &files {
        let read = |store: &str| std::fs::read(lab.path(store).join(file)).unwrap();
        let (bytes, other) = (read("s"), read("other"));
        for (how, damaged) in damages(&bytes, &other) {
            if damaged.as_ref() == Some(&bytes) {
                continue;
            }
            lab.copy("s", "damaged");
            let path = lab.path("damaged").join(file);
            match &damaged {
                None => std::fs::remove_file(&path).unwrap(),
                Some(damaged) => std::fs::write(&path, damaged).unwrap(),
            }
            for (line, sound) in lines.iter().zip(&sound) {
                let (done, snapshot) = said("damaged", line);
                assert!(!done.err.contains("panicked"), "{file} {how}: {}", done.err);
                match done.code {
                    Some(0) => assert!(snapshot == *sound, "{file} {how}: {line}"),
                    _ => {
                        found += 1;
                        // By its path, or with the file beside it that it does not go with.
                        let (dir, name) = file.rsplit_once('/').unwrap_or(("", file));
                        let is_named = done.err.contains(dir) && done.err.contains(name);
                        assert!(is_named, "{file} {how}: {line}: {}", done.err);
                    }
                }
            }
            std::fs::remove_dir_all(lab.path("damaged")).unwrap();
        }
    }
    // All that is not there, or of another store, is found by all three; and `verify` finds what counts of the rest.
    assert!(found >= files.len() * 2 * lines.len(), "{found}");
}

/// A partition's folder of a copy that read other records: each has as many commits, and is whole by itself. The records differ
/// in content; or only in names, so that cash, counts and lengths are the same.
#[test]
fn a_partition_of_a_copy_that_went_on_otherwise_is_refused() {
    let lab = Lab::new();
    lab.file("crawl", crawl(3, 300).concat());
    lab.run("ingest --store s --partitions 2 crawl").exits(0);
    lab.file("crawl4", crawl(4, 100).concat());
    lab.file("crawl5", crawl(5, 100).concat());
    for name in ["alpha", "gamma"] {
        let record = |host: u32| {
            let page = format!("http://h{host}.example/{name}");
            serde_json::json!({ "url": page, "links": ["http://h1.example/p1"] }).to_string()
        };
        lab.file(name, (0..8).map(record).collect::<Vec<_>>().join("\n"));
    }
    // The same but for when pages were fetched, which only the history has.
    for (name, second) in [("noon", 0), ("later", 1)] {
        let record = |host: u32| {
            let page = format!("http://h{host}.example/p1");
            let time = 1_700_000_000 + if host < 8 { second } else { 9 };
            serde_json::json!({ "url": page, "links": [], "fetched_at": time }).to_string()
        };
        lab.file(name, (0..9).map(record).collect::<Vec<_>>().join("\n"));
    }
    for [own, other] in [["crawl4", "crawl5"], ["alpha", "gamma"], ["noon", "later"]] {
        let [store, copy] = [own, other].map(|more| {
            let copy = lab.copy("s", &format!("went-on-{more}"));
            lab.run(&format!("ingest --store {copy} {more}")).exits(0);
            copy
        });
        let part = |of: &str| lab.path(of).join("parts/001");
        std::fs::remove_dir_all(part(&store)).unwrap();
        std::fs::rename(part(&copy), part(&store)).unwrap();
        for line in ["verify", "settle", "settle --until 1e-3", "ingest crawl"] {
            let done = lab.run(&format!("{line} --store {store}"));
            let what = "the folder is of a copy of the store that went on with other records";
            done.exits(5).says(&["parts/001/store.redb", what]);
        }
    }
    // One that read the same is as good as its own.
    let [store, copy] = ["one", "other"].map(|name| {
        let copy = lab.copy("s", name);
        lab.run(&format!("ingest --store {copy} crawl4")).exits(0);
        copy
    });
    std::fs::remove_dir_all(lab.path(&store).join("parts/001")).unwrap();
    lab.copy(&format!("{copy}/parts/001"), &format!("{store}/parts/001"));
    lab.run(&format!("verify --deep --store {store}")).exits(0);
    lab.run(&format!("ingest --store {store} crawl5")).exits(0);
    std::fs::remove_dir_all(lab.path(&store).join("parts/001")).unwrap();
    for line in [
        "verify",
        "settle",
        "reshard --partitions 2 --to new",
        "ingest crawl",
    ] {
        let done = lab.run(&format!("{line} --store {store}"));
        done.exits(5)
            .says(&["parts/001", "the folder of this partition is missing"]);
    }
}

/// A search that writes what a crawler finds into the store needs its pages' numbers at once.
#[test]
fn a_live_search_does_not_write_to_partitions() {
    let lab = Lab::new();
    lab.file("crawl", crawl(2, 60).concat());
    lab.run("ingest --store s --partitions 2 crawl").exits(0);
    lab.run("local --live --domain host:h1.example --store s -n 1")
        .exits(2)
        .says(&["--partitions", "--live"]);
}

/// More partitions than the usual limit on open files allows: it is raised as far as the system lets a process, and where it
/// does not, that is said before there is a store.
#[test]
fn as_many_files_are_opened_as_it_takes() {
    let lab = Lab::new();
    lab.file("a", crawl(4, 300).concat());
    lab.file("b", crawl(5, 300).concat());
    let ingest = "ingest --store s --partitions 64 a";
    let refused = lab.limited("-n 400", ingest);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--partitions 64") && said.contains("ulimit -n "),
        "{said}"
    );
    assert!(!lab.path("s").exists());
    for line in [
        ingest,
        "ingest --store s b",
        "top --store s",
        "export --links --store s --to tsv",
        "links --store s http://h1.example/p1",
        "settle --store s --until 1e-7",
        "next --store s -n 10",
        "verify --deep --store s",
    ] {
        let done = lab.limited("-Sn 200", line);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{line}: {said}");
    }
    for line in ["verify --store s", "export --links --store s --to tsv"] {
        let refused = lab.limited("-n 200", line);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("ulimit -n "), "{line}: {said}");
    }
}

/// Its story: each partition looked whether its own records had times, and one that had none yet stopped an ingest.
#[test]
fn a_window_in_fetch_time_is_of_the_records_of_all_partitions() {
    let lab = Lab::new();
    let record = |page: &str, time: &str| {
        format!(
            "{{\"url\":\"https://a.example/{page}\",{time}\"links\":[\"https://b.example/\",\"https://c.example/\"]}}\n"
        )
    };
    let at = |hour: u32| format!("\"fetched_at\":\"2024-01-01T0{hour}:00:00Z\",");
    lab.file("timed", [record("", &at(0)), record("2", &at(1))].concat());
    lab.file("untimed", record("", ""));
    for partitions in [2, 3, 16] {
        let line = format!("--partitions {partitions} --epoch 1000 --max-age 10d");
        lab.run(&format!("ingest timed --store s{partitions} {line}"))
            .exits(0);
        lab.run(&format!("verify --deep --store s{partitions}"))
            .exits(0);
        lab.run(&format!("ingest untimed --store u{partitions} {line}"))
            .exits(2)
            .says(&["records have no times"]);
    }
}
