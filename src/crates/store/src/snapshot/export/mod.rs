//! Export of rankings for other programs: tables of columns, and scores for search engines.
//!
//! All tables hold the same columns, in the order of `Setup::all_columns`; `formats/guide/rankings.md` describes them.
//! The other formats hold a name and a [`Score`] for each page or site, and what their consumer needs besides. Rows are
//! written as they come, in bounded memory.

pub mod columns;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "sqlite")]
mod sqlite;
mod text;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crossbeam_channel::bounded;

use self::columns::host_of;
use crate::codec::varint::number;
use crate::disk::ExternalSorter;
use crate::engine::PageId;
use crate::model::{Change, PageState, SiteFacts, lacks_feature, registry};
use crate::sites::Level;
use crate::threads::{result_of, spawn_in};
use crate::{Error, Result};

pub(super) use self::columns::reversed;
pub use self::columns::{NumberColumn, Score, TableOf, ValueKind};
pub use self::text::LineWriter;
pub use crate::engine::Page;

registry! {
    /// File format of an export.
    Format of ExportFormatSpec, called "export format";
    Tsv is of("tsv", "tab-separated values with a header line", Content::Table);
    Csv is of("csv", "comma-separated values with a header line (RFC 4180)", Content::Table);
    Jsonl is of("jsonl", "JSON lines, one object per page", Content::Table);
    Parquet is of("parquet", PARQUET, Content::Table);
    Sqlite is of("sqlite", SQLITE, Content::Table);
    Scores is of("scores", "a URL, a tab and a score per line", Content::Score);
    Solr is of("solr", "url=score, for Solr's ExternalFileField", Content::Score);
    Elasticsearch is of(
        "elasticsearch",
        "bulk updates of one field, for Elasticsearch and OpenSearch",
        Content::Field,
    );
    ElasticsearchIndex is of(
        "elasticsearch-index",
        "bulk documents of their own: url, host, domain, score, rank",
        Content::Field,
    );
    Vespa is of("vespa", "partial updates of one field, for Vespa", Content::Field);
}

struct ExportFormatSpec {
    name: &'static str,
    about: &'static str,
    content: Content,
}

const fn of(name: &'static str, about: &'static str, content: Content) -> ExportFormatSpec {
    ExportFormatSpec {
        name,
        about,
        content,
    }
}

const PARQUET: &str = if cfg!(feature = "parquet") {
    "Apache Parquet"
} else {
    "Apache Parquet; this build has none: cargo install --features parquet"
};
const SQLITE: &str = if cfg!(feature = "sqlite") {
    "a SQLite database of one table, ranking, with indexes"
} else {
    "a SQLite database; this build has none: cargo install --features sqlite"
};

/// Maximum number of rows of a row group, and the memory of a row with its host and domain, in bytes.
const GROUP_ROWS: u64 = 1 << 17;
const GROUP_ROW_BYTES: u64 = 384;

impl Format {
    pub fn is_text(self) -> bool {
        !matches!(self, Format::Parquet | Format::Sqlite)
    }

    /// Returns the order that the format's consumer reads fastest, or that of the pages.
    pub fn order(self) -> Order {
        match self {
            Format::Solr => Order::Url,
            _ => Order::Id,
        }
    }

    /// Returns the size in bytes of the rows that its writer buffers for a ranking of this many pages.
    pub fn buffer_bytes(self, pages: u64) -> u64 {
        match self {
            Format::Parquet => pages.min(GROUP_ROWS) * GROUP_ROW_BYTES,
            _ => 0,
        }
    }

    /// Returns true if rows of gone pages are left out, as the format feeds a search engine without documents of them.
    pub fn is_of_documents(self) -> bool {
        self == Format::Solr || self.content() == Content::Field
    }

    pub fn content(self) -> Content {
        self.spec().content
    }
}

/// Content of a row, which determines the options that a format uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Table,
    /// Name and score: uses [`Setup::kind`].
    Score,
    /// Field of a document: uses [`Setup::kind`], [`Setup::field`] and [`Setup::into`].
    Field,
}

