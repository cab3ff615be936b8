//! Records pushed one by one give the same store and rankings as an ingest of these records, wherever checkpoints fall
//! and the process dies.

use crate::folder::in_memory;

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cashrank::{Error, Options, Writer};
use cashrank_crawl::batch::What;
use cashrank_crawl::decode::{Link, Record};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;
use serde_json::json;

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Fetch of a page.
struct Fetch {
    url: String,
    links: Vec<String>,
    time: i64,
    status: i32,
}

/// Returns a crawl of some hundred pages, with repeats, gone pages, failures, odd links and useless records.
fn crawl(records: u64) -> Vec<Fetch> {
    let mut state = 7u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    (0..records)
        .map(|at| Fetch {
            url: match below(50) {
                0 => "no url".to_owned(),
                _ => format!("http://{}.example/{}", below(9), below(60)),
            },
            links: (0..below(12))
                .map(|_| match below(10) {
                    0 => "mailto:x@example.org".to_owned(),
                    1 => format!("../{}", below(60)),
                    _ => format!("http://{}.example/{}#part", below(9), below(60)),
                })
                .collect(),
            time: 1_700_000_000 + at as i64,
            status: [200, 200, 200, 200, 404, 503, 304][below(7) as usize],
        })
        .collect()
}

fn push(writer: &mut Writer, fetch: &Fetch) -> cashrank::Result<What> {
    writer.push(&Record {
        url: Cow::Borrowed(fetch.url.as_bytes()),
        links: fetch
            .links
            .iter()
            .map(|link| Link::to(link.as_bytes()))
            .collect(),
        fetched_at: Some(fetch.time),
        status: Some(fetch.status),
        ..Record::default()
    })
}

/// Ingests the crawl as JSON lines; returns the store.
fn ingested(crawl: &[Fetch], home: &Path) -> std::path::PathBuf {
    let lines: Vec<String> = crawl
        .iter()
        .map(|fetch| {
            let Fetch {
                url,
                links,
                time,
                status,
            } = fetch;
            json!({ "url": url, "links": links, "fetched_at": time, "status": status }).to_string()
        })
        .collect();
    let input = home.join("crawl.jsonl");
    fs::write(&input, lines.join("\n")).unwrap();
    let store = home.join("ingested");
    let job = IngestJob {
        format: Some(Format::Records),
        ..IngestJob::new(&store, vec![InputName::File(input)])
    };
    ingest(&job, Arc::new(RealDisk), &mut Quiet).unwrap();
    store
}

/// Reads the current snapshot's bytes, and the names of all pages.
fn bytes(store: &Path) -> (Vec<u8>, Vec<String>) {
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    snapshot.verify().unwrap();
    let names: cashrank::Result<Vec<String>> = snapshot.names().collect();
    (fs::read(snapshot.path()).unwrap(), names.unwrap())
}

const RECORDS: u64 = 3_000;

#[test]
fn pushed_is_as_ingested() {
    let home = in_memory();
    let crawl = crawl(RECORDS);
    let expected = bytes(&ingested(&crawl, home.path()));
    for every in [usize::MAX, 700, 97] {
        let store = home.path().join(format!("pushed-{every}"));
        let mut writer = Writer::open(&store, &Options::default()).unwrap();
        for (at, fetch) in (1..).zip(&crawl) {
            let what = push(&mut writer, fetch).unwrap();
            let useless = fetch.url == "no url";
            assert_eq!(useless, matches!(what, What::Skipped(_)), "{}", fetch.url);
            if at % every == 0 {
                writer.checkpoint().unwrap();
                assert_eq!(writer.pushed(), at as u64);
            }
        }
        writer.publish().unwrap();
        assert!(bytes(&store) == expected, "a checkpoint every {every}");
    }
}

