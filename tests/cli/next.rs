//! `next`: the list from a store equals that of the same order that follows the same crawl in memory.

use std::collections::HashMap;

use cashrank_graph::rows::{Row, Rows, RowsVisitor, Stop};
use cashrank_steer::schedule::{
    Choice, CrawlFacts, CrawlHistory, STRATEGIES, SettledRanking, by_name,
};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use crate::support::Lab;

/// Crawl in memory, with pages numbered as by an ingest.
#[derive(Default)]
struct Read {
    numbers: HashMap<usize, u32>,
    nodes: Vec<usize>,
    rows: Vec<(u32, Vec<u32>)>,
}

impl Rows for Read {
    fn pages(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn links(&self) -> u64 {
        self.rows.iter().map(|row| row.1.len() as u64).sum()
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        for (page, targets) in &self.rows {
            visit(&[Row::new(*page, targets)])?;
        }
        Ok(())
    }
}

impl Read {
    fn number(&mut self, node: usize) -> u32 {
        let next = self.nodes.len() as u32;
        *self.numbers.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            next
        })
    }

    fn read(&mut self, node: usize) {
        let page = self.number(node);
        let mut row: Vec<u32> = links(node).map(|to| self.number(to)).collect();
        row.sort_unstable();
        self.rows.push((page, row));
    }

    fn best(&self, published: &Snapshot, strategy: &str, count: usize) -> Vec<String> {
        let choice: Choice = strategy.parse().unwrap();
        let mut history = CrawlHistory::new(choice.strategy());
        self.sweep(&mut |row| {
            history.row(row);
            Ok(())
        })
        .unwrap();
        let names = by_name(self.nodes.len() as u64, 1, |pages, visit| {
            let nodes = &self.nodes[pages.start as usize..pages.end as usize];
            nodes.iter().for_each(|&node| visit(url(node).as_bytes()));
            Ok(())
        });
        let names = names.unwrap();
        let facts = CrawlFacts {
            names: Some(&names),
            ranking: Some(SettledRanking {
                damping: published.info().settings.config.damping(),
                bound_l1: published.bound_l1().unwrap(),
                importances: published.ranking(),
            }),
            ..CrawlFacts::of(self)
        };
        let best = history.best(&facts, count).unwrap();
        best.iter()
            .map(|of| url(self.nodes[of.page as usize]))
            .collect()
    }
}

const NODES: usize = 240;

fn url(node: usize) -> String {
    format!("http://h{}.example.org/d{}/p{node}", node % 3, node % 5)
}

