//! Overlay over a file that is only read: what is written stays in memory.
//!
//! redb writes when it opens a file that was not closed, and when it checks one. A check of a store must not change it:
//! damage that was half repaired cannot be judged.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, StorageBackend};

const BLOCK: u64 = 4096;

/// Wraps `file` with changes that are dropped with the overlay.
#[derive(Debug)]
pub struct Overlay<F> {
    file: F,
    over: Arc<AtomicBool>,
    state: Mutex<OverlayState>,
}

#[derive(Debug)]
struct OverlayState {
    len: u64,
    /// Length up to which the file's own bytes count, where no block is written.
    own: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK as usize]>>,
}

impl<F: StorageBackend> Overlay<F> {
    /// Creates an overlay over the present contents of a file.
    pub fn new(file: F) -> io::Result<Overlay<F>> {
        let len = file.len()?;
        let state = Mutex::new(OverlayState {
            len,
            own: len,
            blocks: BTreeMap::new(),
        });
        let over = Arc::default();
        Ok(Overlay { file, over, state })
    }

    /// Returns a flag that, once set, makes the overlay refuse all access. On closing, redb visits a database's pages
    /// to note what is free: useless if nothing is kept, and it may panic if another process has changed the file.
    pub fn over(&self) -> Arc<AtomicBool> {
        self.over.clone()
    }

    fn check(&self) -> io::Result<()> {
        if self.over.load(Ordering::Acquire) {
            return Err(io::Error::other("it is not used any more"));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, OverlayState> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Fills `out` from the file; zeros after `own`.
    fn read_own(&self, own: u64, out: &mut [u8], offset: u64) -> io::Result<()> {
        let there = own.saturating_sub(offset).min(out.len() as u64) as usize;
        out[there..].fill(0);
        match there {
            0 => Ok(()),
            _ => self.file.read(offset, &mut out[..there]),
        }
    }
}

impl<F: StorageBackend> StorageBackend for Overlay<F> {
    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.check()?;
        let state = self.state();
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_own(state.own, buf, offset)?;
        let end = offset + buf.len() as u64;
        for (&block, bytes) in state.blocks.range(offset / BLOCK..end.div_ceil(BLOCK)) {
            let start = (block * BLOCK).max(offset);
            let stop = ((block + 1) * BLOCK).min(end);
            let within = (start - block * BLOCK) as usize..(stop - block * BLOCK) as usize;
            buf[(start - offset) as usize..(stop - offset) as usize]
                .copy_from_slice(&bytes[within]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut state = self.state();
        let mut rest = data;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % BLOCK) as usize;
            let (now, later) = rest.split_at(rest.len().min(BLOCK as usize - within));
            let own = state.own;
            let bytes = match state.blocks.entry(at / BLOCK) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let mut bytes = Box::new([0; BLOCK as usize]);
                    self.read_own(own, &mut bytes[..], at - within as u64)?;
                    entry.insert(bytes)
                }
            };
            bytes[within..within + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            rest = later;
        }
        if !data.is_empty() {
            state.len = state.len.max(at);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.own = state.own.min(len);
        state.blocks.retain(|block, _| block * BLOCK < len);
        let within = (len % BLOCK) as usize;
        if let (1.., Some(last)) = (within, state.blocks.get_mut(&(len / BLOCK))) {
            last[within..].fill(0);
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::FileBackend;

    /// Generates an operation at an offset, with a length.
    fn operation() -> impl Strategy<Value = (u8, u64, usize)> {
        (0u8..3, 0u64..20_000, 0usize..9_000)
    }

    proptest! {
        /// Agrees with a vector of bytes, and leaves the file unchanged.
        #[test]
        fn agrees_with_bytes_in_memory(own in proptest::collection::vec(any::<u8>(), 0..10_000), operations in proptest::collection::vec(operation(), 1..20)) {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("file");
            std::fs::write(&path, &own).unwrap();
            let overlay = Overlay::new(FileBackend::new(std::fs::File::open(&path).unwrap()).unwrap()).unwrap();
            let mut bytes = own.clone();
            for (at, (kind, offset, len)) in operations.into_iter().enumerate() {
                match kind {
                    0 => {
                        let data = vec![at as u8 + 1; len];
                        overlay.write(offset, &data).unwrap();
                        if len > 0 {
                            bytes.resize(bytes.len().max(offset as usize + len), 0);
                            bytes[offset as usize..][..len].copy_from_slice(&data);
                        }
                    }
                    1 => {
                        overlay.set_len(offset).unwrap();
                        bytes.resize(offset as usize, 0);
                    }
                    _ => {
                        let mut found = vec![0; len];
                        let expected = bytes.get(offset as usize..).and_then(|rest| rest.get(..len));
                        prop_assert_eq!(overlay.read(offset, &mut found).is_ok(), expected.is_some());
                        if let Some(expected) = expected {
                            prop_assert!(found == expected);
                        }
                    }
                }
                prop_assert_eq!(overlay.len().unwrap(), bytes.len() as u64);
            }
            let mut found = vec![0; bytes.len()];
            overlay.read(0, &mut found).unwrap();
            prop_assert!(found == bytes);
            prop_assert!(std::fs::read(&path).unwrap() == own);
            overlay.over().store(true, Ordering::Release);
            prop_assert!(overlay.read(0, &mut []).is_err() && overlay.write(0, &[1]).is_err());
        }
    }
}
