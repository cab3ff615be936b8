//! The correction ledger, and passes that end when the bound is low enough, through the command line.

use std::fs;

use crate::support::{Lab, sample};

/// A lab with a part of a real crawl, each page crawled once.
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
    let most = "ingest a --store s --correction --settle none --repeat 60";
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
    assert!(second["correction"].as_bool().unwrap());
    // No pass too many: one less is not near enough.
    let passes = second["records"].as_u64().unwrap() / 200;
    for (passes, near) in [(passes, true), (passes - 1, false)] {
        let store = format!("passes{passes}");
        lab.run(&format!(
            "ingest a --store {store} --correction --settle none --repeat {passes}"
        ))
        .exits(0);
        assert_eq!(bound(&lab, &store) <= 1e-6, near);
        assert_eq!(lab.snapshot(&store) == lab.snapshot("s"), near);
    }
    // Without it, all passes are made.
    lab.run(most).exits(0);
    assert_eq!(lab.stat("s")["records"], 60 * 200);
    lab.run(most).exits(0).says(&["nothing to do"]);
    until("0.1").exits(0).says(&["nothing to do"]);
}

/// A bound that is not reached in so many passes is no error: the bound is told.
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
        ("--correction --window fixed:2", "--window fixed:2"),
        ("--correction --window whole", "--window whole"),
    ] {
        let done = lab.run(&format!("ingest a --store s {options}"));
        done.exits(2).says(&[says]);
        assert!(!lab.path("s").exists(), "{options}");
    }
    lab.run("ingest a --store s").exits(0);
    lab.run("ingest a --repeat 2 --store s --correction")
        .exits(2)
        .says(&["--correction false, not true"]);
    lab.run("ingest a --store with --correction").exits(0);
    lab.run("ingest a --store with --repeat 3").exits(0);
    assert!(lab.path("with/correction").exists());
}

#[test]
fn damage_to_it_is_found() {
    let lab = lab();
    lab.run("ingest a --store s --correction --repeat 3")
        .exits(0);
    lab.run("verify --deep --store s").exits(0);
    let path = lab.path("s/correction");
    let sound = fs::read(&path).unwrap();
    // Both slots of the only chunk begin with the accounts.
    let mut bytes = sound.clone();
    let slot = bytes.len() / 2;
    bytes[8] ^= 1;
    bytes[slot + 8] ^= 1;
    fs::write(&path, bytes).unwrap();
    for line in ["ingest a --repeat 4", "verify"] {
        lab.run(&format!("{line} --store s"))
            .exits(5)
            .says(&["s/correction: damaged: chunk 0"]);
    }
    fs::remove_file(&path).unwrap();
    for line in ["ingest a --repeat 4", "verify"] {
        lab.run(&format!("{line} --store s"))
            .exits(5)
            .says(&["s/correction: damaged: it is missing"]);
    }
    lab.run("top --store s").exits(0);
    fs::write(&path, sound).unwrap();
    lab.run("ingest a --repeat 4 --store s").exits(0);
}

/// Its story: each time a page's links came back, all that it had ever handed on was handed on once more, and after
/// some seventy times a number overflowed: "the books do not balance", for ever. Gathering begins anew before that.
#[test]
fn links_that_come_and_go_overflow_nothing() {
    let lab = Lab::new();
    let flap = |rounds: u32| -> String {
        let round = |round: u32| {
            let a = match round % 2 {
                0 => "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n",
                _ => "{\"url\":\"http://a.example/\",\"status\":404}\n",
            };
            let b = "{\"url\":\"http://b.example/\",\"links\":[\"http://a.example/\",\"http://c.example/\"]}\n";
            format!("{a}{b}")
        };
        (0..rounds).map(round).collect()
    };
    lab.file("some", flap(3_000));
    lab.run("ingest some --store corrected --correction --settle none")
        .exits(0);
    lab.run("verify --deep --store corrected").exits(0);
    lab.file("many", flap(1_000_000));
    lab.run("ingest many --store settled").exits(0);
    // In the end a is gone and b links to a and c: a = c = x, b = 1 - 2x, with x = (1 - d)/3 + 2 d x/3 + d (1 - 2x)/2.
    let d = 0.85;
    let x = ((1.0 - d) / 3.0 + d / 2.0) / (1.0 + d / 3.0);
    let told = lab.run("export --to tsv --store settled").exits(0).out;
    let found: Vec<f64> = told
        .lines()
        .skip(1)
        .map(|line| line.split('\t').nth(1).unwrap().parse().unwrap())
        .collect();
    let far: f64 = found
        .iter()
        .zip([x, 1.0 - 2.0 * x, x])
        .map(|(found, exact)| (found - exact).abs())
        .sum();
    let bound = lab.stat("settled")["bound_l1"].as_f64().unwrap();
    assert_eq!(found.len(), 3);
    assert!(far <= bound && bound <= 0.0101, "{far}, {bound}");
}
