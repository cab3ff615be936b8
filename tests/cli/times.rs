//! An unreadable time costs a record its time, and nothing else.
//!
//! Whole crawls have impossible dates (`WARC-Date: 2008-10-294T05:21:46-0700`), and all their records used to be
//! skipped. The expected ranking is that of the same records without times.

use serde_json::{Value, json};

use crate::support::Lab;

/// Returns a WARC response with this date.
fn response(url: &str, date: &str, link: &str) -> String {
    let block =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"{link}\">x</a>");
    format!(
        "WARC/0.18\nWARC-Type: response\nWARC-Target-URI: {url}\n{date}Content-Type: application/http; msgtype=response\n\
         Content-Length: {}\n\n{block}\n\n",
        block.len()
    )
}

fn warc(date: &str) -> String {
    let pages = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ];
    (0..9)
        .map(|at| response(pages[at % 3], date, pages[(at * 2 + 1) % 3]))
        .collect()
}

/// Returns the pages of a store, without the times.
fn pages(lab: &Lab, store: &str) -> Vec<Value> {
    let lines = lab
        .run(&format!("export --to jsonl --store {store}"))
        .exits(0);
    let mut pages: Vec<Value> = lines
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for page in &mut pages {
        page.as_object_mut().unwrap().remove("last_fetch");
    }
    pages
}

#[test]
fn records_without_a_readable_time_count() {
    let lab = Lab::new();
    lab.file("none.warc", warc(""));
    lab.run("ingest none.warc --store none").exits(0);
    let expected = pages(&lab, "none");
    for (name, date) in [("soon", "soon"), ("day", "2008-02-30T05:21:46Z")] {
        lab.file("in.warc", warc(&format!("WARC-Date: {date}\n")));
        let detail = format!("{date:?} is not a time");
        let done = lab
            .run(&format!("ingest in.warc --store {name} --json"))
            .exits(0)
            .says(&["record 1 at byte 0 used without its time", &detail]);
        let first = json!({"input": "in.warc", "record": 1, "byte": 0, "detail": detail});
        let remarks = json!({"bad-time": {"count": 9, "first": first}});
        assert_eq!(done.json()["remarks"], remarks);
        assert_eq!(done.json()["skipped"], json!({}));
        assert_eq!(done.json()["records"], 9);
        // Each of the first five is reported as it is read.
        assert_eq!(done.err.matches("used without its time").count(), 5);
        assert_eq!(pages(&lab, name), expected, "{date}");
        // At the end there is a summary for people, even with `--quiet`.
        lab.run(&format!(
            "ingest in.warc --store {name}-quiet --quiet --repeat 3"
        ))
        .exits(0)
        .says(&["9 records (bad-time); the first is record 1 of in.warc, at byte 0"]);
        let _ = std::fs::remove_file(lab.path("in.jsonl.zst"));
        let done = lab.run("convert in.warc -o in.jsonl.zst --json").exits(0);
        assert_eq!(done.json()["remarks"], remarks);
        lab.run(&format!("ingest in.jsonl.zst --store {name}-converted"))
            .exits(0);
        assert!(lab.snapshot(&format!("{name}-converted")) == lab.snapshot(name));
        let seen = lab.run("inspect in.warc --json").exits(0).json();
        assert_eq!(seen["remarks"]["bad-time"]["count"], 9);
        let place = json!({"record": 1, "byte": 0, "detail": detail});
        assert_eq!(seen["remarks"]["bad-time"]["first"][0], place);
        assert_eq!(seen["times"]["none"], 9);
        // Only an unusable record ends a run.
        lab.run(&format!("ingest in.warc --store {name}-strict --strict"))
            .exits(0);
    }
}

/// `date -u -d '2008-01-01 05:21:46 -0700 +293 days'`: 2008-10-20, 12:21:46 UTC.
#[test]
fn days_of_the_year_are_read() {
    let lab = Lab::new();
    lab.file("in.warc", warc("WARC-Date: 2008-10-294T05:21:46-0700\n"));
    let done = lab.run("ingest in.warc --store s --json").exits(0);
    assert_eq!(done.json()["remarks"], json!({}));
    let seen = lab.run("inspect in.warc --json").exits(0).json();
    assert_eq!(seen["times"]["earliest"], "2008-10-20T12:21:46Z");
    assert_eq!(seen["times"]["none"], 0);
}

