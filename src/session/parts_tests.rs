//! Stores with partitions against the same records in one.

use std::path::Path;
use std::sync::Arc;

use crate::disk::RealDisk;
use crate::model::Record;
use crate::rows::Rows;
use crate::store::all::{AllRowsOf, Names};
use crate::store::rows::KeepRows;
use crate::store::{Partitions, View};
use crate::{Options, Writer};

/// Records of a web of 40 pages on 7 hosts, of which some come again with other links.
fn records() -> Vec<(String, Vec<String>)> {
    let mut random = rand_pcg::Pcg64::new(7, 1);
    let mut pick = move |below: u64| {
        use rand_pcg::rand_core::Rng;
        random.next_u64() % below
    };
    let mut name = {
        let mut page = move || pick(40);
        move || {
            let page = page();
            format!("http://h{}.example/{page}", page % 7)
        }
    };
    (0..90)
        .map(|at| (name(), (0..at % 6).map(|_| name()).collect()))
        .collect()
}

fn fill(dir: &Path, partitions: u32, every: usize) {
    let options = Options {
        partitions: Partitions::of(partitions).unwrap(),
        ..Options::default()
    };
    let records = records();
    for (at, records) in records.chunks(every).enumerate() {
        // Opened each time.
        let mut writer = Writer::open(dir, &options).unwrap();
        assert_eq!(writer.pushed() as usize, at * every);
        for (url, links) in records {
            let links = links.iter().map(String::as_str);
            writer.push(&Record::new(url, links)).unwrap();
        }
        writer.checkpoint().unwrap();
    }
}

/// Opens a store with partitions to keep rows so, which commits at once what is new; how it ends.
fn go_on(dir: &Path, keep_rows: KeepRows, new: &str) -> crate::Result<()> {
    let options = Options {
        keep_rows,
        ..Options::of(dir)?
    };
    let mut writer = Writer::open(dir, &options)?;
    writer.push(&Record::new(new, ["http://h1.example/1"]))?;
    writer.checkpoint().map(drop)
}

/// What is there already stays where nothing is asked for, however little room there is, as in a store of one partition.
#[test]
fn what_the_store_has_is_never_too_much() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("s");
    fill(&dir, 4, 90);
    // Of a page's row that is read again, the bytes are more.
    let grown = go_on(&dir, KeepRows::Usual(1), "http://h1.example/1").unwrap_err();
    assert!(
        grown.to_string().contains("more than `keep_rows`"),
        "{grown}"
    );
    let options = Options {
        keep_rows: KeepRows::Usual(1),
        ..Options::of(&dir).unwrap()
    };
    Writer::open(&dir, &options).unwrap().publish().unwrap();
}

/// What was asked for once holds until something else is.
#[test]
fn room_that_was_asked_for_is_remembered() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("s");
    fill(&dir, 4, 90);
    go_on(&dir, KeepRows::AtMost(1 << 20), "http://h1.example/1").unwrap();
    go_on(&dir, KeepRows::Usual(1), "http://h1.example/2").unwrap();
    let refused = go_on(&dir, KeepRows::AtMost(1), "http://h1.example/3").unwrap_err();
    assert!(
        refused.to_string().contains("more than `keep_rows` 1,"),
        "{refused}"
    );
    go_on(&dir, KeepRows::Usual(1), "http://h1.example/3").unwrap();
}

/// Names, and rows by page.
fn known(view: &View, dir: &Path) -> (Vec<String>, Vec<(u32, Vec<u32>)>) {
    let parts = view.published_parts();
    let names = Names::open(&RealDisk, dir, view.name_lengths(), parts.as_ref()).unwrap();
    let names: Vec<String> = names.names().map(Result::unwrap).collect();
    let kept = (*view.rows_retention(), names.len() as u64);
    let rows = AllRowsOf::new(&RealDisk, dir, kept, parts.as_ref())
        .unwrap()
        .rows()
        .unwrap();
    let mut found = Vec::new();
    rows.sweep(&mut |row| {
        // They are in the order of a partition's numbers.
        let mut targets = row.targets.to_vec();
        targets.sort_unstable();
        found.push((row.page, targets));
        Ok(())
    })
    .unwrap();
    found.sort_unstable();
    (names, found)
}

