//! Windows and estimators as options: refusals with their reasons, and the output of `stat`.

use crate::support::{Lab, crawl};

#[test]
fn what_is_no_window_is_refused_before_a_store_is_made() {
    let lab = Lab::new();
    lab.file("a", crawl(21, 20).concat());
    for (options, says) in [
        ("--window fixed:0", "not a window length"),
        ("--window fixed:-2", "not a window length"),
        ("--window interpolation:0d", "not a window length"),
        ("--window variable:0", "not a number of measures"),
        ("--window fixed:1,min=0", "not a number of measures"),
        ("--window sliding:3", "unknown window"),
        (
            "--estimator guessed",
            "possible values: received, distributed",
        ),
        (
            "--window variable:3 --estimator received",
            "use --estimator distributed",
        ),
        (
            "--window fixed:1,min=2 --estimator received",
            "use --estimator distributed",
        ),
        ("--max-age 0", "not a window length"),
        ("--max-age 3 --window whole", "--window whole"),
        ("--window fixed:1 --marks 0", "--marks 0 keeps none"),
    ] {
        let done = lab.run(&format!("ingest a --store s {options}"));
        done.exits(2).says(&[says]);
        assert!(!lab.path("s").exists(), "{options}");
    }
}

#[test]
fn a_store_keeps_its_window_and_estimator() {
    let lab = Lab::new();
    lab.file("a", crawl(22, 50).concat());
    lab.run("ingest a --store s --window fixed:2").exits(0);
    for (options, says) in [
        ("--window fixed:3", "--window fixed:2, not fixed:3"),
        (
            "--estimator distributed",
            "--estimator received, not distributed",
        ),
    ] {
        let done = lab.run(&format!("ingest a --repeat 2 --store s {options}"));
        done.exits(2).says(&[says]);
    }
    // The store's own settings may be repeated.
    lab.run("ingest a --repeat 2 --store s --window fixed:2x --estimator received")
        .exits(0);
}

#[test]
fn stat_says_what_was_used() {
    let lab = Lab::new();
    lab.file("a", crawl(23, 200).concat());
    for (window, least, most) in [
        ("auto", 0.0, 1.0),
        ("variable:1", 0.0, 1.0),
        ("variable:4", 1.0, 4.0),
        ("fixed:100,min=1", 1.0, 1_000.0),
        ("interpolation:2", 0.0, 1.0),
    ] {
        let store = window.replace([':', ','], "-");
        lab.run(&format!(
            "ingest a --repeat 8 --store {store} --window {window}"
        ))
        .exits(0);
        let stat = lab
            .run(&format!("stat --json --store {store}"))
            .exits(0)
            .json();
        assert_eq!(stat["window"], window);
        let a_page = stat["history"].as_f64().unwrap() / stat["pages"].as_f64().unwrap();
        assert!(least < a_page && a_page <= most, "{window}: {a_page}");
        assert_eq!(stat["bound_l1"].is_null(), window != "auto", "{window}");
    }
}

/// A window in fetch time requires times.
#[test]
fn records_without_times_don_t_do_for_a_window_in_fetch_time() {
    let lab = Lab::new();
    lab.file(
        "a",
        "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n",
    );
    let done = lab.run("ingest a --store s --window fixed:7d");
    done.exits(2).says(&["records have no times"]);
}

/// Regression: the certificate of a window concerns the links as they were read. It was called that of the exact
/// PageRank, and of two pages the wrong one was certainly more important, when a page's latest links lead elsewhere
/// than earlier ones.
#[test]
fn a_window_s_certificate_says_what_it_is_of() {
    let lab = Lab::new();
    let page = |name: &str, links: &[&str]| {
        let links: Vec<String> = links.iter().map(|link| format!("\"/{link}\"")).collect();
        format!(
            "{{\"url\":\"http://a.example/{name}\",\"links\":[{}]}}\n",
            links.join(",")
        )
    };
    let often = [page("h", &["A"]), page("A", &["h"]), page("B", &["h"])].concat();
    lab.file("changed", [often.repeat(400), page("h", &["B"])].concat());
    lab.file("once", often);
    let as_read = "PageRank of the links as they were read (L1, certified)";
    lab.run("ingest changed --keep-links none --store window")
        .exits(0)
        .says(&[as_read]);
    let rank = |store: &str| {
        let line = format!("rank http://a.example/A http://a.example/B --store {store}");
        lab.run(&line).exits(0).out
    };
    let told = rank("window");
    let sentence =
        "/A is certainly more important than http://a.example/B, by the links as they were read";
    assert!(told.contains(sentence), "{told}");
    lab.run("ingest changed --store settled")
        .exits(0)
        .says(&["total error at most ", "(L1, certified)"]);
    let told = rank("settled");
    assert!(
        told.contains("/B is certainly more important than http://a.example/A\n"),
        "{told}"
    );
    // Links that were read once are the latest.
    let once = lab.run("ingest once --keep-links none --store o").exits(0);
    assert!(!once.err.contains(as_read), "{}", once.err);
}
