//! `cashrank local`: the outside pages to fetch, and the ranks of the domain.

use std::io::{BufRead, BufReader};
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

/// Makes a file of crawl records and a store of them.
fn ingest(lab: &Lab, name: &str, records: impl AsRef<[u8]>) {
    let file = format!("{name}.jsonl");
    lab.file(&file, records);
    lab.run(&format!("ingest {file} --store {name}")).exits(0);
}

/// Parses a table of ranks into importance by URL.
fn ranks(table: &str) -> Vec<(String, f64)> {
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("url\timportance\trank\toutside"));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].to_owned(), fields[1].parse().unwrap())
    };
    lines.map(row).collect()
}

/// Returns the exact PageRank of the whole web on `a.org`, normalised, from the other command.
fn exact(lab: &Lab) -> Vec<(String, f64)> {
    lab.file("all.jsonl", crawl(&[0, 1, 2, 3, 4]));
    let table = lab.run("compute --until 1e-12 all.jsonl").exits(0).out;
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

/// Round after round over a store, until nothing is left: then the ranks are exact.
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
            "{domain} {} in the domain, {outside} fetched outside, {frontier} known and not fetched",
            if domain == 1 { "page" } else { "pages" }
        );
        assert!(self.err.contains(&words), "{self:#?}");
    }
}

#[test]
fn every_policy_names_pages_of_the_frontier() {
    let lab = Lab::new();
    ingest(&lab, "c", crawl(&[0, 1, 2]));
    for policy in ["sc", "pf", "outlink", "random", "share"] {
        let line = format!("local --store c --domain domain:a.org --select {policy} --json -n 9");
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
    ingest(&lab, "c", crawl(&[0, 1, 2]));
    lab.file("pages.txt", "HTTP://A.org:80/\n\nhttp://b.org/\n");
    let done = lab.run("local --store c --domain file:pages.txt").exits(0);
    done.says_domain(2, 1, 2);
    let mut urls: Vec<String> = ranks(&done.out).into_iter().map(|row| row.0).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["http://a.org/", "http://b.org/"]);
}

#[test]
fn invalid_requests_get_a_message() {
    let lab = Lab::new();
    ingest(&lab, "c", crawl(&[0, 1, 2]));
    ingest(
        &lab,
        "alone",
        "{\"url\":\"http://c.org/\",\"links\":[\"http://c.org/1\"]}\n{\"url\":\"http://c.org/1\",\"links\":[]}\n",
    );
    lab.file("empty.txt", "\n");
    // A domain without pages, and one of which none was fetched.
    for (rule, says) in [
        (
            "host:nowhere.org",
            "the domain has no page: no name known fits --domain",
        ),
        (
            "url:http://b.org/3",
            "the domain has no page that was fetched",
        ),
    ] {
        lab.run(&format!("local --store c --domain {rule} -n 3"))
            .exits(2)
            .says(&[says]);
    }
    lab.run("local --store c --domain host:a.org -n 0")
        .exits(2)
        .says(&["leave out -n"]);
    for (options, says) in [
        ("-n 1 --to html", "heritrix-schedule"),
        ("-n 1 --json --to tsv", "--to"),
    ] {
        lab.run(&format!("local --store c --domain host:a.org {options}"))
            .exits(2)
            .says(&[says]);
    }
    // No link leads out.
    lab.run("local --store alone --domain host:c.org -n 3 -o r.txt")
        .exits(0)
        .says(&["no link leads out of the domain"]);
    // Everything is local; more pages requested than exist; pages of the domain that were not fetched.
    lab.run("local --store c --domain url:http* -n 9")
        .exits(0)
        .says(&[
            "0 fetched outside",
            "of the domain, 2 pages were not fetched",
            "only 2 pages are known and not fetched",
            "all known pages are in the domain",
        ]);
    ingest(&lab, "bare", "{\"url\":\"http://c.org/\",\"links\":[]}\n");
    lab.run("local --store bare --domain host:c.org -n 3")
        .exits(0)
        .says(&[
            "1 page in the domain",
            "no fetched page links to another page: all ranks are equal",
        ]);
    ingest(&lab, "one", crawl(&[0, 1, 2, 3]));
    lab.run("local --store one --domain host:a.org -n 18446744073709551615")
        .exits(0)
        .says(&["only 1 page is known and not fetched: all are listed"]);
    lab.run("local --store c --domain a.org")
        .exits(2)
        .says(&["host:NAME"]);
    lab.run("local --store c --domain file:empty.txt")
        .exits(2)
        .says(&["names no page"]);
    lab.run("local --store c --domain file:none.txt")
        .exits(7)
        .says(&["none.txt"]);
    lab.run("local --store c --domain host:a.org --damping 1")
        .exits(2)
        .says(&["damping"]);
    lab.run("local --store c --domain host:a.org --select best")
        .exits(2)
        .says(&["outlink"]);
    lab.run("local --domain host:a.org").exits(2);
    lab.run("local --store c").exits(2);
    lab.run("local c.jsonl --store c --domain host:a.org")
        .exits(2);
    // A store without rows.
    lab.run("ingest c.jsonl --store s --keep-links none")
        .exits(0);
    lab.run("local --store s --domain host:a.org")
        .exits(2)
        .says(&["keep-links"]);
    // A store that left out the outside.
    lab.run("ingest c.jsonl --store scoped --scope host:a.org")
        .exits(0);
    lab.run("local --store scoped --domain host:a.org")
        .exits(0)
        .says(&["--scope left out pages outside"]);
}

