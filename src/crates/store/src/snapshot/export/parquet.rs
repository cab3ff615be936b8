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

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    DEFAULT_WRITE_BATCH_SIZE, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{ExportOutput, Page, RowSource, Setup};
use crate::threads::lock;
use crate::{Error, Result};

/// Returns the definition of a column in a schema.
fn field(column: &ExportColumn) -> String {
    let name = &column.name;
    let required = if column.is_required {
        "REQUIRED"
    } else {
        "OPTIONAL"
    };
    match column.kind {
        ValueKind::Text => format!("{required} BYTE_ARRAY {name} (STRING);"),
        ValueKind::Real => format!("{required} DOUBLE {name};"),
        ValueKind::Integer => format!("{required} INT64 {name};"),
        ValueKind::Bool => format!("{required} BOOLEAN {name};"),
        ValueKind::Time => format!("{required} INT64 {name} (TIMESTAMP(MILLIS, true));"),
    }
}

/// Values of a column until they are encoded, of its one type.
struct ColumnBatch {
    column: ExportColumn,
    /// For each row 1 if it has a value, else 0.
    known: Vec<i16>,
    texts: Vec<ByteArray>,
    reals: Vec<f64>,
    integers: Vec<i64>,
    bools: Vec<bool>,
}

impl ColumnBatch {
    fn new(column: ExportColumn) -> ColumnBatch {
        ColumnBatch {
            column,
            known: Vec::new(),
            texts: Vec::new(),
            reals: Vec::new(),
            integers: Vec::new(),
            bools: Vec::new(),
        }
    }

    fn push(&mut self, page: &Page<'_>) -> Result<()> {
        let value = self.column.of(page)?;
        self.known.push(value.is_some().into());
        match value {
            None => {}
            Some(ColumnValue::Text(text)) => self.texts.push(text.into()),
            Some(ColumnValue::Real(number)) => self.reals.push(number),
            Some(ColumnValue::Integer(number)) => self.integers.push(number as i64),
            Some(ColumnValue::Time(seconds)) => self.integers.push(seconds * 1000),
            Some(ColumnValue::Bool(is)) => self.bools.push(is),
        }
        Ok(())
    }

    fn encode(&mut self, group: &mut RowGroup) -> std::result::Result<(), ParquetError> {
        let known = (!self.column.is_required).then_some(&*self.known);
        match self.column.kind {
            ValueKind::Text => group.write::<ByteArrayType>(&self.texts, known, None)?,
            ValueKind::Real => group.write::<DoubleType>(&self.reals, known, None)?,
            ValueKind::Bool => group.write::<BoolType>(&self.bools, known, None)?,
            ValueKind::Integer | ValueKind::Time => {
                group.write::<Int64Type>(&self.integers, known, None)?;
            }
        }
        self.known.clear();
        self.texts.clear();
        self.reals.clear();
        self.integers.clear();
        self.bools.clear();
        Ok(())
    }
}

pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Bytes of URLs at which a row group ends.
pub(super) const GROUP_URL_BYTES: usize = 64 << 20;

pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    path: PathBuf,
    group: Option<RowGroup>,
}

impl<W: Write + Send> ParquetFile<W> {
    pub fn new(
        out: W,
        path: &Path,
        schema: &str,
        properties: WriterPropertiesBuilder,
    ) -> Result<ParquetFile<W>> {
        let program = concat!("cashrank ", env!("CARGO_PKG_VERSION"));
        let properties = properties.set_created_by(program.to_owned()).build();
        let writer = parse_message_type(schema).and_then(|schema| {
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
        });
        Ok(ParquetFile {
            writer: writer.map_err(|e| Error::io(path, "write")(into_io(e)))?,
            path: path.to_owned(),
            group: None,
        })
    }

    /// Encodes rows, by column, into the current row group.
    pub fn encode(
        &mut self,
        rows: impl FnOnce(&mut RowGroup) -> std::result::Result<(), ParquetError>,
    ) -> Result<()> {
        let group = (self.group).get_or_insert_with(|| RowGroup::new(&self.writer));
        rows(group).map_err(|error| self.error(error))
    }

    pub fn end_group(&mut self) -> Result<()> {
        let group = self.group.take();
        let ended = group.map_or(Ok(()), |group| group.end(&mut self.writer));
        ended.map_err(|error| self.error(error))
    }

    pub fn finish(mut self) -> Result<()> {
        self.end_group()?;
        let finished = self.writer.finish();
        finished.map(drop).map_err(|error| self.error(error))?;
        let flushed = self.writer.inner_mut().flush();
        flushed.map_err(Error::io(&self.path, "write"))
    }

