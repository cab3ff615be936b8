//! Fuzz target of a whole store of which one file is damaged.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::batch::{Builder, HashKey, Rules};
use crate::engine::{Config, EngineState};
use crate::formats::Format;
use crate::fuzz::dice::Bytes;
use crate::fuzz::memory::Memory;
use crate::model::Limits;
use crate::session::{Options, Writer};
use crate::snapshot::{KeepSnapshots, SettleSettings, Snapshot, SnapshotPage, publish};
use crate::store::folder::create;
use crate::store::rows::KeepRows;
use crate::store::{
    Disk, InputProgress, Settings, StoreWriter, VerifyReport, checkpoint, open_view, settings_of,
};
use crate::{Error, Result};

const DIR: &str = "store";

/// Sample store and its true contents.
struct Sample {
    disk: Memory,
    files: Vec<PathBuf>,
    truth: StoreContents,
}

/// Contents of a store as users see them.
#[derive(Debug, Default)]
struct StoreContents {
    settings: Option<Settings>,
    report: Option<VerifyReport>,
    state: Option<(EngineState, u64, InputProgress)>,
    /// The published ranking, and the one that the history gives.
    snapshot: Option<Ranking>,
    window: Option<Ranking>,
}

/// Pages with their names, and the certified bound.
type Ranking = (Vec<(String, SnapshotPage)>, Option<f64>);

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| match sample() {
    Ok(sample) => sample,
    Err(error) => panic!("{error}"),
});

const KEY: HashKey = HashKey([1, 2]);

const RECORDS: &[u8] =
    br#"{"url":"http://a.example/","links":["/1","/2","http://b.example/"],"fetched_at":100}
{"url":"http://b.example/","links":["http://a.example/"],"fetched_at":200}
{"url":"http://a.example/1","status":404}
"#;

fn limits() -> Limits {
    Limits {
        pages: 1000,
        ..Limits::default()
    }
}

/// Creates a small crawl with some rounds, two checkpoints and a snapshot; nothing in it is random.
fn sample() -> Result<Sample> {
    let disk = Arc::new(Memory::default());
    let dir = Path::new(DIR);
    let settings = Settings::new(Config::default(), &limits());
    disk.create_dir(dir).map_err(Error::io(dir, "create"))?;
    create(&*disk, dir, &settings, KEY)?;
    let mut engine = StoreWriter::open(
        disk.clone(),
        dir,
        &settings,
        &limits(),
        KeepRows::Usual(1 << 30),
        false,
    )?;
    let rules = Rules {
        limits: limits(),
        self_links: settings.config.self_links,
        key: KEY,
        input: Default::default(),
        follow: Default::default(),
    };
    let decoder = Format::Records.decoder();
    for pass in 0..6 {
        engine.begin_pass()?;
        let mut batches = Vec::new();
        Builder::new(rules.clone(), decoder.names()).run(decoder, RECORDS, |batch, _| {
            batches.push(batch);
            None
        });
        for batch in &batches {
            engine.begin_batch();
            for at in 0..batch.entries.len() {
                engine.apply_entry(batch, at)?;
            }
        }
        if pass % 3 == 2 {
            checkpoint(&mut engine, &InputProgress::default())?;
        }
    }
    let (view, settle) = (engine.storage().view()?, SettleSettings::until(1e-3));
    publish(&*disk, &view, KeepSnapshots::ALL, Some(&settle))?;
    drop(view);
    drop(engine);
    Ok(Sample::of(&disk))
}

impl Sample {
    fn of(disk: &Memory) -> Sample {
        let found = read_all(&disk.copy());
        assert!(found.failed.is_empty(), "{:?}", found.failed);
        Sample {
            files: disk.paths(),
            disk: disk.copy(),
            truth: found.found,
        }
    }
}

struct ReadOutcome {
    found: StoreContents,
    failed: Vec<Error>,
}

impl ReadOutcome {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failed.push(error)).ok()
    }
}

