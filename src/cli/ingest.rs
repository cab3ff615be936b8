//! `cashrank ingest`: crawl records in, ranking snapshots out.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;

use cashrank::{Error, Limits, Time};
use cashrank_base::model::require_feature;
use cashrank_base::rules::{Follow, Shard};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::{Estimator, SelfLinks, Span, WindowPolicy};
use cashrank_graph::rank::Goal;
use cashrank_ingest::ingest::{Every, IngestJob, IngestOutcome, Stream, ingest};
use cashrank_store::memory::available;
use cashrank_store::snapshot::{Info, Snapshot};
use cashrank_store::store::rows::KeepRows;
use cashrank_store::store::{OnDurable, RealDisk, Settings, SpoolOptions};

use super::common::{
    Exit, Forms, OrNone, STORE, age_or_none, eps_or_none, every, formats, parsed, positive,
    print_json, size_or_none, some_bytes, stop_on_signal, threads, time_span, words,
};
use super::inputs::{ChecksumArgs, INPUT, LIMITS, LimitArgs, RulesArgs, first_given};
use super::json::joined;
use super::levels::{certain_pages, not_believed};
use super::output::{Keep, OutputTarget};
use super::reporter::{Reporter, Verbosity};
use super::snapshots::KeepArg;
use super::summary::{
    ingest_json, is_nothing, nothing_read, read_json, since, start_over, summary,
};

const EXAMPLES: &str = "\
Examples:
  cashrank ingest crawl.jsonl.zst --store ranks --top 10
  CASHRANK_STORE=ranks cashrank ingest 2026-11-24.warc.gz --quiet
  crawler --log - | cashrank ingest - --store ranks --snapshot-every 60s --listen 127.0.0.1:8642
  cashrank ingest - --store ranks --spool --ack acked <pipe
  cashrank ingest graph.tsv.gz --store ranks --format adjacency

Run the same command again to resume where the last one stopped. Files that were read before are recognised by their \
content and skipped; new ones are added. Settings that you leave out are those of the store.

A stream on standard input may be sent again from its start: nothing is counted twice. If it is unclear whether it is a new \
one, it is refused: use --new-stream or --resume to decide.";

