mod lab;

pub use lab::copy;

use std::collections::BTreeSet;
use std::fs;

use lab::{Lab, N, SMALL, crawl, exchange_of, names, shard, write};

use super::*;
use crate::Limits;
use crate::check::{Depth, check};
use crate::disk::RealDisk;
use crate::rank::peers::threads::with_processes;
use crate::rules::InputRules;
use crate::session::Options;
use crate::shards::{OneProcess, local_shards};
use crate::store::rows::KeepRows;
use crate::store::{Input, InputProgress, StoreWriter, checkpoint, open_view, settings_of};

/// One process, which is lost at a given call.
struct LostProcess {
    peers: OneProcess,
    calls_left: usize,
}

impl LostProcess {
    fn at(calls_left: usize) -> LostProcess {
        let peers = OneProcess::new(N as usize);
        LostProcess { peers, calls_left }
    }

    fn call(&mut self) -> Result<&mut OneProcess> {
        let left = self.calls_left.checked_sub(1);
        self.calls_left = left.ok_or_else(|| Error::internal("a process is lost"))?;
        Ok(&mut self.peers)
    }
}

impl Peers for LostProcess {
    fn shards(&self) -> usize {
        self.peers.shards()
    }

    fn local(&self) -> &[usize] {
        self.peers.local()
    }

    fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
        self.call()?.exchange(outgoing)
    }

    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.call()?.gather(own)
    }
}

#[test]
fn remote_pages_have_the_numbers_of_their_owners() {
    let crawl = crawl(1);
    let lab = Lab::new(&crawl);
    let one = lab.home.path().join("one");
    write(&one, None, &crawl);
    let before = lab.names();
    let first = lab.exchange();
    assert_eq!(first.warnings, [""; 0]);
    lab.check(&first);
    let after = lab.names();

    // Each page of the crawl is in its own shard now.
    let own = |number: u32| {
        let names = after[number as usize].iter().cloned();
        names.filter(move |name| shard(number).has(name.as_bytes()))
    };
    let all: Vec<String> = (0..N).flat_map(own).collect();
    let distinct: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(
        (distinct.len(), distinct),
        (all.len(), names(&one).into_iter().collect())
    );

    // Admitted in the order (round, shard, page), after the present pages.
    let mut admitted = 0;
    for (number, before_here) in (0..N).zip(&before) {
        let mut expected = before_here.clone();
        let asked = |from: u32| -> Vec<&String> {
            let is_remote = |name: &&String| !shard(from).has(name.as_bytes());
            before[from as usize].iter().filter(is_remote).collect()
        };
        let rounds = (0..N)
            .map(|from| asked(from).len().div_ceil(7))
            .max()
            .unwrap();
        assert!(rounds > 3);
        for round in 0..rounds {
            for from in 0..N {
                for name in asked(from).into_iter().skip(7 * round).take(7) {
                    if shard(number).has(name.as_bytes()) && !expected.contains(name) {
                        expected.push(name.clone());
                    }
                }
            }
        }
        admitted += (expected.len() - before_here.len()) as u64;
        assert_eq!(after[number as usize], expected);
    }
    assert!(admitted > 0);
    assert_eq!(first.admitted, admitted);

    // The second time there is nothing to ask, and no store is opened for writing.
    let files = lab.files();
    let second = lab.exchange();
    assert_eq!(
        (second.admitted, &second.generations),
        (0, &first.generations)
    );
    assert_eq!(
        (&second.remote, &second.warnings),
        (&first.remote, &first.warnings)
    );
    assert_eq!(lab.files(), files);

    // After more is crawled, known pages keep their numbers.
    for number in 0..N {
        write(&lab.dir(number), Some(shard(number)), &self::crawl(2));
    }
    let third = lab.exchange();
    lab.check(&third);
    assert_eq!(third.warnings, [""; 0]);
    for (old, new) in first
        .remote
        .iter()
        .flatten()
        .zip(third.remote.iter().flatten())
    {
        let pairs = |pages: &RemotePages| -> BTreeSet<(u32, u32)> {
            pages
                .here
                .iter()
                .copied()
                .zip(pages.there.iter().copied())
                .collect()
        };
        assert!(pairs(old).is_subset(&pairs(new)));
    }
    for (old, new) in files.iter().zip(lab.files()) {
        assert!(new != *old);
    }
}

