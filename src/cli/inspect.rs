//! `cashrank inspect`: what an ingest would read in an input.

use std::io::{self, Write};

use cashrank_crawl::decode::Reason;
use cashrank_crawl::source::{Compression, InputName};
use cashrank_ingest::inspect::{
    DistinctCount, FetchTimeStats, InspectReport, Inspection, Odd, RecordPosition, SampleRecord,
    inspect,
};
use serde_json::{Value, json};

use super::common::{
    self, Exit, MemoryArg, as_options, positive, print, say, shown, thousands, time, write_json,
};
use super::inputs::ReadArgs;
use super::summary::{dropped_links, missing_json, missing_text, some_of, ungrouped};
use super::table::FactList;

const EXAMPLES: &str = "\
Examples:
  cashrank inspect crawl.warc.gz
  cashrank inspect CC-MAIN-*.warc.wat.gz --records 10000 -n 10
  curl -s https://example.org/crawl.jsonl.zst | cashrank inspect -
  cashrank inspect crawl.jsonl --json | jq '.skipped'

Nothing is written. With --json there is one line per input.";

/// Show what `ingest` would read from its inputs, and anything unusual.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// Stop after N records of each input, of any kind [default: read all].
    #[arg(long, value_name = "N", value_parser = positive)]
    records: Option<u64>,
    /// Show the first N crawl records as they are read.
    #[arg(
        short = 'n',
        long = "count",
        alias = "first",
        value_name = "N",
        default_value_t = 3
    )]
    first: usize,
    /// Print each report as one line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    read: ReadArgs,
}

impl InspectArgs {
    /// Inspects one input after another; an unreadable one does not stop the others.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut read = self.read.options()?;
        read.limits.memory = self.memory.budget();
        let how = Inspection {
            read,
            records: self.records,
            first: self.first,
        };
        let mut exit = Exit::Done;
        for (at, input) in self.read.names()?.iter().enumerate() {
            let found = match inspect(input, &how) {
                Ok(report) => self.print(input, &report, at > 0)?,
                Err(error) => {
                    say!("cashrank: {error}");
                    Exit::from(&error)
                }
            };
            // Of two equally severe codes, the first counts.
            exit = std::cmp::max_by_key(found, exit, severity);
        }
        Ok(exit)
    }

    fn print(
        &self,
        input: &InputName,
        report: &InspectReport,
        apart: bool,
    ) -> anyhow::Result<Exit> {
        print(|out| {
            if self.json {
                return write_json(out, &as_json(input, report));
            }
            if apart {
                out.write_all(b"\n")?;
            }
            write_plain(out, input, report)
        })?;
        Ok(match report {
            report if report.damage.is_some() => Exit::Corrupt,
            report if report.counters.skipped_total() > 0 => Exit::Skipped,
            report if report.whole && report.counters.records == 0 => Exit::Skipped,
            _ => Exit::Done,
        })
    }
}

/// Orders exit codes: an error, then damage, then skipped records.
fn severity(exit: &Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Skipped => 1,
        Exit::Corrupt => 2,
        _ => 3,
    }
}

fn write_plain(
    out: &mut dyn Write,
    input: &InputName,
    report: &InspectReport,
) -> anyhow::Result<()> {
    writeln!(out, "{input}: {}", packed(report))?;
    let mut facts = FactList::new(out, "  ", 9);
    let format = match report.format {
        Some(format) => format!("{} ({})", format.name(), report.recognised_by),
        None => "none: it holds nothing".into(),
    };
    facts.add("format:", format)?;
    facts.add("records:", records(report))?;
    if !report.other.is_empty() {
        let other = report.other.iter().map(|(kind, count)| (*kind, *count));
        facts.add("no pages:", list(some_of(other)))?;
    }
    let statuses = report.statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("{} with {status}", thousands(*count)));
    let odd = some_of([
        ("with others", report.odd_statuses),
        ("without", report.no_status),
    ]);
    facts.add("statuses:", list(statuses.chain(odd)))?;
    facts.add("links:", links(report))?;
    facts.add("pages:", pages(report))?;
    facts.add("times:", times(&report.times))?;
    for one in &report.first {
        write_first(&mut facts, one)?;
    }
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|(reason, odd)| (format!("skipped as {}", reason.name()), odd));
    let times = [
        ("back in time".into(), &report.times.back),
        (
            "used without their times: bad-time".into(),
            &report.times.unread,
        ),
    ];
    for (what, odd) in skipped.chain(times).filter(|(_, odd)| odd.count > 0) {
        facts.add("odd:", format!("{} {what}", thousands(odd.count)))?;
        for place in &odd.first {
            let detail = place.detail.as_ref();
            let detail = detail.map(|detail| format!(": {}", as_options(detail)));
            facts.add("", position(place) + &detail.unwrap_or_default())?;
        }
    }
    if let Some(damage) = &report.damage {
        let records = thousands(report.records);
        facts.add("damage:", format!("after {records} records: {damage}"))?;
    } else if !report.whole {
        let stopped = "as --records asks; the rest was not read";
        facts.add("stopped:", stopped.to_owned())?;
    }
    facts.add("unread:", report.missing.as_ref().map(missing_text))?;
    if report.ungrouped > 0 {
        facts.add("order:", ungrouped(report.ungrouped))?;
    }
    facts.add("note:", report.caveat.map(as_options))?;
    Ok(facts.add("nothing:", nothing(report).map(str::to_owned))?)
}