/// Returns the distinct links of a node, none to itself: near ones, and a few distant popular ones.
fn links(node: usize) -> impl Iterator<Item = usize> {
    let near = (1..=node % 4).map(move |step| (node + 15 * step) % NODES);
    let far = (0..node % 3).map(move |step| (node * node + 7 * step) % 40);
    let mut all: Vec<usize> = near.chain(far).filter(|&to| to != node).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

#[test]
fn a_store_names_what_the_simulator_would() {
    let lab = Lab::new();
    let mut crawl = Read::default();
    let mut records = String::new();
    let mut next: Vec<usize> = vec![17, 101, 3];
    for round in 0..3 {
        for node in next {
            crawl.read(node);
            let to: Vec<String> = links(node).map(url).collect();
            let record = serde_json::json!({"url": url(node), "links": to});
            records.push_str(&format!("{record}\n"));
        }
        let file = format!("crawl{round}.jsonl");
        lab.file(&file, &records);
        lab.run(&format!("ingest {file} --format records --store s{round}"))
            .exits(0);
        let store = lab.path(&format!("s{round}"));
        let ranking = Snapshot::latest(&RealDisk, &store).unwrap();
        // Cash is that of a ledger, whose order another test works out.
        for strategy in STRATEGIES.iter().filter(|strategy| !strategy.by_cash) {
            let named = lab.run(&format!(
                "next --store s{round} -n 6 --strategy {}",
                strategy.name
            ));
            let named: Vec<String> = named.exits(0).out.lines().map(str::to_owned).collect();
            assert_eq!(
                named,
                crawl.best(&ranking, strategy.name, 6),
                "{} {round}",
                strategy.name
            );
        }
        let best = crawl.best(&ranking, "forecast", 12);
        assert!(!best.is_empty());
        let node = |url: &String| url.rsplit_once('p').unwrap().1.parse().unwrap();
        next = best.iter().map(node).collect();
    }
}

#[test]
fn unanswerable_requests_get_a_message() {
    let lab = Lab::new();
    lab.file(
        "one.jsonl",
        "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\",\"http://c.example/\"]}\n",
    );
    lab.run("next --store none")
        .exits(2)
        .says(&["not a cashrank store", "--seeds FILE"]);
    lab.run("ingest one.jsonl --store s --keep-links none")
        .exits(0);
    lab.run("next --store s")
        .exits(2)
        .says(&["forecast", "needs the links", "breadth-first"]);
    lab.run("next --store s --strategy best")
        .exits(2)
        .says(&["unknown strategy", "forecast"]);
    lab.run("next --store s --older-than 30")
        .exits(2)
        .says(&["30d"]);
    lab.run("next --store s --older-than 30d").exits(2).says(&[
        "--older-than",
        "--refetch",
        "--budget",
    ]);
    lab.run("next --store s --budget 0.7")
        .exits(2)
        .says(&["discovery="]);
    let named = lab
        .run("next --store s --strategy breadth-first --scope host:c.example")
        .exits(0);
    assert_eq!(named.out, "http://c.example/\n");
    let again = lab.run("next --store s --refetch --json").exits(0);
    assert!(again.out.contains("\"url\":\"http://a.example/\"") && again.out.lines().count() == 1);
}

#[test]
fn the_help_has_all_orders() {
    let lab = Lab::new();
    let help = lab.run("next --help").exits(0).out;
    for order in ["forecast", "greedy", "breadth-first"] {
        assert!(help.contains(&format!("- {order}:")), "{order}: {help}");
    }
    lab.run("next -n 5")
        .exits(2)
        .says(&["--store", "CASHRANK_STORE"]);
}

fn lines(out: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    lines
}

/// A page whose fetches fail is listed again after some time, but not forever.
#[test]
fn failed_fetches_are_passed_over() {
    let lab = Lab::new();
    let [b, c, d] = [
        "http://b.example/",
        "http://c.example/",
        "http://d.example/",
    ];
    let mut run = 0;
    let mut ingest = |records: &[serde_json::Value]| {
        run += 1;
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        lab.file(&format!("{run}.jsonl"), &text);
        lab.run(&format!("ingest {run}.jsonl --store s")).exits(0);
    };
    let next = |options: &str| lab.run(&format!("next --store s {options}")).exits(0).out;
    ingest(&[
        serde_json::json!({"url": "http://a.example/", "fetched_at": 0, "links": [b, c, d]}),
        serde_json::json!({"url": b, "fetched_at": 3600, "status": 503}),
        serde_json::json!({"url": c, "fetched_at": 3600, "status": 404}),
    ]);
    assert_eq!(lines(&next("")), [d]);
    let later = "--as-of 1970-01-01T02:00:00Z";
    assert_eq!(lines(&next(&format!("{later} --retry-after 1h"))), [b, d]);
    assert_eq!(lines(&next(&format!("{later} --retry-after 61m"))), [d]);
    assert_eq!(
        lines(&next(&format!("{later} --retry-after 0s --max-failures 1"))),
        [d]
    );
    ingest(&[
        serde_json::json!({"url": b, "fetched_at": 7200, "status": -2}),
        serde_json::json!({"url": b, "fetched_at": 7300, "status": 403}),
    ]);
    let later = "--as-of 1971-01-01T00:00:00Z";
    assert_eq!(lines(&next(later)), [d], "given up");
    for limit in ["0", "4"] {
        let named = next(&format!(
            "{later} --max-failures {limit} --strategy breadth-first"
        ));
        assert_eq!(lines(&named), [b, d]);
    }
    let told = lab.run("rank http://b.example/ --store s").exits(0).out;
    assert!(
        told.contains("the last 3 fetches") && told.contains("not crawled"),
        "{told}"
    );
    // Reached: the count restarts. A later failure does not make it a new page.
    ingest(&[
        serde_json::json!({"url": b, "fetched_at": 7400, "links": []}),
        serde_json::json!({"url": b, "fetched_at": 7500, "status": 500}),
    ]);
    let told = lab
        .run("rank http://b.example/ --store s --json")
        .exits(0)
        .out;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["failed"], &told["visits"]), (&1.into(), &1.into()));
    assert_eq!(lines(&next(later)), [d]);
    assert_eq!(lines(&next("--refetch")), ["http://a.example/"]);
    assert_eq!(
        lines(&next(&format!("--refetch {later}"))),
        ["http://a.example/", b]
    );
    lab.file("out.txt", "http://D.example\n\nhttp://nowhere.example/\n");
    assert_eq!(next("--exclude out.txt"), "");
    // A file as Windows programs write it. Regression: the byte order mark made the first URL a different one.
    lab.file("marked.txt", "\u{feff}http://d.example/\r\n");
    assert_eq!(next("--exclude marked.txt"), "");
    lab.run("next --store s --exclude none.txt")
        .exits(7)
        .says(&["none.txt"]);
    lab.run("next --store s --as-of yesterday")
        .exits(2)
        .says(&["now"]);
    lab.run("verify --store s --deep").exits(0);
}

