//! Answers of the service about failures, searches, incoming links, movers, and its own end.

use serde_json::{Value, json};

use crate::serve::{address, ask, encoded, get};
use crate::support::{Lab, await_that, crawl};

const RECORDS: &str = r#"{"url":"http://a.example/","status":200,"links":["/news","/old","/b","http://b.example/News","http://b.example/down","http://c.example/later"]}
{"url":"http://a.example/news","status":200,"links":["/","http://c.example/later"]}
{"url":"http://a.example/old","status":404}
{"url":"http://a.example/b","status":503}
{"url":"http://b.example/News","status":410}
{"url":"http://b.example/down","status":200,"links":["http://a.example/news"]}
{"url":"http://b.example/down","status":500}
"#;

fn urls(list: &Value) -> Vec<&str> {
    let mut urls: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|page| page["url"].as_str().unwrap())
        .collect();
    urls.sort_unstable();
    urls
}

/// Seven pages: five were visited, two of them are gone; two failed at their last fetch.
#[test]
fn failures_and_searches_find_what_the_records_say() {
    let lab = Lab::on_disk();
    lab.file("a.jsonl", RECORDS);
    lab.run("ingest a.jsonl --store s").exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);

    let failures = ask(address, "/failures");
    assert_eq!(
        (&failures["failed"], &failures["gone"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        failures["hosts"],
        json!([
            {"host": "a.example", "failed": 1, "gone": 1},
            {"host": "b.example", "failed": 1, "gone": 1},
        ])
    );
    assert_eq!(
        urls(&failures["best_failed"]),
        ["http://a.example/b", "http://b.example/down"]
    );
    assert_eq!(
        urls(&failures["best_gone"]),
        ["http://a.example/old", "http://b.example/News"]
    );
    assert_eq!(
        ask(address, "/failures?n=1")["hosts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let counts = |path: &str| {
        let found = ask(address, path);
        [
            "pages", "searched", "found", "visited", "frontier", "failed", "gone",
        ]
        .map(|count| found[count].as_u64().unwrap())
    };
    assert_eq!(counts("/search"), [7, 7, 7, 5, 2, 2, 2]);
    assert_eq!(counts("/search?text=NEWS"), [7, 7, 2, 2, 0, 0, 1]);
    assert_eq!(
        counts("/search?scope=host%3Ab.example"),
        [7, 7, 2, 2, 0, 1, 1]
    );
    assert_eq!(
        counts("/search?text=news&scope=host%3Aa.example"),
        [7, 7, 1, 1, 0, 0, 0]
    );
    // Pages come in order of first appearance: the first three are /, /news and /old.
    assert_eq!(counts("/search?within=3"), [7, 3, 3, 3, 0, 0, 1]);
    let found = ask(address, "/search?text=example%2F&n=2");
    let top = lab.run("top -n 2 --json --store s").exits(0).json();
    assert_eq!(urls(&found["best"]), urls(&top["top"]));
    assert_eq!(
        urls(&ask(address, "/search?scope=host%3Ac.example")["best_frontier"]),
        ["http://c.example/later"]
    );

    // All incoming links of a page, among all links or the first few.
    let later = format!("/links?in&url={}", encoded("http://c.example/later"));
    let to = ask(address, &later);
    assert_eq!(
        urls(&to["links"]),
        ["http://a.example/", "http://a.example/news"]
    );
    assert_eq!(
        (&to["count"], &to["links_read"], &to["links_kept"]),
        (&json!(2), &json!(9), &json!(9))
    );
    assert_eq!(
        (&to["visited"], &to["gone"]),
        (&json!(false), &json!(false))
    );
    let first = ask(address, &format!("{later}&within=6"));
    assert_eq!(
        (&first["count"], &first["links_read"]),
        (&json!(1), &json!(6))
    );
    let old = format!("/links?url={}", encoded("http://a.example/old"));
    for old in [&old, &format!("{old}&in")] {
        let old = ask(address, old);
        assert_eq!(
            (&old["visited"], &old["gone"]),
            (&json!(true), &json!(true))
        );
    }
    for wrong in [
        "/search?text=",
        "/links?url=a&within=1",
        "/failures?scope=x",
    ] {
        assert_eq!(get(address, wrong).0, 400, "{wrong}");
    }
}

/// Gone and failing pages are known even if no links are kept.
#[test]
fn gone_and_failing_pages_are_known_without_links() {
    let lab = Lab::on_disk();
    lab.file("a.jsonl", RECORDS);
    lab.run("ingest a.jsonl --store s --keep-links none")
        .exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    for path in ["/failures", "/search"] {
        let found = ask(address, path);
        assert_eq!(
            (&found["failed"], &found["gone"]),
            (&json!(2), &json!(2)),
            "{path}"
        );
    }
}

/// Movers are those of `compare --moved`; links come in the order of the command.
#[test]
fn movers_and_links_are_those_of_the_commands() {
    let lab = Lab::on_disk();
    lab.file("a.jsonl", crawl(1, 300).concat());
    lab.file("b.jsonl", crawl(2, 300).concat());
    lab.run("ingest a.jsonl --store s").exits(0);
    lab.run("ingest a.jsonl b.jsonl --store s").exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    for (path, option) in [("", ""), ("&certain-only", " --certain-only")] {
        let answer = ask(address, &format!("/movers?n=1000{path}"));
        let line = format!("compare s --snapshot 300 --moved 1000 --json{option}");
        let found = lab.run(&line).exits(0).json();
        for sum in [
            "common_pages",
            "new_pages",
            "unchanged_pages",
            "diluted_pages",
            "l1",
            "margin",
        ] {
            assert_eq!(answer[sum], found[sum], "{sum}");
        }
        let both = [&found["rose"], &found["fell"]].map(|list| list.as_array().unwrap().clone());
        let mut both = both.concat();
        // By default the largest relative changes come first.
        let size = |page: &Value| {
            let [before, now] = ["left_importance", "right_importance"];
            (page[now].as_f64().unwrap() / page[before].as_f64().unwrap() - 1.0).abs()
        };
        both.sort_by(|one, other| size(other).total_cmp(&size(one)));
        let movers = answer["movers"].as_array().unwrap();
        assert!(movers.len() > 20 && movers.len() == both.len());
        for (mover, largest) in movers.iter().zip(&both) {
            let same = |page: &&Value| page["url"] == mover["url"];
            let page = both.iter().find(same).unwrap();
            for (one, other) in [
                ("rank", "right_rank"),
                ("rank_before", "left_rank"),
                ("importance", "right_importance"),
                ("importance_before", "left_importance"),
            ] {
                assert_eq!(mover[one], page[other], "{mover}");
            }
            // Among equal sizes the order is arbitrary.
            assert!((size(page) - size(largest)).abs() < 1e-9, "{mover}");
            assert!(option.is_empty() || mover["certain"] == true, "{mover}");
        }
        assert_eq!(urls(&answer["movers"]), urls(&json!(both)));
        assert_eq!(urls(&answer["new"]), urls(&found["new"]));
    }
    let best = ask(address, "/top?n=1")["top"][0]["url"].clone();
    let best = best.as_str().unwrap();
    for (path, option) in [("", ""), ("&in", " --in")] {
        let answer = ask(
            address,
            &format!("/links?n=1000&url={}{path}", encoded(best)),
        );
        let found = lab.run(&format!("links {best} --store s --json{option}"));
        let found: Vec<Value> = found
            .exits(0)
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let answer = answer["links"].as_array().unwrap();
        assert_eq!(answer.len(), found.len());
        for (answer, found) in answer.iter().zip(&found) {
            assert_eq!(
                (&answer["url"], &answer["rank"]),
                (&found["url"], &found["rank"])
            );
        }
    }
}

/// While an ingest runs, its service has its counts, and a service of another process says that it runs.
#[test]
fn a_running_ingest_is_reported() {
    let lab = Lab::on_disk();
    let lines = crawl(3, 400);
    let mut ingest = lab.start("ingest - --format records --store s --listen 127.0.0.1:0");
    let address = address(&mut ingest);
    let two: Vec<&[String]> = lines.chunks(200).collect();
    for (at, part) in two.iter().enumerate() {
        ingest.write(part.concat().as_bytes());
        await_that("records are counted", || {
            ask(address, "/status")["records"].as_u64().unwrap() >= 200 * at as u64 + 100
        });
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    // A service of another process reports it too, as long as it runs.
    let mut beside = lab.start("serve --store s --listen 127.0.0.1:0");
    let beside = crate::serve::address(&mut beside);
    let status = ask(beside, "/status");
    assert_eq!(
        (&status["ingesting"], &status["reading"]),
        (&json!(true), &json!(null))
    );
    let reading = ask(address, "/status")["reading"].clone();
    // Progress is taken once a second, while records come.
    assert!(reading["records"].as_u64().unwrap() >= 100, "{reading}");
    drop(ingest.stdin.take());
    await_that("it ends", || ingest.child.try_wait().unwrap().is_some());
    let status = ask(beside, "/status");
    assert_eq!(status["ingesting"], json!(false));
    let stat = lab.run("stat --store s --json").exits(0).json();
    assert_eq!(status["disk_bytes"], stat["disk_bytes"]["total"]);
    assert_eq!(status["records"], json!(400));
    assert!(status["snapshot_age_seconds"].as_u64().unwrap() < 600);
}
