//! Files that are read again (`--repeat`) and change meanwhile: that is noticed before anything of
//! the change is made durable.

use crate::crawl;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::Error;
use cashrank::ingest::{Every, Job, Note, Observer, Outcome, Standing, ingest};
use cashrank::source::InputName;
use cashrank::store::{RealDisk, open_view};
use crawl::crawl;

const RECORDS: u64 = 300;

fn job(input: &Path, store: PathBuf) -> Job {
    Job {
        format: Some(cashrank::formats::Format::Records),
        repeat: 3,
        checkpoint_every: Every::Records(20),
        threads: 2,
        ..Job::new(store, vec![InputName::File(input.into())])
    }
}

/// Does something to the file at the first checkpoint in the middle of pass 2.
struct Meddler<F: FnMut()> {
    meddle: F,
    meddled: bool,
    /// Checkpoints after that.
    after: u64,
}

impl<F: FnMut()> Observer for Meddler<F> {
    fn note(&mut self, note: Note<'_>) {
        if let Note::Checkpoint { records, .. } = note {
            self.after += u64::from(self.meddled);
            // Less than a third of the records are skipped.
            if records > RECORDS + RECORDS / 3 && !self.meddled {
                (self.meddle)();
                self.meddled = true;
            }
        }
    }

    fn progress(&mut self, _: &Standing<'_>) {}
}

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: Note<'_>) {}
    fn progress(&mut self, _: &Standing<'_>) {}
}

fn run(job: &Job, observer: &mut dyn Observer) -> cashrank::Result<Outcome> {
    ingest(job, Arc::new(RealDisk), observer)
}

fn snapshot(outcome: &Outcome) -> Vec<u8> {
    std::fs::read(&outcome.snapshot.as_ref().unwrap().0).unwrap()
}

/// The change used to be noticed at the file's end only, behind checkpoints that held a part of it:
/// the store was of no further use.
#[test]
fn a_change_in_a_later_pass_is_noticed_before_a_checkpoint_holds_it() {
    let lab = tempfile::tempdir().unwrap();
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
        // Put back, the same command goes on.
        std::fs::write(&input, &text).unwrap();
        let done = run(&job, &mut Quiet).unwrap();
        assert_eq!(snapshot(&done), snapshot(&whole), "{name}");
    }
}

#[test]
fn touching_a_file_is_no_change() {
    let lab = tempfile::tempdir().unwrap();
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
