//! Tables as inputs: they are read row by row and converted to the text of a format.
//!
//! So positions, hashes, checkpoints, limits and damage work as for a file of that text.
//!
//! | input | read as |
//! |---|---|
//! | a Parquet file of records | a line of JSON per row |
//! | a Parquet file of links, between URLs | a line of JSON for each run of rows with one source |
//! | a Parquet file of links, between other names or numbers | a line of an adjacency list for each such run |
//! | a Parquet file of links with weights, between other names or numbers | a line of an edge list for each row |
//! | a folder with a table of pages and one of links between their numbers | a line of JSON or of an adjacency list per page, or of an edge list per link |

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod edges;
mod graph;
mod lines;
#[cfg(feature = "parquet")]
mod pair;
#[cfg(feature = "parquet")]
mod records;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::SourceOptions;
use super::decompress::Fault;
use super::input::open_file;
use crate::disk::{Disk, RealDisk};
use crate::formats::Format;
use crate::model::{Damage, Limits};
use crate::{Error, Result};
use graph::{GraphFiles, GraphText};

pub(super) use text::{Rows, TableText};

/// First bytes of a Parquet file.
pub const PARQUET: &[u8; 4] = b"PAR1";

/// Input that is converted to text.
pub(super) struct TableInput {
    pub rows: Box<dyn Rows>,
    /// Format of the text, and the evidence for it, for messages.
    pub known: (Format, String),
}

/// Table of the links of a graph in a folder.
const LINKS: &str = "links.parquet";

/// Returns the files of lines with a part of a graph in a folder, among these names.
fn files_of(folder: &Path, names: &[String], part: &str) -> Vec<PathBuf> {
    let is_text = |name: &&String| {
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        plain.ends_with(".txt") && name.contains(part)
    };
    let found = names.iter().filter(is_text);
    found.map(|name| folder.join(name)).collect()
}

/// Returns whether the folder holds a graph, or a part of one.
pub fn is_graph(folder: &Path) -> bool {
    let names = RealDisk.list(folder).unwrap_or_default();
    names.iter().any(|name| name == LINKS) || !files_of(folder, &names, "vertices").is_empty()
}

/// Opens the graph in a folder, if there is one.
///
/// | files | graph |
/// |---|---|
/// | `pages.parquet` or `sites.parquet`, and `links.parquet` | two tables, as `export` writes them |
/// | `*vertices*.txt`, `*edges*.txt`, perhaps `.gz` or `.zst` | Common Crawl's layout |
fn graph_in(folder: &Path, limits: &Limits) -> Result<Option<TableInput>> {
    let names = RealDisk.list(folder).map_err(Error::io(folder, "read"))?;
    let [vertices, edges] = ["vertices", "edges"].map(|part| files_of(folder, &names, part));
    let is_pages = |name: &&String| ["pages.parquet", "sites.parquet"].contains(&&***name);
    let pages = names.iter().find(is_pages);
    let wrong = |what: &str| Error::Unsupported(format!("{}: has {what}", folder.display()));
    let (files, why) = if names.iter().any(|name| name == LINKS) {
        if !vertices.is_empty() {
            return Err(wrong(
                "links.parquet and files of vertices: leave one graph",
            ));
        }
        let pages = pages.ok_or_else(|| wrong("links.parquet and no pages.parquet"))?;
        let why = format!("it is a folder with {pages} and {LINKS}");
        (tables(folder, pages)?, why)
    } else if vertices.is_empty() {
        return Ok(None);
    } else if edges.is_empty() {
        return Err(wrong("files of vertices and none of edges"));
    } else {
        let why = "it is a folder with files of vertices and of edges";
        (lines::graph(vertices, edges, limits), why.to_owned())
    };
    let graph = GraphText::open(folder, files, limits)?;
    Ok(Some(TableInput {
        known: (graph.layout().format(), why),
        rows: Box::new(graph),
    }))
}

#[cfg(feature = "parquet")]
fn tables(folder: &Path, pages: &str) -> Result<GraphFiles> {
    Ok(pair::graph(folder.join(pages), folder.join(LINKS)))
}

#[cfg(not(feature = "parquet"))]
fn tables(folder: &Path, _: &str) -> Result<GraphFiles> {
    Err(without_parquet(&folder.join(LINKS)))
}

/// Opens a table, or a folder with a graph; `None` if it is neither.
pub(super) fn open(
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<Option<TableInput>> {
    if path.is_dir() {
        return graph_in(path, limits);
    }
    // A named pipe is not a table, and must be opened only once: its writer would not wait for another reader.
    if !path.is_file() {
        return Ok(None);
    }
    let (file, _) = open_file(path)?;
    let mut head = [0; PARQUET.len()];
    if (&file).read_exact(&mut head).is_err() || head != *PARQUET {
        return Ok(None);
    }
    parquet(file, path, options, limits).map(Some)
}

#[cfg(feature = "parquet")]
pub(super) fn parquet(
    file: File,
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<TableInput> {
    of_columns(file, path, options, limits).map_err(|error| match error {
        Error::Unsupported(what) => Error::Unsupported(format!("{}: {what}", path.display())),
        other => other,
    })
}

#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: File, path: &Path, _: &SourceOptions, _: &Limits) -> Result<TableInput> {
    Err(without_parquet(path))
}

#[cfg(not(feature = "parquet"))]
fn without_parquet(path: &Path) -> Error {
    let file = format!("{}: a Parquet file", path.display());
    crate::model::Feature::refusal(file, "parquet")
}

#[cfg(feature = "parquet")]
fn of_columns(
    file: File,
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<TableInput> {
    use crate::decode::Names;
    use crate::decode::records::names::FieldNameMap;
    use crate::rules::FieldName;
    let again = file.try_clone().map_err(Error::io(path, "open"))?;
    let table = columns::ParquetTable::open(file, String::new(), records::ROWS);
    let mut table = table.map_err(|fault| failed(path, fault))?;
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
            let taken = (options.shard, names);
            let rows = records::RecordTable::of(table, &found, &fields, taken)?;
            return Ok(TableInput {
                rows: Box::new(rows),
                known: (
                    format,
                    format!("it is a Parquet table with {}", columns_of(&found)),
                ),
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
    let why = format!(
        "it is a Parquet table of links from {:?} to {:?}",
        pair[0].name, pair[1].name
    );
    let chosen = edges::choose(&mut table, &found, pair)?;
    let edges = edges::EdgeTable::open(again, chosen, limits);
    let edges = edges.map_err(|fault| failed(path, fault))?;
    Ok(TableInput {
        known: (edges.layout().format(), why),
        rows: Box::new(edges),
    })
}

/// Lists the names of columns for a message, on one line. They may be those of settings, so they stand in quotes.
#[cfg(feature = "parquet")]
fn columns_of(found: &[columns::ColumnField]) -> String {
    const SHOWN: usize = 20;
    let names = found.iter().take(SHOWN).map(|field| {
        let name: String = field
            .name
            .chars()
            .filter(|c| !c.is_control())
            .take(40)
            .collect();
        format!("{name:?}")
    });
    let names = names.collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(SHOWN) {
        0 if found.is_empty() => "no columns".into(),
        0 => format!("the columns {names}"),
        more => format!("the columns {names} and {more} more"),
    }
}

/// Returns the error for a table that cannot be opened.
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
