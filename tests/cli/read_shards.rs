//! Shards of a crawl that were ranked together, read as one: `--store` given several times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use cashrank_store::shards::{OneProcess, SettleOptions, settle};
use cashrank_store::snapshot::{KeepSnapshots, Watcher};
use cashrank_store::store::{Disk, RealDisk};
use serde_json::{Value, json};

use crate::crawl::crawl;
use crate::support::Lab;

/// Ranks the shards together.
fn rank(lab: &Lab, stores: &[&str], until: f64) {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let dirs: Vec<PathBuf> = stores.iter().map(|store| lab.path(store)).collect();
    let options = SettleOptions {
        until,
        keep: KeepSnapshots::USUAL,
        memory: None,
        watcher: Arc::new(Watcher::default()),
    };
    let mut peers = OneProcess::new(stores.len());
    settle(&disk, &dirs, &mut peers, &options).unwrap().unwrap();
}

/// Reads `input` into the store `one` and into three shards, and ranks both.
fn divided(input: &str) -> Lab {
    let lab = Lab::new();
    lab.file("in", input);
    lab.run("ingest in --store one").exits(0);
    lab.run("settle --until 1e-9 --store one").exits(0);
    for shard in 0..3 {
        lab.run(&format!("ingest in --store {shard} --shard {shard}/3"))
            .exits(0);
    }
    rank(&lab, &["0", "1", "2"], 1e-9);
    lab
}

/// Returns a crawl of seven hosts, which are spread over all shards.
fn crawled() -> String {
    let lines = crawl(7, 400).concat();
    lines.replace("http://h", "http://a")
}

const ALL: &str = "--store 2 --store 0 --store 1";

fn rows(lab: &Lab, command: &str) -> Vec<Value> {
    let json = lab.run(command).exits(0).json();
    json["top"].as_array().unwrap().clone()
}

fn url(row: &Value) -> String {
    row["url"].as_str().unwrap().to_owned()
}

#[test]
fn lists_are_those_of_one_store() {
    let lab = divided(&crawled());
    let one = rows(&lab, "top -n 100000 --json --store one");
    let all = rows(&lab, &format!("top -n 100000 --json {ALL}"));
    let importance = |rows: &[Value]| -> BTreeMap<String, f64> {
        let of = |row| (url(row), row["importance"].as_f64().unwrap());
        rows.iter().map(of).collect()
    };
    let (expected, found) = (importance(&one), importance(&all));
    assert_eq!(
        (one.len(), expected.len()),
        (all.len(), found.len()),
        "each page once"
    );
    assert!(expected.keys().eq(found.keys()));
    // Both are certified to be within 1e-9 of the same PageRank, plus the rounding of damping.
    let apart: f64 = expected
        .iter()
        .map(|(url, of)| (of - found[url]).abs())
        .sum();
    assert!(apart < 1e-8, "{apart}");
    assert!((found.values().sum::<f64>() - 1.0).abs() < 1e-12);
    for row in &all {
        let above = found.values().filter(|of| **of > found[&url(row)]).count() as u64;
        assert_eq!(row["rank"], above + 1, "{row}");
    }
    assert!(all.is_sorted_by_key(|row| row["rank"].as_u64()));

    // For any number of rows, and any order of the stores.
    let first = rows(&lab, "top -n 7 --json --store 0 --store 1 --store 2");
    assert_eq!(first, all[..7]);
    let scope = rows(
        &lab,
        &format!("top --scope host:a3.example -n 5 --json {ALL}"),
    );
    let of_host = |row: &&Value| url(row).starts_with("http://a3.example/");
    let expected: Vec<Value> = all.iter().filter(of_host).take(5).cloned().collect();
    assert_eq!(scope, expected);
    let head = lab.run(&format!("top --json {ALL}")).exits(0).json();
    let whole = lab.run("top --json --store one").exits(0).json();
    assert_eq!(head["records"], whole["records"]);
    assert_eq!(head["pages"], whole["pages"]);
    assert_eq!(head["certain_top"], whole["certain_top"]);
    assert!(head["bound_l1"].as_f64().unwrap() < 3e-9);
    // A single shard holds a part of the ranking: it cannot say which first positions are certain, but knows each
    // page's rank among all.
    for shard in 0..3 {
        let stat = lab.run(&format!("stat --json --store {shard}")).exits(0);
        assert_eq!(stat.json()["certain_top"], Value::Null);
        let line = format!("history {} --json --store {shard}", url(&all[0]));
        let last = lab.run(&line).json()["history"]
            .as_array()
            .unwrap()
            .last()
            .cloned();
        assert_eq!(last.unwrap()["count"], whole["pages"]);
    }
    let text = lab.run(&format!("top -n 3 {ALL}")).exits(0).out;
    assert!(
        text.contains(&url(&all[0])) && text.contains("L1, certified"),
        "{text}"
    );

    // Exports have the same rows.
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].to_owned(), fields[2].to_owned())
    };
    let export = |options: &str| -> Vec<(String, String)> {
        let out = lab.run(&format!("export --to tsv {options}")).exits(0).out;
        out.lines().skip(1).map(fields).collect()
    };
    let ranked = |row: &Value| (url(row), row["rank"].to_string());
    let listed: Vec<_> = all.iter().map(ranked).collect();
    assert_eq!(export(&format!("--sort rank {ALL}")), listed);
    let by_shard = export(ALL);
    let shards: Vec<_> = (0..3)
        .map(|shard| export(&format!("--store {shard}")))
        .collect();
    assert_eq!(by_shard, shards.concat(), "one shard after the other");
    let by_url = export(&format!("--sort url {ALL}"));
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(by_url, sorted);
    // Relative scores refer to the mean of all pages.
    let ratio = format!("export --to scores --score ratio {ALL}");
    let ratios = lab.run(&ratio).exits(0).out;
    let sum: f64 = ratios
        .lines()
        .map(|line| {
            line.rsplit_once('=')
                .or(line.split_once('\t'))
                .unwrap()
                .1
                .parse::<f64>()
                .unwrap()
        })
        .sum();
    assert!((sum - all.len() as f64).abs() < 1e-6, "{sum}");
    let summary = lab
        .run(&format!("export --to tsv -o all.tsv --json {ALL}"))
        .exits(0)
        .json();
    assert_eq!(summary["pages"], all.len());
    assert_eq!(summary["snapshots"].as_array().unwrap().len(), 3);
}

