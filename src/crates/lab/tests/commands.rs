//! Tests of the commands: rows and files, determinism, and refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Result of a run of the program.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    #[track_caller]
    fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }

    /// Checks that standard error contains all of these words.
    #[track_caller]
    fn says(self, words: &[&str]) -> Done {
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:#?}");
        }
        self
    }
}

/// Folder for a test's files.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `cashrank-lab` in this folder; words of `line` are split at spaces.
    fn run(&self, line: &str) -> Done {
        self.run_from(line, Stdio::null())
    }

    fn run_from(&self, line: &str, stdin: Stdio) -> Done {
        let output = Command::new(env!("CARGO_BIN_EXE_cashrank-lab"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(stdin)
            .output()
            .unwrap();
        Done {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns the number of fields of a line of a table, in which only windows are quoted.
fn fields(line: &str) -> usize {
    let outside = line.split('"').step_by(2);
    outside.map(|part| part.matches(',').count()).sum::<usize>() + 1
}

#[test]
fn rows_are_a_table_or_json() {
    let lab = Lab::new();
    let line = "simulate --pages 500 --passes 3 --samples 2 --window fixed:2,min=3 --window auto \
                --change-rate 0.05 --appear 0.01 --vanish 0.01 --strategy cycle";
    let table = lab.run(line).exits(0).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * 2 * 2);
    assert!(
        lines.iter().all(|line| fields(line) == fields(lines[0])),
        "{table}"
    );
    assert!(lines[0].starts_with("crawled_pages,passes,"));
    assert!(lines[1].starts_with("250,0.5000,"), "{table}");
    assert!(lines[12].starts_with("1500,3.0000,"), "{table}");

    let json = lab.run(&format!("{line} --json")).exits(0).out;
    let rows: Vec<serde_json::Value> = json
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let mut named: Vec<&str> = row
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut columns: Vec<&str> = lines[0].split(',').collect();
        named.sort_unstable();
        columns.sort_unstable();
        assert_eq!(named, columns);
    }
    assert_eq!(rows[11]["crawled_pages"], 1500);
    assert_eq!(rows[10]["window"], "fixed:2,min=3");
    // The same numbers, which the table rounds.
    let error = rows[11]["error_percent"].as_f64().unwrap();
    assert!(lines[12].contains(&format!(",{error:.4},")), "{table}");
}

#[test]
fn a_seed_is_a_result() {
    let lab = Lab::new();
    let line = "simulate --pages 400 --passes 2 --growing --recycle-after 4 --change-rate 0.1 --strategy random";
    let first = lab.run(&format!("{line} --seed 5")).exits(0).out;
    assert_eq!(lab.run(&format!("{line} --seed 5")).exits(0).out, first);
    assert_ne!(lab.run(&format!("{line} --seed 6")).exits(0).out, first);
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let named = entries.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).unwrap())
    });
    named.collect()
}

/// All figures, whatever the number of threads; plots are complete XML of finite numbers, and no line is empty.
#[test]
fn figures_are_the_same_on_any_number_of_threads() {
    let lab = Lab::new();
    for threads in [1, 3] {
        let line = format!("figures made/on-{threads} --pages 300 --threads {threads}");
        lab.run(&line).exits(0).says(&["the figures are in"]);
    }
    let made = files(&lab.path("made/on-1"));
    assert_eq!(made, files(&lab.path("made/on-3")));
    for needed in [
        "figure2.svg",
        "figure3.svg",
        "figure4.svg",
        "figure5.csv",
        "figure6.svg",
        "recovery-cycle.svg",
    ] {
        assert!(made.contains_key(needed), "{needed} of {:?}", made.keys());
    }
    for (name, text) in &made {
        if name.ends_with(".svg") {
            assert!(text.ends_with("</svg>\n"), "{name}");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{name}");
            assert!(!text.contains("points=\"\""), "{name}: an empty line");
        } else {
            let mut lines = text.lines();
            let width = fields(lines.next().unwrap());
            assert!(lines.clone().count() > 0, "{name}");
            assert!(lines.all(|line| fields(line) == width), "{name}");
        }
    }
}

