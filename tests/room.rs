//! A disk that has room for a ranking only if the index, or the warm start, makes room.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::{Options, Record, Writer};
use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::store::{Disk, DiskFile, RealDisk};

use crate::crawl::crawl;
use crate::disk::{Files, Meddled, MeddledFile, NoRoomIn, Over};
use crate::folder::in_memory;

/// Disk without room for snapshots while the store in `0` has an index.
#[derive(Clone)]
struct Nearly(PathBuf);

impl Nearly {
    fn has_index(&self) -> bool {
        self.0.join("index").exists()
    }
}

impl Over for Nearly {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.parent().is_some_and(|dir| dir.ends_with("snapshots")) {
            Box::new(MeddledFile(file, Arc::new(self.clone())))
        } else {
            file
        }
    }
}

impl Files for Nearly {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        if self.has_index() {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            file.write_at(data, offset)
        }
    }
}

#[derive(Default)]
struct Notes {
    not_kept: usize,
    published: usize,
    warned: usize,
}

impl Observer for Notes {
    fn note(&mut self, note: IngestEvent<'_>) {
        match note {
            IngestEvent::IndexNotKept { .. } => self.not_kept += 1,
            IngestEvent::Published { .. } => self.published += 1,
            IngestEvent::Warm { .. } => self.warned += 1,
            _ => {}
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Reads the bytes of a store's current snapshot.
fn snapshot(store: &Path) -> Vec<u8> {
    let latest = fs::read(store.join("snapshots/latest.json")).unwrap();
    let latest: serde_json::Value = serde_json::from_slice(&latest).unwrap();
    fs::read(
        store
            .join("snapshots")
            .join(latest["snapshot"].as_str().unwrap()),
    )
    .unwrap()
}

/// Regression: the index was written before the ranking at a run's end, and could take the last room for it.
#[test]
fn the_index_gives_its_room_to_the_ranking() {
    let lab = in_memory();
    let input = lab.path().join("crawl");
    let record = |host| {
        let links = (0..20_000).map(|page| format!("http://h{host}.example/{page}"));
        links.collect::<Vec<String>>()
    };
    let records = [record(0), record(1)];
    let line = |links: &Vec<String>| {
        serde_json::json!({"url": links[0], "links": links}).to_string() + "\n"
    };
    fs::write(&input, records.iter().map(line).collect::<String>()).unwrap();
    let job = |store: &Path| IngestJob::new(store, vec![InputName::File(input.clone())]);
    let [whole, full] = ["whole", "full"].map(|name| lab.path().join(name));
    let mut notes = Notes::default();
    ingest(&job(&whole), Arc::new(RealDisk), &mut notes).unwrap();
    assert_eq!((notes.not_kept, notes.published), (0, 1));
    assert!(Nearly(whole.clone()).has_index());
    let mut notes = Notes::default();
    ingest(
        &job(&full),
        Arc::new(Meddled(Nearly(full.clone()))),
        &mut notes,
    )
    .unwrap();
    assert_eq!((notes.not_kept, notes.published), (1, 1));
    assert!(!Nearly(full.clone()).has_index());
    assert!(snapshot(&full) == snapshot(&whole));

    let pushed = lab.path().join("pushed");
    let disk = Arc::new(Meddled(Nearly(pushed.clone())));
    let mut writer = Writer::open_on(disk, &pushed, &Options::default()).unwrap();
    for record in &records {
        let links = record.iter().map(String::as_str);
        writer.push(&Record::new(&record[0], links)).unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    assert!(!Nearly(pushed).has_index());
}

/// A warm start without room is left out, which is reported: the ranking is published, and the next one starts from the
/// one before.
#[test]
fn a_warm_start_without_room_is_left_out() {
    let lab = in_memory();
    let crawl = crawl(7, 400);
    let file = |name: &str, lines: &[String]| {
        let path = lab.path().join(name);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    };
    let files = [
        file("first", &crawl[..200]),
        file("second", &crawl[200..300]),
        file("third", &crawl[300..]),
    ];
    let store = lab.path().join("store");
    let full: Arc<dyn Disk> = Arc::new(Meddled(NoRoomIn("/warm.tmp")));
    let real: Arc<dyn Disk> = Arc::new(RealDisk);
    let read = |disk: &Arc<dyn Disk>, file: &Path| {
        let mut notes = Notes::default();
        let job = IngestJob::new(&store, vec![InputName::File(file.into())]);
        ingest(&job, disk.clone(), &mut notes).unwrap();
        (notes.published, notes.warned)
    };
    let warm = || fs::read(store.join("warm")).ok();
    assert_eq!(read(&full, &files[0]), (1, 1));
    assert!(warm().is_none() && !store.join("warm.tmp").exists());
    assert_eq!(read(&real, &files[1]), (1, 0));
    let before = warm();
    assert!(before.is_some());
    assert_eq!(read(&full, &files[2]), (1, 1));
    assert!(warm() == before);
}
