//! A disk that has room for a ranking only where the index gives up its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::ingest::{Every, Job, Note, Observer, ProgressReport, ingest};
use cashrank::source::InputName;
use cashrank::store::{Disk, DiskFile, Partitions, RealDisk};
use cashrank::{Error, Options, Record, Writer};

use crate::crawl::crawl;
use crate::disk::{Files, Meddled, MeddledFile, NoRoomIn, Over};

/// A disk without room for snapshots while the store in `0`, or a partition of it, has an index.
#[derive(Clone)]
struct Nearly(PathBuf);

impl Nearly {
    fn has_index(&self) -> bool {
        let parts = RealDisk.list(&self.0.join("parts")).unwrap_or_default();
        let parts = parts.iter().map(|part| self.0.join("parts").join(part));
        parts
            .chain([self.0.clone()])
            .any(|store| store.join("index").exists())
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
}

impl Observer for Notes {
    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::IndexNotKept { .. } => self.not_kept += 1,
            Note::Published { .. } => self.published += 1,
            _ => {}
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// The bytes of a store's current snapshot.
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

/// Its story: the index was written before the ranking at a run's end, and may have taken the last room that this had.
#[test]
fn the_index_gives_its_room_to_the_ranking() {
    for partitions in [1, 2] {
        let lab = tempfile::tempdir().unwrap();
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
        let job = |store: &Path| {
            let mut job = Job::new(store, vec![InputName::File(input.clone())]);
            job.settings.partitions = Partitions::of(partitions).unwrap();
            job
        };
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
        let options = Options {
            partitions: Partitions::of(partitions).unwrap(),
            ..Options::default()
        };
        let mut writer = Writer::open_on(disk, &pushed, &options).unwrap();
        for record in &records {
            let links = record.iter().map(String::as_str);
            writer.push(&Record::new(&record[0], links)).unwrap();
        }
        writer.publish().unwrap();
        drop(writer);
        assert!(!Nearly(pushed).has_index());
    }
}

/// After several passes a ranking is settled as near as the window is. So is the base that this owes where there was no room
/// for it: it is made before the next commit, which would not tell how near that was, or there is none.
#[test]
fn a_base_that_passes_owe_is_that_of_their_ranking() {
    let lab = tempfile::tempdir().unwrap();
    let file = lab.path().join("crawl");
    fs::write(&file, crawl(5, 300).join("\n") + "\n").unwrap();
    let passes = |disk: Arc<dyn Disk>, store: &str, repeat| {
        let job = Job {
            repeat,
            settle: Some(0.9.into()),
            checkpoint_every: Every::Records(50),
            ..Job::new(lab.path().join(store), vec![InputName::File(file.clone())])
        };
        ingest(&job, disk, &mut Notes::default())
    };
    let run = |store, repeat| passes(Arc::new(RealDisk), store, repeat).unwrap();
    let full = |repeat| passes(Arc::new(Meddled(NoRoomIn("/base/"))), "full", repeat);
    let settled = run("whole", 12).snapshot.unwrap().1.window.settled.unwrap();
    assert!(settled.until < 0.5, "{settled:?}");
    run("whole", 20);

    full(12).unwrap();
    let refused = full(20);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    run("full", 20);
    let [whole, full] = ["whole", "full"].map(|store| snapshot(&lab.path().join(store)));
    assert!(whole == full);
}
