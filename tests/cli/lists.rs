//! Long lists and tables: their contents, and the memory that they take.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::Lab;

/// Creates a store of `pages` pages, on half as many hosts.
fn store(lab: &Lab, pages: u64) {
    let page = |n: u64| format!("http://h{}.example/{}", n % pages / 2, n % pages);
    let line = |n| format!("{}\t{}\t{}\n", page(n), page(n * n), page(n / 3));
    lab.file("in", (0..pages).map(line).collect::<String>());
    lab.run("ingest in --format adjacency --store s --settle none")
        .exits(0);
}

fn rows(lab: &Lab, line: &str) -> Vec<Value> {
    let mut found = lab.run(line).exits(0).json();
    match found["top"].take() {
        Value::Array(rows) => rows,
        other => panic!("{line}: {other}"),
    }
}

/// A long list extends the shorter ones: each row once, best first, ranked by definition.
#[test]
fn long_lists_are_what_short_ones_begin_with() {
    let lab = Lab::on_disk();
    // Hosts, half as many, are more than the 16,384 rows that are held, too.
    let pages = 34_000;
    store(&lab, pages);
    lab.run("compute --measure in-degree --store s").exits(0);
    lab.run("compute --measure in-degree --level host --store s")
        .exits(0);
    for (which, all) in [
        ("", pages),
        ("--measure in-degree", pages),
        ("--level host", pages / 2),
        ("--level host --measure in-degree", pages / 2),
        // Every second page.
        (
            "--scope !url:*1 --scope !url:*3 --scope !url:*5 --scope !url:*7 --scope !url:*9",
            pages / 2,
        ),
    ] {
        let line = |n: u64| format!("top --store s {which} --json -n {n}");
        let short = rows(&lab, &line(1_000));
        assert_eq!(short.len(), 1_000, "{which}");
        let long = rows(&lab, &line(pages));
        assert_eq!(long.len() as u64, all, "{which}");
        assert!(long.starts_with(&short), "{which}");
        let names: BTreeSet<_> = long.iter().map(|row| row["url"].as_str()).collect();
        assert_eq!(names.len() as u64, all, "{which}");
        if !which.contains("scope") {
            let mut rank = 0;
            for (at, row) in long.iter().enumerate() {
                if at == 0 || row["importance"] != long[at - 1]["importance"] {
                    rank = at + 1;
                }
                assert_eq!(row["rank"], rank, "{which}");
            }
        }
        let line = format!("top --store s {which} -n {pages}");
        let text = lab.run(&line).exits(0);
        for (line, row) in text.out.lines().skip(1).zip(&long) {
            let url = row["url"].as_str().unwrap();
            assert!(
                line.split_whitespace().any(|word| word == url),
                "{line}: {url}"
            );
        }
    }
    lab.run("top --store s -n 34000 --memory 1M")
        .exits(8)
        .says(&[
            "listing 34000 of pages",
            "raise --memory",
            "list fewer",
            "export --sort rank",
        ]);
}

/// A list takes no more memory than is counted for it. Regression: databases had caches of their own size.
#[cfg(target_os = "linux")]
#[test]
fn a_long_list_takes_no_more_memory_than_it_may() {
    let lab = Lab::on_disk();
    store(&lab, 100_000);
    let peak = |line: &str| {
        let out = File::create(lab.path("out")).unwrap();
        let run = lab.measure_into(line, out);
        run.done.exits(0);
        run.peak_kib
    };
    let least = peak("top --store s -n 1");
    let many = peak("top --store s -n 100000 --memory 100M");
    assert!(
        many <= least + (100 << 10),
        "{many} KiB, and {least} KiB for one"
    );
    let lines = std::fs::read_to_string(lab.path("out")).unwrap();
    assert!(lines.lines().count() > 100_000);
    // SQLite has a cache, and sorts for its indexes.
    #[cfg(feature = "sqlite")]
    {
        let table = peak("export --store s --to sqlite --memory 28M -o ranks");
        assert!(
            table <= least + (28 << 10),
            "{table} KiB, and {least} KiB for one"
        );
    }
}

/// Regression: the rows of a group were held until its end and encoded there: 24 bytes for each link, three strings for
/// each page.
#[cfg(target_os = "linux")]
#[test]
fn row_groups_take_little_memory() {
    let lab = Lab::on_disk();
    // More than a group has: 131,072 pages.
    let (pages, path) = (160_000u64, "a/longer/path/to/a/page".repeat(4));
    let page = |n: u64| format!("http://h{}.example/{path}/{}", n % 1_000, n % pages);
    let line = |n: u64| {
        let all = [n, n * n, n / 3, n * 7, n * 11, n * 13, n * n + 1].map(page);
        all.join("\t") + "\n"
    };
    lab.file("in", (0..pages).map(line).collect::<String>());
    lab.run("ingest in --format adjacency --store s --settle none")
        .exits(0);
    let peak = |what: &str| {
        let line = format!("export --store s --memory 88M {what}");
        let run = lab.measure(&line, Stdio::null());
        run.done.exits(0);
        run.peak_kib
    };
    let lines = peak("--to tsv -o pages.tsv");
    let table = peak("--to parquet -o pages.parquet");
    assert!(
        table <= lines + (24 << 10),
        "{table} KiB, and {lines} as lines"
    );
}

