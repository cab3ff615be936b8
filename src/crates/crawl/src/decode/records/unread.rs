//! Detector of unread fields, which may hold a URL, links, time or status under another name if no page has one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::names::FieldNameMap;
use crate::decode::time;
use crate::rules::FieldName;

pub(super) const LOOKED_AT: u64 = 1000;
const NAMES: usize = 100;
const NAME_BYTES: usize = 100;
const RECORD_BYTES: usize = 1 << 20;

pub struct Unread {
    names: FieldNameMap,
    records: u64,
    /// True for each of [`SOUGHT`] that any page had.
    has: [bool; SOUGHT.len()],
    /// Number of values of each other field, and of those that could be of each of [`SOUGHT`].
    others: BTreeMap<String, (u64, [u64; SOUGHT.len()])>,
}

const SOUGHT: [FieldName; 4] = [
    FieldName::Url,
    FieldName::Links,
    FieldName::FetchedAt,
    FieldName::Status,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Number of pages examined: the first records without a status, or with one of 200 to 299.
    pub records: u64,
    /// Missing fields, each with the name that probably holds it, if there is one.
    pub fields: Vec<(FieldName, Option<String>)>,
    pub unread: Vec<(String, u64)>,
}

impl Unread {
    pub fn by(names: FieldNameMap) -> Unread {
        Unread {
            names,
            records: 0,
            has: [false; SOUGHT.len()],
            others: BTreeMap::new(),
        }
    }

    /// Examines a record; returns `true` once enough were seen.
    pub fn look(&mut self, text: &[u8]) -> bool {
        if text.len() <= RECORD_BYTES {
            let text = super::array_item(text);
            let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
            if let Ok(object) = serde_json::from_slice(text) {
                self.see(&object);
            }
        }
        self.records >= LOOKED_AT
    }

    fn see(&mut self, object: &Map<String, Value>) {
        let field = |name: &str| self.names.record.field(name).map(|known| known.field);
        // Failures, unchanged pages and redirects have no links and need none.
        let is_page = |(name, value): (&String, &Value)| {
            field(name) != Some(FieldName::Status)
                || status(value).is_none_or(|status| (200..300).contains(&status))
        };
        if !object.iter().all(is_page) {
            return;
        }
        self.records += 1;
        for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            let Some(known) = self.names.record.field(name) else {
                self.see_other(name, value);
                continue;
            };
            let field = match known.field {
                FieldName::FetchedAtUtc => FieldName::FetchedAt,
                field => field,
            };
            for (has, sought) in self.has.iter_mut().zip(SOUGHT) {
                *has |= field == sought;
            }
        }
    }

    fn see_other(&mut self, name: &str, value: &Value) {
        let is_new = !self.others.contains_key(name);
        if name.len() > NAME_BYTES || (is_new && self.others.len() == NAMES) {
            return;
        }
        let (count, fits) = self.others.entry(name.to_owned()).or_default();
        *count += 1;
        for (fits, sought) in fits.iter_mut().zip(SOUGHT) {
            *fits += u64::from(could_be(sought, &name.to_ascii_lowercase(), value));
        }
    }

    /// Returns the fields that all pages lack; `None` without pages, or if nothing is missing or no unread field fits.
    pub fn missing(&self) -> Option<Missing> {
        let mut fields = Vec::new();
        for (at, sought) in SOUGHT.into_iter().enumerate() {
            let likely = self.others.iter().filter(|(_, (_, fits))| fits[at] > 0);
            let likely = likely.max_by_key(|(_, (_, fits))| fits[at]);
            let likely = likely.map(|(name, _)| name.clone());
            if !self.has[at] && (sought == FieldName::Links || likely.is_some()) {
                fields.push((sought, likely));
            }
        }
        let others = self.others.iter();
        (!self.others.is_empty() && !fields.is_empty()).then(|| Missing {
            records: self.records,
            fields,
            unread: others
                .map(|(name, (count, _))| (name.clone(), *count))
                .collect(),
        })
    }
}

fn could_be(sought: FieldName, name: &str, value: &Value) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match sought {
        FieldName::Links => has(&["link", "href", "anchor", "target", "urls"]) && are_links(value),
        FieldName::Url => {
            has(&["url", "uri", "address", "page"])
                && value.as_str().is_some_and(|text| text.starts_with("http"))
        }
        FieldName::Status => {
            has(&["status", "code"])
                && status(value).is_some_and(|status| (100..600).contains(&status))
        }
        _ => {
            let of_page = ["modif", "publi", "expire", "creat", "updat"];
            has(&[
                "time", "date", "fetch", "crawl", "visit", "retriev", "scrape",
            ]) && !has(&of_page)
                && is_time(value)
        }
    }
}

fn status(value: &Value) -> Option<i64> {
    let digits = value.as_str().and_then(|text| text.parse().ok());
    value.as_i64().or(digits)
}

fn are_links(value: &Value) -> bool {
    let is_url = |text: &str| text.starts_with("http") || text.contains('/');
    match value {
        Value::String(text) => text.contains("@@") && is_url(text),
        Value::Array(links) => links.first().is_some_and(|link| match link {
            Value::String(text) => is_url(text),
            Value::Object(fields) => fields.values().filter_map(Value::as_str).any(is_url),
            _ => false,
        }),
        _ => false,
    }
}

fn is_time(value: &Value) -> bool {
    // Seconds from 2001 on: smaller numbers are durations.
    let seconds = |seconds: f64| seconds > 1e9 && time::from_fraction(seconds).is_some();
    match value {
        Value::String(text) => time::from_text(text).is_some(),
        value => value.as_f64().is_some_and(seconds),
    }
}
