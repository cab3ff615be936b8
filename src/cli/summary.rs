//! Summary at the end of a run, for people and as JSON.

use cashrank_crawl::decode::Reason;
use cashrank_graph::engine::{Counters, ShardCounts};
use cashrank_graph::rank::settle::SettlingProgress;
use cashrank_ingest::ingest::IngestOutcome;
use cashrank_store::memory::Need;
use cashrank_store::store::Unverified;
use serde_json::{Value, json};

use super::common::{self, Basis, accuracy, counted, thousands};
use super::reporter::Reporter;

/// Returns what was counted since `before`; pages visited and remote pages stay totals.
pub(super) fn since(now: &Counters, before: &Counters) -> Counters {
    let mut read = now.clone();
    for (count, before) in [
        (&mut read.records, before.records),
        (&mut read.gone, before.gone),
        (&mut read.unchanged, before.unchanged),
        (&mut read.failed, before.failed),
        (&mut read.other, before.other),
        (&mut read.out_of_scope, before.out_of_scope),
        (&mut read.links, before.links),
        (&mut read.links_scheme, before.links_scheme),
        (&mut read.links_invalid, before.links_invalid),
        (&mut read.links_too_long, before.links_too_long),
        (&mut read.links_own, before.links_own),
        (&mut read.links_repeated, before.links_repeated),
        (&mut read.links_out_of_scope, before.links_out_of_scope),
        (&mut read.shard.other_records, before.shard.other_records),
    ] {
        *count -= before;
    }
    for (count, before) in read.skipped.iter_mut().zip(before.skipped) {
        *count -= before;
    }
    read
}

pub(super) fn skipped(read: &Counters) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = Reason::ALL.iter().zip(read.skipped);
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(reason, count)| (reason.name(), count))
}

pub(super) fn summary(outcome: &IngestOutcome, read: &Counters, seconds: f64, of: &Reporter) {
    let log = of.log;
    if outcome.nothing_to_do {
        log.info("all inputs were read before: nothing to do");
        return;
    }
    let pages = outcome.pages - outcome.pages_before;
    report_counts(read, Some(pages), seconds, of);
    let all = &outcome.counters;
    if all.links == 0 && all.visited > 0 && read.records > 0 {
        log.warn("warning: no record has a link: all pages rank the same");
    }
    if outcome.stopped {
        log.warn(stopped(outcome));
    }
    if let Some(unverified) = outcome.unverified.as_ref().filter(|_| !outcome.stopped) {
        log.warn(&withheld(unverified));
    }
}

fn stopped(outcome: &IngestOutcome) -> &'static str {
    match (&outcome.snapshot, outcome.durable) {
        (None, _) => {
            "stopped at a checkpoint, without a snapshot; run the same command to continue"
        }
        (Some(_), Some(_)) => {
            "stopped at a checkpoint, with a snapshot of what was read so far; run the same command to continue: it \
            prints the byte to send the stream from"
        }
        (Some(_), None) => {
            "stopped at a checkpoint, with a snapshot of what was read so far; to continue, run the same command and \
            send the same stream from its start; for another stream, use --new-stream"
        }
    }
}

