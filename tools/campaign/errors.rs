//! Failing operations: every one of a small run, with every possible error, once and from then on (in the short campaign
//! one of the two). The run ends with that error, and another one continues to the same end.

use std::io::ErrorKind;

use cashrank::Error;

use crate::crawl::Dice;
use crate::disk::{Fault, Operation, Plan, SimDisk, Survival};
use crate::scenario::{Promise, Scenario, check_generation};
use crate::tally::{Tally, spread};

/// Way to fail: its name, the error, whether the operation half happens, and which operations it applies to.
struct Failing {
    name: &'static str,
    kind: ErrorKind,
    half: bool,
    on: fn(Operation) -> bool,
}

const WAYS: [Failing; 4] = [
    Failing {
        name: "an input/output error",
        kind: ErrorKind::Other,
        half: false,
        on: |_| true,
    },
    Failing {
        name: "a full disk",
        kind: ErrorKind::StorageFull,
        half: false,
        on: takes_room,
    },
    Failing {
        name: "a short write",
        kind: ErrorKind::WriteZero,
        half: true,
        on: |operation| operation == Operation::Write,
    },
    Failing {
        name: "a failed sync",
        kind: ErrorKind::Other,
        half: false,
        on: |operation| matches!(operation, Operation::Sync | Operation::SyncDir),
    },
];

fn takes_room(operation: Operation) -> bool {
    use Operation::{Create, CreateDir, Rename, SetLen, Write};
    matches!(operation, Create | CreateDir | Rename | SetLen | Write)
}

/// Fails every operation of the scenario in every way; once and from then on, or with `short` one of these at random.
pub fn sweep(scenario: &Scenario, seed: u64, short: bool) -> Tally {
    spread(scenario.operations, |at| {
        let mut tally = Tally::default();
        let mut dice = Dice::numbered(seed, at);
        for way in &WAYS {
            let drawn = short.then(|| dice.coin());
            for for_ever in [false, true] {
                if drawn.is_some_and(|drawn| drawn != for_ever) {
                    continue;
                }
                let plan = Plan {
                    fault: Fault::Error {
                        kind: way.kind,
                        half: way.half,
                    },
                    at,
                    for_ever,
                    on: way.on,
                };
                let often = if for_ever { "from then on" } else { "once" };
                let result = one(scenario, seed, plan, &mut tally);
                tally.judge(result, || format!("{} at {at}, {often}", way.name));
            }
        }
        tally
    })
}

fn one(scenario: &Scenario, seed: u64, plan: Plan, tally: &mut Tally) -> Result<(), String> {
    let disk = SimDisk::new(seed);
    disk.plan(plan);
    let ran = scenario.run(&disk, 0)?;
    if !disk.struck() {
        return Ok(());
    }
    tally.faults += 1;
    let promise = ran.promise;
    match &ran.result {
        // Everything was done: only closing the store failed.
        Ok(_) if promise.snapshot.is_some() => {}
        Ok(_) => return Err("it hides the error".into()),
        Err(Error::Io { .. }) => {}
        Err(error) => return Err(format!("it fails with {error}")),
    }
    disk.heal();
    go_on(
        scenario,
        &disk.cut(Survival::Sectors, seed),
        &promise,
        tally,
    )?;
    go_on(scenario, &disk, &promise, tally)
}

fn go_on(
    scenario: &Scenario,
    disk: &SimDisk,
    promise: &Promise,
    tally: &mut Tally,
) -> Result<(), String> {
    scenario.check_survivor(disk, promise)?;
    let ran = scenario.finish(disk, promise.acked)?;
    check_generation(promise, ran.began_with)?;
    scenario.verify(disk)?;
    tally.survived(ran.recovery);
    Ok(())
}
