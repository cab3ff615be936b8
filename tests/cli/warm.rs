//! The warm start of the next ranking, through the command line.

use std::fs;
use std::path::PathBuf;

use crate::support::{Lab, crawl, sample};

/// Writes a crawl to `parts` files.
fn parts(lab: &Lab, records: &[String], parts: usize) -> Vec<String> {
    let part = records.chunks(records.len().div_ceil(parts));
    let write = |(at, records): (usize, &[String])| {
        lab.file(&format!("part{at}"), records.concat());
        format!("part{at}")
    };
    part.enumerate().map(write).collect()
}

/// Ingests files, one command each; returns the number of links that each ranking touched, in units of a sweep.
fn ingest_each(lab: &Lab, files: &[String], store: &str, with: &str) -> Vec<f64> {
    let ingest = |file: &String| {
        let done = lab.run(&format!("ingest {file} --store {store} --json {with}"));
        let settled = done.exits(0).json()["settled"].clone();
        assert_eq!(settled["reached"], true);
        settled["links_touched"].as_f64().unwrap() / settled["links"].as_f64().unwrap()
    };
    files.iter().map(ingest).collect()
}

/// Returns the path of the warm start.
fn warm(lab: &Lab, store: &str) -> PathBuf {
    lab.path(store).join("warm")
}

/// Returns whether the current ranking started from an earlier one.
fn is_resumed(lab: &Lab, store: &str) -> bool {
    lab.stat(store)["settled"]["resumed"] == true
}

/// Returns the ranking of `file` from nothing, made in a copy of the store.
fn cold(lab: &Lab, store: &str, file: &str) -> Vec<u8> {
    let copy = format!("{store}-cold");
    lab.copy(store, &copy);
    lab.run(&format!("ingest {file} --store {copy} --cold"))
        .exits(0);
    assert!(!is_resumed(lab, &copy));
    lab.snapshot(&copy)
}

/// Checks the printed bound against power iteration.
fn bound_is_true(lab: &Lab, store: &str) {
    let bound = lab.stat(store)["bound_l1"].as_f64().unwrap();
    let of = |text: &str, column: usize| -> std::collections::HashMap<String, f64> {
        let line = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            Some((fields[0].to_owned(), fields.get(column)?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    };
    let exact = lab.exact(store, 0.85);
    let found = of(&lab.export(store), 1);
    assert!(
        found.len() > 10 && found.len() == exact.len(),
        "{} {}",
        found.len(),
        exact.len()
    );
    let off: f64 = found.iter().map(|(url, x)| (x - exact[url]).abs()).sum();
    assert!(off <= bound + 1e-6, "{off}, {bound}");
}

#[test]
fn the_next_ranking_starts_from_the_last() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(800), 40);
    let costs = ingest_each(&lab, &files, "s", "--settle 0.01");
    bound_is_true(&lab, "s");
    let nothing = ingest_each(&lab, &[files.join(" ")], "once", "--settle 0.01");
    let late: f64 = costs[30..].iter().sum::<f64>() / 10.0;
    assert!(late < 0.8 * nothing[0], "{costs:?}, {nothing:?}");
    lab.run("verify --deep --store s").exits(0);
    // The same command again does nothing; a killed or a second run of it makes the same ranking.
    let before = fs::read(warm(&lab, "s")).unwrap();
    let again = lab.run(&format!("ingest {} --store s", files.join(" ")));
    again.exits(0).says(&["nothing to do"]);
    assert!(fs::read(warm(&lab, "s")).unwrap() == before);
}

#[test]
fn where_nothing_changed_nothing_moves() {
    let lab = Lab::new();
    lab.file("a", sample(100).concat());
    let url = sample(1)[0].split('"').nth(3).unwrap().to_owned();
    lab.file("b", format!("{{\"url\":\"{url}\",\"status\":304}}\n"));
    lab.run("ingest a --store s").exits(0);
    let column = |export: String| -> Vec<String> {
        let second = export.lines().skip(1);
        second
            .map(|line| line.split('\t').nth(1).unwrap().into())
            .collect()
    };
    let before = column(lab.export("s"));
    assert_eq!(ingest_each(&lab, &["b".into()], "s", ""), [0.0]);
    assert_eq!(column(lab.export("s")), before);
    // A file with all pages once more, with the same links.
    let again = sample(100).concat();
    lab.file("c", format!("\n{again}"));
    assert_eq!(ingest_each(&lab, &["c".into()], "s", ""), [0.0]);
    assert_eq!(column(lab.export("s")), before);
    lab.run("verify --deep --store s").exits(0);
}