/// Passes over the same records do not count as fetches, and leave failures unchanged.
#[test]
fn repeated_passes_are_no_news() {
    let lab = Lab::new();
    lab.file(
        "a.jsonl",
        "{\"url\":\"http://a.example/\",\"fetched_at\":0,\"links\":[\"http://b.example/\"]}\n\
         {\"url\":\"http://b.example/\",\"fetched_at\":1,\"status\":500}\n",
    );
    lab.run("ingest a.jsonl --store s --repeat 5").exits(0);
    for (url, visits, failed) in [("http://a.example/", 5, 0), ("http://b.example/", 0, 1)] {
        let told = lab
            .run(&format!("rank {url} --store s --json"))
            .exits(0)
            .out;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["visits"], visits);
        assert_eq!(told["failed"], failed);
        assert_eq!(told["compared"], 0);
    }
}

/// Among pages of the same importance and age, the one that changed more often comes first, by Cho and Garcia-Molina's
/// estimator and the gain of a fetch.
#[test]
fn changing_pages_are_refetched() {
    let lab = Lab::new();
    let page = |name: &str| format!("http://{name}.example/");
    let names = ["still", "told", "text", "links"];
    let day = 86_400;
    let mut records = vec![serde_json::json!({
        "url": page("root"), "fetched_at": 0, "links": names.map(page),
    })];
    for look in 0..4 {
        let record = |name: &str| {
            serde_json::json!({
                "url": page(name), "fetched_at": look * day, "links": [page("root")],
            })
        };
        let with = |mut record: serde_json::Value, name: &str, value: serde_json::Value| {
            record[name] = value;
            record
        };
        records.push(record("still"));
        records.push(match look {
            0 => record("told"),
            _ => with(record("told"), "status", 304.into()),
        });
        let digest = ["sha1:A", "sha1:B", "sha1:B", "sha1:C"][look as usize];
        records.push(with(record("text"), "digest", digest.into()));
        // The same two links in another order are no change.
        let both = [page("root"), page("still")];
        let links = match look {
            0 => vec![both[0].clone(), both[1].clone()],
            1 => vec![both[1].clone(), both[0].clone()],
            _ => vec![both[look as usize % 2].clone()],
        };
        records.push(with(record("links"), "links", links.into()));
    }
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    lab.file("a.jsonl", &text);
    lab.run("ingest a.jsonl --store s").exits(0);
    let told = lab
        .run("next --store s --refetch --json --as-of 1970-01-06T00:00:00Z")
        .exits(0)
        .out;
    let told: Vec<serde_json::Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // Four of twelve fetches found a change; the root was fetched once.
    let usual = -((12.0f64 - 4.0 + 0.5) / 12.5).ln();
    for (name, changed) in names.into_iter().zip([0.0, 0.0, 2.0, 2.0]) {
        let found = told
            .iter()
            .find(|found| found["url"] == page(name))
            .unwrap();
        assert_eq!(found["compared"], 3, "{name}");
        assert_eq!(found["changed"].as_f64().unwrap(), changed, "{name}");
        let rate = -((4.0 - changed - (1.0 - (-usual).exp()) + 0.5) / 4.5).ln();
        let (weight, missed) = (found["importance"].as_f64().unwrap(), rate * 2.0);
        let gain = weight / rate * (1.0 - (1.0 + missed) * (-missed).exp());
        let score = found["score"].as_f64().unwrap();
        assert!((score - gain).abs() < 1e-9 * gain, "{name}: {score} {gain}");
    }
    let scores: Vec<f64> = told
        .iter()
        .map(|found| found["score"].as_f64().unwrap())
        .collect();
    assert!(scores.is_sorted_by(|a, b| a >= b));
}

