//! Messages and progress of long runs on standard error.

use std::io::{IsTerminal, stderr};
#[cfg(feature = "serve")]
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use cashrank::Error;
use cashrank_crawl::decode::Reason;
use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{IngestEvent, Observer, ProgressReport};
use cashrank_store::memory::human;
use cashrank_store::snapshot::Watcher;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::common::{self, about, say, thousands};
use super::levels::accuracy_of;
#[cfg(feature = "serve")]
use super::serve::LiveIngest;
use super::summary::{has_links, missing_json, missing_text, settling, ungrouped, withheld};

/// Verbosity of a long run. Lines begin with the time unless standard error is a terminal or the system journal.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Verbosity {
    /// Print only problems.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Verbosity {
    pub fn info(self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub fn warn(self, text: &str) {
        if stderr().is_terminal() || std::env::var_os("JOURNAL_STREAM").is_some() {
            say!("{text}");
        } else {
            say!("{}", at_its_time(text));
        }
    }
}

fn at_its_time(text: &str) -> String {
    format!("{} {text}", jiff::Timestamp::now().strftime("%FT%TZ"))
}

const TICK: Duration = Duration::from_millis(100);

/// Runs `work`, which settles; meanwhile another thread shows its progress, on a terminal and if it can be started.
pub fn with_progress<T>(
    watcher: &Watcher,
    work: impl FnOnce() -> cashrank::Result<T>,
) -> cashrank::Result<T> {
    if !stderr().is_terminal() {
        return work();
    }
    let bar = ProgressBar::new_spinner().with_style(style("{spinner} {msg}"));
    let done = std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let bar = &bar;
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
                bar.set_message(settling(&watcher.progress()));
                bar.tick();
            }
        });
        let done = work();
        drop(end);
        done
    });
    bar.finish_and_clear();
    done
}

/// Maximum number of records that are shown while reading, for each reason; further ones are only counted.
const SHOWN: u64 = 5;
/// Maximum number of inputs that the JSON output lists with missing fields.
const INPUTS: usize = 100;

/// Position and fault of a record.
#[derive(serde::Serialize)]
pub(super) struct BadRecord {
    pub(super) input: String,
    pub(super) record: u64,
    pub(super) byte: u64,
    #[serde(skip)]
    pub(super) reason: Reason,
    pub(super) detail: String,
}

pub(super) struct Reporter {
    started: Instant,
    pub(super) log: Verbosity,
    /// Numbers of records that were skipped, or used without their time, by reason.
    faults: [u64; Reason::ALL.len()],
    pub(super) first_skipped: Option<BadRecord>,
    /// First record that was used without its time.
    pub(super) first_timeless: Option<BadRecord>,
    /// Inputs with fields that no record has, as JSON.
    pub(super) missing: Vec<Value>,
    pub(super) lacks_links: bool,
    bar: Option<ProgressBar>,
    /// Sizes of the inputs in bytes; `None` if that of one is unknown.
    sizes: Option<Vec<u64>>,
    /// Counts of records and links at the first report.
    first: Option<(u64, u64)>,
    #[cfg(feature = "serve")]
    pub(super) live: Option<Arc<LiveIngest>>,
    last_drawn: Instant,
    caveat: Option<&'static str>,
    pub(super) empty: Option<String>,
}

