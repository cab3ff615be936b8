//! Heads of checksummed blocks: consecutive little-endian fields, followed by an XXH3-64 (`formats/store.md`,
//! `formats/snapshot.md`).
//!
//! A reader uses nothing of a head before its checksum matches, except a block log's length, which it first compares
//! with the committed length of the file. What lies after the last committed block is cut off or ignored.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::varint::number;

#[derive(Debug, Default)]
pub struct BlockHead(Vec<u8>);

impl BlockHead {
    pub fn after(bytes: Vec<u8>) -> BlockHead {
        BlockHead(bytes)
    }

    pub fn u32(mut self, field: u32) -> BlockHead {
        self.0.extend_from_slice(&field.to_le_bytes());
        self
    }

    pub fn u64(mut self, field: u64) -> BlockHead {
        self.0.extend_from_slice(&field.to_le_bytes());
        self
    }

    pub fn u64s(self, fields: impl IntoIterator<Item = u64>) -> BlockHead {
        fields.into_iter().fold(self, BlockHead::u64)
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn sealed(self) -> Vec<u8> {
        let sum = xxh3_64(&self.0);
        self.u64(sum).bytes()
    }

    /// Returns the bytes, followed by the checksum of them and of a payload with the checksum `payload`.
    pub fn summed(self, payload: u64) -> Vec<u8> {
        let sum = checksum(&self.0, payload);
        self.u64(sum).bytes()
    }
}

/// Returns whether the last eight bytes are the checksum of the others.
pub fn is_sealed(head: &[u8]) -> bool {
    let (summed, sum) = head.split_at(head.len().saturating_sub(8));
    sum.len() == 8 && xxh3_64(summed) == number(sum)
}

/// Returns the checksum of a head, given that of its payload.
pub fn checksum(head: &[u8], payload: u64) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(head);
    hash.update(&payload.to_le_bytes());
    hash.digest()
}

/// Reader of consecutive fields; missing fields are 0.
pub struct HeadReader<'a>(pub &'a [u8]);

impl<'a> HeadReader<'a> {
    fn take(&mut self, size: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at(size.min(self.0.len()));
        self.0 = rest;
        field
    }

    pub fn u32(&mut self) -> u32 {
        number(self.take(4)) as u32
    }

    pub fn u64(&mut self) -> u64 {
        number(self.take(8))
    }

    pub fn u64s<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_every_flipped_bit_is_noticed() {
        let head = BlockHead::after(b"TAG".into())
            .u32(1 << 30)
            .u64s([9, u64::MAX]);
        let sealed = head.sealed();
        assert_eq!(sealed.len(), 3 + 4 + 16 + 8);
        assert_eq!(sealed[3..7], [0, 0, 0, 0x40]);
        let mut fields = HeadReader(&sealed[3..]);
        assert_eq!(fields.u32(), 1 << 30);
        assert_eq!(fields.u64s(), [9, u64::MAX]);
        assert_eq!(fields.u64(), xxh3_64(&sealed[..23]));
        assert_eq!(fields.u64(), 0);
        for bit in 0..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sealed(&flipped), "{bit}");
        }
        assert!(is_sealed(&sealed) && !is_sealed(b"short") && !is_sealed(b""));
        // The checksum of a head covers its payload.
        assert_ne!(
            BlockHead::default().u32(1).summed(1),
            BlockHead::default().u32(1).summed(2)
        );
    }
}
