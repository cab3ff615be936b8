//! Export of links as two Parquet tables: pages or sites, and links as pairs of their numbers.
//!
//! ```text
//! source  INT64   required
//! target  INT64   required
//! weight  INT64   required; only where links weigh differently
//! ```
//!
//! Both numbers are delta-coded: sources are sorted, and targets within a source. A row group has 1,048,576 links.

use std::io::Write;
use std::path::Path;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;

use super::{LinkGraph, write_file};
use crate::Result;
use crate::snapshot::export::columns::ColumnValues;
use crate::snapshot::export::parquet::{BATCH_ROWS, ParquetFile, schema};
use crate::snapshot::export::{Format, OptionalColumns, Setup, ValueKind, export};

const GROUP_LINKS: usize = 1 << 20;

/// Writes both tables into `folder`. Returns the number of links. Names stay on disk.
pub fn write_parquet(graph: &LinkGraph<'_>, folder: &Path) -> Result<u64> {
    let setup = Setup {
        columns: OptionalColumns {
            level: graph.ranking.level(),
            state: graph.sites.is_none(),
            ..OptionalColumns::default()
        },
        ..Setup::default()
    };
    let name = graph.sites.as_ref().map_or("pages", |_| "sites");
    write_file(folder, &format!("{name}.parquet"), |out, path| {
        export(Format::Parquet, &setup, out, path, graph.ranking.rows())
    })?;
    write_file(folder, "links.parquet", |out, path| {
        let mut table = LinkTable::new(out, path, graph.is_weighted)?;
        let count = graph.each_links(&mut |source, links| {
            let mut links = links.iter();
            links.try_for_each(|&(target, weight)| table.link(source, target, weight))
        })?;
        table.finish()?;
        Ok(count)
    })
}

struct LinkTable<W: Write + Send> {
    file: ParquetFile<W>,
    /// Number of links of the current row group, including those to be encoded.
    links: usize,
    /// Sources, targets, and weights if there are any, to be encoded.
    columns: Vec<Vec<Option<i64>>>,
}

impl<W: Write + Send> LinkTable<W> {
    fn new(out: W, path: &Path, is_weighted: bool) -> Result<LinkTable<W>> {
        let names = &["source", "target", "weight"][..if is_weighted { 3 } else { 2 }];
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED);
        let columns = names.iter().map(|name| (*name, ValueKind::Integer, true));
        Ok(LinkTable {
            file: ParquetFile::new(out, path, &schema("links", columns), properties)?,
            links: 0,
            columns: vec![Vec::new(); names.len()],
        })
    }

    fn link(&mut self, source: u32, target: u32, weight: u64) -> Result<()> {
        // Weights of a page sum to less than 2^63.
        let numbers = [i64::from(source), i64::from(target), weight as i64];
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column.push(Some(number));
        }
        self.links += 1;
        let ends_group = self.links >= GROUP_LINKS;
        if ends_group || self.columns[0].len() >= BATCH_ROWS {
            self.write_batch()?;
        }
        if ends_group {
            self.links = 0;
            self.file.end_group()?;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<()> {
        let columns = self.columns.iter_mut().map(std::mem::take);
        self.file
            .write(columns.map(ColumnValues::Integer).collect())
    }

    fn finish(mut self) -> Result<()> {
        if !self.columns[0].is_empty() {
            self.write_batch()?;
        }
        self.file.finish()
    }
}
