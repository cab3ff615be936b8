//! Apache Parquet.
//!
//! ```text
//! url         BYTE_ARRAY (STRING)                 required
//! importance  DOUBLE                              required
//! rank        INT64                               required
//! visits      INT64                               required
//! last_fetch  INT64 (TIMESTAMP(MILLIS, UTC))      optional
//! host        BYTE_ARRAY (STRING)                 optional; none of an opaque name
//! domain      BYTE_ARRAY (STRING)                 optional; the same
//! page        INT64                               required
//! distance    DOUBLE                              optional; only where it is asked for
//! pages       INT64                               required; only of sites
//! ```
//!
//! Snappy, statistics by column chunk and page. A row group holds at most 131,072 rows and about 64 MiB of URLs, which
//! bounds memory here and in readers. URLs are all distinct, so they get no dictionary. Signed
//! integers, since not every reader knows unsigned ones.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::host::host_and_domain;
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

fn schema(columns: Columns) -> String {
    let distance = if columns.distance {
        "OPTIONAL DOUBLE distance;"
    } else {
        ""
    };
    let pages = if columns.pages {
        "REQUIRED INT64 pages;"
    } else {
        ""
    };
    let change = if columns.change {
        "REQUIRED BYTE_ARRAY change (STRING);"
    } else {
        ""
    };
    format!("{SCHEMA}{distance}{pages}{change}}}")
}

/// Most rows of a row group.
pub(super) const GROUP_ROWS: usize = 1 << 17;
/// A row group ends once its URLs reach this many bytes.
pub(super) const GROUP_URL_BYTES: usize = 64 << 20;

/// One row group's columns.
#[derive(Default)]
struct Group {
    url: Vec<ByteArray>,
    importance: Vec<f64>,
    rank: Vec<i64>,
    visits: Vec<i64>,
    /// Milliseconds since 1970.
    last_fetch: Optional<i64>,
    host: Optional<ByteArray>,
    domain: Optional<ByteArray>,
    page: Vec<i64>,
    distance: Optional<f64>,
    pages: Vec<i64>,
    change: Vec<ByteArray>,
    url_bytes: usize,
}

/// A column with gaps: its values, and for every row whether it has one (1) or not (0).
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
    group: Group,
    columns: Columns,
}

impl<'w> Parquet<'w> {
    fn new(out: Output<'w>, columns: Columns) -> Result<Parquet<'w>> {
        let path = out.path.clone();
        let start = || {
            let schema = Arc::new(parse_message_type(&schema(columns))?);
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
            group: Group::default(),
            columns,
        })
    }

    fn write_group(&mut self) -> Result<()> {
        if self.group.url.is_empty() {
            return Ok(());
        }
        let group = std::mem::take(&mut self.group);
        let written = write_group(&mut self.writer, &group, self.columns);
        written.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: ParquetError) -> Error {
        Error::io(&self.writer.inner().path, "write")(into_io(error))
    }
}

impl Exporter for Parquet<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let importance = importance(page)?;
        let [rank, visits, number, pages] = integers(page)?;
        let fetched = milliseconds(page)?;

        let columns = &mut self.group;
        columns
            .url
            .push(ByteArray::from(page.url.as_bytes().to_vec()));
        columns.url_bytes += page.url.len();
        columns.importance.push(importance);
        columns.rank.push(rank);
        columns.visits.push(visits);
        columns.last_fetch.push(fetched);
        let (host, domain) = host_and_domain(&page.url);
        columns.host.push(host.map(ByteArray::from));
        columns.domain.push(domain.map(ByteArray::from));
        columns.page.push(number);
        columns.distance.push(page.distance);
        columns.pages.push(pages);
        if let Some(change) = page.change.filter(|_| self.columns.change) {
            columns.change.push(ByteArray::from(change.name()));
        }
        if columns.url.len() >= GROUP_ROWS || columns.url_bytes >= GROUP_URL_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.write_group()?;
        let finished = self.writer.finish();
        finished.map_err(|e| self.failed(e))?;
        Ok(0)
    }
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &Group,
    more: Columns,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    write_column::<ByteArrayType, _>(&mut group, &columns.url, None)?;
    write_column::<DoubleType, _>(&mut group, &columns.importance, None)?;
    write_column::<Int64Type, _>(&mut group, &columns.rank, None)?;
    write_column::<Int64Type, _>(&mut group, &columns.visits, None)?;
    write_optional::<Int64Type, _>(&mut group, &columns.last_fetch)?;
    write_optional::<ByteArrayType, _>(&mut group, &columns.host)?;
    write_optional::<ByteArrayType, _>(&mut group, &columns.domain)?;
    write_column::<Int64Type, _>(&mut group, &columns.page, None)?;
    if more.distance {
        write_optional::<DoubleType, _>(&mut group, &columns.distance)?;
    }
    if more.pages {
        write_column::<Int64Type, _>(&mut group, &columns.pages, None)?;
    }
    if more.change {
        write_column::<ByteArrayType, _>(&mut group, &columns.change, None)?;
    }
    group.close()?;
    Ok(())
}

fn write_optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Optional<T::T>,
) -> Result<(), ParquetError> {
    write_column::<T, W>(group, &column.values, Some(&column.known))
}

/// Writes the next column; `known` holds 1 for a value and 0 for a null.
pub(crate) fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    known: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".into()));
    };
    column.typed::<T>().write_batch(values, known, None)?;
    column.close()
}

/// The system's error, if there is one inside.
pub(crate) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
