//! `cashrank ingest`: crawl records in, ranking snapshots out.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cashrank::Limits;
use cashrank::decode::Reason;
use cashrank::engine::{Config, Counters, Estimator, SelfLinks, Span, WindowPolicy};
use cashrank::formats::Format;
use cashrank::ingest::{
    Every, Job, Note, Observer, Outcome, REPLAY_BYTES, ROWS_BYTES, StandardInput, Standing, Stream,
    ingest,
};
use cashrank::memory::{Need, available, human};
use cashrank::rules::Follow;
use cashrank::snapshot::{KEEP, RANK_BYTES, SETTLE_UNTIL};
use cashrank::source::InputName;
use cashrank::store::rows::KeepRows;
use cashrank::store::{RealDisk, Settings, SpoolOptions, Unverified, fixed_settings_of};
use indicatif::{ProgressBar, ProgressStyle};

use super::common::{
    Exit, STORE, VerifyArgs, about, accuracy, bytes, counted, one_of, parsed, positive, self_links,
    some_bytes, stop_on_signal, tell_keyboard, thousands, threads,
};
use super::log::{Log, TalkArgs};
use super::nothing::{self, Asked};
use super::output::Output;
use super::remarks::Remarks;
use super::rules::RulesArgs;

const EXAMPLES: &str = "\
Examples:
  cashrank ingest crawl.jsonl.zst --store ranks --top 10
  CASHRANK_STORE=ranks cashrank ingest 2026-11-24.warc.gz --quiet
  crawler --log - | cashrank ingest - --store ranks --snapshot-every 60s
  cashrank ingest - --store ranks --spool --ack acked <pipe
  cashrank ingest graph.tsv.gz --store ranks --format adjacency --repeat 20
  crawler --log - | cashrank ingest - --store ranks --snapshot-every 60s --serve 127.0.0.1:8642
  cashrank ingest crawl.cza --store ranks --settle 1e-4

The same command again resumes where the last one stopped. Files that were read before are recognised by their content and \
skipped; new ones are added. A higher --repeat adds passes. Settings that you do not give are those of the store.

A stream on standard input may be sent again from its start: nothing is counted twice. If it begins with all of the last \
stream, only the rest is counted; if it differs, it is a new stream. If it could be either, because it ends early or differs \
only after 16 MiB, it is refused: --new-stream or --resume decides.";

