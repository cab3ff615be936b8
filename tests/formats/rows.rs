//! `formats/rows.md`: a reader made from its tables reads what the program writes.

use std::fs;
use std::sync::Arc;

use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Config;
use cashrank_graph::rows::Rows;
use cashrank_ingest::ingest::{IngestJob, ingest};
use cashrank_store::store::{RealDisk, open_view};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Fields, make, table};

type Row = (u32, bool, Vec<u32>, Vec<u64>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes.split_off_first().unwrap();
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    value
}

fn unzigzag(value: u64) -> i64 {
    match value % 2 {
        0 => (value / 2) as i64,
        _ => -1 - (value / 2) as i64,
    }
}

/// Decodes the rows of a payload, slowly and literally by the specification.
fn rows_of(fields: &Fields, codes: &[Vec<usize>], payload: &[u8], rows: u64) -> Vec<Row> {
    let number = |field| fields.number(payload, field) as usize;
    let (summed, _) = fields.at["checksum"];
    let mut rest = &payload[fields.size..];
    let mut heads = rest.split_off(..number("heads")).unwrap();
    let sum = [&payload[..summed], &xxh3_64(heads).to_le_bytes()].concat();
    assert_eq!(xxh3_64(&sum) as usize, number("checksum"));
    let links = number("links");
    let controls = rest.split_off(..links.div_ceil(4)).unwrap();
    let mut bytes = rest.split_off(..number("gaps")).unwrap();
    let mut gaps = Vec::new();
    for at in 0..controls.len() * 4 {
        let control = controls[at / 4] >> (2 * (at % 4)) & 3;
        let length = codes[number("code")][usize::from(control)];
        let gap = bytes.split_off(..length).unwrap();
        gaps.push(
            gap.iter()
                .rev()
                .fold(0u32, |gap, &byte| gap << 8 | u32::from(byte)),
        );
    }
    assert!(bytes.is_empty() && gaps[links..].iter().all(|&gap| gap == 0));
    let mut gaps = gaps.into_iter();
    let (mut page, mut found, mut weighted) = (0, Vec::new(), Vec::new());
    for _ in 0..rows {
        page += unzigzag(varint(&mut heads));
        let head = varint(&mut heads);
        let mut targets: Vec<u32> = Vec::new();
        for _ in 0..head / 4 {
            let gap = gaps.next().unwrap();
            targets.push(match targets.last() {
                None => (page as u32).wrapping_add(unzigzag(gap.into()) as u32),
                Some(last) => last + gap + 1,
            });
        }
        weighted.push(head & 2 != 0);
        found.push((page as u32, head & 1 != 0, targets, Vec::new()));
    }
    for (row, weighted) in found.iter_mut().zip(weighted) {
        for _ in row.2.iter().filter(|_| weighted) {
            row.3.push(varint(&mut rest));
        }
    }
    assert!(heads.is_empty() && rest.is_empty());
    found
}

#[test]
fn a_reader_made_from_the_row_tables_reads_rows() {
    let temp = tempfile::tempdir().unwrap();
    // Far and near links, of two kinds.
    let page = |n: u64| format!("http://h{}.example/{n}", n % 3);
    let records: String = (0..200u64)
        .map(|n| {
            let links: Vec<String> = (0..n % 9 * (n % 5))
                .map(|k| page(n * k * k % 4001))
                .collect();
            let status = if n % 50 == 49 { 404 } else { 200 };
            let record = serde_json::json!({"url": page(n), "links": links, "status": status});
            format!("{record}\n")
        })
        .collect();
    let input = temp.path().join("records.jsonl");
    fs::write(&input, records).unwrap();
    for follow in ["", "external=3"] {
        let store = temp.path().join(format!("store{follow}"));
        let mut config = Config::default();
        config.follow = follow.parse().unwrap_or_default();
        let mut job = IngestJob {
            format: Some(Format::Records),
            ..IngestJob::new(&store, vec![InputName::File(input.clone())])
        };
        job.settings.config = config;
        ingest(&job, Arc::new(RealDisk), &mut make::Quiet).unwrap();
        let mut expected: Vec<Row> = Vec::new();
        let rows = open_view(&RealDisk, &store).unwrap().rows().unwrap();
        rows.sweep(&mut |row| {
            expected.push((row.page, row.gone, row.targets.into(), row.weights.into()));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            expected.iter().any(|row| !row.3.is_empty()),
            !follow.is_empty()
        );
        assert_eq!((expected.len(), rows.links() > 1000), (200, true));

        let bytes = fs::read(store.join("rows/1")).unwrap();
        let header = Fields::of("store.md", "Log");
        let fields = Fields::of("rows.md", "Payload");
        let codes: Vec<Vec<usize>> = table("rows.md", "Codes")
            .iter()
            .map(|row| row[1..].iter().map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let payload = &bytes[header.size..];
        assert_eq!(header.number(&bytes, "length") as usize, payload.len());
        let count = header.number(&bytes, "pages");
        assert!(rows_of(&fields, &codes, payload, count) == expected);
    }
}
