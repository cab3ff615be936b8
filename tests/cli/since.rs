//! `export --since`: pages that are new, changed or gone since an older snapshot.

use std::collections::HashMap;

use serde_json::Value;

use crate::support::{Lab, crawl};
use crate::takers::must_run;

fn record(page: &str, links: &[&str]) -> String {
    let url = |page: &str| format!("http://{page}.example/");
    let links: Vec<String> = links.iter().map(|to| url(to)).collect();
    let record = serde_json::json!({"url": url(page), "links": links});
    format!("{record}\n")
}

fn ring(pages: [&str; 3]) -> String {
    let [a, b, c] = pages;
    [record(a, &[b]), record(b, &[c]), record(c, &[a])].concat()
}

/// Creates two rings of three, and a single page: snapshot 7. Then the second ring becomes a star around b0, and the
/// page is gone: snapshot 11. The first ring keeps its importance.
fn ring_to_star() -> Lab {
    let lab = Lab::new();
    let rings = [ring(["a0", "a1", "a2"]), ring(["b0", "b1", "b2"])].concat();
    let star = [
        record("b0", &["b1", "b2"]),
        record("b1", &["b0"]),
        record("b2", &["b0"]),
    ];
    let gone = "{\"url\":\"http://g.example/\",\"status\":404}\n";
    let ingest = "ingest - --format records --store s --settle 1e-9";
    lab.feed(ingest, (rings + &record("g", &[])).as_bytes())
        .exits(0);
    lab.feed(ingest, (star.concat() + gone).as_bytes()).exits(0);
    lab
}

/// Returns name without scheme and zone, and change, from JSON lines.
fn changes(lines: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let url = row["url"].as_str().unwrap();
        let name = url.trim_start_matches("http://").split('.').next().unwrap();
        (name.to_owned(), row["change"].as_str().unwrap().to_owned())
    };
    let mut rows: Vec<_> = lines.lines().map(row).collect();
    rows.sort();
    rows
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    let row = |(name, change): &(&str, &str)| ((*name).to_owned(), (*change).to_owned());
    rows.iter().map(row).collect()
}

/// Each page of a ring of three has a third of its mass; the hub of the star has (1 + 2d)/(3 (1 + d)) of it, which is
/// 46 % more, and each leaf 23 % less. The other ring is not affected.
#[test]
fn what_did_not_move_is_left_out() {
    let lab = ring_to_star();
    let export = "export --to jsonl --since 7 --store s";
    let star = [("b0", "changed"), ("b1", "changed"), ("b2", "changed")];
    let gone = ("g", "gone");
    let all = [star[0], star[1], star[2], gone];
    assert_eq!(changes(&lab.run(export).exits(0).out), pairs(&all));
    for (least, few) in [
        ("0.2", &all[..]),
        ("0.4", &[star[0], gone]),
        ("0.5", &[gone]),
    ] {
        let found = lab.run(&format!("{export} --least {least}")).exits(0);
        assert_eq!(changes(&found.out), pairs(few), "{least}");
    }
    let found = lab.run(&format!("{export} --sort rank --scope host:b1.example"));
    assert_eq!(changes(&found.exits(0).out), pairs(&star[1..2]));
    // Nothing changed since the snapshot itself.
    let found = lab.run("export --to csv --since 11 --store s").exits(0);
    assert_eq!(
        found.out,
        "url,importance,rank,visits,last_fetch,state,host,domain,page,change\r\n"
    );

    let summary = lab.run(&format!("{export} --json -o f")).exits(0).json();
    assert_eq!(
        (&summary["pages"], &summary["left_out"]),
        (&4.into(), &0.into())
    );
    let since = &summary["since"];
    assert_eq!(
        (&since["new"], &since["changed"], &since["gone"]),
        (&0.into(), &3.into(), &1.into())
    );
}