/// Lists that are too long for memory are merged row by row.
#[test]
fn a_long_list_is_merged() {
    let page = |at: u64| format!("http://a{}.example/{at}", at % 13);
    let record = |at: u64| {
        let links: Vec<String> = (0..26).map(|k| page(at * 26 + k * 7)).collect();
        format!("{}\n", json!({"url": page(at), "links": links}))
    };
    let lab = Lab::new();
    lab.file("in", (0..700).map(record).collect::<String>());
    for shard in 0..2 {
        lab.run(&format!("ingest in --store {shard} --shard {shard}/2"))
            .exits(0);
    }
    rank(&lab, &["0", "1"], 1e-4);
    let all = rows(&lab, "top -n 100000 --json --store 0 --store 1");
    assert!(all.len() > 1 << 14, "{}", all.len());
    assert!(all.is_sorted_by_key(|row| row["rank"].as_u64()));
    let urls: BTreeSet<String> = all.iter().map(url).collect();
    assert_eq!(urls.len(), all.len());
    assert_eq!(
        rows(&lab, "top -n 100 --json --store 0 --store 1"),
        all[..100]
    );
}

#[test]
fn a_page_is_answered_for_by_its_shard() {
    let lab = divided(&crawled());
    let all = rows(&lab, &format!("top -n 100000 --json {ALL}"));
    let asked: Vec<&Value> = all.iter().step_by(9).collect();
    let urls: Vec<String> = asked.iter().map(|row| url(row)).collect();
    let command = format!("rank {} --json {ALL}", urls.join(" "));
    let out = lab.run(&command).exits(0).out;
    assert_eq!(out.lines().count(), asked.len());
    for (line, row) in out.lines().zip(asked) {
        let answer: Value = serde_json::from_str(line).unwrap();
        for field in ["url", "rank", "importance", "visits"] {
            assert_eq!(answer[field], row[field], "{field}: {answer}");
        }
        let rank = row["rank"].as_u64().unwrap() as f64;
        let percentile = 100.0 * (1.0 - (rank - 1.0) / all.len() as f64);
        assert!((answer["percentile"].as_f64().unwrap() - percentile).abs() < 1e-9);
        // A single shard gives the same rank, also for the remote pages that it knows, whose importance is rounded down by a
        // part of the bound.
        let alone = lab.run(&format!("rank {} --json --store 1", url(row)));
        let alone: Value = serde_json::from_str(&alone.out).unwrap();
        if alone["known"] == true {
            assert_eq!(alone["rank"], row["rank"]);
            let importance = |of: &Value| of["importance"].as_f64().unwrap();
            let rounded = importance(row) - importance(&alone);
            assert!((0.0..1e-9 / 64.0).contains(&rounded), "{rounded}");
        }
    }
    let unknown = lab.run(&format!("rank http://nowhere.example/ {ALL}"));
    assert!(unknown.exits(1).out.contains("not known"));
}

