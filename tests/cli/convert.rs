//! `convert`: ingesting its output gives the same ranking, to the byte, as ingesting its inputs.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Lab, crawl, data, gzip};

/// Ingests `inputs` and their conversions with each of these options, and compares the rankings; to the byte if nothing
/// of the inputs is left out.
#[track_caller]
fn same(lab: &Lab, inputs: &str, format: &str, options: &[&str]) {
    let mut is_converted = false;
    for ingest in options {
        let _ = fs::remove_dir_all(lab.path("original"));
        let line = format!("ingest {inputs} --store original {format} {ingest}");
        let code = lab.run(&line).code.unwrap();
        let stat = lab.stat("original");
        let is_empty = stat["pages"] == 0;
        if !is_converted {
            convert(lab, inputs, format, code, is_empty);
            is_converted = true;
        }
        if is_empty {
            continue;
        }
        let (ranking, snapshot) = (lab.export("original"), lab.snapshot("original"));
        for kind in ["jsonl", "parquet"] {
            let _ = fs::remove_dir_all(lab.path("converted"));
            lab.run(&format!("ingest out.{kind} --store converted {ingest}"))
                .exits(0);
            assert_eq!(ranking, lab.export("converted"), "{inputs} {kind}");
            if code == 0 && stat["other"] == 0 {
                assert!(snapshot == lab.snapshot("converted"), "{inputs} {kind}");
            }
        }
    }
}

/// Converts `inputs` to every kind of file, each of which ends with this code. Compressed lines are the plain ones, and
/// so is a second conversion, which an empty result has not.
#[track_caller]
fn convert(lab: &Lab, inputs: &str, format: &str, code: i32, is_empty: bool) {
    let read = |name: &str| fs::read(lab.path(name)).unwrap();
    for kind in ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"] {
        let line = format!("convert {inputs} -o out.{kind} --force {format}");
        lab.run(&line).exits(code);
    }
    let lines = read("out.jsonl");
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(&*read("out.jsonl.gz"))
        .read_to_end(&mut unpacked)
        .unwrap();
    assert!(unpacked == lines, "{inputs}");
    assert!(zstd::decode_all(&*read("out.jsonl.zst")).unwrap() == lines);
    if is_empty {
        return;
    }
    for kind in ["jsonl", "parquet"] {
        lab.run(&format!("convert out.{kind} -o again.jsonl --force"))
            .exits(0);
        assert!(read("again.jsonl") == lines, "{inputs} {kind}");
    }
}

/// Every kind of input and record of the samples, good and bad ones.
#[test]
fn the_samples_of_all_formats() {
    let lab = Lab::new();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("formats/samples");
    let formats = [
        ("records", "records"),
        ("json", "json"),
        ("wat", "wat"),
        ("warc", "warc"),
        ("arc", "arc"),
        ("adjacency", "adjacency"),
        ("edges", "edges"),
        ("crawl-log", "crawl-log"),
        ("nutch", "nutch"),
        ("csv-links", "csv-links"),
    ];
    let mut read = 0;
    for folder in ["good", "bad"] {
        for file in fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let format = formats.iter().find(|(begin, _)| name.starts_with(begin));
            let Some((_, format)) =
                format.filter(|_| path.is_file() && !name.ends_with(".expected"))
            else {
                continue;
            };
            lab.file("in", fs::read(&path).unwrap());
            let policies =
                ["keep", "drop"].map(|policy| format!("--self-links {policy} --repeat 2"));
            let policies = policies.each_ref().map(String::as_str);
            same(&lab, "in", &format!("--format {format}"), &policies);
            read += 1;
        }
    }
    assert!(read > 25, "{read}");
}

