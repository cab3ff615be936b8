//! The link graph of a store, exported as files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use crate::crawl::crawl;
use crate::support::Lab;
use crate::takers::must_run;

/// Computes the distinct links of the latest record of each page from the records themselves.
fn expected(lines: &[String]) -> BTreeSet<(String, String)> {
    let mut latest = std::collections::BTreeMap::new();
    for line in lines {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let status = record["status"].as_u64().unwrap_or(200);
        let url = record["url"].as_str().unwrap().to_owned();
        let target = |link: &serde_json::Value| link.as_str().map(String::from);
        let links = record["links"].as_array().into_iter().flatten();
        match status {
            200..=299 => latest.insert(url, links.filter_map(target).collect()),
            301 => latest.insert(url, target(&record["redirect"]).into_iter().collect()),
            404 | 410 => latest.insert(url, Vec::new()),
            _ => None,
        };
    }
    let links = latest
        .into_iter()
        .flat_map(|(url, links)| links.into_iter().map(move |link| (url.clone(), link)));
    links.filter(|(source, target)| source != target).collect()
}

fn unzipped(lab: &Lab, name: &str) -> String {
    let file = std::fs::File::open(lab.path(name)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .map(|line| line.split_once('\t').unwrap())
        .collect()
}

/// Each link appears once, sorted, by name or by number; records split over two inputs give the same.
#[test]
fn links_are_those_of_the_latest_records() {
    let lab = Lab::new();
    let lines = [
        r#"{"url":"http://a.example/","links":["http://b.example/","http://old.example/"]}"#,
        r#"{"url":"http://b.example/","links":["http://c.example/","http://a.example/","http://c.example/","http://b.example/"]}"#,
        r#"{"url":"http://c.example/","status":200,"links":[]}"#,
        r#"{"url":"http://d.example/","links":["http://a.example/"]}"#,
        r#"{"url":"http://a.example/","links":["http://c.example/"]}"#,
        r#"{"url":"http://d.example/","status":404}"#,
    ]
    .map(|line| format!("{line}\n"));
    lab.file("a", lines.concat());
    lab.run("ingest a --store s").exits(0);
    let names = lab.run("export --links --to tsv --store s").exits(0).out;
    assert_eq!(
        names,
        "http://a.example/\thttp://c.example/\n\
         http://b.example/\thttp://a.example/\nhttp://b.example/\thttp://c.example/\n"
    );
    // Numbers: a 0, b 1, old 2, c 3, d 4.
    let numbers = lab
        .run("export --links --to tsv --numbers --store s")
        .exits(0)
        .out;
    assert_eq!(numbers, "0\t3\n1\t0\n1\t3\n");
    lab.run("export --links --to common-crawl -o g --store s")
        .exits(0);
    assert_eq!(unzipped(&lab, "g/edges.txt.gz"), numbers);
    let vertices = ["a", "b", "old", "c", "d"].iter().enumerate();
    let vertices: String = vertices
        .map(|(at, name)| format!("{at}\thttp://{name}.example/\n"))
        .collect();
    assert_eq!(unzipped(&lab, "g/vertices.txt.gz"), vertices);
}

/// An exported crawl can be ingested again and gives the same ranking; the files do not depend on checkpoints.
#[test]
fn a_crawl_is_read_back() {
    let lab = Lab::new();
    let lines = crawl(91, 400);
    lab.file("a", lines.concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("ingest a --store t --snapshot-every 40").exits(0);
    let links = lab
        .run("export --links --to tsv -o links --store s --json")
        .exits(0)
        .json();
    let text = std::fs::read_to_string(lab.path("links")).unwrap();
    let found: BTreeSet<(String, String)> = pairs(&text)
        .into_iter()
        .map(|(source, target)| (source.to_owned(), target.to_owned()))
        .collect();
    let expected = expected(&lines);
    let differing: Vec<_> = found.symmetric_difference(&expected).take(3).collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert_eq!(links["links"], found.len());
    assert_eq!(
        lab.run("export --links --to tsv --store t").exits(0).out,
        text
    );

    lab.run("ingest links --format url-edges --store u --settle 1e-9")
        .exits(0);
    lab.run("settle --store s --until 1e-9").exits(0);
    let top = |store: &str| {
        lab.run(&format!("top -n 1 --json --store {store}"))
            .exits(0)
            .out
    };
    let first: serde_json::Value = serde_json::from_str(top("s").lines().next().unwrap()).unwrap();
    let again: serde_json::Value = serde_json::from_str(top("u").lines().next().unwrap()).unwrap();
    assert_eq!(first["url"], again["url"]);
}

/// Weights of links are a third column.
#[test]
fn weights_are_a_third_column() {
    let lab = Lab::new();
    lab.file(
        "a",
        "{\"url\":\"http://a.example/\",\"links\":[{\"url\":\"http://b.example/\"},{\"url\":\"http://c.example/\",\"rel\":\"nofollow\"},{\"url\":\"http://d.example/\",\"rel\":\"ugc\"}]}\n",
    );
    lab.run("ingest a --store s --follow nofollow=3,ugc=0")
        .exits(0);
    let text = lab.run("export --links --to tsv --store s").exits(0).out;
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    let weight = |at: usize| rows[at][2].parse::<f64>().unwrap();
    assert_eq!(
        (rows[0][1], rows[1][1]),
        ("http://b.example/", "http://c.example/")
    );
    assert!((weight(1) / weight(0) - 3.0).abs() < 1e-6, "{text}");
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let lab = Lab::new();
    lab.file("a", crawl(92, 50).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("ingest a --store none --keep-links none").exits(0);
    std::fs::create_dir(lab.path("taken")).unwrap();
    lab.file("taken/file", "mine");
    let before = lab.names();
    for (line, code, says) in [
        ("--links --to csv -o out --store s", 2, "csv holds no links"),
        ("--to common-crawl -o out --store s", 2, "(--links)"),
        (
            "--links --to parquet -o out --store s",
            2,
            "parquet holds no links",
        ),
        ("--links --to common-crawl --store s", 2, "name a directory"),
        (
            "--links --to common-crawl --numbers -o out --store s",
            2,
            "numbers anyway",
        ),
        (
            "--links --to tsv --sort rank -o out --store s",
            2,
            "cannot be used",
        ),
        (
            "--links --to tsv --level host --measure harmonic -o out --store s",
            2,
            "leave --measure",
        ),
        (
            "--links --to tsv --site-links once -o out --store s",
            2,
            "add --level",
        ),
        (
            "--to tsv --level host --site-links once -o out --store s",
            2,
            "add --links",
        ),
        (
            "--links --to tsv --scope host:a.example -o out --store s",
            2,
            "and --scope out",
        ),
        ("--links --to tsv -o out --store none", 2, ""),
        ("--links --to common-crawl -o out --store none", 2, ""),
        (
            "--links --to tsv -o out --store s --memory 1",
            8,
            "as numbers",
        ),
        ("--links --to common-crawl -o taken --store s", 7, "taken"),
    ] {
        lab.run(&format!("export {line}")).exits(code).says(&[says]);
        assert_eq!(lab.names(), before, "{line}");
    }
    assert_eq!(std::fs::read(lab.path("taken/file")).unwrap(), b"mine");
}

/// Returns the host of a URL in these tests.
fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

/// Reads the lines of a gzip file.
fn unpacked(path: std::path::PathBuf) -> Vec<String> {
    let file = std::fs::File::open(path).unwrap();
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Links between hosts are those of their pages, counted one by one.
#[test]
fn links_between_hosts_are_those_of_their_pages() {
    let lab = Lab::new();
    lab.file("a", crawl(29, 300).concat());
    lab.run("ingest a --store s").exits(0);
    let pages = lab.run("export --links --to tsv --store s").exits(0).out;
    let mut sources: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in pages.lines() {
        let (source, target) = line.split_once('\t').unwrap();
        let pair = (host(source), host(target));
        sources.entry(pair).or_default().push(source);
    }
    let expected = |weight: &dyn Fn(&[&str]) -> usize| -> BTreeSet<String> {
        let pairs = sources.iter().filter(|(pair, _)| pair.0 != pair.1);
        let line = |((from, to), pages): (&(&str, &str), &Vec<&str>)| {
            let weight = match weight(pages) {
                0 => String::new(),
                weight => format!("\t{weight}"),
            };
            format!("{from}\t{to}{weight}")
        };
        pairs.map(line).collect()
    };
    let export = "export --links --level host --store s --to tsv";
    let of = |options: &str| {
        let found = lab.run(&format!("{export} {options}")).exits(0).out;
        found
            .lines()
            .map(str::to_owned)
            .collect::<BTreeSet<String>>()
    };
    let counted = expected(&|pages| pages.len());
    assert!(counted.len() > 20);
    assert_eq!(of(""), counted);
    assert_eq!(of("--site-links once"), expected(&|_| 0));
    assert!(lab.names().iter().all(|name| name == "a" || name == "s"));

    let found = lab.run("export --links --level host --to common-crawl -o g --store s --json");
    assert_eq!(found.exits(0).json()["links"], counted.len());
    let vertices = unpacked(lab.path("g/vertices.txt.gz"));
    let names: Vec<String> = vertices
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let (number, name) = line.split_once('\t').unwrap();
            assert_eq!(number, at.to_string());
            let labels: Vec<&str> = name.rsplit('.').collect();
            labels.join(".")
        })
        .collect();
    let named = |line: &String| {
        let (from, to) = line.split_once('\t').unwrap();
        let name = |number: &str| &names[number.parse::<usize>().unwrap()];
        format!("{}\t{}", name(from), name(to))
    };
    let edges = unpacked(lab.path("g/edges.txt.gz"));
    let edges: BTreeSet<String> = edges.iter().map(named).collect();
    assert_eq!(edges, expected(&|_| 0));

    // The public suffix list has no `example`, so each host, h0.example to h6.example, is a domain of its own.
    lab.run("export --links --level domain --to common-crawl -o d --store s")
        .exits(0);
    let domains = unpacked(lab.path("d/vertices.txt.gz"));
    assert!(domains.contains(&format!(
        "0\t{}\t1",
        names[0].rsplit('.').collect::<Vec<_>>().join(".")
    )));
}

/// networkx's PageRank of the links by number equals the snapshot within its bound.
#[test]
fn networkx_ranks_the_links() {
    let lab = Lab::new();
    lab.file("a", crawl(93, 300).concat());
    lab.run("ingest a --store s --settle 1e-9").exits(0);
    lab.run("export --links --to tsv --numbers -o links --store s")
        .exits(0);
    lab.run("export --to tsv -o pages --store s").exits(0);
    must_run(
        &lab,
        "networkx, scipy",
        r#"
import csv, networkx
with open("pages") as pages, open("links") as links:
    importance = {int(page["page"]): float(page["importance"]) for page in csv.DictReader(pages, delimiter="\t")}
    links = [tuple(map(int, line.split())) for line in links]
graph = networkx.DiGraph()
graph.add_nodes_from(importance)
graph.add_edges_from(links)
assert graph.number_of_edges() == len(links) > 100
ranks = networkx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=1000)
distance = sum(abs(ranks[page] - x) for page, x in importance.items())
assert distance < 2e-9, distance
"#,
    );
}
