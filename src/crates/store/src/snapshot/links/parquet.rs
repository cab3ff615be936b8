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
use parquet::data_type::Int64Type;
use parquet::file::properties::WriterProperties;

use super::{LinkGraph, write_file};
use crate::Result;
use crate::snapshot::export::parquet::{BATCH_ROWS, ParquetFile};
use crate::snapshot::export::{Format, Setup, export};

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
        let fields: String = (names.iter())
            .map(|name| format!("REQUIRED INT64 {name};"))
            .collect();
        let schema = format!("message links {{{fields}}}");
        let mut file = ParquetFile::new(out, path, &schema, properties)?;
        // Sources, targets, and weights if there are any, to be encoded; and the number of links of the row group.
        let mut columns = vec![Vec::new(); names.len()];
        let mut group_links = 0;
        let encode = |file: &mut ParquetFile<_>, columns: &mut [Vec<i64>]| {
            file.encode(|group| {
                columns.iter_mut().try_for_each(|column| {
                    let encoded = group.write::<Int64Type>(column, None, None);
                    column.clear();
                    encoded
                })
            })
        };
        let count = graph.each_links(&mut |source, links| {
            for &(target, weight) in links {
                // Weights of a page sum to less than 2^63.
                let numbers = [i64::from(source), i64::from(target), weight as i64];
                for (column, number) in columns.iter_mut().zip(numbers) {
                    column.push(number);
                }
                group_links += 1;
                let ends_group = group_links >= GROUP_LINKS;
                if ends_group || columns[0].len() >= BATCH_ROWS {
                    encode(&mut file, &mut columns)?;
                }
                if ends_group {
                    group_links = 0;
                    file.end_group()?;
                }
            }
            Ok(())
        })?;
        if !columns[0].is_empty() {
            encode(&mut file, &mut columns)?;
        }
        file.finish()?;
        Ok(count)
    })
}
