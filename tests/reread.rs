//! Files that are read again (`--repeat` without kept links) and change in the meantime: this is noticed before
//! anything of the change becomes durable.

use crate::crawl;
use crate::folder::in_memory;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::Error;
use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_store::store::rows::KeepRows;
use cashrank_store::store::{RealDisk, open_view};
use crawl::crawl;

const RECORDS: u64 = 300;

fn job(input: &Path, store: PathBuf) -> IngestJob {
    IngestJob {
        format: Some(cashrank_crawl::formats::Format::Records),
        repeat: 3,
        keep_links: KeepRows::None,
        checkpoint_every: Every::Records(20),
        threads: 2,
        ..IngestJob::new(store, vec![InputName::File(input.into())])
    }
}

/// Observer that does something to the file at the first checkpoint in the middle of pass 2.
struct Meddler<F: FnMut()> {
    meddle: F,
    meddled: bool,
    /// Number of checkpoints after that.
    after: u64,
}

impl<F: FnMut()> Observer for Meddler<F> {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::Checkpoint { records, .. } = note {
            self.after += u64::from(self.meddled);
            // Less than a third of the records are skipped.
            if records > RECORDS + RECORDS / 3 && !self.meddled {
                (self.meddle)();
                self.meddled = true;
            }
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

fn run(job: &IngestJob, observer: &mut dyn Observer) -> cashrank::Result<IngestOutcome> {
    ingest(job, Arc::new(RealDisk), observer)
}

fn snapshot(outcome: &IngestOutcome) -> Vec<u8> {
    std::fs::read(&outcome.snapshot.as_ref().unwrap().0).unwrap()
}

/// Regression: the change was noticed only at the file's end, after checkpoints that held part of it, and the store was
/// unusable.
#[test]
fn a_change_in_a_later_pass_is_noticed_before_a_checkpoint_holds_it() {
    let lab = in_memory();
    let input = lab.path().join("in");
    let text = crawl(91, RECORDS).concat();
    let other = text.replacen("h1.example", "h2.example", 1);
    assert_ne!(text, other);
    std::fs::write(&input, &text).unwrap();
    let whole = run(&job(&input, lab.path().join("whole")), &mut Quiet).unwrap();
    let aside = lab.path().join("aside");
    let changes: [(&str, &dyn Fn()); 4] = [
        ("changed", &|| std::fs::write(&input, &other).unwrap()),
        ("shorter", &|| {
            std::fs::write(&input, &text[..9_000]).unwrap()
        }),
        ("longer", &|| {
            std::fs::write(&input, text.repeat(2)).unwrap()
        }),
        ("replaced", &|| {
            std::fs::write(&aside, &other).unwrap();
            std::fs::rename(&aside, &input).unwrap();
        }),
    ];
    for (name, meddle) in changes {
        std::fs::write(&input, &text).unwrap();
        let job = job(&input, lab.path().join(name));
        let mut meddler = Meddler {
            meddle,
            meddled: false,
            after: 0,
        };
        match run(&job, &mut meddler) {
            Err(Error::InputChanged(what)) => {
                assert!(what.contains("changed since pass 1"), "{what}")
            }
            other => panic!("{name}: {other:?}"),
        }
        assert!(meddler.meddled && meddler.after == 0, "{name}");
        open_view(&RealDisk, &job.store).unwrap().verify().unwrap();
        // With the original file, the same command continues.
        std::fs::write(&input, &text).unwrap();
        let done = run(&job, &mut Quiet).unwrap();
        assert_eq!(snapshot(&done), snapshot(&whole), "{name}");
    }
}

#[test]
fn touching_a_file_is_no_change() {
    let lab = in_memory();
    let input = lab.path().join("in");
    let text = crawl(92, RECORDS).concat();
    std::fs::write(&input, &text).unwrap();
    let whole = run(&job(&input, lab.path().join("whole")), &mut Quiet).unwrap();
    let mut meddler = Meddler {
        meddle: || std::fs::write(&input, &text).unwrap(),
        meddled: false,
        after: 0,
    };
    let done = run(&job(&input, lab.path().join("touched")), &mut meddler).unwrap();
    assert!(meddler.after > 10, "{}", meddler.after);
    assert_eq!(snapshot(&done), snapshot(&whole));
}

/// Observer that does something when pass 3 has begun.
struct AtPass3<F: FnMut()>(F, bool);

impl<F: FnMut()> Observer for AtPass3<F> {
    fn note(&mut self, _: IngestEvent<'_>) {}

    fn progress(&mut self, standing: &ProgressReport<'_>) {
        if standing.pass == 3 && !self.1 {
            self.1 = true;
            (self.0)();
        }
    }
}

/// If the file is missing, or no longer a file, nothing may become durable: the store would be unusable.
#[test]
fn a_file_to_reread_must_exist() {
    let dir = in_memory();
    let (input, aside) = (dir.path().join("in.jsonl"), dir.path().join("aside"));
    std::fs::write(&input, crawl(36, RECORDS).concat()).unwrap();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change; 3] = [
        ("gone", &|_| {}),
        ("directory", &|input| std::fs::create_dir(input).unwrap()),
        ("other", &|input| std::fs::write(input, "{}").unwrap()),
    ];
    for every in [Every::Never, Every::Records(20)] {
        for (name, change) in &changes {
            let job = IngestJob {
                repeat: 5,
                checkpoint_every: every,
                ..job(&input, dir.path().join(format!("{name}{every:?}")))
            };
            let meddle = || {
                std::fs::rename(&input, &aside).unwrap();
                change(&input);
            };
            let mut meddler = AtPass3(meddle, false);
            let result = run(&job, &mut meddler);
            assert!(meddler.1, "{name}");
            match result {
                Err(Error::InputChanged(what)) => {
                    assert!(what.contains("changed since pass 1"), "{what}")
                }
                Err(Error::Io { path, .. }) => assert!(path == input && *name != "other"),
                other => panic!("{name}: {other:?}"),
            }
            if *name == "directory" {
                std::fs::remove_dir(&input).unwrap();
            }
            std::fs::rename(&aside, &input).unwrap();
            // With the original file, the same command continues.
            run(&job, &mut Quiet).unwrap();
        }
    }
}