fn packed(report: &InspectReport) -> String {
    let members = report.members.zip(report.unchecked);
    let bytes = |n| format!("{} bytes", thousands(n));
    let unpacked = bytes(report.bytes);
    let parts = |what: &str| match members {
        Some((all, 0)) => format!("{what}, {} whole, all with checksums", thousands(all)),
        Some((all, unchecked)) => format!(
            "{what}, {} whole, {} without a checksum",
            thousands(all),
            thousands(unchecked)
        ),
        None => what.into(),
    };
    match report.compression {
        None => "not read".into(),
        Some(Compression::Plain) => format!("plain, {unpacked}"),
        Some(Compression::Table) => format!("a table, {unpacked} as text"),
        Some(packed) => {
            let parts = match packed {
                Compression::Gzip => parts("gzip members"),
                _ => parts("zstd frames"),
            };
            format!("{parts}; {}, {unpacked} unpacked", bytes(report.compressed))
        }
    }
}

fn records(report: &InspectReport) -> String {
    let of = some_of([
        ("crawled", report.visits()),
        ("gone", report.counters.gone),
        ("unchanged", report.counters.unchanged - report.known_only),
        ("known only", report.known_only),
        ("failed", report.counters.failed),
        ("out of scope", report.counters.out_of_scope),
        ("skipped", report.counters.skipped_total()),
        ("not pages", report.counters.other),
    ]);
    let total = thousands(report.records);
    if of.is_empty() {
        total
    } else {
        format!("{total}: {}", list(of))
    }
}

fn links(report: &InspectReport) -> String {
    let followed = format!(
        "{} followed, at most {} of a page",
        thousands(report.followed),
        thousands(report.followed_most)
    );
    let parts = [followed]
        .into_iter()
        .chain(dropped_links(&report.counters));
    format!("{} read: {}", thousands(report.counters.links), list(parts))
}

fn pages(report: &InspectReport) -> String {
    let mut text = format!(
        "{} distinct, {} of them in crawl records",
        distinct(report.pages),
        distinct(report.fetched)
    );
    if let Some(hosts) = report.hosts {
        text += &format!("; {} hosts", distinct(hosts));
    }
    if report.again > 0 {
        text += &format!("; {} of a page that had one", common::records(report.again));
    }
    text
}

fn distinct(count: DistinctCount) -> String {
    let at_least = if count.at_least { "at least " } else { "" };
    format!("{at_least}{}", thousands(count.count))
}

fn times(times: &FetchTimeStats) -> String {
    let range = times.earliest.map(|_| {
        let [earliest, latest] = [times.earliest, times.latest].map(time);
        format!("{earliest} to {latest}")
    });
    let none = some_of([("records without", times.none)]);
    list(range.into_iter().chain(none))
}

fn write_first(facts: &mut FactList<'_>, first: &SampleRecord) -> io::Result<()> {
    let about = [
        Some(first.what.into()),
        first.status.map(|status| status.to_string()),
        first.time.map(|at| time(Some(at))),
    ];
    let about = list(about.into_iter().flatten());
    let (url, place) = (shown(&first.url), position(&first.place));
    facts.add("first:", format!("{url} ({about}; {place})"))?;
    let (read, followed) = (common::links(first.read), thousands(first.followed));
    facts.add("", format!("{read} read, {followed} followed"))?;
    for link in &first.links {
        facts.add("", format!("-> {}", shown(link)))?;
    }
    let rest = first.followed - first.links.len() as u64;
    let rest = (rest > 0).then(|| format!("-> and {} more", thousands(rest)));
    facts.add("", rest)
}