/// A focus changes the order, but no ranking; orders without a virtual page refuse it.
#[test]
fn a_focus_steers_the_order_only() {
    let lab = Lab::new();
    let links = [
        "http://a.example/1",
        "http://www.b.example/2",
        "http://a.example/3",
    ];
    let record = serde_json::json!({"url": "http://root.example/", "links": links});
    lab.file("a.jsonl", format!("{record}\n"));
    lab.run("ingest a.jsonl --store s").exits(0);
    let before = lab.export("s");
    for order in ["forecast", "settled", "xyleme"] {
        let line = format!("next --store s -n 1 --strategy {order}");
        assert_eq!(lab.run(&line).exits(0).out.trim(), links[0]);
        for pages in [
            "host:www.b.example",
            "barehost:b.example",
            "domain:b.example",
        ] {
            let focused = lab.run(&format!("{line} --focus {pages}=0.2"));
            assert_eq!(focused.exits(0).out.trim(), links[1], "{order} {pages}");
        }
    }
    assert_eq!(lab.export("s"), before);
    lab.run("next --store s --strategy fica --focus host:b.example=0.1")
        .exits(2)
        .says(&["cannot favour pages", "forecast"]);
    lab.run("next --store s --focus host:a.example=0.7 --focus host:b.example=0.7")
        .exits(2)
        .says(&["at most 1"]);
    lab.run("next --store s --focus b.example")
        .exits(2)
        .says(&["PAGES=SHARE"]);
}

/// Regression: most orders never listed pages that no page links to any more, or a seed whose fetch failed, and
/// reported that there were no more.
#[test]
fn every_page_not_read_is_named() {
    let lab = Lab::new();
    lab.file(
        "log",
        "{\"url\":\"https://a.example/1\",\"links\":[\"https://a.example/2\",\"https://b.example/u\",\"https://b.example/v\"]}\n\
         {\"url\":\"https://c.example/\",\"status\":503}\n\
         {\"url\":\"https://a.example/1\",\"links\":[\"https://a.example/2\"]}\n",
    );
    lab.run("ingest log --store s").exits(0);
    let expected = [
        "https://a.example/2",
        "https://b.example/u",
        "https://b.example/v",
        "https://c.example/",
    ];
    for strategy in cashrank_steer::schedule::STRATEGIES {
        let line = format!("next --store s --strategy {}", strategy.name);
        let told = lab.run(&line).exits(0).out;
        let mut named: Vec<&str> = told.lines().collect();
        named.sort_unstable();
        assert_eq!(named, expected, "{}", strategy.name);
    }
}

