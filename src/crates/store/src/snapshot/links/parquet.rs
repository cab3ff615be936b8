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
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::{LinkGraph, Room, write_file};
use crate::snapshot::export::parquet::into_io;
use crate::snapshot::export::row_group::{BATCH_ROWS, RowGroup};
use crate::snapshot::export::{Format, OptionalColumns, Setup, export};
use crate::{Error, Result};

const GROUP_LINKS: usize = 1 << 20;

/// Writes both tables into `folder`. Returns the number of links. Names stay on disk.
pub fn write_parquet(graph: &LinkGraph<'_>, room: Room<'_>, folder: &Path) -> Result<u64> {
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
        let failed = |error| Error::io(path, "write")(into_io(error));
        let mut table = LinkParquetTable::new(out, graph.is_weighted()).map_err(failed)?;
        let count = graph.each_links(room, &mut |source, links| {
            let mut links = links.iter();
            links
                .try_for_each(|&(target, weight)| table.link(source, target, weight))
                .map_err(failed)
        })?;
        table.finish().map_err(failed)?;
        Ok(count)
    })
}

struct LinkParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Current row group, with its number of links including those to be encoded.
    group: Option<RowGroup>,
    links: usize,
    /// Sources, targets, and weights if there are any, to be encoded.
    columns: Vec<Vec<i64>>,
}

impl<W: Write + Send> LinkParquetTable<W> {
    fn new(out: W, weighted: bool) -> std::result::Result<LinkParquetTable<W>, ParquetError> {
        let weight = if weighted {
            "REQUIRED INT64 weight;"
        } else {
            ""
        };
        let schema =
            format!("message links {{ REQUIRED INT64 source; REQUIRED INT64 target; {weight} }}");
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .set_created_by(concat!("cashrank ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let schema = Arc::new(parse_message_type(&schema)?);
        Ok(LinkParquetTable {
            writer: SerializedFileWriter::new(out, schema, Arc::new(properties))?,
            group: None,
            links: 0,
            columns: vec![Vec::new(); if weighted { 3 } else { 2 }],
        })
    }

    fn link(
        &mut self,
        source: u32,
        target: u32,
        weight: u64,
    ) -> std::result::Result<(), ParquetError> {
        // Weights of a page sum to less than 2^63.
        let numbers = [i64::from(source), i64::from(target), weight as i64];
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column.push(number);
        }
        self.links += 1;
        if self.links >= GROUP_LINKS {
            return self.end_group();
        }
        if self.columns[0].len() >= BATCH_ROWS {
            return self.write_batch();
        }
        Ok(())
    }

    fn write_batch(&mut self) -> std::result::Result<(), ParquetError> {
        let group = (self.group).get_or_insert_with(|| RowGroup::new(&self.writer));
        for column in &mut self.columns {
            group.write::<Int64Type>(column, None, None)?;
            column.clear();
        }
        Ok(())
    }

    fn end_group(&mut self) -> std::result::Result<(), ParquetError> {
        if !self.columns[0].is_empty() {
            self.write_batch()?;
        }
        self.links = 0;
        let group = self.group.take();
        group.map_or(Ok(()), |group| group.end(&mut self.writer))
    }

    fn finish(mut self) -> std::result::Result<(), ParquetError> {
        self.end_group()?;
        self.writer.close()?;
        Ok(())
    }
}
