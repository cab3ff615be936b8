//! Passes after the first, and pages that complete a pass, in stores with partitions between which cash crosses: against the
//! second engine, and PageRank by its formula; whoever works, and whatever fails.

use std::fs::{read, remove_dir_all, write};
use std::num::NonZeroUsize;

use super::epochs::{assert_same, job, off, owner, partitions, same_bytes};
use super::processes::{real, together};
use super::*;
use crate::crawl::Dice;
use crate::engine::reference::{Epochs, Reference};
use crate::engine::stream::{Event, Fetch, Run};

/// Records of pages that are numbers, each with links to others: a file of them as adjacency.
fn graph(dice: &mut Dice, pages: u64, records: u64) -> Vec<(u32, Vec<u32>)> {
    let mut record = |at: u64| {
        let mut page = || dice.roll(1 + pages.min(at)) as u32;
        let (of, links) = (page(), page() % 6);
        (of, (0..links).map(|_| page()).collect())
    };
    (0..records).map(&mut record).collect()
}

fn text(records: &[(u32, Vec<u32>)]) -> String {
    let line = |(page, links): &(u32, Vec<u32>)| {
        let links: String = links.iter().map(|link| format!("\tp{link}")).collect();
        format!("p{page}{links}\n")
    };
    records.iter().map(line).collect()
}

fn fetch((page, links): &(u32, Vec<u32>)) -> Event {
    Event::Fetch(Fetch {
        page: *page,
        status: None,
        redirect: None,
        links: links.clone(),
        time: None,
    })
}

/// Of visits that are given by partition, all in the order of `formats/guide/partitions.md`: each partition goes evenly from the
/// start of its own to the end.
fn at_one_pace<T: Clone>(parts: &[Vec<T>]) -> Vec<T> {
    let mut all = Vec::new();
    for (part, visits) in parts.iter().enumerate() {
        for (at, visit) in visits.iter().enumerate() {
            let way = ((at as u128) << 64) / visits.len() as u128;
            all.push((way, part, visit.clone()));
        }
    }
    all.sort_by_key(|&(way, part, _)| (way, part));
    all.into_iter().map(|(.., visit)| visit).collect()
}

/// All passes over these records.
fn pass_over(
    reference: &mut Reference,
    records: &[(u32, Vec<u32>)],
    (count, passes, complete): (u32, u32, bool),
) {
    // The last record of each page, in the order of these.
    let is_last = |at: &usize| {
        records[at + 1..]
            .iter()
            .all(|later| later.0 != records[*at].0)
    };
    let rows = (0..records.len()).filter(is_last);
    let mut parts = vec![Vec::new(); count as usize];
    for at in rows {
        parts[owner(records[at].0, count) as usize].push(fetch(&records[at]));
    }
    for pass in 1..=passes {
        if pass == 1 {
            records
                .iter()
                .for_each(|record| reference.apply(&fetch(record)));
        } else {
            reference.apply(&Event::BeginPass);
            let visits = at_one_pace(&parts);
            visits.iter().for_each(|visit| reference.apply(visit));
        }
        if complete {
            let mut parts = vec![Vec::new(); count as usize];
            for page in reference.unread() {
                parts[reference.owners[page] as usize].push(page);
            }
            at_one_pace(&parts)
                .into_iter()
                .for_each(|page| reference.complete(page));
        }
    }
}

/// Cash, the clock, rounds, windows and their bounds are those of the definitions after any number of passes.
#[test]
fn the_books_of_passes_are_those_of_the_definitions() {
    let (mut in_epoch, mut rounds) = (0, 0);
    for seed in 0..16 {
        let mut dice = Dice::numbered(0xBA55, seed);
        let count = [2, 4, 16][dice.roll(3) as usize];
        let epoch = [1, 3, 50, 333, 5000][dice.roll(5) as usize];
        let lab = Lab::new(1, 1);
        let mut config = Config::default();
        config.recycle_after = dice.roll(4) as u8;
        config.marks = 1 + dice.roll(4) as u8;
        let pages = 5 + dice.roll(60);
        let records = 200 + dice.roll(1500);
        let records = graph(&mut dice, pages, records);
        write(lab.path("crawl"), text(&records)).unwrap();
        let (passes, complete) = (1 + dice.roll(4) as u32, dice.roll(2) == 0);
        let mut job = Job {
            format: Some(Format::Adjacency),
            repeat: passes,
            complete,
            checkpoint_every: Every::Records(1 + dice.roll(900)),
            resident: NonZeroUsize::new(dice.roll(4) as usize),
            ..job(&lab, "s", partitions(count, epoch), "auto")
        };
        job.settings.config = config.clone();
        run(&job).unwrap();
        let epochs = Epochs {
            records: epoch,
            owner: Box::new(move |page| owner(page, count)),
        };
        let mut reference = Run::reference(&config).in_partitions(epochs);
        pass_over(&mut reference, &records, (count, passes, complete));
        let snapshot = Snapshot::latest(&RealDisk, &job.store).unwrap();
        assert_same(&snapshot, &reference, &config);
        let counters = &snapshot.info().counters;
        let visits: u64 = reference.visits.iter().sum();
        assert_eq!((counters.records, counters.gone), (visits, 0));
        let checked = check(&RealDisk, &job.store, Depth::Deep, None).unwrap();
        assert!(checked.damage.is_empty(), "{seed}: {checked:?}");
        in_epoch += u32::from(!visits.is_multiple_of(epoch));
        rounds += reference.now.rounds;
    }
    assert!(in_epoch >= 5 && rounds >= 20, "{in_epoch} {rounds}");
}

