//! Faults of inputs, for people and as JSON: records that were used although a part of them is unreadable, fields that
//! no record has, and why nothing was read.

use cashrank_base::rules::{FieldName, InputRules};
use cashrank_crawl::decode::{Missing, Reason};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::IngestOutcome;
use cashrank_ingest::load::LoadReport;
use serde_json::{Value, json};

use super::common::{self, Exit, as_options, counted, report_skipped, say, thousands};
use super::reporter::Reporter;

/// Maximum number of records that are shown while reading, for each reason; further ones are only counted.
const SHOWN: u64 = 5;

/// Maximum number of inputs that the JSON output lists with missing fields.
const INPUTS: usize = 100;

#[derive(Debug, Default)]
pub struct Remarks {
    counts: [u64; Reason::ALL.len()],
    first_skipped: Option<BadRecord>,
    /// First record that was used without its time.
    first_timeless: Option<BadRecord>,
    missing: Vec<(String, Missing)>,
    graphs: bool,
}

/// Position and fault of a record.
#[derive(Debug)]
struct BadRecord {
    input: String,
    record: u64,
    byte: u64,
    reason: Reason,
    detail: String,
}

impl Remarks {
    /// Counts a record that was skipped, or used without its time. Returns the message to print, if any.
    pub fn count(
        &mut self,
        input: &InputName,
        (record, byte): (u64, u64),
        reason: Reason,
        detail: Option<&str>,
    ) -> Option<String> {
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
        let count = &mut self.counts[reason as usize];
        *count += 1;
        let detail = detail.filter(|_| *count <= SHOWN)?;
        let what = match reason {
            Reason::BadTime => "used without its time".into(),
            reason => format!("skipped: {}", reason.name()),
        };
        Some(format!(
            "{input}: record {record} at byte {byte} {what}: {detail}"
        ))
    }

    pub fn not_all_shown(&self) -> impl Iterator<Item = Reason> {
        let counts = Reason::ALL.into_iter().zip(self.counts);
        let more = counts.filter(|(reason, count)| *reason != Reason::BadTime && *count > SHOWN);
        more.map(|(reason, _)| reason)
    }

    pub fn begun(&mut self, input: &InputName) {
        self.graphs |= matches!(input, InputName::File(path) if path.is_dir());
    }

    pub fn unchanged(&self) -> &'static str {
        if self.graphs {
            "known only: never fetched, or unchanged (304)"
        } else {
            "unchanged"
        }
    }

    pub fn missing(&mut self, input: &InputName, missing: &Missing) {
        if self.missing.len() < INPUTS {
            self.missing.push((input.to_string(), missing.clone()));
        }
    }

    pub fn lack_links(&self) -> bool {
        self.missing.iter().any(|(_, missing)| !has_links(missing))
    }

    pub fn message(&self) -> Option<String> {
        let first = self.first_timeless.as_ref()?;
        Some(format!(
            "{}; the first is record {} of {}, at byte {}: {}",
            used_without_time(self.timeless()),
            thousands(first.record),
            first.input,
            first.byte,
            first.detail
        ))
    }

    fn timeless(&self) -> u64 {
        self.counts[Reason::BadTime as usize]
    }

    pub fn as_json(&self) -> Value {
        let mut all = serde_json::Map::new();
        if !self.missing.is_empty() {
            let inputs = self.missing.iter();
            let inputs: Vec<_> = inputs
                .map(|(input, missing)| {
                    let mut json = missing_json(missing);
                    json["input"] = input.as_str().into();
                    json
                })
                .collect();
            all.insert("missing".into(), inputs.into());
        }
        let Some(first) = &self.first_timeless else {
            return all.into();
        };
        let first = json!({
            "input": first.input,
            "record": first.record,
            "byte": first.byte,
            "detail": first.detail,
        });
        let bad = json!({"count": self.timeless(), "first": first});
        all.insert(Reason::BadTime.name().into(), bad);
        all.into()
    }
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
    let lacks: Vec<String> = lacks.collect();
    let alike = if has_links(missing) {
        ""
    } else {
        " Without links all pages rank the same."
    };
    format!(
        "in the first {}: {}.{alike} {}",
        common::pages(missing.records),
        lacks.join("; "),
        unread(missing)
    )
}

fn unread(missing: &Missing) -> String {
    let shown = missing.unread.iter().take(UNREAD_SHOWN);
    let shown: Vec<String> = shown
        .map(|(name, count)| format!("{name:?} ({})", thousands(*count)))
        .collect();
    let more = match missing.unread.len().saturating_sub(UNREAD_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Fields that are not read: {}{more}. --field links=NAME names the one with the links; an existing store keeps \
         its field names, so start a new one",
        shown.join(", ")
    )
}

fn has_links(missing: &Missing) -> bool {
    missing
        .fields
        .iter()
        .all(|(field, _)| *field != FieldName::Links)
}

