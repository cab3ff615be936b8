//! The service, without and during an ingest. On this machine only.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Lab, Running, await_that, crawl};

/// Waits for the line with the address. Other lines are read and dropped, so that the pipe never fills.
pub fn address(running: &mut Running) -> SocketAddr {
    let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
        line.strip_prefix("serving at http://")?
            .strip_suffix('/')?
            .parse()
            .ok()
    });
    std::thread::spawn(move || lines.for_each(drop));
    said.expect("it says where it serves")
}

pub fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

#[track_caller]
pub fn ask(address: SocketAddr, path: &str) -> Value {
    let (status, body) = get(address, path);
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

pub fn encoded(url: &str) -> String {
    url.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn an_idle_store_is_described_as_by_the_commands() {
    let lab = Lab::on_disk();
    lab.file("a.jsonl", crawl(1, 300).concat());
    lab.file("b.jsonl", crawl(2, 300).concat());
    lab.run("ingest a.jsonl --store s");
    lab.run("ingest a.jsonl b.jsonl --store s");
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);

    let top = lab.run("top -n 50 --json --store s").exits(0).json();
    let told = ask(address, "/top?n=50");
    assert_eq!(told["top"], top["top"]);
    assert_eq!(
        (&told["pages"], &told["bound_l1"]),
        (&top["pages"], &top["bound_l1"])
    );
    let stat = lab.stat("s");
    let status = ask(address, "/status");
    for field in [
        "records",
        "links",
        "pages",
        "visited",
        "gone",
        "unchanged",
        "failed",
        "bound_l1",
        "turnovers",
    ] {
        assert_eq!(status[field], stat[field], "{field}");
    }
    let skipped = status["skipped"].as_object().unwrap().values();
    assert_eq!(
        skipped.map(|n| n.as_u64().unwrap()).sum::<u64>(),
        stat["skipped"].as_u64().unwrap()
    );
    assert_eq!(status["reading"], Value::Null);

    for page in top["top"].as_array().unwrap() {
        let url = page["url"].as_str().unwrap();
        let rank = lab
            .run(&format!("rank {url} --json --store s"))
            .exits(0)
            .json();
        assert_eq!(
            ask(address, &format!("/rank?url={}", encoded(url)))["pages"][0],
            rank
        );
    }
    let unknown = ask(address, "/rank?url=http%3A%2F%2Funknown.example%2F");
    assert_eq!(unknown["pages"][0]["known"], false);

    // The service's bounds continue from the snapshot before; the command computes them from nothing.
    let covered = ask(address, "/coverage?n=3");
    let from_nothing = lab.run("coverage --store s --json").json();
    for bound in ["at_least", "at_most"] {
        let both = [&covered, &from_nothing].map(|of| of[bound].as_f64().unwrap());
        assert!((both[0] - both[1]).abs() < 0.02, "{bound}: {both:?}");
    }

    let ranked = lab
        .run("top --level host -n 1000 --json --store s")
        .exits(0)
        .json();
    assert_eq!(ask(address, "/top?level=host&n=1000"), ranked);
    let sum = ranked["top"].as_array().unwrap().iter();
    let sum: f64 = sum.map(|host| host["importance"].as_f64().unwrap()).sum();
    assert!(
        (sum - 1.0).abs() < 1e-9,
        "all pages are on some host: {sum}"
    );

    serving.signal("TERM");
    await_that("it ends", || serving.child.try_wait().unwrap().is_some());
}

/// Rankings of sites, by measures and within a scope equal those of the commands, even if one is computed in the
/// meantime, or again with other parameters.
#[test]
fn rankings_are_described_as_by_the_commands() {
    let lab = Lab::on_disk();
    lab.file("a.jsonl", crawl(3, 300).concat());
    lab.run("ingest a.jsonl --store s");
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    let (status, body) = get(address, "/top?level=domain&measure=pagerank");
    assert_eq!(status, 404);
    assert!(String::from_utf8_lossy(&body).contains("none was computed beside it"));
    for round in ["", " --damping 0.5"] {
        lab.run(&format!(
            "compute --store s --level domain --measure pagerank{round}"
        ))
        .exits(0);
        for (path, line) in [
            (
                "level=domain&measure=pagerank",
                "--level domain --measure pagerank",
            ),
            ("level=prefix%3A1", "--level prefix:1"),
            ("scope=url:*1*", "--scope url:*1*"),
        ] {
            let top = lab.run(&format!("top {line} -n 7 --json --store s"));
            assert_eq!(
                ask(address, &format!("/top?n=7&{path}")),
                top.exits(0).json(),
                "{path}"
            );
        }
    }
    let top = ask(address, "/top?level=host&n=1")["top"][0].clone();
    let host = top["url"].as_str().unwrap();
    let line = format!("rank {host} --level host --store s --json");
    let rank = lab.run(&line).exits(0).json();
    let path = format!("/rank?level=host&url={host}");
    assert_eq!(ask(address, &path)["pages"][0], rank);
    for wrong in [
        "/top?level=nation",
        "/top?measure=fame",
        "/top?level=host&scope=host%3Aa",
        "/coverage?level=domain",
    ] {
        assert_eq!(get(address, wrong).0, 400, "{wrong}");
    }
    serving.signal("TERM");
    await_that("it ends", || serving.child.try_wait().unwrap().is_some());
}

/// Nodes have no hosts: a ranking of them is refused, and pages are ranked.
#[test]
fn names_of_nodes_have_no_hosts() {
    let lab = Lab::on_disk();
    lab.file("nodes.tsv", "a\tb\nb\ta\n");
    lab.run("ingest nodes.tsv --format edges --store s")
        .exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    assert_eq!(ask(address, "/top")["top"].as_array().unwrap().len(), 2);
    let (status, body) = get(address, "/top?level=host");
    assert_eq!(status, 400);
    assert!(String::from_utf8_lossy(&body).contains("has a host in its name"));
    serving.signal("TERM");
    await_that("it ends", || serving.child.try_wait().unwrap().is_some());
}

/// Lists of one snapshot after another equal those that the command makes.
#[test]
fn lists_after_several_snapshots_are_those_of_the_command() {
    let lab = Lab::on_disk();
    let records = crawl(7, 900);
    let mut serving = None;
    for (round, part) in [(0, 0..300), (1, 300..310), (2, 310..600), (3, 600..900)] {
        lab.file("part.jsonl", records[part].concat());
        lab.run("ingest part.jsonl --store s");
        let latest = lab.path("s/snapshots/latest.json");
        let latest: Value = serde_json::from_slice(&std::fs::read(latest).unwrap()).unwrap();
        let address = serving.get_or_insert_with(|| {
            let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
            let address = address(&mut serving);
            (serving, address)
        });
        let address = address.1;
        for strategy in ["forecast", "fica", "settled", "xyleme"] {
            let path = format!("/next?n=1000&strategy={strategy}");
            let mut list = Value::Null;
            await_that("the list of the newest snapshot", || {
                list = ask(address, &path);
                list["snapshot"] == latest["snapshot"]
            });
            let line = format!("next --store s -n 1000 --strategy {strategy} --json");
            let told = lab.run(&line).exits(0).out;
            let told: Vec<Value> = told
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let list = list["next"].as_array().unwrap();
            assert!(
                told.len() > 20 && list.len() == told.len(),
                "{strategy} {round}"
            );
            let url = |page: &Value| page["url"].clone();
            assert!(
                list.iter().map(url).eq(told.iter().map(url)),
                "{strategy} {round}"
            );
        }
    }
    if let Some((mut serving, _)) = serving {
        serving.signal("TERM");
        await_that("it ends", || serving.child.try_wait().unwrap().is_some());
    }
}

#[test]
fn an_ingest_answers_while_it_reads_and_gives_the_same_snapshot() {
    let lab = Lab::on_disk();
    let lines = crawl(3, 400);
    let all = lab.file("all.jsonl", lines.concat());
    assert!(all.exists());
    lab.run("ingest all.jsonl --store plain --snapshot-every 100");

    let mut ingest =
        lab.start("ingest - --format records --store s --listen 127.0.0.1:0 --snapshot-every 100");
    let address = address(&mut ingest);
    let status = ask(address, "/status");
    assert_eq!(
        (&status["records"], &status["snapshot"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(get(address, "/top").0, 503, "there is no snapshot yet");

    ingest.write(lines[..250].concat().as_bytes());
    await_that("a snapshot is told of", || {
        ask(address, "/status")["snapshot"] != Value::Null
    });
    await_that("records are counted", || {
        ask(address, "/status")["records"].as_u64().unwrap() >= 100
    });
    await_that("the input is told of", || {
        ask(address, "/status")["reading"]["inputs"] == 1
    });
    assert!(!ask(address, "/top")["top"].as_array().unwrap().is_empty());
    // A client that requests and takes nothing, and a silent one, stay to the end.
    let _silent = TcpStream::connect(address).unwrap();
    let mut deaf = TcpStream::connect(address).unwrap();
    deaf.write_all(
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
            .repeat(50)
            .as_bytes(),
    )
    .unwrap();

    ingest.write(lines[250..].concat().as_bytes());
    drop(ingest.stdin.take());
    await_that("it ends", || ingest.child.try_wait().unwrap().is_some());
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(lab.snapshot("s"), lab.snapshot("plain"));
}

#[test]
fn bad_use_is_refused() {
    let lab = Lab::on_disk();
    lab.run("serve --store none")
        .exits(2)
        .says(&["none", "not a cashrank store"]);
    lab.file("a.jsonl", crawl(1, 30).concat());
    lab.run("ingest a.jsonl --store s");
    lab.run("serve --store s --listen 0.0.0.0:0")
        .exits(2)
        .says(&["0.0.0.0", "--token-file"]);
    lab.run("ingest a.jsonl --store s --listen [::]:0")
        .exits(2)
        .says(&["--token-file"]);
    lab.file("short", "secret\n");
    lab.run("serve --store s --listen 127.0.0.1:0 --token-file short")
        .exits(2)
        .says(&["short", "16"]);
    lab.run("serve --store s --listen 127.0.0.1:0 --token-file absent")
        .exits(7)
        .says(&["absent"]);
    lab.run("serve --store s --listen here").exits(2);
}

/// Invalid options for the frontier's order are refused at once, not when it first needs an order.
#[cfg(feature = "frontier")]
#[test]
fn a_frontier_s_options_are_checked_at_its_start() {
    let lab = Lab::on_disk();
    lab.file(
        "log",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n",
    );
    lab.run("ingest log --store s").exits(0);
    for wrong in ["strategy=oracle", "n=0", "bogus=1", "per-host=0", "scope=x"] {
        let line =
            format!("serve --store s --listen 127.0.0.1:0 --frontier f --frontier-next {wrong}");
        lab.run(&line).exits(2).says(&["--frontier-next"]);
    }
}
