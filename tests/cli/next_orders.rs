//! `next`: orders by the cash of the ledger, links of weight 0, and contents of lists of URLs.

use std::collections::HashMap;

use cashrank_steer::schedule::STRATEGIES;

use crate::support::{Dice, Lab};

/// Units that a page brings, and damping in 1/2^32, from the specification of stores.
const ENDOWMENT: u64 = 1 << 30;
const DAMPING: u128 = 3_650_722_201;

/// OPIC's ledger by its definition: cash and payments page by page.
#[derive(Default)]
struct Ledger {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
    cash: Vec<u64>,
    /// Round of the last visit.
    visited: Vec<Option<u64>>,
    recycled: Vec<u64>,
    virtual_cash: u64,
    round: u64,
    records: u64,
    length: u64,
}

impl Ledger {
    fn page(&mut self, url: &str) -> usize {
        let next = self.names.len();
        let page = *self.numbers.entry(url.to_owned()).or_insert(next);
        if page == next {
            self.names.push(url.to_owned());
            self.cash.push(ENDOWMENT);
            self.visited.push(None);
            self.recycled.push(0);
        }
        page
    }

    fn read(&mut self, url: &str, links: &[String], recycle_after: u64) {
        let page = self.page(url);
        let targets: Vec<usize> = links.iter().map(|link| self.page(link)).collect();
        let cash = std::mem::take(&mut self.cash[page]);
        let damped = ((u128::from(cash) * DAMPING) >> 32) as u64;
        let each = damped.checked_div(targets.len() as u64).unwrap_or(0);
        targets.iter().for_each(|&target| self.cash[target] += each);
        self.virtual_cash += cash - each * targets.len() as u64;
        self.visited[page] = Some(self.round);
        self.recycled[page] = 0;
        self.pay();
        self.records += 1;
        if self.records == self.length.max(1024) {
            for page in 0..self.cash.len() {
                let ago = self.visited[page].map(|round| self.round - round);
                if ago.is_none_or(|ago| recycle_after > 0 && ago >= recycle_after) {
                    let cash = std::mem::take(&mut self.cash[page]);
                    self.recycled[page] += cash;
                    self.virtual_cash += cash;
                }
            }
            self.pay();
            self.round += 1;
            self.records = 0;
            self.length = self.cash.len() as u64;
        }
    }

    fn pay(&mut self) {
        let pages = self.cash.len() as u64;
        let each = self.virtual_cash / pages;
        self.cash.iter_mut().for_each(|cash| *cash += each);
        self.virtual_cash -= each * pages;
    }

    /// Returns pages by their claim, in endowments.
    fn best(&self, wanted: impl Fn(bool) -> bool) -> Vec<(String, f64)> {
        let pages = (0..self.cash.len()).filter(|&page| wanted(self.visited[page].is_some()));
        let claim = |page: usize| (self.cash[page] + self.recycled[page]) as f64;
        let mut best: Vec<usize> = pages.collect();
        best.sort_by(|&a, &b| claim(b).total_cmp(&claim(a)).then(a.cmp(&b)));
        let named = best.into_iter().map(|page| {
            let score = claim(page) / ENDOWMENT as f64;
            (self.names[page].clone(), score)
        });
        named.collect()
    }
}

fn listed(lab: &Lab, line: &str) -> Vec<(String, f64)> {
    let out = lab.run(line).exits(0).out;
    let rows = out.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let url = row["url"].as_str().unwrap().to_owned();
        (url, row["score"].as_f64().unwrap())
    });
    rows.collect()
}

