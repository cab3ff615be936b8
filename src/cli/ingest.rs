//! `cashrank ingest`: crawl records in, ranking snapshots out.

mod unused;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cashrank::engine::{Estimator, SelfLinks, Span, WindowPolicy};
use cashrank::formats::Format;
use cashrank::ingest::{Every, Job, Outcome, Stream, ingest};
use cashrank::memory::available;
use cashrank::rank::Goal;
use cashrank::rank::computing::Computing;
use cashrank::rules::{Follow, Shard};
use cashrank::snapshot::Snapshot;
use cashrank::source::InputName;
use cashrank::store::rows::KeepRows;
use cashrank::store::{RealDisk, Settings, SpoolOptions};
use cashrank::{Feature, Limits};

use super::common::{
    Exit, STORE, VerifyArgs, certain_pages, not_believed, note_keyboard, one_of, parsed, positive,
    self_links, some_bytes, stop_on_signal, threads,
};
use super::limits::LimitArgs;
use super::log::{Log, TalkArgs};
use super::nothing::{self, Asked};
use super::output::Output;
use super::reporter::Reporter;
use super::rules::RulesArgs;
use super::say;
use super::snapshots::KeepArg;
use super::summary::{summary, summary_json};
use super::values::{
    Age, Bound, FormatArg, age_or_none, eps_or_none, every, formats, size_or_none, time, windows,
};

const EXAMPLES: &str = "\
Examples:
  cashrank ingest crawl.jsonl.zst --store ranks --top 10
  CASHRANK_STORE=ranks cashrank ingest 2026-11-24.warc.gz --quiet
  crawler --log - | cashrank ingest - --store ranks --snapshot-every 60s
  cashrank ingest - --store ranks --spool --ack acked <pipe
  cashrank ingest graph.tsv.gz --store ranks --format adjacency
  crawler --log - | cashrank ingest - --store ranks --snapshot-every 60s --serve 127.0.0.1:8642
  cashrank ingest crawl.parquet --store ranks

Run the same command again to resume where the last one stopped. Files that were read before are recognised by their \
content and skipped; new ones are added. A higher --repeat adds passes. Settings that you leave out are those of the \
store.

A stream on standard input may be sent again from its start: nothing is counted twice. If it begins with all of the last \
stream, only the rest is counted; if it differs, it is a new stream. If it could be either, because it ends early or differs \
only after 16 MiB, it is refused: use --new-stream or --resume to decide.";

