//! The snapshots that a store keeps: their list, lookup by number or time, pins, and removal.
//!
//! The number of a snapshot is the number of records read at it, which names its file. Its time is the latest fetch
//! time among these records. [`KeepSnapshots`] determines which snapshots stay, besides the pinned ones (with an empty
//! file `NUMBER.pinned` beside the snapshot), which are not counted. The current one always stays.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{
    ComputedName, Info, KeepSnapshots, Latest, SNAPSHOTS, Snapshot, SnapshotColumns, computed,
};
use crate::decode::Time;
use crate::disk::{Disk, DiskFile};
use crate::store::{IDENTITY, identity_of, lock_soon};
use crate::{Error, Result};

const SNAPSHOT: &str = ".snapshot";
pub const PINNED: &str = ".pinned";

/// Entry in the list of a store's snapshots.
#[derive(Debug)]
pub struct SnapshotEntry {
    /// Number of records read at the snapshot.
    pub number: u64,
    /// Path of its file.
    pub path: PathBuf,
    /// Length of its file in bytes; `None` if the system does not report it.
    pub bytes: Option<u64>,
    /// True if it stays regardless of newer ones.
    pub pinned: bool,
    /// True if it is the snapshot that commands read by default.
    pub current: bool,
    /// Counters and settings of the run, or why the snapshot cannot be read.
    pub info: Result<Info>,
    /// Names of the rankings that were computed beside it.
    pub computed: Vec<ComputedName>,
}

/// Selector of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotSelector {
    /// The snapshot of this number.
    Number(u64),
    /// The newest snapshot whose time is not later.
    Time(Time),
}

impl FromStr for SnapshotSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<SnapshotSelector, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().map_err(|_| format!("{text:?}: too large"))?;
            return Ok(SnapshotSelector::Number(number));
        }
        let day = |text: &str| -> Option<i64> {
            let end = text.parse::<jiff::civil::Date>().ok()?.at(23, 59, 59, 0);
            Some(
                end.to_zoned(jiff::tz::TimeZone::UTC)
                    .ok()?
                    .timestamp()
                    .as_second(),
            )
        };
        let second =
            |text: &str| -> Option<i64> { Some(text.parse::<jiff::Timestamp>().ok()?.as_second()) };
        let at = second(text).or_else(|| day(text));
        at.map(SnapshotSelector::Time).ok_or_else(|| {
            format!(
                "{text:?}: a snapshot's number, as `cashrank snapshots` lists it, or a time like \
                 2026-11-24 or 2026-11-24T12:00:00Z"
            )
        })
    }
}

/// Returns the numbers of the snapshots in a store's folder, oldest first, and of the pinned ones.
fn numbers(disk: &dyn Disk, store: &Path) -> Result<(Vec<u64>, Vec<u64>)> {
    let folder = store.join(SNAPSHOTS);
    let names = disk.list(&folder).map_err(Error::opening(&folder))?;
    let of = |ending: &str| {
        let number = |name: &String| name.strip_suffix(ending)?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    };
    Ok((of(SNAPSHOT), of(PINNED)))
}

fn path_of(store: &Path, number: u64, ending: &str) -> PathBuf {
    store.join(SNAPSHOTS).join(format!("{number:012}{ending}"))
}

/// Lists the snapshots of a store, oldest first, including those that cannot be read. Works while a writer runs.
///
/// # Errors
/// [`Error::Missing`] if there is no store.
pub fn snapshots(disk: &dyn Disk, store: &Path) -> Result<Vec<SnapshotEntry>> {
    identity_of(disk, store)?;
    let latest = Latest::published(disk, store)?.map(|latest| latest.snapshot);
    let (mut numbers, pinned) = numbers(disk, store)?;
    let current = latest.and_then(|name| name.strip_suffix(SNAPSHOT)?.parse::<u64>().ok());
    // The current one is never removed, but may be lost.
    numbers.extend(current);
    numbers.sort_unstable();
    numbers.dedup();
    let beside = computed(disk, store)?;
    let mut kept = Vec::new();
    for number in numbers {
        let path = path_of(store, number, SNAPSHOT);
        let is_current = current == Some(number);
        let mut opened = SnapshotColumns::open(disk, &path);
        if let Err(Error::Io { source, .. }) = &opened
            && source.kind() == std::io::ErrorKind::NotFound
        {
            // A writer may have removed it since.
            if !is_current {
                continue;
            }
            opened = Err(Latest::names_missing(path.clone()));
        }
        kept.push(SnapshotEntry {
            number,
            bytes: disk.read(&path).and_then(|file| file.size()).ok(),
            pinned: pinned.contains(&number),
            current: is_current,
            info: opened.map(|columns| columns.info().clone()),
            computed: beside
                .iter()
                .filter(|(of, ..)| *of == number)
                .map(|(_, name, _)| name.clone())
                .collect(),
            path,
        });
    }
    Ok(kept)
}

impl Snapshot {
    /// Opens one of a store's snapshots; the current one for `None`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such snapshot.
    pub fn of(disk: &dyn Disk, store: &Path, which: Option<SnapshotSelector>) -> Result<Snapshot> {
        let Some(which) = which else {
            return Snapshot::latest(disk, store);
        };
        let kept = snapshots(disk, store)?;
        let is_meant = |kept: &&SnapshotEntry| match which {
            SnapshotSelector::Number(number) => kept.number == number,
            SnapshotSelector::Time(time) => {
                let at = kept.info.as_ref().ok().and_then(|info| info.time);
                at.is_some_and(|at| at <= time)
            }
        };
        match kept.iter().rev().find(is_meant) {
            Some(kept) => Snapshot::open(disk, &kept.path),
            None => Err(Error::Missing(none_of(store, which, &kept))),
        }
    }
}

