//! Tests of the two phases of publication.

use std::path::Path;

use super::*;
use crate::decode::{Link, Record};
use crate::disk::RealDisk;
use crate::engine::{Certificate, Effort};
use crate::session::{Options, Writer};
use crate::snapshot::{KeepSnapshots, Snapshot, put_in_place};
use crate::store::open_view_to_publish;

/// Scores of three pages; other shards have the rest.
struct FixedScores;

impl Scores for FixedScores {
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

fn prepare_given<'v>(view: &'v View, ranks: &[u64]) -> Result<(TempFile<'v>, Info)> {
    prepare(&RealDisk, view, (&FixedScores, ranks), OF)
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
    let keep = KeepSnapshots::newest(1);
    let (path, info) = put_in_place(&RealDisk, &view, prepared, keep).unwrap();
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
