//! `compare --moved`: pages that rose and fell between snapshots, stores and files.

use std::collections::HashMap;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Lab, crawl, gzip};

/// Returns records of pages `p0`, `p1`, ...: `passes` passes over the rows, all fetched at `time`.
fn records(rows: &[Vec<usize>], passes: usize, time: &str) -> String {
    let url = |page: usize| format!("http://example.org/p{page}");
    let pass: String = rows
        .iter()
        .enumerate()
        .map(|(page, links)| {
            let links: Vec<String> = links.iter().map(|&to| url(to)).collect();
            let record = serde_json::json!({"url": url(page), "fetched_at": time, "links": links});
            format!("{record}\n")
        })
        .collect();
    pass.repeat(passes)
}

/// Creates a ring of `n` pages, then, ten days later, a star around page 0 with n - 1 leaves: two snapshots of store s,
/// and the exports x and y.
fn ring_to_star(n: usize) -> Lab {
    let lab = Lab::new();
    let ring: Vec<Vec<usize>> = (0..n).map(|page| vec![(page + 1) % n]).collect();
    let star = (0..n).map(|page| if page == 0 { (1..n).collect() } else { vec![0] });
    let star: Vec<Vec<usize>> = star.collect();
    let passes = 12_000 / n;
    let ring = records(&ring, passes, "2026-01-01T00:00:00Z");
    let star = records(&star, passes, "2026-01-11T00:00:00Z");
    // The window's estimates of equal pages are equal to the last bit.
    let ingest = "ingest - --format records --store s --settle none";
    lab.feed(ingest, ring.as_bytes()).exits(0);
    lab.run("export --to tsv --store s -o x").exits(0);
    lab.feed(ingest, star.as_bytes()).exits(0);
    lab.run("export --to tsv --store s -o y").exits(0);
    lab
}

const FIRST: &str = "s/snapshots/000000012000.snapshot";

fn float(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn list<'v>(report: &'v Value, name: &str) -> &'v Vec<Value> {
    report[name].as_array().unwrap()
}

/// In a ring all pages have 1/n. The hub of a star has (1 + d (n - 1))/(n (1 + d)).
#[test]
fn a_certain_rise_is_that_of_the_closed_form() {
    let lab = ring_to_star(4);
    let found = lab.run(&format!("compare {FIRST} s --moved 10 --by change --json"));
    let found = found.exits(0).json();
    let hub = (1.0 + 0.85 * 3.0) / (4.0 * 1.85);
    let margin = float(&found["margin"]);
    let bounds = float(&found["left"]["bound_l1"]) + float(&found["right"]["bound_l1"]);
    assert!(
        (margin - bounds / 2.0).abs() < 1e-15 && margin < 1e-3,
        "{found}"
    );

    let rose = list(&found, "rose");
    assert_eq!(rose.len(), 1);
    let row = &rose[0];
    assert_eq!(row["url"], "http://example.org/p0");
    assert_eq!(row["certain"], true);
    assert_eq!(
        (&row["left_rank"], &row["right_rank"]),
        (&1.into(), &1.into())
    );
    let change = float(&row["change"]);
    // Damping is a multiple of 2^-32, which changes the result by less than 1e-9.
    assert!((change - (hub - 0.25)).abs() <= margin + 1e-9, "{found}");
    assert!((float(&row["relative"]) - change / 0.25).abs() <= 4.0 * margin);
    assert_eq!(found["days"], 10.0);

    let fell = list(&found, "fell");
    assert_eq!(fell.len(), 3);
    for row in fell {
        assert_eq!(row["certain"], true);
        let leaf = (1.0 - hub) / 3.0;
        assert!((float(&row["change"]) - (leaf - 0.25)).abs() <= margin + 1e-9);
    }
    for (key, expected) in [
        ("common_pages", 4),
        ("new_pages", 0),
        ("missing_pages", 0),
        ("rose_pages", 1),
        ("fell_pages", 3),
        ("unchanged_pages", 0),
        ("diluted_pages", 0),
    ] {
        assert_eq!(found[key], expected, "{key}");
    }
    assert!((float(&found["l1"]) - 2.0 * (hub - 0.25)).abs() <= 2.0 * margin + 1e-9);

    // In the other direction, everything that rose falls.
    let back = lab.run(&format!("compare s {FIRST} --moved 10 --by change --json"));
    let back = back.exits(0).json();
    assert_eq!(back["days"], -10.0);
    let row = &list(&back, "fell")[0];
    assert_eq!(row["url"], "http://example.org/p0");
    assert_eq!(float(&row["change"]), -change);
}