/// A page of the domain that is gone has no rank. Links to it still lead somewhere, so the others' ranks are those of
/// the whole crawl, as `compute` has them.
#[test]
fn pages_that_are_gone_count_as_pages_without_links() {
    let lab = Lab::new();
    let gone = "{\"url\":\"http://a.org/x\",\"status\":404}\n";
    ingest(&lab, "all", crawl(&[0, 2, 3, 4]) + gone);
    let done = lab.run("local --store all --domain domain:org").exits(0);
    done.says_domain(4, 0, 0);
    assert!(done.err.contains("pages found gone: 1"), "{}", done.err);
    let table = lab.run("compute --until 1e-12 all.jsonl").exits(0).out;
    let rows = table.lines().skip(1).map(|line| {
        let mut fields = line.split('\t');
        let url = fields.next().unwrap().to_owned();
        (url, fields.next().unwrap().parse::<f64>().unwrap())
    });
    let there: Vec<(String, f64)> = rows.filter(|row| row.0 != "http://a.org/x").collect();
    let sum: f64 = there.iter().map(|row| row.1).sum();
    let found = ranks(&done.out);
    assert_eq!(found.len(), there.len());
    for (url, rank) in found {
        let exact = there.iter().find(|row| row.0 == url).unwrap().1 / sum;
        assert!((rank - exact).abs() < 1e-5, "{url} {rank} {exact}");
    }
}

/// Weighted links: with everything fetched, the ranks are those of the exact PageRank of the
/// weighted links.
#[test]
fn weights_of_links_are_those_of_the_crawl() {
    let lab = Lab::new();
    lab.file("all.jsonl", crawl(&[0, 1, 2, 3, 4]));
    lab.run("ingest all.jsonl --store s --follow external=3")
        .exits(0);
    lab.run("compute --until 1e-12 --store s").exits(0);
    let exact = lab.run("export --measure pagerank --to tsv --store s");
    let exact = exact.exits(0).out;
    let local: Vec<(String, f64)> = exact
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split('\t');
            let url = fields.next().unwrap().to_owned();
            (url, fields.next().unwrap().parse::<f64>().unwrap())
        })
        .filter(|row| row.0.contains("a.org"))
        .collect();
    let sum: f64 = local.iter().map(|row| row.1).sum();
    let mut expected: Vec<_> = local.into_iter().map(|row| (row.0, row.1 / sum)).collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of_store = lab.run("local --store s --domain host:a.org").exits(0).out;
    near(&ranks(&of_store), &expected);
    lab.run("ingest all.jsonl --store alike").exits(0);
    let alike = lab
        .run("local --store alike --domain host:a.org")
        .exits(0)
        .out;
    assert!(
        (ranks(&alike)[0].1 - expected[0].1).abs() > 1e-4,
        "weights change nothing"
    );
}

/// Stochastic Complementation, the paper's own estimate, has two names.
#[test]
fn the_papers_estimate_has_two_names() {
    let lab = Lab::new();
    ingest(&lab, "site", crawl(&[0, 1]));
    let run = |estimate: &str| {
        let line = format!(
            "local --store site --domain host:a.org -n 1 --select sc --estimate {estimate}"
        );
        lab.run(&line).exits(0).out
    };
    assert_eq!(run("sc"), run("plain"));
}

