//! Power cuts: at every operation of a small run, and at every operation of each recovery from these; and at random
//! operations of random runs, repeatedly.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cashrank_ingest::ingest::InjectedFault;

use crate::crawl::Dice;
use crate::disk::{Fault, Mutant, Plan, SimDisk, Survival};
use crate::scenario::{Kind, Promise, Scenario, check_generation};
use crate::tally::{Tally, spread};

/// Plans a power cut at this operation.
pub fn cut_at(at: u64) -> Plan {
    Plan {
        fault: Fault::Cut,
        at,
        for_ever: true,
        on: |_| true,
    }
}

/// Disks from which a run has ended well, with the commit it began with: the same disk need not be tried twice.
type Known = Mutex<HashMap<u128, Option<u64>>>;

/// Cuts at every operation of the scenario, with every survival; from each distinct disk left, if `again`, also at
/// every operation of the run that continues, with every survival.
pub fn exhaustive(scenario: &Scenario, seed: u64, again: bool) -> Tally {
    let known = Known::default();
    spread(scenario.operations + 1, |at| {
        let disk = SimDisk::new(seed);
        let first = Level {
            scenario,
            known: &known,
            seed,
            path: format!("cut at {at}"),
        };
        let promise = Promise::default();
        first.cuts(&disk, at, promise, |survivor, path, promise| {
            let mut tally = Tally::default();
            if !again {
                return tally;
            }
            let copy = survivor.cut(Survival::Everything, seed);
            if scenario.run(&copy, promise.acked).is_err() {
                return tally;
            }
            for at in 0..=copy.operations() {
                let second = Level {
                    path: format!("{path}, then at {at}"),
                    ..first
                };
                let disk = survivor.cut(Survival::Everything, seed);
                tally += second.cuts(&disk, at, promise.clone(), |_, _, _| Tally::default());
            }
            tally.cuts_again = tally.cuts;
            tally
        })
    })
}

/// One cut of the exhaustive campaign.
struct Level<'a> {
    scenario: &'a Scenario,
    known: &'a Known,
    seed: u64,
    path: String,
}

impl Level<'_> {
    /// Runs into a cut at operation `at`, and continues from every disk that this may leave. Calls `then` with those
    /// not seen before.
    fn cuts(
        &self,
        disk: &SimDisk,
        at: u64,
        mut promise: Promise,
        then: impl Fn(&SimDisk, &str, &Promise) -> Tally,
    ) -> Tally {
        let mut tally = Tally::default();
        disk.plan(cut_at(at));
        let ran = match self.scenario.run_into_fault(disk, promise.acked) {
            Ok(ran) => ran,
            Err(what) => {
                tally.failures.push(format!("{}: {what}", self.path));
                return tally;
            }
        };
        promise.keep(ran.promise);
        for survival in Survival::ALL {
            tally.cuts += 1;
            let survivor = disk.cut(survival, self.seed ^ at);
            let story = || format!("{}, {survival:?} survives", self.path);
            let checked = self.scenario.check_survivor(&survivor, &promise);
            if !tally.judge(checked, story) {
                continue;
            }
            let hash = survivor.hash();
            let known = self
                .known
                .lock()
                .map_or(None, |known| known.get(&hash).copied());
            if let Some(began_with) = known {
                tally.judge(check_generation(&promise, began_with), story);
                tally.survivors += 1;
                continue;
            }
            let copy = survivor.cut(Survival::Everything, self.seed);
            let finished = self.scenario.finish(&copy, promise.acked).and_then(|ran| {
                check_generation(&promise, ran.began_with)?;
                self.scenario.verify(&copy)?;
                Ok(ran)
            });
            match finished {
                Ok(ran) => {
                    tally.survived(ran.recovery);
                    tally.disks += 1;
                    if let Ok(mut known) = self.known.lock() {
                        known.insert(hash, ran.began_with);
                    }
                    tally += then(&survivor, &story(), &promise);
                }
                Err(what) => tally.failures.push(format!("{}: {what}", story())),
            }
        }
        tally
    }
}

/// Deliberate fault of the program under test.
#[derive(Clone, Copy, Default)]
pub struct Broken {
    /// Treatment of its syncs.
    pub mutant: Option<Mutant>,
    /// Injected fault.
    pub fault: Option<InjectedFault>,
}

impl Broken {
    fn is_any(&self) -> bool {
        self.mutant.is_some() || self.fault.is_some()
    }
}

/// Runs random scenarios: each is cut up to four times, then finished. A program with a fault is tried until that is
/// detected.
pub fn random(kind: Kind, dir: &Path, seed: u64, chains: u64, broken: Broken) -> Tally {
    // Many chains share a scenario, whose undisturbed run is made once.
    const SHARED: u64 = 50;
    let found_out = AtomicBool::new(false);
    spread(chains.div_ceil(SHARED), |group| {
        let mut dice = Dice::numbered(seed, group);
        let mut tally = Tally::default();
        let scenario = match Scenario::of_kind(kind, &mut dice, dir, broken.fault) {
            Ok(scenario) => scenario,
            Err(what) => {
                tally
                    .failures
                    .push(format!("random scenario {group} of {kind:?}: {what}"));
                return tally;
            }
        };
        for chain in 0..SHARED.min(chains - group * SHARED) {
            if found_out.load(Relaxed) {
                break;
            }
            let story =
                format!("--seed {seed}, random scenario {group} of {kind:?}, chain {chain}");
            let mut dice = dice.fork();
            let result = one_chain(&scenario, &mut dice, broken.mutant, &mut tally);
            if !tally.judge(result, || story) && broken.is_any() {
                found_out.store(true, Relaxed);
            }
        }
        tally
    })
}

/// Number of operations at the end of a run that cover its last checkpoint and snapshot.
const ENDS: u64 = 40;

fn one_chain(
    scenario: &Scenario,
    dice: &mut Dice,
    mutant: Option<Mutant>,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut disk = SimDisk::new(dice.roll(u64::MAX));
    if let Some(mutant) = mutant {
        disk.mutate(mutant);
    }
    let mut promise = Promise::default();
    for cut in 0..1 + dice.roll(4) {
        // Half of the later cuts come soon after the start: in the recovery.
        let early = cut > 0 && dice.coin();
        let at = match cut {
            0 if scenario.ends => scenario.operations - dice.roll(ENDS.min(scenario.operations)),
            _ if early => dice.roll(60),
            _ => dice.roll(scenario.operations + 20),
        };
        disk.plan(cut_at(at));
        let ran = scenario.run_into_fault(&disk, promise.acked)?;
        check_generation(&promise, ran.began_with)?;
        promise.keep(ran.promise);
        tally.cuts += 1;
        tally.cuts_again += u64::from(cut > 0);
        let survival = Survival::ALL[dice.roll(6) as usize];
        disk = disk.cut(survival, dice.roll(u64::MAX));
        scenario
            .check_survivor(&disk, &promise)
            .map_err(|what| format!("after cut {cut} at {at}, {survival:?} survives: {what}"))?;
    }
    let ran = scenario.finish(&disk, promise.acked)?;
    check_generation(&promise, ran.began_with)?;
    scenario.verify(&disk)?;
    tally.survived(ran.recovery);
    Ok(())
}