/// Files have no bounds and no times, so neither is reported.
#[test]
fn files_are_certain_of_nothing() {
    let lab = ring_to_star(4);
    let sides = ["x y", &format!("{FIRST} y"), "x s"].map(String::from);
    for sides in sides {
        let found = lab.run(&format!("compare {sides} --moved 3 --by change --json"));
        let found = found.exits(0).json();
        for key in ["margin", "days"] {
            assert!(found[key].is_null(), "{sides}: {key}");
        }
        let row = &list(&found, "rose")[0];
        assert_eq!(row["url"], "http://example.org/p0", "{sides}");
        assert!(row["certain"].is_null(), "{sides}");
        let plain = lab
            .run(&format!("compare {sides} --moved 3 --by change"))
            .exits(0)
            .out;
        assert!(plain.contains("unknown  http://example.org/p0"), "{plain}");
    }
}

/// A ring of four becomes one of eight: each page keeps its ratio to the mean, and has half its importance.
#[test]
fn what_new_pages_take_is_dilution() {
    for (settle, is_certain) in [("1e-9", true), ("none", false)] {
        let lab = Lab::new();
        let ring = |n: usize| {
            let rows: Vec<Vec<usize>> = (0..n).map(|page| vec![(page + 1) % n]).collect();
            records(&rows, 3, "2026-01-01T00:00:00Z")
        };
        let ingest = format!("ingest - --format records --store s --settle {settle}");
        lab.feed(&ingest, ring(4).as_bytes()).exits(0);
        lab.feed(&ingest, ring(8).as_bytes()).exits(0);
        let line =
            "compare s/snapshots/000000000012.snapshot s --moved 9 --by change --certain-only";
        let found = lab.run(&format!("{line} --json")).exits(0).json();
        let fell = if is_certain { 4 } else { 0 };
        for (key, expected) in [
            ("common_pages", 4),
            ("new_pages", 4),
            ("rose_pages", 0),
            ("fell_pages", fell),
            ("diluted_pages", fell),
            ("unchanged_pages", 4 - fell),
        ] {
            assert_eq!(found[key], expected, "{key}: {found}");
        }
        assert_eq!(list(&found, "fell").len() as u64, fell, "{found}");
        assert_eq!(list(&found, "new").len(), 4);
        if is_certain {
            assert!((float(&found["l1"]) - 1.0).abs() < 1e-6, "{found}");
            assert!((float(&found["dilution_l1"]) - 0.5).abs() < 1e-6, "{found}");
        }
    }
}

/// Ranks of a thousand and one pages; by default `compare` lists those among the first thousand.
#[test]
fn important_pages_are_listed_by_rank() {
    let lab = Lab::new();
    let table = |first: usize| -> String {
        let rows = (1..=1003).map(|page| format!("p{page}\t{}\n", 2000 - page));
        let rows = rows.map(|row| row.replace("p1003\t997", &format!("p1003\t{first}")));
        rows.collect()
    };
    lab.file("x", table(997));
    // From rank 1003 to 1002, and the reverse.
    lab.file("y", table(998).replace("p1002\t998", "p1002\t997"));
    lab.file("z", table(3000));
    let urls = |line: &str| -> Vec<Vec<String>> {
        let found = lab.run(&format!("compare {line} --json")).exits(0).json();
        let url = |row: &Value| row["url"].as_str().unwrap().to_owned();
        ["rose", "fell"]
            .map(|name| list(&found, name).iter().map(url).collect())
            .into()
    };
    let none: [&[&str]; 2] = [&[], &[]];
    let urls = |line: &str| urls(&format!("{line} --by rank"));
    assert_eq!(urls("x y --moved 9"), none);
    assert_eq!(urls("x y --moved 9 --top 1003"), [["p1003"], ["p1002"]]);
    assert_eq!(urls("x z --moved 1"), [["p1003"], ["p1"]]);
    // Nothing is certain about files.
    let done = lab.run("compare x z --moved 9 --certain-only");
    done.exits(0).says(&["no bound", "--certain-only"]);
    assert_eq!(urls("x z --moved 9 --certain-only"), none);
    lab.run("compare x z --certain-only").exits(2);
}

