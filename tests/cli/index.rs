//! The index on disk, `index`, through the command line.

use std::fs;
use std::path::PathBuf;

use crate::support::{Done, Lab};

/// Returns a chain of pages as adjacency lines: the pages from `first` on, each with a link to the next.
fn chain(first: u64, end: u64) -> String {
    let line = |page| {
        format!(
            "https://{}.example/{page}\thttps://{}.example/{}\n",
            page % 7,
            (page + 1) % 7,
            page + 1
        )
    };
    (first..end).map(line).collect()
}

/// Creates a store of 20,001 pages; returns the paths of its index and its fingerprints.
fn store(lab: &Lab) -> (PathBuf, PathBuf) {
    lab.file("a", chain(0, 20_000));
    lab.file("b", chain(20_000, 20_100));
    lab.run("ingest a --format adjacency --store s").exits(0);
    (lab.path("s/index"), lab.path("s/fingerprints"))
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn rank(lab: &Lab, page: u64) -> Done {
    lab.run(&format!(
        "rank https://{}.example/{page} --store s --json",
        page % 7
    ))
}

#[test]
fn with_it_not_all_fingerprints_are_read() {
    let lab = Lab::new();
    let (index, fingerprints) = store(&lab);
    lab.run("verify --deep --store s").exits(0);
    let whole = fs::read(&fingerprints).unwrap();
    // Pages far beyond this byte are found, and another ingest works.
    flip(&fingerprints, 1000);
    let found = rank(&lab, 15_000).exits(0).json();
    // Nor does it take this byte to find that there is no such page.
    rank(&lab, 77_777_777).exits(1);
    fs::rename(&index, lab.path("away")).unwrap();
    rank(&lab, 15_000).exits(5).says(&["fingerprints"]);
    fs::rename(lab.path("away"), &index).unwrap();
    lab.run("ingest a b --format adjacency --store s")
        .exits(0)
        .says(&["100 new pages"]);
    lab.run("verify --deep --store s")
        .exits(5)
        .says(&["fingerprints"]);
    // Pages added later are found, too; the index is rewritten once they are a 64th.
    let mut grown = fs::read(&fingerprints).unwrap();
    grown[..whole.len()].copy_from_slice(&whole);
    fs::write(&fingerprints, grown).unwrap();
    lab.run("verify --deep --store s").exits(0);
    let old = fs::read(&index).unwrap();
    rank(&lab, 20_050).exits(0);
    rank(&lab, 77_777_777).exits(1);
    assert_eq!(rank(&lab, 15_000).exits(0).json()["url"], found["url"]);
    lab.file("c", chain(20_100, 21_000));
    lab.run("ingest a b c --format adjacency --store s")
        .exits(0);
    assert!(fs::read(&index).unwrap() != old);
    lab.run("verify --deep --store s").exits(0);
}

#[test]
fn damage_is_named_and_changes_nothing() {
    let lab = Lab::new();
    let (index, _) = store(&lab);
    lab.run("ingest a b --format adjacency --store undisturbed")
        .exits(0);
    let bytes = fs::read(&index).unwrap();
    for (at, deep) in [(3, false), (9_000, true), (bytes.len() - 3, true)] {
        fs::write(&index, &bytes).unwrap();
        flip(&index, at);
        let quick = lab.run("verify --store s");
        quick.exits(if deep { 0 } else { 5 });
        lab.run("verify --deep --store s")
            .exits(5)
            .says(&["s/index: ", "another"]);
        rank(&lab, 15_000).exits(0);
    }
    lab.run("ingest a b --format adjacency --store s")
        .exits(0)
        .says(&["s/index: damaged: the checksum", "rebuilt"]);
    lab.run("verify --deep --store s").exits(0);
    lab.run("ingest a --format adjacency --store t").exits(0);
    lab.run("ingest a b --format adjacency --store t").exits(0);
    assert_eq!(lab.export("s"), lab.export("t"));
    // A folder in its place is not removed; the store works without an index.
    fs::remove_file(lab.path("t/index")).unwrap();
    fs::create_dir(lab.path("t/index")).unwrap();
    lab.file("c", chain(20_100, 22_000));
    lab.run("ingest a b c --format adjacency --store t")
        .exits(0)
        .says(&["warning: ", "t/index", "takes longer to start"]);
    rank(&lab, 15_000).exits(0);
}

/// A store and its copy may continue with different pages, equally many, and end with the same ones.
#[test]
fn that_of_a_copy_that_went_on_otherwise_is_not_used() {
    let lab = Lab::new();
    store(&lab);
    lab.file("d", chain(100_000, 101_000));
    lab.file("e", chain(200_000, 201_000));
    // The last block of fingerprints is the same.
    lab.file("f", chain(300_000, 300_600));
    lab.file("g", chain(400_000, 402_000));
    lab.copy("s", "t");
    for (name, order) in [("s", ["d", "e", "f"]), ("t", ["e", "d", "f"])] {
        for file in order {
            lab.run(&format!("ingest {file} --format adjacency --store {name}"))
                .exits(0);
        }
    }
    fs::copy(lab.path("t/index"), lab.path("other")).unwrap();
    let found = lab.export("s");
    let own = fs::read(lab.path("s/index")).unwrap();
    fs::rename(lab.path("other"), lab.path("s/index")).unwrap();
    assert!(fs::read(lab.path("s/index")).unwrap() != own);
    lab.run("verify --store s")
        .exits(5)
        .says(&["of other fingerprints"]);
    for page in [100_500, 200_500, 300_500] {
        rank(&lab, page).exits(0);
    }
    assert_eq!(lab.export("s"), found);
    lab.run("ingest g --format adjacency --store s")
        .exits(0)
        .says(&["s/index: damaged: it is of other fingerprints; it was rebuilt"]);
    lab.run("verify --deep --store s").exits(0);
    assert_eq!(lab.stat("s")["pages"], 20_001 + 2 * 1_001 + 601 + 2_001);
}

#[test]
fn a_folder_in_its_way_stops_nothing() {
    let lab = Lab::new();
    store(&lab);
    fs::create_dir(lab.path("s/index.tmp")).unwrap();
    lab.file("c", chain(20_000, 21_000));
    lab.run("ingest c --format adjacency --store s")
        .exits(0)
        .says(&["warning: ", "index.tmp", "takes longer to start"]);
    lab.run("verify --deep --store s").exits(0);
}