/// Figures that could not be written, then rows that were cut off: the same command continues from what exists, and
/// gives the result of an undisturbed run.
#[test]
fn interrupted_figures_go_on() {
    let lab = Lab::new();
    lab.run("figures whole --pages 100").exits(0);
    let again = "figures made --pages 100 --threads 2";
    fs::create_dir_all(lab.path("made/figure2.svg")).unwrap();
    lab.run(again).exits(1).says(&["34 of 34", "figure2.svg"]);
    let kept = lab.path("made/unfinished.jsonl");
    let rows = fs::read_to_string(&kept).unwrap();
    let ends: Vec<usize> = rows.match_indices('\n').map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 34);
    fs::write(&kept, &rows[..(ends[4] + ends[5]) / 2]).unwrap();
    lab.run("figures made --pages 100 --seed 2")
        .exits(1)
        .says(&["1 of 34 done"]);
    lab.run(again).exits(1).says(&["5 of 34 were done before"]);
    fs::remove_dir(lab.path("made/figure2.svg")).unwrap();
    lab.run(again).exits(0).says(&["34 of 34 were done before"]);
    assert_eq!(files(&lab.path("made")), files(&lab.path("whole")));
}

/// A graph from a file, crawled until the error factor 1/G is less than a percent.
#[test]
fn a_real_graph_is_crawled() {
    let lab = Lab::new();
    let star: String = (1..10).map(|leaf| format!("{leaf}\t0\n")).collect();
    fs::write(lab.path("star.tsv"), format!("{star}0\n")).unwrap();
    let out = lab
        .run("simulate --graph star.tsv --format adjacency --passes 2000 --samples 1 --json")
        .exits(0)
        .out;
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["live_pages"], &last["known_pages"]),
        (&10.into(), &10.into())
    );
    assert!(last["error_percent"].as_f64().unwrap() < 1.0, "{last}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let lab = Lab::new();
    fs::write(lab.path("one.tsv"), "a\n").unwrap();
    for (line, reason) in [
        ("--pages 0", "--pages"),
        ("--pages 1", "at least 2"),
        ("--pages 99999999999", "at most"),
        ("--pages ten", "--pages"),
        (
            "--strategy best",
            "unknown strategy \"best\": random, greedy or cycle",
        ),
        ("--web power:1", "an exponent from 2"),
        ("--web poisson:-3", "a mean above 0"),
        ("--web flat", "power:EXPONENT"),
        ("--out-degree none", "like-in"),
        ("--window variable:0", "not a number of measures"),
        ("--window some", "unknown window"),
        ("--window variable:4 --estimator received", "distributed"),
        ("--change-rate=-0.1", "change rate of -0.1"),
        ("--appear NaN", "change rate of NaN"),
        ("--vanish 11", "from 0 to 10"),
        ("--change-after 4 --change-until 4", "no pass between"),
        ("--passes 0", "passes"),
        ("--samples 0", "samples"),
        ("--damping 1", "damping"),
        ("--recycle-after 13", "recycle-after"),
        ("--pages 10 --vanish 5", "died out"),
        ("--graph one.tsv --format adjacency", "at least 2"),
        ("--graph one.tsv --pages 10", "cannot be used with"),
        ("--format edges", "--graph"),
    ] {
        lab.run(&format!("simulate {line}"))
            .exits(2)
            .says(&[reason]);
    }
    lab.run("simulate --graph absent.tsv").exits(1);
    lab.run("figures one.tsv --pages 100").exits(1);
}

#[test]
fn orders_are_simulated() {
    let lab = Lab::new();
    let line = "crawl --pages 400 --strategy fica:k=10,beta=0.2,oracle,forecast --sets 2 --json";
    let told = lab.run(line).exits(0).out;
    assert_eq!(
        told,
        lab.run(line).exits(0).out,
        "the same options, the same bytes"
    );
    let rows: Vec<serde_json::Value> = told
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let hot = |order: &str| -> f64 {
        let of = rows.iter().filter(|row| row["strategy"] == order);
        of.map(|row| row["hot"].as_f64().unwrap()).sum()
    };
    assert!(hot("oracle") > hot("forecast") && hot("forecast") > 0.0);
    assert!(hot("fica:k=10,beta=0.2") > 0.0);
    for row in &rows {
        let (least, most) = (row["at_least"].as_f64(), row["at_most"].as_f64());
        assert!(
            least > Some(0.0) && least < most && most <= Some(1.0),
            "{row}"
        );
    }
    // No page is left of a web that was read to its end.
    let whole = lab.run("crawl --pages 400 --strategy fica --until 1 --sets 1 --json");
    let whole = whole.exits(0).out;
    let last: serde_json::Value = serde_json::from_str(whole.lines().last().unwrap()).unwrap();
    assert!(
        last["at_least"].as_f64() > Some(0.99) && last["at_most"] == 1.0,
        "{last}"
    );
    let refused = lab.run("simulate --pages 100 --damping nan").exits(2);
    assert_eq!(refused.out, "");
    lab.run("crawl --pages 400 --strategy cash")
        .exits(2)
        .says(&["unknown strategy"]);
    lab.run("crawl --pages 400 --per-host 2")
        .exits(2)
        .says(&["names"]);
}