/// Regression: errors named a file that nobody had requested, and not the origin of its folder's name.
#[test]
fn a_folder_for_temporary_files_that_is_none_is_named() {
    let lab = Lab::new();
    store(&lab, 40_000);
    lab.file("file", "");
    for line in [
        "export --to tsv --sort host --memory 12M",
        #[cfg(feature = "sqlite")]
        "export --to sqlite",
        "export --to tsv --links --numbers --memory 1M",
    ] {
        for folder in ["nowhere", "file"] {
            let ran = Command::new(env!("CARGO_BIN_EXE_cashrank"))
                .args(format!("{line} --store s").split(' '))
                .current_dir(lab.path(""))
                .env("TMPDIR", folder)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            let advice = format!("go into {folder}: make this folder, or set TMPDIR");
            assert!(said.contains(&advice), "{line}: {said}");
            assert_eq!(ran.status.code(), Some(7), "{line}");
        }
    }
    // A command without temporary files ignores the setting.
    let few = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args("top --store s".split(' '))
        .current_dir(lab.path(""))
        .env("TMPDIR", "nowhere")
        .output();
    assert!(few.unwrap().status.success());
}

/// Regression: the links between sites took 256 MiB, however much memory there was.
#[test]
fn links_between_sites_take_no_more_than_there_is() {
    let lab = Lab::on_disk();
    // Half a million pairs of hosts, 12 bytes each, beside a third of the memory that sorts them.
    let line = |host: u64| {
        let names = (host..=host + 500).map(|host| format!("http://h{}.example/", host % 1_000));
        names.collect::<Vec<_>>().join("\t") + "\n"
    };
    lab.file("in", (0..1_000).map(line).collect::<String>());
    let line = "compute --measure in-degree --level host in --memory";
    lab.run(&format!("{line} 8M"))
        .exits(8)
        .says(&["the links between sites", "raise --memory"]);
    let whole = lab.run(&format!("{line} 128M")).exits(0);
    assert_eq!(whole.out.lines().count(), 1_001);
    lab.run("ingest in --format adjacency --store s --settle none")
        .exits(0);
    let line = "compute --measure in-degree --level host --store s --memory";
    lab.run(&format!("{line} 8M"))
        .exits(8)
        .says(&["the links between sites", "raise --memory"]);
    // They are sorted in a temporary file.
    lab.run(&format!("{line} 12M")).exits(0);
    let exported = lab.run("export --to tsv --measure in-degree --level host --store s");
    assert_eq!(exported.exits(0).out.lines().count(), 1_001);
}

/// Compressed lists are read; other compressions are named in the error.
#[test]
fn packed_lists_are_read() {
    let lab = Lab::new();
    lab.file("a", r#"{"url":"http://a.example/","links":["/b","/c"]}"#);
    lab.run("ingest a --store s").exits(0);
    let list = b"http://a.example/b\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, list).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&list[..], 1).unwrap();
    for packed in [&list[..], &gzip, &zstd] {
        lab.file("x", packed);
        let left = lab.run("next --exclude x --store s").exits(0).out;
        assert_eq!(left, "http://a.example/c\n");
        let first = lab.run("next --seeds x -n 1 --store s").exits(0).out;
        assert_eq!(first, "http://a.example/b\n");
        let piped = lab.feed("next --exclude - --store s", packed).exits(0).out;
        assert_eq!(piped, left);
    }
    lab.file("x", zstd::encode_all(&gzip[..], 1).unwrap());
    lab.run("next --exclude x --store s")
        .exits(2)
        .says(&["x: no list: it is packed twice"]);
    lab.file("x", &gzip[..gzip.len() - 4]);
    lab.run("next --exclude x --store s").exits(4);
}

/// Regression: a Parquet file, zeros that a crash left, or crawl records excluded nothing, and were counted as a line
/// without http://. The first bytes are those of the formats' specifications.
#[test]
fn what_is_no_list_is_named() {
    let lab = Lab::new();
    store(&lab, 10);
    let record = "{\"url\":\"http://a.example/\",\"links\":[]}\n";
    let foreign: [(&str, Vec<u8>); 7] = [
        ("Parquet", b"PAR1\x15\x04\x15".to_vec()),
        ("zeros", vec![0; 4096]),
        ("NUL at byte 3", b"a.b\0c".to_vec()),
        ("JSON object", record.into()),
        ("JSON array", format!("[{}]", record.trim_end()).into()),
        ("WARC", b"WARC/1.0\r\nWARC-Type: response\r\n".to_vec()),
        (
            "Git LFS",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\n".to_vec(),
        ),
    ];
    for (what, bytes) in foreign {
        lab.file("x", bytes);
        for line in [
            "next --exclude x",
            "next --seeds x",
            "coverage --seeds x",
            "rank --from x",
            "local --domain file:x",
            "compute --measure personalised --teleport x",
        ] {
            let done = lab.run(&format!("{line} --store s")).exits(2);
            assert_eq!(done.out, "", "{line}");
            done.says(&["x: no list: ", what]);
        }
    }
    lab.run("local --domain file:missing --store s")
        .exits(7)
        .says(&["missing", "No such file"]);
    // Names of a graph may look like that.
    for names in ["[1]\n{a}\nhttp://h1.example/3\n", "{a}\n[1]\n"] {
        lab.file("x", names);
        lab.run("rank --from x --store s").exits(1);
    }
}

/// The buffers for reading each page while its name is written count: 240 bytes per page, at most 36 MiB.
#[test]
fn the_buffers_of_reading_a_store_count() {
    let lab = Lab::new();
    store(&lab, 10_000);
    // 2.4 MB for these. A list takes 93 bytes per page, and 400 for each listed one.
    for (line, least) in [
        ("compute --measure in-degree --level host", 2_400_000),
        ("next -n 1 --per-host 1", 93 * 10_000 + 2_400_000),
    ] {
        lab.run(&format!("{line} --store s --memory {}", least - 1))
            .exits(8)
            .says(&["--memory"]);
        lab.run(&format!("{line} --store s --memory {}", least + 4_000_000))
            .exits(0);
    }
}
