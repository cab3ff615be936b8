//! Hosts of which a page was fetched.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::snapshot::Snapshot;
use crate::url::host;

/// Number of names that are read at a time.
const NAMES: u64 = 1 << 18;

/// Set of hosts, by their hashes.
#[derive(Debug, Default)]
pub struct HostSet(HashSet<u64>);

impl HostSet {
    /// Adds the hosts of all visited pages of a snapshot, of which it reads all names.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if names or columns are damaged or cannot be read.
    pub fn add_fetched(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.each_fetched(snapshot, false, |hosts, name| hosts.add(name))
    }

    /// Removes the hosts of all visited pages of a snapshot. Reads names until no host is left.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if names or columns are damaged or cannot be read.
    pub fn remove_fetched(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.each_fetched(snapshot, true, |hosts, name| {
            hosts.0.remove(&xxh3_64(host(name)));
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

    /// Calls `each` with the name of each visited page; with `until_empty` while there are hosts.
    fn each_fetched(
        &mut self,
        snapshot: &Snapshot,
        until_empty: bool,
        mut each: impl FnMut(&mut HostSet, &[u8]),
    ) -> Result<()> {
        let visited = snapshot.visited(1)?;
        let mut page = 0;
        while page < snapshot.len() {
            let names = page..snapshot.len().min(page + NAMES);
            snapshot.each_name(names, &mut |name| {
                if visited.get(page) {
                    each(self, name);
                }
                page += 1;
            })?;
            if until_empty && self.0.is_empty() {
                break;
            }
        }
        Ok(())
    }
}
