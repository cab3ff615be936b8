//! Integers as stored. Variable-length ones have seven bits per byte, low bits first; a set high bit means that more
//! follow.

pub fn put(out: &mut Vec<u8>, mut value: u128) {
    while value > u128::from(u64::MAX) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    // Arithmetic in 64 bits is faster.
    let mut value = value as u64;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value from the front; `None` if the bytes end inside it or it overflows 128 bits.
#[inline]
pub fn take(from: &mut &[u8]) -> Option<u128> {
    // Fast path for the common case, a short value with more bytes after it: decodes all its bytes at once.
    if let Some(bytes) = from.first_chunk::<8>() {
        let word = u64::from_le_bytes(*bytes);
        let last = !word & 0x8080_8080_8080_8080;
        if last != 0 {
            let bits = last.trailing_zeros() + 1;
            *from = &from[(bits / 8) as usize..];
            return Some(squeezed(word & (u64::MAX >> (64 - bits))).into());
        }
    }
    take_long(from)
}

/// Joins the low seven bits of each byte.
fn squeezed(word: u64) -> u64 {
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    word & 0x0000_0000_0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4
}

fn take_long(from: &mut &[u8]) -> Option<u128> {
    let mut value = 0u128;
    for shift in (0..128).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u128::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a little-endian number of up to eight bytes.
pub fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// Reads a big-endian number of up to eight bytes; encoded like this, numbers sort as bytes.
pub fn be_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// Maps signed to unsigned so that small magnitudes stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(any::<u128>(), 0..20), shift in 0u32..128) {
            let mut out = Vec::new();
            for &value in &values {
                put(&mut out, value >> shift);
            }
            let mut rest = &out[..];
            for &value in &values {
                prop_assert_eq!(take(&mut rest), Some(value >> shift));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn signs_come_back(value in any::<i64>()) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut rest = &bytes[..];
            while take(&mut rest).is_some() {}
        }
    }
}
