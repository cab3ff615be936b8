//! Passes that end when the bound is low enough, through the command line.

use crate::support::{Lab, sample};

/// Returns a lab with a part of a real crawl, each page crawled once.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.file("a", sample(200).concat());
    lab
}

fn bound(lab: &Lab, store: &str) -> f64 {
    lab.stat(store)["bound_l1"].as_f64().unwrap()
}

#[test]
fn passes_end_when_the_bound_is_low_enough() {
    let lab = lab();
    let most = "ingest a --store s --settle none --repeat 60";
    let until = |eps: &str| lab.run(&format!("{most} --until {eps}"));
    until("0.1")
        .exits(0)
        .says(&["pass 1: accuracy", "pass 2: accuracy"]);
    let first = lab.stat("s");
    assert!(bound(&lab, "s") <= 0.1);
    until("0.1").exits(0).says(&["nothing to do"]);
    assert_eq!(lab.stat("s")["records"], first["records"]);

    until("1e-6").exits(0);
    let second = lab.stat("s");
    assert!(bound(&lab, "s") <= 1e-6);
    assert!(second["records"].as_u64() > first["records"].as_u64());
    // No unnecessary pass: with one fewer the bound is not reached.
    let passes = second["records"].as_u64().unwrap() / 200;
    for (passes, near) in [(passes, true), (passes - 1, false)] {
        let store = format!("passes{passes}");
        lab.run(&format!(
            "ingest a --store {store} --settle none --repeat {passes}"
        ))
        .exits(0);
        assert_eq!(bound(&lab, &store) <= 1e-6, near);
        assert_eq!(lab.snapshot(&store) == lab.snapshot("s"), near);
    }
    // Without --until, all passes are made.
    lab.run(most).exits(0);
    assert_eq!(lab.stat("s")["records"], 60 * 200);
    lab.run(most).exits(0).says(&["nothing to do"]);
    until("0.1").exits(0).says(&["nothing to do"]);
}

/// A bound that is not reached in the given passes is not an error: the bound reached is reported.
#[test]
fn passes_may_not_suffice() {
    let lab = lab();
    let done = lab.run("ingest a --store s --settle none --repeat 3 --until 1e-9 --json");
    let json = done.exits(0).says(&["pass 2: accuracy"]).json();
    assert!(json["bound_l1"].as_f64().unwrap() > 1e-9);
    assert_eq!(json["records"], 600);
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let lab = lab();
    for (options, says) in [
        ("--until 0.1", "--repeat"),
        ("--repeat 1 --until 0.1", "--repeat"),
        ("--repeat 9 --until 0", "above 0 and below 2"),
        ("--repeat 9 --until 2", "above 0 and below 2"),
        ("--repeat 9 --until NaN", "above 0 and below 2"),
        ("--repeat 9 --until=-1", "above 0 and below 2"),
    ] {
        let done = lab.run(&format!("ingest a --store s {options}"));
        done.exits(2).says(&[says]);
        assert!(!lab.path("s").exists(), "{options}");
    }
}
