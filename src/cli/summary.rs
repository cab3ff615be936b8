//! Summary at the end of a run, for people and as JSON.

use cashrank_crawl::decode::Reason;
use cashrank_graph::engine::{Counters, ShardCounts};
use cashrank_graph::rank::settle::SettlingProgress;
use cashrank_ingest::ingest::IngestOutcome;
use cashrank_store::memory::Need;
use cashrank_store::store::Unverified;

use super::common::{self, Basis, accuracy, counted, thousands};
use super::remarks::Remarks;
use super::reporter::Reporter;

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

pub(super) fn skipped_json(counters: &Counters, before: &Counters) -> serde_json::Value {
    let counts = skipped_list(counters, before).into_iter();
    counts
        .map(|(reason, count)| (reason.to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) fn summary(outcome: &IngestOutcome, seconds: f64, reporter: &Reporter) {
    let log = reporter.log;
    if outcome.nothing_to_do {
        log.info("all inputs were read before: nothing to do");
        return;
    }
    let pages = outcome.pages - outcome.pages_before;
    let (now, before) = (&outcome.counters, &outcome.before);
    report_counts(now, before, Some(pages), seconds, reporter);
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
    now: &Counters,
    before: &Counters,
    pages: Option<u64>,
    seconds: f64,
    reporter: &Reporter,
) {
    let (log, remarks) = (reporter.log, &reporter.remarks);
    let records = now.records - before.records;
    let links = now.links - before.links;
    log.info(&format!(
        "{}, {}{} in {seconds:.1} s ({} links/s)",
        common::records(records),
        common::links(links),
        pages.map_or(String::new(), |pages| format!(
            ", {}",
            counted(pages, "new page", "new pages")
        )),
        thousands((links as f64 / seconds.max(1e-3)) as u64),
    ));
    let of_these = [
        ("gone (404, 410)", now.gone - before.gone),
        (remarks.unchanged(), now.unchanged - before.unchanged),
        ("failed", now.failed - before.failed),
    ];
    let of_these = some_of(&of_these);
    if !of_these.is_empty() {
        log.info(&format!("records by outcome: {}", of_these.join(", ")));
    }
    let skipped = some_of(&skipped_list(now, before));
    if !skipped.is_empty() {
        log.warn(&format!("skipped records: {}", skipped.join(", ")));
    }
    if let Some(message) = remarks.message() {
        log.warn(&message);
    }
    if now.other > before.other {
        let other = thousands(now.other - before.other);
        log.info(&format!(
            "{other} records that are not pages: requests, answers to methods other than GET, blank lines, comments and \
             the like"
        ));
    }
    if now.out_of_scope > before.out_of_scope {
        let out = now.out_of_scope - before.out_of_scope;
        log.info(&format!(
            "{} of pages outside --scope",
            common::records(out)
        ));
    }
    let others = now.shard.other_records - before.shard.other_records;
    if others > 0 {
        log.info(&format!(
            "{} of other shards, passed over",
            common::records(others)
        ));
    }
    if now.links == 0 && now.visited > 0 && records > 0 {
        log.warn("warning: no record has a link: all pages rank the same");
    }
    let dropped = dropped_links(now, before);
    if !dropped.is_empty() {
        log.info(&format!("links not followed: {}", dropped.join(", ")));
    }
}

pub(super) fn some_of(counts: &[(&str, u64)]) -> Vec<String> {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| format!("{} {what}", thousands(*count)))
        .collect()
}

/// Describes the links that were read and not followed, by reason; reasons with a count of 0 are left out.
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

pub(super) fn memory(need: &Need) -> serde_json::Value {
    let mut parts = serde_json::json!(need);
    parts["total"] = need.total().into();
    parts
}

pub(super) fn summary_json(
    outcome: &IngestOutcome,
    remarks: &Remarks,
    seconds: f64,
    certain_top: Option<u64>,
) -> serde_json::Value {
    let (now, before) = (&outcome.counters, &outcome.before);
    let snapshot = outcome.snapshot.as_ref();
    let mut summary = serde_json::json!({
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
        let others = now.shard.other_records - before.shard.other_records;
        summary["other_shards"] = others.into();
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
