//! kill -9 of the real program at random moments, on the real disk: started and killed repeatedly, then left to run to
//! its end. Its snapshot must be that of an undisturbed run, to the byte or, with intermediate rankings, within both
//! bounds; readers must never fail in between.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::{Binary, snapshot};
use crate::crawl::{Dice, crawl};
use crate::pack::{gzip, in_pieces, zstandard};
use crate::readers::agrees_with;
use crate::tally::{Tally, spread};

/// Maximum number of kills per store.
const MOST: u64 = 8;
/// SIGKILL.
const KILLED: i32 = 9;

/// Command with its expected result.
struct Life {
    /// Inputs and options of the command.
    line: &'static str,
    stdin: Option<Arc<Vec<u8>>>,
    /// Relative frequency of this command.
    share: u64,
    /// Choices for the number of records between checkpoints.
    every: &'static [u64],
    /// Number of records between snapshots, which are the starts of the last one. `None`: by time, at random.
    places: Option<u64>,
    /// Folder for the undisturbed run, which is made when it is first needed.
    lab: PathBuf,
    undisturbed: OnceLock<Result<Undisturbed, String>>,
}

/// Result of an undisturbed run.
struct Undisturbed {
    snapshot: Vec<u8>,
    lasts: Duration,
}

impl Life {
    /// Runs the command undisturbed the first time, for its result and its duration.
    fn undisturbed(&self, binary: &Binary) -> Result<&Undisturbed, String> {
        let made = self
            .undisturbed
            .get_or_init(|| self.run_undisturbed(binary));
        made.as_ref().map_err(String::clone)
    }

    fn run_undisturbed(&self, binary: &Binary) -> Result<Undisturbed, String> {
        std::fs::create_dir(&self.lab).map_err(|error| error.to_string())?;
        let mut command = format!("{} --store store", self.line);
        if let Some(records) = self.places {
            command += &format!(" --snapshot-every {records}");
        }
        binary.succeed(&self.lab, &command, self.stdin.clone())?;
        let store = self.lab.join("store");
        let snapshot = snapshot(&store)?.ok_or("no snapshot")?;
        std::fs::remove_dir_all(&store).map_err(|error| error.to_string())?;
        let started = Instant::now();
        let command = options(self, &mut Dice(7));
        binary.succeed(&self.lab, &command, self.stdin.clone())?;
        let lasts = started.elapsed();
        std::fs::remove_dir_all(&self.lab).map_err(|error| error.to_string())?;
        Ok(Undisturbed { snapshot, lasts })
    }
}

/// Kills until there were `kills`; those after the end of a process do not count.
pub fn campaign(binary: &Binary, lab: &Path, seed: u64, kills: u64) -> Result<Tally, String> {
    let lab = lab.join("kills");
    std::fs::create_dir(&lab).map_err(|error| error.to_string())?;
    let lives = lives(&lab, seed)?;
    let done = AtomicU64::new(0);
    // Most stores give at least one kill.
    Ok(spread(4 * kills, |at| {
        let mut tally = Tally::default();
        if done.load(Ordering::Relaxed) >= kills {
            return tally;
        }
        let mut dice = Dice(seed ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let life = draw(&lives, &mut dice);
        let dir = lab.join(format!("store-{at}"));
        let result = one(binary, life, &dir, &mut dice, &mut tally);
        done.fetch_add(tally.cuts, Ordering::Relaxed);
        tally.judge(result, || {
            format!("--seed {seed}, store {at}, {}", life.line)
        });
        let _ = std::fs::remove_dir_all(&dir);
        tally
    }))
}

fn draw<'l>(lives: &'l [Life], dice: &mut Dice) -> &'l Life {
    let all = lives.iter().map(|life| life.share).sum();
    let mut at = dice.roll(all);
    for life in lives {
        if at < life.share {
            return life;
        }
        at -= life.share;
    }
    &lives[0]
}

fn one(
    binary: &Binary,
    life: &Life,
    dir: &Path,
    dice: &mut Dice,
    tally: &mut Tally,
) -> Result<(), String> {
    let undisturbed = life.undisturbed(binary)?;
    std::fs::create_dir(dir).map_err(|error| error.to_string())?;
    let store = dir.join("store");
    let mut published = false;
    for kill in 0..1 + dice.roll(MOST) {
        let line = options(life, dice);
        let running = binary.start(dir, &line, life.stdin.clone())?;
        if life.stdin.is_some() && dice.coin() {
            until_ranked(&store, 2 * undisturbed.lasts)
        } else {
            thread::sleep(moment(undisturbed.lasts, dice))
        }
        let done = running.kill()?;
        match done.code {
            Err(KILLED) => {
                tally.cuts += 1;
                tally.cuts_again += u64::from(kill > 0);
            }
            Ok(0) => {}
            _ => return Err(format!("`{line}` ended with {done:?}")),
        }
        let now = snapshot(&store)?.is_some();
        if published && !now {
            return Err("a published snapshot is lost".into());
        }
        published = now;
        read(binary, dir, published)?;
    }
    let started = Instant::now();
    let last = options(life, dice);
    let done = binary.succeed(dir, &last, life.stdin.clone())?;
    let is_same = snapshot(&store)?.as_ref() == Some(&undisturbed.snapshot);
    if !is_same && life.places.is_none() {
        return Err(format!("after `{last}` the snapshot differs"));
    }
    agrees_with(&store, &undisturbed.snapshot).map_err(|what| format!("after `{last}`: {what}"))?;
    binary.succeed(dir, "verify --store store", None)?;
    read(binary, dir, true)?;
    tally.survived(done.ready.min(started.elapsed()));
    Ok(())
}

