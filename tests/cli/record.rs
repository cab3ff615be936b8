//! `stat --record`: the origin of a ranking.

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::crawl::crawl;
use crate::pack::zstandard;
use crate::support::Lab;

fn hex(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

fn record(lab: &Lab, store: &str) -> Value {
    lab.run(&format!("stat --record --store {store}"))
        .exits(0)
        .json()
}

/// The command of a record reproduces the bytes, whatever the settings.
#[test]
fn the_command_of_a_record_makes_the_same_snapshot() {
    let lab = Lab::new();
    let lines = crawl(41, 300);
    let (first, second) = (lines[..120].concat(), lines[120..].concat());
    lab.file("a.zst", zstandard(first.as_bytes()));
    lab.file("b", &second);
    for options in [
        "",
        "--settle 1e-7 --damping 0.9 --self-links keep",
        "--settle none --window variable:4 --limit-url 100 --marks 3",
        "--scope host:h1.example --scope host:h2.example --follow nofollow=3,ugc=0",
        "--format records --expire 30s --field fetched_at=fetched_at",
        "--repeat 5 --settle none",
    ] {
        let _ = std::fs::remove_dir_all(lab.path("s"));
        let _ = std::fs::remove_dir_all(lab.path("again"));
        lab.run(&format!("ingest a.zst b --store s {options}"))
            .exits(0);
        let found = record(&lab, "s");
        let snapshot = lab.snapshot("s");
        assert_eq!(found["ranking"]["xxh3_128"], hex(&snapshot), "{options}");
        assert_eq!(found["ranking"]["bytes"], snapshot.len());
        let inputs = [("a.zst", &first), ("b", &second)];
        for (at, (name, text)) in inputs.into_iter().enumerate() {
            let input = &found["inputs"][at];
            assert_eq!(input["name"], name);
            assert_eq!(input["xxh3_128"], hex(text.as_bytes()));
            assert_eq!(input["bytes"], text.len());
            assert_eq!(input["records"], text.lines().count());
            assert_eq!(input["whole"], json!(true));
        }
        assert_eq!(found["caveats"], json!([]), "{options}");
        let again = found["again"].as_array().unwrap();
        let line: Vec<&str> = again[1..]
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        lab.run(&line.join(" ")).exits(0);
        let again = record(&lab, "again");
        assert_eq!(
            again["ranking"]["xxh3_128"], found["ranking"]["xxh3_128"],
            "{line:?}"
        );
        assert_eq!(again["inputs"], found["inputs"]);
        assert_eq!(again["again"], found["again"]);
    }
}

/// A record lists the differences that its command cannot reproduce.
#[test]
fn a_record_says_what_its_command_does_not_repeat() {
    let lab = Lab::new();
    let lines = crawl(43, 300);
    lab.file("a", lines.concat());
    lab.file("b", crawl(44, 50).concat());
    lab.file("c", lines[..3].concat());
    lab.run("ingest a --store s --snapshot-every 299").exits(0);
    let found = record(&lab, "s");
    let caveat = found["caveats"][0].as_str().unwrap();
    assert!(caveat.contains("within the bounds of both"), "{caveat}");
    // After large changes settling starts from nothing, so the bytes are the same.
    lab.run("ingest a --store t --snapshot-every 20").exits(0);
    lab.run("ingest a --store again").exits(0);
    assert_eq!(record(&lab, "again")["caveats"], json!([]));
    let (found, again) = (record(&lab, "t"), record(&lab, "again"));
    let is_same = found["ranking"]["xxh3_128"] == again["ranking"]["xxh3_128"];
    assert!(is_same || found["caveats"] != json!([]));
    // A bound that several passes reached cannot be distinguished from a requested one.
    lab.run("ingest a --store p --repeat 5").exits(0);
    let found = record(&lab, "p");
    let caveat = found["caveats"][0].as_str().unwrap();
    assert!(caveat.starts_with("it was settled to "), "{caveat}");
    // It does not matter whether the earlier snapshot still exists.
    for file in ["a", "c"] {
        lab.run(&format!("ingest {file} --store k --keep-snapshots 1"))
            .exits(0);
    }
    let found = record(&lab, "k");
    let caveat = found["caveats"][0].as_str().unwrap();
    assert!(
        caveat.starts_with("it was settled from the ranking before it"),
        "{caveat}"
    );
    // Settled more closely, from the same records.
    lab.run("settle --until 1e-9 --store again").exits(0);
    assert_eq!(
        record(&lab, "again")["caveats"].as_array().unwrap().len(),
        1
    );
    // Windows do not depend on earlier publications.
    for store in ["w", "v"] {
        let every = if store == "w" {
            "--snapshot-every 100"
        } else {
            ""
        };
        lab.run(&format!("ingest a --store {store} --settle none {every}"))
            .exits(0);
        assert_eq!(record(&lab, store)["caveats"], json!([]));
    }
    assert_eq!(lab.snapshot("v"), lab.snapshot("w"));
    // More pages than permitted.
    lab.run("ingest a b --store l --limit-pages 60").exits(2);
    let found = record(&lab, "l");
    let caveat = found["caveats"][0].as_str().unwrap();
    assert!(caveat.starts_with("a was read up to record "), "{found}");
}

#[test]
fn a_store_without_a_snapshot_has_no_record() {
    let lab = Lab::new();
    lab.run("stat --record --store none").exits(2);
    lab.run("stat --record --json --store none").exits(2);
}
