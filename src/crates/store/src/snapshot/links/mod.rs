//! Export of the kept links, between pages or between sites, for other programs.
//!
//! Links of pages are those of a snapshot's rows: the distinct targets of each page's last visit, without those of
//! weight 0. They are sorted by source, then by target, so that the same records give the same bytes. If weights differ
//! (`follow`, or weights in records), each link has its weight; weights are comparable within a page only. Links of
//! sites are those of the site graph (`sites/`), with its weights, unless all are 1.
//!
//! | format | files | content |
//! |---|---|---|
//! | `tsv` | one | `source TAB target`, and `TAB weight` where links weigh differently; names, or numbers if asked |
//! | `parquet` | `pages.parquet` or `sites.parquet`, `links.parquet` | the export of the ranking, by number; `source`, `target` and `weight` as numbers |
//! | `common-crawl` | `vertices.txt.gz`, `edges.txt.gz` | `number TAB name`; `number TAB number`, as Common Crawl publishes its graphs: names of hosts and domains begin with their last label, and behind a domain stands how many hosts it has |
//!
//! Numbers are those of the pages or sites, from 0 in the order of their first appearance.

mod common_crawl;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod tsv;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::LevelRanking;
use crate::codec::varint::number;
use crate::disk::ExternalSorter;
use crate::rows::{Row, Rows, Stop};
use crate::sites::{Level, Pairing, SiteGraph, SiteLinks};
use crate::{Error, Result};

#[cfg(feature = "parquet")]
pub use self::parquet::write_parquet;
pub use self::{
    common_crawl::{write_common_crawl, write_folder},
    tsv::write_tsv,
};

/// Callback for the links of a page or site: targets in the order of their numbers, each with its weight.
pub type PageLinks<'l> = dyn FnMut(u32, &[(u32, u64)]) -> Result<()> + 'l;

/// Bytes that end a name in files of lines.
const LINE_ENDS: &[u8] = b"\t\r\n";

/// Resources for writing links.
#[derive(Debug, Clone, Copy)]
pub struct Room<'r> {
    /// Memory in bytes for sorting, and for names if they are written; `None` for no limit.
    pub memory: Option<u64>,
    /// Folder for spilled data.
    pub folder: &'r Path,
}

/// Graph to be written.
pub struct LinkGraph<'g> {
    ranking: &'g LevelRanking,
    sites: Option<SiteGraph<'g>>,
    is_weighted: bool,
}

impl<'g> LinkGraph<'g> {
    /// Returns the graph of a ranking's pages or sites; of a roll-up, whose links are derived from those of pages.
    ///
    /// # Errors
    /// [`Error::Missing`] if the store keeps no rows or this is not its current snapshot.
    pub fn of(ranking: &'g LevelRanking, pairing: Pairing<'g>) -> Result<LinkGraph<'g>> {
        let rows = ranking.snapshot().rows()?;
        let Some(of) = ranking.sites() else {
            let follow = &ranking.snapshot().info().settings.config.follow;
            return Ok(LinkGraph {
                ranking,
                sites: None,
                is_weighted: !follow.is_default() || rows.has_weights()?,
            });
        };
        Ok(LinkGraph {
            ranking,
            is_weighted: pairing.links != SiteLinks::Once,
            sites: Some(SiteGraph::of_rows(&rows, of, pairing)?),
        })
    }

    fn level(&self) -> Level {
        self.ranking.level()
    }

    fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// Returns the number of pages or sites.
    pub fn len(&self) -> u64 {
        self.ranking.len()
    }

    /// Returns true if there are no pages or sites.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all names, in number order.
    pub fn names(&self) -> Box<dyn Iterator<Item = Result<String>> + '_> {
        match self.ranking.sites() {
            Some(sites) => Box::new(sites.names().map(|name| Ok(name.to_owned()))),
            None => Box::new(self.ranking.snapshot().names()),
        }
    }

    /// Calls `visit` with the links of each page or site that has any, by number. Returns the number of links.
    ///
    /// # Errors
    /// [`Error::Missing`] if the store keeps no rows or this is not its current snapshot.
    pub fn each_links(&self, room: Room<'_>, visit: &mut PageLinks<'_>) -> Result<u64> {
        let Some(graph) = &self.sites else {
            return self.each_of_pages(room, visit);
        };
        let mut links = Vec::new();
        graph.sweep(&mut |row| {
            links.clear();
            links.extend(weighed(row));
            visit(row.page, &links).map_err(Stop::Failed)
        })?;
        Ok(graph.links())
    }

    fn each_of_pages(&self, room: Room<'_>, visit: &mut PageLinks<'_>) -> Result<u64> {
        let memory = super::export::MOST_SORTING.min(room.memory.unwrap_or(u64::MAX));
        let mut sorter = ExternalSorter::new(memory as usize, room.folder);
        let mut value = Vec::new();
        self.ranking.snapshot().rows()?.sweep(&mut |row| {
            value.clear();
            put(row, &mut value);
            sorter
                .push(&row.page.to_be_bytes(), &value)
                .map_err(Stop::Failed)
        })?;
        let (mut links, mut count) = (Vec::new(), 0);
        for record in sorter.sorted()? {
            let (page, value) = record?;
            links.clear();
            links.extend(
                value
                    .chunks_exact(12)
                    .map(|link| (number(&link[..4]) as u32, number(&link[4..]))),
            );
            links.sort_unstable();
            count += links.len() as u64;
            let page =
                <[u8; 4]>::try_from(&*page).map_err(|_| Error::internal("a page is no number"))?;
            if !links.is_empty() {
                visit(u32::from_be_bytes(page), &links)?;
            }
        }
        Ok(count)
    }
}

/// Iterates over a row's links with their weights, except for those of weight 0.
fn weighed(row: Row<'_>) -> impl Iterator<Item = (u32, u64)> + '_ {
    let weight = move |at: usize| row.weights.get(at).copied().unwrap_or(1);
    let targets = row.targets.iter().enumerate();
    let links = targets.map(move |(at, &target)| (target, weight(at)));
    links.filter(|(_, weight)| *weight > 0)
}

/// Encodes a row's links with their weights, 12 bytes each.
fn put(row: Row<'_>, into: &mut Vec<u8>) {
    for (target, weight) in weighed(row) {
        into.extend_from_slice(&target.to_le_bytes());
        into.extend_from_slice(&weight.to_le_bytes());
    }
}

/// Creates a file in a folder, writes and closes it.
fn write_file<T>(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut (dyn Write + Send), &Path) -> Result<T>,
) -> Result<T> {
    let path = folder.join(name);
    let file = File::create_new(&path).map_err(Error::io(&path, "create"))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out, &path)?;
    out.flush().map_err(Error::io(&path, "write"))?;
    Ok(written)
}
