//! A Parquet table of links, each row two names and an optional weight. The rows of one source are a record.
//!
//! A scan of the source column checks whether rows are ordered by source, ascending or descending; if so, they are read
//! in place. Other tables are sorted by source, in bounded memory and temporary files; the links of each source are in
//! the order of its rows.

use std::fs::File;

use super::columns::{Cell, ColumnField, ParquetTable, ValueType, WHOLE_NUMBERS};
use super::text::{PageWriter, SNIFF_NAMES, format_of, page_name};
use super::{Fault, columns_of};
use crate::Result;
use crate::decode::lines;
use crate::disk::ExternalSorter;
use crate::formats::Format;
use crate::model::{Error, Limits};

const ROWS: usize = 4096;

const PAIRS: [[&str; 2]; 6] = [
    ["source", "target"],
    ["from", "to"],
    ["src", "dst"],
    ["src", "dest"],
    ["source", "destination"],
    ["from_url", "to_url"],
];

pub(super) const WEIGHT: usize = 2;

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

/// Chooses the columns of links (names or numbers) and weights. Fails with [`Error::Unsupported`] for other types.
pub(super) fn choose(
    table: &mut ParquetTable,
    found: &[ColumnField],
    [from, to]: [&ColumnField; 2],
) -> Result<Vec<ColumnField>> {
    let is_text = |field: &ColumnField| field.holds(&[ValueType::Text]);
    for field in [from, to] {
        let is_name = is_text(field) || field.holds(&WHOLE_NUMBERS);
        let all = columns_of(found);
        let expected = format!("names (strings) or numbers; the table has {all}");
        table.choose(field, is_name, &expected)?;
    }
    if is_text(from) != is_text(to) {
        return Err(table.unsupported(format!(
            "of the columns {:?} and {:?} one holds strings and one numbers",
            from.name, to.name
        )));
    }
    let mut chosen = vec![from.clone(), to.clone()];
    if let Some(weights) = found.iter().find(|field| field.name == "weight") {
        let is_number = weights.holds(&WHOLE_NUMBERS) || weights.holds(&[ValueType::Float]);
        table.choose(weights, is_number, "whole numbers")?;
        chosen.push(weights.clone());
    }
    Ok(chosen)
}

/// Returns the weight in the current row; 1 without a weight. `None`: it is not a whole number of 32 bits.
pub(super) fn weight(table: &ParquetTable, has_weights: bool) -> Option<u32> {
    let cell = has_weights.then(|| table.row(WEIGHT).first()).flatten();
    match cell {
        None => Some(1),
        Some(Cell::Float(number)) => (*number as u32 as f64 == *number).then_some(*number as u32),
        Some(_) => table.whole(WEIGHT)?.try_into().ok(),
    }
}

/// Row of the table. An absent name is empty; the weight is `None` if it cannot be used.
struct TableLink {
    from: Vec<u8>,
    to: Vec<u8>,
    weight: Option<u32>,
}

type TableLinks = Box<dyn Iterator<Item = Result<TableLink, Fault>> + Send>;

pub(super) struct EdgeTable {
    file: File,
    columns: Vec<ColumnField>,
    /// Maximum length of a URL, in bytes.
    longest: usize,
    memory: usize,
    pub writer: PageWriter,
    /// Name of the open page.
    page: Vec<u8>,
    links: Option<TableLinks>,
    /// Number of rows inside the open page whose names cannot be used.
    unusable: u64,
    /// Number of rows inside the open page whose weight cannot be used.
    badly_weighed: u64,
}

impl EdgeTable {
    /// Reads the first names. Sorting takes `limits.held_bytes` of memory.
    pub fn open(
        file: File,
        columns: Vec<ColumnField>,
        limits: &Limits,
    ) -> Result<EdgeTable, Fault> {
        let mut edges = EdgeTable {
            file,
            columns,
            longest: limits.url_bytes as usize,
            memory: usize::try_from(limits.held_bytes).unwrap_or(usize::MAX),
            writer: PageWriter::new(Format::NodeRecords),
            page: Vec::new(),
            links: None,
            unusable: 0,
            badly_weighed: 0,
        };
        // Damage is found again when the rows are read.
        let links = edges.in_place()?.map_while(Result::ok);
        let first: Vec<Vec<u8>> = links
            .flat_map(|link| [link.from, link.to])
            .take(SNIFF_NAMES)
            .collect();
        edges.writer.format = format_of(&first);
        Ok(edges)
    }

    fn table(&self, columns: &[ColumnField]) -> Result<ParquetTable, Fault> {
        let mut table = ParquetTable::open(self.file.try_clone()?, String::new(), ROWS)?;
        for field in columns {
            table.choose(field, true, "links")?;
        }
        Ok(table)
    }