/// Lists come in the formats of `next`, with the same pages in each.
#[test]
fn lists_come_in_all_forms() {
    let lab = Lab::new();
    ingest(&lab, "c", crawl(&[0, 1, 2]));
    let local = "local --store c --domain host:a.org -n 2 --to";
    let plain = lab.run(&format!("{local} plain")).exits(0).out;
    let urls: Vec<&str> = plain.lines().collect();
    assert_eq!(urls.len(), 2);
    for form in [
        "tsv",
        "jsonl",
        "nutch-inject",
        "heritrix-precedence",
        "heritrix-schedule",
        "urlfrontier",
        "scrapy",
    ] {
        let list = lab.run(&format!("{local} {form}")).exits(0).out;
        let lines: Vec<&str> = list.lines().skip(usize::from(form == "tsv")).collect();
        assert_eq!(lines.len(), 2, "{form}");
        for (line, url) in lines.iter().zip(&urls) {
            assert!(line.contains(url), "{form}: {line}");
        }
    }
    // A page's importance is what flows to it: to b.org/2, half of what a.org/x has, after the three pages fetched.
    let jsonl = lab.run(&format!("{local} jsonl")).exits(0).out;
    let objects: Vec<serde_json::Value> = jsonl
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for object in &objects {
        assert_eq!(object["fetched"], false);
        let importance = object["importance"].as_f64().unwrap();
        assert!(importance > 0.0 && importance < 0.5, "{object}");
    }
    lab.run(&format!("{local} heritrix-schedule -o next.schedule"))
        .exits(0);
    let schedule = std::fs::read_to_string(lab.path("next.schedule")).unwrap();
    assert_eq!(
        schedule,
        urls.iter()
            .map(|url| format!("F+ {url}\n"))
            .collect::<String>()
    );
}

/// While another process writes a store, pages are listed from its last ranking.
#[test]
fn pages_are_listed_during_an_ingest() {
    let lab = Lab::new();
    ingest(&lab, "c", crawl(&[0, 1]));
    lab.run("ingest c.jsonl --store s").exits(0);
    let mut ingest = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args([
            "ingest",
            "-",
            "--store",
            "s",
            "--format",
            "records",
            "--listen",
            "127.0.0.1:0",
        ])
        .current_dir(lab.path(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It prints its address once it has the store.
    let mut lines = BufReader::new(ingest.stderr.take().unwrap()).lines();
    let serving = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("serving at")));
    let listed = lab.run("local --store s --domain host:a.org -n 5");
    drop(ingest.stdin.take());
    drop(lines);
    let _ = ingest.wait();
    assert!(serving.is_some());
    assert_eq!(listed.exits(0).out.lines().count(), 2);
}

/// Regression: a page that cannot be fetched was requested in every round.
#[test]
fn a_page_that_failed_three_times_is_left_alone() {
    let lab = Lab::new();
    let local = "{\"url\":\"https://a.example/\",\"links\":[\"https://b.example/u\",\"https://b.example/v\"]}\n";
    let failed = "{\"url\":\"https://b.example/u\",\"status\":503}\n";
    lab.file("log", [local, failed, failed].concat());
    lab.file("more", failed);
    let asked = || {
        let line = "local --store s --domain host:a.example -n 5";
        lab.run(line).exits(0).out
    };
    lab.run("ingest log --store s").exits(0);
    assert_eq!(asked(), "https://b.example/u\nhttps://b.example/v\n");
    lab.run("ingest more --store s").exits(0);
    assert_eq!(asked(), "https://b.example/v\n");
}

/// A page that failed has no links, as in `compute`, even while it is to be retried: once everything that can be
/// fetched was, the ranks are exact. Regression: they were far off, as if the page's links would be known one day.
#[test]
fn ranks_take_pages_that_failed_to_have_no_links() {
    let lab = Lab::new();
    let failed = "{\"url\":\"http://b.org/2\",\"status\":503}\n";
    lab.file("read.jsonl", crawl(&[0, 1, 2, 4]));
    lab.file("all.jsonl", crawl(&[0, 1, 2, 4]) + failed);
    let exact = lab.run("compute --until 1e-12 read.jsonl").exits(0).out;
    let rows = exact.lines().skip(1).map(|line| line.split('\t'));
    let rows = rows.map(|mut fields| {
        let url = fields.next().unwrap().to_owned();
        (url, fields.next().unwrap().parse::<f64>().unwrap())
    });
    let mut local: Vec<(String, f64)> = rows.filter(|row| row.0.contains("a.org")).collect();
    let sum: f64 = local.iter().map(|row| row.1).sum();
    local.iter_mut().for_each(|row| row.1 /= sum);
    local.sort_by(|a, b| b.1.total_cmp(&a.1));
    lab.run("ingest all.jsonl --store s").exits(0);
    let done = lab.run("local --store s --domain host:a.org").exits(0);
    let done = done.says(&["pages that could not be fetched: 1"]);
    near(&ranks(&done.out), &local);
    let listed = lab.run("local --store s --domain host:a.org -n 5").exits(0);
    assert_eq!(listed.out, "http://b.org/2\n");
}
