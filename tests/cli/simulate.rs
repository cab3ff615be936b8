//! `cashrank simulate`: rows and files, the same from the same seed, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::support::Lab;

/// The fields of a line of a table, of which only windows are quoted.
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

/// All figures, whatever the number of threads; plots are whole XML of finite numbers, and no line is empty.
#[test]
fn figures_are_the_same_on_any_number_of_threads() {
    let lab = Lab::new();
    for threads in [1, 3] {
        let line = format!("simulate --pages 300 --figures made/on-{threads} --threads {threads}");
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

/// Figures that could not be written, then rows that were cut off: the same command goes on from what there is, and
/// gives what an undisturbed run gives.
#[test]
fn interrupted_figures_go_on() {
    let lab = Lab::new();
    lab.run("simulate --pages 100 --figures whole").exits(0);
    let again = "simulate --pages 100 --figures made --threads 2";
    fs::create_dir_all(lab.path("made/figure2.svg")).unwrap();
    lab.run(again).exits(7).says(&["34 of 34", "figure2.svg"]);
    let kept = lab.path("made/unfinished.jsonl");
    let rows = fs::read_to_string(&kept).unwrap();
    let ends: Vec<usize> = rows.match_indices('\n').map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 34);
    fs::write(&kept, &rows[..(ends[4] + ends[5]) / 2]).unwrap();
    lab.run("simulate --pages 100 --seed 2 --figures made")
        .exits(7)
        .says(&["1 of 34 done"]);
    lab.run(again).exits(7).says(&["5 of 34 were done before"]);
    fs::remove_dir(lab.path("made/figure2.svg")).unwrap();
    lab.run(again).exits(0).says(&["34 of 34 were done before"]);
    assert_eq!(files(&lab.path("made")), files(&lab.path("whole")));
}

/// A graph from a file, crawled so long that the error factor 1/G leaves less than a percent.
#[test]
fn a_real_graph_is_crawled() {
    let lab = Lab::new();
    let star: String = (1..10).map(|leaf| format!("{leaf}\t0\n")).collect();
    lab.file("star.tsv", format!("{star}0\n"));
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
    lab.file("one.tsv", "a\n");
    for (line, reason) in [
        ("--pages 0", "at least 1"),
        ("--pages 1", "at least 2"),
        ("--pages 99999999999", "at most"),
        ("--pages ten", "whole number"),
        (
            "--strategy best",
            "unknown strategy \"best\": random, greedy or cycle",
        ),
        ("--web power:1", "an exponent from 2"),
        ("--web poisson:-3", "a mean above 0"),
        ("--web flat", "power:EXPONENT"),
        ("--out-degree none", "like-in"),
        ("--window variable:0", "no number of measures"),
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
        ("--figures out --strategy random", "cannot be used with"),
        ("--threads 2", "--figures"),
    ] {
        lab.run(&format!("simulate {line}"))
            .exits(2)
            .says(&[reason]);
    }
    lab.run("simulate --graph absent.tsv").exits(7);
    lab.run("simulate --pages 100 --figures one.tsv").exits(7);
}