    fn in_place(&self) -> Result<TableLinks, Fault> {
        let mut table = self.table(&self.columns)?;
        let (mut source, has_weights) = (self.source_reader(), self.columns.len() > WEIGHT);
        Ok(Box::new(std::iter::from_fn(move || {
            table.read_row(|table| {
                Ok(TableLink {
                    from: source(table),
                    to: name(table.row(1)),
                    weight: weight(table, has_weights),
                })
            })
        })))
    }

    /// Returns a reader of a row's source as the store names it: the rows of one page form one record, whatever their
    /// spelling of it. A name that is not a URL stays unchanged.
    fn source_reader(&self) -> impl FnMut(&ParquetTable) -> Vec<u8> + Send + use<> {
        let (format, longest) = (self.writer.format, self.longest);
        // The next row usually has the same name.
        let (mut last, mut form) = (Vec::new(), Vec::new());
        move |table| {
            let source = name(table.row(0));
            if source != last {
                form = page_name(format, &source, longest).into_owned();
                last = source;
            }
            form.clone()
        }
    }

    /// Returns whether rows are ordered by source, so that those of each source are together: by bytes, or by length
    /// and then bytes (as numbers are), ascending or descending. Rows without a source are ignored.
    fn is_ordered(&self) -> Result<bool, Fault> {
        let mut table = self.table(&self.columns[..1])?;
        let mut source = self.source_reader();
        let mut last: Option<Vec<u8>> = None;
        let mut orders = [true; 4];
        while let Some(source) = table.read_row(|table| Ok(source(table))).transpose()? {
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
        Ok(true)
    }

    /// Sorts all rows by source; those of one source keep their order.
    fn sorted(&self) -> Result<TableLinks, Fault> {
        const NO_WEIGHT: u64 = u64::MAX;
        let mut sorter = ExternalSorter::new(self.memory, &std::env::temp_dir());
        for link in self.in_place()? {
            let link = link?;
            let weight = link.weight.map_or(NO_WEIGHT, u64::from).to_be_bytes();
            sorter.push(&link.from, &[&weight[..], &link.to].concat())?;
        }
        Ok(Box::new(sorter.sorted()?.map(|row| {
            let (from, rest) = row?;
            let Some((weight, to)) = rest.split_first_chunk() else {
                return Err(Error::internal("a sorted row of a table is not what it was").into());
            };
            Ok(TableLink {
                from,
                to: to.to_vec(),
                weight: u32::try_from(u64::from_be_bytes(*weight)).ok(),
            })
        })))
    }

    /// Returns whether a name can be used. Exports of opaque names cannot hold tabs and line ends.
    fn holds(&self, name: &[u8]) -> bool {
        let is_opaque = self.writer.format == Format::NodeRecords;
        let is_text = || !name.contains(&b'\t') && lines::control(name).is_none();
        !name.is_empty() && (!is_opaque || is_text())
    }

    fn write(&mut self, link: &TableLink, out: &mut Vec<u8>) {
        match link.weight {
            Some(weight) if self.holds(&link.from) && self.holds(&link.to) => {
                if !self.writer.is_open || self.page != link.from {
                    self.end_page(out);
                    self.writer.begin(&link.from, None, out);
                    self.page.clone_from(&link.from);
                }
                return self.writer.link(&link.to, weight, out);
            }
            Some(_) => self.unusable += 1,
            None => self.badly_weighed += 1,
        }
        if !self.writer.is_open {
            self.end_page(out);
        }
    }

    /// Ends the open page. For each row inside it that cannot be used, a record follows that is skipped and counted.
    fn end_page(&mut self, out: &mut Vec<u8>) {
        self.writer.end(out);
        for _ in 0..std::mem::take(&mut self.unusable) {
            out.extend_from_slice(b"{}\n");
        }
        for _ in 0..std::mem::take(&mut self.badly_weighed) {
            self.writer.page(b"?", out);
            out.extend_from_slice(br#","links":[{"url":"?","weight":"another value"}]}"#);
            out.push(b'\n');
        }
    }

    /// Writes the next row; returns `false` after the last.
    pub fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if self.links.is_none() {
            // If damage ends the scan, the rows before it are read in place, and the damage is found again.
            let is_ordered = self.is_ordered().unwrap_or(true);
            self.links = Some(if is_ordered {
                self.in_place()?
            } else {
                self.sorted()?
            });
        }
        let link = self.links.as_mut().and_then(Iterator::next).transpose()?;
        match &link {
            Some(link) => self.write(link, out),
            None => self.end_page(out),
        }
        Ok(link.is_some())
    }
}

/// Returns the name in a cell, for a number its digits; empty if there is none.
pub(super) fn name(cells: &[Cell]) -> Vec<u8> {
    match cells.first() {
        Some(Cell::Text(text)) => text.data().to_vec(),
        Some(Cell::Int(number)) => number.to_string().into_bytes(),
        Some(Cell::Unsigned(number)) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}
