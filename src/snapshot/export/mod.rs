//! Rankings as files for other programs: tables of columns, and scores for search engines.
//!
//! Tables (TSV, CSV, JSON lines, Parquet, Arrow, SQLite) hold the same five columns, in this order:
//!
//! | column | content |
//! |---|---|
//! | `url` | the page's canonical URL, or its opaque name |
//! | `importance` | all pages sum to 1; the shortest digits that read back to the same `f64` |
//! | `rank` | 1 + pages of strictly greater importance |
//! | `visits` | visits so far |
//! | `last_fetch` | RFC 3339 in UTC, `2014-03-25T12:12:25Z`; Parquet: a UTC timestamp in milliseconds. Empty or null if unknown |
//!
//! and behind them those of [`Columns`]: `state` of pages (`crawled`, `not crawled`, `failed` or `gone`; empty or null where an
//! older snapshot does not say), and, where they are asked for, `cash` and `distributed`, C and H of the OPIC paper, as shares
//! of all; `distance`, FICA's or the logarithmic one, empty or null for a page that no row
//! leads to; and `change`: `new`, `changed`, `diluted` or `gone` since an older ranking. Parquet, Arrow and SQLite have `host`, `domain` and `page` (the page's number, as in exports of links) before
//! these. Of sites, `url` is the site's name, `page` its number, visits and last fetch are those of its pages together, and
//! `pages` is how many they are. Of another measure, `importance` is its score. The other formats hold a name and a
//! [`Score`] for each page or site, and what their taker wants beside.
//!
//! The same rows give the same bytes. Rows are written as they come, in bounded memory.

#[cfg(not(all(feature = "arrow", feature = "parquet", feature = "sqlite")))]
mod absent;
#[cfg(feature = "arrow")]
mod arrow;
mod columns;
mod csv;
mod host;
mod jsonl;
mod order;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(feature = "parquet")]
pub(crate) mod row_group;
mod score;
mod scores;
mod search;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tsv;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::model::{Change, PageState, registry, utc};
use crate::{Error, Result};

#[cfg(not(feature = "arrow"))]
use absent::arrow;
#[cfg(not(feature = "parquet"))]
use absent::parquet;
#[cfg(not(feature = "sqlite"))]
use absent::sqlite;

pub use self::columns::Columns;
pub(super) use self::host::reversed;
pub use self::order::{LEAST_SORTING, MOST_SORTING, Order, ordered};
pub use self::score::{Score, Scoring};
pub use crate::engine::Page;

registry! {
    /// A file format.
    Format of ExportSpec, called "export format";
    /// Tab-separated, with a header line.
    Tsv is tsv::FORMAT;
    /// Comma-separated, as RFC 4180 has it.
    Csv is csv::FORMAT;
    /// One JSON object a line.
    Jsonl is jsonl::FORMAT;
    /// Apache Parquet.
    Parquet is parquet::FORMAT;
    /// Apache Arrow's file format.
    Arrow is arrow::FORMAT;
    /// A database.
    Sqlite is sqlite::FORMAT;
    /// A name and a score a line.
    Scores is scores::SCORES;
    /// Solr's field of an external file.
    Solr is scores::SOLR;
    /// Updates of one field, for Elasticsearch and OpenSearch.
    Elasticsearch is search::ELASTICSEARCH;
    /// Documents for them.
    ElasticsearchIndex is search::ELASTICSEARCH_INDEX;
    /// Updates of one field, for Vespa.
    Vespa is search::VESPA;
}

/// Most rows of a row group, and what each takes with its host and domain.
const GROUP_ROWS: u64 = 1 << 17;
const GROUP_ROW_BYTES: u64 = 384;

impl Format {
    /// Returns whether people can read it.
    pub fn is_text(self) -> bool {
        self.spec().is_text
    }

    /// The order that its taker reads fastest, or that of the pages.
    pub fn order(self) -> Order {
        match self {
            Format::Solr => Order::Url,
            _ => Order::Id,
        }
    }

    /// Bytes of rows that its writer holds at a time, of a ranking of so many pages: those of a row group or a batch, with
    /// names of usual lengths.
    pub fn buffer_bytes(self, pages: u64) -> u64 {
        match self {
            Format::Parquet | Format::Arrow => pages.min(GROUP_ROWS) * GROUP_ROW_BYTES,
            _ => 0,
        }
    }