/// Read crawl records into a store, and rank the pages.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, or `-` for standard input; plain, gzip or zstd, or Parquet tables. The folder of a graph, too.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// The store's directory; created if it does not exist [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    store: PathBuf,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: FormatArg,
    /// The share of a page's importance that its links pass on [default: 0.85].
    #[arg(long, help_heading = "Ranking", value_name = "D")]
    damping: Option<f64>,
    /// The part of the history to compute importance from. T is in turnovers (in one, all cash is passed on once), like
    /// 1.5, or in fetch time, like 90d. The guide's chapter on rankings explains windows [default: auto].
    #[arg(long, help_heading = "Ranking", value_name = "WINDOW", value_parser = windows())]
    window: Option<WindowPolicy>,
    /// With a window: take importance to be the cash that a page received, or that it distributed [default: received,
    /// if the window begins at a mark].
    #[arg(long, help_heading = "Ranking", value_name = "WHAT", value_parser = one_of(["received", "distributed"], parsed::<Estimator>))]
    estimator: Option<Estimator>,
    /// Weights of links, like nofollow=0,external=2,url:*/tag/*=0. Kinds are nofollow, ugc, sponsored, internal and external;
    /// links to pages that fit a rule as of --scope have a weight, too. Weights are 0 to 1000; all that apply, and the
    /// one that a record gives a link, are multiplied [default: 1 each].
    #[arg(long, help_heading = "Ranking", value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// What to do with links from a page to itself [default: drop].
    #[arg(long, help_heading = "Ranking", value_name = "HOW", value_parser = self_links())]
    self_links: Option<SelfLinks>,
    /// How many marks to keep. A mark is a saved copy of all cash, where a window can begin [default: 6].
    #[arg(long, help_heading = "Ranking", value_name = "N")]
    marks: Option<u8>,
    /// Spread a page's cash over all pages after this many rounds without a visit, and that of unvisited and gone pages
    /// after each; 0: never, as in the paper [default: 8].
    #[arg(long, help_heading = "Ranking", value_name = "ROUNDS")]
    recycle_after: Option<u8>,
    /// With --window auto: how far back it may reach, in turnovers, like 3, or in fetch time, like 90d.
    #[arg(long, help_heading = "Ranking", value_name = "T", value_parser = parsed::<Span>)]
    max_age: Option<Span>,
    /// Make N passes. The first reads the inputs. Later ones use the links kept in the store, and visit every page that
    /// was read; if no links are kept (--keep-rows), they read the inputs again, which standard input does not allow.
    #[arg(
        long,
        help_heading = "Several passes",
        value_name = "N",
        default_value_t = 1
    )]
    repeat: u32,
    /// Disk space for the links of all pages, 1 to 4 bytes a link. Accurate rankings, `next`, `links`, `settle` and
    /// `pagerank --store` need them. none: keep none [default: for a new store 8G or half of the free space, whichever
    /// is less; otherwise as before].
    #[arg(long, help_heading = "Ranking", value_name = "SIZE|none", value_parser = size_or_none)]
    keep_rows: Option<u64>,
    /// Of version 0.1; of no meaning since passes go over kept links.
    #[arg(long, hide = true, value_name = "SIZE")]
    replay_disk: Option<String>,
    /// Before each snapshot, settle importance: iterate over the kept links until it is certified to be within EPS of
    /// PageRank (L1). none: take importance as one reading of the crawl gives it. With --window or --max-age,
    /// importance comes from that window [default: 0.01, or as far below, down to 1e-6, as takes about half a second].
    #[arg(long, help_heading = "Ranking", value_name = "EPS|none", value_parser = eps_or_none)]
    settle: Option<Bound>,
    /// Settle from nothing, not from the warm start that the last ranking left: the same records then give a ranking of the
    /// same bytes, whatever happened before.
    #[arg(long, help_heading = "Ranking")]
    cold: bool,
    /// Stop settling after this long, and publish the result so far.
    #[arg(long, help_heading = "Ranking", value_name = "TIME", value_parser = time)]
    settle_time: Option<Duration>,
    /// With every snapshot, also compute these rankings from the links that are kept, as `compute --level LEVEL --measure
    /// MEASURE` does, like domain:pagerank,host:harmonic. Not remembered: give it each time.
    #[arg(long, help_heading = "Ranking", value_name = "LEVEL:MEASURE,...", value_delimiter = ',', value_parser = parsed::<Computing>)]
    also: Vec<Computing>,
    /// Leave out the links of pages that no fetch reached for so long, like 90d, before the latest record: as if they were
    /// only linked to. Not remembered: give it each time. none: keep all [default: none].
    #[arg(long, help_heading = "Ranking", value_name = "AGE|none", value_parser = age_or_none)]
    expire: Option<Age>,
    /// With --repeat: stop after the first pass whose certified bound on the L1 error is EPS or less.
    #[arg(
        long,
        help_heading = "Several passes",
        value_name = "EPS",
        requires = "repeat"
    )]
    until: Option<f64>,
    /// At the end of each pass, visit pages that have no record of their own, as pages without links.
    #[arg(long, help_heading = "Several passes")]
    complete: bool,
    /// How often to make a checkpoint: a number of records like 50000, or a time like 60s. An interrupted run resumes
    /// from its last checkpoint.
    #[arg(long, value_name = "EVERY", default_value = "30s", value_parser = every)]
    checkpoint_every: Every,
    /// How often to publish a ranking (a snapshot), besides the one at the end: a number of records like 50000, or a
    /// time like 60s. Timed snapshots start no sooner after the last one than three times as long as that took.
    #[arg(long, value_name = "EVERY", value_parser = every)]
    snapshot_every: Option<Every>,
    #[command(flatten)]
    keep: KeepArg,
    /// Threads for decoding [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    /// Use at most this much memory, like 20G. The run stops at a checkpoint before it needs more [default: 15/16 of
    /// the available memory, within the limits of the container].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    memory: Option<u64>,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    /// Accept an earlier input that was not read to its end (because it is damaged or gone, say): what was read of it
    /// counts, the rest is left out.
    #[arg(long)]
    leave_unfinished: bool,
    /// Keep standard input in the store until a checkpoint covers it. After a crash the sender continues from there
    /// instead of from the start.
    #[arg(long, help_heading = "Streams on standard input")]
    spool: bool,
    /// Write the number of bytes that are safely on disk to FILE whenever it grows; `-`: to standard output, one number
    /// per line.
    #[arg(
        long,
        help_heading = "Streams on standard input",
        value_name = "FILE",
        requires = "spool"
    )]
    ack: Option<PathBuf>,
    /// How often to write the spool to disk: a time like 1s [default: 1s].
    #[arg(long, help_heading = "Streams on standard input", value_name = "TIME", requires = "spool", value_parser = time)]
    ack_every: Option<Duration>,
    /// Standard input is a new stream, even if the last one did not end or begins with the same bytes. Discards the
    /// spool.
    #[arg(
        long,
        help_heading = "Streams on standard input",
        conflicts_with = "resume"
    )]
    new_stream: bool,
    /// Standard input is the last stream sent again, even if it had ended: from its start, or with --spool from where
    /// it ended.
    #[arg(long, help_heading = "Streams on standard input")]
    resume: bool,
    #[command(flatten)]
    verify: VerifyArgs,
    /// At the end, print the N most important pages.
    #[arg(long, value_name = "N", conflicts_with = "json")]
    top: Option<usize>,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    talk: TalkArgs,
    /// Answer over HTTP while ingesting, as `cashrank serve` does. An address and a port, like 127.0.0.1:8642; port 0:
    /// any free port.
    #[cfg_attr(
        not(feature = "serve"),
        doc = "This build has none: cargo install --features serve."
    )]
    #[arg(long, help_heading = "Service", value_name = "ADDRESS", value_parser = service_address)]
    #[cfg_attr(not(feature = "serve"), allow(dead_code))]
    serve: Option<std::net::SocketAddr>,
    #[cfg(feature = "serve")]
    #[command(flatten, next_help_heading = "Service")]
    service: super::serve::ServiceArgs,
    #[command(flatten)]
    rules: RulesArgs,
    /// Take only the records of hosts that fall to shard K of N, and pass over those of the other shards: N stores share a
    /// crawl by host. Shards are counted from 0: 0/4, 1/4, 2/4 and 3/4 are four stores. The guide (formats/guide/machines.md)
    /// says more [default: all records].
    #[arg(long, help_heading = "What to read", value_name = "K/N", value_parser = parsed::<Shard>)]
    shard: Option<Shard>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// An address, for clap; refused by a build that lacks the service.
