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

use super::columns::{Column, Kind, Value};
use super::row_group::{BATCH_ROWS, RowGroup};
use super::{Content, ExportSpec, Exporter, Output, Page, signed};
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "parquet",
    about: "Apache Parquet",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Parquet::new(out, setup.all_columns())?)),
};

fn schema(columns: &[Column]) -> String {
    let fields = columns.iter().map(|column| {
        let required = if column.is_required {
            "REQUIRED"
        } else {
            "OPTIONAL"
        };
        let name = &column.name;
        match column.kind {
            Kind::Text => format!("{required} BYTE_ARRAY {name} (STRING);"),
            Kind::Real => format!("{required} DOUBLE {name};"),
            Kind::Integer => format!("{required} INT64 {name};"),
            Kind::Bool => format!("{required} BOOLEAN {name};"),
            Kind::Time => format!("{required} INT64 {name} (TIMESTAMP(MILLIS, true));"),
        }
    });
    let fields: String = fields.collect();
    format!("message ranking {{{fields}}}")
}

pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Bytes of URLs at which a row group ends.
pub(super) const GROUP_URL_BYTES: usize = 64 << 20;

/// Values of a column, to be encoded.
enum Values {
    Text(Optional<ByteArray>),
    Real(Optional<f64>),
    Integer(Optional<i64>),
    Bool(Optional<bool>),
}

impl Values {
    fn new(column: &Column) -> Values {
        match column.kind {
            Kind::Text => Values::Text(Optional::default()),
            Kind::Real => Values::Real(Optional::default()),
            Kind::Integer | Kind::Time => Values::Integer(Optional::default()),
            Kind::Bool => Values::Bool(Optional::default()),
        }
    }

    fn push(&mut self, value: Option<Value<'_>>, page: &Page<'_>) -> Result<()> {
        match (self, value) {
            (Values::Text(to), Some(Value::Text(text))) => to.push(Some(ByteArray::from(text))),
            (Values::Real(to), Some(Value::Real(number))) => to.push(Some(number)),
            (Values::Integer(to), Some(Value::Integer(number))) => {
                to.push(Some(signed(page, number)?));
            }
            (Values::Integer(to), Some(Value::Time(seconds))) => to.push(Some(seconds * 1000)),
            (Values::Bool(to), Some(Value::Bool(is))) => to.push(Some(is)),
            (Values::Text(to), _) => to.push(None),
            (Values::Real(to), _) => to.push(None),
            (Values::Integer(to), _) => to.push(None),
            (Values::Bool(to), _) => to.push(None),
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
    /// The values of so many rows, by column.
    batch: Vec<Values>,
    batch_rows: usize,
    columns: Vec<Column>,
}

impl<'w> Parquet<'w> {
    fn new(out: Output<'w>, columns: Vec<Column>) -> Result<Parquet<'w>> {
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
            batch: columns.iter().map(Values::new).collect(),
            batch_rows: 0,
            columns,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        let empty = self.columns.iter().map(Values::new).collect();
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
    batch: &[Values],
    columns: &[Column],
) -> Result<(), ParquetError> {
    for (column, values) in columns.iter().zip(batch) {
        match values {
            Values::Text(values) => write_values::<ByteArrayType>(group, column, values)?,
            Values::Real(values) => write_values::<DoubleType>(group, column, values)?,
            Values::Integer(values) => write_values::<Int64Type>(group, column, values)?,
            Values::Bool(values) => write_values::<BoolType>(group, column, values)?,
        }
    }
    Ok(())
}

fn write_values<T: DataType>(
    group: &mut RowGroup,
    column: &Column,
    values: &Optional<T::T>,
) -> Result<(), ParquetError> {
    let known = (!column.is_required).then_some(&*values.known);
    group.write::<T>(&values.values, known, None)
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