    /// Returns whether it is for the documents of a search engine, which has none of pages that are gone: these are left out.
    pub fn is_of_documents(self) -> bool {
        self == Format::Solr || self.content() == Content::Field
    }

    /// What it has of each page.
    pub fn content(self) -> Content {
        self.spec().content
    }
}

/// What a format has of each page, and so which choices it heeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The columns of a table, and [`Columns`].
    Table,
    /// Its name and score: [`Scoring::score`].
    Score,
    /// The same for a field of a document: all of [`Scoring`].
    Field,
}

/// A format's name, help and writer.
pub(crate) struct ExportSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub is_text: bool,
    content: Content,
    start: for<'w> fn(Output<'w>, &Setup) -> Result<Box<dyn Exporter + 'w>>,
}

/// What is asked of a file beside its format, which says by its [`Content`] what it heeds.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Columns beside the usual ones.
    pub columns: Columns,
    /// Scores, and where they go.
    pub scoring: Scoring,
    /// Leave out pages that are gone, as formats for search engines do anyway ([`Format::is_of_documents`]).
    pub without_gone: bool,
    /// Pages of the whole ranking, for scores that relate to their mean.
    pub pages: u64,
    /// Where formats that are not written from their beginning to their end keep what they write; `None`: where the
    /// system has temporary files.
    pub folder: Option<PathBuf>,
    /// Bytes of memory for a database's cache and sorting; `None`: as much as makes it quicker.
    pub memory: Option<u64>,
    /// Snapshots, by number, whose ranks the database has beside the ranking; other formats have none.
    pub history: Vec<(u64, PathBuf)>,
}

/// Writes rows to one file. Any error is final: what was written is no whole file.
pub trait Exporter {
    /// Writes one row.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a row that the format can't hold, [`Error::Io`] if writing fails.
    fn row(&mut self, page: &Page<'_>) -> Result<()>;

    /// Writes what is still to come and flushes. Without it the file is not whole. Returns how many rows were left
    /// out, because their taker refuses names like theirs.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// How much was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows in the file.
    pub pages: u64,
    /// Rows that the taker of the file would refuse, and that are not in it.
    pub left_out: u64,
    /// Rows of pages that are gone, and that are not in it.
    pub gone: u64,
}

/// Starts a file. `path` names `out` in errors. Output is buffered here.
///
/// # Errors
/// [`Error::Io`] if writing fails; [`Error::Usage`] if the format needs a choice that was not made.
pub fn exporter<'w>(
    format: Format,
    setup: &Setup,
    out: impl Write + Send + 'w,
    path: &Path,
) -> Result<Box<dyn Exporter + 'w>> {
    let out = Output {
        out: Box::new(out),
        path: path.to_owned(),
        failed: false,
    };
    (format.spec().start)(out, setup)
}

/// Writes a whole file.
///
/// # Errors
/// The first error of `rows`, and those of [`Exporter`].
pub fn export<'a>(
    format: Format,
    setup: &Setup,
    out: impl Write + Send,
    path: &Path,
    rows: impl IntoIterator<Item = Result<Page<'a>>>,
) -> Result<Written> {
    let mut exporter = exporter(format, setup, out, path)?;
    let (mut count, mut gone) = (0, 0);
    for row in rows {
        let row = row?;
        if leaves_out(format, setup, &row) {
            gone += 1;
            continue;
        }
        exporter.row(&row)?;
        count += 1;
    }
    let left_out = exporter.finish()?;
    Ok(Written {
        pages: count - left_out,
        left_out,
        gone,
    })
}

/// Returns whether a row is left out because its page is gone: a search engine has no document of it, or deletes it.
fn leaves_out(format: Format, setup: &Setup, page: &Page<'_>) -> bool {
    let is_gone = page.state == Some(PageState::Gone);
    let deletes = format == Format::ElasticsearchIndex && page.change == Some(Change::Gone);
    is_gone && !deletes && (setup.without_gone || format.is_of_documents())
}

/// Where a file goes. After a failed write it refuses all further ones, so that buffers
/// that are dropped don't write behind the failure.
struct Output<'w> {
    out: Box<dyn Write + Send + 'w>,
    path: PathBuf,
    failed: bool,
}

