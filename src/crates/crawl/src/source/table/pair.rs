//! Two Parquet tables: pages, whose rows are numbered from 0, and links between these numbers, as `export` writes them.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::columns::{Cell, ColumnField, ParquetTable, ValueType};
use super::graph::{Files, GraphPage, GraphPages, LastFetch, Links, NumberedLink};
use super::{Fault, columns_of, edges};
use crate::model::DamageKind;
use crate::{Error, Result};

/// Number of rows read at once.
const ROWS: usize = 4096;

/// Paths of the two tables.
pub(super) struct ParquetFiles {
    pages: PathBuf,
    links: PathBuf,
    has_weights: bool,
}

impl ParquetFiles {
    /// Returns the two tables after checking their columns. Fails with [`Error::Unsupported`] if a column is missing or
    /// has another type.
    pub fn of(pages: PathBuf, links: PathBuf) -> Result<ParquetFiles> {
        let mut files = ParquetFiles {
            pages,
            links,
            has_weights: false,
        };
        files.open_pages()?;
        files.has_weights = files.open_links()?.has_weights;
        Ok(files)
    }

    fn open_pages(&self) -> Result<PageTable> {
        let (mut table, found) = open(&self.pages)?;
        let column = |name: &str, kinds: &[ValueType]| -> Result<Option<ColumnField>> {
            let Some(field) = found.iter().find(|field| field.name == name) else {
                return Ok(None);
            };
            if field.is_list || !field.kind.is_some_and(|kind| kinds.contains(&kind)) {
                return Err(unsupported(
                    &self.pages,
                    format!("column `{name}` holds something else than it should"),
                ));
            }
            Ok(Some(field.clone()))
        };
        let numbers = [ValueType::Int, ValueType::Unsigned];
        let times = [1_000, 1_000_000, 1_000_000_000].map(ValueType::Time);
        let columns = [
            column("url", &[ValueType::Text])?,
            column("page", &numbers)?,
            column("visits", &numbers)?,
            column("last_fetch", &times)?,
        ];
        if columns[0].is_none() {
            let what = format!(
                "a table of pages without the column `url`; it has {}",
                columns_of(&found)
            );
            return Err(unsupported(&self.pages, what));
        }
        let mut chosen = [None; 4];
        let mut count = 0;
        for (field, number) in columns.iter().zip(&mut chosen) {
            let Some(field) = field else {
                continue;
            };
            let is_read = table.choose(field).map_err(in_file(&self.pages))?;
            *number = is_read.then_some(count);
            count += usize::from(is_read);
        }
        Ok(PageTable {
            rows: Filled::of(table),
            columns: chosen,
            next: 0,
        })
    }

    fn open_links(&self) -> Result<LinkTable> {
        let (mut table, found) = open(&self.links)?;
        let pair = edges::pair(&found);
        let is_number =
            |field: &&ColumnField| matches!(field.kind, Some(ValueType::Int | ValueType::Unsigned));
        let Some(pair) = pair.filter(|pair| pair.iter().all(is_number)) else {
            let what = format!(
                "two columns of numbers, `source` and `target`, are expected; it has {}",
                columns_of(&found)
            );
            return Err(unsupported(&self.links, what));
        };
        let has_weights = edges::choose(&mut table, &found, pair).map_err(in_file(&self.links))?;
        Ok(LinkTable {
            rows: Filled::of(table),
            has_weights,
        })
    }
}

fn open(path: &Path) -> Result<(ParquetTable, Vec<ColumnField>)> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let table = ParquetTable::open(file, format!("{name}: "));
    let table = table.map_err(|fault| super::failed(path, fault))?;
    let found = table.fields();
    Ok((table, found))
}

/// Adds the file's name to an error.
fn in_file(path: &Path) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Unsupported(what) => unsupported(path, what),
        other => other,
    }
}

fn unsupported(path: &Path, what: String) -> Error {
    Error::Unsupported(format!("{}: {what}", path.display()))
}

