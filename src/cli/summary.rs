//! Summary at the end of a run and faults of its inputs, for people and as JSON: bad records, fields that no record has,
//! and why nothing was read.

use cashrank_base::rules::{FieldName, InputRules};
use cashrank_crawl::decode::{Missing, Reason};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::{Counters, ShardCounts};
use cashrank_graph::rank::settle::SettlingProgress;
use cashrank_ingest::ingest::IngestOutcome;
use cashrank_ingest::load::LoadReport;
use cashrank_store::memory::Need;
use cashrank_store::store::Unverified;
use serde_json::{Value, json};

use super::common::{self, Exit, as_options, counted, say, thousands};
use super::levels::{Basis, accuracy};
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
    let log = reporter.log;
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
    if let Some(first) = &reporter.first_timeless {
        log.warn(&format!(
            "{}; the first is record {} of {}, at byte {}: {}",
            used_without_time(reporter.timeless()),
            thousands(first.record),
            first.input,
            first.byte,
            first.detail
        ));
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
    let mut remarks = json!({});
    if !of.missing.is_empty() {
        remarks["missing"] = of.missing.clone().into();
    }
    if let Some(first) = &of.first_timeless {
        let bad = json!({"count": of.timeless(), "first": first});
        remarks[Reason::BadTime.name()] = bad;
    }
    json!({
        "stopped": stopped,
        "records": read.records,
        "links": read.links,
        "skipped": skipped(read).collect::<Value>(),
        "remarks": remarks,
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

const UNREAD_SHOWN: usize = 12;

pub fn missing_text(missing: &Missing) -> String {
    let lacks = missing.fields.iter().map(|(field, likely)| {
        let field = field.name();
        match likely {
            Some(name) => format!("no `{field}`: {name:?} may have it (--field {field}={name})"),
            None => format!("no `{field}`"),
        }
    });
    let lacks = lacks.collect::<Vec<_>>().join("; ");
    let alike = if has_links(missing) {
        ""
    } else {
        " Without links all pages rank the same."
    };
    let unread = missing.unread.iter().take(UNREAD_SHOWN);
    let unread = unread.map(|(name, count)| format!("{name:?} ({})", thousands(*count)));
    let unread = unread.collect::<Vec<_>>().join(", ");
    let more = match missing.unread.len().saturating_sub(UNREAD_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "in the first {}: {lacks}.{alike} Fields that are not read: {unread}{more}. --field links=NAME names the one with \
        the links; an existing store keeps its field names, so start a new one",
        common::pages(missing.records)
    )
}

pub fn has_links(missing: &Missing) -> bool {
    let mut fields = missing.fields.iter();
    fields.all(|(field, _)| *field != FieldName::Links)
}

pub fn missing_json(missing: &Missing) -> Value {
    let fields = missing.fields.iter();
    let fields = fields.map(|(field, likely)| (field.name(), json!(likely)));
    let unread = missing.unread.iter().cloned();
    json!({
        "records": missing.records,
        "fields": fields.collect::<Value>(),
        "unread": unread.collect::<Value>(),
    })
}

fn used_without_time(records: u64) -> String {
    format!(
        "used without a time, because it cannot be read: {} ({})",
        common::records(records),
        Reason::BadTime.name()
    )
}

pub fn ungrouped(sources: u64) -> String {
    format!(
        "{} to an earlier source: each group of lines counts as a crawl of its own. If the file is not grouped by source, \
         sort it first (edges: sort -s -k1,1; crawl-log: sort -s -k6,6; csv-links: sort -s -t, -k1,2)",
        counted(sources, "line returns", "lines return")
    )
}

/// Reports inputs that lack fields, a caveat about their formats, lines that return to a source, and skipped records.
pub fn report_loaded(report: &LoadReport) -> Exit {
    for (input, missing) in &report.missing {
        say!("warning: {input}: {}", missing_text(missing));
    }
    if let Some(caveat) = report.caveat {
        say!("{}", as_options(caveat));
    }
    if report.ungrouped > 0 {
        say!("{}", ungrouped(report.ungrouped));
    }
    if report.timeless > 0 {
        say!("{}", used_without_time(report.timeless));
    }
    if report.skipped > 0 {
        let were = if report.skipped == 1 { "was" } else { "were" };
        say!("{} {were} skipped", common::records(report.skipped));
        return Exit::Skipped;
    }
    Exit::Done
}

/// Returns whether a completed run found no record to use. `read` has its counts; `empty`: an input was empty.
pub fn is_nothing(outcome: &IngestOutcome, read: &Counters, empty: bool) -> bool {
    let idle = outcome.nothing_to_do && !empty
        || outcome.stopped
        || read.records > 0
        // All records of an input may belong to other shards.
        || read.shard.other_records > 0;
    let passed_over = read.skipped_total() > 0 || read.other > 0 || read.out_of_scope > 0;
    !idle && (passed_over || empty || outcome.pages == 0)
}

/// Returns advice, after a blank, to start over in a store without pages, with its rules that are not the defaults.
pub fn start_over(rules: &InputRules) -> String {
    let usual = InputRules::default().given();
    let given = rules.given().into_iter();
    let given = given.filter(|rule| !usual.contains(rule));
    let given = given.map(|(setting, value)| format!("`{setting}` {value}"));
    let kept = match &*given.collect::<Vec<_>>().join(" ") {
        "" => String::new(),
        given => format!(" Options left out stay as they were ({given})."),
    };
    format!(
        " The store has no pages yet: run the command again with other options, and it starts over.{kept}"
    )
}

/// Explains why a run read nothing, by what it counted, and what would help.
pub fn nothing_read(
    reporter: &Reporter,
    read: &Counters,
    inputs: &[InputName],
    format: Option<Format>,
    rules: &InputRules,
) -> String {
    let first = inputs.first().map(ToString::to_string);
    let input = reporter.empty.clone().or(first).unwrap_or_default();
    let (skipped, out) = (read.skipped_total(), read.out_of_scope);
    let why = match (&reporter.first_skipped, skipped, out) {
        (Some(place), 1.., _) => format!(
            "no record could be used. The first of {}: {}: record {} at byte {}: {}: {}.",
            thousands(skipped),
            place.input,
            place.record,
            place.byte,
            place.reason.name(),
            place.detail
        ),
        (_, _, 1..) => format!(
            "everything that was read is {} of pages outside --scope {}.",
            common::records(out),
            rules.scope
        ),
        _ if read.other > 0 => format!(
            "everything that was read is {}; no record is of a crawled page.",
            counted(
                read.other,
                "item that is not a page",
                "items that are not pages"
            )
        ),
        _ => format!("{input} is empty."),
    };
    let inspect = if input == "-" {
        "Keep the stream in a file, and `cashrank inspect FILE` shows what is in it.".into()
    } else {
        format!("`cashrank inspect {input}` shows what is in it.")
    };
    let help = match format {
        _ if out > skipped => {
            "Use a --scope that matches the URLs of the crawl: host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN; url:* matches \
            all."
                .into()
        }
        Some(format) => format!(
            "Is it in the format {}? Without --format it is recognised from the content. {inspect}",
            format.name()
        ),
        None => inspect,
    };
    format!("nothing was read: {why} {help}")
}
