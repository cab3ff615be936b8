//! Apache Parquet, compressed by Snappy, with statistics by column chunk and page. A row group holds at most 131,072
//! rows and about 64 MiB of URLs, which bounds memory here and in readers. Integers are signed, since not every reader
//! supports unsigned ones.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    DEFAULT_WRITE_BATCH_SIZE, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{ExportOutput, Page, Setup};
use crate::threads::lock;
use crate::{Error, Result};

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

pub(super) const GROUP_ROWS: usize = 1 << 17;
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

/// Columns without a dictionary, as their values are distinct, or nearly so.
const DISTINCT: [&str; 4] = ["url", "importance", "rank", "page"];

pub(super) fn write(
    out: ExportOutput<'_>,
    setup: &Setup,
    rows: &mut dyn Iterator<Item = Result<Page<'_>>>,
) -> Result<()> {
    let path = out.path;
    let columns = setup.all_columns();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Page);
    let properties = DISTINCT.into_iter().fold(properties, |properties, name| {
        properties.set_column_dictionary_enabled(ColumnPath::from(name), false)
    });
    let fields: String = columns.iter().map(field).collect();
    let schema = format!("message ranking {{{fields}}}");
    let mut file = ParquetFile::new(out, path, &schema, properties)?;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    // Numbers of rows and of bytes of URLs in the row group.
    let (mut group_rows, mut url_bytes) = (0, 0);
    for page in rows {
        let page = page?;
        group_rows += 1;
        url_bytes += page.url.len();
        batch.push(page);
        let ends_group = group_rows >= GROUP_ROWS || url_bytes >= GROUP_URL_BYTES;
        if ends_group || batch.len() >= BATCH_ROWS {
            encode(&mut file, &columns, &batch)?;
            batch.clear();
        }
        if ends_group {
            (group_rows, url_bytes) = (0, 0);
            file.end_group()?;
        }
    }
    if !batch.is_empty() {
        encode(&mut file, &columns, &batch)?;
    }
    file.finish()
}

fn encode<W: Write + Send>(
    file: &mut ParquetFile<W>,
    columns: &[ExportColumn],
    pages: &[Page<'_>],
) -> Result<()> {
    for column in columns {
        let values = pages.iter().map(|page| column.of(page));
        let values = values.collect::<Result<Vec<_>>>()?.into_iter();
        let required = column.is_required;
        file.encode(|group| match column.kind {
            ValueKind::Text => {
                let texts = values.map(|value| match value? {
                    ColumnValue::Text(text) => Some(text.into()),
                    _ => None,
                });
                group.write_values::<ByteArrayType>(texts, required)
            }
            ValueKind::Real => {
                let reals = values.map(|value| match value? {
                    ColumnValue::Real(number) => Some(number),
                    _ => None,
                });
                group.write_values::<DoubleType>(reals, required)
            }
            ValueKind::Bool => {
                let bools = values.map(|value| Some(value? == ColumnValue::Bool(true)));
                group.write_values::<BoolType>(bools, required)
            }
            ValueKind::Integer | ValueKind::Time => {
                let integers = values.map(|value| match value? {
                    ColumnValue::Integer(number) => Some(number as i64),
                    ColumnValue::Time(seconds) => Some(seconds * 1000),
                    _ => None,
                });
                group.write_values::<Int64Type>(integers, required)
            }
        })?;
    }
    Ok(())
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

    /// Writes rows of the next column; `known` are definition levels, and `repeated` the repetition levels.
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
