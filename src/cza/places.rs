//! The places of names while an archive is written: which host each is on, and how many names that had before.

use crate::Result;
use crate::batch::{Fingerprints, HashKey};
use crate::engine::Index;

use super::hosts::Hosts;
use super::sites::{LOCAL, host_len};
use crate::model::Sites;

/// Hosts and places of an archive's names: 8 bytes a name and some 16 a host.
pub(super) struct Places {
    fingerprints: Fingerprints,
    hosts: Index,
    /// Names of each host.
    names: Vec<u32>,
    /// The host and place of each name.
    places: Vec<(u32, u32)>,
}

impl Places {
    pub fn new() -> Result<Places> {
        Ok(Places {
            fingerprints: HashKey::random()?.fingerprints(),
            hosts: Index::new()?,
            names: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Hosts so far.
    pub fn hosts(&self) -> u32 {
        self.names.len() as u32
    }

    /// Most bytes of memory with `more` names, which may all be on hosts of their own.
    pub fn bytes_with(&self, more: u64) -> u64 {
        let places = size_of::<(u32, u32)>() as u64 * (self.places.len() as u64 + more);
        let hosts = self.names.len() as u64 + more;
        self.hosts.bytes_at(hosts) + size_of::<u32>() as u64 * hosts + places
    }

    /// Roughly the bytes of memory that a reader takes for them.
    pub fn reading_bytes(&self) -> u64 {
        Hosts::rough_bytes(self.places.len() as u64, self.names.len() as u64)
    }

    /// Takes the next name. `by_site`: its host is that of a URL. `sites`: those of the open block.
    pub fn add(&mut self, name: &[u8], by_site: bool, sites: &mut Sites) -> Result<()> {
        let host = self.fingerprints.of(&name[..host_len(name, by_site)]);
        let (id, new) = self.hosts.admit(host)?;
        // There are no more hosts than names, which are fewer than 2^31.
        let host = id.0 as u32;
        if new {
            self.names.push(0);
        }
        self.note(host, sites);
        let names = &mut self.names[host as usize];
        let place = *names;
        *names += 1;
        self.places.push((host, place));
        sites.names.push(host);
        Ok(())
    }

    /// The host of a record's page, `known` names being there before it, the page as it is told, and the names known
    /// before its targets.
    pub fn page(&self, page: u32, known: u32, sites: &mut Sites) -> (u32, u32, u32) {
        let (host, place) = self.places[page as usize];
        let is_new = page >= known;
        self.note(host, sites);
        sites.pages.push((host, is_new));
        match is_new {
            true => (host, page, page + 1),
            false => (host, LOCAL | place, known),
        }
    }

    /// A target of a page on `host`, `known` names being there before the record's targets, as it is told.
    pub fn target(&self, target: u32, host: u32, known: u32) -> u32 {
        match self.places[target as usize] {
            (on, place) if on == host && target < known => LOCAL | place,
            _ => target,
        }
    }

    /// Notes how many names a host had before the block.
    fn note(&self, host: u32, sites: &mut Sites) {
        if host < sites.first_host {
            let names = self.names[host as usize];
            sites.before.entry(host).or_insert(names);
        }
    }
}
