//! The snapshots that a store keeps: their list, lookup by number or time, pins, and which of them stay when a new one
//! is published ([`KeepSnapshots`]).
//!
//! The number of a snapshot is the number of records read at it, which names its file. Its time is the latest fetch
//! time among these records. Pinned snapshots (with an empty file `NUMBER.pinned` beside the snapshot) stay and are not
//! counted. So does the current one.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{ComputedName, Info, Latest, SNAPSHOTS, Snapshot, SnapshotColumns, computed};
use crate::decode::Time;
use crate::disk::{Disk, DiskFile};
use crate::model::utc;
use crate::store::{IDENTITY, identity_of, lock_soon};
use crate::{Error, Result};

/// Counts by name, and for groups the number of trailing characters of an RFC 3339 time that are ignored.
const COUNTS: [(&str, usize); 4] = [("recent", 0), ("hourly", 7), ("daily", 10), ("monthly", 13)];
const ALL: usize = usize::MAX;

/// Rule for which snapshots stay, besides the current and pinned ones: the newest `recent=N`, and by `hourly=N`,
/// `daily=N`, `monthly=N` the newest one of each of the newest N hours, days, months (in UTC) that have snapshots. A
/// snapshot stays if any count keeps it; one without a time is in no group.
/// This depends on no clock, and not on when older ones were removed.
///
/// Written like `recent=10,daily=30,monthly=all`; a number N is short for `recent=N`, and 0 for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepSnapshots([usize; COUNTS.len()]);

impl KeepSnapshots {
    pub const ALL: KeepSnapshots = KeepSnapshots::newest(ALL);
    /// Keeps the newest ten, one for each of the last 30 days that have one, and one for each month.
    pub const USUAL: KeepSnapshots = KeepSnapshots([10, 0, 30, ALL]);

    pub const fn newest(recent: usize) -> KeepSnapshots {
        KeepSnapshots([recent, 0, 0, 0])
    }

    /// Returns true if none is ever removed.
    pub fn is_all(self) -> bool {
        self.0[0] == ALL
    }

    /// Returns which snapshots stay, given their times, oldest first.
    pub(super) fn stay(self, times: &[Option<Time>]) -> Vec<bool> {
        let mut found = [(); COUNTS.len()].map(|()| HashSet::new());
        let mut stay = vec![false; times.len()];
        for (newer, (stay, time)) in stay.iter_mut().zip(times).rev().enumerate() {
            *stay = newer < self.0[0];
            let Some(text) = time.and_then(utc) else {
                continue;
            };
            for (at, (_, ignored)) in COUNTS.iter().enumerate().skip(1) {
                let group = text[..text.len().saturating_sub(*ignored)].to_owned();
                *stay |= found[at].insert(group) && found[at].len() <= self.0[at];
            }
        }
        stay
    }
}

impl FromStr for KeepSnapshots {
    type Err = String;

    fn from_str(text: &str) -> Result<KeepSnapshots, String> {
        let wrong = || {
            format!(
                "{text:?}: a number of snapshots (0: all), or a list like recent=10,hourly=24,daily=30,monthly=all"
            )
        };
        if let Ok(recent) = text.parse() {
            let recent = if recent == 0 { ALL } else { recent };
            return Ok(KeepSnapshots::newest(recent));
        }
        let mut counts = [None; COUNTS.len()];
        for part in text.split(',') {
            let (name, count) = part.split_once('=').ok_or_else(wrong)?;
            let count = match count {
                "all" => ALL,
                count => count.parse().map_err(|_| wrong())?,
            };
            let named = COUNTS.iter().position(|(known, _)| *known == name);
            if counts[named.ok_or_else(wrong)?].replace(count).is_some() {
                return Err(format!("{text:?}: {name} is there twice"));
            }
        }
        Ok(KeepSnapshots(counts.map(|count| count.unwrap_or(0))))
    }
}

impl fmt::Display for KeepSnapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, ((name, _), &count)) in COUNTS.iter().zip(&self.0).enumerate() {
            if at > 0 && count == 0 {
                continue;
            }
            let comma = if at > 0 { "," } else { "" };
            match count {
                ALL => write!(f, "{comma}{name}=all")?,
                count => write!(f, "{comma}{name}={count}")?,
            }
        }
        Ok(())
    }
}

const SNAPSHOT: &str = ".snapshot";
pub const PINNED: &str = ".pinned";

