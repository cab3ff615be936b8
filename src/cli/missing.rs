//! Message about fields that no record has, with the names that they may have instead.

use cashrank_base::rules::FieldName;
use cashrank_crawl::decode::Missing;
use serde_json::{Value, json};

use super::common::{counted, thousands};

/// Maximum number of unread fields that the message names.
const SHOWN: usize = 12;

/// Formats the message for people, as one line.
pub fn message(missing: &Missing) -> String {
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
        counted(missing.records, "page", "pages"),
        lacks.join("; "),
        unread(missing)
    )
}

fn unread(missing: &Missing) -> String {
    let shown = missing.unread.iter().take(SHOWN);
    let shown: Vec<String> = shown
        .map(|(name, count)| format!("{name:?} ({})", thousands(*count)))
        .collect();
    let more = match missing.unread.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Fields that are not read: {}{more}. --field links=NAME names the one with the links; an existing store keeps \
         its field names, so start a new one",
        shown.join(", ")
    )
}

/// Returns whether the records have links.
pub fn has_links(missing: &Missing) -> bool {
    missing
        .fields
        .iter()
        .all(|(field, _)| *field != FieldName::Links)
}

/// Returns the missing and the unread fields as JSON.
pub fn as_json(missing: &Missing) -> Value {
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