impl Reporter {
    pub(super) fn new(inputs: &[InputName], repeat: u32, log: Verbosity) -> Reporter {
        let sizes = inputs.iter().map(|input| match input {
            InputName::Stdin => None,
            InputName::File(path) => {
                let found = std::fs::metadata(path).ok();
                Some(found.filter(|found| found.is_file())?.len())
            }
        });
        let sizes = sizes.collect::<Option<Vec<u64>>>();
        let is_drawn = stderr().is_terminal() && !log.quiet;
        let bar = is_drawn.then(|| match &sizes {
            Some(sizes) => {
                ProgressBar::new(sizes.iter().sum::<u64>().saturating_mul(repeat.into()))
                    .with_style(style("{bar:16} {percent:>3}%  {eta} left  {wide_msg}"))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")),
        });
        Reporter {
            started: Instant::now(),
            log,
            faults: Default::default(),
            first_skipped: None,
            first_timeless: None,
            missing: Vec::new(),
            lacks_links: false,
            bar,
            sizes,
            first: None,
            #[cfg(feature = "serve")]
            live: None,
            last_drawn: Instant::now(),
            caveat: None,
            empty: None,
        }
    }

    /// Counts and describes a problem, which `--quiet` still shows; `None` if the event is no problem, or a bad record that
    /// is only counted.
    fn problem(&mut self, note: &IngestEvent<'_>) -> Option<String> {
        Some(match *note {
            IngestEvent::Warning(text) => text.to_owned(),
            IngestEvent::Missing { input, missing } => {
                self.lacks_links |= !has_links(missing);
                if self.missing.len() < INPUTS {
                    let mut json = missing_json(missing);
                    json["input"] = input.to_string().into();
                    self.missing.push(json);
                }
                format!("warning: {input}: {}", missing_text(missing))
            }
            IngestEvent::BadRecord {
                input,
                record,
                offset: byte,
                reason,
                detail,
            } => {
                let first = match reason {
                    Reason::BadTime => &mut self.first_timeless,
                    _ => &mut self.first_skipped,
                };
                first.get_or_insert_with(|| BadRecord {
                    input: input.to_string(),
                    record,
                    byte,
                    reason,
                    detail: detail.unwrap_or_default().to_owned(),
                });
                let count = &mut self.faults[reason as usize];
                *count += 1;
                let detail = detail.filter(|_| *count <= SHOWN)?;
                let what = match reason {
                    Reason::BadTime => "used without its time".into(),
                    reason => format!("skipped: {}", reason.name()),
                };
                format!("{input}: record {record} at byte {byte} {what}: {detail}")
            }
            IngestEvent::Ungrouped { input, sources } => {
                format!("{input}: {}", ungrouped(sources))
            }
            IngestEvent::Unchecked { input, members } => format!(
                "{input}: {} frame(s) without a checksum: their content could not be verified",
                thousands(members)
            ),
            IngestEvent::RowsGivenUp { ref reason } => {
                format!("links are no longer kept: {reason}; the ingest continues without them")
            }
            IngestEvent::Rebuilt { damage } => {
                let what = match damage {
                    Error::Damaged { path, what } => format!("{}: damaged: {what}", path.display()),
                    other => other.to_string(),
                };
                format!("{what}; it was rebuilt")
            }
            IngestEvent::Warm { warning } => format!("warning: {warning}"),
            IngestEvent::Withheld { unverified } => withheld(unverified),
            _ => return None,
        })
    }

    /// Returns the number of records that were used without their time.
    pub(super) fn timeless(&self) -> u64 {
        self.faults[Reason::BadTime as usize]
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.log.warn(text)),
            None => self.log.warn(text),
        }
    }

    /// Ends the progress bar, and reports the skipped records that were not shown. Returns the seconds since the start.
    pub(super) fn end(&self) -> f64 {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        for (reason, count) in Reason::ALL.into_iter().zip(self.faults) {
            if reason != Reason::BadTime && count > SHOWN {
                let more = format!("{}: more were skipped; see the counts", reason.name());
                self.log.warn(&more);
            }
        }
        self.started.elapsed().as_secs_f64()
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Observer for Reporter {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::Empty { input } = note {
            self.empty.get_or_insert_with(|| input.to_string());
        }
        if let Some(text) = self.problem(&note) {
            return self.say(&text);
        }
        if self.log.quiet {
            return;
        }
        let text = match note {
            IngestEvent::Message(text) => text.to_owned(),
            IngestEvent::Memory { need, budget, fits } => {
                // Far below the budget, nobody needs to know.
                if need.total() < budget / 2 {
                    return;
                }
                format!(
                    "memory: {} now, of at most {}: room for about {} pages",
                    human(need.total()),
                    human(budget),
                    about(fits)
                )
            }
            IngestEvent::Spooling { from } => format!("spool: send the stream from byte {from} on"),
            IngestEvent::Caveat { input, caveat } => {
                // Printed once, whatever the number of inputs and passes.
                if self.caveat.replace(caveat) == Some(caveat) {
                    return;
                }
                format!("{input}: {caveat}")
            }
            IngestEvent::Empty { input } => format!("{input}: is empty"),
            IngestEvent::Settling { progress } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(settling(progress));
                    bar.tick();
                }
                return;
            }
            IngestEvent::Published { path, info } if info.pages == 0 => {
                format!("snapshot {}: no pages", path.display())
            }
            IngestEvent::Published { path, info } => format!(
                "snapshot {}: {}, {} crawled; {}",
                path.display(),
                common::pages(info.pages),
                thousands(info.counters.visited),
                accuracy_of(info)
            ),
            _ => return,
        };
        self.say(&text);
    }

    fn progress(&mut self, report: &ProgressReport<'_>) {
        let counters = report.counters;
        let (records, links) = *self.first.get_or_insert((counters.records, counters.links));
        let read = (counters.records - records, counters.links - links);
        #[cfg(feature = "serve")]
        if let Some(live) = &self.live {
            live.put(report, self.started.elapsed(), read);
        }
        let is_due = self.last_drawn.elapsed() >= Duration::from_millis(200);
        let Some(bar) = self.bar.as_ref().filter(|_| is_due) else {
            return;
        };
        self.last_drawn = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = |n: u64| thousands((n as f64 / seconds) as u64);
        bar.set_message(format!(
            "{} records/s  {} links/s  {}",
            rate(read.0),
            rate(read.1),
            common::pages(report.pages)
        ));
        match &self.sizes {
            Some(sizes) => bar.set_position(position(sizes, report)),
            None => bar.tick(),
        }
    }
}

/// Returns the number of bytes read in all passes; one over kept links counts as one over the inputs.
fn position(sizes: &[u64], report: &ProgressReport<'_>) -> u64 {
    let once: u64 = sizes.iter().sum();
    // Inputs of earlier runs come first.
    let before = report.inputs.saturating_sub(sizes.len());
    let whole = report.input_index.saturating_sub(before);
    let of_pass = match report.input {
        Some(_) => sizes.iter().take(whole).sum::<u64>() + report.done,
        None => {
            (once as f64 * report.done as f64 / report.length.unwrap_or(1).max(1) as f64) as u64
        }
    };
    once.saturating_mul((report.pass - 1).into()) + of_pass
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_time() {
        let line = at_its_time("read");
        let (time, text) = line.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(text, "read");
    }
}