/// The test runs itself as another process, which dies between two checkpoints.
#[test]
fn a_killed_writer_continues_at_its_last_checkpoint() {
    const CHILD: &str = "CASHRANK_TEST_WRITER";
    let crawl = crawl(RECORDS);
    if let Some(store) = std::env::var_os(CHILD) {
        let mut writer = Writer::open(&store, &Options::default()).unwrap();
        let from = writer.pushed() as usize;
        for (at, fetch) in crawl.iter().enumerate().skip(from) {
            push(&mut writer, fetch).unwrap();
            if at + 1 == from + 400 {
                writer.checkpoint().unwrap();
            }
            if at + 1 == from + 650 {
                std::process::abort();
            }
        }
        writer.publish().unwrap();
        return;
    }
    let home = in_memory();
    let store = home.path().join("store");
    let name = "writer::a_killed_writer_continues_at_its_last_checkpoint";
    let mut runs = 0;
    loop {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, &store)
            .output()
            .unwrap();
        runs += 1;
        if child.status.success() {
            break;
        }
        let writer = Writer::open(&store, &Options::default()).unwrap();
        assert_eq!(
            writer.pushed(),
            400 * runs,
            "{}",
            String::from_utf8_lossy(&child.stderr)
        );
    }
    // Each run but the last got 400 records further; a run with fewer than 650 to go ends.
    assert_eq!(runs, (RECORDS - 650) / 400 + 2);
    assert!(bytes(&store) == bytes(&ingested(&crawl, home.path())));
}

#[test]
fn a_full_store_keeps_what_fitted() {
    let home = in_memory();
    let crawl = crawl(RECORDS);
    let store = home.path().join("store");
    let mut options = Options::default();
    options.limits.pages = 300;
    let mut writer = Writer::open(&store, &options).unwrap();
    let ended = crawl
        .iter()
        .find_map(|fetch| push(&mut writer, fetch).err());
    assert!(
        matches!(ended, Some(Error::TooManyPages { limit: 300, .. })),
        "{ended:?}"
    );
    let pushed = writer.pushed();
    assert!(push(&mut writer, &crawl[0]).is_err());
    writer.checkpoint().unwrap();
    drop(writer);
    let mut writer = Writer::open(&store, &Options::of(&store).unwrap()).unwrap();
    assert_eq!(writer.pushed(), pushed);
    for fetch in &crawl[pushed as usize..] {
        push(&mut writer, fetch).unwrap();
    }
    writer.publish().unwrap();
    assert!(bytes(&store) == bytes(&ingested(&crawl, home.path())));
}

#[test]
fn one_writer_with_one_kind_of_settings() {
    let home = in_memory();
    let store = home.path().join("store");
    let mut options = Options::default();
    options.config.set_damping(0.5).unwrap();
    let writer = Writer::open(&store, &options).unwrap();
    assert!(matches!(
        Writer::open(&store, &options),
        Err(Error::Busy { .. })
    ));
    drop(writer);
    assert_eq!(Options::of(&store).unwrap().config, options.config);
    let mut writer = Writer::open(&store, &options).unwrap();
    push(&mut writer, &crawl(1)[0]).unwrap();
    writer.checkpoint().unwrap();
    drop(writer);
    assert!(Writer::open(&store, &Options::default()).is_err());
}

/// After a finished ingest records can be pushed, and after pushed records files can be ingested.
#[test]
fn pushes_and_ingests_follow_each_other() {
    let home = in_memory();
    let crawl = crawl(RECORDS);
    let (one, two) = crawl.split_at(1_234);
    let store = ingested(one, home.path());
    let mut writer = Writer::open(&store, &Options::default()).unwrap();
    assert_eq!(writer.pushed(), 1_234);
    for fetch in two {
        push(&mut writer, fetch).unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    let other = in_memory();
    assert!(bytes(&store) == bytes(&ingested(&crawl, other.path())));

    let fresh = other.path().join("fresh");
    fs::create_dir(&fresh).unwrap();
    let store = fresh.join("ingested");
    let mut writer = Writer::open(&store, &Options::default()).unwrap();
    for fetch in one {
        push(&mut writer, fetch).unwrap();
    }
    writer.checkpoint().unwrap();
    drop(writer);
    ingested(two, &fresh);
    assert!(bytes(&store) == bytes(&ingested(&crawl, in_memory().path())));
}
