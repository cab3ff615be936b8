//! The settled base: what the next ranking starts from, through the command line.

use std::fs;
use std::path::PathBuf;

use crate::support::{Lab, crawl, sample};

/// Files of a crawl in so many parts.
fn parts(lab: &Lab, records: &[String], parts: usize) -> Vec<String> {
    let part = records.chunks(records.len().div_ceil(parts));
    let write = |(at, records): (usize, &[String])| {
        lab.file(&format!("part{at}"), records.concat());
        format!("part{at}")
    };
    part.enumerate().map(write).collect()
}

/// Ingests files, one command each; the links that each ranking went over, in sweeps' worth.
fn ingest_each(lab: &Lab, files: &[String], store: &str, with: &str) -> Vec<f64> {
    let ingest = |file: &String| {
        let done = lab.run(&format!("ingest {file} --store {store} --json {with}"));
        let settled = done.exits(0).json()["settled"].clone();
        assert_eq!(settled["reached"], true);
        settled["links_touched"].as_f64().unwrap() / settled["links"].as_f64().unwrap()
    };
    files.iter().map(ingest).collect()
}

/// The file of the base.
fn base(lab: &Lab, store: &str) -> PathBuf {
    let mut files = fs::read_dir(lab.path(store).join("base")).unwrap();
    let only = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    only
}

/// The bound that was printed holds, beside the program's other way to PageRank.
fn bound_is_true(lab: &Lab, store: &str) {
    let bound = lab.stat(store)["bound_l1"].as_f64().unwrap();
    let exact = lab
        .run(&format!("pagerank --store {store} --to tsv"))
        .exits(0)
        .out;
    let of = |text: &str, column: usize| -> std::collections::HashMap<String, f64> {
        let line = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            Some((fields[0].to_owned(), fields.get(column)?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    };
    let exact = of(&exact, 1);
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
    // The same again is nothing to do; a killed or a second run of it makes no other.
    let before = fs::read(base(&lab, "s")).unwrap();
    let again = lab.run(&format!("ingest {} --store s", files.join(" ")));
    again.exits(0).says(&["nothing to do"]);
    assert!(fs::read(base(&lab, "s")).unwrap() == before);
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
    // A file of all pages once more, with the same links.
    let again = sample(100).concat();
    lab.file("c", format!("\n{again}"));
    assert_eq!(ingest_each(&lab, &["c".into()], "s", ""), [0.0]);
    assert_eq!(column(lab.export("s")), before);
    lab.run("verify --deep --store s").exits(0);
}

/// Whatever is wrong with a base: it is named, ranking starts from nothing, and the next base is sound.
#[test]
fn a_base_that_is_damaged_is_named_and_not_used() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(200), 4);
    let path = |store: &str| base(&lab, store);
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
    // What a ranking from nothing of the last file's state is.
    for (name, harm) in harms {
        let store = format!("s-{name}");
        ingest_each(&lab, &files[..3], &store, "");
        let file = path(&store);
        let mut bytes = fs::read(&file).unwrap();
        harm(&mut bytes);
        fs::write(&file, bytes).unwrap();
        lab.run(&format!("verify --store {store}"))
            .exits(5)
            .says(&["base/", "damaged"]);
        lab.run(&format!("ingest {} --store {store}", files[3]))
            .exits(0)
            .says(&["warning: ", "base/", "settled from the start"]);
        bound_is_true(&lab, &store);
        lab.run(&format!("verify --deep --store {store}")).exits(0);
    }
    // One that is gone.
    ingest_each(&lab, &files[..3], "gone", "");
    fs::remove_file(path("gone")).unwrap();
    lab.run(&format!("ingest {} --store gone", files[3]))
        .exits(0)
        .says(&["warning: ", "base/", "missing"]);
    lab.run("verify --deep --store gone").exits(0);
    // All of them come to the same: a ranking from nothing.
    let kept = lab.snapshot("gone");
    assert!(lab.snapshot("s-cut") == kept && lab.snapshot("s-pages") == kept);
}

/// Where no record comes any more, settling makes a base in the place of one that is lost or damaged.
#[test]
fn settling_mends_a_base() {
    let lab = Lab::new();
    lab.file("a", sample(200).concat());
    ingest_each(&lab, &["a".into()], "s", "");
    let bound = || lab.stat("s")["bound_l1"].as_f64().unwrap();
    let before = bound();
    let harms: [fn(&std::path::Path); 2] = [
        |file| fs::remove_file(file).unwrap(),
        |file| {
            let mut bytes = fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(file, bytes).unwrap();
        },
    ];
    for harm in harms {
        harm(&base(&lab, "s"));
        lab.run("verify --store s").exits(5).says(&["base/"]);
        lab.run("settle --store s --until 0.01").exits(0);
        lab.run("verify --deep --store s").exits(0);
        bound_is_true(&lab, "s");
        assert!(bound() <= before);
        let again = lab.run("settle --store s --until 0.01");
        again.exits(0).says(&["nothing to do"]);
    }
    lab.file("none", "");
    lab.run("ingest none --store empty").exits(3);
    let empty = lab.run("settle --store empty");
    empty.exits(2).says(&["there are no pages"]);
}

/// Something else in a base's place is a base that is damaged, and other people's files beside it stay.
#[test]
fn what_is_no_file_in_the_place_of_a_base_is_not_used() {
    let lab = Lab::new();
    let files = parts(&lab, &sample(200), 4);
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
        ingest_each(&lab, &files[..3], store, "");
        let at = base(&lab, store);
        fs::remove_file(&at).unwrap();
        put(&at);
        let own = at.with_file_name("notes.txt");
        fs::write(&own, "mine").unwrap();
        lab.run(&format!("ingest {} --store {store}", files[3]))
            .exits(0)
            .says(&["warning: ", "base/", "settled from the start"]);
        bound_is_true(&lab, store);
        lab.run(&format!("verify --store {store}")).exits(0);
        lab.run(&format!("settle --store {store} --until 1e-9"))
            .exits(0);
        assert_eq!(fs::read(own).unwrap(), b"mine");
    }
}

/// A stop makes no base where it stopped, and looks by the clock make none: the same command goes on, and ends with the
/// same bytes.
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
    assert!(lab.snapshot("killed") == lab.snapshot("plain"));
    lab.run("verify --deep --store killed").exits(0);
}

/// Rows that are read again supersede others until the row file is compacted: the base's rows stay until there is another.
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
        if at % 6 == 0 {
            bound_is_true(&lab, "s");
            lab.run("verify --deep --store s").exits(0);
        }
    }
    // It was compacted on the way.
    let store = base(&lab, "s")
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    assert!(store.join("rows").exists() && !store.join("rows/1").exists());
}