fn none_of(store: &Path, which: SnapshotSelector, kept: &[SnapshotEntry]) -> String {
    let numbers = match kept {
        [] => "there are none".into(),
        [one] => format!("there is {}", one.number),
        [first, .., last] => format!(
            "there are {}, from {} to {}",
            kept.len(),
            first.number,
            last.number
        ),
    };
    let what = match which {
        SnapshotSelector::Number(number) => format!("no snapshot {number}"),
        SnapshotSelector::Time(_) => {
            "no snapshot that early, or none whose records have times".into()
        }
    };
    format!(
        "{}: {what}: {numbers}; `cashrank snapshots` lists them",
        store.display()
    )
}

/// Takes the lock for deciding which snapshots stay, held while pins are read and others are removed. The writer's lock
/// does not serve, as pins are made while an ingest runs, so a file that every store has does. Returns `None` if it
/// stays locked.
fn choose(disk: &dyn Disk, store: &Path) -> Result<Option<Box<dyn DiskFile>>> {
    identity_of(disk, store)?;
    let path = store.join(IDENTITY);
    let file = disk.read(&path).map_err(Error::opening(&path))?;
    let locked = lock_soon(&*file).map_err(Error::io(&path, "lock"))?;
    Ok(locked.then_some(file))
}

/// Pins a snapshot so that it stays, or unpins it, even if it was lost. Returns false if nothing changed.
///
/// # Errors
/// [`Error::Missing`] if there is no store, or no such snapshot.
pub fn pin(disk: &dyn Disk, store: &Path, number: u64, pinned: bool) -> Result<bool> {
    let _choosing = choose(disk, store)?.ok_or_else(|| Error::Busy { path: store.into() })?;
    let (numbers, pins) = numbers(disk, store)?;
    let is_lost = !pinned && pins.contains(&number);
    if !numbers.contains(&number) && !is_lost {
        let kept = snapshots(disk, store)?;
        return Err(Error::Missing(none_of(
            store,
            SnapshotSelector::Number(number),
            &kept,
        )));
    }
    if pins.contains(&number) == pinned {
        return Ok(false);
    }
    let path = path_of(store, number, PINNED);
    if pinned {
        let file = disk.create_new(&path).map_err(Error::io(&path, "create"))?;
        file.sync().map_err(Error::io(&path, "sync"))?;
    } else {
        disk.remove(&path).map_err(Error::io(&path, "remove"))?
    }
    let folder = store.join(SNAPSHOTS);
    disk.sync_dir(&folder).map_err(Error::io(&folder, "sync"))?;
    Ok(true)
}

/// Removes all snapshots except for those to keep and the pinned ones, with the rankings beside them. Returns their
/// number. A reader that has one open can continue. All stay while one is being pinned, until the next time; so does
/// one that cannot be read at the moment. A damaged one counts as one without a time.
pub fn thin(disk: &dyn Disk, store: &Path, keep: KeepSnapshots) -> Result<u64> {
    if keep.is_all() {
        return Ok(0);
    }
    let Some(_choosing) = choose(disk, store)? else {
        return Ok(0);
    };
    let (numbers, pinned) = numbers(disk, store)?;
    let latest = Latest::read(disk, store)?.map(|latest| latest.snapshot);
    let is_current = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some() && name == latest.as_deref()
    };
    let mut unpinned: Vec<u64> = numbers
        .into_iter()
        .filter(|number| !pinned.contains(number))
        .collect();
    if keep.keeps_any(unpinned.len()) {
        return Ok(0);
    }
    let mut times = vec![None; unpinned.len()];
    if keep.needs_times() {
        times.clear();
        unpinned.retain(|number| {
            match SnapshotColumns::open(disk, &path_of(store, *number, SNAPSHOT)) {
                Err(Error::Io { .. }) => false,
                opened => {
                    times.push(opened.ok().and_then(|columns| columns.info().time));
                    true
                }
            }
        });
    }
    let computed = computed(disk, store)?;
    let mut removed = 0;
    for (number, stays) in unpinned.iter().zip(keep.stay(&times)) {
        let path = path_of(store, *number, SNAPSHOT);
        if !stays && !is_current(&path) {
            // First the rankings beside it, which are useless without it.
            for (_, _, beside) in computed.iter().filter(|(of, ..)| of == number) {
                disk.remove(beside).map_err(Error::io(beside, "remove"))?;
            }
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_meant_by_number_or_time() {
        assert_eq!("60".parse(), Ok(SnapshotSelector::Number(60)));
        assert_eq!("000000000060".parse(), Ok(SnapshotSelector::Number(60)));
        assert_eq!(
            "1970-01-02T00:00:00Z".parse(),
            Ok(SnapshotSelector::Time(86_400))
        );
        // A day extends to its end.
        assert_eq!("1970-01-01".parse(), Ok(SnapshotSelector::Time(86_399)));
        for wrong in ["", "yesterday", "-1", "99999999999999999999999"] {
            assert!(wrong.parse::<SnapshotSelector>().is_err(), "{wrong}");
        }
    }
}
