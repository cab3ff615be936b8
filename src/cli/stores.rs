//! Options of commands that read the shards of a crawl as one store.

use std::path::{Path, PathBuf};

use cashrank_store::shards::open_shards;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::STORE;
use super::snapshots::SnapshotArg;

/// The store option of these commands.
#[derive(clap::Args)]
pub struct StoresArg {
    /// The store's directory [default: the environment variable CASHRANK_STORE].
    ///
    /// May be repeated, for all shards of a crawl that were ranked together: they are read as one store of all their pages.
    #[arg(long = "store", value_name = "DIR", env = STORE, hide_env = true, required = true)]
    stores: Vec<PathBuf>,
}

impl StoresArg {
    pub fn all(&self) -> &[PathBuf] {
        &self.stores
    }

    /// Returns the first store; it is the only one if [`check_one`] was called for the options in use.
    pub fn first(&self) -> &Path {
        &self.stores[0]
    }

    pub fn open(&self, snapshot: &SnapshotArg) -> cashrank::Result<Vec<Snapshot>> {
        open_shards(&RealDisk, &self.stores, snapshot.snapshot)
    }

    pub fn check_one(&self, given: &[(bool, &str)]) -> anyhow::Result<()> {
        check_one(&self.stores, given)
    }
}

/// Refuses options for a single store if there are several. `given` pairs each option with whether it is given.
pub fn check_one(stores: &[PathBuf], given: &[(bool, &str)]) -> anyhow::Result<()> {
    let given = given.iter().find(|(is_given, _)| *is_given);
    if let Some((_, option)) = given.filter(|_| stores.len() > 1) {
        anyhow::bail!("{option} is for one store: leave it out, or give one --store");
    }
    Ok(())
}
