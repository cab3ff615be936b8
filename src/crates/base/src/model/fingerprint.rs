//! Names of pages as numbers: keyed 128-bit hashes.

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;
use xxhash_rust::xxh3::xxh3_128_with_secret;

use super::{Error, Result};

/// Keyed 128-bit hash of a URL.
pub type Fingerprint = u128;

/// Random key of a store's fingerprints. URLs are attacker-controlled, so it is kept secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// Returns a new random key.
    pub fn random() -> Result<HashKey> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            let error = std::io::Error::other(error.to_string());
            Error::io("the random numbers of the system", "read")(error)
        })?;
        Ok(HashKey(bytemuck::cast(bytes)))
    }

    /// Returns the hash function with this key.
    pub fn fingerprints(&self) -> Fingerprints {
        let mut secret = [0; SECRET_BYTES];
        for (n, part) in (0u64..).zip(secret.as_chunks_mut::<16>().0) {
            let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
            hasher.write(&n.to_le_bytes());
            *part = hasher.finish128().as_u128().to_le_bytes();
        }
        Fingerprints { secret }
    }
}

const SECRET_BYTES: usize = 192;

/// Hash function from names to fingerprints: XXH3 with 128 bits, whose secret is SipHash-1-3 of 0 to 11 under the key.
///
/// SipHash of the names themselves took 21 ns per URL, this takes 7, and both also serve as the hash of a batch's
/// table.
#[derive(Clone)]
pub struct Fingerprints {
    secret: [u8; SECRET_BYTES],
}

impl Fingerprints {
    /// Returns the fingerprint of a name.
    #[inline]
    pub fn of(&self, name: &[u8]) -> Fingerprint {
        xxh3_128_with_secret(name, &self.secret)
    }
}
