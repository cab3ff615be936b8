//! Commands that read a store, and those that need none.

use std::collections::HashMap;
use std::io::Read;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use crate::support::{Lab, await_that, crawl, gzip, zstandard};

/// Row of an export.
#[derive(Debug, Clone, PartialEq)]
struct Page {
    url: String,
    importance: f64,
    rank: u64,
    visits: u64,
}

fn pages_of(tsv: &str) -> Vec<Page> {
    let mut lines = tsv.lines();
    let head = lines.next().unwrap();
    let named = |score: &str| head.starts_with(&format!("url\t{score}\trank\tvisits\tlast_fetch"));
    assert!(named("importance") || named("pagerank"));
    let columns = head.split('\t').count();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), columns, "{line}");
            Page {
                url: fields[0].into(),
                importance: fields[1].parse().unwrap(),
                rank: fields[2].parse().unwrap(),
                visits: fields[3].parse().unwrap(),
            }
        })
        .collect()
}

fn crawled(seed: u64, records: u64) -> Lab {
    let lab = Lab::new();
    lab.file("a", crawl(seed, records).concat());
    lab.run("ingest a --store s").exits(0);
    lab
}

#[test]
fn exports_hold_every_page_once_with_its_true_rank() {
    let lab = crawled(61, 500);
    let pages = pages_of(&lab.export("s"));
    assert_eq!(lab.stat("s")["pages"], pages.len());
    let sum: f64 = pages.iter().map(|page| page.importance).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    for page in &pages {
        let above = pages
            .iter()
            .filter(|p| p.importance > page.importance)
            .count();
        assert_eq!(page.rank, 1 + above as u64, "{page:?}");
    }
    let visits: u64 = pages.iter().map(|page| page.visits).sum();
    assert_eq!(lab.stat("s")["visits"], visits);
    let visited = pages.iter().filter(|page| page.visits > 0).count();
    assert_eq!(lab.stat("s")["visited"], visited);

    // Order of first appearance: the first record's page, then its links.
    let first: serde_json::Value = serde_json::from_str(&crawl(61, 500)[0]).unwrap();
    assert_eq!(first["url"], pages[0].url);

    let sorted = lab
        .run("export --to tsv --sort rank --store s")
        .exits(0)
        .out;
    let sorted = pages_of(&sorted);
    let mut expected = pages.clone();
    expected.sort_by_key(|page| page.rank);
    assert_eq!(sorted, expected);
}

#[test]
fn the_three_export_formats_agree() {
    let lab = crawled(62, 300);
    let tsv = lab.export("s");
    let pages = pages_of(&tsv);
    let times: Vec<&str> = tsv
        .lines()
        .skip(1)
        .map(|l| l.split('\t').nth(4).unwrap())
        .collect();
    assert!(times.iter().any(|t| t.starts_with("2014-05-13T")) && times.contains(&""));

    let json = lab.run("export --to jsonl --store s").exits(0).out;
    assert_eq!(json.lines().count(), pages.len());
    for ((line, page), time) in json.lines().zip(&pages).zip(&times) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["url"], page.url);
        // serde_json's own parsing of numbers may be off by the last bit.
        let (_, importance) = line.split_once("\"importance\":").unwrap();
        let importance = importance.split([',', '}']).next().unwrap();
        assert_eq!(importance.parse(), Ok(page.importance));
        assert_eq!(row["rank"], page.rank);
        assert_eq!(row["visits"], page.visits);
        assert_eq!(row["last_fetch"].as_str().unwrap_or(""), *time);
    }

    lab.run("export --to parquet -o p --store s").exits(0);
    let file = std::fs::File::open(lab.path("p")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let column = |name: &str| {
        schema
            .columns()
            .iter()
            .position(|c| c.name() == name)
            .unwrap()
    };
    let (url, importance, rank) = (column("url"), column("importance"), column("rank"));
    column("visits");
    column("last_fetch");
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), pages.len());
    for (row, page) in rows.iter().zip(&pages) {
        assert_eq!(row.get_string(url).unwrap(), &page.url);
        assert_eq!(row.get_double(importance).unwrap(), page.importance);
        let rank = row
            .get_ulong(rank)
            .or_else(|_| row.get_long(rank).map(|rank| rank as u64));
        assert_eq!(rank.unwrap(), page.rank);
    }
}