/// Options of an export besides its format; [`Content`] tells which of them a format uses.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Kind of the rows. Tables other than rankings use only `score` and `more` of the options of columns.
    pub table: TableOf,
    pub level: Level,
    pub score: NumberColumn,
    /// Adds the column with the result of a page's fetches ([`Page::state`]).
    pub state: bool,
    /// Adds the columns of C and H of the OPIC paper: [`Page::cash`] and [`Page::distributed`].
    pub cash: bool,
    pub more: Vec<NumberColumn>,
    /// Adds the column with the difference from an older ranking ([`Page::change`]), which each row then has.
    pub change: bool,
    /// Kind of score; tables get a column of it, besides importance. `None`: importance.
    pub kind: Option<Score>,
    /// Name of the document field that gets the score; `None`: importance.
    pub field: Option<String>,
    /// Container of the documents: Elasticsearch's index, which may be omitted, or Vespa's `NAMESPACE:TYPE`.
    pub into: Option<String>,
    /// Leaves out pages that are gone, as formats for search engines always do ([`Format::is_of_documents`]).
    pub without_gone: bool,
    /// Number of pages in the whole ranking, for scores relative to their mean.
    pub pages: u64,
    /// True if rows are merged from a sort, which takes longer than to write them; others are written on a thread of
    /// their own while the caller's reads them.
    pub sorted: bool,
    /// Folder for the temporary files of formats that are not written sequentially; `None` for the system's.
    pub folder: Option<PathBuf>,
    /// Memory in bytes for a database's cache and sorting; `None` for the fastest.
    pub memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportCounts {
    pub pages: u64,
    /// Number of rows left out because the consumer of the file would reject them.
    pub left_out: u64,
    pub gone: u64,
}

/// Writes a whole file; after an error it is incomplete. `path` names `out` in errors. Output is buffered here. Fails
/// with [`Error::Usage`] if a required option is missing, and with [`Error::Unsupported`] for a row that the format
/// cannot hold.
pub fn export<'a>(
    format: Format,
    setup: &Setup,
    out: impl Write + Send,
    path: &Path,
    rows: impl IntoIterator<Item = Result<Page<'a>>>,
) -> Result<ExportCounts> {
    let mut counts = ExportCounts::default();
    let mut rows = rows.into_iter().filter(|row| {
        let is_gone = (row.as_ref()).is_ok_and(|row| leaves_out(format, setup, row));
        counts.gone += u64::from(is_gone);
        counts.pages += u64::from(!is_gone);
        !is_gone
    });
    let write = |rows: &mut dyn Iterator<Item = _>| write(format, setup, out, path, rows);
    let left_out = if setup.sorted {
        write(&mut rows)?
    } else {
        on_thread("export", rows, write)?
    };
    counts.pages -= left_out;
    counts.left_out = left_out;
    Ok(counts)
}

/// Maximum number of rows that are passed to a thread at a time; they end early at this many bytes of names.
const CHANNEL_ROWS: usize = 256;
const CHANNEL_BYTES: usize = 64 << 10;
/// Maximum number of batches that wait for the thread.
const CHANNEL_BATCHES: usize = 8;

/// Returns the result of `take`, which gets the rows on a thread of its own while this one reads them, up to the first
/// error. If this one panics, `take` gets an error for the next row.
fn on_thread<'a, T: Send>(
    name: &str,
    mut rows: impl Iterator<Item = Result<Page<'a>>>,
    take: impl FnOnce(&mut dyn Iterator<Item = Result<Page<'a>>>) -> Result<T> + Send,
) -> Result<T> {
    std::thread::scope(|scope| {
        let (sender, batches) = bounded::<Vec<_>>(CHANNEL_BATCHES);
        let batches = std::iter::from_fn(move || match batches.recv() {
            Ok(batch) => Some(batch).filter(|batch| !batch.is_empty()),
            Err(_) => Some(vec![Err(Error::internal("reading the rows was given up"))]),
        });
        let taker = spawn_in(scope, name, move || take(&mut batches.flatten()))?;
        loop {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < CHANNEL_ROWS
                && bytes < CHANNEL_BYTES
                && let Some(row) = rows.next()
            {
                bytes += row.as_ref().map_or(CHANNEL_BYTES, |row| row.url.len());
                batch.push(row);
            }
            // An empty batch is the end.
            let is_last = batch.last().is_none_or(Result::is_err);
            if sender.send(batch).is_err() || is_last {
                break result_of(taker);
            }
        }
    })
}