/// Any damage to the warm start is reported, by `verify --deep` as well, ranking starts from nothing, and the next warm
/// start is sound.
#[test]
fn one_that_is_damaged_is_named_and_not_used() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(200), 4);
    ingest_each(&lab, &files[..3], "s", "");
    let expected = cold(&lab, "s", &files[3]);
    let flip = |at: usize| {
        move |bytes: &mut Vec<u8>| {
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 1;
        }
    };
    type Harm = Box<dyn Fn(&mut Vec<u8>)>;
    let harms: [(&str, Harm); 6] = [
        ("version", Box::new(flip(0))),
        ("head", Box::new(flip(30))),
        ("pages", Box::new(flip(400))),
        ("end", Box::new(flip(usize::MAX))),
        ("cut", Box::new(|bytes| bytes.truncate(bytes.len() / 2))),
        ("empty", Box::new(Vec::clear)),
    ];
    for (name, harm) in harms {
        lab.copy("s", name);
        let file = warm(&lab, name);
        let mut bytes = fs::read(&file).unwrap();
        harm(&mut bytes);
        fs::write(&file, bytes).unwrap();
        lab.run(&format!("verify --deep --store {name}"))
            .exits(5)
            .says(&[
                &format!("{name}/warm: "),
                "the next ranking is computed from the start",
            ]);
        lab.run(&format!("ingest {} --store {name}", files[3]))
            .exits(0)
            .says(&["warning: ", "warm", "settled from the start"]);
        assert!(lab.snapshot(name) == expected, "{name}");
        lab.file("more", crawl(3, 20).concat());
        let more = lab.run(&format!("ingest more --store {name}")).exits(0);
        assert!(!more.err.contains("warning"), "{}", more.err);
        assert!(is_resumed(&lab, name));
        lab.run(&format!("verify --deep --store {name}")).exits(0);
        bound_is_true(&lab, name);
    }
}

/// A warm start that is missing, of another store, or of other rows is ignored silently; one of fewer rows is used.
#[test]
fn one_that_does_not_fit_is_not_used() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(400), 16);
    ingest_each(&lab, &files[..14], "most", "");
    lab.copy("most", "s");
    ingest_each(&lab, &files[14..15], "s", "");
    let expected = cold(&lab, "s", &files[15]);
    ingest_each(&lab, &files[..15], "other", "");
    // A copy that was restored, and continued with other records, more of them.
    lab.copy("most", "restored");
    lab.file("longer", crawl(8, 300).concat());
    lab.run("ingest longer --store restored").exits(0);
    let puts: [(&str, Option<&str>); 4] = [
        ("gone", None),
        ("of-another", Some("other")),
        ("of-a-copy", Some("restored")),
        ("older", Some("most")),
    ];
    for (store, from) in puts {
        lab.copy("s", store);
        fs::remove_file(warm(&lab, store)).unwrap();
        if let Some(from) = from {
            fs::copy(warm(&lab, from), warm(&lab, store)).unwrap();
        }
        let done = lab
            .run(&format!("ingest {} --store {store}", files[15]))
            .exits(0);
        assert!(!done.err.contains("warning"), "{}", done.err);
        assert_eq!(is_resumed(&lab, store), store == "older");
        assert_eq!(lab.snapshot(store) == expected, store != "older", "{store}");
        bound_is_true(&lab, store);
    }
    // The longer file has the shorter one's rows up to the copy, and then others.
    fs::copy(warm(&lab, "s"), warm(&lab, "restored")).unwrap();
    lab.file("more", crawl(9, 20).concat());
    let expected = cold(&lab, "restored", "more");
    lab.run("ingest more --store restored").exits(0);
    assert!(lab.snapshot("restored") == expected);
}

/// `--cold` gives the same bytes, whatever was ranked before, and leaves a warm start. So does `settle --cold`.
#[test]
fn from_nothing_the_same_rows_give_the_same_bytes() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(400), 3);
    ingest_each(&lab, &files[..2], "often", "--snapshot-every 20");
    for file in &files[..2] {
        lab.run(&format!("ingest {file} --store seldom --settle none"))
            .exits(0);
    }
    for store in ["often", "seldom"] {
        lab.run(&format!("ingest {} --store {store} --cold", files[2]))
            .exits(0);
    }
    assert!(lab.snapshot("often") == lab.snapshot("seldom"));
    for store in ["often", "seldom"] {
        lab.run(&format!("settle --store {store} --until 1e-9 --cold"))
            .exits(0);
        assert!(!is_resumed(&lab, store));
    }
    assert!(lab.snapshot("often") == lab.snapshot("seldom"));
    assert!(fs::read(warm(&lab, "often")).unwrap().len() > 1_000);
    lab.run("settle --store often --until 1e-11").exits(0);
    assert!(is_resumed(&lab, "often"));
    // Even if the existing ranking is as accurate, or more.
    lab.run("settle --store often --until 1e-9 --cold").exits(0);
    assert!(lab.snapshot("often") == lab.snapshot("seldom"));
    lab.run("settle --store often --cold --settle-time 1s")
        .exits(2);
}

