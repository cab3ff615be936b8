//! `cashrank settle`: publishes a more accurate ranking of a store's kept links.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cashrank::Time;
use cashrank_graph::engine::HistoryView;
use cashrank_steer::answers::Resettling;
use cashrank_store::snapshot::{Info, SettleSettings, Watcher, publish, settling_needs};
use cashrank_store::store::RealDisk;

use super::common::{
    Exit, MemoryArg, OrNone, StoreArg, age_or_none, bound, links, pages, print_json, say,
    stop_on_signal, thousands, time_span,
};
use super::compute::open_to_publish;
use super::levels::{Basis, accuracy, accuracy_of, not_believed};
use super::reporter::with_progress;
use super::snapshots::KeepArg;

/// Make the current ranking more accurate, from the kept links.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank settle --store ranks --until 1e-6
  cashrank settle --store ranks --until 1e-8 --settle-time 10m

No input is read, only the kept links (`ingest --keep-links`). This takes 50 bytes of memory per page, and up to 66 MiB of \
buffers. The store is locked meanwhile: no ingest can run, but rankings can be read. The new snapshot replaces the one made \
after the same records, if it is more accurate.")]
pub struct SettleArgs {
    #[command(flatten)]
    store: StoreArg,
    /// The total error to come to: how far all importances together may be from exact PageRank.
    #[arg(long, value_name = "EPS", default_value = "1e-6", value_parser = bound)]
    until: f64,
    /// Stop after this long, and publish what was reached, unless not all links were followed once.
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    settle_time: Option<Duration>,
    /// Start from nothing, and not from where the last ranking ended: the same links then always give the same bytes.
    #[arg(long, conflicts_with = "settle_time")]
    cold: bool,
    /// Leave out the links of pages that were last fetched this long ago, like 90d [default: as the current ranking].
    #[arg(long, value_name = "AGE|none", value_parser = age_or_none)]
    expire: Option<OrNone<Time>>,
    #[command(flatten)]
    keep: KeepArg,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print the result as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

impl SettleArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let view = open_to_publish(&self.store.store)?;
        let again = Resettling::of(&view, self.expire)?;
        if let Some((path, info)) = again.done(self.until).filter(|_| !self.cold) {
            return self.report(path, info, None);
        }
        let known = view.state().totals.pages;
        let work = || format!("settling {} pages", thousands(known));
        let instead = "settle on a machine with more memory";
        let need = settling_needs(view.totals().pages);
        self.memory.left_after(need, work, instead)?;
        let started = Instant::now();
        let watcher = Arc::new(Watcher::new(stop_on_signal()?));
        let (keep, settle) = (self.keep.keep_snapshots, self.settling(&watcher, &again));
        let published = with_progress(&watcher, || publish(&RealDisk, &view, keep, Some(&settle)))?;
        let seconds = started.elapsed().as_secs_f64();
        match published {
            Some((path, info)) => {
                for warning in watcher.take_warnings() {
                    say!("warning: {warning}");
                }
                self.report(&path, &info, Some(seconds))
            }
            None if watcher.is_stopped() => {
                say!("stopped: nothing was published; run the command again to start over");
                Ok(Exit::Stopped)
            }
            None => {
                let Some((_, info)) = &again.published else {
                    say!(
                        "after {seconds:.1} s not all links were followed once: nothing was published; give it more time \
                         (--settle-time)"
                    );
                    return Ok(Exit::Done);
                };
                say!(
                    "after {seconds:.1} s the result was no closer than the published ranking ({}), which stays",
                    accuracy(again.bound_l1(), Basis::Latest)
                );
                report_unreached(info, self.until);
                Ok(Exit::Done)
            }
        }
    }

    /// Prints the published ranking and the seconds it took; `None` if the snapshot was accurate enough before.
    fn report(&self, path: &Path, info: &Info, seconds: Option<f64>) -> anyhow::Result<Exit> {
        if let Some(warning) = info.expired.and_then(not_believed) {
            say!("{warning}");
        }
        if self.json {
            return print_json(&serde_json::json!({
                "pages": info.pages,
                "bound_l1": info.bound_l1(),
                "settled": info.window.settled,
                "expired": info.expired,
                "reached": info.unreached(self.until).is_none(),
                "seconds": seconds.unwrap_or(0.0),
                "snapshot": path.display().to_string(),
            }));
        }
        match seconds {
            Some(seconds) => report_settled(info, path, seconds, self.until),
            None => say!(
                "snapshot {} is already that close; {}: nothing to do",
                path.display(),
                accuracy_of(info)
            ),
        }
        Ok(Exit::Done)
    }

    fn settling(&self, watcher: &Arc<Watcher>, again: &Resettling) -> SettleSettings {
        let mut settle = again.settle(self.until);
        (settle.time, settle.watcher) = (self.settle_time, watcher.clone());
        if self.cold {
            (settle.is_cold, settle.below) = (true, None);
        }
        settle
    }
}

fn report_unreached(info: &Info, until: f64) {
    if let Some(why) = info.unreached(until) {
        say!("--until {until:e} was not reached: {why}");
    }
}

fn report_settled(info: &Info, path: &Path, seconds: f64, until: f64) {
    if let Some(effort) = info.window.settled {
        say!(
            "settled in {seconds:.1} s: {}, each followed {:.1} times",
            links(effort.links),
            effort.links_touched as f64 / effort.links.max(1) as f64
        );
        report_unreached(info, until);
    }
    say!(
        "snapshot {}: {}; {}",
        path.display(),
        pages(info.pages),
        accuracy_of(info)
    );
}
