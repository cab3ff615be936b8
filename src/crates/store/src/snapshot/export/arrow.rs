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
use super::{Content, ExportFormatSpec, ExportOutput, RowSource, Setup};
use crate::{Error, Result};

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "arrow",
    about: "Apache Arrow's file format (IPC, Feather 2)",
    is_text: false,
    content: Content::Table,
    write,
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

fn write(out: ExportOutput<'_>, setup: &Setup, rows: &mut RowSource<'_>) -> Result<u64> {
    let path = out.path.clone();
    let failed = |error: ArrowError| Error::io(&path, "write")(into_io(error));
    let columns = setup.all_columns();
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let mut writer = FileWriter::try_new(out, &schema).map_err(failed)?;
    let mut write = |batch: &mut RowBatch| {
        let columns = batch.take().into_iter().map(array).collect();
        let written =
            RecordBatch::try_new(schema.clone(), columns).and_then(|batch| writer.write(&batch));
        written.map_err(failed)
    };
    let (mut batch, mut url_bytes) = (RowBatch::new(columns), 0);
    rows(&mut |page| {
        batch.push(page)?;
        url_bytes += page.url.len();
        if batch.rows >= BATCH_ROWS || url_bytes >= BATCH_URL_BYTES {
            url_bytes = 0;
            write(&mut batch)?;
        }
        Ok(())
    })?;
    if batch.rows > 0 {
        write(&mut batch)?;
    }
    writer.finish().map_err(failed)?;
    let flushed = writer.get_mut().flush();
    flushed.map_err(Error::io(&path, "write"))?;
    Ok(0)
}

/// Returns the system's error, if there is one inside.
fn into_io(error: ArrowError) -> std::io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => std::io::Error::other(error),
    }
}