fn service_address(text: &str) -> Result<std::net::SocketAddr, String> {
    Feature::require("serve")?;
    parsed(text)
}

/// How many of the first positions of what was published are certain.
fn certain_top(outcome: &Outcome) -> cashrank::Result<Option<u64>> {
    match &outcome.snapshot {
        Some((path, _)) => Snapshot::open(&RealDisk, path)?.certain_top(),
        None => Ok(None),
    }
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let ack = self.ack.as_deref();
        let to_stdout = ack.is_some() && Output::of(ack)? == Output::Standard;
        if to_stdout && (self.json || self.top.is_some()) {
            anyhow::bail!("--ack -: standard output is also used by --json or --top; name a file");
        }
        let disk = Arc::new(RealDisk);
        let job = self.job()?;
        self.refuse_unused(&job)?;
        stop_on_signal(&job.stop)?;
        note_keyboard(&job.inputs, "ingest -");
        let mut reporter = Reporter::new(&job.inputs, job.repeat, self.talk.log());
        let done = self.ingest(&job, disk, &mut reporter)?;
        reporter.clear();
        reporter.report_hidden();
        let outcome = done?;
        let seconds = reporter.started.elapsed().as_secs_f64();
        let nothing = nothing::is_nothing(&outcome, reporter.empty.is_some());
        if self.json {
            let remarks = &reporter.remarks;
            let certain = certain_top(&outcome)?;
            super::common::print_json(&summary_json(&outcome, remarks, seconds, certain))?;
        } else if !(nothing && outcome.nothing_to_do) {
            summary(
                &outcome,
                seconds,
                reporter.log,
                &reporter.formats,
                &reporter.remarks,
            );
        }
        if outcome.nothing_to_do {
            self.advise_settling(&job, reporter.log);
        }
        if nothing {
            let message = nothing::message(
                &outcome,
                reporter.first_bad.as_ref(),
                &self.asked(&job, &reporter),
            );
            reporter.log.warn(&message);
        }
        let published = outcome.snapshot.as_ref().map(|(_, info)| info);
        if let Some(Age(Some(_))) = self.expire
            && let Some(info) = published.filter(|info| info.expired.is_none())
        {
            let why = if info.window.settled.is_some() {
                "no record says when it was fetched, so no page is known to be old; name the records' time with --field"
            } else {
                "importance was not settled (`cashrank stat` tells whether links are kept)"
            };
            let warning = format!("warning: --expire had no effect, because {why}");
            reporter.log.warn(&warning);
        }
        let expired = published.and_then(|info| info.expired);
        if let Some(warning) = expired.and_then(not_believed) {
            reporter.log.warn(&warning);
        }
        if let Some(n) = self.top {
            super::top::show(&self.store, n)?;
        } else if !self.json && !reporter.log.quiet {
            let message = certain_pages(certain_top(&outcome)?);
            message
                .iter()
                .for_each(|message| reporter.log.info(message));
        }
        Ok(match &outcome {
            outcome if outcome.stopped => Exit::Stopped,
            outcome if outcome.counters.skipped_total() > outcome.before.skipped_total() => {
                Exit::Skipped
            }
            _ if nothing
                || (reporter.remarks.lack_links()
                    && outcome.counters.links == outcome.before.links) =>
            {
                Exit::Skipped
            }
            _ => Exit::Done,
        })
    }

    /// A bound, or a ranking, that was asked for belongs to the next snapshot, and here is none: says what makes it now.
    fn advise_settling(&self, job: &Job, log: Log) {
        for also in &self.also {
            log.info(&format!(
                "--also applies to new snapshots; `cashrank compute --store {} --level {} --measure {}` makes that ranking \
                now",
                job.store.display(),
                also.level,
                also.measure.name
            ));
        }
        let Some(Bound(Some(until))) = self.settle else {
            return;
        };
        // What cannot be read just now is no reason to fail after nothing was done.
        let Ok(snapshot) = Snapshot::latest(&RealDisk, &job.store) else {
            return;
        };
        if snapshot.info().bound_l1().is_none_or(|bound| bound > until) {
            log.info(&format!(
                "--settle {until} applies to new snapshots; `cashrank settle --store {} --until {until}` makes this \
                one more accurate, if the store keeps links",
                job.store.display()
            ));
        }
    }

    /// The options that decide what could be read.
    fn asked(&self, job: &Job, reporter: &Reporter) -> Asked {
        let first = job.inputs.first().map(ToString::to_string);
        Asked {
            input: reporter.empty.clone().or(first).unwrap_or_default(),
            format: self.format.0.map(Format::name),
            rules: job.settings.input.given(),
        }
    }

    /// Ingests, with the service beside it if it is wanted. The outer error is that of the service.
    fn ingest(
        &self,
        job: &Job,
        disk: Arc<RealDisk>,
        reporter: &mut Reporter,
    ) -> anyhow::Result<cashrank::Result<Outcome>> {
        #[cfg(feature = "serve")]
        if let Some(listen) = self.serve {
            let live = Arc::new(super::serve::Live::default());
            let service =
                super::serve::start(&self.store, listen, &self.service, Some(live.clone()))?;
            let mut watched = super::serve::WatchedObserver::new(reporter, live);
            let done = ingest(job, disk, &mut watched);
            service.stop();
            return Ok(done);
        }
        #[cfg(feature = "serve")]
        if self.service.is_given() {
            anyhow::bail!("--token-file and --frontier belong to the service: add --serve ADDRESS");
        }
        Ok(ingest(job, disk, reporter))
    }

    /// The job: what is not given is the store's.
    fn job(&self) -> anyhow::Result<Job> {
        let inputs = self.inputs.iter().map(|i| InputName::parse(i)).collect();
        let job = Job::of(&self.store, inputs)?;
        let mut config = job.settings.config.clone();
        if let Some(damping) = self.damping {
            let before = config.damping_asked();
            // A store of an earlier version may use another multiple for it.
            if damping.is_nan() || (before - damping).abs() > 1e-9 {
                config.set_damping(damping)?;
                anyhow::ensure!(
                    (damping * 1e8).round() / 1e8 == damping,
                    "--damping {damping}: at most eight decimals"
                );
            }
        }
        config.window = self.window.unwrap_or(config.window);
        if let Some(estimator) = self.estimator {
            config.set_estimator(estimator);
        }
        config.follow = self.follow.clone().unwrap_or(config.follow);
        config.self_links = self.self_links.unwrap_or(config.self_links);
        config.marks = self.marks.unwrap_or(config.marks);
        config.recycle_after = self.recycle_after.unwrap_or(config.recycle_after);
        config.max_age = self.max_age.or(config.max_age);
        config.check()?;
        let limits = Limits {
            memory: self.memory.or_else(|| available(threads(self.threads))),
            ..self.limits.over(job.limits.clone())
        };
        let mut settings = Settings::new(config, &limits);
        settings.input = self.rules.resolve(Some(&job.settings.input))?;
        settings.input.shard = self.shard.or(settings.input.shard);
        if self.replay_disk.is_some() {
            say!(
                "--replay-disk no longer has an effect: passes after the first use the links kept in the store"
            );
        }
        Ok(Job {
            settings,
            format: self.format.0,
            repeat: self.repeat,
            keep_rows: match self.keep_rows {
                Some(0) => KeepRows::None,
                Some(most) => KeepRows::AtMost(most),
                None => job.keep_rows,
            },
            settle: self
                .settle
                .map_or(job.settle, |bound| bound.0.map(Goal::from)),
            cold: self.cold,
            settle_time: self.settle_time,
            expire: self.expire.and_then(|age| age.0),
            also: self.also.clone(),
            until: self.until,
            complete: self.complete,
            strict: self.strict,
            leave_unfinished: self.leave_unfinished,
            stream: match (self.new_stream, self.resume) {
                (true, _) => Stream::New,
                (_, true) => Stream::Again,
                _ => Stream::Auto,
            },
            spool: self
                .spool
                .then(|| self.spool_options(&job.stop))
                .transpose()?,
            checkpoint_every: self.checkpoint_every,
            snapshot_every: self.snapshot_every.unwrap_or(job.snapshot_every),
            keep_snapshots: self.keep.keep_snapshots,
            threads: threads(self.threads),
            limits,
            source: self.verify.options(),
            ..job
        })
    }

    fn spool_options(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<SpoolOptions> {
        let default = SpoolOptions::default();
        Ok(SpoolOptions {
            sync_every: self.ack_every.or(default.sync_every),
            on_durable: self
                .ack
                .as_deref()
                .map(|path| super::ack::on_durable(path, &self.store, stop.clone()))
                .transpose()?,
            ..default
        })
    }
}
