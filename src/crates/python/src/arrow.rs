//! Rankings as Arrow tables, handed over through `__arrow_c_stream__`: pyarrow, pandas, Polars, DuckDB and others take them
//! without a copy, and none of them is needed here.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::TimestampMillisecondType;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use cashrank::snapshot::LevelRanking;
use cashrank::{Page, PageState};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::internal;
use crate::work::Stop;

/// Rows of a batch: one block of a snapshot's columns.
const ROWS: u64 = 1 << 17;

/// The columns of a ranking: those of the Parquet export but for hosts and domains. Sites have how many pages they are, pages their state.
pub fn schema(ranking: &LevelRanking) -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let mut fields = vec![
        Field::new("url", DataType::Utf8, false),
        Field::new("importance", DataType::Float64, false),
        Field::new("rank", DataType::Int64, false),
        Field::new("visits", DataType::Int64, false),
        Field::new("last_fetch", time, true),
        Field::new("page", DataType::Int64, false),
    ];
    fields.push(if ranking.level().is_page() {
        Field::new("state", DataType::Utf8, true)
    } else {
        Field::new("pages", DataType::Int64, false)
    });
    Arc::new(Schema::new(fields))
}

/// What is ranked in number order, batch after batch, read as they are asked for.
pub struct Batches {
    ranking: Arc<LevelRanking>,
    schema: SchemaRef,
    next: u64,
}

impl Batches {
    pub fn new(ranking: Arc<LevelRanking>) -> Batches {
        Batches {
            schema: schema(&ranking),
            ranking,
            next: 0,
        }
    }

    fn read(&self, first: u64, end: u64) -> cashrank::Result<RecordBatch> {
        let mut rows = self.ranking.rows_of(first..end)?;
        rows.retain(|row| self.ranking.lists(row));
        let whole = |of: &dyn Fn(&Page<'_>) -> u64| -> ArrayRef {
            Arc::new(
                rows.iter()
                    .map(|row| of(row) as i64)
                    .collect::<Int64Array>(),
            )
        };
        let importance: Float64Array = rows.iter().map(|row| row.importance).collect();
        let times = rows
            .iter()
            .map(|row| Some(row.last_fetch?.saturating_mul(1000)));
        let times: PrimitiveArray<TimestampMillisecondType> = times.collect();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| &row.url),
            )),
            Arc::new(importance),
            whole(&|row| row.rank),
            whole(&|row| row.visits),
            Arc::new(times.with_timezone("UTC")),
            whole(&|row| row.page.0),
        ];
        columns.push(if self.ranking.level().is_page() {
            let states = rows.iter().map(|row| row.state.map(PageState::name));
            Arc::new(states.collect::<StringArray>())
        } else {
            whole(&|row| row.site.as_ref().map_or(0, |site| site.pages))
        });
        RecordBatch::try_new(self.schema.clone(), columns)
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
        let pages = self.ranking.len();
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
        self.schema.clone()
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
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema);
    let schema = schema.map_err(|error| internal(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A table in Arrow's layout, in memory.
///
/// Every library that knows Arrow takes it, without a copy: ``pyarrow.table(table)``, ``polars.DataFrame(table)``,
/// ``pandas.DataFrame.from_arrow(table)``, ``ranks = table; duckdb.sql("select url, rank from ranks")``.
#[pyclass(frozen, module = "cashrank")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Table {
        Table { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().clone());
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
        stream(py, RecordBatchIterator::new(batches, self.schema.clone()))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}
