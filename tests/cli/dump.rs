//! `export --records`, and `ingest` of its output: another store of the same pages with the same facts about each.

use std::collections::BTreeMap;
use std::fs;

use cashrank::Snapshot;
use cashrank_store::store::RealDisk;
use serde_json::{Value, json};

use crate::support::{Lab, crawl, data};

/// Returns what a store knows of its pages' fetches, except for the recycled cash, which belongs to the ledger.
fn facts(lab: &Lab, store: &str) -> BTreeMap<String, String> {
    let snapshot = Snapshot::latest(&RealDisk, &lab.path(store)).unwrap();
    let pages = snapshot.pages().zip(snapshot.names());
    pages
        .map(|(page, name)| {
            let mut fetches = page.unwrap().fetches;
            fetches.recycled = 0;
            (name.unwrap(), format!("{fetches:?} {:?}", fetches.state()))
        })
        .collect()
}

/// Returns the links of all pages.
fn links(lab: &Lab, store: &str) -> Vec<String> {
    let text = lab
        .run(&format!("export --links --to tsv --store {store}"))
        .exits(0)
        .out;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Dumps the store `s`, loads the dump as `t`, and compares everything that is promised. Returns the records of the
/// dump.
#[track_caller]
fn same(lab: &Lab, load: &str) -> Vec<Value> {
    let bound = |store: &str| lab.stat(store)["bound_l1"].as_f64().unwrap();
    for kind in ["jsonl.zst", "parquet"] {
        let _ = fs::remove_dir_all(lab.path("t"));
        let _ = fs::remove_file(lab.path(&format!("dump.{kind}")));
        lab.run(&format!("export --records -o dump.{kind} --store s"))
            .exits(0);
        lab.run(&format!(
            "ingest dump.{kind} --store t --settle 1e-5 {load}"
        ))
        .exits(0);
        assert_eq!(facts(lab, "s"), facts(lab, "t"), "{kind}");
        assert_eq!(links(lab, "s"), links(lab, "t"), "{kind}");
        let found = lab.run("compare s t --json").exits(0).json();
        let l1 = found["l1"].as_f64().unwrap();
        assert!(l1 <= bound("s") + bound("t"), "{kind}: {found}");
        lab.run("verify --deep --store t").exits(0);
    }
    let text = lab.run("export --records -o - --store s").exits(0).out;
    // The dump is the same in little memory.
    lab.run("export --records -o little.jsonl --store s --memory 3M")
        .exits(0);
    assert_eq!(fs::read_to_string(lab.path("little.jsonl")).unwrap(), text);
    fs::remove_file(lab.path("little.jsonl")).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let times: Vec<_> = records
        .iter()
        .map(|record| record["fetched_at"].as_str())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(records.len(), facts(lab, "s").len());
    records
}

/// Recrawls, changes, redirects, gone pages, failures and answers without change; more of them in a second file, which
/// has no times.
#[test]
fn a_crawl() {
    let lab = Lab::new();
    for (seed, options) in [(11, ""), (12, "--self-links keep"), (13, "--repeat 2")] {
        let _ = fs::remove_dir_all(lab.path("s"));
        let lines = crawl(seed, 600);
        let timeless: String = crawl(seed + 50, 60)
            .iter()
            .map(|line| line.replace("\"fetched_at\"", "\"no_time\""))
            .collect();
        lab.file("timeless", timeless);
        lab.file("in", lines.concat());
        lab.run(&format!(
            "ingest timeless in --store s --settle 1e-5 {options}"
        ))
        .exits(0);
        let load = options.replace("--repeat 2", "");
        let records = same(&lab, &load);
        let with = |field: &str| {
            records
                .iter()
                .filter(|record| record.get(field).is_some())
                .count()
        };
        for field in ["failed", "compared", "changed", "last_failed", "links"] {
            assert!(with(field) > 5, "{field}");
        }
        assert!(
            records
                .iter()
                .any(|record| record["visits"] == 0 && record.get("fetched_at").is_none())
        );
        assert!(
            records
                .iter()
                .any(|record| record["status"] == 404 && record["visits"] == 2)
        );
    }
}

/// Each state of a page, by the record that states it.
#[test]
fn states_of_pages() {
    let lab = Lab::new();
    let records = [
        json!({"url": "http://a.example/", "time": 10, "links": ["/known", "/only-failed", "/unchanged", "/later-failed"]}),
        json!({"url": "http://a.example/", "time": 20, "links": ["/known", "/only-failed", "/unchanged", "/later-failed"]}),
        json!({"url": "http://a.example/gone", "time": 30, "status": 404}),
        json!({"url": "http://a.example/only-failed", "time": 40, "status": 500}),
        json!({"url": "http://a.example/only-failed", "time": 50, "status": 500}),
        json!({"url": "http://a.example/unchanged", "time": 60, "status": 304}),
        json!({"url": "http://a.example/later-failed", "time": 15}),
        json!({"url": "http://a.example/later-failed", "time": 70, "status": 503}),
        json!({"url": "http://a.example/moved", "time": 80, "status": 301, "redirect": "/known"}),
    ];
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    lab.file("in", text);
    lab.run("ingest in --store s --settle 1e-5").exits(0);
    let found = same(&lab, "");
    let at = |seconds: u8| format!("1970-01-01T00:00:{seconds:02}Z");
    let expected = [
        json!({"url": "http://a.example/known", "visits": 0}),
        json!({"url": "http://a.example/only-failed", "visits": 0, "failed": 2, "last_failed": at(50)}),
        json!({"url": "http://a.example/later-failed", "fetched_at": at(15), "visits": 1, "failed": 1, "last_failed": "1970-01-01T00:01:10Z"}),
        json!({"url": "http://a.example/", "fetched_at": at(20), "visits": 2, "compared": 1, "watched_s": 10,
            "links": ["http://a.example/known", "http://a.example/only-failed", "http://a.example/unchanged", "http://a.example/later-failed"]}),
        json!({"url": "http://a.example/gone", "fetched_at": at(30), "status": 404, "visits": 1}),
        json!({"url": "http://a.example/unchanged", "fetched_at": "1970-01-01T00:01:00Z", "visits": 0, "compared": 1}),
        json!({"url": "http://a.example/moved", "fetched_at": "1970-01-01T00:01:20Z", "visits": 1, "links": ["http://a.example/known"]}),
    ];
    assert_eq!(found, expected);
    // The next fetch continues from there: first with the same links, then with another.
    for (links, changed) in [("\"/known\"", 0), ("\"/new\"", 1)] {
        lab.feed(
            "ingest - --store t",
            format!("{{\"url\":\"http://a.example/moved\",\"time\":90,\"links\":[{links}]}}\n")
                .as_bytes(),
        )
        .exits(0);
        let page = lab
            .run("rank http://a.example/moved --store t --json")
            .exits(0)
            .json();
        assert_eq!(page["changed"], changed, "{page}");
    }
}

/// Weights are dumped as they are kept, which includes the effect of `--follow`.
#[test]
fn weights() {
    let lab = Lab::new();
    let lines: String = (0..300u64)
        .map(|at| {
            let link = |step: u64| {
                let weight = at * step % 5;
                json!({"url": format!("http://h{}.example/{}", step % 3, at * step % 211), "weight": weight, "nofollow": step == 7})
            };
            let links: Vec<_> = [3, 7, 11].into_iter().map(link).collect();
            format!("{}\n", json!({"url": format!("http://h.example:8080/{at}%20b?q=%7B1%7D'"), "links": links}))
        })
        .collect();
    lab.file("in", lines);
    lab.run("ingest in --store s --settle 1e-5 --follow nofollow=3,external=2")
        .exits(0);
    let records = same(&lab, "");
    assert!(
        records
            .iter()
            .any(|record| record.get("links_weight").is_some())
    );
}

/// A graph: names that are not URLs, and targets that were visited as pages without links.
#[test]
fn opaque_names() {
    let lab = Lab::new();
    let graph: String = (0..200u64)
        .map(|at| {
            format!(
                "n{at}\tn{}\tn{}\thttp://A.example\n",
                at * 7 % 230,
                at * 11 % 230
            )
        })
        .chain((200..230).map(|at| format!("n{at}\n")))
        .chain(["http://A.example\n".into()])
        .collect();
    lab.file("in", graph);
    lab.run("ingest in --format adjacency --store s --settle 1e-5")
        .exits(0);
    let records = same(&lab, "");
    assert!(
        records
            .iter()
            .all(|record| record["node"].is_string() && record["visits"] == 1)
    );
}

#[test]
fn what_cannot_be_dumped_or_loaded() {
    let lab = Lab::new();
    lab.file("in", crawl(21, 100).concat());
    lab.run("ingest in --store bare --keep-links none").exits(0);
    lab.run("export --records -o d.jsonl --store bare")
        .exits(2)
        .says(&["keep"]);
    lab.run("ingest in --store s").exits(0);
    lab.run("export --records --to tsv -o d.jsonl --store s")
        .exits(2);
    lab.run("export -o d.jsonl --store s")
        .exits(2)
        .says(&["--to"]);
    lab.run("export --records -o d.csv --store s")
        .exits(2)
        .says(&[".jsonl.zst"]);
    assert!(!lab.path("d.jsonl").exists());
    for (counts, says) in [
        ("\"visits\":-1", "`visits`"),
        ("\"visits\":4294967296", "`visits`"),
        ("\"visits\":1,\"failed\":true", "`failed`"),
        ("\"visits\":1,\"last_failed\":\"soon\"", "`last_failed`"),
        ("\"visits\":2,\"compared\":1,\"changed\":2", "`changed`"),
    ] {
        lab.file(
            "bad",
            format!("{{\"url\":\"http://a.example/\",{counts}}}\n"),
        );
        lab.run("ingest bad --store x")
            .exits(3)
            .says(&["malformed", says]);
    }
    // A page with another's content is visited by that, whatever the totals say.
    lab.file(
        "same",
        "{\"url\":\"http://a.example/\",\"visits\":0,\"revisit\":\"http://b.example/\"}\n",
    );
    lab.run("ingest same --store z").exits(0);
    lab.run("verify --deep --store z").exits(0);
    // Without visits the other names mean nothing.
    lab.file(
        "other",
        "{\"url\":\"http://a.example/\",\"failed\":true,\"changed\":\"x\",\"links\":[]}\n",
    );
    lab.run("ingest other --store y").exits(0);
}

/// Real crawls, where they are.
#[test]
fn real_crawls() {
    let lab = Lab::new();
    let names = [
        "boost/boost-crawl-1.74.warc.gz",
        "boost/boost-crawl-1.81.warc.gz",
    ];
    let inputs: Vec<String> = names
        .into_iter()
        .filter_map(data)
        .map(|path| path.display().to_string())
        .collect();
    if inputs.len() == 2 {
        lab.run(&format!(
            "ingest {} --store s --settle 1e-5",
            inputs.join(" ")
        ))
        .exits(0);
        same(&lab, "");
    }
}