/// Read crawl records into a store, and rank the pages.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, or `-` for standard input; plain, gzip or zstd.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,
    /// The store's directory; created if it does not exist [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    store: PathBuf,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: FormatArg,
    /// Share of a page's importance that its links pass on [default: 0.85].
    #[arg(long, help_heading = "Ranking", value_name = "D")]
    damping: Option<f64>,
    /// Which part of the history importance comes from: auto, whole, fixed:T, fixed:T,min=M, fixed:T,groups=N,
    /// variable:K or interpolation:T. T is in turnovers, like 1.5, or in fetch time, like 90d. The guide's chapter on
    /// rankings explains windows [default: auto].
    #[arg(long, help_heading = "Ranking", value_name = "WINDOW", value_parser = parsed::<WindowPolicy>)]
    window: Option<WindowPolicy>,
    /// With a window: whether importance is the cash that a page received or distributed [default: received, if the
    /// window begins at a mark: auto, whole, fixed:T].
    #[arg(long, help_heading = "Ranking", value_name = "WHAT", value_parser = one_of(["received", "distributed"], parsed::<Estimator>))]
    estimator: Option<Estimator>,
    /// Weights of links, like nofollow=0,external=2. Kinds are nofollow, ugc, sponsored, internal and external, weights
    /// 0 to 1000; the weights of all kinds that apply are multiplied [default: 1 each].
    #[arg(long, help_heading = "Ranking", value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// What to do with links from a page to itself [default: drop].
    #[arg(long, help_heading = "Ranking", value_name = "HOW", value_parser = self_links())]
    self_links: Option<SelfLinks>,
    /// How many marks to keep: saved copies of all cash, at which windows can begin [default: 6].
    #[arg(long, help_heading = "Ranking", value_name = "N")]
    marks: Option<u8>,
    /// Spread a page's cash over all pages after so many rounds without a visit; 0: never [default: 8].
    #[arg(long, help_heading = "Ranking", value_name = "ROUNDS")]
    recycle_after: Option<u8>,
    /// With --window auto: how far back it may reach, in turnovers, like 3, or in fetch time, like 90d.
    #[arg(long, help_heading = "Ranking", value_name = "T", value_parser = parsed::<Span>)]
    max_age: Option<Span>,
    /// Read the inputs N times.
    #[arg(
        long,
        help_heading = "Several passes",
        value_name = "N",
        default_value_t = 1
    )]
    repeat: u32,
    /// With --repeat: disk space in the store for what the first pass read, so that later passes need not read it
    /// again. Takes 4 bytes a link (6 with --follow) and about 12 a record, or 28 if EVERY is in records; 0: none
    /// [default: 8G or half of the free space, whichever is less].
    #[arg(long, help_heading = "Several passes", value_name = "SIZE", value_parser = bytes)]
    replay_disk: Option<u64>,
    /// Disk space for the links of all pages, 1 to 4 bytes a link. Accurate rankings, `next`, `links`, `settle` and
    /// `pagerank --store` need them. none: keep none [default: for a new store 8G or half of the free space, whichever
    /// is less; otherwise as before].
    #[arg(long, help_heading = "Ranking", value_name = "SIZE|none", value_parser = size_or_none)]
    keep_rows: Option<u64>,
    /// Before each snapshot, settle importance: go over the kept links until it is certified to be within EPS of
    /// PageRank (L1). none: importance is what one reading of the crawl gives. With a --window or --max-age it comes
    /// from that window [default: 0.01].
    #[arg(long, help_heading = "Ranking", value_name = "EPS|none", value_parser = eps_or_none)]
    settle: Option<Bound>,
    /// Settle for at most this long, and publish what was reached.
    #[arg(long, help_heading = "Ranking", value_name = "TIME", value_parser = time)]
    settle_time: Option<Duration>,
    /// With --repeat: end after the first pass whose certified bound on the L1 error is EPS or less.
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
    /// Make a checkpoint after so many records or so much time, like 50000 or 60s. A run that is interrupted goes on
    /// from its last checkpoint.
    #[arg(long, value_name = "EVERY", default_value = "30s", value_parser = every)]
    checkpoint_every: Every,
    /// Publish a ranking (a snapshot) after so many records or so much time, like 50000 or 60s, and not only at the
    /// end. By time, the next one is begun no sooner than three times as long after the last one as that took.
    #[arg(long, value_name = "EVERY", value_parser = every)]
    snapshot_every: Option<Every>,
    /// Keep the newest N snapshots, and those pinned by `cashrank snapshots --pin`; 0: keep all.
    #[arg(long, value_name = "N", default_value_t = KEEP)]
    keep_snapshots: usize,
    /// Threads for decoding [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    /// Use at most so much memory, like 20G. The run ends at a checkpoint before it needs more [default: what is
    /// available, within the limits of the container, less a sixteenth].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    memory: Option<u64>,
    /// Stop at the first record that cannot be used.
    #[arg(long)]
    strict: bool,
    /// Give up an earlier input that was not read to its end (it is damaged or gone, say): what was read of it is all.
    #[arg(long)]
    leave_unfinished: bool,
    /// Keep standard input in the store until a checkpoint covers it. After a crash the sender goes on where this
    /// ended, instead of from the start.
    #[arg(long, help_heading = "Streams on standard input")]
    spool: bool,
    /// Write to FILE how many bytes are safely on disk, whenever that grows; `-`: to standard output, one number a
    /// line.
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
    /// Standard input is a new stream, even if the last one did not end or begins with the same bytes. Drops the spool.
    #[arg(
        long,
        help_heading = "Streams on standard input",
        conflicts_with = "resume"
    )]
    new_stream: bool,
    /// Standard input is the last stream again, even if that had ended: from its start, or with --spool from where it
    /// ended.
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
    #[cfg(feature = "serve")]
    #[arg(long, help_heading = "Service", value_name = "ADDRESS")]
    serve: Option<std::net::SocketAddr>,
    #[cfg(feature = "serve")]
    #[command(flatten, next_help_heading = "Service")]
    service: super::serve::ServiceArgs,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Limits on input. Sizes take K, M, G and T.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// Longest record: a line, a WARC or WAT record, or all edges of a source [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_line: Option<u64>,
    /// Longest URL or node name [default: 8K].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_url: Option<u64>,
    /// Most links of a record, at most 3145728 [default: 1000000].
    #[arg(long, value_name = "N", value_parser = positive)]
    limit_links: Option<u64>,
    /// Largest gzip member or zstd frame to hold back until it is verified [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_held: Option<u64>,
    /// Largest size that a gzip member or zstd frame may expand to [default: 1T].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_expansion: Option<u64>,
    /// Largest zstd window, as an exponent of two, 10 to 31 [default: 27].
    #[arg(long, value_name = "LOG", value_parser = clap::value_parser!(u32).range(10..=31))]
    limit_zstd_window: Option<u32>,
    /// Most memory that a block of a crawl archive may take [default: 256M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_block: Option<u64>,
    /// Most pages the store may know [default: 17179869183].
    #[arg(long, value_name = "N", value_parser = positive)]
    limit_pages: Option<u64>,
}