/// Writes the rows. Returns the number of those left out because of their names.
fn write<'a>(
    format: Format,
    setup: &Setup,
    out: impl Write + Send,
    path: &Path,
    rows: &mut dyn Iterator<Item = Result<Page<'a>>>,
) -> Result<u64> {
    match format {
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            parquet::write(ExportOutput::new(out, path), setup, rows)?;
            Ok(0)
        }
        #[cfg(feature = "sqlite")]
        Format::Sqlite => {
            sqlite::write(ExportOutput::new(out, path), setup, rows)?;
            Ok(0)
        }
        _ if !format.is_text() => Err(lacks_feature(format.name(), format.name())),
        _ => {
            let mut lines = LineWriter::new(format, setup, out, path)?;
            for row in rows {
                lines.push(&row?)?;
            }
            lines.finish()
        }
    }
}

/// Returns true if a row is left out because its page is gone: a search engine has no document of it, or deletes it.
fn leaves_out(format: Format, setup: &Setup, page: &Page<'_>) -> bool {
    let is_gone = page.state == Some(PageState::Gone);
    let deletes = format == Format::ElasticsearchIndex && page.change == Some(Change::Gone);
    is_gone && !deletes && (setup.without_gone || format.is_of_documents())
}

/// Destination of a file. After a failed write it refuses further ones, so that dropped buffers write nothing.
struct ExportOutput<'w> {
    out: Box<dyn Write + Send + 'w>,
    path: &'w Path,
    failed: bool,
}

impl<'w> ExportOutput<'w> {
    fn new(out: impl Write + Send + 'w, path: &'w Path) -> ExportOutput<'w> {
        ExportOutput {
            out: Box::new(out),
            path,
            failed: false,
        }
    }

    fn guarded<T>(
        &mut self,
        io: impl FnOnce(&mut (dyn Write + Send + 'w)) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let result = io(&mut *self.out);
        // The caller retries an interrupted call.
        self.failed = matches!(&result, Err(e) if e.kind() != io::ErrorKind::Interrupted);
        result
    }

    fn error(&self, error: io::Error) -> Error {
        Error::io(self.path, "write")(error)
    }
}

impl Write for ExportOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.guarded(|out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.guarded(|out| out.flush())
    }
}

/// Refuses a name of this page with one of these bytes, which `format` cannot hold; `instead` names the formats to use.
pub(super) fn name_without(
    name: &str,
    page: u64,
    bytes: &[u8],
    format: &str,
    instead: &str,
) -> Result<()> {
    let holds = |byte: &u8| memchr::memchr(*byte, name.as_bytes()).is_some();
    if bytes.iter().any(holds) {
        return Err(Error::Unsupported(format!(
            "page {page}: its name, {name:?}, holds a tab or a line end, which {format} cannot; export {instead}"
        )));
    }
    Ok(())
}

registry! {
    /// Order of rows.
    Order of OrderSpec, called "order";
    Id is OrderSpec {
        name: "id",
        about: "that of the pages' first appearance",
        key: |page, key| key.extend_from_slice(&page.page.0.to_be_bytes()),
    };
    Rank is OrderSpec {
        name: "rank",
        about: "the most important first",
        key: |page, key| {
            key.extend_from_slice(&page.rank.to_be_bytes());
            key.extend_from_slice(&page.page.0.to_be_bytes());
        },
    };
    Host is OrderSpec {
        name: "host",
        about: "by reversed host (org.example.www), then by URL",
        key: |page, key| {
            let host = host_of(page).unwrap_or_default();
            key.extend_from_slice(reversed(host).as_bytes());
            // Lower than every byte of a host: org.example sorts before org.example.www.
            key.push(0);
        },
    };
    Url is OrderSpec {
        name: "url",
        about: "by URL, byte by byte",
        key: |_, _| {},
    };
}