impl<'w> Output<'w> {
    fn guarded<T>(
        &mut self,
        io: impl FnOnce(&mut (dyn Write + Send + 'w)) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let result = io(&mut *self.out);
        // An interrupted call is tried again by its caller.
        self.failed = matches!(&result, Err(e) if e.kind() != io::ErrorKind::Interrupted);
        result
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.guarded(|out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.guarded(|out| out.flush())
    }
}

/// Text formats: bytes are gathered and written in pieces of this size.
const PIECE: usize = 1 << 16;

/// Lines on their way to an [`Output`].
struct Lines<'w> {
    out: Output<'w>,
    buffer: Vec<u8>,
}

impl<'w> Lines<'w> {
    fn new(out: Output<'w>) -> Lines<'w> {
        Lines {
            out,
            buffer: Vec::with_capacity(2 * PIECE),
        }
    }

    /// Writes the buffer once it is full.
    fn line_done(&mut self) -> Result<()> {
        if self.buffer.len() >= PIECE {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|e| Error::io(&self.out.path, "write")(e))
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        let flushed = self.out.flush();
        flushed.map_err(Error::io(&self.out.path, "write"))
    }
}

/// Appends an object as JSON.
fn put_json(line: &mut Vec<u8>, path: &Path, value: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer(line, value).map_err(|e| Error::io(path, "write")(io::Error::from(e)))
}

/// Refuses a name with one of these bytes, which `format` cannot hold.
fn without(page: &Page<'_>, bytes: &[u8], format: &str) -> Result<()> {
    let instead = "csv, jsonl or parquet";
    name_without(&page.url, page.page.0, bytes, format, instead)
}

/// The same of the name of this page. `instead`: what to export.
pub(super) fn name_without(
    name: &str,
    page: u64,
    bytes: &[u8],
    format: &str,
    instead: &str,
) -> Result<()> {
    if name.bytes().any(|byte| bytes.contains(&byte)) {
        return Err(Error::Unsupported(format!(
            "page {page}: its name, {name:?}, holds a tab or a line end, which {format} cannot; export {instead}"
        )));
    }
    Ok(())
}

/// The importance, if it is one.
fn importance(page: &Page<'_>) -> Result<f64> {
    finite(page, "importance", page.importance)
}

/// A number of a page, if it is one.
fn finite(page: &Page<'_>, name: &str, number: f64) -> Result<f64> {
    if number.is_finite() {
        return Ok(number);
    }
    Err(Error::Unsupported(format!(
        "page {}: its {name} is {number}, which cannot be exported",
        page.page.0
    )))
}

/// A number for tables whose integers have signs.
#[cfg(any(feature = "arrow", feature = "parquet", feature = "sqlite"))]
fn signed(page: &Page<'_>, number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| {
        Error::Unsupported(format!(
            "page {}: {number} is above 2^63 - 1, the largest integer of this export",
            page.page.0
        ))
    })
}

/// The last fetch in milliseconds since 1970.
#[cfg(any(feature = "arrow", feature = "parquet"))]
fn milliseconds(page: &Page<'_>) -> Result<Option<i64>> {
    // Within the years to 9999: they do not overflow.
    last_fetch(page)?;
    Ok(page.last_fetch.map(|seconds| seconds * 1000))
}

/// Its integers, for such tables: rank, visits and number.
#[cfg(any(feature = "arrow", feature = "parquet", feature = "sqlite"))]
fn integers(page: &Page<'_>) -> Result<[i64; 3]> {
    let numbers = [page.rank, page.visits, page.page.0];
    let mut integers = [0; 3];
    for (integer, number) in integers.iter_mut().zip(numbers) {
        *integer = signed(page, number)?;
    }
    Ok(integers)
}

/// The last fetch as RFC 3339 in UTC.
fn last_fetch(page: &Page<'_>) -> Result<Option<String>> {
    let told = |seconds| {
        utc(seconds).ok_or_else(|| {
            Error::Unsupported(format!(
                "page {}: its last fetch, {seconds} s from 1970, is outside the years -9999 to 9999",
                page.page.0
            ))
        })
    };
    page.last_fetch.map(told).transpose()
}

#[cfg(all(test, feature = "arrow", feature = "parquet", feature = "sqlite"))]
mod tests;
