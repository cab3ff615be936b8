//! `-o` and `--ack`: an existing file is never destroyed, whatever it is.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{Lab, crawl};

fn crawled() -> Lab {
    let lab = Lab::on_disk();
    lab.file("a", crawl(81, 400).concat());
    lab.run("ingest a --store s").exits(0);
    lab
}

/// All commands that write a result to a file; `FILE` is its name.
const COMMANDS: [&str; 8] = [
    "export --to tsv --store s -o FILE",
    "export --to jsonl --sort rank --store s -o FILE",
    "export --to parquet --store s -o FILE",
    "compute a -o FILE",
    "convert a -o FILE",
    "convert --sort time a -o FILE",
    "next --store s -n 5 -o FILE",
    "local --store s --domain url:* -o FILE",
];

/// Regression: `convert a -o a --force` left its result and no crawl. A file that the command reads is not replaced,
/// under whatever name.
#[test]
fn what_is_read_is_not_replaced() {
    let lab = crawled();
    let read = || fs::read(lab.path("a")).unwrap();
    let before = read();
    fs::hard_link(lab.path("a"), lab.path("b")).unwrap();
    for line in [
        "compute a --measure pagerank -o a --force",
        "convert a -o b --force",
        "next --store s -n 5 --exclude a -o a --force",
    ] {
        lab.run(line).exits(2).says(&["write to another file"]);
        assert!(read() == before, "{line}");
    }
}

/// All commands agree: an existing file is replaced only with `--force`, which is checked before any work is done.
#[test]
fn a_file_that_is_there_is_replaced_only_with_force() {
    let lab = crawled();
    for command in COMMANDS {
        let line = command.replace("FILE", "file");
        lab.run(&line).exits(0);
        let made = fs::read(lab.path("file")).unwrap();
        assert!(!made.is_empty(), "{command}");
        lab.file("file", "what was there");
        symlink("file", lab.path("link")).unwrap();
        for name in ["file", "link"] {
            lab.run(&command.replace("FILE", name)).exits(2).says(&[
                name,
                "already exists",
                "--force",
            ]);
        }
        assert_eq!(fs::read(lab.path("file")).unwrap(), b"what was there");
        lab.run(&format!("{line} --force")).exits(0);
        assert!(fs::read(lab.path("file")).unwrap() == made, "{command}");
        // An empty file, as made by `mktemp`, has nothing to lose.
        lab.file("file", "");
        lab.run(&line).exits(0);
        assert!(fs::read(lab.path("file")).unwrap() == made, "{command}");
        fs::remove_file(lab.path("file")).unwrap();
        fs::remove_file(lab.path("link")).unwrap();
    }
    // The crawl itself is such a file.
    lab.run("compute a -o a").exits(2).says(&["--force"]);
}

