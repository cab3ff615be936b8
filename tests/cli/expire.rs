//! `--expire`: links of pages that no fetch has reached for a long time are left out when importance is settled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use crate::support::{Dice, Lab};

/// Formats the day of a fetch as records have it.
fn day(day: u64) -> String {
    format!("2026-03-{day:02}T00:00:00Z")
}

/// State of a site's pages after a crawl of 31 days.
#[derive(Default)]
struct Crawl {
    records: String,
    /// Latest links of each page that was reached, and the day of its last fetch; 0 if its time is unknown.
    rows: BTreeMap<u64, (u64, BTreeSet<u64>)>,
    pages: BTreeSet<u64>,
}

impl Crawl {
    /// Simulates the crawl: a page is fetched again at random times, is found unchanged or gone, or is unreachable,
    /// which is not a fetch.
    fn new(seed: u64) -> Crawl {
        let mut crawl = Crawl::default();
        let mut dice = Dice(seed);
        for at in 1..=31 {
            for _ in 0..6 {
                let page = dice.roll(60);
                let links: BTreeSet<u64> = (0..dice.roll(5)).map(|_| dice.roll(80)).collect();
                match dice.roll(10) {
                    0 if crawl.rows.contains_key(&page) => crawl.unchanged(at, page),
                    1 => crawl.note(at, page, "\"status\":503"),
                    2 => crawl.fetched(at, page, BTreeSet::new(), "\"status\":404"),
                    _ => {
                        let names: Vec<String> =
                            links.iter().map(|link| format!("\"/{link}\"")).collect();
                        let what = format!("\"links\":[{}]", names.join(","));
                        crawl.fetched(at, page, links, &what);
                    }
                }
            }
        }
        crawl
    }

    fn unchanged(&mut self, at: u64, page: u64) {
        self.note(at, page, "\"status\":304");
        self.rows.entry(page).and_modify(|row| row.0 = at);
    }

    fn fetched(&mut self, at: u64, page: u64, links: BTreeSet<u64>, what: &str) {
        self.note(at, page, what);
        self.pages.extend(&links);
        self.rows.insert(page, (at, links));
    }

    fn note(&mut self, at: u64, page: u64, what: &str) {
        self.pages.insert(page);
        let time = day(at);
        writeln!(
            self.records,
            "{{\"url\":\"http://a.example/{page}\",\"time\":\"{time}\",{what}}}"
        )
        .unwrap();
    }

    /// Computes PageRank by power iteration, without the links of pages whose last fetch was before `since`.
    fn pagerank(&self, since: u64) -> HashMap<String, f64> {
        let damping = 0.85;
        let n = self.pages.len() as f64;
        let mut ranks: BTreeMap<u64, f64> =
            self.pages.iter().map(|&page| (page, 1.0 / n)).collect();
        for _ in 0..300 {
            let mut next: BTreeMap<u64, f64> = self.pages.iter().map(|&page| (page, 0.0)).collect();
            let mut rest = 0.0;
            for (page, rank) in &ranks {
                let row = self.rows.get(page).filter(|(last, _)| *last >= since);
                let targets: Vec<u64> = row.map_or(Vec::new(), |(_, links)| {
                    links.iter().copied().filter(|to| to != page).collect()
                });
                if targets.is_empty() {
                    rest += damping * rank;
                }
                for to in &targets {
                    *next.get_mut(to).unwrap() += damping * rank / targets.len() as f64;
                }
            }
            let each = (rest + 1.0 - damping) / n;
            next.values_mut().for_each(|rank| *rank += each);
            ranks = next;
        }
        let url = |page| format!("http://a.example/{page}");
        ranks
            .into_iter()
            .map(|(page, rank)| (url(page), rank))
            .collect()
    }

    /// Returns the number of pages whose links are left out.
    fn expired(&self, since: u64) -> u64 {
        let old = self.rows.values().filter(|(last, _)| *last < since);
        old.count() as u64
    }
}

/// Returns the L1 distance of a store's ranking from another.
fn off(lab: &Lab, store: &str, exact: &HashMap<String, f64>) -> f64 {
    let told = lab.export(store);
    let lines: Vec<(&str, f64)> = told
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .map(|fields| (fields[0], fields[1].parse().unwrap()))
        .collect();
    assert_eq!(lines.len(), exact.len());
    lines
        .iter()
        .map(|(url, rank)| (exact[*url] - rank).abs())
        .sum()
}

