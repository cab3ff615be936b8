//! A Parquet table of crawl records: each row becomes a line of JSON with its columns, for the decoder of records.

use super::columns::{Cell, ColumnField, ParquetTable, ValueType};
use super::text::Rows;
use super::{Fault, columns_of};
use crate::Result;
use crate::decode::records::names::FieldNameMap;
use crate::decode::{Names, put_string};
use crate::model::Error;
use crate::rules::{FieldName, Shard};

/// Number of rows read at once.
pub(super) const ROWS: usize = 64;

/// Column that is read.
struct RecordColumn {
    /// Name as JSON, with a colon.
    name: Vec<u8>,
    is_list: bool,
    /// True if its values are links, or attributes of links.
    is_of_links: bool,
}

/// Reader of a table of crawl records.
pub(super) struct RecordTable {
    table: ParquetTable,
    columns: Vec<RecordColumn>,
    /// List being written in the current row: its column, and the number of values written. Values of a row may share
    /// long texts, so that a row is written in several pieces.
    open: Option<(usize, usize)>,
    /// Column of pages, and the shard outside of which no links are written.
    shard: Option<(usize, Shard)>,
    /// Kind of the pages' names.
    names: Names,
    /// True if the row being written belongs to another shard.
    skips_links: bool,
}

impl RecordTable {
    /// Returns a reader of a table that has, by these names, one column of pages and one of links. Fails with
    /// [`Error::Unsupported`] if such a column has another type; the message begins with what is wrong.
    pub fn of(
        mut table: ParquetTable,
        found: &[ColumnField],
        fields: &FieldNameMap,
        (shard, names): (Option<Shard>, Names),
    ) -> Result<RecordTable> {
        let mut columns: Vec<RecordColumn> = Vec::new();
        let (mut has_links, mut has_final_urls, mut page) = (false, false, None);
        for field in found {
            let Some(known) = fields.record.field(&field.name) else {
                continue;
            };
            let known = known.field;
            has_links |= known == FieldName::Links;
            has_final_urls |= known == FieldName::FinalUrl;
            page = page.or((known == FieldName::Url).then_some(columns.len()));
            let is_of_each = matches!(
                known,
                FieldName::LinksNofollow | FieldName::LinksRel | FieldName::LinksWeight
            );
            let is_text =
                field.kind == Some(ValueType::Text) || field.kind == Some(ValueType::Null);
            let (expected, fits) = match known {
                FieldName::Links | FieldName::RequestedUrl => {
                    ("a string or a list of strings", is_text)
                }
                FieldName::Url => ("a string", is_text && !field.is_list),
                _ if is_of_each => ("a value for each link", is_text || field.is_list),
                _ => ("a string, a number or a time", !field.is_list),
            };
            if !fits || !table.choose(field)? {
                return Err(Error::Unsupported(format!(
                    "column {:?} holds something else than {expected}: write it so, or leave it out",
                    field.name
                )));
            }
            let mut name = Vec::new();
            put_string(field.name.as_bytes(), &mut name);
            name.push(b':');
            columns.push(RecordColumn {
                name,
                is_list: field.is_list,
                is_of_links: is_of_each || known == FieldName::Links,
            });
        }
        if !has_links {
            return Err(Error::Unsupported(format!(
                "a table of pages without a column of links (a list of strings, `links`); it has {}. Name the column \
                 with `field` links=NAME; the table of pages beside one of links is read with its folder",
                columns_of(found)
            )));
        }
        Ok(RecordTable {
            table,
            columns,
            shard: page.zip(shard).filter(|_| !has_final_urls),
            names,
            skips_links: false,
            open: None,
        })
    }
}

impl Rows for RecordTable {
    fn more(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, Fault> {
        while out.len() < full {
            if let Some((column, written)) = self.open {
                self.go_on(column, written, out, full);
                continue;
            }
            if !self.table.next_row()? {
                return Ok(false);
            }
            self.skips_links = self.shard.is_some_and(|(column, shard)| {
                let page = self.table.row(column).first();
                matches!(page, Some(Cell::Text(page)) if shard.passes_over(page.data(), self.names))
            });
            out.push(b'{');
            self.begin(0, out, full);
        }
        Ok(true)
    }
}

impl RecordTable {
    /// Writes the columns of a row from `from` on, up to a list that does not fit.
    fn begin(&mut self, from: usize, out: &mut Vec<u8>, full: usize) {
        for at in from..self.columns.len() {
            let column = &self.columns[at];
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&column.name);
            if column.is_of_links && self.skips_links {
                out.extend_from_slice(b"null");
                continue;
            }
            if column.is_list {
                out.push(b'[');
                return self.go_on(at, 0, out, full);
            }
            put(self.table.row(at).first(), out);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Writes the values of a list from index `written` on, then the columns after it.
    fn go_on(&mut self, column: usize, written: usize, out: &mut Vec<u8>, full: usize) {
        let cells = self.table.row(column);
        for (at, cell) in cells.iter().enumerate().skip(written) {
            if out.len() >= full {
                self.open = Some((column, at));
                return;
            }
            if at > 0 {
                out.push(b',');
            }
            put(Some(cell), out);
        }
        out.push(b']');
        self.open = None;
        self.begin(column + 1, out, full);
    }
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
