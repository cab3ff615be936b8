//! Crawl records as a Parquet table.
//!
//! Compressed with zstd, statistics by column chunk. A row group ends after [`GROUP_BYTES`] of lines or [`GROUP_LINKS`]
//! links: that bounds memory here and in readers, which refuse pages with very many values.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::decode::records::names::page_field;
use crate::decode::{Decoder, Link, Names, Parsed, Record, Time};
use crate::formats::Format;
use crate::rules::Rel;
use crate::snapshot::export::parquet::{ParquetFile, RowGroup};
use crate::{Error, Result};

/// Numbers of bytes of lines, and of links, after which a row group ends.
const GROUP_BYTES: usize = 64 << 20;
const GROUP_LINKS: usize = 4 << 20;
/// Bytes of lines that are passed to the columns together.
const BATCH_BYTES: usize = 1 << 20;

fn schema(names: Names) -> String {
    let page = page_field(names);
    format!(
        "message crawl_records {{
            REQUIRED BYTE_ARRAY {page} (STRING);
            OPTIONAL INT64 fetched_at (TIMESTAMP(MILLIS, true));
            OPTIONAL INT32 status;
            OPTIONAL INT64 visits;
            OPTIONAL INT64 failed;
            OPTIONAL INT64 compared;
            OPTIONAL INT64 changed;
            OPTIONAL INT64 watched_s;
            OPTIONAL INT64 last_failed (TIMESTAMP(MILLIS, true));
            OPTIONAL BYTE_ARRAY redirect (STRING);
            OPTIONAL BYTE_ARRAY base (STRING);
            OPTIONAL BYTE_ARRAY revisit (STRING);
            OPTIONAL BYTE_ARRAY digest (STRING);
            REQUIRED GROUP links (LIST) {{
                REPEATED GROUP list {{ REQUIRED BYTE_ARRAY element (STRING); }}
            }}
            OPTIONAL GROUP links_rel (LIST) {{
                REPEATED GROUP list {{ OPTIONAL BYTE_ARRAY element (STRING); }}
            }}
            OPTIONAL GROUP links_weight (LIST) {{
                REPEATED GROUP list {{ REQUIRED INT64 element; }}
            }}
        }}"
    )
}

/// Values of a column, with their levels.
struct ColumnBuilder<T> {
    values: Vec<T>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

impl<T> Default for ColumnBuilder<T> {
    fn default() -> ColumnBuilder<T> {
        ColumnBuilder {
            values: Vec::new(),
            defined: Vec::new(),
            repeated: Vec::new(),
        }
    }
}

impl<T> ColumnBuilder<T> {
    /// Appends a value or a null.
    fn push(&mut self, value: Option<T>) {
        self.defined.push(value.is_some().into());
        self.values.extend(value);
    }

    /// Appends a list of values; `of_empty` is the definition level of an empty list, `most` that of a value, and a
    /// null in the list is one below.
    fn push_list(&mut self, of_empty: i16, most: i16, list: impl Iterator<Item = Option<T>>) {
        let begin = self.defined.len();
        for value in list {
            self.repeated.push((self.defined.len() > begin).into());
            self.defined
                .push(if value.is_some() { most } else { most - 1 });
            self.values.extend(value);
        }
        if self.defined.len() == begin {
            self.push_none(of_empty);
        }
    }

    fn push_none(&mut self, level: i16) {
        self.defined.push(level);
        self.repeated.push(0);
    }

