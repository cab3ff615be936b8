//! Message for a command that read nothing: its first failure, and what would help.

use cashrank_base::rules::InputRules;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::IngestOutcome;

use super::common::{counted, thousands};
use super::remarks::BadRecord;
use super::reporter::Reporter;

/// Options of a run that decide what could be read.
pub struct ReadChoices {
    /// First input, or the first one that was empty.
    pub input: String,
    /// Value of `--format`, if given.
    pub format: Option<&'static str>,
    /// Rules for what is read from inputs, as they are written; empty if none was given.
    pub rules: Vec<(&'static str, String)>,
}

impl ReadChoices {
    /// Returns the choices of a command that read these inputs.
    pub fn new(
        reporter: &Reporter,
        inputs: &[InputName],
        format: Option<Format>,
        rules: &InputRules,
    ) -> ReadChoices {
        let first = inputs.first().map(ToString::to_string);
        ReadChoices {
            input: reporter.empty.clone().or(first).unwrap_or_default(),
            format: format.map(Format::name),
            rules: rules.given(),
        }
    }

    /// Formats the given rules as options.
    fn given(&self) -> String {
        let usual = InputRules::default().given();
        let given = self.rules.iter().filter(|rule| !usual.contains(rule));
        let typed: Vec<String> = given
            .map(|(setting, value)| format!("`{setting}` {value}"))
            .collect();
        typed.join(" ")
    }

    /// Returns the value of `--scope`; empty if all pages are in scope.
    fn scope(&self) -> &str {
        let scope = self.rules.iter().find(|(setting, _)| *setting == "scope");
        scope.map_or("", |(_, scope)| scope)
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

/// Composes the message about an ingest.
pub fn message(outcome: &IngestOutcome, first: Option<&BadRecord>, asked: &ReadChoices) -> String {
    let mut message = nothing_read((&outcome.counters, &outcome.before), first, asked);
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
pub fn nothing_read(
    (now, before): (&Counters, &Counters),
    first: Option<&BadRecord>,
    asked: &ReadChoices,
) -> String {
    let skipped = now.skipped_total() - before.skipped_total();
    let out = now.out_of_scope - before.out_of_scope;
    let why = match (first, skipped, out) {
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
            counted(out, "record", "records"),
            asked.scope()
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
    format!("nothing was read: {why} {}", help(out, skipped, asked))
}

fn help(out: u64, skipped: u64, asked: &ReadChoices) -> String {
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
            "Is it in the format {format}? Without --format it is recognised from the content. {inspect}"
        ),
        None => inspect,
    }
}
