//! Tables as inputs: they are read row by row and converted to lines of JSON. Positions, hashes, checkpoints,
//! limits and damage therefore work as for a file of that text.
//!
//! | input | read as |
//! |---|---|
//! | a Parquet file of records | a line of JSON per row |
//! | a Parquet file of links | a line of JSON for each run of rows with one source |
//! | a folder with files of vertices and of edges | a line of JSON per page |

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod edges;
mod graph;
#[cfg(feature = "parquet")]
mod records;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::SourceOptions;
use super::decompress::Fault;
use super::input::open_file;
use crate::formats::Format;
use crate::model::{Damage, Limits};
use crate::{Error, Result};

pub use graph::is_graph;
pub(super) use text::Rows;

pub const PARQUET: &[u8; 4] = b"PAR1";

pub(super) struct TableInput {
    pub rows: Rows,
    /// Format of the text, and the evidence for it, for messages.
    pub known: (Format, String),
}

pub(super) fn open(
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<Option<TableInput>> {
    let opened = if path.is_dir() {
        graph::open(path, limits)
    } else if path.is_file() {
        let (file, _) = open_file(path)?;
        let mut head = [0; PARQUET.len()];
        if (&file).read_exact(&mut head).is_err() || head != *PARQUET {
            return Ok(None);
        }
        parquet(file, path, options, limits).map(Some)
    } else {
        // A named pipe is not a table, and must be opened only once: its writer would not wait for another reader.
        Ok(None)
    };
    opened.map_err(|error| match error {
        Error::Unsupported(what) => Error::Unsupported(format!("{}: {what}", path.display())),
        other => other,
    })
}

#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: File, _: &Path, _: &SourceOptions, _: &Limits) -> Result<TableInput> {
    Err(crate::model::lacks_feature("a Parquet file", "parquet"))
}

#[cfg(feature = "parquet")]
pub(super) fn parquet(
    file: File,
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<TableInput> {
    use crate::decode::Names;
    use crate::decode::records::names::FieldNameMap;
    use crate::rules::FieldName;
    let again = file.try_clone().map_err(Error::io(path, "open"))?;
    let table = columns::ParquetTable::open(file, records::ROWS);
    let table = table.map_err(|fault| failed(path, fault))?;
    let found = table.fields();
    for (names, format) in [
        (Names::Url, Format::Records),
        (Names::Opaque, Format::NodeRecords),
    ] {
        let fields = FieldNameMap::by(&options.fields, names);
        let is_page = |field: &columns::ColumnField| {
            let known = fields.record.field(&field.name);
            known.is_some_and(|known| known.field == FieldName::Url)
        };
        if found.iter().any(is_page) {
            let why = format!("it is a Parquet table with {}", columns_of(&found));
            return Ok(TableInput {
                rows: records::text(table, &found, &fields, limits.line_bytes)?,
                known: (format, why),
            });
        }
    }
    let Some(pair) = edges::pair(&found) else {
        return Err(Error::Unsupported(format!(
            "a Parquet table with {}: a table of records has `url` and `links` (or name them with `field`), one of \
             links has `source` and `target`, or two columns",
            columns_of(&found)
        )));
    };
    edges::open(again, table, &found, pair, limits).map_err(|fault| failed(path, fault))
}

/// Lists the names of columns for a message, on one line. They are quoted, because they may be those of settings.
#[cfg(feature = "parquet")]
fn columns_of(found: &[columns::ColumnField]) -> String {
    const SHOWN: usize = 20;
    let names = found.iter().take(SHOWN).map(|field| {
        let chars = field.name.chars().filter(|c| !c.is_control());
        format!("{:?}", chars.take(40).collect::<String>())
    });
    let names = names.collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(SHOWN) {
        0 if found.is_empty() => "no columns".into(),
        0 => format!("the columns {names}"),
        more => format!("the columns {names} and {more} more"),
    }
}

fn failed(path: &Path, fault: Fault) -> Error {
    match fault {
        Fault::Io(error) => Error::io(path, "read")(error),
        Fault::Damage(kind, what) => Error::Corrupt {
            input: path.display().to_string(),
            record: None,
            damage: Box::new(Damage {
                kind,
                what,
                member: None,
                unverified_from: 0,
                handed_out_to: 0,
            }),
        },
    }
}
