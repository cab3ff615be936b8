//! Names of pages as numbers: keyed 128-bit hashes.

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;
use xxhash_rust::xxh3::xxh3_128_with_secret;

use super::{Error, Result};

/// A URL's keyed 128-bit hash.
pub type Fingerprint = u128;

/// The random key of a store's fingerprints. URLs are attacker-controlled, so it is kept secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// A new random key.
    pub fn random() -> Result<HashKey> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            let error = std::io::Error::other(error.to_string());
            Error::io("the random numbers of the system", "read")(error)
        })?;
        Ok(HashKey(bytemuck::cast(bytes)))
    }

    /// The fingerprints under this key.
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

/// Names to fingerprints: XXH3 with 128 bits, whose secret is SipHash-1-3 of 0 to 11 under the key.
///
/// SipHash of the names themselves took 21 ns a URL, this takes 7, and both serve as the hash of a
/// batch's table, too.
#[derive(Clone)]
pub struct Fingerprints {
    secret: [u8; SECRET_BYTES],
}

impl Fingerprints {
    /// The fingerprint of a name.
    #[inline]
    pub fn of(&self, name: &[u8]) -> Fingerprint {
        xxh3_128_with_secret(name, &self.secret)
    }
}
