//! `formats/snapshot.md`, `formats/store.md` and `formats/rows.md` against the bytes: small readers that know offsets,
//! sizes and order only from the tables must read what the program writes.

mod common;

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use cashrank_crawl::source::InputName;
use cashrank_graph::engine::{CHUNK_PAGES, ENDOWMENT};
use cashrank_ingest::ingest::{Every, IngestJob, ingest};
use cashrank_store::store::{RealDisk, SpoolOptions};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

#[path = "snapshot/make.rs"]
#[allow(dead_code)]
mod make;
#[path = "formats/rows.rs"]
mod rows;

/// Reads the rows of the first table under `## heading`, without its two head lines.
fn table(file: &str, heading: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("formats")
        .join(file);
    let text = fs::read_to_string(path).unwrap();
    let start = format!("## {heading}\n");
    let mut sections = text.split_inclusive('\n').skip_while(|line| *line != start);
    assert!(sections.next().is_some(), "{file} has no section {heading}");
    let lines = sections.take_while(|line| !line.starts_with("## "));
    let rows = lines.skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| -> Vec<String> {
        row.trim()
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

/// Offsets of a structure's fields.
struct Fields {
    at: HashMap<String, (usize, usize)>,
    size: usize,
}

impl Fields {
    /// Reads a structure's table, and checks that fields are adjacent: name, offset, size.
    fn of(file: &str, heading: &str) -> Fields {
        let mut fields = Fields {
            at: HashMap::new(),
            size: 0,
        };
        for row in table(file, heading) {
            let (offset, size) = (row[1].parse().unwrap(), row[2].parse::<usize>().unwrap());
            assert_eq!(offset, fields.size, "{file}, {heading}: {row:?}");
            fields.at.insert(row[0].clone(), (offset, size));
            fields.size += size;
        }
        fields
    }

    fn bytes<'b>(&self, from: &'b [u8], field: &str) -> &'b [u8] {
        let (offset, size) = self.at[field];
        &from[offset..offset + size]
    }

    fn number(&self, from: &[u8], field: &str) -> u64 {
        let bytes = self.bytes(from, field).iter().rev();
        bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

#[test]
fn a_reader_made_from_the_snapshot_tables_reads_snapshots() {
    let store = make::samples("good").join("store");
    let file = fs::read(store.join(make::SNAPSHOT)).unwrap();
    let (trailer, entry) = (
        Fields::of("snapshot.md", "Trailer"),
        Fields::of("snapshot.md", "Directory"),
    );
    assert_eq!((trailer.size, entry.size), (40, 20));
    let columns = table("snapshot.md", "Columns");
    let tail = &file[file.len() - trailer.size..];
    assert_eq!(trailer.bytes(tail, "magic"), b"CRSNAP03");
    assert_eq!(file[..8], *b"CRSNAP03");
    let directory = trailer.number(tail, "directory") as usize;
    let info = trailer.number(tail, "info") as usize;
    let pages = trailer.number(tail, "pages");
    let (summed, _) = trailer.at["checksum"];
    let summed = &file[directory..file.len() - trailer.size + summed];
    assert_eq!(xxh3_64(summed), trailer.number(tail, "checksum"));
    let blocks = pages.div_ceil(CHUNK_PAGES) as usize;
    assert_eq!(info, directory + blocks * columns.len() * entry.size);

    let expected = make::read_all(&store).unwrap();
    assert_eq!(expected.len() as u64, pages);
    for (number, column) in columns.iter().enumerate() {
        assert_eq!(column[0], number.to_string());
        let entry_bytes = &file[directory + number * entry.size..][..entry.size];
        let offset = entry.number(entry_bytes, "offset") as usize;
        let packed = &file[offset..offset + entry.number(entry_bytes, "length") as usize];
        assert_eq!(xxh3_64(packed), entry.number(entry_bytes, "checksum"));
        let planes = zstd::decode_all(packed).unwrap();
        let n = expected.len();
        assert_eq!(planes.len(), 8 * n);
        for (at, (_, page)) in expected.iter().enumerate() {
            let value = (0..8).fold(0u64, |value, byte| {
                value | u64::from(planes[byte * n + at]) << (8 * byte)
            });
            let same = match &column[1][..] {
                "importance" => value == page.importance.to_bits(),
                "distributed" => value == page.distributed.to_bits(),
                "rank" => value == page.rank,
                "visits" => value == page.fetches.visits,
                "last_fetch" => value as i64 == page.fetches.last.unwrap_or(i64::MIN),
                "cash" => value == page.cash,
                "failed" => value == page.fetches.failed,
                "last_failed" => value as i64 == page.fetches.last_failed.unwrap_or(i64::MIN),
                "compared" => value == page.fetches.compared,
                "changed" => value == page.fetches.changed,
                "gone" => value == u64::from(page.fetches.gone),
                "watched" => value == page.fetches.watched_s,
                "recycled" => value == page.fetches.recycled,
                other => panic!("no such column: {other}"),
            };
            assert!(same, "{column:?}, page {at}");
        }
    }
    let info = serde_json::from_slice(&file[info..file.len() - trailer.size]).unwrap();
    fields_are("snapshot.md", "Info", &info);
    let latest = fs::read(store.join("snapshots/latest.json")).unwrap();
    fields_are(
        "snapshot.md",
        "`latest.json`",
        &serde_json::from_slice(&latest).unwrap(),
    );
}

/// Stream in small pieces, with or without an error at its end.
struct Drips(Cursor<Vec<u8>>, bool);

impl Read for Drips {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(1000);
        match self.0.read(&mut out[..n])? {
            0 if self.1 => Err(std::io::Error::other("broke off")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_reader_made_from_the_spool_tables_reads_spools() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("store");
    let stream: String = (0..3000)
        .map(|n| format!("{{\"url\":\"http://a/{n}\"}}\n"))
        .collect();
    // The second stream of a store. It breaks off, so that no last checkpoint covers it.
    for (sent, breaks) in [("{\"url\":\"http://a/\"}\n", false), (&stream, true)] {
        let sent: Vec<u8> = sent.into();
        let job = IngestJob {
            spool: Some(SpoolOptions {
                segment_bytes: 20_000,
                sync_bytes: 3_000,
                ..SpoolOptions::default()
            }),
            stdin: Arc::new(move || Box::new(Drips(Cursor::new(sent.clone()), breaks))),
            inputs: vec![InputName::Stdin],
            repeat: 1,
            checkpoint_every: Every::Never,
            ..make::job(&store)
        };
        let result = ingest(&job, Arc::new(RealDisk), &mut make::Quiet);
        assert_eq!(result.is_err(), breaks, "{result:?}");
    }
    let folder = store.join("spool");
    let acked: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("acked")).unwrap()).unwrap();
    fields_are("store.md", "`acked`", &acked);
    let header = Fields::of("store.md", "Spool");
    let mut names: Vec<String> = (fs::read_dir(&folder).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "acked")
        .collect();
    names.sort();
    assert!(names.len() > 2, "{names:?}");
    let mut found = Vec::new();
    for name in names {
        assert_eq!(name, format!("{:020}", found.len()));
        let bytes = fs::read(folder.join(name)).unwrap();
        let mut at = 0;
        while at < bytes.len() {
            assert!(at < 20_000);
            let head = &bytes[at..at + header.size];
            let (sum, _) = header.at["checksum"];
            assert_eq!(xxh3_64(&head[..sum]), header.number(head, "checksum"));
            assert_eq!(header.number(head, "offset"), found.len() as u64);
            assert_eq!(header.number(head, "input"), 1);
            at += header.size;
            let payload = &bytes[at..][..header.number(head, "length") as usize];
            assert_eq!(xxh3_64(payload), header.number(head, "payload"));
            found.extend_from_slice(payload);
            at += payload.len();
        }
    }
    assert_eq!(found.len() as u64, acked["acked"]);
    assert!(found.len() > 50_000);
    assert!(stream.as_bytes().starts_with(&found));
}

/// Checks that the object has exactly the fields of the table, in any order; those whose type says so may be absent.
fn fields_are(file: &str, heading: &str, value: &serde_json::Value) {
    let mut listed: Vec<String> = table(file, heading)
        .iter()
        .filter(|row| !row[1].contains("absent") || value.get(row[0].trim_matches('`')).is_some())
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    listed.sort();
    let mut found: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    found.sort();
    assert_eq!(listed, found, "{file}, {heading}");
}

#[test]
fn a_reader_made_from_the_store_tables_reads_stores() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("store");
    make::make_store(&store);
    let read = |part: &str| fs::read(store.join(part)).unwrap();
    fields_are(
        "store.md",
        "Identity",
        &serde_json::from_slice(&read("identity.json")).unwrap(),
    );

    let (header, index) = (
        Fields::of("store.md", "Log"),
        Fields::of("store.md", "Log index"),
    );
    for (log, payload_of) in [("urls", 0), ("fingerprints", 10)] {
        let (bytes, entries) = (read(log), read(&format!("{log}.index")));
        let (mut at, mut pages) = (0, 0);
        for entry in entries.chunks(index.size) {
            assert_eq!(index.number(entry, "first"), pages);
            assert_eq!(index.number(entry, "block") as usize, at);
            let head = &bytes[at..at + header.size];
            let payload = &bytes[at + header.size..][..header.number(head, "length") as usize];
            let mut summed = head[..header.at["checksum"].0].to_vec();
            summed.extend(xxh3_64(payload).to_le_bytes());
            assert_eq!(xxh3_64(&summed), header.number(head, "checksum"));
            assert_eq!(header.number(head, "first"), pages);
            pages += header.number(head, "pages");
            if payload_of > 0 {
                assert_eq!(
                    payload.len() as u64,
                    payload_of * header.number(head, "pages")
                );
            }
            at += header.size + payload.len();
        }
        assert_eq!((at, pages), (bytes.len(), 5));
    }

    let slot = Fields::of("store.md", "Cash");
    assert_eq!(slot.at["cells"].1 as u64, CHUNK_PAGES * 8);
    let cash = read("cash");
    assert_eq!(cash.len(), 2 * slot.size);
    // Conservation, from the bytes alone: five cells that differ from cash by the same number.
    let pages = make::read_all(&store).unwrap();
    let sound = cash.chunks(slot.size).filter(|slot_bytes| {
        let cells = slot.bytes(slot_bytes, "cells");
        let cell = |at: usize| u64::from_le_bytes(cells[at * 8..at * 8 + 8].try_into().unwrap());
        let paid = |at: usize| pages[at].1.cash.wrapping_sub(cell(at));
        (1..5).all(|at| paid(at) == paid(0))
    });
    // The other slot may hold the same cash: a replay that has converged repeats itself.
    assert!(sound.count() >= 1, "no slot holds the snapshot's cash");
    let held: u64 = pages.iter().map(|(_, page)| page.cash).sum();
    assert!(
        (0..5).contains(&(5 * ENDOWMENT - held)),
        "the virtual page holds less than a unit a page"
    );

    // Seed of a mark's checksum: the identity's hash, the mark's number, the chunk's.
    let identity = xxh3_64(&read("identity.json"));
    for mark in fs::read_dir(store.join("marks")).unwrap() {
        let path = mark.unwrap().path();
        let number: u64 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let seed: Vec<u8> = [identity, number, 0]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let bytes = fs::read(path).unwrap();
        let (cells, sum) = bytes.split_at(5 * 8);
        assert_eq!(xxh3_64_with_seed(cells, xxh3_64(&seed)).to_le_bytes(), sum);
    }
}