/// Read crawl records into a store, and rank the pages.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct IngestArgs {
    /// Files, or `-` for standard input; plain, gzip or zstd.
    ///
    /// Archives, JSON lines, tables and lists of links, Parquet tables, or the folder of a graph: see --format.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// The store's directory; created if it does not exist [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    store: PathBuf,
    /// Use at most this much memory, like 20G, and stop at a checkpoint before [default: 15/16 of what is available].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    memory: Option<u64>,
    /// Use at most N threads [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    /// The format of the inputs; auto recognises it from the content.
    #[arg(long, help_heading = INPUT, default_value = "auto", value_parser = formats())]
    format: OrNone<Format>,
    #[command(flatten)]
    rules: RulesArgs,
    /// Read only shard K of N of the crawl, for one of N stores that share it by host.
    ///
    /// 0/4, 1/4, 2/4 and 3/4 are four stores, which `cashrank-cluster settle` ranks together; see formats/guide/machines.md.
    #[arg(long, help_heading = INPUT, value_name = "K/N", value_parser = parsed::<Shard>)]
    shard: Option<Shard>,
    /// Stop at the first record that cannot be used.
    #[arg(long, help_heading = INPUT)]
    strict: bool,
    #[command(flatten, next_help_heading = INPUT)]
    verify: ChecksumArgs,
    /// Go on though an earlier input was not read to its end, because it is damaged or gone: the rest of it is left out.
    #[arg(long, help_heading = INPUT)]
    leave_unfinished: bool,
    /// How accurate rankings are to be: a total error of at most EPS, like 1e-6, or none [default: 0.01].
    ///
    /// The error is how far all importances, which sum to 1, are from exact PageRank together; it is proven from the kept links
    /// (see --keep-links). `none` publishes the rough ranking that reading the crawl once gives.
    #[arg(long, help_heading = RANKING, value_name = "EPS|none", value_parser = eps_or_none)]
    settle: Option<OrNone<f64>>,
    /// How much links count, like nofollow=0,external=2 [default: 1 each].
    ///
    /// Kinds are nofollow, ugc, sponsored, internal, external, and rules as of --scope for the page linked to (url:*/tag/*=0).
    /// Weights are 0 to 1000; all that apply to a link are multiplied.
    #[arg(long, help_heading = RANKING, value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// The share of a page's importance that its links pass on [default: 0.85].
    #[arg(long, help_heading = RANKING, value_name = "D")]
    damping: Option<f64>,
    /// Leave out the links of pages that were last fetched this long ago, like 90d [default: none].
    ///
    /// Ages count back from the latest record. The pages stay in the ranking. Not remembered: give it each time.
    #[arg(long, help_heading = RANKING, value_name = "AGE|none", value_parser = age_or_none)]
    expire: Option<OrNone<Time>>,
    /// Disk space for the links of all pages, 1 to 4 bytes a link, or none.
    ///
    /// If links outgrow the space, all are dropped: no proven error, `next`, `links`, `settle` or `compute` [default: as before;
    /// for a new store 8G, or half of the free space if that is less].
    #[arg(long, alias = "keep-rows", help_heading = RANKING, value_name = "SIZE|none", value_parser = size_or_none)]
    keep_links: Option<OrNone<u64>>,
    /// Keep or drop links from a page to itself [default: drop].
    #[arg(long, help_heading = RANKING, value_name = "HOW", value_parser = words::<SelfLinks>(SelfLinks::ALL.map(|of| (of.name(), ""))))]
    self_links: Option<SelfLinks>,
    /// Rank from nothing, and not from where the last ranking ended: the same records then give the same bytes.
    #[arg(long, help_heading = RANKING)]
    cold: bool,
    /// Spend at most this long on the accuracy of a ranking, and publish what was reached.
    #[arg(long, help_heading = RANKING, value_name = "TIME", value_parser = time_span)]
    settle_time: Option<Duration>,
    /// At the end, print the N most important pages.
    #[arg(long, help_heading = OUTPUT, value_name = "N", conflicts_with = "json")]
    top: Option<usize>,
    /// How often to publish a ranking (a snapshot) before the end: every 50000 records, say, or 60s.
    ///
    /// A timed snapshot starts no sooner after the last one than three times as long as that took.
    #[arg(long, help_heading = OUTPUT, value_name = "EVERY", value_parser = every)]
    snapshot_every: Option<Every>,
    #[command(flatten, next_help_heading = OUTPUT)]
    keep: KeepArg,
    /// How often to make a checkpoint, from which an interrupted run resumes: a number of records, or a time.
    #[arg(long, help_heading = OUTPUT, value_name = "EVERY", default_value = "30s", value_parser = every)]
    checkpoint_every: Every,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[command(flatten, next_help_heading = OUTPUT)]
    log: Verbosity,
    /// Answer over HTTP meanwhile, as `cashrank serve` does, like 127.0.0.1:8642; port 0: any free port.
    #[cfg_attr(
        not(feature = "serve"),
        doc = "\n\nThis build has none: cargo install --features serve."
    )]
    #[arg(long, alias = "serve", help_heading = "Service", value_name = "ADDRESS", value_parser = service_address)]
    #[cfg_attr(not(feature = "serve"), allow(dead_code))]
    listen: Option<std::net::SocketAddr>,
    #[cfg(feature = "serve")]
    #[command(flatten, next_help_heading = "Service")]
    service: super::serve::ServiceArgs,
    /// Keep the stream in the store until a checkpoint covers it: after a crash, send the rest of it only.
    #[arg(long, help_heading = STREAMS)]
    spool: bool,
    /// With --spool: write to FILE how many bytes are safely on disk; `-`: to standard output, one number per line.
    #[arg(long, help_heading = STREAMS, value_name = "FILE", requires = "spool")]
    ack: Option<PathBuf>,
    /// The stream is a new one, even if the last one did not end or begins with the same bytes; the spool is dropped.
    #[arg(long, help_heading = STREAMS, conflicts_with = "resume")]
    new_stream: bool,
    /// The stream is the last one sent again, even if that had ended: from its start, or with --spool from where it ended.
    #[arg(long, help_heading = STREAMS)]
    resume: bool,
    /// Read the inputs N times, as if the crawl was crawled N times.
    ///
    /// From the second time on the kept links are used, if there are any. Only rankings without --settle profit from it.
    #[arg(long, help_heading = PASSES, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Rank by what was read in a part of the crawl only, like fixed:90d, and not by all links as they are now [default: auto].
    ///
    /// T is a time like 90d, by the times of fetches, or a number of turnovers, like 1.5: in one turnover as much importance was
    /// passed on as all pages hold. The guide's chapter on rankings explains windows.
    #[arg(long, help_heading = WINDOWS, value_name = "WINDOW", value_parser = Forms::new(WindowPolicy::FORMS, parsed::<WindowPolicy>))]
    window: Option<WindowPolicy>,
    /// With --window auto: how far back it may reach, like 90d, or 3 for turnovers.
    #[arg(long, help_heading = WINDOWS, value_name = "T", value_parser = parsed::<Span>)]
    max_age: Option<Span>,
    /// Rank by what pages received in the window, or by what they passed on [default: received, where it is known].
    #[arg(long, help_heading = WINDOWS, value_name = "WHAT", value_parser = words::<Estimator>([("received", ""), ("distributed", "")]))]
    estimator: Option<Estimator>,
    /// How many points to keep at which a window can begin; each takes up to 8 bytes a page [default: 6].
    #[arg(long, help_heading = WINDOWS, value_name = "N")]
    marks: Option<u8>,
    /// Share what waits at a page out among all pages, if the page was not crawled for N rounds; 0: never [default: 8].
    ///
    /// A round is as many records as there are pages.
    #[arg(long, help_heading = WINDOWS, value_name = "N")]
    recycle_after: Option<u8>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Most pages the store may know [default: 17179869183].
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = positive)]
    limit_pages: Option<u64>,
}