/// A window in fetch time treats such a record like one without a time: it counts at the time before. Clock and ranking
/// are those of the same records without `fetched_at`.
#[test]
fn a_window_takes_them_as_records_without_times() {
    let lab = Lab::new();
    let records = |odd: &str| -> String {
        (0..600)
            .map(|n| {
                let time = match n % 4 {
                    1 => odd.to_owned(),
                    _ => format!("\"fetched_at\":{},", 1_400_000_000 + n * 5_000),
                };
                format!(
                    "{{{time}\"url\":\"http://a.example/{}\",\"links\":[\"/{}\",\"/{}\"]}}\n",
                    n % 40,
                    n * 7 % 40,
                    n * 3 % 37
                )
            })
            .collect()
    };
    lab.file(
        "odd.jsonl",
        records("\"fetched_at\":\"2014-02-30T00:00:00Z\","),
    );
    lab.file("none.jsonl", records(""));
    for window in [
        "fixed:3d",
        "fixed:3d,min=2",
        "variable:3",
        "interpolation:3d",
    ] {
        let run = |name: &str| {
            let line = format!("ingest {name}.jsonl --store {name}-{window} --window {window}");
            lab.run(&line).exits(0);
            lab.snapshot(&format!("{name}-{window}"))
        };
        assert!(run("odd") == run("none"), "{window}");
    }
    // A window in fetch time needs some time.
    lab.file(
        "first.jsonl",
        "{\"url\":\"http://a.example/\",\"time\":\"soon\",\"links\":[\"/b\"]}\n",
    );
    lab.run("ingest first.jsonl --store first --window fixed:3d")
        .exits(2)
        .says(&["records have no times"]);
}

/// Regression: one record without a time, if it was the first of the store, made a window in fetch time refuse the
/// whole crawl. It counts at the first time: the ranking is that of the same records in which it has that time.
#[test]
fn a_window_takes_them_before_the_first_time() {
    let lab = Lab::new();
    let records = |first: &str| -> String {
        (0..600)
            .map(|n| {
                let time = match n {
                    0..30 => first.to_owned(),
                    _ => format!("\"fetched_at\":{},", 1_400_000_000 + n * 2_000),
                };
                let (a, b) = (n * 7 % 40, n * 3 % 37);
                format!(
                    "{{{time}\"url\":\"http://a.example/{}\",\"links\":[\"/{a}\",\"/{b}\"]}}\n",
                    n % 40
                )
            })
            .collect()
    };
    lab.file("none", records(""));
    lab.file("first", records("\"fetched_at\":1400060000,"));
    for window in [
        "fixed:3d",
        "variable:3",
        "interpolation:3d",
        "interpolation:30d",
    ] {
        let run = |name: &str| {
            let store = format!("{name}-{window}");
            lab.run(&format!("ingest {name} --store {store} --window {window}"))
                .exits(0);
            pages(&lab, &store)
        };
        assert!(run("none") == run("first"), "{window}");
    }
}

/// Every format with times, and what is wrong with the time of one of its records.
#[test]
fn in_every_format() {
    let lab = Lab::new();
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"/b\">x</a>";
    let arc = |date: &str| {
        format!(
            "filedesc://x.arc 0.0.0.0 20080430204825 text/plain 2\n1\n\nhttp://a.example/ 1.2.3.4 {date} text/html {}\n{html}\n",
            html.len()
        )
    };
    let wat = |date: &str| {
        let said = json!({"Envelope": {
            "WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Date": date, "WARC-Target-URI": "http://a.example/"},
            "Payload-Metadata": {"HTTP-Response-Metadata": {
                "Response-Message": {"Status": "200"},
                "HTML-Metadata": {"Links": [{"path": "A@/href", "url": "/b"}]}}}}})
        .to_string();
        format!(
            "WARC/1.0\r\nWARC-Type: metadata\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{said}\r\n\r\n",
            said.len()
        )
    };
    let nutch = |date: &str| {
        format!(
            "Recno:: 0\nURL:: http://a.example/\n\nCrawlDatum::\nVersion: 7\nStatus: 33 (fetch_success)\nFetch time: {date}\n\n\
             ParseData::\nVersion: 5\nStatus: success(1,0)\nTitle: x\nOutlinks: 1\n  outlink: toUrl: http://a.example/b anchor: b\n\n"
        )
    };
    let log = |began: &str| {
        format!(
            "2015-05-22T15:01:10.521Z 200 56 http://a.example/b L http://a.example/ text/html #002 {began} sha1:x - -\n"
        )
    };
    for (format, text) in [
        (
            "records",
            "{\"url\":\"http://a.example/\",\"time\":true,\"links\":[\"/b\"]}\n".to_owned(),
        ),
        (
            "warc",
            response("http://a.example/", "WARC-Date: 2008-10-29\u{e9}\n", "/b"),
        ),
        ("arc", arc("20081329000000")),
        ("arc", arc("2008-13-29T04:21:46Z")),
        ("wat", wat("May 1")),
        ("nutch", nutch("Sat Jan 32 12:00:00 UTC 2026")),
        (
            "csv-links",
            "20081330,http://a.example/,http://a.example/b,x\n".to_owned(),
        ),
        ("crawl-log", log("soon")),
    ] {
        lab.file("in", &text);
        let store = format!("s{}", lab.names().len());
        let done = lab
            .run(&format!(
                "ingest in --format {format} --store {store} --json"
            ))
            .exits(0)
            .json();
        assert_eq!(done["remarks"]["bad-time"]["count"], 1, "{format}: {done}");
        assert_eq!(done["links"], 1, "{format}: {done}");
        assert_eq!(done["pages"], 2, "{format}: {done}");
    }
}

