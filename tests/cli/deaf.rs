//! A log that nobody can read ends nothing: standard error on a full disk, or with its reader gone. Each used to be a
//! panic with exit code 101, without a checkpoint or a snapshot. A limit on file size acts like a full disk; it used to
//! end the process by a signal, without a message.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Lab, crawl};

/// Runs a shell command in which `$B` is the binary; returns its exit code.
fn shell(lab: &Lab, line: &str) -> i32 {
    let done = Command::new("bash")
        .args(["-c", line])
        .env("B", env!("CARGO_BIN_EXE_cashrank"))
        .current_dir(lab.path(""))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    done.code().unwrap_or(-1)
}

#[test]
fn messages_that_nobody_can_read_end_nothing() {
    if OpenOptions::new().write(true).open("/dev/full").is_err() {
        eprintln!("SKIPPED: /dev/full is not here");
        return;
    }
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(61, 300).concat() + "bad\n{\"url\":\n");
    lab.run("ingest in.jsonl --store whole").exits(3);
    let expected = lab.snapshot("whole");
    let deaf = [
        "2>/dev/full",
        "2> >(head -n1 >/dev/null)",
        "2> >(true)",
        "2>&-",
    ];
    for (at, deaf) in deaf.into_iter().enumerate() {
        let line = format!("$B ingest in.jsonl --store s{at} {deaf} >/dev/null");
        assert_eq!(shell(&lab, &line), 3, "{line}");
        assert!(lab.snapshot(&format!("s{at}")) == expected, "{line}");
        for line in [
            "top --store nope",
            "top --store s0",
            "export --to tsv --store s0 -o out",
            "inspect in.jsonl",
            "convert in.jsonl -o out.jsonl",
            "compute --until 1e-12 in.jsonl",
            "verify --store s0",
        ] {
            let _ = std::fs::remove_file(lab.path("out.jsonl"));
            let _ = std::fs::remove_file(lab.path("out"));
            let heard = shell(&lab, &format!("$B {line} 2>/dev/null >/dev/null"));
            let _ = std::fs::remove_file(lab.path("out.jsonl"));
            let _ = std::fs::remove_file(lab.path("out"));
            let line = format!("$B {line} {deaf} >/dev/null");
            assert_eq!(shell(&lab, &line), heard, "{line}");
            assert!((0..100).contains(&heard), "{line}: {heard}");
        }
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk() {
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(62, 3000).concat());
    lab.run("ingest in.jsonl --store whole").exits(0);
    for kib in [100, 400, 1000] {
        let store = format!("s{kib}");
        let line = format!("ulimit -f {kib}; $B ingest in.jsonl --store {store} >/dev/null 2>said");
        assert_eq!(shell(&lab, &line), 7, "{kib}");
        let said = std::fs::read_to_string(lab.path("said")).unwrap();
        assert!(said.contains("cannot"), "{said}");
        // With room the same command continues.
        lab.run(&format!("ingest in.jsonl --store {store}"))
            .exits(0);
        assert!(lab.snapshot(&store) == lab.snapshot("whole"));
    }
}

/// A list that does not fit leaves no file; an older one stays unchanged.
#[test]
fn a_list_that_does_not_fit_is_none() {
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(64, 3000).concat());
    lab.run("ingest in.jsonl --store s").exits(0);
    lab.file("old", "http://a.example/\n");
    let before = lab.names();
    for to in ["plain", "tsv", "jsonl", "parquet", "scrapy"] {
        for (file, option) in [("list", ""), ("old", "--force")] {
            let line = format!(
                "ulimit -f 1; $B next --store s -n 1000 --to {to} -o {file} {option} 2>/dev/null"
            );
            assert_eq!(shell(&lab, &line), 7, "{to} {file}");
            assert_eq!(lab.names(), before, "{to} {file}");
        }
        let old = std::fs::read_to_string(lab.path("old")).unwrap();
        assert_eq!(old, "http://a.example/\n");
    }
    lab.run("next --store s -n 1000 -o list").exits(0);
    assert!(std::fs::metadata(lab.path("list")).unwrap().len() > 1024);
}

/// Regression: a link to an empty directory, or to a missing one, was refused, and a half-made store stayed next to it.
#[test]
fn a_store_is_made_where_a_link_leads_to() {
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(63, 50).concat());
    std::fs::create_dir_all(lab.path("disk/empty")).unwrap();
    for (link, target) in [
        ("a", "disk/empty"),
        ("b", "disk/none"),
        ("c", "b2"),
        ("b2", "disk/third"),
    ] {
        std::os::unix::fs::symlink(target, lab.path(link)).unwrap();
    }
    for link in ["a", "b", "c"] {
        lab.run(&format!("ingest in.jsonl --store {link}")).exits(0);
        let is_link = |path: &Path| std::fs::symlink_metadata(path).unwrap().is_symlink();
        assert!(is_link(&lab.path(link)), "{link}");
        lab.run(&format!("ingest in.jsonl --store {link}")).exits(0);
    }
    assert_eq!(lab.names(), ["a", "b", "b2", "c", "disk", "in.jsonl"]);
    let mut inside: Vec<_> = std::fs::read_dir(lab.path("disk"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    inside.sort();
    assert_eq!(inside, ["empty", "none", "third"]);
}
