//! `inspect`: counts by hand from the samples, damage, and agreement with `ingest`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::support::{Lab, data, gzip, sample};

/// Twelve records; the expected counts were taken by hand.
const RECORDS: &[u8] = include_bytes!("inspect.jsonl");

fn golden(name: &str) -> Vec<u8> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples");
    fs::read(samples.join(name)).unwrap()
}

/// Returns the offset of this text.
fn offset(bytes: &[u8], text: &str) -> usize {
    let found = bytes
        .windows(text.len())
        .position(|part| part == text.as_bytes());
    found.unwrap()
}

#[test]
fn a_sample_is_counted() {
    let lab = Lab::new();
    let bytes = RECORDS;
    lab.file("records.jsonl", bytes);
    let found = lab.run("inspect records.jsonl --json -n 5").exits(3).json();
    for (field, expected) in [
        ("compression", json!("plain")),
        ("bytes", json!(bytes.len())),
        ("format", json!("records")),
        ("whole", json!(true)),
        ("damage", Value::Null),
        ("records", json!(12)),
        ("visits", json!(6)),
        ("gone", json!(1)),
        ("unchanged", json!(1)),
        ("failed", json!(1)),
        ("other", json!({"blank line": 2})),
        (
            "statuses",
            json!({"-2": 1, "200": 1, "301": 1, "304": 1, "404": 1}),
        ),
        ("statuses_none", json!(4)),
        ("pages", json!({"count": 17, "at_least": false})),
        ("pages_fetched", json!({"count": 8, "at_least": false})),
        ("records_again", json!(1)),
        ("hosts", json!({"count": 2, "at_least": false})),
        ("nothing", Value::Null),
    ] {
        assert_eq!(found[field], expected, "{field}");
    }
    let links = json!({"read": 10, "followed": 9, "most": 3, "scheme": 0, "invalid": 0, "too_long": 0,
        "own": 0, "repeated": 1, "out_of_scope": 0});
    assert_eq!(found["links"], links);
    let gone = offset(bytes, r#"{"status":"404""#);
    let back = json!({"count": 1, "first": [{"record": 3, "byte": gone, "detail": null}]});
    let times = json!({"earliest": "2015-04-30T09:53:41Z", "latest": "2015-04-30T10:00:21Z", "none": 5,
        "back": back});
    assert_eq!(found["times"], times);
    let skipped = found["skipped"].as_object().unwrap();
    assert_eq!(skipped.keys().collect::<Vec<_>>(), ["bad-url"]);
    let place = &skipped["bad-url"]["first"][0];
    assert_eq!(place["record"], 12);
    assert_eq!(place["byte"], offset(bytes, r#"{"url":"no newline"#));
    assert!(place["detail"].as_str().unwrap().contains("relative"));
    first_of_the_sample(&found["first"], bytes);
}

fn first_of_the_sample(first: &Value, bytes: &[u8]) {
    assert_eq!(first.as_array().unwrap().len(), 5);
    let second = json!({
        "record": 2, "byte": offset(bytes, r#"{"url":"http://a.example/","links""#),
        "url": "http://a.example/", "what": "crawled", "status": 200, "time": "2015-04-30T10:00:21Z",
        "links_read": 3, "links_followed": 2,
        "links": ["http://a.example/b", "http://c.example/?q=1"],
    });
    assert_eq!(first[1], second);
    // Record 5 is a blank line.
    let fifth = &first[4];
    assert_eq!(fifth["record"], 6);
    assert_eq!(fifth["links"], json!(["http://a.example/new"]));
}

#[test]
fn what_is_bad_is_counted_by_reason() {
    let lab = Lab::new();
    lab.file("records.jsonl", golden("bad/records.jsonl"));
    let found = lab.run("inspect records.jsonl --json").exits(3).json();
    let expected = String::from_utf8(golden("bad/records.jsonl.expected")).unwrap();
    for reason in ["malformed", "bad-url", "bad-time", "invalid-utf8"] {
        // A record with an unreadable time is used.
        let kind = match reason {
            "bad-time" => "remarks",
            _ => "skipped",
        };
        let bad = format!("bad: {reason}");
        let is_told = |line: &str| line == bad || kind == "remarks" && line.contains(" bad-time ");
        let count = expected.lines().filter(|line| is_told(line)).count();
        assert_eq!(found[kind][reason]["count"], count, "{reason}");
        // The first positions, each with its number in the list, and what is wrong there.
        let numbered = (1..)
            .zip(expected.lines())
            .filter(|(_, found)| is_told(found));
        let numbers: Vec<_> = numbered.map(|(number, _)| number).take(3).collect();
        let places = found[kind][reason]["first"].as_array().unwrap();
        let found: Vec<_> = places
            .iter()
            .map(|place| place["record"].as_u64().unwrap())
            .collect();
        assert_eq!(found, numbers, "{reason}");
        assert!(
            places.iter().all(|place| place["detail"].is_string()),
            "{reason}"
        );
    }
    // The record at the end, and those with odd times.
    assert_eq!(
        found["visits"],
        1 + found["remarks"]["bad-time"]["count"].as_u64().unwrap()
    );
    assert!(
        found["nothing"]
            .as_str()
            .unwrap()
            .contains("no known links")
    );
}

#[test]
fn for_people() {
    let lab = Lab::new();
    lab.file("records.jsonl", RECORDS);
    let said = lab.run("inspect records.jsonl").exits(3).out;
    for words in [
        "records.jsonl: plain, 874 bytes",
        "records (it begins with a JSON object)",
        "12: 6 crawled, 1 gone, 1 unchanged, 1 failed, 1 skipped, 2 not pages",
        "10 read: 9 followed, at most 3 of a page, 1 repeated",
        "17 distinct, 8 of them in crawl records; 2 hosts",
        "-> http://c.example/?q=1",
        "1 skipped as bad-url",
    ] {
        assert!(said.contains(words), "{words:?} is not in\n{said}");
    }
}

#[test]
fn nothing_is_in_scope() {
    let lab = Lab::new();
    lab.file("records.jsonl", RECORDS);
    let found = lab
        .run("inspect records.jsonl --json --scope host:nowhere.example")
        .exits(3)
        .json();
    // All records except for the two blank lines and the one with an invalid URL.
    assert_eq!(
        (&found["records"], &found["out_of_scope"]),
        (&json!(12), &json!(9))
    );
    assert_eq!(
        (&found["visits"], &found["pages"]["count"]),
        (&json!(0), &json!(0))
    );
    assert!(found["nothing"].as_str().unwrap().contains("--scope"));
}

/// Reasons why an archive looks empty: no record of it is about a page.
#[test]
fn kinds_of_other_records() {
    let lab = Lab::new();
    lab.file("x.wat", golden("good/wat.wat"));
    let found = lab.run("inspect x.wat --json").exits(0).json();
    let expected = String::from_utf8(golden("good/wat.wat.expected")).unwrap();
    let mut kinds = serde_json::Map::new();
    for kind in expected
        .lines()
        .filter_map(|line| line.strip_prefix("other: "))
    {
        let count = kinds.get(kind).and_then(Value::as_u64).unwrap_or(0);
        kinds.insert(kind.into(), (count + 1).into());
    }
    assert!(kinds.len() > 3);
    assert_eq!(found["other"], Value::Object(kinds));
}

#[test]
fn damage_ends_the_reading_and_is_reported() {
    let lab = Lab::new();
    let lines = sample(30);
    let members: Vec<Vec<u8>> = lines
        .chunks(10)
        .map(|part| gzip(part.concat().as_bytes()))
        .collect();
    let whole = members.concat();
    let third = members[0].len() + members[1].len();
    lab.file("whole.gz", &whole);
    lab.file("cut.gz", &whole[..third + 20]);
    let mut flipped = whole.clone();
    let last = flipped.len() - 5; // In the CRC.
    flipped[last] ^= 1;
    lab.file("flipped.gz", &flipped);

    let found = lab.run("inspect whole.gz --json").exits(0).json();
    assert_eq!(
        (&found["members"], &found["members_unchecked"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(
        (&found["records"], &found["compressed_bytes"]),
        (&json!(30), &json!(whole.len()))
    );
    for name in ["cut.gz", "flipped.gz"] {
        let found = lab.run(&format!("inspect {name} --json")).exits(4).json();
        assert_eq!(found["whole"], false);
        assert_eq!(found["records"], 20, "{name}");
        assert_eq!(found["members"], 2);
        let damage = &found["damage"];
        assert_eq!(
            (&damage["records_before"], &damage["member_at"]),
            (&json!(20), &json!(third))
        );
        assert_eq!(damage["verified_bytes"], lines[..20].concat().len());
        let said = lab.run(&format!("inspect {name}")).exits(4).out;
        assert!(said.contains("after 20 records"), "{said}");
    }
    let found = lab
        .run("inspect flipped.gz --json --accept-unverified")
        .exits(4)
        .json();
    assert_eq!(found["records"], 30);
}

#[test]
fn frames_without_checksums() {
    let lab = Lab::new();
    let text = sample(5).concat();
    lab.file("x.zst", zstd::encode_all(text.as_bytes(), 3).unwrap());
    let found = lab.run("inspect x.zst --json").exits(0).json();
    assert_eq!(
        (&found["compression"], &found["members_unchecked"]),
        (&json!("zstd"), &json!(1))
    );
    let said = lab.run("inspect x.zst").exits(0).out;
    assert!(said.contains("1 without a checksum"), "{said}");
}

/// `inspect` reads exactly as `ingest` does.
#[test]
fn it_says_what_an_ingest_does() {
    let lab = Lab::new();
    lab.file(
        "crawl.jsonl",
        [
            sample(300).concat().as_bytes(),
            &golden("bad/records.jsonl"),
        ]
        .concat(),
    );
    for options in [
        "",
        " --limit-links 100",
        " --limit-url 60",
        " --limit-line 20K",
        " --scope !host:github.com",
    ] {
        let found = lab
            .run(&format!("inspect crawl.jsonl --json{options}"))
            .exits(3)
            .json();
        let store = format!("s{}", options.len());
        let done = lab
            .run(&format!(
                "ingest crawl.jsonl --json --store {store}{options}"
            ))
            .exits(3)
            .json();
        let sum = |of: &[&str]| of.iter().map(|of| found[of].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            done["records"],
            sum(&["visits", "gone", "unchanged", "failed"])
        );
        assert_eq!(done["links"], found["links"]["read"], "{options}");
        assert_eq!(done["new_pages"], found["pages"]["count"], "{options}");
        assert_eq!(done["out_of_scope"], found["out_of_scope"], "{options}");
        let skipped = found["skipped"].as_object().unwrap().iter();
        let counts: serde_json::Map<_, _> = skipped
            .map(|(reason, odd)| (reason.clone(), odd["count"].clone()))
            .collect();
        assert_eq!(done["skipped"], Value::Object(counts), "{options}");
    }
    // The same for the converted records: those about pages.
    lab.run("convert crawl.jsonl -o crawl.parquet").exits(3);
    let (of_lines, of_converted) = (
        lab.run("inspect crawl.jsonl --json").exits(3).json(),
        lab.run("inspect crawl.parquet --json").exits(0).json(),
    );
    for field in [
        "visits",
        "gone",
        "links",
        "pages",
        "pages_fetched",
        "hosts",
        "records_again",
    ] {
        assert_eq!(of_lines[field], of_converted[field], "{field}");
    }
    assert_eq!(of_lines["times"]["latest"], of_converted["times"]["latest"]);
    assert_eq!(
        of_lines["first"][1]["links"],
        of_converted["first"][1]["links"]
    );
}

#[test]
fn inspection_ends_after_the_requested_records() {
    let lab = Lab::new();
    let lines = sample(50);
    lab.file("crawl.jsonl", lines.concat());
    let found = lab
        .run("inspect crawl.jsonl --json --records 7 --count 0")
        .exits(0)
        .json();
    assert_eq!(
        (&found["records"], &found["whole"]),
        (&json!(7), &json!(false))
    );
    assert_eq!(found["bytes"], lines[..7].concat().len());
    assert_eq!(found["first"], json!([]));
    lab.file("seven.jsonl", lines[..7].concat());
    let seven = lab.run("inspect seven.jsonl --json").exits(0).json();
    for field in ["links", "pages", "hosts", "statuses"] {
        assert_eq!(found[field], seven[field], "{field}");
    }
}

#[test]
fn several_inputs_and_standard_input() {
    let lab = Lab::new();
    let text = sample(3).concat();
    lab.file("good.jsonl", &text);
    lab.file("bad.jsonl", golden("bad/records.jsonl"));
    lab.file("odd", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let said = lab
        .feed("inspect - --json", text.as_bytes())
        .exits(0)
        .json();
    assert_eq!((&said["input"], &said["records"]), (&json!("-"), &json!(3)));
    let done = lab.run("inspect good.jsonl bad.jsonl --json").exits(3);
    assert_eq!(done.out.lines().count(), 2);
    // An unknown input does not stop the others.
    let done = lab
        .run("inspect odd bad.jsonl good.jsonl --json")
        .exits(2)
        .says(&["odd: "]);
    assert_eq!(done.out.lines().count(), 2);
    lab.run("inspect nowhere good.jsonl").exits(7);
    lab.run("inspect - -").exits(2);
    let empty = lab.feed("inspect - --json", b"").exits(3).json();
    assert_eq!(
        (&empty["format"], &empty["records"]),
        (&Value::Null, &json!(0))
    );
}

/// Counts by independent readers.
#[test]
fn a_real_archive() {
    let Some(path) = data("blackbook/blackbook.wat.gz") else {
        return;
    };
    let found = Lab::new()
        .run(&format!("inspect {} --json", path.display()))
        .exits(0)
        .json();
    assert_eq!(found["statuses"]["404"], 40);
    assert_eq!(found["statuses"]["301"], 2);
    assert_eq!(found["statuses"]["302"], 5);
    // Heritrix's own metadata records, and its requests, are not crawl records.
    assert_eq!(
        (&found["other"]["metadata"], &found["other"]["request"]),
        (&json!(261), &json!(261))
    );
}