#[test]
fn the_ranking_is_pagerank_without_the_links_of_old_pages() {
    for seed in 1..4 {
        let lab = Lab::new();
        let crawl = Crawl::new(seed);
        lab.file("crawl", &crawl.records);
        for age in [5, 12, 30] {
            let store = format!("s{age}");
            lab.run(&format!(
                "ingest crawl --store {store} --settle 1e-9 --expire {age}d"
            ))
            .exits(0);
            let stat = lab.stat(&store);
            let since = 31 - age;
            assert_eq!(
                stat["expired"]["pages"],
                crawl.expired(since),
                "seed {seed}, {age}d"
            );
            let off = off(&lab, &store, &crawl.pagerank(since));
            let bound = stat["bound_l1"].as_f64().unwrap();
            assert!(
                off <= bound + 1e-12 && bound < 4e-9,
                "seed {seed}, {age}d: {off}, {bound}"
            );
        }
        assert!(crawl.expired(26) > 10 && crawl.expired(1) == 0);
        // The result does not depend on the way there.
        let whole = lab.snapshot("s12");
        lab.run("ingest crawl --store late --settle 1e-9").exits(0);
        assert_ne!(lab.export("late"), lab.export("s12"));
        lab.run("settle --store late --until 1e-9 --expire 12d")
            .exits(0);
        assert_eq!(lab.export("late"), lab.export("s12"));
        lab.run("ingest crawl --store steps --settle 1e-9 --expire 12d --checkpoint-every 7 --snapshot-every 31 --threads 3")
            .exits(0);
        assert_eq!(lab.snapshot("steps"), whole);
    }
}

/// A ranking is identified by what it leaves out, too: another age makes another ranking, and a more accurate one
/// leaves out the same.
#[test]
fn a_ranking_keeps_its_age_until_another_is_requested() {
    let lab = Lab::new();
    let crawl = Crawl::new(7);
    lab.file("crawl", &crawl.records);
    let ingest = |line: &str| {
        let line = format!("ingest crawl --store s {line}");
        lab.run(&line).exits(0).says(&["accuracy"])
    };
    ingest("--expire 3w").says(&[
        "without the links of",
        "last fetched before 2026-03-10T00:00:00Z",
    ]);
    let stat = lab.run("stat --store s").exits(0).out;
    assert!(stat.contains("without the links of"), "{stat}");
    lab.run("top --store s").exits(0);
    lab.run("ingest crawl --store s --expire 21d")
        .exits(0)
        .says(&["nothing to do"]);
    lab.run("settle --store s --until 1e-9").exits(0);
    assert_eq!(lab.stat("s")["expired"]["pages"], crawl.expired(10));
    assert!(off(&lab, "s", &crawl.pagerank(10)) < 2e-9);
    lab.run("settle --store s --until 1e-9 --expire none")
        .exits(0);
    assert!(off(&lab, "s", &crawl.pagerank(0)) < 2e-9);
    assert!(lab.stat("s")["expired"].is_null());
    ingest("--expire 5d");
    assert_eq!(lab.stat("s")["expired"]["pages"], crawl.expired(26));
    ingest("");
    assert!(lab.stat("s")["expired"].is_null());
}

#[test]
fn what_cannot_be_done_is_refused() {
    let lab = Lab::new();
    lab.file(
        "timeless",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n",
    );
    // A later file may have times, so an ingest continues.
    lab.run("ingest timeless --store s --expire 90d")
        .exits(0)
        .says(&["--expire had no effect", "when it was fetched", "--field"]);
    lab.run("settle --store s --expire 90d")
        .exits(2)
        .says(&["--expire: no record says when it was fetched", "--field"]);
    lab.run("verify --deep --store s").exits(0);
    for other in [
        "--settle none",
        "--keep-links none",
        "--window whole",
        "--max-age 3d",
    ] {
        lab.run(&format!("ingest timeless --store new --expire 90d {other}"))
            .exits(2)
            .says(&["--expire", "--settle none"]);
    }
    assert!(!lab.path("new").exists());
    for age in ["0d", "1.5", "90", "-1d", "90y"] {
        lab.run(&format!("settle --store s --expire={age}"))
            .exits(2)
            .says(&["90d"]);
    }
    lab.run("ingest timeless --store rowless --keep-links none")
        .exits(0);
    lab.file(
        "more",
        "{\"url\":\"http://a.example/c\",\"time\":\"2026-03-01T00:00:00Z\"}\n",
    );
    lab.run("ingest more --store s --expire 90d").exits(0);
    assert_eq!(lab.stat("s")["expired"]["pages"], 0);
    lab.run("ingest more --store rowless --expire 90d")
        .exits(0)
        .says(&["--expire had no effect"]);
    lab.run("settle --store rowless --expire 90d")
        .says(&["keep"]);
}

