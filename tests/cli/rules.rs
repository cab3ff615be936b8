//! Rules for what is read from inputs, by option: an input read with the rules gives the same result as one that was
//! cleaned by hand.

use crate::support::{Lab, sample};

/// Visitors' marks in URLs, and pages and links out of scope.
const DIRTY: &str = r#"
{"url":"http://a.example/?utm_source=x","links":["/b?fbclid=1&id=2","http://b.example/","/cal/1"]}
{"url":"http://b.example/","links":["http://a.example/"]}
{"url":"http://a.example/cal/1","status":404}
{"url":"http://a.example/b?id=2","links":["/","/b;jsessionid=7?id=2","http://www.a.example/"]}
{"url":"http://www.a.example/?utm_x=1&utm_y","links":["http://a.example/?UTM_z=1"]}
"#;
const CLEAN: &str = r#"
{"url":"http://a.example/","links":["/b?id=2"]}
{"url":"http://a.example/b?id=2","links":["/","/b?id=2","http://www.a.example/"]}
{"url":"http://www.a.example/","links":["http://a.example/"]}
"#;
const RULES: &str = "--drop-params tracking,session --scope domain:a.example --scope !url:*/cal/*";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.file("dirty", DIRTY.trim_start());
    lab.file("clean", CLEAN.trim_start());
    lab
}

#[test]
fn rules_clean_an_input() {
    let lab = lab();
    let done = lab.run(&format!("ingest dirty --store dirty.store --json {RULES}"));
    let json = done.exits(0).json();
    assert_eq!(json["records"], 3);
    assert_eq!(json["out_of_scope"], 2);
    assert!(json["skipped"].as_object().unwrap().is_empty(), "{json}");
    lab.run("ingest clean --store clean.store").exits(0);
    assert_eq!(lab.export("dirty.store"), lab.export("clean.store"));
    assert!(
        lab.export("clean.store")
            .contains("http://a.example/b?id=2")
    );
    // By the names of groups as well.
    lab.run(&format!("ingest dirty --store again.store {RULES}"))
        .exits(0)
        .says(&["2 records of pages outside --scope", "2 out of scope"]);
}

/// Rules belong to the store: kept if not given, and refused if others are given.
#[test]
fn a_store_keeps_its_rules() {
    let lab = lab();
    lab.run(&format!(
        "ingest dirty --store s {RULES} --follow external=3"
    ))
    .exits(0);
    lab.run("ingest dirty --store s")
        .exits(0)
        .says(&["nothing to do"]);
    for other in [
        "--drop-params utm_*",
        "--scope host:a.example",
        "--follow external=2",
    ] {
        let option = other.split(' ').next().unwrap();
        lab.run(&format!("ingest dirty clean --store s {other}"))
            .exits(2)
            .says(&["this store was made with", option]);
    }
    // The order of scopes does not matter.
    lab.run("ingest dirty --store s --scope !url:*/cal/* --scope domain:a.example")
        .exits(0);
}

#[test]
fn rules_that_say_nothing() {
    let lab = lab();
    for (rule, said) in [
        ("--follow nofollow", "KIND=WEIGHT"),
        ("--follow nofollow=2000", "0 to 1000"),
        ("--drop-params a=b", "the name of a parameter"),
        ("--scope a.example", "host:NAME"),
        ("--scope host:*.example", "domain:example"),
        ("--outlinks wat", "possible values: html, metadata"),
    ] {
        lab.run(&format!("ingest dirty --store s {rule}"))
            .exits(2)
            .says(&[said]);
    }
}

/// The exact reference weighs all links alike, and a ranking far from it is recognised.
#[test]
fn exact_pagerank_with_weights() {
    let lab = Lab::new();
    lab.file("in", sample(300).concat());
    for weights in ["internal=1,external=9", "internal=0", "external=0"] {
        let store = format!("store-{weights}");
        let line = format!("ingest in --store {store} --settle 1e-7 --follow {weights}");
        lab.run(&line).exits(0);
        lab.run(&format!(
            "compute --until 1e-12 in -o exact --force --follow {weights}"
        ))
        .exits(0);
        let bound = lab.stat(&store)["bound_l1"].as_f64().unwrap();
        let found = lab.run(&format!("compare {store} exact --json")).exits(0);
        let l1 = found.json()["l1"].as_f64().unwrap();
        assert!(
            bound < 1e-6 && l1 <= bound + 1e-12,
            "{weights}: {l1}, {bound}"
        );
        lab.run("compute --until 1e-12 in -o plain --force")
            .exits(0);
        let found = lab.run(&format!("compare {store} plain --json")).exits(0);
        assert!(found.json()["l1"].as_f64().unwrap() > 0.01);
    }
}
