//! Rot: a bit of a file flips, a sector turns to garbage, or a file is cut, lost, emptied, or replaced by an older copy
//! of itself or by another store's. Stores come from random runs, interrupted or finished.
//!
//! Afterwards readers (top, rank, export), `verify`, `verify --deep` and an ingest to the end must each return an error
//! that names the file, or the same results as without the damage.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cashrank_store::check::{CheckReport, Depth, check};

use crate::crawl::Dice;
use crate::cuts::cut_at;
use crate::disk::{Content, SECTOR, SimDisk, Survival};
use crate::readers::{Answers, read};
use crate::scenario::{Kind, STORE, Scenario};
use crate::tally::{Tally, spread};

/// First to notice the damage, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Noticed {
    /// A reader, or the ingest.
    InUse,
    Verify,
    DeepVerify,
    /// Nobody, and all results are right.
    Harmless,
}

/// Counts by kind of damage and file.
type Counts = BTreeMap<(&'static str, String), [u64; 4]>;

/// Store with its answers while it is sound.
struct Sound {
    disk: SimDisk,
    /// Earlier state of the same store.
    before: SimDisk,
    /// Another store of the same crawl, at a similar state.
    other: SimDisk,
    names: Vec<String>,
    now: Answers,
    /// Answers of readers of `before` and `other`: their `latest.json` may name a snapshot that this store has as well,
    /// which readers then see, intact.
    earlier: Answers,
    elsewhere: Answers,
    /// Answers of readers after the ingest to the end.
    end: Answers,
}

/// Damages stores `flips` times by a bit, and each file in every other way. Calls `tell` with a table of who noticed
/// what.
pub fn rot(dir: &Path, seed: u64, flips: u64, tell: impl Fn(&str)) -> Tally {
    // Number of flips per scenario, whose runs are made once.
    const SHARED: u64 = 50;
    let counts = Mutex::new(Counts::new());
    let tally = spread(flips.div_ceil(SHARED), |group| {
        let mut dice = Dice::numbered(seed, group);
        let mut tally = Tally::default();
        let kind = [Kind::Any, Kind::Any, Kind::Changes][group as usize % 3];
        let made = Scenario::of_kind(kind, &mut dice, dir, None).and_then(|scenario| {
            let sound = [
                Sound::make(&scenario, &mut dice, false)?,
                Sound::make(&scenario, &mut dice, true)?,
            ];
            Ok((scenario, sound))
        });
        let (scenario, sound) = match made {
            Ok(made) => made,
            Err(what) => {
                tally
                    .failures
                    .push(format!("--seed {seed}, group {group}: {what}"));
                return tally;
            }
        };
        let mut one = |sound: &Sound, damage: &Damage| {
            tally.faults += 1;
            let noticed = sound.judge(&scenario, damage);
            let story = || format!("--seed {seed}, group {group}, {damage:?}");
            if let Ok(noticed) = noticed {
                tally.survivors += u64::from(noticed == Noticed::Harmless);
                if let Ok(mut counts) = counts.lock() {
                    let row = counts.entry(damage.row()).or_default();
                    row[noticed as usize] += 1;
                }
            }
            tally.judge(noticed.map(drop), story);
        };
        for flip in 0..SHARED.min(flips - group * SHARED) {
            let sound = &sound[flip as usize % 2];
            one(sound, &sound.flip(&mut dice));
        }
        // Whole files have few ways to be wrong: a tenth of the scenarios is enough.
        if group % 10 == 0 {
            for sound in &sound {
                for damage in sound.others(&mut dice) {
                    one(sound, &damage);
                }
            }
        }
        tally
    });
    if let Ok(counts) = counts.into_inner() {
        tell(&table(&counts));
    }
    tally
}

fn table(counts: &Counts) -> String {
    let mut text = format!(
        "{:<10} {:<26} {:>8} {:>8} {:>8} {:>8}",
        "damage", "file", "in use", "verify", "deep", "harmless"
    );
    for ((kind, file), [in_use, verify, deep, harmless]) in counts {
        let _ = write!(
            text,
            "\n{kind:<10} {file:<26} {in_use:>8} {verify:>8} {deep:>8} {harmless:>8}"
        );
    }
    text
}

/// Damage to a file.
struct Damage {
    kind: &'static str,
    path: PathBuf,
    /// Damaged content; `None` if the file is lost.
    content: Option<Content>,
    /// Description for reproducing it.
    detail: String,
}

impl std::fmt::Debug for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.kind, self.path.display(), self.detail)
    }
}