/// A closed ring of three among n pages has 3/n of all importance. When another ring is added, the first shrinks in
/// proportion to the number of pages, and nothing else changes. A ring that becomes a star in the meantime is not only
/// diluted.
#[test]
fn what_gives_way_to_new_pages_is_diluted() {
    let lab = Lab::new();
    let ingest = "ingest - --format records --store s --settle 1e-9";
    let rings = [ring(["a0", "a1", "a2"]), ring(["b0", "b1", "b2"])].concat();
    lab.feed(ingest, rings.as_bytes()).exits(0);
    lab.feed(ingest, ring(["c0", "c1", "c2"]).as_bytes())
        .exits(0);
    let export = "export --to jsonl --store s --since";
    let diluted = |names: [&'static str; 3]| names.map(|name| (name, "diluted"));
    let new = |names: [&'static str; 3]| names.map(|name| (name, "new"));
    let (a, b) = (["a0", "a1", "a2"], ["b0", "b1", "b2"]);
    let all = [diluted(a), diluted(b), new(["c0", "c1", "c2"])].concat();
    let found = lab.run(&format!("{export} 6")).exits(0);
    assert_eq!(changes(&found.out), pairs(&all));
    let said = lab.run(&format!("{export} 6 -o changes.jsonl"));
    said.says(&["3 new, 0 changed, 6 diluted by new pages and 0 gone"]);
    let ratios = lab.run("export --to scores --score ratio --store s --since 6");
    assert_eq!(ratios.exits(0).out.lines().count(), 3);

    let star = [
        record("b0", &["b1", "b2"]),
        record("b1", &["b0"]),
        record("b2", &["b0"]),
    ];
    let fourth = ring(["d0", "d1", "d2"]);
    lab.feed(ingest, (star.concat() + &fourth).as_bytes())
        .exits(0);
    let changed = b.map(|name| (name, "changed"));
    let c = diluted(["c0", "c1", "c2"]);
    let all = [diluted(a), changed, c, new(["d0", "d1", "d2"])].concat();
    assert_eq!(
        changes(&lab.run(&format!("{export} 9")).exits(0).out),
        pairs(&all)
    );
}

#[test]
fn every_format_has_the_same_rows() {
    let lab = ring_to_star();
    let export = |to: &str| lab.run(&format!("export --to {to} --since 7 --store s"));
    // Search engines have no document of the page that is gone.
    for (to, lines) in [("scores", 4), ("elasticsearch", 6), ("vespa --into w:p", 3)] {
        let found = export(to).exits(0);
        assert_eq!(found.out.lines().count(), lines, "{to}");
        assert!(!found.out.contains("http://a0.example/"));
    }
    let found = export("elasticsearch-index").exits(0);
    assert_eq!(found.out.matches("{\"index\":").count(), 3);
    assert!(
        found
            .out
            .ends_with("{\"delete\":{\"_id\":\"http://g.example/\"}}\n")
    );
    for (to, tab) in [("tsv", '\t'), ("csv", ',')] {
        let found = export(to).exits(0);
        let last = |line: &str| line.rsplit(tab).next().unwrap().to_owned();
        let words: Vec<String> = found.out.lines().map(last).collect();
        assert_eq!(words, ["change", "changed", "changed", "changed", "gone"]);
    }
    if cfg!(not(feature = "sqlite")) {
        return;
    }
    for to in ["parquet", "sqlite"] {
        let file = format!("export --to {to} -o r.{to} --since 7 --store s");
        lab.run(&file).exits(0);
    }
    let words = "['changed', 'changed', 'changed', 'gone']";
    must_run(
        &lab,
        "sqlite3",
        &format!(
            "import sqlite3\n\
             rows = sqlite3.connect('r.sqlite').execute('select change from ranking order by page')\n\
             assert [row[0] for row in rows] == {words}"
        ),
    );
    must_run(
        &lab,
        "pyarrow",
        &format!(
            "import pyarrow.parquet\n\
             table = pyarrow.parquet.read_table('r.parquet')\n\
             assert table['change'].to_pylist() == {words}"
        ),
    );
}

fn scores(lab: &Lab, options: &str) -> HashMap<String, f64> {
    let found = lab.run(&format!("export --to scores --store s {options}"));
    let lines = found.exits(0).out;
    let pair = |line: &str| {
        let (name, score) = line.split_once('\t').unwrap();
        (name.to_owned(), score.parse().unwrap())
    };
    lines.lines().map(pair).collect()
}

/// An older export with the changes applied equals the newer one, except for changes within the margin.
#[test]
fn changes_make_the_newer_ranking_of_the_older() {
    let lab = Lab::new();
    let records = crawl(60, 400);
    lab.file("a", records[..300].concat());
    lab.file("b", records[300..].concat());
    lab.run("ingest a --store s --settle 1e-4").exits(0);
    let first = lab.run("snapshots --json --store s").exits(0).json();
    let number = first["number"].as_u64().unwrap();
    lab.run("ingest b --store s --settle 1e-4").exits(0);
    let compared = lab.run(&format!("compare s --snapshot {number} --moved 0 --json"));
    let compared = compared.exits(0).json();
    let margin = compared["margin"].as_f64().unwrap();
    let count = |key: &str| compared[key].as_u64().unwrap() as usize;

    // More pages changed than changed by more than the bounds.
    let export = format!("export --to scores --store s --since {number}");
    let [by_bounds, moved] =
        ["", " --least 1e-18"].map(|options| lab.run(&format!("{export}{options}")).exits(0).out);
    assert!(moved.lines().count() > by_bounds.lines().count());

    for options in ["", "--score ratio", "--level host"] {
        let mut patched = scores(&lab, &format!("--snapshot {number} {options}"));
        let (before, newer) = (patched.len(), scores(&lab, options));
        let changed = scores(&lab, &format!("--since {number} {options}"));
        if options.is_empty() {
            let more = count("rose_pages") + count("fell_pages") + count("new_pages");
            assert!(
                changed.len() >= more && changed.len() < newer.len(),
                "{compared}"
            );
            assert!(
                count("new_pages") > 0 && count("unchanged_pages") > 0,
                "{compared}"
            );
        }
        patched.extend(changed);
        assert!(newer.len() >= before, "{options}");
        assert_eq!(patched.len(), newer.len(), "{options}");
        let scale = if options.contains("ratio") {
            newer.len() as f64
        } else {
            1.0
        };
        for (name, score) in &newer {
            let off = (patched[name] - score).abs();
            assert!(
                off <= margin * scale * (1.0 + 1e-9),
                "{options} {name}: {off}"
            );
        }
    }
}

#[test]
fn bad_use_gets_a_message() {
    let lab = ring_to_star();
    for (options, words) in [
        ("--to tsv --since 8", "no snapshot 8"),
        ("--to tsv --since 11 --snapshot 7", "not an older ranking"),
        ("--to solr --since 7", "--since: Solr"),
        ("--to tsv --since 7 --least 0", "above 0"),
        ("--to tsv --since soon", "soon"),
        ("--to tsv --least 1", "--since"),
        ("--links --to tsv --since 7", "--since"),
    ] {
        let done = lab.run(&format!("export {options} --store s"));
        assert_ne!(done.code, Some(0), "{options}");
        done.says(&[words]);
    }
}

/// Snapshots record which pages are gone, so a store without kept links does not export a gone page as changed. If kept
/// links are damaged there is no result, since its reader would apply it.
#[test]
fn gone_pages_are_reported_without_kept_links() {
    let lab = ring_to_star();
    let damaged = lab.path("s/rows/1");
    let mut rows = std::fs::read(&damaged).unwrap();
    rows[30] ^= 1;
    std::fs::write(&damaged, rows).unwrap();
    let index = "export --to elasticsearch-index --since 7 --store s";
    let damage = lab.run(index).exits(5).says(&["rows/1: damaged"]);
    assert_eq!(damage.out, "");
    lab.feed(
        "ingest - --format records --store t --keep-links none --settle none",
        ring(["a", "b", "c"]).as_bytes(),
    )
    .exits(0);
    lab.feed(
        "ingest - --format records --store t --keep-links none --settle none",
        b"{\"url\":\"http://a.example/\",\"status\":404}\n",
    )
    .exits(0);
    let found = lab.run("export --to jsonl --since 3 --store t").exits(0);
    let gone = changes(&found.out)
        .into_iter()
        .filter(|row| row.1 == "gone");
    assert_eq!(gone.collect::<Vec<_>>(), pairs(&[("a", "gone")]));
}
