//! A link a line.

use std::io::Write;
use std::path::Path;

use super::Room;
use super::names::AllNames;
use crate::memory::to_read;
use crate::snapshot::Snapshot;
use crate::{Error, Result};

/// Writes all links, by numbers or by names; returns how many there are. `path` names `out` in errors.
///
/// # Errors
/// [`Error::Missing`] if the store keeps no rows or this is not its current snapshot; names that do not fit into the
/// memory, or into a line; [`Error::Io`].
pub fn write_tsv(
    snapshot: &Snapshot,
    numbers: bool,
    room: Room<'_>,
    out: &mut (dyn Write + Send),
    path: &Path,
) -> Result<u64> {
    let names = if numbers {
        None
    } else {
        let budget = room.memory;
        let left = budget.map(|budget| budget.saturating_sub(to_read(snapshot.len())));
        Some(AllNames::of(snapshot, left)?)
    };
    let weighted = snapshot.is_weighted();
    snapshot.each_links(room, &mut |source, links| {
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