/// Regression: pages that lost importance were under "rose".
///
/// A page links to 40 others, which therefore tie; then each of these links to it. It rises from rank 41 to rank 1, and
/// the others change their ranks by differences in the last digits.
#[test]
fn pages_that_lost_importance_did_not_rise() {
    let lab = Lab::new();
    let to: Vec<usize> = (1..=40).collect();
    let ingest = "ingest - --format records --store s --settle 1e-9";
    let first = records(std::slice::from_ref(&to), 1, "2026-01-01T00:00:00Z");
    lab.feed(ingest, first.as_bytes()).exits(0);
    let mut rows = vec![to];
    rows.resize(41, vec![0]);
    let second = records(&rows, 1, "2026-01-02T00:00:00Z");
    lab.feed(ingest, second.as_bytes()).exits(0);
    for by in ["rank", "relative"] {
        let compare = format!("compare s --snapshot 1 --moved 50 --certain-only --by {by} --json");
        let found = lab.run(&compare).exits(0).json();
        let rose = list(&found, "rose");
        assert_eq!(rose.len(), 1, "{found}");
        assert_eq!(rose[0]["url"], "http://example.org/p0");
        assert_eq!(
            (&rose[0]["left_rank"], &rose[0]["right_rank"]),
            (&41.into(), &1.into())
        );
        for row in list(&found, "fell") {
            assert!(float(&row["change"]) < 0.0, "{row}");
        }
    }
}

/// Reads rank and importance from an export, by URL.
fn export_of(lab: &Lab, store: &str) -> HashMap<String, (u64, f64)> {
    let tsv = lab.export(store);
    let rows = tsv.lines().skip(1).map(|line| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap();
        let (url, importance, rank) = (next(), next(), next());
        (
            url.into(),
            (rank.parse().unwrap(), importance.parse().unwrap()),
        )
    });
    rows.collect()
}

/// Checks every row of the JSON report against the two exports.
#[track_caller]
fn check(found: &Value, before: &HashMap<String, (u64, f64)>, after: &HashMap<String, (u64, f64)>) {
    let near = |value: &Value, expected: f64| {
        let value = float(value);
        assert!(
            (value - expected).abs() <= 1e-15 + 1e-12 * expected.abs(),
            "{value} {expected}"
        );
    };
    let mut seen = 0;
    for (name, sign) in [("rose", 1.0), ("fell", -1.0)] {
        for row in list(found, name) {
            let url = row["url"].as_str().unwrap();
            let (l, r) = (before[url], after[url]);
            assert_eq!(
                (&row["left_rank"], &row["right_rank"]),
                (&l.0.into(), &r.0.into())
            );
            assert_eq!(row["rank_change"], l.0 as i64 - r.0 as i64);
            near(&row["left_importance"], l.1);
            near(&row["right_importance"], r.1);
            near(&row["change"], r.1 - l.1);
            assert!(sign * float(&row["change"]) > 0.0);
            // A change within the margin counts as unchanged.
            seen += u64::from(row["certain"] != false);
        }
    }
    for (name, of, other) in [("new", after, before), ("missing", before, after)] {
        for row in list(found, name) {
            let url = row["url"].as_str().unwrap();
            assert!(!other.contains_key(url), "{url}");
            assert_eq!(row["rank"], of[url].0);
            near(&row["importance"], of[url].1);
            seen += 1;
        }
        let absent = of.keys().filter(|url| !other.contains_key(*url)).count();
        assert_eq!(list(found, name).len(), absent, "{name}");
    }
    let union = before
        .keys()
        .filter(|url| !after.contains_key(*url))
        .count()
        + after.len();
    assert_eq!(
        seen + found["unchanged_pages"].as_u64().unwrap(),
        union as u64
    );
}

