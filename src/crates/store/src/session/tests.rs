//! Tests of the limits of a writer, and of admitted names.

use super::*;
use crate::Error;

/// The limit of page numbers in rows ends an ingest before it is reached, with its links kept; without links it
/// continues.
#[test]
fn a_store_that_keeps_links_ends_at_their_page_numbers() {
    let home = cashrank_base::folder::in_memory();
    let dir = home.path().join("store");
    let record = |from: &str, to: &str| Record {
        url: format!("http://{from}.example/").into_bytes().into(),
        links: vec![crate::model::Link::to(
            format!("http://{to}.example/").into_bytes(),
        )],
        ..Record::default()
    };
    let mut writer = Writer::open(&dir, &Options::default()).unwrap();
    writer.engine.storage_mut().limit_row_pages(3);
    writer.push(&record("a", "b")).unwrap();
    writer.push(&record("b", "c")).unwrap();
    writer.checkpoint().unwrap();
    let error = writer
        .push(&record("c", "d"))
        .and_then(|_| writer.checkpoint().map(drop))
        .unwrap_err();
    let Error::TooManyPages { limit, keeps_links } = error else {
        panic!("{error}");
    };
    assert_eq!((limit, keeps_links), (3, true));
    assert!(error.to_string().contains("32 bits"), "{error}");
    drop(writer);
    let without = Options {
        keep_links: KeepRows::None,
        ..Options::default()
    };
    let mut writer = Writer::open(&dir, &without).unwrap();
    writer.push(&record("c", "d")).unwrap();
    writer.checkpoint().unwrap();
    assert_eq!(writer.pages(), 4);
}

/// Admitted names get the next numbers, or their own, and no row; if not all fit, none is admitted.
#[test]
fn names_are_admitted_all_or_none() {
    let home = cashrank_base::folder::in_memory();
    let dir = home.path().join("store");
    let mut writer = Writer::open(&dir, &Options::default()).unwrap();
    writer
        .push(&Record::new("http://a.example/", ["http://b.example/"]))
        .unwrap();
    let batch_of = |writer: &Writer, hosts: &[&str]| {
        let fingerprints = writer.rules().key.fingerprints();
        let mut batch = Batch::default();
        for host in hosts {
            let name = format!("http://{host}.example/").into_bytes();
            batch.push_name(&name, fingerprints.of(&name));
        }
        batch
    };
    let batch = batch_of(&writer, &["c", "b", "d", "c"]);
    let pages: Vec<u64> = writer
        .admit(&batch)
        .unwrap()
        .iter()
        .map(|page| page.0)
        .collect();
    assert_eq!(pages, [2, 1, 3, 2], "behind the records that waited");
    let generation = writer.checkpoint().unwrap();
    assert_eq!(writer.counters().records, 1);
    // Known names change nothing.
    let batch = batch_of(&writer, &["d", "a"]);
    writer.admit(&batch).unwrap();
    assert_eq!(writer.checkpoint().unwrap(), generation);

    writer.engine.storage_mut().limit_row_pages(5);
    let batch = batch_of(&writer, &["e", "a", "f"]);
    let error = writer.admit(&batch).unwrap_err();
    assert!(
        matches!(error, Error::TooManyPages { limit: 5, .. }),
        "{error}"
    );
    assert!(writer.admit(&batch).is_err(), "it takes no more");
    assert_eq!(
        (writer.checkpoint().unwrap(), writer.pages()),
        (generation, 4)
    );
    drop(writer);
    let writer = Writer::open(&dir, &Options::default()).unwrap();
    let view = writer.into_view().unwrap();
    assert!(view.lock.is_some() && view.verify().unwrap().pages == 4);
    let error = Writer::open(&dir, &Options::default()).err().unwrap();
    assert!(
        matches!(error, Error::Busy { .. }),
        "its lock goes on: {error}"
    );
}
