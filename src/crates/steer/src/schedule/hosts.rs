//! Hosts of which a page was fetched.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::snapshot::Snapshot;
use crate::url::host;

/// Set of hosts of which a page was fetched, by their hashes.
#[derive(Debug, Default)]
pub struct FetchedHosts(HashSet<u64>);

impl FetchedHosts {
    /// Adds the hosts of all visited pages of a snapshot, of which it reads all names.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if names or columns are damaged or cannot be read.
    pub fn add_all(&mut self, snapshot: &Snapshot) -> Result<()> {
        let visited = snapshot.visited(1)?;
        let mut page = 0;
        snapshot.each_name(0..snapshot.len(), &mut |name| {
            if visited.get(page) {
                self.add(name);
            }
            page += 1;
        })
    }

    /// Adds the host of the page of this name.
    pub fn add(&mut self, name: &[u8]) {
        self.0.insert(xxh3_64(host(name)));
    }

    /// Returns whether the set has the host of the page of this name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.contains(&xxh3_64(host(name)))
    }
}