#[test]
fn top_shows_the_first_of_the_ranking() {
    let lab = crawled(63, 300);
    let mut pages = pages_of(&lab.export("s"));
    pages.sort_by_key(|page| page.rank);
    let top = lab.run("top -n 7 --json --store s").exits(0).json();
    let urls = |top: &serde_json::Value| -> Vec<String> {
        let list = top["top"].as_array().unwrap();
        list.iter()
            .map(|page| page["url"].as_str().unwrap().into())
            .collect()
    };
    let expected: Vec<String> = pages[..7].iter().map(|page| page.url.clone()).collect();
    assert_eq!(urls(&top), expected);
    assert!(top.as_object().unwrap().contains_key("bound_l1"));
    let plain = lab.run("top -n 7 --store s").exits(0).out;
    for (line, url) in plain.lines().skip(1).zip(&expected) {
        assert!(line.ends_with(url.as_str()), "{line}");
    }
    assert!(plain.contains("accuracy: total error at most"), "{plain}");
    let all = lab.run("top -n 100000 --json --store s").exits(0).json();
    assert_eq!(urls(&all).len(), pages.len());
}

#[test]
fn rank_knows_pages_in_any_spelling() {
    let lab = crawled(64, 200);
    let pages = pages_of(&lab.export("s"));
    let page = pages.iter().find(|page| page.visits > 0).unwrap();
    let odd = page
        .url
        .replace("http://h", "HTTP://H")
        .replace(".example/", ".example:80/x/../");
    assert_ne!(odd, page.url);
    let line = format!("rank {}#top {odd} --json --store s", page.url);
    let found = lab.run(&line).exits(0).out;
    assert_eq!(found.lines().count(), 2);
    for line in found.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["rank"], page.rank);
        let importance = row["importance"].as_f64().unwrap();
        assert!((importance - page.importance).abs() < 1e-15);
        assert_eq!(row["visits"], page.visits);
        let below = pages.len() as u64 + 1 - page.rank;
        let percentile = 100.0 * below as f64 / pages.len() as f64;
        assert!((row["percentile"].as_f64().unwrap() - percentile).abs() < 1e-9);
    }
    let unknown = lab
        .run(&format!("rank {} http://no.example/ --store s", page.url))
        .exits(1);
    assert!(unknown.out.contains("not known") && unknown.out.contains("importance"));
}

/// The same graph gives the same results when read by the commands' own readers, from the store's rows, and by power
/// iteration.
#[test]
fn what_is_computed_of_a_store_is_that_of_its_inputs() {
    for follow in ["", " --follow external=3,nofollow=0"] {
        let lab = Lab::new();
        lab.file("a", crawl(71, 600).concat());
        lab.file("b", crawl(72, 600).concat());
        lab.run(&format!("ingest a b --store s --damping 0.8{follow}"))
            .exits(0);
        let of_inputs = format!("compute a b --until 1e-12 --damping 0.8{follow}");
        let of_inputs = lab.run(&of_inputs).exits(0);
        let done = lab.run("compute --until 1e-12 --store s").exits(0);
        assert!(done.err.contains("links"), "{}", done.err);
        let of_store = lab.run("export --measure pagerank --to tsv --store s");
        let of_store = scores(&of_store.exits(0).out);
        let exact = lab.exact("s", 0.8);
        assert_eq!(of_store.len(), scores(&of_inputs.out).len());
        assert_eq!(of_store.len(), exact.len());
        for (url, score) in scores(&of_inputs.out) {
            assert!((of_store[&url] - score).abs() < 1e-12, "{url}");
            assert!((exact[&url] - score).abs() < 1e-9, "{url}");
        }
    }
    let lab = crawled(73, 20);
    lab.run("compute --until 1e-12 a --store s").exits(2);
    lab.run("compute").exits(2).says(&["inputs", "--store"]);
    lab.run("ingest a --store none --keep-links none").exits(0);
    for line in ["compute", "links http://h0.example/p0"] {
        lab.run(&format!("{line} --store none"))
            .exits(2)
            .says(&["keeps no rows", "--keep-links"]);
    }
    let stat = lab.stat("none");
    assert!(stat["rows"].is_null() && stat["no_rows"].as_str().unwrap().contains("none"));
}