#[derive(Debug)]
pub struct SnapshotEntry {
    pub number: u64,
    pub path: PathBuf,
    /// Length of the file in bytes; `None` if the system does not report it.
    pub bytes: Option<u64>,
    /// True if it stays regardless of newer ones.
    pub pinned: bool,
    /// True if it is the snapshot that commands read by default.
    pub current: bool,
    /// Counters and settings of the run, or why the snapshot cannot be read.
    pub info: Result<Info>,
    /// Names of the rankings that were computed beside the snapshot.
    pub computed: Vec<ComputedName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotSelector {
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
        let end_of_day = || {
            let end = text.parse::<jiff::civil::Date>().ok()?.at(23, 59, 59, 0);
            Some(end.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
        };
        let time = text.parse::<jiff::Timestamp>().ok().or_else(end_of_day);
        let at = time.map(|time| SnapshotSelector::Time(time.as_second()));
        at.ok_or_else(|| {
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

/// Lists a store's snapshots, oldest first, readable or not; [`Error::Missing`] without a store. A writer may run.
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
        let info = match SnapshotColumns::of(disk, &path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                // A writer may have removed it since.
                if !is_current {
                    continue;
                }
                Err(Latest::names_missing(path.clone()))
            }
            opened => opened.map(|columns| columns.info),
        };
        let computed = beside.iter().filter(|(of, ..)| *of == number);
        kept.push(SnapshotEntry {
            number,
            bytes: disk.read(&path).and_then(|file| file.size()).ok(),
            pinned: pinned.contains(&number),
            current: is_current,
            info,
            computed: computed.map(|(_, name, _)| name.clone()).collect(),
            path,
        });
    }
    Ok(kept)
}

impl Snapshot {
    /// Opens one of a store's snapshots, the current one for `None`; [`Error::Missing`] if there is none.
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
            None => Err(none_of(store, which, &kept)),
        }
    }
}

fn none_of(store: &Path, which: SnapshotSelector, kept: &[SnapshotEntry]) -> Error {
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
    Error::Missing(format!(
        "{}: {what}: {numbers}; `cashrank snapshots` lists them",
        store.display()
    ))
}

/// Takes the lock for deciding which snapshots stay, held while pins are read; `None` if it stays locked. It is not the
/// writer's, as pins are made while an ingest runs.
fn choose(disk: &dyn Disk, store: &Path) -> Result<Option<Box<dyn DiskFile>>> {
    identity_of(disk, store)?;
    let path = store.join(IDENTITY);
    let file = disk.read(&path).map_err(Error::opening(&path))?;
    let locked = lock_soon(&*file).map_err(Error::io(&path, "lock"))?;
    Ok(locked.then_some(file))
}

