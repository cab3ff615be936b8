//! Crawl archives: a ranking from one is, to the byte, the ranking from what it was made of.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::resume::kill_often;
use crate::support::{Lab, crawl, data, gzip};

/// Ingests `inputs` and the archive made of them, and compares all there is to compare.
#[track_caller]
fn same(lab: &Lab, inputs: &str, convert: &str, ingest: &str) {
    let done = lab.run(&format!("convert {inputs} -o made.cza --force {convert}"));
    let code = done.code.unwrap();
    assert!([0, 3].contains(&code), "{done:?}");
    for store in ["original", "archive"] {
        let _ = fs::remove_dir_all(lab.path(store));
    }
    let format = convert.split("--block").next().unwrap();
    lab.run(&format!(
        "ingest {inputs} --store original {format} {ingest}"
    ))
    .exits(code);
    lab.run(&format!("ingest made.cza --store archive {ingest}"))
        .exits(code);
    assert!(
        lab.snapshot("original") == lab.snapshot("archive"),
        "another snapshot: {inputs}, {convert}, {ingest}"
    );
    assert_eq!(lab.export("original"), lab.export("archive"));
}

/// Every kind of input and record of the samples, good and bad ones.
#[test]
fn the_samples_of_all_formats() {
    let lab = Lab::new();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("formats/samples");
    for folder in ["good", "bad"] {
        for name in [
            "records.jsonl",
            "wat.wat",
            "adjacency.tsv",
            "edges.tsv",
            "records-cut-short.jsonl",
            "wat-cut-short-block.wat",
            "wat-cut-short-header.wat",
            "warc.warc",
            "warc-cut-short-block.warc",
            "warc-cut-short-tail.warc",
            "arc.arc",
            "arc-cut-short-block.arc",
        ] {
            let path = root.join(folder).join(name);
            let Ok(bytes) = fs::read(path) else {
                assert!(folder == "good" && name.contains("cut-short"));
                continue;
            };
            lab.file("in", bytes);
            let format = match name.split(['.', '-']).next().unwrap() {
                "records" => "--format records",
                "wat" => "--format wat",
                "warc" => "--format warc",
                "arc" => "--format arc",
                "adjacency" => "--format adjacency",
                _ => "--format edges",
            };
            for policy in ["keep", "drop"] {
                let ingest = format!("--self-links {policy} --repeat 2");
                same(&lab, "in", &format!("{format} --block-records 3"), &ingest);
            }
        }
    }
}

/// Lists are kept whole though a limit drops some of their links, and records over a limit stay
/// counted.
#[test]
fn limits_apply_when_an_archive_is_made_and_must_be_the_same_when_it_is_read() {
    let lab = Lab::new();
    let mut lines = crawl(31, 200);
    let long = format!("http://long.example/{}", "x".repeat(300));
    lines.push(format!(
        "{{\"url\":\"http://a/\",\"links\":[\"{long}\",\"http://b/\"]}}\n"
    ));
    lines.push(format!("{{\"url\":\"{long}\"}}\n"));
    let many: Vec<String> = (0..40).map(|n| format!("\"http://m/{n}\"")).collect();
    lines.push(format!(
        "{{\"url\":\"http://a/\",\"links\":[{}]}}\n",
        many.join(",")
    ));
    lines.push(format!(
        "{{\"url\":\"http://c/\",\"x\":\"{}\"}}\n",
        "y".repeat(2000)
    ));
    lab.file("in", lines.concat());
    let limits = "--limit-url 200 --limit-links 39 --limit-line 1500";
    let line = format!("convert in -o made.cza {limits} --json");
    let said = lab.run(&line).exits(3).json();
    assert_eq!(
        said["skipped"],
        serde_json::json!({"too-long": 1, "url-too-long": 1, "too-many-links": 1})
    );
    for store in ["original", "archive"] {
        let input = if store == "original" {
            "in"
        } else {
            "made.cza"
        };
        lab.run(&format!("ingest {input} --store {store} {limits}"))
            .exits(3);
    }
    assert!(lab.snapshot("original") == lab.snapshot("archive"));
    lab.run("ingest made.cza --store other").exits(2).says(&[
        "--limit-url 200",
        "--limit-url 8192",
        "give the same limits",
    ]);
}

