//! The links that a store keeps, as files for other programs.
//!
//! Links are those of a snapshot's rows: of each page the distinct targets that its last visit found, without those of
//! weight 0. They come sorted by source, then by target, so that the same records give the same bytes.
//! Where links weigh differently (`follow`), each has its weight; those of a page relate to each other, not
//! to those of others.
//!
//! | format | files | content |
//! |---|---|---|
//! | `tsv` | one | `source TAB target`, and `TAB weight` where links weigh differently; names, or numbers if asked |
//! | `parquet` | `pages.parquet`, `links.parquet` | the export of the ranking, sorted by page; `source`, `target` and `weight` as numbers |
//! | `common-crawl` | `vertices.txt.gz`, `edges.txt.gz` | `number TAB name`; `number TAB number`, as Common Crawl publishes its graphs |
//!
//! Numbers are those of the pages, from 0 in the order of their first appearance.

mod common_crawl;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod tsv;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::Snapshot;
use crate::codec::varint::number;
use crate::disk::Sorter;
use crate::rows::{Row, Rows, Stop};
use crate::{Error, Result};

#[cfg(feature = "parquet")]
pub use self::parquet::write_parquet;
pub use self::{common_crawl::write_common_crawl, tsv::write_tsv};

/// A page's links: targets in the order of their numbers, each with its weight.
type PageLinks<'l> = dyn FnMut(u32, &[(u32, u64)]) -> Result<()> + 'l;

/// Bytes that end a name in files of lines.
const LINE_ENDS: &[u8] = b"\t\r\n";

/// What writing them may take.
#[derive(Debug, Clone, Copy)]
pub struct Room<'r> {
    /// Bytes of memory for sorting, and for names where they are asked for; `None`: what there is.
    pub memory: Option<u64>,
    /// Where what does not fit into memory is sorted.
    pub folder: &'r Path,
}

impl Snapshot {
    /// Whether links have weights of their own.
    fn is_weighted(&self) -> bool {
        !self.info().settings.config.follow.is_default()
    }

    /// Calls `visit` with the links of each page that has any, by page. Returns how many links there are.
    fn each_links(&self, room: Room<'_>, visit: &mut PageLinks<'_>) -> Result<u64> {
        let memory = super::export::MOST_SORTING.min(room.memory.unwrap_or(u64::MAX));
        let mut sorter = Sorter::new(memory as usize, room.folder);
        let mut value = Vec::new();
        self.rows()?.sweep(&mut |row| {
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

/// A row's links, 12 bytes each.
fn put(row: Row<'_>, into: &mut Vec<u8>) {
    for (at, target) in row.targets.iter().enumerate() {
        let weight = row.weights.get(at).copied().unwrap_or(1);
        if weight > 0 {
            into.extend_from_slice(&target.to_le_bytes());
            into.extend_from_slice(&weight.to_le_bytes());
        }
    }
}

/// Makes a file of a folder, writes and closes it.
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