/// Anything else in its place is not used, and does not prevent a ranking.
#[test]
fn what_is_no_file_in_its_place_is_not_used() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(200), 4);
    ingest_each(&lab, &files[..3], "s", "");
    let expected = cold(&lab, "s", &files[3]);
    type Put = fn(&std::path::Path);
    let things: [(&str, Put); 3] = [
        ("folder", |at| fs::create_dir_all(at.join("with")).unwrap()),
        ("pipe", |at| {
            let made = std::process::Command::new("mkfifo").arg(at).status();
            assert!(made.unwrap().success());
        }),
        ("link", |at| {
            std::os::unix::fs::symlink("/nowhere", at).unwrap()
        }),
    ];
    for (store, put) in things {
        lab.copy("s", store);
        let at = warm(&lab, store);
        fs::remove_file(&at).unwrap();
        put(&at);
        lab.run(&format!("ingest {} --store {store}", files[3]))
            .exits(0);
        assert!(lab.snapshot(store) == expected, "{store}");
        lab.run(&format!("verify --store {store}")).exits(0);
        lab.run(&format!("settle --store {store} --until 1e-9"))
            .exits(0);
    }
}

/// Warm starts of earlier versions are removed from their folder; other files in it stay.
#[test]
fn bases_of_earlier_versions_are_removed() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(100), 2);
    ingest_each(&lab, &files[..1], "s", "");
    let base = lab.path("s/base");
    fs::create_dir(&base).unwrap();
    for name in ["12", "beside.tmp"] {
        fs::write(base.join(name), "old").unwrap();
    }
    lab.copy("s", "mine");
    fs::write(lab.path("mine/base/notes.txt"), "mine").unwrap();
    let verified = lab.run("verify --deep --store s").exits(0);
    assert!(!verified.err.contains("base"), "{}", verified.err);
    for store in ["s", "mine"] {
        ingest_each(&lab, &files[1..], store, "");
        assert!(is_resumed(&lab, store));
    }
    for (store, files) in [("s", &[][..]), ("mine", &["notes.txt"])] {
        let left = fs::read_dir(lab.path(store).join("base")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, files);
    }
}

/// Snapshots by the clock leave no warm start: the last ranking has the same bytes. After kills it agrees within its
/// bound, and from nothing it has the same bytes, too.
#[test]
fn looks_and_kills_change_nothing() {
    let lab = Lab::on_disk();
    let records = crawl(31, 900);
    let files = parts(&lab, &records, 3);
    ingest_each(&lab, &files, "plain", "");
    ingest_each(
        &lab,
        &files,
        "often",
        "--snapshot-every 1ms --checkpoint-every 1ms",
    );
    assert!(lab.snapshot("often") == lab.snapshot("plain"));
    let line =
        |file: &str, store: &str| format!("ingest {file} --store {store} --checkpoint-every 3");
    for file in &files {
        for _ in 0..3 {
            let running = lab.start(&line(file, "killed"));
            std::thread::sleep(std::time::Duration::from_millis(12));
            running.kill();
        }
        lab.run(&line(file, "killed")).exits(0);
    }
    bound_is_true(&lab, "killed");
    lab.run("verify --deep --store killed").exits(0);
    for store in ["killed", "plain"] {
        lab.file("more", crawl(32, 20).concat());
        lab.run(&format!("ingest more --store {store} --cold"))
            .exits(0);
    }
    assert!(lab.snapshot("killed") == lab.snapshot("plain"));
}

/// Rows that are read again supersede others until the row file is compacted, which the warm start of a run survives.
#[test]
fn rows_that_change_are_given_back() {
    let lab = Lab::new();
    let round = |round: usize| {
        let page = |page: usize| {
            let link =
                |at: usize| format!("\"http://a.example/{}\"", (page * 7 + round * at) % 300);
            let links: Vec<String> = (1..9).map(link).collect();
            format!(
                "{{\"url\":\"http://a.example/{page}\",\"links\":[{}]}}\n",
                links.join(",")
            )
        };
        (0..300).map(page).collect::<String>()
    };
    lab.file("all", round(1));
    lab.run("ingest all --store s").exits(0);
    for at in 2..40 {
        let lines = round(at);
        let some: String = lines
            .lines()
            .skip(at * 6)
            .take(40)
            .map(|l| format!("{l}\n"))
            .collect();
        lab.file(&format!("r{at}"), some);
        lab.run(&format!("ingest r{at} --store s")).exits(0);
        assert!(is_resumed(&lab, "s"), "{at}");
        if at % 6 == 0 {
            bound_is_true(&lab, "s");
            lab.run("verify --deep --store s").exits(0);
        }
    }
    // It was compacted in the meantime.
    assert!(!lab.path("s/rows/1").exists());
}