pub fn missing_json(missing: &Missing) -> Value {
    let fields = missing.fields.iter();
    let fields: serde_json::Map<_, _> = fields
        .map(|(field, likely)| (field.name().to_owned(), json!(likely)))
        .collect();
    let unread: serde_json::Map<_, _> = missing
        .unread
        .iter()
        .map(|(name, count)| (name.clone(), json!(count)))
        .collect();
    json!({"records": missing.records, "fields": fields, "unread": unread})
}

/// Reports inputs that lack fields, a caveat about their formats, and lines that return to a source.
pub fn report_remarks(report: &LoadReport) {
    for (input, missing) in &report.missing {
        say!("warning: {input}: {}", missing_text(missing));
    }
    if let Some(caveat) = report.caveat {
        say!("{}", as_options(caveat));
    }
    if report.ungrouped > 0 {
        say!("{}", ungrouped(report.ungrouped));
    }
}

fn used_without_time(records: u64) -> String {
    format!(
        "used without a time, because it cannot be read: {} ({})",
        common::records(records),
        Reason::BadTime.name()
    )
}

/// Returns the warning that lines of a list of links return to an earlier source.
pub fn ungrouped(sources: u64) -> String {
    format!(
        "{} to an earlier source: each group of lines counts as a crawl of its own. If the file is not grouped by source, \
         sort it first (edges: sort -s -k1,1; crawl-log: sort -s -k6,6; csv-links: sort -s -t, -k1,2)",
        counted(sources, "line returns", "lines return")
    )
}

pub fn report_loaded(report: &LoadReport) -> Exit {
    report_remarks(report);
    if report.timeless > 0 {
        say!("{}", used_without_time(report.timeless));
    }
    if report.skipped > 0 {
        report_skipped(report.skipped);
        return Exit::Skipped;
    }
    Exit::Done
}

/// Choices that determine what a run can read.
pub struct ReadChoices<'a> {
    /// First empty input, or else the first input.
    input: String,
    format: Option<Format>,
    rules: &'a InputRules,
    first_bad: Option<&'a BadRecord>,
}

impl ReadChoices<'_> {
    pub fn new<'a>(
        reporter: &'a Reporter,
        inputs: &[InputName],
        format: Option<Format>,
        rules: &'a InputRules,
    ) -> ReadChoices<'a> {
        let first = inputs.first().map(ToString::to_string);
        ReadChoices {
            input: reporter.empty.clone().or(first).unwrap_or_default(),
            format,
            rules,
            first_bad: reporter.remarks.first_skipped.as_ref(),
        }
    }

    /// Formats the rules that differ from the defaults as options.
    fn given(&self) -> String {
        let usual = InputRules::default().given();
        let given = self.rules.given().into_iter();
        let given = given.filter(|rule| !usual.contains(rule));
        let typed: Vec<String> = given
            .map(|(setting, value)| format!("`{setting}` {value}"))
            .collect();
        typed.join(" ")
    }
}

/// Returns whether a completed run read nothing of its inputs; `empty` says that one of them was empty.
pub fn is_nothing(outcome: &IngestOutcome, empty: bool) -> bool {
    let (now, before) = (&outcome.counters, &outcome.before);
    // All records of an input may belong to other shards.
    let other_shards = now.shard.other_records > before.shard.other_records;
    let idle = outcome.nothing_to_do && !empty
        || outcome.stopped
        || now.records > before.records
        || other_shards;
    let passed_over = now.skipped_total() > before.skipped_total()
        || now.other > before.other
        || now.out_of_scope > before.out_of_scope;
    !idle && (passed_over || empty || outcome.pages == 0)
}

pub fn nothing_text(outcome: &IngestOutcome, asked: &ReadChoices<'_>) -> String {
    let mut message = nothing_read((&outcome.counters, &outcome.before), asked);
    if outcome.pages == 0 {
        message.push_str(" The store has no pages yet: run the command again with other options, and it starts over.");
        let given = asked.given();
        if !given.is_empty() {
            message.push_str(&format!(" Options left out stay as they were ({given})."));
        }
    }
    message
}

/// Explains why nothing was read, by the counts after and before, and what would help.
pub fn nothing_read((now, before): (&Counters, &Counters), asked: &ReadChoices<'_>) -> String {
    let skipped = now.skipped_total() - before.skipped_total();
    let out = now.out_of_scope - before.out_of_scope;
    let why = match (asked.first_bad, skipped, out) {
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
            asked.rules.scope
        ),
        (_, _, _) if now.other > before.other => format!(
            "everything that was read is {}; no record is of a crawled page.",
            counted(
                now.other - before.other,
                "item that is not a page",
                "items that are not pages"
            )
        ),
        _ => format!("{} is empty.", asked.input),
    };
    format!(
        "nothing was read: {why} {}",
        nothing_help(out, skipped, asked)
    )
}

fn nothing_help(out: u64, skipped: u64, asked: &ReadChoices<'_>) -> String {
    let inspect = if asked.input == "-" {
        "Keep the stream in a file, and `cashrank inspect FILE` shows what is in it.".into()
    } else {
        format!("`cashrank inspect {}` shows what is in it.", asked.input)
    };
    match asked.format {
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
    }
}