    fn write<D: DataType<T = T>>(&mut self, group: &mut RowGroup) -> Result<(), ParquetError> {
        let known = (!self.defined.is_empty()).then_some(&*self.defined);
        let repeated = (!self.repeated.is_empty()).then_some(&*self.repeated);
        group.write::<D>(&self.values, known, repeated)?;
        *self = ColumnBuilder::default();
        Ok(())
    }
}

/// Rows by column, not encoded yet.
#[derive(Default)]
struct RecordColumns {
    page: Vec<ByteArray>,
    fetched_at: ColumnBuilder<i64>,
    status: ColumnBuilder<i32>,
    counts: [ColumnBuilder<i64>; 5],
    last_failed: ColumnBuilder<i64>,
    texts: [ColumnBuilder<ByteArray>; 4],
    links: ColumnBuilder<ByteArray>,
    rel: ColumnBuilder<ByteArray>,
    weight: ColumnBuilder<i64>,
}

impl RecordColumns {
    fn push(&mut self, record: &Record<'_>) {
        self.page.push(text(&record.url));
        self.fetched_at.push(record.fetched_at.map(milliseconds));
        self.status.push(record.status);
        let counts = record.totals.map(|totals| {
            [
                totals.visits,
                totals.failed,
                totals.compared,
                totals.changed,
                totals.watched_s,
            ]
        });
        for (at, column) in self.counts.iter_mut().enumerate() {
            column.push(counts.map(|counts| counts[at].into()));
        }
        let last_failed = record.totals.and_then(|totals| totals.last_failed);
        self.last_failed.push(last_failed.map(milliseconds));
        let digest = record
            .digest
            .text()
            .map(|text| Cow::Owned(text.into_bytes()));
        let values = [&record.redirect, &record.base, &record.same_as, &digest];
        for (column, value) in self.texts.iter_mut().zip(values) {
            column.push(value.as_deref().map(text));
        }
        let links = &record.links;
        let urls = links.iter().map(|link| Some(text(&link.url)));
        self.links.push_list(0, 1, urls);
        let says_rel = |link: &Link<'_>| link.rel != Rel::default();
        if links.iter().any(says_rel) {
            let words = |link: &Link<'_>| {
                says_rel(link).then(|| ByteArray::from(link.rel.words().into_bytes()))
            };
            self.rel.push_list(1, 3, links.iter().map(words));
        } else {
            self.rel.push_none(0);
        }
        if links.iter().any(|link| link.weight != 1) {
            let weights = links.iter().map(|link| Some(link.weight.into()));
            self.weight.push_list(1, 2, weights);
        } else {
            self.weight.push_none(0);
        }
    }

    fn write(&mut self, group: &mut RowGroup) -> Result<(), ParquetError> {
        group.write::<ByteArrayType>(&std::mem::take(&mut self.page), None, None)?;
        self.fetched_at.write::<Int64Type>(group)?;
        self.status.write::<Int32Type>(group)?;
        for column in &mut self.counts {
            column.write::<Int64Type>(group)?;
        }
        self.last_failed.write::<Int64Type>(group)?;
        for column in &mut self.texts {
            column.write::<ByteArrayType>(group)?;
        }
        self.links.write::<ByteArrayType>(group)?;
        self.rel.write::<ByteArrayType>(group)?;
        self.weight.write::<Int64Type>(group)
    }
}

/// Converts to milliseconds; within the years to 9999 this does not overflow.
fn milliseconds(time: Time) -> i64 {
    time.saturating_mul(1000)
}

fn text(text: &[u8]) -> ByteArray {
    ByteArray::from(text.to_vec())
}

/// Parquet table of records being written.
pub(super) struct ParquetWriter<'w> {
    file: ParquetFile<Box<dyn Write + Send + 'w>>,
    decoder: &'static dyn Decoder,
    rows: RecordColumns,
    /// Bytes of the lines in `rows`, and bytes and links of the row group.
    batch_bytes: usize,
    group_bytes: usize,
    group_links: usize,
}

impl<'w> ParquetWriter<'w> {
    pub fn new(
        out: Box<dyn Write + Send + 'w>,
        names: Names,
        path: &Path,
    ) -> Result<ParquetWriter<'w>> {
        let level = ZstdLevel::try_new(super::ZSTD_LEVEL);
        let level = level.map_err(|error| Error::internal(error.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_statistics_enabled(EnabledStatistics::Chunk);
        let format = match names {
            Names::Url => Format::Records,
            Names::Opaque => Format::NodeRecords,
        };
        Ok(ParquetWriter {
            file: ParquetFile::new(out, path, &schema(names), properties)?,
            decoder: format.decoder(),
            rows: RecordColumns::default(),
            batch_bytes: 0,
            group_bytes: 0,
            group_links: 0,
        })
    }

    pub fn line(&mut self, line: &[u8]) -> Result<()> {
        let mut links = None;
        let rows = &mut self.rows;
        self.decoder.decode(line, &mut |_, parsed| {
            if let Parsed::Record(record) = parsed {
                links = Some(record.links.len());
                rows.push(record);
            }
            true
        });
        let Some(links) = links else {
            return Err(Error::internal(
                "a record that was written does not read back",
            ));
        };
        self.batch_bytes += line.len();
        self.group_bytes += line.len();
        self.group_links += links;
        if self.group_bytes >= GROUP_BYTES || self.group_links >= GROUP_LINKS {
            return self.end_group();
        }
        if self.batch_bytes >= BATCH_BYTES {
            return self.write_rows();
        }
        Ok(())
    }

    fn write_rows(&mut self) -> Result<()> {
        self.batch_bytes = 0;
        self.file.encode(|group| self.rows.write(group))
    }

    fn end_group(&mut self) -> Result<()> {
        if self.batch_bytes > 0 {
            self.write_rows()?;
        }
        (self.group_bytes, self.group_links) = (0, 0);
        self.file.end_group()
    }

    pub fn finish(mut self) -> Result<()> {
        self.end_group()?;
        self.file.finish()
    }
}
