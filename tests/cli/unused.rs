//! Options that would have no effect are refused.

use std::process::Command;

use crate::support::Lab;

fn crawled() -> Lab {
    let lab = Lab::new();
    let record =
        |page: u32| format!("{{\"url\":\"http://a.test/{page}\",\"links\":[\"/1\",\"/2\"]}}\n");
    lab.file("a", (1..4).map(record).collect::<String>());
    lab.run("ingest a --store s").exits(0);
    lab
}

#[test]
fn options_without_effect_are_refused() {
    let lab = crawled();
    for line in [
        // A store's links were read by its own settings, and its ranking is published in it.
        "compute --store s --measure pagerank --scope host:a.test",
        "compute --store s --measure pagerank --drop-params sid",
        "compute --store s --measure pagerank --self-links keep",
        "compute --store s --measure pagerank --self-links drop",
        "compute --store s --measure pagerank --format warc",
        "compute --store s --measure pagerank --format auto",
        "compute --store s --measure pagerank --field url=u",
        "compute --store s --measure pagerank --outlinks html",
        "compute --store s --measure pagerank --to csv",
        "compute --store s --measure pagerank --force",
        // Parameters that a measure does not have, and parameters of sites for pages.
        "compute --store s --measure harmonic --damping 0.5",
        "compute --store s --measure harmonic --until 1e-3",
        "compute --store s --measure pagerank --site-links once",
        // Without a list these have no effect.
        "local --store s --domain host:a.test --to jsonl",
        "local --store s --domain host:a.test --select sc",
        "local --store s --domain host:a.test --force",
        "next --store s --refetch --strategy fica",
        "snapshots --store s --pin 3 --json",
        "ingest a --store t --settle none --settle-time 1s",
        "ingest a --store t --settle 1e-3 --keep-links none",
        "ingest a --store t --settle 1e-3 --window fixed:3",
        "ingest a --store t --settle-time 1s --max-age 30d",
        // What starts from nothing is settled.
        "ingest a --store t --cold --settle none",
        "ingest a --store t --cold --keep-links none",
        "ingest a --store t --cold --window fixed:3",
        // Whatever is not a store has no most pages.
        "convert a --limit-pages 1 -o o.jsonl",
        "inspect a --limit-pages 1",
        // Records are URLs of pages, as the snapshot has them.
        "export --records --numbers -o o.jsonl --store s",
        "export --records --site-links once -o o.jsonl --store s",
        "ingest a --store t --resume",
        "ingest a --store t --new-stream",
        // The estimator of a window has no effect on settling.
        "ingest a --store t --estimator distributed",
    ] {
        lab.run(line).exits(2);
    }
    assert!(!lab.path("t").exists());
}

/// If the environment names the store, an option for inputs is refused as with `--store`.
#[test]
fn a_store_of_the_environment_refuses_an_option_for_inputs() {
    let lab = crawled();
    let done = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args(["compute", "--measure", "pagerank", "--follow", "nofollow=0"])
        .env("CASHRANK_STORE", lab.path("s"))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.code() == Some(2) && err.contains("--follow"),
        "{err}"
    );
}

#[test]
fn compute_is_silent_on_request() {
    let lab = crawled();
    let store = lab
        .run("compute --store s --measure harmonic --quiet")
        .exits(0);
    assert_eq!((&*store.out, &*store.err), ("", ""));
    let inputs = lab.run("compute a --measure harmonic -q -o ranks").exits(0);
    assert_eq!((&*inputs.out, &*inputs.err), ("", ""));
}

/// Damping is stored as a multiple of 2^-32, so no bound of 1e-12 is certified: no output claims that it was reached.
#[test]
fn unreachable_goals_are_not_reported_as_reached() {
    let lab = crawled();
    lab.run("settle --store s --until 1e-12").exits(0);
    let stat = lab.run("stat --json --store s").exits(0).json();
    assert_eq!(
        stat["settled"]["reached"],
        stat["bound_l1"].as_f64().unwrap() <= stat["settled"]["until"].as_f64().unwrap()
    );
    lab.run("ingest a --store t --settle 1e-12").exits(0);
    let stat = lab.run("stat --json --store t").exits(0).json();
    assert_eq!(
        (&stat["settled"]["until"], &stat["settled"]["reached"]),
        (&1e-12.into(), &false.into())
    );
    for measure in ["pagerank", "personalised --teleport t.txt"] {
        lab.file("t.txt", "host:a.test\n");
        let found = lab.run(&format!(
            "compute --store s --measure {measure} --until 1e-15 --json"
        ));
        assert_eq!(found.exits(0).json()["reached"], false);
    }
    lab.run("ingest a --store u --settle 1e-3").exits(0);
    assert_eq!(
        lab.run("stat --json --store u").exits(0).json()["settled"]["reached"],
        true
    );
}