impl Files for ParquetFiles {
    fn pages(&self) -> Result<Box<dyn GraphPages>, Fault> {
        Ok(Box::new(self.open_pages()?))
    }

    fn links(&self) -> Result<Box<dyn Links>, Fault> {
        Ok(Box::new(self.open_links()?))
    }

    fn has_weights(&self) -> bool {
        self.has_weights
    }
}

/// Table with rows that were read but not used.
struct Filled {
    table: ParquetTable,
    filled: usize,
    used: usize,
}

impl Filled {
    fn of(table: ParquetTable) -> Filled {
        Filled {
            table,
            filled: 0,
            used: 0,
        }
    }

    /// Moves to the next row; `None` after the last.
    fn next(&mut self) -> Result<Option<&mut ParquetTable>, Fault> {
        if self.used == self.filled {
            self.filled = self.table.fill(ROWS)?;
            self.used = 0;
        }
        if self.filled == 0 {
            return Ok(None);
        }
        self.used += 1;
        Ok(Some(&mut self.table))
    }

    /// Returns the position of the last row, for messages.
    fn place(&self) -> String {
        self.table
            .place_of(self.used.saturating_sub(1), self.filled)
    }

    fn wrong(&self, what: &str) -> Fault {
        Fault::Damage(DamageKind::InvalidData, format!("{}: {what}", self.place()))
    }
}

struct PageTable {
    rows: Filled,
    /// Indexes of the columns `url`, `page`, `visits`, `last_fetch`; `None` if absent.
    columns: [Option<usize>; 4],
    next: u64,
}

impl GraphPages for PageTable {
    fn next(&mut self) -> Result<Option<GraphPage>, Fault> {
        let Some(table) = self.rows.next()? else {
            return Ok(None);
        };
        let [url, page, visits, last_fetch] = self.columns;
        let name = match url.map(|url| table.next(url)) {
            Some([Cell::Text(name), ..]) => name.data().to_vec(),
            _ => Vec::new(),
        };
        let mut number = |column: Option<usize>| table.next(column?).first().and_then(whole);
        let [page, visits, fetched_at] = [number(page), number(visits), number(last_fetch)];
        let expected = self.next;
        if self.columns[1].is_some() && page != i64::try_from(expected).ok() {
            return Err(self.rows.wrong(&format!(
                "page {} where page {expected} is expected: sort the table by `page`, from 0 on",
                page.map_or("null".into(), |page| page.to_string())
            )));
        }
        self.next += 1;
        Ok(Some(GraphPage {
            name,
            fetch: match fetched_at {
                _ if self.columns[2].is_none() || visits > Some(0) => LastFetch::Read(fetched_at),
                Some(at) => LastFetch::Unchanged(at),
                None => LastFetch::Never,
            },
        }))
    }
}

struct LinkTable {
    rows: Filled,
    has_weights: bool,
}

impl Links for LinkTable {
    fn next(&mut self) -> Result<Option<NumberedLink>, Fault> {
        let Some(table) = self.rows.next()? else {
            return Ok(None);
        };
        let numbers = [0, 1].map(|column| table.next(column).first().and_then(whole));
        let weight = if self.has_weights {
            edges::weight(table.next(edges::WEIGHT))
        } else {
            Some(1)
        };
        let [Some(source), Some(target)] = numbers.map(|number| u64::try_from(number?).ok()) else {
            return Err(self.rows.wrong("a link with a null or a number below 0"));
        };
        let Some(weight) = weight else {
            let what = format!("a weight that is no whole number from 0 to {}", u32::MAX);
            return Err(self.rows.wrong(&what));
        };
        Ok(Some(NumberedLink {
            source,
            target,
            weight,
        }))
    }

    fn place(&self) -> String {
        self.rows.place()
    }
}

fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Int(number) => Some(*number),
        Cell::Unsigned(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}
