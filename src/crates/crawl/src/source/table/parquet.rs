//! Parquet tables of crawl records or of links.
//!
//! Of records, each row becomes a line of JSON with its columns, for the decoder of records. A row of a table of links is
//! two names and an optional weight; the rows of one source are a record.
//!
//! A scan of the source column checks whether rows are ordered by source, ascending or descending; if so, they are read
//! in place. Other tables are sorted by source, in bounded memory and temporary files; the links of each source are in
//! the order of its rows.

use std::fs::File;
use std::path::Path;

use super::columns::{Cell, ColumnField, ParquetTable, ValueType, WHOLE_NUMBERS};
use super::{Fault, GraphRows, PageWriter, Rows, SNIFF_NAMES, SourceOptions, TableInput};
use super::{failed, format_of, lazily, page_name, put_name, sorted};
use crate::decode::records::names::FieldNameMap;
use crate::decode::{Names, lines, put_string};
use crate::formats::Format;
use crate::model::Limits;
use crate::rules::FieldName;
use crate::{Error, Result};

pub fn open(
    file: File,
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<TableInput> {
    let again = file.try_clone().map_err(Error::io(path, "open"))?;
    let table = ParquetTable::open(file, RECORDS_TOGETHER);
    let table = table.map_err(|fault| failed(path, fault))?;
    let found = table.fields();
    for (names, format) in [
        (Names::Url, Format::Records),
        (Names::Opaque, Format::NodeRecords),
    ] {
        let fields = FieldNameMap::by(&options.fields, names);
        let is_page = |field: &ColumnField| {
            let known = fields.record.field(&field.name);
            known.is_some_and(|known| known.field == FieldName::Url)
        };
        if found.iter().any(is_page) {
            let why = format!("it is a Parquet table with {}", columns_of(&found));
            return Ok(TableInput {
                rows: records_text(table, &found, &fields, limits.line_bytes)?,
                known: (format, why),
            });
        }
    }
    let Some(pair) = pair(&found) else {
        return Err(Error::Unsupported(format!(
            "a Parquet table with {}: a table of records has `url` and `links` (or name them with `field`), one of \
             links has `source` and `target`, or two columns",
            columns_of(&found)
        )));
    };
    open_links(again, table, &found, pair, limits).map_err(|fault| failed(path, fault))
}

/// Lists the names of columns for a message, on one line. They are quoted, because they may be those of settings.
fn columns_of(found: &[ColumnField]) -> String {
    const SHOWN: usize = 20;
    let names = found.iter().take(SHOWN).map(|field| {
        let chars = field.name.chars().filter(|c| !c.is_control());
        format!("{:?}", chars.take(40).collect::<String>())
    });
    let names = names.collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(SHOWN) {
        0 if found.is_empty() => "no columns".into(),
        0 => format!("the columns {names}"),
        more => format!("the columns {names} and {more} more"),
    }
}

const RECORDS_TOGETHER: usize = 64;

/// Returns the text of a table with a column of pages and one of links by these names. Fails with [`Error::Unsupported`]
/// if one has another type. A list ends once the line is longer than `longest`: then the record is over the limit anyway.
fn records_text(
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

const LINKS_TOGETHER: usize = 4096;

const PAIRS: [[&str; 2]; 6] = [
    ["source", "target"],
    ["from", "to"],
    ["src", "dst"],
    ["src", "dest"],
    ["source", "destination"],
    ["from_url", "to_url"],
];

const WEIGHT: usize = 2;

fn pair(found: &[ColumnField]) -> Option<[&ColumnField; 2]> {
    let named = |name: &str| found.iter().find(|field| field.name == name);
    let usual = |[from, to]: &[&str; 2]| Some([named(from)?, named(to)?]);
    PAIRS.iter().find_map(usual).or(match found {
        [from, to] => Some([from, to]),
        _ => None,
    })
}

/// Chooses the columns of links (names or numbers) and weights. Fails with [`Error::Unsupported`] for other types.
fn choose(
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
        return Err(Error::Unsupported(format!(
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

/// Returns the name in a cell, for a number its digits; empty if there is none.
fn name(cells: &[Cell]) -> Vec<u8> {
    match cells.first() {
        Some(Cell::Text(text)) => text.data().to_vec(),
        Some(Cell::Int(number)) => number.to_string().into_bytes(),
        Some(Cell::Unsigned(number)) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

/// Returns the weight in the current row; 1 without a weight. `None`: it is not a whole number of 32 bits.
fn weight(table: &ParquetTable, has_weights: bool) -> Option<u32> {
    match has_weights.then(|| table.row(WEIGHT).first()).flatten() {
        None => Some(1),
        Some(Cell::Float(number)) => (*number as u32 as f64 == *number).then_some(*number as u32),
        Some(_) => table.whole(WEIGHT)?.try_into().ok(),
    }
}

/// Source, target and weight of a row. An absent name is empty; the weight is `None` if it cannot be used.
type NamedLink = (Vec<u8>, Vec<u8>, Option<u32>);

struct LinkTable {
    file: File,
    columns: Vec<ColumnField>,
    format: Format,
    /// Maximum length of a URL, in bytes.
    longest: u64,
}

fn open_links(
    file: File,
    mut table: ParquetTable,
    found: &[ColumnField],
    pair: [&ColumnField; 2],
    limits: &Limits,
) -> Result<TableInput, Fault> {
    let mut links = LinkTable {
        file,
        columns: choose(&mut table, found, pair)?,
        format: Format::NodeRecords,
        longest: limits.url_bytes,
    };
    let (memory, [from, to]) = (limits.held_bytes, pair.map(|field| &field.name));
    // Damage is found again when the rows are read.
    let first = links.in_place()?.map_while(Result::ok);
    let first = first.flat_map(|(from, to, _)| [from, to]);
    links.format = format_of(&first.take(SNIFF_NAMES).collect::<Vec<_>>());
    Ok(TableInput {
        known: (
            links.format,
            format!("it is a Parquet table of links from {from:?} to {to:?}"),
        ),
        rows: lazily(move || links.text(memory)),
    })
}

impl LinkTable {
    /// Reads the first columns. A row's source is its name in the store or, if that is not a URL, the name as it is.
    fn read<T: 'static>(
        &self,
        columns: usize,
        row: impl Fn(&ParquetTable, Vec<u8>) -> T + Send + 'static,
    ) -> Result<GraphRows<T>, Fault> {
        let mut table = ParquetTable::open(self.file.try_clone()?, LINKS_TOGETHER)?;
        for field in &self.columns[..columns] {
            table.choose(field, true, "links")?;
        }
        let (format, longest) = (self.format, self.longest);
        // The next row usually has the same source.
        let (mut last, mut form) = (Vec::new(), Vec::new());
        Ok(Box::new(std::iter::from_fn(move || {
            table.read_row(|table| {
                let source = name(table.row(0));
                if source != last {
                    form = page_name(format, &source, longest).into_owned();
                    last = source;
                }
                row(table, form.clone())
            })
        })))
    }

    fn in_place(&self) -> Result<GraphRows<NamedLink>, Fault> {
        let has_weights = self.columns.len() > WEIGHT;
        self.read(self.columns.len(), move |table, source| {
            (source, name(table.row(1)), weight(table, has_weights))
        })
    }

    /// Returns whether rows are ordered by source: by bytes, or by length and then bytes, ascending or descending.
    fn is_ordered(&self) -> Result<bool, Fault> {
        let (mut last, mut first, mut holds) = (Vec::new(), None, [true; 2]);
        for source in self.read(1, |_, source| source)? {
            let source = source?;
            if source.is_empty() || source == last {
                continue;
            }
            if !last.is_empty() {
                let by_number = (last.len(), &last).cmp(&(source.len(), &source));
                let found = [last.cmp(&source), by_number];
                let first = first.get_or_insert(found);
                holds = [0, 1].map(|order| holds[order] && found[order] == first[order]);
                if holds == [false; 2] {
                    return Ok(false);
                }
            }
            last = source;
        }
        Ok(true)
    }

    fn links(&self, memory: u64) -> Result<GraphRows<NamedLink>, Fault> {
        const NO_WEIGHT: u64 = u64::MAX;
        // If damage ends the scan, the rows before it are read in place, and the damage is found again.
        if self.is_ordered().unwrap_or(true) {
            return self.in_place();
        }
        let split = |(from, to, weight): NamedLink| {
            let weight = weight.map_or(NO_WEIGHT, u64::from).to_be_bytes();
            (from, [&weight[..], &to].concat())
        };
        sorted(self.in_place()?, memory, split, |(from, rest)| {
            let (weight, to) = rest.split_first_chunk()?;
            let weight = u32::try_from(u64::from_be_bytes(*weight)).ok();
            Some((from, to.to_vec(), weight))
        })
    }

    /// Returns the text of the table, which is sorted in `memory` bytes if it has to be.
    fn text(&self, memory: u64) -> Result<Rows, Fault> {
        // Exports of opaque names cannot hold tabs and line ends.
        let is_opaque = self.format == Format::NodeRecords;
        let is_text = |name: &[u8]| !name.contains(&b'\t') && lines::control(name).is_none();
        let holds = move |name: &[u8]| !name.is_empty() && (!is_opaque || is_text(name));
        let mut writer = PageWriter::new(self.format);
        let (mut links, mut page) = (self.links(memory)?.fuse(), Vec::new());
        // The first link of the next page. Records that are skipped and counted follow the page that their rows are in.
        let mut held = None;
        let (mut unusable, mut badly_weighed) = (0u64, 0u64);
        Ok(Box::new(move |out| {
            if !writer.is_open && unusable > 0 {
                unusable -= 1;
                out.extend_from_slice(b"{}\n");
                return Ok(true);
            }
            if !writer.is_open && badly_weighed > 0 {
                badly_weighed -= 1;
                put_name(writer.format, b"?", out);
                let links = b",\"links\":[{\"url\":\"?\",\"weight\":\"another value\"}]}\n";
                out.extend_from_slice(links);
                return Ok(true);
            }
            let link = match held.take() {
                None => links.next().transpose()?,
                link => link,
            };
            match link {
                Some((from, to, Some(weight))) if holds(&from) && holds(&to) => {
                    if writer.is_open && page != from {
                        writer.end(out);
                        held = Some((from, to, Some(weight)));
                        return Ok(true);
                    }
                    if !writer.is_open {
                        writer.begin(&from, out);
                        page = from;
                    }
                    writer.link(&to, weight, out);
                }
                Some((.., Some(_))) => unusable += 1,
                Some(_) => badly_weighed += 1,
                None if writer.is_open => writer.end(out),
                None => return Ok(false),
            }
            Ok(true)
        }))
    }
}
