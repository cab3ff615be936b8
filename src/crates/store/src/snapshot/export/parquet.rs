//! Apache Parquet.
//!
//! ```text
//! text     BYTE_ARRAY (STRING)
//! real     DOUBLE
//! integer  INT64
//! bool     BOOLEAN
//! time     INT64 (TIMESTAMP(MILLIS, UTC))
//! ```
//!
//! Compressed by Snappy, with statistics by column chunk and page. A row group holds at most 131,072 rows and about 64
//! MiB of URLs, which bounds memory here and in readers. URLs are distinct, so they have no dictionary. Integers are
//! signed, since not every reader supports unsigned ones.

use std::io;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::row_group::{BATCH_ROWS, RowGroup};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, Page, signed};
use crate::{Error, Result};

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "parquet",
    about: "Apache Parquet",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Parquet::new(out, setup.all_columns())?)),
};

fn schema(columns: &[ExportColumn]) -> String {
    let fields = columns.iter().map(|column| {
        let required = if column.is_required {
            "REQUIRED"
        } else {
            "OPTIONAL"
        };
        let name = &column.name;
        match column.kind {
            ValueKind::Text => format!("{required} BYTE_ARRAY {name} (STRING);"),
            ValueKind::Real => format!("{required} DOUBLE {name};"),
            ValueKind::Integer => format!("{required} INT64 {name};"),
            ValueKind::Bool => format!("{required} BOOLEAN {name};"),
            ValueKind::Time => format!("{required} INT64 {name} (TIMESTAMP(MILLIS, true));"),
        }
    });
    let fields: String = fields.collect();
    format!("message ranking {{{fields}}}")
}

pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Bytes of URLs at which a row group ends.
pub(super) const GROUP_URL_BYTES: usize = 64 << 20;

/// Values of a column, to be encoded.
enum ParquetValues {
    Text(Optional<ByteArray>),
    Real(Optional<f64>),
    Integer(Optional<i64>),
    Bool(Optional<bool>),
}

impl ParquetValues {
    fn new(column: &ExportColumn) -> ParquetValues {
        match column.kind {
            ValueKind::Text => ParquetValues::Text(Optional::default()),
            ValueKind::Real => ParquetValues::Real(Optional::default()),
            ValueKind::Integer | ValueKind::Time => ParquetValues::Integer(Optional::default()),
            ValueKind::Bool => ParquetValues::Bool(Optional::default()),
        }
    }

    fn push(&mut self, value: Option<ColumnValue<'_>>, page: &Page<'_>) -> Result<()> {
        match (self, value) {
            (ParquetValues::Text(to), Some(ColumnValue::Text(text))) => {
                to.push(Some(ByteArray::from(text)))
            }
            (ParquetValues::Real(to), Some(ColumnValue::Real(number))) => to.push(Some(number)),
            (ParquetValues::Integer(to), Some(ColumnValue::Integer(number))) => {
                to.push(Some(signed(page, number)?));
            }
            (ParquetValues::Integer(to), Some(ColumnValue::Time(seconds))) => {
                to.push(Some(seconds * 1000))
            }
            (ParquetValues::Bool(to), Some(ColumnValue::Bool(is))) => to.push(Some(is)),
            (ParquetValues::Text(to), _) => to.push(None),
            (ParquetValues::Real(to), _) => to.push(None),
            (ParquetValues::Integer(to), _) => to.push(None),
            (ParquetValues::Bool(to), _) => to.push(None),
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
    writer: SerializedFileWriter<ExportOutput<'w>>,
    /// Current row group, with its numbers of rows and bytes of URLs, including the batch.
    group: Option<RowGroup>,
    rows: usize,
    url_bytes: usize,
    /// Values of the rows of a group, by column.
    batch: Vec<ParquetValues>,
    batch_rows: usize,
    columns: Vec<ExportColumn>,
}

impl<'w> Parquet<'w> {
    fn new(out: ExportOutput<'w>, columns: Vec<ExportColumn>) -> Result<Parquet<'w>> {
        let path = out.path.clone();
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
            batch: columns.iter().map(ParquetValues::new).collect(),
            batch_rows: 0,
            columns,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        let empty = self.columns.iter().map(ParquetValues::new).collect();
        let batch = std::mem::replace(&mut self.batch, empty);
        self.batch_rows = 0;
        let group = (self.group).get_or_insert_with(|| RowGroup::new(&self.writer));
        let written = write_batch(group, &batch, &self.columns);
        written.map_err(|e| self.failed(e))
    }

    fn end_group(&mut self) -> Result<()> {
        if self.batch_rows > 0 {
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
        for (column, values) in self.columns.iter().zip(&mut self.batch) {
            values.push(column.of(page)?, page)?;
        }
        self.batch_rows += 1;
        self.rows += 1;
        self.url_bytes += page.url.len();
        if self.rows >= GROUP_ROWS || self.url_bytes >= GROUP_URL_BYTES {
            return self.end_group();
        }
        if self.batch_rows >= BATCH_ROWS {
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
    batch: &[ParquetValues],
    columns: &[ExportColumn],
) -> Result<(), ParquetError> {
    for (column, values) in columns.iter().zip(batch) {
        match values {
            ParquetValues::Text(values) => write_values::<ByteArrayType>(group, column, values)?,
            ParquetValues::Real(values) => write_values::<DoubleType>(group, column, values)?,
            ParquetValues::Integer(values) => write_values::<Int64Type>(group, column, values)?,
            ParquetValues::Bool(values) => write_values::<BoolType>(group, column, values)?,
        }
    }
    Ok(())
}

fn write_values<T: DataType>(
    group: &mut RowGroup,
    column: &ExportColumn,
    values: &Optional<T::T>,
) -> Result<(), ParquetError> {
    let known = (!column.is_required).then_some(&*values.known);
    group.write::<T>(&values.values, known, None)
}

/// Returns the system's error, if there is one inside.
pub fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
