//! Regression: the best pages of many sites were read site by site. They take no more reads than there are blocks.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cashrank::{Link, Options, Record, Writer};
use cashrank_graph::engine::PageId;
use cashrank_graph::sites::Level;
use cashrank_store::snapshot::{LevelRanking, RankingName, Snapshot};
use cashrank_store::store::DiskFile;

use crate::disk::{Files, Meddled, MeddledFile, Over};
use crate::folder::in_memory;

/// Disk that counts reads of all files.
#[derive(Clone, Default)]
struct Reads(Arc<AtomicU64>);

impl Over for Reads {
    fn over(&self, _: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(MeddledFile(file, Arc::new(self.clone())))
    }
}

impl Files for Reads {
    fn read(&self, file: &dyn DiskFile, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        file.read_at(buf, offset)
    }
}

#[test]
fn blocks_are_read_once_for_all_sites() {
    const SITES: u64 = 500;
    let home = in_memory();
    let dir = home.path().join("store");
    let mut writer = Writer::open(&dir, &Options::default()).unwrap();
    for site in 0..SITES {
        let [page, other] = [0, 1].map(|page| format!("http://h{site}.example/{page}"));
        let record = Record {
            url: page.as_bytes().into(),
            links: [Link::to(other.as_bytes())].into(),
            ..Record::default()
        };
        writer.push(&record).unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    let reads = Reads::default();
    let disk = Meddled(reads.clone());
    let snapshot = Snapshot::latest(&disk, &dir).unwrap();
    let name = RankingName {
        level: Level::Host,
        ..RankingName::default()
    };
    let hosts = LevelRanking::open(&disk, snapshot, &name, None).unwrap();
    let read = |sites: u64| {
        let before = reads.0.load(Ordering::Relaxed);
        let sites: Vec<PageId> = (0..sites).map(PageId).collect();
        let best = hosts.best_pages(&sites, 2, None).unwrap();
        assert!(best.iter().all(|pages| pages.len() == 2));
        reads.0.load(Ordering::Relaxed) - before
    };
    let (one, all) = (read(1), read(SITES));
    assert!(0 < one && all < one + SITES / 10, "{one}, {all}");
}
