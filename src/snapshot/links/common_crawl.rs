//! Vertices and edges in two gzip files, as Common Crawl publishes its web graphs.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{LINE_ENDS, LinkGraph, Room, write_file};
use crate::sites::Level;
use crate::snapshot::common_crawl::hosts_of;
use crate::snapshot::export::{name_without, reversed};
use crate::{Error, Result};

/// Writes both into `folder`; returns how many links there are.
///
/// # Errors
/// As of [`write_tsv`](super::write_tsv), but for names, which stay on the disk.
pub fn write_common_crawl(graph: &LinkGraph<'_>, room: Room<'_>, folder: &Path) -> Result<u64> {
    let is_host = matches!(graph.level(), Level::Host | Level::BareHost | Level::Domain);
    let hosts = (graph.level() == Level::Domain)
        .then(|| hosts_of(graph.ranking.snapshot(), room.memory))
        .transpose()?;
    write_file(folder, "vertices.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        for (at, name) in graph.names().enumerate() {
            let name = name?;
            name_without(&name, at as u64, LINE_ENDS, "vertices", "parquet")?;
            let mut write = || match &hosts {
                Some(hosts) => {
                    let count = hosts.get(&name).copied().unwrap_or_default();
                    writeln!(out, "{at}\t{}\t{count}", reversed(&name))
                }
                None if is_host => writeln!(out, "{at}\t{}", reversed(&name)),
                None => writeln!(out, "{at}\t{name}"),
            };
            write().map_err(Error::io(path, "write"))?;
        }
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(())
    })?;
    write_file(folder, "edges.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        let count = graph.each_links(room, &mut |source, links| {
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