/// The size of rounds affects only the numbers of pages, and no page at the end of a round is lost.
#[test]
fn rounds_of_any_size_find_all() {
    let lab = Lab::new(&crawl(3));
    for size in [(1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX), (3, 50)] {
        let lab = lab.copy();
        let (pages, bytes) = size;
        let mut peers = OneProcess::new(N as usize);
        let outcome = lab
            .try_exchange(&mut peers, Round { pages, bytes })
            .unwrap();
        lab.check(&outcome);
        assert_eq!(lab.exchange().remote, outcome.remote);
    }
}

#[test]
fn a_process_lost_at_any_call_changes_nothing() {
    let lab = Lab::new(&crawl(4));
    let (before, undisturbed) = (lab.generations(), lab.copy());
    let large = Round { pages: 60, ..SMALL };
    let exchange = |lab: &Lab| {
        let mut peers = OneProcess::new(N as usize);
        lab.try_exchange(&mut peers, large).unwrap()
    };
    let expected = exchange(&undisturbed);
    let (expected_files, mut calls) = (undisturbed.files(), 0);
    loop {
        let lab = lab.copy();
        match lab.try_exchange(&mut LostProcess::at(calls), large) {
            Ok(outcome) => {
                assert_eq!(outcome, expected);
                break;
            }
            Err(error) => assert!(error.to_string().contains("lost"), "{error}"),
        }
        let generations = lab.generations();
        let is_committed = generations == expected.generations;
        assert!(is_committed || generations == before, "all commit, or none");
        let again = exchange(&lab);
        assert_eq!(
            (&again.remote, &again.warnings),
            (&expected.remote, &expected.warnings)
        );
        assert_eq!(again.generations, expected.generations);
        assert_eq!(lab.files(), expected_files, "at call {calls}");
        calls += 1;
    }
    assert!(calls > 6);
    // Killed while the files were written: some are there, and one has its temporary name.
    let lab = undisturbed.copy();
    fs::remove_file(lab.file(0)).unwrap();
    fs::rename(lab.file(2), lab.dir(2).join("remote.tmp")).unwrap();
    let again = exchange(&lab);
    assert_eq!((&again.remote, again.warnings), (&expected.remote, vec![]));
    assert_eq!(lab.files(), expected_files);
    lab.check(&exchange(&lab));
}

#[test]
fn a_damaged_file_is_rebuilt_with_a_warning() {
    let lab = Lab::new(&crawl(5));
    let expected = lab.exchange();
    let files = lab.files();
    let len = files[1].len();
    for at in (0..len).step_by(len / 16) {
        let mut damaged = files[1].clone();
        damaged[at] ^= 0x10;
        fs::write(lab.file(1), damaged).unwrap();
        let checked = check(&RealDisk, &lab.dir(1), Depth::Quick, None).unwrap();
        let [damage] = &checked.damage[..] else {
            panic!("{:?}", checked.damage);
        };
        assert!(damage.to_string().contains("remote: damaged: "), "{damage}");
        let again = lab.exchange();
        assert_eq!((&again.remote, again.admitted), (&expected.remote, 0));
        let [warning] = &again.warnings[..] else {
            panic!("{:?}", again.warnings);
        };
        assert_eq!(*warning, damage.to_string());
        assert_eq!(lab.files(), files);
    }
}

#[test]
fn a_file_of_an_earlier_version_is_rebuilt() {
    let lab = Lab::new(&crawl(5));
    let expected = lab.exchange();
    let files = lab.files();
    fs::write(lab.file(1), [&1u64.to_le_bytes()[..], &[9; 99]].concat()).unwrap();
    let checked = check(&RealDisk, &lab.dir(1), Depth::Quick, None).unwrap();
    assert!(checked.damage.is_empty(), "{:?}", checked.damage);
    let again = lab.exchange();
    assert_eq!(again.remote, expected.remote);
    assert_eq!(again.warnings, checked.notes);
    assert!(
        again.warnings[0].contains("of version 1;"),
        "{:?}",
        again.warnings
    );
    assert_eq!(lab.files(), files);
}

/// A file of a copy of the store that has fewer pages is noticed.
#[test]
fn a_file_that_does_not_fit_the_names_is_damage() {
    let lab = Lab::new(&crawl(11));
    lab.exchange();
    let other = lab.copy();
    write(&other.dir(1), Some(shard(1)), &crawl(12));
    other.exchange();
    fs::copy(other.file(1), lab.file(1)).unwrap();
    let damage = check(&RealDisk, &lab.dir(1), Depth::Quick, None)
        .unwrap()
        .damage;
    let [error] = &damage[..] else {
        panic!("it is found");
    };
    assert!(
        error.to_string().contains("not of the pages of this store"),
        "{error}"
    );
}

