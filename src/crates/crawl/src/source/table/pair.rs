//! Two Parquet tables, as `export` writes them: pages, whose rows are numbered from 0, and links between these numbers.

use std::fs::File;
use std::path::Path;

use super::columns::{ColumnField, ParquetTable, ValueType, WHOLE_NUMBERS};
use super::graph::{GraphPage, GraphRows, LastFetch, NumberedLink, link_check};
use super::{columns_of, edges, failed};
use crate::{Error, Result};

const ROWS: usize = 4096;

/// Opens the table of pages. Fails with [`Error::Unsupported`] if a column is missing or has another type.
pub(super) fn pages(path: &Path) -> Result<GraphRows<GraphPage>> {
    let (mut table, found) = open(path)?;
    let times = [1_000, 1_000_000, 1_000_000_000].map(ValueType::Time);
    let mut choose = |name: &str, kinds: &[ValueType]| -> Result<Option<usize>> {
        let field = found.iter().find(|field| field.name == name);
        let choose = |field: &ColumnField| table.choose(field, field.holds(kinds), "it should");
        field.map(choose).transpose()
    };
    let url = choose("url", &[ValueType::Text])?;
    let page = choose("page", &WHOLE_NUMBERS)?;
    let visits = choose("visits", &WHOLE_NUMBERS)?;
    let last_fetch = choose("last_fetch", &times)?;
    let Some(url) = url else {
        return Err(table.unsupported(format!(
            "a table of pages without the column `url`; it has {}",
            columns_of(&found)
        )));
    };
    let mut expected = 0;
    Ok(Box::new(std::iter::from_fn(move || {
        table.read_row(|table| {
            let number = |column: Option<usize>| table.whole(column?);
            if page.is_some() && number(page) != Some(expected) {
                return Err(format!(
                    "page {} where page {expected} is expected: sort the table by `page`, from 0 on",
                    number(page).map_or("null".into(), |page| page.to_string())
                ));
            }
            expected += 1;
            let fetched_at = number(last_fetch);
            let fetch = match fetched_at {
                _ if visits.is_none() || number(visits) > Some(0) => LastFetch::Read(fetched_at),
                Some(at) => LastFetch::Unchanged(at),
                None => LastFetch::Never,
            };
            Ok((edges::name(table.row(url)), fetch))
        })
    })))
}

/// Opens the table of links between `pages` pages. Fails like [`pages`].
pub(super) fn links(path: &Path, pages: u64) -> Result<GraphRows<NumberedLink>> {
    let (mut table, found) = open(path)?;
    let are_numbers = |pair: &[&ColumnField; 2]| pair.iter().all(|of| of.holds(&WHOLE_NUMBERS));
    let Some(pair) = edges::pair(&found).filter(are_numbers) else {
        return Err(table.unsupported(format!(
            "two columns of numbers, `source` and `target`, are expected; it has {}",
            columns_of(&found)
        )));
    };
    let has_weights = edges::choose(&mut table, &found, pair)?.len() > edges::WEIGHT;
    let mut check = link_check(pages);
    Ok(Box::new(std::iter::from_fn(move || {
        table.read_row(|table| {
            let page = |column| {
                table
                    .whole(column)
                    .and_then(|page| u64::try_from(page).ok())
            };
            let [Some(source), Some(target)] = [0, 1].map(page) else {
                return Err("a link with a null or a number below 0".into());
            };
            let Some(weight) = edges::weight(table, has_weights) else {
                let most = u32::MAX;
                return Err(format!("a weight that is no whole number from 0 to {most}"));
            };
            check([source, target, weight.into()])
        })
    })))
}

fn open(path: &Path) -> Result<(ParquetTable, Vec<ColumnField>)> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let table = ParquetTable::open(file, format!("{name}: "), ROWS);
    let table = table.map_err(|fault| failed(path, fault))?;
    let found = table.fields();
    Ok((table, found))
}
