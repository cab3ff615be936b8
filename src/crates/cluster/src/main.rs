//! The `cashrank-cluster` command: ranks the shards of one crawl together.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cashrank::{Error, Info, Result};
use cashrank_base::model::{Exit, name_settings};
use cashrank_cluster::{Joining, Secret, addresses, join};
use cashrank_store::memory::{available, bytes};
use cashrank_store::shards::{OneProcess, SettleOptions, Together, local_shards, settle};
use cashrank_store::snapshot::{KeepSnapshots, Watcher};
use cashrank_store::store::{Disk, RealDisk};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

const HELP: &str = "\
Exit codes are those of cashrank: 0 done, 2 wrong usage or stores that do not belong together, 5 a
file of a store is damaged, 6 a store is in use, 7 reading or writing failed or another process was
lost, 8 too little memory, 9 a bug, 130 stopped by a signal.";

/// Rank the shards of one crawl together.
#[derive(Parser)]
#[command(name = "cashrank-cluster", version, after_help = HELP, max_term_width = 100)]
enum ClusterCli {
    Settle(JointSettleArgs),
}

/// Compute importance and ranks over all shards, and publish them in each.
///
/// All shards must be there once (`cashrank ingest --shard`), in this process or with --hosts in all of them together. Their
/// stores are locked meanwhile: no ingest can run, but rankings can be read. It takes about 60 bytes of memory for each page
/// that a shard knows. Where it is stopped or fails, run the same command again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank-cluster settle ranks-0 ranks-1 ranks-2 ranks-3
  cashrank-cluster settle --until 1e-4 --hosts hosts --index 2 --secret key ranks-2

With --hosts, run the command on each machine, with the stores that it has. The file has an address a line, HOST:PORT; a \
process listens at the address of its own line while the others come. Lines that begin with # do not count.")]
struct JointSettleArgs {
    /// The stores of shards.
    #[arg(value_name = "STORE", required = true)]
    stores: Vec<PathBuf>,
    /// Stop when importance is certified to be within EPS of PageRank (L1).
    #[arg(long, value_name = "EPS", default_value = "1e-6", value_parser = bound)]
    until: f64,
    /// Settle together with the processes in this file, an address a line: HOST:PORT.
    #[arg(long, value_name = "FILE", requires_all = ["index", "secret"])]
    hosts: Option<PathBuf>,
    /// Which line of --hosts this process is, from 0.
    #[arg(long, value_name = "I", requires = "hosts")]
    index: Option<usize>,
    /// A file with a secret that all processes know, at least 16 bytes. Others may not read it.
    #[arg(long, value_name = "FILE", requires = "hosts")]
    secret: Option<PathBuf>,
    /// Wait this many seconds for the other processes at the start.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,
    /// Give up when another process says nothing for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    silence: u64,
    /// Which snapshots each store keeps, as `cashrank settle --keep-snapshots` takes it.
    #[arg(long, value_name = "N|RULE", default_value_t = KeepSnapshots::USUAL)]
    keep_snapshots: KeepSnapshots,
    /// Use at most this much memory, like 20G [default: 15/16 of the available memory].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Print the result as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

fn bound(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bound) if bound > 0.0 && bound < 2.0 => Ok(bound),
        _ => Err("a bound is a number above 0 and below 2".into()),
    }
}

fn say(what: &str) {
    let line = name_settings(what, |name| format!("--{}", name.replace('_', "-")));
    let _ = writeln!(io::stderr(), "{line}");
}

fn main() -> ExitCode {
    let ClusterCli::Settle(settle) = ClusterCli::parse();
    let exit = settle.run().unwrap_or_else(|error| {
        say(&format!("cashrank-cluster: {error}"));
        Exit::from(&error)
    });
    exit.into()
}

impl JointSettleArgs {
    fn run(&self) -> Result<Exit> {
        let stop = Arc::new(AtomicBool::new(false));
        stop_on_signal(&stop).map_err(Error::io("signals", "watch"))?;
        let watcher = Arc::new(Watcher::new(stop.clone()));
        let options = SettleOptions {
            until: self.until,
            keep: self.keep_snapshots,
            memory: self.memory.or_else(available),
            watcher: watcher.clone(),
        };
        let started = Instant::now();
        let together = with_progress(&watcher, || self.settle(&stop, &options))?;
        let Some(together) = together else {
            say("stopped: nothing was published; run the command again to start over");
            return Ok(Exit::Stopped);
        };
        self.report(&together, started.elapsed().as_secs_f64())
    }

    fn settle(&self, stop: &AtomicBool, options: &SettleOptions) -> Result<Option<Together>> {
        let shards = local_shards(&*disk(), &self.stores)?;
        let count = shards.first().map_or(0, |store| store.shard.count());
        let Some(hosts) = &self.hosts else {
            let mut peers = OneProcess::new(count as usize);
            return settle(&disk(), &self.stores, &mut peers, options);
        };
        let joining = self.joining(hosts, count)?;
        let is_stopped = || stop.load(Ordering::Relaxed);
        let mut cluster = match join(joining, &is_stopped) {
            Err(_) if is_stopped() => return Ok(None),
            joined => joined?,
        };
        cluster.assign(&shards)?;
        let together = settle(&disk(), &self.stores, &mut cluster, options)
            .inspect_err(|error| cluster.abandon(&error.to_string()))?;
        cluster.finish()?;
        Ok(together)
    }

