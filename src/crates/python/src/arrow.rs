//! Rankings as Arrow tables, handed over through `__arrow_c_stream__`: pyarrow, pandas, Polars, DuckDB and others take them
//! without a copy, and none of them is needed here.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::TimestampMillisecondType;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use cashrank::PageId;
use cashrank::snapshot::{Snapshot, SnapshotPage};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::internal;
use crate::work::Stop;

/// Rows of a batch: one block of a snapshot's columns.
const ROWS: u64 = 1 << 17;

/// The columns of a ranking: those of the Parquet export, and the page's number.
pub fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("url", DataType::Utf8, false),
        Field::new("importance", DataType::Float64, false),
        Field::new("rank", DataType::Int64, false),
        Field::new("visits", DataType::Int64, false),
        Field::new("last_fetch", time, true),
        Field::new("page", DataType::Int64, false),
    ]))
}

/// A snapshot's pages in number order, batch after batch, read as they are asked for.
pub struct Batches {
    snapshot: Arc<Snapshot>,
    next: u64,
}

impl Batches {
    pub fn new(snapshot: Arc<Snapshot>) -> Batches {
        Batches { snapshot, next: 0 }
    }

    fn read(&self, first: u64, end: u64) -> cashrank::Result<RecordBatch> {
        let mut urls = StringBuilder::new();
        self.snapshot.each_name(first..end, &mut |name| {
            urls.append_value(String::from_utf8_lossy(name));
        })?;
        let numbers: Vec<PageId> = (first..end).map(PageId).collect();
        let pages = self.snapshot.pages_of(&numbers)?;
        let whole = |of: &dyn Fn(&SnapshotPage) -> u64| -> ArrayRef {
            Arc::new(
                pages
                    .iter()
                    .map(|page| of(page) as i64)
                    .collect::<Int64Array>(),
            )
        };
        let importance: Float64Array = pages.iter().map(|page| page.importance).collect();
        let times = pages
            .iter()
            .map(|page| Some(page.fetches.last?.saturating_mul(1000)));
        let times: PrimitiveArray<TimestampMillisecondType> = times.collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(urls.finish()),
            Arc::new(importance),
            whole(&|page| page.rank),
            whole(&|page| page.fetches.visits),
            Arc::new(times.with_timezone("UTC")),
            whole(&|page| page.page.0),
        ];
        RecordBatch::try_new(schema(), columns)
            .map_err(|error| cashrank::Error::Unsupported(error.to_string()))
    }

    /// All that is left.
    ///
    /// # Errors
    /// The snapshot is damaged or cannot be read.
    pub fn collect(mut self, stop: &Stop) -> cashrank::Result<Vec<RecordBatch>> {
        let mut all = Vec::new();
        while !stop.is_set()
            && let Some(batch) = self.step()
        {
            all.push(batch?);
        }
        Ok(all)
    }

    fn step(&mut self) -> Option<cashrank::Result<RecordBatch>> {
        let pages = self.snapshot.len();
        if self.next >= pages {
            return None;
        }
        let first = self.next;
        let end = (first + ROWS).min(pages);
        self.next = end;
        Some(self.read(first, end))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// What consumers of `__arrow_c_stream__` take.
pub fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// What consumers of `__arrow_c_schema__` take.
pub fn schema_capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&*schema());
    let schema = schema.map_err(|error| internal(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A table in Arrow's layout, in memory.
///
/// Every library that knows Arrow takes it, without a copy: ``pyarrow.table(table)``, ``polars.DataFrame(table)``,
/// ``pandas.DataFrame.from_arrow(table)``, ``ranks = table; duckdb.sql("select url, rank from ranks")``.
#[pyclass(frozen, module = "cashrank")]
pub struct Table {
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new(batches: Vec<RecordBatch>) -> Table {
        Table { batches }
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// Bytes of memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches
            .iter()
            .map(RecordBatch::get_array_memory_size)
            .sum()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!(
            "Table({} rows: {})",
            self.__len__(),
            self.column_names().join(", ")
        )
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer keep to its own schema.
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        stream(py, RecordBatchIterator::new(batches, schema()))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py)
    }
}
