//! Hashes: keyed ones of names, by which pages are known, and digests that show whether a page has changed.

use std::hash::Hasher as _;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_secret};

use super::{Error, Result};

/// Hash of a page's name (XXH3, 128 bits) without a key: for memory, not for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHash([u64; 2]);

impl NameHash {
    pub fn of(name: &[u8]) -> NameHash {
        let hash = xxh3_128(name);
        NameHash([(hash >> 64) as u64, hash as u64])
    }
}

impl From<NameHash> for u128 {
    fn from(hash: NameHash) -> u128 {
        u128::from(hash.0[0]) << 64 | u128::from(hash.0[1])
    }
}

/// Keyed 128-bit hash of a URL.
pub type Fingerprint = u128;

/// Random key of a store's fingerprints. URLs are attacker-controlled, so it is kept secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    pub fn random() -> Result<HashKey> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            let error = std::io::Error::other(error.to_string());
            Error::io("the random numbers of the system", "read")(error)
        })?;
        Ok(HashKey(bytemuck::cast(bytes)))
    }

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
#[derive(Clone)]
pub struct Fingerprints {
    secret: [u8; SECRET_BYTES],
}

impl Fingerprints {
    #[inline]
    pub fn of(&self, name: &[u8]) -> Fingerprint {
        xxh3_128_with_secret(name, &self.secret)
    }
}

/// Prefix of a digest that was written as text.
const WRITTEN: &str = "cashrank:";

/// Digest of a page at one fetch, in 4 bytes. Two different pages collide with probability 2^-31.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u32);

impl Digest {
    /// No digest is known.
    pub const NONE: Digest = Digest(0);
    /// The page is unchanged, whatever it was.
    pub const UNCHANGED: Digest = Digest(1);
    /// The page is gone.
    pub const GONE: Digest = Digest(2);
    /// Lowest bit of a digest of content.
    const CONTENT: u32 = 1;

    /// Returns the digest of a page's content, from any good hash of it.
    pub fn of_content(hash: u64) -> Digest {
        Digest::of(hash, Digest::CONTENT)
    }

    /// Returns the digest of a page's content, from a textual digest of any kind or the output of [`Digest::text`]; that
    /// of an empty text is [`Digest::NONE`].
    pub fn of_text(text: &str) -> Digest {
        if text.is_empty() {
            return Digest::NONE;
        }
        let bits = text.strip_prefix(WRITTEN).filter(|hex| hex.len() == 8);
        match bits.and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
            Some(bits) if bits >= 4 && bits & Digest::CONTENT != 0 => Digest(bits),
            _ => Digest::of_content(xxh3_64(text.as_bytes())),
        }
    }

    /// Returns a digest of content as text; `None` for others.
    pub fn text(self) -> Option<String> {
        (self.0 >= 4 && self.0 & Digest::CONTENT != 0).then(|| format!("{WRITTEN}{:08x}", self.0))
    }

    /// Returns the digest of a page's links, from any good hash of them.
    pub fn of_links(hash: u64) -> Digest {
        Digest::of(hash, 0)
    }

    fn of(hash: u64, kind: u32) -> Digest {
        let bits = (hash as u32) << 1 | kind;
        Digest(if bits < 4 { bits | 4 } else { bits })
    }

    /// Returns whether a page changed between this digest and `next`; `None` if they cannot show it.
    pub fn changed(self, next: Digest) -> Option<bool> {
        let told = |digest: Digest| digest != Digest::NONE && digest != Digest::UNCHANGED;
        if !told(self) || !told(next) {
            return None;
        }
        let gone = self == Digest::GONE || next == Digest::GONE;
        let alike = (self.0 ^ next.0) & Digest::CONTENT == 0;
        (gone || alike).then_some(self != next)
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn from_bits(bits: u32) -> Digest {
        Digest(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back() {
        for digest in ["a", "sha1:XYZ", "cashrank:", "cashrank:00000003"].map(Digest::of_text) {
            let text = digest.text().unwrap();
            assert_eq!(Digest::of_text(&text), digest, "{text}");
        }
        for other in [
            Digest::NONE,
            Digest::UNCHANGED,
            Digest::GONE,
            Digest::of_links(7),
        ] {
            assert_eq!(other.text(), None);
        }
    }
}
