//! A Parquet table of links, each row two names. Consecutive rows of one source are a record.

use super::columns::{Cell, Field, Kind, Table};
use super::text::{Layout, PIECE, Rows, TELLING};
use super::{Fault, columns_of};
use crate::Result;
use crate::model::Error;

/// Rows that are read together.
const ROWS: usize = 4096;

/// Usual names of the two columns.
const PAIRS: [[&str; 2]; 6] = [
    ["source", "target"],
    ["from", "to"],
    ["src", "dst"],
    ["src", "dest"],
    ["source", "destination"],
    ["from_url", "to_url"],
];

/// See the module.
pub(super) struct Edges {
    table: Table,
    layout: Layout,
    /// Rows that the table has read, and whose names were not taken.
    left: usize,
    /// Rows that were written, of those whose names were taken.
    done: usize,
    /// The page whose links are being written.
    open: Option<Vec<u8>>,
    /// The first rows could not be read.
    failed: Option<Fault>,
    /// The names of some rows: not of more than it takes for a piece, since rows may share long ones.
    names: Vec<[Vec<u8>; 2]>,
}

/// The columns of links, if it has such.
pub(super) fn pair(found: &[Field]) -> Option<[&Field; 2]> {
    let named = |name: &&str| found.iter().find(|field| field.name == *name);
    let usual = PAIRS
        .iter()
        .find_map(|[from, to]| Some([named(from)?, named(to)?]));
    usual.or(match found {
        [from, to] => Some([from, to]),
        _ => None,
    })
}

/// Chooses the columns of links, of names or of numbers.
///
/// # Errors
/// [`Error::Unsupported`] if they hold something else, or there are weights.
pub(super) fn choose(table: &mut Table, found: &[Field], [from, to]: [&Field; 2]) -> Result<()> {
    if found.iter().any(|field| field.name == "weight") {
        return Err(Error::Unsupported(
            "its links have weights, which are not read: write the table without the column `weight`"
                .into(),
        ));
    }
    let is_name = |field: &Field| {
        let kinds = [Kind::Text, Kind::Int, Kind::Unsigned];
        !field.is_list && field.kind.is_some_and(|kind| kinds.contains(&kind))
    };
    for field in [from, to] {
        if !is_name(field) || !table.choose(field)? {
            return Err(Error::Unsupported(format!(
                "column `{}` holds something else than names (strings) or numbers; the table has {}",
                field.name,
                columns_of(found)
            )));
        }
    }
    let is_text = |field: &Field| field.kind == Some(Kind::Text);
    if is_text(from) != is_text(to) {
        return Err(Error::Unsupported(format!(
            "of the columns `{}` and `{}` one holds strings and one numbers",
            from.name, to.name
        )));
    }
    Ok(())
}

impl Edges {
    /// Of a table whose columns were chosen.
    pub fn of(table: Table) -> Edges {
        let mut edges = Edges {
            table,
            layout: Layout::Adjacency,
            left: 0,
            done: 0,
            open: None,
            failed: None,
            names: Vec::new(),
        };
        if let Err(fault) = edges.fill() {
            edges.failed = Some(fault);
        }
        let first: Vec<Vec<u8>> = edges
            .names
            .iter()
            .flatten()
            .take(TELLING)
            .cloned()
            .collect();
        edges.layout = Layout::of(&first);
        edges
    }

    /// How they are written.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    fn fill(&mut self) -> Result<(), Fault> {
        if self.left == 0 {
            self.left = self.table.fill(ROWS)?;
        }
        self.done = 0;
        self.names.clear();
        let mut bytes = 0;
        while self.left > 0 && bytes < PIECE {
            let names = [0, 1].map(|column| name(self.table.next(column)));
            bytes += names[0].len() + names[1].len();
            self.names.push(names);
            self.left -= 1;
        }
        Ok(())
    }

    fn link(&mut self, row: usize, out: &mut Vec<u8>) {
        let [from, to] = &self.names[row];
        if !self.layout.holds(from) || !self.layout.holds(to) {
            self.close(out);
            return self.layout.unusable(out);
        }
        let again = self.open.as_ref() == Some(from);
        if !again {
            let from = from.clone();
            self.close(out);
            self.layout.begin(&from, None, out);
            self.open = Some(from);
        }
        self.layout.link(&self.names[row][1], !again, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            self.layout.end(out);
        }
    }
}

impl Rows for Edges {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if let Some(fault) = self.failed.take() {
            return Err(fault);
        }
        while out.len() < PIECE {
            if self.done == self.names.len() {
                self.fill()?;
                if self.names.is_empty() {
                    self.close(out);
                    return Ok(false);
                }
            }
            self.link(self.done, out);
            self.done += 1;
        }
        Ok(true)
    }
}

/// The name in a cell: a number's digits; empty for none.
fn name(cells: &[Cell]) -> Vec<u8> {
    match cells.first() {
        Some(Cell::Text(text)) => text.data().to_vec(),
        Some(Cell::Int(number)) => number.to_string().into_bytes(),
        Some(Cell::Unsigned(number)) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}
