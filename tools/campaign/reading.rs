//! Failing system calls under commands that only read: every operation of every reader fails, once and from then on. A
//! reader must report that it could not read, or answer as on a sound disk; it must never panic, give another answer,
//! or call a sound store damaged.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cashrank::{Error, Scope};
use cashrank_graph::metrics::moved::MoveOptions;
use cashrank_steer::answers::SnapshotMovers;
use cashrank_steer::schedule::{NextOptions, next};
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::{SearchOptions, Snapshot, SnapshotSelector, WITHIN, snapshots};
use cashrank_store::store::{Disk, open_view, settings_of, spool_state};

use crate::disk::{Fault, Operation, Plan, SimDisk, Survival};
use crate::readers;
use crate::scenario::{STORE, Scenario};
use crate::tally::{Tally, spread};

/// Reader of a command, with its answer as text.
type Reader = fn(&dyn Disk) -> cashrank::Result<String>;

const READERS: [(&str, Reader); 11] = [
    ("top", |disk| {
        readers::top(latest(disk)?).map(|top| format!("{top:?}"))
    }),
    ("rank", |disk| {
        let snapshot = latest(disk)?;
        let names = snapshot.names().collect::<cashrank::Result<Vec<_>>>()?;
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        snapshot.find(&names).map(|found| format!("{found:?}"))
    }),
    ("export", |disk| {
        readers::export(&latest(disk)?).map(|all| format!("{all:?}"))
    }),
    ("next", |disk| {
        let list = next(disk, store(), &NextOptions::default())?;
        Ok(format!("{list:?}"))
    }),
    ("links", |disk| {
        let mut found = String::new();
        latest(disk)?.row(0, &mut |row| found = format!("{:?}", row.targets))?;
        Ok(found)
    }),
    ("compare", |disk| {
        let kept = snapshots(disk, store())?;
        let oldest = kept
            .first()
            .map(|kept| SnapshotSelector::Number(kept.number));
        let moved = SnapshotMovers::between(
            &Snapshot::of(disk, store(), oldest)?,
            &latest(disk)?,
            MoveOptions {
                count: usize::MAX,
                top: u64::MAX,
                ..MoveOptions::default()
            },
        )?;
        Ok(format!("{moved:?}"))
    }),
    ("search", |disk| {
        let options = SearchOptions {
            text: None,
            scope: Scope::default(),
            count: 20,
            within: WITHIN,
        };
        let found = latest(disk)?.search(&options)?;
        Ok(format!("{found:?}"))
    }),
    ("failures", |disk| {
        let found = latest(disk)?.failing(usize::MAX)?;
        Ok(format!("{found:?}"))
    }),
    ("snapshots", |disk| {
        let kept = snapshots(disk, store())?.into_iter();
        let infos = kept.map(|kept| kept.info.map(|info| format!("{info:?}")));
        infos.collect()
    }),
    ("stat", |disk| {
        let view = open_view(disk, store())?;
        let settings = settings_of(disk, store())?;
        let spooled = spool_state(disk, store())?;
        let state = (
            &view.manifest.engine.counters,
            &view.manifest.progress,
            settings,
            spooled,
        );
        Ok(format!("{state:?}"))
    }),
    ("verify", |disk| {
        let mut found = check(disk, store(), Depth::Deep, None)?;
        match found.damage.pop() {
            Some(error) => Err(error),
            None => Ok(format!("{found:?}")),
        }
    }),
];

fn store() -> &'static Path {
    Path::new(STORE)
}

fn latest(disk: &dyn Disk) -> cashrank::Result<Snapshot> {
    Snapshot::latest(disk, store())
}

/// Errors of a failing operation.
pub const FAILING: [ErrorKind; 2] = [ErrorKind::Other, ErrorKind::PermissionDenied];
/// Error by which a mutant would take a failed read for the end of the file.
pub const CUT_SHORT: [ErrorKind; 1] = [ErrorKind::UnexpectedEof];

/// Fails every operation of every reader on the result of the scenario.
pub fn sweep(scenario: &Scenario, seed: u64, failing: &[ErrorKind]) -> Result<Tally, String> {
    let disk = SimDisk::new(seed);
    scenario.finish(&disk, 0)?;
    let mut tally = Tally::default();
    for (name, reader) in READERS {
        let sound = fresh(&disk);
        let answer = reader(&sound).map_err(|error| format!("without faults: {name}: {error}"))?;
        tally += spread(sound.operations(), |at| {
            let mut tally = Tally::default();
            for &kind in failing {
                for for_ever in [false, true] {
                    let plan = Plan {
                        fault: Fault::Error { kind, half: false },
                        at,
                        for_ever,
                        on: may_fail(kind),
                    };
                    let often = if for_ever { "from then on" } else { "once" };
                    let result = one(&fresh(&disk), reader, plan, &answer, &mut tally);
                    tally.judge(result, || format!("{name}: {kind:?} at {at}, {often}"));
                }
            }
            tally
        });
    }
    Ok(tally)
}

fn may_fail(kind: ErrorKind) -> fn(Operation) -> bool {
    match kind {
        ErrorKind::UnexpectedEof => |operation| operation == Operation::Read,
        _ => |_| true,
    }
}

/// Returns a copy of a disk whose operations are counted from 0.
fn fresh(disk: &SimDisk) -> SimDisk {
    disk.cut(Survival::Everything, 0)
}

fn one(
    disk: &SimDisk,
    reader: Reader,
    plan: Plan,
    answer: &str,
    tally: &mut Tally,
) -> Result<(), String> {
    disk.plan(plan);
    let read = catch_unwind(AssertUnwindSafe(|| reader(disk))).map_err(|_| "it panicked")?;
    if disk.struck() {
        tally.faults += 1;
    }
    match read {
        Ok(found) if found == answer => tally.survivors += 1,
        Ok(found) => return Err(format!("it answers {found}, and else {answer}")),
        Err(Error::Io { .. }) if disk.struck() => {}
        Err(error) => return Err(format!("it fails with {error}")),
    }
    Ok(())
}
