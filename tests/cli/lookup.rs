//! `rank --from`: lists of URLs, looked up together.

use crate::support::{Lab, gzip};

/// Creates a ring of four pages with 1/5 each, and a fifth page that only one links to and that is gone.
fn crawled() -> Lab {
    let lab = Lab::new();
    lab.file(
        "crawl",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\",\"http://c.example/x\",\"/f\"]}\n\
         {\"url\":\"http://a.example/b\",\"links\":[\"/\"]}\n\
         {\"url\":\"http://c.example/x\",\"status\":404}\n\
         {\"url\":\"http://a.example/f\",\"status\":503}\n",
    );
    lab.run("ingest crawl --store s --quiet").exits(0);
    lab
}

/// Any spelling of a URL, in any order and number of times; an unknown one has a row, too.
const LIST: &str = "\u{feff}HTTP://A.Example:80/x/../b#top\r\n\n# a comment\nhttp://a.example/b\tmetadata\n\
    http://nowhere.example\nhttp://c.example/y/../x\nnot a url, a \"word\"\nhttp://a.example/f\nhttp://a.example\n";

#[test]
fn every_line_of_a_list_has_its_row() {
    let lab = crawled();
    lab.file("list", LIST);
    lab.file("list.gz", gzip(LIST.as_bytes()));
    let found = lab.run("rank --from list --store s").exits(1);
    let rows: Vec<Vec<&str>> = (found.out.lines())
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows[0], ["url", "rank", "importance", "state"]);
    let expected = [
        ("http://a.example/b", "crawled"),
        ("http://a.example/b", "crawled"),
        ("http://nowhere.example/", "unknown"),
        ("http://c.example/x", "gone"),
        ("not a url, a \"word\"", "unknown"),
        ("http://a.example/f", "failed"),
        ("http://a.example/", "crawled"),
    ];
    let states: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[0], row[3])).collect();
    assert_eq!(states, expected);
    for row in &rows[1..] {
        if row[3] == "unknown" {
            assert_eq!(row[1..3], ["", ""]);
            continue;
        }
        let single = lab.run(&format!("rank {} --json --store s", row[0]));
        let single = single.exits(0).json();
        assert_eq!(row[1].parse::<u64>().ok(), single["rank"].as_u64());
        assert_eq!(row[2].parse::<f64>().ok(), single["importance"].as_f64());
    }
    let said = ["2 of 7 are unknown", "1 line skipped: comments (1)"];
    let fed = lab.feed("rank - --store s", LIST.as_bytes()).exits(1);
    assert_eq!(fed.says(&said).out, found.out);
    for line in ["rank --from list.gz", "rank --from list --memory 1M"] {
        let same = lab.run(&format!("{line} --store s")).exits(1);
        assert_eq!(same.out, found.out, "{line}");
    }
}

#[test]
fn rows_of_a_list_come_as_other_formats_and_of_sites() {
    let lab = crawled();
    let list = "http://a.example/b\nnot a, url\n";
    let csv = lab.feed("rank --from - --to csv --store s", list.as_bytes());
    let csv = csv.exits(1).out;
    assert!(csv.starts_with("url,rank,importance,state\r\nhttp://a.example/b,"));
    assert!(csv.ends_with(",crawled\r\n\"not a, url\",,,unknown\r\n"));
    let json = lab
        .feed("rank - --json --store s", list.as_bytes())
        .exits(1);
    let last: serde_json::Value = serde_json::from_str(json.out.lines().last().unwrap()).unwrap();
    let null = serde_json::Value::Null;
    assert_eq!((&last["rank"], &last["importance"]), (&null, &null));
    let line = "rank http://a.example/b http://a.example/ --to tsv --store s";
    assert_eq!(lab.run(line).exits(0).out.lines().count(), 3);
    // By a measure of sites, which have no state: of three links between hosts one leads to c.example.
    lab.run("compute --measure in-degree --level host --store s")
        .exits(0);
    let sites = "c.example\nd.example\n";
    let line = "rank - --measure in-degree --level host --store s";
    let found = lab.feed(line, sites.as_bytes()).exits(1).out;
    assert_eq!(
        found,
        "url\trank\tin_degree\tstate\nc.example\t1\t1\t\nd.example\t\t\tunknown\n"
    );
    lab.run("rank --from list http://a.example/ --store s")
        .exits(2);
}
