//! Records that were used although something in them cannot be read: counted by reason, each with its first place.

use cashrank_crawl::decode::{Missing, Reason};
use cashrank_crawl::source::InputName;

use super::common::{counted, thousands};
use super::missing;

/// Records reported as they are read; further ones are counted only.
const SHOWN: u64 = 5;

/// Inputs whose records lack something that JSON output lists.
const INPUTS: usize = 100;

/// Those of a run.
#[derive(Debug, Default)]
pub struct Remarks {
    bad_times: u64,
    first: Option<FirstBad>,
    /// Fields that the records of inputs lack, by input.
    missing: Vec<(String, Missing)>,
    /// An input was a graph in a folder.
    graphs: bool,
}

/// Where a record is, and what is wrong with it.
#[derive(Debug)]
struct FirstBad {
    input: String,
    record: u64,
    byte: u64,
    detail: String,
}

impl Remarks {
    /// Takes a record whose time cannot be read; what is to be said of it now, if anything.
    pub fn bad_time(
        &mut self,
        input: &InputName,
        (record, byte): (u64, u64),
        detail: Option<&str>,
    ) -> Option<String> {
        self.bad_times += 1;
        self.first.get_or_insert_with(|| FirstBad {
            input: input.to_string(),
            record,
            byte,
            detail: detail.unwrap_or_default().to_owned(),
        });
        let detail = detail.filter(|_| self.bad_times <= SHOWN)?;
        Some(format!(
            "{input}: record {record} at byte {byte} used without its time: {detail}"
        ))
    }

    /// Takes an input that is read.
    pub fn begun(&mut self, input: &InputName) {
        self.graphs |= matches!(input, InputName::File(path) if path.is_dir());
    }

    /// What records count as `unchanged`.
    pub fn unchanged(&self) -> &'static str {
        if self.graphs {
            "known only: never fetched, or unchanged (304)"
        } else {
            "unchanged"
        }
    }

    /// Takes what the records of an input lack.
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

    /// All of them, for people; none: there are none.
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

    /// Returns the counts for programs, by reason.
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
