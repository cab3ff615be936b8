//! The distinct names of a batch.

use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use xxhash_rust::xxh3::xxh3_64_with_secret;

use super::Batch;
use crate::engine::Fingerprint;

/// The random key of a store's fingerprints. URLs are attacker-controlled, so it is kept secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// A new random key.
    pub fn random() -> crate::Result<HashKey> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| {
            crate::Error::Refused(format!("the system gives no random numbers: {e}"))
        })?;
        Ok(HashKey(bytemuck::cast(bytes)))
    }

    /// The fingerprint of a name: SipHash-1-3 with 128 bits, keyed.
    pub fn fingerprint(&self, name: &[u8]) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        hasher.write(name);
        hasher.finish128().as_u128()
    }

    /// A secret for the table of one process, made from the key.
    fn secret(&self) -> Vec<u8> {
        (0..12u128)
            .flat_map(|n| self.fingerprint(&n.to_le_bytes()).to_le_bytes())
            .collect()
    }
}

/// A hash table from spelling to name number. Spellings are canonical names and, beside them,
/// raw ones that turned out to mean a name already there.
pub(super) struct Names {
    key: HashKey,
    secret: Vec<u8>,
    /// Index into `spellings` + 1; 0 is free. A power of two long.
    table: Vec<u32>,
    spellings: Vec<Spelling>,
    /// Text of the raw spellings.
    raw: Vec<u8>,
}

struct Spelling {
    hash: u64,
    start: u32,
    len: u32,
    name: u32,
    /// The text is in `raw`, not in the batch's text.
    is_raw: bool,
}

impl Names {
    pub fn new(key: HashKey) -> Names {
        Names {
            key,
            secret: key.secret(),
            table: vec![0; 1 << 12],
            spellings: Vec::new(),
            raw: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.table.fill(0);
        self.spellings.clear();
        self.raw.clear();
    }

    /// A spelling's hash, to be used with the other methods.
    pub fn hash(&self, spelling: &[u8]) -> u64 {
        xxh3_64_with_secret(spelling, &self.secret)
    }

    /// The name with this spelling, if there is one.
    pub fn get(&self, batch: &Batch, spelling: &[u8], hash: u64) -> Option<u32> {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(index) = self.table[at].checked_sub(1) {
            let known = &self.spellings[index as usize];
            if known.hash == hash && self.text(batch, known) == spelling {
                return Some(known.name);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn text<'t>(&'t self, batch: &'t Batch, spelling: &Spelling) -> &'t [u8] {
        let from = if spelling.is_raw {
            &self.raw
        } else {
            &batch.text
        };
        &from[spelling.start as usize..][..spelling.len as usize]
    }

    /// Adds a name that is not there yet.
    pub fn add(&mut self, batch: &mut Batch, canonical: &[u8], hash: u64) -> u32 {
        let name = batch.fingerprints.len() as u32;
        let start = batch.text.len() as u32;
        batch.text.extend_from_slice(canonical);
        batch.text_ends.push(batch.text.len() as u32);
        batch.fingerprints.push(self.key.fingerprint(canonical));
        self.spell(Spelling {
            hash,
            start,
            len: canonical.len() as u32,
            name,
            is_raw: false,
        });
        name
    }

    /// Adds another spelling of a name.
    pub fn alias(&mut self, raw: &[u8], hash: u64, name: u32) {
        let start = self.raw.len() as u32;
        self.raw.extend_from_slice(raw);
        self.spell(Spelling {
            hash,
            start,
            len: raw.len() as u32,
            name,
            is_raw: true,
        });
    }

    /// Bytes of text held beside the batch's.
    pub fn raw_len(&self) -> usize {
        self.raw.len()
    }

    /// Forgets every name from `keep` on. Rare: a record was found unusable half-way.
    pub fn cut(&mut self, batch: &mut Batch, keep: u32) {
        let text = (keep as usize)
            .checked_sub(1)
            .map_or(0, |last| batch.text_ends[last]);
        batch.text.truncate(text as usize);
        batch.text_ends.truncate(keep as usize);
        batch.fingerprints.truncate(keep as usize);
        self.spellings.retain(|spelling| spelling.name < keep);
        self.rebuild(self.table.len());
    }

    fn spell(&mut self, spelling: Spelling) {
        self.spellings.push(spelling);
        if self.spellings.len() * 2 > self.table.len() {
            self.rebuild(self.table.len() * 2);
        } else {
            self.place(self.spellings.len() - 1);
        }
    }

    fn place(&mut self, index: usize) {
        let mask = self.table.len() - 1;
        let mut at = self.spellings[index].hash as usize & mask;
        while self.table[at] != 0 {
            at = (at + 1) & mask;
        }
        self.table[at] = index as u32 + 1;
    }

    fn rebuild(&mut self, len: usize) {
        self.table.clear();
        self.table.resize(len, 0);
        for index in 0..self.spellings.len() {
            self.place(index);
        }
    }
}
