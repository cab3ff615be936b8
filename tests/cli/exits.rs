//! Exit codes: each of the README's table has a test. Here are those that need a fault of the system;
//! the others stand beside what they are about:
//!
//! | code | test |
//! |---|---|
//! | 0 | nearly all |
//! | 1 | `commands::rank_knows_pages_in_any_spelling` |
//! | 2 | `plan::other_inputs_are_refused`, `commands::help_and_usage` |
//! | 3, 4 | `bad_input` |
//! | 5 | `store::damage_is_found_and_has_its_own_exit_code` |
//! | 6 | `store::one_writes_others_read` |
//! | 7 | here, and the fault campaign's part `full-disk` |
//! | 8 | `memory` |
//! | 9 | none: it would be mended |
//! | 130 | `resume::signals_stop_at_a_checkpoint` |

use std::path::Path;

use crate::support::{Lab, crawl, sample};

fn crawled() -> Lab {
    let lab = Lab::new();
    lab.file("a", crawl(81, 400).concat());
    lab.run("ingest a --store s").exits(0);
    lab
}

/// The tables in the guide and in `--help` have the same codes.
#[test]
fn the_codes_of_the_guide_are_those_of_the_help() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/guide/reliability.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let codes = |text: &str, sign: char| -> Vec<u32> {
        let fields = text
            .lines()
            .map(|line| line.trim_start_matches(sign).trim());
        let fields = fields.filter_map(|line| line.split([' ', '|']).next());
        fields.filter_map(|field| field.parse().ok()).collect()
    };
    let (_, table) = guide.split_once("| exit code |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let help = Lab::new().run("--help").exits(0).out;
    let (_, help) = help.split_once("Exit codes:").unwrap();
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130];
    assert_eq!(codes(table, '|'), expected);
    assert_eq!(codes(help, ' '), expected);
}

/// `/dev/full` refuses every write: output to it must not count as written.
#[test]
fn output_to_a_full_device_is_an_error() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: /dev/full is not here");
        return;
    }
    let lab = crawled();
    for line in [
        "export --to tsv --store s",
        "export --to jsonl --store s",
        "export --to parquet --store s",
        "export --to tsv --sort rank --store s",
        "top --store s",
        "stat --json --store s",
        "compare s s",
        "compute --until 1e-12 a",
        "local --json --store s --domain url:*",
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        lab.run_into(line, full)
            .exits(7)
            .says(&["No space left on device"]);
    }
    // The store itself is unchanged.
    lab.run("verify --store s").exits(0);
}

#[test]
fn files_that_cannot_be_read_or_written_are_errors() {
    let lab = crawled();
    lab.run("ingest missing --store new")
        .exits(7)
        .says(&["missing"]);
    lab.run("compare s missing").exits(7).says(&["missing"]);
    lab.run("compute --until 1e-12 missing")
        .exits(7)
        .says(&["missing"]);
    for line in [
        "export --to tsv -o nowhere/out --store s",
        "compute --until 1e-12 a -o nowhere/out",
        "ingest a --store nowhere/deep/store",
    ] {
        lab.run(line).exits(7).says(&["nowhere"]);
    }
    // An input that opens and cannot be read; permissions do not stop root.
    lab.run("ingest /proc/self/mem --store m")
        .exits(7)
        .says(&["/proc/self/mem"]);
}

#[test]
fn a_part_of_the_store_that_is_no_file_is_damage() {
    for part in ["cash", "store.redb", "urls", "fingerprints"] {
        let lab = crawled();
        let path = lab.path("s").join(part);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        lab.run("ingest a --repeat 2 --store s")
            .exits(5)
            .says(&[part]);
    }
}

/// Options keep their old names; help shows only the new ones.
#[test]
fn a_renamed_option_has_its_old_name() {
    let lab = crawled();
    for old in [
        "ingest a --store t --keep-rows none",
        "ingest a --store t --keep-rows=none",
        #[cfg(feature = "serve")]
        "ingest a --store t --serve 127.0.0.1:0",
    ] {
        lab.run(old).exits(0);
    }
    assert!(lab.stat("t")["rows"].is_null());
    let help = lab.run("ingest --help").exits(0).out;
    assert!(!help.contains("--keep-rows") && !help.contains("--serve "));
    lab.run("pagerank a").exits(2);
}

/// A snapshot that is unreadable at the moment, here a link to itself, is not called damaged.
#[cfg(unix)]
#[test]
fn a_snapshot_that_cannot_be_read_is_not_called_damaged() {
    let lab = Lab::new();
    lab.file("log", sample(40).concat());
    lab.run("ingest log --store s").exits(0);
    let path = lab.path("s/snapshots/000000000040.snapshot");
    std::fs::write(&path, "no snapshot").unwrap();
    lab.run("snapshots --store s").exits(5);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let listed = lab.run("snapshots --store s").exits(7);
    assert!(!listed.out.contains("damaged"), "{}", listed.out);
}
