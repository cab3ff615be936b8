//! A Parquet table of links, each row two names and an optional weight. The rows of one source are a record.
//!
//! A scan of the source column checks whether rows are ordered by source, ascending or descending; then they are read
//! in place. Other tables are sorted in bounded memory and temporary files: records come in the order of their first
//! rows, and the links of each in the order of its rows.

use std::fs::File;

use super::columns::{Cell, ColumnField, ParquetTable, ValueType};
use super::text::{PIECE, Rows, TELLING, TextLayout};
use super::{Fault, columns_of};
use crate::Result;
use crate::disk::{ExternalSorter, Sorted};
use crate::model::{Error, Limits};

/// Number of rows read at once.
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

/// Reader of a table of links.
pub(super) struct EdgeTable {
    table: ParquetTable,
    layout: TextLayout,
    /// Rows that the table has read and whose names were not taken.
    left: usize,
    /// Number of rows written, of those whose names were taken.
    done: usize,
    /// Page whose links are being written.
    open: Option<Vec<u8>>,
    /// Number of rows of that page whose names cannot be used, and of those whose weight cannot.
    unusable: u64,
    badly_weighed: u64,
    /// The file opened again, and its source column, until the order of rows is known.
    unknown_order: Option<(File, ColumnField)>,
    /// Memory for sorting, in bytes.
    memory: usize,
    /// Rows in sorted order, if the table's order is another.
    sorted: Option<Sorted>,
    /// Error of reading the first rows.
    failed: Option<Fault>,
    /// Names of some rows: only of about one piece, since rows may share long names.
    names: Vec<TableLink>,
    has_weights: bool,
    canon: Canon,
}

/// Canonicalises sources that are URLs: rows of one page form one record, however they spell it.
struct Canon {
    layout: TextLayout,
    /// Maximum length of a URL, in bytes.
    longest: usize,
    /// Last name and its canonical form: the next row mostly has the same name.
    last: [Vec<u8>; 2],
}

impl Canon {
    fn of(layout: TextLayout, longest: usize) -> Canon {
        Canon {
            layout,
            longest,
            last: Default::default(),
        }
    }

    /// Returns a source as the store names it; a name that is not a URL stays unchanged.
    fn form(&mut self, name: Vec<u8>) -> Vec<u8> {
        if self.layout != TextLayout::Records || name.is_empty() {
            return name;
        }
        let [last, form] = &mut self.last;
        if *last != name {
            *form = (self.layout)
                .page_name(&name, self.longest, &mut Vec::new())
                .to_vec();
            *last = name;
        }
        form.clone()
    }
}

/// Row of the table. The target is empty if absent, or if the weight cannot be used: then it is [`NO_WEIGHT`].
#[derive(Default)]
struct TableLink {
    from: Vec<u8>,
    to: Vec<u8>,
    weight: u32,
}

/// Weight of a row without a target whose weight cannot be used; that of others without a target is 0.
const NO_WEIGHT: u32 = 1;

/// Index of the weight column among the chosen columns.
pub(super) const WEIGHT: usize = 2;

/// Returns the source and target columns, if the table has them.
pub(super) fn pair(found: &[ColumnField]) -> Option<[&ColumnField; 2]> {
    let named = |name: &&str| found.iter().find(|field| field.name == *name);
    let usual = PAIRS
        .iter()
        .find_map(|[from, to]| Some([named(from)?, named(to)?]));
    usual.or(match found {
        [from, to] => Some([from, to]),
        _ => None,
    })
}

/// Chooses the columns of links (names or numbers) and of weights. Returns whether there are weights; fails with
/// [`Error::Unsupported`] if a column has another type.
pub(super) fn choose(
    table: &mut ParquetTable,
    found: &[ColumnField],
    [from, to]: [&ColumnField; 2],
) -> Result<bool> {
    let is_name = |field: &ColumnField| {
        let kinds = [ValueType::Text, ValueType::Int, ValueType::Unsigned];
        !field.is_list && field.kind.is_some_and(|kind| kinds.contains(&kind))
    };
    for field in [from, to] {
        if !is_name(field) || !table.choose(field)? {
            return Err(Error::Unsupported(format!(
                "column {:?} holds something else than names (strings) or numbers; the table has {}",
                field.name,
                columns_of(found)
            )));
        }
    }
    let is_text = |field: &ColumnField| field.kind == Some(ValueType::Text);
    if is_text(from) != is_text(to) {
        return Err(Error::Unsupported(format!(
            "of the columns {:?} and {:?} one holds strings and one numbers",
            from.name, to.name
        )));
    }
    let Some(weights) = found.iter().find(|field| field.name == "weight") else {
        return Ok(false);
    };
    let is_number = matches!(
        weights.kind,
        Some(ValueType::Int | ValueType::Unsigned | ValueType::Float)
    );
    if weights.is_list || !is_number || !table.choose(weights)? {
        return Err(Error::Unsupported(
            "column `weight` holds something else than whole numbers".into(),
        ));
    }
    Ok(true)
}

