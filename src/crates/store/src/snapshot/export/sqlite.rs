//! A SQLite database of a table `ranking`, with a row per page in the requested order, and of two more for the history.
//!
//! Columns are `TEXT`, `REAL` or `INTEGER`; times are texts as in TSV, which SQLite's functions of dates take. Indexes:
//! `url`, `rank`, `(host, rank)` and `(domain, rank)`.
//!
//! ```text
//! snapshots  snapshot INTEGER, time TEXT, pages INTEGER, bound_l1 REAL
//! history    page INTEGER, snapshot INTEGER, rank INTEGER, importance REAL
//! ```
//!
//! A snapshot's number is the number of records read until then; `page` is as in `ranking`. Index: `(page, snapshot)`.
//!
//! SQLite writes at random positions, so the database is created in a temporary file and copied when complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{ExportOutput, Page, RowSource, Setup};
use crate::disk::{RealDisk, temporary, unfinished};
use crate::model::utc;
use crate::rows::Bits;
use crate::snapshot::Snapshot;
use crate::{Error, Result};

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

/// Temporary file that is removed when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that stays does not affect the result.
        let _ = fs::remove_file(&self.0);
    }
}

pub(super) fn write(
    mut out: ExportOutput<'_>,
    setup: &Setup,
    rows: &mut RowSource<'_>,
) -> Result<()> {
    let folder = setup.folder.clone().unwrap_or_else(std::env::temp_dir);
    let made = unfinished(&folder.join("cashrank-sqlite"), |path| {
        File::create_new(path)
    });
    let (path, _) = made.map_err(temporary)?;
    let file = Scratch(path);
    let failed = || failed(&file.0);
    let columns = setup.all_columns();
    let database = begin(&file.0, &columns, setup.memory).map_err(failed())?;
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO ranking VALUES ({places})");
    let mut insert = database.prepare(&insert).map_err(failed())?;
    // Pages in `ranking`, if there is a history.
    let mut written = Bits::new(0);
    rows(&mut |page| {
        let values = columns.iter().map(|column| sql(column, page));
        let values = values.collect::<Result<Vec<_>>>()?;
        let inserted = insert.execute(params_from_iter(&values));
        inserted.map_err(failed())?;
        if !setup.history.is_empty() {
            written.grow(page.page.0 + 1);
            written.set(page.page.0);
        }
        Ok(())
    })?;
    drop(insert);
    if !setup.history.is_empty() {
        database.execute_batch(HISTORY).map_err(failed())?;
        for (number, path) in &setup.history {
            match Snapshot::open(&RealDisk, path) {
                // A writer removed it since it was listed.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                snapshot => add_ranks(&database, &file.0, *number, &snapshot?, &written)?,
            }
        }
        database.execute_batch(HISTORY_END).map_err(failed())?;
    }
    database.execute_batch(END).map_err(failed())?;
    let closed = database.close().map_err(|(_, error)| error);
    closed.map_err(failed())?;
    let mut database = File::open(&file.0).map_err(Error::io(&file.0, "open"))?;
    let copied = io::copy(&mut database, &mut out).and_then(|_| out.flush());
    copied.map_err(|error| out.error(error))
}

fn begin(
    path: &Path,
    columns: &[ExportColumn],
    memory: Option<u64>,
) -> rusqlite::Result<Connection> {
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
    let database = Connection::open(path)?;
    let most = memory.map_or(u64::MAX, |memory| memory / 2 / 1024);
    let cache = most.clamp(*CACHE.start(), *CACHE.end());
    database.execute_batch(&format!("PRAGMA cache_size = -{cache};"))?;
    database.execute_batch(&format!("{BEGIN} CREATE TABLE ranking ({fields});"))?;
    Ok(database)
}

/// Writes the ranks of the `written` pages in an older snapshot.
fn add_ranks(
    database: &Connection,
    path: &Path,
    number: u64,
    snapshot: &Snapshot,
    written: &Bits,
) -> Result<()> {
    let failed = || failed(path);
    let too_large = |_| Error::Unsupported("a number above 2^63 - 1".into());
    let signed = |number: u64| i64::try_from(number).map_err(too_large);
    let number = signed(number)?;
    let time = snapshot.info().time.and_then(utc);
    let row = (number, time, signed(snapshot.len())?, snapshot.bound_l1());
    let one = "INSERT INTO snapshots VALUES (?, ?, ?, ?)";
    database.execute(one, row).map_err(failed())?;
    let insert = "INSERT INTO history VALUES (?, ?, ?, ?)";
    let mut insert = database.prepare(insert).map_err(failed())?;
    for page in snapshot.pages() {
        let page = page?;
        if !written.get(page.page.0) {
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