#[test]
fn the_pages_to_crawl_next_are_merged() {
    let lab = divided(&crawled());
    let next = |options: &str| -> Vec<Value> {
        let out = lab
            .run(&format!("next --json --quiet {options}"))
            .exits(0)
            .out;
        out.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let score = |row: &Value| row["score"].as_f64().unwrap();
    for strategy in ["forecast", "settled", "breadth-first", "greedy"] {
        let strategy = format!("--strategy {strategy} -n 100000");
        let all = next(&format!("{strategy} {ALL}"));
        let of_shards = (0..3).flat_map(|shard| next(&format!("{strategy} --store {shard}")));
        let mut expected: Vec<Value> = of_shards.collect();
        expected.sort_by(|one, other| score(other).total_cmp(&score(one)));
        assert_eq!(all, expected, "{strategy}");
        assert_eq!(
            next(&format!("{} {ALL}", strategy.replace("100000", "5"))),
            all[..5]
        );
    }
    // By importance among all pages, as in a single store.
    let urls = |rows: &[Value]| -> Vec<String> { rows.iter().map(url).collect() };
    let by_importance = next(&format!("--strategy settled -n 100000 {ALL}"));
    let one = next("--strategy settled -n 100000 --store one");
    let sorted = |rows: &[Value]| urls(rows).into_iter().collect::<BTreeSet<String>>();
    assert_eq!(sorted(&by_importance), sorted(&one));

    // Each host is in one shard.
    let all = next(&format!("-n 100000 {ALL}"));
    let mut counts = BTreeMap::<String, u64>::new();
    let is_taken = |row: &&Value| {
        let host = url(row).split('/').nth(2).unwrap().to_owned();
        let count = counts.entry(host).or_default();
        *count += 1;
        *count <= 3
    };
    let expected: Vec<Value> = all.iter().filter(is_taken).take(100).cloned().collect();
    assert_eq!(next(&format!("--per-host 3 -n 100 {ALL}")), expected);

    // Seeds come first, in their own order; excluded pages are excluded in each shard.
    let seeds = [
        "http://a1.example/new",
        "http://a0.example/new",
        "http://a2.example/new",
        "ftp://x/",
    ];
    lab.file("seeds", seeds.join("\n"));
    let excluded = urls(&all[..4]);
    lab.file("busy", excluded.join("\n"));
    let done = lab
        .run(&format!("next -n 6 --seeds seeds --exclude busy {ALL}"))
        .exits(0);
    let done = done.says(&["--seeds: 1 line skipped: another scheme (1)"]);
    assert!(!done.err.contains("other shards"), "{}", done.err);
    let expected: Vec<&str> = seeds[..3]
        .iter()
        .copied()
        .chain(all[4..7].iter().map(|row| row["url"].as_str().unwrap()))
        .collect();
    assert_eq!(done.out.lines().collect::<Vec<_>>(), expected);
    let from_stdin = lab.feed(
        &format!("next -n 2 --seeds - {ALL}"),
        seeds.join("\n").as_bytes(),
    );
    assert_eq!(
        from_stdin.exits(0).out.lines().collect::<Vec<_>>(),
        seeds[..2]
    );
}

#[test]
fn what_shards_hold_is_added_up() {
    let lab = divided(&crawled());
    let all = lab.run(&format!("stat --json {ALL}")).exits(0).json();
    let one = lab.stat("one");
    for field in [
        "records",
        "links",
        "pages",
        "visited",
        "visits",
        "last_fetch",
        "certain_top",
    ] {
        assert_eq!(all[field], one[field], "{field}");
    }
    let shards = all["shards"].as_array().unwrap();
    for (number, shard) in shards.iter().enumerate() {
        assert_eq!(shard["shard"]["number"], number);
        assert_eq!(*shard, lab.stat(&number.to_string()));
        assert_eq!(shard["cluster"], all["cluster"]);
    }
    assert_eq!(all["cluster"]["shards"], 3);
    assert_eq!(all["cluster"]["pages"], one["pages"]);
    assert_eq!(one["cluster"], Value::Null);
    let text = lab.run(&format!("stat {ALL}")).exits(0).out;
    assert!(
        text.contains("in 3 shards") && text.contains("shard 2/3"),
        "{text}"
    );
    let text = lab.run("stat --store 1").exits(0).out;
    assert!(text.contains("of 3 shards"), "{text}");
}

#[test]
fn stores_that_do_not_belong_together_are_refused() {
    let lab = divided(&crawled());
    lab.run("ingest in --store whole").exits(0);
    lab.run("ingest in --store other --shard 1/4").exits(0);
    lab.copy("1", "twin");
    let refuses = |stores: &str, says: &[&str]| {
        for command in [
            "top",
            "rank http://a1.example/p1",
            "export --to tsv",
            "next",
            "stat",
        ] {
            lab.run(&format!("{command} {stores}")).exits(2).says(says);
        }
    };
    refuses(
        "--store 0 --store 1",
        &["2/3 missing", "name the stores of all shards"],
    );
    refuses(
        "--store 0 --store 1 --store twin",
        &["1 and twin", "both are shard 1/3"],
    );
    refuses(
        "--store 0 --store 1 --store whole",
        &["whole", "no shard of one"],
    );
    refuses(
        "--store 0 --store other --store 2",
        &["0 and other", "divided in different ways"],
    );
    // A shard with another bound, or ranked alone.
    lab.copy("2", "nearer");
    lab.copy("0", "0b");
    lab.copy("1", "1b");
    rank(&lab, &["0b", "1b", "nearer"], 1e-10);
    refuses(
        "--store 0 --store 1 --store nearer",
        &[
            "1 and nearer",
            "not made together",
            "cashrank-cluster settle",
        ],
    );
    lab.run("settle --until 1e-3 --store 2").exits(0);
    refuses(
        ALL,
        &[
            "2: its ranking is of this shard alone",
            "cashrank-cluster settle",
        ],
    );
    lab.run("top --store 2").exits(0);

    let stores = "--store 0b --store 1b --store nearer";
    lab.run(&format!("top {stores}")).exits(0);
    for (command, option) in [
        ("top --level host", "--level"),
        ("top --measure harmonic", "--measure"),
        ("rank a1.example --level host", "--level"),
        ("export --to tsv --level domain", "--level"),
        ("export --to tsv --since 10", "--since"),
        ("export --links --to tsv", "--links"),
        ("export --records -o x.jsonl", "--records"),
        ("next --budget discovery=0.5", "--budget"),
        ("stat --record", "--record"),
    ] {
        lab.run(&format!("{command} {stores}"))
            .exits(2)
            .says(&[option, "one store"]);
    }
}

/// The hosts of a domain are in several shards.
#[test]
fn a_domain_has_one_limit_in_all_shards() {
    let domain = |host: usize| if host < 4 { "x" } else { "y" };
    let renamed = (0..7).fold(crawled(), |text, host| {
        let name = format!("http://a{host}.{}.example/", domain(host));
        text.replace(&format!("http://a{host}.example/"), &name)
    });
    let lab = divided(&renamed);
    let all = lab
        .run(&format!("next -n 100000 --quiet {ALL}"))
        .exits(0)
        .out;
    for most in [1, 3, 20] {
        for count in [2, 5, 50] {
            let mut counts = BTreeMap::<&str, u64>::new();
            let is_taken = |url: &&str| {
                let domain = if url.contains(".x.example/") {
                    "x"
                } else {
                    "y"
                };
                *counts.entry(domain).or_default() += 1;
                counts[domain] <= most
            };
            let expected: Vec<&str> = all.lines().filter(is_taken).take(count).collect();
            let command = format!("next --per-domain {most} -n {count} --quiet {ALL}");
            let found = lab.run(&command).exits(0).out;
            assert_eq!(
                found.lines().collect::<Vec<_>>(),
                expected,
                "{most} of {count}"
            );
        }
    }
}