/// A page whose fetches have no times may have been fetched just now.
#[test]
fn a_page_without_a_time_does_not_expire() {
    let lab = Lab::new();
    let records = "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n\
        {\"url\":\"http://a.example/b\",\"time\":\"2025-01-01T00:00:00Z\",\"links\":[\"/\",\"/c\"]}\n\
        {\"url\":\"http://a.example/c\",\"time\":\"2026-03-01T00:00:00Z\",\"links\":[\"/\"]}\n";
    lab.file("crawl", records);
    lab.run("ingest crawl --store s --expire 90d").exits(0);
    assert_eq!(lab.stat("s")["expired"]["pages"], 1);
}

/// Regression: one record with a wrong date made all other pages old, and their links were left out silently.
#[test]
fn one_date_far_ahead_leaves_no_links_out() {
    let lab = Lab::new();
    let mut records: String = (0..50)
        .map(|page| {
            format!(
                "{{\"url\":\"http://a.example/{page}\",\"links\":[\"/{}\"],\"time\":\"2024-05-{:02}T00:00:00Z\"}}\n",
                (page + 1) % 50,
                page % 30 + 1
            )
        })
        .collect();
    lab.file("crawl", &records);
    lab.run("ingest crawl --store right --expire 20d").exits(0);
    let expected = lab.stat("right")["expired"].clone();
    assert!(expected["pages"].as_u64().unwrap() > 0);
    let wrong =
        "{\"url\":\"http://a.example/0\",\"links\":[\"/1\"],\"time\":\"2124-05-01T00:00:00Z\"}\n";
    for at in [0, records.len()] {
        records.insert_str(at, wrong);
        lab.file("wrong", &records);
        let store = format!("s{at}");
        lab.run(&format!("ingest wrong --store {store} --expire 20d"))
            .exits(0)
            .says(&["1 page is dated more than a year after all others"]);
        let found = lab.stat(&store)["expired"].clone();
        assert_eq!(found["before"], expected["before"]);
        assert_eq!(found["ahead"], 1);
        records = records.replace(wrong, "");
    }
    let old = "next --store s0 --refetch --older-than 20d -n 100";
    let listed = lab.run(old).out;
    assert!((1..45).contains(&listed.lines().count()), "{listed}");
}

/// Records without a time took the date over, so that no longer few pages had it, and it was believed.
#[test]
fn a_date_far_ahead_is_not_handed_on() {
    let lab = Lab::new();
    let record = |page: usize, more: &str| {
        let next = (page + 1) % 50;
        format!("{{\"url\":\"http://a.example/{page}\",\"links\":[\"/{next}\"]{more}}}\n")
    };
    let dated = |date: &str| format!(",\"time\":\"{date}T00:00:00Z\"");
    let mut records: Vec<String> = (1..10)
        .map(|page| record(page, &dated("2024-05-01")))
        .collect();
    // Totals of a page are one record, which confirms no time of its own.
    let totals = ",\"visits\":2,\"failed\":1,\"last_failed\":\"2124-05-02T00:00:00Z\"";
    let far = record(0, &(dated("2124-05-01") + totals));
    records.insert(0, far);
    records.extend((10..50).map(|page| record(page, "")));
    records.push(record(51, ",\"status\":503"));
    lab.file("first", records.concat());
    records[..10].rotate_left(1);
    lab.file("wrong", records.concat());
    for (input, options) in [
        ("wrong", ""),
        ("wrong", "--checkpoint-every 7 --window fixed:2"),
        ("wrong", "--window fixed:90d"),
        ("first", ""),
        ("first", "--checkpoint-every 3"),
    ] {
        lab.run(&format!("ingest {input} --store s {options}"))
            .exits(0);
        let table = lab
            .run("export --to jsonl --without-gone --store s")
            .exits(0)
            .out;
        let at = |date: &str| table.matches(&format!("\"{date}T00:00:00Z\"")).count();
        assert_eq!((at("2024-05-01"), at("2124-05-01")), (49, 1), "{table}");
        std::fs::remove_dir_all(lab.path("s")).unwrap();
    }
    lab.run("ingest wrong --store s --expire 90d")
        .exits(0)
        .says(&["1 page is dated more than a year after all others"]);
    assert_eq!(lab.stat("s")["expired"]["pages"], 0);
    // Sorted by time, each page has the same one.
    lab.run("convert --sort time wrong -o sorted.jsonl")
        .exits(0);
    let text = std::fs::read_to_string(lab.path("sorted.jsonl")).unwrap();
    assert!(
        text.lines().last().unwrap().contains("2124-05-01"),
        "{text}"
    );
}

