//! Publication of snapshots in two phases: a snapshot is written to a temporary file and made durable, then renamed.
//! Several stores are published together in this way: all are prepared before the first is renamed.

use std::path::PathBuf;
use std::sync::Mutex;

use crossbeam_channel::{Receiver, Sender};
use serde::{Deserialize, Serialize};

use super::kept::thin;
use super::settling::{SettleSettings, write_warm};
use super::write::{self, SnapshotWriter};
use super::{Info, KeepSnapshots, Latest, Watcher, computed, latest_info};
use crate::engine::{HistoryView, Scores, Window};
use crate::store::{Disk, SNAPSHOTS, TempFile, View};
use crate::{Error, Result};

#[derive(Debug)]
pub struct PublishedSnapshot {
    pub path: PathBuf,
    pub info: Info,
    /// Problems with reading the warm start and with writing the next one.
    pub warnings: Vec<String>,
    pub wrote_warm: bool,
}

/// Publishes something of a committed state with `publish`. Fails if the view does not hold the store's lock, as two
/// publishers would overwrite each other's files and order, or if the store was moved.
pub(super) fn with_lock<T>(
    disk: &dyn Disk,
    view: &View,
    publish: impl FnOnce() -> Result<T>,
) -> Result<T> {
    view.check_in_place(disk)?;
    if !view.is_writers() {
        return Err(Error::internal(
            "a ranking is published without the store's lock",
        ));
    }
    publish().map_err(|error| view.check_in_place(disk).err().unwrap_or(error))
}

/// Ranks the pages of a committed state and publishes this as the store's current snapshot: written to a temporary
/// file, synced, renamed; `latest.json` is replaced last. Importance is settled from the links; without `settle`,
/// or where no links are kept, it is that of the store's window. Removes older snapshots except for those to keep
/// and pinned ones. Returns `None` if settling was stopped from outside; nothing is published then. Fails without
/// the store's lock, or if the state is older than the current snapshot.
pub fn publish(
    disk: &dyn Disk,
    view: &View,
    keep: KeepSnapshots,
    settle: Option<&SettleSettings>,
) -> Result<Option<PublishedSnapshot>> {
    publish_in_turn(disk, view, keep, settle, &SnapshotTurn::default())
}

/// What waits for a snapshot, and what it waits for, while an ingest continues.
#[derive(Debug, Default)]
pub struct SnapshotTurn {
    /// Disconnected once the store may commit again; `None` if that waits for the end.
    pub apart: Option<Sender<()>>,
    /// Receives whether the warm start was written, once the next ranking may begin; without it, that is written last.
    pub settled: Option<Sender<bool>>,
    /// Disconnected once the previous snapshot has ended, and its results were recorded; this one is published after that.
    pub previous: Option<Receiver<()>>,
}

/// Publishes while an ingest continues, and keeps all snapshots: copies the cash first, so that the store may commit.
pub fn publish_meanwhile(
    disk: &dyn Disk,
    view: &mut View,
    settle: Option<&SettleSettings>,
    mut turn: SnapshotTurn,
) -> Result<Option<PublishedSnapshot>> {
    let keep = KeepSnapshots::ALL;
    let Some(apart) = turn.apart.take() else {
        return publish_in_turn(disk, view, keep, settle, &turn);
    };
    let name = format!("{:012}.cash.tmp", view.counters().records);
    let path = view.dir().join(SNAPSHOTS).join(name);
    view.set_cash_aside(disk, &path)?;
    drop(apart);
    let published = publish_in_turn(disk, view, keep, settle, &turn)?;
    disk.remove(&path).map_err(Error::io(&path, "remove"))?;
    Ok(published)
}

fn publish_in_turn(
    disk: &dyn Disk,
    view: &View,
    keep: KeepSnapshots,
    settle: Option<&SettleSettings>,
    turn: &SnapshotTurn,
) -> Result<Option<PublishedSnapshot>> {
    with_lock(disk, view, || {
        let mut warnings = Vec::new();
        let is_warm = settle.is_some_and(|settle| settle.writes_warm && settle.may_be_warm());
        let next = turn.settled.as_ref().filter(|_| is_warm);
        let written = write::write(disk, view, keep, settle, &mut warnings, next)?;
        let Some((prepared, settled, mut wrote_warm)) = written else {
            return Ok(None);
        };
        if let Some(previous) = &turn.previous {
            // Nothing is sent.
            let _ = previous.recv();
        }
        let (path, info) = prepared.publish()?;
        // If nothing waits for it, the ranking comes first: the disk may have little room.
        if let Some(settled) = settled.filter(|_| is_warm && next.is_none()) {
            wrote_warm = write_warm(disk, view, &settled, &mut warnings)?;
        }
        Ok(Some(PublishedSnapshot {
            path,
            info,
            warnings,
            wrote_warm,
        }))
    })
}

