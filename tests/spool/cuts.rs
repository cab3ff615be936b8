//! Golden samples that are cut by a stream's end, and then sent again as a whole, or resumed from the acknowledged
//! byte: the snapshot is that of a stream that was never cut. (`src/crates/crawl/src/pipeline/cuts.rs` cuts at each
//! byte, with decoders and reader alone.)

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cashrank_ingest::ingest::{IngestJob, StandardInput, Stream};

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
        stdin: StandardInput::new(move || Box::new(std::io::Cursor::new(bytes.clone()))),
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
fn samples_cut_and_sent_again() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good");
    for (name, cuts) in [
        ("arc.arc", &[5, 60, 100, 300, 700, 1100][..]),
        ("warc.warc", &[3, 60, 200, 700, 3000, 9000]),
        ("wat.wat", &[3, 60, 400, 900, 3000, 9000]),
        ("records.jsonl", &[1, 40, 100, 700, 1500]),
        ("json.json", &[1, 20, 100, 300]),
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
                let cut = cut * whole.len() / bytes.len();
                let store = format!("resent {cut}");
                // A stream of which too little arrived is refused.
                let _ = run(&resent(&lab, &store, &whole[..cut]));
                run(&resent(&lab, &store, &whole)).unwrap();
                assert!(lab.snapshot(&store) == expected, "{case}, sent again");
                let store = format!("spooled {cut}");
                let sender = Sender::new(whole[..cut].to_vec());
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