/// Regression: ages, times of snapshots and their days counted from that date. A page whose fetch had just failed was
/// listed at once, `--snapshot` found nothing before 2124, and all snapshots were of one day.
#[test]
fn one_date_far_ahead_changes_no_age_and_no_day() {
    let lab = Lab::new();
    let far = "{\"url\":\"http://a.test/far\",\"links\":[\"/h\"],\"fetched_at\":\"2124-01-01T00:00:00Z\"}\n\
               {\"url\":\"http://a.test/later\",\"status\":503,\"fetched_at\":\"2124-01-02T00:00:00Z\"}\n";
    let failed = |day: u64| {
        let at = format!("\"fetched_at\":\"{}\"", self::day(day));
        format!("{{\"url\":\"http://a.test/failed\",\"status\":503,{at}}}\n")
    };
    for (store, more) in [("right", ""), ("wrong", far)] {
        for day in 1..=4 {
            let mut records: String = (0..3)
                .map(|page| {
                    format!(
                        "{{\"url\":\"http://a.test/{day}/{page}\",\"links\":[\"/h\"],\"fetched_at\":\"{}\"}}\n",
                        self::day(day)
                    )
                })
                .collect();
            records += &failed(day);
            if day == 1 {
                records += more;
            }
            lab.file(&format!("{store}{day}.jsonl"), records);
            lab.run(&format!(
                "ingest {store}{day}.jsonl --store {store} --keep-snapshots recent=1,daily=9 --expire 2d"
            ))
            .exits(0);
        }
    }
    let both = |line: &str| {
        let said = ["right", "wrong"].map(|store| {
            lab.run(&line.replace("STORE", &format!("--store {store}")))
                .exits(0)
                .out
        });
        (said[0].clone(), said[1].clone())
    };
    // A page that failed just now waits; for one that failed "in 2124" the time is unknown.
    let (right, wrong) = both("next STORE --quiet");
    assert_eq!(right, "http://a.test/h\n");
    let listed: BTreeSet<&str> = wrong.lines().collect();
    assert_eq!(
        listed,
        BTreeSet::from(["http://a.test/h", "http://a.test/later"])
    );
    let (right, wrong) = both("next STORE --quiet --refetch --older-than 36h -n 20");
    let right: BTreeSet<&str> = right.lines().collect();
    let wrong: BTreeSet<&str> = wrong.lines().collect();
    assert_eq!(right.len(), 6);
    assert_eq!(right, wrong);
    // Each day has its snapshot, and it is found.
    let days = |text: &str| -> Vec<u64> {
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: serde_json::Value| {
                line["last_fetch"].as_str().unwrap()[8..10].parse().unwrap()
            })
            .collect()
    };
    let (right, wrong) = both("snapshots STORE --json");
    assert_eq!(days(&right), [1, 2, 3, 4]);
    assert_eq!(days(&wrong), [1, 2, 3, 4]);
    let (right, wrong) = both("top STORE --snapshot 2026-03-02 --json");
    assert!(right.contains("a.test/2/") && !right.contains("a.test/3/"));
    assert!(wrong.contains("a.test/2/") && !wrong.contains("a.test/3/"));
}
