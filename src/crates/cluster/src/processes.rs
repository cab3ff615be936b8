//! Adapter that connects the shards of several processes for the library.

use std::path::PathBuf;

use cashrank::{Error, Result};
use cashrank_cluster::Cluster;
use cashrank_store::shards::{LocalShard, Peers, check_together};

/// Distribution of shards over processes, with the connection to them.
pub struct Processes {
    cluster: Cluster,
    process_of: Vec<usize>,
    local: Vec<usize>,
    processes: usize,
}

pub fn lost(error: cashrank_cluster::ClusterError) -> Error {
    use cashrank_cluster::ClusterError;
    match error {
        ClusterError::Usage(what) | ClusterError::Differs(what) => Error::Usage(what),
        other => failed(other.to_string()),
    }
}

fn unclear() -> Error {
    failed("another process sent what this one does not understand".into())
}

fn failed(what: String) -> Error {
    Error::Io {
        path: PathBuf::from("processes"),
        action: "work together",
        source: std::io::Error::other(what),
    }
}

impl Processes {
    /// Creates the adapter for connected processes, of which this one has the stores `local`.
    ///
    /// # Errors
    /// Fails if a process is lost, or the stores are not the shards of one crawl, once each.
    pub fn new(cluster: Cluster, processes: usize, local: &[LocalShard]) -> Result<Processes> {
        let numbers = local.iter().map(|store| store.shard.number() as usize);
        let mut all = Processes {
            cluster,
            process_of: Vec::new(),
            local: numbers.collect(),
            processes,
        };
        let shards = check_together(local, &mut all)?;
        all.process_of = shards.iter().map(|(process, _)| *process).collect();
        Ok(all)
    }

    pub fn finish(self) -> Result<()> {
        self.cluster.finish().map_err(lost)
    }

    /// Tells the others that this process ends, and why.
    pub fn abandon(mut self, why: &str) {
        self.cluster.abandon(why);
    }
}

impl Peers for Processes {
    fn shards(&self) -> usize {
        self.process_of.len()
    }

    fn local(&self) -> &[usize] {
        &self.local
    }

    fn exchange(&mut self, outgoing: Vec<Vec<Vec<u8>>>) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut parcels = vec![Vec::new(); self.processes];
        for (from, messages) in self.local.iter().zip(outgoing) {
            for (to, message) in messages
                .into_iter()
                .enumerate()
                .filter(|(_, it)| !it.is_empty())
            {
                let parcel: &mut Vec<u8> = &mut parcels[self.process_of[to]];
                parcel.extend((*from as u32).to_le_bytes());
                parcel.extend((to as u32).to_le_bytes());
                parcel.extend((message.len() as u64).to_le_bytes());
                parcel.extend(message);
            }
        }
        let mut incoming = vec![vec![Vec::new(); self.process_of.len()]; self.local.len()];
        for parcel in self.cluster.exchange(parcels).map_err(lost)? {
            let mut rest = &parcel[..];
            while !rest.is_empty() {
                let (from, to, message) = take(&mut rest).ok_or_else(unclear)?;
                let at = self.local.binary_search(&to).map_err(|_| unclear())?;
                let place = incoming[at].get_mut(from);
                *place.ok_or_else(unclear)? = message.to_vec();
            }
        }
        Ok(incoming)
    }

    fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let to_all = vec![own; self.processes];
        self.cluster.exchange(to_all).map_err(lost)
    }
}

fn take<'p>(rest: &mut &'p [u8]) -> Option<(usize, usize, &'p [u8])> {
    let (from, left) = rest.split_first_chunk()?;
    let (to, left) = left.split_first_chunk()?;
    let (length, left) = left.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (message, left) = left.split_at_checked(length)?;
    *rest = left;
    let [from, to] = [from, to].map(|shard| u32::from_le_bytes(*shard) as usize);
    Some((from, to, message))
}