    fn error(&self, error: ParquetError) -> Error {
        Error::io(&self.path, "write")(into_io(error))
    }
}

pub(super) fn write(out: ExportOutput<'_>, setup: &Setup, rows: &mut RowSource<'_>) -> Result<()> {
    let path = out.path;
    let columns = setup.all_columns();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_dictionary_enabled(ColumnPath::from("url"), false);
    let fields: String = columns.iter().map(field).collect();
    let schema = format!("message ranking {{{fields}}}");
    let mut file = ParquetFile::new(out, path, &schema, properties)?;
    let mut batch: Vec<_> = columns.into_iter().map(ColumnBatch::new).collect();
    // Numbers of rows of the batch and of the row group, and the latter's bytes of URLs.
    let (mut batch_rows, mut group_rows, mut url_bytes) = (0, 0, 0);
    rows(&mut |page| {
        batch.iter_mut().try_for_each(|column| column.push(page))?;
        batch_rows += 1;
        group_rows += 1;
        url_bytes += page.url.len();
        let ends_group = group_rows >= GROUP_ROWS || url_bytes >= GROUP_URL_BYTES;
        if ends_group || batch_rows >= BATCH_ROWS {
            batch_rows = 0;
            file.encode(|group| batch.iter_mut().try_for_each(|of| of.encode(group)))?;
        }
        if ends_group {
            (group_rows, url_bytes) = (0, 0);
            file.end_group()?;
        }
        Ok(())
    })?;
    if batch_rows > 0 {
        file.encode(|group| batch.iter_mut().try_for_each(|of| of.encode(group)))?;
    }
    file.finish()
}

/// Number of rows to write to a column at a time. Pages end at multiples of it.
const BATCH_ROWS: usize = DEFAULT_WRITE_BATCH_SIZE;

/// Row group that is encoded as rows arrive, so that only encoded data is buffered.
pub struct RowGroup {
    columns: Vec<(ColumnWriter<'static>, EncodedPages)>,
    next: usize,
}

impl RowGroup {
    fn new<W: Write + Send>(file: &SerializedFileWriter<W>) -> RowGroup {
        let columns = file.schema_descr().columns().iter().map(|column| {
            let pages = EncodedPages::default();
            let into = Box::new(pages.clone());
            let writer = get_column_writer(column.clone(), file.properties().clone(), into);
            (writer, pages)
        });
        RowGroup {
            columns: columns.collect(),
            next: 0,
        }
    }

    /// Writes values of the next column, like [`RowGroup::write`]; it has no nulls if it is `required`.
    pub fn write_values<T: DataType>(
        &mut self,
        values: impl IntoIterator<Item = Option<T::T>>,
        required: bool,
    ) -> std::result::Result<(), ParquetError> {
        let mut known = Vec::new();
        let values = values
            .into_iter()
            .inspect(|value| known.push(value.is_some().into()));
        let values: Vec<T::T> = values.flatten().collect();
        self.write::<T>(&values, (!required).then_some(&*known), None)
    }

    /// Writes rows of the next column, in round-robin order. `known` holds 1 for a value and 0 for a null; for lists
    /// the definition levels, and `repeated` the repetition levels.
    pub fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        known: Option<&[i16]>,
        repeated: Option<&[i16]>,
    ) -> std::result::Result<(), ParquetError> {
        let turn = self.next;
        self.next = (turn + 1) % self.columns.len();
        let writer = get_typed_column_writer_mut::<T>(&mut self.columns[turn].0);
        writer.write_batch(values, known, repeated)?;
        Ok(())
    }

    fn end<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
    ) -> std::result::Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for (writer, pages) in self.columns {
            let closed = writer.close()?;
            let pages = std::mem::take(&mut *lock(&pages.0));
            group.append_column(&Bytes::from(pages), closed)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Encoded pages of a column, concatenated.
#[derive(Clone, Default)]
struct EncodedPages(Arc<Mutex<Vec<u8>>>);

impl PageWriter for EncodedPages {
    fn write_page(
        &mut self,
        page: CompressedPage,
    ) -> std::result::Result<PageWriteSpec, ParquetError> {
        let mut bytes = lock(&self.0);
        let start = bytes.len() as u64;
        let mut out = TrackedWrite::new(&mut *bytes);
        let mut written = SerializedPageWriter::new(&mut out).write_page(page)?;
        out.flush()?;
        written.offset += start;
        Ok(written)
    }

    fn close(&mut self) -> std::result::Result<(), ParquetError> {
        Ok(())
    }
}

/// Converts an error of the library; an I/O error inside it is returned as it is.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