/// Regression: the temporary file of a result had a fixed name. A link planted there led it into any file, and a user's
/// own file of that name was lost.
#[test]
fn what_has_the_name_of_an_unfinished_file_stays() {
    let lab = crawled();
    lab.file("victim", "precious");
    symlink("victim", lab.path("file.unfinished")).unwrap();
    symlink("nothing", lab.path("file.2.unfinished")).unwrap();
    lab.file("file.3.unfinished", "mine");
    let before = lab.names();
    for command in COMMANDS {
        lab.run(&command.replace("FILE", "file")).exits(0);
        fs::remove_file(lab.path("file")).unwrap();
        assert_eq!(fs::read(lab.path("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(lab.path("file.3.unfinished")).unwrap(), b"mine");
        assert_eq!(lab.names(), before, "{command}");
    }
}

/// Regression: two commands with the same `-o` wrote to the same temporary file, and the slower one wrote into the
/// other's result. Now each has its own, and the result of the last to end stays.
#[test]
fn two_commands_with_one_output_do_not_meet() {
    let lab = crawled();
    lab.run("convert a -o alone.jsonl").exits(0);
    let slow = lab.start("convert - --format records -o out.jsonl --force");
    crate::support::await_that("it has begun", || lab.path("out.jsonl.unfinished").exists());
    lab.run("convert a -o out.jsonl --force").exits(0);
    let alone = fs::read(lab.path("alone.jsonl")).unwrap();
    assert!(fs::read(lab.path("out.jsonl")).unwrap() == alone);
    // Its input is empty; whether or not that gives a result, the existing file is intact.
    slow.end();
    let last = fs::read(lab.path("out.jsonl")).unwrap();
    assert!(last.is_empty() || last == alone);
    assert!(!lab.names().iter().any(|name| name.ends_with(".unfinished")));
}

/// The summary goes where a program reads it, so the result has a file of its own.
#[test]
fn a_summary_for_programs() {
    let lab = crawled();
    let pages = lab.stat("s")["pages"].clone();
    for (command, key) in [
        ("export --to tsv --store s", "pages"),
        ("compute a", "count"),
        ("convert a --threads 1", "records"),
    ] {
        let done = lab.run(&format!("{command} --json -o out")).exits(0);
        let expected = match key {
            "records" => 400.into(),
            _ => pages.clone(),
        };
        assert_eq!(done.json()[key], expected, "{command}");
        assert_eq!(done.out.lines().count(), 1);
        fs::remove_file(lab.path("out")).unwrap();
        if !command.starts_with("convert") {
            lab.run(&format!("{command} --json")).exits(2).says(&["-o"]);
        }
    }
}

#[test]
fn a_link_stays_and_its_target_is_replaced_whole() {
    let lab = crawled();
    fs::create_dir(lab.path("deep")).unwrap();
    symlink("deep/target", lab.path("link")).unwrap();
    for command in COMMANDS {
        lab.run(&command.replace("FILE", "straight")).exits(0);
        let target = lab.path("deep/target");
        lab.file("deep/target", "what was there");
        lab.run(&command.replace("FILE", "link --force")).exits(0);
        assert!(fs::symlink_metadata(lab.path("link")).unwrap().is_symlink());
        let (through, straight) = (fs::read(&target), fs::read(lab.path("straight")));
        assert!(through.unwrap() == straight.unwrap(), "{command}");
        fs::remove_file(target).unwrap();
        fs::remove_file(lab.path("straight")).unwrap();
        assert!(!lab.names().iter().any(|name| name.ends_with(".unfinished")));
    }
}

#[test]
fn a_fifo_is_written_into() {
    let lab = crawled();
    let made = Command::new("mkfifo").arg(lab.path("fifo")).status();
    assert!(made.unwrap().success());
    for command in COMMANDS {
        lab.run(&command.replace("FILE", "straight")).exits(0);
        let fifo = lab.path("fifo");
        let reader = std::thread::spawn(move || fs::read(fifo).unwrap());
        lab.run(&command.replace("FILE", "fifo")).exits(0);
        let found = fs::symlink_metadata(lab.path("fifo")).unwrap();
        assert!(found.file_type().is_fifo(), "{command}");
        let straight = fs::read(lab.path("straight")).unwrap();
        assert!(reader.join().unwrap() == straight, "{command}");
        fs::remove_file(lab.path("straight")).unwrap();
    }
}

/// The device is accessed through a link, so that not even a failing test harms the machine.
#[test]
fn a_device_stays_a_device() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: /dev/full is not here");
        return;
    }
    let lab = crawled();
    symlink("/dev/full", lab.path("full")).unwrap();
    symlink("/dev/null", lab.path("null")).unwrap();
    for command in COMMANDS {
        lab.run(&command.replace("FILE", "full"))
            .exits(7)
            .says(&["No space left on device"]);
        lab.run(&command.replace("FILE", "null")).exits(0);
    }
    for name in ["full", "null"] {
        let link = fs::symlink_metadata(lab.path(name)).unwrap();
        assert!(link.is_symlink());
        let device = fs::metadata(lab.path(name)).unwrap();
        assert!(device.file_type().is_char_device());
    }
}

#[test]
fn an_ack_goes_through_a_link_into_a_regular_file() {
    let lab = Lab::on_disk();
    let stream = crawl(82, 100).concat();
    symlink("position", lab.path("link")).unwrap();
    lab.feed("ingest - --store s --spool --ack link", stream.as_bytes())
        .exits(0);
    let position = fs::read_to_string(lab.path("position")).unwrap();
    assert_eq!(position, format!("{}\n", stream.len()));
    lab.feed("ingest - --store t --spool --ack /dev/null", b"")
        .exits(2)
        .says(&["--ack", "not a regular file"]);
}

/// `/dev/stdout` is standard output, wherever that leads.
#[test]
fn standard_output_by_its_name() {
    let lab = crawled();
    let straight = lab.run("export --to tsv --store s").exits(0).out;
    let named = lab.run("export --to tsv --store s -o /dev/stdout").exits(0);
    assert_eq!(named.out, straight);
    let file = fs::File::create(lab.path("into")).unwrap();
    lab.run_into("export --to tsv --store s -o /dev/stdout", file)
        .exits(0);
    assert_eq!(fs::read_to_string(lab.path("into")).unwrap(), straight);
}

/// Regression: existing files were looked for at the start only, and a file that appeared later was replaced.
#[test]
fn a_file_that_appears_meanwhile_stays() {
    let lab = crawled();
    for command in ["convert - -o o", "compute - --measure in-degree -o o"] {
        let mut running = lab.start(command);
        // More than a pipe holds: once some of it was read, the name has been checked.
        let records = crawl(81, 400).concat();
        for _ in 0..=(1 << 17) / records.len() {
            running.write(records.as_bytes());
        }
        lab.file("o", "mine");
        running
            .end()
            .exits(2)
            .says(&["o: appeared", "o.unfinished"]);
        assert_eq!(fs::read(lab.path("o")).unwrap(), b"mine", "{command}");
        let temp = fs::read(lab.path("o.unfinished")).unwrap();
        assert!(!temp.is_empty(), "{command}");
        fs::remove_file(lab.path("o.unfinished")).unwrap();
        fs::remove_file(lab.path("o")).unwrap();
    }
}

/// Regression: `--force` replaced the database of the store that was exported.
#[test]
fn a_store_s_own_files_are_no_output() {
    let lab = crawled();
    for name in ["store.redb", "cash", "snapshots/latest.json"] {
        let line = format!("export --to tsv --store s -o s/{name} --force");
        lab.run(&line).exits(2).says(&["is a file of a store"]);
    }
    lab.run("export --to tsv --store s -o s/mine").exits(0);
    lab.run("export --to tsv --store s -o s/mine --force")
        .exits(0);
    fs::remove_file(lab.path("s/mine")).unwrap();
    lab.run("verify --deep --store s").exits(0);
}

/// Regression: the first position replaced a text, an input, and a store's identity.
#[test]
fn an_ack_replaces_nothing_but_a_position() {
    let lab = crawled();
    let stream = crawl(9, 50).concat();
    lab.file("text", "precious");
    lab.feed("ingest - --store w --spool --ack w/identity.json", b"")
        .exits(2)
        .says(&["--ack", "inside the store"]);
    assert!(!lab.path("w").exists());
    for (store, name) in [("t", "text"), ("u", "a"), ("t", "s/identity.json")] {
        let before = fs::read(lab.path(name)).unwrap();
        lab.feed(
            &format!("ingest - --store {store} --spool --ack {name}"),
            stream.as_bytes(),
        )
        .exits(2)
        .says(&["--ack", name, "holds something else"]);
        assert!(fs::read(lab.path(name)).unwrap() == before, "{name}");
    }
    for before in ["", "12", "12\n"] {
        lab.file("acked", before);
        lab.feed("ingest - --store v --spool --ack acked", stream.as_bytes())
            .exits(0);
        assert_eq!(
            fs::read_to_string(lab.path("acked")).unwrap(),
            format!("{}\n", stream.len())
        );
        fs::remove_dir_all(lab.path("v")).unwrap();
    }
}
