//! A full disk under the real program: a small file system, filled so far that the room ends at some moment. The
//! program must report it and exit with 7, and never crash (SIGBUS). Its last checkpoint and snapshot must be intact,
//! and with room the same command must continue to the bytes of an undisturbed run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::binary::{Binary, snapshot};
use crate::crawl::{Dice, crawl};
use crate::kills::wide;
use crate::readers::agrees_with;
use crate::tally::{Tally, as_text};

/// Mount point in use, for a campaign that is interrupted.
static MOUNTED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Unmounts what this campaign mounted.
pub fn clean_up() {
    let mut mounted = MOUNTED.lock().unwrap_or_else(|held| held.into_inner());
    if let Some(at) = mounted.take() {
        // At once if it is idle, or else lazily.
        if !system("umount", &[&at]) {
            system("umount", &[Path::new("-l"), &at]);
        }
    }
}

fn system(command: &str, args: &[&Path]) -> bool {
    let quiet = std::process::Stdio::null;
    let mut command = Command::new(command);
    command.args(args).stdout(quiet()).stderr(quiet());
    command.status().is_ok_and(|status| status.success())
}

/// Small file system; unmounted on drop.
struct Small {
    at: PathBuf,
    kind: &'static str,
}

impl Small {
    /// Mounts ext4 in a file, if the system permits it, or else a file system in memory. `None` if neither is possible.
    fn mount(lab: &Path, mebibytes: u64) -> Result<Option<Small>, String> {
        let at = lab.join("mounted");
        std::fs::create_dir_all(&at).map_err(as_text)?;
        // In memory, if possible: a thousand syncs take no time there.
        let folder = Some(Path::new("/dev/shm")).filter(|shm| shm.is_dir());
        let image = tempfile::NamedTempFile::new_in(folder.unwrap_or(lab)).map_err(as_text)?;
        image.as_file().set_len(mebibytes << 20).map_err(as_text)?;
        let image = image.path();
        let mut mounted = MOUNTED.lock().unwrap_or_else(|held| held.into_inner());
        let arg = Path::new;
        // Reserve nothing for root, who runs this; without a journal a sync takes a third of the time.
        let options = ["-q", "-m", "0", "-O", "^has_journal"].map(arg);
        let made = system("mkfs.ext4", &[&options[..], &[image]].concat());
        let kind = if made && system("mount", &[arg("-o"), arg("loop"), image, &at]) {
            "ext4 on a loop device"
        } else {
            let size = format!("size={mebibytes}m");
            let options = [arg("-t"), arg("tmpfs"), arg("-o"), arg(&size), arg("none")];
            if !system("mount", &[&options[..], &[&at]].concat()) {
                return Ok(None);
            }
            "tmpfs, as no loop device could be mounted"
        };
        *mounted = Some(at.clone());
        Ok(Some(Small { at, kind }))
    }

    fn room(&self) -> Result<u64, String> {
        let df = Command::new("df")
            .args(["--output=avail", "-B1"])
            .arg(&self.at)
            .output()
            .map_err(|error| format!("df: {error}"))?;
        let text = String::from_utf8_lossy(&df.stdout);
        let room = text
            .lines()
            .nth(1)
            .and_then(|line| line.trim().parse().ok());
        room.ok_or(format!("df says {text:?}"))
    }

    /// Fills the file system until `left` bytes are free.
    fn fill(&self, left: u64) -> Result<(), String> {
        let size = self.room()?.saturating_sub(left).max(1);
        // Blocks are allocated, rather than only a length set; some are used for metadata, for which the last ones are
        // needed.
        let takes = |size: u64| {
            let size = size.to_string();
            let args = [Path::new("-l"), Path::new(&size), &self.filler()];
            system("fallocate", &args)
        };
        if (0..64).any(|blocks| takes(size.saturating_sub(blocks * 1024).max(1))) {
            Ok(())
        } else {
            Err(format!("fallocate: cannot take {size} bytes"))
        }
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }

    /// Removes everything except for the file system's own files.
    fn clear(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("clearing: {error}");
        for entry in std::fs::read_dir(&self.at).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            match path.is_dir() {
                _ if path.ends_with("lost+found") => {}
                true => std::fs::remove_dir_all(path).map_err(failed)?,
                false => std::fs::remove_file(path).map_err(failed)?,
            }
        }
        Ok(())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        clean_up();
    }
}

/// Command on the small file system.
struct Case {
    line: String,
    snapshot: Vec<u8>,
    /// Space that an undisturbed run takes.
    takes: u64,
}

/// Runs into a full disk at `levels` random levels of room, for each of two crawls.
pub fn campaign(binary: &Binary, lab: &Path, seed: u64, levels: u64) -> Result<Tally, String> {
    let lab = lab.join("full-disk");
    std::fs::create_dir(&lab).map_err(as_text)?;
    std::fs::write(lab.join("small"), crawl(seed, 600).concat()).map_err(as_text)?;
    std::fs::write(lab.join("wide"), wide(seed, 5_000)).map_err(as_text)?;
    let mut tally = Tally::default();
    for (size, input, every) in [(24, "small", 20), (48, "wide", 500)] {
        let Some(small) = Small::mount(&lab, size)? else {
            eprintln!("SKIPPED: full-disk: no file system could be mounted (are you root?)");
            return Ok(tally);
        };
        eprintln!("full-disk: {size} MiB, {}", small.kind);
        let line = format!(
            "ingest ../{input} --store store --repeat 2 --checkpoint-every {every} \
             --snapshot-every {}",
            4 * every
        );
        let before = small.room()?;
        binary.succeed(&small.at, &line, None)?;
        let case = Case {
            snapshot: snapshot(&small.at.join("store"))?.ok_or("no snapshot")?,
            takes: before.saturating_sub(small.room()?),
            line,
        };
        for level in 0..levels {
            let mut dice = Dice(seed ^ level.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            // Slightly more than the final size may be needed in between.
            let left = dice.roll(case.takes + case.takes / 8);
            let result = one(binary, &small, &case, left, &mut tally);
            tally.judge(result, || {
                format!("--seed {seed}, {left} bytes left, {}", case.line)
            });
        }
    }
    Ok(tally)
}

fn one(
    binary: &Binary,
    small: &Small,
    case: &Case,
    left: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    small.clear()?;
    small.fill(left)?;
    let done = binary.run(&small.at, &case.line, None)?;
    let full = done.code != Ok(0);
    if full {
        let named = done.said.contains("store") && done.said.contains("No space left");
        if done.code != Ok(7) || !named {
            return Err(format!("on the full disk it ended with {done:?}"));
        }
        tally.faults += 1;
        check_full(binary, small)?;
    }
    std::fs::remove_file(small.filler()).map_err(as_text)?;
    let done = binary.succeed(&small.at, &case.line, None)?;
    agrees_with(&small.at.join("store"), &case.snapshot)?;
    binary.succeed(&small.at, "verify --store store", None)?;
    if full {
        tally.survived(done.ready);
    }
    Ok(())
}

/// Checks the store while the disk is full: published rankings are readable, and the last checkpoint is intact.
fn check_full(binary: &Binary, small: &Small) -> Result<(), String> {
    let store = small.at.join("store");
    if !store.join("identity.json").exists() {
        return Ok(()); // It was not even made.
    }
    binary.succeed(&small.at, "verify --store store", None)?;
    if snapshot(&store)?.is_some() {
        binary.succeed(&small.at, "top -n 3 --store store", None)?;
        binary.succeed(&small.at, "export --to tsv --store store", None)?;
    }
    Ok(())
}
