//! A list of pages as Apache Parquet, one row group.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::schedule::Candidate;

const SCHEMA: &str = "message next {
    REQUIRED BYTE_ARRAY url (STRING);
    REQUIRED DOUBLE score;
    REQUIRED BOOLEAN fetched;
    REQUIRED INT64 visits;
    OPTIONAL INT64 last_fetch (TIMESTAMP(MILLIS, true));
    REQUIRED DOUBLE importance;
}";

pub(super) fn write(pages: &[Candidate], out: &mut (impl Write + Send)) -> io::Result<()> {
    write_rows(pages, out).map_err(|error| match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    })
}

fn write_rows(pages: &[Candidate], out: &mut (impl Write + Send)) -> Result<(), ParquetError> {
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
    column::<ByteArrayType, _>(&mut group, &urls, None)?;
    let scores: Vec<f64> = pages.iter().map(|of| of.score).collect();
    column::<DoubleType, _>(&mut group, &scores, None)?;
    let fetched: Vec<bool> = pages.iter().map(|of| of.fetched).collect();
    column::<BoolType, _>(&mut group, &fetched, None)?;
    let visits: Vec<i64> = pages.iter().map(|of| of.visits as i64).collect();
    column::<Int64Type, _>(&mut group, &visits, None)?;
    let times: Vec<i64> = pages
        .iter()
        .filter_map(|of| of.last_fetch.map(|seconds| seconds.saturating_mul(1000)))
        .collect();
    let known: Vec<i16> = pages
        .iter()
        .map(|of| of.last_fetch.is_some().into())
        .collect();
    column::<Int64Type, _>(&mut group, &times, Some(&known))?;
    let importance: Vec<f64> = pages.iter().map(|of| of.importance).collect();
    column::<DoubleType, _>(&mut group, &importance, None)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn column<T: DataType, W: Write + Send>(
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
