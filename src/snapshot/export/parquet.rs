//! Apache Parquet.
//!
//! ```text
//! url         BYTE_ARRAY (STRING)                 required
//! importance  DOUBLE                              required
//! rank        INT64                               required
//! visits      INT64                               required
//! last_fetch  INT64 (TIMESTAMP(MILLIS, UTC))      optional
//! host        BYTE_ARRAY (STRING)                 optional; none of an opaque name
//! domain      BYTE_ARRAY (STRING)                 optional; likewise
//! page        INT64                               required
//! state       BYTE_ARRAY (STRING)                 optional; only of pages
//! cash        DOUBLE                              optional; only on request
//! distributed DOUBLE                              optional; likewise
//! distance    DOUBLE                              optional; likewise
//! pages       INT64                               required; only of sites
//! change      BYTE_ARRAY (STRING)                 required; only since an older ranking
//! ```
//!
//! Compressed by Snappy, with statistics by column chunk and page. A row group holds at most 131,072 rows and about 64
//! MiB of URLs, which bounds memory here and in readers. URLs are distinct, so they have no dictionary. Integers are
//! signed, since not every reader supports unsigned ones.

use std::io;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::columns::{Column, Kind, Value};
use super::host::host_and_domain;
use super::row_group::{BATCH_ROWS, RowGroup};
use super::{
    Columns, Content, ExportSpec, Exporter, Output, Page, importance, integers, milliseconds,
};
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "parquet",
    about: "Apache Parquet",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Parquet::new(out, setup.columns)?)),
};

const SCHEMA: &str = "message ranking {
    REQUIRED BYTE_ARRAY url (STRING);
    REQUIRED DOUBLE importance;
    REQUIRED INT64 rank;
    REQUIRED INT64 visits;
    OPTIONAL INT64 last_fetch (TIMESTAMP(MILLIS, true));
    OPTIONAL BYTE_ARRAY host (STRING);
    OPTIONAL BYTE_ARRAY domain (STRING);
    REQUIRED INT64 page;
";

fn schema(columns: &[Column]) -> String {
    let more = columns.iter().map(|column| {
        let required = if column.is_required {
            "REQUIRED"
        } else {
            "OPTIONAL"
        };
        let name = column.name;
        match column.kind {
            Kind::Text => format!("{required} BYTE_ARRAY {name} (STRING);"),
            Kind::Real => format!("{required} DOUBLE {name};"),
            Kind::Integer => format!("{required} INT64 {name};"),
        }
    });
    let more: String = more.collect();
    format!("{SCHEMA}{more}}}")
}

pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Bytes of URLs at which a row group ends.
pub(super) const GROUP_URL_BYTES: usize = 64 << 20;

/// Rows by column, to be encoded.
#[derive(Default)]
struct Batch {
    url: Vec<ByteArray>,
    importance: Vec<f64>,
    rank: Vec<i64>,
    visits: Vec<i64>,
    /// Last fetches in milliseconds since 1970.
    last_fetch: Optional<i64>,
    host: Optional<ByteArray>,
    domain: Optional<ByteArray>,
    page: Vec<i64>,
    /// Values of the columns that were requested.
    more: Vec<Values>,
}

enum Values {
    Text(Optional<ByteArray>),
    Real(Optional<f64>),
    Integer(Optional<i64>),
}

impl Values {
    fn new(column: &Column) -> Values {
        match column.kind {
            Kind::Text => Values::Text(Optional::default()),
            Kind::Real => Values::Real(Optional::default()),
            Kind::Integer => Values::Integer(Optional::default()),
        }
    }

    fn push(&mut self, value: Option<Value>, page: &Page<'_>) -> Result<()> {
        match self {
            Values::Text(values) => values.push(value.and_then(Value::text).map(ByteArray::from)),
            Values::Real(values) => values.push(value.and_then(Value::real)),
            Values::Integer(values) => {
                let value = value.map(|value| value.integer(page)).transpose()?;
                values.push(value.flatten());
            }
        }
        Ok(())
    }
}

/// Column with nulls: its values, and for every row whether it has one (1) or not (0).
#[derive(Default)]
struct Optional<T> {
    values: Vec<T>,
    known: Vec<i16>,
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.known.push(value.is_some().into());
        self.values.extend(value);
    }
}

struct Parquet<'w> {
    writer: SerializedFileWriter<Output<'w>>,
    /// Current row group, with its numbers of rows and bytes of URLs, including the batch.
    group: Option<RowGroup>,
    rows: usize,
    url_bytes: usize,
    batch: Batch,
    columns: Vec<Column>,
}

