//! The tests of the library in one program: linking it once takes a fraction of the time of linking each.
//!
//! `cargo test --test library engine` runs a part.

use cashrank_base::folder;

#[path = "common/cnr.rs"]
mod cnr;
mod common;
#[path = "common/crawl.rs"]
mod crawl;
#[path = "common/disk.rs"]
mod disk;
#[path = "common/pack.rs"]
mod pack;
#[cfg(feature = "serve")]
#[path = "common/python.rs"]
mod python;

#[path = "accuracy.rs"]
mod accuracy;
#[path = "again.rs"]
mod again;
#[path = "crawlers.rs"]
mod crawlers;
#[path = "decode.rs"]
mod decode;
#[path = "delays.rs"]
mod delays;
#[path = "engine.rs"]
mod engine;
#[path = "follow.rs"]
mod follow;
#[path = "html.rs"]
mod html;
#[path = "in_progress.rs"]
mod in_progress;
#[path = "pagerank.rs"]
mod pagerank;
#[path = "passes.rs"]
mod passes;
#[path = "public.rs"]
mod public;
#[path = "reread.rs"]
mod reread;
#[path = "room.rs"]
mod room;
#[path = "rows.rs"]
mod rows;
#[path = "snapshot.rs"]
mod snapshot;
#[path = "source.rs"]
mod source;
#[path = "spool.rs"]
mod spool;
#[path = "streams.rs"]
mod streams;
#[path = "truncation.rs"]
mod truncation;
#[path = "url.rs"]
mod url;
#[path = "warc.rs"]
mod warc;
#[path = "writer.rs"]
mod writer;

/// A file that belongs to no program would never be tested.
#[test]
fn all_tests_are_run() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(&tests).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let program = ["cli.rs", "formats.rs", "library.rs"].contains(&name.as_str());
        let part = format!("#[path = \"{name}\"]");
        let text = include_str!("library.rs");
        assert!(
            !name.ends_with(".rs") || program || text.contains(&part),
            "{name}"
        );
    }
}
