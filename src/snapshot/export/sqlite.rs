//! A SQLite database of one table, `ranking`, with a row per page in the order that was asked for.
//!
//! ```text
//! url TEXT, importance REAL, rank INTEGER, visits INTEGER, last_fetch TEXT, host TEXT, domain TEXT, page INTEGER
//! ```
//!
//! and `distance REAL` where it is asked for, `pages INTEGER` of sites, `change TEXT` since an older ranking. `last_fetch` is as in TSV, which SQLite's functions of dates take. Indexes:
//! `url`, `rank`, `(host, rank)` and `(domain, rank)`.
//!
//! SQLite writes where it likes, so the database is made in a temporary file, and copied when it is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ToSql};

use super::host::host_and_domain;
use super::{
    Columns, Content, ExportSpec, Exporter, Output, Page, Setup, importance, integers, last_fetch,
};
use crate::disk::unfinished;
use crate::model::Change;
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "sqlite",
    about: "a SQLite database of one table, ranking, with indexes",
    is_text: false,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Sqlite::new(out, setup)?)),
};

/// The rows are one transaction, which nobody else sees, in a file that is dropped if it fails.
const BEGIN: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA cache_size = -65536;
    BEGIN;
    CREATE TABLE ranking (
        url TEXT NOT NULL,
        importance REAL NOT NULL,
        rank INTEGER NOT NULL,
        visits INTEGER NOT NULL,
        last_fetch TEXT,
        host TEXT,
        domain TEXT,
        page INTEGER NOT NULL";

const END: &str = "
    CREATE INDEX ranking_url ON ranking (url);
    CREATE INDEX ranking_rank ON ranking (rank);
    CREATE INDEX ranking_host ON ranking (host, rank);
    CREATE INDEX ranking_domain ON ranking (domain, rank);
    COMMIT;";

struct Sqlite<'w> {
    out: Output<'w>,
    columns: Columns,
    /// The statement of a row.
    insert: String,
    database: Connection,
    file: Scratch,
}

/// A file that goes when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that stays is no fault of the result.
        let _ = fs::remove_file(&self.0);
    }
}

impl<'w> Sqlite<'w> {
    fn new(out: Output<'w>, setup: &Setup) -> Result<Sqlite<'w>> {
        let folder = setup.folder.clone().unwrap_or_else(std::env::temp_dir);
        let (path, _) = unfinished(&folder.join("cashrank-sqlite"), |path| {
            File::create_new(path)
        })?;
        let file = Scratch(path);
        let columns = setup.columns;
        let distance = columns.distance.then_some(", distance REAL");
        let pages = columns.pages.then_some(", pages INTEGER NOT NULL");
        let change = columns.change.then_some(", change TEXT NOT NULL");
        let more = [distance, pages, change].map(Option::unwrap_or_default);
        let places = vec!["?"; 8 + more.iter().filter(|column| !column.is_empty()).count()];
        let more = more.concat();
        let insert = format!("INSERT INTO ranking VALUES ({})", places.join(", "));
        let begin = || {
            let database = Connection::open(&file.0)?;
            database.execute_batch(&format!("{BEGIN}{more});"))?;
            Ok(database)
        };
        let database = begin().map_err(failed(&file.0))?;
        Ok(Sqlite {
            out,
            columns,
            insert,
            database,
            file,
        })
    }
}

fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::io(path, "write")(io::Error::other(error))
}

impl Exporter for Sqlite<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let (importance, fetched) = (importance(page)?, last_fetch(page)?);
        let [rank, visits, number, pages] = integers(page)?;
        let (host, domain) = host_and_domain(&page.url);
        let url = &*page.url;
        let (distance, more) = (&page.distance as &dyn ToSql, &pages as &dyn ToSql);
        let mut row: Vec<&dyn ToSql> = vec![
            &url,
            &importance,
            &rank,
            &visits,
            &fetched,
            &host,
            &domain,
            &number,
        ];
        row.extend(self.columns.distance.then_some(distance));
        row.extend(self.columns.pages.then_some(more));
        let change = page.change.map(Change::name);
        row.extend(self.columns.change.then_some(&change as &dyn ToSql));
        let insert = || self.database.prepare_cached(&self.insert)?.execute(&*row);
        insert().map_err(failed(&self.file.0))?;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        let path = self.file.0.clone();
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
