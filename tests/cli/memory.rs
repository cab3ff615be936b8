//! The memory budget: where it stops a run, and that it changes nothing else.

use serde_json::Value;

use crate::support::{Lab, crawl};

/// Returns the memory that the pages need; excludes the log, which is smaller if the budget is.
fn needed(json: &Value) -> u64 {
    let memory = &json["memory"];
    memory["total"].as_u64().unwrap() - memory["log"].as_u64().unwrap()
}

/// Returns a budget that just fits `needed` and the log, which is an eighth of the budget.
fn budget_for(needed: u64) -> u64 {
    needed * 8 / 7 + 8
}

#[test]
fn a_small_budget_stops_at_a_checkpoint_and_a_larger_one_continues() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(71, 2_000).concat());
    lab.file("none", "");
    let none = lab
        .run("ingest none --store none.store --json --memory 1T")
        .exits(3)
        .json();
    let whole = lab
        .run("ingest a --store whole --json --memory 1T --settle none")
        .exits(0)
        .json();
    let pages = whole["pages"].as_u64().unwrap();
    let (least, most) = (needed(&none), needed(&whole));
    assert!(least < most);

    let mut known = 0;
    for share in [3, 2] {
        let budget = budget_for(least + (most - least) / share);
        let done = lab.run(&format!(
            "ingest a --store cut --memory {budget} --settle none"
        ));
        done.exits(8).says(&[
            "raise --memory",
            "--limit-pages",
            "pages known",
            "room for about ",
        ]);
        // The pages that fit are kept, and ranked.
        let now = lab.stat("cut")["pages"].as_u64().unwrap();
        assert!(known < now && now < pages, "{known}, {now} of {pages}");
        known = now;
    }
    lab.run(&format!(
        "ingest a --store cut --memory {} --settle none",
        budget_for(most)
    ))
    .exits(0)
    .says(&["continuing after record"]);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
    lab.run("verify --deep --store cut").exits(0);
}

/// Regression: cash and index stayed in memory while the pages that fit were ranked, so there was no room to settle
/// them: the ranking came from a window, far from PageRank.
#[test]
fn what_fits_is_settled_before_a_run_stops() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(71, 2_000).concat());
    lab.file("none", "");
    let run = |line: &str| lab.run(&format!("ingest {line}"));
    let none = run("none --store none.store --json --memory 1T")
        .exits(3)
        .json();
    let whole = run("a --store whole --json --memory 1T").exits(0).json();
    let (least, most) = (needed(&none), needed(&whole));
    let budget = budget_for(least + (most - least) / 2);
    run(&format!("a --store cut --memory {budget} --settle 1e-6"))
        .exits(8)
        .says(&["raise --memory", "certified"]);
    assert!(lab.stat("cut")["bound_l1"].as_f64().unwrap() <= 1e-6);
    run("a --store cut --memory 1T").exits(0);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

/// Known pages take memory, too: a store that exceeds the budget is not even loaded.
#[test]
fn a_store_that_needs_more_than_the_budget_is_not_opened() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(72, 300).concat());
    lab.run("ingest a --store s --memory 1M").exits(8).says(&[
        "with 0 pages known",
        "the budget is 1.0 MiB",
        "raise --memory",
    ]);
    // Far below the budget it is not mentioned.
    let made = lab.run("ingest a --store s --memory 4G").exits(0);
    assert!(!made.err.contains("memory:"), "{}", made.err);
    lab.run("ingest a --store s --memory 1M")
        .exits(8)
        .says(&["raise --memory"]);
    lab.run("ingest a --store s")
        .exits(0)
        .says(&["nothing to do"]);
}

/// Regression: the log takes an eighth of any budget, so the need of a refused budget grew with it.
#[test]
fn a_refusal_names_what_is_enough() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(72, 300).concat());
    let run = |memory: &str| lab.run(&format!("ingest a --store s --memory {memory}"));
    run("4G").exits(0);
    let pages = lab.stat("s")["pages"].clone();
    let known = format!("with {pages} pages known, continuing needs ");
    let needed = |memory: &str| {
        let refused = run(memory).exits(8);
        let (_, after) = refused.err.split_once(&known).unwrap();
        let (needed, _) = after.split_once(" MiB").unwrap();
        needed.parse::<f64>().unwrap()
    };
    let enough = needed("1M");
    assert_eq!(needed("200M"), enough);
    // The need is rounded up to a tenth.
    let bytes = |mib: f64| ((mib * f64::from(1 << 20)) as u64).to_string();
    run(&bytes(enough)).exits(0).says(&["nothing to do"]);
    assert_eq!(needed(&bytes(enough - 0.1)), enough);
}