/// Ranking over the shards of a crawl that a shard's snapshot is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRanking {
    /// Identifier, equal in the snapshots of all shards.
    #[serde(with = "hex")]
    pub id: u64,
    pub shards: u32,
    /// Number of own pages in all shards; ranks refer to them, and their importance sums to 1.
    pub pages: u64,
}

/// Serde functions for 64-bit numbers as 16 hexadecimal digits.
mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{number:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        number.ok_or_else(|| D::Error::custom(format!("{text:?}: 16 hexadecimal digits")))
    }
}

/// Complete and durable snapshot that is not published yet. Removed on drop.
pub struct Prepared<'v> {
    pub(super) disk: &'v dyn Disk,
    pub(super) view: &'v View,
    pub(super) file: TempFile<'v>,
    pub(super) info: Info,
    pub(super) keep: KeepSnapshots,
}

impl Prepared<'_> {
    /// Makes the snapshot the store's current one, and removes older ones by the retention rule. `latest.json` is
    /// replaced last, except if it already names a snapshot of the same records, which this one replaces: then it is
    /// replaced first, so that the names of new pages are available before the snapshot. After an error the current
    /// snapshot is intact.
    pub fn publish(self) -> Result<(PathBuf, Info)> {
        let (disk, view, info) = (self.disk, self.view, self.info);
        let name = self.file.place.file_name().unwrap_or_default();
        let latest = Latest {
            snapshot: name.to_string_lossy().into_owned(),
            names: view.name_lengths(),
            rows: *view.rows_retention(),
        };
        let current = Latest::read(disk, view.dir()).ok().flatten();
        let replaces = (current.as_ref()).is_some_and(|at| at.snapshot == latest.snapshot);
        if replaces {
            remove_computed(disk, view, &info)?;
            latest.write(disk, view.dir())?;
        } else if current.is_none() {
            Latest::begin(disk, view.dir())?;
        }
        let path = self.file.put_in_place()?;
        if !replaces {
            latest.write(disk, view.dir())?;
        }
        thin(disk, view.dir(), self.keep)?;
        Ok((path, info))
    }
}

