//! Real crawlers crawl a small site on this machine, and what they write is ranked: by closed reasoning
//! the ranking is the PageRank of the site's links, which the tests know.
//!
//! wget is taken from the PATH, Scrapy from CASHRANK_SCRAPY (a path of its program) or the PATH; `.ci/run`
//! installs it. Where one is absent, its test says SKIPPED.

#[path = "crawlers/site.rs"]
mod site;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use site::Site;

/// The program, if it runs; else says so.
fn program(name: &str, variable: &str) -> Option<OsString> {
    let program = std::env::var_os(variable).unwrap_or_else(|| name.into());
    let argument = if name == "scrapy" {
        "version"
    } else {
        "--version"
    };
    let runs = Command::new(&program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if runs.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    eprintln!("SKIPPED: {name} is not installed ({variable} names it if it is not on the PATH)");
    None
}

fn cashrank(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

#[track_caller]
fn must(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Holds the store `s` to the exact PageRank of the site's links, all of them or all but the one marked
/// `rel=nofollow`.
#[track_caller]
fn is_ranked(folder: &Path, site: &Site, with_nofollow: bool) {
    fs::write(folder.join("known.jsonl"), site.known_links(with_nofollow)).unwrap();
    must(&cashrank(folder, "pagerank known.jsonl -o exact.tsv"));
    let found = must(&cashrank(folder, "compare s exact.tsv --json"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let pages = site.pages_known() as u64;
    for field in ["left_pages", "right_pages", "common_pages"] {
        assert_eq!(found[field], pages, "{found}");
    }
    assert!(found["l1"].as_f64().unwrap() < 1e-6, "{found}");
}

#[test]
fn wget_writes_a_warc() {
    let Some(wget) = program("wget", "CASHRANK_WGET") else {
        return;
    };
    let site = Site::start();
    let folder = TempDir::new().unwrap();
    let done = Command::new(wget)
        .args(
            "--no-config --no-proxy -e robots=off --recursive --level=inf --delete-after"
                .split(' '),
        )
        .args([
            "--warc-file=crawl",
            "--no-verbose",
            "--tries=2",
            "--timeout=20",
        ])
        .arg(site.url("/"))
        .current_dir(&folder)
        .output()
        .unwrap();
    // 8: the server answered with an error, as it does for the page that is missing.
    assert_eq!(done.status.code(), Some(8), "{done:?}");
    let ingest = "ingest crawl.warc.gz --store s --repeat 60 --json";
    let told: Value = serde_json::from_str(&must(&cashrank(folder.path(), ingest))).unwrap();
    assert_eq!(told["records"], 60 * site.pages_served() as u64, "{told}");
    is_ranked(folder.path(), &site, true);
    assert!(!site.was_asked("/island.html"));
}

#[test]
fn scrapy_pipes_records() {
    let Some(scrapy) = program("scrapy", "CASHRANK_SCRAPY") else {
        return;
    };
    let site = Site::start();
    let folder = TempDir::new().unwrap();
    let spider = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crawlers/spider.py");
    let mut crawling = Command::new(scrapy)
        .args(["runspider", "-L", "ERROR", "-o", "-:jsonlines", "-a"])
        .arg(format!("start={}", site.url("/")))
        .arg(spider)
        .env_remove("http_proxy")
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Passes after the first one are read from the spool.
    let told = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args("ingest - --store s --spool --repeat 60 --follow nofollow=0 --json".split(' '))
        .current_dir(&folder)
        .stdin(crawling.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(crawling.wait().unwrap().success());
    let told: Value = serde_json::from_str(&must(&told)).unwrap();
    assert_eq!(told["records"], 60 * site.pages_served() as u64, "{told}");
    is_ranked(folder.path(), &site, false);
    assert!(!site.was_asked("/island.html"));
}