    fn joining(&self, hosts: &Path, shards: u32) -> Result<Joining> {
        let text = std::fs::read_to_string(hosts).map_err(Error::io(hosts, "read"))?;
        let addresses = addresses(&text, hosts)?;
        let secret = self.secret.as_deref().unwrap_or(Path::new(""));
        let secret = Secret::read(secret)?;
        Ok(Joining {
            shards: shards.into(),
            digest: self.until.to_bits().into(),
            wait: Duration::from_secs(self.wait),
            silence: Duration::from_secs(self.silence),
            tell: Arc::new(|what| say(&format!("warning: {what}"))),
            ..Joining::new(addresses, self.index.unwrap_or_default(), secret)
        })
    }

    fn report(&self, together: &Together, seconds: f64) -> Result<Exit> {
        for warning in &together.warnings {
            say(&format!("warning: {warning}"));
        }
        let Some(info) = together.shards.first().map(|shard| &shard.info) else {
            return Ok(Exit::Done);
        };
        if self.json {
            return self.print_json(together, info, seconds);
        }
        if together.is_done {
            say(&format!(
                "the stores have that ranking already: {}; nothing to do",
                accuracy(info)
            ));
            return Ok(Exit::Done);
        }
        let effort = info.window.settled;
        let followed = effort.map_or(0.0, |effort| {
            effort.links_touched as f64 / effort.links.max(1) as f64
        });
        let links = effort.map_or(0, |effort| effort.links);
        say(&format!(
            "settled in {seconds:.1} s: {links} links, each followed {followed:.1} times"
        ));
        if together.admitted > 0 {
            let admitted = together.admitted;
            say(&format!(
                "{admitted} pages that only other shards link to were added to the stores"
            ));
        }
        for shard in &together.shards {
            say(&format!(
                "snapshot {}: {} own pages",
                shard.path.display(),
                shard.info.local_pages()
            ));
        }
        if let Some(why) = info.unreached(self.until) {
            say(&format!("--until {:e} was not reached: {why}", self.until));
        }
        let pages = info.cluster.map_or(0, |of| of.pages);
        say(&format!("{pages} pages in all shards; {}", accuracy(info)));
        Ok(Exit::Done)
    }

    fn print_json(&self, together: &Together, info: &Info, seconds: f64) -> Result<Exit> {
        let shards = together.shards.iter().map(|shard| {
            serde_json::json!({
                "store": shard.dir.display().to_string(),
                "snapshot": shard.path.display().to_string(),
                "pages": shard.info.local_pages(),
            })
        });
        let line = serde_json::json!({
            "pages": info.cluster.map(|of| of.pages),
            "ranking": info.cluster.map(|of| format!("{:016x}", of.id)),
            "bound_l1": info.bound_l1(),
            "settled": info.window.settled,
            "reached": info.bound_l1().is_some_and(|bound| bound <= self.until),
            "already": together.is_done,
            "admitted": together.admitted,
            "seconds": seconds,
            "shards": shards.collect::<Vec<_>>(),
        });
        match writeln!(io::stdout(), "{line}") {
            // A reader that closes it early has what it wants.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::io("standard output", "write")(error))
            }
            _ => Ok(Exit::Done),
        }
    }
}

fn accuracy(info: &Info) -> String {
    match info.bound_l1() {
        Some(bound) => format!("importance is within {bound:.2e} of PageRank (L1)"),
        None => "nothing is certain of importance yet".into(),
    }
}

/// Sets `stop` at the first signal; the second signal ends the process. A write beyond the limit on file size returns an
/// error.
fn stop_on_signal(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order the first signal finds `stop` unset.
        flag::register_conditional_shutdown(signal, Exit::Stopped as i32, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

const TICK: Duration = Duration::from_millis(200);

fn with_progress<T>(watcher: &Watcher, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if !io::stderr().is_terminal() {
        return work();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let show = || {
            while !is_over.load(Ordering::Relaxed) {
                let progress = watcher.progress();
                if progress.sweeps > 0 {
                    let followed = progress.links_touched as f64 / progress.links.max(1) as f64;
                    let bound = progress
                        .bound
                        .map_or(String::new(), |bound| format!(", within {bound:.2e}"));
                    let _ = write!(
                        io::stderr(),
                        "\r\x1b[Ksettling: each link followed {followed:.1} times{bound}"
                    );
                }
                std::thread::park_timeout(TICK);
            }
            let _ = write!(io::stderr(), "\r\x1b[K");
        };
        // Without a thread for it, no progress is shown.
        let shown = std::thread::Builder::new().spawn_scoped(scope, show);
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        if let Ok(shown) = shown {
            shown.thread().unpark();
        }
        done
    })
}
