//! A Parquet table of crawl records: each row becomes a line of JSON with its columns, for the decoder of records.

use super::columns::{Cell, Field, Kind, Table};
use super::text::{PIECE, Rows};
use super::{Fault, columns_of};
use crate::Result;
use crate::decode::{FieldKind, Names, field_kind, put_string};
use crate::model::Error;
use crate::rules::Fields;

/// Rows that are read together.
const ROWS: usize = 64;

/// See the module.
pub(super) struct Records {
    table: Table,
    /// Of each column that is read: its name as JSON with a colon, and whether it is a list.
    columns: Vec<(Vec<u8>, bool)>,
    /// Rows that the table has read, and that were not begun.
    left: usize,
    /// The list that is being written, in the row that is: its column, and values that were written. Values of a row may
    /// share long texts, so that not even a row is written at once.
    open: Option<(usize, usize)>,
}

impl Records {
    /// Of a table that has one column of URLs and one of links, by the names that records have.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if such a column holds something else; the text begins with what is wrong.
    pub fn of(
        mut table: Table,
        found: &[Field],
        (fields, names): (&Fields, Names),
    ) -> Result<Records> {
        let mut columns = Vec::new();
        let mut has_links = false;
        for field in found {
            let Some(kind) = field_kind(fields, names, &field.name) else {
                continue;
            };
            has_links |= kind == FieldKind::Links;
            let expected = match kind {
                FieldKind::Links | FieldKind::Several => "a string or a list of strings",
                FieldKind::Page => "a string",
                FieldKind::Marks => "a value for each link",
                FieldKind::Other => "a string, a number or a time",
            };
            let is_text = field.kind == Some(Kind::Text) || field.kind == Some(Kind::Null);
            let fits = match kind {
                FieldKind::Links | FieldKind::Several => is_text,
                FieldKind::Page => is_text && !field.is_list,
                FieldKind::Marks => is_text || field.is_list,
                FieldKind::Other => !field.is_list,
            };
            if !fits || !table.choose(field)? {
                return Err(Error::Unsupported(format!(
                    "column `{}` holds something else than {expected}: write it so, or leave it out",
                    field.name
                )));
            }
            let mut name = Vec::new();
            put_string(field.name.as_bytes(), &mut name);
            name.push(b':');
            columns.push((name, field.is_list));
        }
        if !has_links {
            return Err(Error::Unsupported(format!(
                "a table of pages without a column of links (a list of strings, `links`); it has {}. Name the column \
                 with `field` links=NAME; the table of pages beside one of links is read with its folder",
                columns_of(found)
            )));
        }
        Ok(Records {
            table,
            columns,
            left: 0,
            open: None,
        })
    }
}

impl Rows for Records {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        while out.len() < PIECE {
            if let Some((column, written)) = self.open {
                self.go_on(column, written, out);
                continue;
            }
            if self.left == 0 {
                self.left = self.table.fill(ROWS)?;
            }
            if self.left == 0 {
                return Ok(false);
            }
            self.left -= 1;
            out.push(b'{');
            self.begin(0, out);
        }
        Ok(true)
    }
}

impl Records {
    /// Writes the columns of a row from this one on, up to a list that takes more than a piece.
    fn begin(&mut self, from: usize, out: &mut Vec<u8>) {
        for at in from..self.columns.len() {
            let (name, is_list) = &self.columns[at];
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            let cells = self.table.next(at);
            if *is_list {
                out.push(b'[');
                return self.go_on(at, 0, out);
            }
            put(cells.first(), out);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Writes values of a list, after so many of it, and what comes behind it.
    fn go_on(&mut self, column: usize, written: usize, out: &mut Vec<u8>) {
        let cells = self.table.row(column);
        for (at, cell) in cells.iter().enumerate().skip(written) {
            if out.len() >= PIECE {
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
        self.begin(column + 1, out);
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
