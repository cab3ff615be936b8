//! List of pages as Apache Parquet, one row group.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{TakerSpec, failed};
use crate::schedule::Candidate;
use crate::snapshot::export::parquet::into_io;

const SCHEMA: &str = "message next {
    REQUIRED BYTE_ARRAY url (STRING);
    REQUIRED DOUBLE score;
    REQUIRED BOOLEAN fetched;
    REQUIRED INT64 visits;
    OPTIONAL INT64 last_fetch (TIMESTAMP(MILLIS, true));
    REQUIRED DOUBLE importance;
}";

pub(super) const PARQUET: TakerSpec = TakerSpec {
    name: "parquet",
    about: "Apache Parquet",
    is_text: false,
    write: |pages, out| write_rows(pages, out).map_err(|error| failed(into_io(error))),
};

fn write_rows(pages: &[Candidate], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("cashrank ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let urls: Vec<ByteArray> = pages
        .iter()
        .map(|of| of.url.as_bytes().to_vec().into())
        .collect();
    write_column::<ByteArrayType, _>(&mut group, &urls, None)?;
    let scores: Vec<f64> = pages.iter().map(|of| of.score).collect();
    write_column::<DoubleType, _>(&mut group, &scores, None)?;
    let fetched: Vec<bool> = pages.iter().map(|of| of.fetched).collect();
    write_column::<BoolType, _>(&mut group, &fetched, None)?;
    let visits: Vec<i64> = pages.iter().map(|of| of.fetches.visits as i64).collect();
    write_column::<Int64Type, _>(&mut group, &visits, None)?;
    let times: Vec<i64> = pages
        .iter()
        .filter_map(|of| of.fetches.last.map(|seconds| seconds.saturating_mul(1000)))
        .collect();
    let known: Vec<i16> = pages
        .iter()
        .map(|of| of.fetches.last.is_some().into())
        .collect();
    write_column::<Int64Type, _>(&mut group, &times, Some(&known))?;
    let importance: Vec<f64> = pages.iter().map(|of| of.importance).collect();
    write_column::<DoubleType, _>(&mut group, &importance, None)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

/// Writes the next column; `known` holds 1 for a value and 0 for a null.
fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    known: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".into()));
    };
    column.typed::<T>().write_batch(values, known, None)?;
    column.close()
}
