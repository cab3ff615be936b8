//! Vertices and edges in two gzip files, as Common Crawl publishes its web graphs.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{LINE_ENDS, Room, write_file};
use crate::snapshot::Snapshot;
use crate::snapshot::export::name_without;
use crate::{Error, Result};

/// Writes both into `folder`; returns how many links there are.
///
/// # Errors
/// As of [`write_tsv`](super::write_tsv), but for names, which stay on the disk.
pub fn write_common_crawl(snapshot: &Snapshot, room: Room<'_>, folder: &Path) -> Result<u64> {
    write_file(folder, "vertices.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        for (at, name) in snapshot.names().enumerate() {
            let name = name?;
            name_without(&name, at as u64, LINE_ENDS, "vertices", "parquet")?;
            writeln!(out, "{at}\t{name}").map_err(Error::io(path, "write"))?;
        }
        out.finish().map_err(Error::io(path, "write"))?;
        Ok(())
    })?;
    write_file(folder, "edges.txt.gz", |out, path| {
        let mut out = GzEncoder::new(out, Compression::default());
        let count = snapshot.each_links(room, &mut |source, links| {
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