#[test]
fn links_go_both_ways() {
    let lab = Lab::new();
    let records = [
        r#"{"url":"http://a.example/","links":["/1","/2","http://b.example/","/1"]}"#,
        r#"{"url":"http://b.example/","links":["http://a.example/1"]}"#,
        r#"{"url":"http://a.example/1","links":["http://a.example/", "http://a.example/1"]}"#,
        r#"{"url":"http://b.example/","links":["http://a.example/", "http://a.example/2"]}"#,
        r#"{"url":"http://c.example/","status":404}"#,
    ];
    lab.file("a", records.join("\n"));
    lab.run("ingest a --store s").exits(0);
    let links = |line: &str| {
        let done = lab.run(&format!("links {line} --store s")).exits(0);
        let mut urls: Vec<String> = done.out.lines().map(String::from).collect();
        urls.sort();
        (urls, done.err)
    };
    let (urls, said) = links("HTTP://a.example");
    assert_eq!(
        urls,
        [
            "http://a.example/1",
            "http://a.example/2",
            "http://b.example/"
        ]
    );
    assert_eq!(said, "3 links\n");
    // As of the last visit of b.
    assert_eq!(links("http://a.example/1 --in").0, ["http://a.example/"]);
    assert_eq!(
        links("http://a.example/2 --in").0,
        ["http://a.example/", "http://b.example/"]
    );
    assert!(links("http://a.example/2").1.contains("not fetched yet"));
    assert!(links("http://c.example/").1.contains("gone"));
    // Best rank first.
    let done = lab.run("links http://a.example/ --json --store s").exits(0);
    let ranks: Vec<u64> = done
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|link| link["rank"].as_u64().unwrap())
        .collect();
    assert!(ranks.len() == 3 && ranks.is_sorted(), "{ranks:?}");
    let first = lab
        .run("links http://a.example/ -n 1 --store s")
        .exits(0)
        .out;
    assert_eq!(first.lines().count(), 1);
    lab.run("links http://nowhere.example/ --store s")
        .exits(1)
        .says(&["not known"]);
    let stat = lab.stat("s");
    assert_eq!(
        (
            stat["rows"]["pages"].as_u64(),
            stat["rows"]["links"].as_u64()
        ),
        (Some(4), Some(6))
    );
    assert_eq!(stat["rows"]["superseded"], 1);
}

#[test]
fn stat_has_the_promised_keys() {
    let lab = crawled(65, 200);
    let stat = lab.stat("s");
    for key in ["records", "links", "pages", "visited", "turnovers"] {
        assert!(stat[key].is_number(), "{key}: {stat}");
    }
    assert!(stat.as_object().unwrap().contains_key("bound_l1"));
    assert_eq!(stat["records"], 200);
    let gone = crawl(65, 200)
        .iter()
        .filter(|l| l.contains(":404") || l.contains(":410"))
        .count();
    assert!(gone > 0);
    assert_eq!(stat["gone"], gone);
    let plain = lab.run("stat --store s").exits(0).out;
    let first = |text: &str| -> Vec<String> {
        let names = text.lines().map(|line| line.split("  ").next().unwrap());
        let names = names.filter(|name| !name.is_empty());
        names.take(5).map(str::to_owned).collect()
    };
    let expected = ["pages", "accuracy", "latest fetch", "disk", "memory"];
    assert_eq!(first(&plain), expected);
    for word in ["cash", "turnovers", "rounds", "history", "window"] {
        assert!(!plain.contains(word), "{word}");
    }
}

