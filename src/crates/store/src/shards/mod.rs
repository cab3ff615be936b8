//! Joint ranking of the shards of one crawl: the work of each shard, and the messages between them ([`Peers`]).

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod names;
mod ranks;
mod remote_pages;
mod settle;
mod together;

pub use crate::rank::peers::{OneProcess, Peers, RemotePages};
pub use remote_pages::verify_remote;
pub use settle::{RankedShard, SettleOptions, Together, settle};
pub use together::{LocalShard, check_together, local_shards, open_shards};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// Gathers a small value of each process in all processes, in the order of the processes.
fn gather_all<T: DeserializeOwned>(own: &impl Serialize, peers: &mut dyn Peers) -> Result<Vec<T>> {
    let bytes = serde_json::to_vec(own).map_err(|error| Error::internal(error.to_string()))?;
    let all = peers.gather(bytes)?.into_iter().enumerate();
    let read = all.map(|(process, bytes)| {
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::internal(format!(
                "what process {process} says cannot be read: {error}"
            ))
        })
    });
    read.collect()
}

/// Gathers a small value of each shard in all processes, in shard order; `local` has those of the local shards.
fn gather_values<T: Serialize + DeserializeOwned>(
    local: &[T],
    peers: &mut dyn Peers,
) -> Result<Vec<T>> {
    let own: Vec<(usize, &T)> = peers.local().iter().copied().zip(local).collect();
    let mut all: Vec<(usize, T)> = gather_all::<Vec<_>>(&own, peers)?
        .into_iter()
        .flatten()
        .collect();
    all.sort_by_key(|(shard, _)| *shard);
    if !all.iter().map(|(shard, _)| *shard).eq(0..peers.shards()) {
        return Err(Error::internal("not each shard says something once"));
    }
    Ok(all.into_iter().map(|(_, value)| value).collect())
}
