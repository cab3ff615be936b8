//! Arrow's file format (IPC, also called Feather 2): the columns of the Parquet export, in batches that bound memory.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::columns::{Column, Kind, Value};
use super::host::host_and_domain;
use super::{
    Columns, Content, ExportSpec, Exporter, Output, Page, importance, integers, milliseconds,
};
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "arrow",
    about: "Apache Arrow's file format (IPC, Feather 2)",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Arrow::new(out, setup.columns)?)),
};

/// Limits of a batch: number of rows, and bytes of URLs.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_URL_BYTES: usize = 64 << 20;

#[derive(Default)]
struct Batch {
    url: Vec<String>,
    url_bytes: usize,
    importance: Vec<f64>,
    rank: Vec<i64>,
    visits: Vec<i64>,
    /// Last fetches in milliseconds since 1970.
    last_fetch: Vec<Option<i64>>,
    page: Vec<i64>,
    /// Values of the columns that were requested.
    more: Vec<Values>,
}

enum Values {
    Text(Vec<Option<&'static str>>),
    Real(Vec<Option<f64>>),
    Integer(Vec<Option<i64>>),
}

impl Values {
    fn new(column: &Column) -> Values {
        match column.kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
        }
    }

    fn push(&mut self, value: Option<Value>, page: &Page<'_>) -> Result<()> {
        match self {
            Values::Text(values) => values.push(value.and_then(Value::text)),
            Values::Real(values) => values.push(value.and_then(Value::real)),
            Values::Integer(values) => {
                let value = value.map(|value| value.integer(page)).transpose()?;
                values.push(value.flatten());
            }
        }
        Ok(())
    }
}

struct Arrow<'w> {
    writer: FileWriter<Output<'w>>,
    schema: Arc<Schema>,
    batch: Batch,
    columns: Vec<Column>,
}

impl<'w> Arrow<'w> {
    fn new(out: Output<'w>, columns: Columns) -> Result<Arrow<'w>> {
        let path = out.path.clone();
        let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let mut fields = vec![
            Field::new("url", DataType::Utf8, false),
            Field::new("importance", DataType::Float64, false),
            Field::new("rank", DataType::Int64, false),
            Field::new("visits", DataType::Int64, false),
            Field::new("last_fetch", time, true),
            Field::new("host", DataType::Utf8, true),
            Field::new("domain", DataType::Utf8, true),
            Field::new("page", DataType::Int64, false),
        ];
        let columns = columns.all();
        fields.extend(columns.iter().map(|column| {
            let kind = match column.kind {
                Kind::Text => DataType::Utf8,
                Kind::Real => DataType::Float64,
                Kind::Integer => DataType::Int64,
            };
            Field::new(column.name, kind, !column.is_required)
        }));
        let schema = Arc::new(Schema::new(fields));
        let writer = FileWriter::try_new(out, &schema);
        Ok(Arrow {
            writer: writer.map_err(|e| Error::io(path, "write")(into_io(e)))?,
            schema,
            batch: Batch::default(),
            columns,
        })
    }

    fn write_batch(&mut self) -> Result<()> {
        if self.batch.url.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let hosts = || batch.url.iter().map(|url| host_and_domain(url));
        let last_fetch = TimestampMillisecondArray::from(batch.last_fetch).with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(&batch.url)),
            Arc::new(Float64Array::from(batch.importance)),
            Arc::new(Int64Array::from(batch.rank)),
            Arc::new(Int64Array::from(batch.visits)),
            Arc::new(last_fetch),
            Arc::new(hosts().map(|(host, _)| host).collect::<StringArray>()),
            Arc::new(hosts().map(|(_, domain)| domain).collect::<StringArray>()),
            Arc::new(Int64Array::from(batch.page)),
        ];
        columns.extend(batch.more.into_iter().map(|values| match values {
            Values::Text(values) => Arc::new(StringArray::from(values)) as ArrayRef,
            Values::Real(values) => Arc::new(Float64Array::from(values)),
            Values::Integer(values) => Arc::new(Int64Array::from(values)),
        }));
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
        let (importance, fetched) = (importance(page)?, milliseconds(page)?);
        let [rank, visits, number] = integers(page)?;
        let batch = &mut self.batch;
        batch.page.push(number);
        batch.url.push(page.url.to_string());
        batch.url_bytes += page.url.len();
        batch.importance.push(importance);
        batch.rank.push(rank);
        batch.visits.push(visits);
        batch.last_fetch.push(fetched);
        if batch.more.is_empty() {
            batch.more = self.columns.iter().map(Values::new).collect();
        }
        for (column, values) in self.columns.iter().zip(&mut batch.more) {
            values.push(column.of(page)?, page)?;
        }
        if batch.url.len() >= BATCH_ROWS || batch.url_bytes >= BATCH_URL_BYTES {
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