/// Numbers that cannot be stored are used, and asked for again the next time.
#[test]
fn a_file_that_cannot_be_written_is_a_warning() {
    let lab = Lab::new(&crawl(13));
    let expected = lab.copy().exchange();
    fs::create_dir(lab.file(1)).unwrap();
    for _ in 0..2 {
        let outcome = lab.exchange();
        assert_eq!(outcome.remote, expected.remote);
        let [unread, unwritten] = &outcome.warnings[..] else {
            panic!("{:?}", outcome.warnings);
        };
        assert!(unread.contains("1/remote: "), "{unread}");
        assert!(
            unwritten.contains("1/remote: cannot publish"),
            "{unwritten}"
        );
        assert!(
            unwritten.ends_with("will be asked for again"),
            "{unwritten}"
        );
    }
}

/// The distribution of shards over processes makes no difference.
#[test]
fn processes_find_the_same_numbers() {
    let lab = Lab::new(&crawl(14));
    let one = lab.copy();
    let expected = one.exchange();
    for processes in [2, 3] {
        let lab = lab.copy();
        let found = with_processes(N as usize, processes, |peers| {
            let local = peers.local().to_vec();
            let dirs = local.iter().map(|&number| lab.dir(number as u32));
            let outcome = exchange_of(&dirs.collect::<Vec<_>>(), peers, SMALL).unwrap();
            (local, outcome)
        });
        let mut admitted = 0;
        for (local, outcome) in found {
            admitted += outcome.admitted;
            for (number, remote) in local.iter().zip(outcome.remote) {
                assert_eq!(remote, expected.remote[*number]);
            }
        }
        assert_eq!(admitted, expected.admitted);
        assert_eq!(lab.files(), one.files());
        assert_eq!(lab.names(), one.names());
    }
}

#[test]
fn a_store_with_other_pages_is_noticed() {
    let crawl = crawl(6);
    let lab = Lab::new(&crawl);
    let fresh = lab.copy();
    let before = lab.exchange();
    let replace = |from: &Lab, lab: &Lab, number: u32| {
        fs::remove_dir_all(lab.dir(number)).unwrap();
        fs::create_dir(lab.dir(number)).unwrap();
        copy(&from.dir(number), &lab.dir(number));
    };
    // The records in another order: other numbers, under another key.
    let reversed: Vec<_> = crawl.iter().rev().cloned().collect();
    // Restored from an earlier copy: pages admitted for others are missing.
    for other in [Lab::new(&reversed), fresh] {
        let lab = lab.copy();
        replace(&other, &lab, 2);
        let after = lab.exchange();
        lab.check(&after);
        let is_of_two = |text: &&String| text.contains("shard 2/4 does not have the pages");
        let warnings = after.warnings.iter().filter(is_of_two);
        assert_eq!(warnings.count(), 3, "{:?}", after.warnings);
        assert!(lab.exchange().warnings.is_empty());
    }
    // The file of another store in the folder of a new one.
    let foreign = lab.copy();
    replace(&Lab::new(&reversed), &foreign, 2);
    fs::copy(lab.file(2), foreign.file(2)).unwrap();
    let after = foreign.exchange();
    foreign.check(&after);
    let text = after.warnings.join("\n");
    assert!(text.contains("it is of another store"), "{text}");
    // A file that is newer than the store, which continued with other pages.
    let old = Lab::new(&crawl);
    let is_known = old.exchange();
    assert_eq!(is_known.remote, before.remote);
    let file = fs::read(old.file(1)).unwrap();
    let earlier = old.copy();
    write(&old.dir(1), Some(shard(1)), &self::crawl(7));
    old.exchange();
    let newer = fs::read(old.file(1)).unwrap();
    assert!(newer != file);
    write(&earlier.dir(1), Some(shard(1)), &self::crawl(8));
    fs::write(earlier.file(1), newer).unwrap();
    let after = earlier.exchange();
    earlier.check(&after);
    let text = after.warnings.join("\n");
    assert!(text.contains("not of the pages of this store"), "{text}");
}

