//! `cashrank local`: which pages outside to fetch, and the ranks of the domain.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::support::Lab;

/// A web of two sites: `a.org` has two pages, `b.org` three, of which two link into `a.org`.
const WEB: [(&str, &[&str]); 5] = [
    ("http://a.org/", &["http://a.org/x", "http://b.org/"]),
    ("http://a.org/x", &["http://a.org/", "http://b.org/2"]),
    ("http://b.org/", &["http://a.org/x", "http://b.org/3"]),
    ("http://b.org/2", &["http://b.org/"]),
    ("http://b.org/3", &["http://a.org/x"]),
];

fn line(page: usize) -> String {
    let (url, links) = WEB[page];
    format!("{}\n", serde_json::json!({"url": url, "links": links}))
}

fn crawl(pages: &[usize]) -> String {
    pages.iter().map(|&page| line(page)).collect()
}

/// Importance by URL, from the table of ranks.
fn ranks(table: &str) -> Vec<(String, f64)> {
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some("url\timportance\trank\toutside\tcertified")
    );
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].to_owned(), fields[1].parse().unwrap())
    };
    lines.map(row).collect()
}

/// Exact PageRank of the whole web on `a.org`, normalised, as the other command has it.
fn exact(lab: &Lab) -> Vec<(String, f64)> {
    lab.file("all.jsonl", crawl(&[0, 1, 2, 3, 4]));
    let table = lab.run("pagerank all.jsonl").exits(0).out;
    let rows = table.lines().skip(1).map(|line| line.split('\t'));
    let rows = rows.map(|mut fields| {
        let url = fields.next().unwrap().to_owned();
        (url, fields.next().unwrap().parse::<f64>().unwrap())
    });
    let local: Vec<(String, f64)> = rows.filter(|(url, _)| url.contains("a.org")).collect();
    let sum: f64 = local.iter().map(|(_, rank)| rank).sum();
    let mut local: Vec<_> = local.into_iter().map(|(url, r)| (url, r / sum)).collect();
    local.sort_by(|a, b| b.1.total_cmp(&a.1));
    local
}

fn near(a: &[(String, f64)], b: &[(String, f64)]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-5, "{a:?} {b:?}");
    }
}

/// Round by round over a store, until nothing is left: then the ranks are exact.
#[test]
fn rounds_over_a_store_end_with_exact_ranks() {
    let lab = Lab::new();
    lab.file("0.jsonl", crawl(&[0, 1]));
    let mut inputs = String::from("0.jsonl");
    lab.run("ingest 0.jsonl --store s").exits(0);
    let local = "local --store s --domain host:a.org";
    let alone = lab.run(local).exits(0);
    alone.says_domain(2, 0, 2);
    near(
        &ranks(&alone.out),
        &[
            ("http://a.org/".into(), 0.5),
            ("http://a.org/x".into(), 0.5),
        ],
    );
    let mut fetched = Vec::new();
    for round in 1..=4 {
        let next = lab.run(&format!("{local} -n 1")).exits(0);
        let Some(url) = next.out.lines().next() else {
            break;
        };
        let page = WEB.iter().position(|(name, _)| *name == url).unwrap();
        fetched.push(page);
        lab.file(&format!("{round}.jsonl"), line(page));
        inputs.push_str(&format!(" {round}.jsonl"));
        lab.run(&format!("ingest {inputs} --store s")).exits(0);
    }
    fetched.sort_unstable();
    assert_eq!(fetched, [2, 3, 4]);
    let done = lab
        .run(local)
        .exits(0)
        .says(&["all pages that can be reached were fetched"]);
    near(&ranks(&done.out), &exact(&lab));
}

trait SaysDomain {
    fn says_domain(&self, domain: u64, outside: u64, frontier: u64);
}

impl SaysDomain for super::support::Done {
    fn says_domain(&self, domain: u64, outside: u64, frontier: u64) {
        let words = format!(
            "{domain} pages in the domain, {outside} fetched outside, {frontier} known and not fetched"
        );
        assert!(self.err.contains(&words), "{self:#?}");
    }
}