/// Regression: `greedy` used the current cash, without what the end of a round had taken from unfetched pages, and with
/// kept links no ledger at all. It must be the paper's order: cash plus what was recycled since the last visit, for
/// read and unread pages, whatever is kept, and whichever window importance is read from.
#[test]
fn greedy_is_the_ledgers_cash_and_what_was_recycled() {
    let lab = Lab::new();
    let mut dice = Dice(41);
    let url = |page: u64| format!("http://h{}.example/{page}", page % 7);
    let mut ledger = Ledger::default();
    let mut parts = [String::new(), String::new()];
    for record in 0..4000u64 {
        // Pages with small numbers are read repeatedly, others once or never.
        let page = if record < 300 {
            record
        } else {
            dice.roll(120) * dice.roll(3)
        };
        let mut links: Vec<String> = (0..dice.roll(6))
            .map(|_| url(dice.roll(40) * dice.roll(20)))
            .filter(|link| *link != url(page))
            .collect();
        links.sort();
        links.dedup();
        let line = serde_json::json!({"url": url(page), "links": links});
        parts[usize::from(record >= 2500)].push_str(&format!("{line}\n"));
        ledger.read(&url(page), &links, 1);
    }
    assert!(ledger.round >= 3 && ledger.recycled.iter().any(|&units| units > 0));
    let is_read_and_recycled =
        |page: usize| ledger.visited[page].is_some() && ledger.recycled[page] > 0;
    assert!((0..ledger.cash.len()).any(is_read_and_recycled));
    let [first, second] = parts;
    lab.file("first", &first);
    lab.file("second", &second);
    let (new, again, all) = (
        ledger.best(|read| !read),
        ledger.best(|read| read),
        ledger.best(|_| true),
    );
    assert!(new.len() > 20 && again.len() > 100);
    for (at, kept) in [
        "",
        "--keep-links none",
        "--window variable:2",
        "--window interpolation:2",
    ]
    .into_iter()
    .enumerate()
    {
        for part in ["first", "second"] {
            let line = format!("ingest {part} --store s{at} --recycle-after 1 {kept} --quiet");
            lab.run(&line).exits(0);
        }
        let next = |of: &str, count: usize| {
            let line = format!("next --store s{at} --strategy greedy --json -n {count} {of}");
            listed(&lab, &line)
        };
        assert_eq!(next("", new.len()), new, "{kept}");
        assert_eq!(next("--refetch", again.len()), again, "{kept}");
        assert_eq!(next("--budget discovery=any", all.len()), all, "{kept}");
        // A share of each kind, in one order.
        let half = next("--budget discovery=0.5", 20);
        let mut expected = [&new[..10], &again[..10]].concat();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1));
        assert_eq!(half, expected, "{kept}");
    }
    lab.run("next --store s0 --budget discovery=any")
        .exits(2)
        .says(&["forecast", "greedy"]);
    lab.run("next --store s0 --strategy greedy:damping=0.5")
        .exits(2)
        .says(&["unknown parameter"]);
}

/// Regression: with `--follow nofollow=0`, orders followed links of weight 0, and listed a page first that only such
/// links lead to.
#[test]
fn a_link_of_weight_0_is_none_for_any_order() {
    let lab = Lab::new();
    let page = |name: &str| format!("http://a.example/{name}");
    let spam = serde_json::json!({"url": page("spam"), "rel": "nofollow"});
    let mut records = String::new();
    let links: Vec<String> = (0..8).map(|n| page(&format!("p{n}"))).collect();
    let mut first = vec![spam.clone()];
    first.extend(links.into_iter().map(serde_json::Value::from));
    records.push_str(&format!(
        "{}\n",
        serde_json::json!({"url": page(""), "links": first})
    ));
    for n in 0..6 {
        let links = serde_json::json!([spam, page("good"), page(&format!("q{n}"))]);
        let record = serde_json::json!({"url": page(&format!("p{n}")), "links": links});
        records.push_str(&format!("{record}\n"));
    }
    lab.file("log", &records);
    lab.run("ingest log --store s --follow nofollow=0").exits(0);
    for strategy in STRATEGIES {
        let line = format!("next --store s -n 99 --strategy {}", strategy.name);
        let out = lab.run(&line).exits(0).out;
        let names: Vec<&str> = out.lines().collect();
        assert_eq!(names.len(), 10, "{}", strategy.name);
        // These orders depend on the known pages, not on links.
        if !["random", "cycle"].contains(&strategy.name) {
            assert_eq!(names[9], page("spam"), "{}", strategy.name);
        }
    }
    // Two links of three count: log10 2, and not log10 3. With such a K, the links of the last page alone.
    let line = "next --store s -n 99 --strategy fica:k=1000000 --to jsonl";
    let out = lab.run(line).exits(0).out;
    let rows = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<serde_json::Value> = rows.collect();
    let good = rows
        .iter()
        .find(|row| row["url"] == "http://a.example/good");
    let found = -good.unwrap()["score"].as_f64().unwrap();
    assert!((found - 2f64.log10()).abs() < 1e-12);
}

/// Regression: K was 250,000 whatever the crawl's size. It is a 72nd of the known pages.
#[test]
fn k_follows_the_crawl() {
    let lab = Lab::new();
    let url = |page: u64| format!("http://a.example/{page}");
    let mut records = String::new();
    // 720 pages, of which 40 are read: K = 10 at the end.
    for page in 0..40u64 {
        let mut links: Vec<String> = (0..17).map(|n| url(40 + page * 17 + n)).collect();
        links.push(url(700 - page % 4));
        links.retain({
            let mut seen = std::collections::HashSet::new();
            move |link| seen.insert(link.clone())
        });
        links.extend((page == 0).then(|| (1..40).map(url)).into_iter().flatten());
        let record = serde_json::json!({"url": url(page), "links": links});
        records.push_str(&format!("{record}\n"));
    }
    lab.file("log", &records);
    lab.run("ingest log --store s").exits(0);
    let next = |order: &str| {
        let line = format!("next --store s -n 200 --strategy {order}");
        lab.run(&line).exits(0).out
    };
    assert_ne!(next("fica"), next("fica:k=250000"));
}

