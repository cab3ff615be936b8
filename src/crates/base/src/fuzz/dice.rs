//! Choices and numbers that are determined by an input.

use xxhash_rust::xxh3::xxh3_64;

/// Pseudo-random choices, seeded by the hash of an input.
pub struct Dice(u64);

impl Dice {
    pub fn of(data: &[u8]) -> Dice {
        Dice(xxh3_64(data))
    }

    /// Returns a number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // SplitMix64's step is enough: the first state is a hash.
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        ((self.0 >> 33) as usize).checked_rem(n).unwrap_or(0)
    }

    pub fn one_of<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }
}

/// Takes numbers from the front of an input; zeros once it has ended.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let part = self.take(N);
        array[..part.len()].copy_from_slice(part);
        array
    }

    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Takes the next `n` bytes, or what is left.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        part
    }
}