fn position(place: &RecordPosition) -> String {
    format!("record {} at byte {}", thousands(place.record), place.byte)
}

/// Returns why a ranking of this input would be empty; `None` if it would not.
fn nothing(report: &InspectReport) -> Option<&'static str> {
    if report.visits() == 0 && report.counters.out_of_scope > 0 {
        Some("no page in --scope was fetched in these records: there are no links to rank by")
    } else if report.visits() == 0 {
        Some("no page was fetched in these records: there are no links to rank by")
    } else if report.counters.links == 0 {
        Some("pages were fetched, but they have no known links: all would rank the same")
    } else if report.followed == 0 {
        Some("there are links, but none to another page: all would rank the same")
    } else {
        None
    }
}

fn list(parts: impl IntoIterator<Item = String>) -> String {
    let list = parts.into_iter().collect::<Vec<_>>().join(", ");
    if list.is_empty() { "none".into() } else { list }
}

fn as_json(input: &InputName, report: &InspectReport) -> Value {
    let count = |count: DistinctCount| json!({"count": count.count, "at_least": count.at_least});
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|(reason, odd)| (reason.name(), odd_json(odd)));
    let (counters, times) = (&report.counters, &report.times);
    let remarks = match times.unread.count {
        0 => json!({}),
        _ => json!({Reason::BadTime.name(): odd_json(&times.unread)}),
    };
    json!({
        "input": input.to_string(),
        "compression": report.compression.map(|packed| packed.to_string()),
        "compressed_bytes": report.compressed,
        "bytes": report.bytes,
        "members": report.members,
        "members_unchecked": report.unchecked,
        "format": report.format.map(|format| format.name()),
        "format_told_by": report.recognised_by,
        "whole": report.whole,
        "damage": report.damage.as_ref().map(|damage| json!({
            "what": damage.to_string(),
            "records_before": report.records,
            "member_at": damage.member.map(|member| member.compressed),
            "verified_bytes": damage.unverified_from,
        })),
        "records": report.records,
        "visits": report.visits(),
        "gone": counters.gone,
        "unchanged": counters.unchanged - report.known_only,
        "known_only": report.known_only,
        "failed": counters.failed,
        "out_of_scope": counters.out_of_scope,
        "skipped": skipped.collect::<Value>(),
        "remarks": remarks,
        "other": report.other,
        "statuses": report.statuses,
        "statuses_odd": report.odd_statuses,
        "statuses_none": report.no_status,
        "links": {
            "read": counters.links,
            "followed": report.followed,
            "most": report.followed_most,
            "scheme": counters.links_scheme,
            "invalid": counters.links_invalid,
            "too_long": counters.links_too_long,
            "own": counters.links_own,
            "repeated": counters.links_repeated,
            "out_of_scope": counters.links_out_of_scope,
        },
        "pages": count(report.pages),
        "pages_fetched": count(report.fetched),
        "records_again": report.again,
        "ungrouped": report.ungrouped,
        "hosts": report.hosts.map(count),
        "times": {
            "earliest": times.earliest.map(|at| time(Some(at))),
            "latest": times.latest.map(|at| time(Some(at))),
            "none": times.none,
            "back": odd_json(&times.back),
        },
        "first": report.first.iter().map(first_json).collect::<Vec<_>>(),
        "missing": report.missing.as_ref().map(missing_json),
        "caveat": report.caveat.map(as_options),
        "nothing": nothing(report),
    })
}

fn place_json(place: &RecordPosition) -> Value {
    let detail = place.detail.as_deref().map(as_options);
    json!({"record": place.record, "byte": place.byte, "detail": detail})
}

fn odd_json(odd: &Odd) -> Value {
    json!({"count": odd.count, "first": odd.first.iter().map(place_json).collect::<Vec<_>>()})
}

fn first_json(first: &SampleRecord) -> Value {
    json!({
        "record": first.place.record,
        "byte": first.place.byte,
        "url": first.url,
        "what": first.what,
        "status": first.status,
        "time": first.time.map(|at| time(Some(at))),
        "links_read": first.read,
        "links_followed": first.followed,
        "links": first.links,
    })
}
