//! Behaviour on a real terminal: what is shown, what is not, and the keyboard as input.

use std::process::Command;

use crate::support::{Done, Lab, crawl};

/// Runs a line in `lab` on a terminal of 80 columns, and types `keys`. `None` without Python, which makes the terminal.
fn on_terminal(lab: &Lab, line: &str, keys: &str) -> Option<Done> {
    let python = std::env::var("CASHRANK_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/terminal.py");
    let done = Command::new(&python)
        .args([script, "80", keys, env!("CARGO_BIN_EXE_cashrank")])
        .args(line.split_whitespace())
        .current_dir(lab.path(""))
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .output();
    let Ok(done) = done else {
        eprintln!("SKIPPED: no {python} to make a terminal with");
        return None;
    };
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!err.contains("Traceback"), "{err}");
    Some(Done {
        code: done.status.code(),
        out: String::from_utf8_lossy(&done.stdout).into_owned(),
        err,
    })
}

/// Returns the text shown, without escape sequences.
fn plain(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out += before;
        // Sequences here end with a letter.
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        rest = &after[end + 1..];
    }
    out + rest
}

/// Nothing is wider than the terminal, above all not the progress line: a wrapped line cannot be overwritten.
#[test]
fn progress_does_not_wrap() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(1, 3_000).concat());
    let line = "ingest a --store s --repeat 3 --snapshot-every 1000";
    let Some(done) = on_terminal(&lab, line, "") else {
        return;
    };
    let done = done.exits(0);
    let mut drawings = 0;
    for line in done.out.split('\n') {
        // Text that is overwritten is followed by new text, and finally by a sentence, which may wrap.
        let shown: Vec<String> = line.split('\r').map(plain).collect();
        for drawn in &shown[..shown.len().saturating_sub(2)] {
            assert!(drawn.chars().count() <= 80, "{drawn:?}");
            drawings += 1;
        }
    }
    assert!(drawings > 0, "{done:?}");
}

#[test]
fn the_keyboard_is_an_input() {
    let lab = Lab::on_disk();
    let record = "{\"url\":\"http://a.example/\",\"status\":200,\"links\":[\"/b\"]}\n\x04";
    let Some(done) = on_terminal(&lab, "ingest - --store s", record) else {
        return;
    };
    done.exits(0);
    assert_eq!(lab.stat("s")["pages"], 2);
}

/// Binary data is not written to a terminal.
#[test]
fn only_text_goes_to_a_terminal() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(2, 100).concat());
    lab.run("ingest a --store s").exits(0);
    for line in [
        "export --store s --to parquet",
        "next --store s --to parquet",
        "compute --until 1e-12 a --to parquet",
        "local --store s --domain host:h1.example -n 1 --to parquet",
    ] {
        let Some(done) = on_terminal(&lab, line, "") else {
            return;
        };
        let done = done.exits(2);
        assert!(done.out.contains("not written to a terminal"), "{done:?}");
    }
}

/// A terminal interprets control characters: names must not contain any.
#[test]
fn names_do_not_move_the_cursor() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(3, 30).concat());
    lab.run("ingest a --store s").exits(0);
    let unknown = lab.run("rank --store s \x1b[31mred").out;
    assert_eq!(unknown, "\\u{1b}[31mred\n  not known\n");
}
