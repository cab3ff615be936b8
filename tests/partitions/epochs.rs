//! Cash that crosses from partition to partition at the ends of epochs: against a second engine written from the definitions
//! (`engine/reference.rs`), against stores without partitions, closed forms, and PageRank by its formula.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use cashrank::check::{Depth, check};
use cashrank::decode::{Link, Names, Record};
use cashrank::engine::{Config, ENDOWMENT};
use cashrank::ingest::{Every, Job};
use cashrank::snapshot::Snapshot;
use cashrank::store::{Partitions, RealDisk, Settings};
use cashrank::{Error, Options, Writer};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::folder::in_memory;

use super::processes::{real, together};
use super::{Lab, dies_anywhere, pagerank, published, run};
use crate::crawl::Dice;
use crate::engine::reference::{Epochs, Reference};
use crate::engine::stream::{Event, Fetch, Run};

/// What sums of some dozen numbers are off in floating point.
const SLACK: f64 = 1e-12;

fn name(page: u32) -> String {
    format!("p{page}")
}

/// The partition of a page, as `formats/store.md` has it: a name without a host counts as one.
pub(super) fn owner(page: u32, partitions: u32) -> u32 {
    (xxh3_64(name(page).as_bytes()) % u64::from(partitions)) as u32
}

/// Any record of so many pages.
fn fetch(dice: &mut Dice, pages: u64) -> Fetch {
    let mut page = || dice.roll(pages) as u32;
    let (of, redirect) = (page(), page());
    let links = (0..page() % 6).map(|_| page()).collect();
    let status = [200, 200, 200, 200, 200, 200, 404, 304, 503, 301][dice.roll(10) as usize];
    Fetch {
        page: of,
        status: Some(status),
        redirect: (status == 301).then_some(redirect),
        links,
        time: None,
    }
}

fn push(writer: &mut Writer, fetch: &Fetch) {
    let name = |page: u32| Cow::Owned(name(page).into_bytes());
    let links = fetch.links.iter().map(|&page| Link::to(name(page)));
    let record = Record {
        url: name(fetch.page),
        status: fetch.status,
        redirect: fetch.redirect.map(name),
        links: links.collect(),
        fetched_at: fetch.time,
        ..Record::default()
    };
    writer.push(&record).unwrap();
}

pub(super) fn partitions(count: u32, epoch: u64) -> Partitions {
    Partitions::of(count).unwrap().with_epoch(epoch).unwrap()
}

fn options(config: &Config, partitions: Partitions) -> Options {
    Options {
        config: config.clone(),
        partitions,
        names: Names::Opaque,
        settle: None,
        ..Options::default()
    }
}

struct Stores(TempDir);