pub(super) fn report_counts(
    read: &Counters,
    pages: Option<u64>,
    seconds: f64,
    reporter: &Reporter,
) {
    let (log, remarks) = (reporter.log, &reporter.remarks);
    log.info(&format!(
        "{}, {}{} in {seconds:.1} s ({} links/s)",
        common::records(read.records),
        common::links(read.links),
        pages.map_or(String::new(), |pages| format!(
            ", {}",
            counted(pages, "new page", "new pages")
        )),
        thousands((read.links as f64 / seconds.max(1e-3)) as u64),
    ));
    let of_these = some_of([
        ("gone (404, 410)", read.gone),
        ("unchanged", read.unchanged),
        ("failed", read.failed),
    ]);
    if !of_these.is_empty() {
        log.info(&format!("records by outcome: {}", of_these.join(", ")));
    }
    let skipped = some_of(skipped(read));
    if !skipped.is_empty() {
        log.warn(&format!("skipped records: {}", skipped.join(", ")));
    }
    if let Some(message) = remarks.message() {
        log.warn(&message);
    }
    if read.other > 0 {
        log.info(&format!(
            "{} records that are not pages: requests, answers to methods other than GET, blank lines, comments and \
             the like",
            thousands(read.other)
        ));
    }
    let (out, others) = (read.out_of_scope, read.shard.other_records);
    if out > 0 {
        let out = common::records(out);
        log.info(&format!("{out} of pages outside --scope"));
    }
    if others > 0 {
        let others = common::records(others);
        log.info(&format!("{others} of other shards, passed over"));
    }
    let dropped = dropped_links(read);
    if !dropped.is_empty() {
        log.info(&format!("links not followed: {}", dropped.join(", ")));
    }
}

pub(super) fn some_of<'n>(counts: impl IntoIterator<Item = (&'n str, u64)>) -> Vec<String> {
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| format!("{} {what}", thousands(count)))
        .collect()
}

/// Describes the links that were read and not followed, by reason; reasons with a count of 0 are left out.
pub(super) fn dropped_links(read: &Counters) -> Vec<String> {
    some_of([
        ("to no page", read.links_scheme),
        ("invalid", read.links_invalid),
        ("too long", read.links_too_long),
        ("to the page itself", read.links_own),
        ("out of scope", read.links_out_of_scope),
        ("repeated", read.links_repeated),
    ])
}

pub(super) fn withheld(unverified: &Unverified) -> String {
    format!(
        "no further snapshot published: {} could not be verified from record {} on; --accept-unverified \
        publishes it anyway",
        unverified.input, unverified.from_record
    )
}

pub(super) fn memory(need: &Need) -> Value {
    let mut parts = json!(need);
    parts["total"] = need.total().into();
    parts
}

pub(super) fn read_json(read: &Counters, of: &Reporter, stopped: bool, seconds: f64) -> Value {
    json!({
        "stopped": stopped,
        "records": read.records,
        "links": read.links,
        "skipped": skipped(read).collect::<Value>(),
        "remarks": of.remarks.as_json(),
        "other": read.other,
        "out_of_scope": read.out_of_scope,
        "seconds": seconds,
    })
}

pub(super) fn ingest_json(
    outcome: &IngestOutcome,
    read: &Counters,
    certain_top: Option<u64>,
) -> Value {
    let now = &outcome.counters;
    let snapshot = outcome.snapshot.as_ref();
    let mut summary = json!({
        "nothing_to_do": outcome.nothing_to_do,
        "durable": outcome.durable,
        "new_pages": outcome.pages - outcome.pages_before,
        "checkpoints": outcome.checkpoints.count,
        "checkpoint_seconds": outcome.checkpoints.time.as_secs_f64(),
        "total_records": now.records,
        "total_links": now.links,
        "pages": outcome.pages,
        "memory": memory(&outcome.need),
        "pages_fit": outcome.fits,
        "turnovers": snapshot.map(|(_, info)| info.turnovers),
        "bound_l1": snapshot.and_then(|(_, info)| info.bound_l1()),
        "certain_top": certain_top,
        "settled": snapshot.and_then(|(_, info)| info.window.settled),
        "snapshot": snapshot.map(|(path, _)| path.display().to_string()),
    });
    if now.shard != ShardCounts::default() {
        summary["other_shards"] = read.shard.other_records.into();
    }
    summary
}

pub(super) fn settling(progress: &SettlingProgress) -> String {
    format!(
        "settling: each link followed {:.1} times, {}",
        progress.links_touched as f64 / progress.links.max(1) as f64,
        accuracy(progress.bound, Basis::Latest)
    )
}
