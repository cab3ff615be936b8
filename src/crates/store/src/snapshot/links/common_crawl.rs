//! Vertices and edges in two gzip files, in the layout of Common Crawl's web graphs.
//!
//! ```text
//! vertices.txt.gz   number TAB name
//! edges.txt.gz      number TAB number
//! ```

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{LINE_ENDS, LinkGraph, PageLinks, Room, write_file};
use crate::sites::Level;
use crate::snapshot::common_crawl::hosts_of;
use crate::snapshot::export::{name_without, reversed};
use crate::{Error, Result};

/// Writes the links of a snapshot into `folder`. Returns their number. Names stay on disk.
pub fn write_common_crawl(graph: &LinkGraph<'_>, room: Room<'_>, folder: &Path) -> Result<u64> {
    let is_host = matches!(graph.level(), Level::Host | Level::BareHost | Level::Domain);
    let hosts = (graph.level() == Level::Domain)
        .then(|| hosts_of(graph.ranking.snapshot(), room.memory))
        .transpose()?;
    let names = (0..).zip(graph.names()).map(|(at, name)| {
        let name = name?;
        name_without(&name, at, LINE_ENDS, "vertices", "parquet")?;
        Ok(match &hosts {
            Some(hosts) => {
                let count = hosts.get(&name).copied().unwrap_or_default();
                format!("{}\t{count}", reversed(&name))
            }
            None if is_host => reversed(&name).into_owned(),
            None => name,
        })
    });
    write_folder(folder, names, |visit| graph.each_links(room, visit))
}

/// Writes any graph into `folder`: the lines of `names` after their numbers, from 0, then the links with which `links`
/// calls back, sorted by source. Returns the result of `links`.
pub fn write_folder(
    folder: &Path,
    names: impl Iterator<Item = Result<String>>,
    links: impl FnOnce(&mut PageLinks<'_>) -> Result<u64>,
) -> Result<u64> {
    write_file(folder, "vertices.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        for (at, name) in names.enumerate() {
            writeln!(out, "{at}\t{}", name?).map_err(Error::io(path, "write"))?;
        }
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(())
    })?;
    write_file(folder, "edges.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        let count = links(&mut |source, links| {
            let mut write = || {
                links
                    .iter()
                    .try_for_each(|(target, _)| writeln!(out, "{source}\t{target}"))
            };
            write().map_err(Error::io(path, "write"))
        })?;
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(count)
    })
}
