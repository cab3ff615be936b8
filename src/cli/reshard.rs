//! `cashrank reshard`: a store made again with another number of partitions.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use cashrank::Partitions;
use cashrank::reshard::{Job, Resharded, Stage, Watch, reshard};
use cashrank::store::{Disk, RealDisk};

use super::bar::beside_words;
use super::common::{
    Exit, MemoryArg, StoreArg, counted, links, pages, positive, print_json, stop_on_signal, threads,
};
use crate::cli::common::say;

/// Make a store with another number of partitions, from what a store keeps.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank reshard --store ranks --partitions 16 --to ranks16
  cashrank reshard --store ranks16 --partitions 1 --to ranks
  mv ranks ranks.old && mv ranks16 ranks

No input is read again. Pages and their numbers, links, what fetches found, the progress through inputs and all other \
settings stay: the same ingest continues with the new store where it stopped. Cash and its history do not: a store \
made with --window, --max-age or --complete is refused, and one made with --repeat if there are to be partitions without \
--epoch. Snapshots \
stay with the old store; `cashrank settle` makes one.

The old store is locked meanwhile, and not changed. The new one appears under its name once it is whole. If you stop the \
command (Ctrl-C), nothing is left; run it again to start over.")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// Partitions of the new store, from 1 (none) to 256.
    #[arg(long, value_name = "N", value_parser = positive)]
    partitions: u64,
    /// Let cash cross from partition to partition after every so many records, as `ingest --epoch` [default: as the store has].
    #[arg(long, value_name = "RECORDS")]
    epoch: Option<u64>,
    /// The new store's directory; there must be nothing under this name.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Have at most this many new partitions in memory at a time; names and links are read once for each lot of them. The
    /// result is the same [default: all].
    #[arg(long, value_name = "N", value_parser = positive)]
    resident: Option<u64>,
    /// Threads that fill partitions [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print the result as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut partitions = Partitions::of(u32::try_from(self.partitions).unwrap_or(u32::MAX))?;
        if let Some(records) = self.epoch {
            partitions = partitions.with_epoch(records)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let watch = Arc::new(Watch::new(stop.clone()));
        let threads = threads(self.threads);
        let resident = self
            .resident
            .map(|resident| usize::try_from(resident).unwrap_or(usize::MAX));
        let job = Job {
            store: self.store.store.clone(),
            to: self.to.clone(),
            partitions,
            resident: resident.and_then(NonZeroUsize::new),
            threads,
            memory: self.memory.budget(threads + 3)?,
            watch: watch.clone(),
        };
        self.check_outside()?;
        stop_on_signal(&stop)?;
        let started = Instant::now();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let Some(made) = beside_words(|| words(&watch), || reshard(&disk, &job))? else {
            say!("stopped: no store was made; run the command again to start over");
            return Ok(Exit::Stopped);
        };
        self.report(&made, &job.to, started.elapsed().as_secs_f64())
    }

    /// Refuses a place in the store that is read: its files there are its own.
    fn check_outside(&self) -> anyhow::Result<()> {
        let parent = self.to.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new(".")).canonicalize();
        let store = self.store.store.canonicalize();
        if let (Ok(parent), Ok(store)) = (parent, store)
            && parent.starts_with(&store)
        {
            anyhow::bail!(
                "--to {}: it is in the store {}, which is left as it is; name a folder outside",
                self.to.display(),
                self.store.store.display()
            );
        }
        Ok(())
    }

    fn report(&self, made: &Resharded, to: &Path, seconds: f64) -> anyhow::Result<Exit> {
        if self.json {
            return print_json(&serde_json::json!({
                "pages": made.pages,
                "rows": made.rows,
                "links": made.links,
                "partitions_before": made.before,
                "partitions": self.partitions,
                "settled": made.settled,
                "seconds": seconds,
                "store": to.display().to_string(),
            }));
        }
        say!(
            "store {}: {} and {} in {}, after {seconds:.1} s",
            to.display(),
            pages(made.pages),
            links(made.links),
            counted(self.partitions, "partition", "partitions"),
        );
        say!(
            "it has no snapshot yet: the next ingest makes one, or `cashrank settle`, {}",
            if made.settled {
                "from where the last ranking was settled to"
            } else {
                "from the start"
            }
        );
        Ok(Exit::Done)
    }
}

/// How far it is.
fn words(watch: &Watch) -> String {
    let (stage, passed, all) = watch.progress();
    let what = match stage {
        Stage::Dealing => "dealing pages out",
        Stage::Names => "names",
        Stage::Links => "links",
        Stage::Facts => "what fetches found",
        Stage::Committing => return "making it durable".into(),
    };
    let share = passed as f64 / (all as f64).max(1.0) * 100.0;
    format!("{what}: {share:.0} %")
}