#[test]
fn random_crawls_at_any_number_of_passes_threads_and_checkpoints() {
    let lab = Lab::new();
    lab.file("a", crawl(41, 500).concat());
    lab.file("b", gzip(crawl(42, 300).concat().as_bytes()));
    for (convert, ingest) in [
        ("--block-records 37", "--repeat 3 --checkpoint-every 1"),
        (
            "--block-records 1",
            "--threads 1 --repeat 4 --self-links keep",
        ),
        (
            "--block-records 100",
            "--threads 4 --checkpoint-every 7 --window whole",
        ),
        (
            "--block-records 64",
            "--complete --repeat 2 --window interpolation:1.5",
        ),
    ] {
        same(&lab, "a b", convert, ingest);
    }
    // From pipes, and through a second conversion: the same archive.
    let first = fs::read(lab.path("made.cza")).unwrap();
    let line = "convert - -o again.cza --block-records 64 --threads 1";
    lab.feed(line, &first).exits(0);
    assert!(fs::read(lab.path("again.cza")).unwrap() == first);
    lab.feed("ingest - --store piped", &first).exits(0);
    lab.run("ingest a b --store files").exits(0);
    assert!(lab.snapshot("piped") == lab.snapshot("files"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_crawl(seed in any::<u64>(), records in 1u64..400, block in 1u32..200, keep in any::<bool>()) {
        let lab = Lab::new();
        lab.file("in", crawl(seed, records).concat());
        let policy = if keep { "keep" } else { "drop" };
        let ingest = format!("--repeat 2 --self-links {policy}");
        same(&lab, "in", &format!("--format records --block-records {block}"), &ingest);
    }
}

/// Names of a second archive, or of one behind other inputs, have other numbers than pages.
#[test]
fn archives_beside_other_inputs_and_each_other() {
    let lab = Lab::new();
    for (name, seed) in [("a", 51), ("b", 52), ("c", 53)] {
        lab.file(name, crawl(seed, 250).concat());
        lab.run(&format!("convert {name} -o {name}.cza --block-records 30"))
            .exits(0);
    }
    lab.run("ingest a b c --repeat 3 --store originals")
        .exits(0);
    for (at, inputs) in [
        "a.cza b.cza c.cza",
        "a b.cza c",
        "a.cza b c.cza",
        "a b c.cza",
    ]
    .iter()
    .enumerate()
    {
        lab.run(&format!(
            "ingest {inputs} --repeat 3 --store s{at} --checkpoint-every 11"
        ))
        .exits(0);
        assert!(
            lab.snapshot(&format!("s{at}")) == lab.snapshot("originals"),
            "{inputs}"
        );
    }
    // A longer list, and more passes, go on; the same command again has nothing to do.
    lab.run("ingest a.cza --store steps").exits(0);
    lab.run("ingest a.cza b.cza --store steps").exits(0);
    lab.run("ingest a b --store two").exits(0);
    assert!(lab.snapshot("steps") == lab.snapshot("two"));
    lab.run("ingest a.cza b.cza --store steps")
        .exits(0)
        .says(&["nothing to do"]);
    lab.run("convert a b.cza c -o all.cza").exits(0);
    lab.run("ingest all.cza --repeat 3 --store all").exits(0);
    assert!(lab.snapshot("all") == lab.snapshot("originals"));
}

/// A run that is killed goes on inside a block, in any pass.
#[test]
fn killed_and_started_again() {
    let lab = Lab::on_disk();
    lab.file("first", crawl(61, 60).concat());
    lab.file("in", crawl(62, 150).concat());
    lab.run("convert in -o in.cza --block-records 20").exits(0);
    lab.run("ingest first in --repeat 4 --store original")
        .exits(0);
    kill_often(&lab, "ingest first in.cza --repeat 4", 3);
    assert!(lab.snapshot("cut") == lab.snapshot("original"));
}

/// `--strict` ends a run at a bad record, with a checkpoint there.
#[test]
fn goes_on_from_inside_a_block() {
    let lab = Lab::new();
    let mut records = crawl(71, 60);
    records.insert(25, "bad\n".into());
    lab.file("in", records.concat());
    lab.run("convert in -o in.cza --block-records 40").exits(3);
    lab.run("ingest in.cza --store s --strict")
        .exits(4)
        .says(&["record 26", "malformed"]);
    lab.run("ingest in.cza --store s").exits(3);
    lab.run("ingest in --store t").exits(3);
    assert!(lab.snapshot("s") == lab.snapshot("t"));
    // Another archive is not taken for the one begun.
    lab.run("ingest in.cza --store u --strict").exits(4);
    lab.file("other", crawl(72, 60).concat());
    lab.run("convert other -o in.cza --block-records 40 --force")
        .exits(0);
    lab.run("ingest in.cza --store u")
        .exits(2)
        .says(&["give the same input again"]);
}

/// As of every input: what comes before the damage is used, and with a good copy the same command
/// goes on.
#[test]
fn damage_ends_a_run_and_a_good_copy_goes_on() {
    let lab = Lab::new();
    let records = crawl(81, 300);
    lab.file("in", records.concat());
    lab.run("convert in -o good.cza --block-records 50")
        .exits(0);
    let good = fs::read(lab.path("good.cza")).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    for (at, bad) in [
        &good[..good.len() * 2 / 3],
        &good[..good.len() - 1],
        &flipped,
    ]
    .iter()
    .enumerate()
    {
        let store = format!("s{at}");
        lab.file("x.cza", bad);
        let line = format!("ingest x.cza --store {store}");
        lab.run(&line).exits(4).says(&["archive"]);
        let used = lab.stat(&store)["records"].as_u64().unwrap();
        assert!(used.is_multiple_of(50) && used > 0, "{used}");
        lab.run("convert x.cza -o y.cza --force").exits(4);
        lab.run(&format!("ingest y.cza --store y{at}")).exits(0);
        assert!(lab.snapshot(&store) == lab.snapshot(&format!("y{at}")));
        lab.file("x.cza", &good);
        lab.run(&line).exits(0);
        lab.run(&format!("ingest in --store t{at}")).exits(0);
        assert!(lab.snapshot(&store) == lab.snapshot(&format!("t{at}")));
    }
}

/// What the archive's limits on a block do.
#[test]
fn a_block_larger_than_the_limit_is_refused_before_it_is_unpacked() {
    let lab = Lab::new();
    lab.file("in", crawl(91, 300).concat());
    lab.run("convert in -o in.cza").exits(0);
    lab.run("ingest in.cza --store s --limit-block 20K")
        .exits(2)
        .says(&["--limit-block"]);
    // Not even whole in memory.
    lab.run("ingest in.cza --store s --limit-block 1K")
        .exits(2)
        .says(&["--limit-block"]);
    lab.run("ingest in.cza --store s").exits(0);
}

#[test]
fn convert_refuses_what_would_lose_something() {
    let lab = Lab::new();
    lab.file("in", crawl(92, 30).concat());
    lab.run("convert in -o in.cza").exits(0);
    lab.run("convert in -o in.cza").exits(2).says(&["--force"]);
    // Records that fail their check are not given a new checksum.
    let mut bad = gzip(crawl(93, 30).concat().as_bytes());
    let at = bad.len() - 6;
    bad[at] ^= 1;
    lab.file("bad.gz", &bad);
    lab.run("convert bad.gz -o bad.cza --limit-held 10")
        .exits(4)
        .says(&["no archive was written"]);
    assert!(!lab.path("bad.cza").exists() && !lab.path("bad.cza.unfinished").exists());
    lab.run("convert bad.gz -o bad.cza --limit-held 10 --accept-unverified")
        .exits(4);
    lab.run("ingest bad.cza --store s").exits(0);
    lab.run("convert nothing -o x.cza").exits(7);
    assert!(!lab.path("x.cza").exists());
    lab.run("convert in bad.gz --strict -o x.cza").exits(4);
}

/// PageRank reads archives as it reads what they were made of.
#[test]
fn pagerank_of_an_archive() {
    let lab = Lab::new();
    lab.file("in", crawl(94, 200).concat());
    lab.run("convert in -o in.cza --block-records 30").exits(0);
    for policy in ["keep", "drop"] {
        let of = |input| {
            lab.run(&format!("pagerank {input} --self-links {policy}"))
                .exits(0)
                .out
        };
        assert_eq!(of("in"), of("in.cza"));
    }
}

/// Real crawls, where they are: the same rankings, and sizes as promised.
#[test]
fn real_crawls() {
    for (name, format, most) in [
        ("scrapy-httpd/httpd-manual.jsonl.zst", "records", 0.25),
        ("flink-history/flink.jsonl.zst", "records", 0.06),
        ("cnr-2000/adjacency.tsv.zst", "adjacency", 0.36),
        ("blackbook/blackbook.wat.gz", "wat", f64::MAX),
    ] {
        let Some(path) = data(name) else { continue };
        let lab = Lab::new();
        let input = path.display();
        same(
            &lab,
            &input.to_string(),
            &format!("--format {format}"),
            "--repeat 2",
        );
        let line = format!("convert {input} --format {format} --json -o size.cza");
        let said = lab.run(&line).exits(0).json();
        let bytes = fs::metadata(lab.path("size.cza")).unwrap().len() as f64;
        let links = said["links"].as_f64().unwrap();
        assert!(
            bytes / links <= most,
            "{name}: {bytes} bytes, {links} links"
        );
    }
}

/// A writer of archives threw away what was out of scope with its counts, so an ingest of the archive published other counts
/// than one of the inputs. Blocks with such records or links now count them, under a flag that older readers refuse.
#[test]
fn what_was_out_of_scope_is_counted_in_an_archive_too() {
    let lab = Lab::new();
    let record =
        |url: &str, links: &str| format!("{{\"url\":\"http://{url}/\",\"links\":[{links}]}}\n");
    let lines = [
        record("a.org", "\"b\",\"http://x.org/\",\"http://y.org/\""),
        record("x.org", "\"y\""),
        record("a.org/b", "\"http://a.org/\",\"http://x.org/\""),
        "\n".to_owned(),
    ];
    lab.file("in.jsonl", lines.concat());
    let counts = |options: &str, scope: &str| {
        lab.run(&format!("ingest in.jsonl --store s{options} {scope}"))
            .exits(0);
        lab.run(&format!("convert in.jsonl -o c{options}.cza {scope}"))
            .exits(0);
        lab.run(&format!("ingest c{options}.cza --store t{options} {scope}"))
            .exits(0);
        assert!(lab.snapshot(&format!("s{options}")) == lab.snapshot(&format!("t{options}")));
        // The flags of the first block, which a header of 64 bytes is before.
        std::fs::read(lab.path(&format!("c{options}.cza"))).unwrap()[68]
    };
    assert_eq!(counts("1", "--scope host:a.org") & 128, 128);
    assert_eq!(counts("2", "") & 128, 0);
    let text = String::from_utf8_lossy(&lab.snapshot("t1")).into_owned();
    for count in ["\"out_of_scope\":1", "\"links_out_of_scope\":3"] {
        assert!(text.contains(count), "{count}");
    }
}
