//! Clocks that are set, by an hour back or forth, while a stream is ingested: snapshots by time continue, and the last
//! one is that of a run with an undisturbed clock. `libfaketime` sets the clock for the program alone; without it the
//! part is skipped.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::binary::{Binary, Feed, snapshot};
use crate::crawl::{Dice, crawl};
use crate::tally::{Tally, as_text, spread};

/// Number of records of a stream, and the time between two.
const RECORDS: u64 = 300;
const PACE: Duration = Duration::from_millis(5);
/// Maximum wait for a snapshot by time, in multiples of `PACE`.
const PATIENCE: u64 = 600;

/// Clocks of the program that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The wall clock.
    Wall,
    /// All clocks, as if the program measured time by the wall clock.
    All,
}

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    found.find(|path| path.exists())
}

/// Returns whether clocks can be set here.
pub fn is_possible() -> bool {
    library().is_some()
}

/// Runs the campaign over a number of streams.
pub fn campaign(
    binary: &Binary,
    lab: &Path,
    seed: u64,
    runs: u64,
    set: Set,
) -> Result<Tally, String> {
    let Some(library) = library() else {
        eprintln!("SKIPPED: clocks: libfaketime is not installed");
        return Ok(Tally::default());
    };
    let lab = tempfile::tempdir_in(lab).map_err(as_text)?;
    Ok(spread(runs, |run| {
        let mut tally = Tally::default();
        let mut dice = Dice::numbered(seed, run);
        let dir = lab.path().join(format!("run-{run}"));
        let result = one(binary, &library, &dir, &mut dice, set);
        tally.faults += 1;
        let story = || format!("--seed {seed}, run {run}");
        tally.survivors += u64::from(tally.judge(result, story));
        tally
    }))
}

/// Sets the clock of a program that reads it from this file.
fn set_clock(file: &Path, seconds: i64) -> std::io::Result<()> {
    let aside = file.with_extension("aside");
    fs::write(&aside, format!("{seconds:+}\n"))?;
    fs::rename(aside, file)
}

/// Returns the file name of the newest snapshot.
fn newest(store: &Path) -> Option<String> {
    let names = fs::read_dir(store.join("snapshots")).ok()?.flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".snapshot")).max()
}

fn one(
    binary: &Binary,
    library: &Path,
    dir: &Path,
    dice: &mut Dice,
    set: Set,
) -> Result<(), String> {
    fs::create_dir(dir).map_err(as_text)?;
    let records = crawl(dice.roll(1 << 40), RECORDS);
    let seconds = [-3_600, 3_600, -90_000][dice.roll(3) as usize];
    let expire = ["", " --expire 20s"][dice.roll(2) as usize];
    let ingest = format!("ingest - --format records{expire} --store");
    let text = Arc::new(records.concat().into_bytes());
    binary.succeed(dir, &format!("{ingest} sound"), Some(text))?;
    let sound = snapshot(&dir.join("sound"))?;

    let clock = dir.join("clock");
    set_clock(&clock, 0).map_err(as_text)?;
    let there = binary.with(variables(library, &clock, set));
    let feed = Sending {
        store: dir.join("store"),
        clock: clock.clone(),
        seconds,
        goes_on: Arc::default(),
    };
    let goes_on = feed.goes_on.clone();
    let line = format!("{ingest} store --snapshot-every 20ms --checkpoint-every 20ms");
    let done = there.feed(dir, &line, Some(feed.of(records)))?.end()?;
    if done.code != Ok(0) {
        return Err(format!("it ended with {done:?}"));
    }
    if !goes_on.load(Ordering::Relaxed) {
        return Err(format!(
            "after the clock was set by {seconds} s no snapshot was made"
        ));
    }
    if snapshot(&dir.join("store"))? != sound {
        return Err("the last snapshot differs".into());
    }
    for command in ["verify", "top", "snapshots", "next -n 3", "settle"] {
        set_clock(&clock, dice.roll(200_000) as i64 - 100_000).map_err(as_text)?;
        there.succeed(dir, &format!("{command} --store store"), None)?;
    }
    Ok(())
}

fn variables(library: &Path, clock: &Path, set: Set) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&str, OsString)> = vec![
        ("LD_PRELOAD", library.into()),
        ("FAKETIME_TIMESTAMP_FILE", clock.into()),
        ("FAKETIME_NO_CACHE", "1".into()),
    ];
    if set == Set::Wall {
        // The name differs between versions of the library.
        for name in ["FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC"] {
            variables.push((name, "1".into()));
        }
    }
    variables
}

/// Stream to a store, with a clock that is set halfway.
struct Sending {
    store: PathBuf,
    clock: PathBuf,
    seconds: i64,
    /// Set once snapshots were made after that.
    goes_on: Arc<AtomicBool>,
}

impl Sending {
    /// Sends each record in its time, and the last one once another snapshot was made after the clock was set.
    fn of(self, records: Vec<String>) -> Feed {
        Box::new(move |pipe| {
            let (last, others) = records.split_last().ok_or(std::io::ErrorKind::NotFound)?;
            let mut before = None;
            for (at, record) in others.iter().enumerate() {
                if at == others.len() / 2 {
                    set_clock(&self.clock, self.seconds)?;
                    // A snapshot that is being made now may have been due before.
                    sleep(20 * PACE);
                    before = newest(&self.store);
                }
                pipe.write_all(record.as_bytes())?;
                pipe.flush()?;
                sleep(PACE);
            }
            for _ in 0..PATIENCE {
                if newest(&self.store) > before {
                    self.goes_on.store(true, Ordering::Relaxed);
                    break;
                }
                sleep(PACE);
            }
            pipe.write_all(last.as_bytes())
        })
    }
}
