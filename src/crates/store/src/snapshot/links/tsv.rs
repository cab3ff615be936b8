//! Export of links as tab-separated lines.

use std::io::Write;
use std::path::Path;

use super::names::AllNames;
use super::{LinkGraph, Room};
use crate::memory::to_read;
use crate::{Error, Result};

/// Writes all links, by numbers or by names. Returns their number. `path` names `out` in errors.
///
/// # Errors
/// [`Error::Missing`] if the store keeps no rows or this is not its current snapshot; also fails if names do not fit in
/// memory, or in a line.
pub fn write_tsv(
    graph: &LinkGraph<'_>,
    numbers: bool,
    room: Room<'_>,
    out: &mut (dyn Write + Send),
    path: &Path,
) -> Result<u64> {
    let names = if numbers {
        None
    } else {
        let budget = room.memory;
        let left =
            budget.map(|budget| budget.saturating_sub(to_read(graph.ranking.snapshot().len())));
        Some(AllNames::of(graph, left)?)
    };
    let weighted = graph.is_weighted();
    graph.each_links(room, &mut |source, links| {
        let mut write = || -> std::io::Result<()> {
            for &(target, weight) in links {
                match &names {
                    Some(names) => write!(out, "{}\t{}", names.get(source), names.get(target))?,
                    None => write!(out, "{source}\t{target}")?,
                }
                if weighted {
                    write!(out, "\t{weight}")?;
                }
                out.write_all(b"\n")?;
            }
            Ok(())
        };
        write().map_err(Error::io(path, "write"))
    })
}
