//! A Parquet table of crawl records: each row becomes a line of JSON with its columns, for the decoder of records.

use super::columns::{Cell, ColumnField, ParquetTable, ValueType};
use super::{Rows, columns_of};
use crate::decode::put_string;
use crate::decode::records::names::FieldNameMap;
use crate::rules::FieldName;
use crate::{Error, Result};

pub(super) const ROWS: usize = 64;

/// Returns the text of a table with a column of pages and one of links by these names. Fails with [`Error::Unsupported`]
/// if one has another type. A list ends once the line is longer than `longest`: then the record is over the limit anyway.
pub(super) fn text(
    mut table: ParquetTable,
    found: &[ColumnField],
    fields: &FieldNameMap,
    longest: u64,
) -> Result<Rows> {
    // For each column its name as JSON, with a colon, and whether it holds lists.
    let mut columns: Vec<(Vec<u8>, bool)> = Vec::new();
    let mut has_links = false;
    for field in found {
        let Some(known) = fields.record.field(&field.name) else {
            continue;
        };
        let known = known.field;
        has_links |= known == FieldName::Links;
        let is_text = matches!(field.kind, Some(ValueType::Text | ValueType::Null));
        let (expected, fits) = match known {
            FieldName::Links | FieldName::RequestedUrl => {
                ("a string or a list of strings", is_text)
            }
            FieldName::Url => ("a string", is_text && !field.is_list),
            FieldName::LinksNofollow | FieldName::LinksRel | FieldName::LinksWeight => {
                ("a value for each link", is_text || field.is_list)
            }
            _ => ("a string, a number or a time", !field.is_list),
        };
        let expected = format!("{expected}: write it so, or leave it out");
        table.choose(field, fits, &expected)?;
        let mut name = Vec::new();
        put_string(field.name.as_bytes(), &mut name);
        name.push(b':');
        columns.push((name, field.is_list));
    }
    if !has_links {
        return Err(Error::Unsupported(format!(
            "a table of pages without a column of links (a list of strings, `links`); it has {}. Name the column \
             with `field` links=NAME",
            columns_of(found)
        )));
    }
    Ok(Box::new(move |out| {
        if !table.next_row()? {
            return Ok(false);
        }
        let start = out.len();
        for (at, (name, is_list)) in columns.iter().enumerate() {
            out.push(if at == 0 { b'{' } else { b',' });
            out.extend_from_slice(name);
            let cells = table.row(at);
            if !is_list {
                put(cells.first(), out);
                continue;
            }
            out.push(b'[');
            for (at, cell) in cells.iter().enumerate() {
                if (out.len() - start) as u64 > longest {
                    break;
                }
                if at > 0 {
                    out.push(b',');
                }
                put(Some(cell), out);
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
        Ok(true)
    }))
}

fn put(cell: Option<&Cell>, out: &mut Vec<u8>) {
    let number = match cell {
        Some(Cell::Text(text)) => return put_string(text.data(), out),
        Some(Cell::Int(number)) => number.to_string(),
        Some(Cell::Unsigned(number)) => number.to_string(),
        Some(Cell::Float(number)) if number.is_finite() => number.to_string(),
        Some(Cell::Bool(is)) => is.to_string(),
        Some(Cell::Float(_) | Cell::Null) | None => "null".into(),
    };
    out.extend_from_slice(number.as_bytes());
}
