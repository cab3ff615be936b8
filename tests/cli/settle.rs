//! Rankings settled over the kept links, through the command line.

use crate::support::Lab;

/// A page that is gone and comes back a million times: what it had handed on is counted once, however often.
#[test]
fn links_that_come_and_go_overflow_nothing() {
    let lab = Lab::new();
    let round = |round: u32| {
        let a = match round % 2 {
            0 => "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n",
            _ => "{\"url\":\"http://a.example/\",\"status\":404}\n",
        };
        let b = "{\"url\":\"http://b.example/\",\"links\":[\"http://a.example/\",\"http://c.example/\"]}\n";
        format!("{a}{b}")
    };
    lab.file("many", (0..1_000_000).map(round).collect::<String>());
    lab.run("ingest many --store settled").exits(0);
    // In the end a is gone and b links to a and c: a = c = x, b = 1 - 2x, with x = (1 - d)/3 + 2 d x/3 + d (1 - 2x)/2.
    let d = 0.85;
    let x = ((1.0 - d) / 3.0 + d / 2.0) / (1.0 + d / 3.0);
    let found = importance(&lab, "settled");
    let far = distance(&found, &[x, 1.0 - 2.0 * x, x]);
    let bound = lab.stat("settled")["bound_l1"].as_f64().unwrap();
    assert!(far <= bound && bound <= 0.0101, "{far}, {bound}");
}

/// Of all pages, in order of first appearance.
fn importance(lab: &Lab, store: &str) -> Vec<f64> {
    let told = lab
        .run(&format!("export --to tsv --store {store}"))
        .exits(0)
        .out;
    let lines = told.lines().skip(1);
    lines
        .map(|line| line.split('\t').nth(1).unwrap().parse().unwrap())
        .collect()
}

fn distance(left: &[f64], right: &[f64]) -> f64 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(x, y)| (x - y).abs()).sum()
}
