//! A SQLite database of one table, `ranking`, with a row per page in the requested order.
//!
//! Columns are `TEXT`, `REAL` or `INTEGER`; times are texts as in TSV, which SQLite's functions of dates take. Indexes:
//! `url`, `rank`, `(host, rank)` and `(domain, rank)`.
//!
//! SQLite writes at random positions, so the database is created in a temporary file and copied when complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::columns::{ColumnValue, ExportColumn, ValueKind};
use super::{ExportOutput, Page, Setup};
use crate::disk::{temporary, unfinished};
use crate::model::utc;
use crate::{Error, Result};

/// Size of SQLite's cache in KiB, minimum and maximum. Sorting for an index takes as much again.
const CACHE: RangeInclusive<u64> = 1 << 10..=1 << 16;

/// The rows are one transaction, which is not visible to others, in a file that is dropped if it fails.
const BEGIN: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    BEGIN;";

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
    rows: &mut dyn Iterator<Item = Result<Page<'_>>>,
) -> Result<()> {
    let folder = setup.folder.clone().unwrap_or_else(std::env::temp_dir);
    let made = unfinished(&folder.join("cashrank-sqlite"), |path| {
        File::create_new(path)
    });
    let (path, _) = made.map_err(temporary)?;
    let file = Scratch(path);
    let failed = |error| Error::io(&file.0, "write")(io::Error::other::<rusqlite::Error>(error));
    let columns = setup.all_columns();
    let database = begin(&file.0, &columns, setup.memory).map_err(failed)?;
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO ranking VALUES ({places})");
    let mut insert = database.prepare(&insert).map_err(failed)?;
    for page in rows {
        let page = page?;
        let values = columns.iter().map(|column| sql(column, &page));
        let values = values.collect::<Result<Vec<_>>>()?;
        let inserted = insert.execute(params_from_iter(&values));
        inserted.map_err(failed)?;
    }
    drop(insert);
    database.execute_batch(END).map_err(failed)?;
    let closed = database.close().map_err(|(_, error)| error);
    closed.map_err(failed)?;
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