impl LimitArgs {
    /// The limits given; those that change results are the store's where not given.
    pub(super) fn resolve(&self, store: Option<&Settings>) -> Limits {
        let default = Limits::default();
        let kept = |of: fn(&Settings) -> u64, default| store.map_or(default, of);
        Limits {
            line_bytes: self
                .limit_line
                .unwrap_or(kept(|s| s.line_bytes, default.line_bytes)),
            url_bytes: self
                .limit_url
                .unwrap_or(kept(|s| s.url_bytes, default.url_bytes)),
            links: self.limit_links.unwrap_or(kept(|s| s.links, default.links)),
            held_bytes: self.limit_held.unwrap_or(default.held_bytes),
            expansion_bytes: self.limit_expansion.unwrap_or(default.expansion_bytes),
            zstd_window_log: self.limit_zstd_window.unwrap_or(default.zstd_window_log),
            block_bytes: self.limit_block.unwrap_or(default.block_bytes),
            pages: self.limit_pages.unwrap_or(default.pages),
            memory: None,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct FormatArg(pub(super) Option<Format>);

/// The formats by name, for clap.
pub(super) fn formats() -> impl clap::builder::TypedValueParser<Value = FormatArg> {
    let names = ["auto"].into_iter().chain(Format::ALL.map(Format::name));
    one_of(names, format)
}

fn format(text: &str) -> Result<FormatArg, String> {
    if text == "auto" {
        return Ok(FormatArg(None));
    }
    parsed::<Format>(text).map(|format| FormatArg(Some(format)))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    match every(text) {
        Ok(Every::Time(time)) => Ok(time),
        _ => Err(format!("{text:?}: a time like 1s, 5m or 1h")),
    }
}

/// A number of bytes; 0: none.
fn size_or_none(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(0),
        _ => some_bytes(text).map_err(|what| format!("{what}; or none")),
    }
}

/// A bound to settle to; `None`: don't.
#[derive(Clone, Copy)]
struct Bound(Option<f64>);

fn eps_or_none(text: &str) -> Result<Bound, String> {
    match text {
        "none" => Ok(Bound(None)),
        _ => super::settle::bound(text)
            .map(|bound| Bound(Some(bound)))
            .map_err(|what| format!("{what}; or none")),
    }
}

pub(super) fn every(text: &str) -> Result<Every, String> {
    let wrong =
        || format!("{text:?}: a number of records like 50000, or a time like 500ms, 60s, 5m or 1h");
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let timed = units
        .iter()
        .find_map(|&(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let number: u64 = timed
        .map_or(text, |(number, _)| number)
        .parse()
        .map_err(|_| wrong())?;
    match (number, timed) {
        (0, _) => Err(wrong()),
        (number, None) => Ok(Every::Records(number)),
        (number, Some((_, ms))) => Ok(Every::Time(Duration::from_millis(
            number.saturating_mul(ms),
        ))),
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
        let found = fixed_settings_of(&*disk, &self.store)?;
        let job = self.job(found.as_ref())?;
        stop_on_signal(&job.stop)?;
        tell_keyboard(&job.inputs);
        let mut talk = Talk::new(&job.inputs, job.repeat, self.talk.log());
        let done = self.ingest(&job, disk, &mut talk)?;
        talk.clear();
        talk.tell_hidden();
        let outcome = done?;
        let seconds = talk.started.elapsed().as_secs_f64();
        let nothing = nothing::is_nothing(&outcome);
        if self.json {
            let remarks = &talk.remarks;
            super::common::print_json(&summary_json(&outcome, remarks, seconds))?;
        } else {
            summary(&outcome, seconds, &talk);
        }
        if nothing {
            let said = nothing::told(&outcome, talk.first_bad.as_ref(), &self.asked(&job));
            talk.log.warn(&said);
        }
        if let Some(n) = self.top {
            super::top::show(&self.store, n)?;
        }
        Ok(match &outcome {
            outcome if outcome.stopped => Exit::Stopped,
            outcome if outcome.counters.skipped_total() > outcome.before.skipped_total() => {
                Exit::Skipped
            }
            _ if nothing => Exit::Skipped,
            _ => Exit::Done,
        })
    }

    /// What decides what could be read.
    fn asked(&self, job: &Job) -> Asked {
        let told = job.settings.input.told();
        let scope = told.into_iter().find(|(setting, _)| *setting == "scope");
        Asked {
            input: job
                .inputs
                .first()
                .map_or(String::new(), ToString::to_string),
            format: self.format.0.map(Format::name),
            scope: scope.map_or(String::new(), |(_, scope)| scope),
        }
    }

    /// Ingests, with the service beside it if it is wanted. The outer error is that of the service.
    fn ingest(
        &self,
        job: &Job,
        disk: Arc<RealDisk>,
        talk: &mut Talk,
    ) -> anyhow::Result<cashrank::Result<Outcome>> {
        #[cfg(feature = "serve")]
        if let Some(listen) = self.serve {
            let live = Arc::new(super::serve::Live::default());
            let service =
                super::serve::start(&self.store, listen, &self.service, Some(live.clone()))?;
            let mut watched = super::serve::Watched::new(talk, live);
            let done = ingest(job, disk, &mut watched);
            service.stop();
            return Ok(done);
        }
        #[cfg(feature = "serve")]
        if self.service.is_given() {
            anyhow::bail!(
                "--token-file and --frontier are for the service: give --serve ADDRESS, too"
            );
        }
        Ok(ingest(job, disk, talk))
    }

    fn job(&self, found: Option<&Settings>) -> anyhow::Result<Job> {
        let mut config = found.map_or_else(Config::default, |s| s.config.clone());
        if let Some(damping) = self.damping {
            let before = config.damping_asked();
            // A store of an earlier version may use another multiple for it.
            if (before - damping).abs() > 1e-9 {
                anyhow::ensure!(
                    (damping * 1e8).round() / 1e8 == damping,
                    "--damping {damping}: at most eight decimals"
                );
                config.set_damping(damping)?;
            }
        }
        config.window = self.window.unwrap_or(config.window);
        if let Some(estimator) = self.estimator {
            config.set_estimator(estimator);
        }
        config.follow = self.follow.unwrap_or(config.follow);
        config.self_links = self.self_links.unwrap_or(config.self_links);
        config.marks = self.marks.unwrap_or(config.marks);
        config.recycle_after = self.recycle_after.unwrap_or(config.recycle_after);
        config.max_age = self.max_age.or(config.max_age);
        config.check()?;
        let limits = Limits {
            memory: self.memory.or_else(available),
            ..self.limits.resolve(found)
        };
        let mut settings = Settings::new(config, &limits);
        settings.input = self.rules.resolve(found.map(|s| &s.input))?;
        Ok(Job {
            store: self.store.clone(),
            settings,
            inputs: self.inputs.iter().map(|i| InputName::parse(i)).collect(),
            format: self.format.0,
            repeat: self.repeat,
            replay_bytes: self
                .replay_disk
                .unwrap_or_else(|| REPLAY_BYTES.min(free_bytes(&self.store) / 2)),
            keep_rows: self.keep_rows(),
            settle: self.settle.map_or(Some(SETTLE_UNTIL), |bound| bound.0),
            settle_time: self.settle_time,
            until: self.until,
            complete: self.complete,
            strict: self.strict,
            leave_unfinished: self.leave_unfinished,
            stream: match (self.new_stream, self.resume) {
                (true, _) => Stream::New,
                (_, true) => Stream::Again,
                _ => Stream::Auto,
            },
            spool: self.spool.then(|| self.spool_options()).transpose()?,
            stdin: StandardInput::default(),
            checkpoint_every: self.checkpoint_every,
            snapshot_every: self.snapshot_every.unwrap_or(Every::Never),
            keep_snapshots: self.keep_snapshots,
            rank_bytes: RANK_BYTES,
            threads: threads(self.threads),
            limits,
            source: self.verify.options(),
            delays: None,
            fault: None,
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    fn keep_rows(&self) -> KeepRows {
        match self.keep_rows {
            Some(0) => KeepRows::None,
            Some(most) => KeepRows::AtMost(most),
            None => {
                // What they take already is theirs.
                let folder = std::fs::read_dir(self.store.join("rows"))
                    .into_iter()
                    .flatten();
                let sizes = folder.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
                let most = sizes
                    .sum::<u64>()
                    .saturating_add(free_bytes(&self.store) / 2);
                KeepRows::Usual(ROWS_BYTES.min(most))
            }
        }
    }

    fn spool_options(&self) -> anyhow::Result<SpoolOptions> {
        let default = SpoolOptions::default();
        Ok(SpoolOptions {
            sync_every: self.ack_every.or(default.sync_every),
            told: self.ack.as_deref().map(super::ack::told).transpose()?,
            ..default
        })
    }
}

/// Bytes free on the disk on which `path` is, or will be.
fn free_bytes(path: &Path) -> u64 {
    let path = std::path::absolute(path).unwrap_or_default();
    let found = path
        .ancestors()
        .find_map(|path| rustix::fs::statvfs(path).ok());
    found.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Skipped records shown in full, for each reason; further ones are counted only.
const SHOWN: u64 = 5;

/// Tells people on standard error what happens.
pub(super) struct Talk {
    pub(super) started: Instant,
    pub(super) log: Log,
    /// The first record that could not be used.
    first_bad: Option<nothing::Place>,
    pub(super) remarks: Remarks,
    /// Formats that were read.
    formats: Vec<Format>,
    bar: Option<ProgressBar>,
    /// Bytes of all inputs of all passes, if they are known, and of those done.
    total: Option<u64>,
    done: u64,
    current: (u32, usize, u64),
    first: Option<(u64, u64)>,
    last_drawn: Instant,
    shown: [u64; Reason::ALL.len()],
    caveat: Option<&'static str>,
}

impl Talk {
    pub(super) fn new(inputs: &[InputName], repeat: u32, log: Log) -> Talk {
        let sizes: Option<Vec<u64>> = inputs
            .iter()
            .map(|input| match input {
                InputName::Stdin => None,
                InputName::File(path) => std::fs::metadata(path)
                    .ok()
                    .filter(|found| found.is_file())
                    .map(|found| found.len()),
            })
            .collect();
        let total = sizes.map(|sizes| {
            let once = sizes.iter().sum::<u64>();
            once.saturating_mul(u64::from(repeat))
        });
        let is_drawn = std::io::stderr().is_terminal() && !log.quiet;
        // What is wider than the screen is cut.
        let bar = is_drawn.then(|| match total {
            Some(total) => ProgressBar::new(total)
                .with_style(style("{bar:16} {percent:>3}%  {eta} left  {wide_msg}")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")),
        });
        Talk {
            started: Instant::now(),
            log,
            first_bad: None,
            remarks: Remarks::default(),
            formats: Vec::new(),
            bar,
            total,
            done: 0,
            current: (1, 0, 0),
            first: None,
            last_drawn: Instant::now(),
            shown: [0; Reason::ALL.len()],
            caveat: None,
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.log.warn(text)),
            None => self.log.warn(text),
        }
    }

    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    pub(super) fn tell_hidden(&self) {
        for (reason, shown) in Reason::ALL.iter().zip(self.shown) {
            if shown > SHOWN {
                let more = format!("{}: more were skipped; see the counts", reason.name());
                self.log.warn(&more);
            }
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Observer for Talk {
    fn note(&mut self, note: Note<'_>) {
        if self.log.quiet && !is_amiss(&note) {
            return;
        }
        let text = match note {
            Note::Created { store } => format!("new store {}", store.display()),
            Note::Resuming {
                input,
                pass,
                records,
                offset,
            } => format!(
                "{input}: going on after record {} (byte {offset}) of pass {pass}",
                thousands(records)
            ),
            Note::Memory {
                need,
                budget,
                fits,
                settles,
                ..
            } => {
                let settled = match settles < fits {
                    true => format!(
                        "; snapshots on the way are settled up to about {} pages, and come from a window beyond that",
                        about(settles)
                    ),
                    false => String::new(),
                };
                format!(
                    "memory: {} now, of at most {}: room for about {} pages{settled}",
                    human(need.total()),
                    human(budget),
                    about(fits)
                )
            }
            Note::Spooling { from, ended: false } => {
                format!("spool: send the stream from byte {from} on")
            }
            Note::Spooling { from, ended: true } => {
                format!("spool: the stream ended at byte {from}: nothing more of it is read")
            }
            Note::Spooled { to } => format!("spool: durable to byte {to}"),
            Note::SpooledDamage => {
                "spool: it holds the damaged bytes as they were sent, so reading them again fails again; \
                --new-stream drops them"
                    .into()
            }
            Note::Completing { pass } => format!(
                "all inputs of pass {pass} were read before; going on with pages that have no record \
                (--complete)"
            ),
            Note::ReadBefore { bytes } => format!(
                "-: these {} bytes are the last stream again: nothing is counted twice (--new-stream counts \
                them as another stream)",
                thousands(bytes)
            ),
            Note::GoesOn => {
                "-: begins with all of the last stream: only what follows is counted (--new-stream counts all \
                of it as another stream)"
                    .into()
            }
            Note::Stopping => {
                "stopping: ranking what was read; a second signal stops at once".into()
            }
            Note::Checking { input } => {
                format!("{input}: checking that it is what was read before")
            }
            Note::Looking { input } => format!("{input}: checking whether it was read before"),
            Note::Known { input } => format!("{input}: was read before; skipped"),
            Note::Removed { snapshots } => format!(
                "{} removed; the newest {} are kept (--keep-snapshots), and those pinned by `cashrank snapshots \
                --pin`",
                counted(snapshots.0, "older snapshot", "older snapshots"),
                snapshots.1
            ),
            Note::Guessed { input, format, why } => {
                self.formats.push(format);
                format!("{input}: read as {} ({why})", format.name())
            }
            Note::Caveat { input, caveat } => {
                // Once says it, however many inputs and passes there are.
                if self.caveat.replace(caveat) == Some(caveat) {
                    return;
                }
                format!("{input}: {caveat}")
            }
            Note::Empty { input } => format!("{input}: is empty"),
            Note::Skipped {
                input,
                record,
                offset,
                reason,
                detail,
            } => {
                self.first_bad.get_or_insert_with(|| nothing::Place {
                    at: format!("{input}: record {record} at byte {offset}"),
                    reason,
                    detail: detail.to_owned(),
                });
                let shown = &mut self.shown[reason as usize];
                *shown += 1;
                if *shown > SHOWN {
                    return;
                }
                format!(
                    "{input}: record {record} at byte {offset} skipped: {}: {detail}",
                    reason.name()
                )
            }
            Note::BadTime {
                input,
                record,
                offset,
                detail,
            } => match self.remarks.bad_time(input, (record, offset), detail) {
                Some(said) => said,
                None => return,
            },
            Note::Ungrouped { input, sources } => format!(
                "{input}: {} lines go back to an earlier source: each group of lines counts as a visit of its \
                own. If the file is not grouped by source, sort it first (edges: sort -s -k1,1; crawl-log: \
                 sort -s -k6,6)",
                thousands(sources)
            ),
            Note::NotReplayed { input, why } => {
                format!("{input}: {why}: later passes read this file again, and all files after it")
            }
            Note::OutgrowsIngest {
                names,
                need,
                budget,
            } => format!(
                "memory: after {} URLs, an ingest of this archive would need {}, with {} at hand; {} of that is \
                for where URLs are, which an archive of --level 9 (larger) does not need",
                thousands(names),
                human(need.total()),
                human(budget),
                human(need.names)
            ),
            Note::Unchecked { input, members } => format!(
                "{input}: {} frame(s) without a checksum: their content could not be verified",
                thousands(members)
            ),
            Note::RowsGivenUp { reason } => format!(
                "links are no longer kept: {reason}; the ingest goes on without them"
            ),
            Note::Settling { progress } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(super::settle::standing(progress));
                    bar.tick();
                }
                return;
            }
            Note::NotSettled { need, room } => format!(
                "the snapshot is not settled: that needs {} of memory, and {} is left; after the ingest, \
                `cashrank settle --store DIR` can do it",
                human(need),
                human(room)
            ),
            Note::Bound { pass, bound: found } => format!("pass {pass}: {}", accuracy(found)),
            Note::Withheld { unverified } => withheld(unverified),
            Note::Published { path, info } if info.pages == 0 => {
                format!("snapshot {}: no pages", path.display())
            }
            Note::Published { path, info } => format!(
                "snapshot {}: {}, {} crawled; {}",
                path.display(),
                counted(info.pages, "page", "pages"),
                thousands(info.counters.visited),
                accuracy(info.bound_l1())
            ),
            _ => return,
        };
        self.say(&text);
    }

    fn progress(&mut self, standing: &Standing<'_>) {
        let Some(bar) = &self.bar else {
            return;
        };
        let (pass, input, length) = self.current;
        if (pass, input) != (standing.pass, standing.input_index) {
            self.done += length;
            self.current = (standing.pass, standing.input_index, 0);
        }
        self.current.2 = standing.compressed_len.unwrap_or(0);
        let counters = standing.counters;
        let (records, links) = *self.first.get_or_insert((counters.records, counters.links));
        if self.last_drawn.elapsed() < Duration::from_millis(200) {
            return;
        }
        self.last_drawn = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = |n: u64| thousands((n as f64 / seconds) as u64);
        bar.set_message(format!(
            "{} records/s  {} links/s  {} pages",
            rate(counters.records - records),
            rate(counters.links - links),
            thousands(standing.pages)
        ));
        if self.total.is_some() {
            bar.set_position(self.done + standing.compressed);
        } else {
            bar.tick();
        }
    }
}

pub(super) fn skipped_list(counters: &Counters, before: &Counters) -> Vec<(&'static str, u64)> {
    Reason::ALL
        .iter()
        .map(|&reason| {
            let count = counters.skipped[reason as usize] - before.skipped[reason as usize];
            (reason.name(), count)
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// [`skipped_list`] as an object.
pub(super) fn skipped_json(counters: &Counters, before: &Counters) -> serde_json::Value {
    let counts = skipped_list(counters, before).into_iter();
    counts
        .map(|(reason, count)| (reason.to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Whether it is of something wrong, which `--quiet` leaves.
fn is_amiss(note: &Note<'_>) -> bool {
    matches!(
        note,
        Note::SpooledDamage
            | Note::Skipped { .. }
            | Note::BadTime { .. }
            | Note::Ungrouped { .. }
            | Note::Unchecked { .. }
            | Note::Withheld { .. }
            | Note::OutgrowsIngest { .. }
    ) || is_loss(note)
}

/// Whether more snapshots went than the one that each new one replaces.
fn is_loss(note: &Note<'_>) -> bool {
    matches!(note, Note::Removed { snapshots } if snapshots.0 > 1)
}

fn summary(outcome: &Outcome, seconds: f64, talk: &Talk) {
    if outcome.nothing_to_do {
        talk.log.tell("all inputs were read before: nothing to do");
        return;
    }
    let pages = outcome.pages - outcome.pages_before;
    tell_counts(&outcome.counters, &outcome.before, pages, seconds, talk);
    if outcome.stopped {
        talk.log.warn(stopped(outcome));
    }
    if let Some(unverified) = outcome.unverified.as_ref().filter(|_| !outcome.stopped) {
        talk.log.warn(&withheld(unverified));
    }
}

/// How to go on.
fn stopped(outcome: &Outcome) -> &'static str {
    match (&outcome.snapshot, outcome.durable) {
        (None, _) => "stopped at a checkpoint, without a snapshot; the same command goes on",
        (Some(_), Some(_)) => {
            "stopped at a checkpoint, with a snapshot of what was read so far; the same command goes on, and \
            says from which byte to send the stream"
        }
        (Some(_), None) => {
            "stopped at a checkpoint, with a snapshot of what was read so far; the same command goes on if you \
            send the same stream from its start; for another stream, use --new-stream"
        }
    }
}

/// What was read, and what became of it.
pub(super) fn tell_counts(
    now: &Counters,
    before: &Counters,
    pages: u64,
    seconds: f64,
    talk: &Talk,
) {
    let log = talk.log;
    let records = now.records - before.records;
    let links = now.links - before.links;
    log.tell(&format!(
        "{}, {}, {} in {seconds:.1} s ({} links/s)",
        counted(records, "record", "records"),
        counted(links, "link", "links"),
        counted(pages, "new page", "new pages"),
        thousands((links as f64 / seconds.max(1e-3)) as u64),
    ));
    let of_these = [
        ("of pages that are gone", now.gone - before.gone),
        (
            "of pages that had not changed",
            now.unchanged - before.unchanged,
        ),
        ("of fetches that failed", now.failed - before.failed),
    ];
    let of_these: Vec<String> = some_of(&of_these);
    if !of_these.is_empty() {
        log.tell(&format!("of the records: {}", of_these.join(", ")));
    }
    let skipped: Vec<String> = skipped_list(now, before)
        .into_iter()
        .map(|(reason, count)| format!("{} {reason}", thousands(count)))
        .collect();
    if !skipped.is_empty() {
        log.warn(&format!("skipped records: {}", skipped.join(", ")));
    }
    if let Some(told) = talk.remarks.told() {
        log.warn(&told);
    }
    if now.other > before.other {
        let other = thousands(now.other - before.other);
        log.tell(&format!("{other} {}, not pages", no_pages(&talk.formats)));
    }
    if now.out_of_scope > before.out_of_scope {
        let out = now.out_of_scope - before.out_of_scope;
        log.tell(&format!(
            "{} of pages outside of --scope",
            counted(out, "record", "records")
        ));
    }
    let dropped = dropped_links(now, before);
    if !dropped.is_empty() {
        log.tell(&format!("links not followed: {}", dropped.join(", ")));
    }
}

/// What inputs of these formats hold beside records of pages.
fn no_pages(formats: &[Format]) -> &'static str {
    let all = |some: &[Format]| !formats.is_empty() && formats.iter().all(|f| some.contains(f));
    if all(&[Format::Warc]) {
        "WARC request, metadata and other records"
    } else if all(&[Format::Wat]) {
        "WAT records of requests and other things"
    } else if all(&[Format::Warc, Format::Arc]) {
        "records of requests and other things"
    } else {
        "blank lines, comments and the like"
    }
}

/// Those that are not 0.
fn some_of(counts: &[(&str, u64)]) -> Vec<String> {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| format!("{} {what}", thousands(*count)))
        .collect()
}

/// Links read but not followed, by what they are; those there are.
pub(super) fn dropped_links(now: &Counters, before: &Counters) -> Vec<String> {
    let dropped = [
        ("to no page", now.links_scheme - before.links_scheme),
        ("invalid", now.links_invalid - before.links_invalid),
        ("too long", now.links_too_long - before.links_too_long),
        ("to the page itself", now.links_own - before.links_own),
        (
            "out of scope",
            now.links_out_of_scope - before.links_out_of_scope,
        ),
        ("repeated", now.links_repeated - before.links_repeated),
    ];
    some_of(&dropped)
}

pub(super) fn withheld(unverified: &Unverified) -> String {
    format!(
        "no further snapshot published: {} could not be verified from record {} on; --accept-unverified \
        publishes it anyway",
        unverified.input, unverified.from_record
    )
}

/// A need by part, with its sum.
pub(super) fn memory(need: &Need) -> serde_json::Value {
    let mut parts = serde_json::json!(need);
    parts["total"] = need.total().into();
    parts
}

fn summary_json(outcome: &Outcome, remarks: &Remarks, seconds: f64) -> serde_json::Value {
    let (now, before) = (&outcome.counters, &outcome.before);
    let snapshot = outcome.snapshot.as_ref();
    serde_json::json!({
        "nothing_to_do": outcome.nothing_to_do,
        "stopped": outcome.stopped,
        "durable": outcome.durable,
        "records": now.records - before.records,
        "links": now.links - before.links,
        "new_pages": outcome.pages - outcome.pages_before,
        "skipped": skipped_json(now, before),
        "remarks": remarks.as_json(),
        "other": now.other - before.other,
        "out_of_scope": now.out_of_scope - before.out_of_scope,
        "seconds": seconds,
        "checkpoints": outcome.checkpoints,
        "checkpoint_seconds": outcome.checkpoint_time.as_secs_f64(),
        "total_records": now.records,
        "total_links": now.links,
        "pages": outcome.pages,
        "memory": memory(&outcome.need),
        "pages_fit": outcome.fits,
        "turnovers": snapshot.map(|(_, info)| info.turnovers),
        "bound_l1": snapshot.and_then(|(_, info)| info.bound_l1()),
        "settled": snapshot.and_then(|(_, info)| info.window.settled),
        "snapshot": snapshot.map(|(path, _)| path.display().to_string()),
    })
}
