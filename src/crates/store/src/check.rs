//! Checks a store's whole directory: `cashrank verify`. Nothing is changed, whatever is found.
//!
//! One damaged file does not hide another. [`crate::store::part_of`] says what each file means and what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::memory::check_room;
use crate::shards::verify_remote;
use crate::snapshot::{
    ComputedRanking, Info, Latest, PINNED, RANKING, Snapshot, SnapshotColumns, computed,
};
use crate::store::rows::{ROWS, is_missing, number_of};
use crate::store::warm;
use crate::store::{Disk, SNAPSHOTS, View, identity_of, is_own, open_view_to, verify_spool};
use crate::{Error, Result};

pub use crate::store::{Depth, VerifyReport};

#[derive(Debug, Default)]
pub struct CheckReport {
    /// True if another process writes the store, or did meanwhile: only snapshots were checked, with their names.
    pub busy: bool,
    /// Last checkpoint, if all of it is sound.
    pub checkpoint: Option<VerifyReport>,
    /// Number of bytes of the spooled stream that were checked.
    pub spool_bytes: u64,
    pub snapshots: u64,
    pub rankings: u64,
    /// Current snapshot, if one was published and is sound.
    pub current: Option<PathBuf>,
    /// Damage, each naming its file: [`Error::Damaged`], or [`Error::Io`] (no damage) if a file could not be read.
    pub damage: Vec<Error>,
    pub notes: Vec<String>,
    /// Entries of the directory that do not belong to the store; nothing reads them.
    pub strangers: Vec<PathBuf>,
}

/// Checks the store in `dir`: what an ingest reads when it starts, the marks and the current snapshot, or everything.
/// Fails if the index of a deep check takes more than `memory` bytes.
pub fn check(
    disk: &dyn Disk,
    dir: &Path,
    depth: Depth,
    memory: Option<u64>,
) -> Result<CheckReport> {
    let mut checked = CheckReport::default();
    let view = match identity_of(disk, dir) {
        Err(refused) if refused.is_refusal() => return Err(refused),
        Err(error) => {
            checked.damage.push(error);
            None
        }
        Ok(_) => checked.check_checkpoint(disk, dir, depth, memory)?,
    };
    checked.check_snapshots(disk, dir, depth, view.as_ref());
    checked.list(disk, dir, view.as_ref());
    Ok(checked)
}

impl CheckReport {
    /// Checks the last checkpoint. Returns it, unless another process writes the store or it cannot be opened.
    fn check_checkpoint(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        depth: Depth,
        memory: Option<u64>,
    ) -> Result<Option<View>> {
        let view = match open_view_to(disk, dir, depth) {
            Ok(view) => view,
            Err(Error::Busy { .. }) => {
                self.busy = true;
                return Ok(None);
            }
            Err(refused) if refused.is_refusal() => return Err(refused),
            Err(error) => {
                self.damage.push(error);
                return Ok(None);
            }
        };
        if depth == Depth::Deep {
            let pages = view.manifest.engine.totals.pages;
            let work = || format!("a deep check of {pages} pages");
            check_room(memory, view.deep_bytes(), work, "leave `deep` out")?;
        }
        let mut damage = Vec::new();
        let report = view.inspect(depth, &mut damage);
        damage.extend(view.inspect_index(disk, depth).err());
        let mut caches = vec![verify_remote(disk, &view)];
        if depth == Depth::Deep {
            let warm = warm::open(disk, dir);
            caches.push(warm.and_then(|warm| warm.map_or(Ok(()), |warm| warm.verify())));
        }
        for error in caches.into_iter().filter_map(Result::err) {
            match error {
                // A cache of another version is replaced when it is needed.
                Error::Unsupported(what) => self.notes.push(what),
                damaged => damage.push(damaged),
            }
        }
        let spool = verify_spool(disk, dir, &view.manifest.progress);
        let spool_bytes = spool.unwrap_or_else(|error| {
            damage.push(error);
            0
        });
        if !damage.is_empty() && view.is_overtaken(disk) {
            self.busy = true;
            return Ok(None);
        }
        self.spool_bytes = spool_bytes;
        self.checkpoint = damage.is_empty().then_some(report);
        self.damage.extend(damage);
        Ok(Some(view))
    }

