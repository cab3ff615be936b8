//! A SQLite database of one table, `ranking`, with a row per page in the requested order, and of two more if the
//! history is requested.
//!
//! Columns are `TEXT`, `REAL` or `INTEGER`; times are texts as in TSV, which SQLite's functions of dates take. Indexes:
//! `url`, `rank`, `(host, rank)` and `(domain, rank)`.
//!
//! ```text
//! snapshots  snapshot INTEGER, time TEXT, pages INTEGER, bound_l1 REAL
//! history    page INTEGER, snapshot INTEGER, rank INTEGER, importance REAL
//! ```
//!
//! A snapshot's number is the number of records read until then; `page` is one of those in `ranking`. Index:
//! `(page, snapshot)`.
//!
//! SQLite writes at random positions, so the database is created in a temporary file and copied when complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, Page, Setup};
use crate::disk::{RealDisk, temporary, unfinished};
use crate::model::utc;
use crate::rows::Bits;
use crate::snapshot::Snapshot;
use crate::{Error, Result};

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "sqlite",
    about: "a SQLite database of one table, ranking, with indexes",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Sqlite::new(out, setup)?)),
};

/// Size of SQLite's cache in KiB, minimum and maximum. Sorting for an index takes as much again.
const CACHE: RangeInclusive<u64> = 1 << 10..=1 << 16;

/// The rows are one transaction, which is not visible to others, in a file that is dropped if it fails.
const BEGIN: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    BEGIN;";

const HISTORY: &str = "
    CREATE TABLE snapshots (
        snapshot INTEGER PRIMARY KEY,
        time TEXT,
        pages INTEGER NOT NULL,
        bound_l1 REAL);
    CREATE TABLE history (
        page INTEGER NOT NULL,
        snapshot INTEGER NOT NULL,
        rank INTEGER NOT NULL,
        importance REAL NOT NULL);";

const HISTORY_END: &str = "CREATE INDEX history_page ON history (page, snapshot);";

const END: &str = "
    CREATE INDEX ranking_url ON ranking (url);
    CREATE INDEX ranking_rank ON ranking (rank);
    CREATE INDEX ranking_host ON ranking (host, rank);
    CREATE INDEX ranking_domain ON ranking (domain, rank);
    COMMIT;";

struct Sqlite<'w> {
    out: ExportOutput<'w>,
    columns: Vec<ExportColumn>,
    /// SQL statement that inserts a row.
    insert: String,
    database: Connection,
    history: Vec<(u64, PathBuf)>,
    /// Pages in `ranking`, if there is a history.
    written: Bits,
    file: Scratch,
}

/// Temporary file that is removed when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that stays does not affect the result.
        let _ = fs::remove_file(&self.0);
    }
}

impl<'w> Sqlite<'w> {
    fn new(out: ExportOutput<'w>, setup: &Setup) -> Result<Sqlite<'w>> {
        let folder = setup.folder.clone().unwrap_or_else(std::env::temp_dir);
        let made = unfinished(&folder.join("cashrank-sqlite"), |path| {
            File::create_new(path)
        });
        let (path, _) = made.map_err(temporary)?;
        let file = Scratch(path);
        let columns = setup.all_columns();
        let places = vec!["?"; columns.len()].join(", ");
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                ValueKind::Text | ValueKind::Time => "TEXT",
                ValueKind::Real => "REAL",
                ValueKind::Integer | ValueKind::Bool => "INTEGER",
            };
            let required = if column.is_required { " NOT NULL" } else { "" };
            format!("{} {kind}{required}", column.name)
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        let insert = format!("INSERT INTO ranking VALUES ({places})");
        let begin = || {
            let database = Connection::open(&file.0)?;
            let most = setup.memory.map_or(u64::MAX, |memory| memory / 2 / 1024);
            let cache = most.clamp(*CACHE.start(), *CACHE.end());
            database.execute_batch(&format!("PRAGMA cache_size = -{cache};"))?;
            database.execute_batch(&format!("{BEGIN} CREATE TABLE ranking ({fields});"))?;
            Ok(database)
        };
        let database = begin().map_err(failed(&file.0))?;
        Ok(Sqlite {
            out,
            columns,
            insert,
            database,
            history: setup.history.clone(),
            written: Bits::new(0),
            file,
        })
    }

    /// Writes the ranks of the pages in older snapshots.
    fn history(&self) -> Result<()> {
        if self.history.is_empty() {
            return Ok(());
        }
        let failed = || failed(&self.file.0);
        self.database.execute_batch(HISTORY).map_err(failed())?;
        for (number, path) in &self.history {
            match Snapshot::open(&RealDisk, path) {
                // A writer removed it since it was listed.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                snapshot => self.snapshot(*number, &snapshot?)?,
            }
        }
        self.database.execute_batch(HISTORY_END).map_err(failed())
    }

    fn snapshot(&self, number: u64, snapshot: &Snapshot) -> Result<()> {
        let failed = || failed(&self.file.0);
        let too_large = |_| Error::Unsupported("a number above 2^63 - 1".into());
        let signed = |number: u64| i64::try_from(number).map_err(too_large);
        let number = signed(number)?;
        let time = snapshot.info().time.and_then(utc);
        let row = (number, time, signed(snapshot.len())?, snapshot.bound_l1());
        let one = "INSERT INTO snapshots VALUES (?, ?, ?, ?)";
        self.database.execute(one, row).map_err(failed())?;
        let insert = "INSERT INTO history VALUES (?, ?, ?, ?)";
        let mut insert = self.database.prepare(insert).map_err(failed())?;
        for page in snapshot.pages() {
            let page = page?;
            if !self.written.get(page.page.0) {
                continue;
            }
            let row = (
                signed(page.page.0)?,
                number,
                signed(page.rank)?,
                page.importance,
            );
            insert.execute(row).map_err(failed())?;
        }
        Ok(())
    }
}

fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::io(path, "write")(io::Error::other(error))
}

fn sql<'p>(column: &ExportColumn, page: &'p Page<'_>) -> Result<ToSqlOutput<'p>> {
    Ok(match column.of(page)? {
        None => ToSqlOutput::Borrowed(ValueRef::Null),
        Some(ColumnValue::Text(text)) => text.into(),
        Some(ColumnValue::Real(number)) => number.into(),
        Some(ColumnValue::Integer(number)) => (number as i64).into(),
        Some(ColumnValue::Bool(is)) => is.into(),
        Some(ColumnValue::Time(seconds)) => utc(seconds).unwrap_or_default().into(),
    })
}

impl Exporter for Sqlite<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let values = self.columns.iter().map(|column| sql(column, page));
        let values = values.collect::<Result<Vec<_>>>()?;
        let insert = || {
            let mut insert = self.database.prepare_cached(&self.insert)?;
            insert.execute(params_from_iter(&values))
        };
        insert().map_err(failed(&self.file.0))?;
        if !self.history.is_empty() {
            self.written.grow(page.page.0 + 1);
            self.written.set(page.page.0);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        let path = self.file.0.clone();
        self.history()?;
        let ended = self.database.execute_batch(END);
        ended.map_err(failed(&path))?;
        let closed = self.database.close().map_err(|(_, error)| error);
        closed.map_err(failed(&path))?;
        let mut database = File::open(&path).map_err(Error::io(&path, "open"))?;
        let copied = io::copy(&mut database, &mut self.out).and_then(|_| self.out.flush());
        copied.map_err(Error::io(&self.out.path, "write"))?;
        Ok(0)
    }
}