#[test]
fn sizes_that_are_none_are_refused() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(75, 10).concat());
    for size in ["0", "0G", "-1", "1.5G", "G", "many", "99999999999T", "1X"] {
        let done = lab.run(&format!("ingest a --store s --memory={size}"));
        done.exits(2).says(&["--memory"]);
    }
}

/// The need that `stat` reports follows from the number of pages.
#[test]
fn stat_tells_what_going_on_needs() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(76, 300).concat());
    lab.run("ingest a --store s").exits(0);
    let stat = lab.stat("s");
    let pages = stat["pages"].as_u64().unwrap();
    let memory = &stat["memory_bytes"];
    let parts = [
        "cash",
        "index",
        "rows",
        "log",
        "database",
        "buffers",
        "publishing",
    ];
    let sum: u64 = parts
        .iter()
        .map(|part| memory[part].as_u64().unwrap())
        .sum();
    assert_eq!(memory["total"], sum);
    assert_eq!(memory["cash"], pages * 8 + pages.div_ceil(2));
    assert_eq!(memory["settling"], 18 * pages);
}

/// Commands that hold data of each page refuse what does not fit, before anything is written; those that hold little or
/// nothing run.
#[test]
fn other_commands_refuse_what_does_not_fit() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(77, 2_000).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("export --store s --to tsv -o ranks").exits(0);
    let before = lab.names();
    for (line, fits, says) in [
        ("convert --sort time a -o out", "2M", "without --sort"),
        ("compare s s", "1M", "compare parts of them"),
        ("compare ranks s", "1M", "compare parts of them"),
        ("compare s ranks --moved 5", "1M", "compare parts of them"),
        (
            "export --store s --to tsv --sort rank -o out",
            "4M",
            "sort the lines",
        ),
        (
            "settle --store s --until 1e-9",
            "4M",
            "a machine with more memory",
        ),
        ("compute --until 1e-12 a -o out", "16M", "use `ingest`"),
        ("verify --deep --store s", "65M", "leave --deep out"),
        ("next --store s -o out", "1M", "list fewer pages"),
        (
            "local --store s --domain url:* --json",
            "8M",
            "a store of its own",
        ),
        ("export --store s --to parquet -o out", "8M", "more memory"),
    ] {
        lab.run(&format!("{line} --memory 4K")).exits(8).says(&[
            "memory:",
            "the budget is 4.0 KiB",
            "raise --memory",
            says,
        ]);
        assert_eq!(lab.names(), before, "{line}");
        lab.run(&format!("{line} --memory {fits}")).exits(0);
        let _ = std::fs::remove_file(lab.path("out"));
    }
    let links = "links http://h1.example/p1 --in --store s";
    lab.run(&format!("{links} --memory 100"))
        .exits(8)
        .says(&["listing ", "list fewer (-n)"]);
    lab.run(&format!("{links} --memory 1M")).exits(0);
    lab.run("export --store s --to tsv -o out --memory 4K")
        .exits(0);
    lab.run("verify --store s --memory 4K").exits(0);
}

/// A file does not say how many pages it holds, so the limit is found while reading.
#[test]
fn a_file_of_scores_is_refused_where_it_grows_too_large() {
    let lab = Lab::on_disk();
    let scores = |pages: u32| {
        (0..pages)
            .map(|page| format!("{page}\t1\n"))
            .collect::<String>()
    };
    lab.file("left", scores(10_000));
    lab.file("right", scores(40_000));
    // 32 bytes for each of 50,000 pages; the first check after 40,000 is at 42,768.
    for (budget, code) in [(42_767 * 32, 8), (50_000 * 32, 0)] {
        lab.run(&format!("compare left right --memory {budget}"))
            .exits(code);
    }
}

/// Address space that the system refuses is an error that says what to lower.
#[cfg(target_os = "linux")]
#[test]
fn refused_address_space_is_an_error() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(79, 2_000).concat());
    let done = lab.limited("-v 2000000", "ingest a --store t --memory 1T --threads 1");
    assert_eq!(done.status.code(), Some(8), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("lower --limit-pages"), "{said}");
    let few = "ingest a --store t --limit-pages 5000 --threads 1";
    let done = lab.limited("-v 2000000", few);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}
