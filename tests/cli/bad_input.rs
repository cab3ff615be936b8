//! Bad records and damaged inputs: what is reported, what is applied, and how an ingest continues.

use crate::support::{Lab, crawl, gzip, in_pieces, zstandard};

const RECORDS: usize = 120;

fn text(records: &[String]) -> Vec<u8> {
    records.concat().into_bytes()
}

/// Exports a store that read just these records.
fn export_of(lab: &Lab, records: &[String]) -> String {
    let store = format!("of-{}", records.len());
    if !lab.path(&store).exists() {
        lab.file("of", text(records));
        // A run that reads nothing is not a success.
        let code = if records.is_empty() { 3 } else { 0 };
        lab.run(&format!("ingest of --store {store} --format records"))
            .exits(code);
    }
    lab.export(&store)
}

/// Returns bad records that follow 50 good ones, each with its message and the option that makes it bad.
fn bad_records() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let long = format!("{{\"url\":\"http://h.example/{}\"}}\n", "x".repeat(3_000));
    let links = vec!["\"http://h.example/q\""; 60].join(",");
    let many = format!("{{\"url\":\"http://h.example/\",\"links\":[{links}]}}\n");
    vec![
        (
            "malformed",
            b"{\"url\":\"http://a.example/\",}\n".to_vec(),
            "",
        ),
        (
            "invalid-utf8",
            b"{\"url\":\"http://a.example/\xff\"}\n".to_vec(),
            "",
        ),
        ("bad-url", b"{\"url\":\"\"}\n".to_vec(), ""),
        ("too-long", long.clone().into_bytes(), "--limit-line 2000"),
        ("url-too-long", long.into_bytes(), "--limit-url 2000"),
        ("too-many-links", many.into_bytes(), "--limit-links 50"),
    ]
}

#[test]
fn a_bad_record_is_skipped_counted_and_named() {
    let lab = Lab::new();
    let records = crawl(41, RECORDS as u64);
    let expected = export_of(&lab, &records);
    let before = text(&records[..50]);
    let place = format!("bad: record 51 at byte {}", before.len());
    for (at, (reason, line, option)) in bad_records().into_iter().enumerate() {
        lab.file("bad", [before.clone(), line, text(&records[50..])].concat());
        let store = format!("s{at}");
        lab.run(&format!("ingest bad --store {store} {option}"))
            .exits(3)
            .says(&[&place, reason, &format!("1 {reason}")]);
        assert!(lab.export(&store) == expected, "{reason}");
        assert_eq!(lab.stat(&store)["skipped"], 1, "{reason}");
        assert_eq!(lab.stat(&store)["records"], RECORDS, "{reason}");

        lab.run(&format!(
            "ingest bad --store strict-{store} --strict {option}"
        ))
        .exits(4)
        .says(&[&place, reason]);
        let found = lab.export(&format!("strict-{store}"));
        assert!(found == export_of(&lab, &records[..50]), "{reason}");
    }
}

