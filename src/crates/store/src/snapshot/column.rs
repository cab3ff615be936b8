//! One column of one block: up to 2^17 values of 8 bytes, transposed (all first bytes, then all second bytes, ...) and
//! compressed by zstd. High bytes hardly change from page to page, so transposing makes them compress well.
//!
//! A column that changes from one snapshot to the next is kept in transposed form (`Planes`).

use std::cell::RefCell;
use std::io;

use zstd::bulk::Compressor;

use crate::{Error, Result};

const LEVEL: i32 = 1;

thread_local! {
    /// Compressor of this thread: making one takes as long as packing a small column.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let packed: io::Result<Vec<u8>> = COMPRESSOR.with_borrow_mut(|compressor| match compressor {
        Some(compressor) => compressor.compress(bytes),
        none => none.insert(Compressor::new(LEVEL)?).compress(bytes),
    });
    packed.map_err(Error::io("column", "compress"))
}

pub fn pack(values: &[u64]) -> Result<Vec<u8>> {
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

fn decompress(packed: &[u8], count: usize) -> Option<Vec<u8>> {
    let bytes = zstd::bulk::decompress(packed, count * 8).ok()?;
    (bytes.len() == count * 8).then_some(bytes)
}

/// Unpacks of `count` values those at these places; `None` if `packed` does not hold exactly as many.
pub fn unpack_at(packed: &[u8], count: usize, places: &[usize]) -> Option<Vec<u64>> {
    let bytes = decompress(packed, count)?;
    let value = |&at: &usize| {
        let planes = std::array::from_fn(|plane| bytes[plane * count + at]);
        u64::from_le_bytes(planes)
    };
    Some(places.iter().map(value).collect())
}

/// Unpacks `count` values; `None` if `packed` does not hold exactly as many.
pub fn unpack(packed: &[u8], count: usize) -> Option<Vec<u64>> {
    let bytes = decompress(packed, count)?;
    let mut values = vec![0; count];
    for (plane, bytes) in bytes.chunks_exact(count.max(1)).enumerate() {
        // As in `pack`.
        if bytes.iter().fold(0, |used, byte| used | byte) == 0 {
            continue;
        }
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value |= u64::from(*byte) << (8 * plane);
        }
    }
    Some(values)
}

const WIDTH: usize = 8;

/// Transposed column of values. Only planes of bytes with a byte different from the default's take memory.
#[derive(Debug)]
pub(super) struct Planes {
    pub usual: u64,
    len: usize,
    planes: [Vec<u8>; WIDTH],
    /// Bitmap of the planes that are stored; the others consist of the default value's byte.
    there: u64,
}

impl Planes {
    pub fn new(usual: u64) -> Planes {
        Planes {
            usual,
            len: 0,
            planes: Default::default(),
            there: 0,
        }
    }

    /// Extends the column to `len` values with the default.
    pub fn grow(&mut self, len: usize) {
        self.len = len;
        for (plane, usual) in self.planes.iter_mut().zip(self.usual.to_le_bytes()) {
            if !plane.is_empty() {
                plane.resize(len, usual);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> u64 {
        if self.there == 0 {
            return self.usual;
        }
        let mut bytes = self.usual.to_le_bytes();
        for (byte, plane) in bytes.iter_mut().zip(&self.planes) {
            if let Some(other) = plane.get(at) {
                *byte = *other;
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// Sets a value. Returns true if it changed.
    pub fn set(&mut self, at: usize, value: u64) -> bool {
        let mut changed = false;
        let mut rest = (value ^ self.usual) | self.there;
        let mut plane = 0;
        while rest != 0 {
            if rest as u8 != 0 {
                let bits = 8 * plane;
                let byte = (value >> bits) as u8;
                if self.there >> bits & 1 == 0 {
                    self.there |= 0xff << bits;
                    self.planes[plane].resize(self.len, (self.usual >> bits) as u8);
                }
                let known = &mut self.planes[plane][at];
                changed |= *known != byte;
                *known = byte;
            }
            rest >>= 8;
            plane += 1;
        }
        changed
    }

    pub fn bytes(&self) -> usize {
        self.planes.iter().map(Vec::capacity).sum()
    }

    pub fn is_default(&self) -> bool {
        self.there == 0
    }

    pub fn pack(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.len * WIDTH];
        let planes = self.planes.iter().zip(self.usual.to_le_bytes());
        for (bytes, (plane, usual)) in bytes.chunks_exact_mut(self.len.max(1)).zip(planes) {
            match &plane[..] {
                [] if usual == 0 => {}
                [] => bytes.fill(usual),
                plane => bytes.copy_from_slice(plane),
            }
        }
        compress(&bytes)
    }
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
            let places: Vec<usize> = (0..values.len()).step_by(3).collect();
            let some = places.iter().map(|&at| values[at]).collect();
            prop_assert_eq!(unpack_at(&packed, values.len(), &places), Some(some));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), count in 0usize..300) {
            let _ = unpack(&bytes, count);
        }
    }

    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            Just(1 << 63),
            0u64..9,
            1_300_000_000u64..1_300_009_999,
            any::<u64>()
        ]
    }

    proptest! {
        /// Values are read back, whatever the order of changes, and are packed like a column of them.
        #[test]
        fn they_are_the_values(
            usual in value(),
            changes in proptest::collection::vec((1usize..40, any::<proptest::sample::Index>(), value()), 0..60),
        ) {
            let (mut planes, mut values) = (Planes::new(usual), Vec::new());
            for (more, at, value) in changes {
                if more < 10 {
                    values.resize(values.len() + more, usual);
                    planes.grow(values.len());
                }
                if !values.is_empty() {
                    let at = at.index(values.len());
                    prop_assert_eq!(planes.set(at, value), values[at] != value);
                    values[at] = value;
                }
            }
            let found: Vec<u64> = (0..values.len()).map(|at| planes.get(at)).collect();
            prop_assert_eq!(&found, &values);
            prop_assert_eq!(planes.pack().unwrap(), pack(&values).unwrap());
        }
    }

    #[test]
    fn what_is_usual_takes_no_memory() {
        let mut planes = Planes::new(1 << 63);
        planes.grow(1000);
        assert_eq!(planes.bytes(), 0);
        assert!(planes.set(7, 1 << 63 | 3));
        assert_eq!(planes.bytes(), 1000);
    }
}
