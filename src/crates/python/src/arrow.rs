//! Rankings as Arrow tables, exported through `__arrow_c_stream__`: libraries such as pyarrow, pandas, Polars and
//! DuckDB read them without a copy, and none of these is required here.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::TimestampMillisecondType;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchReader, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use cashrank::{Page, PageState};
use cashrank_store::snapshot::LevelRanking;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::answers::datetime;
use crate::errors::{Raise, internal};

/// Number of rows in a batch: one block of a snapshot's columns.
const ROWS: u64 = 1 << 17;

/// Returns the columns: those of the Parquet export without host and domain; the last is the state, or a site's pages.
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

/// Rows of a ranking in number order, as a stream of record batches that are read on demand.
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

    fn batch(&self, rows: &[Page<'_>]) -> Result<RecordBatch, ArrowError> {
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
    }

    /// Reads the listed rows of the next batch; `None` at the end.
    fn next_rows(&mut self) -> Option<cashrank::Result<Vec<Page<'static>>>> {
        let rows = self.next..(self.next + ROWS).min(self.ranking.len());
        self.next = rows.end;
        let found = (!rows.is_empty()).then(|| self.ranking.rows_of(rows))?;
        Some(found.map(|mut rows| {
            rows.retain(|row| self.ranking.lists(row));
            rows
        }))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.next_rows()?;
        let rows = rows.map_err(|error| ArrowError::ExternalError(Box::new(error)));
        Some(rows.and_then(|rows| self.batch(&rows)))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Returns the capsule that `__arrow_c_stream__` must return.
pub fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Returns the capsule that `__arrow_c_schema__` must return.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema);
    let schema = schema.map_err(|error| internal(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Iterator over the rows of a ranking, as lists of a batch each; a row is a named tuple of the table's columns.
#[pyclass(module = "cashrank")]
pub struct Blocks {
    batches: Batches,
    /// Function that makes a named tuple from a tuple.
    make: Py<PyAny>,
}

impl Blocks {
    /// Returns an iterator over all rows.
    pub fn rows(py: Python<'_>, ranking: Arc<LevelRanking>) -> PyResult<Bound<'_, PyAny>> {
        let batches = Batches::new(ranking);
        let fields = batches.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        let row = py
            .import("collections")?
            .call_method1("namedtuple", ("Row", names))?;
        let make = row.getattr("_make")?.unbind();
        let blocks = Py::new(py, Blocks { batches, make })?;
        let chain = py.import("itertools")?.getattr("chain")?;
        chain.call_method1("from_iterable", (blocks,))
    }
}

#[pymethods]
impl Blocks {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(rows) = py.detach(|| self.batches.next_rows()) else {
            return Ok(None);
        };
        let tuple = |row: Page<'_>| {
            let last = match &row.site {
                Some(site) => site.pages.into_pyobject(py)?.into_any(),
                None => row.state.map(PageState::name).into_pyobject(py)?,
            };
            let time = datetime(py, row.last_fetch)?;
            let columns = (
                &*row.url,
                row.importance,
                row.rank,
                row.visits,
                time,
                row.page.0,
                last,
            );
            self.make.bind(py).call1((columns,))
        };
        rows.raise()?
            .into_iter()
            .map(tuple)
            .collect::<PyResult<_>>()
            .map(Some)
    }
}
