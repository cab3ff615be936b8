//! Concurrent commands on one store, as from two terminals, or a timer next to a crawl: `ingest`, `settle`, `compute`
//! and readers, each in its own thread, on one simulated disk whose operations take random times. A command that finds
//! the store in use tries again. Afterwards the store is sound, the newest snapshot is current, and its bytes are those
//! of sequential commands.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cashrank::Error;
use cashrank_graph::rank::computing::Computing;
use cashrank_graph::rank::measures::MEASURES;
use cashrank_graph::sites::Level;
use cashrank_ingest::ingest::{Every, IngestJob, ingest};
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::{SettleSettings, Snapshot, Watcher, publish, publish_computed};
use cashrank_store::store::open_view_to_publish;

use crate::crawl::Dice;
use crate::disk::{SimDisk, Survival};
use crate::scenario::{STORE, Silent, bytes, current, job, write_crawl};
use crate::tally::{Tally, spread};

/// Number of runs that share a crawl.
const SHARED: u64 = 10;
/// Number of times that a command retries while the store is in use, and the wait in between.
const TRIES: u32 = 20_000;
const WAIT: Duration = Duration::from_micros(500);
/// Bound for `settle`.
const UNTIL: f64 = 1e-9;

/// Command that runs concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    Ingest,
    Settle,
    Compute,
    Read,
}

impl Command {
    const OTHERS: [Command; 4] = [
        Command::Ingest,
        Command::Settle,
        Command::Compute,
        Command::Read,
    ];