/// Removes rankings beside a replaced snapshot of the same records that had fewer pages.
fn remove_computed(disk: &dyn Disk, view: &View, info: &Info) -> Result<()> {
    if latest_info(disk, view.dir()).is_some_and(|before| before.pages == info.pages) {
        return Ok(());
    }
    for (number, _, path) in computed(disk, view.dir())? {
        if number == info.counters.records {
            disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Writes the snapshot of a shard's commit, and makes it durable; [`Prepared::publish`] publishes it. Scores and ranks
/// are those of all pages that the shard knows; `of` is the ranking of all shards that they are part of. Fails without
/// the store's lock, or if a newer snapshot was published.
pub fn prepare<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    (scores, ranks): (&dyn Scores, &[u64]),
    of: ClusterRanking,
    keep: KeepSnapshots,
) -> Result<Prepared<'v>> {
    if ranks.len() as u64 != view.totals().pages {
        return Err(Error::internal("a ranking is not of the pages of a commit"));
    }
    with_lock(disk, view, || {
        let mut writer = SnapshotWriter::begin(disk, view)?;
        writer.facts(&Mutex::default(), (0, &Watcher::default()))?;
        let window = Window::settled(&view.settings().config, scores);
        writer.scores(scores, window.estimator, None)?;
        writer.ranks(ranks.iter().copied().map(Ok))?;
        writer.finish(window, None, Some(of), keep)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::decode::{Link, Record};
    use crate::disk::RealDisk;
    use crate::engine::{Certificate, Effort};
    use crate::session::{Options, Writer};
    use crate::snapshot::Snapshot;
    use crate::store::open_view_to_publish;

    /// Scores of three pages; other shards have the rest.
    struct Given;

    impl Scores for Given {
        fn certificate(&self) -> Option<Certificate> {
            Some(Certificate {
                residual_l1: 0.001,
                rounding_l1: 0.0,
                received_l1: Some(0.01),
                distributed_l1: Some(0.02),
            })
        }

        fn effort(&self) -> Effort {
            Effort {
                until: 0.02,
                reached: true,
                sweeps: 3,
                links_touched: 4,
                links: 5,
                resumed: false,
            }
        }

        fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
            let all = [(0.125, 0.25), (0.375, 0.0), (0.0625, 0.5)];
            out.clear();
            out.extend_from_slice(&all[first as usize..first as usize + len]);
            Ok(())
        }
    }

    const OF: ClusterRanking = ClusterRanking {
        id: 0xfe,
        shards: 4,
        pages: 900,
    };

    fn prepare_given<'v>(view: &'v View, ranks: &[u64]) -> Result<Prepared<'v>> {
        let keep = KeepSnapshots::newest(1);
        prepare(&RealDisk, view, (&Given, ranks), OF, keep)
    }

    /// Creates a store of three pages with a published ranking.
    fn store(dir: &Path) {
        let mut writer = Writer::open(dir, &Options::default()).unwrap();
        let links = ["http://b/", "http://c/"].map(|link| Link::to(link.as_bytes()));
        let record = Record {
            url: b"http://a/".into(),
            links: links.into(),
            fetched_at: Some(86_400),
            ..Record::default()
        };
        writer.push(&record).unwrap();
        writer.publish().unwrap();
        writer.push(&record).unwrap();
        writer.checkpoint().unwrap();
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir.join(SNAPSHOTS)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_ranking_is_published_in_two_phases() {
        let home = cashrank_base::folder::in_memory();
        let dir = home.path().join("store");
        store(&dir);
        let before = ["000000000001.snapshot", "latest.json"];
        assert_eq!(names(&dir), before);
        let latest = std::fs::read(dir.join("snapshots/latest.json")).unwrap();
        let view = open_view_to_publish(&RealDisk, &dir).unwrap();
        let prepared = prepare_given(&view, &[17, 2, 900]).unwrap();
        assert_eq!(
            names(&dir),
            [before[0], "000000000002.tmp", before[1]],
            "nothing is published yet"
        );
        drop(prepared);
        assert_eq!(names(&dir), before);
        assert!(std::fs::read(dir.join("snapshots/latest.json")).unwrap() == latest);

        let prepared = prepare_given(&view, &[17, 2, 900]).unwrap();
        let (path, info) = prepared.publish().unwrap();
        assert_eq!(
            names(&dir),
            ["000000000002.snapshot", "latest.json"],
            "one is to stay"
        );
        let snapshot = Snapshot::latest(&RealDisk, &dir).unwrap();
        assert_eq!((snapshot.path(), snapshot.info()), (&*path, &info));
        assert_eq!(
            (info.cluster, info.ranked_pages(), info.pages),
            (Some(OF), 900, 3)
        );
        assert_eq!((info.time, info.visits), (Some(86_400), 2));
        assert!(
            info.bound_l1()
                .is_some_and(|bound| (bound - 0.01).abs() < 1e-6)
        );
        let pages: Vec<_> = snapshot.pages().map(|page| page.unwrap()).collect();
        let scores = pages
            .iter()
            .map(|page| (page.importance, page.distributed, page.rank));
        let expected = [(0.125, 0.25, 17), (0.375, 0.0, 2), (0.0625, 0.5, 900)];
        assert!(scores.eq(expected));
        assert_eq!(pages[0].fetches.visits, 2);
        // 1 - 16/900 of all pages do not rank higher.
        let rank = &snapshot.ranks(&["http://a/".into()]).unwrap()[0];
        assert!((rank.percentile.unwrap() - 100.0 * (1.0 - 16.0 / 900.0)).abs() < 1e-9);
        // The sum is below 1: other shards have the rest.
        snapshot.verify().unwrap();
        let json = serde_json::to_value(&info).unwrap();
        assert_eq!(
            json["cluster"],
            serde_json::json!({"id": "00000000000000fe", "shards": 4, "pages": 900})
        );
    }

    #[test]
    fn a_ranking_of_other_pages_is_refused() {
        let home = cashrank_base::folder::in_memory();
        let dir = home.path().join("store");
        store(&dir);
        let view = open_view_to_publish(&RealDisk, &dir).unwrap();
        assert!(prepare_given(&view, &[1, 2]).is_err());
        assert_eq!(names(&dir).len(), 2);
        drop(view);
        // Nor without the lock.
        let unlocked = crate::store::open_view(&RealDisk, &dir).unwrap();
        assert!(prepare_given(&unlocked, &[1, 2, 3]).is_err());
        assert_eq!(names(&dir).len(), 2);
    }

    /// The leftover of a killed process is removed when the store is opened for writing.
    #[test]
    fn a_file_that_was_left_is_removed() {
        let home = cashrank_base::folder::in_memory();
        let dir = home.path().join("store");
        store(&dir);
        let view = open_view_to_publish(&RealDisk, &dir).unwrap();
        let prepared = prepare_given(&view, &[1, 2, 3]).unwrap();
        std::mem::forget(prepared);
        drop(view);
        assert_eq!(names(&dir).len(), 3);
        drop(Writer::open(&dir, &Options::default()).unwrap());
        assert_eq!(names(&dir).len(), 2);
    }

    #[test]
    fn an_id_is_16_digits() {
        for wrong in [
            "fe",
            "+0000000000000fe",
            "00000000000000fg",
            "00000000000000fe0",
        ] {
            let json = serde_json::json!({"id": wrong, "shards": 4, "pages": 900});
            assert!(
                serde_json::from_value::<ClusterRanking>(json).is_err(),
                "{wrong}"
            );
        }
    }
}