/// Regression: exports of the last day of the year 9999 failed; it is a time like any other.
#[test]
fn the_end_of_the_year_9999_is_exported() {
    let lab = Lab::new();
    let record = |url: &str, time: &str| {
        format!("{{\"url\":\"http://{url}.example/\",\"fetched_at\":\"{time}\"}}\n")
    };
    let times = [("a", "0000-01-01T00:00:00Z"), ("b", "9999-12-31T23:59:59Z")];
    lab.file("log", times.map(|(url, time)| record(url, time)).concat());
    lab.run("ingest log --store s").exits(0);
    for to in ["tsv", "jsonl"] {
        let told = lab.run(&format!("export --to {to} --store s")).exits(0).out;
        for (_, time) in times {
            assert!(told.contains(time), "{to}: {told}");
        }
    }
    lab.run("export --to parquet -o p --store s").exits(0);
    let told = lab
        .run("rank http://b.example/ --json --store s")
        .exits(0)
        .out;
    assert!(told.contains("9999-12-31T23:59:59Z"), "{told}");
}

/// Regression: a ranking of files ended as if records had been skipped if only times were unreadable, and as if none
/// had been if some were.
#[test]
fn ranking_files_tells_them_from_skipped_records() {
    let lab = Lab::new();
    let timeless = "{\"url\":\"http://a.example/\",\"fetched_at\":\"never\"}\n";
    lab.file("timeless", timeless);
    lab.file("skipped", [timeless, "{bad\n"].concat());
    lab.run("compute --until 1e-12 timeless --format records -o t")
        .exits(0)
        .says(&["used without a time, because it cannot be read: 1 record (bad-time)"]);
    lab.run("compute --until 1e-12 skipped --format records -o s")
        .exits(3)
        .says(&["1 record was skipped"]);
}

/// Regression: a clock that was wrong once, or days that were read out of order, changed the times of other pages: a
/// page that failed was not listed again before the year 2100, and pages were never old enough to be fetched again.
#[test]
fn each_page_has_the_time_of_its_own_record() {
    let lab = Lab::new();
    let record = |url: &str, time: &str, rest: &str| {
        format!("{{\"url\":\"http://a.example/{url}\",\"fetched_at\":\"{time}\"{rest}}}\n")
    };
    let links = ",\"links\":[\"/b\",\"/c\"]";
    lab.file(
        "log",
        [
            record("", "2026-11-01T00:00:00Z", links),
            record("x", "2100-01-01T00:00:00Z", links),
            record("d", "2026-11-01T00:00:02Z", links),
            record("b", "2026-11-01T00:00:03Z", ",\"status\":500"),
            record("", "2026-10-01T00:00:00Z", links),
        ]
        .concat(),
    );
    lab.run("ingest log --store s").exits(0);
    let next = |options: &str| {
        let line = format!("next --store s --as-of 2026-11-24T00:00:00Z {options}");
        let mut urls: Vec<String> = lab
            .run(&line)
            .exits(0)
            .out
            .lines()
            .map(String::from)
            .collect();
        urls.sort();
        urls
    };
    assert_eq!(next(""), ["http://a.example/b", "http://a.example/c"]);
    assert_eq!(next("--retry-after 30d"), ["http://a.example/c"]);
    let old = ["http://a.example/", "http://a.example/d"];
    assert_eq!(next("--refetch --older-than 1d"), old);
    assert!(next("--refetch --older-than 30d").is_empty());
    // The later of two fetches counts, in whatever order they were read.
    let known = lab
        .run("rank http://a.example/ --json --store s")
        .exits(0)
        .out;
    assert!(known.contains("2026-11-01T00:00:00Z"), "{known}");
}
