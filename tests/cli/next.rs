//! `next`: a store's answer is that of the same order told the same crawl in memory.

use std::collections::HashMap;

use cashrank::rows::{Row, Rows};
use cashrank::schedule::{Choice, History, NameOrderBuilder, STRATEGIES};

use crate::support::Lab;

/// A crawl in memory, numbered as an ingest numbers pages.
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

    fn sweep(
        &self,
        visit: &mut dyn FnMut(Row<'_>) -> cashrank::Result<()>,
    ) -> cashrank::Result<()> {
        for (page, targets) in &self.rows {
            visit(Row {
                page: *page,
                gone: false,
                targets,
                weights: &[],
            })?;
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

    fn best(&self, strategy: &str, count: usize) -> Vec<String> {
        let choice: Choice = strategy.parse().unwrap();
        let mut history = History::new(choice.strategy());
        self.sweep(&mut |row| {
            history.row(row);
            Ok(())
        })
        .unwrap();
        let mut names = NameOrderBuilder::default();
        self.nodes
            .iter()
            .for_each(|&node| names.add(url(node).as_bytes()));
        let best = history.best(self, Some(&names.build()), count).unwrap();
        best.iter()
            .map(|of| url(self.nodes[of.page as usize]))
            .collect()
    }
}

const NODES: usize = 240;

fn url(node: usize) -> String {
    format!("http://h{}.example.org/d{}/p{node}", node % 3, node % 5)
}

/// Distinct links of a node, none to itself: near ones, and a few far ones that are popular.
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
        for strategy in STRATEGIES {
            let named = lab.run(&format!(
                "next --store s{round} -n 6 --strategy {}",
                strategy.name
            ));
            let named: Vec<String> = named.exits(0).out.lines().map(str::to_owned).collect();
            assert_eq!(
                named,
                crawl.best(strategy.name, 6),
                "{} {round}",
                strategy.name
            );
        }
        let best = crawl.best("forecast", 12);
        assert!(!best.is_empty());
        let node = |url: &String| url.rsplit_once('p').unwrap().1.parse().unwrap();
        next = best.iter().map(node).collect();
    }
}

#[test]
fn what_cannot_be_answered_is_told() {
    let lab = Lab::new();
    lab.file(
        "one.jsonl",
        "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\",\"http://c.example/\"]}\n",
    );
    lab.run("next --store none")
        .exits(2)
        .says(&["not a cashrank store"]);
    lab.run("ingest one.jsonl --store s --keep-rows none")
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
fn orders_are_simulated() {
    let lab = Lab::new();
    let line = "simulate --crawl --pages 400 --strategy fica:k=10,beta=0.2,oracle,forecast --sets 2 --json";
    let told = lab.run(line).exits(0).out;
    assert_eq!(
        told,
        lab.run(line).exits(0).out,
        "the same options, the same bytes"
    );
    let rows: Vec<serde_json::Value> = told
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let hot = |order: &str| -> f64 {
        let of = rows.iter().filter(|row| row["strategy"] == order);
        of.map(|row| row["hot"].as_f64().unwrap()).sum()
    };
    assert!(hot("oracle") > hot("forecast") && hot("forecast") > 0.0);
    assert!(hot("fica:k=10,beta=0.2") > 0.0);
    lab.run("simulate --crawl --pages 400 --strategy cash")
        .exits(2)
        .says(&["unknown strategy"]);
    lab.run("simulate --crawl --pages 400 --per-host 2")
        .exits(2)
        .says(&["names"]);
}
