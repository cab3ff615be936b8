//! `pagerank --lazy`: half steps, for links that go round in cycles.

use crate::support::{Done, Lab};

/// Importance by name, of an export.
fn score(done: &Done, name: &str) -> f64 {
    let mut lines = done.out.lines().map(|line| line.split('\t'));
    let mut row = lines.find(|row| row.clone().next() == Some(name)).unwrap();
    row.nth(1).unwrap().parse().unwrap()
}

/// The number before "iterations" on standard error.
fn iterations(done: &Done) -> u64 {
    let (before, _) = done.err.split_once(" iterations").unwrap();
    let number = before.rsplit(' ').next().unwrap();
    number.replace(',', "").parse().unwrap()
}

/// Leaves and hub link to each other, so two groups of pages link to each other only. The hub of k leaves has
/// (1 + d k)/((k + 1)(1 + d)). Whole steps carry the error from group to group; d a step is all it shrinks: to 1e-12
/// in some 25/(1 - d) steps. Half steps have only 0 and 1/2 to fight: some 40.
#[test]
fn half_steps_end_early_between_two_groups() {
    let lab = Lab::new();
    lab.file("star", "h\ta\tb\tc\tx\na\th\nb\th\nc\th\nx\th\n");
    let run = |options: &str| {
        let done = lab.run(&format!("pagerank star --format adjacency {options}"));
        done.exits(0)
    };
    let exact = |d: f64| (1.0 + 4.0 * d) / (5.0 * (1.0 + d));
    let (plain, lazy) = (run("--damping 0.9999"), run("--damping 0.9999 --lazy"));
    for done in [&plain, &lazy] {
        // Damping is a multiple of 2^-32: less than 1e-9.
        assert!(
            (score(done, "h") - exact(0.9999)).abs() < 1e-9,
            "{}",
            done.out
        );
        assert!((score(done, "x") - (1.0 - exact(0.9999)) / 4.0).abs() < 1e-9);
    }
    assert!(iterations(&plain) > 100_000, "{}", plain.err);
    assert!(iterations(&lazy) < 60, "{}", lazy.err);

    // As near to 1 as it goes: half of all is the hub's.
    let most = run("--damping 0.99999999999 --lazy");
    assert!((score(&most, "h") - 0.5).abs() < 1e-9, "{}", most.out);
    assert!(iterations(&most) < 60, "{}", most.err);
    assert!(most.err.contains("L1 error at most"), "{}", most.err);

    // At 1 nothing could be promised.
    for options in ["--damping 1", "--damping 1 --lazy", "--damping 1.5 --lazy"] {
        let done = lab.run(&format!("pagerank star --format adjacency {options}"));
        done.exits(2).says(&["outside 0 <= damping < 1"]);
    }
}