#[test]
fn strict_continues_once_the_record_is_mended() {
    let lab = Lab::new();
    let records = crawl(42, RECORDS as u64);
    lab.file("in", [text(&records[..50]), b"{\n".to_vec()].concat());
    lab.run("ingest in --store s --strict").exits(4);
    lab.run("ingest in --store s --strict")
        .exits(4)
        .says(&["record 51"]);
    lab.file("in", text(&records));
    lab.run("ingest in --store s --strict").exits(0);
    lab.run("ingest in --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

#[test]
fn a_truncated_plain_file_is_reported() {
    let lab = Lab::new();
    let records = crawl(43, RECORDS as u64);
    let whole = text(&records);
    lab.file("in", &whole[..whole.len() - 9]);
    lab.run("ingest in --store s")
        .exits(3)
        .says(&["in: record 120 at byte", "cut-short"]);
    assert!(lab.export("s") == export_of(&lab, &records[..RECORDS - 1]));
}

#[test]
fn empty_missing_and_directory() {
    let lab = Lab::new();
    lab.file("empty", "");
    lab.run("ingest empty --store e")
        .exits(3)
        .says(&["empty: is empty", "nothing was read"]);
    assert_eq!(lab.stat("e")["records"], 0);
    lab.run("ingest missing --store m")
        .exits(7)
        .says(&["missing", "No such file"]);
    std::fs::create_dir(lab.path("folder")).unwrap();
    lab.run("ingest folder --store d")
        .exits(2)
        .says(&["folder: is a directory"]);
    // A mistyped name leaves nothing behind.
    assert!(!lab.path("m").exists());
    assert!(!lab.path("d").exists());
    // A missing input is found before the first one is read.
    lab.file("a", text(&crawl(44, 20)));
    lab.run("ingest a missing --store s").exits(7);
    assert!(!lab.path("s").exists());
    lab.file("what", "no format that is known\n");
    lab.run("ingest what --store w")
        .exits(2)
        .says(&["what", "--format"]);
}

/// Extracts the number after `(after record `.
fn told_records(err: &str) -> usize {
    let (_, rest) = err
        .split_once("(after record ")
        .unwrap_or_else(|| panic!("{err}"));
    rest.split(')')
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap()
}

#[test]
fn truncated_inputs_go_on_to_the_same_bytes() {
    let lab = Lab::new();
    let records = crawl(45, RECORDS as u64);
    let whole = text(&records);
    lab.file("plain", &whole);
    lab.run("ingest plain --store whole").exits(0);
    let packings = [
        ("one.gz", gzip(&whole)),
        ("many.gz", in_pieces(&whole, 4_000, gzip)),
        ("one.zst", zstandard(&whole)),
        ("many.zst", in_pieces(&whole, 4_000, zstandard)),
    ];
    for (name, packed) in packings {
        let mut most = 0;
        for tenth in [1, 4, 7, 9] {
            let store = format!("{name}-{tenth}");
            lab.file(name, &packed[..packed.len() * tenth / 10]);
            let line = format!("ingest {name} --store {store} --format records");
            let done = lab.run(&line).exits(4).says(&[name, "byte"]);
            let applied = told_records(&done.err);
            assert_eq!(lab.stat(&store)["records"], applied, "{store}");
            assert!(
                lab.export(&store) == export_of(&lab, &records[..applied]),
                "{store}"
            );
            most = most.max(applied);

            lab.file(name, &packed);
            lab.run(&line).exits(0);
            assert!(lab.snapshot(&store) == lab.snapshot("whole"), "{store}");
        }
        if name != "one.zst" {
            // A small zstd frame is one block: nothing of it can be read before its end.
            assert!(most > 0 && most < RECORDS, "{name}: {most}");
        }
    }
}

/// Offset of the checksum that the last gzip member or zstd frame ends with.
fn checksum_at(name: &str, packed: &[u8]) -> usize {
    // gzip: CRC-32, then the length; zstd: the checksum last.
    packed.len() - if name == "gz" { 8 } else { 4 }
}

fn broken(name: &str, mut packed: Vec<u8>) -> Vec<u8> {
    let at = checksum_at(name, &packed);
    packed[at] ^= 1;
    packed
}

#[test]
fn data_with_a_bad_checksum_is_used_only_on_request() {
    let lab = Lab::new();
    let records = crawl(46, RECORDS as u64);
    lab.file("plain", text(&records));
    lab.run("ingest plain --store whole").exits(0);
    for (name, compress) in [("gz", gzip as fn(&[u8]) -> Vec<u8>), ("zst", zstandard)] {
        let good = [text(&records[..50]), text(&records[50..])].map(|part| compress(&part));
        let good = good.concat();
        lab.file(name, broken(name, good.clone()));

        let line = format!("ingest {name} --store {name}-s");
        lab.run(&line)
            .exits(4)
            .says(&[name, "(after record 50)", "byte"]);
        assert!(lab.export(&format!("{name}-s")) == export_of(&lab, &records[..50]));

        let line = format!("ingest {name} --store {name}-all --accept-unverified");
        lab.run(&line)
            .exits(4)
            .says(&["(after record 120)", "could not be verified"]);
        assert!(lab.export(&format!("{name}-all")) == export_of(&lab, &records));

        lab.file(name, good);
        for store in ["s", "all"] {
            lab.run(&format!("ingest {name} --store {name}-{store}"))
                .exits(0);
            let snapshot = lab.snapshot(&format!("{name}-{store}"));
            assert!(snapshot == lab.snapshot("whole"), "{name} {store}");
        }
    }
}

/// A frame too large to be held is applied as it streams; its checksum comes last.
#[test]
fn a_large_frame_with_a_bad_checksum_is_published_only_on_request() {
    let lab = Lab::new();
    let records = crawl(47, 4_000);
    let whole = text(&records);
    for (name, compress) in [("gz", gzip as fn(&[u8]) -> Vec<u8>), ("zst", zstandard)] {
        lab.file(name, broken(name, compress(&whole)));
        let line = format!("ingest {name} --store {name}-s --limit-held 64K");
        lab.run(&line).exits(4).says(&[
            name,
            "fails its check",
            "could not be verified",
            "--accept-unverified",
        ]);
        let snapshots = std::fs::read_dir(lab.path(&format!("{name}-s/snapshots"))).unwrap();
        assert_eq!(snapshots.count(), 0, "{name}");
        lab.run(&format!("top --store {name}-s"))
            .exits(2)
            .says(&["no snapshot"]);

        lab.run(&format!("{line} --accept-unverified"));
        assert_eq!(lab.stat(&format!("{name}-s"))["records"], 4_000, "{name}");
        assert!(lab.export(&format!("{name}-s")) == export_of(&lab, &records));

        lab.file(name, compress(&whole));
        lab.run(&line).exits(0);
        lab.run(&format!("ingest {name} --store {name}-whole"))
            .exits(0);
        let snapshot = lab.snapshot(&format!("{name}-s"));
        assert!(snapshot == lab.snapshot(&format!("{name}-whole")), "{name}");
    }
}

/// Damage in the middle of the compressed data, not at its end.
#[test]
fn garbage_inside_is_found() {
    let lab = Lab::new();
    let records = crawl(48, RECORDS as u64);
    for (name, compress) in [("gz", gzip as fn(&[u8]) -> Vec<u8>), ("zst", zstandard)] {
        let mut packed = compress(&text(&records));
        let middle = packed.len() / 2;
        packed[middle..middle + 40].fill(0xff);
        lab.file(name, packed);
        lab.run(&format!("ingest {name} --store {name}-s"))
            .exits(4)
            .says(&[name, "byte"]);
        assert_eq!(lab.stat(&format!("{name}-s"))["records"], 0);
        let trailing = [compress(&text(&records)), b"garbage".to_vec()].concat();
        lab.file(name, trailing);
        lab.run(&format!("ingest {name} --store {name}-t"))
            .exits(4)
            .says(&[name, "(after record 120)"]);
        assert!(lab.export(&format!("{name}-t")) == export_of(&lab, &records));
    }
}

/// Regression: links were counted against the limit only if no earlier record of the batch had named them, so the
/// skipped records depended on where batches ended.
#[test]
fn the_limit_on_made_absolute_links_does_not_look_at_other_records() {
    let lab = Lab::new();
    let page = format!("http://a.example/{}/", "x".repeat(180));
    let record = |links: &str| format!("{{\"url\":\"{page}\",\"links\":[{links}]}}\n");
    // Two links of 198 bytes fit into 500, three do not.
    lab.file("in", record("\"b\",\"c\"") + &record("\"b\",\"c\",\"d\""));
    lab.run("ingest in --store s --limit-line 500")
        .exits(3)
        .says(&["record 2", "too-long", "made absolute"]);
}

/// Regression: such a record was counted only at the next chunk or at the end. If damage came first, `ingest` did not
/// count what `inspect` and `convert` did. Now it is an entry of its own chunk.
#[test]
fn a_record_over_the_limit_is_counted_before_damage() {
    let lab = Lab::new();
    let good = "{\"url\":\"http://a.example/\"}\n".repeat(5);
    let long = format!("{{\"url\":\"http://a.example/{}\"}}\n", "x".repeat(3_000));
    let packed = gzip((good + &long).as_bytes());
    lab.file("in", [packed, b"garbage".to_vec()].concat());
    lab.run("ingest in --store s --limit-line 1000")
        .exits(4)
        .says(&["record 6", "too-long", "(after record 6)"]);
    assert_eq!(lab.stat("s")["records"], 5);
    assert_eq!(lab.stat("s")["skipped"], 1);
    let inspected = lab.run("inspect in --limit-line 1000 --json").exits(4);
    assert_eq!(inspected.json()["skipped"]["too-long"]["count"], 1);
}

/// Regression: NaN was taken for an absent damping.
#[test]
fn damping_is_a_number() {
    let lab = Lab::new();
    lab.file("log", "{\"url\":\"http://a.example/\"}\n");
    lab.run("ingest log --store s --damping nan").exits(2);
    lab.run("ingest log --store s --damping 0.5").exits(0);
    lab.run("ingest log --store s --damping nan").exits(2);
}

/// Regression: each line of a Git LFS pointer, of an error message and of a list of checksums has two words, so such a
/// file was guessed as edges. Its words joined a store of URLs, silently with `--quiet`, and `next` listed them first.
#[test]
fn what_stands_in_the_place_of_an_input_is_named() {
    let lab = Lab::new();
    lab.file(
        "urls",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n",
    );
    lab.file("graph", "a\tb\nb\ta\n");
    lab.run("ingest urls --store urls.s").exits(0);
    lab.run("ingest graph --store graph.s").exits(0);
    let export = lab.export("urls.s");
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let md5 = "d41d8cd98f00b204e9800998ecf8427e  day2.warc.gz\n";
    let wide: Vec<u8> = "{\"url\":\"http://a.example/\"}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let tar = [&[b'a'; 257][..], b"ustar\x0000", &[0; 300]].concat();
    let inputs: [(&[u8], &str); 8] = [
        (lfs.as_bytes(), "Git LFS"),
        (b"Access Denied\n", "two words"),
        (md5.as_bytes(), "checksums"),
        (b"<Error><Code>AccessDenied</Code></Error>", "HTML or XML"),
        (b"PK\x03\x04\x14\0archive/data.warc.gz", "ZIP"),
        (
            b"\x89CZA\r\n\x1a\n\x04\0\0\0",
            "crawl archive (.cza) of cashrank 0.2",
        ),
        (&wide, "UTF-16"),
        (&tar, "tar"),
    ];
    for (bytes, name) in inputs {
        lab.file("plain", bytes);
        lab.file("packed.gz", gzip(bytes));
        for input in ["plain", "packed.gz"] {
            for command in [
                format!("ingest --quiet {input} --store urls.s"),
                format!("ingest {input} --store new.s"),
                format!("inspect {input}"),
                format!("convert {input} -o new.jsonl"),
                format!("compute --until 1e-12 {input}"),
            ] {
                lab.run(&command).exits(2).says(&[name]);
            }
        }
        assert!(!lab.path("new.s").exists());
        lab.feed("ingest --quiet - --store urls.s", bytes)
            .exits(2)
            .says(&[name]);
    }
    for (bytes, name) in &inputs[5..] {
        lab.file("list", bytes);
        lab.run("next --store urls.s --seeds list")
            .exits(2)
            .says(&[name]);
    }
    // A graph is a valid input of its own, but not part of a crawl unless its format is named.
    lab.run("ingest graph --store urls.s")
        .exits(2)
        .says(&["--format url-edges", "--format edges"]);
    lab.run("ingest urls --store graph.s")
        .exits(2)
        .says(&["other names", "--format records"]);
    lab.run("compute --until 1e-12 urls graph")
        .exits(2)
        .says(&["url-edges"]);
    assert!(lab.export("urls.s") == export);
    lab.run("ingest graph --store urls.s --format edges")
        .exits(0);
}

/// Lists of links whose sources come back: each command that reads them says so, and how often: 4 targets of 3 sources in turn.
#[test]
fn every_command_says_that_a_list_is_not_grouped() {
    let lab = Lab::new();
    let pairs = |separator: &str| -> String {
        let lines = ["x", "y", "z", "w"].into_iter().flat_map(|to| {
            ["a", "b", "c"]
                .map(|from| format!("http://{from}.example/{separator}http://{to}.example/"))
        });
        lines.map(|line| line + "\n").collect()
    };
    lab.file("edges", pairs("\t"));
    let csv: Vec<String> = pairs(",")
        .lines()
        .map(|line| format!("20240501,{line},x\n"))
        .collect();
    lab.file("csv", csv.concat());
    for (input, format) in [("edges", "url-edges"), ("csv", "csv-links")] {
        for command in [
            "ingest --store s",
            "inspect",
            "convert -o out.jsonl --force",
            "compute",
        ] {
            let done = lab
                .run(&format!("{command} {input} --format {format}"))
                .exits(0);
            let said = done.out.clone() + &done.err;
            assert!(
                said.contains("9 lines return to an earlier source"),
                "{command} {input}: {said}"
            );
        }
        std::fs::remove_dir_all(lab.path("s")).unwrap();
        let found = lab
            .run(&format!("inspect --json {input} --format {format}"))
            .exits(0);
        assert_eq!(found.json()["ungrouped"], 9);
    }
}

/// The guide's exit code 3: nothing was read, whatever the reason, and whatever the store holds already.
#[test]
fn nothing_read_has_its_exit_code() {
    let lab = Lab::new();
    lab.file(
        "a.jsonl",
        "{\"url\":\"http://a.example/\",\"links\":[\"/b\"]}\n",
    );
    lab.file("array.json", "[]");
    lab.file("comments", "# none\n# at all\n");
    lab.run("ingest a.jsonl --store s").exits(0);
    for (input, rules) in [
        ("array.json", ""),
        ("comments", "--format edges"),
        ("a.jsonl", "--scope host:zz.example"),
    ] {
        let store = if rules.starts_with("--scope") {
            "t"
        } else {
            "s"
        };
        for command in [
            &format!("ingest --store {store}"),
            "convert -o out.jsonl --force",
        ] {
            if command.starts_with("ingest") && rules.contains("edges") {
                continue;
            }
            let done = lab.run(&format!("{command} {input} {rules}")).exits(3);
            assert!(
                done.err.contains("nothing was read"),
                "{command} {input}: {}",
                done.err
            );
        }
        lab.run(&format!("inspect {input} {rules}")).exits(3);
        assert_eq!(std::fs::read(lab.path("out.jsonl")).unwrap(), b"");
    }
    // Other inputs with records: all that was asked for is done.
    lab.file("b.jsonl", "{\"url\":\"http://b.example/\"}\n");
    lab.file("empty", "");
    lab.run("ingest empty b.jsonl --store u")
        .exits(0)
        .says(&["empty: is empty"]);
    lab.run("convert array.json b.jsonl -o out.jsonl --force")
        .exits(0);
}