    /// Runs the command until the store is not in use.
    fn run(self, disk: &SimDisk, job: &IngestJob) -> Result<(), String> {
        for _ in 0..TRIES {
            let once = || self.once(disk, job);
            let done = catch_unwind(AssertUnwindSafe(once)).map_err(|_| "it panicked")?;
            match done {
                Ok(()) => return Ok(()),
                Err(Error::Busy { .. }) => std::thread::sleep(WAIT),
                // No store yet, or no snapshot.
                Err(Error::Missing(_)) if self != Command::Ingest => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the store is in use for ever".into())
    }

    fn once(self, disk: &SimDisk, job: &IngestJob) -> cashrank::Result<()> {
        let dir = Path::new(STORE);
        match self {
            Command::Ingest => ingest(job, Arc::new(disk.clone()), &mut Silent).map(drop),
            Command::Settle => {
                let (keep, settle) = (job.keep_snapshots, SettleSettings::until(UNTIL));
                let view = open_view_to_publish(disk, dir)?;
                publish(disk, &view, keep, Some(&settle)).map(drop)
            }
            Command::Compute => {
                let computing = Computing::new(&MEASURES[0], Level::Host);
                let view = open_view_to_publish(disk, dir)?;
                publish_computed(disk, &view, &computing, &Watcher::default()).map(drop)
            }
            Command::Read => {
                let snapshot = Snapshot::latest(disk, dir)?;
                for page in snapshot.named() {
                    page?;
                }
                Ok(())
            }
        }
    }
}

/// Crawl, the store that commands begin with, and their expected result.
struct Crawl {
    begins: SimDisk,
    job: IngestJob,
    newest: String,
    ingested: Vec<u8>,
    settled: Vec<u8>,
}

impl Crawl {
    fn of(dice: &mut Dice, dir: &Path) -> Result<Crawl, String> {
        let files = [30 + dice.roll(60), 1 + dice.roll(60)]
            .map(|records| write_crawl(dir, dice.roll(1 << 40), records));
        let [first, second] = files.map(|file| file.map_err(|what| format!("an input: {what}")));
        let (first, second) = (first?, second?);
        let with = |files| IngestJob {
            checkpoint_every: Every::Records(7),
            snapshot_every: Every::Records(20),
            ..job(files, cashrank::Config::default())
        };
        let begins = SimDisk::new(0);
        // Half of them begin without a store.
        if dice.coin() {
            Command::Ingest.run(&begins, &with(vec![first.clone()]))?;
        }
        let mut job = with(vec![first, second]);
        job.keep_snapshots = crate::scenario::keep(dice.roll(3));
        let alone = begins.cut(Survival::Everything, 0);
        Command::Ingest.run(&alone, &job)?;
        let newest = current(&alone)?.ok_or("no snapshot without others")?;
        let ingested = snapshot(&alone, &newest)?;
        Command::Settle.run(&alone, &job)?;
        let settled = snapshot(&alone, &newest)?;
        Ok(Crawl {
            begins,
            job,
            newest,
            ingested,
            settled,
        })
    }

    /// Runs commands concurrently, and checks the result.
    fn run(&self, dice: &mut Dice, unlocked: bool, tally: &mut Tally) -> Result<(), String> {
        let disk = self.begins.cut(Survival::Everything, 0);
        let mut commands = vec![Command::Ingest];
        for _ in 0..1 + dice.roll(3) {
            commands.push(Command::OTHERS[dice.roll(4) as usize]);
        }
        disk.unlock(unlocked);
        disk.pace(Some(dice.fork()));
        let of_these = |what| format!("{commands:?}: {what}");
        let failed = self.at_once(&disk, &commands);
        disk.pace(None);
        disk.unlock(false);
        tally.faults += commands.len() as u64;
        failed.map_err(of_these)?;
        self.check(&disk, &commands).map_err(of_these)?;
        tally.survivors += 1;
        Ok(())
    }

    fn at_once(&self, disk: &SimDisk, commands: &[Command]) -> Result<(), String> {
        std::thread::scope(|scope| {
            let running: Vec<_> = commands
                .iter()
                .map(|command| scope.spawn(|| command.run(disk, &self.job)))
                .collect();
            let ends = running.into_iter().zip(commands).map(|(thread, command)| {
                let end = thread.join().unwrap_or(Err("its thread failed".into()));
                end.map_err(|what| format!("{command:?}: {what}"))
            });
            // All end before the disk is inspected.
            ends.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn check(&self, disk: &SimDisk, commands: &[Command]) -> Result<(), String> {
        let newest = current(disk)?.ok_or("nothing is published")?;
        if newest != self.newest {
            return Err(format!("{newest} is current, and not {}", self.newest));
        }
        let found = snapshot(disk, &newest)?;
        let settled = commands.contains(&Command::Settle) && found == self.settled;
        if found != self.ingested && !settled {
            return Err("the current snapshot differs".into());
        }
        self.is_sound(disk)?;
        Command::Settle.run(disk, &self.job)?;
        if snapshot(disk, &newest)? != self.settled {
            return Err("settled once more, the snapshot differs".into());
        }
        self.is_sound(disk)
    }

    fn is_sound(&self, disk: &SimDisk) -> Result<(), String> {
        let found = check(disk, Path::new(STORE), Depth::Deep, None);
        let found = found.map_err(|error| error.to_string())?;
        if let Some(damage) = found.damage.first() {
            return Err(damage.to_string());
        }
        if found.busy || !found.strangers.is_empty() {
            return Err(format!("what is left is {found:?}"));
        }
        let beside: BTreeSet<_> = disk.files().into_iter().map(|(path, _)| path).collect();
        match beside.iter().find(|path| !path.starts_with(STORE)) {
            Some(path) => Err(format!("{} is left", path.display())),
            None => Ok(()),
        }
    }
}

fn snapshot(disk: &SimDisk, name: &str) -> Result<Vec<u8>, String> {
    bytes(disk, &Path::new(STORE).join("snapshots").join(name))
}

/// Runs groups of commands; `unlocked` models a program that does not lock its store.
pub fn campaign(dir: &Path, seed: u64, runs: u64, unlocked: bool) -> Tally {
    spread(runs.div_ceil(SHARED), |group| {
        let mut tally = Tally::default();
        let mut dice = Dice::numbered(seed, group);
        let crawl = match Crawl::of(&mut dice, dir) {
            Ok(crawl) => crawl,
            Err(what) => {
                tally.failures.push(format!("crawl {group}: {what}"));
                return tally;
            }
        };
        for run in 0..SHARED.min(runs - group * SHARED) {
            let result = crawl.run(&mut dice.fork(), unlocked, &mut tally);
            tally.judge(result, || {
                format!("--seed {seed}, crawl {group}, run {run} at once")
            });
        }
        tally
    })
}