/// A table with one row per method, the same from the same seed except for times; invalid requests get a message.
#[test]
fn local_domains_of_a_synthetic_web() {
    let lab = Lab::new();
    let line = "local --pages 3000 --domains 2 --domain-pages 200 --rounds 4";
    let rows = |out: &str| -> Vec<String> {
        let cut = |line: &str| line.rsplitn(3, ',').nth(2).unwrap().to_owned();
        out.lines().map(cut).collect()
    };
    let first = rows(&lab.run(line).exits(0).out);
    assert_eq!(first.len(), 1 + 6);
    assert_eq!(first, rows(&lab.run(line).exits(0).out));
    for row in &first[1..] {
        let fields: Vec<&str> = row.split(',').collect();
        let (none, l1): (f64, f64) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        assert!(l1 < none, "{row}");
    }
    lab.run(&format!("{line} --select sc,share+ --json"))
        .exits(0);
    lab.run("local --pages 3000 --domain-pages 2000")
        .exits(2)
        .says(&["do not fit"]);
    lab.run(&format!("{line} --figures f --time 100,200"))
        .exits(0);
    for name in [
        "table1.csv",
        "domains.csv",
        "figure1.csv",
        "figure1a.svg",
        "figure1b.svg",
        "figure2.csv",
        "figure2.svg",
        "time.csv",
        "time.svg",
    ] {
        assert!(lab.path(&format!("f/local-{name}")).exists(), "{name}");
    }
}

/// 0 links to 1 and 2, 1 to 3, 2 to 4: from a single seed, what leads to a page comes before it.
#[test]
fn a_graph_is_put_in_breadth_first_order() {
    let lab = Lab::new();
    fs::write(lab.path("graph"), "0\t1\t2\n1\t3\n2\t4\n").unwrap();
    let line = "bfs-order --seeds 1 --format adjacency";
    let graph = || Stdio::from(fs::File::open(lab.path("graph")).unwrap());
    let orders = (0..30).map(|seed| {
        let out = lab
            .run_from(&format!("{line} --seed {seed}"), graph())
            .exits(0)
            .out;
        let page = |line: &str| line.split('\t').next().unwrap().to_owned();
        out.lines().map(page).collect::<Vec<_>>().join(" ")
    });
    let orders: Vec<String> = orders.collect();
    let begun = orders.iter().filter(|order| order.starts_with('0'));
    assert!(begun.clone().count() > 0 && begun.clone().count() < 30);
    assert!(
        begun.clone().all(|order| order == "0 1 2 3 4"),
        "{orders:?}"
    );
    fs::write(lab.path("graph"), "0\t1\nx\t2\n").unwrap();
    lab.run_from(line, graph()).exits(2).says(&["line 2"]);
}

/// The requested numbers of records and links, and a curve for each measurement of a benchmark.
#[test]
fn crawls_are_generated_and_curves_are_drawn() {
    let lab = Lab::new();
    let crawl = lab.run("generate --pages 100 --links 1000").exits(0).out;
    let links = |line: &str| -> usize {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["links"].as_array().unwrap().len()
    };
    assert_eq!(crawl.lines().count(), 100);
    assert_eq!(crawl.lines().map(links).sum::<usize>(), 1000);
    lab.run("generate --pages 100 --links 1000 --crawled 101")
        .exits(2)
        .says(&["--crawled"]);
    fs::write(
        lab.path("run"),
        "point {\"pages\":1000000,\"links_per_s\":5e6,\"bytes_per_page\":240}\n",
    )
    .unwrap();
    let svg = lab.run("plot run").exits(0).out;
    assert!(svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 2);
    lab.run("plot absent").exits(1).says(&["absent"]);
}