#[test]
fn every_policy_names_pages_of_the_frontier() {
    let lab = Lab::new();
    lab.file("c.jsonl", crawl(&[0, 1, 2]));
    for policy in ["sc", "pf", "outlink", "random", "share"] {
        let line = format!("local c.jsonl --domain domain:a.org --select {policy} --json -n 9");
        let object = lab.run(&line).exits(0).json();
        let mut named: Vec<&str> = object["next"]
            .as_array()
            .unwrap()
            .iter()
            .map(|page| page["url"].as_str().unwrap())
            .collect();
        named.sort_unstable();
        assert_eq!(named, ["http://b.org/2", "http://b.org/3"], "{policy}");
        assert_eq!(object["domain_pages"], 2);
        assert_eq!(object["outside_pages"], 1);
        let pages = object["pages"].as_array().unwrap();
        let sum: f64 = pages
            .iter()
            .map(|p| p["importance"].as_f64().unwrap())
            .sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_list_of_urls_is_a_domain() {
    let lab = Lab::new();
    lab.file("c.jsonl", crawl(&[0, 1, 2]));
    lab.file("pages.txt", "HTTP://A.org:80/\n\nhttp://b.org/\n");
    let done = lab.run("local c.jsonl --domain file:pages.txt").exits(0);
    done.says_domain(2, 1, 2);
    let mut urls: Vec<String> = ranks(&done.out).into_iter().map(|row| row.0).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["http://a.org/", "http://b.org/"]);
}

#[test]
fn what_makes_no_sense_is_said_in_words() {
    let lab = Lab::new();
    lab.file("c.jsonl", crawl(&[0, 1, 2]));
    lab.file("alone.jsonl", "{\"url\":\"http://c.org/\",\"links\":[\"http://c.org/1\"]}\n{\"url\":\"http://c.org/1\",\"links\":[]}\n");
    lab.file("empty.txt", "\n");
    // No page of the domain at all, and none that was fetched.
    for rule in ["host:nowhere.org", "url:http://b.org/3"] {
        lab.run(&format!("local c.jsonl --domain {rule} -n 3"))
            .exits(2)
            .says(&["the domain has no page that was fetched"]);
    }
    // No link leads out.
    lab.run("local alone.jsonl --domain host:c.org -n 3 --ranks r.tsv")
        .exits(0)
        .says(&["no link leads out of the domain"]);
    // All is local; more pages wanted than there are; pages of the domain that were not fetched.
    lab.run("local c.jsonl --domain url:http* -n 9")
        .exits(0)
        .says(&[
            "0 fetched outside",
            "2 pages of the domain were not fetched",
            "only 2 pages outside are known",
        ]);
    lab.run("local c.jsonl --domain a.org")
        .exits(2)
        .says(&["host:NAME"]);
    lab.run("local c.jsonl --domain file:empty.txt")
        .exits(2)
        .says(&["names no page"]);
    lab.run("local c.jsonl --domain file:none.txt")
        .exits(7)
        .says(&["none.txt"]);
    lab.run("local c.jsonl --domain host:a.org --damping 1")
        .exits(2)
        .says(&["damping"]);
    lab.run("local c.jsonl --domain host:a.org --select best")
        .exits(2)
        .says(&["outlink"]);
    lab.run("local --domain host:a.org").exits(2);
    lab.run("local c.jsonl").exits(2);
    // A store without rows.
    lab.run("ingest c.jsonl --store s --keep-rows none")
        .exits(0);
    lab.run("local --store s --domain host:a.org")
        .exits(2)
        .says(&["keep-rows"]);
}

/// A crawler on standard input is asked round by round, and ends with exact ranks.
#[test]
fn a_crawler_delivers_what_is_asked_for() {
    let lab = Lab::new();
    lab.file("c.jsonl", crawl(&[0, 1]));
    let expected = exact(&lab);
    let mut child = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args("local c.jsonl --live --format records --domain host:a.org -n 1 --rounds 9 --ranks r.tsv".split(' '))
        .current_dir(lab.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut asked = Vec::new();
    for answer in BufReader::new(child.stdout.take().unwrap()).lines() {
        let url = answer.unwrap();
        if url.is_empty() {
            continue;
        }
        let page = WEB.iter().position(|(name, _)| *name == url).unwrap();
        asked.push(page);
        to.write_all(line(page).as_bytes()).unwrap();
        to.flush().unwrap();
    }
    drop(to);
    assert!(child.wait().unwrap().success());
    asked.sort_unstable();
    assert_eq!(asked, [2, 3, 4]);
    let table = std::fs::read_to_string(lab.path("r.tsv")).unwrap();
    near(&ranks(&table), &expected);
}

/// Experiments: a table with a row a method, the same from the same seed but for times; wrong requests in words.
#[test]
fn experiments_on_a_synthetic_web() {
    let lab = Lab::new();
    let line = "simulate --local --pages 3000 --domains 2 --domain-pages 200 --rounds 4";
    let rows = |out: &str| -> Vec<String> {
        let cut = |line: &str| line.rsplitn(3, ',').nth(2).unwrap().to_owned();
        out.lines().map(cut).collect()
    };
    let first = rows(&lab.run(line).exits(0).out);
    assert_eq!(first.len(), 1 + 6);
    assert_eq!(first, rows(&lab.run(line).exits(0).out));
    for row in &first[1..] {
        let fields: Vec<&str> = row.split(',').collect();
        let (none, l1): (f64, f64) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        assert!(l1 < none, "{row}");
    }
    lab.run(&format!("{line} --select sc,share+ --json"))
        .exits(0);
    lab.run("simulate --local --pages 3000 --domain-pages 2000")
        .exits(2)
        .says(&["do not fit"]);
    lab.run(&format!("{line} --strategy cycle")).exits(2);
    lab.run("simulate --domains 3").exits(2).says(&["--local"]);
    lab.run(&format!("{line} --figures f --time 100,200"))
        .exits(0);
    for name in [
        "table1.csv",
        "domains.csv",
        "figure1.csv",
        "figure1a.svg",
        "figure1b.svg",
        "figure2.csv",
        "figure2.svg",
        "time.csv",
        "time.svg",
    ] {
        assert!(lab.path(&format!("f/local-{name}")).exists(), "{name}");
    }
}