/// Before the first ranking `stat` shows the last checkpoint, unless an ingest has continued from it.
#[test]
fn stat_works_before_the_first_snapshot() {
    let lab = Lab::new();
    let mut ingest = lab.start("ingest - --format records --store s --checkpoint-every 10");
    ingest.write(crawl(65, 40).concat().as_bytes());
    await_that("there is a store", || {
        lab.run("stat --json --store s").code == Some(0)
    });
    let running = lab.run("stat --json --store s").exits(0).json();
    assert_eq!(
        (&running["busy"], &running["snapshot"]),
        (&true.into(), &().into())
    );
    lab.run("stat --store s").exits(0);
    assert!(ingest.kill());
    let stat = lab.stat("s");
    assert_eq!(
        (&stat["busy"], &stat["snapshot"]),
        (&false.into(), &().into())
    );
    let records = stat["records"].as_u64().unwrap();
    assert!(records <= 40 && stat["visited"].as_u64().unwrap() <= records);
    let text = lab.run("stat --store s").exits(0).out;
    assert!(
        text.contains("no ranking yet") && text.contains(&format!("records        {records}\n")),
        "{text}"
    );
    // Once there is a ranking, `stat` shows that.
    let mut ingest = lab.start("ingest - --format records --store s");
    ingest.write(crawl(65, 40).concat().as_bytes());
    assert_eq!(ingest.end().code, Some(0));
    assert_eq!(lab.stat("s")["records"], 40);
    lab.run("stat --store none").exits(2);
}