impl<'w> Parquet<'w> {
    fn new(out: Output<'w>, columns: Columns) -> Result<Parquet<'w>> {
        let path = out.path.clone();
        let columns = columns.all();
        let start = || {
            let schema = Arc::new(parse_message_type(&schema(&columns))?);
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_statistics_enabled(EnabledStatistics::Page)
                .set_column_dictionary_enabled(ColumnPath::from("url"), false)
                .set_created_by(concat!("cashrank ", env!("CARGO_PKG_VERSION")).to_owned())
                .build();
            SerializedFileWriter::new(out, schema, Arc::new(properties))
        };
        let writer = start().map_err(|e| Error::io(path, "write")(into_io(e)))?;
        Ok(Parquet {
            writer,
            group: None,
            rows: 0,
            url_bytes: 0,
            batch: Batch::default(),
            columns,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let group = (self.group).get_or_insert_with(|| RowGroup::new(&self.writer));
        let written = write_batch(group, &batch, &self.columns);
        written.map_err(|e| self.failed(e))
    }

    fn end_group(&mut self) -> Result<()> {
        if !self.batch.url.is_empty() {
            self.write_batch()?;
        }
        (self.rows, self.url_bytes) = (0, 0);
        let group = self.group.take();
        let ended = group.map_or(Ok(()), |group| group.end(&mut self.writer));
        ended.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: ParquetError) -> Error {
        Error::io(&self.writer.inner().path, "write")(into_io(error))
    }
}

impl Exporter for Parquet<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let importance = importance(page)?;
        let [rank, visits, number] = integers(page)?;
        let fetched = milliseconds(page)?;

        let columns = &mut self.batch;
        columns
            .url
            .push(ByteArray::from(page.url.as_bytes().to_vec()));
        columns.importance.push(importance);
        columns.rank.push(rank);
        columns.visits.push(visits);
        columns.last_fetch.push(fetched);
        let (host, domain) = host_and_domain(&page.url);
        columns.host.push(host.map(ByteArray::from));
        columns.domain.push(domain.map(ByteArray::from));
        columns.page.push(number);
        if columns.more.is_empty() {
            columns.more = self.columns.iter().map(Values::new).collect();
        }
        for (column, values) in self.columns.iter().zip(&mut columns.more) {
            values.push(column.of(page)?, page)?;
        }
        self.rows += 1;
        self.url_bytes += page.url.len();
        if self.rows >= GROUP_ROWS || self.url_bytes >= GROUP_URL_BYTES {
            return self.end_group();
        }
        if self.batch.url.len() >= BATCH_ROWS {
            return self.write_batch();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.end_group()?;
        let finished = self.writer.finish();
        finished.map_err(|e| self.failed(e))?;
        Ok(0)
    }
}

fn write_batch(
    group: &mut RowGroup,
    batch: &Batch,
    columns: &[Column],
) -> Result<(), ParquetError> {
    group.write::<ByteArrayType>(&batch.url, None, None)?;
    group.write::<DoubleType>(&batch.importance, None, None)?;
    group.write::<Int64Type>(&batch.rank, None, None)?;
    group.write::<Int64Type>(&batch.visits, None, None)?;
    write_optional::<Int64Type>(group, &batch.last_fetch)?;
    write_optional::<ByteArrayType>(group, &batch.host)?;
    write_optional::<ByteArrayType>(group, &batch.domain)?;
    group.write::<Int64Type>(&batch.page, None, None)?;
    for (column, values) in columns.iter().zip(&batch.more) {
        match values {
            Values::Text(values) => write_values::<ByteArrayType>(group, column, values)?,
            Values::Real(values) => write_values::<DoubleType>(group, column, values)?,
            Values::Integer(values) => write_values::<Int64Type>(group, column, values)?,
        }
    }
    Ok(())
}

fn write_optional<T: DataType>(
    group: &mut RowGroup,
    column: &Optional<T::T>,
) -> Result<(), ParquetError> {
    group.write::<T>(&column.values, Some(&column.known), None)
}

/// Writes the values of an optional column.
fn write_values<T: DataType>(
    group: &mut RowGroup,
    column: &Column,
    values: &Optional<T::T>,
) -> Result<(), ParquetError> {
    if column.is_required {
        group.write::<T>(&values.values, None, None)
    } else {
        write_optional::<T>(group, values)
    }
}

/// Returns the system's error, if there is one inside.
pub(crate) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
