//! Faults of inputs, for people and as JSON: bad records, fields that no record has, and why nothing was read.

use cashrank_base::rules::{FieldName, InputRules};
use cashrank_crawl::decode::{Missing, Reason};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::IngestOutcome;
use cashrank_ingest::load::LoadReport;
use serde_json::{Value, json};

use super::common::{self, Exit, as_options, counted, say, thousands};
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
}

/// Position and fault of a record.
#[derive(Debug, serde::Serialize)]
struct BadRecord {
    input: String,
    record: u64,
    byte: u64,
    #[serde(skip)]
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
        let mut all = json!({});
        if !self.missing.is_empty() {
            let inputs = self.missing.iter().map(|(input, missing)| {
                let mut json = missing_json(missing);
                json["input"] = input.as_str().into();
                json
            });
            all["missing"] = inputs.collect();
        }
        if let Some(first) = &self.first_timeless {
            let bad = json!({"count": self.timeless(), "first": first});
            all[Reason::BadTime.name()] = bad;
        }
        all
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

fn has_links(missing: &Missing) -> bool {
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

/// Returns the warning that lines of a list of links return to an earlier source.
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

/// Returns whether a completed run, which counted `read`, read nothing of its inputs, one of which may be `empty`.
pub fn is_nothing(outcome: &IngestOutcome, read: &Counters, empty: bool) -> bool {
    let idle = outcome.nothing_to_do && !empty
        || outcome.stopped
        || read.records > 0
        // All records of an input may belong to other shards.
        || read.shard.other_records > 0;
    let passed_over = read.skipped_total() > 0 || read.other > 0 || read.out_of_scope > 0;
    !idle && (passed_over || empty || outcome.pages == 0)
}

/// Says, after a blank, how to start over in a store without pages, and which of its rules differ from the defaults.
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
    let why = match (&reporter.remarks.first_skipped, skipped, out) {
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