/// Does all that users of a store do, the writer last.
fn read_all(disk: &Memory) -> ReadOutcome {
    let dir = Path::new(DIR);
    let mut outcome = ReadOutcome {
        found: StoreContents::default(),
        failed: Vec::new(),
    };
    let settings = outcome.note(settings_of(disk, dir)).flatten();
    let snapshot = outcome.note(read_snapshot(disk));
    let mut is_rotten = false;
    let report = outcome.note(verify(disk, &mut is_rotten));
    // redb writes when it is closed, which may abort the process on damaged pages: see the fence.
    let settings_if_sound = settings.as_ref().filter(|_| !is_rotten);
    let copy = Arc::new(disk.copy());
    let opened = settings_if_sound.and_then(|settings| {
        let options = Options {
            limits: limits(),
            keep_links: KeepRows::Usual(1 << 30),
            ..Options::default()
        };
        let opened = Writer::open_for_inputs(copy.clone(), dir, settings, options, false);
        outcome.note(opened)
    });
    let window = opened.as_ref().and_then(|opened| {
        let published = from_window(&copy, opened);
        outcome.note(published)
    });
    let state = opened.map(|opened| {
        (
            opened.engine.state(),
            opened.pages(),
            opened.storage().manifest.progress.clone(),
        )
    });
    outcome.found = StoreContents {
        settings,
        report,
        state,
        snapshot,
        window,
    };
    outcome
}

/// Returns the ranking that the history of an open store gives.
fn from_window(disk: &Memory, writer: &Writer) -> Result<Ranking> {
    publish(disk, &writer.view()?, KeepSnapshots::ALL, None)?;
    read_snapshot(disk)
}

fn read_snapshot(disk: &dyn Disk) -> Result<Ranking> {
    let snapshot = Snapshot::latest(disk, Path::new(DIR))?;
    snapshot.verify()?;
    let pages = snapshot.pages().zip(snapshot.names());
    let pages = pages.map(|(page, name)| Ok((name?, page?)));
    Ok((pages.collect::<Result<_>>()?, snapshot.bound_l1()))
}

/// Verifies the store; sets `is_rotten` if redb's pages are damaged.
fn verify(disk: &dyn Disk, is_rotten: &mut bool) -> Result<VerifyReport> {
    let view = open_view(disk, Path::new(DIR))?;
    let report = view.verify();
    let pages = view.check_database();
    *is_rotten = pages.is_err();
    pages.and(report)
}

/// Checks that a damaged store gives true answers or none. Input: the file, the change (0: replace it by the rest; 1:
/// cut it; else: change parts of it), then the details.
pub fn store(data: &[u8]) {
    let mut bytes = Bytes(data);
    let [file, what] = bytes.array();
    let sample = &*SAMPLE;
    let disk = sample.disk.copy();
    let path = &sample.files[usize::from(file) % sample.files.len()];
    match what {
        0 => disk.put(path, bytes.0),
        1 => {
            let place = bytes.u64();
            change(&disk, path, |file, len| file.set_len(place % (len + 1)));
        }
        _ => {
            while !bytes.0.is_empty() {
                let place = bytes.u64() >> 24;
                let count = bytes.byte();
                let part = bytes.take(usize::from(count % 32) + 1);
                change(&disk, path, |file, len| {
                    let place = place % len.max(1);
                    let part = &part[..part.len().min((len - place) as usize)];
                    file.write_at(part, place)
                });
            }
        }
    }
    let ReadOutcome { found, .. } = read_all(&disk);
    let truth = &sample.truth;
    assert!(found.settings.is_none() || found.settings == truth.settings);
    assert!(found.report.is_none() || found.report == truth.report);
    assert!(found.state.is_none() || found.state == truth.state);
    assert!(found.snapshot.is_none() || found.snapshot == truth.snapshot);
    assert!(found.window.is_none() || found.window == truth.window);
}

fn change(
    disk: &Memory,
    path: &Path,
    how: impl FnOnce(&dyn crate::store::DiskFile, u64) -> std::io::Result<()>,
) {
    let changed = disk.open(path, false).and_then(|file| {
        let len = file.size()?;
        how(&*file, len)
    });
    assert!(changed.is_ok(), "{changed:?}");
}