/// Lists as people and Nutch write them. Regression: lines that are not URLs were listed as pages, forever.
#[test]
fn lists_skip_what_is_no_url_and_say_so() {
    let lab = Lab::new();
    let record = serde_json::json!({"url": "http://a.example/", "links": ["/b", "/c", "/d"]});
    lab.file("log", format!("{record}\n"));
    lab.run("ingest log --store s").exits(0);
    lab.file(
        "seeds",
        "\u{feff}# my seeds\r\nexample.net\r\nftp://a.example/f\r\nmailto:me@a.example\r\n\
         http://a.example/s1\tnutch.score=10\r\nhttp://A.example/s1\r\n  http://a.example/s2  \r\n",
    );
    lab.file(
        "out",
        "#fetching\n/b\nhttp://a.example/b\tx=1\nhttp://a.example/s2\n",
    );
    let skipped =
        "--seeds: 4 lines skipped: comments (1), no http:// or https:// (1), another scheme (2)";
    let list = lab
        .run("next --store s --seeds seeds -n 3")
        .exits(0)
        .says(&[skipped]);
    let expected = [
        "http://a.example/s1",
        "http://a.example/s2",
        "http://a.example/b",
    ];
    assert_eq!(list.out.lines().collect::<Vec<_>>(), expected);
    let list = lab
        .run("next --store s --seeds seeds --exclude out -n 9")
        .exits(0)
        .says(&[
            skipped,
            "--exclude: 2 lines skipped: comments (1), no http:// or https:// (1)",
        ]);
    let expected = [
        "http://a.example/s1",
        "http://a.example/c",
        "http://a.example/d",
    ];
    assert_eq!(list.out.lines().collect::<Vec<_>>(), expected);
    // Before the first ingest.
    let list = lab
        .run("next --store none --seeds seeds")
        .exits(0)
        .says(&[skipped]);
    assert_eq!(list.out.lines().count(), 2);
    lab.run("coverage --store s --seeds seeds")
        .exits(2)
        .says(&[skipped, "none of the seeds is known"]);
    lab.file("pages", "# mine\nhttp://a.example/b\t1\nexample.net\n");
    lab.run("local --store s --domain file:pages -n 1")
        .says(&["--domain: 2 lines skipped: comments (1), no http:// or https:// (1)"]);
    // In a graph of names, these are pages and nothing else is.
    lab.file("edges", "a b\na #c\n");
    lab.run("ingest edges --format edges --store g").exits(0);
    lab.file("nodes", "b\nx\n#c\n");
    let list = lab.run("next --store g --seeds nodes -n 1").exits(0);
    assert_eq!(list.out, "b\n");
}

/// Regression: a list took 1.6 kB of memory per line, whatever `--memory` was.
#[cfg(target_os = "linux")]
#[test]
fn lists_take_no_memory_a_line() {
    let lab = Lab::new();
    let record = serde_json::json!({"url": "http://a.example/", "links": ["/b", "/c", "/d"]});
    lab.file("log", format!("{record}\n"));
    lab.run("ingest log --store s").exits(0);
    let line = |n| format!("http://new{}.example.org/some/path/{n}\n", n % 1000);
    lab.file("few", (0..10).map(line).collect::<String>());
    lab.file("many", (0..200_000).map(line).collect::<String>());
    let peak = |line: &str| {
        let run = lab.measure_into(line, std::fs::File::create(lab.path("out")).unwrap());
        run.done.exits(0);
        run.peak_kib
    };
    for list in ["next -n 5 --exclude", "next -n 5 --seeds"] {
        let peak = |file: &str| peak(&format!("{list} {file} --store s"));
        // A short command may be measured before it has taken its memory.
        let few = (0..5).map(|_| peak("few")).max().unwrap().max(16 << 10);
        let many = peak("many");
        assert!(many <= few + (40 << 10), "{list}: {few} and {many} KiB");
    }
    // The part of both lists that must be kept is counted.
    lab.run("next --store s -n 5 --seeds many --exclude many --memory 1M")
        .exits(8)
        .says(&["names or more", "--memory"]);
    lab.run("coverage --store s --seeds many --memory 1M")
        .exits(8)
        .says(&["names or more", "--memory"]);
    lab.run("coverage --store s --memory 50")
        .exits(8)
        .says(&["4 pages"]);
}
