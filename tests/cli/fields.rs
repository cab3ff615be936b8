//! `--field`: JSON lines that have names of their own.

use crate::support::{Lab, data};

const SCRAPY: &str = "--field fetched_at=fetch_time,redirect=location";

/// A Scrapy crawl of a manual. Counts are those of an independent reader (the data's README); the page that
/// redirects, and when it was fetched, are read off the file.
#[test]
fn a_scrapy_crawl_with_its_own_names() {
    let Some(path) = data("scrapy-httpd/httpd-manual.jsonl.zst") else {
        return;
    };
    let lab = Lab::new();
    let path = path.display();
    lab.run(&format!("ingest {path} --store s {SCRAPY}"))
        .exits(0);
    let stat = lab.stat("s");
    assert_eq!(stat["records"], 2_828);
    assert_eq!(stat["gone"], 165);
    assert_eq!(stat["links"], 279_195);
    let page = "http://127.0.0.1:8802/manual/es/howto";
    let rank = lab.run(&format!("rank {page} --store s --json"));
    assert_eq!(rank.exits(0).json()["last_fetch"], "2026-11-20T18:13:38Z");
}

/// The same crawl under other names has the same ranking, to the byte; and a store keeps the names.
#[test]
fn other_names_change_nothing_and_a_store_keeps_them() {
    let usual = "{\"url\":\"http://a/\",\"links\":[\"b\",{\"url\":\"c\"}],\"fetched_at\":5,\"status\":200}\n\
                 {\"url\":\"http://a/b\",\"redirect\":\"/\",\"status\":301}\n";
    let other = usual
        .replace("{\"url\":\"c\"}", "{\"href\":\"c\"}")
        .replace("\"url\"", "\"response.url\"")
        .replace("\"links\"", "\"targets\"")
        .replace("fetched_at", "when")
        .replace("status", "code")
        .replace("redirect", "location");
    let lab = Lab::new();
    lab.file("usual.jsonl", usual);
    lab.file("other.jsonl", other);
    lab.run("ingest usual.jsonl --store s").exits(0);
    let names = "--field url=response.url,links=targets,fetched_at=when --field status=code \
                 --field redirect=location --field link.url=href";
    lab.run(&format!("ingest other.jsonl --store t {names}"))
        .exits(0);
    let export = |store: &str| {
        lab.run(&format!("export --store {store} --to tsv"))
            .exits(0)
            .out
    };
    assert_eq!(export("s"), export("t"));
    // Once more, without the names: they are the store's.
    lab.run("ingest other.jsonl --store t --repeat 2").exits(0);
    assert_eq!(lab.stat("t")["records"], 4);
    lab.run("ingest other.jsonl --store t --repeat 2 --field url=u")
        .exits(2);
}

#[test]
fn names_that_fit_nothing_are_refused_or_explained() {
    let lab = Lab::new();
    lab.file("r.jsonl", "{\"response_url\":\"http://a/\"}\n");
    lab.run("ingest r.jsonl --store s --field uri=response_url")
        .exits(2)
        .says(&[
            "no field",
            "url, links, fetched_at, status, redirect, digest, link.url, link.rel",
        ]);
    lab.run("ingest r.jsonl --store s --field url=a --field url=b")
        .exits(2)
        .says(&["the field url has two names"]);
    lab.run("ingest r.jsonl --store s")
        .exits(3)
        .says(&["--field url=NAME"]);
    lab.run("ingest r.jsonl --store t --field url=response_url")
        .exits(0);
}
