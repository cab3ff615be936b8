//! Bytes of a simulated file: what the process sees, what the platter holds, and the changes in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::Fate;

/// Unit that a power cut writes entirely or not at all.
pub const SECTOR: usize = 512;

/// Sparse file: sectors never written are zeros. Copies share their sectors.
#[derive(Clone, Debug, Default)]
pub struct Content {
    len: u64,
    sectors: BTreeMap<u64, Arc<[u8; SECTOR]>>,
}

impl Content {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Fills `out` from `offset`; returns false if the file is too short.
    pub fn read(&self, out: &mut [u8], offset: u64) -> bool {
        if offset + out.len() as u64 > self.len {
            return false;
        }
        for (sector, within, part) in split(out.len(), offset) {
            let out = &mut out[part];
            match self.sectors.get(&sector) {
                Some(bytes) => out.copy_from_slice(&bytes[within..within + out.len()]),
                None => out.fill(0),
            }
        }
        true
    }

    pub fn write(&mut self, data: &[u8], offset: u64) {
        self.len = self.len.max(offset + data.len() as u64);
        for (sector, within, part) in split(data.len(), offset) {
            self.put(sector, within, &data[part]);
        }
    }

    fn put(&mut self, sector: u64, within: usize, bytes: &[u8]) {
        let held = self.sectors.entry(sector);
        let held = held.or_insert_with(|| Arc::new([0; SECTOR]));
        Arc::make_mut(held)[within..within + bytes.len()].copy_from_slice(bytes);
    }

    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.sectors
                .retain(|sector, _| sector * (SECTOR as u64) < len);
            let within = (len % SECTOR as u64) as usize;
            if let (1.., Some(last)) = (within, self.sectors.get_mut(&(len / SECTOR as u64))) {
                Arc::make_mut(last)[within..].fill(0);
            }
        }
        self.len = len;
    }

    /// Returns the sectors that were written to.
    pub fn sectors(&self) -> Vec<u64> {
        self.sectors.keys().copied().collect()
    }

    /// Flips a bit; returns false if it does not exist.
    pub fn flip(&mut self, byte: u64, bit: u8) -> bool {
        let mut held = [0];
        let there = self.read(&mut held, byte);
        if there {
            self.write(&[held[0] ^ 1 << bit], byte);
        }
        there
    }

    pub fn hash(&self, hash: &mut Xxh3) {
        hash.update(&self.len.to_le_bytes());
        for (sector, bytes) in &self.sectors {
            hash.update(&sector.to_le_bytes());
            hash.update(&bytes[..]);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, data } => self.write(data, *offset),
            Change::SetLen(len) => self.set_len(*len),
        }
    }

    /// Applies the part of a change that survives: a write sector by sector, a length entirely.
    fn apply_some(&mut self, change: &Change, survives: &mut impl FnMut() -> bool) {
        match change {
            Change::Write { offset, data } => {
                for (sector, within, part) in split(data.len(), *offset) {
                    if survives() {
                        let end = offset + part.end as u64;
                        self.len = self.len.max(end);
                        self.put(sector, within, &data[part]);
                    }
                }
            }
            Change::SetLen(len) => {
                if survives() {
                    self.set_len(*len);
                }
            }
        }
    }
}

/// Returns the sectors that `len` bytes at `offset` touch: sector, first byte in it, range of the bytes.
fn split(len: usize, offset: u64) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let position = offset + at as u64;
        let within = (position % SECTOR as u64) as usize;
        let part = at..len.min(at + SECTOR - within);
        at = part.end;
        Some((position / SECTOR as u64, within, part))
    })
}

#[derive(Clone, Debug)]
pub enum Change {
    Write { offset: u64, data: Arc<[u8]> },
    SetLen(u64),
}

/// File: current bytes, durable bytes, and the changes not yet durable, by their operation.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub now: Content,
    durable: Content,
    pending: Vec<(u64, Change)>,
}

impl File {
    /// Creates a file whose bytes are all durable.
    pub fn of(content: Content) -> File {
        File {
            now: content.clone(),
            durable: content,
            pending: Vec::new(),
        }
    }

    pub fn change(&mut self, operation: u64, change: Change) {
        self.now.apply(&change);
        self.pending.push((operation, change));
    }

    pub fn sync(&mut self) {
        for (_, change) in self.pending.drain(..) {
            self.durable.apply(&change);
        }
    }

    /// Returns the file after a power cut.
    pub fn survivor(&self, fate: &mut Fate) -> File {
        let mut content = self.durable.clone();
        fate.next_file();
        for (operation, change) in &self.pending {
            content.apply_some(change, &mut || fate.survives(*operation));
        }
        File::of(content)
    }

    /// Models a failed sync: the system has dropped some of what it could not write, and forgets that it failed.
    pub fn forget_some(&mut self, fate: &mut Fate) {
        *self = self.survivor(fate);
    }
}
