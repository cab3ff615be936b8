//! Heritrix crawl logs: the contents of real ones, and a sorted one ranked like its tree.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::fs;

use crate::support::{Dice, Lab, data};

// By a reader in Python that splits lines at blanks: web pages are lines whose fourth field begins with http://
// or https://, links those of them whose path ends in L or R and whose via is a web page, groups runs of links
// with one via.
#[test]
fn real_logs() {
    for (log, [fetches_and_groups, other, links, gone]) in [
        ("crawldir__logs__crawl.log", [100 + 4, 7, 4, 13]),
        ("originals__crawllogs__crawl-42.log", [148 + 23, 9, 47, 3]),
    ] {
        let Some(path) = data(&format!("heritrix/{log}")) else {
            return;
        };
        let lab = Lab::new();
        let done = lab.run(&format!("ingest {} --store s --json", path.display()));
        let done = done
            .exits(0)
            .says(&["read as crawl-log", "tree of discovery"]);
        assert_eq!(done.err.matches("tree of discovery").count(), 1);
        assert_eq!(done.json()["other"], other);
        let stat = lab.stat("s");
        assert_eq!(
            (&stat["records"], &stat["links"]),
            (&fetches_and_groups.into(), &links.into())
        );
        assert_eq!(stat["gone"], gone);
    }
}

/// A breadth-first crawl of a real site's graph from page 2: of each page, the page it was found on, in order.
fn crawl(links: &str) -> Vec<(u32, Option<u32>)> {
    let mut of: HashMap<u32, Vec<u32>> = HashMap::new();
    for line in links.lines().skip(1) {
        let pair: Vec<u32> = line
            .split_whitespace()
            .map(|id| id.parse().unwrap())
            .collect();
        if let [from, to] = pair[..] {
            of.entry(from).or_default().push(to);
        }
    }
    let (mut queue, mut seen) = (VecDeque::from([(2, None)]), HashSet::from([2]));
    let mut order = Vec::new();
    while let Some((page, via)) = queue.pop_front() {
        order.push((page, via));
        for &to in of.get(&page).into_iter().flatten() {
            if seen.insert(to) {
                queue.push_back((to, Some(page)));
            }
        }
    }
    order
}

fn log(crawl: &[(u32, Option<u32>)]) -> String {
    let mut log = String::new();
    for (page, via) in crawl {
        let via = via.map_or("-".to_owned(), |via| format!("http://h/{via}"));
        let path = if via == "-" { "-" } else { "L" };
        writeln!(
            log,
            "2015-05-22T15:01:10.521Z   200        564 http://h/{page} {path} {via} text/html #084 \
             20150522150109851+648 sha1:X - -"
        )
        .unwrap();
    }
    log
}

/// The exact PageRank is that of the tree, written as records without a crawl log.
#[test]
fn a_sorted_log_is_ranked_as_its_tree() {
    let Some(path) = data("hollins/hollins.dat") else {
        return;
    };
    let mut crawl = crawl(&fs::read_to_string(path).unwrap());
    assert!(crawl.len() > 5_000);
    let mut children: HashMap<u32, Vec<String>> = HashMap::new();
    for (page, via) in &crawl {
        if let Some(via) = via {
            children
                .entry(*via)
                .or_default()
                .push(format!("\"{page}\""));
        }
    }
    let tree = children.iter().map(|(page, to)| {
        format!(
            "{{\"url\":\"http://h/{page}\",\"links\":[{}]}}\n",
            to.join(",")
        )
    });
    let lab = Lab::new();
    lab.file("tree.jsonl", tree.collect::<String>());
    lab.run("compute --until 1e-12 tree.jsonl -o exact.tsv")
        .exits(0);

    // As a crawler of many sites would write it; then sorted.
    let mut dice = Dice(1);
    for at in (1..crawl.len()).rev() {
        crawl.swap(at, dice.roll(at as u64 + 1) as usize);
    }
    lab.file("mixed.log", log(&crawl));
    lab.run("ingest mixed.log --store mixed")
        .exits(0)
        .says(&["sort -s -k6,6", "return to an earlier source"]);
    for command in ["convert -o out.jsonl", "compute -o out.tsv"] {
        lab.run(&format!("{command} mixed.log"))
            .exits(0)
            .says(&["sort -s -k6,6", "to an earlier source"]);
    }
    crawl.sort_by_key(|(_, via)| *via);
    lab.file("sorted.log", log(&crawl));
    let done = lab
        .run("ingest sorted.log --store sorted --repeat 20")
        .exits(0);
    assert!(!done.err.contains("earlier source"), "{}", done.err);
    let done = lab.run("inspect sorted.log --json").exits(0);
    assert_eq!(done.json()["ungrouped"], 0);
    let found = lab.run("compare sorted exact.tsv --json").exits(0).json();
    assert_eq!(found["common_pages"], crawl.len());
    assert!(found["l1"].as_f64().unwrap() < 1e-6, "{found}");
}