/// Checks that a reader finds a snapshot if one was published, and otherwise reports that there is none.
fn read(binary: &Binary, dir: &Path, published: bool) -> Result<(), String> {
    let done = binary.run(dir, "top -n 3 --store store", None)?;
    match done.code {
        Ok(0) if published => Ok(()),
        Ok(2) if !published => Ok(()),
        _ => Err(format!("`top` ended with {done:?}")),
    }
}

fn options(life: &Life, dice: &mut Dice) -> String {
    let checkpoints = life.every[dice.roll(life.every.len() as u64) as usize];
    let snapshots = match life.places {
        Some(records) => records.to_string(),
        None => ["1ms", "20ms", "1h"][dice.roll(3) as usize].into(),
    };
    format!(
        "{} --store store --checkpoint-every {checkpoints} --snapshot-every {snapshots} \
         --keep-snapshots {} --threads {}",
        life.line,
        1 + dice.roll(3),
        1 + dice.roll(3)
    )
}

/// Waits until a snapshot is being made, but not longer than `most`.
fn until_ranked(store: &Path, most: Duration) {
    let folder = store.join("snapshots");
    let is_making = || {
        let mut names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        names.any(|entry| entry.path().extension().is_some_and(|ext| ext == "tmp"))
    };
    let started = Instant::now();
    while started.elapsed() < most && !is_making() {
        thread::sleep(Duration::from_micros(200));
    }
}

/// Returns when to kill: often while the store is created or opened, else at any time.
fn moment(lasts: Duration, dice: &mut Dice) -> Duration {
    let lasts = lasts.as_micros() as u64;
    let within = match dice.roll(4) {
        0 => 30_000,
        1 => lasts / 4 + 1,
        _ => lasts + lasts / 8 + 1,
    };
    Duration::from_micros(dice.roll(within))
}

fn lives(lab: &Path, seed: u64) -> Result<Vec<Life>, String> {
    let small = crawl(seed, 400);
    let text = small.concat().into_bytes();
    let wide = wide(seed, 5_000);
    let edges: String = (0..300)
        .map(|n| format!("{}\tt{}\n", n / 50, n % 190))
        .collect();
    for (name, bytes) in [
        ("a", small[..150].concat().into_bytes()),
        ("b", small[150..].concat().into_bytes()),
        ("gz", in_pieces(&text, 3_000, gzip)),
        ("zst", in_pieces(&text, 5_000, zstandard)),
        ("edges", edges.into_bytes()),
        ("wide", wide.clone()),
        ("wide.zst", in_pieces(&wide, 500_000, zstandard)),
    ] {
        std::fs::write(lab.join(name), bytes).map_err(|error| error.to_string())?;
    }
    const OFTEN: &[u64] = &[1, 3, 7, 40];
    const SELDOM: &[u64] = &[100, 400, 2_000];
    // A kill may come after the stream's end was committed: with or without `--resume`, it is the same stream.
    let resumed = "ingest - --resume --format records";
    let stream = "ingest - --format records";
    let mut number = 0;
    let mut life = |line, stdin: Option<&[u8]>, share, every: &'static [u64]| {
        number += 1;
        Life {
            line,
            stdin: stdin.map(|bytes| Arc::new(bytes.to_vec())),
            share,
            every,
            places: (number % 2 == 0).then_some(10 * every[1]),
            lab: lab.join(format!("undisturbed-{number}")),
            undisturbed: OnceLock::new(),
        }
    };
    Ok(vec![
        life("ingest ../a ../b", None, 3, OFTEN),
        life("ingest ../a ../b --repeat 3", None, 3, OFTEN),
        life("ingest ../gz", None, 3, OFTEN),
        life("ingest ../zst --repeat 2", None, 3, OFTEN),
        life("ingest ../edges --format edges --repeat 2", None, 2, OFTEN),
        life(
            "ingest ../a ../b --repeat 6 --keep-links none",
            None,
            2,
            OFTEN,
        ),
        life(resumed, Some(&text), 2, OFTEN),
        life(stream, Some(&text), 3, OFTEN),
        life("ingest ../wide", None, 1, SELDOM),
        life("ingest ../wide.zst --repeat 2", None, 1, SELDOM),
        life(
            "ingest ../wide --repeat 5 --keep-links none",
            None,
            1,
            SELDOM,
        ),
        life(stream, Some(&wide), 1, SELDOM),
    ])
}

/// Returns a crawl of more pages than a chunk of the cash file holds (131,072): each of `records` pages links to 40 of
/// 60 times as many.
pub fn wide(seed: u64, records: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut text = String::new();
    for page in 0..records {
        let links: Vec<String> = (0..40)
            .map(|_| {
                let to = dice.roll(60 * records);
                format!("\"http://h{}.example/{to}\"", to % 1_009)
            })
            .collect();
        let links = links.join(",");
        text += &format!("{{\"url\":\"http://h.example/{page}\",\"links\":[{links}]}}\n");
    }
    text.into_bytes()
}
