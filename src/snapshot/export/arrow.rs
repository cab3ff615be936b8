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

use super::columns::{Column, Kind, Value};
use super::{Content, ExportSpec, Exporter, Output, Page, signed};
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
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
enum Values {
    Text(StringBuilder),
    Real(Float64Builder),
    Integer(Int64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
}

impl Values {
    fn new(column: &Column) -> Values {
        match column.kind {
            Kind::Text => Values::Text(StringBuilder::new()),
            Kind::Real => Values::Real(Float64Builder::new()),
            Kind::Integer => Values::Integer(Int64Builder::new()),
            Kind::Bool => Values::Bool(BooleanBuilder::new()),
            Kind::Time => {
                let times = TimestampMillisecondBuilder::new();
                Values::Time(times.with_timezone("UTC"))
            }
        }
    }

    fn push(&mut self, value: Option<Value<'_>>, page: &Page<'_>) -> Result<()> {
        match (self, value) {
            (Values::Text(to), Some(Value::Text(text))) => to.append_value(text),
            (Values::Real(to), Some(Value::Real(number))) => to.append_value(number),
            (Values::Integer(to), Some(Value::Integer(number))) => {
                to.append_value(signed(page, number)?);
            }
            (Values::Time(to), Some(Value::Time(seconds))) => to.append_value(seconds * 1000),
            (Values::Bool(to), Some(Value::Bool(is))) => to.append_value(is),
            (Values::Text(to), _) => to.append_null(),
            (Values::Real(to), _) => to.append_null(),
            (Values::Integer(to), _) => to.append_null(),
            (Values::Bool(to), _) => to.append_null(),
            (Values::Time(to), _) => to.append_null(),
        }
        Ok(())
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Values::Text(values) => values,
            Values::Real(values) => values,
            Values::Integer(values) => values,
            Values::Bool(values) => values,
            Values::Time(values) => values,
        }
    }
}

struct Arrow<'w> {
    writer: FileWriter<Output<'w>>,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    /// Values of the rows of a batch, by column.
    batch: Vec<Values>,
    rows: usize,
    url_bytes: usize,
}

impl<'w> Arrow<'w> {
    fn new(out: Output<'w>, columns: Vec<Column>) -> Result<Arrow<'w>> {
        let path = out.path.clone();
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                Kind::Text => DataType::Utf8,
                Kind::Real => DataType::Float64,
                Kind::Integer => DataType::Int64,
                Kind::Bool => DataType::Boolean,
                Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            };
            Field::new(&column.name, kind, !column.is_required)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let writer = FileWriter::try_new(out, &schema);
        Ok(Arrow {
            writer: writer.map_err(|e| Error::io(path, "write")(into_io(e)))?,
            schema,
            batch: columns.iter().map(Values::new).collect(),
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
