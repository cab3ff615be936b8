//! A batch dealt out to partitions of pages: for each, a batch of the records of its own pages.
//!
//! A page's partition is the hash of its host, modulo the number of partitions; of a name that has no host, the hash of the
//! name. The hash has no key, so that which pages are together, and with it each bit of a ranking, is the same in every store.
//!
//! The batch of a partition names, record by record of the whole stream, first the partition's own pages that appear for the first
//! time, and then, if the record is of a page of its own, the other targets of its links. Those of other partitions are
//! *ghosts*: their text is left out. Names are admitted in this order: so a partition numbers its pages alike, wherever batches end.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Batch, Entry, Time};
use crate::url;

/// The partition of a name, of so many.
pub(crate) fn partition_of(name: &[u8], partitions: u32) -> u32 {
    let host = url::host(name);
    let of = if host.is_empty() { name } else { host };
    (xxh3_64(of) % u64::from(partitions.max(1))) as u32
}

/// Notes of all names of a batch which of so many partitions they are of.
pub(crate) fn deal(batch: &mut Batch, partitions: u32) {
    let mut owners = std::mem::take(&mut batch.owners);
    let names = 0..batch.fingerprints.len() as u32;
    owners.extend(names.map(|name| partition_of(batch.name(name), partitions)));
    batch.owners = owners;
}

/// Some entries of a batch that are dealt out to partitions.
pub(crate) struct Split<'b> {
    batch: &'b Batch,
    /// The first of the entries, and for each the latest time of a record until then.
    first: usize,
    times: &'b [Option<Time>],
    /// By partition: entries of its pages, and its pages that these entries are the first to name.
    entries: Vec<Vec<u32>>,
    names: Vec<Vec<u32>>,
    /// Names that the batch has up to the last of these entries.
    pub names_end: u32,
}

/// A partition's batch.
#[derive(Default)]
pub(crate) struct PartBatch {
    pub batch: Batch,
    /// The number that each of its names has in the whole batch.
    pub names: Vec<u32>,
}

impl PartBatch {
    /// Empties it, keeping its memory if that is worth it.
    pub fn clear(&mut self) {
        if !self.batch.is_ordinary() {
            *self = PartBatch::default();
        }
        self.batch.clear();
        self.names.clear();
    }
}

/// Where the names of a batch are in that of a partition. Used for one after the other.
#[derive(Default)]
pub(crate) struct Slots {
    /// Number there, and by whom it was set.
    slots: Vec<(u32, u64)>,
    turn: u64,
}

impl<'b> Split<'b> {
    /// Deals entries from `first` on out, as many as there are times. Those before named so many.
    pub fn new(
        batch: &'b Batch,
        (first, mut named): (usize, u32),
        times: &'b [Option<Time>],
        partitions: u32,
    ) -> Split<'b> {
        let mut split = Split {
            batch,
            first,
            times,
            entries: vec![Vec::new(); partitions as usize],
            names: vec![Vec::new(); partitions as usize],
            names_end: 0,
        };
        for at in split.range() {
            let entry = &batch.entries[at];
            if !entry.what.is_of_page() {
                continue;
            }
            for name in split.named(&mut named, entry) {
                split.names[batch.owners[name as usize] as usize].push(name);
            }
            let owner = batch.owners[entry.source as usize];
            split.entries[owner as usize].push(at as u32);
        }
        split.names_end = named;
        split
    }

    fn range(&self) -> Range<usize> {
        self.first..self.first + self.times.len()
    }

    /// Names that an entry is the first to give, of which `named` were given before.
    fn named(&self, named: &mut u32, entry: &Entry) -> Range<u32> {
        let from = *named;
        *named = from.max(entry.names_end);
        from..*named
    }

    /// Makes the batch of a partition, which is empty, without such of its names as it only might have to admit, but it `knows`
    /// them.
    pub fn part(
        &self,
        partition: u32,
        (slots, made): (&mut Slots, &mut PartBatch),
        knows: impl Fn(u32) -> bool,
    ) {
        slots.turn += 1;
        slots
            .slots
            .resize(self.batch.owners.len().max(slots.slots.len()), (0, 0));
        let mut part = Filling {
            split: self,
            partition,
            slots,
            made,
        };
        let own = self.names[partition as usize].iter().copied();
        let mut own = own.filter(|&name| !knows(name)).peekable();
        for &at in &self.entries[partition as usize] {
            let entry = &self.batch.entries[at as usize];
            while let Some(name) = own.next_if(|&name| name < entry.names_end) {
                part.slot(name);
            }
            part.add(entry, self.times[at as usize - self.first]);
        }
        own.for_each(|name| {
            part.slot(name);
        });
    }
}

/// A partition's batch that is being filled.
struct Filling<'s> {
    split: &'s Split<'s>,
    partition: u32,
    slots: &'s mut Slots,
    made: &'s mut PartBatch,
}

impl Filling<'_> {
    /// The number of a name of the whole batch, which is added if it is not there yet.
    fn slot(&mut self, name: u32) -> u32 {
        let (slot, turn) = &mut self.slots.slots[name as usize];
        if *turn != self.slots.turn {
            *turn = self.slots.turn;
            *slot = self.made.names.len() as u32;
            let whole = self.split.batch;
            let owner = whole.owners[name as usize];
            self.made.names.push(name);
            self.made.batch.owners.push(owner);
            let batch = &mut self.made.batch;
            let text = if owner == self.partition {
                whole.name(name)
            } else {
                b""
            };
            batch.push_name(text, whole.fingerprints[name as usize]);
        }
        *slot
    }

    fn add(&mut self, entry: &Entry, now: Option<Time>) {
        let source = self.slot(entry.source);
        let links_start = self.made.batch.links.len() as u32;
        for &target in self.split.batch.targets(entry) {
            let slot = self.slot(target);
            self.made.batch.links.push(slot);
        }
        let batch = &mut self.made.batch;
        let classes = self.split.batch.classes(entry);
        batch.classes.extend_from_slice(classes);
        if !self.split.batch.weights.is_empty() {
            let mut weights = Vec::new();
            self.split.batch.weigh(entry, &[], &mut weights);
            batch.weights.resize(links_start as usize, 1);
            batch.weights.extend(weights);
        }
        batch.entries.push(Entry {
            source,
            names_end: batch.fingerprints.len() as u32,
            links_start,
            links_end: batch.links.len() as u32,
            // What a partition does not know is how late it is.
            fetched_at: entry.fetched_at.or(now),
            ..*entry
        });
    }
}
