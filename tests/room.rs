//! A disk that has room for a ranking only where the index gives up its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::ingest::{Every, Job, Note, Observer, ProgressReport, ingest};
use cashrank::snapshot::{
    KeepSnapshots, RANK_BYTES, Settle, SnapshotOptions, make_owed_at_rest, publish_at_rest,
};
use cashrank::source::InputName;
use cashrank::store::{Disk, DiskFile, RealDisk, open_view_to_publish};
use cashrank::{Error, Options, Record, Result, Writer};

use crate::crawl::crawl;
use crate::disk::{Files, Meddled, MeddledFile, NoRoomIn, Over};

/// A disk without room for snapshots while the store in `0` has an index.
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
    let job = |store: &Path| Job::new(store, vec![InputName::File(input.clone())]);
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

/// A settled base that there was no room for is made by whoever writes next, before all else, as near as it was to be:
/// by `settle`, by an ingest that asks for something else, by a writer. All that comes later has the same bytes as with room.
#[test]
fn a_base_without_room_is_made_by_whoever_comes_next() {
    let lab = tempfile::tempdir().unwrap();
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
    let real: Arc<dyn Disk> = Arc::new(RealDisk);
    let disks: [(&str, Arc<dyn Disk>); 2] = [
        ("whole", real.clone()),
        ("full", Arc::new(Meddled(NoRoomIn("/base/")))),
    ];
    let read = |disk: &Arc<dyn Disk>, store: &Path, file: &Path, settle| {
        let mut job = Job::new(store, vec![InputName::File(file.into())]);
        job.settle = Option::map(settle, f64::into);
        ingest(&job, disk.clone(), &mut Notes::default()).unwrap();
    };
    let settle = |disk: &dyn Disk, store: &Path, until: f64| -> Result<usize> {
        let view = open_view_to_publish(disk, store)?;
        let (view, _) = make_owed_at_rest(disk, view, &Settle::until(until))?;
        let making = SnapshotOptions {
            keep: KeepSnapshots::ALL,
            rank_bytes: RANK_BYTES,
            settle: Some(Settle::until(until)),
        };
        Ok(publish_at_rest(disk, &view, making)?
            .unwrap()
            .warnings
            .len())
    };
    // What is done with a disk that may be full, and then with one that is not.
    type Steps<'a> = &'a dyn Fn(&Arc<dyn Disk>, &Path, &Arc<dyn Disk>);
    let after_ingest: Steps = &|disk, store, real| {
        read(disk, store, &files[0], Some(0.3));
        assert_eq!(settle(&**real, store, 1e-2).unwrap(), 0);
    };
    let settled: Steps = &|disk, store, real| {
        read(real, store, &files[0], Some(0.3));
        let is_full = !Arc::ptr_eq(disk, real);
        let warnings = settle(&**disk, store, 1e-4).unwrap();
        assert_eq!(warnings, usize::from(is_full));
        assert_eq!(settle(&**disk, store, 1e-5).is_err(), is_full);
        settle(&**real, store, 1e-5).unwrap();
    };
    let asked_less: Steps = &|disk, store, real| {
        read(disk, store, &files[0], Some(1e-3));
        read(real, store, &files[1], None);
    };
    let pushed: Steps = &|disk, store, _| {
        read(disk, store, &files[0], Some(1e-3));
        let mut writer = Writer::open(store, &Options::default()).unwrap();
        writer
            .push(&Record::new("http://new.example/", ["/a", "/b"]))
            .unwrap();
        writer.checkpoint().unwrap();
    };
    let all = [after_ingest, settled, asked_less, pushed];
    for (number, steps) in all.into_iter().enumerate() {
        let stores = disks.each_ref().map(|(name, disk)| {
            let store = lab.path().join(format!("{number}{name}"));
            steps(disk, &store, &real);
            read(&real, &store, &files[2], Some(0.2));
            store
        });
        let [whole, full] = stores.each_ref().map(|store| snapshot(store));
        assert!(whole == full, "steps {number}");
    }
}
