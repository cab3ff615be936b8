//! One column of one block: up to 2^17 values of 8 bytes, transposed (all first bytes, then all second bytes, ...) and
//! compressed by zstd. High bytes hardly change from page to page, so transposing makes them compress well.

const LEVEL: i32 = 1;

pub fn pack(values: &[u64]) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; values.len() * 8];
    let used = values.iter().fold(0, |used, value| used | value);
    for (plane, bytes) in bytes.chunks_exact_mut(values.len().max(1)).enumerate() {
        // Most columns hold small numbers, whose high bytes are 0 already.
        if (used >> (8 * plane)) as u8 != 0 {
            for (byte, value) in bytes.iter_mut().zip(values) {
                *byte = (value >> (8 * plane)) as u8;
            }
        }
    }
    compress(&bytes)
}

/// Compresses transposed values.
pub(super) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// Unpacks `count` values; `None` if `packed` does not hold exactly as many.
pub fn unpack(packed: &[u8], count: usize) -> Option<Vec<u64>> {
    let bytes = zstd::bulk::decompress(packed, count * 8).ok()?;
    if bytes.len() != count * 8 {
        return None;
    }
    let mut values = vec![0; count];
    for (plane, bytes) in bytes.chunks_exact(count.max(1)).enumerate() {
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value |= u64::from(*byte) << (8 * plane);
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(any::<u64>(), 0..2_000)) {
            let packed = pack(&values).unwrap();
            prop_assert_eq!(unpack(&packed, values.len()), Some(values.clone()));
            prop_assert_eq!(unpack(&packed, values.len() + 1), None);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), count in 0usize..300) {
            let _ = unpack(&bytes, count);
        }
    }
}
