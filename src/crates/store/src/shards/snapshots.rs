//! Snapshots of all shards of a crawl that were ranked together, for readers.

use std::path::PathBuf;

use super::{LocalShard, OneProcess, check_together, local_shards};
use crate::disk::Disk;
use crate::snapshot::{Snapshot, SnapshotSelector};
use crate::{Error, Result};

/// Opens the current snapshot of a store, or an older one; given several stores, the snapshots of all shards of a crawl
/// from one ranking, in the order of the shards.
///
/// # Errors
/// [`Error::Conflict`] if the snapshots are not of one ranking.
pub fn open_shards(
    disk: &dyn Disk,
    stores: &[PathBuf],
    which: Option<SnapshotSelector>,
) -> Result<Vec<Snapshot>> {
    if let [store] = stores {
        return Ok(vec![Snapshot::of(disk, store, which)?]);
    }
    let shards = local_shards(disk, stores)?;
    check_together(&shards, &mut OneProcess::new(shards.len()))?;
    let open = |store: &LocalShard| Snapshot::of(disk, &store.dir, which);
    let snapshots = shards.iter().map(open).collect::<Result<Vec<_>>>()?;
    let id = |snapshot: &Snapshot| snapshot.info().cluster.map(|of| of.id);
    let settle = "rank all shards together with `cashrank-cluster settle`";
    if let Some(alone) = snapshots.iter().find(|snapshot| id(snapshot).is_none()) {
        return Err(Error::Conflict(format!(
            "{}: its ranking is of this shard alone; {settle}",
            alone.store().display()
        )));
    }
    for pair in snapshots.windows(2) {
        if id(&pair[0]) != id(&pair[1]) {
            return Err(Error::Conflict(format!(
                "{} and {}: their rankings were not made together; {settle}",
                pair[0].store().display(),
                pair[1].store().display()
            )));
        }
    }
    Ok(snapshots)
}