impl Stores {
    fn new() -> Stores {
        Stores(in_memory())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// What a store has must be what the reference has, to the unit.
pub(super) fn assert_same(snapshot: &Snapshot, reference: &Reference, config: &Config) {
    let info = snapshot.info();
    assert_eq!(info.clock, reference.now.clock.to_string());
    assert_eq!(info.rounds, reference.now.rounds);
    assert_eq!(info.visits, reference.visits.iter().sum::<u64>());
    let pages: Vec<_> = snapshot.pages().map(Result::unwrap).collect();
    assert_eq!(pages.len(), reference.cash.len());
    let mut all = 0;
    for (page, own) in pages.iter().enumerate() {
        assert_eq!(u128::from(own.cash), reference.held(page), "page {page}");
        assert_eq!(own.fetches.visits, reference.visits[page]);
        all += u128::from(own.cash);
    }
    // Lemma 2.2: no cash is lost or made.
    let endowed = pages.len() as u128 * u128::from(ENDOWMENT);
    assert_eq!(all + reference.virtual_cash, endowed);

    let Some(certificate) = info.window.certificate else {
        return assert_eq!(reference.now.clock, 0);
    };
    let window = reference.window(info.window.mark as usize);
    let l1 = |other: &[f64]| -> f64 {
        let both = pages.iter().zip(other);
        both.map(|(page, other)| (page.importance - other).abs())
            .sum()
    };
    assert!(l1(&window.received) <= SLACK);
    assert!((certificate.rounding_l1 - window.rounding).abs() <= SLACK);
    // Whole units: as in the tests of the engine.
    let whole_units = 2.0 * pages.len() as f64 / window.clock as f64;
    assert!(certificate.residual_l1 <= window.residual + whole_units + SLACK);
    assert!(certificate.residual_l1 >= window.residual - SLACK);
    assert!(l1(&window.pagerank()) <= certificate.received_l1.unwrap_or(2.0) + SLACK);
    let promised = config.damping() * certificate.residual_l1 + window.rounding;
    let promised = promised / (1.0 - config.damping());
    match certificate.received_l1 {
        Some(bound) => assert!((bound - promised).abs() <= 1e-9 * (1.0 + promised)),
        None => assert!(promised >= 2.0 - 1e-9),
    }
}

/// Cash, the clock, rounds, windows and their bounds are those of the definitions: inside epochs, at their ends, and behind
/// the ends of rounds; whatever the checkpoints.
#[test]
fn the_books_are_those_of_the_definitions() {
    for seed in 0..12 {
        let mut dice = Dice::numbered(0xE90C, seed);
        let count = [2, 4, 16, 48][dice.roll(4) as usize];
        let epoch = [1, 3, 50, 333, 5000][dice.roll(5) as usize];
        let mut config = Config::default();
        config.recycle_after = dice.roll(4) as u8;
        config.marks = 1 + dice.roll(4) as u8;
        let pages = 5 + dice.roll(60);
        let epochs = Epochs {
            records: epoch,
            owner: Box::new(move |page| owner(page, count)),
        };
        let mut reference = Run::reference(&config).in_partitions(epochs);
        let stores = Stores::new();
        let dir = stores.path("s");
        let options = options(&config, partitions(count, epoch));
        let mut writer = Writer::open(&dir, &options).unwrap();
        for at in 0..2600 {
            let fetch = fetch(&mut dice, 1 + pages.min(at));
            push(&mut writer, &fetch);
            reference.apply(&Event::Fetch(fetch));
            match dice.roll(400) {
                0 => drop(writer.checkpoint().unwrap()),
                1 => {
                    writer.checkpoint().unwrap();
                    drop(writer);
                    writer = Writer::open(&dir, &options).unwrap();
                }
                2 => assert_same(&writer.publish().unwrap(), &reference, &config),
                _ => {}
            }
        }
        assert_same(&writer.publish().unwrap(), &reference, &config);
        assert!(reference.now.rounds > 0 || epoch == 5000);
        drop(writer);
        let checked = check(&RealDisk, &dir, Depth::Deep, None).unwrap();
        assert!(checked.damage.is_empty(), "{seed}: {checked:?}");
    }
}

/// With epochs of one record cash is where it is without partitions after each record, until a round ends: what follows on a
/// round's end is paid with the record's payment. (An interpolation notes how many pages there are, and here how many there
/// were when the epoch began.)
#[test]
fn epochs_of_one_record_are_one_store() {
    let mut dice = Dice(5);
    let fetches: Vec<Fetch> = (0..1000).map(|_| fetch(&mut dice, 80)).collect();
    let stores = Stores::new();
    for window in ["auto", "whole", "variable:3", "fixed:1.5"] {
        let mut config = Config::default();
        config.window = window.parse().unwrap();
        let of = |partitions: Partitions, name: &str| {
            let dir = stores.path(&format!("{window}-{name}"));
            let mut writer = Writer::open(dir, &options(&config, partitions)).unwrap();
            fetches.iter().for_each(|fetch| push(&mut writer, fetch));
            let snapshot = writer.publish().unwrap();
            let pages = snapshot.pages().map(Result::unwrap);
            let pages: Vec<_> = pages.map(|page| (page.cash, page.importance)).collect();
            (pages, snapshot.info().clock.clone())
        };
        let (one, clock) = of(Partitions::default(), "one");
        for count in [2, 16] {
            let (other, of_other) = of(partitions(count, 1), &count.to_string());
            assert_eq!(clock, of_other);
            for ((cash, importance), (other, of_other)) in one.iter().zip(&other) {
                assert_eq!(cash, other);
                assert!((importance - of_other).abs() <= SLACK, "{window}");
            }
        }
    }
}

/// Two pages that link to each other, in two partitions, at damping 1/2. The first is read twice in an epoch: what the second
/// page has for it is not there before its end.
#[test]
fn cash_crosses_at_the_end_of_an_epoch() {
    let other = (1..).find(|&page| owner(page, 2) != owner(0, 2)).unwrap();
    let mut config = Config::default();
    config.set_damping(0.5).unwrap();
    let stores = Stores::new();
    let options = options(&config, partitions(2, 3));
    let mut writer = Writer::open(stores.path("s"), &options).unwrap();
    let cash = |writer: &mut Writer| {
        let snapshot = writer.publish().unwrap();
        let pages: Vec<u64> = snapshot.pages().map(|page| page.unwrap().cash).collect();
        (pages, snapshot.info().clock.parse::<u64>().unwrap())
    };
    let fetch = |page, link| Fetch {
        page,
        status: None,
        redirect: None,
        links: vec![link],
        time: None,
    };
    let u = ENDOWMENT;
    push(&mut writer, &fetch(0, other));
    // Half of u is on its way to the other, and half waits for the virtual page.
    assert_eq!(cash(&mut writer), (vec![0, u + u / 2], u));
    push(&mut writer, &fetch(other, 0));
    // The other page had u itself, and hands on half of it.
    assert_eq!(cash(&mut writer), (vec![u / 2, u / 2], 2 * u));
    // There is nothing in its cell yet; then both have u/2, and the virtual page pays u/2 to each.
    push(&mut writer, &fetch(0, other));
    assert_eq!(cash(&mut writer), (vec![u, u], 2 * u));
}

/// The paper's theorem: whatever the order of visits, importance converges to PageRank. Random graphs, visited in another
/// order in each pass.
#[test]
fn importance_converges_to_pagerank() {
    for seed in 0..3 {
        let mut dice = Dice::numbered(77, seed);
        let pages = 120;
        let rows: Vec<Vec<u32>> = (0..pages)
            .map(|page| {
                let mut links: Vec<u32> =
                    (0..dice.roll(7)).map(|_| dice.roll(pages) as u32).collect();
                links.sort_unstable();
                links.dedup();
                links.retain(|&link| u64::from(link) != page);
                links
            })
            .collect();
        for (count, epoch) in [(4, 30), (4, 120), (16, 400)] {
            let errors: Vec<f64> = ["whole", "auto"]
                .iter()
                .flat_map(|window| {
                    let mut config = Config::default();
                    config.window = window.parse().unwrap();
                    config.recycle_after = 0;
                    let stores = Stores::new();
                    let options = options(&config, partitions(count, epoch));
                    let mut writer = Writer::open(stores.path("s"), &options).unwrap();
                    [20, 100].map(|passes| {
                        let done = writer.pushed() / pages;
                        for _ in done..passes {
                            let mut order: Vec<u32> = (0..pages as u32).collect();
                            for at in (1..order.len()).rev() {
                                order.swap(at, dice.roll(at as u64 + 1) as usize);
                            }
                            for page in order {
                                let fetch = Fetch {
                                    page,
                                    status: None,
                                    redirect: None,
                                    links: rows[page as usize].clone(),
                                    time: None,
                                };
                                push(&mut writer, &fetch);
                            }
                        }
                        off(&writer.publish().unwrap(), &rows)
                    })
                })
                .collect();
            let [whole_20, whole, auto_20, auto] = errors[..] else {
                panic!("{errors:?}")
            };
            // As 1 / G: a fifth, and something for what varies.
            assert!(whole < 0.3 * whole_20 && whole < 0.05, "{errors:?}");
            assert!(auto < 0.5 * auto_20 && auto < 0.05, "{errors:?}");
        }
    }
}

/// L1 distance of a ranking to PageRank by its formula; not above its bound.
pub(super) fn off(snapshot: &Snapshot, rows: &[Vec<u32>]) -> f64 {
    let names: Vec<String> = snapshot.names().map(Result::unwrap).collect();
    let rows = (0..).zip(rows).map(|(page, links)| {
        (
            name(page),
            false,
            links.iter().map(|&link| name(link)).collect(),
        )
    });
    let exact = pagerank(&names, &rows.collect::<Vec<_>>());
    let pages = snapshot.pages().map(|page| page.unwrap().importance);
    let off = pages
        .zip(&exact)
        .map(|(page, exact)| (page - exact).abs())
        .sum();
    if let Some(bound) = snapshot.bound_l1() {
        assert!(off <= bound + SLACK, "{off} {bound}");
    }
    off
}

pub(super) fn job(lab: &Lab, store: &str, partitions: Partitions, window: &str) -> Job {
    let mut job = lab.job(store, partitions.count);
    job.settings.partitions = partitions;
    job.settings.config.window = window.parse().unwrap();
    job.settle = None;
    job
}

/// Those settings with epochs of so many records, and this window.
pub(super) fn with_epochs(mut settings: Settings, records: u64, window: &str) -> Settings {
    settings.partitions = settings.partitions.with_epoch(records).unwrap();
    settings.config.window = window.parse().unwrap();
    settings
}

/// The bytes depend neither on threads and processes, nor on turns, nor on where checkpoints and snapshots fall.
#[test]
fn the_same_bytes_whoever_works_and_whatever_the_checkpoints() {
    let cases = [
        (4, 7, "auto"),
        (64, 100, "variable:4"),
        (4, 64, "fixed:2d"),
        (16, 200, "interpolation:1.5"),
        (4, 500, "fixed:1.5,min=3"),
    ];
    same_bytes(&Lab::new(21, 1500), &cases, |job| job);
}

/// That is so of jobs with these partitions, epochs and windows.
pub(super) fn same_bytes(lab: &Lab, cases: &[(u32, u64, &str)], of: impl Fn(Job) -> Job) {
    for &(count, epoch, window) in cases {
        let mut all = Vec::new();
        for (at, (threads, processes, resident, every, snapshots)) in [
            (1, 1, 0, Every::Never, Every::Never),
            (2, 1, 0, Every::Records(70), Every::Records(300)),
            (16, 1, 3, Every::Records(64), Every::Never),
            (2, 2, 0, Every::Records(101), Every::Records(250)),
            (1, 3, 1, Every::Never, Every::Records(300)),
            (1, 4, 0, Every::Records(90), Every::Never),
        ]
        .into_iter()
        .enumerate()
        {
            let store = format!("{count}-{at}-{window}");
            let job = of(Job {
                threads,
                resident: NonZeroUsize::new(resident),
                checkpoint_every: every,
                snapshot_every: snapshots,
                ..job(lab, &store, partitions(count, epoch), window)
            });
            for done in together(&job, real(processes)) {
                done.unwrap_or_else(|error| panic!("{count} {at} {window}: {error}"));
            }
            let store = lab.path(&store);
            let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty(), "{window}: {checked:?}");
            all.push(published(&store));
        }
        let differ: Vec<usize> = (0..all.len()).filter(|&at| all[at] != all[0]).collect();
        assert!(differ.is_empty(), "{window}: {differ:?}");
    }
}

/// A run that dies continues to the same bytes with cash on its way, too.
#[test]
fn a_run_that_dies_inside_an_epoch_goes_on_to_the_same_bytes() {
    let lab = Lab::new(14, 90);
    dies_anywhere(&lab, 7, |store| Job {
        checkpoint_every: Every::Records(30),
        threads: 1,
        ..job(&lab, store, partitions(4, 20), "whole")
    });
}

/// Rankings that are settled have the cash of pages, too.
#[test]
fn settled_rankings_have_cash() {
    let lab = Lab::new(23, 300);
    let mut settled = job(&lab, "settled", partitions(4, 40), "auto");
    settled.settle = Some(1e-6.into());
    run(&settled).unwrap();
    run(&job(&lab, "window", partitions(4, 40), "auto")).unwrap();
    let [settled, window] = ["settled", "window"].map(|store| {
        let snapshot = Snapshot::latest(&RealDisk, &lab.path(store)).unwrap();
        let cash: Vec<u64> = snapshot.pages().map(|page| page.unwrap().cash).collect();
        (
            cash,
            snapshot.info().window.settled.is_some(),
            snapshot.info().turnovers,
        )
    });
    assert!(settled.1 && !window.1 && settled.2 > 0.0);
    assert_eq!((settled.0, settled.2), (window.0, window.2));
}

/// An epoch needs partitions, and is a setting of the store.
#[test]
fn an_epoch_is_a_stores() {
    let none = Partitions::of(1).unwrap().with_epoch(5);
    assert!(matches!(none, Err(Error::Usage(what)) if what.contains("`epoch`")));
    assert!(Partitions::of(2).unwrap().with_epoch(0).is_err());
    let lab = Lab::new(24, 30);
    run(&job(&lab, "s", partitions(4, 10), "auto")).unwrap();
    for other in [
        partitions(4, 11),
        partitions(5, 10),
        Partitions::of(4).unwrap(),
    ] {
        let mut other = job(&lab, "s", other, "auto");
        other.settle = Some(0.01.into());
        let refused = run(&other);
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    let done = run(&job(&lab, "s", partitions(4, 10), "auto")).unwrap();
    assert!(done.nothing_to_do);
}
