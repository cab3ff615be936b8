//! Directories that must not be replaced: mount points, and read-only ones.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{Lab, crawl};

/// File system in memory, unmounted on drop. `None` without root rights, or if the kernel refuses.
pub struct Mounted(std::path::PathBuf);

impl Mounted {
    pub fn at(dir: &Path) -> Option<Mounted> {
        std::fs::create_dir(dir).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"])
            .arg(dir)
            .output();
        match mount {
            Ok(done) if done.status.success() => Some(Mounted(dir.into())),
            _ => {
                eprintln!("SKIPPED: mounting takes root");
                None
            }
        }
    }

    fn make_read_only(&self) {
        let mount = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(&self.0)
            .status();
        assert!(mount.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Regression: a mount point was refused, since a store was made as a temporary directory and renamed, which is
/// impossible for a mount point; and that directory stayed.
#[test]
fn a_mount_point_can_be_a_store() {
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(81, 200).concat());
    lab.run("ingest in.jsonl --store plain").exits(0);
    let Some(_mounted) = Mounted::at(&lab.path("m")) else {
        return;
    };
    // File systems have this at their root.
    std::fs::create_dir(lab.path("m/lost+found")).unwrap();
    lab.run("ingest in.jsonl --store m").exits(0);
    assert!(lab.snapshot("m") == lab.snapshot("plain"));
    assert_eq!(lab.names(), ["in.jsonl", "m", "plain"]);
    assert!(!lab.path("m/identity.next").exists());
    lab.run("verify --deep --store m").exits(0);
    lab.run("ingest in.jsonl --store m")
        .exits(0)
        .says(&["nothing to do"]);
    // A directory with anything else is refused.
    let Some(_other) = Mounted::at(&lab.path("o")) else {
        return;
    };
    std::fs::write(lab.path("o/mine"), "").unwrap();
    lab.run("ingest in.jsonl --store o")
        .exits(2)
        .says(&["neither a store nor an empty directory"]);
    assert_eq!(lab.names(), ["in.jsonl", "m", "o", "plain"]);
}

/// On a disk with little room left, a run is not refused because of the links that are already there.
#[test]
fn links_that_are_there_count_as_room_for_links() {
    let lab = Lab::on_disk();
    let page = |n: u64| format!("http://h{}.example/{}", n % 40, n % 3_000);
    let records = (0..3_000).map(|at| {
        let links: Vec<String> = (1..400).map(|link| page(at + link * link)).collect();
        format!("{}\n", json!({"url": page(at), "links": links}))
    });
    lab.file("in.jsonl", records.collect::<String>());
    lab.file(
        "more.jsonl",
        json!({"url": page(7), "links": [page(9)]}).to_string(),
    );
    let Some(_mounted) = Mounted::at(&lab.path("m")) else {
        return;
    };
    lab.run("ingest in.jsonl --store m/s").exits(0);
    let files = std::fs::read_dir(lab.path("m/s/rows")).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let held: u64 = sizes.sum();
    // Half of the free space is less than the links take, but all of it suffices for what the run writes.
    let room = held * 3 / 2;
    let space = rustix::fs::statvfs(lab.path("m")).unwrap();
    let free = space.f_bavail * space.f_frsize;
    lab.file("m/filler", vec![0; (free - room) as usize]);
    lab.run("ingest more.jsonl --store m/s").exits(0);
}

/// Reading needs no right to write.
#[test]
fn a_read_only_store_is_read() {
    let lab = Lab::on_disk();
    lab.file("in.jsonl", crawl(83, 200).concat());
    let Some(mounted) = Mounted::at(&lab.path("m")) else {
        return;
    };
    lab.run("ingest in.jsonl --store m/s --snapshot-every 90")
        .exits(0);
    mounted.make_read_only();
    for line in [
        "stat",
        "top",
        "rank http://h0.example/p0",
        "export --to tsv",
        "verify",
        "verify --deep",
        "snapshots",
        "next",
        "links http://h0.example/p0",
        "links --in http://h0.example/p0",
    ] {
        lab.run(&format!("{line} --store m/s")).exits(0);
    }
    for line in [
        "settle --until 1e-9 --store m/s",
        "ingest in.jsonl --store m/s",
        "ingest in.jsonl --store m/new",
    ] {
        lab.run(line).exits(7).says(&["Read-only file system"]);
    }
}