#[test]
fn any_number_of_passes_threads_and_inputs() {
    let lab = Lab::new();
    lab.file("a", crawl(41, 500).concat());
    lab.file("b", gzip(crawl(42, 300).concat().as_bytes()));
    let options = [
        "--repeat 3 --checkpoint-every 1",
        "--threads 1 --repeat 4 --self-links keep",
        "--threads 4 --window whole --follow internal=2,external=5",
        "--repeat 2 --window interpolation:1.5",
        "--drop-params x --scope domain:h1.example --scope domain:h2.example",
    ];
    same(&lab, "a b", "", &options);
    // Through a pipe, and by another number of threads: the same lines.
    let lines = lab.run("convert a b --threads 4 -o -").exits(0).out;
    assert_eq!(lines.as_bytes(), fs::read(lab.path("out.jsonl")).unwrap());
    lab.feed("ingest - --store piped", lines.as_bytes())
        .exits(0);
    lab.run("ingest a b --store files").exits(0);
    assert!(lab.snapshot("piped") == lab.snapshot("files"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn any_crawl(seed in any::<u64>(), records in 1u64..400, keep in any::<bool>()) {
        let lab = Lab::new();
        lab.file("in", crawl(seed, records).concat());
        let policy = if keep { "keep" } else { "drop" };
        same(&lab, "in", "--format records", &[&format!("--repeat 2 --self-links {policy}")]);
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Each fact that a record may state, as in `formats/records.md`, also in a table.
#[test]
fn what_records_state_is_written() {
    let lab = Lab::new();
    let records = [
        json!({"url": "http://a.example/", "time": 5, "statusCode": "200", "base": "/d/", "digest": "sha1:x", "more": 1,
            "outlinks": ["b", null, {"href": "c", "nofollow": true, "rel": "ugc next", "weight": 3}, ""]}),
        json!({"url": "http://c.example/", "requested_url": ["http://x.example/", "http://y.example/"], "status": 200,
            "fetched_at": "1970-01-01T02:00:00+02:00"}),
        json!({"url": "http://d.example/", "status": 302, "redirect": "/e", "links": ["no"]}),
        json!({"url": "http://e.example/", "revisit": "http://a.example/", "status": 200}),
        json!({"url": "http://f.example/", "status": -2}),
        json!({"url": "http://g.example/", "status": 410, "method": "GET"}),
        json!({"url": "http://h.example/", "method": "HEAD"}),
    ];
    let text: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lab.file("in", text.concat());
    let mut found = lines(&lab.run("convert in -o -").exits(0).out);
    let digest = found[0]["digest"].take();
    assert!(digest.as_str().unwrap().starts_with("cashrank:"));
    let expected = [
        json!({"url": "http://a.example/", "fetched_at": "1970-01-01T00:00:05Z", "status": 200, "base": "/d/", "digest": null,
            "links": ["b", "c", ""], "links_rel": [null, "nofollow ugc", null], "links_weight": [1, 3, 1]}),
        json!({"url": "http://x.example/", "fetched_at": "1970-01-01T00:00:00Z", "status": 302, "redirect": "http://y.example/"}),
        json!({"url": "http://y.example/", "fetched_at": "1970-01-01T00:00:00Z", "status": 302, "redirect": "http://c.example/"}),
        json!({"url": "http://c.example/", "fetched_at": "1970-01-01T00:00:00Z", "status": 200}),
        json!({"url": "http://d.example/", "status": 302, "redirect": "/e", "links": ["no"]}),
        json!({"url": "http://e.example/", "status": 200, "revisit": "http://a.example/"}),
        json!({"url": "http://f.example/", "status": -2}),
        json!({"url": "http://g.example/", "status": 410}),
    ];
    assert_eq!(found, expected);
    // The second visit with the same digest shows that the page did not change, by whichever route it was read.
    lab.file(
        "later",
        "{\"url\":\"http://a.example/\",\"digest\":\"sha1:x\",\"time\":9,\"links\":[\"z\"]}\n",
    );
    for (at, inputs) in ["in later", "out.parquet later"].iter().enumerate() {
        lab.run("convert in -o out.parquet --force").exits(0);
        lab.run(&format!("ingest {inputs} --store s{at}")).exits(0);
        let page = lab
            .run(&format!("rank http://a.example/ --store s{at} --json"))
            .exits(0)
            .json();
        assert_eq!(
            (page["compared"].clone(), page["changed"].clone()),
            (json!(1), json!(0)),
            "{page}"
        );
    }
}

/// A WARC's revisit of another page's content is that page's only link until its own links are read.
#[test]
fn a_revisit_of_another_page() {
    let lab = Lab::new();
    let revisit = "WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Target-URI: http://b.example/\r\nWARC-Date: 2020-01-01T00:00:01Z\r\n\
                   WARC-Refers-To-Target-URI: http://a.example/\r\nWARC-Profile: \
                   http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    lab.file("in.warc", revisit);
    same(&lab, "in.warc", "", &[""]);
    let found = lines(&lab.run("convert in.warc -o -").exits(0).out);
    assert_eq!(found[0]["revisit"], "http://a.example/");
}

/// Names that are not URLs are nodes; a file has one kind or the other.
#[test]
fn opaque_names() {
    let lab = Lab::new();
    lab.file("graph", "a\tb\tc d\nb\ta\né\n");
    lab.file("weighed", "a\tb\t3\na\tc\t1\n");
    lab.file("urls", "{\"url\":\"http://a.example/\"}\n");
    for (input, format) in [("graph", "adjacency"), ("weighed", "edges")] {
        same(&lab, input, &format!("--format {format}"), &[""]);
    }
    let found = lines(
        &lab.run("convert graph --format adjacency -o -")
            .exits(0)
            .out,
    );
    assert_eq!(
        found,
        [
            json!({"node": "a", "links": ["b", "c d"]}),
            json!({"node": "b", "links": ["a"]}),
            json!({"node": "é"})
        ]
    );
    lab.run("convert graph urls -o out.jsonl --force")
        .exits(2)
        .says(&["urls: ", "convert it by itself"]);
    lab.run("convert graph --format adjacency -o g.parquet")
        .exits(0);
    lab.run("ingest urls --store s").exits(0);
    lab.run("ingest g.parquet --store s")
        .exits(2)
        .says(&["node-records", "no URLs"]);
}

/// Records are sorted by time; those of equal time keep their order, and those without one follow the latest before
/// them. Also in little memory.
#[test]
fn sorted_by_time() {
    let lab = Lab::new();
    let times = [Some(7), None, Some(3), None, Some(7), Some(-1), Some(3)];
    let record = |(at, time): (usize, &Option<i64>)| {
        let time = time.map_or(String::new(), |time| format!(",\"time\":{time}"));
        format!("{{\"url\":\"http://a.example/{at}\"{time}}}\n")
    };
    let text: String = [None]
        .iter()
        .chain(&times)
        .enumerate()
        .map(record)
        .collect();
    lab.file("in", text);
    let found = lines(&lab.run("convert in --sort time -o -").exits(0).out);
    let order: Vec<_> = found
        .iter()
        .map(|record| record["url"].as_str().unwrap())
        .collect();
    let expected = [0, 6, 3, 7, 1, 2, 4, 5].map(|at| format!("http://a.example/{at}"));
    assert_eq!(order, expected);
    // More than fits: 40 MB of lines in 4 MiB.
    let long = "x".repeat(4_000);
    let many: String = (0..10_000u64)
        .map(|at| {
            format!(
                "{{\"url\":\"http://a.example/{long}{at}\",\"time\":{}}}\n",
                at * 7919 % 10_000
            )
        })
        .collect();
    lab.file("many", many);
    let line = "convert many --sort time -o sorted.jsonl.zst --memory 4M";
    lab.run(line).exits(0);
    let text = zstd::decode_all(&*fs::read(lab.path("sorted.jsonl.zst")).unwrap()).unwrap();
    let sorted = lines(std::str::from_utf8(&text).unwrap());
    let times: Vec<_> = sorted
        .iter()
        .map(|record| record["fetched_at"].as_str().unwrap().to_owned())
        .collect();
    assert!(times.is_sorted() && times.len() == 10_000);
    assert!(
        lab.names()
            .iter()
            .all(|name| !name.contains("cashrank-sort"))
    );
}

#[test]
fn what_would_lose_something_is_refused() {
    let lab = Lab::new();
    lab.file("in", crawl(92, 30).concat());
    lab.run("convert in -o in.parquet").exits(0);
    lab.run("convert in -o in.parquet")
        .exits(2)
        .says(&["--force"]);
    lab.run("convert in -o in.cza")
        .exits(2)
        .says(&[".jsonl.zst or .parquet"]);
    lab.run("convert in -o x.jsonl --drop-params y")
        .exits(2)
        .says(&["ingest"]);
    lab.run("convert in -o x.jsonl --memory 8M")
        .exits(2)
        .says(&["--memory", "--sort"]);
    // Records that fail their check must not get a new checksum.
    let mut bad = gzip(crawl(93, 30).concat().as_bytes());
    let at = bad.len() - 6;
    bad[at] ^= 1;
    lab.file("bad.gz", &bad);
    lab.run("convert bad.gz -o bad.jsonl.zst --limit-held 10")
        .exits(4)
        .says(&["no file was written"]);
    assert!(!lab.names().iter().any(|name| name.starts_with("bad.jsonl")));
    lab.run("convert bad.gz -o bad.parquet --limit-held 10 --accept-unverified")
        .exits(4);
    lab.run("ingest bad.parquet --store s").exits(0);
    lab.run("convert nothing -o x.jsonl").exits(7);
    assert!(!lab.path("x.jsonl").exists());
    lab.run("convert in bad.gz --strict -o x.jsonl").exits(4);
    // A record that would exceed the limit as JSON is reported, not cut.
    let names: String = (0..400).map(|at| format!("\t{at}")).collect();
    lab.file("long", format!("a{names}\n"));
    lab.run("convert long --format adjacency --limit-line 1800 -o long.jsonl")
        .exits(3)
        .says(&["as a line of JSON it has"]);
}

/// A cut is recognised by the missing end, frame by frame.
#[test]
fn frames_are_verified_one_by_one() {
    let lab = Lab::new();
    let wide = "x".repeat(3_000);
    let text: String = (0..12_000)
        .map(|at| format!("{{\"url\":\"http://a.example/{wide}{at}\"}}\n"))
        .collect();
    lab.file("in", text);
    for kind in ["jsonl.gz", "jsonl.zst"] {
        lab.run(&format!("convert in -o out.{kind}")).exits(0);
        let whole = fs::read(lab.path(&format!("out.{kind}"))).unwrap();
        lab.file("cut", &whole[..whole.len() - 1]);
        let found = lab.run("inspect cut --json --memory 1G").exits(4).json();
        // 36 MB of lines are three frames: two of 16 MiB and more, whose records are verified, and the rest.
        assert_eq!(found["members"], 2, "{found}");
    }
}

/// Real crawls, where they are: the same rankings.
#[test]
fn real_crawls() {
    for (name, format) in [
        ("scrapy-httpd/httpd-manual.jsonl.zst", "records"),
        ("boost/boost-crawl-1.74.warc.gz", "warc"),
        ("blackbook/blackbook.wat.gz", "wat"),
    ] {
        let Some(path) = data(name) else { continue };
        let lab = Lab::new();
        let input = path.display().to_string();
        let format = format!("--format {format}");
        lab.run(&format!("ingest {input} --store s {format}"))
            .exits(0);
        for kind in ["jsonl.zst", "parquet"] {
            lab.run(&format!("convert {input} -o out.{kind} {format}"))
                .exits(0);
            lab.run(&format!("ingest out.{kind} --store {kind}"))
                .exits(0);
            assert_eq!(lab.export("s"), lab.export(kind), "{name} {kind}");
        }
    }
}
