//! Tests of the campaign itself: the same program with one sync left out, with two swapped, or with a fault that it
//! once had. Random cuts must detect every one.

use std::path::Path;
use std::time::{Duration, Instant};

use cashrank_ingest::ingest::InjectedFault;

use crate::binary::Binary;
use crate::cuts::{self, Broken};
use crate::disk::{Mutant, Mutation, Operation};
use crate::scenario::{Kind, STORE, Scenario};
use crate::tally::Tally;
use crate::{clocks, copies, outputs, reading, together};

/// Time within which each must be detected.
const PATIENCE: Duration = Duration::from_secs(60);

fn file(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

fn within(path: &Path, dir: &str) -> bool {
    path.parent().is_some_and(|parent| file(parent, dir))
}

fn dropped(mutated: bool) -> Mutation {
    if mutated {
        Mutation::Dropped
    } else {
        Mutation::Faithful
    }
}

fn after_commit(mutated: bool) -> Mutation {
    if mutated {
        Mutation::AfterCommit
    } else {
        Mutation::Faithful
    }
}

/// Mutants by name; cuts of runs of this kind must detect them.
pub const MUTANTS: &[(Kind, &[(&str, Mutant)])] = &[
    (Kind::Any, OF_STORES),
    (Kind::Spool, OF_SPOOLS),
    (Kind::Index, OF_INDEXES),
];

const OF_SPOOLS: &[(&str, Mutant)] = &[
    ("the spool is not synced", |path, operation| {
        dropped(within(path, "spool") && operation == Operation::Sync && !file(path, "acked.tmp"))
    }),
    ("names in the spool are not synced", |path, _| {
        dropped(file(path, "spool"))
    }),
    ("acked is not synced", |path, _| {
        dropped(file(path, "acked.tmp"))
    }),
];

const OF_INDEXES: &[(&str, Mutant)] =
    &[("the index is not synced before it is named", |path, _| {
        dropped(file(path, "index.tmp"))
    })];

const OF_STORES: &[(&str, Mutant)] = &[
    ("cash is not synced", |path, _| dropped(file(path, "cash"))),
    ("cash is synced after the commit", |path, _| {
        after_commit(file(path, "cash"))
    }),
    ("urls is not synced", |path, _| dropped(file(path, "urls"))),
    ("urls is synced after the commit", |path, _| {
        after_commit(file(path, "urls"))
    }),
    ("urls.index is not synced", |path, _| {
        dropped(file(path, "urls.index"))
    }),
    ("fingerprints is not synced", |path, _| {
        dropped(file(path, "fingerprints"))
    }),
    ("fingerprints.index is not synced", |path, _| {
        dropped(file(path, "fingerprints.index"))
    }),
    ("store.redb is not synced", |path, _| {
        dropped(file(path, "store.redb"))
    }),
    ("rows are not synced", |path, _| {
        dropped(within(path, "rows"))
    }),
    ("rows are synced after the commit", |path, _| {
        after_commit(within(path, "rows"))
    }),
    ("names of rows are not synced", |path, _| {
        dropped(file(path, "rows"))
    }),
    ("marks are not synced", |path, _| {
        dropped(within(path, "marks"))
    }),
    ("marks are synced after the commit", |path, _| {
        after_commit(within(path, "marks"))
    }),
    ("names of marks are not synced", |path, _| {
        dropped(file(path, "marks"))
    }),
    ("identity.json is not synced", |path, _| {
        dropped(file(path, "identity.next"))
    }),
    ("a new store's names are not synced", |path, operation| {
        dropped(path == Path::new(STORE) && operation == Operation::SyncDir)
    }),
    ("a new store's own name is not synced", |path, operation| {
        dropped(path == Path::new("/") && operation == Operation::SyncDir)
    }),
    ("snapshots are not synced", |path, operation| {
        dropped(
            within(path, "snapshots") && operation == Operation::Sync && !file(path, "latest.tmp"),
        )
    }),
    ("latest.json is not synced", |path, _| {
        dropped(file(path, "latest.tmp"))
    }),
    ("names of snapshots are not synced", |path, _| {
        dropped(file(path, "snapshots"))
    }),
];

/// Faults that the program once had, or might have, and the kind of runs in which cuts must detect them.
pub const FAULTS: &[(&str, Kind, InjectedFault)] = &[
    (
        "a pass over kept links begins at its start again",
        Kind::Any,
        InjectedFault::PassFromStart,
    ),
    (
        "a stream that ended is not known when it is sent again",
        Kind::Ends,
        InjectedFault::StreamForgotten,
    ),
];

/// Part of the campaign, run on a faulty program with a seed.
type Tried = fn(&Binary, &Path, u64) -> Result<Tally, String>;

/// Name of the fault that is detected only where clocks can be set.
pub const CLOCK: &str = "time is measured on the clock of the wall";

/// Faults by name, with the part that must detect them.
pub const OTHERS: &[(&str, Tried)] = &[
    (
        "a read that fails is the end of its file",
        |_, dir, seed| {
            let scenario = Scenario::published_twice(dir, seed)?;
            reading::sweep(&scenario, seed, &reading::CUT_SHORT)
        },
    ),
    ("nobody looks at the store's lock", |_, dir, seed| {
        Ok(together::campaign(dir, seed, 20, true))
    }),
    (
        "results are written into NAME.unfinished, whoever has it",
        |binary, dir, seed| outputs::campaign(&outputs::careless(binary, dir)?, dir, seed, 20),
    ),
    ("nobody looks of which pages an index is", |_, dir, seed| {
        let fault = Some(InjectedFault::IndexUnchecked);
        Ok(copies::campaign(dir, seed, 2, fault))
    }),
    (CLOCK, |binary, dir, seed| {
        clocks::campaign(binary, dir, seed, 4, clocks::Set::All)
    }),
];

/// Checks that the campaign detects each mutant, and prints when; notes those that it misses.
pub fn catch(binary: &Binary, dir: &Path, seed: u64) -> Tally {
    let mut tally = Tally::default();
    let cut = |name, kind, broken, tally: &mut Tally| {
        let tried = |seed| cuts::random(kind, dir, seed, 100, broken);
        until_caught(name, seed, tried, tally);
    };
    for &(name, kind, fault) in FAULTS {
        let broken = Broken {
            mutant: None,
            fault: Some(fault),
        };
        cut(name, kind, broken, &mut tally);
    }
    for &(kind, mutants) in MUTANTS {
        for &(name, mutant) in mutants {
            let broken = Broken {
                mutant: Some(mutant),
                fault: None,
            };
            cut(name, kind, broken, &mut tally);
        }
    }
    for &(name, tried) in OTHERS {
        if name == CLOCK && !clocks::is_possible() {
            eprintln!("SKIPPED: {name}: libfaketime is not installed");
            continue;
        }
        let tried = |seed| tried(binary, dir, seed).unwrap_or_else(Tally::of_failure);
        until_caught(name, seed, tried, &mut tally);
    }
    tally
}

/// Tries a mutant with one seed after another.
fn until_caught(name: &str, seed: u64, tried: impl Fn(u64) -> Tally, tally: &mut Tally) {
    let started = Instant::now();
    let mut tries = 0;
    let mut caught = None;
    for round in 0.. {
        let found = tried(seed.wrapping_add(round));
        tries += found.cuts + found.faults;
        caught = found.failures.into_iter().next();
        if caught.is_some() || started.elapsed() > PATIENCE {
            break;
        }
    }
    tally.faults += 1;
    let seconds = started.elapsed().as_secs_f64();
    match caught {
        Some(how) => {
            tally.survivors += 1;
            eprintln!("mutant caught after {seconds:.2} s, {tries} faults: {name}\n    {how}");
        }
        None => tally.failures.push(format!(
            "mutant not caught in {seconds:.0} s, {tries} faults: {name}"
        )),
    }
}