#[test]
fn pages_and_rows_are_those_of_one_store() {
    let home = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (partitions, every) in [(1, 100), (4, 100), (4, 7), (16, 9)] {
        let dir = home.path().join(format!("{partitions}-{every}"));
        fill(&dir, partitions, every);
        let options = Options::of(&dir).unwrap();
        assert_eq!(options.partitions.count, partitions);
        let opened = super::Session::open(
            Arc::new(RealDisk),
            &dir,
            &{
                let mut settings =
                    crate::store::Settings::new(options.config.clone(), &options.limits);
                settings.partitions = options.partitions;
                settings
            },
            &options.limits,
            options.keep_rows,
            (false, &crate::rank::settle::Workers::threads(2), None),
        )
        .unwrap();
        all.push(known(&opened.session.view().unwrap(), &dir));
    }
    assert!(all[0].0.len() > 30 && all[0].1.len() > 20);
    for other in &all {
        assert_eq!(other.0, all[0].0);
        assert_eq!(other.1, all[0].1);
    }
}

/// Rankings are near that of one store, and do not depend on where commits fall.
#[test]
fn rankings_are_those_of_one_store() {
    let home = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (partitions, every) in [(1, 100), (4, 100), (4, 7), (16, 9)] {
        let dir = home.path().join(format!("{partitions}-{every}"));
        fill(&dir, partitions, every);
        let options = Options {
            settle: Some(1e-9.into()),
            ..Options::of(&dir).unwrap()
        };
        let mut writer = Writer::open(&dir, &options).unwrap();
        let snapshot = writer.publish().unwrap();
        let pages: Vec<_> = snapshot.named().map(Result::unwrap).collect();
        let bytes = std::fs::read(snapshot.path()).unwrap();
        all.push((
            pages,
            snapshot.bound_l1().unwrap(),
            snapshot.info().counters.clone(),
            bytes,
        ));
    }
    let (one, bound, counters, _) = &all[0];
    for (pages, other, counted, _) in &all {
        let off: f64 = one
            .iter()
            .zip(pages)
            .map(|(x, y)| (x.importance - y.importance).abs())
            .sum();
        assert!(off <= bound + other + 1e-12 && *other < 1e-8, "{off}");
        assert_eq!(counted, counters);
        for (x, y) in one.iter().zip(pages) {
            assert_eq!(
                (&x.url, x.visits, x.last_fetch),
                (&y.url, y.visits, y.last_fetch)
            );
        }
        assert_eq!(one.len(), pages.len());
    }
    assert!(all[1].3 == all[2].3);
}

/// Partitions commit before the store: where the store's commit fails, they go back when it is next opened.
#[test]
fn a_store_whose_commit_failed_is_at_the_checkpoint_before() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("s");
    fill(&dir, 4, 90);
    let options = Options {
        partitions: Partitions::of(4).unwrap(),
        ..Options::default()
    };
    let mut writer = Writer::open(&dir, &options).unwrap();
    let (identity, aside) = (dir.join("identity.json"), home.path().join("aside"));
    std::fs::rename(&identity, &aside).unwrap();
    let later = Record::new("http://later.example/", ["http://h1.example/1"]);
    writer.push(&later).unwrap();
    assert!(writer.checkpoint().is_err());
    drop(writer);
    std::fs::rename(&aside, &identity).unwrap();
    let writer = Writer::open(&dir, &options).unwrap();
    assert_eq!(writer.pushed(), 90);
    drop(writer);
    let view = crate::store::open_view(&RealDisk, &dir).unwrap();
    view.verify().unwrap();
}