#[test]
fn stores_that_cannot_answer_are_refused() {
    let lab = Lab::new(&crawl(9));
    let writer = Writer::open(lab.dir(3), &Options::of(lab.dir(3)).unwrap()).unwrap();
    let mut peers = OneProcess::new(N as usize);
    let error = lab.try_exchange(&mut peers, SMALL).unwrap_err();
    assert!(
        matches!(&error, Error::Busy { path } if *path == lab.dir(3)),
        "{error}"
    );
    drop(writer);

    let before = lab.generations();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let local = local_shards(&*disk, &lab.dirs()).unwrap();
    let error = exchange_names(&disk, &local, &mut peers, Some(1))
        .err()
        .unwrap();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(lab.generations(), before, "nothing is half-done");
    let settings = settings_of(&RealDisk, &lab.dir(1)).unwrap().unwrap();
    let limits = Limits::default();
    let keep = KeepRows::usual(&lab.dir(1));
    let opened = StoreWriter::open(disk, &lab.dir(1), &settings, &limits, keep, false);
    let unfinished = InputProgress {
        inputs: vec![Input {
            name: "crawl.jsonl".into(),
            format: "records".into(),
            end: None,
            spooled: None,
        }],
        ..InputProgress::default()
    };
    let mut engine = opened.unwrap();
    checkpoint(&mut engine, &unfinished).unwrap();
    drop(engine);
    let error = lab.try_exchange(&mut peers, SMALL).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Conflict(_)) && text.contains("not finished"),
        "{text}"
    );
}

/// One process, in which shard 0 sends shard 1 an additional name.
struct Wrong {
    peers: OneProcess,
    name: &'static [u8],
    exchanges: u32,
}

impl Peers for Wrong {
    fn shards(&self) -> usize {
        self.peers.shards()
    }

    fn local(&self) -> &[usize] {
        self.peers.local()
    }

    fn exchange(&mut self, mut outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
        self.exchanges += 1;
        if self.exchanges == 1 {
            prefix::put(&mut outgoing[0][1], &mut Vec::new(), self.name);
        }
        self.peers.exchange(outgoing)
    }

    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.peers.gather(own)
    }
}

#[test]
fn names_of_other_shards_are_no_pages() {
    let lab = Lab::new(&crawl(10));
    let before = lab.generations();
    let others = (0u8..)
        .map(|n| [n, n])
        .find(|name| !shard(1).has(name))
        .unwrap();
    let own = (0x80u8..)
        .map(|n| [n, 0xff])
        .find(|name| shard(1).has(name))
        .unwrap();
    for name in [b"".to_vec(), others.to_vec(), own.to_vec()] {
        let mut peers = Wrong {
            peers: OneProcess::new(N as usize),
            name: name.leak(),
            exchanges: 0,
        };
        let error = lab.try_exchange(&mut peers, SMALL).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Internal { .. }), "{text}");
        assert!(text.contains("shard 0/4 sent shard 1/4"), "{text}");
    }
    assert_eq!(lab.generations(), before);
}

/// Each store takes part, whether it has pages or not; a store of many shards is checked without memory for each of
/// them.
#[test]
fn shards_without_pages_and_very_many_are_fine() {
    let lab = Lab::new(&[]);
    let outcome = lab.exchange();
    lab.check(&outcome);
    assert_eq!(
        outcome.remote,
        vec![vec![RemotePages::default(); N as usize]; N as usize]
    );
    assert!((0..N).all(|number| !lab.file(number).exists()));
    let other = Lab::new(&crawl(16));
    other.exchange();
    let outcome_file = other.file(0);
    let many = lab.home.path().join("many");
    write(&many, Some("7/4294967295".parse().unwrap()), &crawl(15));
    fs::copy(outcome_file, many.join("remote")).unwrap();
    let checked = check(&RealDisk, &many, Depth::Deep, None).unwrap();
    let [damage] = &checked.damage[..] else {
        panic!("{:?}", checked.damage);
    };
    assert!(damage.to_string().contains("another store"), "{damage}");
}

#[test]
fn answers_are_taken_whole_or_not_at_all() {
    let numbers = [9, 0, u32::MAX.into()].map(PageId);
    let asked = RemotePages {
        here: vec![3; 3],
        there: Vec::new(),
    };
    let mut found = asked.clone();
    assert_eq!(read_numbers(&put_numbers(&numbers), &mut found), Some(()));
    assert_eq!(found.there, [9, 0, u32::MAX]);
    for wrong in [0, 8, 11, 13, 16] {
        let found = read_numbers(&vec![1; wrong], &mut asked.clone());
        assert_eq!(found, None, "{wrong} bytes");
    }
}