/// The comparison of two snapshots of one store by number, and that of their exports by name, agree.
#[test]
fn snapshots_of_one_store_say_what_their_exports_say() {
    let lab = Lab::new();
    let lines = crawl(91, 3_000);
    lab.file("a", lines[..1_000].concat());
    lab.file("b", lines[1_000..].concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("export --to tsv --store s -o x").exits(0);
    let before = export_of(&lab, "s");
    lab.run("ingest a b --store s").exits(0);
    lab.run("export --to tsv --store s -o y").exits(0);
    let after = export_of(&lab, "s");
    assert!(after.len() > before.len());
    let first = "s/snapshots/000000001000.snapshot";
    for by in ["change", "relative", "rank"] {
        let all = format!("--moved 100000 --by {by} --top 100000 --json");
        for sides in [format!("{first} s"), "x y".into(), "x s".into()] {
            let found = lab.run(&format!("compare {sides} {all}")).exits(0).json();
            match by {
                "rank" => {}
                _ => check(&found, &before, &after),
            }
            // Sorted by the requested criterion.
            for (name, sign) in [("rose", 1.0), ("fell", -1.0)] {
                let key = |row: &Value| match by {
                    "change" => float(&row["change"]),
                    "relative" => row["relative"].as_f64().unwrap_or(f64::INFINITY),
                    _ => float(&row["rank_change"]),
                };
                let keys: Vec<f64> = list(&found, name)
                    .iter()
                    .map(|row| sign * key(row))
                    .collect();
                assert!(keys.is_sorted_by(|a, b| a >= b), "{sides} {by} {name}");
                assert!(keys.iter().all(|&key| key > 0.0) && !keys.is_empty());
            }
        }
    }
    let back = lab.run(&format!(
        "compare s {first} --moved 100000 --by change --top 100000 --json"
    ));
    check(&back.exits(0).json(), &after, &before);

    // Only the first 20 of a side.
    let line = format!("compare {first} s --moved 100000 --by change --top 20 --json");
    let found = lab.run(&line).exits(0).json();
    let union = |url: &str| {
        before.get(url).is_some_and(|page| page.0 <= 20)
            || after.get(url).is_some_and(|page| page.0 <= 20)
    };
    let urls: Vec<&str> = ["rose", "fell", "new", "missing"]
        .iter()
        .flat_map(|name| list(&found, name))
        .map(|row| row["url"].as_str().unwrap())
        .collect();
    assert!(urls.iter().all(|url| union(url)));
    let expected = after.keys().chain(before.keys()).filter(|url| union(url));
    let expected: std::collections::HashSet<_> = expected.collect();
    assert_eq!(urls.len(), expected.len());
    // The summary covers all pages.
    assert_eq!(found["right_pages"], after.len());
}

/// Copies of a store are joined by name, whether they diverged or not.
#[test]
fn copies_of_a_store() {
    let lab = Lab::new();
    let lines = crawl(92, 1_500);
    lab.file("a", lines[..500].concat());
    lab.file("b", lines[500..1_000].concat());
    lab.file("c", lines[1_000..].concat());
    lab.run("ingest a --store s").exits(0);
    lab.copy("s", "copy");
    lab.copy("s", "other");
    let before = export_of(&lab, "s");
    lab.run("ingest a b --store s").exits(0);
    lab.run("ingest a c --store other").exits(0);
    let after = export_of(&lab, "s");
    let other = export_of(&lab, "other");
    let found = lab
        .run("compare copy s --moved 100000 --by change --top 100000 --json")
        .exits(0)
        .json();
    check(&found, &before, &after);
    let found = lab
        .run("compare other s --moved 100000 --by change --top 100000 --json")
        .exits(0)
        .json();
    check(&found, &other, &after);
    assert!(
        !found["margin"].is_null()
            || found["left"]["bound_l1"].is_null()
            || found["right"]["bound_l1"].is_null()
    );
}

/// More pages than a block of a snapshot has (131,072), on one side or on both. They are not all held in memory: joined
/// by name, 1,300,002 pages on two sides would take at least 24 bytes each, 31 MB, beside 17 MB of the program.
#[test]
fn many_pages_in_little_memory() {
    let lab = Lab::new();
    let row = |to: std::ops::Range<u32>| {
        let targets: String = to.map(|page| format!("\tn{page}")).collect();
        format!("hub{targets}\n")
    };
    lab.file("a", row(0..450_000));
    lab.file("b", row(450_000..850_000));
    let ingest = "--format adjacency --store s --marks 0";
    lab.run(&format!("ingest a {ingest}")).exits(0);
    lab.run(&format!("ingest a b {ingest}")).exits(0);
    let first = "s/snapshots/000000000001.snapshot";
    let run = |sides: String| {
        let line = format!("compare {sides} --moved 2 --json");
        let run = lab.measure(&line, Stdio::null());
        assert!(
            (1..40 << 10).contains(&run.peak_kib),
            "{} KiB",
            run.peak_kib
        );
        run.done.exits(0).json()
    };
    let found = run(format!("{first} s"));
    for (key, expected) in [
        ("common_pages", 450_001),
        ("new_pages", 400_000),
        ("missing_pages", 0),
    ] {
        assert_eq!(found[key], expected, "{key}");
    }
    let urls = |found: &Value, name| -> Vec<String> {
        let url = |row: &Value| row["url"].as_str().unwrap().to_owned();
        list(found, name).iter().map(url).collect()
    };
    // All targets are equal, so they are in order of first appearance.
    assert_eq!(urls(&found, "new"), ["n450000", "n450001"]);
    let back = run(format!("s {first}"));
    assert_eq!(
        (&back["missing_pages"], &back["new_pages"]),
        (&400_000.into(), &0.into())
    );
    assert_eq!(urls(&back, "missing"), ["n450000", "n450001"]);
}

/// Scores computed by hand: sixteenths are exact.
#[test]
fn tables_by_hand() {
    let lab = Lab::new();
    lab.file("x", "url\tscore\na\t8\nb\t4\nc\t2\nd\t2\n");
    lab.file("y", gzip(b"c\t4\nb\t3\ne\t1\na\t8\n"));
    let found = lab.run("compare x y --moved 5 --json").exits(0).json();
    let [rose, fell, new, gone] = ["rose", "fell", "new", "missing"].map(|name| list(&found, name));
    assert_eq!(
        (rose.len(), fell.len(), new.len(), gone.len()),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (&rose[0]["url"], &rose[0]["change"]),
        (&"c".into(), &0.125.into())
    );
    assert_eq!(
        (&rose[0]["relative"], &rose[0]["rank_change"]),
        (&1.0.into(), &1.into())
    );
    assert_eq!(
        (&fell[0]["url"], &fell[0]["change"]),
        (&"b".into(), &(-0.0625).into())
    );
    assert_eq!((&new[0]["url"], &new[0]["rank"]), (&"e".into(), &4.into()));
    assert_eq!(
        (&gone[0]["url"], &gone[0]["rank"]),
        (&"d".into(), &3.into())
    );
    assert_eq!(
        (&found["unchanged_pages"], &found["same_rank_pages"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&found["l1"], &found["linf"]),
        (&0.375.into(), &0.125.into())
    );
    let plain = lab.run("compare x y --moved 5").exits(0).out;
    for line in [
        "common_pages\t3",
        "new_pages\t1",
        "margin\tunknown",
        "l1\t0.375",
    ] {
        assert!(plain.lines().any(|found| found == line), "{line}: {plain}");
    }
    // Without lists, the sums of all pages are the same.
    let none = lab.run("compare x y --moved 0 --json").exits(0).json();
    for name in ["rose", "fell", "new", "missing"] {
        assert_eq!(none[name], Value::Array(vec![]));
    }
    assert_eq!(none["l1"], found["l1"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let lab = Lab::new();
    lab.file("a", crawl(93, 50).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("export --to parquet --store s -o p").exits(0);
    lab.run("export --to jsonl --store s -o j").exits(0);
    lab.file("t", "a\t1\n");
    let name = "s/snapshots/000000000050.snapshot";
    let snapshot = std::fs::read(lab.path(name)).unwrap();
    // Outside a store there are no names.
    lab.file("loose", &snapshot);
    std::fs::create_dir(lab.path("empty")).unwrap();
    for moved in ["", "--moved 3"] {
        for (side, says) in [
            ("p", "Parquet"),
            ("j", "JSON lines"),
            ("loose", "inside its store"),
            ("empty", "not a cashrank store"),
        ] {
            for sides in [
                format!("{side} t"),
                format!("t {side}"),
                format!("s {side}"),
            ] {
                let done = lab.run(&format!("compare {sides} {moved}"));
                done.exits(2).says(&[says, side]);
            }
        }
        lab.run(&format!("compare s nothing {moved}"))
            .exits(7)
            .says(&["nothing"]);
        lab.file("torn", "a\t1\nb\n");
        lab.run(&format!("compare s torn {moved}"))
            .exits(4)
            .says(&["torn", "no tab"]);
        // Another version, or damage anywhere, is also recognised by the name.
        let mut other = snapshot.clone();
        let end = other.len() - 1;
        (other[7], other[end]) = (b'9', b'9');
        lab.file("s/snapshots/000000000051.snapshot", &other);
        lab.run(&format!(
            "compare s s/snapshots/000000000051.snapshot {moved}"
        ))
        .exits(2)
        .says(&["version 09"]);
        // Importance, which every comparison reads, is at the offset in the directory's first entry.
        let number =
            |at: usize| u64::from_le_bytes(snapshot[at..at + 8].try_into().unwrap()) as usize;
        let importance = number(number(snapshot.len() - 40));
        for at in [0, importance + 5, end] {
            let mut bytes = snapshot.clone();
            bytes[at] ^= 1;
            lab.file("s/snapshots/000000000051.snapshot", &bytes);
            for sides in [
                "s s/snapshots/000000000051.snapshot",
                "s/snapshots/000000000051.snapshot t",
            ] {
                lab.run(&format!("compare {sides} {moved}"))
                    .exits(5)
                    .says(&["damaged"]);
            }
        }
    }
    lab.run("compare s s --by rank").exits(2);
    lab.run("compare s s --top 3").exits(2);
    lab.run("compare s s --moved 3 --top 0").exits(2);
    lab.run("compare s s --moved 3 --by luck")
        .exits(2)
        .says(&["possible values: change, relative, rank"]);
}

/// A pipe cannot be read twice, as a comparison by names must.
#[test]
fn pipes_are_refused_before_they_are_read() {
    let lab = Lab::new();
    lab.file("t", "a\t1\n");
    let done = lab.feed("compare /dev/stdin t --moved 3", b"a\t1\n");
    done.exits(2).says(&["not a regular file", "/dev/stdin"]);
    lab.feed("compare /dev/stdin t --json", b"a\t1\n").exits(0);
}

/// A ring of three has a third each, and a sixth after another ring appears: the L1 distance of the two rankings is 1.
#[test]
fn a_single_side_is_compared_with_the_ranking_before() {
    let lab = Lab::new();
    let ring = |name: &str| -> String {
        let record = |page: u32| {
            let (url, to) = (format!("{name}{page}"), format!("{name}{}", (page + 1) % 3));
            format!("{{\"url\":\"http://{url}.example/\",\"links\":[\"http://{to}.example/\"]}}\n")
        };
        (0..3).map(record).collect()
    };
    let ingest = "ingest - --format records --store s --settle 1e-9";
    lab.feed(ingest, ring("a").as_bytes()).exits(0);
    lab.run("compare s")
        .exits(2)
        .says(&["no ranking before snapshot 3"]);
    lab.feed(ingest, ring("b").as_bytes()).exits(0);
    lab.run("export --to scores -o exact --store s").exits(0);
    let first = |out: &str| out.lines().next().unwrap().to_owned();
    let told = lab.run("compare s").exits(0).says(&["comparing s/"]);
    assert!(first(&told.out).starts_with("agree\tno: 1.0e0 apart (L1)"));
    let json = lab.run("compare s --json").exits(0).json();
    assert_eq!(json["agree"], false);
    assert!((json["l1"].as_f64().unwrap() - 1.0).abs() < 1e-8, "{json}");
    let moved = lab.run("compare s --moved 1").exits(0).out;
    assert_eq!(first(&moved), first(&told.out));
    let same = lab.run("compare s s/snapshots/000000000006.snapshot");
    assert!(first(&same.exits(0).out).starts_with("agree\tyes: they are the same"));
    let both = lab.run("compare exact exact").exits(0).out;
    assert!(first(&both).starts_with("agree\tunknown"), "{both}");

    // The store of the environment, alone and with a file of scores.
    let run = |args: &[&str], store: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cashrank"));
        command.args(args).current_dir(lab.path(""));
        match store {
            Some(store) => command.env("CASHRANK_STORE", store),
            None => command.env_remove("CASHRANK_STORE"),
        };
        let done = command.output().unwrap();
        let out = String::from_utf8(done.stdout).unwrap();
        (done.status.code(), out.lines().next().map(str::to_owned))
    };
    assert_eq!(
        run(&["compare"], Some("s")),
        (Some(0), Some(first(&told.out)))
    );
    let file = run(&["compare", "exact"], Some("s")).1.unwrap();
    assert!(file.starts_with("agree\tyes, if exact is exact"), "{file}");
    for args in [&["compare"][..], &["compare", "exact"]] {
        assert_eq!(run(args, None), (Some(2), None), "{args:?}");
    }
}
