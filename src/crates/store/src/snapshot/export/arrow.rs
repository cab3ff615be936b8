//! Arrow's file format (IPC, also called Feather 2): the columns of the Parquet export, in batches that bound memory.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::columns::{ColumnValues, ExportColumn, RowBatch, ValueKind};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, Page};
use crate::{Error, Result};

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "arrow",
    about: "Apache Arrow's file format (IPC, Feather 2)",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Arrow::new(out, setup.all_columns())?)),
};

/// Limits of a batch: number of rows, and bytes of URLs.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_URL_BYTES: usize = 64 << 20;

fn field(column: &ExportColumn) -> Field {
    let kind = match column.kind {
        ValueKind::Text => DataType::Utf8,
        ValueKind::Real => DataType::Float64,
        ValueKind::Integer => DataType::Int64,
        ValueKind::Bool => DataType::Boolean,
        ValueKind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
    };
    Field::new(&column.name, kind, !column.is_required)
}

fn array(values: ColumnValues) -> ArrayRef {
    match values {
        ColumnValues::Text(values) => Arc::new(values.into_iter().collect::<StringArray>()),
        ColumnValues::Real(values) => Arc::new(Float64Array::from(values)),
        ColumnValues::Integer(values) => Arc::new(Int64Array::from(values)),
        ColumnValues::Bool(values) => Arc::new(BooleanArray::from(values)),
        ColumnValues::Time(values) => {
            Arc::new(TimestampMillisecondArray::from(values).with_timezone("UTC"))
        }
    }
}

struct Arrow<'w> {
    writer: FileWriter<ExportOutput<'w>>,
    schema: Arc<Schema>,
    batch: RowBatch,
    url_bytes: usize,
}

impl<'w> Arrow<'w> {
    fn new(out: ExportOutput<'w>, columns: Vec<ExportColumn>) -> Result<Arrow<'w>> {
        let path = out.path.clone();
        let fields: Vec<Field> = columns.iter().map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let writer = FileWriter::try_new(out, &schema);
        Ok(Arrow {
            writer: writer.map_err(|e| Error::io(path, "write")(into_io(e)))?,
            schema,
            batch: RowBatch::new(columns),
            url_bytes: 0,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        if self.batch.rows == 0 {
            return Ok(());
        }
        self.url_bytes = 0;
        let columns = self.batch.take().into_iter().map(array).collect();
        let written = RecordBatch::try_new(self.schema.clone(), columns)
            .and_then(|batch| self.writer.write(&batch));
        written.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: ArrowError) -> Error {
        self.writer.get_ref().error(into_io(error))
    }
}

impl Exporter for Arrow<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        self.batch.push(page)?;
        self.url_bytes += page.url.len();
        if self.batch.rows >= BATCH_ROWS || self.url_bytes >= BATCH_URL_BYTES {
            self.write_batch()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.write_batch()?;
        let finished = self.writer.finish();
        finished.map_err(|e| self.failed(e))?;
        let flushed = self.writer.get_mut().flush();
        flushed.map_err(|e| self.writer.get_ref().error(e))?;
        Ok(0)
    }
}

/// Returns the system's error, if there is one inside.
fn into_io(error: ArrowError) -> std::io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => std::io::Error::other(error),
    }
}
