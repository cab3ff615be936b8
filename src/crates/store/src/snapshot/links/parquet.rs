//! Export of links as two Parquet tables: pages or sites, and links as pairs of their numbers.
//!
//! ```text
//! source  INT64   required
//! target  INT64   required
//! weight  INT64   required; only where links weigh differently
//! ```
//!
//! Both numbers are delta-coded: sources are sorted, and targets within a source. A row group has 1,048,576 links.

use std::path::Path;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;

use super::{LinkGraph, write_file};
use crate::Result;
use crate::snapshot::export::columns::ColumnValues;
use crate::snapshot::export::parquet::{BATCH_ROWS, ParquetFile, schema};
use crate::snapshot::export::{Format, Setup, ValueKind, export};

const GROUP_LINKS: usize = 1 << 20;

/// Writes both tables into `folder`. Returns the number of links. Names stay on disk.
pub fn write_parquet(graph: &LinkGraph<'_>, folder: &Path) -> Result<u64> {
    let setup = Setup {
        level: graph.ranking.level(),
        state: graph.sites.is_none(),
        ..Setup::default()
    };
    let name = graph.sites.as_ref().map_or("pages", |_| "sites");
    write_file(folder, &format!("{name}.parquet"), |out, path| {
        export(Format::Parquet, &setup, out, path, graph.ranking.rows())
    })?;
    write_file(folder, "links.parquet", |out, path| {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED);
        let names = &["source", "target", "weight"][..if graph.is_weighted { 3 } else { 2 }];
        let fields = names.iter().map(|name| (*name, ValueKind::Integer, true));
        let mut file = ParquetFile::new(out, path, &schema("links", fields), properties)?;
        // Sources, targets, and weights if there are any, to be encoded; and the number of links of the row group.
        let mut columns: Vec<Vec<Option<i64>>> = vec![Vec::new(); names.len()];
        let mut group_links = 0;
        let taken = |columns: &mut [Vec<Option<i64>>]| {
            let columns = columns.iter_mut().map(std::mem::take);
            columns.map(ColumnValues::Integer).collect()
        };
        let count = graph.each_links(&mut |source, links| {
            for &(target, weight) in links {
                // Weights of a page sum to less than 2^63.
                let numbers = [i64::from(source), i64::from(target), weight as i64];
                for (column, number) in columns.iter_mut().zip(numbers) {
                    column.push(Some(number));
                }
                group_links += 1;
                let ends_group = group_links >= GROUP_LINKS;
                if ends_group || columns[0].len() >= BATCH_ROWS {
                    file.write(taken(&mut columns))?;
                }
                if ends_group {
                    group_links = 0;
                    file.end_group()?;
                }
            }
            Ok(())
        })?;
        if !columns[0].is_empty() {
            file.write(taken(&mut columns))?;
        }
        file.finish()?;
        Ok(count)
    })
}
