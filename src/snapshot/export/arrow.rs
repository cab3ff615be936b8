//! Arrow's file format (IPC, also called Feather 2): the columns of the Parquet file, in batches that bound memory
//! as its row groups do.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::host::host_and_domain;
use super::{
    Columns, Content, ExportSpec, Exporter, Output, Page, importance, integers, milliseconds,
};
use crate::model::Change;
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "arrow",
    about: "Apache Arrow's file format (IPC, Feather 2)",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Arrow::new(out, setup.columns)?)),
};

/// Most rows of a batch, and bytes of URLs after which it ends.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_URL_BYTES: usize = 64 << 20;

#[derive(Default)]
struct Batch {
    url: Vec<String>,
    url_bytes: usize,
    importance: Vec<f64>,
    rank: Vec<i64>,
    visits: Vec<i64>,
    /// Milliseconds since 1970.
    last_fetch: Vec<Option<i64>>,
    page: Vec<i64>,
    distance: Vec<Option<f64>>,
    pages: Vec<i64>,
    change: Vec<Option<&'static str>>,
}

struct Arrow<'w> {
    writer: FileWriter<Output<'w>>,
    schema: Arc<Schema>,
    batch: Batch,
    columns: Columns,
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
        if columns.distance {
            fields.push(Field::new("distance", DataType::Float64, true));
        }
        if columns.pages {
            fields.push(Field::new("pages", DataType::Int64, false));
        }
        if columns.change {
            fields.push(Field::new("change", DataType::Utf8, false));
        }
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
        if self.columns.distance {
            columns.push(Arc::new(Float64Array::from(batch.distance)));
        }
        if self.columns.pages {
            columns.push(Arc::new(Int64Array::from(batch.pages)));
        }
        if self.columns.change {
            columns.push(Arc::new(StringArray::from(batch.change)));
        }
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
        let [rank, visits, number, pages] = integers(page)?;
        let batch = &mut self.batch;
        batch.page.push(number);
        batch.pages.push(pages);
        batch.change.push(page.change.map(Change::name));
        batch.url.push(page.url.to_string());
        batch.url_bytes += page.url.len();
        batch.importance.push(importance);
        batch.rank.push(rank);
        batch.visits.push(visits);
        batch.last_fetch.push(fetched);
        batch.distance.push(page.distance);
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

/// The system's error, if there is one inside.
fn into_io(error: ArrowError) -> std::io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => std::io::Error::other(error),
    }
}
