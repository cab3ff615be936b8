//! A store, and a copy of it that diverged: the copy's index on disk has the store's name and length, but leads to
//! other pages. With it in place of its own index, a run reports that, and ends with the bytes of an undisturbed run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank_graph::engine::Config;
use cashrank_ingest::ingest::{IngestEvent, InjectedFault, Observer, ProgressReport, ingest};

use crate::crawl::Dice;
use crate::disk::{SimDisk, Survival};
use crate::scenario::{STORE, bytes, current, job};
use crate::tally::{Tally, spread};

/// Tries a number of stores with their copies' indexes.
pub fn campaign(dir: &Path, seed: u64, runs: u64, fault: Option<InjectedFault>) -> Tally {
    spread(runs, |run| {
        let mut tally = Tally::default();
        let mut dice = Dice::numbered(seed, run);
        let result = one(dir, &mut dice, fault);
        tally.faults += 1;
        tally.survivors += u64::from(result.is_ok());
        tally.judge(result, || format!("--seed {seed}, copy {run}"));
        tally
    })
}

fn one(dir: &Path, dice: &mut Dice, fault: Option<InjectedFault>) -> Result<(), String> {
    let name = dice.roll(1 << 40);
    let own = 17_000 + dice.roll(4_000);
    let more = 1_000 + dice.roll(4_000);
    let page = |host: &str, number: u64| format!("http://{host}.example/{number}");
    let links = |host: &str, count| (0..count).map(|number| page(host, number)).collect();
    let write = |host: &str, links: Vec<String>| {
        let path = dir.join(format!("{name:x}-{host}.jsonl"));
        let record = serde_json::json!({"url": page(host, 0), "links": links});
        std::fs::write(&path, record.to_string() + "\n")
            .map(|()| path)
            .map_err(|error| error.to_string())
    };
    let begun = write("begun", links("begun", own))?;
    let store = write("store", links("store", more))?;
    let copy = write("copy", links("copy", more))?;
    // Both stores have pages of these names under the same numbers, or would have.
    let mut all: Vec<String> = links("store", more);
    all.extend(links("copy", more));
    let last = write("last", all)?;

    let disk = SimDisk::new(0);
    run(&disk, begun, None)?;
    let other = disk.cut(Survival::Everything, 0);
    run(&disk, store, None)?;
    run(&other, copy, None)?;
    let undisturbed = disk.cut(Survival::Everything, 0);
    run(&undisturbed, last.clone(), None)?;

    let index = Path::new(STORE).join("index");
    let foreign = other.content(&index).map_err(|error| error.to_string())?;
    disk.put(&index, foreign)
        .map_err(|error| error.to_string())?;
    let told = run(&disk, last, fault)?;
    if ranking(&disk)? != ranking(&undisturbed)? {
        return Err(format!(
            "with the index of a copy the ranking is another; told: {told:?}"
        ));
    }
    match told {
        Some(told) if told.contains("/index") => Ok(()),
        told => Err(format!(
            "the index of a copy is not told by its name: {told:?}"
        )),
    }
}

/// Reads a file into the store. Returns the warning about its index.
fn run(
    disk: &SimDisk,
    file: PathBuf,
    fault: Option<InjectedFault>,
) -> Result<Option<String>, String> {
    let mut job = job(vec![file], Config::default());
    job.limits.pages = 1 << 16;
    job.fault = fault;
    let mut told = Told(None);
    ingest(&job, Arc::new(disk.clone()), &mut told).map_err(|error| error.to_string())?;
    Ok(told.0)
}

/// Reads the current ranking of the store.
fn ranking(disk: &SimDisk) -> Result<Vec<u8>, String> {
    let name = current(disk)?.ok_or("nothing is published")?;
    bytes(disk, &Path::new(STORE).join("snapshots").join(name))
}

/// Warning about the index.
struct Told(Option<String>);

impl Observer for Told {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::Rebuilt { damage } = note {
            self.0 = Some(damage.to_string());
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}
