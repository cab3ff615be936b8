//! Arrow's file format (IPC, also called Feather 2): the columns of the Parquet export, in batches that bound memory.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, Page, signed};
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

/// Values of a column.
enum ArrowValues {
    Text(StringBuilder),
    Real(Float64Builder),
    Integer(Int64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
}

impl ArrowValues {
    fn new(column: &ExportColumn) -> ArrowValues {
        match column.kind {
            ValueKind::Text => ArrowValues::Text(StringBuilder::new()),
            ValueKind::Real => ArrowValues::Real(Float64Builder::new()),
            ValueKind::Integer => ArrowValues::Integer(Int64Builder::new()),
            ValueKind::Bool => ArrowValues::Bool(BooleanBuilder::new()),
            ValueKind::Time => {
                let times = TimestampMillisecondBuilder::new();
                ArrowValues::Time(times.with_timezone("UTC"))
            }
        }
    }

    fn push(&mut self, value: Option<ColumnValue<'_>>, page: &Page<'_>) -> Result<()> {
        match (self, value) {
            (ArrowValues::Text(to), Some(ColumnValue::Text(text))) => to.append_value(text),
            (ArrowValues::Real(to), Some(ColumnValue::Real(number))) => to.append_value(number),
            (ArrowValues::Integer(to), Some(ColumnValue::Integer(number))) => {
                to.append_value(signed(page, number)?);
            }
            (ArrowValues::Time(to), Some(ColumnValue::Time(seconds))) => {
                to.append_value(seconds * 1000)
            }
            (ArrowValues::Bool(to), Some(ColumnValue::Bool(is))) => to.append_value(is),
            (ArrowValues::Text(to), _) => to.append_null(),
            (ArrowValues::Real(to), _) => to.append_null(),
            (ArrowValues::Integer(to), _) => to.append_null(),
            (ArrowValues::Bool(to), _) => to.append_null(),
            (ArrowValues::Time(to), _) => to.append_null(),
        }
        Ok(())
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            ArrowValues::Text(values) => values,
            ArrowValues::Real(values) => values,
            ArrowValues::Integer(values) => values,
            ArrowValues::Bool(values) => values,
            ArrowValues::Time(values) => values,
        }
    }
}

struct Arrow<'w> {
    writer: FileWriter<ExportOutput<'w>>,
    schema: Arc<Schema>,
    columns: Vec<ExportColumn>,
    /// Values of the rows of a batch, by column.
    batch: Vec<ArrowValues>,
    rows: usize,
    url_bytes: usize,
}

impl<'w> Arrow<'w> {
    fn new(out: ExportOutput<'w>, columns: Vec<ExportColumn>) -> Result<Arrow<'w>> {
        let path = out.path.clone();
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                ValueKind::Text => DataType::Utf8,
                ValueKind::Real => DataType::Float64,
                ValueKind::Integer => DataType::Int64,
                ValueKind::Bool => DataType::Boolean,
                ValueKind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            };
            Field::new(&column.name, kind, !column.is_required)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let writer = FileWriter::try_new(out, &schema);
        Ok(Arrow {
            writer: writer.map_err(|e| Error::io(path, "write")(into_io(e)))?,
            schema,
            batch: columns.iter().map(ArrowValues::new).collect(),
            columns,
            rows: 0,
            url_bytes: 0,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.url_bytes) = (0, 0);
        let columns = self.batch.iter_mut();
        let columns: Vec<ArrayRef> = columns.map(|values| values.builder().finish()).collect();
        let written = RecordBatch::try_new(self.schema.clone(), columns)
            .and_then(|batch| self.writer.write(&batch));
        written.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: ArrowError) -> Error {
        Error::io(&self.writer.get_ref().path, "write")(into_io(error))
    }
}

impl Exporter for Arrow<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        for (column, values) in self.columns.iter().zip(&mut self.batch) {
            values.push(column.of(page)?, page)?;
        }
        self.rows += 1;
        self.url_bytes += page.url.len();
        if self.rows >= BATCH_ROWS || self.url_bytes >= BATCH_URL_BYTES {
            self.write_batch()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.write_batch()?;
        let finished = self.writer.finish();
        finished.map_err(|e| self.failed(e))?;
        let flushed = self.writer.get_mut().flush();
        flushed.map_err(Error::io(&self.writer.get_ref().path, "write"))?;
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
