//! A disk that has room for a ranking, and none for the next warm start.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::store::{Disk, RealDisk};

use crate::crawl::crawl;
use crate::disk::{Meddled, NoRoomIn};
use crate::folder::in_memory;

#[derive(Default)]
struct Notes {
    published: usize,
    warned: usize,
}

impl Observer for Notes {
    fn note(&mut self, note: IngestEvent<'_>) {
        match note {
            IngestEvent::Published { .. } => self.published += 1,
            IngestEvent::Warm { .. } => self.warned += 1,
            _ => {}
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
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