impl Damage {
    /// Returns its row in the table, in which numbered files are one.
    fn row(&self) -> (&'static str, String) {
        let name = self.path.strip_prefix(STORE).unwrap_or(&self.path);
        let text = name.to_string_lossy();
        let row = match text.split_once('/') {
            Some(("marks", _)) => "marks/*",
            Some(("spool", number)) if number != "acked" => "spool/*",
            Some((_, file)) if file.ends_with(".snapshot") => "snapshots/*.snapshot",
            Some((_, file)) if file.ends_with(".tmp") => "snapshots/*.tmp",
            _ => &text,
        };
        (self.kind, row.into())
    }

    /// Returns whether an error names the damaged file, by its path or by its name in the store.
    fn is_named_by(&self, error: &str) -> bool {
        let name = self.path.strip_prefix(STORE).unwrap_or(&self.path);
        // Which segment holds a byte of the stream is known only if it is there.
        let is_spool = name.starts_with("spool");
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        let words = || error.split(|c| !is_part(c)).map(Path::new);
        // A log and its index may be named for each other.
        let has_folder = words().any(|word| word.parent() == self.path.parent());
        let is_beside = |word: &Path| has_folder && Some(word.as_os_str()) == self.path.file_name();
        words().any(|word| {
            word == self.path || word == name || is_beside(word) || is_spool && in_spool(word)
        })
    }
}

fn in_spool(path: &Path) -> bool {
    path.starts_with(Path::new(STORE).join("spool"))
}