/// Returns the weight in a cell, or 1 if there is none. `None`: it is not a whole number of 32 bits.
pub(super) fn weight(cells: &[Cell]) -> Option<u32> {
    match cells.first() {
        None => Some(1),
        Some(Cell::Int(number)) => u32::try_from(*number).ok(),
        Some(Cell::Unsigned(number)) => u32::try_from(*number).ok(),
        Some(Cell::Float(number)) => (*number as u32 as f64 == *number).then_some(*number as u32),
        Some(_) => None,
    }
}

impl EdgeTable {
    /// Returns a reader of a table whose columns were chosen. `again` is the file opened a second time, with its source
    /// column. Sorting takes `limits.held_bytes` of memory.
    pub fn of(
        table: ParquetTable,
        again: Option<(File, ColumnField)>,
        limits: &Limits,
        has_weights: bool,
    ) -> EdgeTable {
        let mut edges = EdgeTable {
            table,
            has_weights,
            canon: Canon::of(TextLayout::Adjacency, 0),
            layout: TextLayout::Adjacency,
            left: 0,
            done: 0,
            open: None,
            unusable: 0,
            badly_weighed: 0,
            unknown_order: again,
            memory: usize::try_from(limits.held_bytes).unwrap_or(usize::MAX),
            sorted: None,
            failed: None,
            names: Vec::new(),
        };
        if let Err(fault) = edges.fill() {
            edges.failed = Some(fault);
        }
        let first: Vec<Vec<u8>> = edges
            .names
            .iter()
            .flat_map(|link| [&link.from, &link.to])
            .take(TELLING)
            .cloned()
            .collect();
        edges.layout = TextLayout::of(&first, has_weights);
        edges.canon = Canon::of(edges.layout, limits.url_bytes as usize);
        edges
    }

