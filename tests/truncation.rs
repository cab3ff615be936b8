//! An input cut at every byte, and then the whole: the store ends with the bytes of a run that was never cut.

use crate::crawl;
use crate::folder::in_memory;
use crate::pack;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::{Error, Limits};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Config;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_store::store::{RealDisk, Settings, open_view};
use crawl::crawl;
use pack::{gzip, zstandard};

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

fn run(input: &Path, store: PathBuf) -> cashrank::Result<IngestOutcome> {
    let limits = Limits {
        // Little address space for each of many stores.
        pages: 1 << 12,
        ..Limits::default()
    };
    let job = IngestJob {
        settings: Settings::new(Config::default(), &limits),
        format: Some(Format::Records),
        checkpoint_every: Every::Records(2),
        limits,
        ..IngestJob::new(store, vec![InputName::File(input.into())])
    };
    ingest(&job, Arc::new(RealDisk), &mut Quiet)
}

fn snapshot(store: &Path) -> Vec<u8> {
    let folder = store.join("snapshots");
    let latest = std::fs::read(folder.join("latest.json")).unwrap();
    let latest: serde_json::Value = serde_json::from_slice(&latest).unwrap();
    std::fs::read(folder.join(latest["snapshot"].as_str().unwrap())).unwrap()
}

fn cut_at_every_byte(name: &str, pack: fn(&[u8]) -> Vec<u8>) {
    let lab = in_memory();
    let input = lab.path().join(name);
    let records = crawl(95, 8);
    let parts = [records[..5].concat(), records[5..].concat()].map(|part| pack(part.as_bytes()));
    let whole = parts.concat();
    std::fs::write(&input, &whole).unwrap();
    run(&input, lab.path().join("whole")).unwrap();
    let expected = snapshot(&lab.path().join("whole"));
    let mut counts = HashSet::new();
    for cut in 0..whole.len() {
        let store = lab.path().join("cut");
        std::fs::write(&input, &whole[..cut]).unwrap();
        match run(&input, store.clone()) {
            // Between two members nothing is missing. (An empty input is not damage either; a single byte does not show
            // its compression.)
            Ok(_) if cut == parts[0].len() || cut < 4 => {}
            Err(Error::Corrupt { .. }) => {}
            other => panic!("{name} cut at {cut}: {other:?}"),
        }
        let view = open_view(&RealDisk, &store).unwrap();
        view.verify().unwrap();
        drop(view);
        std::fs::write(&input, &whole).unwrap();
        let done = match run(&input, store.clone()) {
            Ok(done) => done,
            // A file that was read to its end is not continued under its old name: it has grown.
            Err(Error::InputChanged(what)) if cut == parts[0].len() || cut < 4 => {
                assert!(
                    what.contains("has grown") || what.contains("ends at byte"),
                    "{what}"
                );
                std::fs::remove_dir_all(&store).unwrap();
                continue;
            }
            other => panic!("{name} cut at {cut}, then whole: {other:?}"),
        };
        counts.insert(done.before.records);
        assert!(snapshot(&store) == expected, "{name} cut at {cut}");
        std::fs::remove_dir_all(&store).unwrap();
    }
    // It continued from many positions.
    assert!(counts.len() >= 2, "{counts:?}");
}

#[test]
fn gzip_cut_at_every_byte() {
    cut_at_every_byte("two.gz", gzip);
}

#[test]
fn zstd_cut_at_every_byte() {
    cut_at_every_byte("two.zst", zstandard);
}