impl Sound {
    /// Makes a store of the scenario: killed, stopped by a power cut, or finished.
    fn make(scenario: &Scenario, dice: &mut Dice, finished: bool) -> Result<Sound, String> {
        let before = stopped(scenario, dice)?;
        let disk = before.cut(Survival::Everything, 0);
        let other = if finished {
            scenario.finish(&disk, 0)?;
            let other = SimDisk::new(0);
            scenario.finish(&other, 0)?;
            other
        } else {
            let at = disk.operations() + dice.roll(scenario.operations);
            disk.plan(cut_at(at));
            scenario.run_into_fault(&disk, 0)?;
            stopped(scenario, dice)?
        };
        let disk = disk.cut(Survival::Everything, 0);
        let end = disk.cut(Survival::Everything, 0);
        scenario.finish(&end, 0)?;
        let names = match read(&end, &[])?.export {
            Ok(export) => export.into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
            Err(what) => return Err(what),
        };
        Ok(Sound {
            now: read(&disk, &names)?,
            earlier: read(&before, &names)?,
            elsewhere: read(&other, &names)?,
            end: read(&end, &names)?,
            disk,
            before,
            other,
            names,
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = self.disk.files().into_iter();
        files
            .map(|(path, _)| path)
            .filter(|path| path.starts_with(STORE) && !path.ends_with("lock"))
            .collect()
    }

    /// Returns a flipped bit. Each file is equally likely; half of the flips hit written parts, some of these the first
    /// bytes.
    fn flip(&self, dice: &mut Dice) -> Damage {
        loop {
            let files = self.files();
            let path = files[dice.roll(files.len() as u64) as usize].clone();
            let Ok(mut content) = self.disk.content(&path) else {
                continue;
            };
            let sectors = content.sectors();
            let sector = SECTOR as u64;
            let byte = match dice.roll(8) {
                0 => dice.roll(content.len().clamp(1, 400)),
                1..=4 if !sectors.is_empty() => {
                    let hit = sectors[dice.roll(sectors.len() as u64) as usize];
                    hit * sector + dice.roll(sector)
                }
                _ => dice.roll(content.len().max(1)),
            };
            let bit = dice.roll(8) as u8;
            if content.flip(byte, bit) {
                return Damage {
                    kind: "flip",
                    detail: format!("at byte {byte}, bit {bit}"),
                    content: Some(content),
                    path,
                };
            }
        }
    }

    /// Returns other damage: every file cut, lost, emptied, foreign and old, and some of its sectors garbage.
    fn others(&self, dice: &mut Dice) -> Vec<Damage> {
        let mut all = Vec::new();
        for path in self.files() {
            let Ok(content) = self.disk.content(&path) else {
                continue;
            };
            let mut add = |kind, content, detail: String| {
                all.push(Damage {
                    kind,
                    path: path.clone(),
                    content,
                    detail,
                });
            };
            add("lost", None, String::new());
            add("emptied", Some(Content::default()), String::new());
            for len in [
                content.len() / 2,
                content.len().saturating_sub(1),
                dice.roll(content.len().max(1)),
            ] {
                let mut short = content.clone();
                short.set_len(len);
                add("cut", Some(short), format!("to {len} bytes"));
            }
            for _ in 0..3 {
                let sectors = content.sectors();
                if sectors.is_empty() {
                    break;
                }
                let sector = sectors[dice.roll(sectors.len() as u64) as usize];
                let at = sector * SECTOR as u64;
                let len = (content.len() - at).min(SECTOR as u64);
                let zeros = dice.coin();
                let garbage = (0..len).map(|_| dice.roll(256) as u8);
                let garbage: Vec<u8> = garbage.map(|byte| if zeros { 0 } else { byte }).collect();
                let mut spoiled = content.clone();
                spoiled.write(&garbage, at);
                add(
                    "sector",
                    Some(spoiled),
                    format!("of garbage at {at}, zeros: {zeros}"),
                );
            }
            if let Ok(foreign) = self.other.content(&path) {
                add("foreign", Some(foreign), String::new());
            }
            if let Ok(old) = self.before.content(&path) {
                add("old", Some(old), String::new());
            }
        }
        all
    }

    /// Returns who notices the damage. An error means that somebody is wrong.
    fn judge(&self, scenario: &Scenario, damage: &Damage) -> Result<Noticed, String> {
        let disk = self.disk.cut(Survival::Everything, 0);
        let done = match &damage.content {
            Some(content) => disk.put(&damage.path, content.clone()),
            None => disk.lose(&damage.path),
        };
        done.map_err(|error| error.to_string())?;
        let is_told = |error: &str| damage.is_named_by(error);
        let verify = noticed(&disk, Depth::Quick, damage)?;
        let deep = noticed(&disk, Depth::Deep, damage)?;
        if verify && !deep {
            return Err("verify notices it, and verify --deep does not".into());
        }
        let other = match (damage.kind, damage.path.ends_with("latest.json")) {
            ("old", true) => &self.earlier,
            ("foreign", true) => &self.elsewhere,
            _ => &self.now,
        };
        let answers = read(&disk, &self.names)?;
        let now = answers
            .check(&self.now, is_told)
            .or_else(|_| answers.check(other, is_told))?;

        let ran = scenario.run(&disk, 0)?;
        let is_warned = ran.warned.as_ref().is_some_and(|warning| is_told(warning));
        let end = match &ran.result {
            Ok(_) => {
                scenario.check_end(&disk, &ran)?;
                let is_cache = |name: &str| damage.path.ends_with(name);
                // A warm start whose rows cannot be read is reported and not used; nor is one if the last block of its rows is
                // not found, as in a store of other rows.
                let rows = Path::new(STORE).join("rows");
                let is_row_index = damage.path.parent() == Some(&*rows)
                    && damage.path.extension().is_some_and(|end| end == "index");
                let told = if is_cache("warm") || is_warned || is_row_index {
                    // A different ranking, which agrees with the original one.
                    Ok(is_warned)
                } else {
                    read(&disk, &self.names)?.check(&self.end, is_told)
                };
                told.map_err(|what| format!("after the end, {what}"))?
            }
            Err(error) if is_told(&error.to_string()) => true,
            Err(error) => return Err(format!("the ingest does not name the file: {error}")),
        };
        Ok(match (now || end, verify, deep) {
            (true, _, _) => Noticed::InUse,
            (_, true, _) => Noticed::Verify,
            (_, _, true) => Noticed::DeepVerify,
            _ => Noticed::Harmless,
        })
    }
}

/// Returns whether `verify` notices the damage; an error if it reports something else.
fn noticed(disk: &SimDisk, depth: Depth, rotten: &Damage) -> Result<bool, String> {
    let before = disk.hash();
    let verify = || check(disk, Path::new(STORE), depth, None);
    let checked = catch_unwind(AssertUnwindSafe(verify))
        .map_err(|_| format!("verify ({depth:?}) panicked"))?;
    if disk.hash() != before {
        return Err(format!("verify ({depth:?}) changes the store"));
    }
    let texts: Vec<String> = match checked {
        Ok(CheckReport { damage, notes, .. }) => {
            // A kill during publication leaves a note, not damage.
            let notes = notes.into_iter().filter(|note| rotten.is_named_by(note));
            damage
                .iter()
                .map(|error| error.to_string())
                .chain(notes)
                .collect()
        }
        Err(error) => vec![error.to_string()],
    };
    if texts.is_empty() {
        return Ok(false);
    }
    if texts.iter().any(|text| rotten.is_named_by(text)) {
        return Ok(true);
    }
    Err(format!(
        "verify ({depth:?}) does not name the file: {texts:?}"
    ))
}

/// Runs the scenario until it is interrupted after it created its store.
fn stopped(scenario: &Scenario, dice: &mut Dice) -> Result<SimDisk, String> {
    loop {
        let disk = SimDisk::new(dice.roll(u64::MAX));
        disk.plan(cut_at(dice.roll(scenario.operations)));
        scenario.run_into_fault(&disk, 0)?;
        let survival = [Survival::Everything, Survival::Sectors][dice.roll(2) as usize];
        let disk = disk.cut(survival, dice.roll(u64::MAX));
        let identity = Path::new(STORE).join("identity.json");
        if disk.content(&identity).is_ok() {
            return Ok(disk);
        }
    }
}
