//! Remarks on records that were used although a part of them is unreadable: counts by reason, and the first of each.

use cashrank_crawl::decode::{Missing, Reason};
use cashrank_crawl::source::InputName;

use super::common::{counted, thousands};
use super::missing;

/// Maximum number of records reported while reading; further ones are only counted.
const SHOWN: u64 = 5;

/// Maximum number of inputs that the JSON output lists with missing fields.
const INPUTS: usize = 100;

/// Remarks of a run.
#[derive(Debug, Default)]
pub struct Remarks {
    bad_times: u64,
    first: Option<BadRecord>,
    /// Missing fields, by input.
    missing: Vec<(String, Missing)>,
    /// True if an input was a graph in a folder.
    graphs: bool,
}

/// Position of a record, and what is wrong with it.
#[derive(Debug)]
pub struct BadRecord {
    pub input: String,
    pub record: u64,
    pub byte: u64,
    pub reason: Reason,
    pub detail: String,
}

impl Remarks {
    /// Counts a record with an unreadable time. Returns the message to print now, if any.
    pub fn bad_time(
        &mut self,
        input: &InputName,
        (record, byte): (u64, u64),
        detail: Option<&str>,
    ) -> Option<String> {
        self.bad_times += 1;
        self.first.get_or_insert_with(|| BadRecord {
            input: input.to_string(),
            record,
            byte,
            reason: Reason::BadTime,
            detail: detail.unwrap_or_default().to_owned(),
        });
        let detail = detail.filter(|_| self.bad_times <= SHOWN)?;
        Some(format!(
            "{input}: record {record} at byte {byte} used without its time: {detail}"
        ))
    }

    /// Notes the start of an input.
    pub fn begun(&mut self, input: &InputName) {
        self.graphs |= matches!(input, InputName::File(path) if path.is_dir());
    }

    /// Describes the records that count as `unchanged`.
    pub fn unchanged(&self) -> &'static str {
        if self.graphs {
            "known only: never fetched, or unchanged (304)"
        } else {
            "unchanged"
        }
    }

    /// Notes the fields that the records of an input lack.
    pub fn missing(&mut self, input: &InputName, missing: &Missing) {
        if self.missing.len() < INPUTS {
            self.missing.push((input.to_string(), missing.clone()));
        }
    }

    /// Returns whether the records of an input lack their links.
    pub fn lack_links(&self) -> bool {
        self.missing
            .iter()
            .any(|(_, missing)| !missing::has_links(missing))
    }

    /// Formats a summary for people; `None` without remarks.
    pub fn message(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!(
            "used without a time, because it cannot be read: {} ({}); the first is record {} of {}, at byte {}: {}",
            counted(self.bad_times, "record", "records"),
            Reason::BadTime.name(),
            thousands(first.record),
            first.input,
            first.byte,
            first.detail
        ))
    }

    /// Returns the counts by reason as JSON.
    pub fn as_json(&self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        if !self.missing.is_empty() {
            let inputs = self.missing.iter();
            let inputs: Vec<_> = inputs
                .map(|(input, missing)| {
                    let mut json = missing::as_json(missing);
                    json["input"] = input.as_str().into();
                    json
                })
                .collect();
            all.insert("missing".into(), inputs.into());
        }
        let Some(first) = &self.first else {
            return all.into();
        };
        let first = serde_json::json!({
            "input": first.input,
            "record": first.record,
            "byte": first.byte,
            "detail": first.detail,
        });
        let bad = serde_json::json!({"count": self.bad_times, "first": first});
        all.insert(Reason::BadTime.name().into(), bad);
        all.into()
    }
}
