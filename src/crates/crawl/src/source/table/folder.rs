//! Finds the files of a graph in a folder by their names.
//!
//! | files | graph |
//! |---|---|
//! | `pages.parquet` or `sites.parquet`, and `links.parquet` | two tables, as `export` writes them |
//! | `*vertices*.txt`, `*edges*.txt`, perhaps `.gz` or `.zst` | Common Crawl's layout |

use std::path::Path;

#[cfg(feature = "parquet")]
use super::pair;
use super::text::TableText;
use super::{KnownFormat, TableInput, failed, graph, lines};
use crate::disk::{Disk, RealDisk};
use crate::model::Limits;
use crate::{Error, Result};

/// Returns whether the folder holds a graph, or a part of one.
pub fn is_graph(folder: &Path) -> bool {
    RealDisk
        .list(folder)
        .is_ok_and(|names| GraphFolder::of(&names).is_any())
}

/// Files of a graph in a folder.
struct GraphFolder<'n> {
    /// Tables of pages or sites, and of links.
    tables: [Option<&'n str>; 2],
    /// Files in Common Crawl's layout.
    vertices: Vec<&'n str>,
    edges: Vec<&'n str>,
}

impl<'n> GraphFolder<'n> {
    fn of(names: &'n [String]) -> GraphFolder<'n> {
        let one = |wanted: &[&str]| {
            let mut names = names.iter().map(String::as_str);
            names.find(|name| wanted.contains(name))
        };
        let lines = |part: &str| -> Vec<&str> {
            let is_text = |name: &&str| {
                let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
                name.ends_with(".txt") && name.contains(part)
            };
            names.iter().map(String::as_str).filter(is_text).collect()
        };
        GraphFolder {
            tables: [
                one(&["pages.parquet", "sites.parquet"]),
                one(&["links.parquet"]),
            ],
            vertices: lines("vertices"),
            edges: lines("edges"),
        }
    }

    fn is_any(&self) -> bool {
        let [_, links] = self.tables;
        links.is_some() || !self.vertices.is_empty()
    }
}

/// Opens the graph in a folder, if there is one.
pub(super) fn graph_in(folder: &Path, limits: &Limits) -> Result<Option<TableInput>> {
    let names = RealDisk.list(folder).map_err(Error::io(folder, "read"))?;
    let found = GraphFolder::of(&names);
    let wrong = match (&found.tables, found.vertices.is_empty()) {
        ([_, Some(_)], false) => Some("links.parquet and files of vertices: leave one graph"),
        ([None, Some(_)], _) => Some("links.parquet and no pages.parquet"),
        ([_, None], false) if found.edges.is_empty() => Some("files of vertices and none of edges"),
        _ => None,
    };
    if let Some(what) = wrong {
        let what = format!("{}: has {what}", folder.display());
        return Err(Error::Unsupported(what));
    }
    if let [Some(pages), Some(links)] = found.tables {
        return parquet_graph(folder, pages, links, limits).map(Some);
    }
    if found.vertices.is_empty() {
        return Ok(None);
    }
    let paths = |names: &[&str]| names.iter().map(|name| folder.join(name)).collect();
    let files = lines::LineFiles {
        vertices: paths(&found.vertices),
        edges: paths(&found.edges),
        limits: limits.clone(),
    };
    let why = "it is a folder with files of vertices and of edges";
    graph_of(folder, files, why.into(), limits).map(Some)
}

fn graph_of(
    folder: &Path,
    files: impl graph::Files + 'static,
    why: String,
    limits: &Limits,
) -> Result<TableInput> {
    let graph = graph::Graph::of(files, limits).map_err(|fault| failed(folder, fault))?;
    Ok(TableInput {
        known: KnownFormat {
            format: graph.layout().format(),
            why,
        },
        text: TableText::of(graph),
    })
}

#[cfg(feature = "parquet")]
fn parquet_graph(folder: &Path, pages: &str, links: &str, limits: &Limits) -> Result<TableInput> {
    let files = pair::ParquetFiles::of(folder.join(pages), folder.join(links))?;
    let why = format!("it is a folder with {pages} and {links}");
    graph_of(folder, files, why, limits)
}

#[cfg(not(feature = "parquet"))]
fn parquet_graph(folder: &Path, _: &str, links: &str, _: &Limits) -> Result<TableInput> {
    Err(super::without_parquet(&folder.join(links)))
}
