//! Crawl records as a Parquet table, compressed with zstd. A row group ends after [`GROUP_BYTES`] of lines or
//! [`GROUP_LINKS`] links: that bounds memory here and in readers, which refuse pages with very many values.

use std::io::Write;
use std::path::Path;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::decode::records::names::page_field;
use crate::decode::{Decoder, Link, Names, Parsed, Record, Time};
use crate::formats::Format;
use crate::model::FetchTotals;
use crate::rules::Rel;
use crate::snapshot::export::parquet::{ParquetFile, RowGroup};
use crate::{Error, Result};

/// Numbers of bytes of lines, and of links, after which a row group ends.
const GROUP_BYTES: usize = 64 << 20;
const GROUP_LINKS: usize = 4 << 20;
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

/// Writes a column of lists, or nulls. `empty` and `value` are definition levels.
fn write_lists<D: DataType>(
    group: &mut RowGroup,
    [empty, value]: [i16; 2],
    lists: impl Iterator<Item = Option<Vec<Option<D::T>>>>,
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for list in lists {
        if list.as_ref().is_none_or(Vec::is_empty) {
            defined.push(list.map_or(0, |_| empty));
            repeated.push(0);
            continue;
        }
        for (at, item) in list.into_iter().flatten().enumerate() {
            defined.push(if item.is_some() { value } else { value - 1 });
            repeated.push((at > 0).into());
            values.extend(item);
        }
    }
    group.write::<D>(&values, Some(&defined), Some(&repeated))
}

fn write_rows(rows: &[Record<'_>], group: &mut RowGroup) -> Result<(), ParquetError> {
    let pages: Vec<ByteArray> = rows.iter().map(|row| text(&row.url)).collect();
    group.write::<ByteArrayType>(&pages, None, None)?;
    let fetched_at = rows.iter().map(|row| row.fetched_at.map(milliseconds));
    group.write_values::<Int64Type>(fetched_at, false)?;
    group.write_values::<Int32Type>(rows.iter().map(|row| row.status), false)?;
    let counts: [fn(FetchTotals) -> u32; 5] = [
        |totals| totals.visits,
        |totals| totals.failed,
        |totals| totals.compared,
        |totals| totals.changed,
        |totals| totals.watched_s,
    ];
    for count in counts {
        let counts = rows.iter().map(|row| Some(count(row.totals?).into()));
        group.write_values::<Int64Type>(counts, false)?;
    }
    let last_failed = rows.iter().map(|row| row.totals?.last_failed);
    let last_failed = last_failed.map(|time| time.map(milliseconds));
    group.write_values::<Int64Type>(last_failed, false)?;
    let texts: [fn(&Record<'_>) -> Option<ByteArray>; 4] = [
        |row| row.redirect.as_deref().map(text),
        |row| row.base.as_deref().map(text),
        |row| row.same_as.as_deref().map(text),
        |row| Some(ByteArray::from(row.digest.text()?.into_bytes())),
    ];
    for column in texts {
        group.write_values::<ByteArrayType>(rows.iter().map(column), false)?;
    }
    let links = rows.iter().map(|row| {
        let urls = row.links.iter().map(|link| Some(text(&link.url)));
        Some(urls.collect())
    });
    write_lists::<ByteArrayType>(group, [0, 1], links)?;
    let rels = rows.iter().map(|row| {
        let says_rel = |link: &Link<'_>| link.rel != Rel::default();
        let words = |link: &Link<'_>| {
            says_rel(link).then(|| ByteArray::from(link.rel.words().into_bytes()))
        };
        let is_there = row.links.iter().any(says_rel);
        is_there.then(|| row.links.iter().map(words).collect())
    });
    write_lists::<ByteArrayType>(group, [1, 3], rels)?;
    let weights = rows.iter().map(|row| {
        let is_there = row.links.iter().any(|link| link.weight != 1);
        let weights = row.links.iter().map(|link| Some(link.weight.into()));
        is_there.then(|| weights.collect())
    });
    write_lists::<Int64Type>(group, [1, 2], weights)
}

/// Converts to milliseconds; within the years to 9999 this does not overflow.
fn milliseconds(time: Time) -> i64 {
    time.saturating_mul(1000)
}

fn text(text: &[u8]) -> ByteArray {
    ByteArray::from(text.to_vec())
}

pub struct ParquetWriter<'w> {
    file: ParquetFile<Box<dyn Write + Send + 'w>>,
    decoder: &'static dyn Decoder,
    rows: Vec<Record<'static>>,
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
            rows: Vec::new(),
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
                rows.push(record.clone().into_owned());
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
        let rows = std::mem::take(&mut self.rows);
        self.file.encode(|group| write_rows(&rows, group))
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
