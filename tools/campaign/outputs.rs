//! Results among existing files: commands whose temporary names are taken by the user's files, links and folders; and
//! several commands that write the same result at once. Each result is that of an undisturbed run, and existing files
//! are untouched.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::binary::{Binary, snapshot};
use crate::crawl::{Dice, crawl};
use crate::tally::{Tally, as_text, spread};

/// Commands that write `result`, in a folder next to the crawl and the store.
const LINES: [&str; 4] = [
    "export --store ../store --to tsv -o result --force",
    "convert ../crawl -o result --force",
    "compute ../crawl -o result --force",
    "ingest ../crawl --store result",
];
/// Names that the program uses for temporary files, or once used.
const NAMES: [&str; 5] = [
    "result.unfinished",
    "result.2.unfinished",
    "result.tmp",
    "unfinished",
    "result.lock",
];
/// Exit code of a command that finds the store in use.
const BUSY: i32 = 6;
/// Contents of the user's files.
const THEIRS: &[u8] = b"not of this program";

/// Object at a path: a folder, a link with its target, or a file with its bytes.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Folder,
    Link(PathBuf),
    File(Vec<u8>),
}

/// Lists everything in a folder except for the result.
fn others(dir: &Path) -> io::Result<BTreeMap<PathBuf, Found>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path == dir.join("result") {
                continue;
            }
            let kind = fs::symlink_metadata(&path)?.file_type();
            let what = if kind.is_dir() {
                folders.push(path.clone());
                Found::Folder
            } else if kind.is_symlink() {
                Found::Link(fs::read_link(&path)?)
            } else {
                Found::File(fs::read(&path)?)
            };
            found.insert(path, what);
        }
    }
    Ok(found)
}

/// Takes some of the names.
fn take_names(dir: &Path, dice: &mut Dice) -> io::Result<()> {
    fs::write(dir.join("theirs"), THEIRS)?;
    for name in NAMES {
        let path = dir.join(name);
        match dice.roll(8) {
            0 => fs::write(path, THEIRS)?,
            1 => symlink("theirs", path)?,
            2 => symlink("nowhere", path)?,
            3 => fs::create_dir(path)?,
            4 => {
                fs::create_dir(&path)?;
                fs::write(path.join("theirs"), THEIRS)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the bytes of a result: of a file, or of a store's snapshot.
fn result_of(dir: &Path) -> Result<Vec<u8>, String> {
    let path = dir.join("result");
    if path.is_dir() {
        return snapshot(&path)?.ok_or("the store has no snapshot".into());
    }
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs the campaign `runs` times.
pub fn campaign(binary: &Binary, lab: &Path, seed: u64, runs: u64) -> Result<Tally, String> {
    let lab = tempfile::tempdir_in(lab).map_err(as_text)?;
    let lab = lab.path();
    fs::write(lab.join("crawl"), crawl(seed, 300).concat()).map_err(as_text)?;
    binary.succeed(lab, "ingest crawl --store store", None)?;
    let mut sound = Vec::new();
    for (at, line) in LINES.iter().enumerate() {
        let dir = lab.join(format!("sound-{at}"));
        fs::create_dir(&dir).map_err(as_text)?;
        binary.succeed(&dir, line, None)?;
        sound.push(result_of(&dir)?);
    }
    Ok(spread(runs, |run| {
        let mut tally = Tally::default();
        let mut dice = Dice::numbered(seed, run);
        let which = dice.roll(LINES.len() as u64) as usize;
        let dir = lab.join(format!("run-{run}"));
        let result = one(binary, LINES[which], &dir, &mut dice, &sound[which]);
        tally.faults += 1;
        let story = || format!("--seed {seed}, run {run}, {}", LINES[which]);
        tally.survivors += u64::from(tally.judge(result, story));
        let _ = fs::remove_dir_all(&dir);
        tally
    }))
}

fn one(
    binary: &Binary,
    line: &str,
    dir: &Path,
    dice: &mut Dice,
    sound: &[u8],
) -> Result<(), String> {
    fs::create_dir(dir).map_err(as_text)?;
    take_names(dir, dice).map_err(as_text)?;
    let before = others(dir).map_err(as_text)?;
    let running: Vec<_> = (0..1 + dice.roll(3))
        .map(|_| binary.start(dir, line, None))
        .collect::<Result<_, _>>()?;
    let mut is_busy = false;
    for command in running {
        let done = command.end()?;
        match done.code {
            Ok(0) => {}
            Ok(BUSY) => is_busy = true,
            _ => return Err(format!("it ended with {done:?}")),
        }
    }
    if is_busy {
        binary.succeed(dir, line, None)?;
    }
    if result_of(dir)? != sound {
        return Err("the result differs".into());
    }
    let after = others(dir).map_err(as_text)?;
    if after == before {
        return Ok(());
    }
    let changed = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let changed: Vec<_> = before.keys().chain(after.keys()).filter(changed).collect();
    Err(format!("changed, or left behind: {changed:?}"))
}

/// Returns a mutant that writes into NAME.unfinished, whoever owns it, as an earlier version did.
pub fn careless(binary: &Binary, lab: &Path) -> Result<Binary, String> {
    let path = lab.join("careless");
    let text = format!(
        r#"#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
    given=$1
    shift
    if [ "$before" = -o ]; then
        out=$given
        set -- "$@" -
    else
        set -- "$@" "$given"
    fi
    before=$given
    left=$((left - 1))
done
if [ -z "$out" ]; then
    exec '{program}' "$@"
fi
'{program}' "$@" > "$out.unfinished" && mv "$out.unfinished" "$out"
"#,
        program = binary.path().display()
    );
    fs::write(&path, text).map_err(as_text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(as_text)?;
    Ok(Binary::at(path))
}