/// Pins a snapshot so that it stays, or unpins it, even if it was lost. Returns false if nothing changed;
/// [`Error::Missing`] if there is no store, or no such snapshot.
pub fn pin(disk: &dyn Disk, store: &Path, number: u64, pinned: bool) -> Result<bool> {
    let _choosing = choose(disk, store)?.ok_or_else(|| Error::Busy { path: store.into() })?;
    let (numbers, pins) = numbers(disk, store)?;
    let is_lost = !pinned && pins.contains(&number);
    if !numbers.contains(&number) && !is_lost {
        let which = SnapshotSelector::Number(number);
        return Err(none_of(store, which, &snapshots(disk, store)?));
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
/// number. All stay while one is being pinned; so does one that cannot be read at the moment.
pub fn thin(disk: &dyn Disk, store: &Path, keep: KeepSnapshots) -> Result<u64> {
    if keep.is_all() {
        return Ok(0);
    }
    let Some(_choosing) = choose(disk, store)? else {
        return Ok(0);
    };
    let (all, pinned) = numbers(disk, store)?;
    if all.iter().filter(|number| !pinned.contains(number)).count() <= keep.0[0] {
        return Ok(0);
    }
    let mut unpinned = snapshots(disk, store)?;
    unpinned.retain(|kept| {
        !kept.pinned && !matches!(kept.info, Err(Error::Io { .. } | Error::Unsupported(_)))
    });
    let times = unpinned.iter();
    let times: Vec<_> = times
        .map(|kept| kept.info.as_ref().ok().and_then(|info| info.time))
        .collect();
    let mut removed = 0;
    for (kept, stays) in unpinned.iter().zip(keep.stay(&times)) {
        if stays || kept.current {
            continue;
        }
        // First the rankings beside it, which are useless without it.
        let beside = kept.computed.iter().map(|name| name.path_for(&kept.path));
        for path in beside.chain([kept.path.clone()]) {
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    const HOUR: Time = 3_600;
    const DAY: Time = 24 * HOUR;

    fn keep(text: &str) -> KeepSnapshots {
        text.parse().unwrap()
    }

    /// Returns the positions of the snapshots that stay.
    fn stay(text: &str, times: &[Option<Time>]) -> Vec<usize> {
        let stay = keep(text).stay(times).into_iter().enumerate();
        stay.filter(|(_, stay)| *stay).map(|(at, _)| at).collect()
    }

    #[test]
    fn rules_are_read_and_written() {
        assert_eq!(keep("0"), KeepSnapshots::ALL);
        assert_eq!(keep("recent=all"), KeepSnapshots::ALL);
        assert_eq!(keep("7"), keep("recent=7"));
        assert_eq!(keep("recent=10,daily=30,monthly=all"), KeepSnapshots::USUAL);
        for text in [
            "recent=10,hourly=24,daily=30,monthly=all",
            "recent=0,hourly=3",
        ] {
            assert_eq!(keep(text).to_string(), text);
            assert_eq!(keep(&keep(text).to_string()), keep(text));
        }
        for wrong in [
            "",
            "-1",
            "x",
            "daily",
            "daily=",
            "daily=x",
            "yearly=1",
            "recent=1,",
            "daily=1,daily=2",
        ] {
            assert!(wrong.parse::<KeepSnapshots>().is_err(), "{wrong}");
        }
    }

    /// A snapshot every six hours for three days: 0 to 11; the last of each day are 3, 7, 11.
    #[test]
    fn the_newest_of_each_group_stays() {
        let times: Vec<Option<Time>> = (0..12).map(|at| Some(at * 6 * HOUR)).collect();
        assert_eq!(stay("2", &times), [10, 11]);
        assert_eq!(stay("daily=all", &times), [3, 7, 11]);
        assert_eq!(stay("recent=2,daily=2", &times), [7, 10, 11]);
        assert_eq!(stay("hourly=3", &times), [9, 10, 11]);
        // 1970-01-31, 02-01, 02-28, 03-01.
        let months = [30, 31, 58, 59].map(|day| Some(day * DAY));
        assert_eq!(stay("monthly=all", &months), [0, 2, 3]);
        assert_eq!(stay("monthly=2", &months), [2, 3]);
    }

    #[test]
    fn times_that_go_back_jump_ahead_or_are_not_known_remove_little() {
        let day = |day: Time| Some(day * DAY);
        // Back into the past and on, and far ahead once.
        let times = [
            day(1),
            day(2),
            day(3),
            day(-9_999),
            day(4),
            day(99_999),
            day(5),
        ];
        assert_eq!(stay("daily=all", &times), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(stay("daily=3", &times), [4, 5, 6]);
        assert_eq!(
            stay("recent=1,daily=1", &[day(1), None, day(1), None]),
            [2, 3]
        );
        // Beyond what can be written.
        assert_eq!(
            stay("recent=1,daily=9", &[Some(Time::MAX), Some(Time::MIN)]),
            [1]
        );
    }

    proptest! {
        /// Removing after each snapshot leaves the same as removing once at the end, in whatever order times come.
        #[test]
        fn it_does_not_matter_when_they_are_removed(
            times in prop::collection::vec(prop::option::weighted(0.9, 0..40 * DAY), 0..60),
            recent in 0usize..5,
            hourly in 0usize..5,
            daily in 0usize..5,
            monthly in 0usize..3,
        ) {
            let rule = keep(&format!("recent={recent},hourly={hourly},daily={daily},monthly={monthly}"));
            let once: Vec<usize> = rule.stay(&times).into_iter().enumerate()
                .filter(|(_, stay)| *stay).map(|(at, _)| at).collect();
            let mut kept: Vec<usize> = Vec::new();
            for at in 0..times.len() {
                kept.push(at);
                let of: Vec<Option<Time>> = kept.iter().map(|&at| times[at]).collect();
                let stay = rule.stay(&of);
                kept = kept.into_iter().zip(stay).filter(|(_, stay)| *stay).map(|(at, _)| at).collect();
            }
            prop_assert_eq!(kept, once);
        }
    }
}
