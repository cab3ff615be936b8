//! Golden samples that are cut by a stream's end, and then sent again as a whole, or resumed from the acknowledged
//! byte: the snapshot is that of a stream that was never cut. (`src/crates/crawl/src/pipeline/cuts_tests.rs` cuts at each
//! byte, with decoders and reader alone.)

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cashrank_ingest::ingest::{IngestJob, Stream};

use super::support::{Lab, Pack, Sender, pack, run};

fn again(sender: &Sender, bytes: &[u8]) -> Sender {
    Sender {
        bytes: Arc::new(bytes.to_vec()),
        acked: Arc::new(AtomicU64::new(sender.acked())),
        ..Sender::new(Vec::new())
    }
}

fn resent(lab: &Lab, store: &str, bytes: &[u8]) -> IngestJob {
    let bytes = bytes.to_vec();
    IngestJob {
        spool: None,
        stdin: Arc::new(move || Box::new(std::io::Cursor::new(bytes.clone()))),
        ..spooled(lab, store, &Sender::default())
    }
}

fn spooled(lab: &Lab, store: &str, sender: &Sender) -> IngestJob {
    IngestJob {
        format: None,
        settle: None,
        ..lab.job(store, sender)
    }
}

/// Cuts inside records and their headers, and before the format can be recognised.
#[test]
fn samples_cut_and_resent() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good");
    for (name, cuts) in [
        ("arc.arc", &[5, 60, 100, 300, 700, 1100][..]),
        ("warc.warc", &[3, 60, 200, 700, 3000, 9000]),
        ("wat.wat", &[3, 60, 400, 900, 3000, 9000]),
        ("records.jsonl", &[1, 40, 100, 700, 1500]),
        ("records-array.jsonl", &[1, 2, 40, 41, 150]),
        ("adjacency.tsv", &[1, 3, 10, 30]),
        ("edges.tsv", &[5, 44, 90, 110]),
        ("csv-links.csv", &[3, 30, 250, 300]),
        ("nutch.txt", &[3, 12, 30]),
    ] {
        let bytes = fs::read(samples.join(name)).unwrap();
        for how in [Pack::Plain, Pack::Gzip(500), Pack::Zstd(0)] {
            let lab = Lab::new();
            let whole = pack(&bytes, how);
            run(&resent(&lab, "whole", &whole)).unwrap();
            let expected = lab.snapshot("whole");
            for &cut in cuts {
                let case = format!("{name} {how:?} cut at {cut}");
                let store = format!("resent {cut}");
                let part = &whole[..cut * whole.len() / bytes.len()];
                // A stream of which too little arrived is refused.
                let _ = run(&resent(&lab, &store, part));
                run(&resent(&lab, &store, &whole)).unwrap();
                assert!(lab.snapshot(&store) == expected, "{case}, sent again");
                let store = format!("spooled {cut}");
                let sender = Sender::new(part.to_vec());
                let _ = run(&spooled(&lab, &store, &sender));
                let resumed = IngestJob {
                    stream: Stream::Again,
                    ..spooled(&lab, &store, &again(&sender, &whole))
                };
                run(&resumed).unwrap();
                assert!(lab.snapshot(&store) == expected, "{case}, resumed");
            }
        }
    }
}

/// Captures of one page, each in a member of its own with its request behind it, as Heritrix, warcprox and browsers write them: a
/// cut between the two used to make an answer to GET of the capture. Only the first of a stream is one, before any request.
#[test]
fn a_capture_cut_from_its_request_waits_for_it() {
    let part = |kind: &str, mime: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Date: 2024-05-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/p\r\n\
             Content-Type: {mime}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let wat = |kind: &str, payload: &str| {
        let json = format!(
            r#"{{"Envelope":{{"WARC-Header-Metadata":{{"WARC-Type":"{kind}","WARC-Target-URI":"http://a.example/p"}},"Payload-Metadata":{{"HTTP-{payload}}}}}}}"#
        );
        part("metadata", "application/json", &json)
    };
    let in_warc = |link: &str, method: &str| {
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href={link}>x</a>");
        let request = format!("{method} /p HTTP/1.1\r\n\r\n");
        [
            part("response", "application/http", &answer),
            part("request", "application/http", &request),
        ]
    };
    let in_wat = |link: &str, method: &str| {
        let answer = format!(
            r#"Response-Metadata":{{"Response-Message":{{"Status":"200"}},"HTML-Metadata":{{"Links":[{{"path":"A@/href","url":"{link}"}}]}}}}"#
        );
        let request = format!(r#"Request-Metadata":{{"Request-Message":{{"Method":"{method}"}}}}"#);
        [wat("response", &answer), wat("request", &request)]
    };
    type Exchange<'a> = &'a dyn Fn(&str, &str) -> [String; 2];
    for (format, exchange) in [("warc", &in_warc as Exchange<'_>), ("wat", &in_wat)] {
        let records: Vec<String> = [
            ("/x", "GET"),
            ("/thanks", "POST"),
            ("/y", "GET"),
            ("/z", "POST"),
        ]
        .into_iter()
        .flat_map(|(link, method)| exchange(link, method))
        .collect();
        for how in [Pack::Plain, Pack::Gzip(0)] {
            let lab = Lab::new();
            let parts: Vec<Vec<u8>> = records
                .iter()
                .map(|record| pack(record.as_bytes(), how))
                .collect();
            let whole = parts.concat();
            run(&resent(&lab, "whole", &whole)).unwrap();
            let expected = lab.snapshot("whole");
            // A stream without the last request: sent as a whole, resumed for that capture alone, and continued.
            let ends: Vec<usize> = (1..=parts.len())
                .map(|count| parts[..count].concat().len())
                .collect();
            let trailing = if matches!(how, Pack::Plain) { 4 } else { 0 };
            for cuts in [
                vec![ends[2]],
                vec![ends[1], ends[2] - trailing],
                vec![ends[3], ends[4], ends[6]],
            ] {
                let case = format!("{format} {how:?} cut at {cuts:?} of {ends:?}");
                let store = format!("resent {cuts:?}");
                for &cut in &cuts {
                    run(&resent(&lab, &store, &whole[..cut])).unwrap();
                }
                run(&resent(&lab, &store, &whole)).unwrap();
                assert!(lab.snapshot(&store) == expected, "{case}, sent again");
                let store = format!("spooled {cuts:?}");
                let mut sender = Sender::new(Vec::new());
                for &cut in cuts.iter().chain([&whole.len()]) {
                    sender = again(&sender, &whole[..cut]);
                    let job = IngestJob {
                        stream: if cut == cuts[0] {
                            Stream::Auto
                        } else {
                            Stream::Again
                        },
                        ..spooled(&lab, &store, &sender)
                    };
                    run(&job).unwrap();
                }
                assert!(lab.snapshot(&store) == expected, "{case}, resumed");
            }
            // Without requests every capture counts, also the last.
            let alone: Vec<u8> = parts.iter().step_by(2).flatten().copied().collect();
            let done = run(&resent(&lab, "alone", &alone)).unwrap();
            assert_eq!(done.counters.records, 4, "{format} {how:?}");
        }
    }
}