const RANKING: &str = "Ranking";
const OUTPUT: &str = "Output";
const STREAMS: &str = "Streams on standard input";
const PASSES: &str = "Reading a crawl several times";
const WINDOWS: &str = "Ranking a part of the crawl";

fn service_address(text: &str) -> Result<std::net::SocketAddr, String> {
    require_feature("serve")?;
    parsed(text)
}

fn certain_top(outcome: &IngestOutcome) -> cashrank::Result<Option<u64>> {
    match &outcome.snapshot {
        Some((path, _)) => Snapshot::open(&RealDisk, path)?.certain_top(),
        None => Ok(None),
    }
}

impl IngestArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let ack = self.ack.as_deref();
        let to_stdout = ack.is_some() && OutputTarget::of(ack)? == OutputTarget::Standard;
        if to_stdout && (self.json || self.top.is_some()) {
            anyhow::bail!("--ack -: standard output is also used by --json or --top; name a file");
        }
        let job = self.job()?;
        self.refuse_unused(&job)?;
        let mut reporter = Reporter::new(&job.inputs, job.repeat, self.log);
        #[cfg(feature = "serve")]
        let service = self.serve(&mut reporter)?;
        let done = ingest(&job, Arc::new(RealDisk), &mut reporter);
        #[cfg(feature = "serve")]
        drop(service);
        let seconds = reporter.end();
        let outcome = done?;
        let read = &since(&outcome.counters, &outcome.before);
        let nothing = is_nothing(&outcome, read, reporter.empty.is_some());
        let log = reporter.log;
        if self.json {
            let certain = certain_top(&outcome)?;
            let counts = read_json(read, &reporter, outcome.stopped, seconds);
            let all = joined(counts, ingest_json(&outcome, read, certain));
            // Keys in their order, whichever part has them.
            print_json(&serde_json::to_value(all)?)?;
        } else if !(nothing && outcome.nothing_to_do) {
            summary(&outcome, read, seconds, &reporter);
        }
        if outcome.nothing_to_do {
            self.advise_settling(&job, log);
        }
        if nothing {
            let (inputs, rules) = (&job.inputs, &job.settings.input);
            let mut message = nothing_read(&reporter, read, inputs, self.format, rules);
            if outcome.pages == 0 {
                message += &start_over(rules);
            }
            log.warn(&message);
        }
        if let Some((_, info)) = &outcome.snapshot {
            self.warn_of_ranking(info, &job, log);
        }
        if let Some(n) = self.top {
            super::top::show(&self.store, n)?;
        } else if !self.json && !log.quiet {
            let message = certain_pages(certain_top(&outcome)?);
            message.iter().for_each(|message| log.info(message));
        }
        Ok(if outcome.stopped {
            Exit::Stopped
        } else if read.skipped_total() > 0 || nothing || (reporter.lacks_links && read.links == 0) {
            Exit::Skipped
        } else {
            Exit::Done
        })
    }

    fn refuse_unused(&self, job: &IngestJob) -> anyhow::Result<()> {
        let settles = job.settle.is_some()
            && job.settings.config.is_settled()
            && job.keep_links != KeepRows::None;
        if let Some(option) = first_given(&[
            (self.settle_time.is_some(), "--settle-time"),
            (self.settle.flatten().is_some(), "--settle"),
            (self.cold, "--cold"),
        ]) {
            anyhow::ensure!(
                settles,
                "{option}: importance is not settled, which --settle none, --keep-links none, --window and --max-age \
                 prevent; leave it out"
            );
        }
        anyhow::ensure!(
            self.estimator.is_none() || !settles,
            "--estimator: it says how a window is read, and importance is settled over the kept links: add --window, or leave \
             it out"
        );
        let of_streams = [(self.resume, "--resume"), (self.new_stream, "--new-stream")];
        if let Some(option) = first_given(&of_streams) {
            anyhow::ensure!(
                job.inputs.iter().any(InputName::is_stream),
                "{option} is for a stream on standard input: name `-` among the inputs"
            );
        }
        Ok(())
    }

    fn warn_of_ranking(&self, info: &Info, job: &IngestJob, log: Verbosity) {
        if let (Some(Some(_)), None) = (&self.expire, &info.expired) {
            let why = if info.window.settled.is_some() {
                "no record says when it was fetched, so no page is known to be old; name the records' time with --field"
            } else {
                "importance was not settled (`cashrank stat` tells whether links are kept)"
            };
            log.warn(&format!("warning: --expire had no effect, because {why}"));
        }
        if let (Some(goal), Some(_)) = (job.settle, info.window.settled)
            && let Some(why) = info.unreached(goal.until)
        {
            log.warn(&format!(
                "warning: --settle {:e} was not reached: {why}",
                goal.until
            ));
        }
        if let Some(warning) = info.expired.and_then(not_believed) {
            log.warn(&warning);
        }
    }

    /// Tells how to get the requested bound at once: options apply to the next snapshot, and there was none.
    fn advise_settling(&self, job: &IngestJob, log: Verbosity) {
        let Some(Some(until)) = self.settle else {
            return;
        };
        // An unreadable snapshot is no reason to fail, because there was nothing to do.
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

    #[cfg(feature = "serve")]
    fn serve(&self, reporter: &mut Reporter) -> anyhow::Result<Option<cashrank_serve::Service>> {
        let Some(listen) = self.listen else {
            anyhow::ensure!(
                !self.service.is_given(),
                "--token-file and --frontier belong to the service: add --listen ADDRESS"
            );
            return Ok(None);
        };
        let live = Arc::new(super::serve::LiveIngest::default());
        reporter.live = Some(live.clone());
        super::serve::start(&self.store, listen, &self.service, Some(live)).map(Some)
    }

    fn job(&self) -> anyhow::Result<IngestJob> {
        let inputs = self.inputs.iter().map(|i| InputName::parse(i)).collect();
        let job = IngestJob::of(&self.store, inputs)?;
        let mut config = job.settings.config.clone();
        if let Some(damping) = self.damping {
            let before = config.damping_asked();
            // A store of an earlier version may use another multiple of 2^-32 for the same damping.
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
            memory: self.memory.or_else(available),
            pages: self.limit_pages.unwrap_or(job.limits.pages),
            ..self.limits.over(job.limits.clone())
        };
        let mut settings = Settings::new(config, &limits);
        settings.input = self.rules.resolve(Some(&job.settings.input))?;
        settings.input.shard = self.shard.or(settings.input.shard);
        let ack = self.ack.as_deref();
        let on_durable = ack.map(|path| on_durable(path, &self.store));
        let on_durable = on_durable.transpose()?;
        let spool = self.spool.then(|| SpoolOptions {
            on_durable,
            ..SpoolOptions::default()
        });
        Ok(IngestJob {
            settings,
            stop: stop_on_signal()?,
            format: self.format,
            repeat: self.repeat,
            keep_links: match self.keep_links {
                Some(None) => KeepRows::None,
                Some(Some(most)) => KeepRows::AtMost(most),
                None => job.keep_links,
            },
            settle: self
                .settle
                .map_or(job.settle, |bound| bound.map(Goal::from)),
            cold: self.cold,
            settle_time: self.settle_time,
            expire: self.expire.flatten(),
            strict: self.strict,
            leave_unfinished: self.leave_unfinished,
            stream: match (self.new_stream, self.resume) {
                (true, _) => Stream::New,
                (_, true) => Stream::Again,
                _ => Stream::Auto,
            },
            spool,
            checkpoint_every: self.checkpoint_every,
            snapshot_every: self.snapshot_every.unwrap_or(job.snapshot_every),
            keep_snapshots: self.keep.keep_snapshots,
            threads: threads(self.threads),
            limits,
            source: self.verify.options(),
            ..job
        })
    }
}