/// Notes the bounds that passes came to.
#[derive(Default)]
struct Bounds(Vec<(u32, f64)>);

impl Observer for Bounds {
    fn note(&mut self, note: Note<'_>) {
        if let Note::Bound { pass, bound } = note {
            self.0.push((pass, bound.unwrap_or(2.0)));
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// The paper's theorem: a window's estimate converges to PageRank pass by pass, within its bound; `until` ends the passes as soon
/// as that is low enough, and the same command finds that it is.
#[test]
fn passes_converge_to_pagerank_until_they_are_near_enough() {
    let mut dice = Dice(8);
    let pages = 150;
    let row = |page: u32, dice: &mut Dice| {
        let links = (0..1 + dice.roll(6)).map(|_| dice.roll(pages) as u32);
        let mut links: Vec<u32> = links.filter(|&link| link != page).collect();
        links.sort_unstable();
        links.dedup();
        (page, links)
    };
    let records: Vec<_> = (0..pages as u32).map(|page| row(page, &mut dice)).collect();
    let lab = Lab::new(1, 1);
    write(lab.path("crawl"), text(&records)).unwrap();
    let rows: Vec<Vec<u32>> = records.iter().map(|(_, links)| links.clone()).collect();
    for (count, epoch) in [(4, 10), (4, 150), (16, 40)] {
        let store = format!("{count}-{epoch}");
        let passes = |repeat: u32, until: Option<f64>| Job {
            format: Some(Format::Adjacency),
            repeat,
            until,
            ..job(&lab, &store, partitions(count, epoch), "auto")
        };
        let errors: Vec<f64> = [3, 9, 27]
            .into_iter()
            .map(|repeat| {
                run(&passes(repeat, None)).unwrap();
                off(
                    &Snapshot::latest(&RealDisk, &lab.path(&store)).unwrap(),
                    &rows,
                )
            })
            .collect();
        assert!(
            errors[1] < 0.6 * errors[0] && errors[2] < 0.5 * errors[1],
            "{errors:?}"
        );
        let mut bounds = Bounds::default();
        let store = format!("until-{store}");
        let job = Job {
            store: lab.path(&store),
            ..passes(400, Some(0.01))
        };
        let done =
            |bounds: &mut Bounds| -> Outcome { ingest(&job, Arc::new(RealDisk), bounds).unwrap() };
        assert!(!done(&mut bounds).nothing_to_do);
        let (last, before) = bounds.0.split_last().unwrap();
        assert!(last.1 <= 0.01 && before.iter().all(|(_, bound)| *bound > 0.01));
        assert!((3..400).contains(&last.0), "{last:?}");
        let snapshot = Snapshot::latest(&RealDisk, &job.store).unwrap();
        assert!(snapshot.bound_l1().unwrap() <= 0.01);
        off(&snapshot, &rows);
        let bytes = read(snapshot.path()).unwrap();
        assert!(done(&mut bounds).nothing_to_do);
        assert!(bytes == published(&job.store).0);
    }
}

/// The bytes of passes depend neither on threads and processes, nor on turns, nor on where checkpoints and snapshots fall; also
/// where some of a page's records have times, failed, or found it gone.
#[test]
fn passes_give_the_same_bytes_whoever_works() {
    let cases = [
        (4, 64, "fixed:2d"),
        (16, 200, "auto"),
        (64, 3000, "variable:3"),
    ];
    same_bytes(&Lab::new(27, 300), &cases, |job| Job {
        repeat: 3,
        complete: true,
        ..job
    });
}

/// Wherever the disk is gone, in passes, between them, and where they are completed: the same command, by any number of
/// processes, comes to the same bytes.
#[test]
fn a_run_that_dies_in_a_pass_goes_on_to_the_same_bytes() {
    let lab = Lab::new(28, 60);
    let job = |store: &str| Job {
        checkpoint_every: Every::Records(20),
        threads: 1,
        repeat: 3,
        complete: true,
        ..job(&lab, store, partitions(4, 30), "auto")
    };
    run(&job("whole")).unwrap();
    let whole = published(&lab.path("whole"));
    let mut reached = BTreeSet::new();
    for changes in (0..).step_by(53) {
        let dying = Dying::after(changes);
        let job = job("dies");
        let disk: Arc<dyn Disk> = Arc::new(Meddled(Dies(dying.clone())));
        let done = ingest(&job, disk, &mut Quiet);
        if dying.left.load(Ordering::SeqCst) > 0 {
            done.unwrap();
            break;
        }
        if job.store.join("identity.json").exists() {
            let view = open_view(&RealDisk, &job.store).unwrap();
            let progress = view.progress();
            let inside = progress.place.records > 0;
            reached.insert((progress.pass, inside, progress.completing.is_some()));
            let checked = check(&RealDisk, &job.store, Depth::Deep, None).unwrap();
            assert!(checked.damage.is_empty(), "{changes}: {checked:?}");
        }
        for done in together(&job, real(1 + changes as usize % 3)) {
            done.unwrap_or_else(|error| panic!("{changes}: {error}"));
        }
        assert!(published(&job.store) == whole, "{changes}");
        remove_dir_all(&job.store).unwrap();
    }
    for place in [
        (1, true, false),
        (1, false, true),
        (2, false, false),
        (2, true, false),
        (2, false, true),
        (3, true, false),
    ] {
        assert!(reached.contains(&place), "{place:?}: {reached:?}");
    }
}
