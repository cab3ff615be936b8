//! Column of a block that changes from one snapshot to the next, in transposed form (`column.rs`): first bytes of all
//! values, then all second bytes. Of these *planes* only those take memory that contain a byte different from the
//! default value's: a column of defaults takes none, and one of small numbers a byte per value.

use std::io;

use super::column;

/// Number of bytes in a value.
const WIDTH: usize = 8;

/// Transposed column of values.
pub(super) struct Planes {
    usual: u64,
    len: usize,
    planes: [Vec<u8>; WIDTH],
    /// Bitmap of the planes that are stored; the others consist of the default value's byte.
    there: u64,
}

impl Planes {
    /// Creates an empty column with this default value.
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

    /// Sets a value that still is the default. Returns true if it changed.
    pub fn set_first(&mut self, at: usize, value: u64) -> bool {
        value != self.usual && self.set(at, value)
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.planes.iter().map(Vec::capacity).sum()
    }

    /// Packs the column like [`column::pack`].
    pub fn pack(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len * WIDTH];
        let planes = self.planes.iter().zip(self.usual.to_le_bytes());
        for (bytes, (plane, usual)) in bytes.chunks_exact_mut(self.len.max(1)).zip(planes) {
            match &plane[..] {
                [] if usual == 0 => {}
                [] => bytes.fill(usual),
                plane => bytes.copy_from_slice(plane),
            }
        }
        column::compress(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            prop_assert_eq!(planes.pack().unwrap(), column::pack(&values).unwrap());
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