/// Regression: there was no list before the first ingest, though every crawl begins with seeds.
#[test]
fn seeds_come_first_and_need_no_store() {
    let lab = Lab::new();
    lab.file(
        "seeds",
        "\u{feff}http://B.example\n\nhttp://a.example/1\nhttp://b.example/\nhttp://c.example/\nhttp://d.example/\n",
    );
    lab.file("out", "http://c.example\n");
    let next = |options: &str| -> Vec<String> {
        let line = format!("next --store s --quiet --seeds seeds {options}");
        let told = lab.run(&line).exits(0);
        assert_eq!(told.err, "");
        told.out.lines().map(str::to_owned).collect()
    };
    let [a, b, c, d] = ["a.example/1", "b.example/", "c.example/", "d.example/"]
        .map(|name| format!("http://{name}"));
    assert_eq!(next(""), [&b, &a, &c, &d].map(String::clone));
    assert_eq!(next("--exclude out -n 2"), [&b, &a].map(String::clone));
    assert_eq!(
        next("--exclude out --scope host:b.example --scope host:c.example"),
        std::slice::from_ref(&b)
    );
    // A page that was fetched or failed just now is not listed; pages that the crawl found follow the seeds.
    lab.file(
        "log",
        "{\"url\":\"http://a.example/1\",\"links\":[\"2\",\"http://b.example/\"],\"fetched_at\":\"2026-01-01T00:00:00Z\"}\n\
         {\"url\":\"http://d.example/\",\"status\":503,\"fetched_at\":\"2026-01-01T00:00:00Z\"}\n",
    );
    lab.run("ingest log --store s").exits(0);
    let two = "http://a.example/2".to_owned();
    assert_eq!(next(""), [b.clone(), c.clone(), two.clone()]);
    assert_eq!(next("--exclude out"), [b.clone(), two.clone()]);
    assert_eq!(next("-n 1"), std::slice::from_ref(&b));
    assert_eq!(next("--retry-after 0s"), [b.clone(), c, d, two.clone()]);
    let objects = next("--exclude out --to jsonl");
    let first: serde_json::Value = serde_json::from_str(&objects[0]).unwrap();
    assert_eq!(
        (&first["url"], &first["fetched"]),
        (&b.into(), &false.into())
    );
    // Without seeds there must be a store, and a short list is reported unless `--quiet` is given.
    lab.run("next --store none --quiet")
        .exits(2)
        .says(&["not a cashrank store"]);
    assert_ne!(lab.run("next --store s").exits(0).err, "");
    lab.run("next --store s --seeds nothing").exits(7);
}

/// Pages of other hosts are known from links only; hosts of seeds count as known.
#[test]
fn pages_of_hosts_that_were_never_fetched_are_left_out() {
    let lab = Lab::new();
    lab.file(
        "crawl",
        "{\"url\":\"http://a.example/\",\"links\":[\"/2\",\"http://b.example/\",\"http://b.example/2\",\"http://c.example/\"]}\n",
    );
    lab.file("seeds", "http://c.example/seed\n");
    lab.run("ingest crawl --store s").exits(0);
    let known = lab.run("next --store s --known-hosts --quiet").exits(0);
    assert_eq!(known.out, "http://a.example/2\n");
    let line = "next --store s --known-hosts --seeds seeds --quiet";
    let mut listed: Vec<String> = (lab.run(line).exits(0).out.lines())
        .map(str::to_owned)
        .collect();
    assert_eq!(listed.remove(0), "http://c.example/seed");
    listed.sort();
    assert_eq!(listed, ["http://a.example/2", "http://c.example/"]);
}