/// Maximum length of a position with its line feed, in bytes.
const POSITION_MAX: u64 = 21;

/// Returns a callback that writes each durable position as a decimal number and a line feed. A file always holds exactly
/// one position; standard output (`-`) gets one line each. Fails if the file holds anything but a position, or is inside
/// `store`.
pub fn on_durable(path: &Path, store: &Path) -> anyhow::Result<OnDurable> {
    let path = path.to_owned();
    let output = OutputTarget::of(Some(&path))?;
    let name = path.display();
    match &output {
        OutputTarget::Standard => {}
        OutputTarget::Stream(_) => {
            anyhow::bail!("--ack {name}: not a regular file; name one, or - for standard output")
        }
        OutputTarget::File(file, _) => {
            anyhow::ensure!(
                !absolute(file)?.starts_with(absolute(store)?),
                "--ack {name}: is inside the store; name a file outside"
            );
            anyhow::ensure!(
                is_position(file),
                "--ack {name}: holds something else than a position, which would be lost; name another file"
            );
        }
    }
    Ok(Arc::new(move |position| {
        let line = format!("{position}\n");
        let written = if output == OutputTarget::Standard {
            let mut out = io::stdout();
            let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            // A reader that went away is a failure, not a closed pipe: the sender would wait forever.
            written.map_err(|error| io::Error::other(error.to_string()).into())
        } else {
            output.write(|out| Ok((out.write_all(line.as_bytes())?, Keep::Durably)))
        };
        written.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Io {
                path: path.clone(),
                action: "acknowledge the stream in",
                source: error.downcast().unwrap_or_else(io::Error::other),
            },
        })
    }))
}

/// Returns whether there is no file, or it is empty or holds a position.
fn is_position(path: &Path) -> bool {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(file) => {
            let read = file.take(POSITION_MAX + 1).read_to_end(&mut text);
            let digits = text.strip_suffix(b"\n").unwrap_or(&text);
            read.is_ok_and(|read| read as u64 <= POSITION_MAX)
                && digits.iter().all(u8::is_ascii_digit)
        }
    }
}