    /// Returns the layout of the text.
    pub fn layout(&self) -> TextLayout {
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
            let [from, mut to] = [0, 1].map(|column| name(self.table.next(column)));
            let weight = if self.has_weights {
                weight(self.table.next(WEIGHT))
            } else {
                Some(1)
            };
            let weight = match weight {
                Some(_) if to.is_empty() => 0,
                Some(weight) => weight,
                None => {
                    to.clear();
                    NO_WEIGHT
                }
            };
            bytes += from.len() + to.len();
            self.names.push(TableLink { from, to, weight });
            self.left -= 1;
        }
        Ok(())
    }

    fn link(&mut self, from: &[u8], to: &[u8], weight: u32, out: &mut Vec<u8>) {
        if !self.layout.holds(from) || !self.layout.holds(to) {
            let is_weight = to.is_empty() && weight == NO_WEIGHT;
            *(if is_weight {
                &mut self.badly_weighed
            } else {
                &mut self.unusable
            }) += 1;
            if self.open.is_none() {
                self.close(out);
            }
            return;
        }
        let again = self.open.as_deref() == Some(from);
        if !again {
            self.close(out);
            self.layout.begin(from, None, out);
            self.open = Some(from.to_vec());
        }
        self.layout.link(from, to, weight, !again, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(page) = self.open.take() {
            self.layout.end(&page, true, out);
        }
        for _ in 0..std::mem::take(&mut self.unusable) {
            self.layout.unusable(out);
        }
        for _ in 0..std::mem::take(&mut self.badly_weighed) {
            self.layout.badly_weighed(out);
        }
    }

    /// Returns the next row in the table's order; `None` after the last.
    fn next_row(&mut self) -> Result<Option<TableLink>, Fault> {
        if self.done == self.names.len() {
            self.fill()?;
            if self.names.is_empty() {
                return Ok(None);
            }
        }
        self.done += 1;
        let mut link = std::mem::take(&mut self.names[self.done - 1]);
        link.from = self.canon.form(link.from);
        Ok(Some(link))
    }

    /// Sorts all rows: by source, to find the first row of each, and then by first row.
    fn sort(&mut self) -> Result<Sorted, Fault> {
        let folder = std::env::temp_dir();
        let mut by_source = ExternalSorter::new(self.memory, &folder);
        let mut row = 0u64;
        let mut value = Vec::new();
        while let Some(link) = self.next_row()? {
            value.clear();
            value.extend_from_slice(&row.to_be_bytes());
            value.extend_from_slice(&link.weight.to_be_bytes());
            value.extend_from_slice(&link.to);
            by_source.push(&link.from, &value)?;
            row += 1;
        }
        let mut by_first_row = ExternalSorter::new(self.memory, &folder);
        let mut source: Option<(Vec<u8>, [u8; ROW])> = None;
        for record in by_source.sorted()? {
            let (from, rest) = record?;
            let (row, weight_and_to) = rest.split_first_chunk::<ROW>().ok_or_else(lost)?;
            let first = match &source {
                Some((open, first)) if *open == from => *first,
                _ => *row,
            };
            value.clear();
            value.extend_from_slice(&(from.len() as u64).to_be_bytes());
            value.extend_from_slice(&from);
            value.extend_from_slice(weight_and_to);
            by_first_row.push(&first, &value)?;
            source = Some((from, first));
        }
        Ok(by_first_row.sorted()?)
    }

    /// Finds the order of rows, and sorts them if a source occurs in several places.
    fn look_at_order(&mut self) -> Result<(), Fault> {
        let Some((file, from)) = self.unknown_order.take() else {
            return Ok(());
        };
        // If damage ends the scan, the rows before it are read in place, and the damage is found again.
        let canon = Canon::of(self.layout, self.canon.longest);
        if let Ok(false) = is_ordered(file, &from, canon) {
            self.sorted = Some(self.sort()?);
        }
        Ok(())
    }

    /// Writes the next row; returns `false` after the last.
    fn write_row(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if let Some(sorted) = &mut self.sorted {
            let Some(row) = sorted.next() else {
                return Ok(false);
            };
            let (_, row) = row?;
            let (len, row) = row.split_first_chunk::<8>().ok_or_else(lost)?;
            let from = usize::try_from(u64::from_be_bytes(*len)).ok();
            let (from, rest) = from
                .and_then(|from| row.split_at_checked(from))
                .ok_or_else(lost)?;
            let (weight, to) = rest.split_first_chunk().ok_or_else(lost)?;
            self.link(from, to, u32::from_be_bytes(*weight), out);
            return Ok(true);
        }
        let Some(link) = self.next_row()? else {
            return Ok(false);
        };
        self.link(&link.from, &link.to, link.weight, out);
        Ok(true)
    }
}

impl Rows for EdgeTable {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if let Some(fault) = self.failed.take() {
            return Err(fault);
        }
        self.look_at_order()?;
        while out.len() < PIECE {
            if !self.write_row(out)? {
                self.close(out);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Size of a row number, in bytes.
const ROW: usize = size_of::<u64>();

/// Returns the error for a sorted row that is not what was written.
fn lost() -> Error {
    Error::internal("a sorted row of a table is not what it was")
}

/// Returns whether rows are ordered by source, so that those of each source are together: by bytes, or by length and
/// then bytes (as numbers are), ascending or descending. Rows without a source are ignored.
fn is_ordered(file: File, from: &ColumnField, mut canon: Canon) -> Result<bool, Fault> {
    let mut table = ParquetTable::open(file, String::new())?;
    if !table.choose(from)? {
        return Ok(true);
    }
    let mut last: Option<Vec<u8>> = None;
    let mut orders = [true; 4];
    loop {
        let rows = table.fill(ROWS)?;
        if rows == 0 {
            return Ok(true);
        }
        for _ in 0..rows {
            let source = canon.form(name(table.next(0)));
            if source.is_empty() || last.as_ref() == Some(&source) {
                continue;
            }
            if let Some(last) = &last {
                let by_bytes = *last < source;
                let by_number = (last.len(), last) < (source.len(), &source);
                let found = [by_bytes, !by_bytes, by_number, !by_number];
                for (order, found) in orders.iter_mut().zip(found) {
                    *order &= found;
                }
            }
            if orders == [false; 4] {
                return Ok(false);
            }
            last = Some(source);
        }
    }
}

/// Returns the name in a cell, for a number its digits; empty if there is none.
fn name(cells: &[Cell]) -> Vec<u8> {
    match cells.first() {
        Some(Cell::Text(text)) => text.data().to_vec(),
        Some(Cell::Int(number)) => number.to_string().into_bytes(),
        Some(Cell::Unsigned(number)) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}
