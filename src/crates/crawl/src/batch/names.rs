//! Table of the distinct names of a batch.

use prefetch_index::prefetch_index;

use crate::model::{Batch, Fingerprint, Fingerprints, HashKey};

/// Hash table from fingerprints of canonical names, and of raw names resolved to these, to numbers of names.
pub(super) struct SpellingTable {
    fingerprints: Fingerprints,
    /// Slots; their number is a power of two. 0 is free; otherwise the high bits are part of the fingerprint, and the
    /// low bits the number of the spelling + 1: twice a name's number + 1, or twice an alias's number + 2.
    table: Vec<u64>,
    used: usize,
    aliases: Vec<(Fingerprint, u32)>,
}

/// Number of the low bits of a slot that hold the spelling.
const SPELLING_BITS: u32 = 34;

impl SpellingTable {
    pub fn new(key: HashKey) -> SpellingTable {
        SpellingTable {
            fingerprints: key.fingerprints(),
            table: vec![0; 1 << 12],
            used: 0,
            aliases: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.table.fill(0);
        self.used = 0;
        self.aliases.clear();
    }

    #[inline]
    pub fn fingerprint(&self, spelling: &[u8]) -> Fingerprint {
        self.fingerprints.of(spelling)
    }

    /// Prefetches the slots of some spellings, so that their lookups do not wait for one another.
    #[inline]
    pub fn touch(&self, spellings: impl Iterator<Item = Fingerprint>) {
        let mask = self.table.len() - 1;
        spellings.for_each(|fingerprint| prefetch_index(&*self.table, fingerprint as usize & mask));
    }

    #[inline]
    pub fn get(&self, batch: &Batch, fingerprint: Fingerprint) -> Option<u32> {
        let mask = self.table.len() - 1;
        let mut at = fingerprint as usize & mask;
        loop {
            let place = self.table[at];
            if place == 0 {
                return None;
            }
            if (place ^ tag(fingerprint)) >> SPELLING_BITS == 0 {
                let (known, name) = self.spelling(batch, place);
                if known == fingerprint {
                    return Some(name);
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn spelling(&self, batch: &Batch, place: u64) -> (Fingerprint, u32) {
        let number = (place & ((1 << SPELLING_BITS) - 1)) - 1;
        let at = (number >> 1) as usize;
        match number & 1 {
            0 => (batch.fingerprints[at], at as u32),
            _ => self.aliases[at],
        }
    }

    #[inline]
    pub fn add(&mut self, batch: &mut Batch, canonical: &[u8], fingerprint: Fingerprint) -> u32 {
        let name = batch.push_name(canonical, fingerprint);
        self.spell(batch, u64::from(name) << 1, fingerprint);
        name
    }

    pub fn alias(&mut self, batch: &Batch, fingerprint: Fingerprint, name: u32) {
        let number = (self.aliases.len() as u64) << 1 | 1;
        self.aliases.push((fingerprint, name));
        self.spell(batch, number, fingerprint);
    }

    /// Removes every name from `keep` on, if a record turns out to be unusable half-way.
    pub fn cut(&mut self, batch: &mut Batch, keep: u32) {
        let text = (keep as usize)
            .checked_sub(1)
            .map_or(0, |last| batch.text_ends[last]);
        batch.text.truncate(text as usize);
        batch.text_ends.truncate(keep as usize);
        batch.fingerprints.truncate(keep as usize);
        self.aliases.retain(|alias| alias.1 < keep);
        self.rebuild(batch, self.table.len());
    }

    #[inline]
    fn spell(&mut self, batch: &Batch, number: u64, fingerprint: Fingerprint) {
        if (self.used + 1) * 2 > self.table.len() {
            self.rebuild(batch, self.table.len() * 2);
        } else {
            self.place(number, fingerprint);
        }
    }

    #[inline]
    fn place(&mut self, number: u64, fingerprint: Fingerprint) {
        let mask = self.table.len() - 1;
        let mut at = fingerprint as usize & mask;
        while self.table[at] != 0 {
            at = (at + 1) & mask;
        }
        self.table[at] = tag(fingerprint) | (number + 1);
        self.used += 1;
    }

    fn rebuild(&mut self, batch: &Batch, len: usize) {
        self.table.clear();
        self.table.resize(len, 0);
        self.used = 0;
        for (name, &fingerprint) in (0..).zip(&batch.fingerprints) {
            self.place(name << 1, fingerprint);
        }
        let aliases = std::mem::take(&mut self.aliases);
        for (at, alias) in (0..).zip(&aliases) {
            self.place(at << 1 | 1, alias.0);
        }
        self.aliases = aliases;
    }
}

/// Returns the part of a fingerprint that a slot holds.
#[inline]
fn tag(fingerprint: Fingerprint) -> u64 {
    ((fingerprint >> 64) as u64) >> SPELLING_BITS << SPELLING_BITS
}