/// Scores whose distances are known: 0.25 moved from one page to another.
#[test]
fn compare_takes_stores_snapshots_and_tables() {
    let lab = crawled(66, 300);
    let pages = pages_of(&lab.export("s"));
    let table: String = pages
        .iter()
        .map(|p| format!("{}\t{}\n", p.url, p.importance))
        .collect();
    lab.file("plain", &table);
    lab.file("gz", gzip(table.as_bytes()));
    lab.file("zst", zstandard(table.as_bytes()));
    for other in [
        "plain",
        "gz",
        "zst",
        "s",
        "s/snapshots/000000000300.snapshot",
    ] {
        let found = lab
            .run(&format!("compare s {other} --json"))
            .exits(0)
            .json();
        assert!(found["l1"].as_f64().unwrap() < 1e-12, "{other}: {found}");
        assert_eq!(found["common_pages"], pages.len(), "{other}");
        assert_eq!(found["top"][0]["overlap"], 1.0, "{other}");
    }
    lab.file("x", "p\t0.5\nq\t0.3\nr\t0.2\n");
    lab.file("y", "p\t0.25\nq\t0.55\nr\t0.2\n");
    let found = lab.run("compare x y --json").exits(0).json();
    assert!(
        (found["l1"].as_f64().unwrap() - 0.5).abs() < 1e-12,
        "{found}"
    );
    assert!((found["l2"].as_f64().unwrap() - 0.125f64.sqrt()).abs() < 1e-12);
    assert!((found["linf"].as_f64().unwrap() - 0.25).abs() < 1e-12);
    // Of three pairs of pages one has changed its order, and (q, r) and (p, r) have not.
    assert!((found["kendall_tau_b"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    lab.run("compare x nothing").exits(7).says(&["nothing"]);
    let cut = gzip(table.as_bytes());
    lab.file("cut", &cut[..cut.len() / 2]);
    lab.run("compare s cut").exits(4).says(&["cut"]);
}

fn scores(tsv: &str) -> HashMap<String, f64> {
    pages_of(tsv)
        .into_iter()
        .map(|page| (page.url, page.importance))
        .collect()
}

/// Names and scores.
type Scores = Vec<(&'static str, f64)>;

/// PageRank with damping d = 0.85 in closed form, by name. `cashrank` takes the nearest multiple of
/// 2^-32 for d: that moves the scores by less than 1e-9.
fn closed_forms() -> Vec<(&'static str, &'static str, Scores)> {
    let d = 0.85;
    // A hub and k leaves that link back: (1 + dk) / (n (1 + d)).
    let hub = (1.0 + 4.0 * d) / (5.0 * (1.0 + d));
    // a links to b, b to nothing: b = a (1 + d).
    let a = 1.0 / (2.0 + d);
    vec![
        (
            "cycle",
            "a\tb\nb\tc\nc\td\nd\ta\n",
            vec![("a", 0.25), ("d", 0.25)],
        ),
        (
            "star",
            "h\tw\tx\ty\tz\nw\th\nx\th\ny\th\nz\th\n",
            vec![("h", hub), ("z", (1.0 - hub) / 4.0)],
        ),
        (
            "dangling",
            "a\tb\nb\n",
            vec![("a", a), ("b", a * (1.0 + d))],
        ),
        (
            "two components",
            "a\tb\nb\ta\nc\td\te\nd\tc\te\ne\tc\td\n",
            vec![("a", 0.2), ("c", 0.2), ("e", 0.2)],
        ),
    ]
}

#[test]
fn exact_ranks_are_those_of_closed_forms() {
    for (name, graph, expected) in closed_forms() {
        let lab = Lab::new();
        lab.file("g", graph);
        let done = lab
            .run("compute --until 1e-12 g --format adjacency")
            .exits(0);
        let found = scores(&done.out);
        for (node, score) in expected {
            assert!(
                (found[node] - score).abs() < 1e-9,
                "{name} {node}: {found:?}"
            );
        }
    }
}

/// The certified bound holds against the exact ranks of the same crawl.
#[test]
fn replayed_crawls_come_within_their_bound_of_the_exact_ranks() {
    for seed in [67, 68] {
        let lab = Lab::new();
        // The exact ranks use the last visit of a page, so no page comes twice.
        let mut seen = std::collections::HashSet::new();
        let mut records = crawl(seed, 400);
        records.retain(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let plain = record["status"] == 200 || record["status"].is_null();
            plain && seen.insert(record["url"].to_string())
        });
        lab.file("a", records.concat());
        lab.run("compute --until 1e-12 a -o exact").exits(0);
        for repeat in [10, 30] {
            lab.run(&format!("ingest a --store s --repeat {repeat}"))
                .exits(0);
            let found = lab.run("compare s exact --json").exits(0).json();
            let (l1, bound) = (
                found["l1"].as_f64().unwrap(),
                lab.stat("s")["bound_l1"].as_f64(),
            );
            let bound = bound.unwrap_or_else(|| panic!("no bound after {repeat} passes"));
            assert!(l1 <= bound && bound < 2.0, "{l1} {bound}, seed {seed}");
            assert!(
                repeat < 30 || l1 < 0.05,
                "{l1} after {repeat} passes, seed {seed}"
            );
        }
    }
}

#[test]
fn formats_are_guessed_and_reported() {
    let lab = Lab::new();
    lab.file("r", crawl(69, 5).concat());
    lab.file("l", "a\tb\tc\nb\ta\nc\n");
    lab.file("e", "# FromNodeId\tToNodeId\na\tb\nb\tc\n");
    lab.run("ingest r --store r1")
        .exits(0)
        .says(&["r: read as records"]);
    lab.run("ingest l --store l1")
        .exits(0)
        .says(&["l: read as adjacency"]);
    lab.run("ingest e --store e1").says(&["e: read as edges"]);
}

#[test]
fn completions_name_every_command() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.run(&format!("completions {shell}")).exits(0).out;
        for command in [
            "ingest", "top", "rank", "links", "export", "compare", "compute", "stat", "verify",
        ] {
            assert!(script.contains(command), "{shell}: {command}");
        }
        // Values of options, too.
        for value in ["breadth-first", "heritrix-precedence", "crawl-log"] {
            assert!(script.contains(value), "{shell}: {value}");
        }
    }
}

/// `cashrank ... | head -1`: no message, success.
#[test]
fn a_closed_pipe_is_success() {
    let lab = crawled(70, 4_000);
    for line in [
        "export --to tsv",
        "export --to jsonl",
        "export --to parquet",
        "top -n 100000",
    ] {
        let mut running = lab.start(&format!("{line} --store s"));
        let mut first = [0; 1];
        let mut out = running.child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        let status = running.child.wait().unwrap();
        let mut err = String::new();
        let mut pipe = running.child.stderr.take().unwrap();
        pipe.read_to_string(&mut err).unwrap();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn help_and_usage() {
    let lab = Lab::new();
    let help = lab.run("--help").exits(0).out;
    assert!(help.contains("Exit codes") && help.contains("130"));
    lab.run("ingest --store s").exits(2);
    lab.run("ingest a --store s --checkpoint-every 0").exits(2);
    lab.run("ingest a --store s --damping 1.5").exits(2);
    lab.run("ingest a --store s --window soon").exits(2);
    assert!(!lab.path("s").exists());
}

/// The number of results has one name in all commands; earlier names still work.
#[test]
fn how_many_has_one_name() {
    let lab = crawled(75, 60);
    for (line, old) in [
        ("top --store s", "n"),
        ("next --store s", "n"),
        ("links http://h0.example/p0 --store s", "n"),
        (
            "local --store s --domain host:h0.example --select outlink",
            "n",
        ),
        ("inspect a", "first"),
    ] {
        let short = lab.run(&format!("{line} -n 2")).exits(0).out;
        for name in ["count", old] {
            let long = lab.run(&format!("{line} --{name} 2")).exits(0).out;
            assert_eq!(long, short, "{line} --{name}");
        }
    }
}

/// Skipped records of several formats are described by all that they may be.
#[test]
fn other_records_of_two_formats_are_named() {
    let lab = Lab::new();
    let info = "WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    lab.file("warc", info);
    lab.file("log", "{\"url\":\"http://a.example/\"}\n");
    lab.run("ingest log warc --store s")
        .exits(0)
        .says(&[
            "1 records that are not pages: requests, answers to methods other than GET, blank lines, comments and the \
             like",
        ]);
}

/// In a star of one hub with three leaves that link back, the hub has (1 + 3 d)/(4 (1 + d)), each leaf a third of the
/// rest: one position is certain once the bound is below the difference, and never more, since the leaves are equal.
#[test]
fn certain_positions_are_reported() {
    let lab = Lab::new();
    lab.file(
        "star",
        "{\"url\":\"http://a/h\",\"links\":[\"1\",\"2\",\"3\"]}\n{\"url\":\"http://a/1\",\"links\":[\"h\"]}\n\
         {\"url\":\"http://a/2\",\"links\":[\"h\"]}\n{\"url\":\"http://a/3\",\"links\":[\"h\"]}\n",
    );
    let sentence = "the first page is certainly the most important";
    lab.run("ingest star --store s").exits(0).says(&[sentence]);
    for line in ["top --store s", "stat --store s"] {
        let plain = lab.run(line).exits(0).out;
        assert!(plain.contains(sentence), "{plain}");
        let told = lab.run(&format!("{line} --json")).exits(0).json();
        assert_eq!(told["certain_top"], 1, "{line}");
    }
    // Two pages that link to each other are equal.
    lab.file(
        "two",
        "{\"url\":\"http://a/1\",\"links\":[\"2\"]}\n{\"url\":\"http://a/2\",\"links\":[\"1\"]}\n",
    );
    let told = lab.run("ingest two --store t --json").exits(0).json();
    assert_eq!(told["certain_top"], 0);
    let none = lab.run("ingest two --store w --settle none --window variable:1 --json");
    assert!(none.exits(0).json()["certain_top"].is_null());
}