struct OrderSpec {
    name: &'static str,
    about: &'static str,
    /// Function that appends the sort key, before name and number.
    key: fn(&Page<'_>, &mut Vec<u8>),
}

/// Maximum memory for sorting in bytes; more does not make it faster.
pub const MOST_SORTING: u64 = 256 << 20;
pub const LEAST_SORTING: u64 = 1 << 20;

/// Sorts all rows with `memory` bytes; the rest is spilled to an unnamed file in `folder`.
pub fn ordered<'a, 'r>(
    rows: impl Iterator<Item = Result<Page<'a>>> + 'r,
    order: Order,
    memory: u64,
    folder: &Path,
) -> Result<Box<dyn Iterator<Item = Result<Page<'a>>> + 'r>>
where
    'a: 'r,
{
    if order == Order::Id {
        return Ok(Box::new(rows));
    }
    let memory = memory.clamp(LEAST_SORTING, MOST_SORTING);
    let mut sorter = ExternalSorter::new(memory as usize, folder);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for row in rows {
        let row = row?;
        key.clear();
        (order.spec().key)(&row, &mut key);
        value.clear();
        put_row(&row, key.len(), &mut value);
        key.extend_from_slice(row.url.as_bytes());
        sorter.push(&key, &value)?;
    }
    Ok(Box::new(sorter.sorted()?.map(|record| {
        let (key, value) = record?;
        take_row(key, &value).ok_or_else(|| Error::internal("a sorted row does not read back"))
    })))
}

/// Encodes what tables have of a row, except for its name, which is in the key at `at`.
fn put_row(row: &Page<'_>, at: usize, into: &mut Vec<u8>) {
    let real = |number: Option<f64>| number.map(f64::to_bits);
    let facts = [
        Some(at as u64),
        Some(row.page.0),
        real(Some(row.importance)),
        Some(row.rank),
        Some(row.visits),
        row.last_fetch.map(|time| time as u64),
        row.state.map(|state| state as u64),
        real(row.cash),
        real(row.distributed),
        row.change.map(|change| change as u64),
        row.site.as_ref().map(|site| site.pages),
    ];
    let more = row.more.iter().map(|number| real(*number));
    for fact in facts.into_iter().chain(more) {
        into.push(fact.is_some().into());
        into.extend(fact.into_iter().flat_map(u64::to_le_bytes));
    }
}

fn take_row(mut key: Vec<u8>, value: &[u8]) -> Option<Page<'static>> {
    let real = |bits: Option<u64>| bits.map(f64::from_bits);
    let mut rest = value;
    let mut facts = std::iter::from_fn(|| {
        let is_known = *rest.split_off_first()? == 1;
        let fact = rest.split_off(..if is_known { 8 } else { 0 })?;
        Some(is_known.then(|| number(fact)))
    });
    let mut next = || facts.next().flatten();
    key.drain(..(next()? as usize).min(key.len()));
    Some(Page {
        page: PageId(next()?),
        importance: real(next())?,
        rank: next()?,
        visits: next()?,
        last_fetch: next().map(|time| time as i64),
        state: next().and_then(|at| PageState::ALL.get(at as usize).copied()),
        cash: real(next()),
        distributed: real(next()),
        change: next().and_then(|at| Change::ALL.get(at as usize).copied()),
        site: next().map(|pages| SiteFacts {
            pages,
            ..SiteFacts::default()
        }),
        url: Cow::Owned(String::from_utf8(key).ok()?),
        more: facts.map(real).collect(),
        ..Page::default()
    })
}

#[cfg(test)]
mod order_tests;
#[cfg(all(test, feature = "parquet", feature = "sqlite"))]
mod tests;