    /// Checks all snapshots, or the current one, which is compared with the checkpoint, or else with its names.
    fn check_snapshots(&mut self, disk: &dyn Disk, dir: &Path, depth: Depth, view: Option<&View>) {
        let snapshots = dir.join(SNAPSHOTS);
        let names = match disk.list(&snapshots) {
            Ok(names) => names,
            Err(error) => return self.add(Error::opening(snapshots)(error)),
        };
        let (mut files, others): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| is_snapshot(name));
        files.sort_by_key(|name| (name.len(), name.clone()));
        let pinned = others.iter().filter_map(|name| name.strip_suffix(PINNED));
        for name in pinned.map(|number| format!("{number}.snapshot")) {
            if depth == Depth::Deep && !self.busy && !files.contains(&name) {
                let what = "it is missing, though it is pinned";
                self.add(Error::damaged(snapshots.join(name), what));
            }
        }
        let current = match Latest::read(disk, dir) {
            Ok(latest) => {
                let current = latest.map(|latest| latest.snapshot);
                self.check_latest(dir, current.as_deref(), &files);
                let missing = current.clone().filter(|current| !files.contains(current));
                files.extend(missing);
                current
            }
            Err(error) => {
                self.add(error);
                None
            }
        };
        self.check_rankings(disk, dir, depth, current.as_deref());
        for name in files {
            let is_current = current.as_ref() == Some(&name);
            if depth == Depth::Quick && !is_current {
                continue;
            }
            let path = snapshots.join(&name);
            let columns = SnapshotColumns::of(disk, &path);
            if is_current && let Ok(columns) = &columns {
                let fits = match view {
                    Some(view) => check_fits(columns.info(), view, &path),
                    None => Snapshot::latest(disk, dir).and_then(|latest| latest.verify()),
                };
                // An ingest may have replaced it meanwhile.
                let misfit = fits
                    .err()
                    .filter(|error| !matches!(error, Error::Io { .. }));
                misfit.into_iter().for_each(|error| self.add(error));
            }
            match columns.and_then(|columns| columns.verify()) {
                Ok(()) => {
                    self.snapshots += 1;
                    if is_current {
                        self.current = Some(path);
                    }
                }
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    // An ingest may remove an old one meanwhile.
                    if is_current && !self.busy {
                        let what = "it is missing, though snapshots/latest.json names it";
                        self.add(Error::damaged(path, what));
                    }
                }
                Err(error) => self.add(error),
            }
        }
    }

    /// Checks the rankings that were computed from snapshots, or only from the current one.
    fn check_rankings(&mut self, disk: &dyn Disk, dir: &Path, depth: Depth, current: Option<&str>) {
        let found = match computed(disk, dir) {
            Ok(found) => found,
            Err(error) => return self.add(error),
        };
        let number = current.and_then(|name| name.strip_suffix(".snapshot")?.parse::<u64>().ok());
        for (of, _, path) in found {
            if depth == Depth::Quick && Some(of) != number {
                continue;
            }
            match ComputedRanking::open(disk, &path).and_then(|ranking| ranking.verify()) {
                Ok(()) => self.rankings += 1,
                // An ingest may remove a ranking of an old snapshot meanwhile.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(error) => self.add(error),
            }
        }
    }

    /// Finds a snapshot that was never made current: an ingest was killed, or `latest.json` is an old one or lost.
    fn check_latest(&mut self, dir: &Path, current: Option<&str>, files: &[String]) {
        let order = |name: &str| (name.len(), name.to_owned());
        let Some(newest) = files.last().filter(|newest| {
            !self.busy && current.is_none_or(|current| order(newest) > order(current))
        }) else {
            return;
        };
        let latest = dir.join(SNAPSHOTS).join("latest.json");
        // The first snapshot may have been published in part; if there are others, they were current.
        if current.is_none() && files.len() > 1 {
            return self.add(Latest::lost(dir, files.len()));
        }
        let says = match current {
            Some(current) => format!("it names {current}, but {newest} is newer"),
            None => format!("it is missing, but {newest} exists"),
        };
        self.notes.push(format!(
            "{}: {says}: an ingest was stopped while it published that snapshot, or the file is an old one; run the \
             same ingest again to publish the current snapshot",
            latest.display()
        ));
    }

    fn add(&mut self, error: Error) {
        let text = error.to_string();
        if self.damage.iter().all(|known| known.to_string() != text) {
            self.damage.push(error);
        }
    }

    fn list(&mut self, disk: &dyn Disk, dir: &Path, view: Option<&View>) {
        let number = |name: &str| name.parse::<u64>().is_ok();
        let ends = [RANKING, ".tmp", ".unfinished", PINNED];
        let published = |name: &str| {
            let is_other = name == "latest.json" || ends.iter().any(|end| name.ends_with(end));
            is_other || is_snapshot(name)
        };
        self.list_one(disk, dir, is_own);
        self.list_one(disk, &dir.join("marks"), number);
        let own = |name: &str| number_of(name).is_some() || name.ends_with(".tmp");
        let rows = dir.join(ROWS);
        let keeps_none = view.is_some_and(|view| view.manifest.retention.kept().is_none());
        if !(keeps_none && is_missing(disk, &rows)) {
            self.list_one(disk, &rows, own);
        }
        self.list_one(disk, &dir.join(SNAPSHOTS), published);
    }

    fn list_one(&mut self, disk: &dyn Disk, dir: &Path, own: impl Fn(&str) -> bool) {
        match disk.list(dir) {
            Ok(names) => {
                let strangers = names.into_iter().filter(|name| !own(name));
                self.strangers.extend(strangers.map(|name| dir.join(name)));
            }
            Err(error) => self.add(Error::opening(dir)(error)),
        }
    }
}

fn is_snapshot(name: &str) -> bool {
    let number = name.strip_suffix(".snapshot");
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Checks that the current snapshot does not contradict the checkpoint.
fn check_fits(info: &Info, view: &View, snapshot: &Path) -> Result<()> {
    if info.counters.records > view.manifest.engine.counters.records {
        let (path, snapshot) = (view.dir.join("store.redb"), snapshot.display());
        let what = format!("it is older than the current snapshot, {snapshot}");
        return Err(Error::damaged(path, what));
    }
    if info.settings != view.identity.settings {
        let what = "it belongs to a store with other settings";
        return Err(Error::damaged(snapshot, what));
    }
    Ok(())
}
