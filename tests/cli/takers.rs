//! Exports, as the programs that they are for read them.

use std::process::Command;

use crate::crawl::crawl;
use crate::python::python;
use crate::support::Lab;

/// Creates a store with names that need quotes in CSV.
fn crawled() -> Lab {
    let lab = Lab::new();
    lab.file("a", crawl(63, 300).concat());
    lab.file(
        "b",
        "{\"url\":\"http://www.example.org/a,b\",\"links\":[\"http://192.0.2.7/\"]}\n",
    );
    lab.run("ingest a b --store s").exits(0);
    lab
}

/// Runs a script in the lab's folder.
pub fn must_run(lab: &Lab, modules: &str, script: &str) {
    let Some(python) = python(modules) else {
        eprintln!("SKIPPED: no Python with {modules} (CASHRANK_PYTHON names one)");
        return;
    };
    let done = Command::new(python)
        .args(["-c", script])
        .current_dir(lab.path("."))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[cfg(all(feature = "parquet", feature = "sqlite"))]
#[test]
fn other_programs_read_the_same_ranking() {
    let lab = crawled();
    for format in ["jsonl", "csv", "parquet", "tsv", "sqlite"] {
        lab.run(&format!(
            "export --to {format} --sort rank -o r.{format} --store s"
        ))
        .exits(0);
    }
    must_run(
        &lab,
        "csv, json",
        r#"
import csv, json
lines = [json.loads(line) for line in open("r.jsonl")]
rows = list(csv.DictReader(open("r.csv", newline=""), strict=True))
assert len(rows) == len(lines) > 20
assert any("," in row["url"] for row in rows)
for line, row in zip(lines, rows):
    assert line["url"] == row["url"] and line["importance"] == float(row["importance"])
    assert line["rank"] == int(row["rank"]) and (line["last_fetch"] or "") == row["last_fetch"]
"#,
    );
    must_run(
        &lab,
        "sqlite3",
        r#"
import json, sqlite3
lines = [json.loads(line) for line in open("r.jsonl")]
keys = ", ".join(lines[0])
rows = sqlite3.connect("r.sqlite").execute(f"select {keys} from ranking").fetchall()
assert [list(line.values()) for line in lines] == [list(row) for row in rows]
"#,
    );
    must_run(
        &lab,
        "pyarrow, pandas",
        r#"
import json, pandas, pyarrow.parquet
lines = [json.loads(line) for line in open("r.jsonl")]
table = pyarrow.parquet.read_table("r.parquet")
frame, csv = table.to_pandas(), pandas.read_csv("r.csv")
for key in "url", "importance", "rank", "visits":
    expected = [line[key] for line in lines]
    assert frame[key].tolist() == expected == csv[key].tolist(), key
address = frame[frame.url == "http://192.0.2.7/"]
assert address.domain.item() == address.host.item() == "192.0.2.7"
page = frame[frame.url == "http://www.example.org/a,b"]
assert (page.host.item(), page.domain.item()) == ("www.example.org", "example.org")
"#,
    );
    must_run(
        &lab,
        "duckdb, polars",
        r#"
import duckdb, polars
sums = [duckdb.sql(f"select count(*), sum(importance), max(rank), count(last_fetch) from '{file}'").fetchall()[0]
        for file in ("r.jsonl", "r.csv", "r.parquet", "r.tsv")]
for counts in sums:
    assert counts[0] == sums[0][0] and counts[2:] == sums[0][2:], sums
    assert abs(counts[1] - 1) < 1e-9, sums
frame = polars.read_parquet("r.parquet")
assert frame["rank"].is_sorted() and frame.height == sums[0][0]
"#,
    );
}

/// Each page appears once, whatever the order; a table sorted by host has each host in one piece.
#[test]
fn orders_are_those_of_all_pages() {
    let lab = crawled();
    let lines = |order: &str| -> Vec<String> {
        let told = lab
            .run(&format!("export --to tsv --sort {order} --store s"))
            .exits(0);
        told.out.lines().skip(1).map(String::from).collect()
    };
    let by_id = lines("id");
    let mut by_name = by_id.clone();
    by_name.sort_by(|one, other| one.split('\t').next().cmp(&other.split('\t').next()));
    assert_eq!(lines("url"), by_name);
    let by_host = lines("host");
    let mut hosts: Vec<&str> = by_host
        .iter()
        .map(|line| line.split('/').nth(2).unwrap())
        .collect();
    hosts.dedup();
    let groups = hosts.len();
    hosts.sort();
    hosts.dedup();
    assert_eq!((by_host.len(), groups), (by_id.len(), hosts.len()));
    let solr = lab.run("export --to solr --store s").exits(0).out;
    assert!(
        solr.lines()
            .map(|line| line.rsplit_once('=').unwrap().0)
            .is_sorted()
    );
    let is_gone = |line: &&String| line.contains("\tgone\t");
    let gone = by_id.iter().filter(is_gone).count();
    assert_eq!(solr.lines().count(), by_id.len() - gone);
}

/// `compare` reads a file of scores, and finds no distance from its origin.
#[test]
fn scores_are_read_back() {
    let lab = crawled();
    lab.run("export --to scores -o scores.tsv --store s")
        .exits(0);
    let told = lab.run("compare s scores.tsv --json").exits(0).json();
    assert_eq!(told["l1"], 0.0, "{told}");
}

#[test]
fn choices_that_a_format_does_not_heed_are_refused() {
    let lab = crawled();
    for (line, says) in [
        (
            "--to scores --measure importance,in-degree",
            "several measures: scores has no columns",
        ),
        ("--to solr --into x", "--into: solr has no documents"),
        (
            "--to scores --score-field x",
            "--score-field: scores has no documents",
        ),
        ("--to vespa", "--into NAMESPACE:TYPE"),
        ("--to vespa --into page", "NAMESPACE:TYPE"),
        ("--to solr --cash", "--cash: solr has no columns"),
        (
            "--to elasticsearch-index --score-field url",
            "choose another",
        ),
    ] {
        lab.run(&format!("export {line} -o out --store s"))
            .exits(2)
            .says(&[says]);
        assert!(!lab.path("out").exists());
    }
}
